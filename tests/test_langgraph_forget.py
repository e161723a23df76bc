"""Every graph of the zoo, on the saver that can forget: nothing of what was forgotten is left.

The secret is one sentence. Everything that a graph made of it holds its one odd word, in another
order of words, so that only provenance leads to it. The same checks find the word in a stock saver.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import graphs
import pytest
from forgotten import (
    Oracle,
    calls_gone,
    ends,
    go_on,
    heard_since,
    holds,
    normal,
    remains,
    taken,
    thread,
)
from graphs import HEARD, STATEMENT, WAYS, WORD, ZOO, Config, Graph, Specimen, Way
from langchain_core.messages import RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from dellm import Memory
from dellm_langchain import DeLLMSaver

# The whole zoo runs on SQLite; on PostgreSQL, which is slower to ask, those that differ in what is
# stored and how it is read. One test there plays all of them.
ON_POSTGRES = {
    "bot, lone",
    "message changed in place",
    "input as dicts",
    "delta 1",
    "delta 3, lone",
    "parallel calls, lone",
    "secret from one of two tools",
    "agent in a tool",
    "structured",
    "summarizing",
    "subgraph with its own memory",
    "interrupted",
    "fan-out",
    "every kind of channel",
    "functional",
    "half failed",
    "fork with the secret",
    "secret in the metadata",
}


def on_both(specimens: Iterable[Specimen], *also: str, racing: str = "no name") -> Any:
    """Parametrize a test with specimens: all on SQLite, and those chosen on PostgreSQL.

    Those whose name holds `racing` may fail when the machine is busy: a known limit, in the docs.
    """
    limit = pytest.mark.xfail(reason="an exit-mode subgraph does not say what its parent read")
    cases = [
        pytest.param(kind, one, id=f"{kind}-{one}", marks=[limit] if racing in one.name else [])
        for one in specimens
        for kind in ("sqlite", "postgres")
        if kind == "sqlite" or one.name in (also or ON_POSTGRES)
    ]
    return pytest.mark.parametrize(("url", "specimen"), cases, indirect=["url"])


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Start with an open diary and an empty log of prompts."""
    HEARD.clear()
    graphs.FAILED.clear()
    graphs.DIARY["open"] = True
    yield
    graphs.DIARY["open"] = True


def left(specimen: Specimen, memory: Memory, way: Way = graphs.INVOKE) -> list[str]:
    """Play a specimen, forget, read all of it, go on everywhere; return all that is not right."""
    saver = DeLLMSaver(memory, **specimen.options)
    graph, config = specimen.build(saver), thread()
    specimen.play(graph, config, way)
    before = taken(saver, graph, config)
    assert before.holds(), "the specimen does not hold the secret"
    memory.forget(STATEMENT)
    graphs.DIARY["open"] = False
    found = Oracle(specimen, before).problems(taken(saver, graph, config))
    found += [f"read: {one}" for one in remains(saver, graph, config)]
    found += _stored(memory)
    mark = len(HEARD)
    found += go_on(saver, graph, config, specimen, way)
    found += [f"prompt after the forget: {HEARD[at]}" for at in heard_since(mark)]
    found += [f"later: {one}" for one in remains(saver, graph, config, brief=True)]
    found += [f"later: {one}" for one in _stored(memory)]
    return found + list(memory.verify().problems)


def _stored(memory: Memory) -> list[str]:
    return [str(one) for one in memory.scan(WORD, files=False).places]


@on_both(ZOO)
def test_a_forgotten_sentence_is_nowhere_and_all_else_is_as_it_was(
    specimen: Specimen, memory: Memory
) -> None:
    assert left(specimen, memory) == []


BY_ID = [
    "bot",
    "prompt made by hand",
    "agent in a tool",
    "delta 3",
    "subgraph",
    "every kind of channel",
    *(one.name for one in ZOO if "input" in one.name),
]


@on_both(map(graphs.named, BY_ID), "input as tuples", "input as string", "delta 3")
def test_a_message_forgotten_by_its_id_takes_its_copies_without_one(
    specimen: Specimen, memory: Memory
) -> None:
    saver = DeLLMSaver(memory, **specimen.options)
    graph, config = specimen.build(saver), thread()
    specimen.play(graph, config)
    said = [one.id for one in memory.history("t") if STATEMENT in one.text]
    memory.forget(ids=said)
    assert _stored(memory) == []
    assert remains(saver, graph, config, brief=True) == []


RUN = [
    "bot, lone",
    "agent, lone",
    "subgraph, lone",
    "interrupted",
    "delta 3, lone",
    "functional with messages",
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@on_both(map(graphs.named, RUN), "agent, lone", "interrupted")
def test_a_sentence_is_forgotten_however_the_graph_was_run(
    specimen: Specimen, way: Way, memory: Memory
) -> None:
    assert left(specimen, memory, way) == []


# Written at the end of a run only, these keep no sentence to be forgotten by, or no step to replay.
NOT_AT_THE_END = {
    "history rewritten each time",
    "interrupted, secret in the answer",
    "dataclass state",
    "functional",
    "replayed",
}
AT_THE_END = [one for one in ZOO if one.name not in NOT_AT_THE_END]


@on_both(AT_THE_END, "bot", "prompt made by hand", "fan-out", "delta 100", racing="subgraph")
def test_a_sentence_is_forgotten_where_only_the_end_of_each_run_was_stored(
    specimen: Specimen, memory: Memory
) -> None:
    saver = DeLLMSaver(memory, **specimen.options)
    graph, config = specimen.build(saver), thread()
    specimen.play(graph, config, Way("invoke", "exit"))
    memory.forget(STATEMENT)
    assert _stored(memory) == []
    assert remains(saver, graph, config, brief=True) == []


@on_both((one for one in ZOO if one.lone), "agent, lone", "delta 3, lone", "subgraph, lone")
def test_a_thread_is_as_if_the_forgotten_had_never_been_said(
    specimen: Specimen, memory: Memory
) -> None:
    saver, stock = DeLLMSaver(memory, **specimen.options), InMemorySaver()
    graph, twin = specimen.build(saver), specimen.build(stock)
    config, way = thread(), graphs.INVOKE
    heads = ends(specimen, graph, config, way, secret=True)
    expected = ends(specimen, twin, config, way, secret=False)
    memory.forget(STATEMENT)

    kept = [head for head, turn in zip(heads, specimen.turns, strict=True) if not turn.secret]
    assert [values(graph, one) for one in kept] == [values(twin, one) for one in expected]
    for at, turn in enumerate(specimen.turns):
        if turn.secret:
            assert values(graph, heads[at]) == values(graph, heads[at - 1])
    HEARD.clear()
    way.run(graph, specimen.then(), config)
    way.run(twin, specimen.then(), config)
    half = len(HEARD) // 2
    assert normal(HEARD[:half]) == normal(HEARD[half:])
    assert normal(graph.get_state(config).values) == normal(twin.get_state(config).values)


def values(graph: Graph, head: str) -> Any:
    config = {"configurable": {"thread_id": "t", "checkpoint_id": head}}
    return normal(graph.get_state(config).values)


@pytest.mark.parametrize("specimen", ZOO, ids=str)
def test_the_same_checks_find_the_sentence_in_a_stock_saver(
    specimen: Specimen, tmp_path: Path
) -> None:
    path = tmp_path / "stock.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph, config = specimen.build(saver), thread()
        specimen.play(graph, config)
        before = taken(saver, graph, config)
        removed(graph, config)
        assert Oracle(specimen, before).problems(taken(saver, graph, config))
        assert remains(saver, graph, config, brief=True)
    with sqlite3.connect(path) as raw:
        assert any(WORD.encode() in line.encode() for line in raw.iterdump()) or any(
            WORD.encode() in part.read_bytes() for part in tmp_path.iterdir()
        )


def removed(graph: Graph, config: Config) -> None:
    """Do what the documentation says: remove every message of the head that holds the word."""
    state = graph.get_state(config)
    if not isinstance(state.values, dict) or "messages" not in state.values:
        return
    gone = [RemoveMessage(one.id) for one in state.values["messages"] if holds(one)]
    if gone:
        node = next(one for one in graph.nodes if one != "__start__")
        with suppress(ValueError):  # what is still pending can be seen, but not removed
            graph.update_state(config, {"messages": gone}, as_node=node)


@pytest.mark.long
def test_one_forget_reaches_every_thread_and_leaves_no_byte_in_the_files(memory: Memory) -> None:
    played = []
    for specimen in ZOO:
        saver = DeLLMSaver(memory, **specimen.options)
        graph, config = specimen.build(saver), thread(specimen.name)
        specimen.play(graph, config)
        played.append((saver, graph, config))
    assert len(memory.scan(WORD, files=False)) > len(ZOO)
    assert memory.scan(WORD).files

    memory.forget(STATEMENT, scrub=False)
    assert [place for one in played for place in remains(*one, brief=True)] == []
    assert memory.scrub().clean
    report = memory.scan(WORD)
    assert (report.places, report.files) == ((), ())
    assert memory.verify().ok


def test_threads_that_never_held_it_are_what_they_were(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    graph = graphs.named("agent").build(saver)
    for name in ("one", "two"):
        graphs.INVOKE.run(graph, {"messages": [("user", "an apple call:lookup")]}, thread(name))
    before = [taken(saver, graph, thread(name)) for name in ("one", "two")]
    inputs = [{"messages": [("user", text)]} for text in ("a boat", STATEMENT, "a clock")]
    graph.batch(inputs, [thread(name) for name in ("three", "four", "five")])
    kept = [taken(saver, graph, thread(name)) for name in ("three", "five")]
    memory.forget(STATEMENT)
    assert [taken(saver, graph, thread(name)) for name in ("one", "two")] == before
    assert [taken(saver, graph, thread(name)) for name in ("three", "five")] == kept
    assert graph.get_state(thread("four")).values["messages"] == []
    assert calls_gone(before[0]) == set()
