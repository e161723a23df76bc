"""Suppressing: taking records out of every read undoably, and undoing it."""

from __future__ import annotations

from collections.abc import Iterable

from . import erasing, fact_rows, holding, item_rows, journaling, ledger
from .database import Scope, Tx
from .ledger import LedgerEntry
from .plan import Plan
from .receipts import Receipt
from .records import Status


def suppress(tx: Tx, scope: Scope, plan: Plan, receipt: int, at: int) -> dict[str, int]:
    """Take the plan's records out of every read, undoably; no sequence they reach is extended."""
    changed = tx.run(
        "update record set status = :suppressed where ws = :ws and id in :ids and status = 0",
        ws=scope.ws,
        ids=list(plan.ids),
        suppressed=int(Status.SUPPRESSED),
    )
    asked = {one.id for one in plan.matches}
    item_rows.drop_given(tx, scope.ws, list(plan.ids), asked, at, receipt)
    fact_rows.settle_records(tx, scope.ws, list(plan.ids))
    dead = erasing.reached_sequences(plan.ids, plan.edges)
    return {"record": changed, "sequence": erasing.kill(tx, scope.ws, dead, at, receipt)}


def restore(tx: Tx, scope: Scope, receipt: Receipt, at: int) -> list[int]:
    """Undo a suppression: return the ids that may be used again.

    What another suppression took as well, and was not undone, stays out of use, and so does what is
    on hold.
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
    fact_rows.settle_records(tx, scope.ws, back)
    back = holding.unsuppress(tx, scope, receipt.number, back)
    if scope.journal is not None:
        journaling.lift(scope, scope.journal, ledger.entry(tx, scope.ws, receipt.number))
    ledger.append(tx, scope.ws, "restore", {"receipt": receipt.number, "ids": back}, at)
    return back


def withheld(tx: Tx, ws: int) -> set[int]:
    """Return the records that a suppression holds, and their versions since.

    What waits for confirmation keeps its status when it is suppressed: by this it waits no longer.
    """
    chain = ledger.entries(tx, ws, "suppress")
    if not chain:
        return set()
    held = _held(chain + ledger.entries(tx, ws, "restore"))
    return _with_versions(ledger.entries(tx, ws, "redact"), held) if held else held


def open_since(tx: Tx, ws: int) -> list[int]:
    """Return the numbers of the suppressions that were not undone and still hold a record back."""
    chain = ledger.entries(tx, ws, "suppress")
    taken = _taken(chain + ledger.entries(tx, ws, "restore")) if chain else {}
    there = (
        tx.all("select id from record where ws = :ws and status in (1, 2)", ws=ws) if taken else []
    )
    left = {row[0] for row in there}
    redacted = ledger.entries(tx, ws, "redact")
    return [seq for seq, ids in taken.items() if _with_versions(redacted, ids) & left]


def _held(chain: Iterable[LedgerEntry]) -> set[int]:
    """Return what the suppressions of a chain took that were not undone in it."""
    return {id_ for ids in _taken(chain).values() for id_ in ids}


def _taken(chain: Iterable[LedgerEntry]) -> dict[int, list[int]]:
    """Return the records of each suppression that was not undone in a chain, by its number."""
    taken: dict[int, list[int]] = {}
    for entry in chain:
        if entry.action == "suppress":
            taken[entry.seq] = entry.body["ids"]
        elif entry.action == "restore":
            taken.pop(entry.body["receipt"], None)
    return taken


def _only_suppressed_by(tx: Tx, ws: int, receipt: Receipt) -> list[int]:
    """Return the receipt's ids, and their redacted versions, that no other suppression holds."""
    chain = ledger.entries(tx, ws)
    held = _held(one for one in chain if one.seq != receipt.number)
    return sorted(_with_versions(chain, receipt.ids) - _with_versions(chain, held))


def _with_versions(chain: Iterable[LedgerEntry], ids: Iterable[int]) -> set[int]:
    """Return the ids, and those of the versions that later redactions put in their place."""
    found = set(ids)
    for entry in chain:
        for old, new in entry.body.get("redacted", {}).items():
            if int(old) in found:
                found.add(new)
    return found
