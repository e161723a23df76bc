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

from langchain_core.messages import BaseMessage

from dellm import Atom, Sources

from .history_turns import content_number

MOST = 100_000  # messages that are kept by id
_Objects = dict[tuple[Hashable, int], tuple[weakref.ref[BaseMessage], int]]


class Handed:
    """The messages that histories of this process have handed out last. Bounded, thread-safe."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._objects: _Objects = {}
        self._named: OrderedDict[tuple[Hashable, str], tuple[int, int | None]] = OrderedDict()
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

    def tied(self, owner: Hashable, message: BaseMessage, made: Sources | None) -> Sources | None:
        """Return what a message was made from, with the record that it is handed out as."""
        if (record := self.of(owner, message)) is None:
            return made
        more = made or Sources()
        return replace(more, also=(*more.also, Atom(known=record, unsure=True)))


handed = Handed()
