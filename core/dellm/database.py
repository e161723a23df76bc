"""The seam to a database: transactions that run one SQL text on both dialects.

SQL is written once, with ``:name`` parameters; a parameter that is a list may stand only as
``in :name``. What cannot be shared (placeholders, settings, keyword and vector search, physical
clean-up) is the rest of `Tx` and `Database`. Internal: the two backends here are the only ones.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, LiteralString, Protocol

import numpy as np
from numpy.typing import NDArray

from .actor import Actor
from .entry import Entering
from .errors import InvalidInput, SchemaError
from .journal import Journal

Row = tuple[Any, ...]
Vector = NDArray[np.float32]
Clock = Callable[[], int]

_IN_USE: LiteralString = "status = 0 and (retention_until is null or retention_until > :at)"
# Records that may be used at `:at`, as columns of `record`, or of `record r` in a join. Those for
# everybody in the workspace, which a transaction widens to what its actor may read: see Seen.
USABLE: LiteralString = f"{_IN_USE} and audience = 0"
R_USABLE: LiteralString = (
    "r.status = 0 and (r.retention_until is null or r.retention_until > :at) and r.audience = 0"
)
# What a forget may be asked for: everything, which a transaction narrows to what the asker may read.
ASKED: LiteralString = "audience >= -1"
# The others, by the two indexes on just these: where all ends some day, few of it has ended.
UNUSABLE: LiteralString = (
    "select id from record where ws = :ws and status <> 0 union all "
    "select id from record where ws = :ws and retention_until <= :at"
)
# What is not for the actor.
UNSEEN: LiteralString = (
    "select id from record where ws = :ws and audience <> 0 and not (audience = 0)"
)
# With what was dropped from its thread: it may be forgotten, and is in no prompt.
UNASKED: LiteralString = (
    f"{UNUSABLE} union all select record from hidden where ws = :ws and how = 1 union all {UNSEEN}"
    # Everything, where memory is switched off.
    " union all select r.id from workspace w cross join record r"
    " where w.ws = :ws and w.memory_off = 1 and r.ws = :ws"
)
# What a forget by meaning does not find. It finds what is on hold, which then waits.
UNFOUND: LiteralString = (
    "select id from record where ws = :ws and status <> 0 and status <> 3 union all "
    "select id from record where ws = :ws and retention_until <= :at "
    f"union all select id from record where ws = :ws and audience <> 0 and not ({ASKED})"
)


def now() -> int:
    """Return the time in UTC microseconds since 1970."""
    return time.time_ns() // 1000


Visible = Callable[["Tx", "Scope", Actor], list[int]]
_READ = re.compile(r"\b((?:r\.)?audience) = 0\b")
_ASKED = re.compile(r"\b(audience) >= -1\b")


@lru_cache(maxsize=512)
def _with(sql: str, marked: re.Pattern[str], condition: str) -> str:
    return marked.sub(rf"\1 {condition}", sql)


class Seen:
    """What a transaction's actor may read, looked up once it is asked for.

    Statements are written for what is for everybody, so that one that reaches the database as it is
    gives too little, never too much.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._known: dict[Actor, list[int]] = {}

    def of(
        self, tx: Tx, sql: str, values: Mapping[str, object]
    ) -> tuple[str, Mapping[str, object]]:
        """Return a statement and its values, for what the actor may read, and the asker ask for."""
        actor, asking = self._scope.actor, self._scope.asking
        if asking is not None and not asking.overseer and ASKED in sql:
            values = {**values, "asked": self._ids(tx, asking)}
            sql = _with(sql, _ASKED, "in :asked")
        if actor is None or "audience = 0" not in sql:
            return sql, values
        if actor.overseer:
            return _with(sql, _READ, ">= -1"), values
        return _with(sql, _READ, "in :seen"), {**values, "seen": self._ids(tx, actor)}

    def _ids(self, tx: Tx, actor: Actor) -> list[int]:
        if actor not in self._known:
            found = self._scope.visible
            self._known[actor] = [0] if found is None else found(tx, self._scope, actor)
        return self._known[actor]


@dataclass(frozen=True, slots=True)
class Scope:
    """The workspace a transaction works in.

    `ws` is its number (0 = not created yet, so that every read finds nothing) and `secret` the
    key of its digests. `entering` is asked of everything that is stored; `journal` is told of every
    forget. `actor` is who reads and writes, None for nobody in particular, who reads what is for
    everybody; `asking` is who asks for something to be forgotten, None for the workspace's owner;
    `visible` finds the ids of the audiences that an actor is of.
    """

    name: str
    ws: int
    secret: bytes = field(default=b"", repr=False)
    entering: Entering = field(default=Entering(), repr=False, compare=False)
    journal: Journal | None = field(default=None, repr=False, compare=False)
    actor: Actor | None = None
    asking: Actor | None = None
    visible: Visible | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records a search may return; applied before ranking.

    `at` is the present in microseconds: what expired by then is out. `thread` None is any thread.
    `dropped`: also messages that their thread dropped, and what is on hold, for a forget.
    """

    at: int
    thread: str | None = None
    without: frozenset[int] = frozenset()
    dropped: bool = False

    @property
    def left_out(self) -> LiteralString:
        """The statement that finds what must not be returned, whatever its thread."""
        return UNFOUND if self.dropped else UNASKED


@dataclass(frozen=True, slots=True)
class FileHit:
    """A place outside the tables' live rows that still holds a value, and how often."""

    where: str
    count: int


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What physical clean-up reached: steps done, and why it stopped short if it did."""

    steps: tuple[str, ...]
    complete: bool
    obstacle: str = ""
    out_of_reach: tuple[str, ...] = field(default=())


class Moved(Exception):
    """A row is not as it was expected to be; who has expected it catches this and looks."""


class Tx(Protocol):
    """One open transaction, bound to one workspace."""

    def all(self, sql: LiteralString, **values: object) -> list[Row]:
        """Return every row of the statement."""

    def one(self, sql: LiteralString, **values: object) -> Row | None:
        """Return the first row of the statement, or None."""

    def final(self, sql: LiteralString, **values: object) -> list[Row]:
        """Return every row of the statement, with which a transaction that only reads ends.

        Nothing else may be asked of it afterwards: a server answers both in one round trip.
        """

    def run(self, sql: LiteralString, **values: object) -> int:
        """Run the statement; return how many rows it changed."""

    def later(self, sql: LiteralString, **values: object) -> None:
        """Run the statement before anything else is asked of the transaction, or it commits.

        Nobody waits for it: what goes wrong with it is raised by the next call, or the commit.
        """

    def expect(self, sql: LiteralString, **values: object) -> None:
        """Run an update that is to change one row, later as above; raises Moved if it changes none."""

    def many(
        self,
        sql: LiteralString,
        rows: Sequence[Mapping[str, object]] | Sequence[tuple[object, ...]],
    ) -> None:
        """Run the statement once for each row: a mapping, or the values in the statement's order.

        Later, as above.
        """

    def stream(self, sql: LiteralString, **values: object) -> Iterator[Row]:
        """Yield the rows of the statement without holding all of them in memory."""

    def add_terms(self, ws: int, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Put (record id, its terms) into the keyword index; a term may be repeated."""

    def drop_terms(self, ws: int, ids: Sequence[int]) -> None:
        """Take the terms of records out of the keyword index, while their rows are still there."""

    def indexed(self, ws: int, ids: Sequence[int]) -> int:
        """Return of how many of the records there are terms in the keyword index."""

    def with_terms(self, ws: int, terms: Sequence[str]) -> dict[str, list[int]]:
        """Return for each term the ids of the workspace's records that hold it, usable or not."""

    def vectors(self, ws: int, ids: Sequence[int]) -> list[Vector]:
        """Return the stored vectors of the records, by id; float32 of shape (dimensions,)."""

    def nearest(self, ws: int, query: Vector, limit: int, keep: Filter) -> list[tuple[int, float]]:
        """Return up to `limit` (id, cosine) pairs of usable records, best first.

        `query` is float32 of shape (dimensions,) and unit length. Ties go to the smaller id.
        """

    def tables(self) -> list[tuple[str, list[str], bool]]:
        """Return (table, columns, has a ws column) for every table there is, ours or not."""

    def table_rows(self, table: str, columns: Sequence[str], ws: int | None) -> Iterator[Row]:
        """Yield the named columns of a table, of one workspace where `ws` is given."""


class Database(Protocol):
    """An open database; safe to share between threads."""

    dialect: str
    location: str

    def transaction(
        self, scope: Scope, *, write: bool = False, durable: bool = False, owner: bool = False
    ) -> AbstractContextManager[Tx]:
        """Open a transaction: read snapshot, or serialised write that commits or leaves nothing.

        `durable` asks for the commit to be on disk before it returns; `owner` sees every table
        there is (for the scan), still only rows of the scope's workspace where row level security
        is on.
        Raises DatabaseClosed, StorageError.
        """

    def cleans_at_once(self, limit: int) -> bool:
        """Whether clean() is cheap enough to be part of every forget, for at most `limit` bytes."""

    def clean(self, progress: Callable[[str], None] | None = None) -> Cleaned:
        """Remove what deleted rows left on disk (DESIGN decision 15). Safe to repeat."""

    def file_chunks(self, overlap: int) -> Iterator[tuple[str, bytes]]:
        """Yield (file, bytes) over every file of the database.

        A chunk repeats the last `overlap` bytes of the one before it in the same file.
        Raises UnsupportedHere where the files cannot be read.
        """

    def living_bytes(self) -> Iterator[bytes]:
        """Yield the content and vector of every record there is, as its bytes lie in the files.

        For clean-up only: tells residue of erased rows from rows that say the same and live on.
        """

    def out_of_reach(self) -> tuple[str, ...]:
        """Return what physical clean-up cannot reach here, one sentence each."""

    def close(self) -> None:
        """Release every connection. Safe to repeat."""


def content_bytes(
    text: str, metadata: str | None, payload: bytes | None, subject: str | None
) -> Iterator[bytes]:
    """Yield a row's content as it lies in the files, the text first."""
    yield text.encode()
    if metadata:
        yield metadata.encode()
    if payload:
        yield bytes(payload)
    if subject:
        yield subject.encode()


def open_database(url: str) -> Database:
    """Open and, where needed, migrate the database at `url`.

    `url` is a path, ":memory:", "sqlite:///path" or "postgresql://...".
    Raises StorageError, SchemaError, InvalidInput.
    """
    if not isinstance(url, str) or not url.strip():
        raise InvalidInput("The database's path or URL is empty.")
    if url.startswith(("postgresql://", "postgres://")):
        from .postgres import PostgresDatabase

        return PostgresDatabase(url)
    from .sqlite import SqliteDatabase

    return SqliteDatabase(url.removeprefix("sqlite:///"))


_SECRET = (
    (re.compile(r"//([^@/:]*):[^@/]*@"), r"//\1@"),
    (re.compile(r"(?<=[?&])(?:ssl)?password=[^&]*&?"), ""),
)


def without_password(url: str) -> str:
    """Return the URL of a database less any password; that of a file as its whole path."""
    if not url.startswith(("postgresql://", "postgres://")):
        path = url.removeprefix("sqlite:///")
        return path if path == ":memory:" else str(Path(path).absolute())
    for pattern, kept in _SECRET:
        url = pattern.sub(kept, url)
    return url.rstrip("?&")


def migrations(dialect: str) -> list[tuple[int, str, str]]:
    """Return (number, name, SQL) of every migration of the dialect, in order."""
    folder = resources.files(__package__) / "sql" / dialect
    return sorted(
        (int(match[1]), match[2], entry.read_text("utf-8"))
        for entry in folder.iterdir()
        if (match := re.fullmatch(r"(\d{3})_(\w+)\.sql", entry.name))
    )


def pending(dialect: str, applied: Sequence[int]) -> list[tuple[int, str, str]]:
    """Return the migrations still to be run; SchemaError when a newer version wrote the schema."""
    known = migrations(dialect)
    if applied and max(applied) > known[-1][0]:
        raise SchemaError(
            f"The schema is at version {max(applied)}; this library knows up to {known[-1][0]}."
        )
    return [one for one in known if one[0] not in applied]
