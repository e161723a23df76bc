"""The pooled connection of one transaction: statements that are sent together take one round trip.

What nobody waits for, the beginning of the transaction first of all, is kept until a statement comes
whose result is wanted, and goes out with it in the pipeline mode of libpq. Spoken to through
psycopg.pq: the driver's cursors take a tenth of a millisecond for each statement of a pipeline.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.abc import Buffer, PQGen
from psycopg.abc import Transformer as TransformerProtocol
from psycopg.adapt import PyFormat, Transformer
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.waiting import Ready, Wait
from psycopg_pool import ConnectionPool

from .database import Row
from .errors import StorageError

PREPARED = 400  # statements, by the types of their values, that a connection keeps prepared
_VALUE = re.compile(r"%(?:\((\w+)\)s|([s%]))")
_WHOLE = 1 << 63  # what a whole number of PostgreSQL is below


class Connection(psycopg.Connection[Row]):
    """A connection of the driver that knows which statements the server has prepared for it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.prepared: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        # All whole numbers are of one type, so that few kinds of a statement are prepared.
        self.adapters.register_dumper(int, Int8BinaryDumper)


class Statement(NamedTuple):
    """A statement and its values; `many`: a sequence of values, for each of which it is run."""

    text: str
    values: Any = None
    many: bool = False
    binary: bool = False

    def each(self) -> Iterator[tuple[bytes, Sequence[Any]]]:
        """Yield it as the server reads it, with the values in their order, for each time it is run."""
        text, names = _numbered(self.text)
        for values in self.values if self.many else (self.values,):
            if isinstance(values, Mapping):
                yield text, [values[one] for one in names]
            else:
                yield text, values or ()


@lru_cache(maxsize=1024)
def _numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """Return a statement with numbers in the place of names, and the names in their order.

    Where the placeholders have no names they are numbered as they come.
    """
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[2] == "%":
            return "%"
        if found[2] or found[1] not in names:
            names.append(found[1])
            return f"${len(names)}"
        return f"${names.index(found[1]) + 1}"

    return _VALUE.sub(number, text).encode(), tuple(names)


class Answer:
    """The result of a statement."""

    def __init__(self, result: pq.abc.PGresult, read: TransformerProtocol) -> None:
        self._result, self._read = result, read

    def fetchall(self) -> list[Row]:
        """Return every row."""
        self._read.set_pgresult(self._result)
        return self._read.load_rows(0, self._result.ntuples, tuple)

    def fetchone(self) -> Row | None:
        """Return the first row, if there is one."""
        if not self._result.ntuples:
            return None
        self._read.set_pgresult(self._result)
        return self._read.load_row(0, tuple)

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""
        return self._result.command_tuples or 0


class Session:
    """A connection of the pool until `close`, in a transaction from what it sends first on.

    The connections commit each statement by themselves where no transaction was begun by a statement:
    the driver's own way of beginning one takes a round trip.
    A connection that the server has ended while it lay idle is found out by what is sent first, and
    another one is taken: nothing was done on it yet.
    """

    def __init__(
        self, pool: ConnectionPool[Connection], begin: Sequence[Statement], tries: int
    ) -> None:
        self._pool = pool
        self._tries = tries
        self._begun = self._over = False
        self._unasked = len(begin)  # statements that are of no use alone
        self._waiting = list(begin)
        self._connection = pool.getconn()

    def later(self, text: str, values: Any, *, many: bool = False) -> None:
        """Keep a statement until something is asked."""
        self._waiting.append(Statement(text, values, many))

    def execute(self, text: str, values: Mapping[str, object], *, binary: bool = False) -> Answer:
        """Run what waits and then the statement; return its result."""
        return self._send([*self._waiting, Statement(text, values, binary=binary)])[-1]

    def finish(self, text: str, values: Mapping[str, object]) -> Answer:
        """Run what waits, a statement that only reads, and the commit; return its result."""
        asked = [*self._waiting, Statement(text, values), Statement("commit")]
        found = self._send(asked)[-2]
        self._over = True
        return found

    def named(self, name: str) -> psycopg.ServerCursor[Row]:
        """Run what waits; return a cursor that fetches its rows in parts."""
        if self._waiting or self._over:
            self._send(self._waiting)
        return self._connection.cursor(name=name)

    def _send(self, statements: Sequence[Statement]) -> list[Answer]:
        if self._over:  # it would run as the owner, who sees every workspace
            raise StorageError("A statement came after the last one of its transaction.")
        self._waiting = []
        while not self._begun:
            try:
                found = _together(self._connection, statements)
            except psycopg.Error:
                self._tries -= 1
                if not (self._connection.closed and self._tries):
                    raise
                self._pool.putconn(self._connection)
                self._connection = self._pool.getconn()
            else:
                self._begun = True
                return found
        return _together(self._connection, statements)

    def commit(self) -> None:
        """Run what waits, and commit."""
        if self._over:
            return
        if self._begun or len(self._waiting) > self._unasked:
            # Not to be tried again: whether a commit that was not answered was made is not known.
            self._begun = True
            try:
                self._send([*self._waiting, Statement("commit")])
            except psycopg.Error:
                if not self._connection.closed:
                    raise
            else:
                return
            raise StorageError(
                "The connection to PostgreSQL was lost during a commit.",
                unchanged="Whether all of it was written or nothing is not known.",
                remedy="Look whether it is there before you try again.",
            )

    def close(self) -> None:
        """Give the connection back; undo what was not committed."""
        idle = self._connection.pgconn.transaction_status == pq.TransactionStatus.IDLE
        if not idle and not self._connection.closed:
            with suppress(psycopg.Error):
                self._connection.rollback()
        self._pool.putconn(self._connection)


def _together(connection: Connection, statements: Sequence[Statement]) -> list[Answer]:
    """Run the statements in one round trip; return the result of each."""
    trip = _Trip(connection, statements)
    try:
        connection.wait(trip.made())
    except BaseException:
        # What is still to come would be taken for the results of what is sent next.
        connection.close()
        raise
    return trip.answers()


_Key = tuple[bytes, tuple[int, ...]]  # a statement and the types of its values


class _Run(NamedTuple):
    """A statement as it is sent once."""

    key: _Key
    values: Sequence[Buffer | None]
    formats: Sequence[pq.Format]
    wanted: pq.Format


class _Trip:
    """Statements on their way to the server, and what comes back for them."""

    def __init__(self, connection: Connection, statements: Sequence[Statement]) -> None:
        self._connection, self._server = connection, connection.pgconn
        self._driver: TransformerProtocol = Transformer(connection)
        self._runs: list[_Run] = []
        self._last: list[int] = []  # which run of each statement is its last
        for one in statements:
            wanted = pq.Format.BINARY if one.binary else pq.Format.TEXT
            self._runs += [self._run(text, values, wanted) for text, values in one.each()]
            self._last.append(len(self._runs) - 1)
        self._new: dict[_Key, bytes] = {}  # what is prepared on the way
        self._preparing: list[_Key | None] = []  # what each result is the preparation of, if it is
        self._results: list[pq.abc.PGresult] = []

    def _run(self, text: bytes, values: Sequence[Any], wanted: pq.Format) -> _Run:
        if not values:
            return _Run((text, ()), (), (), wanted)
        driver, formats = self._driver, [PyFormat.AUTO] * len(values)
        try:
            dumped = driver.dump_sequence(values, formats)
        except (OverflowError, struct.error):  # of a whole number that is larger
            dumped = driver.dump_sequence([_decimal(one) for one in values], formats)
        return _Run((text, driver.types or ()), dumped, driver.formats or (), wanted)

    def made(self) -> PQGen[None]:
        """Send everything, and take what comes back."""
        server = self._server
        server.enter_pipeline_mode()
        for one in self._runs:
            self._send(one)
        server.pipeline_sync()
        while True:
            ready = yield Wait.RW if server.flush() else Wait.R
            if ready & Ready.R and self._taken():
                return server.exit_pipeline_mode()

    def _send(self, one: _Run) -> None:
        known, server = self._connection.prepared, self._server
        name = known.get(one.key) or self._new.get(one.key)
        if name is None and len(known) + len(self._new) < PREPARED:
            name = self._new[one.key] = b"dellm_%d" % (len(known) + len(self._new))
            server.send_prepare(name, *one.key)
            self._preparing.append(one.key)
        self._preparing.append(None)
        if name is None:
            server.send_query_params(one.key[0], one.values, one.key[1], one.formats, one.wanted)
        else:
            server.send_query_prepared(name, one.values, one.formats, one.wanted)

    def _taken(self) -> bool:
        """Take the results that are here; say whether they are all."""
        server = self._server
        server.consume_input()
        while not server.is_busy():
            result = server.get_result()
            if result is None:
                if server.status == pq.ConnStatus.BAD:
                    raise psycopg.OperationalError("the connection is lost")
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                return True
            else:
                self._results.append(result)
        return False

    def answers(self) -> list[Answer]:
        """Return the result of each statement; raise what the first one to fail says."""
        found: list[pq.abc.PGresult] = []
        for prepares, result in zip(self._preparing, self._results, strict=True):
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise psycopg.errors.error_from_result(result)
            if prepares is None:
                found.append(result)
            else:
                self._connection.prepared[prepares] = self._new[prepares]
        return [Answer(found[at], self._driver) for at in self._last]


def _decimal(value: object) -> object:
    return Decimal(value) if type(value) is int and not -_WHOLE <= value < _WHOLE else value
