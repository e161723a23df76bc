"""Physical clean-up of PostgreSQL, and reading its files back (DESIGN decision 15).

Order matters: the tables are rebuilt, then the planner's statistics, then the write-ahead log is
moved past every segment that still holds old bytes. Needs a superuser; says so where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg import sql as composed

from .database import Cleaned
from .errors import UnsupportedHere

Connection = psycopg.Connection[tuple[Any, ...]]
CHUNK = 4 << 20
MOST_SEGMENTS = 80


def clean(connection: Connection, progress: Callable[[str], None] | None) -> Cleaned:
    """Rebuild every table of ours, the statistics and the log; see Database.clean."""
    steps: list[str] = []

    def done(step: str) -> None:
        steps.append(step)
        if progress:
            progress(step)

    try:
        obstacle = _clean(connection, done)
    except psycopg.errors.LockNotAvailable:
        obstacle = "another session holds a lock on a table; clean-up completes after it ends"
    except psycopg.errors.InsufficientPrivilege:
        obstacle = "the login may not vacuum, checkpoint or switch the log: it is no superuser"
    return Cleaned(tuple(steps), complete=not obstacle, obstacle=obstacle)


def _clean(connection: Connection, done: Callable[[str], None]) -> str:
    connection.execute("set lock_timeout = '5s'")
    if _readers(connection):
        return "another session has an old snapshot open; clean-up completes after it ends"
    for table in _tables(connection):
        connection.execute(
            composed.SQL("vacuum (full, analyze) {}").format(composed.Identifier(table))
        )
    done("tables rebuilt from living rows")
    connection.execute("vacuum full pg_statistic")
    done("planner statistics rebuilt")
    _pass_the_log(connection)
    done("write-ahead log moved past the erased rows")
    slots = connection.execute("select count(*) from pg_replication_slots").fetchone()
    return "a replication slot keeps old write-ahead log" if slots and slots[0] else ""


def _tables(connection: Connection) -> list[str]:
    rows = connection.execute(
        "select relname from pg_class where relkind = 'r' and relnamespace = "
        "(select relnamespace from pg_class where oid = 'record'::regclass) order by relname"
    ).fetchall()
    return [row[0] for row in rows]


def _readers(connection: Connection) -> bool:
    row = connection.execute(
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and pid <> pg_backend_pid() and backend_xmin is not null and backend_type = 'client backend'"
    ).fetchone()
    return bool(row and row[0])


def _pass_the_log(connection: Connection) -> None:
    """Move past every segment there is, and have none recycled with old bytes in it meanwhile.

    A row in `setting` says that the server's setting is changed by us, so that a clean-up after
    one that was killed changes it back.
    """
    row = connection.execute("select current_setting('wal_recycle')").fetchone()
    if row is not None and row[0] == "on":
        connection.execute(
            "insert into setting values ('wal_recycle', 'on') on conflict (name) do nothing"
        )
        connection.execute("alter system set wal_recycle = off")
        connection.execute("select pg_reload_conf()")
    try:
        _switch(connection)
    finally:
        _recycle_again(connection)


def _recycle_again(connection: Connection) -> None:
    if connection.execute("select 1 from setting where name = 'wal_recycle'").fetchone():
        connection.execute("alter system reset wal_recycle")
        connection.execute("select pg_reload_conf()")
        connection.execute("delete from setting where name = 'wal_recycle'")


def _switch(connection: Connection) -> None:
    connection.execute("checkpoint")
    row = connection.execute("select count(*) from pg_ls_waldir()").fetchone()
    for _ in range(min((row[0] if row else 1) + 2, MOST_SEGMENTS)):
        connection.execute("select pg_logical_emit_message(false, 'dellm', '')")
        connection.execute("select pg_switch_wal()")
        connection.execute("checkpoint")


def file_chunks(connection: Connection, overlap: int) -> Iterator[tuple[str, bytes]]:
    """Yield (file, bytes) of this database's files, the log and the server logs beside them.

    Raises UnsupportedHere when the login may not read server files.
    """
    try:
        names = _files(connection)
    except psycopg.errors.InsufficientPrivilege:
        names = None
    if names is None:
        raise UnsupportedHere(
            "The login may not read the server's files.", remedy="Use a superuser."
        )
    for name in names:
        yield from _chunks(connection, name, overlap)


def _files(connection: Connection) -> list[str]:
    rows = connection.execute(
        "select 'base/' || d.oid || '/' || f from pg_database d, pg_ls_dir('base/' || d.oid) f "
        "where d.datname = current_database() union all select 'pg_wal/' || name from pg_ls_waldir()"
    ).fetchall()
    return [*(row[0] for row in rows), *_server_logs(connection)]


def _server_logs(connection: Connection) -> list[str]:
    """Return the server logs inside the data directory: a folder of them, or single files."""
    found: list[str] = []
    for name, folder in connection.execute(
        "select f, (pg_stat_file(f)).isdir from pg_ls_dir('.') f "
        "where f in ('log', 'pg_log') or f like '%.log'"
    ).fetchall():
        inner = connection.execute("select f from pg_ls_dir(%s) f", (name,)) if folder else ()
        found += [f"{name}/{row[0]}" for row in inner] if folder else [name]
    return found


def _chunks(connection: Connection, name: str, overlap: int) -> Iterator[tuple[str, bytes]]:
    offset, tail = 0, b""
    while True:
        try:
            row = connection.execute(
                "select pg_read_binary_file(%s, %s, %s, true)", (name, offset, CHUNK), binary=True
            ).fetchone()
        except (psycopg.errors.WrongObjectType, psycopg.errors.UndefinedFile):
            return  # a folder, or a file that ended meanwhile
        block = row[0] if row and row[0] else b""
        if not block:
            return
        yield name, tail + block
        tail = block[-overlap:] if overlap else b""
        offset += len(block)
