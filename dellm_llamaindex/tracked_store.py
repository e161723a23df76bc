"""A user's own vector store, whose nodes are remembered and can be forgotten.

Source of the interface: llama_index.core.vector_stores.types of llama-index-core 0.14,
`BasePydanticVectorStore`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from pydantic import PrivateAttr

from dellm import ContextForgotten

from .documents import unmarked
from .tracked_documents import Deleting, Shelf


class TrackedVectorStore(BasePydanticVectorStore, Deleting):
    """Does all that the user's store does, and keeps each of its nodes as a record.

    What is found names its record in the metadata, as `dellm_record`. A node that is forgotten is
    never found again, and is deleted from the store by its id: within the forget where it is made in
    this process, else at the next use; see `pending` and `sync`. Adding it again is refused. Of a
    store that keeps no texts, the nodes that were there before are known once an index over it is
    asked. Made by `track`.
    """

    stores_text: bool = True
    _store: BasePydanticVectorStore = PrivateAttr()
    _shelf: Shelf = PrivateAttr()

    def __init__(self, store: BasePydanticVectorStore, shelf: Shelf) -> None:
        super().__init__(stores_text=store.stores_text, is_embedding_query=store.is_embedding_query)
        self._store, self._shelf = store, shelf

    def __deepcopy__(self, memo: object = None) -> Self:
        raise self._no_copy()

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class."""
        return "TrackedVectorStore"

    @property
    def store(self) -> BasePydanticVectorStore:
        """The user's own store."""
        return self._store

    @property
    def client(self) -> Any:
        """As the store's."""
        return self._store.client

    # finding

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As the store's, without what is forgotten."""
        self._shelf.ready()
        asked = query
        found = self._store.query(asked, **kwargs)
        kept = self._kept(found)
        while (more := _wider(query, asked, found, kept)) is not None:
            asked = replace(query, similarity_top_k=more)
            found = self._store.query(asked, **kwargs)
            kept = self._kept(found)
        return _first(kept, query.similarity_top_k)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As query."""
        await self._shelf.a_ready()
        asked = query
        found = await self._store.aquery(asked, **kwargs)
        kept = await asyncio.to_thread(self._kept, found)
        while (more := _wider(query, asked, found, kept)) is not None:
            asked = replace(query, similarity_top_k=more)
            found = await self._store.aquery(asked, **kwargs)
            kept = await asyncio.to_thread(self._kept, found)
        return _first(kept, query.similarity_top_k)

    def _kept(self, found: VectorStoreQueryResult) -> VectorStoreQueryResult:
        if found.nodes is not None:
            nodes = self._shelf.known(found.nodes)
            places = [at for at, one in enumerate(nodes) if one is not None]
            return _only(found, places, [one for one in nodes if one is not None])
        names = list(found.ids or ())
        gone = self._shelf.gone()
        places = [at for at, one in enumerate(names) if one not in gone]
        self._shelf.found(names[at] for at in places)
        return _only(found, places, None)

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """As the store's, without what is forgotten."""
        self._shelf.ready()
        found = self._store.get_nodes(node_ids, filters)
        return [one for one in self._shelf.known(found) if one is not None]

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """As get_nodes."""
        await self._shelf.a_ready()
        found = await self._store.aget_nodes(node_ids, filters)
        known = await asyncio.to_thread(self._shelf.known, found)
        return [one for one in known if one is not None]

    # adding

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Record nodes, then add them to the store; return an id for each of them.

        Raises ContextForgotten, adding nothing, where one was forgotten and the store keeps no
        texts: an index would keep it besides.
        """
        self._shelf.ready()
        kept, records = self._recorded(nodes)
        given = self._store.add(kept, **kwargs) if kept else []
        if self._shelf.added(records):
            self._shelf.ready()
        return _all_names(nodes, kept, given)

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """As add."""
        await self._shelf.a_ready()
        kept, records = await asyncio.to_thread(self._recorded, nodes)
        given = await self._store.async_add(kept, **kwargs) if kept else []
        if await asyncio.to_thread(self._shelf.added, records):
            await self._shelf.a_ready()
        return _all_names(nodes, kept, given)

    def _recorded(self, nodes: Sequence[BaseNode]) -> tuple[list[BaseNode], dict[str, int]]:
        records = self._shelf.add(nodes)
        kept = [unmarked(one) for one in nodes if one.node_id in records]
        if len(kept) < len(nodes) and not self.stores_text:
            raise ContextForgotten(
                f"{len(nodes) - len(kept)} of {len(nodes)} nodes were forgotten; none was added."
            )
        return kept, records

    # deleting, and the rest

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document from the store alone; its records, and what was made of them, stay."""
        self._store.delete(ref_doc_id, **delete_kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """As delete."""
        await self._store.adelete(ref_doc_id, **delete_kwargs)

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete nodes from the store alone; their records, and what was made of them, stay."""
        self._store.delete_nodes(node_ids, filters, **delete_kwargs)
        if node_ids and filters is None:
            self._shelf.dropped(node_ids)

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """As delete_nodes."""
        await self._store.adelete_nodes(node_ids, filters, **delete_kwargs)
        if node_ids and filters is None:
            await asyncio.to_thread(self._shelf.dropped, node_ids)

    def clear(self) -> None:
        """As the store's."""
        self._store.clear()

    async def aclear(self) -> None:
        """As the store's."""
        await self._store.aclear()

    def persist(self, persist_path: str, fs: Any = None) -> None:
        """As the store's."""
        self._store.persist(persist_path, fs)


def _only(
    found: VectorStoreQueryResult, places: Sequence[int], nodes: Sequence[BaseNode] | None
) -> VectorStoreQueryResult:
    """Return what is at these places of an answer."""
    scores, ids = found.similarities, found.ids
    return VectorStoreQueryResult(
        nodes=nodes,
        similarities=None if scores is None else [scores[at] for at in places],
        ids=None if ids is None else [ids[at] for at in places],
    )


def _size(found: VectorStoreQueryResult) -> int:
    return len(found.nodes if found.nodes is not None else found.ids or ())


def _first(found: VectorStoreQueryResult, most: int) -> VectorStoreQueryResult:
    """Return the first of what was found, as many as were asked for."""
    if _size(found) <= most:
        return found
    return _only(found, range(most), None if found.nodes is None else list(found.nodes)[:most])


def _wider(
    query: VectorStoreQuery,
    asked: VectorStoreQuery,
    found: VectorStoreQueryResult,
    kept: VectorStoreQueryResult,
) -> int | None:
    """Return how many to ask for, where what is forgotten took the place of what was wanted."""
    wanted, now = query.similarity_top_k, asked.similarity_top_k
    full = _size(found) >= now > 0
    return 2 * now + wanted if full and _size(kept) < min(wanted, _size(found)) else None


def _all_names(
    nodes: Sequence[BaseNode], kept: Sequence[BaseNode], given: Sequence[str]
) -> list[str]:
    """Return an id for each node: what the store gave, or its own for one that was refused."""
    names = dict(zip((one.node_id for one in kept), given, strict=False))
    return [names.get(one.node_id, one.node_id) for one in nodes]
