"""Copying a thread of checkpoints: its lines, writes, sequences and records.

Each copied record and its original go together from then on, as all copies do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import cells, discarding, restoring, sequences, storing
from .bodies import dump_body, load_body
from .cells import Stored
from .discarding import Work
from .naming import Line
from .reading import several
from .records import Draft, Record


@dataclass(slots=True)
class _Copy:
    """A thread while it is copied: the new number of each record, line and sequence."""

    work: Work
    target: str
    records: dict[int, int] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)

    def cell(self, stored: Stored) -> Stored:
        """Return the cell with the copies in the place of the originals."""
        if isinstance(stored, int):
            return self.sequence(stored) if stored < 0 else self.records.get(stored, 0)
        kind, what = stored[0], stored[1]
        if kind == cells.LITERAL:
            return stored
        if kind == cells.WRAPPED:
            return [kind, what, self.cell(stored[2])]
        if kind == cells.NAMED:
            return [kind, {name: self.cell(inner) for name, inner in what.items()}]
        if isinstance(what, int):
            return [kind, self.sequence(what)]
        return [kind, [self.records.get(one, 0) for one in what]]

    def sequence(self, old: int) -> int:
        """Return the copy of a sequence; what it shares with others of the thread is shared."""
        if old not in self.sequences:
            work, desk = self.work, self.work.writing.desk
            ids, _ = restoring.expand(work.tx, work.scope.ws, old)
            new = [None if one is None else self.records.get(one) for one in ids]
            if None in new:
                made = sequences.placed(work.tx, work.scope, new, self.target, desk.take())
            else:
                whole = [one for one in new if one is not None]
                made, _ = sequences.listed(
                    work.tx, work.scope, whole, self.target, desk.take(), desk.tips
                )
            self.sequences[old] = made
        return self.sequences[old]


def copy_thread(work: Work, source: str, target: str) -> None:
    """Copy the lines of a thread; each copied record and its original go together from then on."""
    copy = _Copy(work, target)
    lines = work.writing.naming.lines(source)
    addresses = [at for line, _ in lines for at in sorted(discarding.addresses_of(work, line))]
    _copy_records(copy, sorted(discarding.records(work, discarding.refs(work, addresses))))
    for line, ns in lines:
        _copy_line(copy, line, (target, ns))


def _copy_records(copy: _Copy, ids: Sequence[int]) -> None:
    work = copy.work
    found = several(work.tx, work.scope, ids, work.at)
    # What refers to others comes after them.
    ordered = sorted(found.values(), key=lambda one: (bool(one.metadata.get("refs")), one.id))
    for record in ordered:
        draft = storing.with_free_version(work.tx, work.scope, _draft(copy, record))
        made, _ = storing.store(work.tx, work.scope, [draft], work.at, again=True)
        copy.records[record.id] = made[0].id


def _draft(copy: _Copy, record: Record) -> Draft:
    metadata = dict(record.metadata)
    if "refs" in metadata:
        metadata["refs"] = [copy.records.get(one, 0) for one in metadata["refs"]]
    return Draft(
        text=record.text,
        role=record.role,
        thread=copy.target,
        kind=record.kind,
        framework_id=record.framework_id,
        version=record.version,
        payload=record.payload,
        metadata=metadata,
        subject=record.subject,
        purpose=record.purpose,
        sensitivity=record.sensitivity,
        retention_until=record.retention_until,
        created_at=record.created_at,
        model=record.model,
        copy_of=record.id,
    )


def _copy_line(copy: _Copy, line: int, target: Line) -> None:
    work = copy.work
    tx, ws, naming = work.tx, work.scope.ws, work.writing.naming
    new = naming.line(target, -work.writing.desk.take())
    rows = tx.all(
        "select cid, parent, run, body from checkpoint where ws = :ws and line = :line order by cid",
        ws=ws,
        line=line,
    )
    for cid, parent, run, stored in rows:
        body = load_body(stored, naming.name)
        body.cells = {name: copy.cell(cell) for name, cell in body.cells.items()}
        body.settings = copy.records.get(body.settings, 0)
        tx.run(
            "insert into checkpoint(ws, line, cid, parent, run, body) "
            "values (:ws, :line, :cid, :parent, :run, :body) "
            "on conflict (ws, line, cid) do update set body = excluded.body",
            ws=ws, line=new, cid=cid, parent=parent, run=run, body=dump_body(body, naming.label),
        )  # fmt: skip
    writes = tx.all(
        "select cid, task, path, body from task_write where ws = :ws and line = :line",
        ws=ws,
        line=line,
    )
    for cid, task, path, stored in writes:
        copied = [[at, label, copy.cell(cell)] for at, label, cell in json.loads(stored)]
        tx.run(
            "insert into task_write(ws, line, cid, task, path, body) "
            "values (:ws, :line, :cid, :task, :path, :body) "
            "on conflict (ws, line, cid, task) do update set body = excluded.body",
            ws=ws, line=new, cid=cid, task=task, path=path,
            body=json.dumps(copied, separators=(",", ":")),
        )  # fmt: skip
