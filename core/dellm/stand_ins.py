"""Stand-ins: the new versions that take the place of erased records, wherever these stood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from . import audiences, erasing, provenance, sequences, storing
from .database import Row, Scope, Tx
from .plan import Plan
from .records import Edge, Record, Status
from .redacting import Version


def store(
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
    tips = sequences.Tips()  # of this transaction alone: replies of one thread extend each other
    for old, version in versions.items():
        quarantined = version.status == Status.QUARANTINED
        draft = replace(version.draft, quarantined=quarantined)
        draft = storing.with_free_version(tx, scope, draft)
        records, numbers = storing.store(tx, scope, [draft], at, again=True)
        made[old] = records[0].id
        context = [made.get(one, one) for one in version.context]
        if draft.kind == "message":
            _share(tx, scope, records[0], context, numbers.sequence, tips)
        else:  # what a summary is made from is told apart by what is its direct parent
            sequences.attach_surviving(tx, scope.ws, records[0].id, context)
        audiences.narrow(tx, scope, [records[0].id], numbers.governed)
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


def _share(
    tx: Tx, scope: Scope, made: Record, context: Sequence[int], fresh: int, tips: sequences.Tips
) -> None:
    """Write a context that may extend those before it: a thread sent whole has one chain of them."""
    thread = made.thread or ""
    tip = sequences.attach_context(tx, scope, made.id, context, thread, fresh, tips, checked_in=0)
    if tip is not None:
        tips.note(scope.ws, thread, tip)


def places(tx: Tx, ws: int, plan: Plan, ids: Sequence[int]) -> list[Row]:
    """Return (sequence, position, record) wherever the value of a channel holds one of the records."""
    kept = erasing.kept_for_lists(tx, ws, erasing.reached_sequences(ids, plan.edges), plan.edges)
    rows = tx.all(
        "select child, pos, parent from edge where ws = :ws and parent in :ids and child < 0",
        ws=ws,
        ids=list(ids),
    )
    return [row for row in rows if row[0] in kept]


def put_back(tx: Tx, ws: int, stood: Iterable[Row], versions: Mapping[int, int]) -> None:
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
