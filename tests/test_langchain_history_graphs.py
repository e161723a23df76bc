"""Histories inside of graphs, graphs inside of chains, and messages that go from thread to thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from forgotten import holds
from graphs import Parrot, words
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.graph import START, MessagesState, StateGraph
from one_file import lite
from unheard import unheard

from dellm import Memory
from dellm_langchain import (
    DeLLMChatMessageHistory,
    DeLLMMiddleware,
    DeLLMSaver,
    track,
    with_memory,
)

__all__ = ["lite", "unheard"]

pytestmark = pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
WORD = "canaryqzxv"
SECRET = f"the code {WORD}"
Ask = Callable[[str], BaseMessage]


def on(thread: str) -> Any:
    return {"configurable": {"thread_id": thread, "session_id": thread}}


def said(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def history(memory: Memory, thread: object = "kb") -> DeLLMChatMessageHistory:
    return DeLLMChatMessageHistory(memory, thread)


def remembered(memory: Memory) -> Ask:
    chain = with_memory(Parrot(), memory, thread="kb", k=0, last=5)
    return chain.invoke


def stock(memory: Memory) -> Ask:
    chain = RunnableWithMessageHistory(Parrot(), lambda session_id: history(memory, session_id))
    return lambda text: chain.invoke(text, on("kb"))


def read(memory: Memory) -> Ask:
    return lambda _: AIMessage(
        "i read " + words(*(str(one.text) for one in history(memory).last(3)))
    )


def read_and_asked(memory: Memory) -> Ask:
    return lambda text: Parrot().invoke([*history(memory).messages, HumanMessage(text)])


def tracked(memory: Memory) -> Ask:
    model = track(Parrot(), memory, thread="kb")
    return lambda text: model.invoke([*history(memory).messages, HumanMessage(text)])


READERS = [remembered, stock, read, read_and_asked, tracked]


def assert_forgotten(memory: Memory, what: Any) -> None:
    """Forget just the statement, by its id: what repeats its words would be found by them."""
    assert holds(what(), WORD)
    memory.forget(ids=[min(one.id for one in memory.export() if one.text == SECRET)])
    assert not holds(what(), WORD)
    assert not memory.scan(WORD).places
    assert memory.verify().ok


def in_a_node(memory: Memory, ask: Ask, made: Callable[[BaseMessage], BaseMessage]) -> Any:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("ask", lambda state: {"messages": [made(ask(state["messages"][-1].text))]})
    graph.add_edge(START, "ask")
    history(memory).add_user_message(SECRET)
    history(memory, "lake").add_user_message("the lake is blue")
    agent: Any = graph.compile(checkpointer=DeLLMSaver(memory))
    agent.invoke(said("what is the code"), on("graph"))
    return agent


@pytest.mark.parametrize("reader", READERS)
def test_what_a_node_makes_of_a_history_goes_with_it(reader: Any, lite: Memory) -> None:
    for made in (lambda reply: reply, lambda reply: AIMessage("it says " + str(reply.text))):
        agent = in_a_node(lite, reader(lite), made)
        assert_forgotten(lite, lambda a=agent: a.get_state(on("graph")).values)
        left = agent.get_state(on("graph")).values["messages"]
        assert left[0].text == "what is the code"
    assert history(lite, "lake").messages[0].text == "the lake is blue"


def test_what_a_node_makes_of_a_history_goes_on_both_databases(memory: Memory) -> None:
    agent = in_a_node(memory, remembered(memory), lambda reply: AIMessage(f"so: {reply.text}"))
    assert_forgotten(memory, lambda: agent.get_state(on("graph")).values)


def test_a_reply_that_a_node_took_from_a_history_goes_with_the_reply(lite: Memory) -> None:
    agent = in_a_node(lite, remembered(lite), lambda reply: AIMessage(f"so: {reply.text}"))
    (reply,) = (one for one in lite.history("kb") if one.role == "assistant")
    lite.forget(ids=[reply.id])
    assert [one.type for one in agent.get_state(on("graph")).values["messages"]] == ["human"]


@pytest.mark.parametrize("reader", READERS)
def test_what_a_tool_makes_of_a_history_goes_with_it(reader: Any, lite: Memory) -> None:
    ask = reader(lite)

    @tool
    def consult(query: str) -> str:
        """Ask the other chain."""
        return f"it says {ask(query).text}"

    history(lite).add_user_message(SECRET)
    agent: Any = create_agent(
        Parrot(),
        [consult],
        middleware=[DeLLMMiddleware(lite, last=6)],
        checkpointer=DeLLMSaver(lite),
    )
    agent.invoke(said("the pear is green"), on("agent"))
    agent.invoke(said("call:consult(pear)"), on("agent"))
    assert_forgotten(lite, lambda: agent.get_state(on("agent")).values)
    assert holds(agent.get_state(on("agent")).values, "green")


def agent_inside(memory: Memory, take: Callable[[BaseMessage], Any]) -> Callable[[Any], Any]:
    """Return what a chain calls: an agent that was told the code, and answers with all it heard."""
    agent: Any = create_agent(
        Parrot(), [], middleware=[DeLLMMiddleware(memory, last=6)], checkpointer=DeLLMSaver(memory)
    )
    agent.invoke(said(SECRET), on("agent"))

    def call(heard: Any) -> Any:
        text = heard if isinstance(heard, str) else heard[-1].text
        return take(agent.invoke(said(str(text)), on("agent"))["messages"][-1])

    return call


def quoting(reply: BaseMessage) -> str:
    return f"it says {reply.text}"


def chained(memory: Memory, call: Callable[[Any], Any]) -> None:
    with_memory(RunnableLambda(call), memory, thread="out", k=0).invoke("pear")


def stock_chained(memory: Memory, call: Callable[[Any], Any]) -> None:
    RunnableWithMessageHistory(
        RunnableLambda(call), lambda session_id: history(memory, session_id)
    ).invoke("pear", on("out"))


def added_after(memory: Memory, call: Callable[[Any], Any]) -> None:
    reply = call("pear")
    reply = reply if isinstance(reply, BaseMessage) else AIMessage(reply)
    history(memory, "out").add_messages([HumanMessage("pear"), reply])


@pytest.mark.parametrize("take", [quoting, lambda reply: reply], ids=["quoted", "itself"])
@pytest.mark.parametrize("way", [chained, stock_chained, added_after])
def test_what_a_history_is_told_by_an_agent_goes_with_what_that_was_told(
    way: Any, take: Any, lite: Memory
) -> None:
    history(lite, "out").add_user_message("the lake is blue")
    way(lite, agent_inside(lite, take))
    assert_forgotten(lite, lambda: history(lite, "out").messages)
    assert [one.text for one in history(lite, "out").messages] == ["the lake is blue", "pear"]


@pytest.mark.parametrize("take", [quoting, lambda reply: reply], ids=["quoted", "itself"])
def test_what_a_history_is_told_by_an_agent_goes_with_its_reply(take: Any, lite: Memory) -> None:
    chained(lite, agent_inside(lite, take))
    lite.forget(ids=[[one for one in lite.history("agent") if one.role == "assistant"][-1].id])
    assert [one.text for one in history(lite, "out").messages] == ["pear"]


def copied(memory: Memory, messages: list[BaseMessage]) -> None:
    history(memory, "other").add_messages(messages)


def copies_copied(memory: Memory, messages: list[BaseMessage]) -> None:
    history(memory, "other").add_messages([one.model_copy() for one in messages])


def sent_to_a_model(memory: Memory, messages: list[BaseMessage]) -> None:
    track(Parrot(), memory, thread="other").invoke([*messages, HumanMessage("pear")])


def given_to_an_agent(memory: Memory, messages: list[BaseMessage]) -> None:
    agent: Any = create_agent(Parrot(), [], checkpointer=DeLLMSaver(memory))
    agent.invoke({"messages": [*messages, HumanMessage("pear")]}, on("other"))


TAKERS = [copied, copies_copied, sent_to_a_model, given_to_an_agent]


def by_a_history(memory: Memory) -> list[BaseMessage]:
    history(memory).add_messages([HumanMessage(SECRET), HumanMessage("the lake is blue")])
    return history(memory).messages


def by_an_agent(memory: Memory) -> list[BaseMessage]:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("rest", lambda _: {})
    graph.add_edge(START, "rest")
    built: Any = graph.compile(checkpointer=DeLLMSaver(memory))
    given = [HumanMessage(SECRET), HumanMessage("the lake is blue")]
    return built.invoke({"messages": given}, on("kb"))["messages"]  # type: ignore[no-any-return] # its state


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("giver", [by_a_history, by_an_agent])
def test_a_message_that_goes_from_thread_to_thread_goes_everywhere(
    giver: Any, taker: Any, lite: Memory
) -> None:
    taker(lite, giver(lite))
    first = lite.history("kb")[0].id
    assert WORD in str([one.text for one in lite.history("other")])
    lite.forget(ids=[first])
    left = [one.text for one in lite.history("other")]
    assert WORD not in str(left)
    assert left[0] == "the lake is blue"
    assert not lite.scan(WORD).places
