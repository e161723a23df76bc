"""What running code has read from a memory besides its graph's state: store items, documents.

A tool or node that reads through one of our adapters says which records it got. What its task makes
afterwards may be made of them. Bounded, and safe in threads; what had to be let go of is answered by
more than was read, never by less.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

THREAD = "thread"  # with a thread's name: what all tasks on it have read
MOST = 65_536  # runs and tasks whose reads are kept, and as many threads
ENTRIES = 4_000_000  # reads kept of all of them, at 16 bytes each
DROPPED = 131_072  # runs and tasks of which it is still known on which thread they were
FOLD = 4_096  # reads that are kept one by one before they are packed

_Numbers = NDArray[np.int64]
_NOTHING: _Numbers = np.empty(0, np.int64)
_Key = tuple[Hashable, Hashable]  # whose workspace, and a run, task or thread


class Shelf:
    """The records read by one run, task or thread, in order, each with the moment it was first read.

    A moment is how many model calls the process had made by then.
    """

    __slots__ = ("_ids", "_moments", "_new", "thread")

    def __init__(self, thread: _Key | None = None) -> None:
        self.thread = thread
        self._new: dict[int, int] = {}
        self._ids, self._moments = _NOTHING, _NOTHING

    def __len__(self) -> int:
        return len(self._ids) + len(self._new)

    def add(self, ids: Iterable[int], moment: int) -> None:
        """Note records; the first time counts."""
        for one in ids:
            self._new.setdefault(one, moment)
        if len(self._new) > max(FOLD, len(self._ids) // 4):
            self._fold()

    def take(self, other: Shelf) -> None:
        """Note all that another has, as read at the same moments."""
        self._fold()
        self._pack(other._ids, other._moments)
        self._pack(*other._unpacked())

    def before(self, moment: int | None) -> list[int]:
        """Return the records that were read before a moment, all without one."""
        if moment is None:
            return list(dict.fromkeys([*self._ids.tolist(), *self._new]))
        packed = self._ids[self._moments < moment].tolist()
        known = set(self._ids.tolist()) if self._new else ()
        new = (one for one, at in self._new.items() if at < moment and one not in known)
        return [*packed, *new]

    def _fold(self) -> None:
        ids, moments = self._unpacked()
        self._new = {}
        self._pack(ids, moments)

    def _unpacked(self) -> tuple[_Numbers, _Numbers]:
        size = len(self._new)
        ids = np.fromiter(self._new.keys(), np.int64, size)
        return ids, np.fromiter(self._new.values(), np.int64, size)

    def _pack(self, more: _Numbers, moments: _Numbers) -> None:
        if not len(more):
            return
        ids = np.concatenate([self._ids, more])
        when = np.concatenate([self._moments, moments])
        order = np.argsort(when, kind="stable")
        _, first = np.unique(ids[order], return_index=True)
        kept = order[np.sort(first)]
        self._ids, self._moments = ids[kept], when[kept]


class Shelves:
    """Shelves by key, the one noted last at the end; bounded by their number and their reads."""

    def __init__(self, most: int, entries: int) -> None:
        self._most, self._entries = most, entries
        self._held = 0
        self._kept: OrderedDict[_Key, Shelf] = OrderedDict()

    def add(self, key: _Key, thread: _Key | None, ids: Sequence[int], moment: int) -> None:
        """Note reads under a key."""
        shelf = self._kept.setdefault(key, Shelf(thread))
        had = len(shelf)
        shelf.add(ids, moment)
        self._held += len(shelf) - had
        self._kept.move_to_end(key)

    def get(self, key: _Key) -> Shelf | None:
        """Return what was noted under a key, None if that is nothing or was dropped."""
        return self._kept.get(key)

    def drop(self) -> tuple[_Key, Shelf] | None:
        """Take out the oldest if there is too much; never the newest one."""
        if len(self._kept) < 2 or (len(self._kept) <= self._most and self._held <= self._entries):
            return None
        key, shelf = self._kept.popitem(last=False)
        self._held -= len(shelf)
        return key, shelf


class Reads:
    """The records read by the runs, tasks and threads of this process.

    For a run or task that was dropped stands all that was read on its thread, for a thread that was
    dropped all that was read on any such thread of the workspace.
    """

    def __init__(self, *, most: int = MOST, entries: int = ENTRIES, dropped: int = DROPPED) -> None:
        self._guard = Lock()
        self._places = Shelves(most, entries)
        self._threads = Shelves(most, entries)
        self._most_dropped = dropped
        self._dropped: OrderedDict[_Key, _Key | None] = OrderedDict()
        self._rest: dict[Hashable, Shelf] = {}  # by owner: what is of no thread that is kept

    def note(
        self, owner: Hashable, places: Iterable[Hashable], ids: Iterable[int], moment: int
    ) -> None:
        """Keep that runs and tasks, named by `places`, have read records of one workspace."""
        listed, keys = list(ids), [(owner, one) for one in places]
        thread = next((key for key in keys if _is_thread(key)), None)
        with self._guard:
            for key in keys:
                into = self._threads if _is_thread(key) else self._places
                into.add(key, thread, listed, moment)
            self._trim()

    def of(self, owner: Hashable, place: Hashable, *, before: int | None = None) -> list[int]:
        """Return the records that a run or task has read, in order; `before` the call of a moment."""
        key = (owner, place)
        with self._guard:
            found = (self._threads if _is_thread(key) else self._places).get(key)
            instead = self._instead(key) if key in self._dropped else None
            both = [one.before(before) for one in (instead, found) if one is not None]
        return list(dict.fromkeys(one for some in both for one in some))

    def _instead(self, key: _Key) -> Shelf | None:
        thread = self._dropped[key]
        kept = None if thread is None else self._threads.get(thread)
        return kept if kept is not None and thread not in self._dropped else self._all(key, kept)

    def _all(self, key: _Key, kept: Shelf | None) -> Shelf:
        found = Shelf()
        for one in (self._rest.get(key[0]), kept):
            if one is not None:
                found.take(one)
        return found

    def _trim(self) -> None:
        while (gone := self._places.drop()) is not None:
            key, shelf = gone
            self._note_dropped(key, shelf.thread)
            if shelf.thread is None:
                self._rest.setdefault(key[0], Shelf()).take(shelf)
        while (gone := self._threads.drop()) is not None:
            key, shelf = gone
            self._note_dropped(key, None)
            self._rest.setdefault(key[0], Shelf()).take(shelf)

    def _note_dropped(self, key: _Key, thread: _Key | None) -> None:
        self._dropped[key] = thread
        self._dropped.move_to_end(key)
        while len(self._dropped) > self._most_dropped:
            self._dropped.popitem(last=False)


def _is_thread(key: _Key) -> bool:
    return isinstance(key[1], tuple) and key[1][:1] == (THREAD,)


reads = Reads()
