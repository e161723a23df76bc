"""Entries of a cache that were made before the messages of their prompts were stored.

A chain with a history stores what it was asked at its end, when a model in it has long been answered
and its reply cached. The entry is put again then, as made of that too.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence

from dellm import Atom, Draft, Keep, Memory, Sources

FAMILY = "llm"
RUNS = 4_096  # that are kept
_Key = tuple[Hashable, Hashable]


class Waiting:
    """The entries that runs have made of what they were asked, by name. Bounded, thread-safe."""

    def __init__(self, most: int = RUNS) -> None:
        self._most = most
        self._kept: OrderedDict[_Key, dict[str, float | None]] = OrderedDict()
        self._guard = threading.Lock()

    def note(self, owner: Hashable, runs: Sequence[Hashable], name: str, ttl: float | None) -> None:
        """Keep the name of an entry made in the outermost of the runs; `ttl` in minutes."""
        with self._guard:
            for run in runs[:1]:
                self._kept.setdefault((owner, run), {})[name] = ttl
                self._kept.move_to_end((owner, run))
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def tie(self, memory: Memory, runs: Sequence[Hashable], asked: Iterable[int | None]) -> None:
        """Tie the entries to what was asked, by record; where one was refused (None) they go."""
        owner = (memory.identity, memory.id)
        with self._guard:
            names = dict(self._kept.get((owner, runs[0]), {})) if runs else {}
        parents = list(asked)
        for name, ttl in names.items() if parents else ():
            if memory.items.put(FAMILY, [_again(memory, name, ttl, parents)]).refused:
                memory.items.put(FAMILY, [Keep((), name)])  # it was forgotten just now


def _again(memory: Memory, name: str, ttl: float | None, parents: Sequence[int | None]) -> Keep:
    """Return an entry as it is, made of more; to be deleted where that is not there."""
    (item,) = memory.items.get(FAMILY, [((), name)])
    known = [one for one in parents if one is not None]
    if item is None or len(known) < len(parents):
        return Keep((), name)
    old = item.record
    draft = Draft(
        old.text, role=old.role, kind=old.kind, payload=old.payload, metadata=dict(old.metadata)
    )
    also = [Atom(known=one) for one in (old.id, *known)]
    return Keep((), name, Atom(draft, made=Sources(also=also, inexact=True)), ttl)


waiting = Waiting()
