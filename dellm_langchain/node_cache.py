"""DeLLMNodeCache: a cache of what nodes wrote, whose entries go with what they were made from.

A swap-in for LangGraph's InMemoryCache and SqliteCache. Source of the interface:
langgraph.cache.base of langgraph-checkpoint 4.3, `BaseCache`; the stock `InMemoryCache` where it is
silent.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.utils import LC_ID_PREFIX
from langgraph.cache.base import BaseCache, FullKey, Namespace
from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import Atom, InvalidInput, Items, Keep, Memory

from .cache_shelf import Shelf, entry_of
from .cache_values import dump_writes, load_writes
from .calls import messages_within
from .capture import captured
from .node_cache_tasks import TaskSeen, TasksSeen, asking, seen, tasks_of
from .options import checked_key, checked_serde, minutes
from .reads import THREAD, reads
from .running import here
from .tenants import Tenanted

FAMILY = "node"
Pairs = Mapping[FullKey, tuple[Sequence[tuple[str, Any]], int | None]]
# What a reducer gives a message that has no id: uuid.uuid4().
_GIVEN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class DeLLMNodeCache(Tenanted, BaseCache[Any]):
    """Keeps what nodes wrote in a Memory, so that a forget reaches every entry.

    An entry depends on the records of what it holds, and what a graph gets from it on the entry and
    on what its task could read; a reply in it has an id of its own each time. Once any of that is
    forgotten the node runs again. Keys are keyed digests. What was made from erased content is not
    kept, nor anything of a run with durability="exit", of which nothing is known before its end.

    `workspace` names the key of `configurable` that says in whose workspace a run is; without it
    everything is in the workspace of `memory`. `serde` writes what is no message.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        workspace: str | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=checked_serde(serde))
        if not isinstance(memory, Memory):
            raise InvalidInput("DeLLMNodeCache takes a dellm.Memory.")
        self.memory = memory
        self._key = checked_key(workspace)
        self._shelf = Shelf(FAMILY)
        self._tasks = TasksSeen()

    # sync

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """Return what is kept under the keys; each time as fresh objects."""
        return self._get(keys, self._noted(keys))

    def set(self, pairs: Pairs) -> None:
        """Keep what nodes wrote, for so many seconds each or (None) for good."""
        for key, (value, ttl) in pairs.items():
            self._set(key, value, ttl)

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Delete the entries of just these namespaces, or all; what was made from them stays."""
        items = self._shelf.of(here(self.memory, self._key).memory)
        if namespaces is None:
            items.clear(FAMILY)
        for one in namespaces or ():
            items.clear(FAMILY, _space(items, one))

    # async: the same, off the loop

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """As get."""
        noted = self._noted(keys)  # here: it looks who is asking
        return await asyncio.to_thread(self._get, keys, noted)

    async def aset(self, pairs: Pairs) -> None:
        """As set."""
        await asyncio.to_thread(self.set, pairs)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """As clear."""
        await asyncio.to_thread(self.clear, namespaces)

    # inside

    def _noted(self, keys: Sequence[FullKey]) -> dict[FullKey, TaskSeen]:
        """Return the tasks that a graph asks about, kept for what they will write."""
        loop = asking()
        if loop is None:
            return {}
        found = {}
        wanted = set(keys)
        for key, task in tasks_of(loop):
            if key in wanted and not task.writes:
                found[key] = seen(loop, task)
                self._tasks.note(task.writes, found[key])
        return found

    def _get(
        self, keys: Sequence[FullKey], tasks: Mapping[FullKey, TaskSeen]
    ) -> dict[FullKey, Any]:
        found: dict[FullKey, Any] = {}
        for key in keys:
            task = tasks.get(key)
            at = here(self.memory, self._key) if task is None else task.here(self.memory, self._key)
            items = self._shelf.of(at.memory)
            (item,) = items.get(FAMILY, [_named(items, key)])
            if item is None or item.record.payload is None:
                continue  # without its payload: it was redacted
            found[key] = _fresh(*load_writes(item.record.payload, self.serde))
            if task is not None:
                places = (task.id, (THREAD, at.thread))
                reads.note(at.owner, places, [item.record.id], captured.now())
        return found

    def _set(self, key: FullKey, value: Sequence[tuple[str, Any]], ttl: float | None) -> None:
        task = self._tasks.of(value)
        if task is None and isinstance(value, deque):
            return  # a graph's, of whose run nothing is known
        if task is not None and task.exits:
            return
        writes = list(value)
        text, payload = dump_writes(writes, _own(writes, task), self.serde)
        at = here(self.memory, self._key) if task is None else task.here(self.memory, self._key)
        items = self._shelf.of(at.memory)
        space, name = _named(items, key)
        with at.making() if task is None else task.made(at, writes) as made:
            entry = entry_of(text, payload, all_known=task is not None and made.trusted >= 0)
            keep = Keep(space, name, Atom(entry, made=made.sources), minutes(ttl))
            self._shelf.put(at, [keep], made.trusted)


def _named(items: Items, key: FullKey) -> tuple[tuple[str, ...], str]:
    """Return the space and the name of an entry, which say nothing of what is cached."""
    return _space(items, key[0]), items.digest(["key", key[1]])


def _space(items: Items, namespace: Namespace) -> tuple[str, ...]:
    return (items.digest(["namespace", *namespace]),)


def _own(writes: Sequence[tuple[str, Any]], task: TaskSeen | None) -> Iterator[str]:
    """Yield the ids that messages got in the task: those of model replies, and those of no meaning."""
    for message in messages_within([value for _, value in writes]):
        if message.id is None or task is None or message.id in task.given:
            continue
        replied = isinstance(message, AIMessage) and (
            captured.of_reply(message, task_id=task.id) is not None
        )
        if replied or message.id.startswith(LC_ID_PREFIX) or _GIVEN.fullmatch(message.id):
            yield message.id


def _fresh(writes: Sequence[tuple[str, Any]], own: Sequence[str]) -> list[tuple[str, Any]]:
    """Give messages ids of their own, in the place of those that they got in the task."""
    fresh = dict.fromkeys(own)
    for message in messages_within([value for _, value in writes]):
        if message.id in fresh:
            fresh[message.id] = fresh[message.id] or _id_like(message)
            message.id = fresh[message.id]
    return list(writes)


def _id_like(message: BaseMessage) -> str:
    made = str(uuid.uuid4())
    return f"{LC_ID_PREFIX}-{made}" if isinstance(message, AIMessage) else made
