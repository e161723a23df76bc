"""An agent's summaries follow their sources: made anew from what stays, erased where that fails.

The model repeats its whole prompt, so a summary holds the odd word of the sentence it was made of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import graphs
import pytest
from graphs import HEARD, STATEMENT, WORD, Parrot, Way, Window, latest, told, words
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from one_file import lite
from unheard import unheard

from dellm import InvalidInput, Memory, Record
from dellm_langchain import DeLLMSaver
from dellm_langchain.made_texts import LEAD
from dellm_langchain.summarizer import DeLLMSummarizer

__all__ = ["lite", "unheard"]

Config = dict[str, Any]
TALK = ("an apple", STATEMENT, "a boat", "a clock")


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


class Writer:
    """Stands for a model that writes summaries; may be told to fail, or to have its own memory."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.does: Callable[[str], str] = lambda prompt: f"in short: {words(prompt)}"

    def __call__(self, prompt: Any) -> str:
        self.asked.append(str(prompt))
        return self.does(str(prompt))


def thread(name: str = "t", **more: str) -> Config:
    return {"configurable": {"thread_id": name, **more}}


def agent(
    saver: DeLLMSaver, summarizer: DeLLMSummarizer, *, whole: bool = False, **options: Any
) -> Any:
    """Return an agent that summarizes all but the newest two of five messages.

    Its model sees only the newest human message and what came after, or the `whole` conversation.
    """
    options = {"trigger": ("messages", 5), "keep": ("messages", 2), "token_counter": len, **options}
    middleware = SummarizationMiddleware(Parrot(), summarizer=summarizer, **options)
    seen = [] if whole else [Window(latest)]
    return create_agent(Parrot(), [], middleware=[middleware, *seen], checkpointer=saver)


def play(graph: Any, *texts: str, way: Way = graphs.INVOKE, config: Config | None = None) -> None:
    for text in texts:
        way.run(graph, {"messages": [HumanMessage(text)]}, config or thread())


def summaries(memory: Memory) -> list[Record]:
    return [one for one in memory.export() if one.kind == "summary"]


def said(memory: Memory, text: str) -> int:
    """Return the record of what a human said."""
    return next(one.id for one in memory.export() if one.text == text and one.role == "user")


def texts(memory: Memory, ids: list[int]) -> list[str]:
    return [memory.get(one).text for one in ids]


WAYS = [
    ("sqlite", Way("invoke")),
    ("sqlite", Way("stream")),
    ("sqlite", Way("ainvoke")),
    ("sqlite", Way("astream")),
    ("sqlite", Way("invoke", "exit")),
    ("sqlite", Way("ainvoke", "sync")),
    ("postgres", Way("invoke")),
    ("postgres", Way("ainvoke")),
]


@pytest.mark.parametrize(("url", "way"), WAYS, indirect=["url"], ids=str)
def test_summaries_are_rebuilt_without_a_forgotten_message_wherever_they_stood(
    memory: Memory, way: Way
) -> None:
    saver, summarizer = DeLLMSaver(memory), DeLLMSummarizer(Parrot(), memory)
    lone, whole = (agent(saver, summarizer, whole=one) for one in (False, True))
    play(lone, *TALK[:3], way=way)
    play(whole, TALK[3], way=way)
    first, second = summaries(memory)
    assert texts(memory, memory.context_of(first.id))[::2] == ["an apple", STATEMENT]
    assert [one.id for one in summaries(memory)][:1] == memory.context_of(second.id)[:1]
    reply = whole.get_state(thread()).values["messages"][-1]
    assert all(WORD in one for one in (first.text, second.text, reply.text))
    kept = [one for one in memory.export() if WORD not in one.text]

    HEARD.clear()
    receipt = memory.forget(STATEMENT)
    assert not any(WORD in told(prompt) for prompt in HEARD)
    assert len(HEARD) == 2
    assert (list(receipt.rebuilt), receipt.not_rebuilt) == ([first.id, second.id], 0)
    old, new = (memory.get(receipt.rebuilt[one.id]) for one in (first, second))
    assert all(one.text.startswith(f"{LEAD}reply") for one in (old, new))
    assert ("apple" in old.text, "boat" in old.text) == (True, False)
    assert ("apple" in new.text, "boat" in new.text) == (True, True)
    assert memory.context_of(new.id)[0] == old.id
    assert kept == [one for one in memory.export() if one.id not in {old.id, new.id}]

    listed = [one.values.get("messages", []) for one in whole.get_state_history(thread())]
    assert not any(WORD in told(messages) for messages in listed)
    shown = [messages[0].text for messages in listed if messages]
    assert shown[0] == new.text
    assert way.durability == "exit" or old.text in shown
    assert [one.id for one in listed[0]][:1] == [second.framework_id]
    assert [one.text for one in listed[0]][-1] == "a clock"
    assert listed[0][0].additional_kwargs == {"lc_source": "summarization"}
    assert not memory.scan(WORD, files=False).places

    play(whole, "a door", "an egg", way=way)
    assert new.id in memory.dependents([old.id])
    assert not memory.scan(WORD, files=False).places
    assert memory.verify().ok


def test_forgetting_what_was_not_summarized_leaves_the_summary_as_it_is(memory: Memory) -> None:
    graph = agent(DeLLMSaver(memory), DeLLMSummarizer(Parrot(), memory))
    play(graph, "an apple", "a boat", STATEMENT, "a clock")
    last = said(memory, "a clock")
    before = summaries(memory)
    assert len(before) == 2
    receipt = memory.forget(ids=[last])
    assert (dict(receipt.rebuilt), receipt.not_rebuilt) == ({}, 0)
    assert summaries(memory) == before
    receipt = memory.forget(STATEMENT)
    assert list(receipt.rebuilt) == [before[1].id]
    assert summaries(memory)[0] == before[0]
    assert not memory.scan(WORD, files=False).places


def test_a_value_that_the_summary_repeats_is_forgotten_and_the_summary_rebuilt(
    lite: Memory,
) -> None:
    graph = agent(DeLLMSaver(lite), DeLLMSummarizer(Parrot(), lite))
    play(graph, *TALK[:3])
    receipt = lite.forget(WORD)
    assert len(receipt.rebuilt) == 1
    assert "apple" in summaries(lite)[0].text
    assert not lite.scan(WORD).places


def fails(_: str) -> str:
    raise RuntimeError(WORD)


@pytest.mark.parametrize(
    "does", [fails, lambda _: "", lambda _: f"the code is {WORD}"], ids=["error", "blank", "leaks"]
)
def test_a_summary_that_cannot_be_rebuilt_is_erased(
    does: Callable[[str], str], lite: Memory
) -> None:
    writer = Writer()
    graph = agent(DeLLMSaver(lite), DeLLMSummarizer(RunnableLambda(writer), lite))
    play(graph, *TALK)
    assert len(summaries(lite)) == 2
    writer.does = does
    receipt = lite.forget(WORD)
    assert (dict(receipt.rebuilt), receipt.not_rebuilt) == ({}, 2)
    assert summaries(lite) == []
    assert not lite.scan(WORD).places
    messages = graph.get_state(thread()).values["messages"]
    assert [one.text for one in messages if isinstance(one, HumanMessage)] == ["a clock"]
    play(graph, "and on")


def test_a_process_without_the_summarizer_erases_the_summary(
    lite: Memory, sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    play(agent(DeLLMSaver(lite), DeLLMSummarizer(Parrot(), lite)), *TALK)
    other = opened(sqlite_url, embedder=None).workspace("alex")
    assert other.plan(STATEMENT).rebuilds == ()
    assert dict(other.forget(STATEMENT).rebuilt) == {}
    assert (summaries(lite), lite.scan(WORD).places) == ([], ())


def test_another_process_with_the_summarizer_rebuilds_the_summary(
    lite: Memory, sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    graph = agent(DeLLMSaver(lite), DeLLMSummarizer(Parrot(), lite))
    play(graph, *TALK)
    other = opened(sqlite_url, embedder=None).workspace("alex")
    DeLLMSummarizer(Parrot(), other)
    assert len(other.forget(STATEMENT).rebuilt) == 2
    play(graph, "and on", "further", "to the end")  # with what it still had in memory
    assert lite.scan(WORD).places == ()
    assert lite.verify().ok


def test_the_parents_are_only_the_messages_that_were_left_to_summarize(lite: Memory) -> None:
    graph = agent(
        DeLLMSaver(lite), DeLLMSummarizer(Parrot(), lite),
        trigger=("messages", 9), trim_tokens_to_summarize=2,
    )  # fmt: skip
    play(graph, STATEMENT, "an apple", "a boat", "a clock", "a door")
    (only,) = summaries(lite)
    humans = [one for one in lite.context_of(only.id) if lite.get(one).role == "user"]
    assert texts(lite, humans) == ["a clock"]
    assert dict(lite.forget(STATEMENT).rebuilt) == {}
    assert summaries(lite) == [only]


def test_a_message_that_was_cut_to_fit_is_still_the_one_it_was_made_from(lite: Memory) -> None:
    writer = Writer()
    middleware = SummarizationMiddleware(
        Parrot(), trigger=("messages", 5), keep=("messages", 2), trim_tokens_to_summarize=40,
        token_counter=lambda messages: sum(len(one.text.split()) for one in messages),
        summarizer=DeLLMSummarizer(RunnableLambda(writer), lite),
    )  # fmt: skip
    graph = create_agent(
        Parrot(), [], middleware=[middleware, Window(lambda _: [HumanMessage("hm")])],
        checkpointer=DeLLMSaver(lite),
    )  # fmt: skip
    long = "\n".join(f"line {number} of it" for number in range(30))
    play(graph, long, STATEMENT, "a boat")
    (only,) = summaries(lite)
    assert "line 29" in writer.asked[0]
    assert "line 2 " not in writer.asked[0]
    assert texts(lite, lite.context_of(only.id))[:1] == [long]
    assert "inexact" not in only.metadata


def test_a_summary_is_tied_to_its_own_messages_though_others_were_summarized_alike(
    lite: Memory,
) -> None:
    writer = Writer()
    writer.does = lambda _: "They talked."
    graph = agent(DeLLMSaver(lite), DeLLMSummarizer(RunnableLambda(writer), lite))
    for name, first in (("one", "an apple"), ("two", STATEMENT), ("three", "an egg")):
        play(graph, first, "a boat", "a clock", "a door", config=thread(name))
    found = {
        name: [one for one in summaries(lite) if one.thread == name] for name in ("one", "two")
    }
    assert [len(some) for some in found.values()] == [2, 2]
    receipt = lite.forget(STATEMENT)
    assert list(receipt.rebuilt) == [one.id for one in found["two"]]
    assert [one for one in summaries(lite) if one.thread == "one"] == found["one"]


def test_each_run_is_in_the_workspace_that_its_config_names(lite: Memory) -> None:
    saver = DeLLMSaver(lite, workspace="user_id")
    summarizer = DeLLMSummarizer(Parrot(), lite, workspace="user_id")
    graph = agent(saver, summarizer)
    for name in ("ann", "bob"):
        play(graph, *TALK, config=thread(user_id=name))
    ann, bob = lite.workspace("ann"), lite.workspace("bob")
    before = list(bob.export())
    assert len(ann.forget(STATEMENT).rebuilt) == 2
    assert list(bob.export()) == before
    with pytest.raises(InvalidInput, match="user_id"):
        summarizer.invoke([HumanMessage("said", id="1")])
    twin = summarizer.for_workspace("ann")
    assert "said" in twin.invoke([HumanMessage("said", id="1")])
    play(agent(saver.for_workspace("cid"), summarizer.for_workspace("cid")), *TALK)
    assert len(lite.workspace("cid").forget(STATEMENT).rebuilt) == 2


def test_the_workspace_of_the_saver_counts_where_the_summarizer_is_told_none(
    lite: Memory,
) -> None:
    saver = DeLLMSaver(lite, workspace="user_id")
    play(agent(saver, DeLLMSummarizer(Parrot(), lite)), *TALK, config=thread(user_id="ann"))
    assert len(lite.workspace("ann").forget(STATEMENT).rebuilt) == 2


def test_an_agent_inside_of_a_graph_summarizes_as_one_alone(lite: Memory) -> None:
    summarizer = DeLLMSummarizer(Parrot(), lite)
    middleware = SummarizationMiddleware(
        Parrot(), trigger=("messages", 5), keep=("messages", 2), summarizer=summarizer
    )
    inner = create_agent(Parrot(), [], middleware=[middleware, Window(latest)])
    graph = StateGraph(MessagesState)
    graph.add_node("inner", inner)
    graph.add_edge(START, "inner")
    outer = graph.compile(checkpointer=DeLLMSaver(lite))
    play(outer, *TALK)
    assert summaries(lite)
    assert all("inexact" not in one.metadata for one in summaries(lite))
    receipt = lite.forget(STATEMENT)
    assert (len(receipt.rebuilt) > 0, receipt.not_rebuilt) == (True, 0)
    assert lite.scan(WORD).places == ()
    play(outer, "and on")
    assert lite.scan(WORD).places == ()


@pytest.mark.parametrize("whole", [False, True], ids=["lone", "whole"])
def test_a_summary_that_is_being_made_of_what_is_forgotten_is_not_stored(
    whole: bool, memory: Memory
) -> None:
    writer = Writer()

    def forgetful(prompt: str) -> str:
        if len(writer.asked) == 1:
            memory.forget(STATEMENT)
        return f"in short: {words(prompt)}"

    writer.does = forgetful
    graph = agent(DeLLMSaver(memory), DeLLMSummarizer(RunnableLambda(writer), memory), whole=whole)
    play(graph, *TALK[:3])
    assert WORD in writer.asked[0]
    assert (summaries(memory), memory.scan(WORD, files=False).places) == ([], ())
    play(graph, *TALK[2:], *TALK[2:])
    assert summaries(memory)
    assert memory.scan(WORD, files=False).places == ()
    assert memory.verify().ok


def test_a_copied_thread_gets_the_rebuilt_summary_too(lite: Memory) -> None:
    writer = Writer()
    saver = DeLLMSaver(lite)
    graph = agent(saver, DeLLMSummarizer(RunnableLambda(writer), lite))
    play(graph, *TALK[:3])
    saver.copy_thread("t", "u")
    receipt = lite.forget(STATEMENT)
    assert (len(receipt.rebuilt), len(writer.asked)) == (2, 2)
    heads = [graph.get_state(thread(name)).values["messages"] for name in "tu"]
    assert [one.text for one in heads[0]] == [one.text for one in heads[1]]
    assert heads[0][0].text.startswith(f"{LEAD}in short")
    assert lite.scan(WORD).places == ()


def by_hand(saver: DeLLMSaver, put: Callable[[str], BaseMessage], summarizer: Any) -> Any:
    """Return a graph that puts each summary into a message of its own making."""

    def shorten(state: Any) -> Any:
        text = summarizer.invoke(state["messages"][:1])
        kept = state["messages"][1:]
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), put(text), *kept]}

    graph = StateGraph(MessagesState)
    graph.add_node("shorten", shorten)
    graph.add_edge(START, "shorten")
    return graph.compile(checkpointer=saver)


def test_a_summary_put_into_a_message_with_more_may_be_made_of_all_that_was_read(
    lite: Memory,
) -> None:
    summarizer = DeLLMSummarizer(Parrot(), lite)
    graph = by_hand(DeLLMSaver(lite), lambda text: HumanMessage(f"Note: {text}"), summarizer)
    graph.invoke({"messages": [("user", "an apple"), ("user", STATEMENT)]}, thread())
    assert summaries(lite) == []
    assert dict(lite.forget(STATEMENT).rebuilt) == {}
    assert [one.text for one in graph.get_state(thread()).values["messages"]] == []


def test_a_bare_summary_is_tied_to_its_messages_alone(lite: Memory) -> None:
    summarizer = DeLLMSummarizer(Parrot(), lite)
    graph = by_hand(DeLLMSaver(lite), HumanMessage, summarizer)
    graph.invoke({"messages": [("user", "an apple"), ("user", STATEMENT)]}, thread())
    (only,) = summaries(lite)
    assert texts(lite, lite.context_of(only.id)) == ["an apple"]
    assert only.text.startswith("reply")
    lite.forget(STATEMENT)
    assert summaries(lite) == [only]
    lite.forget("an apple")
    assert summaries(lite) == []


def test_a_forget_inside_of_a_run_streams_no_summary_and_ties_nothing_to_it(lite: Memory) -> None:
    saver = DeLLMSaver(lite)
    play(agent(saver, DeLLMSummarizer(Parrot(), lite)), *TALK)

    def forgets(_: Any) -> Any:
        return {"messages": [AIMessage(f"gone: {len(lite.forget(STATEMENT).rebuilt)}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("forgets", forgets)
    graph.add_edge(START, "forgets")
    other = graph.compile(checkpointer=saver)
    asked = {"messages": [HumanMessage("forget it")]}
    streamed = list(other.stream(asked, thread("u"), stream_mode="messages"))
    assert [one.text for one, _ in streamed] == ["gone: 2"]
    ids = {one.id for one in lite.history("u")}
    assert {parent for one in ids for parent in lite.context_of(one)} <= {
        one.id for one in lite.export() if one.thread == "u"
    }


def test_many_summaries_at_once_do_not_wait_for_each_other(lite: Memory) -> None:
    graph = agent(DeLLMSaver(lite), DeLLMSummarizer(Parrot(), lite))

    async def talk(name: str) -> None:
        for text in TALK:
            await graph.ainvoke({"messages": [HumanMessage(f"{text} {name}")]}, thread(name))

    async def all_talk() -> None:
        await asyncio.gather(*(talk(name) for name in ("one", "two", "three")))

    asyncio.run(all_talk())
    assert len(lite.forget(STATEMENT).rebuilt) == 6
    assert lite.scan(WORD).places == ()


@pytest.mark.parametrize(
    "wrong",
    [{"memory": None}, {"model": 7}, {"prompt": "Summarize!"}],
    ids=lambda one: next(iter(one)),
)
def test_a_summarizer_needs_a_model_a_memory_and_a_place_for_the_messages(
    wrong: dict[str, Any], opened: Callable[..., Memory]
) -> None:
    given = {"model": Parrot(), "memory": opened(":memory:", embedder=None), **wrong}
    with pytest.raises(InvalidInput):
        DeLLMSummarizer(given.pop("model"), given.pop("memory"), **given)
