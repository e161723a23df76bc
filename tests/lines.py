"""Checkpoints as an adapter makes and reads them, without a framework: channels of texts.

A list of texts is a list channel, each text a message; any other text is a state.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dellm import (
    Atom,
    Body,
    Cell,
    Checkpoint,
    Checkpoints,
    Draft,
    Fields,
    Loaded,
    Many,
    Memory,
    Place,
    Sources,
    Stored,
    TaskWrite,
    Wrapped,
)
from dellm.cells import LITERAL, NAMED, PLACED, TUPLED, WRAPPED

TS = "2026-01-01T00:00:00+00:00"


def nothing(generation: int) -> Collection[int]:
    """Say that the reader has no record from before."""
    return ()


def said(
    text: str,
    thread: str = "t",
    fid: str | None = None,
    made: Sources | None = None,
    **draft: Any,
) -> Atom:
    """Return the atom of a message."""
    return Atom(Draft(text, thread=thread, framework_id=fid, **draft), made=made)


def state(
    text: str,
    thread: str = "t",
    made: Sources | None = None,
    refs: Sequence[Atom] = (),
    payload: bytes | None = None,
) -> Atom:
    """Return the atom of a value that is no message."""
    draft = Draft(text, role="state", thread=thread, kind="state", payload=payload)
    return Atom(draft, made=made, refs=refs)


def made_at(micros: int, spice: int = 0) -> str:
    """Return a time-ordered id (RFC 9562, version 6) of that moment."""
    steps = micros * 10 + 0x01B21DD213814000
    whole = (steps >> 12) << 80 | 6 << 76 | (steps & 0xFFF) << 64 | 2 << 62 | spice
    return str(uuid.UUID(int=whole))


def known(cell: Cell) -> Cell:
    """Return a cell that was written, as the same value is handed in again."""
    if isinstance(cell, Many):
        ids = [*cell.known, *(one.id or 0 for one in cell.atoms)]
        return Many(ids, kept=cell.kept, tupled=cell.tupled)
    if isinstance(cell, Atom):
        return Atom(known=cell.id or 0)
    if isinstance(cell, Wrapped):
        return Wrapped(cell.label, known(cell.cell))
    if isinstance(cell, Fields):
        return Fields({name: known(one) for name, one in cell.cells.items()})
    return cell


@dataclass
class Run:
    """A run that writes one line: it holds the values in its memory, erased or not.

    `since` is the head of the ledger as of which it read; None: it wrote all of it itself.
    """

    checkpoints: Checkpoints
    thread: str = "t"
    ns: str = ""
    parent: str | None = None
    name: str = "c"
    number: int = 0
    trusted: int = -1
    since: int | None = None
    run: str | None = None
    cells: dict[str, Cell] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    refused: bool = False

    def put(self, cid: str | None = None, settings: Atom | None = None, **changed: Cell) -> str:
        """Store the next checkpoint with the channels that changed; return its id."""
        self.number += 1
        cid = f"{self.name}{self.number:04}" if cid is None else cid
        for name, cell in changed.items():
            self.cells[name] = cell
            self.versions[name] = self.versions.get(name, 0) + 1
        body = Body(4, TS, dict(self.versions), {}, {}, list(changed), {"step": self.number})
        written = self.checkpoints.put(
            Checkpoint(
                Place(self.thread, self.ns, cid),
                self.parent,
                body,
                list(self.cells),
                frozenset(self.cells.keys() - changed.keys()),
                self.cells.__getitem__,
                settings=settings,
                since=self.since,
                run=self.run,
            ),
            self.trusted,
        )
        self.refused = written.refused
        if self.trusted == -1:
            self.trusted = written.generation
        self.cells = {name: known(cell) for name, cell in self.cells.items()}
        self.parent, self.since = cid, None
        return cid

    def more(self, channel: str, *atoms: Atom, **other: Cell) -> str:
        """Store a checkpoint in which a list has more items."""
        before = self.cells.get(channel, Many())
        assert isinstance(before, Many)
        return self.put(**{channel: Many(before.known, atoms, before.kept, before.tupled)}, **other)

    def write(self, *writes: tuple[int, str, Cell], task: str = "task", cid: str = "") -> bool:
        """Store what a task wrote at the newest checkpoint; return whether it was refused."""
        place = Place(self.thread, self.ns, cid or self.parent or "")
        new = [TaskWrite(*one) for one in writes]
        return self.checkpoints.put_writes(place, task, "path", new, self.trusted).refused


def run(memory: Memory, thread: str = "t", **more: Any) -> Run:
    """Return a new run of a workspace."""
    return Run(memory.checkpoints, thread, **more)


def loaded(memory: Memory, cid: str | None = None, thread: str = "t", ns: str = "") -> Loaded:
    """Return a checkpoint that is there."""
    (found,) = memory.checkpoints.get(thread, ns, cid, nothing).loaded
    return found


def text_of(found: Loaded, id_: int | None) -> str | None:
    """Return the text of a reference, None when it is gone."""
    held = found.records.get(found.stands.get(id_ or 0, id_ or 0))
    return None if held is None else held.text


def value_of(found: Loaded, cell: Stored) -> Any:
    """Return what a reader sees in a cell: lists less what is gone, None where a place is kept."""
    if isinstance(cell, int):
        return _texts(found, found.lists[cell]) if cell < 0 else text_of(found, cell)
    kind, what = cell[0], cell[1]
    if kind == LITERAL:
        return what
    if kind == WRAPPED:
        return (what, value_of(found, cell[2]))
    if kind == NAMED:
        return {name: value_of(found, one) for name, one in what.items()}
    ids = found.lists[what] if isinstance(what, int) else what
    texts = _texts(found, ids, kept=kind == PLACED)
    return tuple(texts) if kind == TUPLED else texts


def _texts(found: Loaded, ids: Sequence[int | None], *, kept: bool = False) -> list[str | None]:
    texts = [text_of(found, one) for one in ids]
    return [one for one in texts if kept or one is not None]


def values(
    memory: Memory, cid: str | None = None, thread: str = "t", ns: str = ""
) -> Mapping[str, Any]:
    """Return what a reader sees in the channels of a checkpoint."""
    found = loaded(memory, cid, thread, ns)
    return {name: value_of(found, cell) for name, cell in found.body.cells.items()}


def writes(memory: Memory, cid: str | None = None, thread: str = "t") -> list[tuple[str, int, Any]]:
    """Return what a reader sees of a checkpoint's writes: (channel, index, value)."""
    found = loaded(memory, cid, thread)
    seen = [(one.channel, one.at, value_of(found, one.cell)) for one in found.writes]
    return [one for one in seen if one[2] is not None]
