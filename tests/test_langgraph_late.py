"""Invariant I4 with real graphs: a run that is under way when something is forgotten.

Runs stop at a gate (in a model call, between two nodes, inside a tool) while the test forgets.
Whatever they write afterwards, what was erased and what was made of it must not come back, what
has nothing to do with it must be stored, and nothing legitimate may be refused from then on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pairing
import pytest
from forgotten import remains, taken, thread
from graphs import (
    CLEAN,
    STATEMENT,
    WORD,
    Config,
    Delta3,
    Graph,
    Parrot,
    Saver,
    Way,
    chat,
    compiled,
    everything,
    latest,
    says,
    told,
    words,
)
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send
from one_postgres import one_database, postgres_url

from dellm import Memory
from dellm_langchain import DeLLMSaver

__all__ = ["one_database", "postgres_url"]

INVOKE, AINVOKE, STREAM, ASTREAM = Way("invoke"), Way("ainvoke"), Way("stream"), Way("astream")


class Gate:
    """Where a run waits, once, after `close`, until `open`."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._opened = threading.Event()
        self._closed = False

    def close(self) -> None:
        self.reached.clear()
        self._opened.clear()
        self._closed = True

    def open(self) -> None:
        self._closed = False
        self._opened.set()

    def wait(self) -> None:
        if self._closed:
            self._closed = False
            self.reached.set()
            assert self._opened.wait(60)

    async def awaited(self) -> None:
        await asyncio.to_thread(self.wait)


class Slow(Parrot):
    """The model of the zoo, which thinks until it is let go on."""

    gate: Any

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.gate.wait()
        return super()._generate(messages, **kwargs)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        await self.gate.awaited()
        return super()._generate(messages, **kwargs)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for at, chunk in enumerate(super()._stream(messages, stop, run_manager, **kwargs)):
            if at == 1:
                self.gate.wait()
            yield chunk

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        at = 0
        async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
            if at == 1:
                await self.gate.awaited()
            at += 1
            yield chunk


# graphs with a gate in them


def asking(gate: Gate | None, look: Any, made: Any = says) -> Any:
    """Return a node that asks the model."""
    model = Parrot() if gate is None else Slow(gate=gate)

    def asked(state: Any) -> Any:
        return made(state, model.invoke(look(state["messages"])))

    async def awaited(state: Any) -> Any:
        return made(state, await model.ainvoke(look(state["messages"])))

    return RunnableLambda(asked, afunc=awaited)


def pausing(gate: Gate, update: Callable[[Any], Any] = lambda state: {}) -> Any:
    """Return a node that waits and then makes its update of the state it was given."""

    def paused(state: Any) -> Any:
        gate.wait()
        return update(state)

    async def awaited(state: Any) -> Any:
        await gate.awaited()
        return update(state)

    return RunnableLambda(paused, afunc=awaited)


def in_the_model(gate: Gate, look: Any, saver: Saver) -> Graph:
    return chat(MessagesState, asking(gate, look)).compile(checkpointer=saver)


def on_a_delta_channel(gate: Gate, look: Any, saver: Saver) -> Graph:
    return chat(Delta3, asking(gate, look)).compile(checkpointer=saver)


def between_nodes(gate: Gate, look: Any, saver: Saver) -> Graph:
    nodes = (asking(None, look), pausing(gate), asking(None, look))
    return chat(MessagesState, *nodes).compile(checkpointer=saver)


def in_a_subgraph(gate: Gate, look: Any, saver: Saver) -> Graph:
    inner = chat(MessagesState, asking(None, look), asking(gate, look)).compile()
    return chat(MessagesState, asking(None, look), inner).compile(checkpointer=saver)


def in_a_subgraph_with_memory(gate: Gate, look: Any, saver: Saver) -> Graph:
    inner = chat(MessagesState, asking(gate, look)).compile(checkpointer=True)
    return chat(MessagesState, inner).compile(checkpointer=saver)


def in_a_tool(gate: Gate, look: Any, saver: Saver) -> Graph:
    @tool
    def search(query: str) -> str:
        """Search, which takes its time."""
        gate.wait()
        return f"found {words(query)}"

    @tool
    def quick(query: str) -> str:
        """Look it up at once."""
        return f"quick {words(query)}"

    return create_agent(Parrot(), [search, quick], checkpointer=saver)


class Noted(MessagesState):
    summary: str
    notes: list[str]


def in_a_summary(gate: Gate, look: Any, saver: Saver) -> Graph:
    def summed(state: Any) -> Any:
        return {"summary": words(told(look(state["messages"]))), "notes": [told(state["messages"])]}

    return chat(Noted, asking(None, look), pausing(gate, summed)).compile(checkpointer=saver)


def in_a_worker(gate: Gate, look: Any, saver: Saver) -> Graph:
    def fan(state: Any) -> list[Send]:
        parts = state["messages"][-1].text.split(" ")
        return [Send("work", {"messages": [HumanMessage(one)]}) for one in parts[:3]]

    graph = StateGraph(MessagesState)
    graph.add_node("work", asking(gate, everything))
    graph.add_node("end", asking(None, look))
    graph.add_conditional_edges(START, fan, ["work"])
    graph.add_edge("work", "end")
    return compiled(graph, saver)


@dataclass(frozen=True)
class Spot:
    """A graph that waits somewhere. `call` is what makes it use its tool."""

    build: Callable[[Gate, Any, Saver], Graph]
    call: str = ""
    exact: bool = True  # with `latest`, the run's replies have nothing to do with earlier turns

    def __str__(self) -> str:
        return self.build.__name__


SPOTS = [
    Spot(in_the_model),
    Spot(on_a_delta_channel),
    Spot(between_nodes),
    Spot(in_a_subgraph),
    Spot(in_a_subgraph_with_memory),
    Spot(in_a_tool, " call:search call:quick", exact=False),
    Spot(in_a_summary, exact=False),
    Spot(in_a_worker),
]
WAYS = [INVOKE, AINVOKE, STREAM, ASTREAM, Way("invoke", "sync"), Way("ainvoke", "sync")]
EXIT = [Way("invoke", "exit"), Way("ainvoke", "exit")]


@dataclass
class Case:
    """One memory with a graph that can be stopped in the middle of a run."""

    memory: Memory
    gate: Gate
    saver: DeLLMSaver
    graph: Graph
    config: Config = field(default_factory=thread)

    def say(self, text: str, way: Way = INVOKE) -> None:
        way.run(self.graph, {"messages": [HumanMessage(text)]}, self.config)

    def during(self, given: Any, way: Way, act: Callable[[], Any], stored: str | None = None) -> None:
        """Start a run, act while it waits at the gate, let it end."""
        self.gate.close()
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(way.run, self.graph, given, self.config)
            try:
                end = time.monotonic() + 30
                while not self.gate.reached.wait(0.01):
                    assert not run.done(), run.result()
                    assert time.monotonic() < end, "the run never came to the gate"
                while stored is not None and not self.memory.scan(stored, files=False).places:
                    assert time.monotonic() < end, "the run never stored what was said"
                    time.sleep(0.01)
                act()
            finally:
                self.gate.open()
            run.result(60)

    def messages(self) -> list[BaseMessage]:
        return self.graph.get_state(self.config).values.get("messages", [])  # type: ignore[no-any-return]

    def texts(self) -> list[str]:
        return [one.text for one in self.messages()]

    def problems(self, word: str = WORD) -> list[str]:
        """Return all that is wrong now that everything with the word was forgotten."""
        found = remains(self.saver, self.graph, self.config, word)
        found += [str(one) for one in self.memory.scan(word, files=False).places]
        state = self.graph.get_state(self.config)
        found += pairing.problems(state.values.get("messages", []), paused=bool(state.next))
        return found + list(self.memory.verify().problems)

    def goes_on(self, way: Way = INVOKE, call: str = "") -> list[str]:
        """Return what is wrong with a new turn: all of it must be stored, and in its right place."""
        before = self.messages()
        self.say(f"hello once more{call}", way)
        after = self.messages()
        found = [] if after[: len(before)] == before else ["the new turn changed what was there"]
        new = after[len(before) :]
        if len(new) < 2 or not new[0].text.startswith("hello") or not isinstance(new[-1], AIMessage):
            found.append(f"the new turn left {new}")
        return found + self.problems()


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


@pytest.fixture
def case(memory: Memory) -> Callable[..., Case]:
    """Return a function that makes a case of a spot."""

    def make(spot: Spot, look: Any = everything, **options: Any) -> Case:
        gate, saver = Gate(), DeLLMSaver(memory, **options)
        return Case(memory, gate, saver, spot.build(gate, look, saver))

    return make


# the run that is under way said it


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("spot", SPOTS, ids=str)
def test_what_a_run_was_told_does_not_come_back_when_it_is_forgotten_meanwhile(
    spot: Spot, way: Way, case: Callable[..., Case]
) -> None:
    one = case(spot)
    one.say(CLEAN[0] + spot.call, way)
    before = taken(one.saver, one.graph, one.config)
    secret = {"messages": [HumanMessage(STATEMENT + spot.call)]}
    one.during(secret, way, lambda: one.memory.forget(STATEMENT), stored=WORD)
    assert one.problems() == []
    after = taken(one.saver, one.graph, one.config)
    assert {key: after.tuples[key].checkpoint for key in before.tuples} == {
        key: old.checkpoint for key, old in before.tuples.items()
    }
    assert one.messages() == before.states[next(iter(before.states))].values["messages"]
    assert one.goes_on(way, spot.call) == []


# an earlier run said it, and this one has it in its memory


@pytest.mark.parametrize("way", [*WAYS, *EXIT], ids=str)
@pytest.mark.parametrize("spot", SPOTS, ids=str)
def test_what_a_run_has_in_its_memory_does_not_come_back_when_it_is_forgotten_meanwhile(
    spot: Spot, way: Way, case: Callable[..., Case]
) -> None:
    one = case(spot)
    one.say(CLEAN[0] + spot.call, way)
    kept = one.messages()
    one.say(STATEMENT + spot.call, way)
    given = {"messages": [HumanMessage(CLEAN[1] + spot.call)]}
    one.during(given, way, lambda: one.memory.forget(STATEMENT))
    assert one.problems() == []
    assert one.messages()[: len(kept)] == kept
    # What was said meanwhile has nothing to do with it.
    assert CLEAN[1] + spot.call in one.texts()
    assert one.goes_on(way, spot.call) == []


@pytest.mark.parametrize("way", [*WAYS, *EXIT], ids=str)
@pytest.mark.parametrize("spot", [one for one in SPOTS if one.exact], ids=str)
def test_what_a_run_makes_of_other_things_is_stored_although_something_was_forgotten_meanwhile(
    spot: Spot, way: Way, case: Callable[..., Case]
) -> None:
    one = case(spot, latest)
    one.say(CLEAN[0], way)
    kept = one.texts()
    one.say(STATEMENT, way)
    new = len(one.texts()) - len(kept)
    given = {"messages": [HumanMessage(CLEAN[1])]}
    one.during(given, way, lambda: one.memory.forget(STATEMENT))
    assert one.problems() == []
    texts = one.texts()
    assert texts[: len(kept)] == kept
    assert len(texts) == len(kept) + new, texts[len(kept) :]
    assert one.goes_on(way) == []
