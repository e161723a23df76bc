"""DeLLMStore: LangGraph's long-term store, whose items go with what they were made from.

A swap-in for InMemoryStore, SqliteStore and PostgresStore. Source of the interface:
langgraph.store.base of langgraph-checkpoint 4.3, `BaseStore`; the stock `InMemoryStore` where it is
silent.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    IndexConfig,
    NotProvided,
    Op,
    PutOp,
    Result,
    TTLConfig,
)

from dellm import Atom, ContextForgotten, InvalidInput, Items, Keep, Memory, Sources
from dellm import Item as Kept
from dellm.adapting import whole_numbers

from .capture import captured
from .options import checked_interval, checked_key, checked_ttl_config
from .running import Here, here
from .store_batch import Batch, Listing
from .store_filters import Filter
from .store_index import Index, Vectors
from .store_shelves import Shelves
from .store_sweeping import Sweeper
from .store_values import draft_of, found_of, item_of
from .tenants import Tenanted
from .tracked_reads import shown
from .waiting_values import waiting

FAMILY = "store"
EVERY = 5  # minutes between two sweeps, where nothing else was said
_NO_VECTORS = Vectors()


class DeLLMStore(Tenanted, BaseStore):
    """Keeps a graph's long-term items in a Memory, so that a forget reaches every one of them.

    What a task puts depends on what the task was given and has read (a tool's item: on its call and
    what the tool has read), and what it makes after a get or search depends on the items found.
    `workspace` names the key of `configurable` that says in whose workspace a run is; without it
    everything is in the workspace of `memory`. `index` is as for the stock stores; without it the
    memory's embedder, if it has one, embeds whole values. `ttl` too is as for the stock stores, in
    minutes; an item whose time is over is not read any more, swept or not.
    """

    supports_ttl = True
    notes_reads: ClassVar[bool] = True  # said to those who work out what a task has read

    def __init__(
        self,
        memory: Memory,
        *,
        workspace: str | None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(memory, Memory):
            raise InvalidInput("DeLLMStore takes a dellm.Memory.")
        self.memory = memory
        self.ttl_config = checked_ttl_config(ttl)
        self._key = checked_key(workspace)
        self._index = Index.of(index, memory.items.embedder)
        self._shelves = Shelves()
        self._parents: Sequence[int] = ()
        self._sweeper = Sweeper(self._sweep_used)

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str, **options: Any) -> Iterator[Self]:
        """Open a memory at a path or URL for a store, and close it at the end.

        `embedder=` goes to Memory.open; the other options to the store.
        """
        with Memory.open(conn_string, embedder=options.pop("embedder", "auto")) as memory:
            made = cls(memory, **options)
            try:
                yield made
            finally:
                made.stop_ttl_sweeper()

    def setup(self) -> None:
        """See that the database answers; opening the memory has made its tables."""
        self.memory.items.get(FAMILY, [])

    # one item

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
        parents: Sequence[int] = (),
    ) -> None:
        """Keep an item. `parents`: ids of records it was made from, besides what the run tells.

        What was made from erased content is not kept: nothing is said of that to a task, but with
        `parents` it raises ContextForgotten. Raises InvalidInput for a value without JSON form.
        """
        BaseStore.put(self._made_from(parents), namespace, key, value, index, ttl=ttl)

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
        parents: Sequence[int] = (),
    ) -> None:
        """As put."""
        await BaseStore.aput(self._made_from(parents), namespace, key, value, index, ttl=ttl)

    def _made_from(self, parents: Sequence[int]) -> Self:
        """Return this store, whose puts also have these parents."""
        known = whole_numbers(parents, "parents=")
        if not known:
            return self
        twin = copy.copy(self)
        twin._parents = known  # noqa: SLF001 - a copy of this very object
        return twin

    def clear(self, namespace: tuple[str, ...]) -> int:
        """Delete the items of a namespace and of those below it; return how many.

        As with delete, what was made from them stays; to forget that too, use memory.forget.
        """
        return self._shelves.of(here(self.memory, self._key).memory).clear(FAMILY, namespace)

    async def aclear(self, namespace: tuple[str, ...]) -> int:
        """As clear."""
        return await asyncio.to_thread(self.clear, namespace)

    # batches: by these BaseStore does all the rest

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations; the results are in their order. Reads see what stood before.

        Raises InvalidInput for what makes no sense; then nothing is written.
        """
        batch = Batch.of(ops)
        vectors = _NO_VECTORS
        if self._index is not None:
            vectors = self._index.embed(self._texts(batch), batch.queries())
        return self._executed(batch, vectors)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As batch, off the loop; embeds by the asynchronous methods."""
        batch = Batch.of(ops)
        vectors = _NO_VECTORS
        if self._index is not None:
            vectors = await self._index.aembed(self._texts(batch), batch.queries())
        return await asyncio.to_thread(self._executed, batch, vectors)

    def _texts(self, batch: Batch) -> Iterator[str]:
        for op in batch.puts.values():
            yield from self._index.texts(op) if self._index is not None else ()

    def _executed(self, batch: Batch, vectors: Vectors) -> list[Result]:
        now = here(self.memory, self._key)
        items = self._shelves.of(now.memory)
        results: list[Result] = [None] * batch.size
        read: set[int] = set()
        for at, found in self._gotten(items, batch) if batch.gets else ():
            results[at] = item_of(found)
            shown.note_values(now.memory, [found])
            read.add(found.id)
        for at, several in self._searched(items, batch, vectors) if batch.searches else ():
            results[at] = found_of(several)
            shown.note_values(now.memory, several)
            read.update(one.id for one in several)
        held = items.spaces(FAMILY) if batch.lists else {}
        for at, op in batch.lists.items():
            listing = Listing.of(op, held)
            results[at] = listing.spaces
            read.update(listing.records)
        if read:
            now.read(sorted(read))
        if batch.puts:
            self._put(now, items, batch, vectors)
        return results

    @staticmethod
    def _gotten(items: Items, batch: Batch) -> Iterator[tuple[int, Kept]]:
        for refresh in {op.refresh_ttl for op in batch.gets.values()}:
            ops = [(at, op) for at, op in batch.gets.items() if op.refresh_ttl is refresh]
            names = [(op.namespace, op.key) for _, op in ops]
            found = items.get(FAMILY, names, refresh=refresh)
            yield from ((at, one) for (at, _), one in zip(ops, found, strict=True) if one)

    def _searched(
        self, items: Items, batch: Batch, vectors: Vectors
    ) -> Iterator[tuple[int, list[Kept]]]:
        for at, op in batch.searches.items():
            asked = Filter.of(op.filter)
            found = items.search(
                FAMILY,
                op.namespace_prefix,
                near=vectors.queries.get(op.query or ""),
                embedder=None if self._index is None else self._index.seen_by,
                where=asked.says,
                holding=asked.holding,
                limit=op.limit,
                offset=op.offset,
                refresh=op.refresh_ttl,
            )
            yield at, found

    def _put(self, now: Here, items: Items, batch: Batch, vectors: Vectors) -> None:
        with now.making() as made:
            sources = made.sources
            if self._parents:
                sources = _with(sources or Sources(), self._parents)
            keeps = [self._keep(op, sources, vectors) for op in batch.puts.values()]
            # What the caller says was not looked at in the generation that a run's sources are of.
            trusted = -1 if self._parents else made.trusted
            written = items.put(FAMILY, keeps, thread=now.thread, trusted=trusted)
        if not now.inside:  # what a chain is asked is stored after it
            kept = [one.atom.id for one in keeps if one.atom is not None and one.atom.id]
            waiting.note(now.owner, captured.around().runs, kept)
        if self._parents and written.refused:
            raise ContextForgotten("What the item was made from is not there any more.")

    def _keep(self, op: PutOp, sources: Sources | None, vectors: Vectors) -> Keep:
        if op.value is None:
            return Keep(op.namespace, op.key)
        texts = self._index.texts(op) if self._index is not None else []
        return Keep(
            op.namespace,
            op.key,
            Atom(draft_of(op), made=sources),
            op.ttl,
            [vectors.texts[one] for one in texts],
            None if self._index is None else self._index.seen_by,
        )

    # time to live

    def sweep_ttl(self) -> int:
        """Delete the items whose time is over; return how many.

        Of a store for the workspaces of many: in each that this process has used it for.
        """
        if self._key is None:
            return self._shelves.of(self.memory).sweep(FAMILY)
        return self._sweep_used()

    def _sweep_used(self) -> int:
        names = self._shelves.names()
        return sum(self._shelves.of(self.memory.workspace(one)).sweep(FAMILY) for one in names)

    async def asweep_ttl(self) -> int:
        """As sweep_ttl."""
        return await asyncio.to_thread(self.sweep_ttl)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep every so many minutes (the config's, else 5) in a thread, if there is a TTL config.

        Returns what is done once the sweeping has ended, and ends it when it is cancelled.
        """
        if sweep_interval_minutes is not None:
            checked_interval(sweep_interval_minutes)
        if not self.ttl_config:
            future: Future[None] = Future()
            future.set_result(None)
            return future
        every = sweep_interval_minutes or self.ttl_config.get("sweep_interval_minutes") or EVERY
        return self._sweeper.start(every)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End the sweeping; return whether it has ended within `timeout` seconds."""
        return self._sweeper.stop(timeout)


def _with(sources: Sources, parents: Sequence[int]) -> Sources:
    """Return sources with more records that something was made from."""
    return replace(sources, also=[*sources.also, *(Atom(known=one) for one in parents)])
