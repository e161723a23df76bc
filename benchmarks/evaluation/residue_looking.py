"""Looking for a secret: in objects, in the rows of every table, in the bytes of every file."""

from __future__ import annotations

import base64
import functools
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from dellm_langchain import demo_counting as counting

SQLITE = b"SQLite format 3\0"
LOGS = ("-wal", "-journal")


@functools.lru_cache(maxsize=64)
def spellings(text: str) -> tuple[bytes, ...]:
    """Return how a text may stand in bytes: UTF-8, UTF-16, JSON escapes, hexadecimal, base64."""
    plain = text.encode()
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in text).encode()
    hexed = plain.hex().encode()
    # UTF-16 less the first zero byte: so one spelling finds both orders of bytes, and each once.
    wide = text.encode("utf-16-be").lstrip(b"\0")
    based = (_based(plain, before) for before in range(3))
    return tuple(dict.fromkeys([plain, wide, escaped, hexed, hexed.upper(), *based]))


def _based(plain: bytes, before: int) -> bytes:
    """Return the part of a text's base64 that is the same whatever stands around the text."""
    coded = base64.b64encode(bytes(before) + plain)
    first = -(-before * 8 // 6)
    return coded[first : (before + len(plain)) * 8 // 6]


@dataclass(frozen=True, slots=True)
class Secret(counting.Word):
    """A word of ASCII signs that is looked for in every one of its `spellings`."""

    def times(self, value: object) -> int:
        """Return how often bytes, a text, or any other object by its repr, hold the secret."""
        if isinstance(value, (bytearray, memoryview)):
            value = bytes(value)
        if not isinstance(value, bytes):
            said = value if isinstance(value, str) else repr(value)
            value = said.encode("utf-8", "surrogatepass")
        return sum(map(value.count, spellings(self.text)))

    def among(self, values: Iterable[object]) -> int:
        """Return how many of some objects hold the secret."""
        return sum(map(self.told_by, values))


def sqlite_rows(folder: Path, secret: Secret) -> int:
    """Return how many rows of all SQLite databases below a folder hold the secret.

    The databases are read as copies, with their write-ahead logs: no file is touched.
    """
    with tempfile.TemporaryDirectory() as beside:
        copy = Path(shutil.copytree(folder, Path(beside) / "copy"))
        databases = [path for path in _files(copy) if _is_sqlite(path)]
        return sum(_rows(path, secret) for path in databases)


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as opened:
        return opened.read(len(SQLITE)) == SQLITE


def _rows(path: Path, secret: Secret) -> int:
    with closing(sqlite3.connect(path)) as database:
        return sum(counting.rows(database, secret).values())


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def in_files(folder: Path, secret: Secret) -> tuple[int, int]:
    """Return how often the files below a folder hold the secret: data files, and journals."""
    data = log = 0
    for path in _files(folder):
        found = secret.times(path.read_bytes())
        if path.name.endswith(LOGS):
            log += found
        else:
            data += found
    return data, log


def postgres_rows(url: str, secret: Secret) -> int:
    """Return how many rows of all tables of a PostgreSQL database hold the secret."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(url) as database:
        tables = database.execute(
            "select table_schema, table_name from information_schema.tables where "
            "table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')"
        ).fetchall()
        selects = [sql.SQL("select * from {}").format(sql.Identifier(*table)) for table in tables]
        return sum(secret.among(map(_told, database.execute(each))) for each in selects)


def _told(row: Iterable[object]) -> bytes:
    """Return a row as bytes, so that a bytea is looked at as it is and not by its repr."""
    return b"\0".join(
        bytes(cell) if isinstance(cell, (bytes, memoryview)) else str(cell).encode() for cell in row
    )


def in_server(url: str, secret: Secret) -> tuple[int, int]:
    """Return how often a server's files hold the secret: those of the database, and the WAL.

    What is still in the server's buffers is written first, and dead rows are vacuumed as autovacuum
    does it. The server must run on this machine and the login be a superuser.
    """
    import psycopg

    with psycopg.connect(url, autocommit=True) as database:
        database.execute("vacuum")
        database.execute("checkpoint")
        row = database.execute(
            "select current_setting('data_directory'), oid from pg_database "
            "where datname = current_database()"
        ).fetchone()
    if row is None:
        raise RuntimeError("the server does not say where its files are")
    root = Path(row[0])
    data, _ = in_files(root / "base" / str(row[1]), secret)
    return data, sum(in_files(root / "pg_wal", secret))
