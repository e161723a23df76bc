"""The rows that give values names: deleting values, and following their records through a forget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from . import holding
from .database import Row, Tx
from .encoding import decode, encode, load_json
from .item_vectors import ItemVectors
from .records import HIDDEN

REPLACED = "replaced"  # the role of a record whose value was replaced or deleted
CACHED = "cached"  # the role of a record that holds what a cache gives again
NAMED_BY_CONTENT = frozenset({"answer"})  # families whose names are digests of their values
ALL_KNOWN = "all_known"  # in its metadata: its parents are all that it was made from


def make_way(
    tx: Tx, ws: int, rows: Sequence[Mapping[str, Any]], at: int, holds: int | None = None
) -> None:
    """Take the content out of what is under names, each given with the `record` that is to be there."""
    found = [(one["record"], *old) for one in rows for old in tx.all(_UNDER, **_name(one))]
    olds = [(old, kind) for new, old, kind in found if old != new]
    findable = any(kind not in HIDDEN for _, kind in olds)
    empty(tx, ws, [one for one, _ in olds], at, findable=findable, holds=holds)


# A join SQLite would prepare anew for each call.
_UNDER = (
    "select i.record, (select r.kind from record r where r.ws = :ws and r.id = i.record) "
    "from item i where i.ws = :ws and i.family = :family and i.space = :space and i.name = :name"
)


def _name(row: Mapping[str, Any]) -> dict[str, Any]:
    return {one: row[one] for one in ("ws", "family", "space", "name")}


def keep(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Put records under names, in the place of others."""
    tx.many(
        "insert into item(ws, family, space, name, record, ttl, expires_at, created_at, updated_at) "
        "values (:ws, :family, :space, :name, :record, :ttl, :until, :at, :at) "
        "on conflict (ws, family, space, name) do update set record = excluded.record, "
        "ttl = excluded.ttl, expires_at = excluded.expires_at, updated_at = excluded.updated_at",
        rows,
    )


def drop(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Take names away, from what is not on hold: no read returns that."""
    tx.many(
        "delete from item where ws = :ws and family = :family and space = :space and name = :name "
        "and not exists (select 1 from hold_wait q where q.ws = :ws and q.id = item.record)",
        rows,
    )


def delete(tx: Tx, ws: int, family: str, rows: Sequence[Row], at: int, *, receipt: int = 0) -> None:
    """Delete values, each given as (space, name, record) as they are stored; `receipt` as in empty."""
    empty(tx, ws, [row[2] for row in rows], at, receipt=receipt)
    named = {"ws": ws, "family": encode(family)}
    drop(tx, [{**named, "space": space, "name": name} for space, name, _ in rows])


def move(tx: Tx, ws: int, old: int, new: int, at: int, *, findable: bool, holds: int) -> None:
    """Let a record that holds the same take the place of a value's, as that was kept."""
    both = {"ws": ws, "old": old, "new": new}
    tx.later("update item set record = :new where ws = :ws and record = :old", **both)
    tx.later("update item_vector set record = :new where ws = :ws and record = :old", **both)
    tx.later(
        "insert into exposure(ws, node, outsider, day, calls, first_at, last_at) "
        "select ws, cast(:new as bigint), outsider, day, calls, first_at, last_at from exposure "
        "where ws = :ws and node = :old on conflict (ws, node, outsider, day) do nothing",
        **both,
    )
    empty(tx, ws, [old], at, findable=findable, holds=holds)


def empty(
    tx: Tx,
    ws: int,
    ids: Sequence[int],
    at: int,
    *,
    findable: bool = True,
    holds: int | None = None,
    receipt: int = 0,
) -> None:
    """Take the content out of records; they stay as what others were made from.

    `findable`: whether a search may find one of them. One that a hold covers is kept as it is, out of
    use, and waits for the hold's end: see holding.replaced for `holds` and `receipt`.
    """
    if not ids:
        return
    ItemVectors.drop(tx, ws, ids)
    kept = holding.replaced(tx, ws, ids, at, holds, receipt)
    ids = [one for one in ids if one not in kept]
    if findable:
        _unfind(tx, ws, ids)
    tx.later(
        "update record set text = '', payload = null, metadata = null, role = :role "
        "where ws = :ws and id in :ids and status <> 3",
        ws=ws,
        ids=list(ids),
        role=REPLACED,
    )


def _unfind(tx: Tx, ws: int, ids: Sequence[int]) -> None:
    """Let no search find records that one might find: a fact, say, unlike a store's item."""
    rows = tx.all(
        "select id, tokens from record where ws = :ws and id in :ids and kind <> 'state' "
        "and status not in (2, 3)",
        ws=ws,
        ids=list(ids),
    )
    if not rows:
        return
    found = [row[0] for row in rows]
    tx.drop_terms(ws, found)
    tx.run("delete from embedding where ws = :ws and id in :ids", ws=ws, ids=found)
    tx.run(
        "update record set kind = 'state', tokens = 0 where ws = :ws and id in :ids",
        ws=ws,
        ids=found,
    )
    tx.run(
        "update workspace set documents = documents - :found, tokens = tokens - :tokens, "
        "generation = generation + 1 where ws = :ws",  # of the vectors that are kept at hand
        ws=ws,
        found=len(found),
        tokens=sum(row[1] for row in rows),
    )


def drop_given(
    tx: Tx, ws: int, ids: Sequence[int], asked: Collection[int], at: int, receipt: int
) -> None:
    """Delete the entries of caches that would bring back what goes; `asked`: what was asked for.

    That are those from which a record that was asked for came. One from which another came stays if
    all that it was made from is known: then none of that goes, or the entry would go with it.
    """
    given = tx.all(
        "select i.family, i.space, i.name, i.record, r.metadata, e.child from item i "
        "join record r on r.ws = :ws and r.id = i.record and r.role = :cached "
        "join edge e on e.ws = :ws and e.parent = i.record and e.child in :ids where i.ws = :ws",
        ws=ws,
        ids=list(ids),
        cached=CACHED,
    )
    gone = {row[:4] for row in given if row[5] in asked or not _all_known(row[4])}
    for family in {row[0] for row in gone}:
        rows = [row[1:] for row in gone if row[0] == family]
        delete(tx, ws, decode(family), rows, at, receipt=receipt)


def _all_known(metadata: str | None) -> bool:
    return metadata is not None and load_json(metadata).get(ALL_KNOWN) is True


def standing(tx: Tx, ws: int, ids: Sequence[int]) -> list[Row]:
    """Return the names of the values that the records hold: what `stand_in` needs afterwards."""
    return tx.all(
        "select family, space, name, record, ttl, expires_at, created_at, updated_at from item "
        "where ws = :ws and record in :ids",
        ws=ws,
        ids=list(ids),
    )


def stand_in(tx: Tx, ws: int, stood: Sequence[Row], versions: Mapping[int, int]) -> None:
    """Give the names of erased records to those that redaction put in their place.

    Not those that were made of what the record said.
    """
    tx.many(
        "insert into item(ws, family, space, name, record, ttl, expires_at, created_at, updated_at) "
        "values (:ws, :family, :space, :name, :record, :ttl, :until, :created, :updated)",
        [
            {
                "ws": ws,
                "family": row[0],
                "space": row[1],
                "name": row[2],
                "record": versions[row[3]],
                "ttl": row[4],
                "until": row[5],
                "created": row[6],
                "updated": row[7],
            }
            for row in stood
            if row[3] in versions and decode(row[0]) not in NAMED_BY_CONTENT
        ],
    )


def erase(
    tx: Tx, ws: int, ids: Sequence[int], asked: Collection[int], at: int, receipt: int
) -> int:
    """Delete the names and vectors of records that are being erased; return how many names.

    `asked`: those of them that were asked for, and are not only what was made of these.
    """
    drop_given(tx, ws, ids, asked, at, receipt)
    ItemVectors.drop(tx, ws, ids)
    return tx.run("delete from item where ws = :ws and record in :ids", ws=ws, ids=list(ids))
