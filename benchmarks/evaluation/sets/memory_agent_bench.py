"""MemoryAgentBench: long texts given piece by piece, then many questions about each.

Source: Hu, Wang and McAuley, ICLR 2026 (arXiv:2507.05257), data ai-hyz/MemoryAgentBench: four splits, a
row of which has `context`, `questions`, `answers` (of each question a list of accepted texts) and
`metadata` (with `source`, `qa_pair_ids` and more). The official files are Parquet, which needs the
package pyarrow; JSON Lines and JSON of the same rows (`SPLIT.jsonl`, `SPLIT.json`) need nothing. Its
"selective forgetting" is about newer facts that take the place of older ones, not about deletion.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dellm.errors import InvalidInput

from .reading import Row, counted, existing, rows_of, shape_of, texts, typed

SPLITS = {
    "Accurate_Retrieval": 22,
    "Test_Time_Learning": 6,
    "Long_Range_Understanding": 110,
    "Conflict_Resolution": 8,
}

_FACT = re.compile(r"^\s*(\d+)\.\s+(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the answers that count as right; `id` is that of the pair, if it has one."""

    id: str | None
    question: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A text and the questions about it; `source` names the data it was made of."""

    source: str
    context: str
    questions: tuple[Question, ...]

    @property
    def facts(self) -> tuple[tuple[int, str], ...]:
        """The numbered facts of the text, in order; empty where it has none.

        So are the texts of Conflict_Resolution: of two facts the one with the higher number holds.
        """
        return tuple((int(found[1]), found[2]) for found in _FACT.finditer(self.context))


def load(
    folder: Path, split: str = "Conflict_Resolution", *, official: bool = True
) -> tuple[Task, ...]:
    """Return the tasks of a split, in order.

    Raises InvalidInput for another split, if no file of it is in the folder, if it has another
    shape, if it is Parquet and pyarrow is not installed, or, where `official`, if there are not as
    many as `SPLITS` says.
    """
    if split not in SPLITS:
        raise InvalidInput(f"MemoryAgentBench has these splits: {', '.join(SPLITS)}.")
    names = (f"{split}.jsonl", f"{split}.json", f"{split}-00000-of-00001.parquet")
    path = existing(folder, *names)
    made = _parquet(path) if path.suffix == ".parquet" else rows_of(path, _task)
    if official:
        counted(f"tasks of {split}", len(made), SPLITS[split])
    return made


def _parquet(path: Path) -> tuple[Task, ...]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as missing:
        raise InvalidInput(
            "Parquet needs the package pyarrow.", remedy="Install pyarrow, or convert to .jsonl."
        ) from missing
    with shape_of(f"MemoryAgentBench ({path.name})"):
        return tuple(_task(row) for row in parquet.read_table(path).to_pylist())


def _task(row: Row) -> Task:
    about = typed(row["metadata"], dict)
    asked, answers = texts(row["questions"]), typed(row["answers"], list)
    ids: Sequence[Any] = about.get("qa_pair_ids") or [None] * len(asked)
    return Task(
        source=typed(about["source"], str),
        context=typed(row["context"], str),
        questions=tuple(
            Question(None if name is None else str(name), question, _answers(right))
            for name, question, right in zip(ids, asked, answers, strict=True)
        ),
    )


def _answers(right: object) -> tuple[str, ...]:
    return (right,) if isinstance(right, str) else texts(right)
