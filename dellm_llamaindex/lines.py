"""What is done in the order in which it was asked for, from whatever loop and thread."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

_T = TypeVar("_T")
_Waiting = tuple["Future[Any]", Callable[[], Any]]


class Line:
    """Makes one call at a time, in the order of `call`, from whatever loop and thread."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._running = threading.Lock()

    async def call(self, work: Callable[[], _T]) -> _T:
        """Return what a function gives, called in another thread in the caller's context."""
        context = copy_context()
        done: Future[_T] = Future()
        one: _Waiting = (done, lambda: context.run(work))
        self._waiting.append(one)
        try:
            await asyncio.to_thread(self._until, done)
        except asyncio.CancelledError:
            with suppress(ValueError):  # it is not waiting any more: then it is made
                self._waiting.remove(one)
            raise
        return done.result()

    def _until(self, done: Future[Any]) -> None:
        """Make the calls that wait up to one; another thread may have made it already."""
        with self._running:
            while not done.done() and self._waiting:
                future, work = self._waiting.popleft()
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001 - it is the caller's, who gets it
                    future.set_exception(error)


class Turn:
    """Lets in one at a time, `async with`, in order."""

    def __init__(self) -> None:
        self._waiting: deque[Future[None]] = deque()
        self._taken = False
        self._guard = threading.Lock()

    async def __aenter__(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            mine: Future[None] = Future()
            self._waiting.append(mine)
        try:
            await asyncio.wrap_future(mine)
        except asyncio.CancelledError:
            if not mine.cancel():
                self._next()  # it was let in meanwhile
            raise

    async def __aexit__(self, *_: object) -> None:
        self._next()

    def _next(self) -> None:
        with self._guard:
            while self._waiting:
                one = self._waiting.popleft()
                if one.set_running_or_notify_cancel():
                    one.set_result(None)
                    return
            self._taken = False


class InUse(Generic[_T]):
    """One object for each key, as long as somebody uses it. Thread-safe."""

    def __init__(self, make: Callable[[], _T]) -> None:
        self._make = make
        self._known: WeakValueDictionary[object, _T] = WeakValueDictionary()
        self._guard = threading.Lock()

    def of(self, key: object) -> _T:
        """Return the object of a key."""
        with self._guard:
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = self._make()
            return found


lines = InUse(Line)
turns = InUse(Turn)
