"""Measuring next to a peer: the two take turns, so that a noisy machine slows both alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: `value` is what the bound speaks of (a ratio, a rate, a time).

    `ours` and `theirs` are already in words, with their units; `at_least` turns the bound round.
    `bound` None marks information. A smoke run (`sized` False) measures too little to judge.
    """

    name: str
    database: str
    peer: str
    ours: str
    theirs: str
    value: float
    unit: str = "times"
    bound: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        """Say "pass", "miss", or "" for information."""
        if self.bound is None:
            return ""
        kept = self.value >= self.bound if self.at_least else self.value <= self.bound
        return "pass" if kept else "miss"

    @property
    def limit(self) -> str:
        """Return the bound in words."""
        if self.bound is None:
            return "-"
        return f"{'≥' if self.at_least else '≤'} {self.bound:g} {self.unit}"

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain JSON values."""
        return {**asdict(self), "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class Pair:
    """Seconds of several turns of ours and of the peer."""

    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        """Return the ratio of the medians."""
        return median(self.ours) / median(self.theirs)

    def row(self, name: str, database: str, peer: str, bound: float | None, note: str = "") -> Row:
        """Return the line that compares the two."""
        return Row(
            name=name,
            database=database,
            peer=peer,
            ours=clock(median(self.ours)),
            theirs=clock(median(self.theirs)),
            value=round(self.ratio, 2),
            bound=bound,
            note=note,
        )


def turns(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int, *, each: int = 1
) -> Pair:
    """Time both `rounds` times in turn, the first mover alternating, after one unmeasured round.

    Each turn is `each` calls in a row; the seconds are per call.
    """
    found: dict[bool, list[float]] = {True: [], False: []}
    for number in range(rounds + 1):
        for mine in (number % 2 == 0, number % 2 != 0):
            taken = timed(ours if mine else theirs, each)
            if number:
                found[mine].append(taken)
    return Pair(found[True], found[False])


def timed(call: Callable[[], object], each: int = 1) -> float:
    """Return the seconds of one call, over `each` calls in a row."""
    with collected():
        start = time.perf_counter()
        for _ in range(each):
            call()
        return (time.perf_counter() - start) / each


@contextmanager
def collected() -> Iterator[None]:
    """Keep the benchmark's own heap out of the measured call's garbage collections."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def clock(seconds: float) -> str:
    """Return a time in the unit a reader would choose."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"
