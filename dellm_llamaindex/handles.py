"""Handles: where a memory is, written down without a password, and the open memory it means.

A memory that is copied, pickled or written as JSON with a workflow's Context is a handle. In the
process that made it, it means the same open memory; in another, the memory at that URL, which is
opened there once. A password is no part of it: it comes from the environment or the password file,
as libpq reads them (PGPASSWORD, ~/.pgpass).
"""

from __future__ import annotations

import os
import secrets
import threading
from typing import Any, NamedTuple
from weakref import WeakSet

from dellm import InvalidInput, Memory
from dellm.adapting import without_password

_IN_MEMORY = ":memory:"


class Handle(NamedTuple):
    """Where a memory is: its URL, the workspace, and which open memory of which process it was."""

    url: str
    workspace: str
    opened: str


class _Registry:
    """The open memories of this process. Thread-safe."""

    def __init__(self) -> None:
        self.process = secrets.token_hex(4)  # tells what is open here from what is open elsewhere
        self._known: WeakSet[Memory] = WeakSet()
        self._opened: dict[str, Memory] = {}  # those that a handle opened: nobody else holds them
        self._guard = threading.RLock()
        self._inherited: list[Memory] = []

    def after_fork(self) -> None:
        """Begin anew in a forked process, where connections of the one before must not be used.

        Nor closed, which would be seen there: so they stay where they are.
        """
        inherited = [*self._inherited, *self._known, *self._opened.values()]
        self.__init__()  # type: ignore[misc] # all of it, locks included
        self._inherited = inherited

    def add(self, memory: Memory) -> None:
        with self._guard:
            self._known.add(memory.root)  # which stays as long as any of its workspaces is used

    def find(self, handle: Handle) -> Memory | None:
        """Return the open memory that a handle was made of, else another one at its URL."""
        with self._guard:
            there = [one for one in self._known if one.url == handle.url and not one.closed]
        same = [one for one in there if _named(one) == handle.opened]
        if not same and handle.url != _IN_MEMORY:
            same = sorted(there, key=lambda one: -one.identity)
        return same[0].workspace(handle.workspace) if same else None

    def open(self, url: str, shown: str) -> Memory:
        """Return the memory at a URL, which is opened at the first time, and when it was closed."""
        with self._guard:
            found = self._opened.get(shown)
            if found is None or found.closed:
                found = self._opened[shown] = Memory.open(url)
                self._known.add(found.root)
            return found


_registry = _Registry()
if hasattr(os, "register_at_fork"):  # a connection must not be used on both sides of a fork
    os.register_at_fork(after_in_child=_registry.after_fork)


def attach(memory: Memory) -> Memory:
    """Let the handles of a memory's URL mean this open memory, as long as it is used; return it.

    DeLLMMemory does so with the memory it is given; call it in a process that only restores
    handles, where the URL alone does not say how the memory is opened (a password, an embedder).
    """
    if not isinstance(memory, Memory):
        raise InvalidInput("What handles are to mean is no dellm.Memory.")
    _registry.add(memory)
    return memory


def handle_of(memory: Memory) -> Handle:
    """Return the handle of an open memory, which from now on means it."""
    attach(memory)
    return Handle(memory.url, memory.id, _named(memory))


def opened(handle: Handle) -> Memory:
    """Return the open memory that a handle means, opening it where this process has not.

    Raises InvalidInput for a memory that was in another process's memory only; what Memory.open
    raises.
    """
    found = _registry.find(handle)
    if found is None and handle.url == _IN_MEMORY:
        raise InvalidInput(
            'This handle is of a memory at ":memory:" that is not open in this process.',
            remedy="Keep what is to outlast a process in a file or in PostgreSQL.",
        )
    return found or _registry.open(handle.url, handle.url).workspace(handle.workspace)


def open_once(memory: Memory | str, workspace: str | None) -> Memory:
    """Return an open memory, or the one at a path or URL, which is opened once in a process.

    The URL may have a password. ":memory:" is one memory that all who say so in this process share.
    `workspace` is the workspace of it that is returned, None: the one it has, or "default".
    """
    if isinstance(memory, str) and memory.strip():
        shown = without_password(memory)
        there = None if shown == _IN_MEMORY else _registry.find(Handle(shown, "default", ""))
        memory = there or _registry.open(memory, shown)
    if not isinstance(memory, Memory):
        raise InvalidInput("memory= is neither a dellm.Memory nor a path or URL.")
    return memory if workspace is None else memory.workspace(workspace)


class Held:
    """An open memory as a part of an object that is copied: every copy shares it."""

    __slots__ = ("memory",)

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def of(self, handle: Handle) -> Memory:
        """Return the memory that a handle means: this one, unless it is of a copy with another."""
        if (self.memory.url, self.memory.id) == (handle.url, handle.workspace):
            return self.memory
        return opened(handle)

    def __copy__(self) -> Held:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Held:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _held, tuple(handle_of(self.memory))


def _held(url: str, workspace: str, opened_as: str) -> Held:
    return Held(opened(Handle(url, workspace, opened_as)))


def _named(memory: Memory) -> str:
    return f"{_registry.process}-{memory.identity}"
