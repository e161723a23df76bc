"""Taking nodes out of a user's own index: its structure, vector store, document store and files.

Source of the structures: llama_index.core.data_structs and llama_index.core.indices of
llama-index-core 0.14; index by index, since `delete_nodes` of each leaves something else behind.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.data_structs.data_structs import IndexDict, IndexList
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from .documents import text_of
from .tracked_copies import LOG, Hands, deleted, stored_texts


class IndexKeeper:
    """An index with its stores; `persist_dir` is where it is kept in files, if it is."""

    def __init__(self, index: BaseIndex[Any], persist_dir: str | None = None) -> None:
        self.index, self.persist_dir = index, persist_dir

    @property
    def vectors(self) -> BasePydanticVectorStore | None:
        """The vector store of the index, None where it has none of its own."""
        found = getattr(self.index, "vector_store", None)
        return found if isinstance(found, BasePydanticVectorStore) else None

    async def texts(self, names: list[str], hands: Hands) -> dict[str, str]:
        """Return what nodes say by their ids, where the index can tell."""
        found = {}
        if self.vectors is not None:
            found = await stored_texts(self.vectors, names, hands)
        nodes = await hands.ask(_nodes, self.index.docstore, names)
        return {**found, **{one.node_id: text_of(one) for one in nodes}}

    async def delete(self, names: list[str], hands: Hands) -> list[str]:
        """Delete nodes by their ids; return the ids of what may still be there."""
        summaries = _summaries(self.index.index_struct, names)
        left: list[str] = []
        if self.vectors is not None:
            by_summary = isinstance(self.index.index_struct, IndexDocumentSummary)
            held = summaries if by_summary else names
            failed = await deleted(self.vectors, held, hands) if held else []
            left = list(names) if failed and by_summary else failed
        done = [one for one in names if one not in left]
        gone = [*done, *(summaries if done else ())]
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


def _summaries(struct: object, names: Sequence[str]) -> list[str]:
    """Return the ids of the summaries that an index made of any of the nodes."""
    if not isinstance(struct, IndexDocumentSummary):
        return []
    made = (struct.node_id_to_summary_id.get(one) for one in names)
    return list(dict.fromkeys(one for one in made if one is not None))


def take_out(index: BaseIndex[Any], names: Sequence[str]) -> None:
    """Take nodes out of an index's structure and document store.

    Raises whatever the index does that has no way to.
    """
    struct = index.index_struct
    gone = set(names)
    if isinstance(struct, IndexDict):
        for vector, node in list(struct.nodes_dict.items()):
            if gone.intersection((vector, node)):
                del struct.nodes_dict[vector]
    elif isinstance(struct, IndexList):
        struct.nodes = [one for one in struct.nodes if one not in gone]
    elif isinstance(struct, IndexDocumentSummary):
        _take_out_summaries(struct, gone)
    else:
        index.delete_nodes(list(names))
    _take_out_documents(index.docstore, names)
    index.storage_context.index_store.add_index_struct(struct)


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
