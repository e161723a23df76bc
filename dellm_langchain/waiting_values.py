"""Values that were kept before what they were made of was stored: cached replies, items of stores.

A chain with a history stores what it was asked at its end, when a model in it has long been answered
and its reply cached. The value is tied to that then.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from dellm import Memory

RUNS = 4_096  # that are kept


@dataclass(slots=True)
class _Values:
    """The records of the values that a run has made."""

    records: set[int] = field(default_factory=set)
    guard: threading.Lock = field(default_factory=threading.Lock)  # of several chains in the run


class Waiting:
    """The values that runs have made of what they were asked. Bounded, thread-safe."""

    def __init__(self, most: int = RUNS) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[Hashable, Hashable], _Values] = OrderedDict()
        self._guard = threading.Lock()

    def note(self, owner: Hashable, runs: Sequence[Hashable], records: Iterable[int]) -> None:
        """Keep the records of values that were made in the outermost of the runs."""
        for run in runs[:1]:
            with self._guard:
                values = self._kept.setdefault((owner, run), _Values())
                self._kept.move_to_end((owner, run))
                if len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            with values.guard:
                values.records.update(records)

    def tie(self, memory: Memory, runs: Sequence[Hashable], asked: Sequence[int | None]) -> None:
        """Tie the values to what was asked, by record; where one was refused (None) they go."""
        values = self._kept.get(((memory.identity, memory.id), runs[0])) if runs else None
        if values is None or not asked:
            return
        with values.guard:
            values.records = set(memory.items.tie(sorted(values.records), asked))


waiting = Waiting()
