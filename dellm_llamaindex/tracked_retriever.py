"""A user's own retriever, whose nodes are remembered and can be forgotten."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from .tracked_documents import Deleting, Shelf

TRIES = 12  # searches of an index that loses nodes meanwhile
PAUSE = 0.01  # seconds until the next one


class TrackedRetriever(BaseRetriever, Deleting):
    """Finds what the user's retriever finds, and keeps each node as a record.

    What is found names its record in the metadata, as `dellm_record`, which no prompt shows: replies
    made of it depend on it. A node that is forgotten is never found again. What the retriever has
    besides, such as `similarity_top_k`, is read from it. Made by `track`.
    """

    def __init__(self, retriever: BaseRetriever, shelf: Shelf) -> None:
        super().__init__(callback_manager=getattr(retriever, "callback_manager", None))
        self.retriever, self._shelf = retriever, shelf

    def __getattr__(self, name: str) -> Any:
        """Return what only the user's retriever has."""
        if name.startswith("_") or name == "retriever":
            raise AttributeError(name)
        return getattr(self.retriever, name)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return what the user's retriever finds, without what is forgotten."""
        self._shelf.ready()
        found = self._asked(self.retriever, query_bundle)
        kept = self._shelf.scored(found)
        for wider in self._wider(found, kept):
            found = self._asked(wider, query_bundle)
            kept = self._shelf.scored(found)[: self.similarity_top_k]
        return kept

    def _asked(self, retriever: BaseRetriever, query: QueryBundle) -> list[NodeWithScore]:
        """Return what a retriever finds, asking again where something went while it was looking."""
        for _ in range(TRIES):
            generation = self._shelf.generation()
            try:
                return retriever.retrieve(query)
            except Exception as error:
                moved = self._shelf.generation() != generation
                if not (moved or isinstance(error, LookupError)):
                    raise
                time.sleep(PAUSE)
        return retriever.retrieve(query)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """As _retrieve."""
        await self._shelf.a_ready()
        found = await self._aasked(self.retriever, query_bundle)
        kept = await asyncio.to_thread(self._shelf.scored, found)
        for wider in self._wider(found, kept):
            found = await self._aasked(wider, query_bundle)
            kept = (await asyncio.to_thread(self._shelf.scored, found))[: self.similarity_top_k]
        return kept

    async def _aasked(self, retriever: BaseRetriever, query: QueryBundle) -> list[NodeWithScore]:
        """As _asked."""
        for _ in range(TRIES):
            generation = await asyncio.to_thread(self._shelf.generation)
            try:
                return await retriever.aretrieve(query)
            except Exception as error:
                moved = await asyncio.to_thread(self._shelf.generation) != generation
                if not (moved or isinstance(error, LookupError)):
                    raise
                await asyncio.sleep(PAUSE)
        return await retriever.aretrieve(query)

    def _wider(
        self, found: Sequence[NodeWithScore], kept: Sequence[NodeWithScore]
    ) -> Sequence[BaseRetriever]:
        """Return what to ask once more, where what is forgotten took the place of what was wanted."""
        wanted = getattr(self.retriever, "similarity_top_k", None)
        if len(kept) == len(found) or type(wanted) is not int or len(found) < wanted:
            return ()
        more: Any = copy.copy(self.retriever)
        more.similarity_top_k = wanted + len(self._shelf.gone())
        return (more,)
