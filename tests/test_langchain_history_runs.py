"""The chat history under RunnableWithMessageHistory: what stays, what goes, and what is not lost.

The model repeats all that it was shown, so whatever was made of a word holds it. The same runs with
LangChain's own SQL history show that the checks find something.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chain_ways import TEMPLATE, Chain, Config, Ways
from graphs import HEARD, Parrot
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from one_file import lite
from pairing import problems
from unheard import unheard

from dellm import Memory
from dellm_langchain.history import DeLLMChatMessageHistory

__all__ = ["lite", "unheard"]

CONFIG: Config = {"configurable": {"session_id": "chat"}}
WORD = "canaryqzxv"


def with_history(chain: Any, history: Callable[[str], Any], **keys: str) -> Chain:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LangChain says that it is deprecated
        return RunnableWithMessageHistory(chain, history, **keys)  # type: ignore[arg-type] # any


def keyed(chain: Any, history: Callable[[str], Any]) -> tuple[Chain, Callable[[str], Any]]:
    found = with_history(chain, history, input_messages_key="q", history_messages_key="history")
    return found, lambda text: {"q": text}


def plain(chain: Any, history: Callable[[str], Any]) -> tuple[Chain, Callable[[str], Any]]:
    return with_history(chain, history), lambda text: [HumanMessage(text)]


def as_text(messages: list[BaseMessage]) -> str:
    return "Chat:\n" + "\n".join(one.text for one in messages)


def as_one(message: BaseMessage) -> str:
    return f"In short: {message.text}"


Make = Callable[[Callable[[str], Any]], tuple[Chain, Callable[[str], Any]]]
SHAPES: dict[str, Make] = {
    "template": lambda history: keyed(TEMPLATE | Parrot(), history),
    "template to text": lambda history: keyed(TEMPLATE | Parrot() | StrOutputParser(), history),
    "model alone": lambda history: plain(Parrot(), history),
    "list of messages": lambda history: plain(RunnableLambda(list) | Parrot(), history),
    "one text": lambda history: plain(RunnableLambda(as_text) | Parrot(), history),
    "two calls": lambda history: plain(
        RunnableLambda(as_text) | Parrot() | RunnableLambda(as_one) | Parrot(), history
    ),
}


ways = Ways(CONFIG)
WAYS = [ways.invoke, ways.stream, ways.batch, ways.ainvoke, ways.astream]


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


def ours(memory: Memory) -> Callable[[str], DeLLMChatMessageHistory]:
    return lambda session: DeLLMChatMessageHistory(memory, session)


def stock(folder: Path) -> Callable[[str], BaseChatMessageHistory]:
    sql = pytest.importorskip("langchain_community.chat_message_histories.sql")
    url = f"sqlite:///{folder / 'stock.db'}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lambda session: sql.SQLChatMessageHistory(session, connection=url)


def texts(history: Any) -> list[str]:
    return [one.text for one in history.messages]


def talk_and_forget(memory: Memory, shape: str, ways: list[Any]) -> None:
    chain, asked = SHAPES[shape](ours(memory))
    said = ["apple pie", f"my code is {WORD} dear", "river boat", "sun and moon"]
    for at, text in enumerate(said):
        ways[at % len(ways)](chain, asked(text))
    assert len(memory.history("chat")) == 8
    memory.forget(said[1])
    assert texts(ours(memory)("chat"))[0::1][:2] == [said[0], memory.get(2).text]
    assert texts(ours(memory)("chat"))[2:] == said[2:]
    assert memory.scan(WORD, files=False).places == ()
    HEARD.clear()
    for way in ways:
        way(chain, asked("and now"))
    assert not [one for prompt in HEARD for one in prompt if WORD in repr(one)]
    assert memory.scan(WORD, files=False).places == ()
    assert memory.verify().problems == ()


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_forgotten_is_in_no_reply_however_it_was_run(shape: str, lite: Memory) -> None:
    talk_and_forget(lite, shape, WAYS)


def test_it_is_the_same_on_both_databases(memory: Memory) -> None:
    talk_and_forget(memory, "template", [ways.invoke, ways.astream])


@pytest.mark.parametrize("shape", ["template", "template to text", "model alone"])
def test_a_reply_depends_on_exactly_the_prompt_and_on_nothing_that_was_cut(
    shape: str, lite: Memory
) -> None:
    window = trim_messages(max_tokens=2, token_counter=len, strategy="last")
    cut = RunnableLambda(lambda value: {**value, "history": window.invoke(value["history"])})
    chains: dict[str, Make] = {
        "template": lambda history: keyed(cut | TEMPLATE | Parrot(), history),
        "template to text": lambda h: keyed(cut | TEMPLATE | Parrot() | StrOutputParser(), h),
        "model alone": lambda history: plain(window | Parrot(), history),
    }
    chain, asked = chains[shape](ours(lite))
    for text in ("apple pie", "river boat", "sun and moon", "last of all"):
        chain.invoke(asked(text), CONFIG)
    read = {"model alone": [[1], [2, 3], [4, 5], [6, 7]]}
    expected = read.get(shape, [[1], [1, 2, 3], [3, 4, 5], [5, 6, 7]])
    assert [lite.context_of(one) for one in (2, 4, 6, 8)] == expected
    assert not [one for one in lite.history("chat") if one.metadata.get("inexact")]


class Waiting(Parrot):
    """Does something else before it replies, as if that came from another process."""

    meanwhile: Callable[[], object]

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        apart = threading.Thread(target=self.meanwhile)  # which is in no run
        apart.start()
        apart.join()
        return super()._reply(messages, kwargs)


def started(history: Callable[[str], Any], meanwhile: Callable[[], object], way: Any) -> list[str]:
    """Talk, then do something while the model is asked once more; return what is kept."""
    before = [HumanMessage("apple", id="h1"), AIMessage("pie", id="a1")]
    before += [HumanMessage(f"my code is {WORD}", id="h2"), AIMessage(f"it is {WORD}", id="a2")]
    history("chat").add_messages(before)
    chain = with_history(Waiting(meanwhile=meanwhile), history)
    way(chain, [HumanMessage("river")])
    return texts(history("chat"))


@pytest.mark.parametrize("way", [ways.invoke, ways.ainvoke, ways.stream])
def test_forgetting_during_a_call_is_not_undone(way: Any, memory: Memory) -> None:
    memory.remember("zero", thread="other")
    kept = started(ours(memory), lambda: memory.forget(WORD), way)
    # The reply was made from what was forgotten. What the user said was not.
    assert kept == ["apple", "pie", "river"]
    assert memory.scan(WORD, files=False).places == ()


def test_the_stock_history_brings_back_what_was_forgotten_during_a_call(tmp_path: Path) -> None:
    history = stock(tmp_path)

    def forget() -> None:
        kept = [one for one in history("chat").messages if WORD not in one.text]
        history("chat").clear()
        history("chat").add_messages(kept)

    assert WORD in " ".join(started(history, forget, ways.invoke))


@pytest.mark.parametrize("way", [ways.invoke, ways.ainvoke, ways.astream])
@pytest.mark.parametrize("count", [1, 2, 6])
def test_what_another_run_adds_during_a_call_costs_no_message(
    way: Any, count: int, lite: Memory
) -> None:
    others = [HumanMessage(f"other {at}") for at in range(count)]
    kept = started(ours(lite), lambda: ours(lite)("chat").add_messages(others), way)
    assert kept[4 : 4 + count] == [one.text for one in others]
    assert kept[4 + count] == "river"
    assert len(kept) == 6 + count
    reply = lite.history("chat")[-1]
    assert lite.context_of(reply.id) == [1, 2, 3, 4, 5 + count]


def test_the_stock_history_loses_the_message_then(tmp_path: Path) -> None:
    history = stock(tmp_path)
    other = HumanMessage("other")
    kept = started(history, lambda: history("chat").add_messages([other]), ways.invoke)
    assert "other" in kept
    assert "river" not in kept


@pytest.mark.parametrize("way", [ways.invoke, ways.ainvoke])
def test_nothing_of_a_run_is_stored_whose_thread_was_cleared(way: Any, memory: Memory) -> None:
    kept = started(ours(memory), ours(memory)("chat").clear, way)
    assert kept == []
    assert memory.scan(WORD, files=False).places == ()
    chain = with_history(Parrot(), ours(memory))
    way(chain, [HumanMessage("sun")])
    assert texts(ours(memory)("chat"))[0] == "sun"


def test_a_redaction_during_a_call_refuses_the_reply_made_of_the_old_words(lite: Memory) -> None:
    def redact() -> None:
        lite.forget(WORD, mode="redact")

    kept = started(ours(lite), redact, ways.invoke)
    assert WORD not in " ".join(kept)
    assert "river" in kept
    assert lite.scan(WORD, files=False).places == ()


def test_parallel_runs_on_one_history_lose_nothing_and_mix_nothing(memory: Memory) -> None:
    shared = DeLLMChatMessageHistory(memory, "chat")
    together = threading.Barrier(4)
    chain = with_history(Waiting(meanwhile=lambda: together.wait(30)), lambda _: shared)
    words = [f"word{at}" for at in range(4)]
    chain.batch([[HumanMessage(one)] for one in words], CONFIG)  # type: ignore[arg-type] # so
    records = memory.history("chat")
    humans = {one.text: one.id for one in records if one.role == "user"}
    assert set(humans) == set(words)
    replies = [one for one in records if one.role == "assistant"]
    assert len(replies) == 4
    for one in replies:
        said = next(word for word in words if word in one.text)
        assert memory.context_of(one.id) == [humans[said]]


def test_what_a_chain_makes_of_the_history_itself_goes_with_it(lite: Memory) -> None:
    """The chain counts on its own in a prompt: what it was made of cannot be told, so it is all."""
    count = RunnableLambda(lambda messages: f"{len(messages)} messages, {len(messages[0].text)}")
    chain = with_history(count | Parrot(), ours(lite))
    for text in ("apple", "river"):
        chain.invoke([HumanMessage(text)], CONFIG)
    assert lite.context_of(4) == [1, 2, 3]
    assert lite.get(4).metadata["inexact"] is True


def test_a_loop_of_ones_own_needs_no_run(lite: Memory) -> None:
    history = DeLLMChatMessageHistory(lite, "chat")
    model = Parrot()
    for text in ("apple", f"my code is {WORD}", "river"):
        asked = HumanMessage(text)
        reply = model.invoke([*history.last(1), asked])
        history.add_messages([asked, reply])
    assert [lite.context_of(one) for one in (2, 4, 6)] == [[1], [2, 3], [4, 5]]
    late = model.invoke([*history.messages, HumanMessage("sun")])
    lite.forget(f"my code is {WORD}")
    assert len(history.messages) == 3
    history.add_messages([HumanMessage("sun"), late])
    assert texts(history)[-1] == "sun"
    assert lite.scan(WORD, files=False).places == ()


# random histories

CALL_IDS = st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True)
TURNS = st.lists(st.tuples(st.booleans(), st.booleans(), CALL_IDS), min_size=1, max_size=4)


def history_of(turns: list[tuple[bool, bool, list[int]]]) -> list[BaseMessage]:
    """Return a valid history: parallel calls in both forms of the providers, thoughts before them."""
    found: list[BaseMessage] = []
    for at, (blocks, thinks, ids) in enumerate(turns):
        calls = [{"name": "look", "args": {}, "id": f"c{at}-{one}"} for one in ids]
        thought = [{"type": "thinking", "thinking": f"hm {at}", "signature": "s"}]
        content: Any = ""
        if blocks:
            used = [
                {"type": "tool_use", "id": one["id"], "name": "look", "input": {}} for one in calls
            ]
            content = [*(thought if thinks else []), *used]
        found += [HumanMessage(f"ask {at}"), AIMessage(content, tool_calls=calls)]
        found += [ToolMessage(f"result {one['id']}", tool_call_id=one["id"]) for one in calls]
        found.append(AIMessage([*thought, {"type": "text", "text": f"so {at}"}]))
    return found


@settings(max_examples=25)
@given(turns=TURNS, data=st.data())
def test_whatever_is_forgotten_a_history_stays_valid(
    turns: list[tuple[bool, bool, list[int]]], data: st.DataObject
) -> None:
    with Memory.open(":memory:", embedder=None) as memory:
        history = DeLLMChatMessageHistory(memory, "chat")
        given_ = history_of(turns)
        assert problems(given_) == []
        history.add_messages(given_)
        for _ in range(2):
            ids = [one.id for one in memory.history("chat")]
            if ids:
                memory.forget(ids=[data.draw(st.sampled_from(ids))], scrub=False)
            assert problems(history.messages) == []
            for last in (1, 2, 3, 5):
                assert problems(history.last(last)) == []
