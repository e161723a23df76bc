"""Nothing crosses workspaces (I6): by verb, by SQL, by statement and by partition."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from lines import run, said, state
from pgvector.psycopg import register_vector
from raw_tables import connected, is_postgres, of_workspace, rows_of
from verbs import (
    CALLS,
    ONLY_ON_POSTGRES,
    READING,
    WRITING,
    document,
    found_in,
    public_verbs,
    strings,
    summed,
)

import dellm
from dellm import (
    Atom,
    Draft,
    InvalidInput,
    Keep,
    Memory,
    Sources,
    StorageError,
    UnsupportedHere,
    database,
    postgres,
    postgres_text,
    sqlite,
)

pytestmark = pytest.mark.own_database

NAMES = ("a", "ab", "a%", "a_b", "a/b", "%", "A", "a ", "*", "ä", "a\x00b", "'; drop table record")
# Every verb turns a name into the workspace's number at one place, so that not every name needs all.
BY_EVERY_VERB = ("a", "a%", "a_b", "%", "a\x00b")
CORE = Path(dellm.__file__).parent
SCOPED = (
    *("record", "embedding", "sequence", "edge", "tombstone", "ledger", "residue", "repeat"),
    *("line", "label", "checkpoint", "task_write", "ended", "keyword"),
    *("item", "item_vector", "elsewhere", "hidden"),
    *("fact", "fact_end", "fact_key", "fact_seen", "fact_refused"),
    *("outsider", "exposure"),
    *("rebuild_job", "rebuild_source", "guard", "concerns", "governed"),
    *("hold", "hold_record", "hold_wait", "audience"),
)


def stock(memory: Memory, canary: str) -> dellm.Receipt:
    """Put the canary everywhere a record has room, and leave a receipt; return it."""
    for thread in ("a", "a%", "t"):
        memory.remember(
            f"zanzibar {canary} my phone number is (212) 867-5309",
            thread=thread,
            metadata={"note": canary},
            subject=canary,
            payload=canary.encode(),
            source=canary,
            basis="consent",
        )
    history = [one.id for one in memory.export()]
    memory.record(f"zanzibar {canary} noted", context=history * 3, thread="t")
    memory.answers.keep("zanzibar?", 1)
    memory.answers.keep("zanzibar?", 1, scope="shared")
    memory.exposures.note([1], model=f"{canary}/m")
    memory.remember("zanzibar to be forgotten", thread="a_b")
    memory.remember("zanzibar to be hidden", thread="a_b")
    memory.forget(ids=[5], scrub=False)
    receipt = memory.forget(ids=[6], mode="suppress")
    memory.conversations.hide("a%", [2], archive=True)
    memory.acting(user=f"user {memory.id}").remember("zanzibar for one", audience="user")
    checkpoint(memory, canary)
    for space in ("a", "a%", "t"):
        draft = Draft(f"zanzibar {canary} item", role="item", kind="state")
        made = Sources(also=(Atom(known=1),))
        vectors = [np.ones(2, np.float32)]
        kept = Keep((space, canary), "zanzibar", Atom(draft, made=made), vectors=vectors)
        memory.items.put("store", [kept])
        memory.elsewhere.take("docs", [document(f"zanzibar {canary} {space}", canary)])
    state_facts(memory, canary)
    memory.remember_many([Draft(f"zanzibar {canary} waits", quarantined=True)])
    memory.remember("a guarded wombat")
    memory.forget("wombat", guard=True, scrub=False)
    for thread in ("a%", "t"):
        summed(memory).rolling(thread)
        memory.summaries.tree(thread, leaf=2, fan_out=2)
    memory.derivation(f"digest {canary}")(lambda sources: sources[0].text)
    memory.derive(f"digest {canary}", sources=[1, memory.remember("zanzibar digested").id])
    memory.forget("zanzibar digested", rebuild="later", scrub=False)
    held = memory.remember(f"zanzibar {canary} held", thread="held", subject=canary).id
    memory.holds.place(subject=canary, basis="case 1", by="counsel")
    memory.holds.release(memory.holds.place(ids=[held], basis="case 2", by="counsel").number)
    memory.holds.release(1)
    memory.holds.place(ids=[held], basis="case 3", by="counsel")
    memory.forget(ids=[held], scrub=False)
    memory.index()
    return receipt


def state_facts(memory: Memory, canary: str) -> None:
    """Put the canary in facts: one that was closed, one that was refused, one that waits."""
    facts = memory.facts
    facts.declare(canary)
    facts.state(canary, f"zanzibar {canary}", subject=canary, context=[1])
    facts.close(canary, subject=canary, context=[1])
    facts.state("zanzibar", canary, inferred=True, sensitivity=canary)
    found = facts.extract(found_in, records=[1])
    memory.forget(ids=found.stated, scrub=False)


def checkpoint(memory: Memory, canary: str) -> None:
    """Put the canary in checkpoints, in their names, and in a thread that is deleted."""
    for thread, ns in (("a%", ""), ("t", ""), ("a%", "a%"), (f"thread {canary}", canary)):
        one = run(memory, thread, ns=ns, run="first")
        erased = said(f"zanzibar {canary} erased", thread, kind="tool",
                      metadata={"tool_call_id": "call 1"})  # fmt: skip
        one.more("list", said(f"zanzibar {canary} item", thread, "f1"), erased)
        one.run = "second"
        outer = state(f"zanzibar {canary} outer", thread, refs=[Atom(known=1)], payload=b"p")
        one.more("list", said("more", thread), **{canary: outer})
        one.write((0, canary, state(f"zanzibar {canary} pending", thread)), task=canary)
        memory.forget(ids=[erased.id], scrub=False)
    run(memory, f"gone {canary}").put(x=state(f"zanzibar {canary} deleted", f"gone {canary}"))
    memory.checkpoints.delete_thread(f"gone {canary}")


@pytest.fixture
def crowded(url: str, opened: Callable[..., Memory]) -> tuple[Memory, dict[str, dellm.Receipt]]:
    """A database of many workspaces with treacherous names, each with a canary of its own."""
    memory = opened(url, scrub_below=0)
    return memory, {
        name: stock(memory.workspace(name), f"quokka{number:02}q")
        for number, name in enumerate(NAMES)
    }


# verbs


def test_every_public_verb_is_tried_against_other_workspaces() -> None:
    assert public_verbs() == set(CALLS) | ONLY_ON_POSTGRES


def test_no_read_verb_returns_or_changes_anything_of_another_workspace(
    crowded: tuple[Memory, dict[str, dellm.Receipt]], url: str
) -> None:
    memory, receipts = crowded
    with connected(url) as raw:
        before = rows_of(raw)
        for number, name in enumerate(NAMES):
            other = receipts[NAMES[number - 1]]
            seen = set()
            for verb in READING if name in BY_EVERY_VERB else ("export", "search", "scan"):
                for said in strings(READING[verb](memory.workspace(name), other)):
                    seen |= set(re.findall(r"quokka\d\dq", said))
            assert seen == {f"quokka{number:02}q"}, name
        assert rows_of(raw) == before
        stranger = memory.workspace("nobody")
        for call in READING.values():
            assert "quokka" not in "".join(strings(call(stranger, receipts["a"])))
        assert rows_of(raw) == before


def test_no_write_verb_changes_a_bit_of_another_workspace(
    crowded: tuple[Memory, dict[str, dellm.Receipt]], url: str
) -> None:
    memory, receipts = crowded
    with connected(url) as raw:
        for name in ("a%", "a_b", "%", "a", "newcomer"):
            before = rows_of(raw)
            for verb, call in WRITING.items():
                if verb != "scrub" or not is_postgres(url):
                    said = "".join(strings(call(memory.workspace(name), receipts["ab"])))
                    own = f"quokka{NAMES.index(name):02}q" if name in NAMES else "none"
                    assert set(re.findall(r"quokka\d\dq", said)) <= {own}
            after = rows_of(raw)
            for other in {row[1] for row in before["workspace"]} - {name}:
                assert of_workspace(after, other) == of_workspace(before, other)
            assert list(memory.workspace(name).export()) == []
            assert memory.workspace(name).verify().ok


def test_a_blank_name_is_no_workspace_and_similar_names_are_different_ones(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url)
    for wrong in ("", " ", "\n", None, 5):
        with pytest.raises(InvalidInput):
            memory.workspace(wrong)  # type: ignore[arg-type] # what a careless caller passes
    for name in NAMES:
        assert memory.workspace(name).remember("first").id == 1
    assert memory.workspace("default").threads() == memory.threads() == {}


def test_a_context_of_another_workspace_is_refused(memory: Memory) -> None:
    memory.remember("zanzibar", thread="t")
    other = memory.workspace("other")
    other.remember("mine", thread="t")
    foreign = memory.context("zanzibar", thread="t", last=1)
    assert foreign.ids == [1]
    with pytest.raises(InvalidInput):
        other.record("reply", context=foreign)
    assert [one.text for one in other.export()] == ["mine"]


def test_another_workspaces_records_do_not_move_a_ranking(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url)
    alone = memory.workspace("alone")
    alone.remember("common rare")
    alone.remember("common common")
    scores = [(one.record.id, one.score) for one in alone.search("common rare", by="keyword")]
    for n in range(40):
        memory.workspace("crowd").remember(f"rare rare rare {n}")
    again = [(one.record.id, one.score) for one in alone.search("common rare", by="keyword")]
    assert again == scores


# PostgreSQL: row level security


@pytest.fixture
def two(postgres_url: str, opened: Callable[..., Memory]) -> tuple[Memory, Memory]:
    """Workspaces "a" and "b" of one PostgreSQL database, a canary in each."""
    memory = opened(postgres_url)
    pair = memory.workspace("a"), memory.workspace("b")
    stock(pair[0], "quokka00q")
    stock(pair[1], "quokka01q")
    return pair


@contextmanager
def as_app(url: str, **settings: str) -> Iterator[psycopg.Connection[Any]]:
    """Open a transaction as the role our statements run as, with the settings given."""
    with psycopg.connect(url) as connection:
        connection.execute("set local role dellm_app")
        for name, value in settings.items():
            connection.execute("select set_config(%s, %s, true)", (f"dellm.{name}", value))
        yield connection
        connection.rollback()


def number_of(url: str, name: str) -> int:
    with psycopg.connect(url) as owner:
        row = owner.execute("select ws from workspace where name = %s", (name,)).fetchone()
    assert row is not None
    return int(row[0])


def visible(connection: psycopg.Connection[Any], table: str) -> set[int]:
    return {row[0] for row in connection.execute(f"select distinct ws from {table}").fetchall()}


def test_the_role_of_our_statements_sees_only_the_workspace_that_is_set(
    two: tuple[Memory, Memory], postgres_url: str
) -> None:
    first, second = number_of(postgres_url, "a"), number_of(postgres_url, "b")
    with psycopg.connect(postgres_url) as owner:
        held = dict(owner.execute("select ws, count(*) from record group by ws").fetchall())
    assert held[first] == held[second] > 15
    with as_app(postgres_url, ws=str(first), name="a") as connection:
        for table in (*SCOPED, "workspace"):
            if table != "residue":
                assert visible(connection, table) == {first}, table
        assert connection.execute("update record set text = 'x'").rowcount == held[first]
        assert connection.execute("delete from edge").rowcount > 0
        changed = connection.execute("update record set text = 'x' where ws = %s", (second,))
        assert changed.rowcount == 0
    for unset in ({}, {"ws": ""}, {"ws": "0"}, {"ws": "999"}):
        with as_app(postgres_url, **unset) as connection:
            for table in (*SCOPED, "workspace"):
                assert visible(connection, table) == set(), (table, unset)
            assert connection.execute("delete from record").rowcount == 0
        # One is suppressed, one held, one for one user, and two wait.
        assert len(list(two[1].export())) == held[second] - 5


@pytest.mark.parametrize("table", SCOPED)
def test_no_row_can_be_written_into_another_workspace_nor_moved_there(
    two: tuple[Memory, Memory], postgres_url: str, table: str
) -> None:
    first, second = number_of(postgres_url, "a"), number_of(postgres_url, "b")
    with psycopg.connect(postgres_url) as owner:
        listed = owner.execute(
            "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 "
            "and attname <> 'ws' and not attisdropped order by attnum",
            (table,),
        ).fetchall()
        columns = ", ".join(row[0] for row in listed)
        row = owner.execute(f"select count(*) from {table} where ws = %s", (first,)).fetchone()
    assert row is not None
    assert row[0] > 0
    for forged in (
        f"insert into {table}(ws, {columns}) select {second}, {columns} from {table}",
        f"update {table} set ws = {second}",
    ):
        with as_app(postgres_url, ws=str(first), name="a") as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
                connection.execute(forged)
            assert "quokka" not in str(refused.value)


def test_a_connection_that_failed_serves_the_next_workspace_alone(
    postgres_url: str,
) -> None:
    held = postgres.PostgresDatabase(postgres_url, most=1)
    first = database.Scope("a", 1)
    try:
        for broken in (
            "select 1 / 0",
            "select * from nowhere",
            "insert into record(ws) values (7)",
        ):
            with pytest.raises(StorageError), held.transaction(first, write=True) as tx:
                tx.run(broken)
            with held.transaction(database.Scope("", 0)) as tx:
                told = tx.one(
                    "select current_user, current_setting('dellm.ws', true), "
                    "current_setting('dellm.name', true)"
                )
                assert told == ("dellm_app", "0", "")
        with held._pool.connection() as bare:
            assert bare.execute("select current_setting('dellm.ws', true)").fetchone() in [
                ("",),
                (None,),
            ]
    finally:
        held.close()


@pytest.fixture
def owned(postgres: str, template: str) -> Iterator[str]:
    """Return the URL of a database that belongs to a login which is no superuser."""
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("create role dellm_owner login nosuperuser nobypassrls")
        admin.execute("grant dellm_app to dellm_owner")
        admin.execute("create database dellm_owned owner dellm_owner")
        url = postgres.replace("/postgres?", "/dellm_owned?")
        with psycopg.connect(url, autocommit=True) as inside:
            inside.execute("create extension vector")
        yield url.replace("//postgres:", "//dellm_owner:")
        admin.execute("drop database dellm_owned with (force)")
        admin.execute("revoke dellm_app from dellm_owner")
        admin.execute("drop role dellm_owner")


def test_row_level_security_binds_the_owner_of_the_tables_too(
    owned: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(owned)
    stock(memory.workspace("a"), "quokka00q")
    stock(memory.workspace("b"), "quokka01q")
    with psycopg.connect(owned) as owner:
        told = owner.execute(
            "select current_user, rolsuper or rolbypassrls from pg_roles where rolname = current_user"
        ).fetchone()
        assert told == ("dellm_owner", False)
        for table in (*SCOPED, "workspace"):
            assert visible(owner, table) == set(), table
        owner.execute("select set_config('dellm.ws', '2', false)")
        assert visible(owner, "record") == {2}
        owner.execute("set row_security = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            owner.execute("select * from record")
    assert memory.workspace("a").scan("quokka00q", files=False).places
    assert memory.workspace("b").scan("quokka00q", files=False).places == ()
    report = memory.workspace("a").scrub()
    assert not report.clean
    assert report.obstacle


@pytest.fixture
def login(postgres: str) -> Iterator[str]:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("create role dellm_reader login")
        yield "dellm_reader"
        for row in admin.execute("select datname from pg_database where datname like 'dellm%'"):
            with psycopg.connect(postgres.replace("/postgres?", f"/{row[0]}?")) as inside:
                inside.execute("drop owned by dellm_reader")
        admin.execute("drop role dellm_reader")


def test_a_bound_login_sees_its_workspace_whatever_it_sets(
    two: tuple[Memory, Memory], postgres_url: str, login: str
) -> None:
    first, second = number_of(postgres_url, "a"), number_of(postgres_url, "b")
    held = list(two[0].export())
    assert len(held) > 15
    two[0].bind_login(login)
    url = postgres_url.replace("//postgres:", f"//{login}:")
    with psycopg.connect(url, autocommit=True) as reader:
        for setting in (
            "select 1",
            f"select set_config('dellm.ws', '{second}', false)",
            "select set_config('dellm.name', 'b', false)",
            "set row_security = off",
        ):
            reader.execute(setting)
            if setting.startswith("set row"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    reader.execute("select * from record")
                reader.execute("set row_security = on")
            assert visible(reader, "record") == {first}
            assert visible(reader, "edge") == {first}
            texts = reader.execute("select text, metadata from record").fetchall()
            assert "quokka01q" not in repr(texts)
            assert "quokka00q" in repr(texts)
        for role in ("dellm_app", "postgres"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(f"set role {role}")
        for refused in (
            "update record set text = 'x'",
            "delete from record",
            f"insert into sequence(ws, id, thread, length) values ({first}, -99, 't', 1)",
            "select secret from workspace",
            "select * from residue",
            *(f"select * from {name}" for name in ("line", "checkpoint", "task_write", "item")),
            "create policy mine on record using (true)",
            "alter table record no force row level security",
        ):
            with pytest.raises(psycopg.Error):
                reader.execute(refused)
    two[1].bind_login(login)
    with psycopg.connect(url, autocommit=True) as reader:
        assert visible(reader, "record") == {second}
    assert list(two[0].export()) == held


@pytest.mark.parametrize("wrong", ["", "a b", "x; drop table record", 'a"b', "1a"])
def test_only_a_plain_role_name_can_be_bound(two: tuple[Memory, Memory], wrong: str) -> None:
    with pytest.raises(InvalidInput):
        two[0].bind_login(wrong)
    with pytest.raises(StorageError):
        two[0].bind_login("nobody_of_this_name")


def test_sqlite_has_no_logins_to_bind(sqlite_url: str, opened: Callable[..., Memory]) -> None:
    with pytest.raises(UnsupportedHere):
        opened(sqlite_url).bind_login("reader")


# statements

REFERENCE = re.compile(rf"\b(?:from|join|into|update)\s+({'|'.join((*SCOPED, 'workspace'))})\b")
FILTER = re.compile(r"\bws = :ws\b|\w+\(ws,|\bname = :name\b")
START = re.compile(r"\s*(?:select|insert|update|delete|with)\b")
# Reads over every workspace, each for a reason: (module, statement).
WHOLE_DATABASE = {
    # the tokenizer changed: terms of every record are made anew
    ("sqlite", "select ws, id, text from record where kind <> 'state' and status <> 2"),
    # clean-up: tells bytes of erased rows from bytes of living ones, and returns neither
    ("sqlite", "select text, metadata, payload, subject from record"),
    ("sqlite", "select data from embedding"),
    ("postgres", "select text, metadata, payload, subject from record"),
    ("postgres", "select vector_send(data) from embedding"),
    # keyed by rowid, which holds the workspace's number
    ("sqlite", "insert into keyword(rowid, terms) values (?, ?)"),
    ("sqlite", "insert into keyword(keyword, rowid, terms) values ('delete', ?, ?)"),
    ("sqlite", "select rowid from keyword where keyword match ? and rowid between ? and ?"),
    # clean-up of the index as a whole; row 0 belongs to no workspace
    ("sqlite", "insert into keyword(keyword) values ('delete-all')"),
    ("sqlite_clean", "insert into keyword(rowid, terms) values (0, 'a')"),
    ("sqlite_clean", "insert into keyword(keyword) values ('optimize')"),
    ("sqlite_clean", "insert into keyword(keyword, rowid, terms) values ('delete', 0, 'a')"),
    # a workspace is created by its name, which is unique
    ("engine", "insert into workspace(name, secret, created_at, concerns) "
     "values (:name, :secret, :at, 1) "
     "on conflict (name) do nothing"),
}  # fmt: skip


def unfiltered(statement: str) -> bool:
    """Whether a statement names more tables of workspaces than it binds to one."""
    return len(REFERENCE.findall(statement)) > len(FILTER.findall(statement))


def written_statements(source: str) -> list[str]:
    """Return the SQL texts in a module's source."""
    found: list[str] = []
    inner: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in node.values}
            parts = [part.value if isinstance(part, ast.Constant) else "?" for part in node.values]
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and id(node) not in inner:
            found.append(str(node.value))
    return [one for one in found if START.match(one) and REFERENCE.search(one)]


def test_every_statement_in_the_source_is_bound_to_one_workspace() -> None:
    exempt = set()
    seen = 0
    for path in CORE.rglob("*.py"):
        for one in written_statements(path.read_text("utf-8")):
            seen += 1
            if unfiltered(one):
                exempt.add((path.stem, one))
    assert exempt == WHOLE_DATABASE
    assert seen > 80
    assert unfiltered(written_statements('x = "select text from record where id = :id"')[0])
    assert unfiltered("select 1 from record r join edge e on e.child = r.id where r.ws = :ws")


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Return a list that every statement of a transaction is added to, with its values."""
    said: list[tuple[str, Any]] = []

    def listen(kind: type, verb: str) -> None:
        original = getattr(kind, verb)

        def overheard(self: object, sql: str, *args: Any, **values: Any) -> object:
            given = (args[0][:1] or [None])[0] if verb == "many" else values
            if isinstance(given, tuple):
                given = postgres_text.by_name(sql, given)
            if given is not None:
                said.append((sql, given))
            return original(self, sql, *args, **values)

        monkeypatch.setattr(kind, verb, overheard)

    for kind in (sqlite.SqliteTx, postgres.PostgresTx):
        for verb in ("all", "one", "run", "later", "many", "stream"):
            listen(kind, verb)
    return said


def use_every_verb(memory: Memory) -> None:
    receipt = stock(memory.workspace("b"), "quokka01q")
    other = memory.workspace("a")
    stock(other, "quokka00q")
    for verb, call in CALLS.items():
        if verb != "scrub":
            call(other, receipt)


def test_every_statement_that_runs_is_bound_to_one_workspace(
    url: str, opened: Callable[..., Memory], heard: list[tuple[str, Any]]
) -> None:
    use_every_verb(opened(url, scrub_below=0))
    texts = {sql for sql, _ in heard}
    exempt = {one for _, one in WHOLE_DATABASE}
    assert {sql for sql in texts if unfiltered(sql)} <= exempt
    for sql, values in heard:
        for name, value in values.items():
            assert not (isinstance(value, str) and len(value) > 9 and value in sql), name
    tables = {table for sql in texts for table in REFERENCE.findall(sql)}
    assert set(SCOPED) - {"keyword"} <= tables


# partitions


def partitioned(script: str) -> str:
    """Return the schema with every table of workspaces split by hash(ws) into four."""
    create = re.compile(r"create table (\w+)\(\s*ws bigint not null,.*?\n\);", re.DOTALL)

    def split(found: re.Match[str]) -> str:
        name = found[1]
        parts = "".join(
            f"\ncreate table {name}_p{n} partition of {name} "
            f"for values with (modulus 4, remainder {n});"
            for n in range(4)
        )
        return found[0].removesuffix(";") + " partition by hash (ws);" + parts

    return create.sub(split, script)


@pytest.fixture
def partitioned_url(postgres: str, template: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    original = database.migrations
    monkeypatch.setattr(
        database,
        "migrations",
        lambda dialect: [(n, name, partitioned(sql)) for n, name, sql in original(dialect)],
    )
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("create database dellm_parts")
        yield postgres.replace("/postgres?", "/dellm_parts?")
        admin.execute("drop database dellm_parts with (force)")


def scanned(node: Any) -> set[str]:
    """Return every relation that a plan reads, as EXPLAIN (FORMAT JSON) names them."""
    if isinstance(node, list):
        return set().union(*map(scanned, node))
    if not isinstance(node, dict):
        return set()
    name = (
        {node["Relation Name"]}
        if "Scan" in node.get("Node Type", "") and "Relation Name" in node
        else set()
    )
    return name.union(*map(scanned, node.values()))


def test_on_a_hash_partitioned_schema_every_statement_reads_one_partition(
    partitioned_url: str, opened: Callable[..., Memory], heard: list[tuple[str, Any]]
) -> None:
    memory = opened(partitioned_url)
    use_every_verb(memory)
    assert memory.workspace("a").verify().ok
    assert memory.workspace("a").scrub().clean
    distinct = {sql: values for sql, values in heard if REFERENCE.search(sql)}
    read: set[str] = set()
    with psycopg.connect(partitioned_url) as owner:
        register_vector(owner)
        for sql, values in distinct.items():
            told = owner.execute(
                "explain (format json, costs off) " + postgres_text.translate(sql), values
            ).fetchone()
            assert told is not None
            plan = told[0] if isinstance(told[0], list) else json.loads(told[0])
            parts = {name for name in scanned(plan) if re.search(r"_p\d$", name)}
            assert len({name[-1] for name in parts}) <= 1, sql
            read |= parts
        everywhere = owner.execute("explain (format json) select * from record").fetchone()
    assert everywhere is not None
    assert len(scanned(everywhere[0])) == 4
    assert {name[:-3] for name in read} == set(SCOPED)


# layers

LAYERS = (
    ("records", "encoding", "errors", "cells", "bodies"),
    ("database", "sqlite", "postgres"),
    (
        *("provenance", "sequences", "storing", "search", "reading", "ledger", "residue"),
        *("naming", "settling"),
    ),
    ("checkpointing",),
    ("restoring",),
    (
        *("context", "selectors", "planning", "influences", "redacting", "repeating", "forget"),
        *("scan", "scrub", "verify", "explaining", "drawing"),
    ),
    ("discarding",),
    ("copying",),
    ("recall", "checkpoints"),
    ("memory",),
    ("assistant", "cli"),
)


def imported(source: str, package: str = "dellm", *, at_once: bool = False) -> set[str]:
    """Return the modules of the package that a module of it imports; `at_once`: while it is loaded."""
    found: set[str] = set()
    tree = ast.parse(source)
    only_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in tree.body if at_once else ast.walk(tree):
        if node in only_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            found |= (
                {node.module.split(".")[0]} if node.module else {one.name for one in node.names}
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package:
            found |= {node.module.split(".")[1]} if "." in (node.module or "") else {"__init__"}
        elif isinstance(node, ast.Import):
            found |= {
                one.name.split(".")[1] for one in node.names if one.name.startswith(f"{package}.")
            }
    return found


LANGCHAIN = CORE.parents[1] / "dellm_langchain"
LLAMAINDEX = CORE.parents[1] / "dellm_llamaindex"
LANGCHAIN_LAYERS = (
    ("addresses", "boxes", "channels", "injection", "calls", "pairs", "objects"),
    ("shapes", "captured"),
    ("messages", "capture"),
    ("origins",),
    ("taking",),
    ("giving",),
    ("workspace",),
    ("writing",),
    ("saver",),
)


def reached(start: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        for one in imports.get(left.pop(), ()):
            if one not in found:
                found.add(one)
                left.append(one)
    return found


def modules(package: Path, *, at_once: bool = False) -> dict[str, set[str]]:
    return {
        path.stem: imported(path.read_text("utf-8"), package.name, at_once=at_once)
        for path in package.glob("*.py")
    }


@pytest.mark.parametrize(("package", "layers"), [(CORE, LAYERS), (LANGCHAIN, LANGCHAIN_LAYERS)])
def test_imports_flow_one_way_through_the_layers(
    package: Path, layers: tuple[tuple[str, ...], ...]
) -> None:
    imports = modules(package)
    rank = {name: n for n, layer in enumerate(layers) for name in layer}
    for name, own in rank.items():
        assert name in imports, name
        above = {one for one in reached(name, imports) if rank.get(one, 0) > own}
        assert not above, name
    assert imported("from . import memory\nfrom .recall import Recall") == {"memory", "recall"}


@pytest.mark.parametrize("package", [CORE, LANGCHAIN, LLAMAINDEX])
def test_no_module_is_loaded_by_what_it_loads(package: Path) -> None:
    loads = modules(package, at_once=True)
    loads = {name: some for name, some in loads.items() if not name.startswith("__")}
    assert loads
    for name in loads:
        assert name not in reached(name, loads), name


def outside_the_public_names(source: str) -> set[str]:
    """Return what a module takes from the core that is not public."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "dellm":
            found |= {one.name for one in node.names} - set(dellm.__all__)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dellm."):
            found |= {node.module or ""} - {"dellm.adapting"}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names if one.name.startswith("dellm.")}
    return found


def test_adapters_use_only_the_public_names() -> None:
    root = CORE.parents[1]
    for path in (*root.glob("dellm_*/**/*.py"), *root.glob("core/dellm_*/**/*.py")):
        assert outside_the_public_names(path.read_text("utf-8")) == set(), path
    bad = "import dellm.sqlite\nfrom dellm import Memory, provenance\nfrom dellm.plan import Plan"
    assert outside_the_public_names(bad) == {"dellm.sqlite", "provenance", "dellm.plan"}


def test_only_the_two_database_modules_know_a_dialect() -> None:
    know = {
        path.relative_to(CORE).as_posix()
        for path in CORE.rglob("*.py")
        if re.search(r"dialect|\bapsw\b|\bpsycopg\b|\bpgvector\b", path.read_text("utf-8"))
    }
    assert {"database.py", "sqlite.py", "postgres.py"} <= know
    assert know <= {
        "database.py",
        "sqlite.py",
        "sqlite_clean.py",
        "postgres.py",
        "postgres_session.py",
        "postgres_setup.py",
        "postgres_text.py",
        "postgres_clean.py",
        "adopt_databases.py",  # reads the databases of other programs, and never ours
    }
