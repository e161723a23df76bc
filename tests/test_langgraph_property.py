"""Random graphs of steps against a model that knows what every value was made from.

Every value holds a word of its own and nothing of what it was made from, so that only provenance
leads from one to the other. The steps themselves note what they were shown; what a forget must
take, and what every checkpoint must read afterwards, follows from those notes alone.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pairing
import pytest
from forgotten import resumption
from graphs import Config, Graph, Specimen, Way, named
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import Overwrite, StateSnapshot
from raw_tables import emptied
from typing_extensions import TypedDict

from dellm import Memory
from dellm_langchain import DeLLMSaver

pytestmark = pytest.mark.long

NUMBERS = itertools.count(1)
WORD = re.compile(r"zq\d{6}")


def word() -> str:
    return f"zq{next(NUMBERS):06}"


def words_of(value: Any) -> set[str]:
    """Return the words in a value of a state; in a message, those of its content only."""
    if isinstance(value, BaseMessage):
        return set(WORD.findall(value.text))
    if isinstance(value, Mapping):
        return {one for inner in value.values() for one in words_of(inner)}
    if isinstance(value, (list, tuple)):
        return {one for inner in value for one in words_of(inner)}
    return set(WORD.findall(value)) if isinstance(value, str) else set()


@dataclass
class Made:
    """From which words each word was made, as the steps that made them saw it."""

    parents: dict[str, set[str]] = field(default_factory=dict)

    def new(self, parents: set[str]) -> str:
        made = word()
        self.parents[made] = set(parents)
        return made

    def dep(self, seeds: set[str]) -> set[str]:
        found = set(seeds)
        while more := {one for one, of in self.parents.items() if of & found} - found:
            found |= more
        return found


class Speaker(BaseChatModel):
    """Says a new word, made from exactly the words of its prompt; asks for a tool on demand."""

    made: Any

    @property
    def _llm_type(self) -> str:
        return "speaker"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        said = self.made.new(words_of(messages))
        calls = [
            {"name": "look", "args": {"at": said}, "id": f"call_{said}_{at}"}
            for at in range(kwargs.get("calls", 0))
        ]
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(f"say {said}", tool_calls=calls))]
        )


# steps: each a node of a graph


class Plain(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    note: str
    log: Annotated[list[str], operator.add]


class Delta(TypedDict, total=False):
    messages: Annotated[
        list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)
    ]
    note: str
    log: Annotated[list[str], operator.add]


Step = Callable[[Made, Any], dict[str, Any]]


def window(size: int) -> Step:
    """Reply to the last messages only."""

    def step(made: Made, state: Any) -> dict[str, Any]:
        return {"messages": [Speaker(made=made).invoke(state.get("messages", [])[-size:])]}

    return step


def first_and_last(made: Made, state: Any) -> dict[str, Any]:
    seen = state.get("messages", [])
    prompt = [*seen[:1], *seen[-1:]] if len(seen) > 1 else seen
    return {"messages": [Speaker(made=made).invoke(prompt)]}


def noting(made: Made, state: Any) -> dict[str, Any]:
    return {"note": f"note {made.new(words_of(state))}"}


def logging(made: Made, state: Any) -> dict[str, Any]:
    seen = words_of(state)
    return {"log": [f"log {made.new(seen)}", f"log {made.new(seen)}"]}


def starting_over(made: Made, state: Any) -> dict[str, Any]:
    return {"log": Overwrite([f"log {made.new(words_of(state))}"])}


def mixing(made: Made, state: Any) -> dict[str, Any]:
    """A reply that is kept as it is, and a note that anything may have gone into."""
    reply = Speaker(made=made).invoke(state.get("messages", [])[-2:])
    return {"messages": [reply], "note": f"note {made.new(words_of(state) | words_of(reply))}"}


def by_hand(made: Made, state: Any) -> dict[str, Any]:
    return {"messages": [AIMessage(f"hand {made.new(words_of(state))}")]}


def trimming(made: Made, state: Any) -> dict[str, Any]:
    seen = state.get("messages", [])
    calls = {id_ for one in seen[:1] for id_ in pairing.calls_of(one)}
    gone = [one for one in seen if one in seen[:1] or set(pairing.results_of(one)) & calls]
    return {"messages": [RemoveMessage(one.id) for one in gone]}


def asking(calls: int) -> Step:
    """Ask for tools, which the next node runs."""

    def step(made: Made, state: Any) -> dict[str, Any]:
        seen = state.get("messages", [])[-3:]
        return {"messages": [Speaker(made=made).invoke(seen, calls=calls)]}

    return step


def answering(made: Made, state: Any) -> dict[str, Any]:
    """Answer the calls of the last message by hand, from all of the state."""
    seen = state.get("messages", [])
    calls = seen[-1].tool_calls if seen and isinstance(seen[-1], AIMessage) else []
    parents = words_of(state)
    return {
        "messages": [
            ToolMessage(f"found {made.new(parents)}", tool_call_id=call["id"]) for call in calls
        ]
    }


STEPS: dict[str, Sequence[Step]] = {
    "window of 1": [window(1)],
    "window of 3": [window(3)],
    "all": [window(1_000)],
    "first and last": [first_and_last],
    "note": [noting],
    "log": [logging],
    "overwrite": [starting_over],
    "mix": [mixing],
    "hand": [by_hand],
    "trim": [trimming],
    "tool": [asking(1), answering],
    "tools": [asking(2), answering],
}


# Steps whose values are made of a prompt that is known, and of nothing else.
EXACT = {"window of 1", "window of 3", "all", "first and last", "trim"}


def fitting(names: Sequence[str], state: Any) -> list[str]:
    """Return the steps that the model can tell exactly.

    A channel kept as writes still holds what a later write removed, so whatever is made of the
    whole state is tied to that as well: more than the model says.
    """
    if state is Delta and "trim" in names:
        return [one for one in names if one in EXACT]
    return list(names)


def graph_of(made: Made, names: Sequence[str], state: Any, saver: DeLLMSaver) -> Graph:
    graph = StateGraph(state)
    steps = [one for name in names for one in STEPS[name]]
    for at, step in enumerate(steps):
        graph.add_node(f"n{at}", lambda seen, step=step: step(made, seen))
        graph.add_edge(f"n{at - 1}" if at else START, f"n{at}")
    graph.add_edge(f"n{len(steps) - 1}", END)
    return graph.compile(checkpointer=saver)


# what every checkpoint must read


@dataclass
class Known:
    """A checkpoint as the model knows it: values, parent, and what is to run next."""

    values: dict[str, Any]
    parent: str | None
    next: tuple[str, ...]


class World:
    """A graph with its threads, and beside it the model of every checkpoint."""

    def __init__(self, memory: Memory, names: Sequence[str], state: Any) -> None:
        self.memory = memory
        self.made = Made()
        self.saver = DeLLMSaver(memory)
        self.graph = graph_of(self.made, names, state, self.saver)
        self.last = sum(len(STEPS[name]) for name in names) - 1
        self.known: dict[tuple[str, str], Known] = {}
        self.gone: set[str] = set()
        self.gone_calls: set[str] = set()
        # message objects of each thread in the hands of the client
        self.seen: dict[str, list[BaseMessage]] = {"a": [], "b": []}

    def history(self, thread: str) -> list[StateSnapshot]:
        config: Config = {"configurable": {"thread_id": thread}}
        return list(self.graph.get_state_history(config))

    def learn(self, thread: str) -> None:
        """Take the new checkpoints of a thread into the model, as they read now."""
        for state in self.history(thread):
            key = thread, state.config["configurable"]["checkpoint_id"]
            if key not in self.known:
                above = state.parent_config
                parent = above["configurable"]["checkpoint_id"] if above else None
                values = {name: _copied(value) for name, value in state.values.items()}
                self.known[key] = Known(values, parent, state.next)
                seen = self.seen[thread]
                seen += [one for one in values.get("messages", []) if one not in seen]

    def config(self, thread: str, pick: int) -> Config:
        """Return the head of a thread, or one of its older checkpoints."""
        config = {"thread_id": thread}
        states = self.history(thread)
        if pick % 3 == 0 and states:
            config = states[pick // 3 % len(states)].config["configurable"]
        return {"configurable": config}

    # what is done

    def say(self, thread: str, pick: int) -> None:
        shapes: list[Any] = [
            HumanMessage,
            lambda text: ("user", text),
            lambda text: {"role": "user", "content": text},
            lambda text: HumanMessage(text, id=f"id-{text}"),
        ]
        given: dict[str, Any] = {"messages": [shapes[pick % 4](f"said {self.made.new(set())}")]}
        if pick % 5 == 0:
            given["note"] = f"given {self.made.new(set())}"
        if pick % 7 == 0:
            given["log"] = [f"given {self.made.new(set())}"]
        self.graph.invoke(given, self.config(thread, pick // 8))

    def go_on(self, thread: str, pick: int) -> None:
        """Run an older checkpoint again."""
        waiting = [one for one in self.history(thread) if one.next and one.next != ("__start__",)]
        if waiting:
            self.graph.invoke(None, waiting[pick % len(waiting)].config)

    def update(self, thread: str, pick: int) -> None:
        given: list[dict[str, Any]] = [
            {"messages": [HumanMessage(f"put {self.made.new(set())}")]},
            {"note": f"put {self.made.new(set())}"},
            {"log": [f"put {self.made.new(set())}"]},
            {"messages": self.seen[thread][pick // 4 % 8 :: 5]},  # sent again with their ids
        ]
        node = f"n{pick % (self.last + 1)}"
        chosen = given[pick % 4]
        if not chosen.get("messages", [1]):
            return
        if pick % 4 == 3:
            tools = [one for one in chosen["messages"] if not _paired(one)]
            chosen = {"messages": tools}
            if not tools:
                return
        # Into the past a value other than a message comes without the call that would tell it from
        # what a reducer makes of it, and is tied to the value before: more than the model says.
        at = pick // 4 if "messages" in chosen else 1
        self.graph.update_state(self.config(thread, at), chosen, as_node=node)

    def forget(self, pick: int) -> None:
        live = sorted(
            {one for known in self.known.values() for one in words_of(known.values)} - self.gone
        )
        if not live:
            return
        seed = live[pick % len(live)]
        going = self.made.dep({seed})
        self.memory.forget(seed)
        self.gone |= going
        for known in self.known.values():
            for one in known.values.get("messages", []):
                if words_of(one) & going:
                    self.gone_calls |= set(pairing.results_of(one))

    # what must be read

    def expected(self, key: tuple[str, str]) -> dict[str, Any]:
        known = self.known[key]
        found: dict[str, Any] = {}
        for name, value in known.values.items():
            if name == "messages":
                found[name] = self._messages(key, value)
            elif isinstance(value, list):
                found[name] = [one for one in value if not words_of(one) & self.gone]
            else:
                surviving = self._surviving(name, key)
                if surviving is not None:
                    found[name] = surviving
        return found

    def _surviving(self, name: str, key: tuple[str, str]) -> Any:
        at: tuple[str, str] | None = key
        while at is not None and at in self.known:
            value = self.known[at].values.get(name)
            if value is not None and not words_of(value) & self.gone:
                return value
            parent = self.known[at].parent
            at = None if parent is None else (key[0], parent)
        return None

    def _messages(self, key: tuple[str, str], messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        left: list[BaseMessage] = []
        surviving = [one for one in messages if not words_of(one) & self.gone]
        # A result that its task has written already is in the checkpoints after this one.
        after = [
            one
            for other, known in self.known.items()
            if other[0] == key[0] and known.parent == key[1]
            for one in known.values.get("messages", [])
            if not words_of(one) & self.gone
        ]
        answered = {call for one in (*surviving, *after) for call in pairing.results_of(one)}
        for one in surviving:
            calls = getattr(one, "tool_calls", [])
            kept = [call for call in calls if call["id"] not in self.gone_calls - answered]
            left.append(one if kept == calls else one.model_copy(update={"tool_calls": kept}))
        return left

    def check(self) -> None:
        for thread in {key[0] for key in self.known}:
            states = self.history(thread)
            heads = states[0]
            for state in states:
                key = thread, state.config["configurable"]["checkpoint_id"]
                if key in self.known:
                    assert state.values == self.expected(key), (state.metadata, self.gone)
                    assert state.next == self.known[key].next
            key = thread, heads.config["configurable"]["checkpoint_id"]
            # An update in the middle of a run may leave a thread invalid before anything is forgotten.
            if key in self.known and not _problems(self.known[key].values, heads):
                assert _problems(heads.values, heads) == []
        stored = {one for record in self.memory.export() for one in WORD.findall(record.text)}
        assert stored & self.gone == set()
        assert self.memory.verify().ok


def _problems(values: dict[str, Any], state: StateSnapshot) -> list[str]:
    return pairing.problems(values.get("messages", []), paused=bool(state.next))


def _paired(message: BaseMessage) -> bool:
    return bool(pairing.calls_of(message) or pairing.results_of(message))


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [one.model_copy() if isinstance(one, BaseMessage) else one for one in value]
    return value


picks = st.integers(0, 10_000)
ops = st.one_of(
    st.tuples(
        st.sampled_from(["say", "say", "say", "go_on", "update"]), st.sampled_from("aab"), picks
    ),
    st.tuples(st.just("forget"), st.just(""), picks),
)
plans = st.lists(ops, min_size=3, max_size=9)
shapes = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4)


def played(
    memory: Memory, names: Sequence[str], plan: Sequence[Any], state: Any
) -> Iterator[World]:
    world = World(memory, names, state)
    world.say("a", 1)
    world.learn("a")
    for verb, thread, pick in plan:
        if verb == "forget":
            world.forget(pick)
        else:
            getattr(world, verb)(thread, pick)
        # What was there reads as the model says before the new is taken on trust.
        world.check()
        if thread:
            world.learn(thread)
        yield world
    world.check()


def played_on(url: str, names: Sequence[str], plan: Sequence[Any], state: Any) -> None:
    emptied(url)
    with Memory.open(url, embedder=None) as memory:
        for _ in played(memory.workspace("alex"), fitting(names, state), plan, state):
            continue


QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@pytest.mark.parametrize("state", [Plain, Delta], ids=["plain", "delta"])
def test_every_checkpoint_reads_what_the_model_says_on_sqlite(state: Any, sqlite_url: str) -> None:
    @settings(max_examples=5, suppress_health_check=QUIET)
    @given(names=shapes, plan=plans)
    # A call is answered in one branch, and its result erased in another.
    @example(
        names=["all", "all", "tools", "all"],
        plan=[("go_on", "a", 1), ("go_on", "a", 0), ("forget", "", 381)],
    )
    def holds(names: list[str], plan: list[Any]) -> None:
        played_on(sqlite_url, names, plan, state)

    holds()


@pytest.mark.parametrize("state", [Plain, Delta], ids=["plain", "delta"])
def test_every_checkpoint_reads_what_the_model_says_on_postgres(
    state: Any, postgres_url: str
) -> None:
    @settings(max_examples=5, suppress_health_check=QUIET)
    @given(names=shapes, plan=plans)
    def holds(names: list[str], plan: list[Any]) -> None:
        played_on(postgres_url, names, plan, state)

    holds()


# invariant I8 with real agents: whichever record is forgotten, the thread stays valid

AGENTS = [
    "parallel calls",
    "watched agent, still waiting",
    "agent in a tool",
    "structured",
    "summarizing",
    "agent on a delta channel",
]


@pytest.mark.parametrize("name", AGENTS)
def test_whichever_record_goes_the_thread_is_one_that_a_provider_takes(
    name: str, sqlite_url: str
) -> None:
    specimen = named(name)
    with Memory.open(sqlite_url, embedder=None) as memory:
        first, _ = _talk(specimen, memory.workspace("all"))
        count = len(list(first.export()))
        found: dict[int, list[str]] = {}
        for at in range(count):
            left, graph = _talk(specimen, memory.workspace(f"w{at}"))
            left.forget(ids=[list(left.export())[at].id])
            found[at] = _invalid(graph)
            way = Way("invoke")
            # Where the question itself was forgotten, it is asked again.
            for _ in range(4):
                state = graph.get_state({"configurable": {"thread_id": "t"}})
                if state.next:
                    way.run(graph, resumption(state), {"configurable": {"thread_id": "t"}})
                    found[at] += _invalid(graph)
            way.run(graph, specimen.then(), {"configurable": {"thread_id": "t"}})
            found[at] += _invalid(graph)
    assert count > 5
    assert {at: problems for at, problems in found.items() if problems} == {}


def _talk(specimen: Specimen, memory: Memory) -> tuple[Memory, Graph]:
    graph = specimen.build(DeLLMSaver(memory, **specimen.options))
    specimen.play(graph, {"configurable": {"thread_id": "t"}})
    return memory, graph


def _invalid(graph: Graph) -> list[str]:
    """Return what is wrong with the state of any checkpoint of the thread.

    An older checkpoint is between two steps, even if what was to come next was erased.
    """
    states = list(graph.get_state_history({"configurable": {"thread_id": "t"}}))
    return [
        f"{state.metadata['step']}: {one}"
        for at, state in enumerate(states)
        for one in pairing.problems(state.values.get("messages", []), paused=bool(at or state.next))
    ]
