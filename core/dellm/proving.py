"""Making a proof: what each store holds now of what a receipt says was erased, counted by its ids."""

from __future__ import annotations

from typing import Any, LiteralString

from . import ledger, receipts
from .database import Scope, Tx
from .errors import NotFound
from .proof import FORMAT, Proof, Store
from .receipts import Receipt
from .records import from_micros

DAY = 24 * 3600 * 1_000_000
# Where rows name a record, how its rows are counted, and by which name the receipt counted them.
_TABLES: tuple[tuple[str, str, LiteralString], ...] = (
    ("records", "record", "select count(*) from record where ws = :ws and id in :ids"),
    ("vectors", "embedding", "select count(*) from embedding where ws = :ws and id in :ids"),
    (
        "provenance",
        "edge",
        "select count(*) from edge where ws = :ws and (child in :ids or parent in :ids)",
    ),
    ("items", "item", "select count(*) from item where ws = :ws and record in :ids"),
    ("item vectors", "", "select count(*) from item_vector where ws = :ws and record in :ids"),
    ("facts", "fact", "select count(*) from fact where ws = :ws and record in :ids"),
    ("governance", "governed", "select count(*) from governed where ws = :ws and id in :ids"),
    ("exposures", "", "select count(*) from exposure where ws = :ws and node in :ids"),
    ("hidden messages", "", "select count(*) from hidden where ws = :ws and record in :ids"),
)
_COPIES: LiteralString = (
    "select count(*) from elsewhere where ws = :ws and record in :ids and name <> ''"
)
_BY_IDS = "rows counted by the records' ids"


def prove(tx: Tx, scope: Scope, number: int, at: int, valid_days: int) -> Proof:
    """Return the proof of a receipt as of `at` (microseconds); NotFound for a number without one."""
    receipt = receipts.read(tx, scope.ws, scope.name, number)
    entry = ledger.written(tx, scope.ws, number)
    if entry is None:
        raise NotFound(f"There is no receipt {number} in this workspace.")
    data: dict[str, Any] = {
        "format": FORMAT,
        "receipt": receipt.to_json(),
        "scope": {
            "workspace": receipt.workspace,
            "mode": receipt.mode,
            "reach": receipt.reach,
            "records": len(receipt.ids),
        },
        "stores": [
            {"name": one.name, "before": one.before, "after": one.after, "how": one.how}
            for one in _stores(tx, scope.ws, receipt)
        ],
        "chain": entry,
        "level": receipt.level,
        "issued_at": from_micros(at).isoformat(),
        "valid_until": from_micros(at + valid_days * DAY).isoformat(),
    }
    return Proof(data)


def _stores(tx: Tx, ws: int, receipt: Receipt) -> list[Store]:
    ids = list(receipt.ids)
    if receipt.mode == "suppress":
        return [_out_of_use(tx, ws, receipt)]
    found = [
        Store(name, receipt.rows.get(row) if row else None, _count(tx, statement, ws, ids), _BY_IDS)
        for name, row, statement in _TABLES
    ]
    found.append(Store("keyword index", None, tx.indexed(ws, ids), _BY_IDS))
    return [*found, _files(receipt), _elsewhere(tx, ws, ids), *_out_of_reach(receipt)]


def _out_of_use(tx: Tx, ws: int, receipt: Receipt) -> Store:
    """Return what of a suppression any read could still return; the rows themselves stay."""
    used: LiteralString = "select count(*) from record where ws = :ws and id in :ids and status = 0"
    left = _count(tx, used, ws, list(receipt.ids))
    return Store("reads", receipt.rows.get("record"), left, "records in use, by their ids")


def _files(receipt: Receipt) -> Store:
    if receipt.level != "scrubbed":
        return Store("files", None, None, "not looked at since: run scrub")
    how = "every file read for 16-byte windows of what was erased, by keyed digests"
    return Store("files", None, 0, how)


def _elsewhere(tx: Tx, ws: int, ids: list[int]) -> Store:
    how = "copies in vector stores that are noted here; what those stores hold was not asked"
    return Store("vector stores", None, _count(tx, _COPIES, ws, ids), how)


def _out_of_reach(receipt: Receipt) -> list[Store]:
    """Return a store for each outsider that was sent something: nobody has looked there."""
    sent = [f"{one.provider} ({one.model})" for one in receipt.providers]
    return [Store(name, None, None, "not ours to look at") for name in dict.fromkeys(sent)]


def _count(tx: Tx, statement: LiteralString, ws: int, ids: list[int]) -> int:
    row = tx.one(statement, ws=ws, ids=ids)
    return 0 if row is None else int(row[0])
