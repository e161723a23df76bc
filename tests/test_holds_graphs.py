"""Threads of agents under a hold: they read without what is held, stay valid, and go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agents import at, say
from graphs import HEARD, Parrot
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool

from dellm import Memory, depth
from dellm_langchain import DeLLMSaver
from dellm_langchain.history import DeLLMChatMessageHistory
from dellm_langchain.store import DeLLMStore

SECRET = "zanzibar"


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    HEARD.clear()
    return opened(url, embedder=None).workspace("alex")


@tool
def look(query: str) -> str:
    """Look something up."""
    return f"nothing about {len(query)} letters"


def agent(memory: Memory) -> Any:
    return create_agent(Parrot(), [look], checkpointer=DeLLMSaver(memory))


def messages(graph: Any) -> Sequence[BaseMessage]:
    return graph.get_state(at()).values.get("messages", [])


def is_valid(found: Sequence[BaseMessage]) -> bool:
    """Whether each call has its result and each result its call, in order."""
    open_: set[str] = set()
    for one in found:
        if isinstance(one, ToolMessage):
            if one.tool_call_id not in open_:
                return False
            open_.discard(one.tool_call_id)
        elif open_:
            return False
        if isinstance(one, AIMessage):
            open_ = {call["id"] or "" for call in one.tool_calls}
    return not open_


def test_whatever_is_held_of_a_thread_it_stays_valid_and_comes_back(memory: Memory) -> None:
    graph = agent(memory)
    say(graph, f"call:look my word is {SECRET}")
    say(graph, "and now?")
    whole = [one.id for one in messages(graph)]
    assert is_valid(messages(graph))
    assert any(isinstance(one, ToolMessage) for one in messages(graph))
    for record in list(memory.history("t")):
        hold = memory.holds.place(ids=[record.id], basis="case 1", by="counsel")
        left = messages(graph)
        assert is_valid(left)
        assert record.framework_id not in {one.id for one in left}
        assert memory.verify().ok
        assert memory.holds.release(hold.number) == []
        assert [one.id for one in messages(graph)] == whole
    assert memory.verify().ok


def test_whatever_is_suppressed_alone_of_a_thread_it_stays_valid(memory: Memory) -> None:
    graph = agent(memory)
    say(graph, f"call:look my word is {SECRET}")
    whole = [one.id for one in messages(graph)]
    for record in list(memory.history("t")):
        receipt = memory.forget(ids=[record.id], mode="suppress", reach=depth(0))
        assert is_valid(messages(graph))
        memory.restore(receipt)
        assert [one.id for one in messages(graph)] == whole
    memory.forget(thread="t", mode="suppress")
    DeLLMSaver(memory).delete_thread("t")
    assert memory.verify().ok


def test_an_agent_goes_on_in_a_held_thread_and_is_told_nothing_of_it(memory: Memory) -> None:
    graph = agent(memory)
    say(graph, f"call:look my word is {SECRET}")
    memory.holds.place(thread="t", basis="case 1", by="counsel")
    HEARD.clear()
    say(graph, "what is my word?")
    assert HEARD
    assert SECRET not in repr(HEARD)
    assert SECRET not in repr(messages(graph))
    assert is_valid(messages(graph))
    assert messages(graph)[0].text == "what is my word?"
    asyncio.run(DeLLMSaver(memory).adelete_thread("t"))
    assert list(messages(graph)) == []
    assert memory.history("t") == []
    assert memory.verify().ok
    said = memory.holds.release(1)
    assert sum(map(len, said)) > 4
    assert memory.scan(SECRET).places == ()
    assert memory.verify().ok


def test_a_store_and_a_history_go_on_under_a_hold(memory: Memory) -> None:
    store, history = DeLLMStore(memory), DeLLMChatMessageHistory(memory, "u")
    store.put(("a",), "n", {"text": SECRET})
    history.add_user_message(SECRET)
    memory.holds.place(everything=True, basis="case 1", by="counsel")
    assert (store.get(("a",), "n"), history.messages) == (None, [])
    store.put(("a",), "n", {"text": "new"})
    history.add_user_message("hello")
    found = store.get(("a",), "n")
    assert found is not None
    assert (found.value, [one.text for one in history.messages]) == ({"text": "new"}, ["hello"])
    assert [one.value for one in store.search(())] == [{"text": "new"}]
    history.clear()
    asyncio.run(store.adelete(("a",), "n"))
    assert (store.get(("a",), "n"), history.messages) == (None, [])
    memory.holds.release(1)
    assert memory.scan("new").places == ()
    assert [one.value for one in store.search(())] == []
    assert memory.verify().ok
