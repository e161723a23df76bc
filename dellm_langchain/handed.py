"""Which records the messages stand for that a history has handed out: as objects, and by their ids.

User code may put such a message into another thread, an agent or a prompt. What is stored there is
then made from the record.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace
from typing import Protocol

from langchain_core.messages import BaseMessage

from dellm import Atom, Sources

from .history_turns import content_number

MOST = 100_000  # messages that are kept by id
_Objects = dict[tuple[Hashable, int], tuple[weakref.ref[BaseMessage], int]]


class Keeper(Protocol):
    """What keeps messages of a memory's workspace in a form of its own."""

    @property
    def owner(self) -> tuple[int, str]:
        """The memory and the workspace."""

    def known(self, message: BaseMessage) -> int | None:
        """Return the record of a message, None where it is not known as it is."""


class Handed:
    """The messages that histories of this process have handed out last. Bounded, thread-safe."""

    def __init__(self, most: int = MOST, *, besides: Handed | None = None) -> None:
        self._most, self._besides = most, besides
        self._objects: _Objects = {}
        self._named: OrderedDict[tuple[Hashable, str], tuple[int, int | None]] = OrderedDict()
        self._keepers: weakref.WeakSet[Keeper] = weakref.WeakSet()
        self._guard = threading.RLock()  # a message may be let go while it is held

    def note(self, owner: Hashable, message: BaseMessage, record: int) -> None:
        """Keep that a message is that of a record of one memory's workspace."""
        key = (owner, id(message))
        with self._guard:
            held = weakref.ref(message, lambda _: self._objects.pop(key, None))
            self._objects[key] = held, record
            if message.id is not None:
                self._named[owner, message.id] = record, content_number(message.content)
                self._named.move_to_end((owner, message.id))
            if len(self._named) > self._most:
                self._named.popitem(last=False)

    def ask(self, keeper: Keeper) -> None:
        """From now on ask a keeper too, as long as there is one."""
        with self._guard:
            self._keepers.add(keeper)

    def anywhere(self, owner: Hashable, message: BaseMessage) -> int | None:
        """Return the record of a message, also of one that a saver keeps in any thread."""
        record = self.of(owner, message)
        if record is None and self._besides is not None:
            record = self._besides.of(owner, message)
        if record is not None or message.id is None:
            return record
        with self._guard:
            keepers = [one for one in self._keepers if one.owner == owner]
        found = (one.known(message) for one in keepers)
        return next((one for one in found if one is not None), None)

    def of(self, owner: Hashable, message: BaseMessage) -> int | None:
        """Return the record of a message: the very object, or one of the same id and content."""
        held, record = self._objects.get((owner, id(message)), (None, 0))
        if held is not None and held() is message:
            return record
        if message.id is None or not self._named:
            return None
        named = self._named.get((owner, message.id))
        if named is None or named[1] is None or named[1] != content_number(message.content):
            return None
        return named[0]

    def tied(
        self, owner: Hashable, message: BaseMessage, made: Sources | None, *, given: bool
    ) -> Sources | None:
        """Return what a message was made from, with the record that it is handed out as.

        `given`: it comes from outside, where it may be from any thread.
        """
        record = (self.anywhere if given else self.of)(owner, message)
        if record is None:
            return made
        more = made or Sources()
        return replace(more, also=(*more.also, Atom(known=record, unsure=True)))


stored = Handed()  # what savers have stored
handed = Handed(besides=stored)
