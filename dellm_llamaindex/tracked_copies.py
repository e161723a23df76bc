"""Deleting from a user's own index or vector store what was forgotten, by the ids of its nodes.

A delete that fails is tried again at the next use; until then it is said to be pending, and the
nodes are left out of everything that is found.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from dellm import Memory
from dellm.adapting import foreign

from .documents import PLACE, text_of

LOG = logging.getLogger("dellm.llamaindex")
T = TypeVar("T")


class Hands(Protocol):
    """How others are reached: from threads, or in an event loop."""

    async def delete(self, store: BasePydanticVectorStore, names: list[str]) -> None:
        """Delete nodes from a vector store; raises anything when that failed."""

    async def find(self, store: BasePydanticVectorStore, names: list[str]) -> list[BaseNode]:
        """Return nodes of a vector store; raises anything when it cannot tell."""

    async def ask(self, call: Callable[..., T], *said: Any) -> T:
        """Call what waits for a database or a file."""


class Sync:
    """Calls that return at once: a coroutine made of them never waits."""

    async def delete(self, store: BasePydanticVectorStore, names: list[str]) -> None:
        """As the store's."""
        if not _taken_out(store, names):
            store.delete_nodes(names)

    async def find(self, store: BasePydanticVectorStore, names: list[str]) -> list[BaseNode]:
        """As the store's."""
        return store.get_nodes(names)

    async def ask(self, call: Callable[..., T], *said: Any) -> T:
        """Call it here and now."""
        return call(*said)


class Async:
    """Calls through the stores' own async methods."""

    async def delete(self, store: BasePydanticVectorStore, names: list[str]) -> None:
        """As the store's."""
        if not _taken_out(store, names):
            await store.adelete_nodes(names)

    async def find(self, store: BasePydanticVectorStore, names: list[str]) -> list[BaseNode]:
        """As the store's."""
        return await store.aget_nodes(names)

    async def ask(self, call: Callable[..., T], *said: Any) -> T:
        """Call it in another thread."""
        return await asyncio.to_thread(call, *said)


def _taken_out(store: BasePydanticVectorStore, names: list[str]) -> bool:
    """Delete from a store in this process, under nobody's hands who is just searching it."""
    if type(store) is not SimpleVectorStore:
        return False
    gone, data = set(names), store.data
    for one in ("embedding_dict", "text_id_to_ref_doc_id", "metadata_dict"):
        kept = getattr(data, one) or {}
        setattr(data, one, {name: value for name, value in kept.items() if name not in gone})
    return True


class Keeper(Protocol):
    """An index or a vector store that keeps nodes."""

    async def texts(self, names: list[str], hands: Hands) -> dict[str, str]:
        """Return what nodes say by their ids, of those that are there; some may be missing."""

    async def held(self, names: list[str], hands: Hands) -> list[str]:
        """Return which of the ids are there for certain."""

    async def delete(self, names: list[str], hands: Hands) -> list[str]:
        """Delete nodes by their ids; return the ids of what may still be there."""


class Copies:
    """The copies that one index or vector store keeps of the documents in memory. Thread-safe.

    Before it was tracked, its nodes were noted under `PLACE`, as those of all that is not tracked:
    what of those is forgotten is deleted as well, where it is there.
    """

    def __init__(self, keeper: Keeper, memory: Memory, name: str) -> None:
        self._keeper, self._memory, self._name = keeper, memory, name
        self._guard = threading.RLock()
        self._clean: int | None = None  # the generation in which there were none to delete

    def pending(self) -> list[str]:
        """Return the ids of the nodes that are forgotten and still to be deleted."""
        return self._memory.elsewhere.gone(self._name)

    def again(self) -> None:
        """Look again at the next use, whether or not anything was forgotten since."""
        self._clean = None

    def sync(self) -> int:
        """Delete what was forgotten; return how many nodes could not be deleted."""
        with self._guard:
            work = self._to_do()
            foreign.at_once(self._do(work, Sync()))
            self._done(work)
        return len(work.left)

    async def a_sync(self) -> int:
        """As sync, in an event loop, through the store's own async methods."""
        work = await asyncio.to_thread(self._to_do)
        await self._do(work, Async())
        await asyncio.to_thread(self._done, work)
        return len(work.left)

    async def _do(self, work: _Work, hands: Hands) -> None:
        if work.gone:
            work.left = await self._deleted(self._name, work.gone, hands)
        if work.strays:
            try:
                work.strays = await self._keeper.held(work.strays, hands)
            except Exception:  # noqa: BLE001 - another system's failure: they are looked for again
                work.stayed, work.strays = work.strays, []
        if work.strays:
            work.stayed = await self._deleted(PLACE, work.strays, hands)

    async def _deleted(self, place: str, gone: list[str], hands: Hands) -> list[str]:
        """Delete what still says what was forgotten; return the ids of what may still be there.

        Somebody may have put another node there under the same id, past the tracking.
        """
        try:
            there = await self._keeper.texts(gone, hands)
            same = await hands.ask(self._memory.elsewhere.same, place, there)
            wanted = [one for one in gone if one in same or one not in there]
            return await self._keeper.delete(wanted, hands) if wanted else []
        except Exception:  # noqa: BLE001 - another system's failure, of whatever kind: it is tried again
            return list(gone)

    def _to_do(self) -> _Work:
        work = _Work(self._memory.checkpoints.generation())
        if self._clean != work.generation:
            work.gone = self.pending()
        if self._clean is None:
            work.strays = self._memory.elsewhere.gone(PLACE)
        return work

    def _done(self, work: _Work) -> None:
        for place, gone, left in (
            (self._name, work.gone, work.left),
            (PLACE, work.strays, work.stayed),
        ):
            if deleted_ := set(gone) - set(left):
                self._memory.elsewhere.drop(place, sorted(deleted_), gone=True)
        if work.left:
            LOG.warning(
                "%d forgotten nodes could not be deleted from the index or store tracked as %r; "
                "they are not returned, and it is tried again.",
                len(work.left),
                self._name,
            )
        elif not work.stayed:
            self._clean = work.generation


@dataclass(slots=True)
class _Work:
    """What is to be deleted, and what could not be: of what is noted here, and as not tracked."""

    generation: int
    gone: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    stayed: list[str] = field(default_factory=list)


class StoreKeeper:
    """A vector store by itself."""

    def __init__(self, store: BasePydanticVectorStore) -> None:
        self._store = store

    async def texts(self, names: list[str], hands: Hands) -> dict[str, str]:
        """Return what nodes say by their ids, where the store can tell."""
        return await stored_texts(self._store, names, hands)

    async def held(self, names: list[str], hands: Hands) -> list[str]:
        """Return which of the ids are there for certain."""
        return await in_store(self._store, names, hands) or []

    async def delete(self, names: list[str], hands: Hands) -> list[str]:
        """Delete nodes by their ids; return the ids of what may still be there."""
        return await deleted(self._store, names, hands)


async def stored_texts(
    store: BasePydanticVectorStore, names: list[str], hands: Hands
) -> dict[str, str]:
    """Return what nodes say by their ids, none where the store cannot tell."""
    if not store.stores_text:
        return {}
    try:
        return {one.node_id: text_of(one) for one in await hands.find(store, names)}
    except Exception:  # noqa: BLE001 - many stores cannot: then the ids have to do
        return {}


async def deleted(store: BasePydanticVectorStore, names: list[str], hands: Hands) -> list[str]:
    """Delete nodes from a vector store; return the ids of what may still be there."""
    return await foreign.deleted(
        names, lambda some: hands.delete(store, some), lambda some: in_store(store, some, hands)
    )


async def in_store(
    store: BasePydanticVectorStore, names: list[str], hands: Hands
) -> list[str] | None:
    """Return which of the ids a store has, None where it cannot tell."""
    if isinstance(store, SimpleVectorStore):
        return [one for one in names if one in store.data.embedding_dict]
    try:
        found = {one.node_id for one in await hands.find(store, names)}
    except Exception:  # noqa: BLE001 - many stores cannot: then what it said of the delete has to do
        return None
    return [one for one in names if one in found]
