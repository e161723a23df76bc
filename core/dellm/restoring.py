"""Reading checkpoints back: references become records again, less what is gone.

A list reads without what was erased. Any other value that was erased reads as the last earlier
value of its channel that survives along the parents; the adapter gives it a default or leaves it
out where there is none.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from . import cells, ledger, provenance, storing
from .bodies import Body, load_body, pack_id, unpack_id
from .cells import Place, Stored
from .database import USABLE, Row, Scope, Tx
from .encoding import decode, encode, load_json
from .keeping import Kept, Known
from .naming import Naming
from .records import ANSWERS
from .settling import successor


class Held(NamedTuple):
    """What a checkpoint needs of a record. `lasting`: it does not expire, so it may be kept."""

    id: int
    kind: str
    role: str
    text: str
    framework_id: str | None
    payload: bytes | None
    metadata: Mapping[str, Any]
    lasting: bool


class StoredWrite(NamedTuple):
    """One write of a task as it is stored; `at` is its index among the task's writes."""

    task: str
    path: str
    at: int
    channel: str
    cell: Stored


@dataclass(slots=True)
class Loaded:
    """A checkpoint as it is stored, and the records its references name.

    `lists` has the ids of each sequence in order, None where a record went from a list that keeps
    places; `affected` the sequences that a record went from; `records` those of the records that
    the reader had not; `stands` the records that redaction put in the place of others. `gone` are
    the channels whose value was erased, `lost` those of them that have no earlier one either.
    """

    place: Place
    parent: str | None
    body: Body
    writes: list[StoredWrite]
    lists: dict[int, Sequence[int | None]] = field(default_factory=dict)
    affected: set[int] = field(default_factory=set)
    records: dict[int, Held] = field(default_factory=dict)
    stands: dict[int, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)


_NOTHING: Mapping[str, Any] = MappingProxyType({})
MOST_LISTS = 256  # expanded sequences that are kept
Have = Callable[[int], Container[int]]


class Lists:
    """Sequences that were expanded before, in one generation of the workspace. Thread-safe."""

    def __init__(self) -> None:
        self._generation = -1
        self._known: dict[int, tuple[Sequence[int | None], bool]] = {}
        self._guard = threading.Lock()

    def get(self, generation: int, sequence: int) -> tuple[Sequence[int | None], bool] | None:
        """Return what a sequence holds and whether a record went from it, if that is kept."""
        with self._guard:
            return self._known.get(sequence) if generation == self._generation else None

    def note(
        self, generation: int, sequence: int, ids: Sequence[int | None], *, affected: bool = False
    ) -> None:
        """Keep what a sequence holds, in the place of the oldest one; other generations go."""
        with self._guard:
            if generation != self._generation:
                self._generation = generation
                self._known.clear()
            self._known[sequence] = (ids, affected)
            while len(self._known) > MOST_LISTS:
                self._known.pop(next(iter(self._known)))


@dataclass(slots=True)
class Reading:
    """One snapshot in which checkpoints are read."""

    tx: Tx
    scope: Scope
    naming: Naming
    generation: int
    head: int
    at: int
    kept: Kept
    lists: Lists
    have: Container[int]

    def newest(self, thread: str, ns: str) -> bytes | None:
        """Return the id of the newest checkpoint of a line, or None."""
        line = self.naming.find_line((thread, ns))
        row = None
        if line is not None:
            row = self.tx.one(
                "select cid from checkpoint where ws = :ws and line = :line "
                "order by cid desc limit 1",
                ws=self.scope.ws,
                line=line,
            )
        return None if row is None else bytes(row[0])

    def load(self, thread: str, ns: str, cid: bytes, *, writes: bool = True) -> Loaded | None:
        """Return a checkpoint with what it refers to, or None when it is not there."""
        line = self.naming.find_line((thread, ns))
        known = None if line is None else self.row(line, cid)
        if line is None or known is None:
            return None
        place = Place(thread, ns, unpack_id(cid))
        parent = None if known.parent is None else unpack_id(known.parent)
        found = Loaded(place, parent, known.body, self._writes(line, cid) if writes else [])
        self._resolve(found, known)
        self.kept.put(line, cid, Known(line, known.body, known.parent, known.generation))
        return found

    def row(self, line: int, cid: bytes) -> Known | None:
        """Return a checkpoint's row."""
        known = self.kept.get(line, cid)
        if known is not None and known.generation == self.generation:
            return known
        row = self.tx.one(
            "select body, parent from checkpoint where ws = :ws and line = :line and cid = :cid",
            ws=self.scope.ws,
            line=line,
            cid=cid,
        )
        if row is None:
            return None
        parent = None if row[1] is None else bytes(row[1])
        return Known(line, load_body(row[0], self.naming.name), parent, -1)

    def _writes(self, line: int, cid: bytes) -> list[StoredWrite]:
        rows = self.tx.all(
            "select task, path, body from task_write "
            "where ws = :ws and line = :line and cid = :cid",
            ws=self.scope.ws,
            line=line,
            cid=cid,
        )
        return [
            StoredWrite(unpack_id(task), decode(path), index, self.naming.name(label), cell)
            for task, path, body in rows
            for index, label, cell in json.loads(body)
        ]

    # what the references name

    def _resolve(self, found: Loaded, known: Known) -> None:
        self.collect(
            found,
            [
                *(one for cell in found.body.cells.values() for one in cells.refers(cell)),
                *(one for write in found.writes for one in cells.refers(write.cell)),
                found.body.settings,
            ],
        )
        found.gone = {name for name, cell in found.body.cells.items() if self._is_gone(found, cell)}
        if found.gone:
            found.body = self._with_earlier(found, known)

    def collect(self, found: Loaded, refs: Iterable[int]) -> None:
        """Read the sequences and records that are named, and the records that those refer to."""
        wanted: set[int] = set()
        for ref in set(refs):
            if ref > 0:
                wanted.add(ref)
            elif ref < 0:
                wanted.update(one for one in self._list(found, ref) if one is not None)
        while wanted:
            inner = self._records(found, wanted)
            wanted = inner - found.records.keys()

    def _list(self, found: Loaded, sequence: int) -> Sequence[int | None]:
        held = self.lists.get(self.generation, sequence)
        if held is None:
            held = expand(self.tx, self.scope.ws, sequence)
            self.lists.note(self.generation, sequence, held[0], affected=held[1])
        found.lists[sequence] = held[0]
        if held[1]:
            found.affected.add(sequence)
        return held[0]

    def _records(self, found: Loaded, ids: set[int]) -> set[int]:
        """Read the records into `found`; return the further ones they refer to."""
        missing = [one for one in ids if one not in self.have]
        if not missing:
            return set()
        rows = read(self.tx, self.scope.ws, missing, self.at)
        found.records.update({row.id: row for row in rows})
        inner = {one for row in rows for one in row.metadata.get("refs", ()) if one}
        if len(rows) < len(missing):
            inner |= self._stand_ins(found, set(missing) - {row.id for row in rows})
        return {one for one in inner if one not in self.have}

    def _stand_ins(self, found: Loaded, missing: set[int]) -> set[int]:
        for one in missing:
            new = successor(self.tx, self.scope.ws, one)
            if new is not None:
                found.stands[one] = new
        return {found.stands[one] for one in missing if one in found.stands}

    def _is_gone(self, found: Loaded, cell: Stored) -> bool:
        return isinstance(cell, int) and cell >= 0 and not self._there(found, cell)

    def _there(self, found: Loaded, id_: int) -> bool:
        return id_ in found.records or id_ in self.have or id_ in found.stands

    def _with_earlier(self, found: Loaded, known: Known) -> Body:
        """Return the body with the last surviving earlier value of each channel, or without it."""
        body = found.body
        changed = dict(body.cells)
        left = set(found.gone)
        at = known.parent
        while at is not None and left:
            row = self.row(known.line, at)
            if row is None:
                break
            for name in sorted(left):
                cell = row.body.cells.get(name)
                if cell is None or cell == body.cells[name]:
                    continue
                self.collect(found, cells.refers(cell))
                if not self._is_gone(found, cell):
                    changed[name] = cell
                    left.discard(name)
            at = row.parent
        for name in left:
            del changed[name]
        found.lost = left
        return Body(
            body.v, body.ts, body.versions, changed, body.seen, body.updated, body.metadata,
            body.settings, body.tainted, body.others,
        )  # fmt: skip


def open_reading(
    tx: Tx, scope: Scope, naming: Callable[[int], Naming], at: int, kept: Kept, lists: Lists,
    have: Have,
) -> Reading:  # fmt: skip
    """Begin to read in one snapshot; `have(generation)` are the records that the reader still has."""
    row = tx.one("select generation from workspace where ws = :ws", ws=scope.ws)
    generation = 0 if row is None else int(row[0])
    head = ledger.head(tx, scope.ws)[0]
    return Reading(
        tx, scope, naming(generation), generation, head, at, kept, lists, have(generation)
    )


def read(tx: Tx, ws: int, ids: Iterable[int], at: int) -> list[Held]:
    """Return the usable ones of the records."""
    rows = tx.all(
        "select id, kind, role, text, fid, payload, metadata, retention_until from record "
        f"where ws = :ws and id in :ids and {USABLE}",
        ws=ws,
        ids=list(ids),
        at=at,
    )
    return held(rows)


def held(rows: Iterable[Row]) -> list[Held]:
    """Return rows of id, kind, role, text, fid, payload, metadata and retention_until as values."""
    return [
        # Written out: a long thread has thousands of rows, and most need no decoding.
        Held(
            id_,
            kind,
            role if role.isascii() else decode(role),
            text if text.isascii() else decode(text),
            fid if fid is None or fid.isascii() else decode(fid),
            payload if payload is None or type(payload) is bytes else bytes(payload),
            load_json(metadata) if metadata is not None else _NOTHING,
            until is None,
        )
        for id_, kind, role, text, fid, payload, metadata, until in rows
    ]


def expand(tx: Tx, ws: int, sequence: int) -> tuple[list[int | None], bool]:
    """Return the records of a sequence in order, and whether any went from it.

    Where one went from the sequence itself, None keeps its place; a base leaves no gap.
    """
    row = tx.one(
        "select length, dead_at from sequence where ws = :ws and id = :id", ws=ws, id=sequence
    )
    if row is None:
        return [], True
    if row[1] is None:
        living: list[int | None] = list(provenance.expand(tx, ws, sequence))
        # What was gone before the sequence was stored left a gap in one that is alive.
        if len(living) == row[0]:
            return living, False
    held = dict(_own(tx, ws, sequence))
    if 0 in held:
        return list(provenance.expand(tx, ws, sequence)), True
    return [held.get(pos) for pos in range(1, row[0] + 1)], True


def _own(tx: Tx, ws: int, sequence: int) -> list[tuple[int, int]]:
    rows = tx.all(
        "select pos, parent from edge where ws = :ws and child = :id",
        ws=ws,
        id=sequence,
    )
    return [(row[0], row[1]) for row in rows]


def erased_calls(tx: Tx, scope: Scope, thread: str, calls: Collection[str], at: int) -> set[str]:
    """Return those of a thread's tool calls whose result was erased, or may not be used `at` a time."""
    unused = _unused_answers(tx, scope.ws, thread, at) if calls else set()
    return unused.intersection(calls) | {
        call
        for call in calls
        if tx.one(
            "select 1 from tombstone where ws = :ws and call_digest = :digest",
            ws=scope.ws,
            digest=storing.call_digest(scope, thread, call),
        )
    }


def _unused_answers(tx: Tx, ws: int, thread: str, at: int) -> set[str]:
    """Return the calls of a thread that are answered by what is suppressed, on hold, or the like."""
    rows = tx.all(
        # As the index on what is not in use is made: there are few.
        "select metadata from record where ws = :ws and (status <> 0 or retention_until is not null) "
        f"and not ({USABLE}) and thread = :thread and kind = 'tool'",
        ws=ws,
        thread=encode(thread),
        at=at,
    )
    return {str(load_json(row[0]).get(ANSWERS)) for row in rows}


def packed(cid: str) -> bytes:
    """Return a checkpoint's id as it is stored."""
    return pack_id(cid)
