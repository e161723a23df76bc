"""Stock LlamaIndex stores, made by the stock classes, adopted: equal, and forgettable.

The files of tests/data/llamaindex are what SimpleChatStore.persist and ChatMemoryBuffer.to_string of
llama-index-core 0.10.68 and 0.14.25 (with pydantic 2.12.5) wrote.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy.ext.asyncio import create_async_engine
from typer.testing import CliRunner

from dellm import InvalidInput, Memory, StorageError, UnsupportedHere, cli
from dellm_llamaindex.adopting import adopt
from dellm_llamaindex.chat_store import DeLLMChatStore
from dellm_llamaindex.memory import DeLLMMemory
from dellm_llamaindex.messages import message_of

Opened = Callable[..., Memory]
NUMBERS = itertools.count(1)
DATA = Path(__file__).parent / "data" / "llamaindex"
FILES = sorted(DATA.glob("*.json"))
WORD = "Heliotrope"
SAM = "sam"

CALLS = ChatMessage(
    role="assistant",
    blocks=[
        ThinkingBlock(content="Hm."),
        TextBlock(text="Let me see."),
        ToolCallBlock(tool_call_id="c1", tool_name="weather", tool_kwargs={"city": "Ghent"}),
        ToolCallBlock(tool_call_id="c2", tool_name="clock", tool_kwargs={}),
    ],
)
ZOO = [
    ChatMessage("Be brief.", role="system"),
    ChatMessage(
        role="user",
        blocks=[
            TextBlock(text="What is it? 🦊 م"),
            ImageBlock(url="http://a.b/c.png"),
            ImageBlock(image=b"\x89PNG\r\n\x1a\n\xff"),
        ],
    ),
    CALLS,
    ChatMessage("18C", role="tool", additional_kwargs={"tool_call_id": "c1", "name": "weather"}),
    ChatMessage("no clock", role="tool", additional_kwargs={"tool_call_id": "c2"}),
    ChatMessage("It is 18C.", role="assistant", additional_kwargs={"usage": {"tokens": 3}}),
    ChatMessage("As I said.", role="model"),
    ChatMessage("And who are you?", role="developer"),
    ChatMessage("42", role="function"),
    ChatMessage("", role="user"),
    ChatMessage(role="assistant", blocks=[]),
]
TALK = [
    ChatMessage(f"My cat is called {WORD}.", role="user"),
    ChatMessage(f"{WORD} is a fine name.", role="assistant"),
    ChatMessage("What is two and two?", role="user"),
    ChatMessage(f"Four, as {WORD} knows.", role="assistant"),
]


class Source:
    """A database with a table of SQLAlchemyChatStore."""

    def __init__(self, url: str, driver: str) -> None:
        self.url = url
        self.driver = driver
        self.table = "llama_index_memory"

    def run(self, work: Callable[[SQLAlchemyChatStore], Any]) -> Any:
        """Return what an asynchronous function makes of the stock store."""

        async def inside() -> Any:
            engine = create_async_engine(self.driver)
            found = await work(SQLAlchemyChatStore(self.table, async_engine=engine))
            await engine.dispose()
            return found

        return asyncio.run(inside())

    def add(self, *messages: ChatMessage, session: str = SAM) -> None:
        self.run(lambda store: store.add_messages(session, list(messages)))

    def messages(self, session: str = SAM) -> list[ChatMessage]:
        found: list[ChatMessage] = self.run(lambda store: store.get_messages(session, status=None))
        return found


@pytest.fixture
def stock_sqlite(tmp_path: Path) -> Source:
    (tmp_path / "stock").mkdir()
    path = tmp_path / "stock" / "chats.db"
    return Source(str(path), f"sqlite+aiosqlite:///{path}")


@pytest.fixture
def stock_postgres(postgres: str) -> Iterator[Source]:
    name = f"chats_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute(f"create database {name}")
        url = postgres.replace("/postgres?", f"/{name}?")
        yield Source(url, url.replace("postgresql://", "postgresql+asyncpg://"))
        owner.execute(f"drop database {name} with (force)")


@pytest.fixture
def source(request: pytest.FixtureRequest) -> Source:
    return request.getfixturevalue(f"stock_{request.param}")  # type: ignore[no-any-return] # as they say


both = pytest.mark.parametrize(
    ("source", "url"), [("sqlite", "sqlite"), ("postgres", "postgres")], indirect=True
)


@pytest.fixture
def memory(url: str, opened: Opened) -> Memory:
    return opened(url, embedder=None).workspace("alex")


@pytest.fixture
def local(sqlite_url: str, opened: Opened) -> Memory:
    return opened(sqlite_url, embedder=None)


def shown(memory: Memory, thread: str = SAM) -> list[ChatMessage]:
    return [message_of(one) for one in memory.history(thread)]


def parents(memory: Memory, thread: str = SAM) -> list[list[int]]:
    """Return the contexts of a thread's records, as positions in the thread."""
    records = memory.history(thread)
    at = {one.id: number for number, one in enumerate(records)}
    return [[at[id_] for id_ in memory.context_of(one.id)] for one in records]


# what is adopted


@both
def test_every_message_of_a_table_is_read_as_the_stock_class_reads_it(
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
    assert shown(memory) == source.messages() == ZOO
    assert all(one.created_at.year > 2000 for one in memory.history(SAM))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_of_any_version_is_read_the_same(path: Path, local: Memory) -> None:
    counts = adopt(str(path), local)
    assert (counts["threads"], counts["written messages"], counts["broken rows"]) == (2, 9, [])
    said = SimpleChatStore.from_persist_path(str(DATA / "simple_chat_store_0_14.json"))
    assert shown(local) == said.get_messages(SAM)
    assert shown(local, "kim") == said.get_messages("kim")
    for other in FILES:
        assert adopt(str(other), local)["written messages"] == 0


def test_the_lists_of_the_oldest_buffers_are_read(tmp_path: Path, local: Memory) -> None:
    old = {"token_limit": 3000, "chat_history": [{"role": "user", "content": "Hello"}]}
    (tmp_path / "old.json").write_text(json.dumps(old), "utf-8")
    adopt(str(tmp_path / "old.json"), local)
    assert shown(local, "chat_history") == [ChatMessage("Hello", role="user")]


def test_a_reply_depends_on_all_before_it_and_a_result_on_its_call(
    stock_sqlite: Source, local: Memory
) -> None:
    stock_sqlite.add(*ZOO)
    adopt(stock_sqlite.url, local)
    before = [list(range(at)) for at in range(len(ZOO))]
    assert parents(local) == [
        *([], []),
        before[2],
        *([2], [2]),
        *(before[5], before[6]),
        [],
        before[8],
        [],
        before[10],
    ]
    guessed = [one.metadata.get("inferred", False) for one in local.history(SAM)]
    assert guessed == [bool(one) for one in parents(local)]


def test_calls_in_the_form_of_a_provider_have_their_results(local: Memory) -> None:
    adopt(str(DATA / "simple_chat_store_0_10.json"), local)
    assert parents(local)[4:] == [[0, 1, 2, 3], [4], [0, 1, 2, 3, 4, 5]]


@both
def test_what_was_archived_stays_so(source: Source, memory: Memory) -> None:
    source.add(*TALK)
    source.run(lambda store: store.archive_oldest_messages(SAM, 2))
    ours = DeLLMChatStore(memory)
    for _ in range(2):
        adopt(source.url, memory)
        for status in (None, *MessageStatus):
            expected = source.run(lambda store, status=status: store.get_messages(SAM, status))
            assert asyncio.run(ours.get_messages(SAM, status)) == expected
    assert shown(memory) == TALK
    asyncio.run(ours.delete_messages(SAM))
    adopt(source.url, memory)
    assert asyncio.run(ours.get_messages(SAM, None)) == []


def test_only_the_threads_named_are_read(stock_sqlite: Source, local: Memory) -> None:
    stock_sqlite.add(*TALK)
    stock_sqlite.add(*TALK, session="kim")
    assert adopt(stock_sqlite.url, local, threads=["kim"])["messages"] == 4
    assert list(local.threads()) == ["kim"]
    with pytest.raises(InvalidInput, match="does not have 1 of the threads"):
        adopt(stock_sqlite.url, local, threads=["kim", "lee"])


def test_the_seconds_of_older_tables_are_times_too(stock_sqlite: Source, local: Memory) -> None:
    stock_sqlite.add(*TALK)
    raw(stock_sqlite.url, ("update llama_index_memory set timestamp = 1700000000 + id", ()))
    adopt(stock_sqlite.url, local)
    assert [one.created_at.timestamp() for one in local.history(SAM)] == [
        1_700_000_000 + at for at in range(1, 5)
    ]


# adopting again


@both
def test_adopting_again_writes_what_is_new_and_nothing_else(source: Source, memory: Memory) -> None:
    source.add(*TALK)
    adopt(source.url, memory)
    before = memory.history(SAM)
    assert adopt(source.url, memory)["written messages"] == 0
    source.add(*TALK)
    assert adopt(source.url, memory)["written messages"] == 4
    assert memory.history(SAM)[:4] == before
    assert shown(memory) == [*TALK, *TALK]


def test_an_adoption_broken_off_anywhere_is_finished_by_the_next(
    stock_sqlite: Source, sqlite_url: str, opened: Opened
) -> None:
    stock_sqlite.add(*ZOO)
    whole = opened(":memory:", embedder=None)
    adopt(stock_sqlite.url, whole)

    class Stop(Exception):
        pass

    def stop(done: int, _: int) -> None:
        if done % 3 == 0:
            raise Stop

    memory = opened(sqlite_url, embedder=None)
    for _ in range(3):
        with pytest.raises(Stop):
            adopt(stock_sqlite.url, memory, progress=stop)
        assert len(memory.history(SAM)) == 3
    adopt(stock_sqlite.url, memory)
    assert (shown(memory), parents(memory)) == (shown(whole), parents(whole))
    assert memory.verify().ok


@both
def test_a_list_that_was_set_anew_is_known_again(source: Source, memory: Memory) -> None:
    source.add(*TALK)
    adopt(source.url, memory)
    more = ChatMessage("Thanks.", role="user")
    source.run(lambda store: store.set_messages(SAM, [*TALK[1:], more]))
    counts = adopt(source.url, memory)
    assert (counts["written messages"], counts["refused messages"]) == (1, 0)
    assert shown(memory) == [*TALK, more]


# forgetting


@both
def test_a_forget_leaves_nothing_and_adopting_again_brings_nothing_back(
    source: Source, memory: Memory
) -> None:
    source.add(*TALK)
    source.add(ChatMessage("Good day.", role="user"), session="kim")
    adopt(source.url, memory)
    control = memory.history("kim")
    memory.forget(ids=[memory.history(SAM)[0].id])
    assert adopt(source.url, memory)["refused messages"] == 3
    source.run(lambda store: store.set_messages(SAM, [*TALK[2:], *TALK[:2]]))
    source.add(ChatMessage("Thanks.", role="user"))
    counts = adopt(source.url, memory)
    assert (counts["written messages"], counts["refused messages"]) == (1, 3)
    assert [one.text for one in memory.history(SAM)] == ["What is two and two?", "Thanks."]
    assert memory.history("kim") == control
    memory.scrub()
    assert memory.scan(WORD).clean
    assert memory.verify().ok


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
def test_our_memory_shows_what_the_stock_memory_shows_and_can_forget(
    source: Source, memory: Memory
) -> None:
    source.add(*TALK)
    adopt(source.url, memory)
    ours = DeLLMMemory.from_defaults(memory, session_id=SAM, top_k=None)
    assert ours.get() == ours.get_all() == TALK
    ours.put_messages(
        [ChatMessage("More.", role="user"), ChatMessage(f"{WORD} again.", role="assistant")]
    )
    ours.forget(f"My cat is called {WORD}.")
    assert [one.content for one in ours.get_all()] == ["What is two and two?", "More."]
    ours.reset()
    assert adopt(source.url, memory)["written messages"] == 0
    assert ours.get_all() == []


# what is wrong with a source


def raw(path: str, *statements: tuple[str, Sequence[object]]) -> None:
    with sqlite3.connect(path) as connection:
        for sql, values in statements:
            connection.execute(sql, values)
    connection.close()


BROKEN: list[Any] = [
    "null",
    "7",
    "[]",
    "{}",
    '{"role": "user"}',
    '{"role": "SECRET", "content": "x"}',
    '{"role": "user", "blocks": [{"block_type": "SECRET"}]}',
    '{"role": "user", "blocks": 5}',
]
INSERT = (
    "insert into llama_index_memory(key, timestamp, role, status, data) "
    "values (?, ?, 'user', 'active', ?)"
)
GOOD = '{"role": "user", "content": "fine"}'


def test_rows_that_hold_no_message_are_named_by_their_ids_and_stop_nothing(
    stock_sqlite: Source, local: Memory
) -> None:
    stock_sqlite.add(*TALK)
    odd = [*BROKEN, "{", "[" * 100_000, b"\xff\xfe{"]
    raw(stock_sqlite.url, *((INSERT, (SAM, 2_000_000_000, one)) for one in odd))
    raw(stock_sqlite.url, (INSERT, ("  ", 1, GOOD)), (INSERT, (SAM, 2_000_000_000, GOOD)))
    for written in (5, 0):
        counts = adopt(stock_sqlite.url, local)
        assert counts["written messages"] == written
        assert sorted(map(int, counts["broken rows"])) == list(range(5, 5 + len(odd) + 1))  # type: ignore[arg-type] # a list
    assert local.history(SAM)[0].text == "fine"


def test_broken_messages_of_a_file_are_named_by_their_places(tmp_path: Path, local: Memory) -> None:
    said = [*map(json.loads, BROKEN), json.loads(GOOD)]
    path = tmp_path / "store.json"
    path.write_text(json.dumps({"store": {"sam": said, "  ": said[-1:]}}), "utf-8")
    counts = adopt(str(path), local)
    assert counts["broken rows"] == [*(f"sam:{at}" for at in range(len(BROKEN))), "  :0"]
    assert counts["written messages"] == 1


NO_STORES = [
    ('{"store": {"a": [{"role": "user", "content": "SECRET"}]}', "at line 1, column"),
    ('{\n"store": SECRET}', "at line 2, column 10"),
    ("", "at line 1, column 1"),
    ('"SECRET"', "at line 1, column 1"),
    ("[" * 100_000, "nested too deeply"),
    ("[]", "no SimpleChatStore and no ChatMemoryBuffer"),
    ('{"SECRET": 1}', "no SimpleChatStore and no ChatMemoryBuffer"),
    ('{"store": ["SECRET"]}', "no SimpleChatStore and no ChatMemoryBuffer"),
    ('{"store": {"a": [], "b": "SECRET"}}', "no list of messages under its key 1"),
]


@pytest.mark.parametrize(("text", "said"), NO_STORES)
def test_a_file_that_is_none_is_refused_by_saying_where_and_not_what(
    text: str, said: str, tmp_path: Path, local: Memory
) -> None:
    path = tmp_path / "store.json"
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidInput, match=said) as caught:
        adopt(str(path), local)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__context__ is None
    assert local.threads() == {}


def test_what_cannot_be_opened_is_said(tmp_path: Path, local: Memory) -> None:
    with pytest.raises(InvalidInput, match="no file"):
        adopt(str(tmp_path / "nowhere.json"), local)
    (tmp_path / "bytes.json").write_bytes(b'{"store": \xff}')
    with pytest.raises(InvalidInput, match="byte 10 is no UTF-8"):
        adopt(str(tmp_path / "bytes.json"), local)
    with pytest.raises(InvalidInput, match="has no tables"):
        adopt(str(FILES[0]), local, table="other")
    with pytest.raises(UnsupportedHere, match="Only histories on SQLite and PostgreSQL"):
        adopt("mysql+aiomysql://127.0.0.1/x", local)
    with pytest.raises(StorageError, match="cannot be read"):
        adopt("postgresql+asyncpg://127.0.0.1:1/x", local)


def test_the_table_may_have_any_name(stock_sqlite: Source, local: Memory) -> None:
    stock_sqlite.table = "my chats"
    stock_sqlite.add(*TALK)
    assert adopt(f"sqlite+aiosqlite:///{stock_sqlite.url}", local)["written messages"] == 4
    with pytest.raises(InvalidInput, match="no table 'other' with the columns id, key, data"):
        adopt(stock_sqlite.url, local, table="other")
    stock_sqlite.table = "others"
    stock_sqlite.add(*TALK)
    with pytest.raises(InvalidInput, match="--table: my chats, others"):
        adopt(stock_sqlite.url, local)
    assert adopt(stock_sqlite.url, local, table="my chats")["written messages"] == 0


@pytest.mark.parametrize("status", list(MessageStatus))
def test_the_source_is_only_read(
    status: MessageStatus, stock_sqlite: Source, local: Memory
) -> None:
    stock_sqlite.run(lambda store: store.add_messages(SAM, ZOO, status))
    for path in (Path(stock_sqlite.url), FILES[0]):
        before = path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())
        adopt(str(path), local)
        assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())) == before


# the command


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELLM_EMBEDDER", "none")

    def run_(*arguments: object, code: int = 0) -> Any:
        result = CliRunner().invoke(cli.app, ["adopt", "llamaindex", *map(str, arguments)])
        assert result.exit_code == code, (result.stdout, result.stderr)
        assert "Traceback" not in result.stderr
        return result

    return run_


def test_the_command_adopts_and_says_what_it_did(
    run: Callable[..., Any], stock_sqlite: Source, sqlite_url: str, opened: Opened
) -> None:
    to = ("--memory", sqlite_url, "--workspace", "alex")
    said = json.loads(run(FILES[0], *to, "--json").stdout)
    assert (said["threads"], said["written messages"], said["broken rows"]) == (2, 9, [])
    stock_sqlite.add(*TALK, session="lee")
    raw(stock_sqlite.url, (INSERT, ("lee", 1, '{"role": "SECRET"}')))
    told = run(stock_sqlite.url, *to, "--table", "llama_index_memory", "--thread", "lee")
    assert "written messages: 4" in told.stdout
    assert "broken rows: 1 (5)" in told.stdout
    assert "SECRET" not in told.stdout + told.stderr
    assert len(opened(sqlite_url, embedder=None).workspace("alex").history("lee")) == 4


def test_the_command_refuses_what_this_adopter_does_not_have_and_what_is_no_store(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    for option in ("--lossy", "--session-column=x"):
        told = run("x.json", option, code=2)
        assert f"To adopt llamaindex there is no {option.partition('=')[0]}" in told.stderr
    (tmp_path / "x.json").write_text('{"store": SECRET', "utf-8")
    told = run("x.json", code=2)
    assert "line 1, column 11" in told.stderr
    assert "SECRET" not in told.stdout + told.stderr
