"""Taking nodes out of a user's own index: its structure, vector store, document store and files.

Source of the structures: llama_index.core.data_structs and llama_index.core.indices of
llama-index-core 0.14; index by index, since `delete_nodes` of each leaves something else behind.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.data_structs.data_structs import (
    IndexDict,
    IndexGraph,
    IndexList,
    KeywordTable,
)
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.property_graph import PropertyGraphIndex
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo
from llama_index.core.storage.docstore.types import BaseDocumentStore, RefDocInfo
from llama_index.core.storage.kvstore.types import BaseKVStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from .documents import text_of
from .tracked_copies import LOG, Hands, deleted, in_store, stored_texts

_KINDS = (IndexDict, IndexList, IndexDocumentSummary, KeywordTable)
_FOLLOWED = (NodeRelationship.PARENT, NodeRelationship.PREVIOUS, NodeRelationship.NEXT)
_keepers: weakref.WeakSet[IndexKeeper] = weakref.WeakSet()
_guard = threading.Lock()


class IndexKeeper:
    """An index with its stores; `persist_dir` is where it is kept in files, if it is."""

    def __init__(self, index: BaseIndex[Any], persist_dir: str | None = None) -> None:
        self.index, self.persist_dir = index, persist_dir
        with _guard:
            _keepers.add(self)

    @property
    def vectors(self) -> list[BasePydanticVectorStore]:
        """The vector stores of the index: one, or another for images besides, or none."""
        named = ("vector_store", "image_vector_store", "_image_vector_store")
        found = [getattr(self.index, one, None) for one in named]
        kept = {id(one): one for one in found if isinstance(one, BasePydanticVectorStore)}
        return list(kept.values())

    def sources(self, node: BaseNode) -> list[BaseNode]:
        """Return the nodes that the index has made a node from: that sum them up, or state a fact."""
        struct = self.index.index_struct
        if isinstance(struct, IndexGraph):
            return _nodes(self.index.docstore, struct.node_id_to_children_ids.get(node.node_id, []))
        if isinstance(self.index, PropertyGraphIndex) and node.ref_doc_id is not None:
            return list(self.index.property_graph_store.get_llama_nodes([node.ref_doc_id]))
        return []

    def without_lost(self, node: BaseNode) -> BaseNode:
        """Return a node of a hierarchy that names no node, around or beside it, that was deleted.

        Those of a vector store that keeps texts still do: who follows that up finds nothing.
        """
        docstore = self.index.docstore
        if NodeRelationship.PARENT not in node.relationships:
            return node
        named = [node.relationships.get(one) for one in _FOLLOWED]
        ids = [one.node_id for one in named if isinstance(one, RelatedNodeInfo)]
        if not docstore.document_exists(node.node_id):
            return node  # nothing of the hierarchy is there
        lost = {one for one in ids if not docstore.document_exists(one)}
        if not lost:
            return node
        copy = node.model_copy(update={"relationships": dict(node.relationships)})
        _cut(copy, lost)
        return copy

    async def texts(self, names: list[str], hands: Hands) -> dict[str, str]:
        """Return what nodes say by their ids, where the index can tell."""
        found: dict[str, str] = {}
        for one in self.vectors:
            found.update(await stored_texts(one, names, hands))
        nodes = await hands.ask(_nodes, self.index.docstore, names)
        return {**found, **{one.node_id: text_of(one) for one in nodes}}

    async def held(self, names: list[str], hands: Hands) -> list[str]:
        """Return which of the ids are there for certain."""
        nodes = await hands.ask(_nodes, self.index.docstore, names)
        found = {one.node_id for one in nodes}.union(_listed(self.index.index_struct))
        for one in self.vectors:
            found.update(await in_store(one, names, hands) or ())
        return [one for one in names if one in found]

    async def delete(self, names: list[str], hands: Hands) -> list[str]:
        """Delete nodes by their ids; return the ids of what may still be there.

        Other tracked indexes over the same document store lose them as well.
        """
        left = await self._delete(names, hands)
        for other in self._beside():
            held = await other.held(names, hands)
            left += await other._delete(held, hands) if held else []  # noqa: SLF001 - of its kind
        return list(dict.fromkeys(left))

    def _beside(self) -> list[IndexKeeper]:
        with _guard:
            listed = list(_keepers)
        docstore = self.index.docstore
        own = self.index.index_struct
        others = [one for one in listed if one.index.docstore is docstore]
        return [one for one in others if one.index.index_struct is not own]

    async def _delete(self, names: list[str], hands: Hands) -> list[str]:
        struct = self.index.index_struct
        if not isinstance(struct, _KINDS):
            return list(names)  # who knows what it made of them
        around = await hands.ask(_around, self.index.docstore, names)
        every = [*names, *around]
        summaries = _summaries(struct, every)
        left: list[str] = []
        for one in self.vectors:
            held = summaries if isinstance(struct, IndexDocumentSummary) else every
            failed = await deleted(one, held, hands) if held else []
            whole = set(failed).issubset(names) and held is not summaries
            left += failed if whole or not failed else names
        done = [one for one in names if one not in left]
        gone = [*done, *([*around, *summaries] if done else ())]
        await hands.ask(take_out, self.index, gone)
        kept = await hands.ask(self._in_files, gone)
        return [*left, *(done if kept else ())]

    def _in_files(self, names: Sequence[str]) -> bool:
        """Persist what is left; return whether the files name any of the nodes all the same."""
        if self.persist_dir is None:
            return False
        folder = Path(self.persist_dir)
        if named_in(folder, names):
            self.index.storage_context.persist(persist_dir=str(folder))
        return bool(named_in(folder, names))


def named_in(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the JSON files of a folder that name any of the nodes."""
    wanted = [json.dumps(one).encode() for one in names]
    return [one for one in sorted(folder.glob("*.json")) if _names(one.read_bytes(), wanted)]


def _names(said: bytes, wanted: Sequence[bytes]) -> bool:
    return any(one in said for one in wanted)


def _around(docstore: BaseDocumentStore, names: Sequence[str]) -> list[str]:
    """Return the ids of the larger nodes that nodes were cut from: those say what they say."""
    found: dict[str, None] = {}
    inner = list(names)
    while inner:
        related = (
            one.relationships.get(NodeRelationship.PARENT) for one in _nodes(docstore, inner)
        )
        parents = {one.node_id for one in related if isinstance(one, RelatedNodeInfo)}
        inner = sorted(parents.difference(found, names))
        found.update(dict.fromkeys(inner))
    return list(found)


def _summaries(struct: object, names: Sequence[str]) -> list[str]:
    """Return the ids of the summaries that an index made of any of the nodes."""
    if not isinstance(struct, IndexDocumentSummary):
        return []
    made = (struct.node_id_to_summary_id.get(one) for one in names)
    return list(dict.fromkeys(one for one in made if one is not None))


def take_out(index: BaseIndex[Any], names: Sequence[str]) -> None:
    """Take nodes out of an index's structure and document store, and of other structures beside it.

    What others may be reading meanwhile is replaced, and not changed under their hands.
    """
    gone, kept = set(names), index.storage_context.index_store
    _strip(index.index_struct, gone)
    kept.add_index_struct(index.index_struct)
    for struct in kept.index_structs():
        if not gone.isdisjoint(_listed(struct)):
            _strip(struct, gone)
            kept.add_index_struct(struct)
    _take_out_documents(index.docstore, names)


def _listed(struct: object) -> set[str]:
    """Return the ids of the nodes that an index's structure names."""
    if isinstance(struct, IndexDict):
        return {*struct.nodes_dict, *struct.nodes_dict.values()}
    if isinstance(struct, IndexList):
        return set(struct.nodes)
    if isinstance(struct, KeywordTable):
        return {one for nodes in struct.table.values() for one in nodes}
    if isinstance(struct, IndexDocumentSummary):
        return {*struct.node_id_to_summary_id, *struct.summary_id_to_node_ids}
    return set()


def _strip(struct: object, gone: set[str]) -> None:
    if isinstance(struct, IndexDict):
        kept = struct.nodes_dict.items()
        struct.nodes_dict = {key: one for key, one in kept if gone.isdisjoint((key, one))}
    elif isinstance(struct, IndexList):
        struct.nodes = [one for one in struct.nodes if one not in gone]
    elif isinstance(struct, KeywordTable):
        rows = {word: nodes - gone for word, nodes in struct.table.items()}
        struct.table = {word: nodes for word, nodes in rows.items() if nodes}
    elif isinstance(struct, IndexDocumentSummary):
        _take_out_summaries(struct, gone)


def _take_out_summaries(struct: IndexDocumentSummary, gone: set[str]) -> None:
    """Take out whole documents of which a node goes: their summaries say what all of it says."""
    lost = 0
    for summary, nodes in list(struct.summary_id_to_node_ids.items()):
        if summary not in gone and not gone.intersection(nodes):
            continue
        lost += len(set(nodes) - gone)
        del struct.summary_id_to_node_ids[summary]
        for one in nodes:
            struct.node_id_to_summary_id.pop(one, None)
        for document, its in list(struct.doc_id_to_summary_id.items()):
            if its == summary:
                del struct.doc_id_to_summary_id[document]
    if lost:
        LOG.warning(
            "%d nodes are not found any more by an index of summaries: the summary of their "
            "document held what was forgotten. Insert them anew.",
            lost,
        )


def _take_out_documents(docstore: BaseDocumentStore, names: Sequence[str]) -> None:
    """Take nodes out of a document store, and what the other nodes of their documents say of them."""
    documents = {one.ref_doc_id for one in _nodes(docstore, names)} - {None}
    for one in names:
        docstore.delete_document(one, raise_error=False)
    for document in documents:
        whole = docstore.get_document(document or "", raise_error=False)
        if whole is not None:  # as a pipeline keeps it
            docstore.delete_document(document or "", raise_error=False)
        info = docstore.get_ref_doc_info(document or "")
        rest = _nodes(docstore, info.node_ids) if info is not None else []
        changed = [one for one in rest if _cut(one, set(names))]
        if changed:
            docstore.add_documents(changed, allow_update=True)
        if rest:
            _tell_anew(docstore, document or "", rest)


def _tell_anew(docstore: BaseDocumentStore, document: str, rest: Sequence[BaseNode]) -> None:
    """Let what is kept of a document say what its nodes say that are left: it had all they said."""
    store = getattr(docstore, "_kvstore", None)
    collection = getattr(docstore, "_ref_doc_collection", None)
    if not isinstance(store, BaseKVStore) or not isinstance(collection, str):
        return
    said: dict[str, Any] = {}
    for one in rest:
        said.update(one.metadata)
    told = RefDocInfo(node_ids=[one.node_id for one in rest], metadata=said)
    store.put(document, told.to_dict(), collection=collection)


def _cut(node: BaseNode, gone: set[str]) -> bool:
    """Cut a node off from others: what it keeps of them are their metadata and a hash of the text."""
    before = dict(node.relationships)
    for kind, related in before.items():
        listed = related if isinstance(related, list) else [related]
        kept = [one for one in listed if one.node_id not in gone]
        if len(kept) == len(listed):
            continue
        if isinstance(related, list) and kept:
            node.relationships[kind] = kept
        else:
            del node.relationships[kind]
    return node.relationships != before


def _nodes(docstore: BaseDocumentStore, names: Sequence[str]) -> list[BaseNode]:
    return list(docstore.get_nodes(list(names), raise_error=False))
