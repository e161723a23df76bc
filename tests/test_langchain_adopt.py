"""Stock chat message histories, made by the stock classes, adopted: equal, and forgettable."""

from __future__ import annotations

import itertools
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import langchain_core.messages as lc
import psycopg
import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from typer.testing import CliRunner

from dellm import InvalidInput, Memory, Record, StorageError, UnsupportedHere, cli
from dellm_langchain.adopt_histories import adopt
from dellm_langchain.history import DeLLMChatMessageHistory
from dellm_langchain.messages import recipe

pytest.importorskip("langchain_community", reason="langchain-community is not installed")
pytest.importorskip("langchain_postgres", reason="langchain-postgres is not installed")
from langchain_community.chat_message_histories import SQLChatMessageHistory
from langchain_postgres import PostgresChatMessageHistory
from sqlalchemy import create_engine

Opened = Callable[..., Memory]
NUMBERS = itertools.count(1)
SAM = "5f0c3c1e-8d3b-4f0e-9a57-0d6a4c9a1b01"
KIM = "5f0c3c1e-8d3b-4f0e-9a57-0d6a4c9a1b02"
WORD = "Heliotrope"


class Source:
    """A database with a table of a stock history. `stock` gives the stock class's own object."""

    def __init__(self, url: str, kind: str) -> None:
        self.url = url
        self.kind = kind
        self.table = "message_store" if kind != "json" else "talks"

    @contextmanager
    def stock(self, session: str = SAM) -> Iterator[BaseChatMessageHistory]:
        if self.kind == "json":
            with psycopg.connect(self.url, autocommit=True) as connection:
                PostgresChatMessageHistory.create_tables(connection, self.table)
                yield PostgresChatMessageHistory(self.table, session, sync_connection=connection)
            return
        url = self.url.replace("postgresql://", "postgresql+psycopg://")
        engine = create_engine(url if "://" in url else f"sqlite:///{url}")
        yield SQLChatMessageHistory(session, self.table, connection=engine)
        engine.dispose()

    def add(self, *messages: lc.BaseMessage, session: str = SAM) -> None:
        with self.stock(session) as history:
            history.add_messages(messages)

    def messages(self, session: str = SAM) -> list[lc.BaseMessage]:
        with self.stock(session) as history:
            return list(history.messages)


@pytest.fixture
def stock_sqlite(tmp_path: Path) -> Source:
    (tmp_path / "stock").mkdir()
    return Source(str(tmp_path / "stock" / "history.db"), "sql")


@pytest.fixture
def stock_database(postgres: str) -> Iterator[str]:
    name = f"history_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute(f"create database {name}")
        yield postgres.replace("/postgres?", f"/{name}?")
        owner.execute(f"drop database {name} with (force)")


@pytest.fixture
def stock_postgres(stock_database: str) -> Source:
    return Source(stock_database, "json")


@pytest.fixture
def stock_served(stock_database: str) -> Source:
    return Source(stock_database, "sql")


@pytest.fixture
def source(request: pytest.FixtureRequest) -> Source:
    return request.getfixturevalue(f"stock_{request.param}")  # type: ignore[no-any-return]


# The kind of history, and the database of the memory into which it is read.
WAYS = [("sqlite", "sqlite"), ("postgres", "postgres"), ("served", "sqlite")]
everywhere = pytest.mark.parametrize(("source", "url"), WAYS, indirect=True)
both = pytest.mark.parametrize(("source", "url"), WAYS[:2], indirect=True)


@pytest.fixture
def memory(url: str, opened: Opened) -> Memory:
    return opened(url, embedder=None).workspace("alex")


@pytest.fixture
def local(sqlite_url: str, opened: Opened) -> Memory:
    return opened(sqlite_url, embedder=None)


def rows_of(framework_id: str | None) -> str | None:
    """Return an id without the digest of what the row holds."""
    return framework_id and re.sub(r":[0-9a-f]{32}$", "", framework_id)


def shown(records: Sequence[Record]) -> list[lc.BaseMessage]:
    """Return the messages of records, those that had no id with that of their row."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    serde = JsonPlusSerializer()
    return [
        recipe(
            one.role, one.text, rows_of(one.framework_id), one.payload, serde, one.metadata
        ).make()
        for one in records
    ]


def named(messages: Sequence[lc.BaseMessage], table: str) -> list[lc.BaseMessage]:
    """Return stock messages, those without an id with that of their row."""
    return [
        one.model_copy(update={"id": one.id or f"{table}:{number}"})
        for number, one in enumerate(messages, 1)
    ]


def parents(memory: Memory, thread: str = SAM) -> list[list[int]]:
    """Return the contexts of a thread's records, as positions in the thread."""
    records = memory.history(thread)
    at = {one.id: number for number, one in enumerate(records)}
    return [[at[id_] for id_ in memory.context_of(one.id)] for one in records]


CALLS = lc.AIMessage(
    [{"type": "text", "text": "Let me see."}],
    id="run-1",
    tool_calls=[
        {"name": "weather", "args": {"city": "Ghent"}, "id": "c1", "type": "tool_call"},
        {"name": "clock", "args": {}, "id": "c2", "type": "tool_call"},
    ],
    usage_metadata={"input_tokens": 3, "output_tokens": 5, "total_tokens": 8},
    response_metadata={"model": "m", "finish_reason": "tool_calls"},
)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
ZOO: list[lc.BaseMessage] = [
    lc.SystemMessage("Be brief."),
    lc.HumanMessage([{"type": "text", "text": "What is it? 🦊 \u0645"}, PICTURE], name="sam"),
    CALLS,
    lc.ToolMessage("18C", tool_call_id="c1", name="weather", artifact={"raw": [18.5, None]}),
    lc.ToolMessage("no clock", tool_call_id="c2", status="error"),
    lc.AIMessage("It is 18C.", additional_kwargs={"refusal": None}, name="bot"),
    lc.ChatMessage("As I said.", role="assistant"),
    lc.ChatMessage("And who are you?", role="user"),
    lc.FunctionMessage("42", name="answer"),
    lc.AIMessageChunk("Half a rep", id="run-2"),
    lc.AIMessage("", invalid_tool_calls=[
        {"name": "x", "args": "{", "id": "c3", "error": "no", "type": "invalid_tool_call"}
    ]),
    lc.HumanMessage(""),
]  # fmt: skip
TALK: list[lc.BaseMessage] = [
    lc.HumanMessage(f"My cat is called {WORD}."),
    lc.AIMessage(f"{WORD} is a fine name."),
    lc.HumanMessage("What is two and two?"),
    lc.AIMessage(f"Four, as {WORD} knows."),
]


# what is adopted


@everywhere
def test_every_type_of_message_is_read_as_the_stock_class_reads_it(
    source: Source, memory: Memory
) -> None:
    source.add(*ZOO)
    counts = adopt(source.url, memory)
    assert counts == {
        "threads": 1,
        "messages": len(ZOO),
        "written messages": len(ZOO),
        "refused messages": 0,
        "refused rows": [],
        "broken rows": [],
    }
    made = shown(memory.history(SAM))
    assert made == named(source.messages(), source.table)
    assert [type(one) for one in made] == [type(one) for one in source.messages()]


def test_a_reply_depends_on_all_before_it_and_a_result_on_its_call(
    stock_sqlite: Source, local: Memory
) -> None:
    stock_sqlite.add(*ZOO)
    adopt(stock_sqlite.url, local)
    assert parents(local) == [
        [],
        [],
        [0, 1],
        [2],
        [2],
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4, 5],
        [],
        [0, 1, 2, 3, 4, 5, 6, 7],
        [0, 1, 2, 3, 4, 5, 6, 7, 8],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [],
    ]
    guessed = [one.metadata.get("inferred", False) for one in local.history(SAM)]
    assert guessed == [bool(one) for one in parents(local)]


def test_a_summary_that_stands_as_a_human_message_depends_on_what_it_sums_up(
    stock_sqlite: Source, local: Memory
) -> None:
    summary = lc.HumanMessage("So far: cats.", additional_kwargs={"lc_source": "summarization"})
    stock_sqlite.add(*TALK[:2], summary)
    adopt(stock_sqlite.url, local)
    assert parents(local)[2] == [0, 1]


def test_a_result_whose_call_is_not_there_depends_on_all_before_it(
    stock_sqlite: Source, local: Memory
) -> None:
    stock_sqlite.add(*TALK[:2], lc.ToolMessage("18C", tool_call_id="lost"))
    adopt(stock_sqlite.url, local)
    assert parents(local)[2] == [0, 1]


def test_sessions_that_alternate_in_a_table_are_threads_of_their_own(
    stock_sqlite: Source, local: Memory
) -> None:
    for one in TALK:
        stock_sqlite.add(one, session=SAM)
        stock_sqlite.add(one, session=KIM)
    counts = adopt(stock_sqlite.url, local)
    assert (counts["threads"], counts["messages"]) == (2, 8)
    assert parents(local, SAM) == parents(local, KIM) == [[], [0], [], [0, 1, 2]]


def test_a_table_in_postgresql_says_when_a_message_was_made(
    stock_postgres: Source, local: Memory
) -> None:
    stock_postgres.add(*TALK)
    with psycopg.connect(stock_postgres.url) as connection:
        connection.execute("update talks set created_at = '2020-02-03 04:05:06+00' where id = 1")
        connection.execute("update talks set created_at = 'infinity' where id = 2")
    adopt(stock_postgres.url, local)
    assert local.history(SAM)[0].created_at.isoformat() == "2020-02-03T04:05:06+00:00"
    assert local.history(SAM)[1].created_at.year > 2020


def test_only_the_threads_named_are_read(stock_sqlite: Source, local: Memory) -> None:
    stock_sqlite.add(*TALK, session="one")
    stock_sqlite.add(*TALK, session="two")
    ticks: list[tuple[int, int]] = []
    counts = adopt(
        stock_sqlite.url, local, threads=["two"], progress=lambda *tick: ticks.append(tick)
    )
    assert (counts["threads"], counts["written messages"]) == (1, 4)
    assert ticks == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert set(local.threads()) == {"two"}
    with pytest.raises(InvalidInput, match="does not have 1 of the threads"):
        adopt(stock_sqlite.url, local, threads=["two", "three"])


# again


@both
def test_it_may_be_repeated_and_reads_only_what_is_new(source: Source, memory: Memory) -> None:
    source.add(*ZOO)
    adopt(source.url, memory)
    before = memory.history(SAM)
    assert adopt(source.url, memory)["written messages"] == 0
    assert memory.history(SAM) == before
    source.add(*TALK)
    assert adopt(source.url, memory)["written messages"] == len(TALK)
    assert memory.history(SAM)[: len(ZOO)] == before
    assert shown(memory.history(SAM)) == named(source.messages(), source.table)
    assert parents(memory)[-1] == list(range(len(ZOO) + len(TALK) - 1))


@both
def test_it_may_be_broken_off_after_any_message(
    source: Source, memory: Memory, url: str, opened: Opened
) -> None:
    class Enough(Exception): ...

    def until(done: int, _: int) -> None:
        if done == last:
            raise Enough

    source.add(*ZOO)
    for last in (1, 4, 9):
        with pytest.raises(Enough):
            adopt(source.url, memory, progress=until)
        assert len(memory.history(SAM)) == last
    again = opened(url, embedder=None).workspace("alex")
    assert adopt(source.url, again)["written messages"] == len(ZOO) - 9
    assert shown(again.history(SAM)) == named(source.messages(), source.table)
    adopt(source.url, memory.workspace("sam"))
    assert parents(again) == parents(memory.workspace("sam"))
    assert again.verify().ok


def test_rows_that_got_the_ids_of_deleted_ones_are_other_messages(
    stock_sqlite: Source, local: Memory
) -> None:
    stock_sqlite.add(*TALK[:2])
    adopt(stock_sqlite.url, local)
    with stock_sqlite.stock() as history:
        history.clear()
    stock_sqlite.add(lc.HumanMessage("Something else."), lc.AIMessage("Indeed."))
    for written in (2, 0):
        assert adopt(stock_sqlite.url, local)["written messages"] == written
    records = local.history(SAM)
    assert [rows_of(one.framework_id) for one in records] == [
        "message_store:1",
        "message_store:2",
        "message_store:1",
        "message_store:2",
    ]
    assert len({one.framework_id for one in records}) == 4
    assert parents(local)[3] == [2]


def test_rows_that_got_the_ids_of_forgotten_ones_are_read_unless_they_hold_the_same(
    stock_sqlite: Source, local: Memory
) -> None:
    stock_sqlite.add(*TALK[:2])
    adopt(stock_sqlite.url, local)
    local.forget(ids=[1])
    assert adopt(stock_sqlite.url, local)["refused rows"] == ["1", "2"]
    with stock_sqlite.stock() as history:
        history.clear()
    stock_sqlite.add(lc.HumanMessage("Something else."), lc.AIMessage("Indeed."))
    for written in (2, 0):
        counts = adopt(stock_sqlite.url, local)
        assert (counts["written messages"], counts["refused rows"]) == (written, [])
    assert [one.text for one in local.history(SAM)] == ["Something else.", "Indeed."]
    assert parents(local) == [[], [0]]


def test_a_message_that_stands_in_two_rows_is_read_twice(
    stock_sqlite: Source, local: Memory
) -> None:
    said = lc.HumanMessage("Hello.", id="m1")
    stock_sqlite.add(said, lc.AIMessage("Hi."), said)
    adopt(stock_sqlite.url, local)
    assert [rows_of(one.framework_id) for one in local.history(SAM)] == [
        "m1",
        "message_store:2",
        "message_store:3",
    ]
    assert adopt(stock_sqlite.url, local)["written messages"] == 0


# forgetting


@both
def test_a_forget_leaves_nothing_and_adopting_again_brings_nothing_back(
    source: Source, memory: Memory
) -> None:
    source.add(*TALK)
    source.add(lc.HumanMessage("Good day."), lc.AIMessage("To you too."), session=KIM)
    adopt(source.url, memory)
    control = memory.history(KIM)
    memory.forget(ids=[memory.history(SAM)[0].id])
    assert adopt(source.url, memory)["refused messages"] == 3
    source.add(lc.AIMessage(f"And {WORD} sends its love."), lc.HumanMessage("Thanks."))
    counts = adopt(source.url, memory)
    assert (counts["written messages"], counts["refused messages"]) == (1, 4)
    assert [one.text for one in memory.history(SAM)] == ["What is two and two?", "Thanks."]
    assert memory.history(KIM) == control
    assert memory.scan(WORD, files=False).clean
    memory.scrub()
    assert memory.scan(WORD).clean
    assert memory.verify().ok


def test_what_was_suppressed_stays_so_and_nothing_is_made_of_it(
    stock_sqlite: Source, local: Memory
) -> None:
    stock_sqlite.add(*TALK)
    adopt(stock_sqlite.url, local)
    receipt = local.forget(ids=[1], mode="suppress")
    stock_sqlite.add(lc.AIMessage("One more."))
    counts = adopt(stock_sqlite.url, local)
    assert (counts["written messages"], counts["refused messages"]) == (0, 4)
    assert len(local.history(SAM)) == 1
    local.restore(receipt)
    assert adopt(stock_sqlite.url, local)["written messages"] == 1
    assert len(local.history(SAM)) == 5


def test_a_row_that_got_the_id_of_a_suppressed_one_is_read(
    stock_sqlite: Source, local: Memory
) -> None:
    stock_sqlite.add(lc.HumanMessage("First."))
    adopt(stock_sqlite.url, local)
    local.forget(ids=[1], mode="suppress")
    with stock_sqlite.stock() as history:
        history.clear()
    stock_sqlite.add(lc.HumanMessage("Second."), lc.HumanMessage("Third."))
    counts = adopt(stock_sqlite.url, local)
    assert (counts["broken rows"], counts["written messages"]) == ([], 2)


def test_what_is_forgotten_in_the_middle_of_adopting_is_not_built_upon(
    stock_sqlite: Source, local: Memory
) -> None:
    def forget(done: int, _: int) -> None:
        if done == 2:
            local.forget(ids=[1])

    stock_sqlite.add(*TALK)
    counts = adopt(stock_sqlite.url, local, progress=forget)
    assert (counts["written messages"], counts["refused messages"]) == (3, 1)
    assert [one.text for one in local.history(SAM)] == ["What is two and two?"]
    assert local.scan(WORD).clean


@both
def test_our_history_shows_what_the_stock_history_shows_and_can_forget(
    source: Source, memory: Memory
) -> None:
    source.add(*ZOO)
    source.add(*TALK, session=KIM)
    adopt(source.url, memory)
    made = DeLLMChatMessageHistory(memory, SAM).messages
    plain = [one.model_copy(update={"id": rows_of(one.id)}) for one in made]
    assert plain == named(source.messages(), source.table)
    ours = DeLLMChatMessageHistory(memory, KIM)
    assert [one.content for one in ours.messages] == [one.content for one in TALK]
    ours.add_messages([lc.HumanMessage("More."), lc.AIMessage(f"{WORD} again.")])
    memory.forget(ids=[memory.history(KIM)[0].id])
    assert [one.text for one in ours.messages] == ["What is two and two?", "More."]
    adopt(source.url, memory)
    ours.clear()
    assert adopt(source.url, memory)["written messages"] == 0
    assert ours.messages == []
    assert len(DeLLMChatMessageHistory(memory, SAM).messages) == len(ZOO)


# what is wrong with a source

BROKEN = [
    "{",
    "null",
    "[]",
    '{"type": "human"}',
    '{"type": "letter", "data": {"content": "SECRET"}}',
    '{"type": "human", "data": {"content": 7}}',
    '{"type": "tool", "data": {"content": "SECRET"}}',
    "[" * 100_000,
    None,
    b"\xff\xfe{",
    7,
]


def raw(path: str, *statements: tuple[str, Sequence[object]]) -> None:
    with sqlite3.connect(path) as connection:
        for sql, values in statements:
            connection.execute(sql, values)
    connection.close()


INSERT = "insert into message_store(session_id, message) values (?, ?)"
GOOD = json.dumps(lc.message_to_dict(lc.HumanMessage("fine")))


def test_rows_that_hold_no_message_are_named_by_their_ids_and_stop_nothing(
    stock_sqlite: Source, local: Memory
) -> None:
    stock_sqlite.add(*TALK)
    raw(stock_sqlite.url, *((INSERT, (SAM, one)) for one in BROKEN))
    raw(
        stock_sqlite.url,
        (f"{INSERT.replace('?, ?', '?, cast(? as text)')}", (SAM, b'{"type": "\xff"}')),
        (INSERT, (None, GOOD)),
        (INSERT, ("  ", GOOD)),
        (INSERT, (SAM, GOOD)),
    )
    stock_sqlite.add(lc.AIMessage("Well."))
    last = len(TALK) + len(BROKEN) + 5
    for written in (6, 0):
        counts = adopt(stock_sqlite.url, local)
        assert counts["written messages"] == written
        assert sorted(map(int, counts["broken rows"])) == list(range(5, last - 1))  # type: ignore[arg-type] # a list
    assert rows_of(local.history(SAM)[-1].framework_id) == f"message_store:{last}"
    assert parents(local)[-1] == [0, 1, 2, 3, 4]


def test_rows_of_postgresql_that_hold_no_message_stop_nothing(
    stock_postgres: Source, local: Memory
) -> None:
    stock_postgres.add(*TALK)
    with psycopg.connect(stock_postgres.url) as connection:
        for one in ("null", "[]", '{"type": "human"}', '"SECRET"'):
            connection.execute(
                "insert into talks(session_id, message) values (%s, %s)", (UUID(SAM), one)
            )
    counts = adopt(stock_postgres.url, local)
    assert (counts["written messages"], counts["broken rows"]) == (4, ["5", "6", "7", "8"])


def test_the_source_is_only_read(stock_sqlite: Source, local: Memory) -> None:
    stock_sqlite.add(*ZOO)
    path = Path(stock_sqlite.url)
    before = path.read_bytes(), path.stat().st_mtime_ns
    adopt(stock_sqlite.url, local)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(path.parent.iterdir()) == [path]


def test_a_source_that_is_written_to_meanwhile_is_read_as_of_one_moment(
    stock_postgres: Source, local: Memory
) -> None:
    def meanwhile(done: int, _: int) -> None:
        if done == 1:
            stock_postgres.add(*TALK)

    stock_postgres.add(*TALK)
    assert adopt(stock_postgres.url, local, progress=meanwhile)["messages"] == 4
    assert adopt(stock_postgres.url, local)["written messages"] == 4


def test_the_table_and_its_session_column_may_have_any_name(tmp_path: Path, local: Memory) -> None:
    path = str(tmp_path / "own.db")
    raw(
        path,
        ('create table "my ""chats"""(id integer primary key, "who is" text, message text)', ()),
        ('insert into "my ""chats""" values (1, ?, ?)', ("sam", GOOD)),
        ("create table message_store(id integer primary key, session_id text, message text)", ()),
    )
    adopt(path, local, session_column="who is")
    assert [rows_of(one.framework_id) for one in local.history("sam")] == ['my "chats":1']
    assert adopt(path, local, table='my "chats"', session_column="who is")["messages"] == 1
    with pytest.raises(InvalidInput, match="no table 'other' with the columns id, session_id"):
        adopt(path, local, table="other")
    raw(path, ("drop table message_store", ()))
    with pytest.raises(InvalidInput, match="no table with the columns"):
        adopt(path, local)
    for name in ("a", "b"):
        raw(path, (f"create table {name}(id text, session_id text, message text)", ()))
    with pytest.raises(InvalidInput, match="--table: a, b"):
        adopt(path, local)


def test_a_table_of_postgresql_may_be_in_any_schema(stock_postgres: Source, local: Memory) -> None:
    stock_postgres.add(*TALK)
    with psycopg.connect(stock_postgres.url) as connection:
        connection.execute('create schema "Old"')
        connection.execute('alter table talks set schema "Old"')
    with pytest.raises(InvalidInput, match="no table with the columns"):
        adopt(stock_postgres.url, local)
    assert adopt(stock_postgres.url, local, table="Old.talks")["written messages"] == 4
    assert rows_of(local.history(SAM)[0].framework_id) == "talks:1"


def test_the_names_of_sessions_keep_their_type(tmp_path: Path, local: Memory) -> None:
    path = str(tmp_path / "own.db")
    raw(
        path,
        ("create table message_store(id integer primary key, session_id, message text)", ()),
        *((INSERT, (name, GOOD)) for name in (1, "1", "A", "a", 2.5)),
    )
    counts = adopt(path, local)
    assert set(local.threads()) == {"int:1", "1", "A", "a"}
    assert counts["broken rows"] == ["5"]


def test_what_cannot_be_opened_is_said(tmp_path: Path, local: Memory) -> None:
    with pytest.raises(InvalidInput, match="no file"):
        adopt(str(tmp_path / "nowhere.db"), local)
    with pytest.raises(UnsupportedHere, match="Only histories on SQLite and PostgreSQL"):
        adopt("mysql+pymysql://127.0.0.1/x", local)
    with pytest.raises(StorageError, match="cannot be read"):
        adopt("postgresql+psycopg://127.0.0.1:1/x", local)
    (tmp_path / "text.db").write_text("no database at all, " * 100)
    with pytest.raises(StorageError, match="cannot be read"):
        adopt(f"sqlite+aiosqlite:///{tmp_path}/text.db", local)


# the command


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELLM_EMBEDDER", "none")

    def run_(*arguments: object, code: int = 0) -> Any:
        result = CliRunner().invoke(cli.app, ["adopt", "langchain", *map(str, arguments)])
        assert result.exit_code == code, (result.stdout, result.stderr)
        assert "Traceback" not in result.stderr
        return result

    return run_


def test_the_command_adopts_and_says_what_it_did(
    stock_sqlite: Source, run: Callable[..., Any], sqlite_url: str, opened: Opened
) -> None:
    stock_sqlite.add(*TALK)
    raw(stock_sqlite.url, *((INSERT, (SAM, '{"type": "SECRET"}')) for _ in range(25)))
    to = ("--memory", sqlite_url, "--workspace", "sam")
    said = json.loads(run(stock_sqlite.url, *to, "--table", "message_store", "--json").stdout)
    assert said == {
        "threads": 1,
        "messages": 29,
        "written messages": 4,
        "refused messages": 0,
        "refused rows": [],
        "broken rows": [str(one) for one in range(5, 30)],
    }
    told = run(stock_sqlite.url, *to, "--session-column", "session_id", "--thread", SAM)
    assert "written messages: 0" in told.stdout
    assert "broken rows: 25 (5, 6, " in told.stdout
    assert ", 24, ...)" in told.stdout
    assert "SECRET" not in told.stdout + told.stderr
    assert len(opened(sqlite_url, embedder=None).workspace("sam").history(SAM)) == 4


def test_an_option_that_an_adopter_does_not_have_is_refused(run: Callable[..., Any]) -> None:
    assert "To adopt langchain there is no --lossy" in run("x.db", "--lossy", code=2).stderr
    result = CliRunner().invoke(cli.app, ["adopt", "langgraph", "x.db", "--table", "y"])
    assert result.exit_code == 2
    assert "To adopt langgraph there is no --table" in result.stderr
