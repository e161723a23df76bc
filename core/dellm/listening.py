"""Who is told of every forget of an open memory, or of every read: adapters to other systems."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from inspect import ismethod

Listener = Callable[..., object]


class Listeners:
    """The functions to be called after something, in the order in which they came. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: list[Callable[[], Listener | None]] = []

    def add(self, call: Listener) -> None:
        """Call this from now on; a bound method only as long as its object lives."""
        held = weakref.WeakMethod(call) if ismethod(call) else lambda: call
        with self._guard:
            self._held.append(held)

    def tell(self, *said: object) -> None:
        """Call all of them with what was done."""
        if not self._held:
            return
        with self._guard:
            self._held = [one for one in self._held if one() is not None]
            calls = [one() for one in self._held]
        for call in calls:
            if call is not None:
                # It is done: another system's failure is no reason to say otherwise.
                with suppress(Exception):
                    call(*said)
