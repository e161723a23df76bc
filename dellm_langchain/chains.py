"""with_memory(): a chain that remembers, and is told only what is relevant.

For plain LCEL chains, in the place of RunnableWithMessageHistory: instead of a whole history, a
chain is given the records that matter to its input, and what it replies is tied to exactly those.
"""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass
from typing import Any, Self, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import patch_config
from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import InvalidInput, Memory, NotFound, Record, estimated_tokens
from dellm.adapting import check_callable

from .addresses import thread_name, thread_said
from .capture import captured
from .chain_options import Keys, Recalling, Seen
from .history_origins import name_of
from .history_threads import Conversation
from .history_turns import Named, Turn, content_number
from .messages import recipe
from .middleware_choosing import paired, recalled
from .options import checked_key, checked_serde
from .running import SERDE
from .sharing import not_pickled
from .tenants import Tenanted, memory_of

SPOKEN = frozenset({"message", "tool"})


@dataclass(frozen=True, slots=True)
class _Begun:
    """A call of the chain under way: where it is kept, what it was asked, what it is given."""

    where: Conversation
    asked: list[BaseMessage]
    value: Any
    runs: tuple[uuid.UUID, ...]


def with_memory(
    runnable: Any,
    memory: Memory,
    *,
    thread: object = None,
    workspace: str | None = None,
    input_messages_key: str | None = None,
    history_messages_key: str | None = None,
    output_messages_key: str | None = None,
    k: int = 5,
    last: int = 0,
    threshold: float | None = None,
    by: str | None = None,
    budget: int | None = None,
    count: Callable[[str], int] = estimated_tokens,
    across_threads: bool = False,
    serde: SerializerProtocol | None = None,
) -> WithMemory:
    """Return the chain with a memory: it is given what is relevant, and its replies are recorded.

    Chosen are, of the thread (or with `across_threads` of the whole workspace), the `k` records that
    are most relevant to the newest message of the input, and the thread's newest `last`. They are
    put under `history_messages_key` of a dict, else before the messages of the input. The other
    keys are as with RunnableWithMessageHistory. `thread` is the conversation; without it each
    call's config names it, as "thread_id" or "session_id" in configurable; `workspace` is the key
    that names the workspace. Raises InvalidInput.

    A stream is recorded at its end. One that breaks off, or that its reader leaves, is recorded as
    far as it went: what somebody saw must be possible to forget. One that fails before anything
    came is not recorded, nor is its input.
    """
    if not isinstance(memory, Memory):
        raise InvalidInput("with_memory() takes a dellm.Memory.")
    keys = Keys(input_messages_key, history_messages_key, output_messages_key)
    recalling = Recalling(k, last, threshold, by, budget, count, across_threads)
    name = None if thread is None else thread_name(thread)
    serializer = checked_serde(serde) or SERDE
    return WithMemory(
        _chain(runnable), memory, name, checked_key(workspace), keys, recalling, serializer
    )


def _chain(runnable: Any) -> Runnable[Any, Any]:
    if isinstance(runnable, Runnable):
        return runnable
    check_callable(runnable, "The first argument of with_memory()")
    return RunnableLambda(runnable)


class WithMemory(Tenanted, Runnable[Any, Any]):
    """A chain with a memory; made by with_memory()."""

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        memory: Memory,
        thread: str | None,
        workspace: str | None,
        keys: Keys,
        recalling: Recalling,
        serde: SerializerProtocol,
    ) -> None:
        self.runnable, self.memory, self.thread = runnable, memory, thread
        self._key, self._keys = workspace, keys
        self._recalling, self._serde = recalling, serde
        captured.everywhere()

    def __copy__(self) -> Self:
        """Return a copy that shares the memory and the chain inside."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy with a copy of the chain inside, which shares the memory."""
        twin = copy.copy(self)
        twin.runnable = copy.deepcopy(self.runnable, memo)
        return twin

    __reduce_ex__ = not_pickled

    # running

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - the interface's
        """Run the chain with what is relevant to the input, and record what it replies."""
        return self._call_with_config(self._invoke, input, config, **kwargs)

    def _invoke(self, value: Any, run_manager: Any, config: RunnableConfig, **kwargs: Any) -> Any:
        begun = self._begin(value, config)
        inner = patch_config(config, callbacks=run_manager.get_child())
        output = self.runnable.invoke(begun.value, inner, **kwargs)
        self._end(begun, output)
        return output

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - the interface's
        """As invoke."""
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    async def _ainvoke(
        self, value: Any, run_manager: Any, config: RunnableConfig, **kwargs: Any
    ) -> Any:
        begun = await asyncio.to_thread(self._begin, value, config)
        inner = patch_config(config, callbacks=run_manager.get_child())
        output = await self.runnable.ainvoke(begun.value, inner, **kwargs)
        await asyncio.to_thread(self._end, begun, output)
        return output

    def stream(
        self,
        input: Any,  # noqa: A002 - the interface's
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Stream the chain; the whole reply is recorded when its last chunk was taken."""
        given = iter([input])
        chunks = self._transform_stream_with_config(given, self._stream, config, **kwargs)
        with closing(cast("Generator[Any]", chunks)):
            yield from chunks

    def _stream(
        self, given: Iterator[Any], run_manager: Any, config: RunnableConfig, **kwargs: Any
    ) -> Iterator[Any]:
        begun = self._begin(next(given), config)
        inner = patch_config(config, callbacks=run_manager.get_child())
        seen = Seen()
        try:
            found = cast("Generator[Any]", self.runnable.stream(begun.value, inner, **kwargs))
            with closing(found) as chunks:
                for chunk in chunks:
                    seen.add(chunk)
                    yield chunk
        finally:
            if seen.some:
                self._end(begun, seen.whole)

    async def astream(
        self,
        input: Any,  # noqa: A002 - the interface's
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """As stream."""
        given = _alone(input)
        found = self._atransform_stream_with_config(given, self._astream, config, **kwargs)
        async with aclosing(cast("AsyncGenerator[Any]", found)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _astream(
        self, given: AsyncIterator[Any], run_manager: Any, config: RunnableConfig, **kwargs: Any
    ) -> AsyncIterator[Any]:
        begun = await asyncio.to_thread(self._begin, await anext(given), config)
        inner = patch_config(config, callbacks=run_manager.get_child())
        seen = Seen()
        try:
            found = self.runnable.astream(begun.value, inner, **kwargs)
            async with aclosing(cast("AsyncGenerator[Any]", found)) as chunks:
                async for chunk in chunks:
                    seen.add(chunk)
                    yield chunk
        finally:
            if seen.some:
                await asyncio.to_thread(self._end, begun, seen.whole)

    # remembering

    def _begin(self, value: Any, config: RunnableConfig) -> _Begun:
        where = self._where(config)
        asked = self._asked(value)
        runs = captured.around().runs
        given = self._recalled(where, asked, runs)
        return _Begun(where, asked, self._given(value, asked, given), runs)

    def _end(self, begun: _Begun, output: Any) -> None:
        begun.where.add([*begun.asked, *_replied(output, self._keys.output)], runs=begun.runs)

    def _where(self, config: RunnableConfig) -> Conversation:
        said = config.get("configurable", {})
        thread = thread_said(said) if self.thread is None else self.thread
        return Conversation(memory_of(self.memory, said, self._key), thread, self._serde)

    def _asked(self, value: Any) -> list[BaseMessage]:
        """Return the input as messages with ids of their own."""
        found = _messages(value, self._keys.input, "input", HumanMessage)
        return [_named(one) for one in found]

    def _recalled(
        self, where: Conversation, asked: Sequence[BaseMessage], runs: Sequence[uuid.UUID]
    ) -> list[BaseMessage]:
        """Return what is relevant to the input as messages, and keep that the run was given it."""
        standing = where.memory.conversations.read(where.thread, last=0)
        query = next((one.text for one in reversed(asked) if str(one.text).strip()), "")
        records = self._chosen(where, str(query), asked) if query else []
        called = _called(where, asked)
        records = [one for one in records if one.id not in called] + [*called.values()]
        messages: list[BaseMessage] = []
        named: dict[str, Named] = {}
        for one in records:
            message = _message_of(one, where.thread, self._serde)
            messages.append(message)
            named[message.id or ""] = Named(one.id, content_number(message.content))
        answers = {id(one) for one in asked}
        given = [one for one in paired([*messages, *asked]) if id(one) not in answers]
        for message in given:
            record = named[message.id or ""].record
            named[message.id or ""] = Named(record, content_number(message.content))
        generation, ended = standing.generation, standing.ended
        where.gave(runs, Turn(where.owner, where.thread, generation, ended, given, named))
        return given

    def _chosen(
        self, where: Conversation, query: str, asked: Sequence[BaseMessage]
    ) -> list[Record]:
        how = self._recalling
        context = where.memory.context(
            query,
            thread=where.thread,
            k=how.k,
            last=how.last,
            threshold=how.threshold,
            by=how.by,
            scope="workspace" if how.across_threads else "thread",
            budget=how.budget,
            count=how.count,
        )
        there = {one.id for one in asked}
        chosen = {one.id: one for one in context.records if one.framework_id not in there}
        for one in [*chosen.values()]:
            chosen.update((it.id, it) for it in _group(where.memory, one))
        others = [one for one in chosen.values() if one.kind not in SPOKEN]
        spoken = [one for one in chosen.values() if one.kind in SPOKEN]
        return [*others, *sorted(spoken, key=lambda one: (one.place, one.id))]

    def _given(self, value: Any, asked: list[BaseMessage], given: list[BaseMessage]) -> Any:
        """Return the input of the chain inside."""
        if not isinstance(value, dict):
            return [*given, *asked]
        if self._keys.history is not None:
            key = _key(value, self._keys.input, "input")
            said = value.get(key)
            if not isinstance(said, str):
                said = asked[0] if isinstance(said, BaseMessage) else asked
            before = value.get(self._keys.history, ())
            return {**value, key: said, self._keys.history: [*before, *given]}
        return {**value, _key(value, self._keys.input, "input"): [*given, *asked]}


async def _alone(value: Any) -> AsyncIterator[Any]:
    yield value


def _key(value: dict[str, Any], key: str | None, usual: str) -> str:
    """Return the key of a dict under which the messages are."""
    if key is not None:
        return key
    return str(next(iter(value))) if len(value) == 1 else usual


def _messages(
    value: Any, key: str | None, usual: str, speaker: type[BaseMessage]
) -> list[BaseMessage]:
    if isinstance(value, dict):
        value = value.get(_key(value, key, usual))
    if isinstance(value, str):
        return [speaker(content=value)]
    found = [value] if isinstance(value, BaseMessage) else value
    if isinstance(found, (list, tuple)) and all(isinstance(one, BaseMessage) for one in found):
        return list(found)
    raise InvalidInput(
        f"The {usual} is no text, message or list of messages.",
        remedy=f"Pass {usual}_messages_key= to with_memory().",
    )


def _replied(output: Any, key: str | None) -> list[BaseMessage]:
    return _messages(output, key, "output", AIMessage)


def _named(message: BaseMessage) -> BaseMessage:
    """Return a message of the input with an id: what a person says again is another message."""
    if message.id is not None:
        return message
    if isinstance(message, HumanMessage):
        return message.model_copy(update={"id": str(uuid.uuid4())})
    message.id = str(uuid.uuid4())
    return message


def _called(where: Conversation, asked: Sequence[BaseMessage]) -> dict[int, Record]:
    """Return the messages that made the calls whose results the input is, with their other results."""
    there = {one.id for one in asked}
    made = {call["id"] for one in asked if isinstance(one, AIMessage) for call in one.tool_calls}
    answered = {one.tool_call_id for one in asked if isinstance(one, ToolMessage)} - made
    found: dict[int, Record] = {}
    for caller in {where.caller(one) for one in answered} - {None}:
        with suppress(NotFound):
            group = _group(where.memory, where.memory.get(caller or 0))
            found.update((one.id, one) for one in group if one.framework_id not in there)
    return found


def _group(memory: Memory, record: Record) -> list[Record]:
    """Return what belongs to the same tool calls as a record: the calling message, the results."""
    caller = record.id
    if record.kind == "tool":
        caller = next(iter(memory.context_of(record.id)), record.id)
    elif record.role != "assistant" or record.payload is None:
        return []  # a message that calls tools has a payload
    found: list[Record] = []
    for one in [caller, *memory.used_in(caller)]:
        with suppress(NotFound):  # erased or suppressed since
            found.append(memory.get(one))
    return [one for one in found if one.kind == "tool" or one.id == caller]


def _message_of(record: Record, thread: str, serde: SerializerProtocol) -> BaseMessage:
    """Return a record as a message; those of other threads have ids that no thread's message has."""
    name = record.framework_id if record.thread == thread else None
    name = name or name_of(record.id)
    if record.kind not in SPOKEN:
        made: BaseMessage = recalled(record)
    else:
        args = (record.role, record.text, name, record.payload, serde, record.metadata)
        made = recipe(*args).make()
    made.id = name
    return made
