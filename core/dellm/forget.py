"""Executing a plan. `erase` is the one choke point: every row that goes, goes through it.

Everything happens in the caller's write transaction, after the workspace's row is locked: rows,
index terms, vectors, edges, sequences, counters, tombstones, the ledger entry. Either all of it
is committed or nothing is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from . import (
    hiding,
    item_rows,
    ledger,
    planning,
    provenance,
    rebuilding,
    receipts,
    repeating,
    residue,
    sequences,
    storing,
    surviving,
)
from .database import Row, Scope, Tx
from .encoding import decode, load_json
from .errors import NothingMatched, PlanChanged
from .ledger import LedgerEntry
from .plan import Plan, digest_of
from .receipts import Receipt
from .records import ANSWERS, HIDDEN, Edge, Status
from .redacting import Version, new_versions
from .selectors import Look


@dataclass(frozen=True, slots=True)
class Terms:
    """What an execution needs besides the plan: time, phone region, lifetimes, limits to name.

    `rebuilds` are the texts that were made for it, by the functions `rebuilders`.
    """

    look: Look
    repeat_for: int
    out_of_reach: tuple[str, ...]
    unit: str = "span"
    rebuilds: rebuilding.Rebuilds = rebuilding.NOTHING
    rebuilders: Collection[str] = ()


def lock(tx: Tx, ws: int) -> int:
    """Keep every other writer out of the workspace until the transaction ends; return its version.

    Comes before the plan is made or checked, so that nothing moves between the two.
    """
    row = tx.one(
        "update workspace set version = version + 1, generation = generation + 1 "
        "where ws = :ws returning version",
        ws=ws,
    )
    return 0 if row is None else int(row[0])


def execute(tx: Tx, scope: Scope, plan: Plan, version: int, terms: Terms) -> Receipt:
    """Do what the plan says, or return the receipt of the time it was done before.

    `version` is the locked workspace's. Raises PlanChanged when the memory no longer gives the
    plan's answer, NothingMatched for an empty plan that was never executed.
    """
    if plan.workspace != scope.name:
        raise PlanChanged("The plan is of another workspace.")
    if (before := repeating.receipt_of(tx, scope, plan)) is not None:
        return before
    if digest_of(plan.workspace, plan.mode, plan.reach, plan.matches, plan.ids) != plan.digest:
        raise PlanChanged("The plan was altered after it was made.")
    if plan.version not in {version, version - 1}:
        plan = _again(tx, scope, plan, terms.look)
    if not plan.ids:
        raise NothingMatched("No record matches.")
    return carry_out(tx, scope, plan, terms)


def _again(tx: Tx, scope: Scope, plan: Plan, look: Look) -> Plan:
    """Return the plan as it comes out now; PlanChanged when it says anything else."""
    now = planning.make(
        tx,
        scope,
        plan.selector,
        look,
        mode=plan.mode,
        reach=plan.reach,
        suspects=False,
        shown=False,
    )
    if now.digest != plan.digest:
        raise PlanChanged(
            f"The plan took {len(plan)} record(s); now it would take {len(now)}, or other ones."
        )
    return replace(now, rebuilds=plan.rebuilds)


def carry_out(tx: Tx, scope: Scope, plan: Plan, terms: Terms) -> Receipt:
    """Do what a plan says that was made in this transaction, after the lock; return the receipt."""
    number = ledger.head(tx, scope.ws)[0] + 1
    redacted: dict[int, int] = {}
    rebuilt: dict[int, int] = {}
    if plan.mode == "suppress":
        rows = suppress(tx, scope, plan, number, terms.look.at)
    else:
        rows, redacted, rebuilt = _replace(tx, scope, plan, number, terms)
    body = {
        "ids": list(plan.ids),
        "matched": len(plan.matches),
        "reach": str(plan.reach),
        "relaxed": plan.reach.relaxed,
        "redacted": {str(old): new for old, new in redacted.items()},
        "rebuilt": {str(old): new for old, new in rebuilt.items()},
        "not_rebuilt": len(plan.rebuilds) - len(rebuilt),
        "spared": len(plan.spared),
        "held": [one.id for one in plan.held],
        "exposures": plan.exposures,
        "rows": rows,
        "out_of_reach": list(terms.out_of_reach),
        "digest": plan.digest,
    }
    entry = ledger.append(tx, scope.ws, plan.mode, body, terms.look.at)
    until = terms.look.at + terms.repeat_for
    repeating.remember(tx, scope, plan, entry.seq, terms.look.at, until)
    return receipts.from_entry(entry, scope.name, set())


def _replace(
    tx: Tx, scope: Scope, plan: Plan, receipt: int, terms: Terms
) -> tuple[dict[str, int], dict[int, int], dict[int, int]]:
    """Erase, and store what takes the place of some: rows by table, redacted and rebuilt by old id."""
    at, versions = terms.look.at, dict[int, Version]()
    if plan.mode == "redact":
        versions = new_versions(tx, scope, plan, terms.unit, terms.look.region)
    anew = rebuilding.new_versions(tx, scope, plan, terms.rebuilds, terms.rebuilders, at)
    versions |= anew
    left = surviving.contexts(tx, scope, plan, versions)
    stood = _stands(tx, scope.ws, plan, list(versions)) if versions else []
    named = item_rows.standing(tx, scope.ws, list(versions)) if versions else []
    rows = erase(tx, scope, plan, receipt, at)
    made = _store_versions(tx, scope, versions, plan.edges, at)
    _stand_in(tx, scope.ws, stood, made)
    item_rows.stand_in(tx, scope.ws, named, made)
    surviving.attach(tx, scope, left, made)
    hiding.settle(tx, scope.ws, plan.ids, made)
    redacted = {old: new for old, new in made.items() if old not in anew}
    return rows, redacted, {old: made[old] for old in anew}


def erase(tx: Tx, scope: Scope, plan: Plan, receipt: int, at: int) -> dict[str, int]:
    """Remove the plan's records and all that holds or points to them; return rows by table."""
    ids = list(plan.ids)
    ws = scope.ws
    dead = _reached_sequences(ids, plan.edges)
    residue.note(tx, scope, receipt, ids)
    tx.drop_terms(ws, ids)
    gone = tx.all(
        "delete from record where ws = :ws and id in :ids "
        "returning id, tokens, fid, thread, version, kind, metadata, "
        "case when kind = 'document' then text end",
        ws=ws,
        ids=ids,
    )
    _bury(tx, scope, receipt, gone, at)
    unlisted = sorted(set(dead) - _kept_for_lists(tx, ws, dead, plan.edges))
    rows = {
        "embedding": tx.run("delete from embedding where ws = :ws and id in :ids", ws=ws, ids=ids),
        "record": len(gone),
        "item": item_rows.erase(tx, ws, ids, {one.id for one in plan.matches}),
        "edge": _cut(tx, ws, [*ids, *unlisted]),
        "sequence": _kill(tx, ws, dead, at, receipt),
    }
    _unname(tx, ws, {str(row[3]) for row in gone})
    tx.run(
        "update workspace set documents = documents - :found, tokens = tokens - :tokens "
        "where ws = :ws",
        ws=ws,
        found=sum(row[5] not in HIDDEN for row in gone),
        tokens=sum(row[1] for row in gone),
    )
    return rows


def suppress(tx: Tx, scope: Scope, plan: Plan, receipt: int, at: int) -> dict[str, int]:
    """Take the plan's records out of every read, undoably; no sequence they reach is extended."""
    changed = tx.run(
        "update record set status = :suppressed where ws = :ws and id in :ids and status = 0",
        ws=scope.ws,
        ids=list(plan.ids),
        suppressed=int(Status.SUPPRESSED),
    )
    item_rows.drop_given(tx, scope.ws, list(plan.ids), {one.id for one in plan.matches})
    dead = _reached_sequences(plan.ids, plan.edges)
    return {"record": changed, "sequence": _kill(tx, scope.ws, dead, at, receipt)}


def restore(tx: Tx, scope: Scope, receipt: Receipt, at: int) -> list[int]:
    """Undo a suppression: return the ids that may be used again.

    What another suppression took as well, and was not undone, stays out of use.
    """
    tx.run(
        "update workspace set version = version + 1, generation = generation + 1 where ws = :ws",
        ws=scope.ws,
    )
    rows = tx.all(
        "update record set status = 0 where ws = :ws and id in :ids and status = :suppressed "
        "returning id",
        ws=scope.ws,
        ids=_only_suppressed_by(tx, scope.ws, receipt),
        suppressed=int(Status.SUPPRESSED),
    )
    back = sorted(row[0] for row in rows)
    ledger.append(tx, scope.ws, "restore", {"receipt": receipt.number, "ids": back}, at)
    return back


def _only_suppressed_by(tx: Tx, ws: int, receipt: Receipt) -> list[int]:
    """Return the receipt's ids, and their redacted versions, that no other suppression holds."""
    chain = ledger.entries(tx, ws)
    others: dict[int, list[int]] = {}
    for entry in chain:
        if entry.action == "suppress" and entry.seq != receipt.number:
            others[entry.seq] = entry.body["ids"]
        elif entry.action == "restore":
            others.pop(entry.body["receipt"], None)
    held = {id_ for ids in others.values() for id_ in ids}
    return sorted(_with_versions(chain, receipt.ids) - _with_versions(chain, held))


def _with_versions(chain: Iterable[LedgerEntry], ids: Iterable[int]) -> set[int]:
    """Return the ids, and those of the versions that later redactions put in their place."""
    found = set(ids)
    for entry in chain:
        for old, new in entry.body.get("redacted", {}).items():
            if int(old) in found:
                found.add(new)
    return found


def _reached_sequences(going: Iterable[int], edges: Iterable[Edge]) -> list[int]:
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


def _kept_for_lists(tx: Tx, ws: int, dead: Sequence[int], edges: Iterable[Edge]) -> set[int]:
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


def _kill(tx: Tx, ws: int, dead: Sequence[int], at: int, receipt: int) -> int:
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


def _store_versions(
    tx: Tx,
    scope: Scope,
    versions: Mapping[int, Version],
    copies: Iterable[Edge],
    at: int,
) -> dict[int, int]:
    """Store the new versions, each with the context, copies and status of the old one.

    Where a context names one that has a new version itself, it is that.
    """
    made: dict[int, int] = {}
    for old, version in versions.items():
        draft = storing.with_free_version(tx, scope, version.draft)
        records, _ = storing.store(tx, scope, [draft], at)
        made[old] = records[0].id
        context = [made.get(one, one) for one in version.context]
        sequences.attach_surviving(tx, scope.ws, records[0].id, context)
    for edge in copies:
        if (
            edge.position < 0
            and 0 < edge.parent < edge.child
            and {edge.parent, edge.child} <= set(made)
        ):
            provenance.link_copy(tx, scope.ws, made[edge.child], made[edge.parent])
    for old, version in versions.items():
        _set_status(tx, scope.ws, made[old], version.status)
        tx.run(
            "update tombstone set successor = :new where ws = :ws and id = :old",
            ws=scope.ws,
            old=old,
            new=made[old],
        )
    return made


def _stands(tx: Tx, ws: int, plan: Plan, ids: Sequence[int]) -> list[Row]:
    """Return (sequence, position, record) wherever the value of a channel holds one of the records."""
    kept = _kept_for_lists(tx, ws, _reached_sequences(ids, plan.edges), plan.edges)
    rows = tx.all(
        "select child, pos, parent from edge where ws = :ws and parent in :ids and child < 0",
        ws=ws,
        ids=list(ids),
    )
    return [row for row in rows if row[0] in kept]


def _stand_in(tx: Tx, ws: int, stood: Iterable[Row], versions: Mapping[int, int]) -> None:
    """Put the new versions where the old ones stood in the values of channels."""
    tx.many(
        "insert into edge(ws, child, pos, parent) values (:ws, :child, :pos, :parent)",
        [
            {"ws": ws, "child": child, "pos": pos, "parent": versions[old]}
            for child, pos, old in stood
        ],
    )


def _set_status(tx: Tx, ws: int, id_: int, status: Status) -> None:
    tx.run(
        "update record set status = :status where ws = :ws and id = :id",
        ws=ws,
        id=id_,
        status=int(status),
    )
