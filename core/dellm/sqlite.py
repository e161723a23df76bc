"""SQLite through apsw: the only module that knows SQLite's dialect and files.

One connection behind a lock serves every thread of the process; other processes take turns
through SQLite's own locking. ``secure_delete`` is set and asserted on every connection.
"""

from __future__ import annotations

import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import apsw
import numpy as np

from . import database, matrix
from .database import Cleaned, Filter, Row, Scope, Seen, Vector
from .encoding import decode
from .errors import DatabaseClosed, SchemaError, StorageError
from .sqlite_text import prepared
from .terms import terms as split_terms

APPLICATION_ID = 0x44654C4C  # "DeLL" in the file's header: tells our files from others
BUSY_MS = 30_000
# The keyword index keys its rows by workspace and record, so that a term is looked up inside one
# workspace by a range of rowids.
_SHIFT = 32

_PROBLEMS: tuple[tuple[type[apsw.Error], type[StorageError], str], ...] = (
    (apsw.NotADBError, SchemaError, "The file is not a SQLite database."),
    (apsw.CorruptError, StorageError, "The database file is damaged."),
    (apsw.ReadOnlyError, StorageError, "The database file is read-only."),
    (apsw.FullError, StorageError, "The disk is full."),
    (apsw.BusyError, StorageError, "Another process kept the database locked."),
    (apsw.LockedError, StorageError, "Another process kept the database locked."),
    (apsw.CantOpenError, StorageError, "The database file cannot be opened."),
    (apsw.IOError, StorageError, "Reading or writing the database file failed."),
    (apsw.ConnectionClosedError, DatabaseClosed, "The memory is closed."),
)


def _problem(error: apsw.Error) -> StorageError:
    # SQLite's own messages may quote values; ours never do.
    for kind, leaf, sentence in _PROBLEMS:
        if isinstance(error, kind):
            return leaf(sentence)
    return StorageError(f"SQLite reported {type(error).__name__}.")


@contextmanager
def _translated() -> Iterator[None]:
    problem: StorageError | None = None
    try:
        yield
    except apsw.Error as error:
        problem = _problem(error)
    if problem is not None:
        raise problem from None


class SqliteTx:
    """A transaction on the shared connection; made by SqliteDatabase.transaction only."""

    def __init__(
        self, connection: apsw.Connection, matrices: matrix.Matrices, scope: Scope
    ) -> None:
        self._connection = connection
        self._matrices = matrices
        self._seen = Seen(scope) if scope.actor is not None else None

    def _bound(self, sql: str, values: Mapping[str, object]) -> tuple[str, dict[str, Any]]:
        if self._seen is not None:
            sql, values = self._seen.of(self, sql, values)
        return prepared(sql, values)

    def all(self, sql: LiteralString, **values: object) -> list[Row]:
        return self._connection.execute(*self._bound(sql, values)).fetchall()

    def one(self, sql: LiteralString, **values: object) -> Row | None:
        return self._connection.execute(*self._bound(sql, values)).fetchone()

    def final(self, sql: LiteralString, **values: object) -> list[Row]:
        return self.all(sql, **values)

    def run(self, sql: LiteralString, **values: object) -> int:
        self._connection.execute(*self._bound(sql, values)).fetchall()
        return self._connection.changes()

    def later(self, sql: LiteralString, **values: object) -> None:
        self.run(sql, **values)

    def expect(self, sql: LiteralString, **values: object) -> None:
        if not self.run(sql, **values):
            raise database.Moved

    def many(
        self, sql: LiteralString, rows: Sequence[Mapping[str, object]] | Sequence[Row]
    ) -> None:
        self._connection.executemany(sql, rows)

    def stream(self, sql: LiteralString, **values: object) -> Iterator[Row]:
        yield from self._connection.execute(*self._bound(sql, values))

    def add_terms(self, ws: int, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
        self._connection.executemany(
            "insert into keyword(rowid, terms) values (?, ?)",
            [(ws << _SHIFT | id_, " ".join(terms)) for id_, terms in rows if terms],
        )

    def drop_terms(self, ws: int, ids: Sequence[int]) -> None:
        # Terms go out of this index by being named.
        find = (
            "select id, text from record where ws = :ws and id in :ids and kind <> 'state' "
            "and status <> 2"
        )
        held = [
            (id_, split_terms(decode(text))) for id_, text in self.all(find, ws=ws, ids=list(ids))
        ]
        self._connection.executemany(
            "insert into keyword(keyword, rowid, terms) values ('delete', ?, ?)",
            [(ws << _SHIFT | id_, " ".join(terms)) for id_, terms in held if terms],
        )

    def with_terms(self, ws: int, terms: Sequence[str]) -> dict[str, list[int]]:
        low = ws << _SHIFT
        high = low | (1 << _SHIFT) - 1
        find = "select rowid from keyword where keyword match ? and rowid between ? and ?"
        return {
            term: [
                rowid - low for (rowid,) in self._connection.execute(find, (f'"{term}"', low, high))
            ]
            for term in terms
        }

    def indexed(self, ws: int, ids: Sequence[int]) -> int:
        find = "select count(*) from keyword_docsize where id in :rows"
        rows = [ws << _SHIFT | id_ for id_ in ids]
        found = self._connection.execute(*prepared(find, {"rows": rows})).fetchall()
        return int(str(found[0][0]))

    def vectors(self, ws: int, ids: Sequence[int]) -> list[Vector]:
        find = "select data from embedding where ws = :ws and id in :ids order by id"
        return [np.frombuffer(row[0], "<f4") for row in self.all(find, ws=ws, ids=list(ids))]

    def nearest(self, ws: int, query: Vector, limit: int, keep: Filter) -> list[tuple[int, float]]:
        return self._matrices.nearest(self, ws, query, limit, keep)

    def tables(self) -> list[tuple[str, list[str], bool]]:
        names = self._connection.execute(
            "select name from sqlite_schema where type = 'table' order by name"
        ).fetchall()
        found: list[tuple[str, list[str], bool]] = []
        for (name,) in names:
            listed = self._connection.execute("select name from pragma_table_info(?)", (name,))
            columns = [str(row[0]) for row in listed]
            found.append((str(name), columns, "ws" in columns))
        return found

    def table_rows(self, table: str, columns: Sequence[str], ws: int | None) -> Iterator[Row]:
        listed = ", ".join(_quoted(column) for column in columns)
        sql = f"select {listed} from {_quoted(table)}"
        if ws is None:
            yield from self._connection.execute(sql)
        else:
            yield from self._connection.execute(f"{sql} where ws = ?", (ws,))


def _refuse_others(connection: apsw.Connection) -> None:
    """Raise SchemaError for a file of another program, before anything in it is touched."""
    # One statement, one snapshot: another process may be creating our schema at this moment.
    ours, tables = connection.execute(
        "select application_id, (select count(*) from sqlite_schema) from pragma_application_id"
    ).get
    if tables and ours != APPLICATION_ID:
        raise SchemaError("The file is a SQLite database of another program.")


def _use_log(connection: apsw.Connection) -> None:
    """Switch the file to the write-ahead log.

    The busy timeout does not cover this switch, so another process that is doing the same on a
    new file is waited for here.
    """
    until = time.monotonic() + BUSY_MS / 1_000
    while True:
        try:
            if connection.pragma("journal_mode") != "wal":
                connection.pragma("journal_mode", "wal")
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class SqliteDatabase:
    """An open SQLite file, or a database in memory for ":memory:"."""

    dialect = "sqlite"

    def __init__(self, path: str) -> None:
        self.location = path
        self._lock = threading.RLock()
        self._closed = False
        self._matrices = matrix.Matrices()
        with _translated():
            self._connection = apsw.Connection(self.location)
            self._file = self._connection.filename  # "" in memory
        try:
            with _translated():
                self._prepare(self._connection)
                self._migrate()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _prepare(connection: apsw.Connection) -> None:
        connection.set_busy_timeout(BUSY_MS)
        _refuse_others(connection)
        if not connection.pragma("page_count"):
            # Five vectors of 384 numbers to a page instead of two: a fifth less space.
            connection.pragma("page_size", 8192)
        _use_log(connection)
        for name, value in (("secure_delete", 1), ("synchronous", 1), ("cell_size_check", 1)):
            connection.pragma(name, value)
            if connection.pragma(name) != value:
                raise StorageError(f"SQLite did not accept {name}.")
        connection.pragma("cache_size", -65_536)
        connection.pragma("temp_store", 2)
        # A plan made once for each statement: else every join is planned anew for the values bound.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)

    def _migrate(self) -> None:
        connection = self._connection
        if connection.pragma("application_id") != APPLICATION_ID or self._pending():
            connection.execute("begin immediate")
            try:
                _refuse_others(connection)
                self._apply()
            except BaseException:
                connection.execute("rollback")
                raise
            connection.execute("commit")
        self._check_tokenizer()

    def _applied(self) -> list[int]:
        table = self._connection.execute(
            "select count(*) from sqlite_schema where name = 'migration'"
        ).get
        if not table:
            return []
        return [row[0] for row in self._connection.execute("select number from migration")]

    def _pending(self) -> list[tuple[int, str, str]]:
        return database.pending(self.dialect, self._applied())

    def _apply(self) -> None:
        connection = self._connection
        connection.execute(
            "create table if not exists migration("
            "number integer primary key, name text not null, applied_at integer not null)"
        )
        for number, name, sql in self._pending():
            connection.execute(sql).fetchall()
            connection.execute(
                "insert into migration values (?, ?, ?)", (number, name, database.now())
            )
        connection.pragma("application_id", APPLICATION_ID)

    def _check_tokenizer(self) -> None:
        """Rebuild the keyword index if it was written under another Unicode version.

        Terms are taken out of the index by naming them, so they must come out as they went in.
        """
        row = self._connection.execute(
            "select value from setting where name = 'unicode'"
        ).fetchone()
        if row is not None and row[0] == unicodedata.unidata_version:
            return
        if self._connection.readonly("main"):
            return
        with self.transaction(Scope("", 0), write=True) as tx:
            if row is not None:
                self._rebuild_terms(tx)
            tx.run(
                "insert into setting(name, value) values ('unicode', :version) "
                "on conflict (name) do update set value = excluded.value",
                version=unicodedata.unidata_version,
            )

    def _rebuild_terms(self, tx: SqliteTx) -> None:
        self._connection.execute("insert into keyword(keyword) values ('delete-all')")
        for ws, id_, text in self._connection.execute(
            "select ws, id, text from record where kind <> 'state' and status <> 2"
        ):
            tx.add_terms(ws, [(id_, split_terms(decode(text)))])

    @contextmanager
    def transaction(
        self,
        scope: Scope,
        *,
        write: bool = False,
        durable: bool = False,
        owner: bool = False,  # noqa: ARG002 - one SQL file has no roles
    ) -> Iterator[SqliteTx]:
        with self._lock:
            if self._closed:
                raise DatabaseClosed("The memory is closed.")
            connection = self._connection
            problem: StorageError | None = None
            try:
                if durable:
                    connection.pragma("synchronous", 2)
                connection.execute("begin immediate" if write else "begin")
                yield SqliteTx(connection, self._matrices, scope)
                connection.execute("commit")
            except apsw.Error as error:
                problem = _problem(error)
            finally:
                self._settle(durable=durable)
            if problem is not None:
                raise problem from None

    def _settle(self, *, durable: bool) -> None:
        """Leave no transaction open, and the connection as it was set up."""
        if self._closed:
            return
        if self._connection.in_transaction:
            self._connection.execute("rollback")
        if durable:
            self._connection.pragma("synchronous", 1)

    def cleans_at_once(self, limit: int) -> bool:
        with self._lock, _translated():
            pages = int(self._connection.pragma("page_count"))
            return pages * int(self._connection.pragma("page_size")) <= limit

    def clean(self, progress: Callable[[str], None] | None = None) -> Cleaned:
        from .sqlite_clean import clean

        with self._lock, _translated():
            if self._closed:
                raise DatabaseClosed("The memory is closed.")
            try:
                return clean(self._connection, progress)
            finally:
                self._connection.set_busy_timeout(BUSY_MS)

    def file_chunks(self, overlap: int) -> Iterator[tuple[str, bytes]]:
        from .sqlite_clean import file_chunks

        return file_chunks(self._file, overlap)

    @property
    def _in_memory(self) -> bool:
        return not self._file

    def living_bytes(self) -> Iterator[bytes]:
        with self.transaction(Scope("", 0)):
            for row in self._connection.execute(
                "select text, metadata, payload, subject from record"
            ):
                yield from database.content_bytes(*row)
            for (data,) in self._connection.execute("select data from embedding"):
                yield data

    def out_of_reach(self) -> tuple[str, ...]:
        if self._in_memory:
            return ("the process's own memory and its swap space",)
        return (
            "backups and copies of the database file",
            "blocks the file system or the drive keeps after they are overwritten",
            "swap space and core dumps",
        )

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._matrices.clear()
                self._connection.close()
