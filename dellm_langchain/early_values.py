"""Which records running code has made of the values of channels, before a saver was handed them.

A saver's own records of them are copies of these. No value is kept: it is known again by a number
that means nothing outside of this process.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from .item_lists import State

THREADS = 4_096  # that are kept
MOST = 65_536  # values kept of each


class Early(NamedTuple):
    """The record that stands for a value, and the run in which it was made."""

    record: int
    run: Hashable


_None: Mapping[int, Early] = MappingProxyType({})


def number_of(channel: str, state: State) -> int:
    """Return what a channel's value is known by; `state` is what a saver's record of it holds."""
    return hash((channel, *state))


class EarlyValues:
    """The records of values by thread. Bounded, thread-safe."""

    def __init__(self, threads: int = THREADS, most: int = MOST) -> None:
        self._most_threads, self._most = threads, most
        self._kept: OrderedDict[tuple[Hashable, str], dict[int, Early]] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, owner: Hashable, thread: str) -> Mapping[int, Early]:
        """Return what is known of a thread of a memory's workspace."""
        return self._kept.get((owner, thread), _None)

    def note(self, owner: Hashable, thread: str, number: int, early: Early) -> None:
        """Keep the record of a value."""
        with self._guard:
            values = self._kept.setdefault((owner, thread), {})
            self._kept.move_to_end((owner, thread))
            values.pop(number, None)
            values[number] = early
            if len(values) > self._most:
                del values[next(iter(values))]
            if len(self._kept) > self._most_threads:
                self._kept.popitem(last=False)

    def stored(self, owner: Hashable, thread: str) -> None:
        """Forget a thread: its saver has now stored all that its values are copies of."""
        with self._guard:
            self._kept.pop((owner, thread), None)


early_values = EarlyValues()
