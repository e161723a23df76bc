"""Statements that nobody waits for go out with the next one, and still fail inside the transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from dellm import Atom, Draft, Keep, Memory, Saying, StorageError, postgres_session
from dellm_langchain import DeLLMSaver

pytestmark = pytest.mark.own_database

SECRET = "the safe opens with 4711"


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of statements of each round trip."""
    seen: list[int] = []
    together = postgres_session._together

    def counted(connection: Any, statements: Any) -> Any:
        seen.append(len(statements))
        return together(connection, statements)

    monkeypatch.setattr(postgres_session, "_together", counted)
    return seen


def test_what_nobody_waits_for_goes_out_with_the_next_statement_in_order(
    postgres_url: str, opened: Callable[..., Memory], trips: list[int]
) -> None:
    engine = opened(postgres_url).workspace("alex")._engine
    engine.scope("alex", create=True)
    trips.clear()
    with engine.writing("alex") as (tx, scope):
        for name in ("one", "two"):
            tx.later(
                "insert into label(ws, id, name) values "
                "(:ws, (select count(*) from label where ws = :ws), :name)",
                ws=scope.ws,
                name=name,
            )
        assert trips == []
        assert tx.all("select id, name from label where ws = :ws order by id", ws=scope.ws) == [
            (0, "one"),
            (1, "two"),
        ]
        tx.later("delete from label where ws = :ws and name = 'one'", ws=scope.ws)
    assert trips == [
        5,
        2,
    ]  # begin, bind, two inserts and the select; then the delete and the commit
    with engine.reading("alex") as (tx, scope):
        assert tx.all("select name from label where ws = :ws", ws=scope.ws) == [("two",)]


@pytest.mark.parametrize("asks", [False, True], ids=["at the commit", "at the next question"])
def test_a_statement_that_fails_later_undoes_the_transaction_and_tells_no_content(
    postgres_url: str,
    opened: Callable[..., Memory],
    caplog: pytest.LogCaptureFixture,
    asks: bool,
) -> None:
    memory = opened(postgres_url).workspace("alex")
    memory.remember("kept")
    engine = memory._engine

    def write() -> None:
        with engine.writing("alex") as (tx, scope):
            add = "insert into label(ws, id, name) values (:ws, :id, :name)"
            tx.later(add, ws=scope.ws, id=1, name=SECRET)
            tx.later(add, ws=scope.ws, id=2, name=SECRET)  # a name has one number
            tx.later(add, ws=scope.ws, id=3, name="another")
            if asks:
                tx.one("select 1 from record where ws = :ws", ws=scope.ws)

    with caplog.at_level(logging.DEBUG), pytest.raises(StorageError) as caught:
        write()
    assert "23505" in str(caught.value)
    assert SECRET not in f"{caught.value} {caplog.text}"
    with engine.reading("alex") as (tx, scope):
        assert tx.all("select name from label where ws = :ws", ws=scope.ws) == []
    memory.remember("afterwards")  # the connection is as good as before
    assert [one.text for one in memory.export()] == ["kept", "afterwards"]


def test_row_level_security_refuses_what_is_sent_later_too(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(postgres_url).workspace("alex")
    memory.remember("mine")

    def into_another() -> None:
        with memory._engine.writing("alex") as (tx, scope):
            tx.later("insert into label(ws, id, name) values (:other, 1, 'x')", other=scope.ws + 1)

    with pytest.raises(StorageError, match="42501"):
        into_another()


def test_a_connection_lost_before_the_commit_is_an_error_and_nothing_is_sent_twice(
    postgres_url: str, opened: Callable[..., Memory], trips: list[int]
) -> None:
    memory = opened(postgres_url).workspace("alex")
    memory.remember("kept")
    trips.clear()

    def write() -> None:
        with memory._engine.writing("alex") as (tx, scope):
            tx.later("insert into label(ws, id, name) values (:ws, 1, 'x')", ws=scope.ws)
            with psycopg.connect(postgres_url, autocommit=True) as owner:
                owner.execute(
                    "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
                    "where datname = current_database() and pid <> pg_backend_pid()"
                )

    with pytest.raises(StorageError, match="connection") as caught:
        write()
    assert "not known" in str(caught.value)
    assert "nothing was changed" not in str(caught.value)
    assert trips == [4]
    with memory._engine.reading("alex") as (tx, scope):
        assert tx.all("select name from label where ws = :ws", ws=scope.ws) == []


def test_a_write_of_one_round_trip_outlives_connections_that_were_ended_while_they_lay_idle(
    postgres_url: str, opened: Callable[..., Memory], trips: list[int]
) -> None:
    memory = opened(postgres_url, embedder=None).workspace("alex")
    for number in range(3):
        memory.conversations.add("chat", [Saying(Draft(f"said {number}", thread="chat"))])
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
    trips.clear()
    memory.conversations.add("chat", [Saying(Draft("said 3", thread="chat"))])
    assert len(trips) == 1
    assert [one.text for one in memory.history("chat")] == [f"said {at}" for at in range(4)]


def test_a_call_of_the_saver_takes_at_most_four_round_trips_on_average(
    postgres_url: str, opened: Callable[..., Memory], trips: list[int]
) -> None:
    calls: list[str] = []

    class Counting(DeLLMSaver):
        def put(self, *arguments: Any) -> Any:
            calls.append("put")
            return super().put(*arguments)

        def put_writes(self, *arguments: Any) -> None:
            calls.append("put_writes")
            super().put_writes(*arguments)

        def get_tuple(self, config: Any) -> Any:
            before = len(trips)
            found = super().get_tuple(config)
            del trips[before:]  # only what is written counts
            return found

    builder = StateGraph(MessagesState)
    builder.add_node("bot", lambda state: {"messages": [HumanMessage(f"{len(state['messages'])}")]})
    builder.add_edge(START, "bot")
    graph = builder.compile(checkpointer=Counting(opened(postgres_url, embedder=None)))
    config = {"configurable": {"thread_id": "t"}}
    turns = []
    for number in range(18):
        trips.clear()
        calls.clear()
        graph.invoke({"messages": [HumanMessage(f"said {number}")]}, config, durability="sync")
        assert calls.count("put") == 3
        turns.append(len(trips) / len(calls))
    # A call that waits for another one looks again and again whether that is done: the quickest
    # turn says what the calls themselves take.
    assert min(turns[3:]) <= 4


def test_a_value_is_read_in_one_round_trip_with_which_the_transaction_ends(
    postgres_url: str, opened: Callable[..., Memory], trips: list[int]
) -> None:
    memory = opened(postgres_url, embedder=None).workspace("alex")
    atom = Atom(Draft("tea", role="item", kind="state"))
    memory.items.put("store", [Keep(("a",), "k", atom)])
    trips.clear()
    (found,) = memory.items.get("store", [(("a",), "k")])
    assert trips == [4]  # begin, bind, the select and the commit
    assert found is not None
    assert found.record.text == "tea"
    assert memory.items.get("store", [(("a",), "k"), (("b",), "k")]) == [found, None]
    assert memory.items.get("store", []) == []
    assert memory.workspace("sam").items.get("store", [(("a",), "k")]) == [None]
    with memory._engine.reading("alex") as (tx, scope):
        assert tx.final("select ws from workspace") == [(scope.ws,)]
        with pytest.raises(StorageError):
            tx.all("select ws from workspace")


def test_what_is_prepared_is_bounded_and_the_rest_is_sent_as_it_is(
    postgres_url: str, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_session, "PREPARED", 3)
    memory = opened(postgres_url).workspace("alex")
    with memory._engine.writing("alex") as (tx, scope):
        for number in range(6):
            assert tx.all(f"select :given + {number}", given=number) == [(2 * number,)]  # type: ignore[arg-type] # many statements
            assert tx.one("select ws from workspace where ws = :ws", ws=scope.ws) == (scope.ws,)
        kept = tx._session._connection.prepared  # type: ignore[attr-defined] # only there
        assert len(kept) == len(set(kept.values())) == 3


def test_after_a_statement_that_fails_the_connection_knows_what_it_has_prepared(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(postgres_url).workspace("alex")
    memory.remember("kept")

    def write() -> None:
        with memory._engine.writing("alex") as (tx, scope):
            add = "insert into label(ws, id, name) values (:ws, 1, :name)"
            tx.later("delete from label where ws = :ws and id = 77", ws=scope.ws)
            tx.later(add, ws=scope.ws, name="one")
            tx.later(add, ws=scope.ws, name="two")
            tx.later("delete from label where ws = :ws and id = 78", ws=scope.ws)

    for _ in range(3):
        with pytest.raises(StorageError, match="23505"):
            write()
    with memory._engine.writing("alex") as (tx, scope):
        tx.later("delete from label where ws = :ws and id = 78", ws=scope.ws)
        tx.later("delete from label where ws = :ws and id = 77", ws=scope.ws)
        tx.later("insert into label(ws, id, name) values (:ws, 1, :name)", ws=scope.ws, name="x")
    with memory._engine.reading("alex") as (tx, scope):
        assert tx.all("select name from label where ws = :ws", ws=scope.ws) == [("x",)]


def test_a_value_that_cannot_be_sent_is_an_error_and_the_connection_stays(
    postgres_url: str, opened: Callable[..., Memory], trips: list[int]
) -> None:
    memory = opened(postgres_url).workspace("alex")
    memory.remember("kept")
    connections = memory._engine.database._pool  # type: ignore[attr-defined] # only there
    with connections.connection() as one:
        before = one.info.backend_pid
    trips.clear()

    def write() -> None:
        with memory._engine.writing("alex") as (tx, scope):
            tx.run(
                "insert into label(ws, id, name) values (:ws, 1, :name)", ws=scope.ws, name="a\0b"
            )

    with pytest.raises(StorageError):
        write()
    assert len(trips) == 1  # it is not tried again
    with connections.connection() as one:
        assert one.info.backend_pid == before


def test_numbers_of_every_size_and_much_at_once_go_both_ways(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(postgres_url).workspace("alex")
    text = "x" * 300_000
    with memory._engine.writing("alex") as (tx, scope):
        for number in (0, -1, 1 << 15, -(1 << 31), (1 << 63) - 1, 1 << 63, 1 << 80):
            row = tx.one("select cast(:n as numeric) = :n, cast(:n as text)", n=number)
            assert row == (True, str(number))
        # Both sides have more to say than fits between them.
        for number in range(60):
            tx.later(
                "insert into label(ws, id, name) values (:ws, :id, :name)",
                ws=scope.ws,
                id=number,
                name=f"{number}",
            )
            tx.later("select cast(:text as text) from label where ws = :ws", text=text, ws=scope.ws)
        assert tx.one("select count(*) from label where ws = :ws", ws=scope.ws) == (60,)
        assert tx.all("select 1 from label where ws = 0") == []
        assert tx.one("select 1 from label where ws = 0") is None
        assert tx.run("delete from label where ws = :ws", ws=scope.ws) == 60


def test_adding_to_a_thread_again_takes_one_round_trip(
    postgres_url: str, opened: Callable[..., Memory], trips: list[int]
) -> None:
    memory = opened(postgres_url, embedder=None).workspace("alex")
    for number in range(3):
        trips.clear()
        memory.conversations.add("chat", [Saying(Draft(f"said {number}", thread="chat"))])
    assert len(trips) == 1
    memory.remember("something else")  # the workspace is not as the last write of a run left it
    trips.clear()
    memory.conversations.add("chat", [Saying(Draft("said 3", thread="chat"))])
    assert len(trips) == 3
    said = [one.text for one in memory.history("chat")]
    assert said == [f"said {number}" for number in range(4)]
    assert memory.verify().ok
