"""track() for a user's own retriever or vector store: see TrackedVectorStore and TrackedRetriever."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from dellm import InvalidInput, Memory
from dellm.adapting import check_flag

from .tracked_documents import Shelf
from .tracked_retriever import TrackedRetriever
from .tracked_store import TrackedStoreRetriever, TrackedVectorStore

OPTIONS = frozenset({"name", "source", "workspace", "shared", "given", "thread"})
NAMES = ("collection_name", "_collection_name", "index_name", "_index_name")  # as stores have them
_tracked: weakref.WeakValueDictionary[tuple[int, str, str], VectorStore] = (
    weakref.WeakValueDictionary()
)
_guard = threading.Lock()


def track_vector_store(store: VectorStore, memory: Memory, **options: Any) -> TrackedVectorStore:
    """Return the user's vector store, whose documents are remembered from now on.

    `name`: what the store goes by in memory; it must be the same in every process, and another for
    every store: by default the name of its class, and of its collection if it has one. `source`:
    the metadata that names what a document is a part of. `workspace`: the key of `configurable`
    that names the workspace; each then finds only what was added in it. `shared`: every workspace
    finds all documents, those that others added and those that were there before; a forget in one
    deletes only what was added in it, and the rest is hidden from that one alone. `given`: what
    running code adds comes from outside, and is not made from what that code was told.
    Raises InvalidInput.
    """
    if isinstance(store, TrackedVectorStore):
        raise InvalidInput("This vector store is tracked already.")
    shelf = shelf_of(store, memory, **checked(options))
    _claim(store, shelf)
    return TrackedVectorStore(store, shelf)


def track_retriever(retriever: BaseRetriever, memory: Memory, **options: Any) -> BaseRetriever:
    """Return the user's retriever, whose documents are remembered from now on.

    That of a vector store tracks the store itself, so that what is forgotten is deleted there; see
    track_vector_store for the options. Of any other, what is forgotten is not found again, and stays
    where the retriever has it from. Raises InvalidInput.
    """
    if isinstance(retriever, TrackedRetriever | TrackedStoreRetriever):
        raise InvalidInput("This retriever is tracked already.")
    if not isinstance(retriever, VectorStoreRetriever):
        return TrackedRetriever(
            retriever=retriever,
            shelf=shelf_of(retriever, memory, noted=False, **checked(options)),
        )
    store = retriever.vectorstore
    tracked = (
        store
        if isinstance(store, TrackedVectorStore)
        else track_vector_store(store, memory, **options)
    )
    if type(retriever) is not VectorStoreRetriever:
        return TrackedRetriever(retriever=retriever, shelf=tracked._shelf, store=tracked)  # noqa: SLF001 - of the same part
    said = {name: getattr(retriever, name) for name in retriever.model_fields_set}
    return TrackedStoreRetriever(**{**said, "vectorstore": tracked})


def shelf_of(
    source_of: object,
    memory: Memory | None,
    *,
    name: str | None = None,
    source: str = "source",
    workspace: str | None = None,
    shared: bool | None = None,
    given: bool = False,
    noted: bool = True,
    thread: object = None,
) -> Shelf:
    """Return where the documents of a source are kept; `thread` is not theirs, and means nothing."""
    if not isinstance(memory, Memory):
        raise InvalidInput("track() takes a dellm.Memory.")
    del thread  # documents belong to no conversation
    for option, said in (("shared=", False if shared is None else shared), ("given=", given)):
        check_flag(said, option)
    if workspace is not None and (not isinstance(workspace, str) or not workspace.strip()):
        raise InvalidInput("workspace= is no name of a key.")
    called = _name_of(source_of) if name is None else name
    own = noted and workspace is not None and not shared
    return Shelf(
        memory, called, workspace, source, noted=noted and not shared, given=given, own=own
    )


def checked(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of track(); InvalidInput for one that it does not have."""
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise InvalidInput(f"track() of a retriever or vector store has no {unknown[0]}=.")
    return options


def _name_of(source: object) -> str:
    kind = source.__name__ if isinstance(source, type) else type(source).__name__
    named = [getattr(source, one, None) for one in NAMES]
    collection = next((one for one in named if isinstance(one, str) and one), None)
    return kind if collection is None else f"{kind} {collection}"


def _claim(store: VectorStore, shelf: Shelf) -> None:
    """Refuse two stores under one name: a forget would delete from both what one of them has."""
    key = (shelf.memory.identity, shelf.memory.id if shelf.key is None else "", shelf.name)
    with _guard:
        if _tracked.setdefault(key, store) is not store:
            raise InvalidInput(
                "Another vector store is tracked under this name.",
                remedy="Give each a name= of its own.",
            )


def start(
    kind: type[VectorStore] | None,
    new: Any,
    embedding: Embeddings,
    *,
    with_metadata: bool,
    options: dict[str, Any],
) -> VectorStore:
    """Make a user's store with its first documents. Raises InvalidInput."""
    if not isinstance(kind, type) or not issubclass(kind, VectorStore):
        raise InvalidInput("store= is a class of vector stores.")
    texts = [one.page_content for one in new.documents]
    metas = [one.metadata for one in new.documents] if with_metadata else None
    return kind.from_texts(texts, embedding, metas, ids=new.names, **options)
