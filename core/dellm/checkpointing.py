"""Writing checkpoints and the writes of their tasks, in the caller's transaction.

A checkpoint's values become records and sequences, its row holds only references to them. What a
run still had in its memory after it was erased is left out, and the checkpoint is marked, so that
nothing made from it is stored either.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import cells, sequences
from .bodies import Body, compact, dump_body, load_body, pack_id
from .cells import Atom, Cell, Fields, Literal, Many, Place, Stored, Wrapped
from .checkpoint_drafts import Checkpoint, TaskWrite
from .database import Scope, Tx
from .desk import Desk
from .encoding import encode, load_json
from .keeping import Kept, Known
from .naming import Naming
from .reading import all_of_thread
from .settling import Made, Settling, usable
from .standins import stand_ins

COUNTERS = "counters_since_delta_snapshot"  # metadata that names channels kept as writes only


@dataclass(slots=True)
class Writing:
    """One write of checkpoints: its transaction, numbers and names. `done` holds what to keep."""

    tx: Tx
    scope: Scope
    naming: Naming
    generation: int
    desk: Desk
    kept: Kept
    done: list[tuple[int, bytes, Known]] = field(default_factory=list)
    inexact: int = 0

    # reading what is there

    def row(self, line: int | None, cid: str | None) -> Known | None:
        """Return a checkpoint's row, from memory or the database; None when it is not there."""
        if line is None or cid is None:
            return None
        key = pack_id(cid)
        known = self.kept.get(line, key)
        if known is not None and known.generation == self.generation:
            return known
        row = self.tx.one(
            "select body, parent from checkpoint where ws = :ws and line = :line and cid = :cid",
            ws=self.scope.ws,
            line=line,
            cid=key,
        )
        if row is None:
            return None
        # Of no generation: whether all it refers to was there when its reader saw it is not known.
        generation = known.generation if known is not None else -1
        return Known(line, load_body(row[0], self.naming.name), row[1], generation)

    def read(
        self,
        place: Place,
        channels: frozenset[str] | None,
        since: int | None,
        heard: frozenset[str] = frozenset(),
    ) -> Made:
        """Return what the checkpoint holds that a task read; see settling.Places."""
        line = self.naming.find_line((place.thread, place.ns))
        known = self.row(line, place.cid)
        if known is None:
            return Made(all_of_thread(self.tx, self.scope.ws, place.thread), tainted=False)
        if since is None and known.body.tainted:
            return Made((), tainted=True)
        nodes = list(self._nodes(known, channels))
        if heard:
            answers = {self.naming.label(name) for name in heard}
            nodes += self._pending(known.line, pack_id(place.cid), answers)
        nodes += self._inside(nodes)
        if known.generation == self.generation:
            if heard or known.body.metadata.get(COUNTERS):
                # What was written before may have gone before: the reader has not seen it.
                there = usable(self.tx, self.scope.ws, (one for one in nodes if one > 0))
                nodes = [one for one in nodes if one < 0 or one in there]
            return Made([*nodes, *self._instead(known, channels, ())], tainted=False)
        gone, late = self.gone(nodes, since)
        left = [one for one in nodes if one not in gone]
        return Made([*left, *self._instead(known, channels, gone)], tainted=late)

    def _inside(self, nodes: Iterable[int]) -> list[int]:
        """Return the messages that stand inside states, which a task read with them."""
        rows = self.tx.all(
            "select metadata from record where ws = :ws and id in :ids and kind = 'state' "
            "and metadata is not null",
            ws=self.scope.ws,
            ids=sorted({one for one in nodes if one > 0}),
        )
        return [one for row in rows for one in load_json(row[0]).get("refs", ()) if one]

    def _instead(
        self, known: Known, channels: frozenset[str] | None, gone: Collection[int]
    ) -> Iterator[int]:
        """Yield what a reader of the checkpoint gets where a value is gone."""
        if not gone and 0 not in known.body.cells.values():
            return
        found = stand_ins(self.tx, self.scope, self.naming, known, gone)
        for name, cell in found.items():
            if channels is None or name in channels:
                yield from cells.refers(cell)

    def _nodes(self, known: Known, channels: frozenset[str] | None) -> Iterator[int]:
        for name, cell in known.body.cells.items():
            if channels is None or name in channels:
                yield from cells.refers(cell)
        counted = known.body.metadata.get(COUNTERS)
        for name in counted if isinstance(counted, Mapping) else ():
            if name not in known.body.cells and (channels is None or name in channels):
                yield from self._written(known, str(name))

    def _written(self, known: Known, channel: str) -> Iterator[int]:
        """Yield what tasks wrote to a channel up to its last stored value, along the parents."""
        label = self.naming.label(channel)
        at = known.parent
        while at is not None:
            yield from self._pending(known.line, at, {label})
            row = self.tx.one(
                "select body, parent from checkpoint where ws = :ws and line = :line and cid = :cid",
                ws=self.scope.ws,
                line=known.line,
                cid=at,
            )
            if row is None:
                return
            stored = load_body(row[0], self.naming.name).cells.get(channel)
            if stored is not None:
                yield from cells.refers(stored)
                return
            at = row[1]

    def _pending(self, line: int, cid: bytes, labels: set[int]) -> Iterator[int]:
        """Yield what tasks wrote to channels at a checkpoint."""
        for body in self.writes(line, cid):
            for _, name, cell in json.loads(body):
                if name in labels:
                    yield from cells.refers(cell)

    def _after(self, parent: Known, cid: str) -> Iterator[int]:
        """Yield all that tasks wrote at a checkpoint, which its successor was made from."""
        for body in self.writes(parent.line, pack_id(cid)):
            for _, _, cell in json.loads(body):
                yield from cells.refers(cell)

    def writes(self, line: int, cid: bytes) -> list[str]:
        """Return the stored writes of a checkpoint's tasks."""
        rows = self.tx.all(
            "select body from task_write where ws = :ws and line = :line and cid = :cid",
            ws=self.scope.ws,
            line=line,
            cid=cid,
        )
        return [row[0] for row in rows]

    def gone(self, nodes: Iterable[int], since: int | None) -> tuple[set[int], bool]:
        """Return the nodes that are no more, and whether any went after ledger entry `since`.

        A sequence is no more once a record of it went: its survivors are read through it, but
        nothing is built on it.
        """
        records = {one for one in nodes if one > 0}
        lists = {one for one in nodes if one < 0}
        missing = records - usable(self.tx, self.scope.ws, records)
        dead = self._dead(lists)
        if not missing and not dead:
            return set(), False
        if since is None:
            return missing | dead.keys(), True
        late = any(by > since for by in dead.values()) or self._erased_after(missing, since)
        # A dead sequence still names its survivors, so it stays a parent.
        return missing, late

    def _dead(self, lists: set[int]) -> dict[int, int]:
        if not lists:
            return {}
        rows = self.tx.all(
            "select id, coalesce(dead_by, 0) from sequence where ws = :ws and id in :ids "
            "and dead_at is not null",
            ws=self.scope.ws,
            ids=sorted(lists),
        )
        return {row[0]: row[1] for row in rows}

    def _erased_after(self, missing: set[int], since: int) -> bool:
        if not missing:
            return False
        rows = self.tx.all(
            "select id, receipt from tombstone where ws = :ws and id in :ids",
            ws=self.scope.ws,
            ids=sorted(missing),
        )
        receipts = {row[0]: row[1] for row in rows}
        # A suppressed record has no tombstone: when it went cannot be told, so it counts as late.
        return any(receipts.get(one, since + 1) > since for one in missing)

    # writing

    def put(self, new: Checkpoint) -> None:
        """Store a checkpoint; a repeated one takes the place of the first."""
        place = new.place
        line = self.naming.line((place.thread, place.ns), -self.desk.take())
        parent = self.row(line, new.parent)
        copied, tainted = self._copied(new, parent)
        made = {name: new.cell(name) for name in new.values if name not in copied}
        new.ready()
        settling = Settling(self.desk, self)
        self._settle(settling, made.values(), new.settings)
        body = new.body
        body.cells = {
            **copied,
            **{name: self._stored(settling, cell) for name, cell in made.items()},
        }
        body.settings = (new.settings.id or 0) if new.settings is not None else 0
        body.tainted = tainted or settling.refused
        self._write(line, new, body)

    def _copied(self, new: Checkpoint, parent: Known | None) -> tuple[dict[str, Stored], bool]:
        """Return the cells that the checkpoint shares with its parent, and whether it is tainted."""
        if parent is None or new.parent is None:
            return {}, False
        body = parent.body
        same = {
            name: cell
            for name, cell in body.cells.items()
            if name in new.unchanged and body.versions.get(name) == new.body.versions.get(name)
        }
        # What a task wrote to a channel kept as writes only is in no cell, whoever still has it.
        tainted = new.since is None and (body.tainted or self.kept.refused(parent.line, new.parent))
        if parent.generation == self.generation:
            return same, tainted
        gone, late = self.gone(
            [*self._nodes(parent, None), *self._after(parent, new.parent)], new.since
        )
        stale = gone | self._dead({one for one in _all(same) if one < 0}).keys()
        clean = {name: cell for name, cell in same.items() if stale.isdisjoint(cells.refers(cell))}
        if len(clean) < len(same):
            instead = stand_ins(self.tx, self.scope, self.naming, parent, gone)
            clean |= {
                name: cell
                for name, cell in instead.items()
                if name in same.keys() - new.rebuilt and isinstance(cell, int) and cell > 0
            }
        return clean, tainted or late

    def _settle(
        self, settling: Settling, made: Iterable[Cell], settings: Atom | None = None
    ) -> None:
        listed = list(made)
        for cell in listed:
            settling.check(_known(cell))
        found = [one for cell in listed for one in cells.atoms(cell)]
        settling.settle(found)
        self.inexact += settling.inexact
        if settings is not None:
            # Erased settings say nothing of what the run has in its memory.
            before = settling.refused
            settling.settle([settings])
            settling.refused = before

    def _stored(self, settling: Settling, cell: Cell, *, inline: bool = False) -> Stored:
        """Return a cell's JSON; lists become sequences unless `inline`."""
        if isinstance(cell, Atom):
            return cell.id or 0
        if isinstance(cell, Literal):
            return [cells.LITERAL, cell.value]
        if isinstance(cell, Wrapped):
            return [cells.WRAPPED, cell.label, self._stored(settling, cell.cell, inline=inline)]
        if isinstance(cell, Fields):
            inner = {
                name: self._stored(settling, one, inline=True) for name, one in cell.cells.items()
            }
            return [cells.NAMED, inner]
        return self._list(settling, cell, inline=inline)

    def _list(self, settling: Settling, many: Many, *, inline: bool) -> Stored:
        added = [one.id for one in many.atoms]
        kind = cells.PLACED if many.kept else cells.TUPLED if many.tupled else cells.LISTED
        if many.kept:
            places = [*settling.placed(many.known), *added]
            if inline:
                return [kind, [one or 0 for one in places]]
            return [
                kind,
                sequences.placed(self.tx, self.scope, places, self.desk.thread, self.desk.take()),
            ]
        ids = [*settling.living(many.known), *(one for one in added if one is not None)]
        if inline or not ids:
            return [kind, ids]
        sequence, tip = sequences.listed(
            self.tx,
            self.scope,
            ids,
            self.desk.thread,
            self.desk.take(),
            self.desk.tips,
            self.generation,
        )
        self.desk.noted.append(tip)
        return sequence if kind == cells.LISTED else [kind, sequence]

    def _write(self, line: int, new: Checkpoint, body: Body) -> None:
        cid = pack_id(new.place.cid)
        parent = None if new.parent is None else pack_id(new.parent)
        self.tx.later(
            "insert into checkpoint(ws, line, cid, parent, run, body) "
            "values (:ws, :line, :cid, :parent, :run, :body) "
            "on conflict (ws, line, cid) do update set parent = excluded.parent, "
            "run = excluded.run, body = excluded.body",
            ws=self.scope.ws,
            line=line,
            cid=cid,
            parent=parent,
            run=None if new.run is None else encode(new.run),
            body=dump_body(body, self.naming.label),
        )
        self.done.append((line, cid, Known(line, body, parent, self.generation)))

    def put_writes(self, place: Place, task: str, path: str, new: Sequence[TaskWrite]) -> None:
        """Store what a task wrote, keeping what it wrote before unless an index is negative."""
        line = self.naming.line((place.thread, place.ns), -self.desk.take())
        settling = Settling(self.desk, self)
        self._settle(settling, [one.cell for one in new])
        key = {"ws": self.scope.ws, "line": line, "cid": pack_id(place.cid), "task": pack_id(task)}
        rows = {
            one.index: [
                one.index,
                self.naming.label(one.channel),
                self._stored(settling, one.cell, inline=True),
            ]
            for one in reversed(new)
        }
        added = self.tx.run(
            "insert into task_write(ws, line, cid, task, path, body) "
            "values (:ws, :line, :cid, :task, :path, :body) "
            "on conflict (ws, line, cid, task) do nothing",
            **key,
            path=encode(path),
            body=_listed(rows),
        )
        if not added:
            self._merge(rows, encode(path), key)
        if settling.refused:
            self.kept.refuse(line, place.cid)

    def _merge(self, rows: Mapping[int, list[Any]], path: str, key: Mapping[str, object]) -> None:
        """Add to what the task wrote before; only special writes take the place of older ones."""
        row = self.tx.one(
            "select body from task_write "
            "where ws = :ws and line = :line and cid = :cid and task = :task",
            **key,
        )
        before = {one[0]: one for one in json.loads(row[0])} if row else {}
        special = {index: one for index, one in rows.items() if index < 0}
        self.tx.later(
            "update task_write set path = :path, body = :body "
            "where ws = :ws and line = :line and cid = :cid and task = :task",
            **key,
            path=path,
            body=_listed({**rows, **before, **special}),
        )


def _listed(rows: Mapping[int, list[Any]]) -> str:
    return compact([rows[index] for index in sorted(rows)])


def _all(same: Mapping[str, Stored]) -> Iterator[int]:
    for cell in same.values():
        yield from cells.refers(cell)


def _known(cell: Cell) -> Sequence[int]:
    if isinstance(cell, Many):
        return cell.known
    if isinstance(cell, Wrapped):
        return _known(cell.cell)
    if isinstance(cell, Fields):
        return [one for inner in cell.cells.values() for one in _known(inner)]
    return ()
