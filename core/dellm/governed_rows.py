"""The rows of what records say of themselves besides what follows from them: see governed.

A record that says nothing has none. They go with their record, at the choke point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from .database import Tx
from .encoding import decode, encode
from .governance import usual_creator
from .records import Draft

if TYPE_CHECKING:
    from .redacting import Version


class Said(NamedTuple):
    """What a record says: who made it, on what basis, its class, and the event it came from."""

    created_by: str | None = None
    basis: str | None = None
    retention: str | None = None
    source: str | None = None


def insert(tx: Tx, ws: int, drafts: Iterable[tuple[int, Draft]]) -> bool:
    """Keep what drafts that were stored under these ids say; return whether any says something."""
    said = {id_: _said(one) for id_, one in drafts}
    rows = [
        {
            "ws": ws,
            "id": id_,
            "by": one.created_by,
            "basis": one.basis,
            "class": one.retention,
            "source": None if one.source is None else encode(one.source),
        }
        for id_, one in said.items()
        if any(one)
    ]
    tx.many(
        "insert into governed(ws, id, created_by, basis, class, source) "
        "values (:ws, :id, :by, :basis, :class, :source)",
        rows,
    )
    return bool(rows)


def _said(draft: Draft) -> Said:
    usual = draft.created_by == usual_creator(draft.kind, draft.role)
    made_by = None if usual else draft.created_by
    return Said(made_by, draft.basis, draft.retention, draft.source)


def of(tx: Tx, ws: int, ids: Sequence[int]) -> dict[int, Said]:
    """Return what the records say of themselves, by id; nothing of those that say nothing."""
    rows = tx.all(
        "select id, created_by, basis, class, source from governed where ws = :ws and id in :ids",
        ws=ws,
        ids=list(ids),
    )
    return {
        row[0]: Said(row[1], row[2], row[3], None if row[4] is None else decode(row[4]))
        for row in rows
    }


def inherited(tx: Tx, ws: int, versions: Mapping[int, Version]) -> dict[int, Version]:
    """Return the new versions of records, by old id, saying of themselves what the old ones did.

    But for the event they came from, which is not looked at for what was forgotten.
    """
    if not versions:
        return {}
    said = of(tx, ws, list(versions))
    return {
        old: replace(one, draft=_with(one.draft, said[old])) if old in said else one
        for old, one in versions.items()
    }


def _with(draft: Draft, said: Said) -> Draft:
    return replace(draft, created_by=said.created_by, basis=said.basis, retention=said.retention)


def erase(tx: Tx, ws: int, ids: Sequence[int]) -> int:
    """Remove what erased records said of themselves; return how many rows that were."""
    return tx.run("delete from governed where ws = :ws and id in :ids", ws=ws, ids=list(ids))
