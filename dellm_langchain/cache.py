"""DeLLMCache: an LLM cache whose entries go with what they were made from.

A swap-in for InMemoryCache, SQLiteCache and the like. Source of the interface: langchain_core.caches
of langchain-core 1.8, `BaseCache`; when it is called: language_models.chat_models and llms there.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, Generation
from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import Atom, InvalidInput, Item, Keep, Memory

from .cache_place import place_of
from .cache_replies import cached_replies, reply_id
from .cache_shelf import Shelf, entry_of
from .cache_sources import outside
from .cache_values import dump_generations, load_generations
from .call_batches import is_running, started, with_prompt
from .call_configs import Configurable, given_configs
from .calls import Call
from .capture import captured
from .options import checked_key, checked_serde, checked_ttl, minutes
from .running import SERDE, Here, here
from .tenants import Tenanted
from .tracked_reads import shown
from .waiting_values import waiting

FAMILY = "llm"
ASKED = 32  # prompts that were asked for in one context and not answered yet

_asked: ContextVar[Mapping[int, uuid.UUID]] = ContextVar("dellm_asked")


class DeLLMCache(Tenanted, BaseCache):
    """Keeps model replies in a Memory, so that a forget reaches every one of them.

    An entry depends on the messages of the prompt that it answers, and a reply given from it on the
    entry and on the messages of its own prompt; it has an id of its own. Keys are keyed digests.
    When a reply is forgotten, the entry it came from is gone as well. What was made from erased
    content is not kept.

    `workspace` names the key of `configurable` that says in whose workspace a run is; without it
    everything is in the workspace of `memory`. `ttl` is how many seconds an entry lives. `serde`
    writes what is not plain data in a reply.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        workspace: str | None = None,
        ttl: float | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        if not isinstance(memory, Memory):
            raise InvalidInput("DeLLMCache takes a dellm.Memory.")
        self.memory = memory
        self._key = checked_key(workspace)
        self._ttl = checked_ttl(ttl)
        self._serde = checked_serde(serde) or SERDE
        self._shelf = Shelf(FAMILY)
        captured.everywhere()

    # sync

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the reply to a prompt, with a message id of its own, or None."""
        return self._lookup(prompt, llm_string, _ask(prompt, llm_string), given_configs())

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep the reply to a prompt, unless it was made from what was erased meanwhile."""
        self._update(prompt, llm_string, return_val, given_configs())

    def clear(self, **kwargs: Any) -> None:  # noqa: ARG002 - the interface's, none is known
        """Delete the entries of the workspace; what was made from them stays."""
        self._shelf.of(here(self.memory, self._key).memory).clear(FAMILY)

    # async: the same, off the loop

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """As lookup."""
        call = _ask(prompt, llm_string)  # here: what it notes is for the context of the caller
        given = given_configs()  # here: it looks who is asking
        return await asyncio.to_thread(self._lookup, prompt, llm_string, call, given)

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """As update."""
        await asyncio.to_thread(self._update, prompt, llm_string, return_val, given_configs())

    async def aclear(self, **kwargs: Any) -> None:
        """As clear."""
        await asyncio.to_thread(lambda: self.clear(**kwargs))

    # inside

    def _update(
        self,
        prompt: str,
        llm_string: str,
        return_val: RETURN_VAL_TYPE,
        given: Sequence[Configurable],
    ) -> None:
        at = place_of(self.memory, self._key, given)
        if at is None:
            return
        call = _answered(prompt, llm_string)
        name = self._name(at, prompt, llm_string)
        text, payload = dump_generations(return_val, self._serde)
        with at.making(call) as made:
            known = made.sources
            if call is not None and not at.inside:
                known = outside(at, call, known)
            elif call is None:
                known = shown.tied(at.owner, prompt, known)
            every = made.trusted >= 0 if at.inside else known is not None and not known.inexact
            atom = Atom(entry_of(text, payload, all_known=every), made=known)
            keep = Keep((), name, atom, ttl=minutes(self._ttl))
            self._shelf.put(at, [keep], made.trusted)
        if atom.id is not None:
            if not at.inside and not every:
                waiting.note(at.owner, captured.around().runs, [atom.id])
            for message in _messages(return_val):
                cached_replies.note(at.owner, message, atom.id, given=False)

    def _lookup(
        self, prompt: str, llm_string: str, call: Call | None, given: Sequence[Configurable]
    ) -> list[Generation] | None:
        at = place_of(self.memory, self._key, given)
        if at is None:
            return None
        name = self._name(at, prompt, llm_string)
        (item,) = self._shelf.of(at.memory).get(FAMILY, [((), name)])
        if item is None or item.record.payload is None:
            return None  # without its payload: it was redacted
        found = load_generations(item.record.payload, self._serde)
        self._given(at, item, found, call)
        return found

    def _given(self, at: Here, item: Item, found: Sequence[Generation], call: Call | None) -> None:
        """Give the messages ids of their own, as the model would have, and tie them to the entry."""
        run = uuid.uuid4() if call is None else call.run_id
        for index, message in enumerate(_messages(found)):
            message.id = reply_id(run, index)
            cached_replies.note(at.owner, message, item.record.id, given=True)
        at.read([item.record.id])

    def _name(self, at: Here, prompt: str, llm_string: str) -> str:
        return self._shelf.of(at.memory).digest([prompt, llm_string])


def _messages(generations: Sequence[Generation]) -> list[BaseMessage]:
    return [one.message for one in generations if isinstance(one, ChatGeneration)]


def _ask(prompt: str, llm_string: str) -> Call | None:
    """Return the call that asks, and keep it for when the reply is there: others may start meanwhile."""
    call = with_prompt(prompt, map(captured.of_id, started()))
    if call is not None:
        asked = {**_asked.get({}), hash((prompt, llm_string)): call.run_id}
        _asked.set(dict(list(asked.items())[-ASKED:]))
    return call


def _answered(prompt: str, llm_string: str) -> Call | None:
    run = _asked.get({}).get(hash((prompt, llm_string)))
    return captured.of_id(run) if run is not None and is_running(run) else None
