"""Reading records back: by id, by thread, all of them. Only what may be used is returned."""

from __future__ import annotations

from collections.abc import Sequence

from . import hiding
from .database import ASKED, USABLE, Scope, Tx
from .encoding import encode
from .errors import InvalidInput, NotFound
from .records import Record
from .storing import COLUMNS


def get(tx: Tx, scope: Scope, id_: int, at: int) -> Record:
    """Return the record; NotFound when it is not there to be read (erased, suppressed, never was)."""
    row = tx.one(
        f"select {COLUMNS} from record where ws = :ws and id = :id and {USABLE}",
        ws=scope.ws,
        id=id_,
        at=at,
    )
    if row is None:
        raise NotFound(f"No usable record has the id {id_}.")
    return Record.from_row(row, scope.name)


def several(
    tx: Tx, scope: Scope, ids: Sequence[int], at: int | None, *, asked: bool = False
) -> dict[int, Record]:
    """Return the records by id; only usable ones, or whatever is stored when `at` is None.

    `asked`: what may not be read by who asks is not there.
    """
    usable = f"and {USABLE}" if at is not None else f"and {ASKED}" if asked else ""
    values = {} if at is None else {"at": at}
    rows = tx.all(
        f"select {COLUMNS} from record where ws = :ws and id in :ids {usable}",
        ws=scope.ws,
        ids=list(ids),
        **values,
    )
    return {row[0]: Record.from_row(row, scope.name) for row in rows}


def thread(
    tx: Tx,
    scope: Scope,
    name: str,
    at: int,
    *,
    last: int | None = None,
    before: int | None = None,
    among: str = "all",
) -> list[Record]:
    """Return the usable records of a thread in order; the newest `last` of them, if given.

    `before` leaves out what stands at or after that record's place; `among` is as in hiding.AMONG.
    """
    if last is not None and last < 0:
        raise InvalidInput("last= is zero or more.")
    rows = tx.all(
        f"select {COLUMNS} from record where ws = :ws and thread = :thread and {USABLE} "
        "and kind <> 'state' "
        "and (cast(:before as bigint) is null or place < :before) "
        f"and {hiding.among(among)} "
        "and not exists (select 1 from workspace w where w.ws = :ws and w.memory_off = 1) "
        "order by place desc, id desc limit :last",
        ws=scope.ws,
        thread=encode(name),
        at=at,
        before=before,
        last=(1 << 62) if last is None else last,
    )
    return [Record.from_row(row, scope.name) for row in reversed(rows)]


def threads(tx: Tx, scope: Scope, at: int) -> list[tuple[str, int]]:
    """Return (thread as stored, number of usable records), by name."""
    rows = tx.all(
        f"select thread, count(*) from record where ws = :ws and thread <> '' and {USABLE} "
        "and kind <> 'state' "
        "group by thread order by thread",
        ws=scope.ws,
        at=at,
    )
    return [(row[0], row[1]) for row in rows]


def page(tx: Tx, scope: Scope, after: int, limit: int, at: int) -> list[Record]:
    """Return the next `limit` usable records above an id, ascending."""
    rows = tx.all(
        f"select {COLUMNS} from record where ws = :ws and id > :after and {USABLE} "
        "order by id limit :limit",
        ws=scope.ws,
        after=after,
        limit=limit,
        at=at,
    )
    return [Record.from_row(row, scope.name) for row in rows]


def all_ids(tx: Tx, scope: Scope, at: int) -> list[int]:
    """Return the ids of the usable records, ascending."""
    rows = tx.all(
        f"select id from record where ws = :ws and {USABLE} order by id", ws=scope.ws, at=at
    )
    return [row[0] for row in rows]


def all_of_thread(tx: Tx, ws: int, name: str) -> list[int]:
    """Return the ids of a thread's records in use, ascending, whatever their kind; expired ones too."""
    rows = tx.all(
        "select id from record where ws = :ws and thread = :thread and status = 0 and audience = 0 "
        "order by id",
        ws=ws,
        thread=encode(name),
    )
    return [row[0] for row in rows]
