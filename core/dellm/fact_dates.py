"""From when until when facts hold, computed from nothing but what is stated.

A fact's dates are never kept apart from the statements that give them: when one of these is
forgotten, the dates are what they would be had it never been made. So no date, and no row that was
closed and is not closed by anything that is left, shows that something was erased (I2, I7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

OPEN = (1 << 63) - 1  # until when a fact holds that nothing has closed, in microseconds


class Statement(NamedTuple):
    """That a key had a value from `since` on, as the record says; `value` is a digest of it.

    `end` is the first moment at which it was said to hold no longer, or OPEN. Microseconds UTC.
    """

    record: int
    value: int
    since: int
    end: int = OPEN


@dataclass(frozen=True, slots=True)
class Run:
    """One fact: the statements that say the same without anything between them, the first first.

    It holds from `since` on and until `until`, which is not part of it; equal where it was
    corrected at once, and so never held.
    """

    records: tuple[int, ...]
    value: int
    since: int
    until: int


def runs(statements: Iterable[Statement], *, many: bool) -> list[Run]:
    """Return the facts of one key of one subject, in the order in which they began.

    With one value at a time another value closes the one before it; of two that begin at the same
    moment the record that came later counts. With `many`, values do not touch each other. What is
    said again of a fact that holds supports it; after its end it begins a fact of its own.
    """
    ordered = sorted(statements, key=lambda one: (one.since, one.record))
    if not many:
        return list(_one_at_a_time(ordered))
    apart: dict[int, list[Statement]] = {}
    for one in ordered:
        apart.setdefault(one.value, []).append(one)
    found = [run for some in apart.values() for run in _one_at_a_time(some)]
    return sorted(found, key=lambda run: (run.since, run.records[0]))


def _one_at_a_time(ordered: Sequence[Statement]) -> Iterator[Run]:
    said: list[Statement] = []
    end = OPEN
    for one in ordered:
        if said and (end <= one.since or one.value != said[0].value):
            yield _run(said, min(end, one.since))
            said, end = [], OPEN
        said.append(one)
        end = min(end, one.end)
    if said:
        yield _run(said, end)


def _run(said: Sequence[Statement], until: int) -> Run:
    return Run(tuple(one.record for one in said), said[0].value, said[0].since, until)
