"""Opening the databases of other programs, to be read only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InvalidInput, StorageError, UnsupportedHere

if TYPE_CHECKING:
    import psycopg


def is_served(source: str) -> bool:
    """Whether a source is the URL of a PostgreSQL database, and not a file's path."""
    return source.startswith(("postgresql://", "postgres://"))


def file_of(source: str) -> Path:
    """Return the file's path that a source names, plainly or as a URL."""
    return Path(source.removeprefix("sqlite:///"))


def is_busy(path: Path) -> bool:
    """Whether someone has the SQLite file open, or left it without closing it."""
    return any(path.with_name(path.name + end).exists() for end in ("-wal", "-journal"))


@contextmanager
def sqlite_opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file to be read only, and leave nothing beside it.

    What SQLite itself complains of becomes a StorageError. Raises InvalidInput.
    """
    if not path.is_file():
        raise InvalidInput("There is no file at the path of the source.")
    # Even a reader creates files beside a database in WAL mode, and leaves them there.
    still = "" if is_busy(path) else "&immutable=1"
    uri = f"{path.resolve().as_uri()}?mode=ro{still}"
    try:
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise StorageError(f"The source cannot be read ({type(error).__name__}).") from error


@contextmanager
def postgres_opened(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Open a PostgreSQL database to be read only, each transaction of it in one snapshot.

    What the database complains of becomes a StorageError. Raises UnsupportedHere.
    """
    try:
        driver = import_module("psycopg")
    except ImportError as error:
        raise UnsupportedHere(
            "Reading from PostgreSQL needs psycopg.", remedy='pip install "dellm[postgres]"'
        ) from error
    try:
        with closing(driver.connect(url, autocommit=True)) as connection:
            connection.read_only = True
            connection.isolation_level = driver.IsolationLevel.REPEATABLE_READ
            yield connection
    except driver.Error as error:
        raise StorageError(f"The source cannot be read ({type(error).__name__}).") from error
