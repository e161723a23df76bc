"""What lies in the tables, read with a plain driver and no code of the core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg
from psycopg import sql

Rows = dict[str, list[tuple[Any, ...]]]


def is_postgres(url: str) -> bool:
    return url.startswith("postgresql:")


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """Open a connection of our own, which `statement` and `rows_of` take."""
    if is_postgres(url):
        with psycopg.connect(url, autocommit=True) as server:
            yield server
        return
    file = apsw.Connection(url)
    file.set_busy_timeout(30_000)
    yield file
    file.close()


def statement(connection: Any, text: str, *values: object) -> list[tuple[Any, ...]]:
    """Run one statement with `?` parameters on either database; return its rows."""
    if isinstance(connection, apsw.Connection):
        return connection.execute(text, values).fetchall()
    cursor = connection.execute(text.replace("?", "%s"), values)
    return cursor.fetchall() if cursor.description else []


def tables(connection: Any) -> list[str]:
    """Return the tables by name; of SQLite's keyword index only what can be read as rows."""
    if isinstance(connection, apsw.Connection):
        found = "select name from sqlite_schema where type = 'table' and name not like 'keyword%'"
    else:
        found = "select relname from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace"
    return sorted(row[0] for row in statement(connection, found))


def rows_of(connection: Any) -> Rows:
    """Return every row of every table, in order of their columns."""
    found: Rows = {}
    for table in tables(connection):
        if isinstance(connection, apsw.Connection):
            rows = connection.execute(f'select * from "{table}"').fetchall()
        else:
            query = sql.SQL("select * from {}").format(sql.Identifier(table))
            rows = connection.execute(query).fetchall()
        found[table] = sorted(rows, key=repr)
    return found


def of_workspace(rows: Rows, name: str) -> Rows:
    """Return the rows of one workspace by name; every table of a workspace begins with `ws`."""
    numbers = {row[0] for row in rows["workspace"] if row[1] == name}
    return {
        table: [row for row in listed if row[0] in numbers]
        for table, listed in rows.items()
        if table not in {"migration", "setting"}
    }


def record_rows(rows: Rows, status: int = 15) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Return the record rows by (workspace, id), without their status column."""
    return {row[:2]: row[:status] + row[status + 1 :] for row in rows["record"]}


def emptied(url: str, owner: Any = None) -> None:
    """Leave an empty database at the URL; `owner` is a connection that is there already.

    A new one reads the catalogue anew, which takes ten times as long as the rest.
    """
    if not is_postgres(url):
        for path in Path(url).parent.glob("memory.db*"):
            path.unlink()
        return
    if owner is None:
        with connected(url) as owner:
            emptied(url, owner)
        return
    # Deleting a few rows is faster than truncating, which makes new files for every table.
    names = [name for name in tables(owner) if name not in {"migration", "setting"}]
    fresh = "replace(gen_random_uuid()::text, '-', '')"  # as if it were made anew
    statements = [
        *(f"delete from {name}" for name in names),
        f"update setting set value = {fresh} where name = 'origin'",
    ]
    statement(owner, "; ".join(statements))
