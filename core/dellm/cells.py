"""What the values of a checkpoint are made of: atoms, which are records, and cells, which refer to them.

An adapter takes a framework's values apart into cells; the core stores the atoms as records with
their parents, and the cells as short JSON. Frozen or plain values, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .records import Draft

Version = int | float | str
# JSON of a cell. A number above 0 is a record, below 0 a sequence, 0 something that was refused.
Stored = int | list[Any]
LITERAL, LISTED, TUPLED, PLACED, WRAPPED, NAMED = range(6)


@dataclass(frozen=True, slots=True)
class Place:
    """A checkpoint's address: thread, namespace inside it, and the framework's checkpoint id."""

    thread: str
    ns: str
    cid: str


@dataclass(slots=True, eq=False)
class Sources:
    """What an atom was made from.

    Its prompt, in order, are the records `known` and then the atoms `context`; `also` are further
    parents, and so are those of `beside` that are not made from it: of these it cannot be told
    whether they came before it. With `place`, the parents are also everything in that checkpoint, or
    in its `channels` if given; `since` is the ledger entry up to which the reader of that checkpoint
    knew what was erased (None: it wrote the checkpoint itself). `heard` are channels whose pending
    writes at that checkpoint were read as well. `only_if_unknown`: only when part of the context is
    not known. `inexact` marks that the parents may be more than what was really read.
    """

    known: Sequence[int] = ()
    context: Sequence[Atom] = ()
    also: Sequence[Atom] = ()
    beside: Sequence[Atom] = ()
    place: Place | None = None
    channels: frozenset[str] | None = None
    since: int | None = None
    heard: frozenset[str] = frozenset()
    only_if_unknown: bool = False
    inexact: bool = False


@dataclass(slots=True, eq=False)
class Atom:
    """A record, known or to be stored; `id` is set by the write, None when it was refused.

    `draft` None stands for something only looked up. `refs` are the atoms a state's payload refers
    to by their position; `lookup` finds the framework's object and never stores it; `anew` stores
    another version even of equal content; `fresh`: its framework's id was made for it just now, so
    there is nothing to look up; `stored` tells afterwards that this write stored it. A
    known atom with a draft gives its record the framework's id that it had not yet. `unsure`: the
    known record may have gone, whatever the writer knows of others.
    """

    draft: Draft | None = field(default=None, repr=False)
    known: int | None = None
    made: Sources | None = field(default=None, repr=False)
    refs: Sequence[Atom] = ()
    id: int | None = None
    stored: bool = False
    lookup: bool = False
    anew: bool = False
    fresh: bool = False
    unsure: bool = False


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that carries no text of anyone: None, a bool, a number, a literal of the schema."""

    value: Any


@dataclass(frozen=True, slots=True)
class Many:
    """A list: the records `known`, then `atoms`; those that are gone by now are left out.

    `kept` lists keep the place of an item that goes; `tupled` reads as a tuple.
    """

    known: Sequence[int] = ()
    atoms: Sequence[Atom] = ()
    kept: bool = False
    tupled: bool = False


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A cell inside an object of the framework that the adapter knows by its label."""

    label: str
    cell: Cell


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping by names that belong to a schema, each with a cell of its own."""

    cells: Mapping[str, Cell]


Cell = Literal | Atom | Many | Wrapped | Fields


def atoms(cell: Cell) -> Iterator[Atom]:
    """Yield every atom of a cell in order."""
    if isinstance(cell, Atom):
        yield cell
    elif isinstance(cell, Many):
        yield from cell.atoms
    elif isinstance(cell, Wrapped):
        yield from atoms(cell.cell)
    elif isinstance(cell, Fields):
        for inner in cell.cells.values():
            yield from atoms(inner)


def refers(stored: Stored) -> Iterator[int]:
    """Yield every record and sequence that a stored cell refers to."""
    if isinstance(stored, int):
        if stored:
            yield stored
        return
    kind, what = stored[0], stored[1]
    if kind == WRAPPED:
        yield from refers(stored[2])
    elif kind == NAMED:
        for inner in what.values():
            yield from refers(inner)
    elif kind != LITERAL:
        yield from (what,) if isinstance(what, int) else (one for one in what if one)
