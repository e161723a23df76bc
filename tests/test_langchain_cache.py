"""DeLLMCache does what LangChain asks of a cache, and gives each reply as if the model had said it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from graphs import HEARD, Parrot, chat, latest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    Generation,
    GenerationChunk,
)
from langchain_core.runnables import RunnableLambda
from langchain_tests.integration_tests import AsyncCacheTestSuite, SyncCacheTestSuite
from langgraph.graph import MessagesState

from dellm import InvalidInput, Memory
from dellm_langchain import DeLLMCache, DeLLMSaver

MODEL = "[('_type', 'parrot')]"


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def everywhere() -> Iterator[Callable[[Any], None]]:
    """Return what makes a cache that of all models, until the test ends."""
    yield set_llm_cache
    set_llm_cache(None)


class TestOfLangChainSync(SyncCacheTestSuite):
    @pytest.fixture
    def cache(self, memory: Memory) -> DeLLMCache:
        return DeLLMCache(memory)


@pytest.mark.anyio
class TestOfLangChainAsync(AsyncCacheTestSuite):
    @pytest.fixture
    def cache(self, memory: Memory) -> DeLLMCache:  # type: ignore[override] # a coroutine there
        return DeLLMCache(memory)


CALL = {"name": "lookup", "args": {"query": "the lake"}, "id": "call_1", "type": "tool_call"}
REPLIES = {
    "text": [Generation(text="one"), Generation(text="two", generation_info={"n": (1, 2.5, None)})],
    "chunk": [GenerationChunk(text="part", generation_info={"finish_reason": "stop"})],
    "message": [
        ChatGeneration(
            message=AIMessage("hello", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
            generation_info={"logprobs": [{"token": "he", "logprob": -0.25}]},
        )
    ],
    "blocks": [
        ChatGeneration(message=AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "\ud800"}]))
    ],
    "call": [ChatGeneration(message=AIMessage("", tool_calls=[CALL], additional_kwargs={"raw": b"\x00"}))],
    "message chunk": [ChatGenerationChunk(message=AIMessageChunk("hel", chunk_position="last"))],
}  # fmt: skip


@pytest.mark.parametrize("replies", REPLIES.values(), ids=REPLIES)
def test_any_reply_comes_back_as_it_was_but_for_its_id(
    memory: Memory, replies: list[Generation]
) -> None:
    cache = DeLLMCache(memory)
    cache.update("p", MODEL, replies)
    first, second = cache.lookup("p", MODEL), cache.lookup("p", MODEL)
    assert first is not None
    assert second is not None
    for found in (first, second):
        ids = [one.message.id for one in found if isinstance(one, ChatGeneration)]
        assert all(ids)
        for one in found:
            if isinstance(one, ChatGeneration):
                one.message.id = None
        assert found == replies
        assert list(map(type, found)) == list(map(type, replies))
    assert first[0] is not second[0]


def test_keys_hold_nothing_of_the_prompt(memory: Memory) -> None:
    reply = [Generation(text="fine")]
    for cache in (DeLLMCache(memory), InMemoryCache()):
        cache.update("my door code is canaryqzxv", MODEL, reply)
        assert cache.lookup("my door code is canaryqzxv", MODEL) == reply
    assert "canaryqzxv" in repr(cache._cache)
    assert memory.scan("canaryqzxv", files=False).clean
    (item,) = memory.items.search("llm")
    assert "parrot" not in repr(item)
    names = {memory.workspace(one).items.digest(["p"]) for one in ("alex", "sam")}
    assert len(names) == 2


@pytest.mark.parametrize("method", ["invoke", "ainvoke"])
def test_two_hits_in_one_thread_are_two_replies(memory: Memory, method: str) -> None:
    HEARD.clear()
    model = Parrot(cache=DeLLMCache(memory))

    async def asked(state: Any) -> Any:
        return {"messages": [await model.ainvoke(latest(state["messages"]))]}

    node = RunnableLambda(
        lambda state: {"messages": [model.invoke(latest(state["messages"]))]}, asked
    )
    graph = chat(MessagesState, node).compile(checkpointer=DeLLMSaver(memory))  # fmt: skip
    for thread in ("a", "b"):
        for _ in range(3):
            given, config = (
                {"messages": [HumanMessage("hi")]},
                {"configurable": {"thread_id": thread}},
            )
            state = graph.invoke(given, config) if method == "invoke" else asyncio.run(graph.ainvoke(given, config))  # fmt: skip
        assert [one.type for one in state["messages"]] == ["human", "ai"] * 3
    assert len(HEARD) == 1
    replies = [one for one in [*memory.history("a"), *memory.history("b")] if one.role == "assistant"]  # fmt: skip
    assert len({one.framework_id for one in replies}) == 6


def test_a_hit_reaches_those_who_stream(memory: Memory) -> None:
    model = Parrot(cache=DeLLMCache(memory))
    node = RunnableLambda(lambda state: {"messages": [model.invoke(latest(state["messages"]))]})
    graph = chat(MessagesState, node).compile(checkpointer=DeLLMSaver(memory))
    said = []
    for thread in ("a", "b"):
        config = {"configurable": {"thread_id": thread}}
        given = {"messages": [HumanMessage("hi there")]}
        parts = [one for one, _ in graph.stream(given, config, stream_mode="messages")]
        text = "".join(one.text for one in parts if isinstance(one, (AIMessage, AIMessageChunk)))
        said.append(text)
        reply = graph.get_state(config).values["messages"][-1]
        assert {one.id for one in parts if one.type != "human"} == {reply.id}
        assert reply.text == text
    assert said[0] == said[1]
    assert said[0]


def test_a_batch_is_answered_prompt_by_prompt(memory: Memory) -> None:
    HEARD.clear()
    model = Parrot(cache=DeLLMCache(memory))
    prompts = [[SystemMessage("be brief"), HumanMessage(one, id=one)] for one in ("a1", "b2", "c3")]
    first = model.generate(prompts[:2])
    second = asyncio.run(model.agenerate(prompts))
    assert len(HEARD) == 3
    texts = [one[0].text for one in second.generations]
    assert texts[:2] == [one[0].text for one in first.generations]
    assert [text.split()[-2:] for text in texts] == [one.split()[-2:] for one in texts]
    runs = [str(one.run_id) for one in second.run or ()]
    for run, (reply,) in zip(runs, second.generations, strict=True):
        assert run in str(reply.message.id)


def test_models_of_text_are_answered_too(memory: Memory, everywhere: Any) -> None:
    everywhere(DeLLMCache(memory))
    model = FakeListLLM(responses=["first", "second"])
    assert [model.invoke("p"), model.invoke("q"), model.invoke("p")] == ["first", "second", "first"]
    assert asyncio.run(model.ainvoke("q")) == "second"


def test_an_entry_lives_as_long_as_it_was_given(url: str, opened: Callable[..., Memory]) -> None:
    clock = count(1_000_000_000_000_000, 1_000_000)  # a second at each look
    memory = opened(url, embedder=None, clock=lambda: next(clock))
    cache, reply = DeLLMCache(memory, ttl=90), [Generation(text="soon gone")]
    cache.update("p", MODEL, reply)
    assert cache.lookup("p", MODEL) == reply
    for _ in range(100):
        next(clock)
    assert cache.lookup("p", MODEL) is None
    for at in range(64):
        cache.update(str(at), MODEL, [Generation(text="another")])
    assert memory.scan("soon gone", files=False).clean


def test_tenants_share_no_entry(memory: Memory) -> None:
    cache = DeLLMCache(memory, workspace="user_id")
    model = Parrot(cache=cache)
    graph = chat(
        MessagesState, RunnableLambda(lambda s: {"messages": [model.invoke(s["messages"])]})
    )
    ran = graph.compile(checkpointer=DeLLMSaver(memory, workspace="user_id"))
    HEARD.clear()
    for user in ("ann", "bob", "ann"):
        ran.invoke(
            {"messages": [HumanMessage("hi")]},
            {"configurable": {"thread_id": f"t{len(HEARD)}", "user_id": user}},
        )
    assert len(HEARD) == 2
    assert len(memory.workspace("ann").items.search("llm")) == 1
    cache.for_workspace("ann").clear()
    assert memory.workspace("ann").items.search("llm") == []
    assert len(memory.workspace("bob").items.search("llm")) == 1
    with pytest.raises(InvalidInput):
        cache.lookup("p", MODEL)
    with pytest.raises(InvalidInput):
        ran.invoke({"messages": [HumanMessage("hi")]}, {"configurable": {"thread_id": "x"}})


def _for(user: str) -> Any:
    return {"configurable": {"user_id": user, "session_id": "s"}}


WAYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "invoke": lambda one, given, config: one.invoke(given, config),
    "ainvoke": lambda one, given, config: asyncio.run(one.ainvoke(given, config)),
    "batch": lambda one, given, config: one.batch([given] * 2, [config] * 2),
    "abatch": lambda one, given, config: asyncio.run(one.abatch([given] * 2, config)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("kind", ["model", "chain", "texts"])
def test_the_config_of_the_call_itself_names_the_workspace(
    memory: Memory, kind: str, way: Callable[[Any, Any, Any], Any]
) -> None:
    cache = DeLLMCache(memory, workspace="user_id")
    model: Any = FakeListLLM(responses=["r"], cache=cache) if kind == "texts" else Parrot(cache=cache)  # fmt: skip
    if kind == "chain":
        model = RunnableLambda(lambda given: given) | model
    for user in ("ann", "bob"):
        way(model, "hi", _for(user))
        (item,) = memory.workspace(user).items.search("llm")
        way(model, "hi", _for(user))
        assert [item] == memory.workspace(user).items.search("llm")


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_call_for_one_tenant_in_the_run_of_another_is_that_tenants(
    memory: Memory, way: str
) -> None:
    model = Parrot(cache=DeLLMCache(memory, workspace="user_id"))
    held = {one: memory.workspace(one).items for one in ("ann", "bob")}

    def asked(given: str) -> str:
        return str(model.invoke(given, _for("bob")).text)

    async def asked_so(given: str) -> str:
        return str((await model.ainvoke(given, _for("bob"))).text)

    inner = RunnableLambda(asked, asked_so)
    if way == "invoke":
        inner.invoke("hi", _for("ann"))
    else:
        asyncio.run(inner.ainvoke("hi", _for("ann")))
    assert held["ann"].search("llm") == []
    assert len(held["bob"].search("llm")) == 1
    RunnableLambda(lambda _: model.generate([[HumanMessage("hi")]])).invoke("x", _for("ann"))
    assert [len(one.search("llm")) for one in held.values()] == [1, 1]


def test_nothing_is_cached_where_it_is_not_sure_whose_it_is(memory: Memory) -> None:
    cache = DeLLMCache(memory, workspace="user_id")
    model = Parrot(cache=cache)
    node = RunnableLambda(lambda s: {"messages": [model.invoke(s["messages"], _for("bob"))]})
    graph = chat(MessagesState, node).compile(checkpointer=DeLLMSaver(memory, workspace="user_id"))  # fmt: skip
    config = {"configurable": {"thread_id": "t", "user_id": "ann"}}
    state = graph.invoke({"messages": [HumanMessage("hi")]}, config)
    assert state["messages"][-1].text
    texts = FakeListLLM(responses=["one", "two"], cache=cache)
    assert texts.batch(["p", "q"], [_for("ann"), _for("bob")]) == ["one", "two"]
    assert [memory.workspace(one).items.search("llm") for one in ("ann", "bob")] == [[], []]


WRONG: dict[str, Callable[[Memory], object]] = {
    "serde": lambda memory: DeLLMCache(memory, serde=5),  # type: ignore[arg-type] # wrong
    "workspace": lambda memory: DeLLMCache(memory, workspace=5),  # type: ignore[arg-type] # wrong
    "no workspace": lambda memory: DeLLMCache(memory, workspace=" "),
    "nothing": lambda memory: DeLLMCache(memory).update("p", MODEL, None),  # type: ignore[arg-type] # wrong
    "a text": lambda memory: DeLLMCache(memory).update("p", MODEL, "x"),
    "a number": lambda memory: DeLLMCache(memory).update("p", MODEL, [1]),  # type: ignore[list-item] # wrong
    "a prompt": lambda memory: DeLLMCache(memory).lookup(5, MODEL),  # type: ignore[arg-type] # wrong
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_makes_no_sense_is_refused(
    sqlite_url: str, opened: Callable[..., Memory], wrong: Callable[[Memory], object]
) -> None:
    with pytest.raises(InvalidInput):
        wrong(opened(sqlite_url, embedder=None))


@pytest.mark.parametrize("ttl", [0, -1, True, "5", float("inf"), 1e300, float("nan")])
def test_a_time_to_live_is_a_number_of_seconds(memory: Memory, ttl: Any) -> None:
    with pytest.raises(InvalidInput):
        DeLLMCache(memory, ttl=ttl)
    with pytest.raises(InvalidInput):
        DeLLMCache(":memory:")  # type: ignore[arg-type] # as a user may try
