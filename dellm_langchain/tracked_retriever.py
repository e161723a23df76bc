"""A user's own retriever, whose documents are remembered and can be forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from .retriever import Placed
from .tracked_documents import Shelf


class TrackedRetriever(Placed):
    """Finds what the user's retriever finds, and keeps each document as a record.

    What is found has the id of its record in the metadata, as `dellm_id`, and counts as read by the
    running code: replies made of it depend on it. A document that is forgotten is never found
    again. Made by `track`.
    """

    retriever: BaseRetriever
    shelf: Any
    store: Any = None  # the tracked vector store that the retriever searches, if it does

    def for_workspace(self, name: str) -> TrackedRetriever:
        """Return this retriever for one workspace, whatever the config says."""
        shelf = self.shelf.of(self.shelf.memory.workspace(name))
        store = None if self.store is None else self.store.for_workspace(name)
        return self.model_copy(update={"shelf": shelf, "store": store})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        """Return what the user's retriever finds, without what is forgotten."""
        if self.store is not None:
            self.store._ready()  # noqa: SLF001 - of the same part
        found = self.retriever.invoke(query, {"callbacks": run_manager.get_child()}, **options)
        return self._kept(found)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        """As _get_relevant_documents."""
        if self.store is not None:
            await self.store._a_ready()  # noqa: SLF001 - of the same part
        found = await self.retriever.ainvoke(
            query, {"callbacks": run_manager.get_child()}, **options
        )
        return await asyncio.to_thread(self._kept, found)

    def _kept(self, found: list[Document]) -> list[Document]:
        shelf: Shelf = self.shelf
        where = shelf.here()
        kept = [one for one in shelf.known(where, found) if one is not None]
        shelf.read(where, kept)
        return kept
