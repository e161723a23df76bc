"""track(): for people with loops of their own. What a model is sent and says becomes records.

Each call of a tracked model records the messages of its prompt that are not known yet, and the reply
with exactly these as what it was made from. Source of the callbacks' order and arguments:
langchain_core.callbacks of langchain-core 1.8.
"""

# ruff: noqa: ARG002 - LangChain passes these arguments whether they are needed or not

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.vectorstores import VectorStore

from dellm import InvalidInput, Memory

from .addresses import THREADS, thread_name, thread_said
from .calls import Prompt
from .capture import captured
from .history_threads import Conversation
from .history_turns import Owner, content_number
from .options import checked_key, checked_serde
from .reads import reads
from .running import SERDE
from .sharing import Shared, not_pickled
from .tenants import memory_of

if TYPE_CHECKING:
    from uuid import UUID

    from langchain_core.outputs import LLMResult
    from langgraph.checkpoint.serde.base import SerializerProtocol

SAID = "dellm_said"  # metadata of a call: what its own config said, whatever is said around it
CALLS = ("invoke", "ainvoke", "stream", "astream")
MOST = 4_096  # calls under way that are kept, and threads
Sent = tuple[str, int | None]


def track(
    x: Any,
    memory: Memory,
    *,
    thread: object = None,
    workspace: str | None = None,
    **options: Any,
) -> Any:
    """Return a chat model, retriever or vector store that does as before and is remembered.

    `thread` is the conversation; without it each call's config names it ("thread_id" or
    "session_id" in configurable). `workspace` is the key of `configurable` that names the workspace;
    without it that is the one of `memory`. A model keeps all its methods and its class. For the
    `options` of a retriever or vector store see `tracked_retrieval`.
    Raises InvalidInput for anything else.
    """
    if not isinstance(memory, Memory):
        raise InvalidInput("track() takes a dellm.Memory.")
    if isinstance(x, BaseChatModel):
        serde = options.pop("serde", None)
        if options:
            raise InvalidInput("track() of a model takes thread=, workspace= and serde=.")
        handler = DeLLMCallbackHandler(memory, thread, workspace=workspace, serde=serde)
        made = x.model_copy(update={"callbacks": _with_handler(x.callbacks, handler)})
        object.__setattr__(made, "__class__", _told(type(x)))
        return made
    if isinstance(x, (BaseRetriever, VectorStore)):
        from .tracked_retrieval import track_retriever, track_vector_store

        known = {"thread": thread, "workspace": workspace, **options}
        if isinstance(x, BaseRetriever):
            return track_retriever(x, memory, **known)
        return track_vector_store(x, memory, **known)
    raise InvalidInput(
        "track() takes a chat model, a retriever or a vector store.",
        remedy="Track the model inside of a chain; or pass DeLLMCallbackHandler as a callback.",
    )


@cache
def _told(cls: type[BaseChatModel]) -> type[BaseChatModel]:
    """Return the subclass whose calls tell their callbacks the thread and workspace of their config.

    A model that is called by itself says nothing of its config's configurable to anyone. Tracers
    and caches find the class's own name.
    """

    def told(self: Any, config: Any) -> Any:
        said = (config or {}).get("configurable") or {}
        keys = {*THREADS, *(one.key for one in _ours(self.callbacks) if one.key is not None)}
        more = {key: said[key] for key in keys if key in said}
        if not more:
            return config
        return {**config, "metadata": {**(config.get("metadata") or {}), **more, SAID: more}}

    def through(name: str) -> Callable[..., Any]:
        called = getattr(cls, name)

        @wraps(called)
        def call(self: Any, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 - the interface's
            return called(self, input, told(self, config), **kwargs)

        return call

    names = {
        "__slots__": (),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "model_config": {"defer_build": True},
        "__reduce_ex__": not_pickled,
    }
    kind: Any = type(cls)
    made = kind(cls.__name__, (cls,), {**names, **{name: through(name) for name in CALLS}})
    return cast("type[BaseChatModel]", made)


def _ours(callbacks: Any) -> list[DeLLMCallbackHandler]:
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks or ()
    return [one for one in handlers if isinstance(one, DeLLMCallbackHandler)]


def _with_handler(callbacks: Any, handler: BaseCallbackHandler) -> Any:
    if isinstance(callbacks, BaseCallbackManager):
        manager = callbacks.copy()
        manager.add_handler(handler)
        return manager
    return [*(callbacks or ()), handler]


class DeLLMCallbackHandler(Shared, BaseCallbackHandler):
    """Records every call of the chat models that it is given to as a callback.

    A prompt's messages are known by their ids, which they are given when they have none, and else
    by their order and content among what the thread was sent before. A stream that broke off is
    recorded as far as it went, since somebody saw it. What a model is sent after it was forgotten
    is not stored again, nor is what the model makes of it.
    """

    raise_error = True  # a call that is not recorded could not be forgotten

    def __init__(
        self,
        memory: Memory,
        thread: object = None,
        *,
        workspace: str | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        if not isinstance(memory, Memory):
            raise InvalidInput("DeLLMCallbackHandler takes a dellm.Memory.")
        self.memory = memory
        self.thread = None if thread is None else thread_name(thread)
        self.key, self._serde = checked_key(workspace), checked_serde(serde) or SERDE
        self._running: OrderedDict[UUID, tuple[Conversation, Prompt, list[int]]] = OrderedDict()
        self._guard = threading.Lock()
        captured.everywhere()

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Keep a prompt until its reply is there."""
        where = self._where(metadata or {})
        prompt = Prompt(one for some in messages for one in some)
        runs = captured.around().runs
        noted = reads.of(where.owner, runs[0]) if runs else []
        with self._guard:
            self._running[run_id] = where, prompt, noted
            while len(self._running) > MOST:
                self._running.popitem(last=False)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Record a prompt and its replies."""
        self._ended(run_id, response)

    def on_llm_error(
        self, error: BaseException, *, run_id: UUID, response: LLMResult | None = None, **_: Any
    ) -> None:
        """Record what there is of a reply that broke off; nothing when there is none."""
        self._ended(run_id, response)

    def _ended(self, run_id: UUID, response: LLMResult | None) -> None:
        with self._guard:
            found = self._running.pop(run_id, None)
        replies = [] if response is None else list(_replies(response))
        if found is not None and replies:
            where, prompt, noted = found
            called.record(where, prompt, replies, run_id, noted)

    def _where(self, metadata: Mapping[str, Any]) -> Conversation:
        around = (var_child_runnable_config.get() or {}).get("configurable") or {}
        said = {**metadata, **around, **metadata.get(SAID, {})}
        thread = thread_said(said) if self.thread is None else self.thread
        memory = memory_of(self.memory, said, self.key, bound=False)
        return Conversation(memory, thread, self._serde)


def _replies(response: LLMResult) -> list[BaseMessage]:
    found = (getattr(one, "message", None) for some in response.generations for one in some)
    listed = [one for one in found if isinstance(one, BaseMessage)]
    return [one for one in listed if one.content or getattr(one, "tool_calls", None)]


class Thread:
    """What was sent to models in one thread, in order: contents, and the ids they were given."""

    def __init__(self, where: Conversation) -> None:
        self.guard = threading.Lock()
        self._sent = [(_key(one), one.id or "") for one in where.turn().messages]

    def record(
        self,
        where: Conversation,
        prompt: Prompt,
        replies: Sequence[BaseMessage],
        run_id: UUID,
        noted: Sequence[int],
    ) -> None:
        """Add to the thread what a call was sent and has said."""
        _recognise(prompt, self._sent)
        call = captured.of_id(run_id)
        listed = [*_as_sent(prompt), *replies]
        known = {} if call is None else {id(one): call for one in replies}
        where.add(listed, replies=known, runs=(), noted=noted)
        names = {name for _, name in self._sent}
        self._sent += [(_key(one), one.id or "") for one in listed if one.id not in names]


class Called:
    """The threads that models were called in last. Thread-safe."""

    def __init__(self) -> None:
        self._threads: OrderedDict[tuple[Owner, str], Thread] = OrderedDict()
        self._guard = threading.Lock()

    def record(
        self,
        where: Conversation,
        prompt: Prompt,
        replies: Sequence[BaseMessage],
        run_id: UUID,
        noted: Sequence[int],
    ) -> None:
        """Add to a thread what a call was sent and has said."""
        thread = self._of(where)
        with thread.guard:
            thread.record(where, prompt, replies, run_id, noted)

    def _of(self, where: Conversation) -> Thread:
        key = (where.owner, where.thread)
        found = self._threads.get(key) or Thread(where)
        with self._guard:
            found = self._threads.setdefault(key, found)
            self._threads.move_to_end(key)
            if len(self._threads) > MOST:
                self._threads.popitem(last=False)
        return found


called = Called()


def _key(message: BaseMessage) -> Sent:
    return message.type, content_number(message.content)


def _recognise(prompt: Prompt, sent: Sequence[tuple[Sent, str]]) -> None:
    """Give the messages without ids those under which the same were sent before, in that order."""
    places = {name: at for at, (_, name) in enumerate(sent)}
    start = 0
    for message in prompt.messages:
        if message.id is not None:
            start = max(start, places.get(message.id, -1) + 1)
            continue
        key = _key(message)
        found = next((at for at in range(start, len(sent)) if sent[at][0] == key), None)
        if found is not None:
            message.id = sent[found][1]
            start = found + 1


def _as_sent(prompt: Prompt) -> list[BaseMessage]:
    """Return the messages of a prompt; one that was changed since is returned as it was sent."""
    return [
        one
        if one.content is content or one.content == content
        else one.model_copy(update={"content": content})
        for one, content in zip(prompt.messages, prompt.contents, strict=True)
    ]
