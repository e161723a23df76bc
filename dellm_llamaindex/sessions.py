"""One session: a thread of the core, read as chat messages and added to with what each was made from."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from llama_index.core.base.llms.types import ChatMessage

from dellm import Draft, Held, Memory, Said

from . import origins
from .messages import draft_of, message_of
from .pairs import alone, caller_of, repaired, unanswered
from .scopes import Scope
from .tags import Owner, answered_call, call_ids, digest_of, owner_of, tag
from .trimming import Counter, start_of

AHEAD = 16  # messages that are read at a time where the end of a session does not do
FIRST = 48  # messages that are read of a session nothing is known of
SESSIONS = 1_024  # sessions of which something is known


@dataclass(slots=True)
class Known:
    """What this process knows of a session: ids, numbers and keyed digests, of one generation.

    `enough`: how many of the newest messages were needed last. `systems`: the system messages up to
    the record `upto`.
    """

    generation: int = -1
    enough: int = FIRST
    systems: dict[int, None] = field(default_factory=dict)
    upto: int = 0
    digests: dict[int, bytes] = field(default_factory=dict)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def at(self, generation: int) -> None:
        """Let go of what is of another generation: some of it may be erased."""
        with self.guard:
            if generation != self.generation:
                self.generation = generation
                self.systems, self.upto, self.digests = {}, 0, {}


class _Sessions:
    """What is known of the sessions used last. Thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Owner, str], Known] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, owner: Owner, name: str) -> Known:
        with self._guard:
            found = self._known.setdefault((owner, name), Known())
            self._known.move_to_end((owner, name))
            while len(self._known) > SESSIONS:
                self._known.popitem(last=False)
            return found


_sessions = _Sessions()


class Window:
    """Messages of a session with their records, in order. `complete`: nothing is before them."""

    __slots__ = ("changed", "complete", "generation", "messages", "records")

    def __init__(self, held: Iterable[Held], generation: int, *, complete: bool) -> None:
        listed = list(held)
        self.messages = [message_of(one) for one in listed]
        self.records = [one.id for one in listed]
        self.generation, self.complete = generation, complete
        self.changed: set[int] = set()  # the records of messages that are not as they were stored


class Session:
    """A session of one workspace of an open memory. Thread-safe."""

    def __init__(self, memory: Memory, name: str) -> None:
        self.memory, self.name = memory, name
        self.owner: Owner = owner_of(memory)
        self.kept = memory.conversations

    @property
    def known(self) -> Known:
        """What this process knows of the session."""
        return _sessions.of(self.owner, self.name)

    # reading

    def window(self, last: int | None = None) -> Window:
        """Return the session's messages, or its newest, tagged, and in pairs after a forget."""
        said: Said = self.kept.read(self.name, last=last)
        found = Window(said.messages, said.generation, complete=said.complete)
        if found.generation:
            self.mend(found)
        self.tagged(found)
        return found

    def fitting(self, counter: Counter, room: int) -> list[ChatMessage]:
        """Return as much of the session's end as has `room` tokens; see trimming.py.

        Where all there is room for is a tool's result, and a forget has left it the last message,
        its call comes with it.
        """
        known = self.known
        last = known.enough
        while True:
            found = self.window(last)
            start = start_of(found.messages, found.records, counter, room, complete=found.complete)
            if start is not None and found.generation:
                start = caller_of(found.messages, start, complete=found.complete)
            if start is not None:
                known.enough = max(FIRST, len(found.messages) - start + AHEAD)
                return found.messages[start:]
            last *= 4

    def tagged(self, found: Window) -> None:
        """Note on each message which record it is."""
        known = self.known
        known.at(found.generation)
        digests = known.digests
        for message, record in zip(found.messages, found.records, strict=True):
            digest = digests.get(record) if record not in found.changed else None
            if digest is None:
                digest = digest_of(message)
                if record not in found.changed:
                    digests[record] = digest
            tag(message, self.owner, record, digest)

    def mend(self, found: Window) -> None:
        """Take out the calls and results that a forget left alone."""
        asked = unanswered(found.messages)
        results = alone(found.messages)
        if not asked and not results:
            return
        erased = self.memory.checkpoints.erased_calls(self.name, list(asked)) if asked else set()
        before = [] if found.complete else self._called_before(found, results)
        records = {id(one): at for one, at in zip(found.messages, found.records, strict=True)}
        found.changed = {found.records[at] for at in asked.values()}
        found.messages = repaired(found.messages, erased, outside=before)
        found.records = [records[id(one)] for one in found.messages]

    def _called_before(self, found: Window, results: Sequence[int]) -> list[int]:
        """Return the places of those results whose calls stand before a window."""
        return [at for at in results if self.caller(found.messages[at], found.records[at])]

    def caller(self, result: ChatMessage, record: int) -> Held | None:
        """Return the message that made the call which a tool's result answers, None if it is gone."""
        call = answered_call(result)
        before, complete = record, False
        while not complete:
            said = self.kept.read(self.name, last=AHEAD, before=before)
            one: Held
            for one in reversed(said.messages):
                if one.role == "assistant" and call in call_ids(message_of(one)):
                    return one
            complete = said.complete or not said.messages
            before = said.messages[0].id if said.messages else 0
        return None

    # writing

    def add(self, messages: Sequence[ChatMessage], scope: Scope | None) -> None:
        """Add messages in one transaction; those made from what is erased by now are not stored."""
        origins.write(self.memory, self.name, messages, self.draft, scope=scope)

    def draft(self, message: ChatMessage, framework_id: str) -> Draft:
        """Return what a message is stored as."""
        return draft_of(message, self.name, framework_id)
