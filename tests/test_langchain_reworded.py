"""What was made of something in other words goes with it, wherever it was read.

Whoever reads says it backwards, and what is forgotten is named by its id: neither the words of a
reply nor the plan by value can tell what it was made of, only an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from agents import at
from chain_ways import Ways
from documents import CANARY, DIMENSIONS, SECRET, Words
from graphs import HEARD, Parrot
from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, ToolMessage
from langchain_core.outputs import Generation
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import CachePolicy
from typing_extensions import TypedDict
from unheard import unheard

from dellm import Memory
from dellm_langchain import (
    DeLLMCache,
    DeLLMChatMessageHistory,
    DeLLMNodeCache,
    DeLLMRetriever,
    DeLLMSaver,
    DeLLMStore,
    track,
    with_memory,
)

__all__ = ["unheard"]

BACKWARDS = CANARY[::-1]
Read = Callable[[], str]
ways = Ways({"configurable": {"thread_id": "t", "session_id": "t"}})


class Mirror(Parrot):
    """Says all words of its prompt backwards."""

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        reply = super()._reply(messages, kwargs)
        return AIMessage(reply.text[::-1], tool_calls=reply.tool_calls)


class Shelf(BaseRetriever):
    """A retriever of one's own, over no vector store."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(SECRET)]


def the(memory: Memory, text: str, **fields: str) -> int:
    """Return the first record that holds a text, and is what the fields say."""
    found = [one for one in memory.export() if text in one.text]
    return next(
        one.id for one in found if all(getattr(one, key) == it for key, it in fields.items())
    )


def of_a_memory(memory: Memory) -> Read:
    memory.remember(SECRET)
    retriever = DeLLMRetriever(memory=memory, by="keyword", k=1)
    return lambda: retriever.invoke("vault")[0].page_content


def of_a_vector_store(memory: Memory) -> Read:
    tracked = track(InMemoryVectorStore(Words()), memory)
    tracked.add_texts([SECRET])
    return lambda: tracked.similarity_search("vault", k=1)[0].page_content  # type: ignore[no-any-return] # a str


def of_a_retriever(memory: Memory) -> Read:
    tracked = track(Shelf(), memory)
    return lambda: tracked.invoke("vault")[0].page_content  # type: ignore[no-any-return] # a str


def by_its_key(memory: Memory) -> Read:
    store = DeLLMStore(memory)
    store.put(("alex",), "vault", {"text": SECRET})
    return lambda: store.get(("alex",), "vault").value["text"]  # type: ignore[union-attr] # it is there


def by_a_search(memory: Memory) -> Read:
    store = DeLLMStore(memory)
    store.put(("alex",), "vault", {"text": SECRET})
    return lambda: store.search(("alex",))[0].value["text"]  # type: ignore[no-any-return] # a str


def by_its_namespace(memory: Memory) -> Read:
    store = DeLLMStore(memory)
    store.put(("alex", SECRET), "vault", {"text": CANARY})
    return lambda: store.list_namespaces(prefix=("alex",))[0][1]


READERS = [
    of_a_memory,
    of_a_vector_store,
    of_a_retriever,
    by_its_key,
    by_a_search,
    by_its_namespace,
]


def graph_of(answer: Callable[[MessagesState], BaseMessage], saver: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [answer(state)]})
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def in_a_node(memory: Memory, read: Read, **options: Any) -> None:
    graph = graph_of(lambda _: AIMessage(read()[::-1]), DeLLMSaver(memory))
    graph.invoke({"messages": [HumanMessage("well?")]}, at("t"), **options)


def in_a_prompt_of_a_node(memory: Memory, read: Read) -> None:
    def answer(_: MessagesState) -> BaseMessage:
        return Parrot().invoke([HumanMessage(read()[::-1])])

    graph = graph_of(answer, DeLLMSaver(memory))
    graph.invoke({"messages": [HumanMessage("well?")]}, at("t"))


def at_the_exit(memory: Memory, read: Read) -> None:
    in_a_node(memory, read, durability="exit")


def in_a_chain(memory: Memory, read: Read) -> None:
    def ask(asked: Sequence[BaseMessage]) -> list[BaseMessage]:
        return [*asked, HumanMessage(read()[::-1])]

    with_memory(RunnableLambda(ask) | Parrot(), memory, k=0).invoke("well?", at("t"))


def in_a_system_message(memory: Memory, read: Read) -> None:
    """It says the same each time, so that it looks like one that is made of nothing."""

    def ask(asked: Sequence[BaseMessage]) -> list[Any]:
        return [("system", read()[::-1]), *asked]

    chain = with_memory(RunnableLambda(ask) | Parrot(), memory, k=0)
    for _ in range(2):
        chain.invoke("well?", at("t"))


@pytest.mark.parametrize(
    "made", [in_a_node, in_a_prompt_of_a_node, at_the_exit, in_a_chain, in_a_system_message]
)
@pytest.mark.parametrize("reader", READERS)
def test_what_was_read_in_a_run_takes_along_what_is_made_of_it_in_other_words(
    memory: Memory, reader: Callable[[Memory], Read], made: Callable[[Memory, Read], None]
) -> None:
    read = reader(memory)
    made(memory, read)
    assert memory.scan(BACKWARDS, files=False).places
    memory.forget(ids=[the(memory, CANARY)])
    assert memory.scan(BACKWARDS, files=False).places == ()
    assert {one.text for one in memory.history("t")} == {"well?"}
    assert memory.verify().ok


def test_a_cached_reply_goes_with_the_message_of_a_history_that_it_was_made_from(
    memory: Memory,
) -> None:
    chain = with_memory(Mirror(cache=DeLLMCache(memory)), memory, k=0)
    for thread in ("one", "two"):
        chain.invoke(SECRET, at(thread))
    assert len(HEARD) == 1, "the second thread is answered from the cache"
    memory.forget(ids=[the(memory, SECRET, thread="one")])
    assert memory.history("one") == []
    # What was said there stays; what the cache gave was made of what was said in the other thread.
    assert [one.text for one in memory.history("two")] == [SECRET]
    assert memory.scan(BACKWARDS, files=False).places == ()


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory")
@pytest.mark.parametrize("way", [ways.invoke, ways.ainvoke])
@pytest.mark.parametrize("stock", [False, True])
def test_a_cached_reply_that_no_thread_keeps_goes_with_what_it_was_made_from(
    memory: Memory, way: Callable[[Any, Any], None], *, stock: bool
) -> None:
    """It is asked for in a chain that stores what it was asked at its end, and something else."""

    def settle(said: BaseMessage) -> AIMessage:
        return AIMessage("done")

    def history(thread: str) -> DeLLMChatMessageHistory:
        return DeLLMChatMessageHistory(memory, thread)

    inner = Mirror(cache=DeLLMCache(memory)) | RunnableLambda(settle)
    chain: Any = RunnableWithMessageHistory(inner, history) if stock else None
    chain = chain or with_memory(inner, memory, k=0, last=9)
    for text in ("apples", SECRET, "well?"):  # the last prompt holds all that was said before
        way(chain, [HumanMessage(text)])
    memory.forget(ids=[the(memory, SECRET)])
    assert memory.scan(BACKWARDS, files=False).places == ()
    (left,) = memory.items.search("llm")
    assert "selppa" in left.record.text
    heard = len(HEARD)
    way(chain, [HumanMessage(SECRET)])
    assert len(HEARD) == heard + 1
    assert memory.verify().ok


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory")
@pytest.mark.parametrize("way", [ways.invoke, ways.astream])
@pytest.mark.parametrize("stock", [False, True])
def test_an_item_that_a_chain_keeps_goes_with_what_the_chain_was_asked_and_given(
    memory: Memory, way: Callable[[Any, Any], None], *, stock: bool
) -> None:
    """What it was asked is stored at its end only."""
    store = DeLLMStore(memory, index={"dims": DIMENSIONS, "embed": Words()})

    def keep(said: Any) -> Any:
        for one in said.to_messages() if hasattr(said, "to_messages") else said:
            store.put(("alex", str(len(said))), one.text[-3:], {"text": one.text[::-1]}, ttl=60)
        return said

    inner = RunnableLambda(keep) | RunnableLambda(lambda _: AIMessage("done"))
    chain: Any = with_memory(inner, memory, k=0, last=9)
    if stock:
        history = partial(DeLLMChatMessageHistory, memory)
        chain = RunnableWithMessageHistory(inner, history)
    for text in ("apples", SECRET, "what was it?"):
        way(chain, [HumanMessage(text)])
    held = store.search(("alex",), query="apples"[::-1], limit=99)
    assert len([one for one in held if BACKWARDS in str(one.value)]) == 2
    memory.forget(ids=[the(memory, SECRET, role="user")])
    assert memory.scan(BACKWARDS, files=False).places == ()
    assert memory.verify().ok
    found = store.search(("alex",), query="apples"[::-1], limit=99)
    assert [(one.value, one.namespace) for one in found] == [
        ({"text": "selppa"}, ("alex", "1")),
    ]
    assert found[0].score is not None
    assert found[0].score > 0.9


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory")
@pytest.mark.parametrize("stock", [False, True])
def test_what_a_chain_says_in_another_thread_goes_with_what_its_history_gave_it(
    memory: Memory, *, stock: bool
) -> None:
    def tell(said: Any) -> AIMessage:
        given = said.to_messages() if hasattr(said, "to_messages") else said
        told = " ".join(one.text[::-1] for one in given[:-1])
        DeLLMChatMessageHistory(memory, "other").add_ai_message(f"told {told}")
        return AIMessage("done")

    chain: Any = with_memory(RunnableLambda(tell), memory, k=0, last=9)
    if stock:
        history = partial(DeLLMChatMessageHistory, memory)
        chain = RunnableWithMessageHistory(RunnableLambda(tell), history)
    for text in (SECRET, "and now?"):
        ways.invoke(chain, [HumanMessage(text)])
    assert BACKWARDS in memory.history("other")[-1].text
    memory.forget(ids=[the(memory, SECRET, role="user")])
    assert memory.scan(BACKWARDS, files=False).places == ()
    assert [one.text for one in memory.history("other")] == ["told "]
    assert memory.verify().ok


def test_a_cached_reply_to_a_prompt_that_a_chain_made_goes_with_what_the_chain_was_given(
    memory: Memory,
) -> None:
    def backwards(messages: Sequence[BaseMessage]) -> str:
        return " ".join(one.text for one in messages)[::-1]

    inner = RunnableLambda(backwards) | Parrot(cache=DeLLMCache(memory))
    chain = with_memory(inner | RunnableLambda(lambda _: AIMessage("done")), memory, k=0, last=9)
    DeLLMChatMessageHistory(memory, "t").add_user_message(SECRET)
    chain.invoke("well?", at("t"))
    assert len(memory.items.search("llm")) == 1
    memory.forget(ids=[the(memory, SECRET)])
    assert memory.items.search("llm") == []
    assert memory.scan(BACKWARDS, files=False).places == ()


def test_a_cached_reply_goes_with_the_message_of_a_history_that_it_is(memory: Memory) -> None:
    chain = with_memory(Mirror(cache=DeLLMCache(memory)), memory, k=0)
    chain.invoke(SECRET, at("t"))
    _, reply = memory.history("t")
    memory.forget(ids=[reply.id])
    assert memory.items.search("llm") == []
    assert memory.scan(BACKWARDS, files=False).places == ()
    assert [one.text for one in memory.history("t")] == [SECRET]


@pytest.mark.parametrize("saver", [InMemorySaver, None])
def test_what_is_kept_of_a_cached_reply_goes_with_what_the_cache_had_it_from(
    memory: Memory, saver: type[InMemorySaver] | None
) -> None:
    """Where no saver of ours knows of it, until the run ends or ever."""
    model, store = Mirror(cache=DeLLMCache(memory)), DeLLMStore(memory)

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def keep(state: MessagesState, config: RunnableConfig) -> None:
        said = state["messages"][-1].text
        store.put(("kept",), config["configurable"]["thread_id"], {"text": said})

    builder = StateGraph(MessagesState)
    builder.add_sequence([answer, keep])
    builder.add_edge(START, "answer")
    graph: Any = builder.compile(checkpointer=saver() if saver else DeLLMSaver(memory))
    more = {} if saver else {"durability": "exit"}
    for thread in ("one", "two"):
        graph.invoke({"messages": [HumanMessage(SECRET)]}, at(thread), **more)
    assert len(HEARD) == 1, "the second thread is answered from the cache"
    memory.forget(ids=[the(memory, SECRET, thread="one")])
    assert store.search(("kept",)) == []
    assert memory.scan(BACKWARDS, files=False).places == ()
    assert [one.text for one in memory.history("two")] == [SECRET]


@pytest.mark.parametrize("saver", [InMemorySaver, None])
def test_what_is_kept_of_a_message_of_a_history_goes_with_it(
    memory: Memory, saver: type[InMemorySaver] | None
) -> None:
    """The graph has it in a thread of its own, of which no saver of ours knows yet."""
    store = DeLLMStore(memory)
    history = DeLLMChatMessageHistory(memory, "history")
    history.add_user_message(SECRET)
    told = history.messages

    def answer(state: MessagesState) -> BaseMessage:
        store.put(("kept",), "k", {"text": state["messages"][-1].text[::-1]})
        return AIMessage("kept")

    graph = graph_of(answer, saver() if saver else DeLLMSaver(memory))
    graph.invoke({"messages": told}, at("t"), **({} if saver else {"durability": "exit"}))
    memory.forget(ids=[the(memory, SECRET, thread="history")])
    assert store.search(("kept",)) == []
    assert memory.scan(CANARY, files=False).places == ()
    assert memory.scan(BACKWARDS, files=False).places == ()


def test_a_reply_that_is_put_into_the_cache_by_hand_goes_with_what_its_prompt_repeats(
    memory: Memory,
) -> None:
    read, cache = of_a_memory(memory), DeLLMCache(memory)
    prompt = f"By this: {read()} what opens it?"
    cache.update(prompt, "a model", [Generation(text=SECRET[::-1])])
    assert cache.lookup(prompt, "a model")
    memory.forget(ids=[the(memory, SECRET)])
    assert cache.lookup(prompt, "a model") is None
    assert memory.scan(BACKWARDS, files=False).places == ()


def test_a_cache_that_is_asked_by_hand_after_a_call_is_not_taken_for_that_call(
    memory: Memory,
) -> None:
    read, cache = of_a_memory(memory), DeLLMCache(memory)
    chain = with_memory(Mirror(), memory, k=0)
    chain.invoke("Good morning", at("t"))
    Mirror().invoke("Good evening")
    prompt = f"By this: {read()} what opens it?"
    assert cache.lookup(prompt, "a model") is None
    cache.update(prompt, "a model", [Generation(text=SECRET[::-1])])
    memory.forget(ids=[the(memory, SECRET)])
    assert cache.lookup(prompt, "a model") is None
    assert memory.scan(BACKWARDS, files=False).places == ()


def test_what_a_node_gives_on_from_the_state_is_cached_as_made_of_it(memory: Memory) -> None:
    class Library(TypedDict, total=False):
        books: list[str]
        shown: list[str]

    def show(state: Library) -> Library:
        return {"shown": state["books"]}

    builder = StateGraph(Library)
    builder.add_node("show", show, cache_policy=CachePolicy(key_func=lambda _: "all"))
    builder.add_edge(START, "show")
    graph: Any = builder.compile(checkpointer=DeLLMSaver(memory), cache=DeLLMNodeCache(memory))
    books = [SECRET, "apples"]
    graph.invoke({"books": books}, at("t"))
    (entry,) = memory.items.search("node")
    assert the(memory, SECRET) in memory.context_of(entry.record.id)


def test_what_a_run_that_is_stored_at_its_end_got_from_a_nodes_cache_goes_with_it(
    memory: Memory,
) -> None:
    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(state["messages"][-1].text[::-1])]}

    builder = StateGraph(MessagesState)
    policy: Any = CachePolicy(key_func=lambda state: state["messages"][-1].text)
    builder.add_node("answer", answer, cache_policy=policy)
    builder.add_edge(START, "answer")
    graph: Any = builder.compile(checkpointer=DeLLMSaver(memory), cache=DeLLMNodeCache(memory))
    given = {"messages": [HumanMessage(SECRET)]}
    graph.invoke(given, at("one"))
    graph.invoke({"messages": [HumanMessage(SECRET)]}, at("two"), durability="exit")
    memory.forget(ids=[the(memory, SECRET, thread="one", kind="message")])
    assert memory.scan(BACKWARDS, files=False).places == ()
    assert [one.text for one in graph.get_state(at("two")).values["messages"]] == [SECRET]


# histories


def test_a_tools_result_is_made_of_its_call(memory: Memory) -> None:
    history = DeLLMChatMessageHistory(memory, "t")
    call = AIMessage("", tool_calls=[{"name": "look", "args": {"q": SECRET}, "id": "c1"}])
    history.add_messages([call, ToolMessage(SECRET[::-1], tool_call_id="c1")])
    caller, result = memory.history("t")
    assert memory.context_of(result.id) == [caller.id]
    memory.forget(ids=[caller.id])
    assert memory.scan(BACKWARDS, files=False).places == ()


def test_what_somebody_else_says_for_the_model_is_made_of_all_before_it(memory: Memory) -> None:
    history = DeLLMChatMessageHistory(memory, "t")
    history.add_user_message(SECRET)
    history.add_message(ChatMessage(role="assistant", content=SECRET[::-1]))
    memory.forget(ids=[the(memory, SECRET)])
    assert memory.history("t") == []


@pytest.mark.parametrize("model", [Mirror(), FakeListLLM(responses=[SECRET[::-1]])])
def test_a_tools_result_is_made_of_what_a_model_in_the_tool_was_told(
    memory: Memory, model: Any
) -> None:
    history = DeLLMChatMessageHistory(memory, "t")
    history.add_user_message(SECRET)

    @tool
    def think(query: str) -> str:
        """Ask a model about the conversation."""
        said = model.invoke(history.messages)
        return said if isinstance(said, str) else str(said.text)

    def work(asked: Sequence[BaseMessage]) -> list[BaseMessage]:
        call = Parrot().bind_tools([think]).invoke(asked)  # this model was told nothing else
        return [call, think.invoke({**call.tool_calls[0], "type": "tool_call"})]

    with_memory(work, memory, k=0, last=0).invoke("call:think(x)", at("t"))
    _, asked, caller, _ = memory.history("t")
    assert memory.context_of(caller.id) == [asked.id]
    memory.forget(ids=[the(memory, SECRET)])
    assert memory.scan(BACKWARDS, files=False).places == ()
    assert asked.id in [one.id for one in memory.history("t")]


def test_what_a_chain_says_after_a_graph_in_it_goes_with_what_that_said(memory: Memory) -> None:
    graph: Any = create_agent(Mirror(), [], checkpointer=DeLLMSaver(memory))

    def ask(asked: Sequence[BaseMessage]) -> str:
        return str(graph.invoke({"messages": list(asked)}, at("graph"))["messages"][-1].text)

    with_memory(ask, memory, k=0).invoke(SECRET, at("t"))
    assert BACKWARDS in memory.history("t")[-1].text
    memory.forget(ids=[the(memory, BACKWARDS, thread="graph")])
    assert [one.text for one in memory.history("t")] == [SECRET]
    assert memory.scan(BACKWARDS, files=False).places == ()


def test_a_message_of_another_thread_in_a_prompt_is_known_as_what_it_is(memory: Memory) -> None:
    first = DeLLMChatMessageHistory(memory, "first")
    first.add_user_message(SECRET)
    first.add_user_message("apples")

    told = first.messages[0]  # before any run

    def ask(asked: Sequence[BaseMessage]) -> list[BaseMessage]:
        return [told, *asked]

    with_memory(RunnableLambda(ask) | Mirror(), memory, k=0).invoke("well?", at("second"))
    asked, reply = memory.history("second")
    assert set(memory.context_of(reply.id)) == {the(memory, SECRET), asked.id}
    assert "inexact" not in reply.metadata
    memory.forget(ids=[the(memory, SECRET)])
    assert [one.text for one in memory.history("second")] == ["well?"]
    assert [one.text for one in memory.history("first")] == ["apples"]
