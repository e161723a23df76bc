"""Nodes of a user's own indexes as records: each text of a document once in a workspace.

What a node says is what a prompt shows of it, its metadata included. A node that has a record
already is told by a note on the object, or by its metadata.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from llama_index.core.schema import BaseNode, ImageNode, MetadataMode

from dellm import Atom, Draft, Foreign, Memory, NotFound, Plan, Receipt, SelectorError, Sources
from dellm.adapting import Selection, foreign

from .tags import Owner, owner_of

PLACE = "llama_index"  # what the indexes that are not tracked go by, all of them together
RECORD = "dellm_record"  # the metadata of a node that names its record
NODE, DOCUMENT = "node_id", "ref_doc_id"  # the metadata of a record that name its node and document
FILES = ("file_path", "file_name", "source", "url")  # what a node without a document is a part of
# Names that mean something to the core in the metadata of a record, or to us in that of a node.
RESERVED = frozenset({"rebuild", "tool_call_id", "whole", "inexact", RECORD})
MOST = 100_000  # nodes whose index is kept

_NOTE = "_dellm_node"
_KEY = os.urandom(16)  # of this process: a digest means nothing outside of it


@dataclass(frozen=True, slots=True)
class Note:
    """The record that a node is, and what the node said then; 0: it was found and left out."""

    owner: Owner
    record: int
    digest: bytes


def records_of(
    memory: Memory,
    nodes: Iterable[BaseNode],
    *,
    place: str | None = None,
    made: Mapping[str, Sources] | None = None,
) -> dict[str, int | None]:
    """Return the record of each node by the node's id, None for what was erased or may not be used.

    A node that has none yet gets one. What a tracked index has left out is not among them. `place`
    is where the nodes were found; without it, the tracked index that they came from, if they came
    from one. `made` says of nodes, by their ids, what they were made from. Raises StorageError.
    """
    found: dict[str, int | None] = {}
    unknown: dict[tuple[str, bool], list[tuple[str, Foreign]]] = {}
    owner = owner_of(memory)
    for node in nodes:
        note = note_of(node)
        if note is not None and note.owner == owner and not note.record:
            continue
        own = _own(memory, owner, node, note)
        if own is None or own.record is not None:
            found[node.node_id] = own.record if own else None
            continue
        sources = _and(own.made, (made or {}).get(node.node_id))
        where = place or homes.of(owner, node.node_id) or PLACE
        noted = where != PLACE or foreign.says_nothing(node.node_id)
        held = foreign_of(node, sources, named=noted)
        unknown.setdefault((where, noted), []).append((node.node_id, held))
    for (where, noted), some in unknown.items():
        ids = memory.elsewhere.take(where, [one for _, one in some], noted=noted)
        found.update(zip((name for name, _ in some), ids, strict=True))
    return found


def plan_document(memory: Memory, ref_doc_id: str, **options: Any) -> Plan:
    """Show what forgetting a document would take: all nodes of it, and what was made of them.

    Those that nothing was made of yet become records first, where the index that holds them is
    tracked. `options` as for Memory.plan, without selectors.
    """
    holders.take(memory, ref_doc_id)
    return memory.plan(**_document(memory, ref_doc_id), **options)


def forget_document(memory: Memory, ref_doc_id: str, **options: Any) -> Receipt:
    """Forget a document: all nodes of it, and what was made of them; see plan_document.

    `options` as for Memory.forget, without selectors. Raises NothingMatched where none is known.
    """
    holders.take(memory, ref_doc_id)
    return memory.forget(**_document(memory, ref_doc_id), **options)


def _document(memory: Memory, ref_doc_id: str) -> Selection:
    """Return the selector of a document's records; by their ids where there are no others."""
    where = {"kind": "document", DOCUMENT: ref_doc_id}
    try:
        memory.plan(where=where, suspects=False)
    except SelectorError:
        return Selection(ids=[one.id for one in memory.plan(everything=True).matches])
    return Selection(where=where)


# notes on nodes


def marked(node: BaseNode, owner: Owner, record: int) -> BaseNode:
    """Return a copy of a node that names its record; a prompt shows of it what it did before."""
    copy = node.model_copy()
    copy.metadata = {**node.metadata, RECORD: record}
    for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys"):
        setattr(copy, name, [*getattr(node, name), RECORD])
    object.__setattr__(copy, _NOTE, Note(owner, record, _digest(copy)))
    return copy


def left_out(node: BaseNode, owner: Owner) -> None:
    """Note on a node that it was found in an index, and not given to anyone."""
    object.__setattr__(node, _NOTE, Note(owner, 0, b""))


def taken_in(node: BaseNode, owner: Owner) -> None:
    """Take off a node that it was left out: it is found again, and perhaps given."""
    note = note_of(node)
    if note is not None and note.owner == owner and not note.record:
        del node.__dict__[_NOTE]


def note_of(node: BaseNode) -> Note | None:
    """Return the note on a node; what it says now may differ from what it said then."""
    found = node.__dict__.get(_NOTE)
    return found if isinstance(found, Note) else None


def unmarked(node: BaseNode) -> BaseNode:
    """Return a node as it was before it was given the id of its record."""
    if RECORD not in node.metadata:
        return node
    copy = node.model_copy()
    copy.metadata = {key: value for key, value in node.metadata.items() if key != RECORD}
    for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys"):
        setattr(copy, name, [one for one in getattr(node, name) if one != RECORD])
    copy.__dict__.pop(_NOTE, None)
    return copy


def _digest(node: BaseNode) -> bytes:
    said = text_of(node).encode(errors="surrogatepass")
    return hashlib.blake2b(said, digest_size=16, key=_KEY).digest()


@dataclass(frozen=True, slots=True)
class _Own:
    """What a node says of its record: which it is, or else which it was cut or made from."""

    record: int | None = None
    made: Sources | None = None


def _own(memory: Memory, owner: Owner, node: BaseNode, note: Note | None) -> _Own | None:
    """Return what a node says of its record, None where that is gone."""
    if note is not None:
        if note.owner != owner:
            return _Own()  # the number means nothing here
        changed = note.digest != _digest(node)
        return _Own(made=_from(note.record)) if changed else _Own(note.record)
    known = node.metadata.get(RECORD)
    if type(known) is not int:
        return _Own()
    try:
        same = memory.get(known).text in (text_of(node), node.get_content(MetadataMode.NONE))
    except NotFound:
        return None
    return _Own(known) if same else _Own(made=_from(known))


def _from(record: int) -> Sources:
    return Sources(also=(Atom(known=record, unsure=True),))


def _and(some: Sources | None, more: Sources | None) -> Sources | None:
    if some is None or more is None:
        return some or more
    return Sources(
        known=more.known,
        context=more.context,
        also=(*more.also, *some.also),
        beside=more.beside,
        inexact=more.inexact,
    )


# what a node says


def foreign_of(node: BaseNode, made: Sources | None = None, *, named: bool = True) -> Foreign:
    """Return a node as a document that another system holds; `named`: with its id there."""
    said = {**foreign.plain(node.metadata, RESERVED), NODE: node.node_id}
    document = node.ref_doc_id
    if document is not None:
        said[DOCUMENT] = document
    draft = Draft(text_of(node), role="document", kind="document", metadata=said)
    source = document or next(
        (str(node.metadata[one]) for one in FILES if one in node.metadata), ""
    )
    return Foreign(node.node_id if named else None, Atom(draft, made=made), source)


def text_of(node: BaseNode) -> str:
    """Return what a prompt shows of a node, or if it has no text, which pictures or sounds it is."""
    text = node.get_content(MetadataMode.LLM)
    media = list(_media(node))
    return "\n".join([text, *media] if text.strip() else media) or text


def _media(node: BaseNode) -> Iterator[str]:
    if isinstance(node, ImageNode):
        yield from _medium("image", node.image, node.image_path, node.image_url)
    for kind in ("image", "audio", "video"):
        held = getattr(node, f"{kind}_resource", None)
        if held is not None:
            yield from _medium(kind, held.data, held.path, held.url)


def _medium(kind: str, data: str | bytes | None, path: object, url: object) -> Iterator[str]:
    if data:
        raw = data.encode() if isinstance(data, str) else data
        yield f"[{kind} {hashlib.sha256(raw).hexdigest()}]"
    for one in (path, url):
        if one:
            yield f"[{kind} {one}]"


# what holds nodes


class Homes:
    """Which tracked index has found a node last, where the node itself cannot say. Bounded."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._guard = threading.Lock()
        self._kept: OrderedDict[tuple[Owner, str], str] = OrderedDict()

    def note(self, owner: Owner, place: str, names: Iterable[str]) -> None:
        """Keep that nodes with these ids were found at a place."""
        with self._guard:
            for name in names:
                self._kept[owner, name] = place
                self._kept.move_to_end((owner, name))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def of(self, owner: Owner, name: str) -> str | None:
        """Return where a node was found, None where that is not known."""
        return self._kept.get((owner, name))


class Holder(Protocol):
    """A tracked index or store."""

    @property
    def owner(self) -> Owner:
        """The memory and workspace whose documents it holds."""

    def take_document(self, ref_doc_id: str) -> object:
        """Make records of all nodes of a document that it holds."""


class Holders:
    """All tracked indexes and stores there are in this process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._all: weakref.WeakSet[Any] = weakref.WeakSet()

    def add(self, holder: Holder) -> None:
        """Ask a holder too, as long as there is one."""
        with self._guard:
            self._all.add(holder)

    def take(self, memory: Memory, ref_doc_id: str) -> None:
        """Make records of all nodes of a document that any of them holds for a workspace."""
        with self._guard:
            listed = [cast("Holder", one) for one in self._all]
        for one in listed:
            if one.owner == owner_of(memory):
                one.take_document(ref_doc_id)


homes = Homes()
holders = Holders()
