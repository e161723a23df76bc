"""What the memory blocks for the stock Memory have in common: sessions, reads, and made values.

A block keeps what it made of the messages it was given as records, each with its parents, under names
of its own. So a forget of one of the messages takes along what was made of it.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms import LLM
from llama_index.core.memory.memory import BaseMemoryBlock
from llama_index.core.prompts import BasePromptTemplate, PromptTemplate, RichPromptTemplate
from llama_index.core.settings import Settings

from dellm import Atom, Draft, Item, Keep, Memory, Sources

from . import flushed, scopes
from .attached import Attached
from .lines import turns
from .messages import checked
from .model_names import named
from .tags import owner_of

ALL = 1_000_000  # values of one block and session that are read
WAITING = "waiting"  # lists of the records that are to be taken in still


class DeLLMBlock(Attached, BaseMemoryBlock[str]):
    """A memory block whose content is kept in a memory that can forget, per session.

    The stock Memory says which session is meant. What is put into a block by itself, without one, is
    of the session "default". The caller's messages are not changed.
    """

    async def aput(
        self,
        messages: list[ChatMessage],
        from_short_term_memory: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Take in messages of a session; those that were erased meanwhile are left out."""
        if from_short_term_memory and not self.accept_short_term_memory:
            return
        given = checked(messages)
        await self._take_in(given, session_id or flushed.session_of(given))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        given = checked(messages)
        await self._take_in(given, flushed.session_of(given))

    async def _take_in(self, messages: list[ChatMessage], session_id: str | None) -> None:
        thread = session_id or flushed.NO_SESSION
        known = await asyncio.to_thread(flushed.take, self.core, thread, messages)
        if known:
            await self._add(thread, [one for one, _ in known], [id_ for _, id_ in known])

    @abstractmethod
    async def _add(self, thread: str, messages: list[ChatMessage], records: list[int]) -> None:
        """Take in messages of a session, given with their records."""


class MakingBlock(DeLLMBlock):
    """A memory block that has a model make something of messages, and keeps that.

    Where that fails, or one of them is forgotten meanwhile, the messages wait: they are taken in
    together with the next ones. Those of one session are taken in one batch after the other.
    """

    llm: LLM = Field(default_factory=lambda: Settings.llm, description="The model that it asks.")

    kind: ClassVar[str]
    """What is made: the kind of its records."""

    async def _add(self, thread: str, messages: list[ChatMessage], records: list[int]) -> None:
        async with turns.of((self.owner, self.kind, self.name, thread)):
            late = await asyncio.to_thread(self._late, thread)
            known = {id_: one for one, id_ in [*late, *zip(messages, records, strict=True)]}
            done = False
            try:
                done = await self._make(thread, list(known.values()), list(known))
            finally:
                if not done:
                    self._shelf(thread, WAITING).add([json.dumps(list(known))], ())

    @abstractmethod
    async def _make(self, thread: str, messages: list[ChatMessage], records: list[int]) -> bool:
        """Make something of messages of a session, given with their records.

        Returns False where it could not be kept: what it was made from is no more.
        """

    async def _told(self, records: Iterable[int]) -> None:
        """Note that the model is sent records: what it says may come to nothing, or fail."""
        model = await asyncio.to_thread(named, self.llm)
        if model is not None:
            await asyncio.to_thread(self.core.exposures.note, list(records), model=model)

    def _late(self, thread: str) -> list[tuple[ChatMessage, int]]:
        """Take the messages that wait, as far as they were not erased since."""
        shelf = self._shelf(thread, WAITING)
        waiting = shelf.all()
        shelf.drop(waiting)
        ids = [id_ for one in waiting for id_ in json.loads(one.record.text)]
        return flushed.again(self.core, list(dict.fromkeys(ids)))

    def clear(self, session_id: str | None = None) -> None:
        """Drop what was made of a session. What was made of that stays, and the messages do."""
        for kind in (self.kind, WAITING):
            shelf = self._shelf(session_id, kind)
            shelf.drop(shelf.all())

    def _shelf(self, session_id: str | None, kind: str | None = None) -> Shelf:
        where, kept = session_id or flushed.NO_SESSION, kind or self.kind
        return Shelf(self.core, kept, self.name, where, named(self.llm))

    def _texts(self, session_id: str | None) -> list[str]:
        return [one.record.text for one in self._shelf(session_id).all()]

    async def _aget(
        self,
        messages: list[ChatMessage] | None = None,  # noqa: ARG002 - the interface's
        session_id: str | None = None,
        **_: Any,
    ) -> str:
        scope = scopes.current()
        known = await asyncio.to_thread(self._shelf(session_id).all)
        read(self.core, [one.record.id for one in known], scope)
        return self._shown([one.record.text for one in known])

    @abstractmethod
    def _shown(self, texts: Sequence[str]) -> str:
        """Return what a prompt is given of the texts that were made."""


def template_of(value: str | BasePromptTemplate) -> BasePromptTemplate:
    """Return a template; what is a text has {{ names }} or {names}."""
    if not isinstance(value, str):
        return value
    rich = "{{" in value and "}}" in value
    return RichPromptTemplate(value) if rich else PromptTemplate(value)


class Shelf:
    """The values that one block keeps of one session, the oldest first."""

    def __init__(
        self, memory: Memory, kind: str, block: str, thread: str, model: str | None = None
    ) -> None:
        self._memory, self._kind, self._thread, self._model = memory, kind, thread, model
        self._family, self._space = f"llama_index.{kind}", (block, thread)

    def all(self) -> list[Item]:
        """Return the values that are there."""
        found = self._memory.items.search(self._family, self._space, limit=ALL)
        return [one for one in reversed(found) if one.space == self._space]

    def add(
        self,
        texts: Sequence[str],
        parents: Sequence[int],
        *,
        name: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> bool:
        """Keep values that were made of the parents; False where one of these is no more.

        A value of the same `name` is replaced: its record stays, empty, with what was made of it.
        """
        keeps = [
            Keep(
                self._space,
                name or uuid.uuid4().hex,
                Atom(self._draft(one, metadata), made=Sources(known=parents)),
            )
            for one in texts
        ]
        return not self._memory.items.put(self._family, keeps, thread=self._thread).refused

    def _draft(self, text: str, metadata: dict[str, Any] | None) -> Draft:
        if self._kind == WAITING:
            return Draft(
                text, role="assistant", kind="state", thread=self._thread, metadata=metadata
            )
        return Draft(
            text,
            role="assistant",
            kind=self._kind,
            thread=self._thread,
            metadata=metadata,
            model=self._model,
        )

    def drop(self, values: Iterable[Item]) -> None:
        """Empty values: what was made of them still depends on what they were made of."""
        keeps = [Keep(self._space, one.name) for one in values]
        if keeps:
            self._memory.items.put(self._family, keeps, thread=self._thread)


def read(memory: Memory, records: Iterable[int], scope: scopes.Scope | None) -> None:
    """Note that the running scope is given records: what it makes depends on them."""
    scopes.read(owner_of(memory), records, scope)
