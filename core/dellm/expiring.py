"""When records end: what has expired because a source did, and how long its successor is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from . import provenance, reading
from .database import Scope, Tx
from .records import Record, from_micros, to_micros


def lasts(record: Record, at: int) -> bool:
    """Tell whether a record has not expired at `at` (microseconds)."""
    return record.retention_until is None or to_micros(record.retention_until) > at


def by_their_sources(tx: Tx, ws: int, records: Sequence[Record], at: int) -> set[int]:
    """Return those of the records that have expired by `at` together with one they were made from."""
    over = {one.id: one.retention_until for one in records if not lasts(one, at)}
    if not over:
        return set()
    sources = provenance.contexts_of(tx, ws, sorted(over))
    rows = tx.all(
        "select id, retention_until from record where ws = :ws and id in :ids "
        "and retention_until is not null",
        ws=ws,
        ids=sorted({one for some in sources.values() for one in some}),
    )
    ends = {row[0]: from_micros(row[1]) for row in rows}
    return {id_ for id_, until in over.items() if until in {ends.get(one) for one in sources[id_]}}


def renewed(
    tx: Tx, scope: Scope, sources: Mapping[int, Sequence[int]], ids: Sequence[int], at: int
) -> dict[int, Record]:
    """Return the records by id; one that has expired ends, by now, when the first of its sources does.

    `sources` are what each is made anew from: records that stay, or others that are made anew.
    """
    wanted = {*ids, *(one for id_ in ids for one in sources[id_])}
    found = reading.several(tx, scope, sorted(wanted), None)
    for id_ in ids:  # each after what it is made from
        if id_ in found and not lasts(found[id_], at):
            until = [found[one].retention_until for one in sources[id_] if one in found]
            least = min((one for one in until if one is not None), default=None)
            found[id_] = replace(found[id_], retention_until=least)
    return found
