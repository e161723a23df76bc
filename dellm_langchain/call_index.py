"""Model calls by what they are looked up by, bounded, and honest about what the bound has dropped."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import replace
from uuid import UUID

from .calls import Call, Prompt


class CallIndex:
    """Calls by key. A key that lost a call to the bound says so with an opaque call."""

    def __init__(self, lost: int) -> None:
        self._calls: dict[Hashable, dict[UUID, Call]] = {}
        self._lost: OrderedDict[Hashable, Call] = OrderedDict()
        self._most_lost = lost

    def add(self, call: Call, keys: Iterable[Hashable]) -> None:
        """Keep a call under its keys."""
        for key in keys:
            self._calls.setdefault(key, {})[call.run_id] = call

    def drop(self, call: Call, keys: Iterable[Hashable]) -> None:
        """Drop a call, and keep that each of its keys has lost one."""
        left = replace(call, prompt=Prompt(), opaque=True)
        for key in keys:
            held = self._calls[key]
            del held[call.run_id]
            if not held:
                del self._calls[key]
            self._lost[key] = left
            self._lost.move_to_end(key)
        while len(self._lost) > self._most_lost:
            self._lost.popitem(last=False)

    def get(self, key: Hashable) -> list[Call]:
        """Return the calls under a key, an opaque one first where any was dropped."""
        lost = self._lost.get(key)
        return [*([lost] if lost else ()), *self._calls.get(key, {}).values()]
