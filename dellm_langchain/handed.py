"""Which records the messages stand for that a history has handed out: as objects, and by their ids.

User code may put such a message into another thread, an agent or a prompt. What is stored there is
then made from the record.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from langchain_core.messages import BaseMessage

from dellm import Atom, Sources

from .history_turns import Named, content_number

MOST = 100_000  # messages that are kept by id
_One = tuple[Named, weakref.ref[BaseMessage]]


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
        self._kept: OrderedDict[tuple[Hashable, str], _One] = OrderedDict()
        self._keepers: weakref.WeakSet[Keeper] = weakref.WeakSet()
        self._guard = threading.Lock()

    def note(
        self, owner: Hashable, messages: Iterable[BaseMessage], named: Mapping[str, Named]
    ) -> None:
        """Keep which records of one memory's workspace messages are, by their ids."""
        with self._guard:
            for one in messages:
                if one.id is not None:
                    key = (owner, one.id)
                    self._kept[key] = (named[one.id], weakref.ref(one))
                    self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

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
        found = self._kept.get((owner, message.id or ""))
        if found is None:
            return None
        named, object_ = found
        same = object_() is message or (
            named.content is not None and named.content == content_number(message.content)
        )
        return named.record if same else None

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
