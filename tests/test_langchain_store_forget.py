"""What agents keep in the store, and what they make of it, goes with what it was made from.

The model repeats all it was shown, and the tools put every word they are given into their items: a
missed edge shows as the secret's word. The controls say what must still be there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from agents import at, say
from forgotten import holds
from graphs import CLEAN, HEARD, STATEMENT, WORD, Parrot, Window, latest, words
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    SummarizationMiddleware,
    wrap_model_call,
)
from langchain.tools import ToolRuntime
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import InjectedStore
from langgraph.store.base import BaseStore, IndexConfig
from raw_tables import connected, statement

from dellm import Memory
from dellm_langchain import DeLLMCache, DeLLMSaver
from dellm_langchain.store import DeLLMStore

INDEX: IndexConfig = {
    "dims": 2,
    "embed": lambda texts: [[1.0, float(len(one))] for one in texts],
    "fields": ["text"],
}


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


@tool
def keep(query: str, runtime: ToolRuntime) -> str:
    """Keep what was said; the name under which it is kept says it too."""
    said = words(query)
    runtime.store.put(("mem", "notes"), said[:60], {"text": said})
    return "kept"


@tool
def find(query: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
    """Tell what was kept."""
    return words(*(one.value["text"] for one in store.search(("mem",), query=query)))


async def _akeep(query: str, runtime: ToolRuntime) -> str:
    said = words(query)
    await runtime.store.aput(("mem", "notes"), said[:60], {"text": said})
    return "kept"


async def _afind(query: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
    return words(*(one.value["text"] for one in await store.asearch(("mem",), query=query)))


keep.coroutine, find.coroutine = _akeep, _afind  # type: ignore[attr-defined] # a StructuredTool's


def agent(memory: Memory, *, workspace: str | None = None, **options: Any) -> Any:
    """Return an agent that looks at the newest turn only, with a store and a saver."""
    return create_agent(
        Parrot(),
        [keep, find],
        middleware=[Window(latest)],
        checkpointer=options.pop("saver", None) or DeLLMSaver(memory, workspace=workspace),
        store=DeLLMStore(memory, workspace=workspace, index=INDEX),
    )


def kept(memory: Memory) -> list[str]:
    return sorted(one.value["text"] for one in DeLLMStore(memory).search((), limit=99))


def texts(graph: Any, thread: str = "t", **more: Any) -> list[str]:
    return [one.text for one in graph.get_state(at(thread, **more)).values.get("messages", [])]


def clean(memory: Memory, *graphs: Any) -> None:
    """Fail unless the secret is nowhere, and what is left holds together."""
    found = memory.scan(WORD)
    assert [str(one) for one in found.places] == []
    assert [one for one in found.files if "pg_wal" not in one.file] == []
    for graph in graphs:
        for thread in memory.threads():
            assert not any(holds(one.values) for one in graph.get_state_history(at(thread)))
    assert list(memory.verify().problems) == []


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
def test_a_message_takes_along_the_item_and_the_reply_made_of_it_in_another_thread(
    memory: Memory, way: str
) -> None:
    graph = agent(memory)
    say(graph, f"{STATEMENT} call:keep", at("one"), way)
    say(graph, f"{CLEAN[0]} call:keep({CLEAN[0]})", at("one"), way)
    say(graph, CLEAN[1], at("two"), way)
    say(graph, "call:find(door)", at("two"), way)
    say(graph, CLEAN[2], at("two"), way)
    assert WORD in kept(memory)[0] + kept(memory)[1]
    assert WORD in texts(graph, "two")[5]
    control = texts(graph, "two")[:3] + texts(graph, "two")[-2:]
    memory.forget(STATEMENT)
    assert kept(memory) == [words(CLEAN[0])]
    assert CLEAN[0] in texts(graph, "one")[0]
    assert "kept" in texts(graph, "one")
    assert texts(graph, "two") == control
    clean(memory, graph)
    say(graph, "call:find(door)", at("two"), way)
    assert words(CLEAN[0]) in texts(graph, "two")[-2]
    assert not any(WORD in one.text for one in HEARD[-1])


def test_an_item_takes_along_what_was_made_of_it_and_its_vectors(memory: Memory, url: str) -> None:
    graph = agent(memory)
    store = DeLLMStore(memory, index=INDEX)
    store.put(("mem", "notes"), "code", {"text": STATEMENT})
    store.put(("mem", "notes"), "fruit", {"text": CLEAN[0]}, index=["text", "$"])
    say(graph, "call:find(door)")
    say(graph, CLEAN[1])
    memory.forget(STATEMENT)
    assert kept(memory) == [CLEAN[0]]
    assert texts(graph)[0] == "call:find(door)"
    assert len(texts(graph)) == 3
    clean(memory, graph)
    with connected(url) as connection:
        assert len(statement(connection, "select record from item_vector")) == 2
        assert len(statement(connection, "select record from item")) == 1


def test_what_was_made_of_a_deleted_or_replaced_item_still_goes_with_its_source(
    memory: Memory,
) -> None:
    graph, store = agent(memory), DeLLMStore(memory)
    say(graph, f"{STATEMENT} call:keep", at("one"))
    say(graph, "call:find(door)", at("two"))
    (item,) = store.search(("mem",))
    store.put(item.namespace, item.key, {"text": "nothing of it"})
    say(graph, f"{STATEMENT} call:keep", at("three"))
    say(graph, "call:find(door)", at("four"))
    store.clear(("mem",))
    memory.forget(STATEMENT)
    assert texts(graph, "two") == texts(graph, "four") == ["call:find(door)"]
    clean(memory, graph)


def test_each_user_has_a_store_of_their_own(memory: Memory) -> None:
    graph = agent(memory, workspace="user")
    for user in ("ann", "bob"):
        say(graph, f"{STATEMENT} of {user} call:keep", at("t", user=user))
    say(graph, "call:find(door)", at("u", user="bob"))
    assert "bob" in texts(graph, "u", user="bob")[-1]
    assert "ann" not in texts(graph, "u", user="bob")[-1]
    memory.workspace("ann").forget(f"{STATEMENT} of ann")
    assert memory.workspace("ann").scan(WORD, files=False).clean
    assert len(kept(memory.workspace("bob"))) == 1
    assert "bob" in texts(graph, "u", user="bob")[-1]


def test_what_was_made_of_a_list_of_namespaces_goes_with_an_item_that_has_one(
    memory: Memory,
) -> None:
    def shelve(query: str, runtime: ToolRuntime) -> str:
        """Keep something in a namespace that says what it was made of."""
        runtime.store.put(("shelf", words(query)), "k", {"n": 1})
        return "kept"

    def shelves(query: str) -> str:
        """Tell how the namespaces are called."""
        return words(query, *get_store().list_namespaces(prefix=("shelf",)))

    store = DeLLMStore(memory)
    store.put(("other",), "k", {"n": 1})
    graph = create_agent(
        Parrot(),
        [tool(shelve), tool(shelves)],
        middleware=[Window(latest)],
        checkpointer=DeLLMSaver(memory),
        store=store,
    )
    say(graph, f"{STATEMENT} call:shelve", at("one"))
    say(graph, CLEAN[0], at("two"))
    say(graph, "call:shelves(x)", at("two"))
    assert WORD in texts(graph, "two")[-1]
    memory.forget(STATEMENT)
    assert store.list_namespaces() == [("other",)]
    assert texts(graph, "two")[2:] == ["call:shelves(x)"]
    clean(memory, graph)


def test_a_late_item_of_what_was_forgotten_meanwhile_is_not_kept(memory: Memory) -> None:
    def forgetful(query: str, runtime: ToolRuntime) -> str:
        """Keep what was said, after the user had it forgotten."""
        memory.forget(STATEMENT)
        runtime.store.put(("mem",), "late", {"text": words(query)})
        return f"kept {words(query)}"

    store = DeLLMStore(memory)
    store.put(("mem",), "late", {"text": "what was there"})
    graph = create_agent(Parrot(), [tool(forgetful)], checkpointer=DeLLMSaver(memory), store=store)
    say(graph, f"{STATEMENT} call:forgetful", durability="sync")
    assert kept(memory) == ["what was there"]
    clean(memory, graph)


def bot(saver: Any, memory: Memory, *, asynchronous: bool = False) -> Any:
    """Return a graph whose node keeps what the model said of the newest turn, then of all items."""
    model = Parrot()

    def look(state: Any) -> list[Any]:
        return latest(state["messages"])

    def node(state: Any) -> Any:
        store = get_store()
        known = store.search(("mem",), limit=99)
        heard = [HumanMessage(one.value["text"]) for one in known if "tell" in look(state)[0].text]
        reply = model.invoke([*heard, *look(state)])
        store.put(("mem",), str(len(known)), {"text": reply.text})
        return {"messages": [reply]}

    async def anode(state: Any) -> Any:
        store = get_store()
        known = await store.asearch(("mem",), limit=99)
        heard = [HumanMessage(one.value["text"]) for one in known if "tell" in look(state)[0].text]
        reply = await model.ainvoke([*heard, *look(state)])
        await store.aput(("mem",), str(len(known)), {"text": reply.text})
        return {"messages": [reply]}

    graph = StateGraph(MessagesState)
    graph.add_node("bot", RunnableLambda(node, afunc=anode))
    graph.add_edge("__start__", "bot")
    return graph.compile(checkpointer=saver, store=DeLLMStore(memory))


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_what_a_node_keeps_goes_with_what_it_was_shown(memory: Memory, way: str) -> None:
    graph = bot(DeLLMSaver(memory), memory)
    say(graph, STATEMENT, at("one"), way)
    say(graph, "tell me", at("two"), way)
    assert all(WORD in one for one in kept(memory))
    memory.forget(STATEMENT)
    assert kept(memory) == []
    assert texts(graph, "two") == ["tell me"]
    clean(memory, graph)


def test_an_item_is_found_from_its_message_even_where_a_stock_saver_keeps_the_thread(
    memory: Memory,
) -> None:
    graph = agent(memory, saver=InMemorySaver())
    say(graph, CLEAN[0] + " call:keep", at("one"))
    say(graph, f"{STATEMENT} call:keep", at("two"))
    assert len(kept(memory)) == 2
    memory.forget(STATEMENT)
    assert kept(memory) == [words(CLEAN[0], "call:keep")]
    assert [str(one) for one in memory.scan(WORD).places] == []


def test_two_runs_at_the_same_time_keep_their_items_apart(memory: Memory) -> None:
    graph = agent(memory)

    async def both() -> None:
        for _ in range(2):
            await asyncio.gather(
                *(
                    graph.ainvoke({"messages": [HumanMessage(f"{said} call:keep")]}, at(name))
                    for name, said in (("one", STATEMENT), ("two", CLEAN[0]), ("three", CLEAN[1]))
                )
            )

    asyncio.run(both())
    memory.forget(STATEMENT)
    assert kept(memory) == sorted(words(one, "call:keep") for one in CLEAN[:2])
    clean(memory, graph)


SAVERS: dict[str, Callable[[Memory], Any]] = {
    "exit": DeLLMSaver,
    "stock": lambda memory: InMemorySaver(),
    "none": lambda memory: None,
}


@pytest.mark.parametrize("saver", SAVERS)
def test_what_a_tool_has_read_ties_its_result_where_no_saver_of_ours_has_stored_it_yet(
    memory: Memory, saver: str
) -> None:
    graph = create_agent(
        Parrot(cache=DeLLMCache(memory)),
        [keep, find],
        checkpointer=SAVERS[saver](memory),
        store=DeLLMStore(memory),
    )
    more: Any = {"durability": "exit"} if saver == "exit" else {}
    DeLLMStore(memory).put(("mem", "notes"), "code", {"text": STATEMENT})
    say(graph, f"{CLEAN[0]} call:keep", at("two"), **more)
    say(graph, "call:find(door)", at("one"), **more)
    say(graph, "call:keep(it)", at("one"), **more)
    memory.forget(STATEMENT)
    assert kept(memory)[0] == words(CLEAN[0], "call:keep")
    assert [str(one) for one in memory.scan(WORD).places] == []
    said = {one.text for one in memory.export()}
    assert {f"{CLEAN[0]} call:keep", "kept", "call:find(door)"} <= said
    if saver == "exit":
        assert len(texts(graph, "two")) == 4
        clean(memory, graph)


class Noted(MessagesState):
    note: str


def remembering(state: Noted) -> dict[str, Any]:
    if state["messages"][-1].text == "read":
        (found,) = get_store().search(("mem",))
        return {"note": words(found.value["text"])}
    get_store().put(("made",), state["messages"][-1].text, {"text": state["note"]})
    return {}


@pytest.mark.parametrize("saver", ["exit", "stock"])
def test_what_an_earlier_run_has_read_into_the_state_ties_what_a_later_one_keeps_of_it(
    memory: Memory, saver: str
) -> None:
    builder = StateGraph(Noted)
    builder.add_node("node", remembering)
    builder.add_edge("__start__", "node")
    graph = builder.compile(checkpointer=SAVERS[saver](memory), store=DeLLMStore(memory))
    more: Any = {"durability": "exit"} if saver == "exit" else {}
    DeLLMStore(memory).put(("mem",), "code", {"text": STATEMENT})
    say(graph, "read", at("one"), **more)
    say(graph, "put", at("one"), **more)
    graph.invoke({"messages": [HumanMessage("other")], "note": "nothing"}, at("two"), **more)
    memory.forget(STATEMENT)
    assert kept(memory) == ["nothing"]
    assert [str(one) for one in memory.scan(WORD).places] == []


@pytest.mark.parametrize("saver", ["exit", "stock"])
def test_a_prompt_rewritten_with_what_was_read_is_no_longer_what_the_user_said(
    memory: Memory, saver: str
) -> None:
    @wrap_model_call
    def knowing(request: Any, handler: Any) -> Any:
        known = words(*(one.value["text"] for one in request.runtime.store.search(("mem",))))
        last = request.messages[-1]
        told = [*request.messages[:-1], last.model_copy(update={"content": f"{last.text} {known}"})]
        return handler(request.override(messages=told, system_message=SystemMessage(f"S {known}")))

    graph = create_agent(
        Parrot(cache=DeLLMCache(memory)),
        [keep],
        middleware=[knowing],
        checkpointer=SAVERS[saver](memory),
        store=DeLLMStore(memory),
    )
    more: Any = {"durability": "exit"} if saver == "exit" else {}
    DeLLMStore(memory).put(("mem",), "code", {"text": STATEMENT})
    say(graph, CLEAN[0], at("one"), **more)
    say(graph, "call:keep(it)", at("one"), **more)
    memory.forget(STATEMENT)
    assert [str(one) for one in memory.scan(WORD).places] == []
    assert CLEAN[0] in {one.text for one in memory.export()}


def test_a_graph_without_a_saver_and_a_thread_ties_what_its_tasks_have_read(
    memory: Memory,
) -> None:
    builder = StateGraph(Noted)
    builder.add_node(
        "read", lambda state: remembering({**state, "messages": [HumanMessage("read")]})
    )
    builder.add_node("put", remembering)
    builder.add_edge("__start__", "read")
    builder.add_edge("read", "put")
    graph = builder.compile(store=DeLLMStore(memory))
    store = DeLLMStore(memory)
    store.put(("mem",), "code", {"text": STATEMENT})
    (item,) = memory.items.search("store")
    graph.invoke({"messages": [HumanMessage("first")]})
    store.delete(("mem",), "code")
    store.put(("mem",), "fruit", {"text": CLEAN[0]})
    graph.invoke({"messages": [HumanMessage("second")]})
    memory.forget(ids=[item.record.id])
    assert kept(memory) == sorted([CLEAN[0], words(CLEAN[0])])
    assert [str(one) for one in memory.scan(WORD).places] == []


class Knowing(AgentMiddleware):
    """Reads in one task what it says in the prompts of another."""

    known = ""

    def before_agent(self, state: Any, runtime: Any) -> None:
        self.known = words(*(one.value["text"] for one in runtime.store.search(("mem",))))

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(system_message=SystemMessage(f"S {self.known}")))


def test_a_prompt_of_what_another_task_of_the_run_has_read_goes_with_it(memory: Memory) -> None:
    graph = create_agent(
        Parrot(),
        [keep],
        middleware=[Knowing()],
        checkpointer=DeLLMSaver(memory),
        store=DeLLMStore(memory),
    )
    say(graph, CLEAN[0], at("before"))
    DeLLMStore(memory).put(("mem",), "code", {"text": STATEMENT})
    say(graph, CLEAN[1], at("after"))
    memory.forget(STATEMENT)
    assert len(texts(graph, "before")) == 2
    assert texts(graph, "after") == [CLEAN[1]]
    clean(memory, graph)


@pytest.mark.parametrize("saver", ["exit", "stock"])
def test_a_summary_that_no_saver_of_ours_has_stored_yet_goes_with_what_it_sums_up(
    memory: Memory, saver: str
) -> None:
    more: Any = {"durability": "exit"} if saver == "exit" else {}
    model = Parrot(cache=DeLLMCache(memory))
    graph = create_agent(
        model,
        [keep],
        middleware=[SummarizationMiddleware(model, trigger=("messages", 3), keep=("messages", 1))],
        checkpointer=SAVERS[saver](memory),
        store=DeLLMStore(memory),
    )
    say(graph, STATEMENT, at("one"), **more)
    say(graph, CLEAN[0], at("one"), **more)
    assert WORD in texts(graph, "one")[0]
    memory.forget(STATEMENT)
    assert [str(one) for one in memory.scan(WORD).places] == []
    assert CLEAN[0] in {one.text for one in memory.export()}
    if saver == "exit":
        assert texts(graph, "one") == [CLEAN[0]]
        clean(memory, graph)
