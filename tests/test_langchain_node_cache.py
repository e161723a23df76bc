"""DeLLMNodeCache does what LangGraph asks of a cache, and forgets what it was made from."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from graphs import CLEAN, HEARD, STATEMENT, WORD, Noted, Parrot, Way, latest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import CachePolicy, Send

from dellm import InvalidInput, Memory, Record
from dellm_langchain import DeLLMNodeCache, DeLLMSaver

WAYS = [Way("invoke"), Way("ainvoke"), Way("stream"), Way("astream")]
RAN: list[str] = []
on_sqlite = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


@pytest.fixture(autouse=True)
def quiet() -> None:
    HEARD.clear()
    RAN.clear()


def newest(state: Any) -> str:
    """Key a node by what was said last, so that threads share what it wrote."""
    return str(latest(state["messages"])[0].text)


def talking(memory: Memory, cache: Any = None, saver: Any = None, ttl: int | None = None) -> Any:
    """Return a graph of two cached nodes: a reply, and a note that is made of it."""
    model = Parrot()

    def reply(state: Any) -> Any:
        RAN.append("reply")
        return {"messages": [model.invoke(latest(state["messages"]))]}

    async def areply(state: Any) -> Any:
        RAN.append("reply")
        return {"messages": [await model.ainvoke(latest(state["messages"]))]}

    def note(state: Any) -> Any:
        RAN.append("note")
        return {"note": f"noted {state['messages'][-1].text}"}

    graph = StateGraph(Noted)
    policy = CachePolicy(key_func=newest, ttl=ttl)
    graph.add_node("reply", RunnableLambda(reply, areply), cache_policy=policy)
    graph.add_node("note", note, cache_policy=policy)
    graph.add_edge(START, "reply")
    graph.add_edge("reply", "note")
    return graph.compile(
        checkpointer=saver or DeLLMSaver(memory), cache=cache or DeLLMNodeCache(memory)
    )


def tell(graph: Any, thread: str, *texts: str, way: Way = WAYS[0], **more: str) -> dict[str, Any]:
    config = {"configurable": {"thread_id": thread, **more}}
    for text in texts:
        way.run(graph, {"messages": [HumanMessage(text)]}, config)
    return dict(graph.get_state(config).values)


def said(memory: Memory, thread: str) -> list[Record]:
    return [one for one in memory.history(thread) if one.kind == "message"]


def texts(memory: Memory, thread: str) -> list[str]:
    return [one.text for one in said(memory, thread)]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_node_runs_again_once_what_it_wrote_was_made_from_is_forgotten(
    memory: Memory, way: Way
) -> None:
    graph = talking(memory)
    first = [tell(graph, one, CLEAN[0], STATEMENT, way=way) for one in ("a", "b")]
    assert RAN == ["reply", "note"] * 2, "the second thread is answered from the cache"
    assert first[0]["note"] == first[1]["note"]
    assert len({one.framework_id for thread in "ab" for one in said(memory, thread)}) == 8
    memory.forget(ids=[said(memory, "a")[2].id])
    assert [one for one in texts(memory, "b") if WORD in one] == [STATEMENT]
    assert tell(graph, "b")["note"] == f"noted {texts(memory, 'b')[1]}"
    assert len(texts(memory, "a")) == 2
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean
    assert texts(memory, "a") == texts(memory, "b")
    tell(graph, "c", CLEAN[0], way=way)
    assert len(RAN) == 4, "the control is still cached"
    tell(graph, "c", STATEMENT, way=way)
    assert len(RAN) == 6
    assert memory.verify().ok


def test_a_replayed_reply_depends_on_the_entry_and_on_its_own_thread(memory: Memory) -> None:
    graph = talking(memory)
    tell(graph, "a", CLEAN[0])
    tell(graph, "b", CLEAN[0])
    entry = next(
        one.record for one in memory.items.search("node") if "noted" not in one.record.text
    )
    (human, made), (other, replayed) = said(memory, "a"), said(memory, "b")
    assert memory.context_of(made.id) == [human.id]
    assert memory.context_of(entry.id) == [made.id]
    assert {other.id, entry.id} <= set(memory.context_of(replayed.id))
    memory.forget(ids=[replayed.id])
    assert texts(memory, "a")[1] == made.text
    tell(graph, "c", CLEAN[0])
    assert RAN.count("reply") == 2, "what was forgotten is not given again"


@on_sqlite
def test_two_hits_in_one_thread_are_two_replies(memory: Memory) -> None:
    graph = talking(memory)
    state = tell(graph, "a", *[CLEAN[0]] * 3)
    assert [one.type for one in state["messages"]] == ["human", "ai"] * 3
    assert RAN == ["reply", "note"]


@on_sqlite
def test_ids_that_a_node_gives_on_purpose_are_kept(memory: Memory) -> None:
    def edit(state: Any) -> Any:
        RAN.append("edit")
        return {"messages": [AIMessage("summary", id="the-summary"), state["messages"][0]]}

    graph = StateGraph(MessagesState)
    graph.add_node("edit", edit, cache_policy=CachePolicy(key_func=newest))
    graph.add_edge(START, "edit")
    made = graph.compile(checkpointer=DeLLMSaver(memory), cache=DeLLMNodeCache(memory))
    ids = [
        [one.id for one in tell(made, "a", text)["messages"]]
        for text in ("one", "one", "two", "one")
    ]
    assert [len(one) for one in ids] == [2, 3, 4, 5]
    assert ids[-1].count("the-summary") == 1
    assert RAN == ["edit", "edit"]


def test_tenants_share_no_entry(memory: Memory) -> None:
    saver = DeLLMSaver(memory, workspace="user_id")
    cache = DeLLMNodeCache(memory, workspace="user_id")
    graph = talking(memory, cache, saver)
    for user in ("ann", "bob", "ann"):
        tell(graph, "t", CLEAN[0], user_id=user)
    assert RAN == ["reply", "note"] * 2
    with pytest.raises(InvalidInput):
        tell(graph, "t", CLEAN[0])
    with pytest.raises(InvalidInput):
        cache.clear()
    cache.for_workspace("ann").clear()
    tell(graph, "t", CLEAN[0], user_id="bob")
    tell(graph, "t", CLEAN[0], user_id="ann")
    assert RAN == ["reply", "note"] * 3


def test_an_entry_lives_as_long_as_its_policy_says(url: str, opened: Callable[..., Memory]) -> None:
    clock = count(1_000_000_000_000_000, 1_000)  # a millisecond at each look
    memory = opened(url, embedder=None, clock=lambda: next(clock))
    graph = talking(memory, ttl=60)
    for _ in range(2):
        tell(graph, "a", CLEAN[0])
    assert RAN == ["reply", "note"]
    for _ in range(60_000):
        next(clock)
    tell(graph, "a", CLEAN[0])
    assert RAN == ["reply", "note"] * 2


@on_sqlite
def test_a_graph_clears_the_entries_of_its_nodes(memory: Memory) -> None:
    graph = talking(memory)
    tell(graph, "a", CLEAN[0])
    graph.clear_cache(["reply"])
    tell(graph, "b", CLEAN[0])
    assert RAN == ["reply", "note", "reply"]
    asyncio.run(graph.aclear_cache())
    assert memory.items.search("node") == []


KEYS = [((), "k"), (("n", "1"), "k"), (("n",), "canaryqzxv")]
WRITES = [("messages", [AIMessage("hi", id="m")]), ("note", {"a": (1, None), "b": {2}}), ("n", 3)]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_is_set_is_read_as_from_a_stock_cache(memory: Memory, asynchronous: bool) -> None:
    def of(cache: Any, method: str, *args: Any) -> Any:
        if asynchronous:
            return asyncio.run(getattr(cache, f"a{method}")(*args))
        return getattr(cache, method)(*args)

    ours, stock = DeLLMNodeCache(memory), InMemoryCache[Any]()
    for cache in (ours, stock):
        of(cache, "set", dict.fromkeys(KEYS, (WRITES, 100)))
        of(cache, "set", {KEYS[1]: ([("note", "new")], None)})
    found = of(ours, "get", KEYS)
    assert found == {KEYS[0]: WRITES, KEYS[1]: [("note", "new")], KEYS[2]: WRITES}
    assert found.keys() == of(stock, "get", KEYS).keys()
    assert memory.scan("canaryqzxv", files=False).clean
    for cache in (ours, stock):
        of(cache, "clear", [("n",)])
    assert of(ours, "get", KEYS).keys() == of(stock, "get", KEYS).keys()
    of(ours, "clear")
    assert of(ours, "get", KEYS) == {}
    assert of(ours, "get", []) == {}


@on_sqlite
def test_an_entry_stays_where_what_a_hit_gave_goes_for_another_reason(memory: Memory) -> None:
    inner = talking(memory).builder.compile(cache=DeLLMNodeCache(memory))
    graph = StateGraph(Noted).add_node("in", inner).add_edge(START, "in")
    outer = graph.compile(checkpointer=DeLLMSaver(memory), cache=DeLLMNodeCache(memory))
    for thread in ("a", "b"):
        tell(outer, thread, CLEAN[0], STATEMENT)
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean
    RAN.clear()
    tell(outer, "c", CLEAN[0])
    assert RAN == []
    tell(outer, "c", STATEMENT)
    assert RAN == ["reply", "note"]


def test_what_parallel_tasks_wrote_is_told_apart(memory: Memory) -> None:
    def each(state: Any) -> list[Send]:
        return [Send("work", part) for part in newest(state).split(", ")]

    def work(part: str) -> Any:
        RAN.append(part)
        return {"messages": [Parrot().invoke(part)]}

    graph = StateGraph(MessagesState)
    graph.add_node("work", work, cache_policy=CachePolicy(key_func=str))
    graph.add_conditional_edges(START, each, ["work"])
    graph.add_edge("work", END)
    made = graph.compile(checkpointer=DeLLMSaver(memory), cache=DeLLMNodeCache(memory))
    for thread in "ab":
        tell(made, thread, f"tea, {WORD}")
        assert len(texts(memory, thread)) == 3
    assert sorted(RAN) == sorted(["tea", WORD])
    memory.forget(WORD)
    assert memory.scan(WORD, files=False).clean
    tell(made, "c", f"tea, {WORD}")
    assert RAN.count(WORD) == 2


@on_sqlite
def test_tasks_of_the_functional_api_are_cached_too(memory: Memory) -> None:
    @task(cache_policy=CachePolicy(key_func=lambda text: text))
    def ask(text: str) -> str:
        RAN.append(text)
        return str(Parrot().invoke(text).text)

    @entrypoint(checkpointer=DeLLMSaver(memory), cache=DeLLMNodeCache(memory))
    def flow(text: str) -> str:
        return ask(text).result()

    for thread in "ab":
        for text in (CLEAN[0], STATEMENT):
            assert "reply" in flow.invoke(text, {"configurable": {"thread_id": thread}})
    assert len(RAN) == 2
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean
    for text in (CLEAN[0], STATEMENT):
        flow.invoke(text, {"configurable": {"thread_id": "c"}})
    assert RAN.count(STATEMENT) == 2
    assert memory.verify().ok


@on_sqlite
def test_what_makes_no_sense_is_refused(memory: Memory) -> None:
    for wrong in ({"serde": 5}, {"workspace": 5}, {"workspace": ""}):
        with pytest.raises(InvalidInput):
            DeLLMNodeCache(memory, **wrong)  # type: ignore[arg-type] # wrong
    cache = DeLLMNodeCache(memory)
    for ttl in ("x", True, float("nan"), 1e300):
        with pytest.raises(InvalidInput):
            cache.set({(("n",), "k"): ([("ch", 1)], ttl)})  # type: ignore[dict-item] # wrong
    assert cache.get([(("n",), "k")]) == {}


@on_sqlite
def test_a_run_that_is_stored_at_its_end_is_not_cached(memory: Memory) -> None:
    graph = talking(memory)
    for thread in "ab":
        tell(graph, thread, STATEMENT, way=Way("invoke", "exit"))
    assert len(RAN) == 4
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean


@on_sqlite
def test_without_our_saver_an_entry_goes_with_the_messages_of_its_graph(memory: Memory) -> None:
    graph = talking(memory, saver=InMemorySaver())
    tell(graph, "a", CLEAN[0])
    tell(graph, "b", STATEMENT)
    assert not memory.scan(WORD, files=False).clean
    memory.forget(STATEMENT)
    assert memory.scan(WORD, files=False).clean
    assert len(memory.items.search("node")) == 2


@on_sqlite
def test_a_graph_of_which_nothing_is_known_is_not_cached(memory: Memory) -> None:
    cache = DeLLMNodeCache(memory)
    cache.set({KEYS[0]: (deque(WRITES), None)})
    assert cache.get(KEYS) == {}
