"""Cached replies go with what they were made from, and bring nothing back that was erased.

The model repeats all it was shown. A hit answers a prompt of another thread that says the same, so
what it gives depends on both; the controls say what must still be there.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from graphs import CLEAN, HEARD, STATEMENT, WORD, Noted, Parrot, Way, chat, latest, named
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState

from dellm import Memory, Record
from dellm_langchain import DeLLMCache, DeLLMChatMessageHistory, DeLLMSaver
from dellm_langchain.capture import captured
from dellm_langchain.waiting_values import waiting

WAYS = [Way("invoke"), Way("ainvoke"), Way("stream"), Way("astream"), Way("invoke", "exit")]
on_sqlite = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    HEARD.clear()
    yield
    set_llm_cache(None)


def prompt_of(state: Any) -> list[BaseMessage]:
    return [SystemMessage("You are kind"), *latest(state["messages"])]


def talking(memory: Memory, cache: Any = None, saver: Any = None) -> Any:
    """Return a graph that answers the newest message, and notes what it makes of that, both cached."""
    model = Parrot(cache=cache or DeLLMCache(memory))

    def noting(state: Any) -> str:
        return f"note {state['messages'][-1].text}"

    async def areply(state: Any) -> Any:
        return {"messages": [await model.ainvoke(prompt_of(state))]}

    async def anote(state: Any) -> Any:
        return {"note": (await model.ainvoke(noting(state))).text}

    return chat(
        Noted,
        RunnableLambda(lambda state: {"messages": [model.invoke(prompt_of(state))]}, areply),
        RunnableLambda(lambda state: {"note": model.invoke(noting(state)).text}, anote),
    ).compile(checkpointer=saver or DeLLMSaver(memory))


def tell(graph: Any, thread: str, *texts: str, way: Way = WAYS[0]) -> dict[str, Any]:
    config = {"configurable": {"thread_id": thread}}
    for text in texts:
        way.run(graph, {"messages": [HumanMessage(text)]}, config)
    return dict(graph.get_state(config).values)


def said(memory: Memory, thread: str) -> list[Record]:
    return [one for one in memory.history(thread) if one.kind == "message"]


def texts(memory: Memory, thread: str) -> list[str]:
    return [one.text for one in said(memory, thread)]


def the(memory: Memory, thread: str, text: str) -> int:
    """Return the record of the newest message that holds a text."""
    return next(one.id for one in reversed(said(memory, thread)) if text in one.text)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_what_a_hit_gave_goes_with_what_the_entry_was_made_from(memory: Memory, way: Way) -> None:
    graph = talking(memory)
    tell(graph, "a", CLEAN[0], STATEMENT, way=way)
    asked = len(HEARD)
    tell(graph, "b", CLEAN[0], STATEMENT, way=way)
    assert len(HEARD) == asked, "the second thread is answered from the cache"
    assert WORD in str(tell(graph, "b"))
    memory.forget(ids=[the(memory, "a", STATEMENT)])
    # What thread b was told itself stays, and nothing but that.
    assert [one for one in texts(memory, "b") if WORD in one] == [STATEMENT]
    assert memory.scan(WORD, files=False).places[0].count == 1
    assert len(texts(memory, "a")) == 2
    assert len(texts(memory, "b")) == 3
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean
    assert WORD not in str([tell(graph, one) for one in "ab"])
    if way.durability != "exit":  # there a note is taken to be made of all that its thread has read
        assert len(memory.items.search("llm")) == 2
        asked = len(HEARD)
        tell(graph, "c", CLEAN[0], way=way)
        assert len(HEARD) == asked, "the control is still cached"
    asked = len(HEARD)
    tell(graph, "c", STATEMENT, way=way)
    assert len(HEARD) == asked + 2, "the model is asked again"
    assert memory.verify().ok


def test_a_reply_forgotten_in_any_thread_is_not_given_again(memory: Memory) -> None:
    graph = talking(memory)
    for thread in ("a", "b", "c"):
        tell(graph, thread, STATEMENT, CLEAN[0])
    memory.forget(ids=[the(memory, "b", "reply")])
    asked = len(HEARD)
    assert WORD in str(texts(memory, "a")[1]), (
        "the reply that the entry was made of was not made of it"
    )
    tell(graph, "d", CLEAN[0])
    assert len(HEARD) == asked + 1, "the note is of the reply in thread a as well, which stays"
    # The first reply goes with the entry that copies it, and with all that was given from there.
    memory.forget(ids=[the(memory, "a", f"{WORD}")])
    for thread in ("a", "b", "c"):
        assert [one for one in texts(memory, thread) if WORD in one] in ([STATEMENT], [])
    asked = len(HEARD)
    tell(graph, "e", STATEMENT)
    assert len(HEARD) == asked + 2
    assert memory.verify().ok


def test_an_entry_stays_where_a_reply_from_it_goes_with_its_own_prompt(memory: Memory) -> None:
    graph = talking(memory)
    for thread in ("a", "b"):
        tell(graph, thread, STATEMENT)
    entries = {one.record.id for one in memory.items.search("llm")}
    memory.forget(ids=[the(memory, "b", STATEMENT)])
    assert texts(memory, "b") == []
    assert len(texts(memory, "a")) == 2
    assert {one.record.id for one in memory.items.search("llm")} == entries
    asked = len(HEARD)
    tell(graph, "c", STATEMENT)
    assert len(HEARD) == asked
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean
    assert memory.items.search("llm") == []


@on_sqlite
def test_an_entry_of_which_little_is_known_goes_with_any_reply_from_it(memory: Memory) -> None:
    model = Parrot(cache=DeLLMCache(memory))
    model.invoke([*prompt_of({"messages": [HumanMessage(STATEMENT)]})])
    tell(talking(memory), "b", STATEMENT)
    memory.forget(ids=[the(memory, "b", STATEMENT)])
    assert memory.scan(WORD, files=False).clean


@on_sqlite
def test_a_suppressed_reply_is_not_given_again(memory: Memory) -> None:
    graph = talking(memory)
    for thread in ("a", "b"):
        tell(graph, thread, STATEMENT)
    receipt = memory.forget(ids=[the(memory, "b", "reply")], mode="suppress")
    asked = len(HEARD)
    tell(graph, "c", STATEMENT)
    assert len(HEARD) > asked
    memory.restore(receipt)
    assert WORD in texts(memory, "b")[-1]
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean


def test_no_wording_of_the_question_brings_it_back(memory: Memory) -> None:
    graph = talking(memory)
    wordings = ("what is my code", "tell me the code", "code?")
    model = Parrot(cache=DeLLMCache(memory))
    everything = chat(
        MessagesState, RunnableLambda(lambda state: {"messages": [model.invoke(state["messages"])]})
    ).compile(checkpointer=DeLLMSaver(memory))
    for at, wording in enumerate(wordings):
        tell(everything, f"t{at}", CLEAN[0], STATEMENT, wording)
    tell(graph, "control", CLEAN[1])
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean
    assert len(memory.items.search("llm")) == 3
    for at, wording in enumerate(wordings):
        assert WORD not in str(tell(everything, f"t{at}", wording))
        assert WORD not in str(tell(everything, "new", wording))
    assert len(texts(memory, "control")) == 2


@on_sqlite
def test_a_stock_cache_does_bring_it_back(memory: Memory) -> None:
    cache = InMemoryCache()
    graph = talking(memory, cache)
    for thread in ("a", "b"):
        tell(graph, thread, STATEMENT)
    memory.forget(STATEMENT)
    assert WORD in repr(cache._cache)
    asked = len(HEARD)
    tell(graph, "c", STATEMENT)
    assert len(HEARD) == asked


def test_an_entry_is_found_by_what_it_says(memory: Memory) -> None:
    """Without any graph nobody knows what the prompt was made of; but the reply says it."""
    set_llm_cache(DeLLMCache(memory))
    model = Parrot()
    model.invoke(f"what is {WORD}")
    model.invoke("what is tea")
    assert len(memory.plan(WORD)) == 1
    memory.forget(WORD)
    assert memory.scan(WORD, files=False).clean
    model.invoke(f"what is {WORD}")
    model.invoke("what is tea")
    assert len(HEARD) == 3


def test_a_late_reply_to_what_was_erased_is_not_kept(memory: Memory) -> None:
    began, go = threading.Event(), threading.Event()

    class Slow(Parrot):
        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            if WORD in str(messages):
                began.set()
                go.wait(10)
            return super()._generate(messages, *args, **kwargs)

    model = Slow(cache=DeLLMCache(memory))
    graph = chat(
        MessagesState, RunnableLambda(lambda state: {"messages": [model.invoke(state["messages"])]})
    ).compile(checkpointer=DeLLMSaver(memory))
    tell(graph, "a", CLEAN[0])
    run = threading.Thread(target=tell, args=(graph, "a", STATEMENT))
    run.start()
    assert began.wait(10)
    while STATEMENT not in texts(memory, "a"):  # the input is stored beside the run
        time.sleep(0.001)
    memory.forget(STATEMENT)
    go.set()
    run.join()
    assert memory.scan(WORD, files=False).clean
    assert len(memory.items.search("llm")) == 1
    assert texts(memory, "a")[:1] == [CLEAN[0]]
    assert memory.verify().ok


@on_sqlite
def test_a_hit_given_while_its_source_is_forgotten_is_not_kept(memory: Memory) -> None:
    graph = talking(memory)
    tell(graph, "a", STATEMENT)
    first = the(memory, "a", STATEMENT)

    def forgetting(state: Any) -> Any:
        reply = Parrot(cache=DeLLMCache(memory)).invoke(prompt_of(state))
        memory.forget(ids=[first])
        return {"messages": [reply], "note": reply.text}

    other = chat(Noted, RunnableLambda(forgetting)).compile(checkpointer=DeLLMSaver(memory))
    tell(other, "b", STATEMENT)
    assert texts(memory, "b") == [STATEMENT]
    assert tell(other, "b").get("note", "") == ""
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean


@on_sqlite
def test_a_system_prompt_said_beside_a_hit_is_not_made_of_it(memory: Memory) -> None:
    graph = talking(memory)
    tell(graph, "a", STATEMENT)
    tell(graph, "b", STATEMENT, CLEAN[0], CLEAN[1])
    memory.forget(ids=[the(memory, "a", STATEMENT)])
    left = texts(memory, "b")
    assert left[0] == STATEMENT
    assert len(left) == 5, "the later turns say the same system prompt, and stay"


@on_sqlite
def test_replies_hold_exactly_their_prompt_and_the_entry(memory: Memory) -> None:
    graph = talking(memory)
    for thread in ("a", "b"):
        tell(graph, thread, CLEAN[0])
    entry = next(one.record for one in memory.items.search("llm") if "note" not in one.record.text)
    for thread, more in (("a", set()), ("b", {entry.id})):
        human, reply = said(memory, thread)
        kinds = {one.id: one.kind for one in map(memory.get, memory.context_of(reply.id))}
        assert {human.id, *more} <= kinds.keys()
        assert len(kinds) == 2 + len(more)
    human = said(memory, "a")[0]
    assert human.id in memory.context_of(entry.id)


@on_sqlite
def test_models_of_text_bring_nothing_back(memory: Memory) -> None:
    model = FakeListLLM(responses=[f"it is {WORD}", "fine"], cache=DeLLMCache(memory))
    graph = chat(
        Noted, RunnableLambda(lambda state: {"note": model.invoke(state["messages"][-1].text)})
    ).compile(checkpointer=DeLLMSaver(memory))
    for thread in ("a", "b"):
        assert WORD in tell(graph, thread, "say it")["note"]
    tell(graph, "c", "and you?")
    memory.forget(ids=[the(memory, "a", "say it")])
    assert memory.scan(WORD, files=False).clean
    assert "note" not in tell(graph, "b")
    assert tell(graph, "c")["note"] == "fine"


@on_sqlite
def test_without_our_saver_an_entry_goes_with_the_messages_of_its_graph(memory: Memory) -> None:
    graph = talking(memory, saver=InMemorySaver())
    tell(graph, "a", CLEAN[0])
    tell(graph, "b", STATEMENT)
    assert not memory.scan(WORD, files=False).clean
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean
    assert len(memory.items.search("llm")) == 2


@pytest.mark.parametrize("method", ["invoke", "ainvoke"])
def test_a_chat_history_ties_cached_replies_too(memory: Memory, method: str) -> None:
    model = Parrot(cache=DeLLMCache(memory))
    prompt = ChatPromptTemplate.from_messages(
        [("system", "be kind"), MessagesPlaceholder("history"), ("human", "{said}")]
    )
    with pytest.warns(Warning, match="RunnableWithMessageHistory"):
        talk = RunnableWithMessageHistory(
            prompt | model,
            lambda session_id: DeLLMChatMessageHistory(memory, session_id),
            input_messages_key="said",
            history_messages_key="history",
        )

    def tell_it(thread: str, text: str) -> None:
        config: Any = {"configurable": {"session_id": thread}}
        if method == "invoke":
            talk.invoke({"said": text}, config)
        else:
            asyncio.run(talk.ainvoke({"said": text}, config))

    for thread in ("a", "b"):
        tell_it(thread, STATEMENT)
        tell_it(f"{thread} clean", CLEAN[0])
    assert len(HEARD) == 2
    memory.forget(ids=[the(memory, "a", STATEMENT)])
    assert texts(memory, "b") == [STATEMENT]
    assert texts(memory, "a") == []
    assert len(memory.items.search("llm")) == 1
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean
    assert [one.type for one in DeLLMChatMessageHistory(memory, "b clean").messages] == [
        "human",
        "ai",
    ]
    # An entry made of a prompt with earlier messages goes with these, and its copies with it.
    tell_it("a clean", CLEAN[1])
    memory.forget(ids=[the(memory, "a clean", CLEAN[0])])
    assert texts(memory, "a clean") == [CLEAN[1]]
    assert memory.items.search("llm") == []


SHAPES = [
    "functional",
    "agent in a tool",
    "summarizing",
    "fan-out",
    "every kind of channel",
    "subgraph",
]


@on_sqlite
@pytest.mark.parametrize("name", SHAPES)
def test_graphs_of_any_shape_forget_what_they_got_from_a_cache(memory: Memory, name: str) -> None:
    specimen = named(name)
    set_llm_cache(DeLLMCache(memory))
    graph = specimen.build(DeLLMSaver(memory, **specimen.options))
    for thread in ("t", "u"):
        specimen.play(graph, {"configurable": {"thread_id": thread}})
    assert memory.items.search("llm")
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean
    assert memory.verify().ok


@on_sqlite
def test_an_entry_goes_when_what_it_is_to_be_tied_to_was_just_forgotten(memory: Memory) -> None:
    def answered(_: str) -> Any:
        model.invoke("tell me")
        return captured.around().runs

    model = Parrot(cache=DeLLMCache(memory))
    runs = RunnableLambda(answered).invoke("")
    assert len(memory.items.search("llm")) == 1
    asked = memory.remember("the question")
    memory.forget(ids=[asked.id])  # between storing it and tying the entry to it
    waiting.tie(memory, runs, [asked.id])
    assert memory.items.search("llm") == []
