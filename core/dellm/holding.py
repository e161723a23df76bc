"""The rows of legal holds: what they cover, what is out of use for them, what waits for their end.

A hold covers records by id, by subject, by thread, or all of a workspace; no covered record is
erased. What was there when the hold was placed is out of every read as well (its status is HELD),
and so is what was asked to be forgotten since; the rest of what comes in later stays in use. The
caller has locked the workspace, where anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import LiteralString, NamedTuple

from . import fact_rows, ledger, provenance
from .database import Scope, Tx
from .encoding import decode
from .errors import HeldRecord
from .records import Status

KINDS = ("ids", "subject", "thread", "workspace")
REPLACE = "replace"  # what waits is only a value that another one took the place of
_STRONGEST = ("erase", REPLACE, "redact", "suppress")

# Whether the open hold `h` covers the record `r`.
_COVERS: LiteralString = (
    "h.ws = :ws and h.released_at is null and (h.kind = 'workspace' "
    "or (h.kind = 'thread' and h.target = r.thread) "
    "or (h.kind = 'subject' and exists (select 1 from concerns c where c.ws = :ws "
    "and c.key = h.key and c.record = r.id)) "
    "or exists (select 1 from hold_record x where x.ws = :ws and x.id = r.id and x.hold = h.id))"
)
# Whether it does not only keep `r` from being erased: `r` was there before it.
_BEFORE: LiteralString = f"{_COVERS} and r.id <= h.upto"
# Whether any hold covers `r`; a workspace without one is not asked further.
PROTECTED: LiteralString = (
    "(select w.holds from workspace w where w.ws = :ws) > 0 "
    f"and exists (select 1 from hold h where {_COVERS})"
)
# Whether a hold, or what waits, takes `r` out of use.
RESTRICTED: LiteralString = (
    "((select w.holds from workspace w where w.ws = :ws) > 0 "
    f"and exists (select 1 from hold h where {_BEFORE})) "
    "or exists (select 1 from hold_wait q where q.ws = :ws and q.id = r.id)"
)


class Waiting(NamedTuple):
    """What a forget wanted of a record and could not have.

    `mode` is the plan's, or REPLACE; `alone`: without what was made of it; `spans` of its text, for
    "redact"; `receipt` of the forget that was refused, 0 where that was none.
    """

    id: int
    mode: str
    alone: bool
    spans: tuple[tuple[int, int], ...] = ()
    receipt: int = 0


def covering(tx: Tx, ws: int, ids: Collection[int]) -> dict[int, list[int]]:
    """Return the numbers of the open holds that cover each of the records; none for the others."""
    found: dict[int, list[int]] = {}
    if ids:
        for id_, hold in tx.all(
            f"select r.id, h.id from record r join hold h on h.ws = :ws and {_COVERS} "
            "where r.ws = :ws and r.id in :ids order by r.id, h.id",
            ws=ws,
            ids=sorted(ids),
        ):
            found.setdefault(id_, []).append(hold)
    return found


def covered_by(tx: Tx, ws: int, hold: int) -> list[int]:
    """Return the records that an open hold covers, ascending."""
    rows = tx.all(
        f"select r.id from hold h join record r on r.ws = :ws and {_COVERS} "
        "where h.ws = :ws and h.id = :hold order by r.id",
        ws=ws,
        hold=hold,
    )
    return [row[0] for row in rows]


def why(tx: Tx, ws: int, ids: Collection[int], holds: int) -> dict[int, str]:
    """Return why each record of the workspace is held back, of those that are.

    `holds` is how many holds are open. One that has the status without a hold is held back as well.
    """
    rows = tx.all(
        "select id from record where ws = :ws and id in :ids and status = :held",
        ws=ws,
        ids=sorted(ids),
        held=int(Status.HELD),
    )
    found = {row[0]: "on hold" for row in rows}
    for id_, numbers in (covering(tx, ws, ids) if holds else {}).items():
        found[id_] = "on hold " + ", ".join(map(str, numbers))
    return found


def refuse(tx: Tx, ws: int, ids: Sequence[int]) -> None:
    """Raise HeldRecord where one of the records is held: for what is about to erase them."""
    rows = tx.all(
        "select r.id from record r where r.ws = :ws and r.id in :ids "
        f"and (r.status = :held or ({PROTECTED})) order by r.id",
        ws=ws,
        ids=list(ids),
        held=int(Status.HELD),
    )
    if rows:
        held = [row[0] for row in rows]
        raise HeldRecord(f"Record {held[0]} is on hold and cannot be erased.", ids=held)


def note(tx: Tx, ws: int, ids: Sequence[int], at: int) -> None:
    """Have the audit chain say what was refused, by which holds, where nothing waits of it."""
    held = {"ids": sorted(ids), "holds": numbers(covering(tx, ws, ids))}
    ledger.append(tx, ws, "held", held, at)


def with_copies(tx: Tx, ws: int, ids: Iterable[int]) -> set[int]:
    """Return the records, and all that hold the same content as one of them."""
    found, fresh = set(ids), set(ids)
    while fresh:
        edges = provenance.edges_into(tx, ws, sorted(fresh))
        fresh = {one.parent for one in edges if one.position < 0 and one.child > 0} - found
        found |= fresh
    return found


def restricted(tx: Tx, ws: int, ids: Collection[int]) -> set[int]:
    """Return those of the records that a hold takes out of use, whatever their status."""
    if not ids:
        return set()
    rows = tx.all(
        f"select r.id from record r where r.ws = :ws and r.id in :ids and ({RESTRICTED})",
        ws=ws,
        ids=sorted(ids),
    )
    return {row[0] for row in rows}


def settle(tx: Tx, ws: int, ids: Collection[int]) -> tuple[list[int], list[int]]:
    """Make the status of the records what the holds and what waits say; return who left and came back.

    What is suppressed or waits for confirmation keeps that status: it is out of use as it is.
    """
    if not ids:
        return [], []
    given = {"ws": ws, "ids": sorted(ids), "held": int(Status.HELD)}
    out = tx.all(
        "update record set status = :held where ws = :ws and status = 0 and id in "
        f"(select r.id from record r where r.ws = :ws and r.id in :ids and ({RESTRICTED})) "
        "returning id",
        **given,
    )
    back = tx.all(
        "update record set status = 0 where ws = :ws and status = :held and id in "
        f"(select r.id from record r where r.ws = :ws and r.id in :ids and not ({RESTRICTED})) "
        "returning id",
        **given,
    )
    moved = sorted(row[0] for row in out), sorted(row[0] for row in back)
    if out or back:
        fact_rows.settle_records(tx, ws, [*moved[0], *moved[1]])
    return moved


# what waits


def replaced(
    tx: Tx, ws: int, ids: Sequence[int], at: int, holds: int | None, receipt: int
) -> frozenset[int]:
    """Let values that are about to be emptied wait where a hold covers them; return which do.

    They are out of use from now on, and the audit chain says so: the `receipt` that is being made, or
    an entry of its own where that is 0. `holds` is how many are open, None if the caller cannot tell.
    """
    if holds is None:
        row = tx.one("select holds from workspace where ws = :ws", ws=ws)
        holds = 0 if row is None else int(row[0])
    covered = covering(tx, ws, ids) if holds else {}
    if covered:
        kept = sorted(covered)
        wait(tx, ws, [Waiting(one, REPLACE, True, receipt=receipt) for one in kept])
        settle(tx, ws, kept)
        if not receipt:
            note(tx, ws, kept, at)
    return frozenset(covered)


def wait(tx: Tx, ws: int, waits: Iterable[Waiting]) -> None:
    """Note what was refused; of two wishes for a record the one that takes more of it counts."""
    wanted = {one.id: one for one in waits}
    if not wanted:
        return
    for old in listed(tx, ws, wanted):
        wanted[old.id] = _both(old, wanted[old.id])
    tx.many(
        "insert into hold_wait(ws, id, mode, alone, spans, receipt) "
        "values (:ws, :id, :mode, :alone, :spans, :receipt) "
        "on conflict (ws, id) do update set mode = excluded.mode, alone = excluded.alone, "
        "spans = excluded.spans, receipt = excluded.receipt",
        [
            {
                "ws": ws,
                "id": one.id,
                "mode": one.mode,
                "alone": int(one.alone),
                "spans": json.dumps(one.spans),
                "receipt": one.receipt,
            }
            for one in wanted.values()
        ],
    )


def _both(old: Waiting, new: Waiting) -> Waiting:
    if old.mode == new.mode:
        spans = tuple(sorted({*old.spans, *new.spans}))
        return new._replace(alone=old.alone and new.alone, spans=spans)
    return min(old, new, key=lambda one: _STRONGEST.index(one.mode))


def listed(tx: Tx, ws: int, ids: Collection[int] | None = None) -> list[Waiting]:
    """Return what waits, of the given records or of all, by id."""
    if ids is None:
        rows = tx.all(f"{_WAITS} order by id", ws=ws)
    else:
        rows = tx.all(f"{_WAITS} and id in :ids order by id", ws=ws, ids=sorted(ids))
    return [
        Waiting(row[0], row[1], bool(row[2]), tuple((a, b) for a, b in json.loads(row[3])), row[4])
        for row in rows
    ]


_WAITS: LiteralString = "select id, mode, alone, spans, receipt from hold_wait where ws = :ws"


def of_receipt(tx: Tx, ws: int, receipt: int) -> list[int]:
    """Return the records that a forget could not have and that wait still, ascending."""
    rows = tx.all(
        "select id from hold_wait where ws = :ws and receipt = :receipt order by id",
        ws=ws,
        receipt=receipt,
    )
    return [row[0] for row in rows]


def refused_before(tx: Tx, ws: int, waits: Collection[Waiting]) -> int | None:
    """Return the newest receipt by which all of that waits already; None where some of it does not."""
    there = {one.id: one for one in listed(tx, ws, [one.id for one in waits])}
    known = [there.get(one.id) for one in waits]
    if not all(
        one and one.receipt and _covers(one, new) for one, new in zip(known, waits, strict=True)
    ):
        return None
    return max((one.receipt for one in known if one), default=None)


def _covers(old: Waiting, new: Waiting) -> bool:
    return (old.mode, old.alone) == (new.mode, new.alone) and set(old.spans).issuperset(new.spans)


def free(tx: Tx, ws: int) -> list[Waiting]:
    """Return what waits and is covered by no hold any more, and let it wait no longer."""
    waits = listed(tx, ws)
    covered = covering(tx, ws, [one.id for one in waits])
    done = [one for one in waits if one.id not in covered]
    stop(tx, ws, [one.id for one in done])
    return done


def stop(tx: Tx, ws: int, ids: Sequence[int]) -> None:
    """Let records wait no longer."""
    tx.run("delete from hold_wait where ws = :ws and id in :ids", ws=ws, ids=list(ids))


def unsuppress(tx: Tx, scope: Scope, receipt: int, ids: Sequence[int]) -> list[int]:
    """Undo what waits of an undone suppression; return which of `ids`, now in use, stay in use."""
    rows = tx.all(
        "delete from hold_wait where ws = :ws and mode = 'suppress' and receipt = :receipt "
        "returning id",
        ws=scope.ws,
        receipt=receipt,
    )
    out, _ = settle(tx, scope.ws, {*ids, *(row[0] for row in rows)})
    return [one for one in ids if one not in set(out)]


def name_of(kind: str, target: str | None) -> str | None:
    """Return the subject or thread of a hold as it was given; None for another kind, or released."""
    return decode(target) if target is not None and kind in {"subject", "thread"} else None


def numbers(holds: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the numbers of the holds there are in what `covering` returned, ascending."""
    return sorted({one for some in holds.values() for one in some})


def count(tx: Tx, ws: int, hold: int) -> int:
    """Return how many records an open hold covers; 0 for one that is released."""
    row = tx.one(
        f"select count(*) from hold h join record r on r.ws = :ws and {_COVERS} "
        "where h.ws = :ws and h.id = :hold",
        ws=ws,
        hold=hold,
    )
    return 0 if row is None else int(row[0])
