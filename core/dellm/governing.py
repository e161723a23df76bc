"""The policy's step of every write: what is to be stored is decided on and given what a policy says.

It runs in the write transaction, after the workspace's row was locked and before rows, terms and
vectors are made, so that no adapter can go around it. What says nothing of itself is not looked at
where the policy has nothing to say of such records.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import LiteralString

from . import governed_rows, provenance
from .database import Row, Scope, Tx
from .errors import PolicyRefused
from .governance import creator_of
from .policy import Policy
from .policy_values import By
from .records import Draft, Edge, Record, from_micros

# Bits of what a workspace says it has: records that end, rows of `governed`, records not for everybody.
ENDS, GOVERNED, AUDIENCES = 1, 2, 4

_MARK: LiteralString = (
    "update workspace set governed = governed | cast(:bits as bigint) where ws = :ws"
)


@cache
def shipped() -> Policy:
    """Return the policy of a memory for which none was set."""
    return Policy.shipped()


def policy_of(tx: Tx, scope: Scope, number: int) -> Policy:
    """Return the policy that holds in a workspace whose own has this number; 0: it has none.

    Its own is read once for each time that it changes.
    """
    entering = scope.entering
    if not number:
        return entering.policy or shipped()
    known = entering.policies.get(scope.ws)
    if known is None or known[0] != number:
        row = tx.one("select policy_text from workspace where ws = :ws", ws=scope.ws)
        text = "{}" if row is None or row[0] is None else str(row[0])
        known = (number, Policy.of(json.loads(text)))
        entering.policies[scope.ws] = known
    return known[1]


def current(tx: Tx, scope: Scope) -> Policy:
    """Return the policy that holds in a workspace."""
    row = tx.one("select policy from workspace where ws = :ws", ws=scope.ws)
    return policy_of(tx, scope, 0 if row is None else int(row[0]))


def governed(
    tx: Tx, scope: Scope, drafts: Sequence[Draft], number: int, at: int, *, again: bool = False
) -> Sequence[Draft]:
    """Return the drafts as the policy has them stored; the same object where it says nothing.

    `number` as in policy_of. `again`: they hold what was stored before, as a copy or what is left
    after a forget: then nothing is refused or made to wait. Raises PolicyRefused.
    """
    own = scope.entering.policy
    plain = not number and (own is None or own.plain)
    if plain and not any(map(_asks, drafts)):
        return drafts
    policy = policy_of(tx, scope, number)
    return [_governed(policy, one, at, again=again) for one in drafts]


def _asks(draft: Draft) -> bool:
    """Whether a policy that has nothing to say of plain records may have of this one."""
    return draft.retention is not None or draft.sensitivity is not None


def _governed(policy: Policy, draft: Draft, at: int, *, again: bool) -> Draft:
    seen = policy.seen(draft)
    decided = policy.write_of(draft, seen, creator_of(draft))
    if not again:
        decided.require()
    # What only some may read says so itself: by it reads are filtered.
    limited = seen.kept is not None and seen.kept.roles is not None
    return replace(
        draft,
        retention=seen.kept.name if seen.kept is not None and limited else seen.named,
        purpose=seen.purpose,
        sensitivity=seen.sensitivity,
        basis=seen.basis,
        retention_until=policy.end_of(draft, seen, at).until,
        quarantined=draft.quarantined or (decided.waits and not again),
    )


def keep(tx: Tx, scope: Scope, drafts: Sequence[tuple[int, Draft]], known: int) -> int:
    """Keep what drafts that were stored say besides what follows from them; return the bits of it.

    `known` are the bits that the workspace says it has already.
    """
    bits = GOVERNED * governed_rows.insert(tx, scope.ws, drafts)
    bits |= ENDS * any(one.retention_until is not None for _, one in drafts)
    if bits & ~known:
        mark(tx, scope.ws, bits)
    return bits


def require_erasable(tx: Tx, scope: Scope, ids: Sequence[int], by: By) -> None:
    """Raise PolicyRefused where a class keeps one of the records from being erased by somebody."""
    policy = current(tx, scope)
    kept = policy.kept_from(by)
    if not kept:
        return
    rows = tx.all(
        "select r.id, r.kind, g.class from record r "
        "left join governed g on g.ws = :ws and g.id = r.id where r.ws = :ws and r.id in :ids",
        ws=scope.ws,
        ids=list(ids),
    )
    names, kinds = {one.name for one in kept}, {kind for one in kept for kind in one.kinds}
    closed = [row[0] for row in rows if (row[2] in names if row[2] else row[1] in kinds)]
    if closed:
        what = f"{len(closed)} record(s) are of a class that others erase."
        raise PolicyRefused(what, ids=closed)


def kept_in(tx: Tx, scope: Scope, policy: Policy, records: Sequence[Record], by: By) -> set[int]:
    """Return those of the records that the policy does not give to somebody in an export."""
    if not policy.keeps_in(by):
        return set()
    said = governed_rows.of(tx, scope.ws, [one.id for one in records])
    drafts = {one.id: _as_draft(one, said.get(one.id)) for one in records}
    return {id_ for id_, one in drafts.items() if not policy.may_export(one, by)}


def _as_draft(record: Record, said: governed_rows.Said | None) -> Draft:
    """Return what a policy looks at of a record."""
    said = said or governed_rows.Said()
    return Draft(
        "",
        role=record.role,
        thread=record.thread,
        kind=record.kind,
        subject=record.subject,
        purpose=record.purpose,
        sensitivity=record.sensitivity,
        retention=said.retention,
        created_by=said.created_by,
        basis=said.basis,
    )


def mark(tx: Tx, ws: int, bits: int) -> None:
    """Note that a workspace has records that end (ENDS), or that say more of themselves (GOVERNED)."""
    tx.later(_MARK, ws=ws, bits=bits)


def settled(tx: Tx, scope: Scope, made: Record, bits: int) -> Record:
    """Return a record that was just stored with its parents as it is kept: see bounded.

    `bits` are those of the workspace, before it was stored.
    """
    for _, until in _bounded(tx, scope.ws, [made.id]) if bits & ENDS else ():
        return replace(made, retention_until=from_micros(until))
    return made


def on_their_own(
    tx: Tx, ws: int, seeds: Sequence[int], nodes: Sequence[int], edges: Sequence[Edge]
) -> dict[int, str]:
    """Return the dependents of expired records that are kept on their own, and why.

    They have a basis and a class of their own, or were made of the expired only through such ones.
    """
    rows = tx.all(
        "select id from governed where ws = :ws and id in :ids "
        "and basis is not null and class is not null",
        ws=ws,
        ids=[node for node in nodes if node > 0],
    )
    copies = {edge.child for edge in edges if edge.position < 0}
    own = {row[0] for row in rows}.difference(seeds, copies)
    if not own:
        return {}
    reached = provenance.shortest_paths(seeds, [edge for edge in edges if edge.child not in own])
    return {
        node: "it has a basis and a class of its own" if node in own else "made of what stays"
        for node in nodes
        if node > 0 and node not in reached
    }


def together(tx: Tx, ws: int, ids: Sequence[int]) -> None:
    """As bounded, for copies among the records: what says the same ends at the same time."""
    bounded(tx, ws, [one for one in provenance.dependents(tx, ws, ids) if one > 0])


def bounded(tx: Tx, ws: int, ids: Sequence[int]) -> None:
    """Let no record be kept longer than any that it was made from.

    But for those that have a basis and a class of their own, and are no copies. The ids are of
    records that were just stored with all their parents; the parents are bounded already, or among
    them.
    """
    while ids and _bounded(tx, ws, ids) and len(ids) > 1:
        continue


def _bounded(tx: Tx, ws: int, ids: Sequence[int]) -> list[Row]:
    return tx.all(
        "with recursive up(child, node) as ("
        " select child, parent from edge where ws = :ws and child in :ids"
        " union"
        " select up.child, e.parent from up cross join edge e"
        " where e.ws = :ws and e.child = up.node and up.node < 0), "
        "bound(child, until) as ("
        " select up.child, min(r.retention_until) from up cross join record r"
        " where r.ws = :ws and r.id = up.node and r.retention_until is not null group by up.child) "
        "update record set retention_until = "
        " (select b.until from bound b where b.child = record.id) "
        "where ws = :ws and id in (select b.child from bound b) "
        "and (retention_until is null or retention_until > "
        " (select b.until from bound b where b.child = record.id)) "
        "and not exists (select 1 from governed g where g.ws = :ws and g.id = record.id"
        " and g.basis is not null and g.class is not null and not exists"
        " (select 1 from edge c where c.ws = :ws and c.child = record.id and c.pos < 0)) "
        "returning id, retention_until",
        ws=ws,
        ids=list(ids),
    )
