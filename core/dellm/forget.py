"""Executing a plan. `erase` is the one choke point: every row that goes, goes through it.

Everything happens in the caller's write transaction, after the workspace's row is locked: rows,
index terms, vectors, edges, sequences, counters, tombstones, the ledger entry. Either all of it
is committed or nothing is.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from . import ledger, planning, provenance, receipts, residue, sequences, storing, surviving
from .database import Scope, Tx
from .encoding import decode
from .errors import NothingMatched, PlanChanged
from .ledger import LedgerEntry
from .plan import Plan, digest_of
from .receipts import Receipt
from .records import Edge, Status
from .redacting import Version, new_versions
from .selectors import Look, Selector


@dataclass(frozen=True, slots=True)
class Terms:
    """What an execution needs besides the plan: time, phone region, lifetimes, limits to name."""

    look: Look
    repeat_for: int
    out_of_reach: tuple[str, ...]
    unit: str = "span"


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
    if (before := repeated(tx, scope, plan)) is not None:
        return before
    if digest_of(plan.workspace, plan.mode, plan.reach, plan.matches, plan.ids) != plan.digest:
        raise PlanChanged("The plan was altered after it was made.")
    if plan.version not in {version, version - 1}:
        plan = _again(tx, scope, plan, terms.look)
    if not plan.ids:
        raise NothingMatched("No record matches.")
    return _done(tx, scope, plan, terms)


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
    return now


def _done(tx: Tx, scope: Scope, plan: Plan, terms: Terms) -> Receipt:
    number = ledger.head(tx, scope.ws)[0] + 1
    redacted: dict[int, int] = {}
    if plan.mode == "suppress":
        rows = suppress(tx, scope, plan, terms.look.at)
    else:
        versions: dict[int, Version] = {}
        if plan.mode == "redact":
            versions = new_versions(tx, scope, plan, terms.unit, terms.look.region)
        left = surviving.contexts(tx, scope, plan, versions)
        rows = erase(tx, scope, plan, number, terms.look.at)
        redacted = _store_versions(tx, scope, versions, plan.edges, terms.look.at)
        surviving.attach(tx, scope, left, redacted)
    body = {
        "ids": list(plan.ids),
        "matched": len(plan.matches),
        "reach": str(plan.reach),
        "relaxed": plan.reach.relaxed,
        "redacted": {str(old): new for old, new in redacted.items()},
        "spared": len(plan.spared),
        "held": [one.id for one in plan.held],
        "exposures": plan.exposures,
        "rows": rows,
        "out_of_reach": list(terms.out_of_reach),
        "digest": plan.digest,
    }
    entry = ledger.append(tx, scope.ws, plan.mode, body, terms.look.at)
    _remember_repeat(tx, scope, plan, entry.seq, terms)
    return receipts.from_entry(entry, scope.name, set())


def erase(tx: Tx, scope: Scope, plan: Plan, receipt: int, at: int) -> dict[str, int]:
    """Remove the plan's records and all that holds or points to them; return rows by table."""
    ids = list(plan.ids)
    ws = scope.ws
    dead = _reached_sequences(ids, plan.edges)
    residue.note(tx, scope, receipt, ids)
    tx.drop_terms(ws, ids)
    gone = tx.all(
        "delete from record where ws = :ws and id in :ids "
        "returning id, tokens, fid, thread, version",
        ws=ws,
        ids=ids,
    )
    _bury(tx, scope, receipt, gone, at)
    rows = {
        "embedding": tx.run("delete from embedding where ws = :ws and id in :ids", ws=ws, ids=ids),
        "record": len(gone),
        "edge": _cut(tx, ws, [*ids, *dead]),
        "sequence": _kill(tx, ws, dead, at),
    }
    _unname(tx, ws, {str(row[3]) for row in gone})
    tx.run(
        "update workspace set documents = documents - :records, tokens = tokens - :tokens "
        "where ws = :ws",
        ws=ws,
        records=len(gone),
        tokens=sum(row[1] for row in gone),
    )
    return rows


def suppress(tx: Tx, scope: Scope, plan: Plan, at: int) -> dict[str, int]:
    """Take the plan's records out of every read, undoably; no sequence they reach is extended."""
    changed = tx.run(
        "update record set status = :suppressed where ws = :ws and id in :ids and status = 0",
        ws=scope.ws,
        ids=list(plan.ids),
        suppressed=int(Status.SUPPRESSED),
    )
    dead = _reached_sequences(plan.ids, plan.edges)
    return {"record": changed, "sequence": _kill(tx, scope.ws, dead, at)}


def restore(tx: Tx, scope: Scope, receipt: Receipt, at: int) -> list[int]:
    """Undo a suppression: return the ids that may be used again.

    What another suppression took as well, and was not undone, stays out of use.
    """
    tx.run(
        "update workspace set version = version + 1 where ws = :ws",
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


def _kill(tx: Tx, ws: int, dead: Sequence[int], at: int) -> int:
    if not dead:
        return 0
    return tx.run(
        "update sequence set dead_at = :at, thread = '' "
        "where ws = :ws and id in :dead and dead_at is null",
        ws=ws,
        dead=list(dead),
        at=at,
    )


def _unname(tx: Tx, ws: int, threads: Collection[str]) -> None:
    """Take the names of threads that have no record left off the sequences that are still in use."""
    tx.many(
        "update sequence set thread = '' where ws = :ws and thread = :thread and dead_at is null "
        "and not exists (select 1 from record where ws = :ws and thread = :thread)",
        [{"ws": ws, "thread": thread} for thread in sorted(threads) if thread],
    )


def _cut(tx: Tx, ws: int, nodes: Sequence[int]) -> int:
    listed = list(nodes)
    into = tx.run("delete from edge where ws = :ws and child in :nodes", ws=ws, nodes=listed)
    out = tx.run("delete from edge where ws = :ws and parent in :nodes", ws=ws, nodes=listed)
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
            for id_, _, fid, thread, version in gone
            if fid is not None
        ],
    )


def _store_versions(
    tx: Tx,
    scope: Scope,
    versions: Mapping[int, Version],
    copies: Iterable[Edge],
    at: int,
) -> dict[int, int]:
    """Store the redacted versions, each with the context, copies and status of the old one."""
    made: dict[int, int] = {}
    for old, version in versions.items():
        draft = storing.with_free_version(tx, scope, version.draft)
        records, _ = storing.store(tx, scope, [draft], at)
        made[old] = records[0].id
        sequences.attach_surviving(tx, scope.ws, records[0].id, version.context)
    for edge in copies:
        if (
            edge.position < 0
            and 0 < edge.parent < edge.child
            and {edge.parent, edge.child} <= set(made)
        ):
            provenance.link_copy(tx, scope.ws, made[edge.child], made[edge.parent])
    for old, version in versions.items():
        _set_status(tx, scope.ws, made[old], version.status)
    return made


def _set_status(tx: Tx, ws: int, id_: int, status: Status) -> None:
    tx.run(
        "update record set status = :status where ws = :ws and id = :id",
        ws=ws,
        id=id_,
        status=int(status),
    )


def repeated(tx: Tx, scope: Scope, plan: Plan) -> Receipt | None:
    """Return the receipt of an earlier execution of the same plan or request, if nothing is left of it.

    Found by the plan's digest, by the tombstones of the ids it names, or by a keyed digest of what
    was asked that expires.
    """
    number = _by_digest(tx, scope, _plan_key(scope, plan)) if plan.ids else None
    if number is None and not plan.ids:
        asked = plan.selector
        number = _by_tombstones(tx, scope, (*(asked.ids or ()), *asked.include))
        # Two predicates cannot be told apart, nor can two empty plans kept at rest.
        if number is None and not callable(asked.where) and asked.matched is None:
            number = _by_digest(tx, scope, _request_key(scope, plan))
    if number is None:
        return None
    receipt = receipts.read(tx, scope.ws, scope.name, number)
    return None if _undone(tx, scope, receipt) else receipt


def _undone(tx: Tx, scope: Scope, receipt: Receipt) -> bool:
    """Whether a suppression was undone since: then the same plan is to be executed again."""
    return receipt.mode == "suppress" and any(
        entry.action == "restore" and entry.body["receipt"] == receipt.number
        for entry in ledger.entries(tx, scope.ws)
    )


def _by_digest(tx: Tx, scope: Scope, key: bytes) -> int | None:
    row = tx.one(
        "select receipt from repeat where ws = :ws and digest = :key", ws=scope.ws, key=key
    )
    return None if row is None else int(row[0])


def _by_tombstones(tx: Tx, scope: Scope, ids: Collection[int]) -> int | None:
    if not ids:
        return None
    row = tx.one(
        "select max(receipt) from tombstone where ws = :ws and id in :ids",
        ws=scope.ws,
        ids=sorted(ids),
    )
    return None if row is None or row[0] is None else int(row[0])


def _remember_repeat(tx: Tx, scope: Scope, plan: Plan, receipt: int, terms: Terms) -> None:
    at = terms.look.at
    tx.run("delete from repeat where ws = :ws and expires_at <= :at", ws=scope.ws, at=at)
    tx.many(
        "insert into repeat(ws, digest, receipt, expires_at) "
        "values (:ws, :digest, :receipt, :until) "
        "on conflict (ws, digest) do update set receipt = excluded.receipt, "
        "expires_at = excluded.expires_at",
        [
            {"ws": scope.ws, "digest": key, "receipt": receipt, "until": at + terms.repeat_for}
            for key in {_plan_key(scope, plan), _request_key(scope, plan)}
        ],
    )


def _plan_key(scope: Scope, plan: Plan) -> bytes:
    return hmac.digest(scope.secret, b"plan" + plan.digest.encode(), hashlib.sha256)[:16]


def _request_key(scope: Scope, plan: Plan) -> bytes:
    bare: Selector = replace(plan.selector, vector=None, matched=None)
    if bare.meaning is None:  # then the threshold is the embedder's, for the suspects only
        bare = replace(bare, threshold=None)
    named = [
        getattr(bare, name)
        for name in (
            *("what", "ids", "quote", "value", "keyword", "meaning", "description", "thread"),
            *("aliases", "include", "exclude"),
        )
    ]
    named.append(bare.threshold if bare.meaning is not None else None)
    where = bare.where if isinstance(bare.where, Mapping) else None
    said = json.dumps([plan.mode, str(plan.reach), named, repr(where), bare.everything])
    return hmac.digest(scope.secret, b"request" + said.encode(), hashlib.sha256)[:16]
