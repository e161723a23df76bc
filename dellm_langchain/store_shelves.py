"""The items of the workspaces that a store was used for: kept, since they hold vectors in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict

from dellm import Items, Memory

MOST = 64  # workspaces whose vectors are kept in memory, those used last


class Shelves:
    """Hands out the one Items of each workspace. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._items: OrderedDict[str, Items] = OrderedDict()
        self._names: dict[str, None] = {}

    def of(self, memory: Memory) -> Items:
        """Return the items of a memory's workspace."""
        with self._guard:
            found = self._items.get(memory.id)
            if found is None:
                found = self._items[memory.id] = memory.items
            self._items.move_to_end(memory.id)
            self._names[memory.id] = None
            if len(self._items) > MOST:
                self._items.popitem(last=False)
            return found

    def names(self) -> list[str]:
        """Return the workspaces that were asked for so far."""
        with self._guard:
            return list(self._names)
