"""DeLLMChatStore: the messages of a stock Memory, each with what it was made from.

Source of the interface: llama_index.core.storage.chat_store.base_db of llama-index-core 0.14,
`AsyncDBChatStore`; what it leaves open is as SQLAlchemyChatStore does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TypeVar

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from dellm import NothingMatched

from . import origins, scopes
from .attached import Attached
from .lines import lines
from .listing import set_list
from .messages import checked
from .scopes import Scope
from .sessions import Session, Window
from .tags import Owner, tag_of

_T = TypeVar("_T")
_AMONG = {MessageStatus.ACTIVE: "shown", MessageStatus.ARCHIVED: "archived", None: "kept"}

# The records of the session that this task has read last. A Memory decides by what it has read how
# many of the oldest messages it archives; when several puts do so at once, each means the same ones.
_seen: ContextVar[tuple[Owner, str, tuple[int, ...]] | None] = ContextVar(
    "dellm_seen", default=None
)


class DeLLMChatStore(Attached, AsyncDBChatStore):
    """Keeps the messages of a stock Memory as records, so that a forget takes what was made of them.

    `Memory.from_defaults(chat_store=DeLLMChatStore(memory))`: `memory` is a dellm.Memory, a
    DeLLMMemory, or the path or URL of one. A key is a session: the thread of its name. A reply depends
    on what its model was shown; one that nobody saw made, on all of its session. A message's id,
    as `delete_message` wants it, is the number of its record: see `id_of`.

    What is archived is out of the queue and may be found by relevance. What is deleted, or dropped by
    `set_messages`, is hidden and no longer found: it stays in the memory, so that a forget finds it
    and what was made from it. Only `dellm.Memory.forget` erases; with `deletes_forget=True` the
    delete methods (and so a Memory's reset) do as well, both a message and all that was made from it.

    The object is a handle, as DeLLMMemory is.
    """

    deletes_forget: bool = Field(default=False, description="Whether deleting a message erases it.")

    @classmethod
    def class_name(cls) -> str:
        """Return the name by which LlamaIndex knows the class."""
        return "DeLLMChatStore"

    def id_of(self, message: ChatMessage) -> int | None:
        """Return the id of a message that this store was given or gave; None for any other."""
        found = tag_of(message)
        return found.record if found is not None and found.owner == self.owner else None

    # reading

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return the messages of a session, the oldest first; fresh objects at every call."""
        scope = self._from_here()
        found = await self._off(key, lambda: self._window(key, status))
        if status is MessageStatus.ACTIVE:
            _seen.set((self.owner, key, tuple(found.records)))
        messages = found.messages[max(offset or 0, 0) :]
        if limit is not None and limit >= 0:
            messages = messages[:limit]
        scopes.given(messages, scope)
        return messages

    async def count_messages(
        self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE
    ) -> int:
        """Return how many messages get_messages gives."""
        return len((await self._off(key, lambda: self._window(key, status))).messages)

    async def get_keys(self) -> list[str]:
        """Return the sessions that have messages, sorted."""
        return await self._off("", self._keys)

    def _keys(self) -> list[str]:
        kept, threads = self.core.conversations, self.core.threads()
        return [one for one in threads if kept.read(one, last=1, among="kept").messages]

    def _window(self, key: str, status: MessageStatus | None) -> Window:
        session = Session(self.core, key)
        said = session.kept.read(key, among=_AMONG[status])
        found = Window(said.messages, said.generation, complete=True)
        if found.generation and status is not MessageStatus.ARCHIVED:
            session.mend(found)
        session.tagged(found)
        return found

    # writing

    async def add_message(
        self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Add a message; it is not stored if what it was made from is forgotten by now."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Add messages, in one transaction."""
        scope, given = self._from_here(), checked(messages)
        if given:
            await self._write(key, lambda: self._add(key, given, status, scope))

    def _add(
        self,
        key: str,
        messages: Sequence[ChatMessage],
        status: MessageStatus,
        scope: Scope | None,
        only: Sequence[int] | None = None,
    ) -> None:
        session = Session(self.core, key)
        said = origins.sayings(self.core, messages, session.draft, scope=scope, before=only)
        archive = status is MessageStatus.ARCHIVED
        session.kept.add(key, said, only=only, archive=archive)
        origins.settle(self.core, said, scope=scope)

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Let a session hold these messages and no others, in one transaction; see DeLLMMemory.set.

        What the list and the session begin with alike stays what it is.
        """
        scope, given = self._from_here(), checked(messages)
        await self._write(key, lambda: self._set(key, given, status, scope))

    def _set(
        self, key: str, messages: list[ChatMessage], status: MessageStatus, scope: Scope | None
    ) -> None:
        if status is MessageStatus.ARCHIVED:
            self._add(key, messages, status, scope, only=())
            return
        set_list(Session(self.core, key), messages, scope)
        # A list that is there already leaves everything as it is: also what was archived before it.
        old = self._window(key, MessageStatus.ARCHIVED).records
        if old:
            self.core.conversations.hide(key, old)

    # deleting and archiving

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message with this id, and return it; None where the session has none."""
        return await self._write(key, lambda: self._delete_one(key, idx))

    def _delete_one(self, key: str, idx: int) -> ChatMessage | None:
        found = self._window(key, None)
        if idx not in found.records:
            return None
        self._delete(key, [idx])
        return found.messages[found.records.index(idx)]

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages of a session that have a status; None: all of them."""
        await self._write(key, lambda: self._delete(key, self._raw(key, status)))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the oldest active messages of a session, and return them."""
        return await self._oldest(key, n, self._delete)

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages of a session, and return them.

        In a task that has read the active messages: the oldest of those it has read.
        """
        return await self._oldest(key, n, self._archive)

    async def _oldest(
        self, key: str, n: int, what: Callable[[str, Sequence[int]], None]
    ) -> list[ChatMessage]:
        seen = _seen.get()
        read = seen[2] if seen is not None and seen[:2] == (self.owner, key) else None
        found, done = await self._off(key, lambda: self._first(key, max(n, 0), read, what))
        if read is not None:
            _seen.set((self.owner, key, tuple(one for one in read if one not in done)))
        return found

    def _first(
        self,
        key: str,
        n: int,
        read: Sequence[int] | None,
        what: Callable[[str, Sequence[int]], None],
    ) -> tuple[list[ChatMessage], set[int]]:
        window = self._window(key, MessageStatus.ACTIVE)
        meant = (window.records if read is None else read)[:n]
        found = [
            message
            for message, one in zip(window.messages, window.records, strict=True)
            if one in meant
        ]
        if meant:
            # What a forget has left without its other half goes with what it stands among.
            raw = self._raw(key, MessageStatus.ACTIVE)
            ends = [at for at, one in enumerate(raw, 1) if one in meant]
            what(key, raw[: max(ends, default=0)])
        return found, set(meant)

    def _raw(self, key: str, status: MessageStatus | None) -> list[int]:
        """Return the records of a session that have a status, also those that are not shown."""
        return [one.id for one in self.core.conversations.read(key, among=_AMONG[status]).messages]

    def _archive(self, key: str, records: Sequence[int]) -> None:
        self.core.conversations.hide(key, records, archive=True)

    def _delete(self, key: str, records: Sequence[int]) -> None:
        if not records:
            return
        if not self.deletes_forget:
            self.core.conversations.hide(key, records)
            return
        try:
            self.core.forget(ids=list(records))
        except NothingMatched:  # they are gone already
            return

    # how it is called

    def _from_here(self) -> Scope | None:
        scope = scopes.current()
        if scope is None:
            scopes.outside()  # so that what the other thread notes is noted for this task
        return scope

    async def _off(self, key: str, work: Callable[[], _T]) -> _T:
        """Call off the loop, after what was asked for before of the same session."""
        return await lines.of((self.owner, key)).call(work)

    async def _write(self, key: str, work: Callable[[], _T]) -> _T:
        _seen.set(None)
        return await self._off(key, work)
