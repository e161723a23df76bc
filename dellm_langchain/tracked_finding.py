"""Finding in a user's own vector store: what it finds, without what is forgotten.

Source of the interface: langchain_core.vectorstores.base of langchain-core 1.8, `VectorStore`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from .running import Here
from .tracked_copies import Copies
from .tracked_documents import Shelf


class Finding(VectorStore):
    """The part of a tracked vector store that finds: every way that the user's own store has."""

    _store: VectorStore
    _shelf: Shelf
    _copies: Copies

    def _ready(self) -> Here:
        where = self._shelf.here()
        self._copies.sync(where.memory)
        return where

    async def _a_ready(self) -> Here:
        where = self._shelf.here()
        await self._copies.a_sync(where.memory)
        return where

    def _kept(self, where: Here, found: Any) -> Any:
        """Return what was found without what is forgotten; a list of documents, or of pairs."""
        if not isinstance(found, list) or not found or not all(map(_document, found)):
            return found
        documents = self._shelf.known(where, [one for one in map(_document, found) if one])
        if None in documents:
            self._copies.again(where.memory)
        pairs = zip(found, documents, strict=True)
        return [_with(one, document) for one, document in pairs if document is not None]

    def _read(self, where: Here, kept: Any, wanted: object) -> Any:
        """Return what was kept, so many as are wanted, as read by the running code."""
        if not isinstance(kept, list):
            return kept
        given = kept[:wanted] if type(wanted) is int and wanted >= 0 else kept
        self._shelf.read(where, [one for one in map(_document, given) if one])
        return given

    def _find(self, find: Callable[..., Any], *said: Any, **options: Any) -> Any:
        where, wanted = self._ready(), options.get("k")
        found = find(*said, **options)
        kept = self._kept(where, found)
        while (k := _wider(wanted, options.get("k"), found, kept)) is not None:
            options["k"] = k
            found = find(*said, **options)
            kept = self._kept(where, found)
        return self._read(where, kept, wanted)

    async def _a_find(self, find: Callable[..., Any], *said: Any, **options: Any) -> Any:
        where, wanted = await self._a_ready(), options.get("k")
        found = await find(*said, **options)
        kept = await asyncio.to_thread(self._kept, where, found)
        while (k := _wider(wanted, options.get("k"), found, kept)) is not None:
            options["k"] = k
            found = await find(*said, **options)
            kept = await asyncio.to_thread(self._kept, where, found)
        return self._read(where, kept, wanted)

    def search(self, query: str, search_type: str, **kwargs: Any) -> list[Document]:
        """As the store's."""
        found: list[Document] = self._find(self._store.search, query, search_type, **kwargs)
        return found

    async def asearch(self, query: str, search_type: str, **kwargs: Any) -> list[Document]:
        """As the store's."""
        found: list[Document] = await self._a_find(
            self._store.asearch, query, search_type, **kwargs
        )
        return found

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """As the store's."""
        found: list[Document] = self._find(self._store.similarity_search, query, k=k, **kwargs)
        return found

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """As the store's."""
        found: list[Document] = await self._a_find(
            self._store.asimilarity_search, query, k=k, **kwargs
        )
        return found

    def similarity_search_with_score(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """As the store's."""
        found: list[tuple[Document, float]] = self._find(
            self._store.similarity_search_with_score, *args, **kwargs
        )
        return found

    async def asimilarity_search_with_score(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """As the store's."""
        found: list[tuple[Document, float]] = await self._a_find(
            self._store.asimilarity_search_with_score, *args, **kwargs
        )
        return found

    def similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """As the store's."""
        found: list[tuple[Document, float]] = self._find(
            self._store.similarity_search_with_relevance_scores, query, k=k, **kwargs
        )
        return found

    async def asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """As the store's."""
        found: list[tuple[Document, float]] = await self._a_find(
            self._store.asimilarity_search_with_relevance_scores, query, k=k, **kwargs
        )
        return found

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """As the store's."""
        found: list[Document] = self._find(
            self._store.similarity_search_by_vector, embedding, k=k, **kwargs
        )
        return found

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """As the store's."""
        found: list[Document] = await self._a_find(
            self._store.asimilarity_search_by_vector, embedding, k=k, **kwargs
        )
        return found

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """As the store's."""
        said = {"k": k, "fetch_k": fetch_k, "lambda_mult": lambda_mult, **kwargs}
        found: list[Document] = self._find(self._store.max_marginal_relevance_search, query, **said)
        return found

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """As the store's."""
        said = {"k": k, "fetch_k": fetch_k, "lambda_mult": lambda_mult, **kwargs}
        found: list[Document] = await self._a_find(
            self._store.amax_marginal_relevance_search, query, **said
        )
        return found

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[Document]:
        """As the store's."""
        said = {"k": k, "fetch_k": fetch_k, "lambda_mult": lambda_mult, **kwargs}
        found: list[Document] = self._find(
            self._store.max_marginal_relevance_search_by_vector, embedding, **said
        )
        return found

    async def amax_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[Document]:
        """As the store's."""
        said = {"k": k, "fetch_k": fetch_k, "lambda_mult": lambda_mult, **kwargs}
        found: list[Document] = await self._a_find(
            self._store.amax_marginal_relevance_search_by_vector, embedding, **said
        )
        return found

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """As the store's."""
        found: list[Document] = self._find(self._store.get_by_ids, ids)
        return found

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """As the store's."""
        found: list[Document] = await self._a_find(self._store.aget_by_ids, ids)
        return found


def _wider(wanted: object, asked: object, found: Any, kept: Any) -> int | None:
    """Return how many to ask for, where what is forgotten took the place of what was wanted."""
    if type(wanted) is not int or type(asked) is not int or not isinstance(found, list):
        return None
    full = len(found) >= asked > 0
    return 2 * asked + wanted if full and len(kept) < min(wanted, len(found)) else None


def _document(one: object) -> Document | None:
    """Return a document, or that of a document with its score."""
    if isinstance(one, tuple) and one:
        one = one[0]
    return one if isinstance(one, Document) else None


def _with(one: Any, document: Document) -> Any:
    return (document, *one[1:]) if isinstance(one, tuple) else document
