"""LongMemEval: all sessions loaded as they were said, the question asked, judged per type.

A reader who has the official file needs one command:

    python -m benchmarks.evaluation longmemeval --model openai:gpt-4.1-nano --data DIR

with `longmemeval_oracle.json` (the sessions with evidence only) in `DIR/longmemeval`, or beside it
the bigger files: the first of S and oracle that is there is taken. Nothing is forgotten: the set
has no deletions.
"""

from __future__ import annotations

from .results import Report
from .running import MissingData, Run
from .sets import longmemeval
from .talking import reported
from .talks import talks_of_longmemeval

SMALL = 2  # questions of the sample for CI
FOLDER = "longmemeval"


def run(run: Run) -> Report:
    """Ask every question of the file in `longmemeval/` of every system.

    Raises MissingData if the folder holds none of the files.
    """
    size, questions = found(run)
    talks = run.first(talks_of_longmemeval(questions), SMALL)
    return reported(run, "longmemeval", f"LongMemEval ({size})", talks)


def found(run: Run) -> tuple[str, tuple[longmemeval.Question, ...]]:
    """Return the size and the questions of the first file that is there: S, else oracle."""
    folder = run.folder(FOLDER)
    for size in ("s", "oracle"):
        if any((folder / name).is_file() for name in longmemeval.FILES[size]):
            return size, longmemeval.load(folder, size)
    raise MissingData(f"{FOLDER}/ holds neither the oracle file nor S.")
