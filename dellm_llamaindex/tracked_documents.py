"""The documents of one tracked index, store or retriever in memory: what it finds and is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NoReturn, Protocol, Self

from llama_index.core.schema import BaseNode, NodeWithScore

from dellm import Atom, InvalidInput, Memory, Receipt, Sources, UnsupportedHere

from . import scopes
from .documents import (
    RECORD,
    foreign_of,
    holders,
    homes,
    left_out,
    marked,
    records_of,
    taken_in,
    unmarked,
)
from .purging import watch
from .state_records import Flat
from .tags import Owner, owner_of
from .tracked_copies import Copies, Keeper

Listing = Callable[[str], Iterable[BaseNode]]  # the nodes of a document, by its id


class Structure(Protocol):
    """How an index has put its nodes together."""

    def sources(self, node: BaseNode) -> list[BaseNode]:
        """Return the nodes that the index has made a node from."""

    def without_lost(self, node: BaseNode) -> BaseNode:
        """Return a node that names no larger node, and no neighbour, that is not there any more."""


class Shelf:
    """What one source of nodes goes by in memory, and which of its nodes are records.

    `keeper` is what nodes can be deleted from, None where there is no such thing; `nodes` lists
    those of a document, or all for ""; `structure` says what of them goes together. `given`: what running code adds comes from outside, and is
    not made from what that code was told.
    """

    def __init__(
        self,
        memory: Memory,
        name: str,
        keeper: Keeper | None = None,
        nodes: Listing | None = None,
        *,
        structure: Structure | None = None,
        given: bool = False,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("name= is no name.")
        self.memory, self.name = memory, name
        self.copies = None if keeper is None else Copies(keeper, memory, name)
        self._nodes, self._structure, self._given = nodes, structure, given
        watch(memory)
        holders.add(self)
        if self.copies is not None:
            memory.after_forget(self._forgotten)

    @property
    def owner(self) -> Owner:
        """The memory and workspace that the records are in."""
        return owner_of(self.memory)

    def generation(self) -> int:
        """Return a number that another forget changes."""
        return self.memory.checkpoints.generation()

    def ready(self) -> None:
        """Delete what was forgotten, before anything is looked for."""
        if self.copies is not None:
            self.copies.sync()

    async def a_ready(self) -> None:
        """As ready."""
        if self.copies is not None:
            await self.copies.a_sync()

    def _forgotten(self, receipt: Receipt) -> None:
        if receipt.workspace == self.memory.id:
            self.ready()

    # what is found

    def known(self, nodes: Sequence[BaseNode]) -> list[BaseNode | None]:
        """Return found nodes with the ids of their records, None for what was forgotten."""
        for one in nodes:
            taken_in(one, self.owner)
        ids = self._records(nodes)
        kept: list[BaseNode | None] = []
        for one in nodes:
            record = ids.get(one.node_id)
            if record is None:
                left_out(one, self.owner)
                kept.append(None)
            else:
                self.found([one.node_id])
                shown = self._structure.without_lost(one) if self._structure is not None else one
                kept.append(marked(unmarked(shown), self.owner, record))
        if None in kept and self.copies is not None:
            self.copies.again()
        return kept

    def scored(self, found: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """Return what was found, without what was forgotten."""
        pairs = zip(found, self.known([one.node for one in found]), strict=True)
        return [NodeWithScore(node=node, score=one.score) for one, node in pairs if node]

    def gone(self) -> set[str]:
        """Return the ids of nodes that are forgotten, and not known to be deleted."""
        return set(self.memory.elsewhere.gone(self.name))

    def found(self, names: Iterable[str]) -> None:
        """Keep that nodes were found here of which only the ids are known."""
        homes.note(self.owner, self.name, names)

    def take_document(self, ref_doc_id: str) -> None:
        """Make records of all nodes of a document that are there; of all there are for ""."""
        if self._nodes is not None:
            self._records(self._nodes(ref_doc_id))

    def _made_from(self, node: BaseNode) -> list[BaseNode]:
        return self._structure.sources(node) if self._structure is not None else []

    def _records(self, nodes: Iterable[BaseNode]) -> dict[str, int | None]:
        """Return the record of each node, made from those that the index made the node from."""
        listed, made = list(nodes), dict[str, Sources]()
        dead: dict[str, None] = {}
        for one in listed:
            inner = [each for each in self._made_from(one) if each.node_id != one.node_id]
            ids = self._records(inner) if inner else {}
            known = [ids.get(each.node_id) for each in inner]
            if None in known:
                dead[one.node_id] = None
            elif inner:
                made[one.node_id] = Sources(known=[id_ for id_ in known if id_])
        living = [one for one in listed if one.node_id not in dead]
        return {**records_of(self.memory, living, place=self.name, made=made), **dead}

    # what is added

    def add(self, nodes: Sequence[BaseNode]) -> dict[str, int]:
        """Return the records of nodes that are about to be added, by their ids; without those refused.

        What names a record of this workspace was made from that, and what is added while an engine, a
        workflow or a tool runs from what that has read so far.
        """
        made, before = self._told(), self.gone()
        foreign = [foreign_of(unmarked(one), self._copied(one, made)) for one in nodes]
        ids = self.memory.elsewhere.take(self.name, foreign, new=True)
        pairs = zip(nodes, ids, strict=True)
        taken = {one.node_id: record for one, record in pairs if record is not None}
        refused = {one.node_id for one in nodes} - before - set(taken)
        if refused:  # they never come there
            self.memory.elsewhere.drop(self.name, sorted(refused), gone=True)
        return taken

    def _told(self) -> Sources | None:
        """Return what the running code has read, None outside of an engine or workflow."""
        scope = None if self._given else scopes.current()
        if scope is None:
            return None
        flow = scope.everything()
        flow.read(self.owner, ())  # so that nodes are looked for in this workspace as well
        flat = Flat(flow)
        return Sources(known=list(flat.records[self.owner]), inexact=flat.unsure)

    def _copied(self, node: BaseNode, made: Sources | None) -> Sources | None:
        known = node.metadata.get(RECORD)
        if type(known) is not int or known < 1:
            return made
        return replace(made or Sources(), also=(Atom(known=known, unsure=True),))

    def added(self, records: dict[str, int]) -> bool:
        """Note that nodes are there now; return whether one was forgotten meanwhile."""
        if not records:
            return False
        late = self.memory.elsewhere.put(self.name, records)
        if late and self.copies is not None:
            self.copies.again()
        return bool(late)

    def dropped(self, names: Sequence[str]) -> None:
        """Note that the user has deleted nodes there; their records stay."""
        self.memory.elsewhere.drop(self.name, list(names))


def name_for(source: object) -> str:
    """Return what a source goes by where its user gives it no name: its class and its own id.

    An index whose vector store keeps the texts is known by that store: it has no id of its own that
    another process would see.
    """
    kind = type(source).__name__
    store = getattr(source, "vector_store", None)
    if store is not None and getattr(store, "stores_text", False):
        return f"{kind} over {name_for(store)}"
    for one in ("index_id", "collection_name", "index_name", "table_name"):
        found = getattr(source, one, None)
        if isinstance(found, str) and found:
            return f"{kind} {found}"
    return kind


class Deleting:
    """What everything that is tracked says of the copies that are still to be deleted."""

    _shelf: Shelf

    def __copy__(self) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)  # a shallow copy is over the same nodes
        return made

    def __deepcopy__(self, memo: object) -> Self:
        raise self._no_copy()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise self._no_copy()

    def _no_copy(self) -> UnsupportedHere:
        return UnsupportedHere(
            "What is tracked is neither copied deeply nor pickled: no forget would reach the copy.",
            remedy="Copy the index, store or retriever that it was made of, and track the copy.",
        )

    @property
    def pending(self) -> list[str]:
        """The ids of nodes that are forgotten and could not be deleted there yet."""
        copies = self._shelf.copies
        return sorted(self._shelf.gone()) if copies is None else copies.pending()

    def sync(self) -> int:
        """Delete what is forgotten; return how many nodes could not be deleted.

        Call it where another process forgets, or where the store was out of reach; using it does it
        too.
        """
        copies = self._shelf.copies
        if copies is None:
            return len(self._shelf.gone())
        copies.again()
        return copies.sync()

    async def a_sync(self) -> int:
        """As sync, through the store's own async methods."""
        copies = self._shelf.copies
        if copies is None:
            return self.sync()
        copies.again()
        return await copies.a_sync()
