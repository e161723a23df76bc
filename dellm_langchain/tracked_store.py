"""A user's own vector store, whose documents are remembered and can be forgotten.

Source of the interface: langchain_core.vectorstores.base of langchain-core 1.8, `VectorStore`.
"""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from dellm import InvalidInput, Memory, Receipt

from .retriever import Placed
from .running import Here
from .tracked_copies import Copies
from .tracked_documents import Shelf, unnamed
from .tracked_finding import Finding
from .tracked_retriever import TrackedRetriever


class TrackedVectorStore(Finding):
    """Does all that the user's store does, and keeps each of its documents as a record.

    What is found has the id of its record in the metadata, as `dellm_id`, and counts as read by the
    running code: replies made of it depend on it. A document that is forgotten is never found
    again, and its vectors are deleted from the store by id: within the forget where it is made in
    this process, else at the next use; see `pending` and `sync`. Adding it again is refused without
    a word. Made by `track`.
    """

    def __init__(self, store: VectorStore, shelf: Shelf) -> None:
        self._store, self._shelf = store, shelf
        self._copies = Copies(store, shelf.name)
        shelf.memory.after_forget(self._forgotten)

    @property
    def store(self) -> VectorStore:
        """The user's own store."""
        return self._store

    # what is forgotten

    @property
    def pending(self) -> list[str]:
        """The ids in the store of what is forgotten and could not be deleted there yet."""
        return self._copies.pending(self._shelf.here().memory)

    def sync(self) -> int:
        """Delete from the store what is forgotten; return how many could not be deleted.

        Call it where another process forgets, or where the store was out of reach; using the store
        does it too.
        """
        memory = self._shelf.here().memory
        self._copies.again(memory)
        return self._copies.sync(memory)

    async def a_sync(self) -> int:
        """As sync, through the store's own async methods."""
        memory = self._shelf.here().memory
        self._copies.again(memory)
        return await self._copies.a_sync(memory)

    def for_workspace(self, name: str) -> TrackedVectorStore:
        """Return this store for one workspace, whatever the config says."""
        shelf = self._shelf.of(self._shelf.memory.workspace(name))
        return TrackedVectorStore(self._store, shelf)

    def _forgotten(self, receipt: Receipt) -> None:
        memory = self._shelf.memory
        if self._shelf.key is not None or receipt.workspace == memory.id:
            self._copies.sync(memory.workspace(receipt.workspace))

    # the rest of the store

    def as_retriever(self, **kwargs: Any) -> Any:
        """As the store's own, over this one."""
        own = self._store.as_retriever(**kwargs)
        if type(own) is not VectorStoreRetriever:
            return TrackedRetriever(retriever=own, shelf=self._shelf, store=self)
        tags = kwargs.pop("tags", None) or self._store._get_retriever_tags()  # noqa: SLF001 - as there
        return TrackedStoreRetriever(vectorstore=self, tags=tags, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return what only this store has; what its methods find is filtered and noted as well."""
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._store, name)
        if not inspect.ismethod(found):
            return found
        if inspect.iscoroutinefunction(found):
            return lambda *said, **options: self._a_find(found, *said, **options)
        return lambda *said, **options: self._find(found, *said, **options)

    # adding

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Record documents, then add them to the store; return an id for each of them."""
        new = _New(self._ready(), documents, kwargs.pop("ids", None))
        if self._recorded(new):
            given = self._store.add_documents(new.documents, ids=new.names, **kwargs)
            self._added(new, given)
        return new.all_names

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """As add_documents."""
        new = _New(await self._a_ready(), documents, kwargs.pop("ids", None))
        if await asyncio.to_thread(self._recorded, new):
            given = await self._store.aadd_documents(new.documents, ids=new.names, **kwargs)
            if await asyncio.to_thread(self._put, new, given):
                await self._copies.a_sync(new.where.memory)
        return new.all_names

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Record texts, then add them to the store; return an id for each of them."""
        new = _New(self._ready(), _documents(texts, metadatas), ids)
        if self._recorded(new):
            metas = None if metadatas is None else [one.metadata for one in new.documents]
            said = [one.page_content for one in new.documents]
            self._added(new, self._store.add_texts(said, metas, ids=new.names, **kwargs))
        return new.all_names

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """As add_texts."""
        new = _New(await self._a_ready(), _documents(texts, metadatas), ids)
        if await asyncio.to_thread(self._recorded, new):
            metas = None if metadatas is None else [one.metadata for one in new.documents]
            said = [one.page_content for one in new.documents]
            given = await self._store.aadd_texts(said, metas, ids=new.names, **kwargs)
            if await asyncio.to_thread(self._put, new, given):
                await self._copies.a_sync(new.where.memory)
        return new.all_names

    def _recorded(self, new: _New) -> bool:
        """Record what is about to be added, and leave out what is refused; say if any is left."""
        new.keep(self._shelf.add(new.where, new.documents, new.names))
        return bool(new.documents)

    def _added(self, new: _New, given: Sequence[str] | None) -> None:
        if self._put(new, given):
            self._copies.sync(new.where.memory)

    def _put(self, new: _New, given: Sequence[str] | None) -> bool:
        """Note what is there now; say whether some of it was forgotten while it was added."""
        new.renamed(given)
        elsewhere = new.where.memory.elsewhere
        late = elsewhere.put(self._shelf.name, dict(zip(new.names, new.records, strict=True)))
        if late:
            self._copies.again(new.where.memory)
        return bool(late)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        store: type[VectorStore] | None = None,
        memory: Memory | None = None,
        tracking: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Record texts, make a store of the class `store` with them, and track it in `memory`.

        `tracking` are the options of `track`. Raises InvalidInput.
        """
        from .tracked_retrieval import checked, shelf_of, start

        shelf = shelf_of(store, memory, **checked(tracking or {}))
        new = _New(shelf.here(), _documents(texts, metadatas), ids)
        new.keep(shelf.add(new.where, new.documents, new.names))
        made = start(store, new, embedding, with_metadata=metadatas is not None, options=kwargs)
        tracked = cls(made, shelf)
        tracked._added(new, None)
        return tracked

    # deleting, and the rest

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete from the store alone; the records, and what was made of them, stay.

        Where each workspace has documents of its own: of these only. Raises InvalidInput where all
        are to be deleted then.
        """
        memory = self._shelf.here().memory
        names = self._shelf.deletable(memory, ids)
        done = self._store.delete(names, **kwargs)
        if names and done is not False:
            memory.elsewhere.drop(self._shelf.name, names)
        return done

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """As delete."""
        memory = self._shelf.here().memory
        names = await asyncio.to_thread(self._shelf.deletable, memory, ids)
        done = await self._store.adelete(names, **kwargs)
        if names and done is not False:
            await asyncio.to_thread(memory.elsewhere.drop, self._shelf.name, names)
        return done

    @property
    def embeddings(self) -> Embeddings | None:
        """As the store's."""
        return self._store.embeddings

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return self._store._select_relevance_score_fn()  # noqa: SLF001 - what subclasses override


class TrackedStoreRetriever(Placed, VectorStoreRetriever):
    """The retriever of a tracked vector store."""


class _New:
    """Documents that are being added: what they are, their ids in the store, their records."""

    def __init__(
        self, where: Here, documents: Sequence[Document], ids: Sequence[str | None] | None
    ) -> None:
        self.where = where
        self.documents = [unnamed(one) for one in documents]
        given = [one.id for one in documents] if ids is None else list(ids)
        if len(given) != len(documents):
            raise InvalidInput("ids= are not as many as the documents.")
        if not all(one is None or isinstance(one, str) for one in given):
            raise InvalidInput("One of ids= is no text.")
        self.names = [one or str(uuid.uuid4()) for one in given]
        self.all_names = list(self.names)
        self.records: list[int] = []

    def keep(self, records: Sequence[int | None]) -> None:
        """Leave out what was refused."""
        zipped = list(zip(self.documents, self.names, records, strict=True))
        self.documents = [one for one, _, id_ in zipped if id_ is not None]
        self.names = [name for _, name, id_ in zipped if id_ is not None]
        self.records = [id_ for id_ in records if id_ is not None]

    def renamed(self, given: Sequence[str] | None) -> None:
        """Take the ids that a store gave, where it gave others than it was told."""
        if given is None or len(given) != len(self.names) or list(given) == self.names:
            return
        instead = dict(zip(self.names, given, strict=True))
        self.all_names = [instead.get(one, one) for one in self.all_names]
        self.names = list(given)


def _documents(texts: Iterable[str], metadatas: Sequence[dict[str, Any]] | None) -> list[Document]:
    listed = list(texts)
    metas = list(metadatas) if metadatas is not None else [{} for _ in listed]
    if len(metas) != len(listed):
        raise InvalidInput("metadatas are not as many as the texts.")
    if not all(isinstance(one, str) for one in listed):
        raise InvalidInput("One of the texts is no text.")
    pairs = zip(listed, metas, strict=True)
    return [Document(page_content=text, metadata=meta) for text, meta in pairs]
