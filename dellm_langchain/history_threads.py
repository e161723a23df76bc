"""One thread of messages: read as fresh messages, and added to with what each was made from."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import Held, InvalidInput, Memory, Said, Saying

from .addresses import thread_name
from .calls import Call
from .capture import captured
from .giving import unanswered
from .handed import handed
from .history_origins import Origins, name_of
from .history_turns import Given, Named, Owner, Turn, content_number, turns
from .messages import recipe
from .pairs import repaired
from .reads import reads
from .running import here
from .tracked_reads import Quoted, shown
from .waiting_values import waiting

AHEAD = 16  # messages of a thread that are read at a time where its end does not do


@dataclass(slots=True)
class Known:
    """The messages of a thread that this process has read or added, in one generation."""

    generation: int = -1
    named: dict[str, Named] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)  # the records that made tool calls
    guard: threading.Lock = field(default_factory=threading.Lock)

    def learn(self, generation: int, named: Mapping[str, Named], calls: Mapping[str, int]) -> None:
        """Take messages in; those of another generation go, since some of them may be erased."""
        with self.guard:
            if generation != self.generation:
                self.generation, self.named, self.calls = generation, {}, {}
            self.named.update(named)
            self.calls.update(calls)


class Threads:
    """What is known of the threads used last. Thread-safe."""

    def __init__(self, *, threads: int = 256, messages: int = 200_000) -> None:
        self._most_threads, self._most = threads, messages
        self._known: OrderedDict[tuple[Owner, str], Known] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, owner: Owner, thread: str) -> Known:
        """Return what is known of a thread, which may be nothing."""
        with self._guard:
            found = self._known.setdefault((owner, thread), Known())
            self._known.move_to_end((owner, thread))
            while len(self._known) > 1 and self._too_much():
                self._known.popitem(last=False)
            return found

    def _too_much(self) -> bool:
        if len(self._known) > self._most_threads:
            return True
        return sum(len(one.named) for one in self._known.values()) > self._most


threads = Threads()


class Conversation:
    """A thread of one workspace, as LangChain's messages. Thread-safe."""

    def __init__(self, memory: Memory, thread: str, serde: SerializerProtocol) -> None:
        self.memory, self.thread, self.serde = memory, thread, serde
        self.owner: Owner = (memory.identity, memory.id)
        self._kept = memory.conversations
        captured.everywhere()

    def read(self, last: int | None = None) -> Given:
        """Return the messages of the thread, or its newest `last`, without halves of tool calls.

        A window that would begin with a tool's result begins with the call instead.
        """
        turn = self.turn(last)
        given = Given(turn.messages)
        if runs := captured.around().runs:
            given.turn = turn
        self.gave(runs, turn)
        return given

    def gave(self, runs: Sequence[UUID], turn: Turn) -> None:
        """Keep that the runs, and the task of a graph that this is in, were given messages."""
        if runs:
            turns.note(runs, turn)
        handed.note(self.owner, turn.messages, turn.named)
        where = here(self.memory, None)
        if where.inside:
            where.read(one.record for one in turn.named.values())

    def turn(self, last: int | None = None) -> Turn:
        """Return what `read` gives, with its records, of which nobody has been told yet."""
        said = self._kept.read(self.thread, last=last)
        held = [*self._calls_before(said), *said.messages]
        messages, named = [], {}
        for one in held:
            message = message_of(one, self.serde)
            messages.append(message)
            named[message.id or ""] = Named(one.id, content_number(message.content))
        if said.generation:
            messages = self._mended(messages, named)
        threads.of(self.owner, self.thread).learn(
            said.generation, named, _calls(messages, lambda one: named[one.id or ""].record)
        )
        return Turn(self.owner, self.thread, said.generation, said.ended, messages, named)

    def caller(self, call_id: str) -> int | None:
        """Return the record of the message that made a tool call, None where there is none."""
        found = threads.of(self.owner, self.thread).calls.get(call_id)
        before: int | None = None
        while found is None:
            said = self._kept.read(self.thread, last=AHEAD, before=before)
            made = [(message_of(one, self.serde), one.id) for one in said.messages]
            record = {id(message): id_ for message, id_ in made}
            calls = _calls((one for one, _ in made), lambda one, at=record: at[id(one)])  # type: ignore[misc] # a default binds it
            found = calls.get(call_id)
            if said.complete or not said.messages:
                break
            before = said.messages[0].id
        return found

    def _calls_before(self, said: Said) -> list[Held]:
        """Return what a window lacks at its beginning: the call of its first results."""
        found: list[Held] = []
        first = said.messages[0] if said.messages else None
        while first is not None and first.kind == "tool" and not said.complete:
            said = self._kept.read(self.thread, last=AHEAD, before=first.id)
            more = said.messages
            start = max((at for at, one in enumerate(more) if one.kind != "tool"), default=0)
            found = [*more[start:], *found]
            first = found[0] if more else None
        return found

    def _mended(self, messages: list[BaseMessage], named: dict[str, Named]) -> list[BaseMessage]:
        """Return the messages without the calls and results that a forget left alone."""
        asked = unanswered(messages)
        erased = self.memory.checkpoints.erased_calls(self.thread, asked) if asked else set()
        mended = repaired(messages, erased, affected=True)
        for one in mended:
            known = named[one.id or ""]
            named[one.id or ""] = Named(known.record, content_number(one.content))
        return mended

    def add(
        self,
        messages: Sequence[BaseMessage],
        *,
        replies: Mapping[int, Call] = MappingProxyType({}),
        runs: Sequence[UUID] | None = None,
        noted: Sequence[int] = (),
    ) -> None:
        """Add messages, with what each was made from; they get ids where they have none.

        One that is there already is not added again. One that was erased, or that was made from
        what was erased since, is refused: it is not stored, and nothing says so. `replies` are the
        calls of messages, by their objects, that are known already; `runs` are the runs that the
        write is part of, if not those that the calling code is in; outside of any, `noted` are
        records that are in the prompts.
        """
        around = captured.around().runs if runs is None else runs
        run, read = turns.around(around, self.owner, self.thread)
        read.sort(key=lambda one: one.thread != self.thread)  # this thread's come first
        if not around:
            self._show_agents()
        texts = [str(one.text) for one in messages]
        quoted = Quoted(self.memory, () if around else noted, texts)
        if around:
            told = {one.record for turn in read for one in turn.named.values()}
            noted = [one for one in reads.of(self.owner, run or around[0]) if one not in told]
            if run is None:  # what other threads gave to the run
                given = turns.read_in(around, self.owner)
                noted = [*noted, *(it.record for one in given for it in one.named.values())]
        known = threads.of(self.owner, self.thread)
        origins = Origins(
            self.thread,
            self.serde,
            self.owner,
            run,
            read,
            known.named,
            known.calls,
            self._texts,
            noted,
            replies,
            quoted,
            run or (around[0] if around else None),
        )
        said = origins.sayings(messages)
        generations = {known.generation, *(one.generation for one in read)}
        sure = origins.sure and not noted and not quoted.used and len(generations) == 1
        ended = read[0].ended if read else None
        trusted = known.generation if sure else -1
        generation = self._kept.add(self.thread, said, trusted=trusted, ended=ended)
        origins.stored()
        waiting.tie(self.memory, around, [one.id for one in said if one.draft.role != "assistant"])
        for one in read:
            one.copies.clear()
        self._learn(generation, messages, said)

    def _show_agents(self) -> None:
        """Let it be known again what graphs on this memory have said lately.

        Outside of any run nothing but the text ties that to what is added.
        """
        calls = captured.lately(self.owner)
        for thread in {thread_name(one.thread_id) for one in calls if one.thread_id is not None}:
            held = self._kept.read(thread, last=AHEAD).messages if thread != self.thread else ()
            replies = [(one.id, [one.text]) for one in held if one.role == "assistant"]
            shown.note(self.memory, replies)

    def _texts(self) -> dict[int, str]:
        return {one.id: one.text for one in self._kept.read(self.thread).messages}

    def _learn(
        self, generation: int, messages: Iterable[BaseMessage], said: Collection[Saying]
    ) -> None:
        known = threads.of(self.owner, self.thread)
        stored = {one.draft.framework_id: one.id for one in said if one.id is not None}
        added = [one for one in messages if one.id in stored]
        named = {
            one.id or "": Named(stored[one.id] or 0, content_number(one.content)) for one in added
        }
        self._handed(added, named)
        if known.generation not in {generation, -1}:
            return  # what is known is of another generation; the next read will tell
        known.learn(generation, named, _calls(added, lambda one: stored[one.id] or 0))

    def _handed(self, added: Iterable[BaseMessage], named: Mapping[str, Named]) -> None:
        """Keep that who has these messages has their records; so has the task that this is in."""
        handed.note(self.owner, added, named)
        with suppress(InvalidInput):  # the graph's saver keeps another workspace
            where = here(self.memory, None)
            if where.inside:
                where.read(one.record for one in named.values())


def message_of(held: Held, serde: SerializerProtocol) -> BaseMessage:
    """Return a record as the message it was; one of a record without any gets an id of its own."""
    name = held.framework_id or name_of(held.id)
    made: object = recipe(held.role, held.text, name, held.payload, serde, held.metadata).make()
    if not isinstance(made, BaseMessage):  # a class that the serializer does not let in
        made = recipe(held.role, held.text, name, None, serde, held.metadata).make()
    if made.id is None:
        made.id = name
    return made


def _calls(messages: Iterable[BaseMessage], record: Callable[[BaseMessage], int]) -> dict[str, int]:
    return {
        call["id"]: record(one)
        for one in messages
        if isinstance(one, AIMessage)
        for call in one.tool_calls
        if call["id"]
    }
