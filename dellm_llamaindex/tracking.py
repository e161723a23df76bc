"""track(): a user's own index, vector store or retriever, whose nodes become records.

Source of the interface: llama_index.core.indices.base of llama-index-core 0.14, `BaseIndex`.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, cast

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    MetadataFilters,
)

from dellm import InvalidInput, Memory
from dellm.adapting import check_flag, check_text

from .documents import unmarked
from .index_copies import IndexKeeper, named_in
from .retriever import memory_of
from .tracked_copies import Keeper, StoreKeeper
from .tracked_documents import Deleting, Listing, Shelf, Structure, name_for
from .tracked_retriever import TrackedRetriever
from .tracked_store import TrackedVectorStore

T = TypeVar("T", bound="BaseIndex[Any] | BasePydanticVectorStore | BaseRetriever")

_tracked: weakref.WeakValueDictionary[tuple[int, str, str], Any] = weakref.WeakValueDictionary()
_guard = threading.Lock()


def track(
    source: T,
    memory: Any,
    *,
    name: str | None = None,
    persist_dir: str | None = None,
    everything: bool = False,
    given: bool = False,
) -> T:
    """Return a user's index, vector store or retriever that does as before and is remembered.

    What it finds is a record, named in the metadata as `dellm_record`. A node that is forgotten is
    deleted by its id from the index, its vector store and its document store, once the forget is
    committed; what could not be deleted stays noted, is tried again at the next use (see `pending`
    and `sync` of what is returned) and is never found meanwhile. What is added becomes a record at
    once, what was there before when it is found, or with `everything=True` now.

    Indexes that share a document store are to be tracked all: what is forgotten goes from it.
    An index keeps its class and shares all its stores with the one given, whose own retrievers stay
    as they are. A retriever of an index tracks that index; of any other the nodes stay where it has
    them from. `name`: what the source goes by in memory, the same in every process and another for
    each; by default its class and its id or collection. `persist_dir`: where an index is kept in
    files: they are written again after what was forgotten is out. Without it they are out of reach
    until the user persists the index again. `given`: what is added by running code comes from
    outside, and is not made from what that code has read.

    `memory` is a dellm.Memory or a DeLLMMemory. Raises InvalidInput.
    """
    core = memory_of(memory, "track()")
    for option, said in (("everything=", everything), ("given=", given)):
        check_flag(said, option)
    if persist_dir is not None:
        check_text(persist_dir, "persist_dir=")
    if isinstance(source, Deleting):
        raise InvalidInput("This is tracked already.")
    made: Any = _made(source, _Options(core, name, persist_dir, given))
    if everything:
        made._shelf.take_document("")  # noqa: SLF001 - of the same part
    return cast("T", made)


@dataclass(frozen=True, slots=True)
class _Options:
    """What track() was told besides the source."""

    memory: Memory
    name: str | None
    persist_dir: str | None
    given: bool

    def shelf(
        self,
        source: object,
        keeper: Keeper | None,
        nodes: Listing | None,
        structure: Structure | None = None,
    ) -> Shelf:
        """Return where the documents of a source are kept."""
        called = _claimed(self.memory, self.name, source)
        return Shelf(self.memory, called, keeper, nodes, structure=structure, given=self.given)

    def of_index(self, index: BaseIndex[Any]) -> tuple[Shelf, IndexKeeper]:
        """Return where the documents of an index are kept, and what takes nodes out of it."""
        keeper = IndexKeeper(index, self.persist_dir)
        return self.shelf(index, keeper, partial(_of_index, keeper), keeper), keeper


def _made(source: object, options: _Options) -> Any:
    if isinstance(source, BaseIndex):
        shelf, keeper = options.of_index(source)
        cls: Any = _told(type(source))
        made = cls.__new__(cls)  # it shares all that the user's has, and is no index made anew
        made.__dict__.update(source.__dict__, _shelf=shelf, _keeper=keeper)
        return made
    if options.persist_dir is not None:
        raise InvalidInput("persist_dir= is for an index.")
    if isinstance(source, BasePydanticVectorStore):
        keeper_ = StoreKeeper(source)
        return TrackedVectorStore(
            source, options.shelf(source, keeper_, lambda document: _held(source, document))
        )
    if isinstance(source, BaseRetriever):
        return TrackedRetriever(source, _of_retriever(source, options))
    raise InvalidInput("track() takes an index, a vector store or a retriever.")


def _of_retriever(retriever: BaseRetriever, options: _Options) -> Shelf:
    """Return where the documents of a retriever are kept: those of its index, if it has one."""
    index = getattr(retriever, "_index", None)
    if isinstance(index, Deleting):
        return index._shelf  # noqa: SLF001 - of the same part
    if isinstance(index, BaseIndex):
        return options.of_index(index)[0]
    return options.shelf(retriever, None, None)


def _claimed(memory: Memory, name: str | None, source: object) -> str:
    """Return the name of a source; InvalidInput where another one has it.

    A forget would be done with when one of them has deleted what both have. Objects that stand for
    one store outside of this process may well have one name.
    """
    called = name_for(source) if name is None else name
    store = getattr(source, "vector_store", source)
    if getattr(store, "stores_text", False):
        return called
    key = (memory.identity, memory.id, called)
    with _guard:
        if _tracked.setdefault(key, source) is not source:
            raise InvalidInput(
                "Another index, store or retriever is tracked under this name.",
                remedy="Give each a name= of its own.",
            )
    return called


class _TrackedIndex(Deleting):
    """What a tracked index does otherwise than the user's own."""

    _keeper: IndexKeeper

    @property
    def out_of_reach(self) -> list[str]:
        """What the index may still hold of what is forgotten, besides `pending`: its files."""
        folder = self._keeper.persist_dir
        if folder is None:
            return ["files that the index was persisted to, until it is persisted again"]
        return [str(one) for one in named_in(Path(folder), self.pending)]

    def as_retriever(self, **kwargs: Any) -> BaseRetriever:
        """As the index's own, without what is forgotten."""
        made: BaseRetriever = super().as_retriever(**kwargs)  # type: ignore[misc] # the index's
        return TrackedRetriever(made, self._shelf)

    def insert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """Record nodes, then insert them; one that was forgotten is left out without a word."""
        self._shelf.ready()
        kept, records = _kept(self._shelf, nodes)
        super().insert_nodes(kept, **insert_kwargs)  # type: ignore[misc] # the index's
        if self._shelf.added(records):
            self._shelf.ready()

    async def ainsert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """As insert_nodes."""
        await self._shelf.a_ready()
        kept, records = await asyncio.to_thread(_kept, self._shelf, nodes)
        await super().ainsert_nodes(kept, **insert_kwargs)  # type: ignore[misc] # the index's
        if await asyncio.to_thread(self._shelf.added, records):
            await self._shelf.a_ready()

    def delete_nodes(self, node_ids: list[str], *args: Any, **kwargs: Any) -> None:
        """Delete nodes from the index alone; their records, and what was made of them, stay."""
        super().delete_nodes(node_ids, *args, **kwargs)  # type: ignore[misc] # the index's
        self._shelf.dropped(node_ids)

    async def adelete_nodes(self, node_ids: list[str], *args: Any, **kwargs: Any) -> None:
        """As delete_nodes."""
        await super().adelete_nodes(node_ids, *args, **kwargs)  # type: ignore[misc] # the index's
        await asyncio.to_thread(self._shelf.dropped, node_ids)


@cache
def _told(cls: type[Any]) -> type[Any]:
    """Return the subclass of an index's class that is tracked."""
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls.__name__, (_TrackedIndex, cls), names)


def _kept(shelf: Shelf, nodes: Sequence[BaseNode]) -> tuple[list[BaseNode], dict[str, int]]:
    records = shelf.add(nodes)
    return [unmarked(one) for one in nodes if one.node_id in records], records


def _of_index(keeper: IndexKeeper, document: str) -> Iterable[BaseNode]:
    """Return the nodes of a document that an index holds, all for ""."""
    docstore = keeper.index.docstore
    if document:
        info = docstore.get_ref_doc_info(document)
        names = [] if info is None else info.node_ids
        found = docstore.get_nodes(names, raise_error=False)
    else:
        found = list(docstore.docs.values())
    own = [one for one in found if one.ref_doc_id is not None or not document]
    held = {one.node_id for one in own}
    stored = [node for one in keeper.vectors for node in _held(one, document)]
    return [*own, *(one for one in stored if one.node_id not in held)]


def _held(store: BasePydanticVectorStore, document: str) -> list[BaseNode]:
    """Return the nodes of a document that a vector store holds, where it can tell; all for ""."""
    if not store.stores_text:
        return []
    one = MetadataFilter(key="ref_doc_id", value=document)
    for filters in (MetadataFilters(filters=[one]), None) if document else (None,):
        try:
            found = store.get_nodes(filters=filters)
        except Exception:  # noqa: BLE001, S112 - many stores cannot: such nodes are records when found
            continue
        held = [each for each in found if not document or each.ref_doc_id == document]
        if held:
            return held
    return []
