"""DeLLMChatMessageHistory: a chat history that can forget, for RunnableWithMessageHistory.

A swap-in for SQLChatMessageHistory and PostgresChatMessageHistory. Source of the interface:
langchain_core.chat_history of langchain-core 1.8, `BaseChatMessageHistory`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import InvalidInput, Memory, NothingMatched
from dellm.adapting import check_iterable

from .addresses import thread_name
from .history_threads import Conversation
from .options import checked_key, checked_serde
from .running import SERDE
from .tenants import Tenanted, memory_of


class DeLLMChatMessageHistory(Tenanted, BaseChatMessageHistory):
    """The messages of one thread of a Memory, each tied to what it was made from.

    A reply depends on the messages of its prompt, as LangChain's callbacks show them. Where a prompt
    holds what is no message of the history (a text that a chain made itself), or the call was not
    seen, it depends on all that its run has read: then its record says `inexact`. What is added late,
    after what it was made from was forgotten, is not stored.

    `thread` is the session's id. `workspace` names the key of `configurable` that says in whose
    workspace a run is; without it everything is in the workspace of `memory`. `last`: only so many
    of the newest messages are read. `serde` writes what is not plain data in a message.
    """

    def __init__(
        self,
        memory: Memory,
        thread: object,
        *,
        workspace: str | None = None,
        last: int | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        if not isinstance(memory, Memory):
            raise InvalidInput("DeLLMChatMessageHistory takes a dellm.Memory.")
        if last is not None and (type(last) is not int or last < 1):
            raise InvalidInput("last= is a whole number above zero.")
        self.memory = memory
        self.thread = thread_name(thread)
        self._key, self._last = checked_key(workspace), last
        self._serde = checked_serde(serde) or SERDE
        self._conversation: Conversation | None = None
        if workspace is None:
            self._conversation = Conversation(memory, self.thread, self._serde)

    def for_workspace(self, name: str) -> Self:
        """Return this history for one workspace: for the calls outside of any run."""
        twin = super().for_workspace(name)
        conversation = Conversation(twin.memory, self.thread, self._serde)
        twin._conversation = conversation  # noqa: SLF001 - a copy of this very object
        return twin

    def _here(self) -> Conversation:
        if self._conversation is not None:
            return self._conversation
        config = var_child_runnable_config.get() or {}
        said = config.get("configurable", {})
        memory = memory_of(self.memory, said, self._key, running=bool(config))
        return Conversation(memory, self.thread, self._serde)

    # reading

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override] # an attribute there
        """The messages in order, each with an id; fresh objects at every read."""
        return self._here().read(self._last)

    async def aget_messages(self) -> list[BaseMessage]:
        """As `messages`."""
        return await asyncio.to_thread(lambda: self.messages)

    def last(self, count: int) -> list[BaseMessage]:
        """Return the newest `count` messages; in time that does not depend on the thread's length.

        There are more when the first would be a tool's result: then the call is first.
        """
        if type(count) is not int or count < 0:
            raise InvalidInput("The number of messages is a whole number, zero or more.")
        return self._here().read(count)

    async def alast(self, count: int) -> list[BaseMessage]:
        """As `last`."""
        return await asyncio.to_thread(self.last, count)

    # writing

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages in one transaction; each without an id gets one, set on the object too.

        One whose id is there already is skipped; one that was erased, or made from what was erased,
        is refused without a word.
        """
        self._here().add(_checked(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """As add_messages."""
        await asyncio.to_thread(self.add_messages, messages)

    # forgetting

    def clear(self) -> None:
        """Forget the whole thread and all that was made from it, in whatever thread.

        What a run that is under way still writes to this thread is refused.
        """
        memory = self._here().memory
        memory.conversations.end(self.thread)
        with suppress(NothingMatched):
            memory.forget(thread=self.thread)

    async def aclear(self) -> None:
        """As clear."""
        await asyncio.to_thread(self.clear)


def _checked(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    check_iterable(messages, "messages=")
    found = list(messages)
    if not all(isinstance(one, BaseMessage) for one in found):
        raise InvalidInput("What is to be added are messages.")
    return found
