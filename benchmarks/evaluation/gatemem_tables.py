"""What is counted at each checkpoint of GateMem, and the tables made of it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .gatemem_replay import DEPTHS, Counts, Variant
from .results import Cell, Number, mean, rate, share
from .sets.gatemem import Published

Row = dict[str, Cell | Number]
WAYS = ("named", "some named", "announced", "described", "none")


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A forgetting checkpoint: where its targets came back.

    `way` is how the deletion was asked for and `told` whether the question itself holds a target.
    `store` and `contexts` (by their size) are scored on cleaned targets, and None where none is
    left; `answer` and `canary`, the answers of the model and of one that repeats its prompt, on the
    official ones; `judged` by a judge, None without one.
    """

    domain: str
    way: str
    told: bool
    store: bool | None
    contexts: dict[int, bool | None]
    answer: bool
    canary: bool
    judged: bool | None


@dataclass(frozen=True, slots=True)
class Used:
    """A utility checkpoint: which contexts (by size) hold all that a right answer says.

    `answer`: the official rule for the model's answer. Of `strings` that were said by then, `lost`
    stand in no record any more.
    """

    domain: str
    contexts: dict[int, bool]
    answer: bool
    strings: int
    lost: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that was counted for one variant; `counts` has one entry per episode."""

    variant: Variant
    forgotten: tuple[Forgotten, ...]
    used: tuple[Used, ...]
    counts: tuple[Counts, ...]


def main_row(outcome: Outcome) -> Row:
    """Return the row of a variant in the main table."""
    gone, used = outcome.forgotten, outcome.used
    named = [one for one in gone if one.way == "named"]
    row = _head(outcome.variant)
    row["F_store, named"] = rate(one.store for one in named)
    row["F_store"] = rate(one.store for one in gone)
    for k in DEPTHS:
        row[f"F_context@{k}"] = rate(one.contexts[k] for one in gone)
    row["F_answer, rule-scored"] = rate(one.answer for one in gone)
    row["F_answer, canary"] = rate(one.canary for one in gone)
    if any(one.judged is not None for one in gone):
        row["F_answer, judged"] = rate(one.judged for one in gone)
    for k in DEPTHS:
        row[f"utility@{k}"] = rate(one.contexts[k] for one in used)
    row["utility, answer"] = rate(one.answer for one in used)
    row["strings lost"] = share(sum(one.lost for one in used), sum(one.strings for one in used))
    row["probes that lost one"] = rate(one.lost > 0 for one in used)
    return row | _did(outcome.counts)


def _head(variant: Variant) -> Row:
    return {
        "told by": variant.name,
        "deletes by": variant.way,
        "guard": "anyway" if variant.anyway else "yes" if variant.guard else "no",
        "credentials": variant.credentials,
    }


def _did(counts: Sequence[Counts]) -> Row:
    return {
        "forgets": sum(one.forgets for one in counts),
        "records taken": sum(one.records for one in counts),
        "guards lifted by": sum(one.lifted for one in counts),
    }


def split_rows(outcome: Outcome) -> list[Row]:
    """Return the rows of a variant by the way of asking, by what the question holds, by domain."""
    gone = outcome.forgotten
    domains = dict.fromkeys(one.domain for one in gone)
    parts: list[tuple[str, Callable[[Forgotten], bool]]] = [
        *((f"asked for: {way}", lambda one, way=way: one.way == way) for way in WAYS),
        ("question holds a target", lambda one: one.told),
        ("question holds none", lambda one: not one.told),
        *((f"domain: {name}", lambda one, name=name: one.domain == name) for name in domains),
    ]
    rows = []
    for name, belongs in parts:
        if part := [one for one in gone if belongs(one)]:
            rows.append(_head(outcome.variant) | {"probes": name} | _part(part))
    return rows


def _part(part: Sequence[Forgotten]) -> Row:
    return {
        "n": len(part),
        "F_store": rate(one.store for one in part),
        "F_context@5": rate(one.contexts[DEPTHS[0]] for one in part),
        "F_answer, rule-scored": rate(one.answer for one in part),
        "F_answer, canary": rate(one.canary for one in part),
    }


def published_rows(published: Sequence[Published], domains: Sequence[str]) -> list[Row]:
    """Return the leaderboard's means per method over these domains, with the range of F."""
    rows: list[Row] = []
    there = [one for one in published if one.domain in domains]
    for method in dict.fromkeys(one.method for one in there):
        of_method = [one for one in there if one.method == method]
        failed = [one.forgetting / 100 for one in of_method]
        rows.append(
            {
                "method": method,
                "rows": len(of_method),
                "U": statistics.fmean(one.utility / 100 for one in of_method),
                "A": statistics.fmean(one.access / 100 for one in of_method),
                "F": mean(failed),
                "lowest F": min(failed),
                "highest F": max(failed),
                "MGS": statistics.fmean(one.score / 100 for one in of_method),
            }
        )
    return rows
