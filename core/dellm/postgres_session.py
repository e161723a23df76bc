"""The pooled connection of one transaction: statements that are sent together take one round trip.

What nobody waits for, the beginning of the transaction first of all, is kept until a statement comes
whose result is wanted, and goes out with it through the driver's pipeline mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from psycopg_pool import ConnectionPool

from .database import Row
from .errors import StorageError

Connection = psycopg.Connection[Row]
Cursor = psycopg.Cursor[Row]


class Statement(NamedTuple):
    """A statement and its values; `many`: a sequence of values, for each of which it is run."""

    text: str
    values: Any = None
    many: bool = False
    binary: bool | None = None

    def send(self, connection: Connection) -> Cursor:
        """Run the statement; within a pipeline the cursor has its result when that ended."""
        cursor = connection.cursor()
        if self.many:
            cursor.executemany(self.text, self.values)
            return cursor
        return cursor.execute(self.text, self.values, binary=self.binary)


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

    def execute(
        self, text: str, values: Mapping[str, object], *, binary: bool | None = None
    ) -> Cursor:
        """Run what waits and then the statement; return the cursor that has its result."""
        return self._send([*self._waiting, Statement(text, values, binary=binary)])[-1]

    def finish(self, text: str, values: Mapping[str, object]) -> Cursor:
        """Run what waits, a statement that only reads, and the commit; return its cursor."""
        asked = [*self._waiting, Statement(text, values), Statement("commit")]
        found = self._send(asked)[-2]
        self._over = True
        return found

    def named(self, name: str) -> psycopg.ServerCursor[Row]:
        """Run what waits; return a cursor that fetches its rows in parts."""
        if self._waiting or self._over:
            self._send(self._waiting)
        return self._connection.cursor(name=name)

    def _send(self, statements: Sequence[Statement]) -> list[Cursor]:
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
            self._send([*self._waiting, Statement("commit")])

    def close(self) -> None:
        """Give the connection back; undo what was not committed."""
        if not self._connection.closed:
            with suppress(psycopg.Error):
                self._connection.rollback()
        self._pool.putconn(self._connection)


def _together(connection: Connection, statements: Sequence[Statement]) -> list[Cursor]:
    """Run the statements in one round trip; return their cursors."""
    if len(statements) == 1:
        return [statements[0].send(connection)]
    problem: psycopg.Error | None = None
    try:
        with connection.pipeline():
            try:
                found = [one.send(connection) for one in statements]
            except psycopg.Error as error:
                # Raised after the pipeline ended, which the driver would otherwise log.
                problem = error
    except psycopg.Error as error:
        problem = problem or error
    if problem is not None:
        raise _first(problem)
    return found


def _first(problem: psycopg.Error) -> psycopg.Error:
    """Return the error because of which the rest of a pipeline was not run."""
    before = problem.__context__
    if isinstance(problem, psycopg.errors.PipelineAborted) and isinstance(before, psycopg.Error):
        return before
    return problem
