"""The smallest graphs in which a forget once left something behind, or took too much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import pytest
from forgotten import holds, remains, spared, taken, thread
from graphs import (
    CLEAN,
    INVOKE,
    STATEMENT,
    WORD,
    Delta3,
    Form,
    Graph,
    Parrot,
    Twice,
    Way,
    asks,
    bot,
    fan,
    latest,
    named,
    of_nodes,
    words,
)
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langgraph.graph import MessagesState
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Send, interrupt

from dellm import Memory
from dellm_langchain import DeLLMSaver

EXIT = Way("invoke", "exit")


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


def said(*texts: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text) for text in texts]}


def texts(graph: Graph, name: str = "t") -> list[str]:
    return [one.text for one in graph.get_state(thread(name)).values["messages"]]


def kept(memory: Memory, graph: Graph, saver: DeLLMSaver) -> list[str]:
    """Return every place that gives the secret away."""
    return remains(saver, graph, thread()) + [
        str(one) for one in memory.scan(WORD, files=False).places
    ]


# what a user answers to an interrupt


def test_what_was_made_of_an_answer_goes_with_the_answer(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    graph = of_nodes(asks)(saver)
    graph.invoke(said(CLEAN[0]), thread())
    graph.invoke(Command(resume=STATEMENT), thread())
    memory.forget(STATEMENT)
    assert kept(memory, graph, saver) == []


def test_a_second_question_made_of_the_first_answer_goes_with_it(memory: Memory) -> None:
    def twice(state: Any) -> Any:
        interrupt(f"second {words(interrupt('first'))}")
        return {}

    saver = DeLLMSaver(memory)
    graph = of_nodes(twice)(saver)
    graph.invoke(said(CLEAN[0]), thread())
    graph.invoke(Command(resume=STATEMENT), thread())
    memory.forget(STATEMENT)
    assert kept(memory, graph, saver) == []


# Sends


def test_sends_of_the_first_edge_go_with_the_input_they_were_made_of(memory: Memory) -> None:
    def branch(state: Any) -> list[Send]:
        return [Send("work", {"item": words(state["messages"][-1].text)})]

    saver = DeLLMSaver(memory)
    graph = fan(branch, lambda state: {"results": ["done"]})(saver)
    graph.invoke(said(STATEMENT), thread())
    memory.forget(STATEMENT)
    assert kept(memory, graph, saver) == []


def test_sends_that_may_be_made_of_the_secret_go_and_leave_no_gap_behind_the_last(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    """LangGraph logs a warning for each gap whenever it reads the checkpoint."""

    def branch(state: Any) -> list[Send]:
        return [Send("work", {"item": one}) for one in state["messages"]]

    saver = DeLLMSaver(memory)
    graph = fan(branch, lambda state: {"results": [state["item"].text]})(saver)
    graph.invoke(said("river", STATEMENT, "hill"), thread())
    sends = [one for one in memory.export() if one.text.startswith("work")]
    assert all(parent < one.id for one in sends for parent in memory.context_of(one.id))
    memory.forget(STATEMENT)
    assert kept(memory, graph, saver) == []
    for one in list(saver.list(thread())):
        assert not one.checkpoint["channel_values"].get("__pregel_tasks")
        assert not holds(graph.invoke(None, one.config))
    assert caplog.messages == []


# durability="exit": one checkpoint for a whole run


def by_hand(state: Any) -> Any:
    return {
        "messages": [Parrot().invoke([HumanMessage(f"Go on {words(state['messages'][-1].text)}")])]
    }


def as_string(state: Any) -> Any:
    return {"messages": [Parrot().invoke(f"Go on {words(state['messages'][-1].text)}")]}


def without_model(state: Any) -> Any:
    return {"messages": [AIMessage(f"noted {words(state['messages'][-1].text)}")]}


def rewritten(state: Any) -> Any:
    first = state["messages"][0]
    return {"messages": [first.model_copy(update={"content": words(state["messages"][-1].text)})]}


def in_place(state: Any) -> Any:
    state["messages"][0].content = words(state["messages"][-1].text)
    return {}


@pytest.mark.parametrize("node", [by_hand, as_string, without_model, rewritten, in_place])
def test_what_one_run_made_of_its_input_goes_though_only_its_end_was_stored(
    node: Callable[[Any], Any], memory: Memory
) -> None:
    saver = DeLLMSaver(memory)
    graph = of_nodes(node)(saver)
    graph.invoke(said(CLEAN[0]), thread(), durability="exit")
    graph.invoke(said(STATEMENT), thread(), durability="exit")
    memory.forget(STATEMENT)
    assert kept(memory, graph, saver) == []


def test_a_reply_goes_though_it_is_stored_before_the_message_it_answers(memory: Memory) -> None:
    """Channels are written in the order of the schema: the reply's comes first."""

    def reply(state: Any) -> Any:
        made = Parrot().invoke(latest(state["messages"]))
        return {"last": made, "messages": [made]}

    saver = DeLLMSaver(memory)
    graph = of_nodes(reply, state=Twice)(saver)
    graph.invoke(said(CLEAN[0]), thread(), durability="exit")
    graph.invoke(said(STATEMENT), thread(), durability="exit")
    memory.forget(STATEMENT)
    assert kept(memory, graph, saver) == []


RAW: dict[str, Callable[[str], Any]] = {
    "pair": lambda text: ("user", text),
    "dict": lambda text: {"role": "user", "content": text},
    "text": lambda text: text,
}


def by_latest(state: Any) -> Any:
    return {"messages": [Parrot().invoke(latest(state["messages"]))]}


@pytest.mark.parametrize("form", RAW.values(), ids=RAW)
def test_what_a_run_was_given_raw_comes_before_what_was_made_of_it_though_only_its_end_was_stored(
    form: Callable[[str], Any], memory: Memory
) -> None:
    saver = DeLLMSaver(memory)
    graph = of_nodes(by_latest, without_model)(saver)
    given = [CLEAN[0], STATEMENT, "The lake is deep."]
    for text in given:
        graph.invoke({"messages": [form(text)]}, thread(), durability="exit")
    said_by_user = [one for one in memory.history("t") if one.role == "user"]
    assert [(one.text, memory.context_of(one.id)) for one in said_by_user] == [
        (text, []) for text in given
    ]
    for one in memory.history("t"):
        assert all(parent < one.id for parent in memory.context_of(one.id))
    memory.forget(STATEMENT)
    assert kept(memory, graph, saver) == []
    assert [one for one in texts(graph) if one in given] == [CLEAN[0], "The lake is deep."]
    assert len(texts(graph)) == 5  # what only may be made of it goes as well


class Noted(MessagesState):
    notes: str


def noting(state: Any) -> Any:
    return {"notes": f"note {words(state['messages'][-1].text)}"}


def summing(state: Any) -> Any:
    summary = Parrot().invoke([HumanMessage(f"Sum {words(state['messages'][-1].text)}")])
    made = HumanMessage(f"In short: {summary.text}")
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), made, state["messages"][-1]]}


SHAPES = {
    "two of unknown sources": (without_model, without_model),
    "a summary before what it sums": (summing, by_latest, without_model),
    "a state and a reply": (noting, without_model, by_latest, noting),
}


@pytest.mark.parametrize("nodes", SHAPES.values(), ids=SHAPES)
def test_what_was_surely_made_of_a_value_is_no_source_of_it_though_only_a_runs_end_was_stored(
    nodes: Sequence[Callable[[Any], Any]], memory: Memory
) -> None:
    saver = DeLLMSaver(memory)
    graph = of_nodes(*nodes, state=Noted)(saver)
    for text in (CLEAN[0], STATEMENT):
        graph.invoke({"messages": [("user", text)]}, thread(), durability="exit")
    assert memory.verify().problems == ()
    for one in memory.export():
        unsure = [parent for parent in memory.context_of(one.id) if parent >= one.id]
        assert not unsure or one.metadata["inexact"]
    memory.forget(STATEMENT)
    assert kept(memory, graph, saver) == []


def test_a_message_that_a_node_made_of_what_was_given_raw_goes_with_it(memory: Memory) -> None:
    """It says the same, so only which of them comes first can tell."""

    def repeating(state: Any) -> Any:
        return {"messages": [HumanMessage(state["messages"][-1].text)]}

    saver = DeLLMSaver(memory)
    graph = of_nodes(repeating)(saver)
    graph.invoke({"messages": [("user", STATEMENT)]}, thread(), durability="exit")
    first, second = memory.history("t")
    assert (memory.context_of(first.id), memory.context_of(second.id)) == ([], [first.id])


# taking too much


class Logged(MessagesState):
    log: Annotated[list[str], lambda left, right: [*left, *right]]


def logging(state: Any) -> Any:
    return {"log": [f"heard {words(state['messages'][-1].text)}"]}


def test_items_of_a_list_from_before_the_secret_stay(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    graph = of_nodes(logging, state=Logged)(saver)
    graph.invoke(said(CLEAN[0]), thread())
    first = graph.get_state(thread()).values["log"]
    graph.invoke(said(STATEMENT), thread())
    memory.forget(STATEMENT)
    assert graph.get_state(thread()).values["log"] == first


def test_a_list_that_grows_stores_each_item_once(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    graph = of_nodes(logging, state=Logged)(saver)
    for at in range(6):
        graph.invoke(said(f"item {at}"), thread())
    stored = [one.text for one in memory.export() if one.kind == "state"]
    assert sorted(stored) == sorted(set(stored))


def test_a_system_prompt_that_says_the_same_each_time_taints_nothing(memory: Memory) -> None:
    """Made anew for each call, as in most examples; it said the same before the secret was."""

    def kindly(state: Any) -> Any:
        prompt = [SystemMessage("Be kind"), *latest(state["messages"])]
        return {"messages": [Parrot().invoke(prompt)]}

    saver = DeLLMSaver(memory)
    graph = of_nodes(kindly)(saver)
    for text in (CLEAN[0], STATEMENT, CLEAN[1]):
        graph.invoke(said(text), thread())
    before = graph.get_state(thread()).values["messages"]
    memory.forget(STATEMENT)
    assert graph.get_state(thread()).values["messages"] == spared(before, ())


def test_what_was_said_in_place_of_the_secret_stays(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    graph = bot(latest)(saver)
    graph.invoke(said(CLEAN[0]), thread())
    graph.update_state(thread(), {"messages": [HumanMessage(STATEMENT, id="m")]}, "n0")
    graph.update_state(thread(), {"messages": [HumanMessage("never mind", id="m")]}, "n0")
    memory.forget(STATEMENT)
    assert texts(graph)[-1] == "never mind"
    assert kept(memory, graph, saver) == []


def test_an_agent_in_a_tool_depends_on_the_call_alone(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    graph = named("agent in a tool, lone").build(saver)
    for text in (STATEMENT, f"{CLEAN[1]} call:expert"):
        graph.invoke(said(text), thread())
    before = graph.get_state(thread()).values["messages"]
    assert not any(holds(one) for one in before[2:])
    memory.forget(STATEMENT)
    assert graph.get_state(thread()).values["messages"] == before[2:]


# reading


def test_a_default_also_takes_the_place_of_an_erased_input(memory: Memory) -> None:
    def form(state: Form) -> Any:
        return {"notes": [words(state.topic)]}

    saver = DeLLMSaver(memory, defaults={"topic": ""})
    graph = of_nodes(form, state=Form)(saver)
    graph.invoke({"topic": STATEMENT}, thread())
    memory.forget(STATEMENT)
    first = list(graph.get_state_history(thread()))[-1]
    assert graph.invoke(None, first.config)["topic"] == ""


def test_metadata_reads_the_same_before_and_after_a_forget(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    graph = bot(latest, Delta3)(saver)
    for text in (CLEAN[0], STATEMENT):
        INVOKE.run(graph, said(text), thread())
    before = [one.metadata for one in taken(saver, graph, thread()).tuples.values()]
    memory.forget(STATEMENT)
    assert [one.metadata for one in taken(saver, graph, thread()).tuples.values()] == before
    fresh = DeLLMSaver(memory)
    assert [one.metadata for one in fresh.list(thread())] == before


def test_a_listing_before_a_checkpoint_needs_no_thread_there(memory: Memory) -> None:
    saver = DeLLMSaver(memory)
    graph = bot()(saver)
    graph.invoke(said(CLEAN[0]), thread())
    newest = graph.get_state(thread()).config["configurable"]["checkpoint_id"]
    before: Any = {"configurable": {"checkpoint_id": newest}}
    assert len(list(saver.list(thread(), before=before))) == 2
