"""Stock LangGraph databases, made by real graphs, adopted: equal in every state, and forgettable."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import graphs
import psycopg
import pytest
from forgotten import Taken, holds, remains, resumption, taken, thread
from graphs import HEARD, STATEMENT, WORD, ZOO, Graph, Specimen, Way
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import MessagesState
from typer.testing import CliRunner

from dellm import InvalidInput, Memory, StorageError, UnsupportedHere, cli
from dellm_langchain import DeLLMSaver
from dellm_langchain.adopting import adopt

Opened = Callable[..., Memory]
NUMBERS = itertools.count(1)


class Source:
    """A stock database: where it is, and how its saver is opened."""

    def __init__(self, url: str) -> None:
        self.url = url

    def saver(self) -> AbstractContextManager[Any]:
        if self.url.startswith("postgresql://"):
            return PostgresSaver.from_conn_string(self.url)
        return SqliteSaver.from_conn_string(self.url)

    @contextmanager
    def graph(self, specimen: Specimen) -> Iterator[Graph]:
        with self.saver() as saver:
            saver.setup()
            yield specimen.build(saver)

    def played(self, specimen: Specimen, way: Way = graphs.INVOKE) -> Taken:
        """Play a specimen on the stock saver; return all that can be read of it then."""
        with self.graph(specimen) as graph:
            specimen.play(graph, thread(), way)
            return self.taken(specimen)

    def taken(self, specimen: Specimen) -> Taken:
        with self.saver() as saver:
            return taken(saver, specimen.build(saver), thread())


@pytest.fixture
def stock_sqlite(tmp_path: Path) -> Source:
    (tmp_path / "stock").mkdir()
    return Source(str(tmp_path / "stock" / "checkpoints.db"))


@pytest.fixture
def stock_postgres(postgres: str) -> Iterator[Source]:
    name = f"stock_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute(f"create database {name}")
        yield Source(postgres.replace("/postgres?", f"/{name}?"))
        owner.execute(f"drop database {name} with (force)")


@pytest.fixture
def source(request: pytest.FixtureRequest) -> Source:
    return request.getfixturevalue(f"stock_{request.param}")  # type: ignore[no-any-return]


# From a stock database of either kind into a memory of either kind.
WAYS_OVER = [("sqlite", "sqlite"), ("postgres", "postgres"), ("sqlite", "postgres"), ("postgres", "sqlite")]  # fmt: skip
everywhere = pytest.mark.parametrize(("source", "url"), WAYS_OVER[:2], indirect=True)


def over(specimens: Iterable[Specimen], *also: str) -> Any:
    """Parametrize with all specimens from SQLite to SQLite, and those named by the other ways."""
    cases = [
        pytest.param(*way, one, id=f"{'-'.join(way)}-{one}")
        for one in specimens
        for way in WAYS_OVER
        if way == WAYS_OVER[0] or one.name in also
    ]
    return pytest.mark.parametrize(("source", "url", "specimen"), cases, indirect=["source", "url"])


@pytest.fixture
def memory(url: str, opened: Opened) -> Memory:
    return opened(url, embedder=None).workspace("alex")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    HEARD.clear()
    graphs.FAILED.clear()
    graphs.DIARY["open"] = True
    yield
    graphs.DIARY["open"] = True


def ours(memory: Memory, specimen: Specimen) -> tuple[DeLLMSaver, Graph]:
    saver = DeLLMSaver(memory, **specimen.options)
    return saver, specimen.build(saver)


def normal(found: Taken) -> Taken:
    """Return it with the key that a saver adds to a checkpoint which does not have it."""
    for one in found.tuples.values():
        one.checkpoint.setdefault("updated_channels", None)
    return found


def rows(memory: Memory) -> list[Any]:
    """Return every row of every table of the memory's database."""
    engine = memory._engine
    with engine.database.transaction(engine.scope(memory.id), owner=True) as tx:
        return [
            [table, *map(repr, tx.all(f"select {', '.join(columns)} from {table}"))]
            for table, columns, _ in tx.tables()
            if columns and table != "workspace"
        ]


def stored(memory: Memory) -> list[str]:
    return [str(one) for one in memory.scan(WORD, files=False).places]


# everything

ACROSS = (
    "bot",
    "agent",
    "parallel calls",
    "subgraph in a subgraph, lone",
    "delta 3",
    "delta 100, lone",
    "every kind of channel",
    "interrupted in a subgraph, still waiting",
    "fork with the secret",
    "secret in the metadata",
    "fan-out",
    "summarizing",
)


@over(ZOO, *ACROSS)
def test_every_state_is_what_it_was_a_repeat_changes_nothing_and_a_forget_reaches_all(
    source: Source, specimen: Specimen, memory: Memory
) -> None:
    before = normal(source.played(specimen))
    counts = adopt(source.url, memory)
    assert counts["checkpoints"] == counts["written checkpoints"] == len(before.tuples)
    saver, graph = ours(memory, specimen)
    assert normal(taken(saver, graph, thread())) == before

    kept = rows(memory)
    again = adopt(source.url, memory)
    assert (again["written checkpoints"], again["written values"]) == (0, 0)
    assert rows(memory) == kept

    memory.forget(STATEMENT)
    assert stored(memory) == []
    assert remains(saver, graph, thread(), brief=True) == []
    assert list(taken(saver, graph, thread()).tuples) == list(before.tuples)
    assert memory.verify().ok
    # What was forgotten stays so, though the source has it still.
    again = adopt(source.url, memory)
    assert (again["written checkpoints"], again["written values"]) == (0, 0)
    assert stored(memory) == []


AT_THE_END = (
    "bot",
    "first message replaced",
    "message changed in place",
    "delta 3",
    "delta 100",
    "agent",
    "secret from a tool",
    "subgraph with a key of its own",
    "interrupted",
    "fan-out",
    "every kind of channel",
    "reply in two channels",
    "pydantic state",
    "functional with messages",
    "fork with the secret",
)


@over(map(graphs.named, AT_THE_END), "bot", "delta 100")
def test_a_forget_reaches_what_runs_stored_at_their_end_only(
    source: Source, specimen: Specimen, memory: Memory
) -> None:
    before = normal(source.played(specimen, Way("invoke", "exit")))
    adopt(source.url, memory)
    saver, graph = ours(memory, specimen)
    assert normal(taken(saver, graph, thread())) == before
    memory.forget(STATEMENT)
    assert stored(memory) == []
    assert remains(saver, graph, thread(), brief=True) == []


@pytest.mark.parametrize(("url", "specimen"), [("sqlite", graphs.named("agent"))], indirect=["url"])
def test_what_an_asynchronous_saver_stored_is_adopted_as_well(
    stock_sqlite: Source, specimen: Specimen, memory: Memory
) -> None:
    async def play() -> None:
        async with AsyncSqliteSaver.from_conn_string(stock_sqlite.url) as saver:
            graph = specimen.build(saver)
            for text in ("an apple call:lookup", STATEMENT):
                await graph.ainvoke({"messages": [HumanMessage(text)]}, thread())

    asyncio.run(play())
    adopt(stock_sqlite.url, memory)
    saver, graph = ours(memory, specimen)
    assert normal(taken(saver, graph, thread())) == normal(stock_sqlite.taken(specimen))
    memory.forget(STATEMENT)
    assert remains(saver, graph, thread()) == []


# contexts


def replies(memory: Memory) -> list[Any]:
    return [one for one in memory.history("t", last=100) if one.role == "assistant"]


@everywhere
def test_a_reply_has_the_messages_before_it_as_its_context_and_says_that_is_inferred(
    source: Source, memory: Memory
) -> None:
    source.played(graphs.named("bot"))
    adopt(source.url, memory)
    said = memory.history("t", last=100)
    assert [one.role for one in said] == ["user", "assistant"] * 3
    for at, one in enumerate(said):
        found = memory.explain(one.id)
        if one.role == "user":
            assert "inferred" not in one.metadata
            assert {before.text for before in found.context} <= {one.text}  # as it was put in
        else:
            assert one.metadata["inferred"] is True
            assert [before.id for before in found.context] == [before.id for before in said[:at]]
            assert "is inferred" in str(found)


@everywhere
def test_a_forget_of_one_statement_spares_what_was_said_before(
    source: Source, memory: Memory
) -> None:
    specimen = graphs.named("bot")
    before = source.played(specimen)
    adopt(source.url, memory)
    memory.forget(STATEMENT)
    saver, graph = ours(memory, specimen)
    after = taken(saver, graph, thread())
    for cid, state in before.states.items():
        found = after.states[cid].values.get("messages", [])
        assert found == [one for one in state.values.get("messages", []) if not holds(one)]
    head = graph.get_state(thread()).values["messages"]
    assert [one.text for one in head[::2]] == [graphs.CLEAN[0], graphs.CLEAN[1]]


@everywhere
def test_literals_of_the_schema_are_nobodys_text(source: Source, memory: Memory) -> None:
    specimen = graphs.named("routing")
    before = source.played(specimen)
    adopt(source.url, memory, schema=graphs.Routed)
    memory.forget(STATEMENT)
    _, graph = ours(memory, specimen)
    found = [one.values.get("route") for one in graph.get_state_history(thread())]
    assert found == [one.values.get("route") for one in before.states.values()]
    assert {"deep", "shallow"} <= set(found)


@everywhere
def test_records_are_as_old_as_the_checkpoints_they_came_from(
    source: Source, memory: Memory
) -> None:
    before = source.played(graphs.named("bot"))
    adopt(source.url, memory)
    times = {one.checkpoint["ts"] for one in before.tuples.values()}
    assert {one.created_at.isoformat() for one in memory.history("t", last=100)} <= times


def test_the_same_cached_reply_in_two_branches_has_a_context_in_each(
    stock_sqlite: Source, sqlite_url: str, opened: Opened
) -> None:
    cached = AIMessage("as always", id="cached-1")

    def node(state: MessagesState) -> Any:
        return {"messages": [cached] if len(state["messages"]) > 2 else [AIMessage("hello")]}

    with stock_sqlite.saver() as saver:
        graph = graphs.of_nodes(node)(saver)
        graph.invoke({"messages": [HumanMessage("an apple")]}, thread())
        fork = graph.get_state(thread()).config
        for text in (STATEMENT, "a boat on the lake"):
            graph.invoke({"messages": [HumanMessage(text)]}, fork)
    memory = opened(sqlite_url, embedder=None)
    adopt(stock_sqlite.url, memory)
    graph = graphs.of_nodes(node)(DeLLMSaver(memory))
    memory.forget(STATEMENT)
    ends = [one.values["messages"] for one in graph.get_state_history(thread()) if not one.next]
    texts = sorted([one.text for one in messages] for messages in ends)
    assert texts == [
        ["an apple", "hello"],
        ["an apple", "hello"],
        ["an apple", "hello", "a boat on the lake", "as always"],
    ]


# going on


@everywhere
def test_the_graph_goes_on_where_it_was(source: Source, memory: Memory) -> None:
    specimen = graphs.named("agent")
    source.played(specimen)
    adopt(source.url, memory)
    _, graph = ours(memory, specimen)
    turn = {"messages": [HumanMessage("a clock call:weather", id="new")]}
    with source.graph(specimen) as twin:
        for one in (graph, twin):
            one.invoke(turn, thread())
        assert kinds(graph) == kinds(twin)
    versions = graph.checkpointer.get_tuple(thread()).checkpoint["channel_versions"]
    assert all(
        isinstance(one, str) and len(one.partition(".")[0]) == 32 for one in versions.values()
    )
    memory.forget(STATEMENT)
    assert remains(graph.checkpointer, graph, thread()) == []
    assert graph.get_state(thread()).values["messages"][0].text == f"{graphs.CLEAN[0]} call:lookup"


def kinds(graph: Graph) -> list[Any]:
    """Return what a thread says, without the ids that differ between two runs."""
    messages = graph.get_state(thread()).values["messages"]
    return [(one.type, one.text if one.type == "human" else len(one.text)) for one in messages]


@pytest.mark.parametrize("name", ["interrupted, still waiting", "interrupted in a subgraph, still waiting", "watched agent, still waiting", "functional, still waiting", "stopped before the node"])  # fmt: skip
@everywhere
def test_an_interrupted_thread_is_resumed(source: Source, memory: Memory, name: str) -> None:
    specimen = graphs.named(name)
    source.played(specimen)
    adopt(source.url, memory)
    saver, graph = ours(memory, specimen)
    with source.graph(specimen) as twin:
        assert graph.get_state(thread()).next == twin.get_state(thread()).next != ()
        for one in (graph, twin):
            one.invoke(resumption(one.get_state(thread())), thread())
        assert plain(graph.get_state(thread())) == plain(twin.get_state(thread()))
    memory.forget(STATEMENT)
    assert remains(saver, graph, thread()) == []
    assert stored(memory) == []


def plain(state: Any) -> Any:
    values = state.values
    if isinstance(values, dict) and "messages" in values:
        values = [(one.type, one.text) for one in values["messages"]]
    return state.next, values


@everywhere
def test_an_old_checkpoint_is_travelled_to_and_forked(source: Source, memory: Memory) -> None:
    specimen = graphs.named("fork with the secret")
    source.played(specimen)
    adopt(source.url, memory)
    memory.forget(STATEMENT)
    saver, graph = ours(memory, specimen)
    for state in list(graph.get_state_history(thread())):
        graph.invoke(resumption(state) if state.next else specimen.then(), state.config)
    assert remains(saver, graph, thread()) == []


# breaking off and repeating

CHILD = """
import json, os, signal, sys
from crash_child import Fuse, before_statements
from dellm import Memory
from dellm_langchain.adopting import adopt
import langgraph.checkpoint.sqlite, psycopg_pool, pgvector.psycopg
for order in sys.argv[1:]:
    source, url, kill = json.loads(order)
    child = os.fork()
    if not child:
        fuse = Fuse(kill)
        memory = Memory.open(url, embedder=None).workspace("alex")
        before_statements(fuse, memory)
        fuse.lit = True
        adopt(source, memory)
        print(fuse.count, flush=True)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        print("killed", flush=True)
"""


def killed(orders: list[tuple[str, str, int]]) -> list[str]:
    """Adopt in processes of which each dies before its n-th statement; return what came of it."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *map(json.dumps, orders)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parent, timeout=120,
    )  # fmt: skip
    return done.stdout.split()


def provenance(memory: Memory) -> list[Any]:
    """Return every record with its parents, all named by what they hold."""
    engine = memory._engine
    with engine.database.transaction(engine.scope(memory.id), owner=True) as tx:
        ws = {"ws": engine.scope(memory.id).ws}
        records = tx.all("select id, kind, role, text, fid from record where ws = :ws", **ws)
        edges = tx.all("select child, parent from edge where ws = :ws", **ws)
    # The order of a set's items is another in each process.
    named = {row[0]: (*row[1:3], sorted(row[3].split()), row[4]) for row in records if row[2] != "metadata"}  # fmt: skip
    into: dict[int, set[int]] = {}
    for child, parent in edges:
        into.setdefault(child, set()).add(parent)

    def roots(node: int) -> Iterator[int]:
        for parent in into.get(node, ()):
            if parent > 0:
                yield parent
            else:
                yield from roots(parent)

    return sorted((repr(what), sorted({repr(named.get(one)) for one in roots(id_)})) for id_, what in named.items())  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", ["every kind of channel", "interrupted in a subgraph"])  # fmt: skip
def test_an_adoption_killed_anywhere_is_finished_by_the_next(
    stock_sqlite: Source, tmp_path: Path, opened: Opened, name: str
) -> None:
    specimen = graphs.named(name)
    before = normal(stock_sqlite.played(specimen))
    whole = opened(str(tmp_path / "whole.db"), embedder=None).workspace("alex")
    adopt(stock_sqlite.url, whole)
    count = int(killed([(stock_sqlite.url, str(tmp_path / "counted.db"), 0)])[0])
    points = sorted({1, count, *(count * part // 7 for part in range(1, 7))})
    orders = [(stock_sqlite.url, str(tmp_path / f"{point}.db"), point) for point in points]
    assert killed(orders) == ["killed"] * len(points)
    for _, url, _ in orders:
        memory = opened(url, embedder=None).workspace("alex")
        adopt(stock_sqlite.url, memory)
        saver, graph = ours(memory, specimen)
        assert normal(taken(saver, graph, thread())) == before
        assert provenance(memory) == provenance(whole), url
        memory.forget(STATEMENT)
        assert stored(memory) == []


def test_an_adoption_into_postgresql_killed_anywhere_is_finished_by_the_next(
    stock_sqlite: Source, postgres_url: str, opened: Opened
) -> None:
    specimen = graphs.named("agent")
    before = normal(stock_sqlite.played(specimen))
    assert killed([(stock_sqlite.url, postgres_url, at) for at in (90, 60, 40)]) == ["killed"] * 3
    memory = opened(postgres_url, embedder=None).workspace("alex")
    assert 0 < adopt(stock_sqlite.url, memory)["written checkpoints"] < len(before.tuples)
    saver, graph = ours(memory, specimen)
    assert normal(taken(saver, graph, thread())) == before
    memory.forget(STATEMENT)
    assert remains(saver, graph, thread()) == []


@everywhere
def test_what_the_source_got_since_is_adopted_but_nothing_forgotten_comes_back(
    source: Source, memory: Memory
) -> None:
    specimen = graphs.named("agent")
    source.played(specimen)
    adopt(source.url, memory)
    memory.forget(STATEMENT)
    with source.graph(specimen) as graph:
        graph.invoke({"messages": [HumanMessage("a new clock call:lookup")]}, thread())
        size = len(list(graph.checkpointer.list(None)))
    counts = adopt(source.url, memory)
    assert counts["written checkpoints"] == 5
    saver, graph = ours(memory, specimen)
    assert len(list(saver.list(None))) == size
    assert stored(memory) == []
    assert remains(saver, graph, thread()) == []
    # What was said since came from outside; the replies saw what is forgotten.
    texts = [one.text for one in graph.get_state(thread()).values["messages"]]
    assert texts[-1] == "a new clock call:lookup"


@everywhere
def test_an_answer_given_since_is_adopted(source: Source, memory: Memory) -> None:
    specimen = graphs.named("interrupted in a subgraph, still waiting")
    source.played(specimen)
    adopt(source.url, memory)
    with source.graph(specimen) as graph:
        graph.invoke(resumption(graph.get_state(thread())), thread())
    adopt(source.url, memory)
    saver, graph = ours(memory, specimen)
    assert normal(taken(saver, graph, thread())) == normal(source.taken(specimen))


@everywhere
def test_a_thread_deleted_here_is_not_brought_back(source: Source, memory: Memory) -> None:
    source.played(graphs.named("agent"))
    adopt(source.url, memory)
    DeLLMSaver(memory).delete_thread("t")
    adopt(source.url, memory)
    assert list(DeLLMSaver(memory).list(None)) == []
    assert memory.history("t") == []


# the source


def fingerprint(source: Source) -> Any:
    """Return all of the source that a reader could change."""
    if not source.url.startswith("postgresql://"):
        folder = Path(source.url).parent
        return {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in folder.iterdir()}
    with psycopg.connect(source.url) as connection:
        found: dict[str, Any] = {
            table: connection.execute(f"select * from {table} order by 1, 2, 3").fetchall()
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        }
        found["all"] = connection.execute("select relname from pg_class order by 1").fetchall()
        return found


@everywhere
def test_the_source_is_not_changed(source: Source, memory: Memory) -> None:
    source.played(graphs.named("agent"))
    before = fingerprint(source)
    adopt(source.url, memory)
    assert fingerprint(source) == before


def test_a_source_in_use_is_read_as_of_one_moment(
    stock_sqlite: Source, sqlite_url: str, opened: Opened
) -> None:
    specimen, memory = graphs.named("bot"), opened(sqlite_url, embedder=None)
    with stock_sqlite.graph(specimen) as graph:
        specimen.play(graph, thread())
        assert Path(f"{stock_sqlite.url}-wal").exists()

        def meanwhile(done: int, _: int) -> None:
            if done == 2:
                graph.invoke(specimen.then(), thread())

        assert adopt(stock_sqlite.url, memory, progress=meanwhile)["written checkpoints"] == 9
        assert adopt(stock_sqlite.url, memory)["written checkpoints"] == 3
        before = normal(taken(graph.checkpointer, graph, thread()))
    saver, graph = ours(memory, specimen)
    assert normal(taken(saver, graph, thread())) == before


def test_a_file_that_is_opened_by_a_writer_meanwhile_is_noticed(
    stock_sqlite: Source, sqlite_url: str, opened: Opened
) -> None:
    specimen, memory = graphs.named("bot"), opened(sqlite_url, embedder=None)
    stock_sqlite.played(specimen)

    def meanwhile(done: int, _: int) -> None:
        if done == 2:
            with stock_sqlite.graph(specimen) as graph:
                graph.invoke(specimen.then(), thread())

    with pytest.raises(StorageError, match="written to while it was read"):
        adopt(stock_sqlite.url, memory, progress=meanwhile)
    adopt(stock_sqlite.url, memory)
    saver, graph = ours(memory, specimen)
    assert normal(taken(saver, graph, thread())) == normal(stock_sqlite.taken(specimen))


def test_a_database_from_before_task_paths_were_kept_is_adopted_with_the_same_contexts(
    stock_sqlite: Source, tmp_path: Path, opened: Opened
) -> None:
    specimen = graphs.named("agent")
    stock_sqlite.played(specimen)
    new = opened(str(tmp_path / "new.db"), embedder=None)
    adopt(stock_sqlite.url, new)
    with sqlite3.connect(stock_sqlite.url) as raw:
        raw.execute("alter table writes drop column task_path")
    raw.close()
    old = opened(str(tmp_path / "old.db"), embedder=None)
    adopt(stock_sqlite.url, old)
    assert provenance(old) == provenance(new)
    old.forget(STATEMENT)
    assert stored(old) == []
    assert old.history("t", last=100)[0].text == f"{graphs.CLEAN[0]} call:lookup"


def test_a_checkpoint_whose_parents_were_pruned_is_read_in_the_order_of_its_messages(
    stock_postgres: Source, sqlite_url: str, opened: Opened
) -> None:
    specimen, memory = graphs.named("bot"), opened(sqlite_url, embedder=None)
    stock_postgres.played(specimen)
    with stock_postgres.saver() as saver:
        saver.prune(["t"])
    adopt(stock_postgres.url, memory)
    memory.forget(STATEMENT)
    saver, graph = ours(memory, specimen)
    assert remains(saver, graph, thread()) == []
    texts = [one.text for one in graph.get_state(thread()).values["messages"]]
    assert texts[0] == graphs.CLEAN[0]
    assert texts[-1] == graphs.CLEAN[1]
    assert len(texts) == 3


def test_threads_and_workspaces_are_kept_apart(
    stock_sqlite: Source, sqlite_url: str, opened: Opened
) -> None:
    specimen, memory = graphs.named("bot"), opened(sqlite_url, embedder=None)
    with stock_sqlite.graph(specimen) as graph:
        for name in ("one", "two", "int:3", "4"):
            graph.invoke({"messages": [HumanMessage(f"{name} says hello")]}, thread(name))
    counts = adopt(stock_sqlite.url, memory.workspace("alex"), threads=["two", "int:3"])
    assert (counts["threads"], counts["checkpoints"]) == (2, 6)
    saver = DeLLMSaver(memory.workspace("alex"))
    found = {one.config["configurable"]["thread_id"] for one in saver.list(None)}
    assert found == {"two", "int:3"}
    assert list(DeLLMSaver(memory).list(None)) == []
    with pytest.raises(InvalidInput, match="does not have 1 of the threads"):
        adopt(stock_sqlite.url, memory, threads=["five"])


# classes that are not to be had


def with_a_class(source: Source, folder: Path) -> None:
    """Store an object of a class that only a module in `folder` has."""
    (folder / "their_application.py").write_text(
        "from pydantic import BaseModel\nclass Profile(BaseModel):\n    name: str\n", "utf-8"
    )
    code = (
        "import sys; from their_application import Profile\n"
        "from langgraph.checkpoint.sqlite import SqliteSaver\n"
        "from langgraph.graph import StateGraph\n"
        "with SqliteSaver.from_conn_string(sys.argv[1]) as saver:\n"
        "    graph = StateGraph(dict)\n"
        "    graph.add_node('n', lambda _: {'profile': Profile(name='Sam')})\n"
        "    graph.set_entry_point('n')\n"
        "    graph.compile(checkpointer=saver).invoke({}, {'configurable': {'thread_id': 't'}})\n"
    )
    subprocess.run([sys.executable, "-c", code, source.url], cwd=folder, check=True, timeout=60)


def test_objects_of_a_class_that_is_not_to_be_had_are_refused_or_taken_as_data_on_demand(
    stock_sqlite: Source, sqlite_url: str, tmp_path: Path, opened: Opened
) -> None:
    with_a_class(stock_sqlite, tmp_path)
    memory = opened(sqlite_url, embedder=None)
    with pytest.raises(InvalidInput, match=r"their_application\.Profile") as raised:
        adopt(stock_sqlite.url, memory)
    assert "Sam" not in str(raised.value)
    adopt(stock_sqlite.url, memory, lossy=True)
    with stock_sqlite.saver() as stock:
        found = [one.checkpoint["channel_values"] for one in DeLLMSaver(memory).list(None)]
        assert found == [one.checkpoint["channel_values"] for one in stock.list(None)]
    assert "{'name': 'Sam'}" in repr(found)


def test_values_that_the_stock_serializer_does_not_know_are_refused(
    stock_sqlite: Source, sqlite_url: str, opened: Opened
) -> None:
    stock_sqlite.played(graphs.named("bot"))
    with sqlite3.connect(stock_sqlite.url) as raw:
        raw.execute("update checkpoints set type = 'msgpack+aes'")
    raw.close()
    with pytest.raises(UnsupportedHere, match=r"msgpack\+aes"):
        adopt(stock_sqlite.url, opened(sqlite_url, embedder=None))


def test_what_cannot_be_read_is_said_without_what_is_stored(
    stock_sqlite: Source, sqlite_url: str, opened: Opened
) -> None:
    stock_sqlite.played(graphs.named("bot"))
    with sqlite3.connect(stock_sqlite.url) as raw:
        raw.execute("update writes set value = cast(substr(value, 1, 40) as blob)")
    raw.close()
    with pytest.raises(StorageError, match="cannot be read") as raised:
        adopt(stock_sqlite.url, opened(sqlite_url, embedder=None))
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


# the command


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELLM_EMBEDDER", "none")

    def run_(*arguments: object, code: int = 0) -> Any:
        result = CliRunner().invoke(cli.app, ["adopt", *map(str, arguments)])
        assert result.exit_code == code, (result.stdout, result.stderr)
        assert "Traceback" not in result.stderr
        return result

    return run_


@everywhere
def test_the_command_adopts_and_says_what_it_did(
    source: Source, url: str, run: Callable[..., Any], opened: Opened
) -> None:
    source.played(graphs.named("agent"))
    arguments = ("langgraph", source.url, "--memory", url, "--workspace", "sam", "--thread", "t")
    said = json.loads(run(*arguments, "--json").stdout)
    assert said == {
        "threads": 1,
        "checkpoints": 15,
        "written checkpoints": 15,
        "written values": 21,
    }
    assert "written checkpoints: 0" in run(*arguments).stdout
    saver = DeLLMSaver(opened(url, embedder=None).workspace("sam"))
    assert len(list(saver.list(thread()))) == 15


def test_the_command_says_what_is_wrong(run: Callable[..., Any], tmp_path: Path) -> None:
    assert "Known are: langchain, langgraph" in run("letters", "x", code=2).stderr
    assert "no file" in run("langgraph", "nowhere.db", code=2).stderr
    with sqlite3.connect(tmp_path / "other.db") as raw:
        raw.execute("create table checkpoints(id)")
    raw.close()
    assert "no checkpoints of LangGraph" in run("langgraph", "other.db", code=2).stderr
    (tmp_path / "text.db").write_text("no database at all, " * 100)
    assert "cannot be read" in run("langgraph", "text.db", code=3).stderr
    assert "cannot be read" in run("langgraph", "postgresql://127.0.0.1:1/x", code=3).stderr


@pytest.mark.parametrize("missing", ["langgraph", "langchain_core"])
def test_without_langgraph_the_command_says_what_to_install(tmp_path: Path, missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from dellm.cli import main; main()"
    command = [sys.executable, "-c", code, "adopt", "langgraph", "x.db", "--memory", "m.db"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "dellm[langchain]" in done.stderr
    assert not (tmp_path / "m.db").exists()
