"""with_memory and track: chains that are told what is relevant, models whose calls are recorded."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from chain_ways import TEMPLATE, Chain, Config, Ways
from graphs import HEARD, Parrot
from langchain_core.callbacks import CallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from one_file import lite
from pairing import problems
from unheard import unheard

from dellm import InvalidInput, Memory
from dellm_langchain.chains import with_memory
from dellm_langchain.history import DeLLMChatMessageHistory
from dellm_langchain.summarizer import DeLLMSummarizer
from dellm_langchain.tracking import DeLLMCallbackHandler, track

__all__ = ["lite", "unheard"]

CONFIG: Config = {"configurable": {"thread_id": "chat"}}
WORD = "canaryqzxv"
KEYS: dict[str, Any] = {"input_messages_key": "q", "history_messages_key": "history"}


def _in_dict(message: BaseMessage) -> dict[str, Any]:
    return {"answer": message, "cost": 3}


Shape = tuple[Callable[[Memory], Chain], Callable[[str], Any]]
SHAPES: dict[str, Shape] = {
    "template": (lambda m: with_memory(TEMPLATE | Parrot(), m, **KEYS, k=3), lambda t: {"q": t}),
    "text": (
        lambda m: with_memory(TEMPLATE | Parrot() | StrOutputParser(), m, **KEYS, k=3),
        lambda t: {"q": t},
    ),
    "model alone": (lambda m: with_memory(Parrot(), m, k=0, last=2), lambda t: t),
    "messages": (lambda m: with_memory(Parrot(), m, k=3), lambda t: [HumanMessage(t)]),
    "dict out": (
        lambda m: with_memory(
            TEMPLATE | Parrot() | _in_dict, m, **KEYS, output_messages_key="answer", k=3
        ),
        lambda t: {"q": t},
    ),
    "function": (lambda m: with_memory(lambda heard: Parrot().invoke(heard), m), lambda t: t),
}


ways = Ways(CONFIG)
WAYS = [ways.invoke, ways.stream, ways.batch, ways.ainvoke, ways.astream, ways.abatch]
SAID = ["apple pie", f"my code is {WORD} dear", "what is my code", "sun and moon", "apple tart"]


def told(memory: Memory) -> None:
    """Check that each reply is made of exactly what its prompt held."""
    for record in memory.history("chat"):
        if record.role == "assistant":
            prompt = next(heard for heard in HEARD if record.text.split()[0] in _replies(heard))
            said = [one.text for one in prompt if not isinstance(one, SystemMessage)]
            assert [memory.get(one).text for one in memory.context_of(record.id)] == said
            assert "inexact" not in record.metadata


def _replies(heard: list[BaseMessage]) -> str:
    return Parrot()._reply(heard, {}).text


def talk_and_forget(memory: Memory, shape: str, ways: list[Any]) -> None:
    make, asked = SHAPES[shape]
    chain = make(memory)
    for at, text in enumerate(SAID):
        ways[at % len(ways)](chain, asked(text))
    assert len(memory.history("chat")) == 2 * len(SAID)
    told(memory)
    clean = [one.id for one in memory.history("chat") if WORD not in one.text]
    memory.forget(SAID[1])
    assert memory.scan(WORD, files=False).places == ()
    left = [one.id for one in memory.history("chat")]
    # "what is my code" was said by the user, before the code was known to be in the reply.
    assert left == clean
    HEARD.clear()
    for way in ways:
        way(chain, asked("what is my code"))
    assert not [one for prompt in HEARD for one in prompt if WORD in repr(one)]
    assert memory.scan(WORD, files=False).places == ()
    assert memory.verify().problems == ()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_chain_forgets_and_each_reply_is_tied_to_just_its_prompt(
    shape: str, lite: Memory
) -> None:
    talk_and_forget(lite, shape, WAYS)


def test_it_is_the_same_on_both_databases(memory: Memory) -> None:
    talk_and_forget(memory, "template", [ways.invoke, ways.astream])


def test_only_what_is_relevant_is_sent_and_from_other_threads_if_asked(lite: Memory) -> None:
    lite.remember("the harbour has a red lighthouse", thread="other")
    lite.remember("the red lighthouse is tall", thread="chat", role="assistant")
    lite.remember("bread needs flour", thread="chat")
    alone, across = (
        with_memory(Parrot(), lite, k=5, threshold=0.2, across_threads=wide)
        for wide in (False, True)
    )
    alone.invoke("a red lighthouse", CONFIG)
    lite.forget(thread="chat", ids=[4, 5])
    across.invoke("a red lighthouse", CONFIG)
    heard = [[one.text for one in prompt] for prompt in HEARD]
    assert heard[0] == ["the red lighthouse is tall", "a red lighthouse"]
    assert heard[1][:2] == ["the harbour has a red lighthouse", "the red lighthouse is tall"]
    assert lite.context_of(7) == [1, 2, 6]
    lite.forget(ids=[1])
    assert [one.id for one in lite.history("chat")] == [2, 3, 6]


def test_a_document_is_told_as_what_it_is_and_within_the_budget(lite: Memory) -> None:
    lite.remember("a red lighthouse", kind="document", role="user", thread="chat")
    chain = with_memory(Parrot(), lite, k=5, threshold=0.2)
    chain.invoke("red lighthouse", CONFIG)
    assert "document" in HEARD[0][0].text
    assert lite.context_of(3) == [1, 2]
    with_memory(Parrot(), lite, k=5, threshold=0.2, budget=1).invoke("red lighthouse", CONFIG)
    assert len(HEARD[1]) == 1


def test_tool_calls_are_told_whole(lite: Memory) -> None:
    history = DeLLMChatMessageHistory(lite, "chat")
    calls = [{"name": "look", "args": {}, "id": name} for name in ("c1", "c2")]
    history.add_messages([HumanMessage("look"), AIMessage("", tool_calls=calls)])
    results = [ToolMessage(f"harbour {one}", tool_call_id=one) for one in ("c1", "c2")]
    history.add_messages(results)
    chain = with_memory(Parrot(), lite, k=1, threshold=0.2)
    chain.invoke("harbour c1", CONFIG)
    assert [one.type for one in HEARD[0]] == ["ai", "tool", "tool", "human"]
    assert problems(HEARD[0]) == []
    lite.forget("harbour c2")
    chain.invoke("harbour c1", CONFIG)
    assert problems(HEARD[1]) == []


@pytest.mark.parametrize("shape", ["template", "text"])
def test_a_stream_that_its_reader_leaves_is_kept_as_far_as_it_went(
    shape: str, lite: Memory
) -> None:
    make, asked = SHAPES[shape]
    chain = make(lite)
    stream = chain.stream(asked("apple pie"), CONFIG)
    seen = [next(stream), next(stream)]
    stream.close()  # type: ignore[attr-defined] # it is a generator

    async def leave() -> None:
        chunks = chain.astream(asked("river boat"), CONFIG)  # type: ignore[arg-type] # so
        await anext(chunks)
        await chunks.aclose()  # type: ignore[attr-defined] # so

    asyncio.run(leave())
    kept = lite.history("chat")
    assert [one.role for one in kept] == ["user", "assistant"] * 2
    assert kept[1].text == "".join(one if isinstance(one, str) else one.text for one in seen)
    assert lite.context_of(2) == [1]
    lite.forget("apple pie")
    assert lite.history("chat")[0].text == "river boat"


def test_nothing_is_kept_of_a_call_that_failed(lite: Memory) -> None:
    def fail(_: object) -> str:
        raise RuntimeError("no model")

    for way in WAYS:
        with pytest.raises(RuntimeError):
            way(with_memory(RunnableLambda(fail), lite), "apple")
    assert lite.history("chat") == []


class Waiting(Parrot):
    meanwhile: Callable[[], object]

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        apart = threading.Thread(target=self.meanwhile)  # which is in no run
        apart.start()
        apart.join()
        return super()._reply(messages, kwargs)


@pytest.mark.parametrize("way", [ways.invoke, ways.astream])
@pytest.mark.parametrize("kind", ["with_memory", "track"])
def test_a_reply_made_of_what_was_forgotten_meanwhile_is_not_kept(
    kind: str, way: Any, memory: Memory
) -> None:
    history = DeLLMChatMessageHistory(memory, "chat")
    history.add_messages([HumanMessage(f"my code is {WORD}")])
    model = Waiting(meanwhile=lambda: memory.forget(f"my code is {WORD}"))
    if kind == "track":
        way(track(model, memory), [*history.messages, HumanMessage("what is it")])
    else:
        way(with_memory(model, memory, k=0, last=1), "what is it")
    assert [one.text for one in memory.history("chat")] == ["what is it"]
    assert memory.scan(WORD, files=False).places == ()


def test_the_thread_and_the_workspace_are_those_of_the_config(lite: Memory) -> None:
    chain = with_memory(Parrot(), lite, workspace="user_id")
    model = track(Parrot(), lite, workspace="user_id")
    for user in ("ann", "bob"):
        both = {"user_id": user, "session_id": f"of {user}"}
        chain.invoke("apple", {"configurable": both})
        (RunnableLambda(lambda text: text) | model).invoke("river", {"configurable": both})
        found = lite.workspace(user).history(f"of {user}")
        assert [one.text for one in found if one.role == "user"] == ["apple", "river"]
    assert lite.threads() == {}
    chain.for_workspace("cy").invoke("sun", {"configurable": {"thread_id": "t"}})
    assert len(lite.workspace("cy").history("t")) == 2
    with pytest.raises(InvalidInput, match="names no workspace"):
        chain.invoke("apple", CONFIG)
    with pytest.raises(InvalidInput, match="thread_id"):
        with_memory(Parrot(), lite).invoke("apple")
    with pytest.raises(InvalidInput, match="thread_id"):
        track(Parrot(), lite).invoke("apple")


# tracked models


def loop(model: Any, way: str, said: list[str]) -> list[BaseMessage]:
    """Talk as people do in loops of their own: one list that grows."""
    messages: list[BaseMessage] = [SystemMessage("answer kindly")]
    for text in said:
        messages.append(HumanMessage(text))
        if way == "invoke":
            messages.append(model.invoke(messages))
        elif way == "ainvoke":
            messages.append(asyncio.run(model.ainvoke(messages)))
        elif way == "batch":
            messages += model.batch([messages])
        elif way == "stream":
            chunks = list(model.stream(messages))
            messages.append(sum(chunks[1:], chunks[0]))
        else:
            messages.append(asyncio.run(_astreamed(model, messages)))
    return messages


async def _astreamed(model: Any, messages: list[BaseMessage]) -> BaseMessage:
    chunks = [one async for one in model.astream(messages)]
    found: BaseMessage = sum(chunks[1:], chunks[0])
    return found


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "batch", "stream", "astream"])
def test_a_tracked_model_records_each_message_once_and_forgets(way: str, lite: Memory) -> None:
    model = track(Parrot(), lite, thread="chat")
    messages = loop(model, way, ["apple", f"my code is {WORD}", "river"])
    assert [one.text for one in lite.history("chat")] == [one.text for one in messages]
    assert [lite.context_of(one) for one in (3, 5, 7)] == [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4, 5, 6]]
    lite.forget(f"my code is {WORD}")
    assert [one.id for one in lite.history("chat")] == [1, 2, 3, 6]
    model.invoke([*messages, HumanMessage("sun")])  # the loop still holds all of it
    assert lite.scan(WORD, files=False).places == ()
    assert lite.history("chat")[-1].text == "sun"
    clean = [one for one in messages if WORD not in one.text]
    reply = model.invoke([*clean, HumanMessage("moon")])
    assert lite.history("chat")[-1].text == reply.text


def test_a_tracked_model_works_on_both_databases(memory: Memory) -> None:
    model = track(Parrot(), memory, thread="chat")
    loop(model, "stream", ["apple", f"my code is {WORD}"])
    memory.forget(f"my code is {WORD}")
    assert [one.id for one in memory.history("chat")] == [1, 2, 3]


def test_messages_made_anew_for_each_call_are_known_by_their_order(lite: Memory) -> None:
    model = track(Parrot(), lite, thread="chat")
    pairs = [("system", "answer kindly"), ("user", "apple")]
    first = model.invoke(pairs)
    pairs += [("assistant", first.text), ("user", "apple"), ("user", "river")]
    model.invoke(pairs)
    assert [one.text for one in lite.history("chat")][:-1] == [text for _, text in pairs]
    assert lite.context_of(6) == [1, 2, 3, 4, 5]


def test_a_tracked_model_is_still_that_model(lite: Memory) -> None:
    @tool
    def look(query: str) -> str:
        """Look something up."""
        return query

    plain = Parrot()
    model = track(plain, lite, thread="chat")
    assert isinstance(model, Parrot)
    assert plain.callbacks is None
    called = model.bind_tools([look]).invoke("call:look(harbour)")
    model.invoke([HumanMessage("call:look(harbour)"), called, look.invoke(called.tool_calls[0])])
    assert [one.role for one in lite.history("chat")] == ["user", "assistant", "tool", "assistant"]
    assert lite.context_of(3) == [2]
    kept = Parrot(callbacks=CallbackManager([]))
    assert len(track(kept, lite).callbacks.handlers) == 1
    assert not kept.callbacks.handlers  # type: ignore[union-attr] # it is a manager


def test_a_handler_can_be_given_to_a_single_call(lite: Memory) -> None:
    model: BaseChatModel = Parrot()
    model.invoke("apple", {"callbacks": [DeLLMCallbackHandler(lite, "chat")]})
    model.invoke("river")
    assert lite.history("chat")[0].text == "apple"
    assert len(lite.history("chat")) == 2


def test_a_tracked_stream_that_its_reader_leaves_is_kept_as_far_as_it_went(lite: Memory) -> None:
    stream = track(Parrot(), lite, thread="chat").stream("apple pie")
    seen = next(stream).text
    stream.close()
    assert [one.text for one in lite.history("chat")] == ["apple pie", seen]
    assert lite.context_of(2) == [1]


@pytest.mark.parametrize("what", [None, "text", 3, RunnableLambda(str)])
def test_what_cannot_be_tracked_is_refused(what: Any) -> None:
    with Memory.open(":memory:", embedder=None) as memory, pytest.raises(InvalidInput):
        track(what, memory)


# whose workspace, what is asked, and what is no option


def test_the_config_of_a_call_itself_says_where_a_tracked_model_is_recorded(lite: Memory) -> None:
    model = track(Parrot(), lite, workspace="user_id")
    inner: Any = {"configurable": {"user_id": "bob", "thread_id": "jobs"}}
    step = RunnableLambda(lambda text: model.invoke(text, inner))
    step.invoke("apple", {"configurable": {"user_id": "ann", "thread_id": "chat"}})
    assert lite.workspace("ann").threads() == {}
    assert lite.workspace("bob").history("jobs")[0].text == "apple"


@pytest.mark.parametrize("forgets", [False, True])
def test_a_result_is_sent_with_the_call_that_it_answers(forgets: bool, lite: Memory) -> None:
    @tool
    def look(query: str) -> str:
        """Look something up."""
        return query

    def chain() -> Any:
        return with_memory(Parrot().bind_tools([look]), lite, thread="chat", k=0)

    called = chain().invoke("call:look(harbour)")
    for text in [f"apple {at}" for at in range(20)]:
        DeLLMChatMessageHistory(lite, "chat").add_messages([HumanMessage(text)])
    if forgets:  # what this process knows of the thread is dropped
        lite.forget("apple 3")
    chain().invoke([look.invoke(called.tool_calls[0])])
    assert [one.type for one in HEARD[-1]] == ["ai", "tool"]
    assert problems(HEARD[-1]) == []


def test_a_message_that_is_said_again_is_kept_again(lite: Memory) -> None:
    chain, asked = with_memory(Parrot(), lite, thread="chat"), HumanMessage("apple")
    chain.invoke([asked])
    chain.invoke([asked])
    assert asked.id is None
    assert [one.role for one in lite.history("chat")] == ["user", "assistant"] * 2


def test_a_copied_chain_and_a_copied_model_remember_in_the_same_memory(lite: Memory) -> None:
    chain = copy.deepcopy(with_memory(TEMPLATE | Parrot(), lite, **KEYS, thread="chat"))
    chain.invoke({"q": "apple"})
    model = copy.deepcopy(track(Parrot(), lite, thread="chat"))
    model.invoke("river")
    assert [one.text for one in lite.history("chat") if one.role == "user"] == ["apple", "river"]
    for one in (chain, model):
        with pytest.raises(InvalidInput, match="cannot be pickled"):
            pickle.dumps(one)


WRONG: list[Callable[[Memory], Any]] = [
    *(
        lambda m, bad=bad: with_memory(Parrot(), m, **bad)  # type: ignore[misc] # a default binds it
        for bad in (
            {"k": -1},
            {"k": "3"},
            {"last": True},
            {"threshold": 2},
            {"by": "smell"},
            {"budget": -1},
            {"count": 3},
            {"across_threads": "yes"},
            {"workspace": 5},
            {"serde": 5},
            {"thread": ""},
            {"input_messages_key": 5},
        )
    ),
    lambda m: with_memory("chain", m),
    lambda m: track(Parrot(), m, workspace=""),
    lambda m: track(Parrot(), m, thread=""),
    lambda m: track(Parrot(), m, serde=5),
    lambda m: track(Parrot(), m, shelf=5),
    lambda m: DeLLMChatMessageHistory(m, "t", workspace=5),  # type: ignore[arg-type] # so
    lambda m: DeLLMChatMessageHistory(m, "t", serde=5),  # type: ignore[arg-type] # so
    lambda m: DeLLMChatMessageHistory(m, "t").add_messages(None),  # type: ignore[arg-type] # so
    lambda m: DeLLMSummarizer(Parrot(), m, prompt=5),  # type: ignore[arg-type] # so
    lambda m: DeLLMSummarizer(Parrot(), m, name=5),  # type: ignore[arg-type] # so
    lambda m: DeLLMSummarizer(Parrot(), m, workspace=5),  # type: ignore[arg-type] # so
    lambda m: DeLLMSummarizer(Parrot(), m, serde=5),  # type: ignore[arg-type] # so
]


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_option_is_an_error_of_ours_when_the_object_is_made(
    call: Callable[[Memory], Any],
) -> None:
    with Memory.open(":memory:", embedder=None) as memory, pytest.raises(InvalidInput):
        call(memory)


def test_a_config_without_a_thread_is_told_as_such(lite: Memory) -> None:
    for chain in (with_memory(Parrot(), lite), track(Parrot(), lite)):
        with pytest.raises(InvalidInput, match="names no thread"):
            chain.invoke("apple", {"configurable": {"user": "ann"}})
