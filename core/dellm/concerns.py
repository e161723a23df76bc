"""Whom records are about: found by a keyed digest, since no index holds content (DESIGN, decision 15)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence

from .database import Scope, Tx
from .encoding import decode
from .records import Draft

AT_ONCE = 5_000


def key_of(scope: Scope, subject: str) -> int:
    """Return the keyed digest of a subject, a whole number of 63 bits; case and outer space aside."""
    said = "subject:" + " ".join(subject.split()).casefold()
    digest = hmac.digest(scope.secret, said.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return int.from_bytes(digest[:8], "big") >> 1


def note(tx: Tx, scope: Scope, drafts: Iterable[tuple[int, Draft]]) -> None:
    """Keep whom records that are being stored are about."""
    _keep(tx, scope, [(id_, one.subject) for id_, one in drafts if one.subject is not None])


def _keep(tx: Tx, scope: Scope, said: Sequence[tuple[int, str]]) -> None:
    if said:
        tx.many(
            "insert into concerns(ws, key, record) values (:ws, :key, :record)",
            [
                {"ws": scope.ws, "key": key_of(scope, subject), "record": id_}
                for id_, subject in said
            ],
        )


def missing(tx: Tx, ws: int) -> bool:
    """Tell whether the workspace has records from before whom they are about was kept."""
    row = tx.one("select concerns from workspace where ws = :ws", ws=ws)
    return row is not None and not row[0]


def complete(tx: Tx, scope: Scope) -> None:
    """Keep whom those records are about; the caller has locked the workspace. Safe to repeat."""
    last = 0
    while rows := tx.all(
        "select id, subject from record where ws = :ws and id > :last and subject is not null "
        "and not exists (select 1 from concerns c where c.ws = :ws and c.record = record.id) "
        "order by id limit :most",
        ws=scope.ws,
        last=last,
        most=AT_ONCE,
    ):
        last = rows[-1][0]
        _keep(tx, scope, [(id_, decode(subject)) for id_, subject in rows])
    tx.run("update workspace set concerns = 1 where ws = :ws", ws=scope.ws)


def erase(tx: Tx, ws: int, ids: Sequence[int]) -> int:
    """Remove what is kept of records that go; return how many rows."""
    return tx.run("delete from concerns where ws = :ws and record in :ids", ws=ws, ids=list(ids))
