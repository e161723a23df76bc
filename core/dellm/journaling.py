"""What the journal is told of a forget, and what it says of a database that may be an old one."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from . import ledger
from .database import Database, Scope, Tx
from .journal import Journal, Noted
from .ledger import LedgerEntry

LIFTABLE = "suppress"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a workspace stands to the journal: what was `lost`, and what was rolled back (`void`)."""

    lost: tuple[Noted, ...] = ()
    void: tuple[Noted, ...] = ()
    done: tuple[Noted, ...] = ()


def identities(tx: Tx, scope: Scope, ids: Collection[int]) -> dict[int, str]:
    """Return a keyed digest of what never changes about each record that is there; no content."""
    rows = tx.all(
        "select id, thread, kind, role, created_at, tokens from record where ws = :ws and id in :ids",
        ws=scope.ws,
        ids=sorted(ids),
    )
    return {row[0]: _digest(scope.secret, row) for row in rows}


def _digest(secret: bytes, row: Sequence[object]) -> str:
    said = "journal\n" + "\n".join(map(str, row))
    return hmac.digest(secret, said.encode("utf-8", "surrogatepass"), hashlib.sha256)[:12].hex()


def write(scope: Scope, journal: Journal, entry: LedgerEntry, known: dict[int, str]) -> None:
    """Have the journal say what a forget takes, before it commits."""
    journal.meant(scope.name, Noted(entry.seq, entry.digest, entry.action, known))


def lift(scope: Scope, journal: Journal, entry: LedgerEntry | None) -> None:
    """Have the journal say, once this commits, that a suppression was undone."""
    if entry is not None:
        journal.lifted(scope.name, Noted(entry.seq, entry.digest, LIFTABLE, {}))


def notice(database: Database, journal: Journal, scope: Scope) -> bool:
    """Whether the journal has a forget of the workspace that its database lost; marks the rest."""
    noted = journal.read().get(scope.name, [])
    if not noted:
        return False
    with database.transaction(scope) as tx:
        found = standing(tx, scope.ws, noted)
    if found.done:
        journal.mark("done", scope.name, found.done)
    if found.void:
        journal.mark("void", scope.name, found.void)
    return bool(found.lost)


def standing(tx: Tx, ws: int, noted: Sequence[Noted]) -> Standing:
    """Return what of a workspace's forgets its audit chain knows nothing of.

    One that is marked as done and missing shows that the database is an older one. Then those are
    lost as well that nobody could mark; else they were rolled back.
    """
    open_ones = [one for one in noted if one.state in {"meant", "done"}]
    there = _in_chain(tx, ws, [seq for one in open_ones for seq, _ in one.entries])
    pruned = ledger.anchor(tx, ws)[0]
    missing = [
        one
        for one in open_ones
        if not any(entry in there or entry[0] <= pruned for entry in one.entries)
    ]
    unmarked = tuple(one for one in missing if one.state == "meant")
    found = tuple(one for one in open_ones if one.state == "meant" and one not in missing)
    if any(one.state == "done" for one in missing):
        return Standing(lost=tuple(missing), done=found)
    return Standing(void=unmarked, done=found)


def _in_chain(tx: Tx, ws: int, numbers: Sequence[int]) -> set[tuple[int, str]]:
    rows = tx.all(
        "select seq, digest from ledger where ws = :ws and seq in :numbers",
        ws=ws,
        numbers=list(numbers),
    )
    return {(row[0], row[1]) for row in rows}


def come_back(tx: Tx, scope: Scope, lost: Sequence[Noted]) -> dict[str, list[int]]:
    """Return, by mode, the records of lost forgets that are there again: ids with the same digest."""
    found: dict[str, list[int]] = {}
    for one in lost:
        known = identities(tx, scope, one.ids)
        back = [id_ for id_, digest in one.ids.items() if known.get(id_) == digest]
        mode = one.mode if one.mode == LIFTABLE else "erase"
        found.setdefault(mode, []).extend(back)
    return {mode: sorted(set(ids)) for mode, ids in found.items() if ids}
