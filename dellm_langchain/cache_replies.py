"""Which replies are those that a cache keeps or gave: by their ids, until they are stored."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from langchain_core.messages import BaseMessage
from langchain_core.utils.utils import LC_ID_PREFIX

from dellm import Atom, Draft, Sources

from .calls import Call, generated

MOST = 8_192  # replies that are kept


def reply_id(run_id: UUID, index: int = 0) -> str:
    """Return the id that LangChain gives a model's reply that has none, and a cache one it gives."""
    return f"{LC_ID_PREFIX}-{run_id}-{index}"


class Cached(NamedTuple):
    """The record of the entry that holds a reply; `given`: the entry was there before the reply.

    `said` is a number that the reply gives as it was then.
    """

    record: int
    given: bool
    said: int | None

    def holds(self, message: BaseMessage) -> bool:
        """Whether the entry was made of this reply, and holds just what it says."""
        return not self.given and self.said is not None and generated(message) == self.said


class CachedReplies:
    """The entries of the replies made and given last in this process. Bounded, thread-safe."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[Hashable, str], Cached] = OrderedDict()
        self._guard = threading.Lock()

    def note(self, owner: Hashable, message: BaseMessage, record: int, *, given: bool) -> None:
        """Keep which entry of a memory's workspace holds a reply that has an id."""
        if message.id is None:
            return
        with self._guard:
            self._kept[owner, message.id] = Cached(record, given, generated(message))
            self._kept.move_to_end((owner, message.id))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def of(self, owner: Hashable, message_id: str | None) -> Cached | None:
        """Return the entry of a reply, None where it has none that is known."""
        if message_id is None or not self._kept:
            return None
        return self._kept.get((owner, message_id))

    def given(self, owner: Hashable, message: BaseMessage, call: Call | None) -> list[int]:
        """Return the record of the entry that a reply was given from, if there is one.

        `call` is the one it answers: its text may stand in a message that has another id.
        """
        names = [message.id, None if call is None else reply_id(call.run_id)]
        found = (self.of(owner, one) for one in names)
        return list(dict.fromkeys(one.record for one in found if one is not None and one.given))

    def marked(self, owner: Hashable, message: BaseMessage, draft: Draft) -> Draft:
        """Return the draft of a message, as a copy of the entry that was made of this reply."""
        found = self.of(owner, message.id)
        if found is None or not found.holds(message):
            return draft
        return replace(draft, copy_of=found.record)

    def tied(self, owner: Hashable, message: BaseMessage, made: Sources | None) -> Sources | None:
        """Return what a message was made from, with the entry that it was given from."""
        found = self.of(owner, message.id)
        if found is None or not found.given:
            return made
        more = made or Sources()
        return replace(more, also=(*more.also, Atom(known=found.record, unsure=True)))


cached_replies = CachedReplies()
