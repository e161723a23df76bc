"""Reading the tables of stock chat message histories: their rows as they are, never a change.

Tables of SQLChatMessageHistory (langchain-community: a number, a session, the message as JSON text)
and of PostgresChatMessageHistory (langchain-postgres: the session a UUID, the message JSONB, when it
was made). The tables are read directly: the stock classes create what is not there, and one row that
they cannot read keeps them from reading the rest.

A table need not have an index by session, so the keys are sorted once, and what they stand for is
looked up. Each source is read in one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from dellm import InvalidInput, UnsupportedHere

from .adopt_databases import file_of, is_served, postgres_opened, sqlite_opened

PAGE = 200  # rows that are read at a time
USUAL = "message_store"  # the name that SQLChatMessageHistory gives its table
Key = Any  # what a column of the source holds: most often a number, a text or a UUID


class Row(NamedTuple):
    """One message as it is stored; `made_at` is None where the table does not say."""

    id: Key
    message: str | bytes | None
    made_at: datetime | None


class Histories(Protocol):
    """A table of a stock chat message history."""

    table: str
    """The table's name, without its schema's."""

    def sizes(self) -> dict[Key, int]:
        """Return the sessions, and how many messages each has."""

    def sessions(self) -> Iterator[tuple[Key, list[Key]]]:
        """Yield each session with the ids of its messages, in their order."""

    def rows(self, ids: Sequence[Key]) -> Iterator[Row]:
        """Yield the messages with these ids, in this order; those that are not there are left out."""


def open_histories(
    source: str, table: str | None, session: str
) -> AbstractContextManager[Histories]:
    """Open a SQLite file by its path, or a PostgreSQL database by its URL, to be read only.

    A URL may name a driver, as SQLAlchemy's do. `table` may be given with its schema; without it,
    message_store is taken, or the only table with the columns id, `session` and message.
    Raises InvalidInput, StorageError, UnsupportedHere.
    """
    scheme, mark, rest = source.partition("://")
    plain = f"{scheme.partition('+')[0]}{mark}{rest}" if mark else source
    if is_served(plain):
        return _postgres(plain, table, session)
    if mark and not plain.startswith("sqlite:///"):
        raise UnsupportedHere("Only histories on SQLite and PostgreSQL can be read.")
    return _sqlite(plain, table, session)


def _chosen(named: str | None, there: Sequence[str], session: str) -> int:
    """Return the position of the table to be read among those that are fit to be."""
    if named is not None:
        if there:
            return 0
        raise InvalidInput(
            f"The source has no table {named!r} with the columns id, {session} and message."
        )
    if USUAL in there:
        return there.index(USUAL)
    if len(there) == 1:
        return 0
    if not there:
        raise InvalidInput(f"The source has no table with the columns id, {session} and message.")
    raise InvalidInput(
        f"The source has several tables with the columns id, {session} and message.",
        remedy=f"Name one with --table: {', '.join(there)}.",
    )


def _grouped(keys: Iterable[tuple[Key, Key]]) -> Iterator[tuple[Key, list[Key]]]:
    for session, some in groupby(keys, key=itemgetter(0)):
        yield session, [id_ for _, id_ in some]


def _paged(ids: Sequence[Key]) -> Iterator[list[Key]]:
    left = iter(ids)
    while page := list(islice(left, PAGE)):
        yield page


# SQLite


@contextmanager
def _sqlite(source: str, table: str | None, session: str) -> Iterator[Histories]:
    with sqlite_opened(file_of(source)) as connection:
        # What is no UTF-8 must not keep the rest from being read.
        connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
        connection.execute("begin")
        yield SqliteHistories(connection, table, session)


class SqliteHistories:
    """A table in a SQLite file."""

    def __init__(self, connection: Any, table: str | None, session: str) -> None:
        self._connection = connection
        fit = self._fit(table, session)
        self.table = fit[_chosen(table, fit, session)]
        self._from = f"from {_quoted(self.table)}"
        self._session = _quoted(session)

    def _fit(self, table: str | None, session: str) -> list[str]:
        rows = self._connection.execute(
            "select t.name from pragma_table_list t where t.schema = 'main' "
            "and t.type in ('table', 'view') and (?1 is null or t.name = ?1) and 3 = "
            "(select count(*) from pragma_table_xinfo(t.name) where name in ('id', 'message', ?2)) "
            "order by t.name",
            (table, session),
        )
        return [name for (name,) in rows]

    def sizes(self) -> dict[Key, int]:
        """See Histories."""
        return dict(
            self._connection.execute(
                f"select {self._session} collate binary, count(*) {self._from} group by 1"
            ).fetchall()
        )

    def sessions(self) -> Iterator[tuple[Key, list[Key]]]:
        """See Histories."""
        return _grouped(
            self._connection.execute(
                f"select {self._session}, id {self._from} "
                f"order by {self._session} collate binary, id"
            )
        )

    def rows(self, ids: Sequence[Key]) -> Iterator[Row]:
        """See Histories."""
        for id_ in ids:
            found = self._connection.execute(f"select message {self._from} where id is ?", (id_,))
            for (message,) in found.fetchall():
                yield Row(id_, message, None)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


# PostgreSQL


@contextmanager
def _postgres(url: str, table: str | None, session: str) -> Iterator[Histories]:
    with postgres_opened(url) as connection, connection.transaction():
        yield PostgresHistories(connection, table, session)


class PostgresHistories:
    """A table in a PostgreSQL database."""

    def __init__(self, connection: Any, table: str | None, session: str) -> None:
        self._connection = connection
        fit = self._fit(table, session)
        _, self.table, full, dated = fit[_chosen(table, [one[0] for one in fit], session)]
        self._from = f"from {full}"
        self._session = _quoted(session)
        self._made_at = "case when isfinite(created_at) then created_at end" if dated else "null"

    def _fit(self, table: str | None, session: str) -> list[tuple[str, str, str, bool]]:
        """Return the tables fit to be read: as named, bare, quoted, and whether they are dated."""
        rows: list[tuple[str, str, str, bool]] = self._connection.execute(
            "with columns as (select attrelid as of, attname as name, atttypid as type "
            " from pg_attribute where attnum > 0 and not attisdropped) "
            "select c.relname, c.relname, format('%%I.%%I', n.nspname, c.relname), exists "
            " (select 1 from columns where of = c.oid and name = 'created_at' "
            "  and type in ('timestamptz'::regtype, 'timestamp'::regtype)) "
            "from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^pg_' "
            "and 3 = (select count(*) from columns "
            " where of = c.oid and name in ('id', 'message', %(session)s)) "
            "and case when pg_table_is_visible(c.oid) and c.relname = %(table)s then true "
            " when %(table)s::text is null then pg_table_is_visible(c.oid) "
            " else n.nspname || '.' || c.relname = %(table)s end "
            'order by pg_table_is_visible(c.oid) desc, c.relname collate "C"',
            {"table": table, "session": session},
        ).fetchall()
        return rows

    def sizes(self) -> dict[Key, int]:
        """See Histories."""
        return dict(
            self._connection.execute(
                f"select {self._session}, count(*) {self._from} group by 1"
            ).fetchall()
        )

    def sessions(self) -> Iterator[tuple[Key, list[Key]]]:
        """See Histories."""
        with self._connection.cursor(name="dellm_sessions") as cursor:
            cursor.execute(
                f"select {self._session}, id {self._from} "
                f'order by {self._session}::text collate "C", id'
            )
            yield from _grouped(cursor)

    def rows(self, ids: Sequence[Key]) -> Iterator[Row]:
        """See Histories."""
        for page in _paged(ids):
            found = self._connection.execute(
                f"select id, message::text, {self._made_at} {self._from} where id = any(%s)",
                (page,),
            ).fetchall()
            there = {row[0]: Row(*row) for row in found}
            yield from (there[id_] for id_ in page if id_ in there)
