"""Odd values, odd names, big values and many at once: the saver keeps them or says clearly why not."""

from __future__ import annotations

import dataclasses
import enum
import itertools
import operator
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from dellm import Memory
from dellm.errors import DellmError
from dellm_langchain import DeLLMSaver

Graph = Any
NUMBERS = itertools.count(1)
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


class State(MessagesState):
    text: str
    anything: Any
    log: Annotated[list[Any], operator.add]


def echo(saver: Any, **update: Any) -> Graph:
    """Return a graph whose one node writes what it is told, messages anew each time."""

    def node(state: Any) -> Any:
        messages = [one.model_copy() for one in update.get("messages", [])]
        return {**update, "messages": messages}

    graph = StateGraph(State)
    graph.add_node("n", node)
    graph.add_edge(START, "n")
    return graph.compile(checkpointer=saver)


def config(name: Any = "t") -> Any:
    return {"configurable": {"thread_id": name}}


def kept(saver: Any, **values: Any) -> dict[str, Any]:
    """Put values in, have a node write them again, and return what is read."""
    graph = echo(saver, **values)
    graph.invoke(values, config())
    found = graph.get_state(config()).values
    for state in graph.get_state_history(config()):
        assert isinstance(state.values, dict)
    return found  # type: ignore[no-any-return]


ODD = [
    "nul \x00 inside",
    "\x00",
    "lone \ud800 surrogate",
    "\udfff\ud800",
    "both \x00 and \udc00 and é and 🙂",
    "",
    " ",
    "\u202e right to left",
    '{"__messages__": 1}',
    "\\x00 \\u0000 %s :name ? $1",
]


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_any_text_is_kept_in_every_kind_of_channel(text: str, memory: Memory) -> None:
    found = kept(DeLLMSaver(memory), text=text, anything={"in": [text]}, log=[text, Document(text)])
    assert found["text"] == text
    assert found["anything"] == {"in": [text]}
    assert found["log"] == [text, Document(text)] * 2


@pytest.mark.parametrize("text", [one for one in ODD if one.strip("\x00 ")], ids=ascii)
def test_any_text_is_kept_in_a_message_and_can_be_forgotten(text: str, memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    graph = echo(saver, messages=[AIMessage(f"{text} again", id="a")])
    given = [HumanMessage(text, id="m", additional_kwargs={"odd": text}), HumanMessage("x", id="x")]
    graph.invoke({"messages": given}, config())
    read = graph.get_state(config()).values["messages"]
    assert read == [*given, AIMessage(f"{text} again", id="a")]
    memory.forget(ids=[memory.history("t")[0].id])
    left = graph.get_state(config()).values["messages"]
    assert [one.id for one in left] == ["x"]


@settings(max_examples=40, suppress_health_check=QUIET, deadline=None)
@given(
    text=st.text(st.characters(codec=None), max_size=20),
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
        | st.text(max_size=5) | st.binary(max_size=5) | st.dates() | st.uuids(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.tuples(inner, inner) | st.sets(st.integers(0, 9), max_size=3),
        max_leaves=8,
    ),
)  # fmt: skip
def test_any_value_comes_back_as_the_stock_saver_gives_it(
    text: str, value: Any, memory: Memory
) -> None:
    ours, stock = DeLLMSaver(memory), InMemorySaver()
    memory_graph, stock_graph = (echo(one, text=text, anything=value) for one in (ours, stock))
    thread = config(f"fuzz {next(NUMBERS)}")
    for graph in (memory_graph, stock_graph):
        graph.invoke({"messages": [HumanMessage("hi", id="1")], "log": [value]}, thread)
    assert memory_graph.get_state(thread).values == stock_graph.get_state(thread).values


def nested(depth: int, leaf: Any) -> Any:
    for at in range(depth):
        leaf = [leaf] if at % 2 else {"in": leaf}
    return leaf


@pytest.mark.parametrize("depth", [50, 300, 1_100, 5_000])
@pytest.mark.parametrize("leaf", ["text", HumanMessage("deep", id="1")], ids=["text", "message"])
def test_deep_nesting_ends_as_with_the_stock_saver(depth: int, leaf: Any, memory: Memory) -> None:
    value = nested(depth, leaf)
    outcomes = []
    for saver in (InMemorySaver(), DeLLMSaver(memory)):
        try:
            found = echo(saver).invoke({"anything": value, "messages": []}, config())
            outcomes.append(depth_of(found["anything"]))
            read = echo(saver).get_state(config()).values["anything"]
            outcomes.append(depth_of(read))
        except (ValueError, TypeError, RecursionError, DellmError):
            outcomes.append(-1)
    half = len(outcomes) // 2
    assert outcomes[:half] == outcomes[half:]
    # What failed leaves the thread usable.
    assert kept(DeLLMSaver(memory), text="after")["text"] == "after"


def depth_of(value: Any) -> int:
    depth = 0
    while isinstance(value, (list, dict)):
        value = value[0] if isinstance(value, list) else value["in"]
        depth += 1
    return depth


def test_messages_of_five_megabytes_are_kept_and_forgotten(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    big = "canaryqzxv " + "lorem ipsum " * 430_000
    graph = echo(saver, messages=[AIMessage("short", id="a")], text="x" * 5_000_000)
    graph.invoke(
        {"messages": [HumanMessage(big, id="big"), HumanMessage("small", id="s")]}, config()
    )
    values = graph.get_state(config()).values
    assert [one.id for one in values["messages"]] == ["big", "s", "a"]
    assert values["messages"][0].content == big
    assert len(values["text"]) == 5_000_000
    memory.forget("canaryqzxv")
    assert [one.id for one in graph.get_state(config()).values["messages"]] == ["s"]
    assert memory.scan("canaryqzxv", files=False).places == ()
    assert memory.verify().ok


# types that the stock serializer does not know


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Card:
    title: str
    message: BaseMessage | None = None


class Page(BaseModel):
    title: str
    messages: list[HumanMessage] = []


class Opaque:
    """Nothing that msgpack can write."""


@pytest.mark.parametrize(
    "value",
    [
        Colour.RED,
        Card("a"),
        Card("a", HumanMessage("in a card", id="1")),
        Page(title="a"),
        Page(title="a", messages=[HumanMessage("on a page", id="1")]),
        [Card("a"), Page(title="b")],
        {"k": (Colour.RED, {Colour.RED})},
        Opaque(),
        lambda: None,
        threading.Lock(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_type_that_is_not_registered_gives_the_stock_warnings_and_values(
    value: Any, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    from langgraph.checkpoint.serde import jsonplus

    outcomes = []
    for saver in (InMemorySaver(), DeLLMSaver(memory)):
        caplog.clear()
        for name in ("_warned_unregistered_types", "_warned_blocked_types"):
            getattr(jsonplus, name, set()).clear()
        outcomes.append((_outcome(saver, value), sorted({one.message for one in caplog.records})))
    (stock, said), (ours, ours_said) = outcomes
    assert ours == stock
    assert {_type_named(one) for one in ours_said} == {_type_named(one) for one in said}


def _outcome(saver: Any, value: Any) -> Any:
    try:
        echo(saver).invoke({"anything": value, "messages": []}, config())
        return echo(saver).get_state(config()).values["anything"]
    except Exception as error:
        return type(error)


def _type_named(warning: str) -> str:
    return warning.split(" from checkpoint")[0]


# names


LONG = [
    "x" * 300,
    "é" * 5_000,
    "t" * 100_000,
    "a/b c%_'\"\\",
    "\u202et",
    "\x00id",
    "id\ud800",
    " padded ",
]


@pytest.mark.parametrize("name", LONG, ids=lambda one: ascii(one[:12]))
def test_any_thread_id_names_a_thread_of_its_own(name: str, memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    graph = echo(saver, text="kept")
    for one in (name, name + "2"):
        graph.invoke({"messages": [HumanMessage(one[-3:], id="m")]}, config(one))
    assert graph.get_state(config(name)).values["messages"][0].content == name[-3:]
    assert len([*saver.list(config(name))]) == 3
    saver.delete_thread(name)
    assert [*saver.list(config(name))] == []
    assert len([*saver.list(config(name + "2"))]) == 3
    saver.copy_thread(name + "2", "copied")
    assert graph.get_state(config("copied")).values["text"] == "kept"


def test_whole_numbers_and_their_texts_are_different_threads(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    ids = [1, "1", -1, "-1", "int:1", "str:1", 2**70, str(2**70)]
    for at, one in enumerate(ids):
        checkpoint = empty_checkpoint() | {
            "channel_values": {"messages": [HumanMessage(f"said {at}", id="m")]},
            "channel_versions": {"messages": 1},
        }
        where = {"configurable": {"thread_id": one, "checkpoint_ns": ""}}
        saver.put(where, checkpoint, {"source": "input", "step": -1}, {"messages": 1})
    assert [said(saver, one) for one in ids] == [[f"said {at}"] for at in range(len(ids))]
    memory.forget("said 0")
    assert [said(saver, one) for one in (1, "1")] == [[], ["said 1"]]
    saver.delete_thread("1")
    assert saver.get_tuple(config("1")) is None
    assert said(saver, 1) == []


def said(saver: DeLLMSaver, name: Any) -> list[str]:
    found = saver.get_tuple(config(name))
    assert found is not None
    assert found.config["configurable"]["thread_id"] == name
    return [one.text for one in found.checkpoint["channel_values"]["messages"]]


@pytest.mark.parametrize("name", [None, "", "  ", True, 1.5, b"x", ("a",)], ids=repr)
def test_an_id_that_names_no_thread_is_refused_clearly(name: Any, memory: Memory) -> None:
    with pytest.raises(DellmError, match="thread_id"):
        DeLLMSaver(memory).get_tuple(config(name))


def test_a_graph_of_two_hundred_channels_is_kept_and_forgets(memory: Memory) -> None:
    hints: Any = {f"c{at}": str for at in range(200)} | {"messages": list[Any]}
    graph = StateGraph(TypedDict("Many", hints, total=False))
    graph.add_node("n", lambda state: {f"c{at}": f"value {at} of canaryqzxv" for at in range(100)})
    graph.add_edge(START, "n")
    saver = DeLLMSaver(memory)
    compiled = graph.compile(checkpointer=saver)
    compiled.invoke({f"c{at}": f"given {at}" for at in range(50, 200)}, config())
    values = compiled.get_state(config()).values
    assert len(values) == 200
    assert values["c99"] == "value 99 of canaryqzxv"
    memory.forget("value 99 of canaryqzxv")
    values = compiled.get_state(config()).values
    assert values["c99"] == "given 99"
    assert values["c98"] == "value 98 of canaryqzxv"
    assert values["c199"] == "given 199"


# many at once


@contextmanager
def quick_switches() -> Iterator[None]:
    import sys

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_runs_on_many_threads_at_once_keep_apart(memory: Memory) -> None:
    saver = DeLLMSaver(memory)

    def chat(name: str) -> list[str]:
        graph = echo(saver, messages=[AIMessage(f"reply to {name}")])
        for turn in range(4):
            graph.invoke({"messages": [HumanMessage(f"{name} says {turn}")]}, config(name))
        return [one.text for one in graph.get_state(config(name)).values["messages"]]

    with quick_switches(), ThreadPoolExecutor(8) as pool:
        found = dict(zip("abcdefgh", pool.map(chat, "abcdefgh"), strict=True))
    for name, texts in found.items():
        assert texts == [
            text for turn in range(4) for text in (f"{name} says {turn}", f"reply to {name}")
        ]
    assert memory.verify().ok


def test_concurrent_writes_to_one_thread_lose_nothing_and_break_nothing(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    stop = threading.Event()
    wrong: list[BaseException] = []

    def reading() -> None:
        graph = echo(DeLLMSaver(memory))
        while not stop.is_set():
            try:
                for state in graph.get_state_history(config()):
                    assert all(one.content for one in state.values.get("messages", []))
            except BaseException as error:  # shown by the main thread
                wrong.append(error)
                return

    def writing(name: str) -> None:
        graph = echo(saver, messages=[AIMessage(f"reply to {name}")])
        for turn in range(3):
            graph.invoke({"messages": [HumanMessage(f"{name} says {turn}")]}, config())

    reader = threading.Thread(target=reading)
    reader.start()
    with quick_switches(), ThreadPoolExecutor(4) as pool:
        list(pool.map(writing, "abcd"))
    stop.set()
    reader.join(60)
    assert wrong == []
    stored = {one.text for one in memory.history("t")}
    assert {f"{name} says {turn}" for name in "abcd" for turn in range(3)} <= stored
    assert memory.verify().ok


def test_no_message_of_an_error_shows_what_a_value_says(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (Opaque(), {"canaryqzxv": Opaque()}, [HumanMessage("canaryqzxv"), Opaque()]):
            with pytest.raises(Exception) as caught:  # noqa: PT011 - the stock serializer's choice
                echo(saver).invoke(
                    {"anything": value, "messages": [SystemMessage("canaryqzxv")]}, config()
                )
            assert not isinstance(caught.value, DellmError) or "canaryqzxv" not in str(caught.value)
