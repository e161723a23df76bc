"""The chat history that can forget: as one of LangChain's, and in what it keeps besides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableLambda

from dellm import InvalidInput, Memory
from dellm_langchain.history import DeLLMChatMessageHistory

ALL_TYPES: list[BaseMessage] = [
    HumanMessage("hello"),
    HumanMessage("named", id="h-1", name="Ann", additional_kwargs={"a": [1, {"b": None}]}),
    HumanMessage([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]),
    AIMessage("reply", id="a-1", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    AIMessage("", tool_calls=[{"name": "look", "args": {"x": 1.5}, "id": "c-1"}], id="a-2"),
    ToolMessage("found", tool_call_id="c-1", artifact={"rows": [1, 2]}, status="error"),
    AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "so"}]),
    SystemMessage("be kind"),
    ChatMessage("spoken", role="moderator"),
    FunctionMessage("done", name="f"),
    AIMessageChunk("a chunk", id="lc_run--1"),
    HumanMessage("nul \x00 and \ud800 and 🦄"),
    RemoveMessage("gone-1"),
]  # fmt: skip


@pytest.fixture
def history(memory: Memory) -> DeLLMChatMessageHistory:
    return DeLLMChatMessageHistory(memory, "chat")


def test_every_message_comes_back_as_it_was_with_an_id_that_stays(
    history: DeLLMChatMessageHistory,
) -> None:
    given = [one.model_copy(deep=True) for one in ALL_TYPES]
    history.add_messages(given)
    assert all(one.id for one in given)
    first, second = history.messages, history.messages
    assert first == given == second
    assert [type(one) for one in first] == [type(one) for one in ALL_TYPES]
    assert not {id(one) for one in first} & {id(one) for one in second}


def test_the_async_methods_do_the_same(memory: Memory) -> None:
    async def run() -> list[BaseMessage]:
        history = DeLLMChatMessageHistory(memory, "chat")
        await history.aadd_messages([HumanMessage("one", id="1"), AIMessage("two", id="2")])
        found = await history.aget_messages()
        assert await history.alast(1) == found[1:]
        await history.aclear()
        assert await history.aget_messages() == []
        return found

    assert asyncio.run(run()) == [HumanMessage("one", id="1"), AIMessage("two", id="2")]


def test_messages_that_are_there_are_not_added_again(history: DeLLMChatMessageHistory) -> None:
    history.add_messages([HumanMessage("one"), HumanMessage("two", id="2")])
    history.add_messages([*history.messages, HumanMessage("two, edited", id="2")])
    history.add_user_message("three")
    history.add_ai_message("four")
    assert [one.text for one in history.messages] == ["one", "two", "three", "four"]


def test_a_record_without_a_message_reads_as_one_and_is_not_stored_twice(memory: Memory) -> None:
    first = memory.remember("I like tea", thread="chat")
    memory.remember("noted", role="assistant", thread="chat")
    history = DeLLMChatMessageHistory(memory, "chat")
    found = history.messages
    assert [one.type for one in found] == ["human", "ai"]
    assert len({one.id for one in found}) == 2
    history.add_messages([*found, HumanMessage("more")])
    assert len(history.messages) == 3
    memory.forget(ids=[first.id])
    history.add_messages(found)
    assert "I like tea" not in [one.text for one in history.messages]


def test_what_was_erased_is_not_brought_back_by_adding_it_again(
    memory: Memory, history: DeLLMChatMessageHistory
) -> None:
    history.add_messages([HumanMessage("my pin is 9183"), HumanMessage("nice day")])
    found = history.messages
    memory.forget("my pin is 9183")
    history.add_messages(found)
    assert [one.text for one in history.messages] == ["nice day"]
    assert memory.scan("9183", files=False).places == ()


def test_clear_forgets_the_thread_and_no_other(memory: Memory) -> None:
    one, other = (DeLLMChatMessageHistory(memory, name) for name in ("one", "other"))
    for history in (one, other):
        history.add_messages([HumanMessage(f"said in {history.thread}"), AIMessage("reply")])
    one.clear()
    one.clear()
    assert one.messages == []
    assert [each.text for each in other.messages] == ["said in other", "reply"]
    one.add_messages([HumanMessage("a new start")])
    assert [each.text for each in one.messages] == ["a new start"]


def test_the_last_messages_are_read_alone_with_the_call_of_a_result(
    history: DeLLMChatMessageHistory,
) -> None:
    calls = [{"name": "look", "args": {}, "id": f"c{n}"} for n in range(3)]
    history.add_messages(
        [
            *(HumanMessage(f"h{n}") for n in range(30)),
            AIMessage("", tool_calls=calls),
            *(ToolMessage(f"r{n}", tool_call_id=f"c{n}") for n in range(3)),
            AIMessage("so"),
        ]
    )
    whole = history.messages
    assert history.last(0) == []
    assert history.last(1) == whole[-1:]
    assert history.last(2) == history.last(5) == whole[-5:]
    assert history.last(7) == whole[-7:]
    assert history.last(99) == whole
    assert DeLLMChatMessageHistory(history.memory, "chat", last=3).messages == whole[-5:]


def test_a_reply_added_by_hand_goes_with_what_was_said_before_it(memory: Memory) -> None:
    history = DeLLMChatMessageHistory(memory, "chat")
    history.add_messages([HumanMessage("my pin is 9183"), AIMessage("it ends with 83")])
    history.add_messages([HumanMessage("nice day"), AIMessage("indeed")])
    reply = memory.history("chat")[3]
    assert memory.context_of(reply.id) == [2, 3]  # and through these on all before
    assert memory.dependents([1]) == [1, 2, 4]
    assert reply.metadata["inexact"] is True
    memory.forget("my pin is 9183")
    assert [one.text for one in history.messages] == ["nice day"]


def test_a_tools_result_goes_with_its_call_and_a_call_with_its_lost_result(
    memory: Memory, history: DeLLMChatMessageHistory
) -> None:
    calls = [{"name": "look", "args": {}, "id": name} for name in ("c1", "c2")]
    history.add_messages([HumanMessage("look"), AIMessage("", tool_calls=calls)])
    history.add_messages([ToolMessage("result one", tool_call_id="c1")])
    history.add_messages([ToolMessage("result two", tool_call_id="c2")])
    assert [memory.context_of(one) for one in (3, 4)] == [[2], [2]]
    memory.forget("result two")
    _, asked, result = history.messages
    assert isinstance(asked, AIMessage)
    assert [call["id"] for call in asked.tool_calls] == ["c1"]
    assert result.text == "result one"
    memory.forget(ids=[2])
    assert [one.text for one in history.messages] == ["look"]


def test_each_run_is_in_the_workspace_that_its_config_names(memory: Memory) -> None:
    history = DeLLMChatMessageHistory(memory, "chat", workspace="user_id")
    step = RunnableLambda(lambda text: history.add_messages([HumanMessage(text)]))
    for user in ("ann", "bob"):
        step.invoke(f"I am {user}", {"configurable": {"user_id": user}})
    assert [one.text for one in history.for_workspace("ann").messages] == ["I am ann"]
    assert [one.text for one in memory.workspace("bob").history("chat")] == ["I am bob"]
    with pytest.raises(InvalidInput, match="names no workspace"):
        step.invoke("nobody", {"configurable": {"user": "ann"}})
    with pytest.raises(InvalidInput, match="no config"):
        history.messages  # noqa: B018 - reading it asks the database


BAD: list[Callable[[Memory], Any]] = [
    lambda m: DeLLMChatMessageHistory(m, ""),
    lambda m: DeLLMChatMessageHistory(m, None),
    lambda m: DeLLMChatMessageHistory(m, "t", last=0),
    lambda m: DeLLMChatMessageHistory("m", "t"),  # type: ignore[arg-type] # which is the test
    lambda m: DeLLMChatMessageHistory(m, "t").last(-1),
    lambda m: DeLLMChatMessageHistory(m, "t").add_messages(["text"]),  # type: ignore[list-item] # so
]


@pytest.mark.parametrize("call", BAD)
def test_a_wrong_argument_is_an_error_of_ours(call: Callable[[Memory], Any]) -> None:
    with Memory.open(":memory:", embedder=None) as memory, pytest.raises(InvalidInput):
        call(memory)
