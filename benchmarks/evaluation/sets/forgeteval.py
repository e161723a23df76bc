"""ForgetEval-Adv: small memories, one or more deletions each, and what may still be recalled.

Source: Yang 2026 (arXiv:2606.15903), github deeplethe/lethe (MIT). The 109 cases on disk are those
of its deletion categories; the same shape, with a list `neutral`, is that of our own variants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .reading import Row, counted, existing, rows_of, texts, typed

CASES = 109
VERBS = frozenset({"purge", "release", "supersede"})


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change: `verb` is "purge", "release" or "supersede", `new` the text of the last, or ""."""

    verb: str
    query: str
    new: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One memory and what is asked of it; `neutral` are the facts that no deletion is about."""

    id: str
    category: str
    facts: tuple[str, ...]
    mutations: tuple[Mutation, ...]
    query: str
    must: tuple[str, ...]
    must_not: tuple[str, ...]
    neutral: tuple[str, ...]

    def passed(self, recalled: Iterable[str]) -> bool:
        """Official scoring: every `must` string in the recalled texts, and no `must_not` string."""
        blob = "\n".join(recalled)
        return all(one in blob for one in self.must) and not any(
            one in blob for one in self.must_not
        )


def load(folder: Path) -> tuple[Case, ...]:
    """Return the 109 cases on disk; raise InvalidInput for another count or shape."""
    cases = read(existing(folder, "cases.jsonl"))
    counted("cases of ForgetEval", len(cases), CASES)
    return cases


def read(path: Path) -> tuple[Case, ...]:
    """Return the cases of a file in the official shape; raise InvalidInput for another shape."""
    return rows_of(path, _case)


def _case(row: Row) -> Case:
    facts, must_not = texts(row["setup_facts"]), texts(row["must_not_contain"])
    neutral = texts(row["neutral"]) if "neutral" in row else _neutral(facts, must_not)
    return Case(
        id=typed(row["id"], str),
        category=typed(row["category"], str),
        facts=facts,
        mutations=tuple(_mutation(texts(one)) for one in typed(row["mutations"], list)),
        query=typed(row["final_query"], str),
        must=texts(row["must_contain"]),
        must_not=must_not,
        neutral=neutral,
    )


def _mutation(said: tuple[str, ...]) -> Mutation:
    verb, query, *new = said
    if verb not in VERBS or len(new) != (verb == "supersede"):
        raise ValueError(verb)
    return Mutation(verb, query, *new)


def _neutral(facts: tuple[str, ...], must_not: tuple[str, ...]) -> tuple[str, ...]:
    """Return the facts that hold nothing which must not be recalled.

    In the official cases every fact about what is deleted holds such a string.
    """
    return tuple(fact for fact in facts if not any(one in fact for one in must_not))
