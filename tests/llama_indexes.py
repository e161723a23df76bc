"""Indexes for the tests of LlamaIndex, with an embedding of words that needs no model."""

from __future__ import annotations

import math
import uuid
import zlib
from collections.abc import Sequence
from typing import Any

from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import TextSplitter
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from pydantic import PrivateAttr

SIZE = 64


class Words(BaseEmbedding):
    """Counts words: texts that share words are near each other."""

    def _get_query_embedding(self, query: str) -> list[float]:
        counts = [0.0] * SIZE
        for word in query.casefold().replace(".", " ").replace("?", " ").split():
            counts[zlib.crc32(word.encode()) % SIZE] += 1.0
        size = math.sqrt(sum(one * one for one in counts)) or 1.0
        return [one / size for one in counts]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_query_embedding(text)


class TextStore(BasePydanticVectorStore):
    """A vector store that keeps texts, as those outside of the process do; it can be out of order."""

    stores_text: bool = True
    broken: bool = False
    lists: bool = True
    deletes: bool = True
    _held: dict[str, BaseNode] = PrivateAttr(default_factory=dict)
    _calls: list[str] = PrivateAttr(default_factory=list)

    @property
    def client(self) -> dict[str, BaseNode]:
        return self._held

    @property
    def calls(self) -> list[str]:
        return self._calls

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        self._held.update({one.node_id: one.model_copy(deep=True) for one in nodes})
        return [one.node_id for one in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        for one in [one for one in self._held.values() if one.ref_doc_id == ref_doc_id]:
            del self._held[one.node_id]

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        self._calls.append("delete_nodes")
        if not self.deletes:
            raise NotImplementedError("delete_nodes not implemented")
        if self.broken:
            raise ConnectionError("the store is away")
        for one in node_ids or ():
            del self._held[one]  # it refuses ids that it does not have

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        self._calls.append("adelete_nodes")
        self.delete_nodes(node_ids, filters)

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        if not self.lists:
            raise NotImplementedError("get_nodes not implemented")
        wanted = self._held if node_ids is None else node_ids
        return [self._held[one].model_copy(deep=True) for one in wanted if one in self._held]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        asked = query.query_embedding or []
        pairs = [
            (sum(a * b for a, b in zip(asked, one.embedding or [], strict=False)), name)
            for name, one in self._held.items()
        ]
        best = sorted(pairs, reverse=True)[: query.similarity_top_k]
        return VectorStoreQueryResult(
            nodes=[self._held[name].model_copy(deep=True) for _, name in best],
            similarities=[score for score, _ in best],
            ids=[name for _, name in best],
        )


def chunk(
    text: str, document: str = "doc", name: str | None = None, **metadata: object
) -> TextNode:
    """Return a node of a document."""
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    return TextNode(
        text=text, id_=name or str(uuid.uuid4()), relationships=source, metadata=dict(metadata)
    )


def index_of(
    nodes: Sequence[BaseNode], store: BasePydanticVectorStore | None = None
) -> VectorStoreIndex:
    """Return an index over nodes, in a store of its own if none is given."""
    storage = StorageContext.from_defaults(vector_store=store) if store is not None else None
    return VectorStoreIndex(list(nodes), embed_model=Words(), storage_context=storage)


class Sentences(TextSplitter):
    """Cuts after each sentence."""

    def split_text(self, text: str) -> list[str]:
        return [f"{one.strip('. ')}." for one in text.split(". ")]


def sentences(text: str, name: str) -> list[BaseNode]:
    """Return the nodes of a document that is cut into sentences."""
    return Sentences().get_nodes_from_documents([Document(text=text, id_=name)])
