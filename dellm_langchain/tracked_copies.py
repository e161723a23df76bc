"""Deleting from a user's own vector store what was forgotten, by the ids that it has there.

A delete that fails is tried again at the next use; until then it is said to be pending, and the
copies are left out of everything that is found.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from dellm import Memory
from dellm.adapting import foreign

LOG = logging.getLogger("dellm.langchain")
T = TypeVar("T")


class Hands(Protocol):
    """How the store is reached: from threads, or in an event loop."""

    async def delete(self, names: list[str]) -> object:
        """Delete by ids there; returns False, or raises anything, when that failed."""

    async def present(self, names: list[str]) -> dict[str, str]:
        """Return what is there by id; raises anything when that cannot be told."""

    async def ask(self, call: Callable[..., T], *said: Any) -> T:
        """Call what waits for the memory's database."""


class _Sync:
    """Calls that return at once: a coroutine made of them never waits."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def delete(self, names: list[str]) -> object:
        return self._store.delete(ids=names)

    async def present(self, names: list[str]) -> dict[str, str]:
        return _texts(self._store.get_by_ids(names))

    async def ask(self, call: Callable[..., T], *said: Any) -> T:
        return call(*said)


class _Async:
    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def delete(self, names: list[str]) -> object:
        return await self._store.adelete(ids=names)

    async def present(self, names: list[str]) -> dict[str, str]:
        return _texts(await self._store.aget_by_ids(names))

    async def ask(self, call: Callable[..., T], *said: Any) -> T:
        return await asyncio.to_thread(call, *said)


def _texts(documents: Sequence[Document]) -> dict[str, str]:
    return {one.id: one.page_content for one in documents if one.id is not None}


class Copies:
    """The copies that one vector store keeps of the documents in memory. Thread-safe."""

    def __init__(self, store: VectorStore, name: str) -> None:
        self._store, self._name = store, name
        self._guard = threading.RLock()
        self._clean: dict[str, int] = {}  # the generation in which a workspace had none to delete

    def pending(self, memory: Memory) -> list[str]:
        """Return the ids there of what is forgotten and still to be deleted."""
        return memory.elsewhere.gone(self._name)

    def again(self, memory: Memory) -> None:
        """Look again at the next use, whether or not anything was forgotten since."""
        self._clean.pop(memory.id, None)

    def sync(self, memory: Memory) -> int:
        """Delete what was forgotten; return how many copies could not be deleted."""
        with self._guard:
            generation, gone = self._to_do(memory)
            left = foreign.at_once(self._deleted(memory, _Sync(self._store), gone)) if gone else []
            self._done(memory, generation, gone, left)
        return len(left)

    async def a_sync(self, memory: Memory) -> int:
        """As sync, in an event loop, through the store's own async methods."""
        generation, gone = await asyncio.to_thread(self._to_do, memory)
        left = await self._deleted(memory, _Async(self._store), gone) if gone else []
        await asyncio.to_thread(self._done, memory, generation, gone, left)
        return len(left)

    async def _deleted(self, memory: Memory, store: Hands, gone: list[str]) -> list[str]:
        """Delete what still says what was forgotten; return the ids of what may still be there.

        Somebody may have put another document there under the same id, past the tracking.
        """
        try:
            there = await store.present(gone)
        except Exception:  # noqa: BLE001 - it cannot tell what is there: then the ids have to do
            return await _deleted(store, gone)
        same = await store.ask(memory.elsewhere.same, self._name, there)
        wanted = [one for one in gone if one in same or one not in there]
        return await _deleted(store, wanted) if wanted else []

    def _to_do(self, memory: Memory) -> tuple[int, list[str]]:
        generation = memory.checkpoints.generation()
        if self._clean.get(memory.id) == generation:
            return generation, []
        return generation, self.pending(memory)

    def _done(
        self, memory: Memory, generation: int, gone: Sequence[str], left: Sequence[str]
    ) -> None:
        deleted = set(gone) - set(left)
        if deleted:
            memory.elsewhere.drop(self._name, sorted(deleted), gone=True)
        if left:
            LOG.warning(
                "%d copies of forgotten documents could not be deleted from the vector store "
                "tracked as %r; they are not returned, and it is tried again.",
                len(left),
                self._name,
            )
        else:
            self._clean[memory.id] = generation


async def _deleted(store: Hands, names: list[str]) -> list[str]:
    """Delete from a store by id; return the ids of what may still be there."""

    async def present(some: list[str]) -> Collection[str] | None:
        try:
            return await store.present(some)
        except Exception:  # noqa: BLE001 - it cannot tell: what it said of the delete has to do
            return None

    return await foreign.deleted(names, store.delete, present)
