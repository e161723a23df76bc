"""Erasing: `erase` is the one choke point. Every row that goes, goes through it.

It runs in the write transaction of a forget, after the workspace's row is locked: records, index
terms, vectors, edges, sequences, counters; what stays is tombstones without content.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import cast

from . import (
    concerns,
    exposure_rows,
    fact_rows,
    governed_rows,
    holding,
    item_rows,
    residue,
    storing,
)
from .database import Scope, Tx
from .encoding import decode, load_json
from .plan import Plan
from .records import ANSWERS, HIDDEN, Edge, Status


def erase(tx: Tx, scope: Scope, plan: Plan, receipt: int, at: int) -> dict[str, int]:
    """Remove the plan's records and all that holds or points to them; return rows by table.

    Raises HeldRecord where a hold keeps one of them, whoever made the plan and however.
    """
    ids = list(plan.ids)
    ws = scope.ws
    holding.refuse(tx, ws, ids)
    dead = reached_sequences(ids, plan.edges)
    residue.note(tx, scope, receipt, ids)
    exposure_rows.leave(tx, ws, ids, dead)
    told = fact_rows.told(tx, ws, ids)
    tx.drop_terms(ws, ids)
    gone = tx.all(
        "delete from record where ws = :ws and id in :ids "
        "returning id, tokens, fid, thread, version, kind, metadata, "
        "case when kind = 'document' then text end, status",
        ws=ws,
        ids=ids,
    )
    _bury(tx, scope, receipt, gone, at)
    unlisted = sorted(set(dead) - kept_for_lists(tx, ws, dead, plan.edges))
    rows = {
        "embedding": tx.run("delete from embedding where ws = :ws and id in :ids", ws=ws, ids=ids),
        "record": len(gone),
        "item": item_rows.erase(tx, ws, ids, {one.id for one in plan.matches}, at, receipt),
        "edge": _cut(tx, ws, [*ids, *unlisted]),
        "sequence": kill(tx, ws, dead, at, receipt),
        "fact": fact_rows.erase(tx, ws, ids, {one.id for one in plan.matches}, told),
        "governed": governed_rows.erase(tx, ws, ids),
        "concerns": concerns.erase(tx, ws, ids),
    }
    _unname(tx, ws, {str(row[3]) for row in gone})
    tx.run(
        "update workspace set documents = documents - :found, tokens = tokens - :tokens "
        "where ws = :ws",
        ws=ws,
        found=sum(row[5] not in HIDDEN and row[8] != Status.QUARANTINED for row in gone),
        tokens=sum(row[1] for row in gone),
    )
    return rows


def reached_sequences(going: Iterable[int], edges: Iterable[Edge]) -> list[int]:
    """Return the sequences that hold a record that goes, themselves or through their base."""
    above: dict[int, list[int]] = {}
    for edge in edges:
        if edge.child < 0:
            above.setdefault(edge.parent, []).append(edge.child)
    found: set[int] = set()
    open_nodes = list(going)
    while open_nodes:
        for sequence in above.get(open_nodes.pop(), ()):
            if sequence not in found:
                found.add(sequence)
                open_nodes.append(sequence)
    return sorted(found)


def kept_for_lists(tx: Tx, ws: int, dead: Sequence[int], edges: Iterable[Edge]) -> set[int]:
    """Return the dead sequences that are the value of a channel, and the bases these stand on.

    Their surviving records are still read by checkpoints, so only the edges of what goes are cut.
    """
    if not dead:
        return set()
    listed = tx.all(
        "select id from sequence where ws = :ws and id in :dead and listed = 1",
        ws=ws,
        dead=list(dead),
    )
    base = {edge.child: edge.parent for edge in edges if edge.child < 0 and edge.parent < 0}
    kept: set[int] = set()
    for (one,) in listed:
        at: int | None = one
        while at is not None and at not in kept:
            kept.add(at)
            at = base.get(at)
    return kept


def kill(tx: Tx, ws: int, dead: Sequence[int], at: int, receipt: int) -> int:
    """Have no sequence of the dead extended any more; return how many were still alive."""
    if not dead:
        return 0
    return tx.run(
        "update sequence set dead_at = :at, dead_by = :receipt, thread = '' "
        "where ws = :ws and id in :dead and (dead_at is null or listed = 1)",
        ws=ws,
        dead=list(dead),
        receipt=receipt,
        at=at,
    )


def _unname(tx: Tx, ws: int, threads: Collection[str]) -> None:
    """Take the names of threads that have no record left off the sequences that are still in use."""
    tx.many(
        "update sequence set thread = '' where ws = :ws and thread = :thread and dead_at is null "
        "and not exists (select 1 from record where ws = :ws and thread = :thread)",
        [{"ws": ws, "thread": thread} for thread in sorted(threads) if thread],
    )


def _cut(tx: Tx, ws: int, nodes: list[int]) -> int:
    into = tx.run("delete from edge where ws = :ws and child in :nodes", ws=ws, nodes=nodes)
    out = tx.run("delete from edge where ws = :ws and parent in :nodes", ws=ws, nodes=nodes)
    return into + out


def _bury(tx: Tx, scope: Scope, receipt: int, gone: Sequence[tuple[object, ...]], at: int) -> None:
    """Leave a tombstone for each record: its id and when; for a framework's object a keyed digest."""
    tx.many(
        "insert into tombstone(ws, id, receipt, erased_at) values (:ws, :id, :receipt, :at)",
        [{"ws": scope.ws, "id": row[0], "receipt": receipt, "at": at} for row in gone],
    )
    tx.many(
        "update tombstone set fid_digest = :digest where ws = :ws and id = :id",
        [
            {
                "ws": scope.ws,
                "id": id_,
                "digest": storing.fid_digest(
                    scope, decode(str(thread)), decode(str(fid)), int(str(version))
                ),
            }
            for id_, _, fid, thread, version, *_ in gone
            if fid is not None
        ],
    )
    answers = [
        (row[0], str(row[3]), load_json(cast("str | None", row[6])).get(ANSWERS))
        for row in gone
        if row[5] == "tool"
    ]
    answers += [
        (row[0], "", storing.said(decode(str(row[7])))) for row in gone if row[7] is not None
    ]
    tx.many(
        "update tombstone set call_digest = :digest where ws = :ws and id = :id",
        [
            {
                "ws": scope.ws,
                "id": id_,
                "digest": storing.call_digest(scope, decode(thread), str(call)),
            }
            for id_, thread, call in answers
            if call is not None
        ],
    )
