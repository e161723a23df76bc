"""Which replies are those that a cache keeps or gave: by their ids, until they are stored."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from .calls import generated

MOST = 8_192  # replies that are kept


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


cached_replies = CachedReplies()
