"""The audit chain: one per workspace, each entry bound to the one before it by a digest.

An entry says what was done to which ids, never what they held, so its digest needs no key. It is
appended in the transaction of the change it reports, while the workspace's row is locked, so the
chain has neither gaps nor forks. The workspace keeps both ends: the digest of the last entry that
was pruned, from which the rest still verifies, and that of the newest one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .database import Tx

GENESIS = "0" * 64


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One line of the audit chain; `body` holds ids, counts and codes, `at` microseconds UTC."""

    seq: int
    at: int
    action: str
    body: Mapping[str, Any]
    previous: str
    digest: str


def append(tx: Tx, ws: int, action: str, body: Mapping[str, Any], at: int) -> LedgerEntry:
    """Append an entry and return it; `body` must hold no content."""
    seq, previous = head(tx, ws)
    written = json.dumps(body, sort_keys=True, separators=(",", ":"))
    digest = digest_of(seq + 1, at, action, written, previous)
    tx.run(
        "insert into ledger(ws, seq, at, action, body, previous, digest) "
        "values (:ws, :seq, :at, :action, :body, :previous, :digest)",
        ws=ws,
        seq=seq + 1,
        at=at,
        action=action,
        body=written,
        previous=previous,
        digest=digest,
    )
    tx.later(
        "update workspace set audit_to = :seq, audit_head = :digest where ws = :ws",
        ws=ws,
        seq=seq + 1,
        digest=digest,
    )
    return LedgerEntry(seq + 1, at, action, body, previous, digest)


def head(tx: Tx, ws: int) -> tuple[int, str]:
    """Return (number, digest) of the newest entry; (0, GENESIS) of a chain that never had one."""
    row = tx.one("select seq, digest from ledger where ws = :ws order by seq desc limit 1", ws=ws)
    return anchor(tx, ws) if row is None else (row[0], row[1])


def anchor(tx: Tx, ws: int) -> tuple[int, str]:
    """Return (number, digest) of the last entry that was pruned; (0, GENESIS) where none was."""
    row = tx.one("select audit_from, audit_anchor from workspace where ws = :ws", ws=ws)
    return (0, GENESIS) if row is None or row[1] is None else (int(row[0]), str(row[1]))


def prune(tx: Tx, ws: int, to: int, at: int) -> int:
    """Remove the entries up to number `to`, and say so in the chain; return how many went."""
    last = entry(tx, ws, to)
    if last is None:
        return 0
    gone = tx.run("delete from ledger where ws = :ws and seq <= :to", ws=ws, to=to)
    tx.run(
        "update workspace set audit_from = :to, audit_anchor = :digest where ws = :ws",
        ws=ws,
        to=to,
        digest=last.digest,
    )
    append(tx, ws, "prune", {"to": to, "entries": gone, "digest": last.digest}, at)
    return gone


def entries(tx: Tx, ws: int, action: str | None = None, after: int = 0) -> list[LedgerEntry]:
    """Return the chain, oldest first; of one action alone where it is named, from `after` on."""
    rows = tx.all(
        "select seq, at, action, body, previous, digest from ledger where ws = :ws "
        "and seq > :after and (cast(:only as text) is null or action = :only) order by seq",
        ws=ws,
        only=action,
        after=after,
    )
    return [
        LedgerEntry(seq, at, action, json.loads(body), previous, digest)
        for seq, at, action, body, previous, digest in rows
    ]


def newest(tx: Tx, ws: int, action: str) -> LedgerEntry | None:
    """Return the newest entry of an action, or None."""
    row = tx.one(
        "select seq from ledger where ws = :ws and action = :action order by seq desc limit 1",
        ws=ws,
        action=action,
    )
    return None if row is None else entry(tx, ws, int(row[0]))


def entry(tx: Tx, ws: int, seq: int) -> LedgerEntry | None:
    """Return one entry, or None."""
    row = tx.one(
        "select seq, at, action, body, previous, digest from ledger where ws = :ws and seq = :seq",
        ws=ws,
        seq=seq,
    )
    if row is None:
        return None
    return LedgerEntry(row[0], row[1], row[2], json.loads(row[3]), row[4], row[5])


def written(tx: Tx, ws: int, seq: int) -> dict[str, Any] | None:
    """Return one entry as it is stored, the body as its JSON text, by which its digest was made."""
    names = ("seq", "at", "action", "body", "previous", "digest")
    row = tx.one(
        "select seq, at, action, body, previous, digest from ledger where ws = :ws and seq = :seq",
        ws=ws,
        seq=seq,
    )
    return None if row is None else dict(zip(names, row, strict=True))


def broken_at(tx: Tx, ws: int) -> int | None:
    """Return the number of the first entry that does not follow from the one before, or None.

    One more than the newest entry's where the newest ones are missing.
    """
    pruned, previous = anchor(tx, ws)
    expected = pruned + 1
    rows = tx.all(
        "select seq, at, action, body, previous, digest from ledger where ws = :ws order by seq",
        ws=ws,
    )
    for seq, at, action, body, before, digest in rows:
        good = seq == expected and before == previous
        if not good or digest != digest_of(seq, at, action, body, before):
            return int(seq)
        expected, previous = seq + 1, digest
    row = tx.one("select audit_to, audit_head from workspace where ws = :ws", ws=ws)
    if row is None or row[0] is None or tuple(row) == (expected - 1, previous):
        return None
    return expected


def digest_of(seq: int, at: int, action: str, body: str, previous: str) -> str:
    """Return the digest of an entry: SHA-256 of its parts as they are stored, one on a line."""
    said = "\n".join((str(seq), str(at), action, body, previous))
    return hashlib.sha256(said.encode()).hexdigest()
