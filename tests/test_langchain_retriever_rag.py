"""Replies made of retrieved documents: they go with the document, and nothing else does."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from agents import at, run
from documents import CANARY, PLAIN, SECRET, Words, documents, held
from graphs import HEARD, Parrot
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import START, StateGraph, add_messages
from typing_extensions import TypedDict
from unheard import unheard

from dellm import Memory
from dellm_langchain import (
    DeLLMChatMessageHistory,
    DeLLMRetriever,
    DeLLMSaver,
    track,
    with_memory,
)

__all__ = ["unheard"]

WAYS = ("invoke", "stream", "ainvoke", "astream")
VAULT, MOON = "what opens the vault of the bank", "when does the moon rise over the lake"
ASKED = (MOON, VAULT, MOON)


@pytest.fixture
def store(memory: Memory) -> Any:
    """A tracked store of the library; one document is found for each question."""
    tracked = track(InMemoryVectorStore(Words()), memory)
    tracked.add_documents(documents())
    return tracked


def secret(memory: Memory) -> int:
    """Return the record of the secret document."""
    (found,) = [one.id for one in memory.export() if (one.kind, one.text) == ("document", SECRET)]
    return found


def said(memory: Memory, thread: str = "t") -> list[tuple[str, bool]]:
    """Return who spoke in a thread, and whether of the vault."""
    return [(one.role, "vault" in one.text) for one in memory.history(thread)]


def forget_the_secret(memory: Memory, store: Any) -> None:
    """Forget the document by its id, and check that nothing is left of it."""
    assert memory.scan(CANARY, files=False).places
    memory.forget(ids=[secret(memory)])
    assert memory.scan(CANARY, files=False).places == ()
    assert held(store.store) == {"d0", "d1", "d2"}
    assert sorted(one.text for one in memory.export() if one.kind == "document") == sorted(PLAIN)
    assert memory.verify().problems == ()


def joined(found: list[Document]) -> str:
    return "\n".join(one.page_content for one in found)


SHAPES = {
    "in the system message": [("system", "Answer by this: {context}"), ("human", "{q}")],
    "in one prompt string": [("human", "By this: {context}\nanswer this: {q}")],
}


def chain(store: Any, shape: str) -> Any:
    prompt = list[Any](SHAPES[shape])
    prompt.insert(-1, MessagesPlaceholder("history", optional=True))
    found = RunnableLambda(lambda given: given["q"]) | store.as_retriever(search_kwargs={"k": 1})
    return (
        RunnablePassthrough.assign(context=found | joined)
        | ChatPromptTemplate.from_messages(prompt)
        | Parrot()
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("way", WAYS)
def test_a_reply_of_a_chain_with_memory_goes_with_the_document_in_its_prompt(
    memory: Memory, store: Any, shape: str, way: str
) -> None:
    keys = {"input_messages_key": "q", "history_messages_key": "history"}
    whole = with_memory(chain(store, shape), memory, **keys, k=0)
    for one in ASKED:
        run(whole, {"q": one}, at(), way)
    assert len(said(memory)) == 6
    forget_the_secret(memory, store)
    # The question about the vault was not made of the document.
    assert said(memory) == [
        ("user", False), ("assistant", False), ("user", True), ("user", False), ("assistant", False),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory")
@pytest.mark.parametrize("parsed", [False, True])
def test_a_reply_in_a_chat_history_goes_with_the_document_in_its_prompt(
    memory: Memory, store: Any, *, parsed: bool
) -> None:
    def history(session_id: str) -> DeLLMChatMessageHistory:
        return DeLLMChatMessageHistory(memory, session_id)

    inner = chain(store, "in the system message")
    whole = RunnableWithMessageHistory(
        inner | StrOutputParser() if parsed else inner,
        history,
        input_messages_key="q",
        history_messages_key="history",
    )
    for thread, one in (("t", MOON), ("t", VAULT), ("other", MOON)):
        whole.invoke({"q": one}, {"configurable": {"session_id": thread}})
    forget_the_secret(memory, store)
    assert said(memory) == [("user", False), ("assistant", False), ("user", True)]
    assert said(memory, "other") == [("user", False), ("assistant", False)]


@pytest.mark.parametrize("way", WAYS)
def test_what_an_agent_says_of_a_document_goes_with_it(
    memory: Memory, store: Any, way: str
) -> None:
    retriever = store.as_retriever(search_kwargs={"k": 1})
    found = create_retriever_tool(retriever, "library", "Search the library.")
    graph = create_agent(Parrot(), [found], checkpointer=DeLLMSaver(memory))
    for thread, words in (("t", "bank vault"), ("other", "moon lake")):
        asked = HumanMessage(f"call:library({words})")
        run(graph, {"messages": [asked]}, at(thread), way)
        run(graph, {"messages": [HumanMessage("thank you")]}, at(thread), way)
    before = graph.get_state(at("other")).values
    forget_the_secret(memory, store)
    left = [one.text for one in graph.get_state(at("t")).values["messages"]]
    assert "call:library(bank vault)" in left
    assert "thank you" in left
    assert not any("reply" in one or "bank with" in one for one in left)
    assert graph.get_state(at("other")).values == before
    HEARD.clear()
    run(graph, {"messages": [HumanMessage("and now?")]}, at("t"), way)
    assert CANARY not in repr(HEARD)


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    context: list[Document]


def rag(memory: Memory, retriever: Any) -> Any:
    """Return the graph of two nodes of LangChain's tutorials: retrieve, then generate."""

    def retrieve(state: State) -> dict[str, Any]:
        return {"context": retriever.invoke(state["messages"][-1].text)}

    def generate(state: State) -> dict[str, Any]:
        prompt = f"By this: {joined(state['context'])} answer {state['messages'][-1].text}"
        return {"messages": [Parrot().invoke([HumanMessage(prompt)])]}

    build = StateGraph(State)
    build.add_node("retrieve", retrieve)
    build.add_node("generate", generate)
    build.add_edge(START, "retrieve")
    build.add_edge("retrieve", "generate")
    return build.compile(checkpointer=DeLLMSaver(memory))


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_documents_in_the_state_of_a_graph_go_and_so_does_what_was_made_of_them(
    memory: Memory, store: Any, way: str
) -> None:
    graph = rag(memory, store.as_retriever(search_kwargs={"k": 1}))
    for thread, asked in (("t", VAULT), ("other", MOON)):
        run(graph, {"messages": [HumanMessage(asked)]}, at(thread), way)
    before = graph.get_state(at("other")).values
    forget_the_secret(memory, store)
    left = graph.get_state(at("t")).values
    assert [one.text for one in left["messages"]] == [VAULT]
    assert CANARY not in repr(left)
    assert CANARY not in repr(list(graph.get_state_history(at("t"))))
    assert graph.get_state(at("other")).values == before


def test_forgetting_a_question_leaves_the_documents_that_were_found_for_it(
    memory: Memory, store: Any
) -> None:
    graph = rag(memory, store.as_retriever(search_kwargs={"k": 1}))
    run(graph, {"messages": [HumanMessage(VAULT)]}, at())
    memory.forget(VAULT)
    assert held(store.store) == {"d0", "d1", "d2", "d3"}
    assert secret(memory)
    assert graph.get_state(at()).values["messages"] == []


def test_what_an_agent_puts_into_the_store_goes_with_what_it_was_told(memory: Memory) -> None:
    tracked = track(InMemoryVectorStore(Words()), memory)
    tracked.add_documents(documents()[:3])

    @tool
    def note(query: str) -> str:
        """Note something down."""
        tracked.add_texts([f"noted: {query}"])
        return "noted"

    graph = create_agent(Parrot(), [note], checkpointer=DeLLMSaver(memory))
    told = f"call:note my door code is {CANARY}"
    run(graph, {"messages": [HumanMessage(told)]}, at())
    run(graph, {"messages": [HumanMessage("call:note(apples)")]}, at("other"))
    noted = [one["text"] for one in tracked.store.store.values() if "noted" in one["text"]]
    assert len(noted) == 2
    assert CANARY in noted[0]
    memory.forget(told)
    left = [one["text"] for one in tracked.store.store.values()]
    assert left == [*PLAIN, "noted: apples"]
    assert memory.scan(CANARY, files=False).places == ()


def test_what_comes_from_outside_does_not_go_with_what_was_said(memory: Memory) -> None:
    tracked = track(InMemoryVectorStore(Words()), memory, given=True)

    @tool
    def fetch(query: str) -> str:
        """Fetch a page into the library."""
        tracked.add_texts([PLAIN[0]])
        return "fetched"

    graph = create_agent(Parrot(), [fetch], checkpointer=DeLLMSaver(memory))
    told = "call:fetch my secret page"
    run(graph, {"messages": [HumanMessage(told)]}, at())
    memory.forget(told)
    assert [one["text"] for one in tracked.store.store.values()] == [PLAIN[0]]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_what_is_said_of_a_memory_of_another_thread_goes_with_it(memory: Memory, way: str) -> None:
    told = f"my door code is {CANARY}"
    saver = DeLLMSaver(memory)
    plain = create_agent(Parrot(), [], checkpointer=saver)
    run(plain, {"messages": [HumanMessage(told)]}, at("first"), way)
    run(plain, {"messages": [HumanMessage(MOON)]}, at("third"), way)
    retriever = DeLLMRetriever(memory=memory, by="keyword", k=2)
    found = create_retriever_tool(retriever, "recall", "Search what was said.")
    graph = create_agent(Parrot(), [found], checkpointer=saver)
    for thread, words in (("second", "door code"), ("other", "moon lake")):
        asked = HumanMessage(f"call:recall({words})")
        run(graph, {"messages": [asked]}, at(thread), way)
    before = graph.get_state(at("other")).values
    assert CANARY in repr(graph.get_state(at("second")).values)
    memory.forget(told)
    assert memory.scan(CANARY, files=False).places == ()
    left = [one.text for one in graph.get_state(at("second")).values["messages"]]
    assert left == ["call:recall(door code)"]
    assert graph.get_state(at("other")).values == before


def test_the_question_itself_is_no_memory_that_answers_it(memory: Memory) -> None:
    memory.remember("the moon rises at nine", thread="before")
    retriever = DeLLMRetriever(memory=memory, by="keyword", k=1)
    graph = rag(memory, retriever)
    run(graph, {"messages": [HumanMessage(MOON)]}, at())
    found = graph.get_state(at()).values["context"]
    assert [one.page_content for one in found] == ["the moon rises at nine"]


def test_runs_side_by_side_are_not_taken_for_one_another(memory: Memory, store: Any) -> None:
    keys = {"input_messages_key": "q", "history_messages_key": "history"}
    whole = with_memory(chain(store, "in one prompt string"), memory, **keys, k=0)
    asked = [VAULT, MOON] * 3
    configs = [at(f"t{number}") for number in range(6)]
    whole.batch([{"q": one} for one in asked], configs)

    async def both() -> None:
        await whole.abatch([{"q": one} for one in asked], configs)

    asyncio.run(both())
    assert all(len(said(memory, f"t{number}")) == 4 for number in range(6))
    forget_the_secret(memory, store)
    for number in range(6):
        spoken = [role for role, _ in said(memory, f"t{number}")]
        expected = ["user", "user"] if number % 2 == 0 else ["user", "assistant"] * 2
        assert spoken == expected


# loops of one's own


def test_a_tracked_model_in_a_chain_is_tied_to_the_documents_in_its_prompt(
    memory: Memory, store: Any
) -> None:
    model = track(Parrot(), memory)
    retriever = store.as_retriever(search_kwargs={"k": 1})
    prompt = ChatPromptTemplate.from_messages([("system", "By this: {context}"), ("human", "{q}")])
    whole = {"context": retriever | joined, "q": RunnablePassthrough()} | prompt | model
    for one in (MOON, VAULT, MOON):
        whole.invoke(one, at())
    asyncio.run(whole.ainvoke(VAULT, at("other")))
    forget_the_secret(memory, store)
    # The moon was asked for a second time: that is the same message, and the same prompt again.
    assert [role for role, about in said(memory) if not about].count("assistant") == 2
    assert ("user", True) in said(memory)
    assert said(memory, "other") == [("user", True)]


def test_what_a_chain_makes_of_a_document_takes_all_of_its_prompt_along(
    memory: Memory, store: Any
) -> None:
    model = track(Parrot(), memory, thread="t")
    retriever = store.as_retriever(search_kwargs={"k": 1})
    backwards = retriever | (lambda found: " ".join(reversed(joined(found).split())))
    prompt = ChatPromptTemplate.from_messages([("system", "By this: {context}"), ("human", "{q}")])
    whole = {"context": backwards, "q": RunnablePassthrough()} | prompt | model
    whole.invoke(VAULT)
    whole.invoke(MOON)
    forget_the_secret(memory, store)
    assert [role for role, _ in said(memory)] == ["system", "user", "assistant"]


@pytest.mark.parametrize("kept", ["tracked", "history"])
def test_in_a_loop_of_ones_own_a_document_is_known_by_its_words(
    memory: Memory, store: Any, kept: str
) -> None:
    model = track(Parrot(), memory, thread="t") if kept == "tracked" else Parrot()
    history = DeLLMChatMessageHistory(memory, "t")
    for one in (MOON, VAULT, MOON):
        found = store.similarity_search(one, k=1)
        asked = HumanMessage(one)
        reply = model.invoke([("system", f"By this: {joined(found)}"), asked])
        if kept == "history":
            history.add_messages([asked, reply])
    forget_the_secret(memory, store)
    assert ("user", True) in said(memory)
    spoken = [about for role, about in said(memory) if role == "assistant"]
    assert spoken == [False, False] if kept == "tracked" else spoken[:1] == [False]


def test_a_chain_that_recalls_what_was_said_elsewhere_is_tied_to_it(memory: Memory) -> None:
    told = f"my door code is {CANARY}"
    memory.remember(told, thread="before")
    memory.remember("the moon rises at nine", thread="before")
    found = DeLLMRetriever(memory=memory, by="keyword", k=1)
    context = RunnableLambda(lambda given: given["q"]) | found | joined
    prompt = ChatPromptTemplate.from_messages([("system", "By this: {context}"), ("human", "{q}")])
    inner = RunnablePassthrough.assign(context=context) | prompt | Parrot()
    whole = with_memory(inner, memory, input_messages_key="q", history_messages_key="h", k=0)
    for thread, asked in (("t", "door code please"), ("other", "moon rises when")):
        whole.invoke({"q": asked}, at(thread))
    memory.forget(told)
    assert memory.scan(CANARY, files=False).places == ()
    assert [one.role for one in memory.history("t")] == ["user"]
    assert [one.role for one in memory.history("other")] == ["user", "assistant"]


def test_of_two_tools_only_the_one_that_read_the_document_is_tied_to_it(
    memory: Memory, store: Any
) -> None:
    @tool
    def weather(query: str) -> str:
        """Say the weather."""
        return f"sunny in {query}"

    retriever = store.as_retriever(search_kwargs={"k": 1})
    found = create_retriever_tool(retriever, "library", "Search the library.")
    graph = create_agent(Parrot(), [found, weather], checkpointer=DeLLMSaver(memory))
    run(graph, {"messages": [HumanMessage("call:library(bank vault) call:weather(rome)")]}, at())
    forget_the_secret(memory, store)
    left = [one.text for one in graph.get_state(at()).values["messages"]]
    assert "sunny in rome" in left
    assert len(left) == 3


def test_agents_of_many_users_share_a_store_and_forget_each_for_themselves(memory: Memory) -> None:
    shared = InMemoryVectorStore(Words())
    shared.add_documents(documents())
    tracked = track(shared, memory, workspace="user_id", name="shared", shared=True)
    retriever = tracked.as_retriever(search_kwargs={"k": 1})
    found = create_retriever_tool(retriever, "library", "Search the library.")
    saver = DeLLMSaver(memory, workspace="user_id")
    graph = create_agent(Parrot(), [found], checkpointer=saver)
    asked = {"messages": [HumanMessage("call:library(bank vault)")]}
    for name in ("ann", "bob"):
        run(graph, asked, at(user_id=name), "ainvoke")
    ann, bob = memory.workspace("ann"), memory.workspace("bob")
    before = graph.get_state(at(user_id="bob")).values
    ann.forget(ids=[secret(ann)])
    assert ann.scan(CANARY, files=False).places == ()
    assert graph.get_state(at(user_id="bob")).values == before
    assert secret(bob)
    assert held(shared) == {"d0", "d1", "d2", "d3"}
    run(graph, asked, at("again", user_id="ann"))
    assert ann.scan(CANARY, files=False).places == ()


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_document_that_is_forgotten_in_the_middle_of_a_run_leaves_nothing_behind(
    memory: Memory, store: Any, durability: str
) -> None:
    def retrieve(state: State) -> dict[str, Any]:
        return {"context": store.similarity_search(state["messages"][-1].text, k=1)}

    def generate(state: State) -> dict[str, Any]:
        memory.forget(ids=[secret(memory)])
        return {"messages": [Parrot().invoke([HumanMessage(joined(state["context"]))])]}

    build = StateGraph(State)
    build.add_sequence([retrieve, generate])
    build.add_edge(START, "retrieve")
    graph = build.compile(checkpointer=DeLLMSaver(memory))
    run(graph, {"messages": [HumanMessage(VAULT)]}, at(), durability=durability)
    assert memory.scan(CANARY, files=False).places == ()
    assert held(store.store) == {"d0", "d1", "d2"}
    assert CANARY not in repr(graph.get_state(at()).values)
