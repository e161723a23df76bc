"""Where the entries of a cache are kept: the items of the workspaces that it was used for."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dellm import Draft, Items, Keep, Memory
from dellm.adapting import ALL_KNOWN, CACHED

from .running import Here
from .store_shelves import Shelves

EVERY = 64  # writes of entries that live for a time, between two times that old ones are removed


class Shelf:
    """The entries of one family by workspace; those whose time is over are removed now and then."""

    def __init__(self, family: str) -> None:
        self._family = family
        self._shelves = Shelves()
        self._writes = 0
        self._guard = threading.Lock()

    def of(self, memory: Memory) -> Items:
        """Return the items of a memory's workspace."""
        return self._shelves.of(memory)

    def put(self, at: Here, keeps: Sequence[Keep], trusted: int) -> None:
        """Keep entries; their atoms have no id afterwards where they were refused."""
        items = self.of(at.memory)
        items.put(self._family, keeps, thread=at.thread, trusted=trusted)
        if any(one.ttl is not None for one in keeps) and self._due():
            items.sweep(self._family)

    def _due(self) -> bool:
        with self._guard:
            self._writes += 1
            return self._writes % EVERY == 0


def entry_of(text: str, payload: bytes, *, all_known: bool) -> Draft:
    """Return the record of an entry; `all_known`: all that it is made of is among its parents.

    Then it stays when only a reply that was given from it goes, with what else that was made of.
    """
    named = {ALL_KNOWN: True} if all_known else {}
    return Draft(text, role=CACHED, kind="state", payload=payload, metadata=named)
