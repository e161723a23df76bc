"""The schema and its migrations, the settings of a connection, and what a broken write leaves."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from dellm import Memory, database
from dellm.database import Scope
from dellm.errors import SchemaError, StorageError
from dellm.postgres import PostgresTx
from dellm.records import Draft
from dellm.sqlite import SqliteTx

pytestmark = pytest.mark.own_database


def catalog(url: str) -> list[tuple[Any, ...]]:
    """Return what the database says of its own schema, without what differs by chance (oids)."""
    if not url.startswith("postgresql"):
        connection = apsw.Connection(url)
        rows = connection.execute("select type, name, tbl_name, sql from sqlite_schema").fetchall()
        pragmas = [("application_id", connection.pragma("application_id"))]
        connection.close()
        return [*sorted(rows, key=repr), *pragmas]
    with psycopg.connect(url) as connection:
        found: list[tuple[Any, ...]] = []
        for query in CATALOG:
            found += sorted(connection.execute(query).fetchall(), key=repr)
    return found


SCHEMA = "relnamespace = 'public'::regnamespace"
CATALOG = (
    f"select relname, relkind, relrowsecurity, relforcerowsecurity, relacl::text from pg_class "
    f"where {SCHEMA}",
    "select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage, "
    "a.attstattarget, a.attcollation::regcollation::text, a.attidentity, "
    "pg_get_expr(d.adbin, d.adrelid) from pg_attribute a join pg_class c on c.oid = a.attrelid "
    f"left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum "
    f"where {SCHEMA} and a.attnum > 0 and not a.attisdropped",
    f"select pg_get_indexdef(oid) from pg_class where relkind = 'i' and {SCHEMA}",
    "select tablename, policyname, roles, cmd, qual, with_check from pg_policies",
    "select conname, pg_get_constraintdef(oid) from pg_constraint "
    "where connamespace = 'public'::regnamespace and contype <> 'n'",
    "select extname from pg_extension",
)


def migrated(url: str) -> None:
    Memory.open(url, embedder=None).close()


@pytest.fixture
def empty_postgres(postgres: str, postgres_url: str) -> Iterator[str]:
    """Return the URL of a PostgreSQL database without any schema of ours."""
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute(f"create database empty_{name}")
    yield postgres_url.replace(f"/{name}?", f"/empty_{name}?")
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute(f"drop database empty_{name} with (force)")


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty database, of each kind in turn."""
    name = {"sqlite": "sqlite_url", "postgres": "empty_postgres"}[request.param]
    return str(request.getfixturevalue(name))


# migrations


def dialect_of(url: str) -> str:
    return "postgres" if url.startswith("postgresql") else "sqlite"


def test_migrations_are_numbered_without_a_gap_and_alike_on_both_databases() -> None:
    names = {
        dialect: [(number, name) for number, name, _ in database.migrations(dialect)]
        for dialect in ("sqlite", "postgres")
    }
    assert names["sqlite"] == names["postgres"]
    assert [number for number, _ in names["sqlite"]] == list(range(1, len(names["sqlite"]) + 1))


def test_both_databases_have_the_same_tables_and_columns(
    sqlite_url: str, postgres_url: str, opened: Callable[..., Memory]
) -> None:
    seen = []
    for url in (sqlite_url, postgres_url):
        engine = opened(url)._engine
        with engine.database.transaction(Scope("", 0), owner=True) as tx:
            seen.append(
                {
                    table: sorted(columns)
                    for table, columns, _ in tx.tables()
                    if not table.startswith(("keyword", "sqlite_"))
                }
            )
    assert seen[0] == seen[1]


ADDED = {
    2: ("second", "create table later_one(ws bigint not null, note text)"),
    3: ("third", "create index later_index on later_one(ws, note)"),
}


def with_more(
    monkeypatch: pytest.MonkeyPatch, extra: dict[int, tuple[str, str]], upto: int = 99
) -> None:
    """Let the library know further migrations, as a newer version of it would."""
    known = database.migrations

    def more(dialect: str) -> list[tuple[int, str, str]]:
        first = len(known(dialect))
        later = [(first + number - 1, name, sql) for number, (name, sql) in extra.items()]
        return [one for one in [*known(dialect), *later] if one[0] <= upto]

    monkeypatch.setattr(database, "migrations", more)


def test_a_schema_migrated_step_by_step_is_the_schema_made_at_once(
    empty: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if dialect_of(empty) == "sqlite":
        at_once = str(tmp_path / "other.db")
    else:
        at_once = request.getfixturevalue("postgres_url")
    last = len(database.migrations(dialect_of(empty)))
    for upto in range(1, last + 3):
        with monkeypatch.context() as newer:
            with_more(newer, ADDED, upto)
            migrated(empty)
    with_more(monkeypatch, ADDED)
    migrated(at_once)
    assert catalog(empty) == catalog(at_once)
    assert any("later_index" in repr(row) for row in catalog(empty))


def test_opening_again_changes_nothing(empty: str) -> None:
    migrated(empty)
    before = catalog(empty)
    migrated(empty)
    assert catalog(empty) == before


def test_a_migration_that_fails_half_way_leaves_nothing(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = catalog(empty)
    with monkeypatch.context() as newer:
        with_more(
            newer, {2: ("broken", "create table half(a bigint); insert into nowhere values (1)")}
        )
        with pytest.raises(StorageError):
            migrated(empty)
    assert catalog(empty) == before  # not even the first migration, which went through
    with Memory.open(empty, embedder=None) as memory:
        memory.remember("kept")
    stored = catalog(empty)
    with monkeypatch.context() as newer:
        with_more(
            newer, {2: ("broken", "create table half(a bigint); insert into nowhere values (1)")}
        )
        with pytest.raises(StorageError):
            migrated(empty)
    assert catalog(empty) == stored
    with Memory.open(empty, embedder=None) as memory:
        assert [one.text for one in memory.export()] == ["kept"]


def test_an_older_library_refuses_a_newer_schema_and_changes_nothing(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        with_more(newer, ADDED)
        migrated(empty)
    before = catalog(empty)
    with pytest.raises(SchemaError, match="version"):
        migrated(empty)
    assert catalog(empty) == before


OPENER = """
import sys
from dellm import Memory
sys.stdin.readline()
memory = Memory.open(sys.argv[1], embedder=None, scrub_below=0).workspace("alex")
for number in range(20):
    memory.remember(f"{sys.argv[2]} {number}", framework_id=f"{sys.argv[2]}-{number}")
memory.close()
"""


def test_several_processes_may_create_and_fill_one_database_at_the_same_time(empty: str) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, empty, name], stdin=subprocess.PIPE, text=True
        )
        for name in ("one", "two", "three")
    ]
    for child in children:
        child.stdin.write("\n")
        child.stdin.close()
    assert [child.wait(timeout=60) for child in children] == [0, 0, 0]
    with Memory.open(empty, embedder=None) as memory:
        alex = memory.workspace("alex")
        records = list(alex.export())
        assert [one.id for one in records] == list(range(1, 61))
        assert len({one.text for one in records}) == 60
        assert alex.verify().ok


# connections


def test_every_sqlite_connection_deletes_securely_and_uses_a_log(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    opened(sqlite_url)
    again = opened(sqlite_url)._engine.database._connection
    wanted = {
        "secure_delete": 1,
        "synchronous": 1,
        "journal_mode": "wal",
        "temp_store": 2,
        "cell_size_check": 1,
        "page_size": 8192,
    }
    assert {name: again.pragma(name) for name in wanted} == wanted
    options = dict(again.execute("select k, v from keyword_config").fetchall())
    assert options["secure-delete"] == 1


def test_the_commit_of_a_forget_is_on_disk_before_it_returns(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(sqlite_url, scrub_below=0)
    connection = memory._engine.database._connection
    said = memory.remember("kept")
    seen = []
    connection.exec_trace = lambda cursor, sql, bindings: (
        (seen.append(connection.pragma("synchronous")) if sql == "commit" else None) or True
    )
    memory.forget(ids=[said.id])
    memory.remember("another")
    connection.exec_trace = None
    assert seen == [2, 1, 1]  # a forget, the reading of its receipt, a remember
    assert connection.pragma("synchronous") == 1


def test_no_content_column_of_postgresql_has_statistics_or_compression(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    opened(postgres_url)
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute(
            "select a.attname, a.attstattarget, a.attstorage from pg_attribute a "
            "where a.attrelid in ('record'::regclass, 'keyword'::regclass, 'embedding'::regclass) "
            "and a.attname in ('text', 'payload', 'metadata', 'terms', 'data', 'subject')"
        ).fetchall()
    assert len(rows) == 6
    assert {name: target for name, target, _ in rows} == {name: 0 for name, _, _ in rows}
    stored = {name: storage for name, _, storage in rows if name != "subject"}
    assert set(stored.values()) == {"e"}, stored


def test_a_file_url_and_a_path_are_the_same_file(sqlite_url: str) -> None:
    with Memory.open(f"sqlite:///{sqlite_url}", embedder=None) as memory:
        memory.remember("kept")
    with Memory.open(sqlite_url, embedder=None) as memory:
        assert [one.text for one in memory.export()] == ["kept"]


def test_a_memory_in_memory_is_its_own_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        Memory.open(":memory:", embedder=None) as one,
        Memory.open(":memory:", embedder=None) as two,
    ):
        said = one.remember("only here")
        assert list(two.export()) == []
        assert one.forget(ids=[said.id]).mode == "erase"
        assert one.scan("only here").clean
        assert one.verify().ok
    assert list(tmp_path.iterdir()) == []


def test_the_keyword_index_is_built_anew_when_unicode_s_version_changed(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    first = opened(sqlite_url).workspace("alex")
    first.remember("Kingsbury castle")
    gone = first.remember("Windsor castle")
    connection = first._engine.database._connection
    connection.execute("insert into keyword(keyword) values ('delete-all')")
    connection.execute("update setting set value = '1.0' where name = 'unicode'")
    assert first.search("kingsbury", by="keyword") == []
    second = opened(sqlite_url).workspace("alex")
    assert [one.record.id for one in second.search("castle", by="keyword")] == [1, 2]
    second.forget(ids=[gone.id])
    assert [one.record.id for one in second.search("castle", by="keyword")] == [1]


# transactions


def test_a_write_that_fails_leaves_nothing_of_itself(memory: Memory) -> None:
    memory.remember("kept")
    engine = memory._engine

    class Stop(Exception):
        pass

    def stop_in_the_middle() -> None:
        with engine.writing(memory.id) as (tx, scope):
            tx.run("delete from record where ws = :ws", ws=scope.ws)
            assert tx.one("select count(*) from record where ws = :ws", ws=scope.ws) == (0,)
            raise Stop

    def go_wrong_in_the_middle() -> None:
        with engine.writing(memory.id) as (tx, scope):
            tx.run("delete from record where ws = :ws", ws=scope.ws)
            tx.run("insert into no_such_table values (1)")

    for act, error in ((stop_in_the_middle, Stop), (go_wrong_in_the_middle, StorageError)):
        with pytest.raises(error):
            act()
        assert [one.text for one in memory.export()] == ["kept"]
    assert [one.text for one in memory.export()] == ["kept"]
    memory.remember("afterwards")
    assert memory.verify().ok


def test_a_read_is_one_snapshot(url: str, opened: Callable[..., Memory]) -> None:
    reader, writer = (opened(url, scrub_below=0).workspace("alex") for _ in range(2))
    writer.remember("before")
    count = "select count(*) from record where ws = :ws"
    with reader._engine.reading("alex") as (tx, scope):
        assert tx.one(count, ws=scope.ws) == (1,)
        writer.remember("meanwhile")
        writer.forget(ids=[1], scrub=False)
        assert tx.one(count, ws=scope.ws) == (1,)
        assert tx.one("select text from record where ws = :ws", ws=scope.ws) == ("before",)
    assert [one.text for one in reader.export()] == ["meanwhile"]


def test_a_read_cannot_write(postgres_url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(postgres_url).workspace("alex")
    memory.remember("kept")
    with (
        pytest.raises(StorageError, match="read-only"),
        memory._engine.reading("alex") as (tx, scope),
    ):
        tx.run("delete from record where ws = :ws", ws=scope.ws)
    assert [one.text for one in memory.export()] == ["kept"]


def test_many_threads_share_one_memory(memory: Memory) -> None:
    problems: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(15):
                said = memory.remember(f"{name} {number}", thread=name)
                memory.record("reply", context=[said.id], thread=name)
                memory.search(name, by="both")
                if number % 5 == 4:
                    memory.forget(ids=[said.id], scrub=False)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(f"name{one}",)) for one in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert memory.threads() == {f"name{one}": 24 for one in range(4)}
    assert memory.verify().ok


def test_two_processes_that_begin_to_index_at_the_same_time_agree(
    url: str, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = (opened(url).workspace("alex") for _ in range(2))
    slow.remember_many([Draft("note one"), Draft("note two")])
    other = threading.Thread(target=quick.index)
    kind = SqliteTx if dialect_of(url) == "sqlite" else PostgresTx
    run = kind.run

    def overtaken(tx: Any, sql: Any, **values: Any) -> int:
        if sql.startswith("update workspace set embedder") and not other.ident:
            other.start()  # the other one does all of its work now, if nothing keeps it out
            other.join(1)
        return run(tx, sql, **values)

    monkeypatch.setattr(kind, "run", overtaken)
    slow.index()
    other.join()
    assert slow.verify().ok
    slow.remember("note three")
    assert len(slow.search("note", by="meaning")) == len(quick.search("note", by="meaning")) == 3
    assert slow.verify().ok


def test_row_level_security_hides_other_workspaces_even_from_a_statement_without_a_filter(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(postgres_url).workspace("alex")
    memory.remember("mine")
    memory.workspace("kim").remember_many([Draft("theirs"), Draft("theirs")])
    with memory._engine.reading("alex") as (tx, _):
        assert tx.all("select text from record") == [("mine",)]
        assert tx.all("select name from workspace") == [("alex",)]
    with memory._engine.writing("alex") as (tx, _):
        assert tx.run("delete from record") == 1
    assert len(list(memory.workspace("kim").export())) == 2

    def into_another() -> None:
        with memory._engine.writing("alex") as (tx, scope):
            tx.run(
                "insert into edge(ws, child, pos, parent) values (:other, 1, 1, 1)",
                other=scope.ws + 1,
            )

    with pytest.raises(StorageError):
        into_another()
