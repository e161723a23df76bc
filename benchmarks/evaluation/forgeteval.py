"""ForgetEval: delete by a phrase, then look at what a question still recalls, and at what else went.

One policy for every case, and no rule of it here: a phrase becomes plans by `dellm.about`, which a
user of the library calls just so. "purge" erases, "release" suppresses, "supersede" erases and
remembers the new text; a clause of a two-fact sentence is redacted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dellm
from dellm import about

from .results import Cell, Number, Report, share
from .running import Run
from .sets import forgeteval

UNSEEN = Path(__file__).parent / "data" / "forgeteval_unseen.jsonl"
FROZEN = "4715b00a03a6"  # the commit at which the rules stood when the unseen variants were written
AT_FROZEN = "106 of 130 passed, 6 of 225 neutral facts lost"  # what the rules of then made of them
RECALLED = 10  # records that the final query recalls, as in the paper
SMALL = 24
PUBLISHED = (
    "Published for other systems, on other cases of the same benchmark: deterministic systems "
    "70.1 to 70.7 % (345 cases), a language model at each deletion 91.7 to 93.2 %; in its version "
    "0.4 (112 cases) Lethe 62.5, Mem0 67.9, LangMem 61.6 %; prefix_collision Lethe 16 of 16, Mem0 "
    "8 of 16; compound_fact 0 of 8 for all of them; identifier_obfuscation at most 5 % and "
    "cross_lingual_identifier 0 % for deterministic systems, 100 % with a model at write time."
)
Policy = Callable[[dellm.Memory, forgeteval.Mutation], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case: whether it passed, and the neutral facts that were lost."""

    case: forgeteval.Case
    passed: bool
    lost: tuple[str, ...]


def run(run: Run) -> list[Report]:
    """Run the official cases and, where they are there, our own unseen variants."""
    made = [_report(run, "forgeteval", "ForgetEval", _sample(run, _official(run)))]
    if UNSEEN.is_file():
        cases = _sample(run, forgeteval.read(UNSEEN))
        report = _report(run, "forgeteval-unseen", "ForgetEval, variants never seen", cases)
        report.notes.insert(
            0,
            f"Written after the rules were frozen at commit {FROZEN}, and tried on those first: "
            f"{AT_FROZEN}. The table is of the rules as they are now.",
        )
        made.append(report)
    return made


def _official(run: Run) -> Sequence[forgeteval.Case]:
    return forgeteval.load(run.folder("forgeteval"))


def _sample(run: Run, cases: Sequence[forgeteval.Case]) -> list[forgeteval.Case]:
    """Return the cases to run: of a small run, some of every category."""
    step = max(1, len(cases) // SMALL) if run.small and run.limit is None else 1
    return run.first(list(cases)[::step], SMALL)


def outcomes(run: Run, cases: Iterable[forgeteval.Case], policy: Policy) -> Iterator[Outcome]:
    """Play each case in a workspace of its own."""
    with dellm.Memory.open(":memory:", embedder=run.embedder, credentials="allow") as memory:
        for place, case in enumerate(run.watch(cases, "ForgetEval")):
            yield played(memory.workspace(f"case {place}"), case, policy)


def played(memory: dellm.Memory, case: forgeteval.Case, policy: Policy) -> Outcome:
    """Remember the facts of a case, apply its mutations and ask its query."""
    for fact in case.facts:
        memory.remember(fact, thread="facts")
    for mutation in case.mutations:
        policy(memory, mutation)
        if mutation.new:
            memory.remember(mutation.new, thread="facts")
    recalled = memory.search(case.query, limit=RECALLED, threshold=-1.0)
    held = {record.text for record in memory.export()}
    lost = tuple(fact for fact in case.neutral if fact not in held)
    return Outcome(case, case.passed(one.record.text for one in recalled), lost)


def by_phrase(memory: dellm.Memory, mutation: forgeteval.Mutation) -> None:
    """Forget what the phrase of a mutation is about, as a developer would with `dellm.about`."""
    mode = "suppress" if mutation.verb == "release" else "erase"
    for plan in about.plans(memory, mutation.query, mode=mode):
        memory.forget(plan, unit="clause")


def everything(memory: dellm.Memory, _mutation: forgeteval.Mutation) -> None:
    """Delete all there is, whatever is asked: a control."""
    memory.forget(everything=True)


def nothing(_memory: dellm.Memory, _mutation: forgeteval.Mutation) -> None:
    """Delete nothing: the other control."""


POLICIES: dict[str, Policy] = {
    "by phrase": by_phrase,
    "control: delete everything": everything,
    "control: delete nothing": nothing,
}


def _report(run: Run, name: str, title: str, cases: list[forgeteval.Case]) -> Report:
    rows: list[dict[str, Cell | Number]] = []
    failed: list[str] = []
    for policy, apply in POLICIES.items():
        found = list(outcomes(run, cases, apply))
        groups = {"all": found, **(_by_category(found) if apply is by_phrase else {})}
        rows += [_row(policy, category, group) for category, group in groups.items()]
        if apply is by_phrase:
            failed = [one.case.id for one in found if not one.passed or one.lost]
    return Report(name, title, rows, run.settings(cases=len(cases)), _notes(failed))


def _by_category(found: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for one in found:
        groups.setdefault(one.case.category, []).append(one)
    return dict(sorted(groups.items()))


def _row(policy: str, category: str, found: Sequence[Outcome]) -> dict[str, Cell | Number]:
    neutral = sum(len(one.case.neutral) for one in found)
    return {
        "policy": policy,
        "category": category,
        "cases": len(found),
        "passed": share(sum(one.passed for one in found), len(found)),
        "neutral facts": neutral,
        "neutral facts lost": share(sum(len(one.lost) for one in found), neutral),
    }


def _notes(failed: Sequence[str]) -> list[str]:
    return [
        "A case passes if the ten records recalled for its query hold every string that must be "
        "there and none that must not. A neutral fact holds no string that must not be recalled; "
        "it is lost if its text is no longer in the memory.",
        "Cases that failed or lost a neutral fact: " + (", ".join(failed) or "none") + ".",
        PUBLISHED,
    ]
