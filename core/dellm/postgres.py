"""PostgreSQL through psycopg 3 and pgvector: the only module that knows its dialect.

Every transaction starts by taking the role ``dellm_app`` and naming its workspace; row level
security then keeps each statement inside it, also on a reused pooled connection, because both
settings end with the transaction. The login itself (the owner) migrates, scans and cleans up.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import numpy as np
import psycopg
from pgvector.psycopg.vector import register_vector_info
from psycopg import sql as composed
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from . import database, postgres_setup
from .database import Cleaned, Filter, Row, Scope, Seen, Vector
from .encoding import encode
from .errors import DatabaseClosed, StorageError
from .postgres_session import Connection, Session, Statement
from .postgres_text import all_whole, as_columns, as_rows, bindings, by_name, translate

FEW = 4  # rows of any values that are inserted by one statement
PART = 400  # distinct terms in one tsvector, which may not exceed one megabyte
_CURSORS = itertools.count()  # two streams of one transaction need two names
_ENDED = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03"})  # the server ended the session
_PASSWORD = re.compile(r"(?<=[?&])password=[^&]*&?")
_WRITE, _READ = "begin read write", "begin isolation level repeatable read read only"
# Every join of ours follows keys from few rows to few; without statistics the planner guesses
# thousands, and would read the workspace at each step of a recursion, or compile a small query.
_BIND = (
    "select set_config('role', %s, true), set_config('dellm.ws', %s, true), "
    "set_config('dellm.name', %s, true), set_config('enable_hashjoin', 'off', true), "
    "set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)"
)


def _problem(error: Exception) -> StorageError | database.Moved:
    if isinstance(
        error, psycopg.errors.InvalidArgumentForLogarithm
    ):  # zero's; only expect takes one
        return database.Moved()
    # The server's messages quote values ("Failing row contains ..."); ours never do.
    if isinstance(error, PoolClosed):
        return DatabaseClosed("The memory is closed.")
    if isinstance(error, psycopg.errors.DiskFull):
        return StorageError("The disk is full.")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return StorageError("The database is read-only.")
    code = getattr(error, "sqlstate", None) or ""
    lost = code.startswith("08") or code in _ENDED
    if isinstance(error, PoolTimeout | psycopg.InterfaceError) or (
        isinstance(error, psycopg.OperationalError) and (lost or not code)
    ):
        return StorageError("The connection to PostgreSQL failed or was lost.")
    state = code or type(error).__name__
    return StorageError(f"PostgreSQL refused the statement (code {state}).")


@contextmanager
def _translated() -> Iterator[None]:
    problem: StorageError | database.Moved | None = None
    try:
        yield
    except (psycopg.Error, PoolClosed, PoolTimeout) as error:
        problem = _problem(error)
    if problem is not None:
        raise problem from None


class PostgresTx:
    """A transaction of one pooled connection; made by PostgresDatabase.transaction only."""

    def __init__(self, session: Session, scope: Scope) -> None:
        self._session = session
        self._seen = Seen(scope) if scope.actor is not None else None

    def _bound(self, sql: str, values: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
        if self._seen is not None:
            sql, values = self._seen.of(self, sql, values)
        return translate(sql), bindings(values)

    def all(self, sql: LiteralString, **values: object) -> list[Row]:
        return self._session.execute(*self._bound(sql, values)).fetchall()

    def one(self, sql: LiteralString, **values: object) -> Row | None:
        return self._session.execute(*self._bound(sql, values)).fetchone()

    def final(self, sql: LiteralString, **values: object) -> list[Row]:
        return self._session.finish(*self._bound(sql, values)).fetchall()

    def run(self, sql: LiteralString, **values: object) -> int:
        return self._session.execute(*self._bound(sql, values)).rowcount

    def later(self, sql: LiteralString, **values: object) -> None:
        self._session.later(*self._bound(sql, values))

    def expect(self, sql: LiteralString, **values: object) -> None:
        # Nobody waits for how many rows are changed, so none has to be an error; see _problem.
        self.later(
            f"with changed as ({sql} returning 1) "
            "select ln(cast(count(*) as double precision)) from changed",
            **values,
        )

    def many(
        self, sql: LiteralString, rows: Sequence[Mapping[str, object]] | Sequence[Row]
    ) -> None:
        named = [by_name(sql, row) for row in rows]
        if len(named) == 1:
            self._session.later(translate(sql), named[0])
        elif 1 < len(named) <= FEW and (several := as_rows(sql, len(named))):
            values = {f"{name}_{at}": row[name] for at, row in enumerate(named) for name in row}
            self._session.later(several, values)
        elif named and (at_once := as_columns(sql)) and all_whole(named):
            columns = {name: [row[name] for row in named] for name in named[0]}
            self._session.later(at_once, bindings(columns))
        elif named:
            self._session.later(translate(sql), named, many=True)

    def stream(self, sql: LiteralString, **values: object) -> Iterator[Row]:
        bound = self._bound(sql, values)
        with self._session.named(f"stream{next(_CURSORS)}") as cursor:
            cursor.itersize = 2_000
            yield from cursor.execute(*bound)

    def add_terms(self, ws: int, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
        distinct = [(id_, list(dict.fromkeys(terms))) for id_, terms in rows]
        parts = [
            (id_, start // PART, " ".join(terms[start : start + PART]))
            for id_, terms in distinct
            for start in range(0, len(terms), PART)
        ]
        if parts:
            ids, numbers, texts = map(list, zip(*parts, strict=True))
            self.later(
                "insert into keyword(ws, id, part, terms) "
                "select :ws, id, part, array_to_tsvector(string_to_array(terms, ' ')) "
                "from unnest(cast(:ids as bigint[]), cast(:parts as bigint[]), "
                "cast(:terms as text[])) as t(id, part, terms)",
                ws=ws,
                ids=ids,
                parts=numbers,
                terms=texts,
            )

    def drop_terms(self, ws: int, ids: Sequence[int]) -> None:
        self.run("delete from keyword where ws = :ws and id in :ids", ws=ws, ids=list(ids))

    def indexed(self, ws: int, ids: Sequence[int]) -> int:
        find = "select count(distinct id) from keyword where ws = :ws and id in :ids"
        row = self.one(find, ws=ws, ids=list(ids))
        return 0 if row is None else int(row[0])

    def with_terms(self, ws: int, terms: Sequence[str]) -> dict[str, list[int]]:
        # One pass over the workspace's rows for all terms.
        quoted = [f"'{term}'" for term in terms]
        rows = self.all(
            "with asked as materialized"
            " (select term, cast(quote as tsquery) as query"
            " from unnest(cast(:terms as text[]), cast(:quoted as text[])) as t(term, quote)) "
            "select distinct a.term, k.id from keyword k join asked a on k.terms @@ a.query "
            "where k.ws = :ws and k.terms @@ cast(:any as tsquery) order by k.id",
            ws=ws,
            terms=list(terms),
            quoted=quoted,
            any=" | ".join(quoted),
        )
        found: dict[str, list[int]] = {term: [] for term in terms}
        for term, id_ in rows:
            found[term].append(id_)
        return found

    def vectors(self, ws: int, ids: Sequence[int]) -> list[Vector]:
        find = translate("select data from embedding where ws = :ws and id in :ids order by id")
        # As text each of their numbers would be parsed on its own.
        rows = self._session.execute(
            find, bindings({"ws": ws, "ids": list(ids)}), binary=True
        ).fetchall()
        return [_floats(row[0]) for row in rows]

    def nearest(self, ws: int, query: Vector, limit: int, keep: Filter) -> list[tuple[int, float]]:
        # Only ids and distances are materialised: the ordering above them can then use no
        # approximate index, whatever index somebody adds.
        rows = self.all(
            "with scored as materialized ("
            " select id, data <#> :query as distance from embedding"
            " where ws = :ws and id <> all(cast(:without as bigint[]))"
            f" and id not in ({keep.left_out})"
            " and (cast(:thread as text) is null or id in"
            "  (select id from record where ws = :ws and thread = :thread))) "
            "select id, -distance from scored order by distance, id limit :limit",
            ws=ws,
            query=query,
            without=list(keep.without),
            at=keep.at,
            thread=keep.thread,
            limit=limit,
        )
        return [(row[0], float(row[1])) for row in rows]

    def tables(self) -> list[tuple[str, list[str], bool]]:
        rows = self.all(
            "select c.relname, array_agg(cast(a.attname as text) order by a.attnum) "
            "from pg_class c join pg_attribute a on a.attrelid = c.oid "
            "where c.relkind in ('r', 'p') and c.relnamespace = "
            "(select relnamespace from pg_class where oid = cast('record' as regclass)) "
            "and a.attnum > 0 and not a.attisdropped group by c.relname order by c.relname"
        )
        return [(name, columns, "ws" in columns) for name, columns in rows]

    def table_rows(self, table: str, columns: Sequence[str], ws: int | None) -> Iterator[Row]:
        # Vectors and term lists are read as text.
        statement = composed.SQL("select {} from {}").format(
            composed.SQL(", ").join(_as_read(column) for column in columns),
            composed.Identifier(table),
        )
        if ws is not None:
            statement += composed.SQL(" where ws = {}").format(composed.Literal(ws))
        with self._session.named(f"table{next(_CURSORS)}") as cursor:
            cursor.itersize = 2_000
            yield from cursor.execute(statement)


def _floats(read: Any) -> Vector:
    """Return a vector as the driver read it: pgvector before 0.4 gives an array, later its own."""
    numbers = read.to_numpy() if hasattr(read, "to_numpy") else read
    return np.asarray(numbers, np.float32)


def _as_read(column: str) -> composed.Composable:
    name = composed.Identifier(column)
    return composed.SQL("cast({} as text)").format(name) if column == "terms" else name


class PostgresDatabase:
    """An open PostgreSQL database, reached through a small pool of connections."""

    dialect = "postgres"

    def __init__(self, url: str, *, most: int = 8) -> None:
        self.location = _PASSWORD.sub("", re.sub(r"//[^@/]*@", "//", url))
        self._url = url
        self._guard = threading.Lock()
        self._closed = False
        self._most = most
        with _translated():
            with self._owner(autocommit=True) as connection:
                postgres_setup.migrate(connection)
            self._pool: ConnectionPool[Connection] = ConnectionPool(
                url,
                connection_class=Connection,
                min_size=1,
                max_size=most,
                timeout=30,
                open=False,
                num_workers=1,  # they only open and check connections, of which one is usual
                configure=_configure,
                check=_check,
            )
            self._pool.open(wait=True, timeout=30)

    def _owner(self, *, autocommit: bool = False) -> psycopg.Connection[Row]:
        if self._closed:
            raise DatabaseClosed("The memory is closed.")
        return psycopg.connect(self._url, autocommit=autocommit, connect_timeout=10)

    @contextmanager
    def transaction(
        self, scope: Scope, *, write: bool = False, durable: bool = False, owner: bool = False
    ) -> Iterator[PostgresTx]:
        role = "none" if owner else "dellm_app"
        begin = [
            Statement(_WRITE if write else _READ),
            Statement(_BIND, (role, str(scope.ws), encode(scope.name))),
        ]
        if durable:
            begin.append(Statement("set local synchronous_commit = on"))
        with _translated():
            session = Session(self._pool, begin, tries=self._most)
            try:
                yield PostgresTx(session, scope)
                session.commit()
            finally:
                session.close()

    def bind_login(self, login: str, scope: Scope) -> None:
        """Let the login role `login` read this one workspace with SQL of its own, and no other.

        Raises InvalidInput for a name that is no role name, StorageError when the role is missing.
        """
        postgres_setup.check_login(login)
        with _translated(), self._owner() as connection:
            postgres_setup.bind_login(connection, login, scope)

    def cleans_at_once(self, limit: int) -> bool:
        del limit
        return False  # every table is locked and rewritten: a decision for the operator

    def clean(self, progress: Callable[[str], None] | None = None) -> Cleaned:
        from .postgres_clean import clean

        with _translated(), self._owner(autocommit=True) as connection:
            return clean(connection, progress)

    def file_chunks(self, overlap: int) -> Iterator[tuple[str, bytes]]:
        from .postgres_clean import file_chunks

        with _translated(), self._owner(autocommit=True) as connection:
            yield from file_chunks(connection, overlap)

    def living_bytes(self) -> Iterator[bytes]:
        with _translated(), self._owner() as connection:
            connection.read_only = True
            with connection.cursor(name="dellm_living") as cursor:
                cursor.execute("select text, metadata, payload, subject from record")
                for row in cursor:
                    yield from database.content_bytes(*row)
            with connection.cursor(name="dellm_vectors", binary=True) as cursor:
                cursor.execute("select vector_send(data) from embedding")
                for (sent,) in cursor:  # two numbers of 16 bits, then big-endian floats
                    yield np.frombuffer(sent, ">f4", offset=4).astype("<f4").tobytes()

    def out_of_reach(self) -> tuple[str, ...]:
        return (
            "backups, archived or replicated write-ahead log",
            "server logs written outside the data directory",
            "blocks the file system or the drive keeps after they are overwritten",
            "swap space and core dumps",
        )

    def close(self) -> None:
        with self._guard:
            self._closed = True
            self._pool.close()


def _configure(connection: psycopg.Connection[Row]) -> None:
    connection.autocommit = True
    register_vector_info(connection, TypeInfo.fetch(connection, "vector"))  # no other type is ours


def _check(connection: psycopg.Connection[Row]) -> None:
    """Raise OperationalError for a connection that the server has ended while it lay idle.

    Without a round trip: it has said so and hung up, which takes two looks. A write that goes out
    together with its commit could not be tried again.
    """
    connection.pgconn.consume_input()
    connection.pgconn.consume_input()
