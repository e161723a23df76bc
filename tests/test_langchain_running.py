"""What running code keeps is made from what its task was told and has read, and goes with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from graphs import Parrot
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState

from dellm import Atom, Draft, InvalidInput, Keep, Memory
from dellm_langchain import DeLLMSaver
from dellm_langchain.running import here


def keep(memory: Memory, name: str, text: str, key: str | None = None) -> None:
    at = here(memory, key)
    with at.making() as made:
        draft = Draft(json.dumps({"is": text}), role="item", kind="state")
        atom = Atom(draft, made=made.sources)
        at.memory.items.put(
            "store", [Keep(("u",), name, atom)], thread=at.thread, trusted=made.trusted
        )


def read(memory: Memory, name: str) -> str:
    at = here(memory, None)
    (found,) = at.memory.items.get("store", [(("u",), name)])
    if found is None:
        return "nothing"
    at.read([found.record.id])
    return str(json.loads(found.record.text)["is"])


def names(memory: Memory) -> set[str]:
    return {one.name for one in memory.items.search("store", limit=99)}


def agent(memory: Memory, saver: Any, *, sees: bool = False) -> Any:
    @tool
    def save(query: str) -> str:
        """Keep it."""
        keep(memory, query, f"{query}ville")
        return "kept"

    @tool
    def save_seeing(query: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Keep it, having looked at the conversation."""
        keep(memory, query, f"{query}ville{len(state)}")
        return "kept"

    @tool
    def look(query: str) -> str:
        """Read it."""
        return read(memory, query)

    return create_agent(Parrot(), [save_seeing if sees else save, look], checkpointer=saver)


def say(graph: Any, text: str, thread: str = "t", **more: Any) -> str:
    config = {"configurable": {"thread_id": thread}}
    found = graph.invoke({"messages": [("user", text)]}, config, **more)
    return str(found["messages"][-1].text)


def test_what_a_tool_keeps_goes_with_its_call_and_not_with_what_was_said_beside(
    memory: Memory,
) -> None:
    graph = agent(memory, DeLLMSaver(memory))
    say(graph, "call:save(tea)")
    say(graph, "my code is quokka")
    say(graph, "call:save(paris)", "other")
    memory.forget("my code is quokka")
    assert names(memory) == {"paris", "tea"}
    memory.forget("call:save(paris)")
    assert names(memory) == {"tea"}
    assert memory.scan("paris", files=False).clean
    assert memory.verify().ok


def test_the_call_is_made_of_its_whole_prompt(memory: Memory) -> None:
    graph = agent(memory, DeLLMSaver(memory))
    say(graph, "my code is quokka")
    say(graph, "call:save(tea)")
    memory.forget("my code is quokka")  # the model that made the call had it in its prompt
    assert names(memory) == set()


@pytest.mark.parametrize("durability", ["async", "sync", "exit"])
def test_what_a_tool_that_looks_at_the_state_keeps_is_made_of_all_of_it(
    memory: Memory, durability: str
) -> None:
    graph = agent(memory, DeLLMSaver(memory), sees=True)
    say(graph, "my code is quokka", durability=durability)
    say(graph, "call:save_seeing(paris)", durability=durability)
    memory.forget("my code is quokka")
    assert names(memory) == set()
    assert memory.scan("parisville", files=False).clean


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_a_reply_that_read_a_kept_value_in_another_thread_goes_with_its_source(
    memory: Memory, durability: str
) -> None:
    graph = agent(memory, DeLLMSaver(memory))
    say(graph, "call:save(paris)", durability=durability)
    say(graph, "call:save(tea)", "other", durability=durability)
    assert "parisville" in say(graph, "call:look(paris)", "reader", durability=durability)
    assert "teaville" in say(graph, "call:look(tea)", "drinker", durability=durability)
    memory.forget("call:save(paris)")
    assert memory.scan("parisville", files=False).clean
    config = {"configurable": {"thread_id": "drinker"}}
    said = [one.text for one in graph.get_state(config).values["messages"]]
    assert any("teaville" in one for one in said)
    assert names(memory) == {"tea"}
    assert memory.verify().ok


def test_a_node_that_reads_and_says_it_in_a_prompt_of_its_own(memory: Memory) -> None:
    def answer(state: MessagesState) -> dict[str, Any]:
        told = ("system", f"You know: {read(memory, 'home')}")
        return {"messages": [Parrot().invoke([told, *state["messages"]])]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=DeLLMSaver(memory))
    keep(memory, "home", "paris")
    assert "paris" in say(graph, "where do I live?")
    (item,) = memory.items.search("store")
    memory.forget(ids=[item.record.id])
    assert memory.scan("paris", files=False).clean
    config = {"configurable": {"thread_id": "t"}}
    said = [one.text for one in graph.get_state(config).values["messages"]]
    assert said == ["where do I live?"]


def test_without_a_saver_of_ours_the_messages_become_records(memory: Memory) -> None:
    graph = agent(memory, InMemorySaver())
    say(graph, "call:save(paris)")
    assert names(memory) == {"paris"}
    memory.forget("call:save(paris)")
    assert names(memory) == set()


def test_outside_of_a_run_nothing_is_known_of_what_it_is_made_from(memory: Memory) -> None:
    keep(memory, "home", "paris")
    (item,) = memory.items.search("store")
    assert memory.context_of(item.record.id) == []


def test_the_workspace_is_taken_from_the_config_or_asked_for(memory: Memory) -> None:
    def note(state: MessagesState) -> dict[str, Any]:
        keep(memory, "home", "paris", "user_id")
        return {"messages": []}

    builder = StateGraph(MessagesState)
    builder.add_node("note", note)
    builder.add_edge(START, "note")
    graph = builder.compile(checkpointer=DeLLMSaver(memory, workspace="user_id"))
    config = {"configurable": {"thread_id": "t", "user_id": "sam"}}
    graph.invoke({"messages": [("user", "hello")]}, config)
    assert names(memory.workspace("sam")) == {"home"}
    assert names(memory) == set()
    with pytest.raises(InvalidInput, match="names no workspace"):
        builder.compile().invoke({"messages": []}, {"configurable": {"thread_id": "t"}})
    with pytest.raises(InvalidInput, match="no config"):
        keep(memory, "home", "paris", "user_id")
    other = builder.compile(checkpointer=DeLLMSaver(memory))
    with pytest.raises(InvalidInput, match="memories or workspaces"):
        other.invoke({"messages": []}, config)


def test_a_value_kept_after_its_source_was_forgotten_in_the_run_is_refused(
    memory: Memory,
) -> None:
    def note(state: MessagesState) -> dict[str, Any]:
        with here(memory, None).making():  # LangGraph stores the input while this runs; wait for it
            found = [one.id for one in memory.history("t")]
        memory.forget(ids=found)
        keep(memory, "code", "quokka")
        return {"messages": []}

    builder = StateGraph(MessagesState)
    builder.add_node("note", note)
    builder.add_edge(START, "note")
    graph = builder.compile(checkpointer=DeLLMSaver(memory))
    graph.invoke(
        {"messages": [("user", "my code is quokka")]}, {"configurable": {"thread_id": "t"}}
    )
    assert names(memory) == set()
    assert memory.scan("quokka", files=False).clean


class Given(MessagesState):
    note: Any


SAVERS = ("ours", "exit", "another", "none")


def keeper(memory: Memory, saver: str, *nodes: Any) -> Callable[..., Any]:
    """Return a function that gives a graph what it runs on in a thread, and returns its state.

    Its last node keeps the note, under the name of the thread and spelled backwards: only an edge
    tells that it was made of the note.
    """

    def store(state: Given, config: RunnableConfig) -> None:
        keep(memory, config["configurable"]["thread_id"], repr(state["note"])[::-1])

    builder = StateGraph(Given)
    builder.add_sequence([*nodes, ("store", store)])
    builder.add_edge(START, nodes[0][0] if nodes else "store")
    savers = {"another": InMemorySaver(), "none": None}
    graph: Any = builder.compile(checkpointer=savers.get(saver, DeLLMSaver(memory)))
    more = {"durability": "exit"} if saver == "exit" else {}

    def run(thread: str, **given: Any) -> Any:
        config = {"configurable": {"thread_id": thread}}
        return graph.invoke({"messages": [("user", thread)], **given}, config, **more)

    return run


def holding(memory: Memory, word: str) -> list[int]:
    return [one.id for one in memory.export() if word in one.text]


@pytest.mark.parametrize("note", ["quokka", ["tea", "quokka"], {"code": "quokka"}, ("quokka", 1)])
@pytest.mark.parametrize("saver", SAVERS)
def test_what_is_kept_of_any_channels_value_goes_with_each_record_of_that(
    memory: Memory, saver: str, note: Any
) -> None:
    run = keeper(memory, saver)
    run("other", note="apples")
    for at, thread in ((0, "one"), (-1, "two")):
        run(thread, note=note)
        assert names(memory) == {"other", thread}
        teas = len(holding(memory, "tea"))
        memory.forget(ids=[holding(memory, "quokka")[at]])
        assert names(memory) == {"other"}
        assert memory.scan("quokka", files=False).clean
        assert len(holding(memory, "tea")) == teas
    assert holding(memory, "apples")
    assert memory.verify().ok


@pytest.mark.parametrize("saver", SAVERS)
def test_a_value_that_is_given_again_after_it_was_forgotten_counts_as_new(
    memory: Memory, saver: str
) -> None:
    run = keeper(memory, saver)
    for _ in range(2):
        run("t", note="quokka")
        assert names(memory) == {"t"}
        memory.forget(ids=holding(memory, "quokka")[:1])
        assert names(memory) == set()


@pytest.mark.parametrize("saver", SAVERS)
def test_what_a_node_made_of_a_channel_is_made_of_what_it_could_read(
    memory: Memory, saver: str
) -> None:
    def rewrite(state: Given) -> dict[str, Any]:
        return {"note": f"it is {state['messages'][-1].text[::-1]}"}

    run = keeper(memory, saver, ("rewrite", rewrite))
    run("quokka")
    run("apples")
    memory.forget(ids=holding(memory, "quokka")[:1])
    assert names(memory) == {"apples"}
    assert memory.scan("quokka"[::-1], files=False).clean
    assert holding(memory, "it is selppa")


def test_with_another_saver_what_an_earlier_run_was_given_is_kept_no_more_once_it_is_forgotten(
    memory: Memory,
) -> None:
    run = keeper(memory, "another")
    run("t", note="quokka")
    memory.forget(ids=holding(memory, "quokka"))
    assert names(memory) == set()
    run("t")  # the other saver has the note still
    assert names(memory) == set()
    assert memory.scan("quokka", files=False).clean


@pytest.mark.parametrize("saver", ["exit", "ours"])
def test_what_is_forgotten_in_the_run_that_was_given_it_is_not_stored_at_its_end(
    memory: Memory, saver: str
) -> None:
    def forget(state: Given) -> None:
        keep(memory, "early", repr(state["note"])[::-1])
        memory.forget(ids=holding(memory, "quokka"))

    run = keeper(memory, saver, ("forget", forget))
    run("t", note="quokka")
    assert names(memory) == set()
    assert memory.scan("quokka", files=False).clean
    assert [one.text for one in memory.history("t")] == ["t"]


def test_with_all_steps_stored_at_once_what_was_given_is_not_made_of_what_stands_beside_it(
    memory: Memory,
) -> None:
    run = keeper(memory, "exit")
    run("t", note="quokka")
    memory.forget(ids=[one.id for one in memory.history("t")])
    assert names(memory) == set()  # the node could read that, too
    assert holding(memory, "quokka")


def test_what_is_given_to_a_later_run_is_not_what_an_earlier_one_has_kept_of(
    memory: Memory,
) -> None:
    def store(state: Given) -> None:
        if state["messages"][-1].text == "keep":
            keep(memory, "kept", repr(state["note"])[::-1])

    builder = StateGraph(Given)
    builder.add_sequence([store])
    builder.add_edge(START, "store")
    graph: Any = builder.compile(checkpointer=DeLLMSaver(memory))
    for text in ("keep", "later"):
        given = {"messages": [("user", text)], "note": "quokka"}
        graph.invoke(given, {"configurable": {"thread_id": "t"}}, durability="exit")
    memory.forget(ids=[holding(memory, "quokka")[-1]])
    assert names(memory) == {"kept"}
    assert memory.verify().ok


def inside(memory: Memory, said: Callable[[Given], str]) -> Callable[[Given], None]:
    """Return a node that says something backwards to a graph inside it, which keeps that."""

    def store(state: MessagesState) -> None:
        keep(memory, "inside", state["messages"][-1].text)

    builder = StateGraph(MessagesState)
    builder.add_sequence([store])
    builder.add_edge(START, "store")
    inner: Any = builder.compile()

    def ask(state: Given) -> None:
        inner.invoke({"messages": [("user", said(state)[::-1])]})

    return ask


@pytest.mark.parametrize("at", [0, -1])
def test_a_message_of_which_only_a_subgraph_kept_something_is_tied_to_that_when_it_is_stored(
    memory: Memory, at: int
) -> None:
    builder = StateGraph(Given)
    builder.add_node("ask", inside(memory, lambda state: state["messages"][-1].text))
    builder.add_edge(START, "ask")
    graph: Any = builder.compile(checkpointer=DeLLMSaver(memory))
    config = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [("user", "quokka")]}, config, durability="exit")
    memory.forget(ids=[holding(memory, "quokka")[at]])
    assert names(memory) == set()
    assert graph.get_state(config).values == {"messages": []}
    assert memory.scan("quokka", files=False).clean


@pytest.mark.parametrize("at", [0, -1])
@pytest.mark.parametrize("form", ["pair", "message", "note", "pair as a note"])
@pytest.mark.parametrize("saver", SAVERS)
def test_what_a_subgraph_keeps_goes_with_what_the_run_around_it_was_given(
    memory: Memory, saver: str, form: str, at: int
) -> None:
    """The state of the subgraph has it in other words only."""

    def said(state: Given) -> str:
        return str((state.get("note") or [state["messages"][-1].text])[-1])

    given: dict[str, dict[str, Any]] = {
        "pair": {"messages": [("user", "quokka")]},
        "message": {"messages": [HumanMessage("quokka")]},
        "note": {"note": ["quokka"]},
        "pair as a note": {"note": ("user", "quokka")},
    }
    run = keeper(memory, saver, ("ask", inside(memory, said)))
    run("t", **{"note": "", **given[form]})
    assert "inside" in names(memory)
    memory.forget(ids=[holding(memory, "quokka")[at]])
    assert names(memory).isdisjoint({"inside", "t"})
    assert memory.scan("akkouq", files=False).clean
    assert memory.verify().ok
