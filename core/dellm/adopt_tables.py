"""Reading the tables in which other tools keep chat histories: rows as they are, never a change.

The tables are read directly: a tool's own classes create what is not there, and one row that they
cannot read keeps them from reading the rest.

A table need not have an index by session, so the keys are sorted once, and what they stand for is
looked up. Each source is read in one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from .adopt_databases import file_of, is_served, postgres_opened, sqlite_opened
from .errors import InvalidInput, UnsupportedHere

PAGE = 200  # rows that are read at a time
Key = Any  # what a column of the source holds: most often a number, a text or a UUID


class Row(NamedTuple):
    """One message as it is stored; None for what the table does not say of it.

    `made_at` is a datetime, or the number that stands there.
    """

    id: Key
    message: str | bytes | None
    made_at: Any = None
    status: Any = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table of messages, besides `id`.

    `session` says whose a message is and `message` holds it as JSON; they are in the `order` of these
    columns. `usual` is the name that such a table mostly has. `made_at` and `status` may be missing.
    """

    session: str
    message: str
    usual: str
    order: tuple[str, ...] = ("id",)
    made_at: str | None = None
    status: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that a table must have."""
        return list(dict.fromkeys(("id", self.session, self.message, *self.order)))

    def __str__(self) -> str:
        *first, last = self.columns
        return f"the columns {', '.join(first)} and {last}"


class Histories(Protocol):
    """The messages of several sessions."""

    @property
    def table(self) -> str:
        """The table's name, without its schema's."""

    def sizes(self) -> dict[Key, int]:
        """Return the sessions, and how many messages each has."""

    def sessions(self) -> Iterator[tuple[Key, list[Key]]]:
        """Yield each session with the ids of its messages, in their order."""

    def rows(self, ids: Sequence[Key]) -> Iterator[Row]:
        """Yield the messages with these ids, in this order; those that are not there are left out."""


def open_histories(
    source: str, table: str | None, layout: Layout
) -> AbstractContextManager[Histories]:
    """Open a SQLite file by its path, or a PostgreSQL database by its URL, to be read only.

    A URL may name a driver, as SQLAlchemy's do. `table` may be given with its schema; without it,
    the one with the usual name is taken, or the only one with the columns.
    Raises InvalidInput, StorageError, UnsupportedHere.
    """
    scheme, mark, rest = source.partition("://")
    plain = f"{scheme.partition('+')[0]}{mark}{rest}" if mark else source
    if is_served(plain):
        return _postgres(plain, table, layout)
    if mark and not plain.startswith("sqlite:///"):
        raise UnsupportedHere("Only histories on SQLite and PostgreSQL can be read.")
    return _sqlite(plain, table, layout)


def _chosen(named: str | None, there: Sequence[str], layout: Layout) -> int:
    """Return the position of the table to be read among those that are fit to be."""
    if named is not None:
        if there:
            return 0
        raise InvalidInput(f"The source has no table {named!r} with {layout}.")
    if layout.usual in there:
        return there.index(layout.usual)
    if len(there) == 1:
        return 0
    if not there:
        raise InvalidInput(f"The source has no table with {layout}.")
    raise InvalidInput(
        f"The source has several tables with {layout}.",
        remedy=f"Name one with --table: {', '.join(there)}.",
    )


def _grouped(keys: Iterable[tuple[Key, Key]]) -> Iterator[tuple[Key, list[Key]]]:
    for session, some in groupby(keys, key=itemgetter(0)):
        yield session, [id_ for _, id_ in some]


def _paged(ids: Sequence[Key]) -> Iterator[list[Key]]:
    left = iter(ids)
    while page := list(islice(left, PAGE)):
        yield page


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_quoted, names))


# SQLite


@contextmanager
def _sqlite(source: str, table: str | None, layout: Layout) -> Iterator[Histories]:
    with sqlite_opened(file_of(source)) as connection:
        # What is no UTF-8 must not keep the rest from being read.
        connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
        connection.execute("begin")
        yield SqliteHistories(connection, table, layout)


class SqliteHistories:
    """A table in a SQLite file."""

    def __init__(self, connection: Any, table: str | None, layout: Layout) -> None:
        self._connection = connection
        fit = self._fit(table, layout)
        self.table, dated, stated = fit[_chosen(table, [one[0] for one in fit], layout)]
        self._from = f"from {_quoted(self.table)}"
        self._session = _quoted(layout.session)
        self._order = _listed(layout.order)
        made_at = _quoted(layout.made_at) if layout.made_at and dated else "null"
        status = _quoted(layout.status) if layout.status and stated else "null"
        self._told = f"{_quoted(layout.message)}, {made_at}, {status}"

    def _fit(self, table: str | None, layout: Layout) -> list[tuple[str, bool, bool]]:
        """Return the tables fit to be read, and whether they say when, and of what status."""
        columns = layout.columns
        rows = self._connection.execute(
            "select t.name, exists (select 1 from pragma_table_xinfo(t.name) where name = ?2), "
            "exists (select 1 from pragma_table_xinfo(t.name) where name = ?4) "
            "from pragma_table_list t where t.schema = 'main' "
            "and t.type in ('table', 'view') and (?1 is null or t.name = ?1) and ?3 = "
            "(select count(*) from pragma_table_xinfo(t.name) where name in "
            f"({', '.join(f'?{at}' for at, _ in enumerate(columns, 5))})) order by t.name",
            (table, layout.made_at, len(columns), layout.status, *columns),
        )
        return [(name, bool(dated), bool(stated)) for name, dated, stated in rows]

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
                f"order by {self._session} collate binary, {self._order}"
            )
        )

    def rows(self, ids: Sequence[Key]) -> Iterator[Row]:
        """See Histories."""
        for id_ in ids:
            found = self._connection.execute(
                f"select {self._told} {self._from} where id is ?", (id_,)
            )
            for told in found.fetchall():
                yield Row(id_, *told)


# PostgreSQL


@contextmanager
def _postgres(url: str, table: str | None, layout: Layout) -> Iterator[Histories]:
    with postgres_opened(url) as connection, connection.transaction():
        yield PostgresHistories(connection, table, layout)


# What is said of when: a moment, which may be infinite, or a number as it is.
_MADE_AT = {"moment": "case when isfinite({0}) then {0} end", "number": "{0}", None: "null"}


class PostgresHistories:
    """A table in a PostgreSQL database."""

    def __init__(self, connection: Any, table: str | None, layout: Layout) -> None:
        self._connection = connection
        fit = self._fit(table, layout)
        _, self.table, full, dated, stated = fit[_chosen(table, [one[0] for one in fit], layout)]
        self._from = f"from {full}"
        self._session = _quoted(layout.session)
        self._order = _listed(layout.order)
        made_at = _MADE_AT[dated].format(_quoted(layout.made_at or ""))
        status = _quoted(layout.status) if layout.status and stated else "null"
        self._told = f"{_quoted(layout.message)}::text, {made_at}, {status}"

    def _fit(
        self, table: str | None, layout: Layout
    ) -> list[tuple[str, str, str, str | None, bool]]:
        """Return the tables fit to be read: as named, bare, quoted, how dated, if with a status."""
        rows: list[tuple[str, str, str, str | None, bool]] = self._connection.execute(
            "with columns as (select attrelid as of, attname as name, atttypid as type "
            " from pg_attribute where attnum > 0 and not attisdropped) "
            "select c.relname, c.relname, format('%%I.%%I', n.nspname, c.relname), "
            " (select case when type in ('timestamptz'::regtype, 'timestamp'::regtype) "
            "  then 'moment' when type = 'bigint'::regtype then 'number' end "
            "  from columns where of = c.oid and name = %(made_at)s::text), "
            " exists (select 1 from columns where of = c.oid and name = %(status)s::text) "
            "from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^pg_' "
            "and cardinality(%(columns)s::text[]) = (select count(*) from columns "
            " where of = c.oid and name = any(%(columns)s)) "
            "and case when pg_table_is_visible(c.oid) and c.relname = %(table)s then true "
            " when %(table)s::text is null then pg_table_is_visible(c.oid) "
            " else n.nspname || '.' || c.relname = %(table)s end "
            'order by pg_table_is_visible(c.oid) desc, c.relname collate "C"',
            {
                "table": table,
                "columns": layout.columns,
                "made_at": layout.made_at,
                "status": layout.status,
            },
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
                f'order by {self._session}::text collate "C", {self._order}'
            )
            yield from _grouped(cursor)

    def rows(self, ids: Sequence[Key]) -> Iterator[Row]:
        """See Histories."""
        for page in _paged(ids):
            found = self._connection.execute(
                f"select id, {self._told} {self._from} where id = any(%s)", (page,)
            ).fetchall()
            there = {row[0]: Row(*row) for row in found}
            yield from (there[id_] for id_ in page if id_ in there)
