"""Deleting and thinning out threads of checkpoints, and refusing what comes too late.

Rows of records go through the one choke point, `forget`. A deleted thread leaves a keyed digest, so
that a run that was under way then cannot bring it back: it is known by a parent that is not there,
or by a time-ordered id from before.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import cells, forget, planning, restoring
from .bodies import Body, load_body, pack_id
from .cells import Place
from .checkpointing import COUNTERS, Writing
from .database import Scope, Tx
from .encoding import decode, encode
from .engine import Options
from .naming import Line
from .plan import Plan, Spared, depth, digest_of
from .reading import several
from .receipts import Receipt
from .restoring import Reading
from .selectors import Look, Selector
from .settling import bury

_GREGORIAN = 0x01B21DD213814000  # 100-nanosecond steps from 1582 to 1970


@dataclass(frozen=True, slots=True)
class Work:
    """A write that discards, with what a forget inside it needs."""

    writing: Writing
    out_of_reach: tuple[str, ...]
    options: Options

    @property
    def tx(self) -> Tx:
        """The transaction."""
        return self.writing.tx

    @property
    def scope(self) -> Scope:
        """The workspace."""
        return self.writing.scope

    @property
    def at(self) -> int:
        """Now, in microseconds."""
        return self.writing.desk.at


# late writes


def is_late(
    writing: Writing, place: Place, parent: str | None, metadata: Mapping[str, Any]
) -> bool:
    """Whether a checkpoint is of a run that was under way when its thread was deleted."""
    ended = _ended(writing, place.thread)
    if ended is None:
        return False
    if parent is not None and not _stored(writing, place.thread, place.ns, parent):
        return True
    above = metadata.get("parents")
    for ns, cid in above.items() if isinstance(above, Mapping) else ():
        if ns != place.ns and not _stored(writing, place.thread, str(ns), str(cid)):
            return True
    return parent is None and _made_at(place.cid) <= ended


def is_late_write(writing: Writing, place: Place) -> bool:
    """Whether a task's write belongs to a checkpoint that a deleted thread does not have."""
    if _ended(writing, place.thread) is None:
        return False
    return not _stored(writing, place.thread, place.ns, place.cid)


def _ended(writing: Writing, thread: str) -> int | None:
    # Deleting a thread moves the generation, so in the first one there is nothing to look for.
    return ended_at(writing.tx, writing.scope, thread) if writing.generation else None


def ended_at(tx: Tx, scope: Scope, thread: str) -> int | None:
    """Return when the thread was last deleted, in microseconds, or None."""
    row = tx.one(
        "select at from ended where ws = :ws and digest = :digest",
        ws=scope.ws,
        digest=_thread_digest(scope, thread),
    )
    return None if row is None else int(row[0])


def _thread_digest(scope: Scope, thread: str) -> bytes:
    named = b"thread:" + thread.encode("utf-8", "surrogatepass")
    return hmac.digest(scope.secret, named, hashlib.sha256)[:16]


def _stored(writing: Writing, thread: str, ns: str, cid: str) -> bool:
    return writing.row(writing.naming.find_line((thread, ns)), cid) is not None


def _made_at(cid: str) -> int:
    """Return the microseconds that a time-ordered id (RFC 9562, version 6) holds; 0 for any other."""
    try:
        made = uuid.UUID(cid)
    except ValueError:
        return 0
    if made.version != 6:
        return 0
    high, low = made.int >> 80, (made.int >> 64) & 0xFFF
    return ((high << 12 | low) - _GREGORIAN) // 10


# deleting


def delete_thread(work: Work, thread: str) -> Receipt | None:
    """Delete a thread with all its records, and refuse what a running graph still writes to it."""
    tx, scope = work.tx, work.scope
    forget.lock(tx, scope.ws)
    lines = [line for line, _ in work.writing.naming.lines(thread)]
    held = refs(work, [at for line in lines for at in addresses_of(work, line)])
    _release(work, {one for one in held if one < 0})
    for line in lines:
        for table in ("checkpoint", "task_write"):
            tx.run(f"delete from {table} where ws = :ws and line = :line", ws=scope.ws, line=line)
        tx.run("delete from line where ws = :ws and id = :line", ws=scope.ws, line=line)
    receipt = _erase(work, Selector(thread=thread))
    if lines or receipt is not None:
        end(tx, scope, thread, work.at)
    return receipt


def end(tx: Tx, scope: Scope, thread: str, at: int) -> None:
    """Refuse from now on what a run that is under way writes to the thread."""
    last = ended_at(tx, scope, thread) or 0
    digest = _thread_digest(scope, thread)
    tx.run("delete from ended where ws = :ws and digest = :digest", ws=scope.ws, digest=digest)
    bury(tx, scope.ws, digest, max(at, last + 1))


def _erase(work: Work, selector: Selector) -> Receipt | None:
    """Erase exactly what a selector names: what was made of it stays, tied to what survives."""
    look = Look(work.options.region, work.at)
    plan = planning.make(
        work.tx, work.scope, selector, look, reach=depth(0), suspects=False, shown=False
    )
    if not plan:
        return None
    plan = _only_matches(plan)
    options = work.options
    terms = forget.Terms(
        look, options.repeat_for, work.out_of_reach, providers=options.providers, alone=True
    )
    return forget.carry_out(work.tx, work.scope, plan, terms)


def _only_matches(plan: Plan) -> Plan:
    spared = (*plan.spared, *(planning.spared_copy(one.id) for one in plan.dependents))
    spared += tuple(Spared(one.id, one.why) for one in plan.held if one.match is None)
    held = tuple(one for one in plan.held if one.match is not None)
    alone = replace(
        plan, dependents=(), spared=tuple(sorted(spared, key=lambda one: one.id)), held=held
    )
    said = digest_of(plan.workspace, plan.mode, plan.reach, alone.matches, alone.ids)
    return replace(alone, digest=said)


def delete_runs(work: Work, runs: Sequence[str]) -> None:
    """Delete the checkpoints of runs, and the records that no other checkpoint holds."""
    rows = [
        row
        for run in runs
        for row in work.tx.all(
            "select line, cid from checkpoint where ws = :ws and run = :run",
            ws=work.scope.ws,
            run=encode(run),
        )
    ]
    _drop(work, [(row[0], bytes(row[1])) for row in rows], only_state=False)


def keep_newest(work: Work, threads: Sequence[str]) -> None:
    """Delete all but the newest checkpoint of each line, and the state that only those held.

    A channel that is kept as writes needs its ancestors up to its last stored value: they stay.
    """
    doomed: list[tuple[int, bytes]] = []
    for thread in threads:
        for line, _ in work.writing.naming.lines(thread):
            kept = set(_needed(work, line))
            doomed += [(line, cid) for _, cid in addresses_of(work, line) if cid not in kept]
    _drop(work, doomed, only_state=True)


def _needed(work: Work, line: int) -> Iterator[bytes]:
    """Yield the newest checkpoint of a line, and the ancestors whose writes it is read from."""
    at = max((cid for _, cid in addresses_of(work, line)), default=None)
    left: set[str] | None = None
    while at is not None:
        row = _row(work, line, at)
        if row is None:
            return
        yield at
        body, parent = row
        if left is None:
            counted = body.metadata.get(COUNTERS)
            left = set(counted) if isinstance(counted, Mapping) else set()
        left -= body.cells.keys()
        at = parent if left else None


def addresses_of(work: Work, line: int) -> list[tuple[int, bytes]]:
    """Return (line, id) of every checkpoint of a line."""
    rows = work.tx.all(
        "select cid from checkpoint where ws = :ws and line = :line", ws=work.scope.ws, line=line
    )
    return [(line, bytes(row[0])) for row in rows]


def _row(work: Work, line: int, cid: bytes) -> tuple[Body, bytes | None] | None:
    row = work.tx.one(
        "select body, parent from checkpoint where ws = :ws and line = :line and cid = :cid",
        ws=work.scope.ws,
        line=line,
        cid=cid,
    )
    if row is None:
        return None
    return load_body(row[0], work.writing.naming.name), None if row[1] is None else bytes(row[1])


def _drop(work: Work, doomed: Sequence[tuple[int, bytes]], *, only_state: bool) -> None:
    if not doomed:
        return
    tx, ws = work.tx, work.scope.ws
    forget.lock(tx, ws)
    held = refs(work, doomed)
    for line, cid in doomed:
        key = {"ws": ws, "line": line, "cid": cid}
        tx.run("delete from checkpoint where ws = :ws and line = :line and cid = :cid", **key)
        tx.run("delete from task_write where ws = :ws and line = :line and cid = :cid", **key)
    threads = _threads_of(work, {line for line, _ in doomed})
    left = [at for thread in threads for line, _ in work.writing.naming.lines(thread)
            for at in addresses_of(work, line)]  # fmt: skip
    kept = refs(work, left)
    _release(work, {one for one in held - kept if one < 0})
    loose = records(work, held) - records(work, kept)
    kinds = several(tx, work.scope, sorted(loose), None)
    ids = [one for one, record in kinds.items() if not only_state or record.kind == "state"]
    if ids:
        _erase(work, Selector(ids=tuple(sorted(ids))))


def _threads_of(work: Work, lines: Collection[int]) -> list[str]:
    rows = work.tx.all(
        "select distinct thread from line where ws = :ws and id in :lines",
        ws=work.scope.ws,
        lines=sorted(lines),
    )
    return [decode(row[0]) for row in rows]


def refs(work: Work, addresses: Iterable[tuple[int, bytes]]) -> set[int]:
    """Return every record and sequence that checkpoints and their writes refer to."""
    found: set[int] = set()
    for line, cid in addresses:
        row = _row(work, line, cid)
        if row is not None:
            found.update(row[0].refers())
        for body in work.writing.writes(line, cid):
            for _, _, cell in json.loads(body):
                found.update(cells.refers(cell))
    return found


def records(work: Work, refs: Iterable[int]) -> set[int]:
    """Return the records of the references: those of sequences, and what states refer to."""
    found = {one for one in refs if one > 0}
    for sequence in (one for one in refs if one < 0):
        ids, _ = restoring.expand(work.tx, work.scope.ws, sequence)
        found.update(one for one in ids if one is not None)
    inner = several(work.tx, work.scope, sorted(found), None)
    for record in inner.values():
        found.update(one for one in record.metadata.get("refs", ()) if one)
    return found


def _release(work: Work, lists: Collection[int]) -> None:
    """Let go of sequences that are no longer the value of a channel; dead ones lose their edges."""
    if not lists:
        return
    tx, ws, ids = work.tx, work.scope.ws, sorted(lists)
    tx.run("update sequence set listed = 0 where ws = :ws and id in :ids", ws=ws, ids=ids)
    tx.run(
        "delete from edge where ws = :ws and child in "
        "(select id from sequence where ws = :ws and id in :ids and dead_at is not null)",
        ws=ws,
        ids=ids,
    )


# finding


def threads(reading: Reading) -> list[str]:
    """Return the threads that have a line, by name."""
    rows = reading.tx.all(
        "select distinct thread from line where ws = :ws order by thread", ws=reading.scope.ws
    )
    return [decode(row[0]) for row in rows]


def addresses(
    reading: Reading,
    thread: str | None,
    ns: str | None,
    before: str | None,
    after: tuple[str, str, str] | None,
    limit: int,
) -> list[tuple[str, str, bytes]]:
    """Return (thread, namespace, id) of checkpoints, newest first, from after the one given."""
    lines = _lines(reading, thread, ns)
    last = None if after is None else (pack_id(after[2]), reading.naming.find_line(after[:2]) or 0)
    rows = reading.tx.all(
        "select line, cid from checkpoint where ws = :ws and line in :lines "
        "and (cast(:before as bytea) is null or cid < :before) "
        "and (cast(:cid as bytea) is null or cid < :cid or (cid = :cid and line < :line)) "
        "order by cid desc, line desc limit :limit",
        ws=reading.scope.ws,
        lines=sorted(lines),
        before=None if before is None else pack_id(before),
        cid=None if last is None else last[0],
        line=0 if last is None else last[1],
        limit=limit,
    )
    return [(*lines[row[0]], bytes(row[1])) for row in rows]


def _lines(reading: Reading, thread: str | None, ns: str | None) -> dict[int, Line]:
    rows = reading.tx.all(
        "select id, thread, ns from line where ws = :ws "
        "and (cast(:thread as text) is null or thread = :thread) "
        "and (cast(:ns as text) is null or ns = :ns)",
        ws=reading.scope.ws,
        thread=None if thread is None else encode(thread),
        ns=None if ns is None else encode(ns),
    )
    return {row[0]: (decode(row[1]), decode(row[2])) for row in rows}
