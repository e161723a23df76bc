"""Finding the receipt of a forget that was asked for before, so that it is safe to repeat."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Mapping
from dataclasses import replace

from . import ledger, receipts
from .database import Scope, Tx
from .plan import Plan
from .receipts import Receipt
from .selectors import Selector


def receipt_of(tx: Tx, scope: Scope, plan: Plan) -> Receipt | None:
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
    if number is None or ledger.entry(tx, scope.ws, number) is None:  # its entry may be pruned
        return None
    receipt = receipts.read(tx, scope.ws, scope.name, number)
    return None if _undone(tx, scope, receipt) else receipt


def _undone(tx: Tx, scope: Scope, receipt: Receipt) -> bool:
    """Whether a suppression was undone since: then the same plan is to be executed again."""
    return receipt.mode == "suppress" and any(
        entry.body["receipt"] == receipt.number
        for entry in ledger.entries(tx, scope.ws, "restore", after=receipt.number)
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


def remember(tx: Tx, scope: Scope, plan: Plan, receipt: int, at: int, until: int) -> None:
    """Note keyed digests of an executed plan and of what was asked; they expire at `until`."""
    tx.run("delete from repeat where ws = :ws and expires_at <= :at", ws=scope.ws, at=at)
    tx.many(
        "insert into repeat(ws, digest, receipt, expires_at) "
        "values (:ws, :digest, :receipt, :until) "
        "on conflict (ws, digest) do update set receipt = excluded.receipt, "
        "expires_at = excluded.expires_at",
        [
            {"ws": scope.ws, "digest": key, "receipt": receipt, "until": until}
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
