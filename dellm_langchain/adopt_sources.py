"""Reading a stock LangGraph saver's database: its rows as they are, and never a change to it.

The tables are read directly, not through the stock classes: those set the database up when they
open it (tables, journal mode), and do not tell a write's index and task path. The formats are those
of langgraph-checkpoint-sqlite 1 to 3 and langgraph-checkpoint-postgres 2 and 3.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2, JsonPlusSerializer
from langgraph.checkpoint.serde.types import TASKS

from dellm import DellmError, InvalidInput, StorageError, UnsupportedHere
from dellm.adapting import adopt_databases

if TYPE_CHECKING:
    import psycopg

KEPT = 64  # values of a PostgreSQL database that are kept, as checkpoints share them


class Entry(NamedTuple):
    """A checkpoint's place in its thread."""

    ns: str
    cid: str
    parent: str | None


class Write(NamedTuple):
    """One value that a task wrote at a checkpoint; `idx` is negative for the special channels."""

    task: str
    path: str
    idx: int
    channel: str
    value: Any


class Stock(Protocol):
    """A database of a stock saver. Every thread is read in one snapshot."""

    decoder: Decoder

    def threads(self) -> dict[str, int]:
        """Return the threads and how many checkpoints each has, in order of their names."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Read what follows as of one moment. Raises StorageError when that was not possible."""

    def outline(self, thread: str) -> list[Entry]:
        """Return the places of a thread's checkpoints, all namespaces."""

    def load(self, thread: str, at: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a checkpoint and its metadata."""

    def written(self, thread: str, at: Entry) -> list[Write]:
        """Return what tasks wrote at a checkpoint, in the order in which a run applies it."""


class Decoder:
    """Turns stored bytes into values, as the stock savers do.

    The same bytes of a message that has an id give the same object, so a message is made once and
    not once for every checkpoint that holds it. `lossy` takes objects of classes that cannot be
    imported as the stock serializer does: as plain data. Raises UnsupportedHere.
    """

    def __init__(self, serde: SerializerProtocol | None = None, *, lossy: bool = False) -> None:
        self._messages: dict[bytes, BaseMessage] = {}
        self.serde = serde or _caching(self._messages)
        self._lossy = lossy
        self._checked: set[tuple[str, str]] = set()
        self._missing: list[str] = []

    def clear(self) -> None:
        """Let go of the messages of the thread that was read."""
        self._messages.clear()

    def value(self, type_: str, data: bytes | None) -> Any:
        """Return a value."""
        forget = register_serde_event_listener(self._noticed)
        try:
            found = self.serde.loads_typed((type_, b"" if data is None else bytes(data)))
        except DellmError:
            raise
        except NotImplementedError:
            kind = type_
        except Exception as error:  # noqa: BLE001 - whatever it is, its message may quote what is stored
            raise StorageError(
                f"A value of the source cannot be read ({type(error).__name__}).",
                remedy="Check the source, and pass the serializer it was written with.",
            ) from None
        else:
            self._complain()
            return found
        finally:
            forget()
        raise UnsupportedHere(
            f"The source has values of the type {kind!r}, which the stock serializer cannot read.",
            remedy="Call dellm_langchain.adopting.adopt(..., serde=) with the application's own.",
        )

    def _noticed(self, event: SerdeEvent) -> None:
        named = (event["module"], event["name"])
        if named in self._checked or self._lossy:
            return
        self._checked.add(named)
        if event["kind"] == "msgpack_blocked" or not _importable(*named):
            self._missing.append(".".join(named))

    def _complain(self) -> None:
        if self._missing:
            raise InvalidInput(
                f"The source has objects of classes that are not to be had here: {self._missing}.",
                remedy="Set PYTHONPATH to where the application's modules are, "
                "or pass --lossy to take such objects as plain data.",
            )


def _importable(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name)
    except ImportError:
        return False


def _caching(messages: dict[bytes, BaseMessage]) -> JsonPlusSerializer:
    """Return the stock serializer, which makes each message once."""
    read: Callable[[int, bytes], Any] = JsonPlusSerializer()._unpack_ext_hook  # noqa: SLF001 - there is no public way to extend it

    def hook(code: int, data: bytes) -> Any:
        if code != EXT_PYDANTIC_V2:
            return read(code, data)
        if (known := messages.get(data)) is not None:
            return known
        made = read(code, data)
        if isinstance(made, BaseMessage) and made.id:
            messages[data] = made
        return made

    return JsonPlusSerializer(__unpack_ext_hook__=hook)


def open_stock(source: str, decoder: Decoder) -> AbstractContextManager[Stock]:
    """Open a SQLite file by its path, or a PostgreSQL database by its URL, to be read only.

    Raises InvalidInput, StorageError, UnsupportedHere.
    """
    return (
        _postgres(source, decoder)
        if adopt_databases.is_served(source)
        else _sqlite(adopt_databases.file_of(source), decoder)
    )


# SQLite


@contextmanager
def _sqlite(path: Path, decoder: Decoder) -> Iterator[Stock]:
    with adopt_databases.sqlite_opened(path) as connection:
        yield SqliteStock(connection, path, decoder)


class SqliteStock:
    """The tables of SqliteSaver and AsyncSqliteSaver."""

    def __init__(self, connection: sqlite3.Connection, path: Path, decoder: Decoder) -> None:
        self._connection = connection
        self._path = path
        self.decoder = decoder
        self._as_opened = self._stamp()
        columns = {table: self._columns(table) for table in ("checkpoints", "writes")}
        if not {"thread_id", "checkpoint", "metadata", "type"} <= columns["checkpoints"]:
            raise InvalidInput("The file holds no checkpoints of LangGraph.")
        self._path_column = "task_path" if "task_path" in columns["writes"] else "''"

    def _columns(self, table: str) -> set[str]:
        return {row[1] for row in self._rows(f"pragma table_info({table})")}

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def _stamp(self) -> tuple[bool, int, int]:
        stat = self._path.stat()
        return adopt_databases.is_busy(self._path), stat.st_mtime_ns, stat.st_size

    def threads(self) -> dict[str, int]:
        """See Stock."""
        return dict(
            self._rows(
                "select thread_id, count(*) from checkpoints group by thread_id order by thread_id"
            )
        )

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See Stock."""
        self._connection.execute("begin")
        try:
            yield
        finally:
            self._connection.execute("rollback")
        busy, *_ = self._as_opened
        if not busy and self._stamp() != self._as_opened:
            raise StorageError(
                "The source was written to while it was read.",
                remedy="Run it again when nothing writes to it; what is adopted is not repeated.",
            )

    def outline(self, thread: str) -> list[Entry]:
        """See Stock."""
        rows = self._rows(
            "select checkpoint_ns, checkpoint_id, parent_checkpoint_id from checkpoints "
            "where thread_id = ?",
            thread,
        )
        return [Entry(ns, cid, parent or None) for ns, cid, parent in rows]

    def load(self, thread: str, at: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
        """See Stock."""
        type_, checkpoint, metadata = self._rows(
            "select type, checkpoint, metadata from checkpoints "
            "where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?",
            thread,
            at.ns,
            at.cid,
        )[0]
        made = self.decoder.value(type_, checkpoint)
        sends = made.pop("pending_sends", None) if made["v"] < 4 else None
        return _with_sends(made, sends), {} if metadata is None else json.loads(metadata)

    def written(self, thread: str, at: Entry) -> list[Write]:
        """See Stock."""
        rows = self._rows(
            f"select task_id, {self._path_column}, idx, channel, type, value from writes "
            "where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?",
            thread,
            at.ns,
            at.cid,
        )
        return _in_order(self.decoder, rows)


def _in_order(decoder: Decoder, rows: Sequence[tuple[Any, ...]]) -> list[Write]:
    rows = sorted(rows, key=lambda row: (row[1], row[0], row[2]))
    return [
        Write(task, path, idx, channel, decoder.value(type_, data))
        for task, path, idx, channel, type_, data in rows
    ]


def _with_sends(checkpoint: dict[str, Any], sends: Any) -> dict[str, Any]:
    """Return a checkpoint with its pending sends where LangGraph has them since format 4."""
    if sends:
        versions = checkpoint["channel_versions"]
        checkpoint["channel_values"][TASKS] = list(sends)
        versions[TASKS] = max(versions.values()) if versions else 1
    return checkpoint


# PostgreSQL


@contextmanager
def _postgres(url: str, decoder: Decoder) -> Iterator[Stock]:
    with adopt_databases.postgres_opened(url) as connection:
        yield PostgresStock(connection, decoder)


class PostgresStock:
    """The tables of PostgresSaver and AsyncPostgresSaver."""

    def __init__(self, connection: psycopg.Connection[Any], decoder: Decoder) -> None:
        self._connection = connection
        self.decoder = decoder
        self._values: OrderedDict[tuple[str, ...], Any] = OrderedDict()
        columns = self._columns("checkpoints")
        if not {"thread_id", "checkpoint", "metadata"} <= columns:
            raise InvalidInput("The database holds no checkpoints of LangGraph.")
        if "checkpoint_id" not in columns:
            raise UnsupportedHere("The shallow PostgreSQL saver's format is not known here.")
        known = self._columns("checkpoint_writes")
        self._path_column = "task_path" if "task_path" in known else "''"

    def _columns(self, table: str) -> set[str]:
        rows = self._rows(
            "select attname from pg_attribute where attrelid = to_regclass(%s) and attnum > 0 "
            "and not attisdropped",
            table,
        )
        return {row[0] for row in rows}

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql.encode(), values).fetchall()

    def threads(self) -> dict[str, int]:
        """See Stock."""
        return dict(
            self._rows(
                "select thread_id, count(*) from checkpoints group by thread_id "
                'order by thread_id collate "C"'
            )
        )

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See Stock."""
        self._values.clear()
        with self._connection.transaction():
            yield

    def outline(self, thread: str) -> list[Entry]:
        """See Stock."""
        rows = self._rows(
            "select checkpoint_ns, checkpoint_id, parent_checkpoint_id from checkpoints "
            "where thread_id = %s",
            thread,
        )
        return [Entry(ns, cid, parent or None) for ns, cid, parent in rows]

    def load(self, thread: str, at: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
        """See Stock."""
        made, metadata = self._rows(
            "select checkpoint, metadata from checkpoints "
            "where thread_id = %s and checkpoint_ns = %s and checkpoint_id = %s",
            thread,
            at.ns,
            at.cid,
        )[0]
        kept = self._blobs(thread, at.ns, made["channel_versions"])
        made["channel_values"] = {**(made.get("channel_values") or {}), **kept}
        sends = self._sends(thread, at) if made["v"] < 4 else None
        return _with_sends(made, sends), metadata or {}

    def _blobs(self, thread: str, ns: str, versions: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that are kept apart from the checkpoint; other checkpoints share them."""
        keys = {name: (thread, ns, name, str(version)) for name, version in versions.items()}
        new = [key for key in keys.values() if key not in self._values]
        for name, version, type_, blob in self._rows(
            "select channel, version, type, blob from checkpoint_blobs "
            "join unnest(%s::text[], %s::text[]) as wanted(channel, version) "
            "using (channel, version) where thread_id = %s and checkpoint_ns = %s",
            [key[2] for key in new],
            [key[3] for key in new],
            thread,
            ns,
        ):
            if type_ != "empty":
                self._values[thread, ns, name, version] = self.decoder.value(type_, blob)
        found = {name: self._values[key] for name, key in keys.items() if key in self._values}
        for key in keys.values():
            with suppress(KeyError):
                self._values.move_to_end(key)
        while len(self._values) > max(KEPT, len(keys)):
            self._values.popitem(last=False)
        return found

    def _sends(self, thread: str, at: Entry) -> list[Any] | None:
        if at.parent is None:
            return None
        written = self.written(thread, Entry(at.ns, at.parent, None))
        return [one.value for one in written if one.channel == TASKS]

    def written(self, thread: str, at: Entry) -> list[Write]:
        """See Stock."""
        rows = self._rows(
            f"select task_id, {self._path_column}, idx, channel, type, blob from checkpoint_writes "
            "where thread_id = %s and checkpoint_ns = %s and checkpoint_id = %s",
            thread,
            at.ns,
            at.cid,
        )
        return _in_order(self.decoder, rows)
