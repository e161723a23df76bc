"""Who is told of every forget of an open memory: the adapters of systems that keep copies."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from inspect import ismethod

from .receipts import Receipt

Listener = Callable[[Receipt], object]


class Listeners:
    """The functions to be called after a forget, in the order in which they came. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: list[Callable[[], Listener | None]] = []

    def add(self, call: Listener) -> None:
        """Call this after every forget; of a bound method only as long as its object lives."""
        held = weakref.WeakMethod(call) if ismethod(call) else lambda: call
        with self._guard:
            self._held.append(held)

    def tell(self, receipt: Receipt) -> None:
        """Call all of them with the receipt of a forget that is done."""
        with self._guard:
            self._held = [one for one in self._held if one() is not None]
            calls = [one() for one in self._held]
        for call in calls:
            if call is not None:
                # The forget is committed: another system's failure is no reason to say otherwise.
                with suppress(Exception):
                    call(receipt)
