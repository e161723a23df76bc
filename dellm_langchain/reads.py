"""What running code has read from a memory besides its graph's state: store items, documents.

A tool or node that reads through one of our adapters says which records it got. What its task makes
afterwards may be made of them. Bounded, and safe in threads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from threading import Lock
from typing import NamedTuple

THREAD = "thread"  # with a thread's name: what all tasks on it have read
MOST = 4_096  # runs and tasks whose reads are kept
EACH = 10_000  # reads kept for one of them


class Read(NamedTuple):
    """A record that was read; `moment` is how many model calls the process had made by then."""

    record: int
    moment: int


class Reads:
    """The records read by the runs and tasks of this process, the oldest dropped first."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._kept: OrderedDict[Hashable, dict[int, Read]] = OrderedDict()

    def note(
        self, owner: Hashable, places: Iterable[Hashable], ids: Iterable[int], moment: int
    ) -> None:
        """Keep that runs and tasks, named by `places`, have read records of one workspace."""
        listed = list(ids)
        with self._guard:
            for place in places:
                held = self._kept.setdefault((owner, place), {})
                for one in listed:
                    held.setdefault(one, Read(one, moment))  # the first time counts
                while len(held) > EACH:
                    del held[next(iter(held))]
                self._kept.move_to_end((owner, place))
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)

    def of(self, owner: Hashable, place: Hashable, *, before: int | None = None) -> list[int]:
        """Return the records that a run or task has read, in order; `before` the call of a moment."""
        with self._guard:
            found = list(self._kept.get((owner, place), {}).values())
        return [one.record for one in found if before is None or one.moment < before]


reads = Reads()
