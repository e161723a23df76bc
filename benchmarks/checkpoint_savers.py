"""The savers that are measured, and how many bytes the database of each takes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

Saver = BaseCheckpointSaver[Any]

OURS, STOCK, DELTA = "dellm", "stock", "delta"
KINDS = (OURS, STOCK, DELTA)


@dataclass(frozen=True, slots=True)
class Contender:
    """A saver in one database; `name` is for the table, `delta` says how the graph keeps messages."""

    kind: str
    name: str
    open: Callable[[str], AbstractContextManager[Saver]]
    size: Callable[[str], int]

    @property
    def delta(self) -> bool:
        """Whether the graph's author changed the state to a DeltaChannel."""
        return self.kind == DELTA


def contender(kind: str, database: str) -> Contender:
    """Return the saver of that kind ("dellm", "stock", "delta") on "sqlite" or "postgres"."""
    stock = "SqliteSaver" if database == "sqlite" else "PostgresSaver"
    name = {OURS: "DeLLMSaver", STOCK: stock, DELTA: f"{stock}, DeltaChannel"}[kind]
    if kind == OURS:
        return Contender(kind, name, _ours, _apsw_size if database == "sqlite" else _server_size)
    if database == "sqlite":
        return Contender(kind, name, _sqlite, _sqlite_size)
    return Contender(kind, name, _postgres, _server_size)


@contextmanager
def _ours(url: str) -> Iterator[Saver]:
    from dellm import Memory
    from dellm_langchain import DeLLMSaver

    with Memory.open(url, embedder=None) as memory:
        yield DeLLMSaver(memory)


@contextmanager
def _sqlite(url: str) -> Iterator[Saver]:
    with SqliteSaver.from_conn_string(url) as saver:
        saver.setup()
        yield saver


@contextmanager
def _postgres(url: str) -> Iterator[Saver]:
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        yield saver


def _apsw_size(path: str) -> int:
    import apsw  # opening a file with two SQLites in one process breaks its locks

    return _file_size(path, apsw.Connection)


def _sqlite_size(path: str) -> int:
    return _file_size(path, sqlite3.connect)


def _file_size(path: str, connect: Callable[[str], Any]) -> int:
    """Return the bytes of a file whose write-ahead log has been written back and emptied."""
    with closing(connect(path)) as connection:
        busy, *_ = next(iter(connection.execute("pragma wal_checkpoint(truncate)")))
    if busy:
        raise RuntimeError("the write-ahead log is in use; the file's size would be too small")
    return Path(path).stat().st_size


def _server_size(url: str) -> int:
    """Return the bytes of all tables with their indexes, vacuumed; every saver has its own database."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum (analyze)")
        row = connection.execute(
            "select sum(pg_total_relation_size(oid)) from pg_class "
            "where relkind = 'r' and relnamespace = cast('public' as regnamespace)"
        ).fetchone()
    return int(row[0])  # type: ignore[index] # sum gives a row
