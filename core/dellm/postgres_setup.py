"""What the owner of a PostgreSQL database sets up: its schema, and logins that may read a workspace."""

from __future__ import annotations

import re

import psycopg
from psycopg import sql as composed

from . import database
from .database import Row, Scope
from .errors import InvalidInput, SchemaError

Connection = psycopg.Connection[Row]

# What a bound login may read: not the digests, nor their key.
READABLE = ("record", "embedding", "edge", "sequence", "keyword", "tombstone", "ledger")
_LOGIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")
_LOCK = 0x44654C4C  # advisory lock of the migrations


def migrate(connection: Connection) -> None:
    """Bring the schema up to date, one process at a time. Raises SchemaError.

    The connection commits each statement on its own. Where nothing is to be done, one is all it takes.
    """
    if not database.pending("postgres", _applied(connection)):
        return
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute("set local client_min_messages = error")
        connection.execute(
            "create table if not exists migration("
            "number bigint primary key, name text not null, applied_at bigint not null)"
        )
        for number, name, script in database.pending("postgres", _applied(connection)):
            _apply(connection, number, name, script)


def _applied(connection: Connection) -> list[int]:
    """Return the numbers of the migrations that were applied; none where there is no schema."""
    try:
        return [row[0] for row in connection.execute("select number from migration")]
    except psycopg.errors.UndefinedTable:
        return []


def _apply(connection: Connection, number: int, name: str, script: str) -> None:
    try:
        connection.execute("create extension if not exists vector")
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFile):
        missing = SchemaError(
            "The extension pgvector is not in this database and could not be created.",
            remedy="Let an administrator run CREATE EXTENSION vector.",
        )
    else:
        connection.execute(script)
        connection.execute(
            "insert into migration values (%s, %s, %s)", (number, name, database.now())
        )
        return
    raise missing


def check_login(login: str) -> None:
    """Raise InvalidInput for a name that is no plain role name."""
    if not _LOGIN.fullmatch(login):
        raise InvalidInput("The name is not a plain role name.")


def bind_login(connection: Connection, login: str, scope: Scope) -> None:
    """Let the login read the workspace's tables, and no other workspace's."""
    for table in READABLE:
        _bind(connection, table, login, scope.ws)


def _bind(connection: Connection, table: str, login: str, ws: int) -> None:
    names = {
        "policy": composed.Identifier(f"login_{login}"),
        "table": composed.Identifier(table),
        "login": composed.Identifier(login),
        "ws": composed.Literal(ws),
    }
    for statement in (
        "drop policy if exists {policy} on {table}",
        "create policy {policy} on {table} for select to {login} using (ws = {ws})",
        "grant select on {table} to {login}",
    ):
        connection.execute(composed.SQL(statement).format(**names))
