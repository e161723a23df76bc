"""Regenerated replies in the threads of the frameworks: read whole, valid, and nothing comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import graphs
import pytest
from forgotten import go_on, heard_since, remains, taken, thread
from graphs import HEARD, STATEMENT, WORD, Graph, words
from langchain_core.messages import BaseMessage, HumanMessage
from llama_index.core.chat_engine import SimpleChatEngine
from llama_models import RepeatingChat
from llama_sessions import session as session_of
from pairing import problems
from test_langchain_history_runs import SHAPES, ours, ways

from dellm import Memory, Record
from dellm_langchain import DeLLMSaver

AGAIN = "askedagain"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Start with an open diary and an empty log of prompts."""
    HEARD.clear()
    graphs.FAILED.clear()
    graphs.DIARY["open"] = True
    yield
    graphs.DIARY["open"] = True


def copied(_: Record, context: Sequence[Record]) -> str:
    """Return every word of the context, as the model of the graphs does."""
    return words(AGAIN, *(one.text for one in context))


def messages_of(graph: Graph, config: Any) -> list[BaseMessage]:
    found = graph.get_state(config).values
    return list(found.get("messages", ())) if isinstance(found, dict) else []


# The rest of the zoo differs in how the secret came in, not in how a reply stands in its thread.
SPECIMENS = [
    *("bot", "delta 3", "message changed in place", "parallel calls", "secret from a tool"),
    *("summarizing", "subgraph with its own memory", "interrupted", "fan-out and in"),
]
CASES = [("sqlite", one) for one in SPECIMENS]
CASES += [("postgres", one) for one in ("bot", "delta 3", "summarizing")]


@pytest.mark.parametrize(("url", "name"), CASES, indirect=["url"])
def test_a_graph_reads_its_thread_whole_and_goes_on_with_what_was_asked_again(
    name: str, memory: Memory
) -> None:
    specimen = graphs.named(name)
    saver = DeLLMSaver(memory, **specimen.options)
    graph, config = specimen.build(saver), thread()
    specimen.play(graph, config)
    assert taken(saver, graph, config).holds()
    before = {one.id: one for one in messages_of(graph, config)}
    receipt = memory.forget(STATEMENT, on_dependents="regenerate", regenerate=copied, scrub=False)
    graphs.DIARY["open"] = False
    after = messages_of(graph, config)
    assert receipt.regenerated
    assert receipt.not_regenerated == 0
    assert [one for one in after if AGAIN in one.text]
    assert [one.id for one in after if one.id not in before] == []
    assert [one for one in before if one in {one.id for one in after}] == [one.id for one in after]
    assert problems(after, paused=bool(graph.get_state(config).next)) == []
    assert list(remains(saver, graph, config)) == []
    mark = len(HEARD)
    assert go_on(saver, graph, config, specimen, graphs.INVOKE) == []
    assert heard_since(mark) == []
    assert memory.scan(WORD, files=False).places == ()
    assert memory.verify().ok


def test_a_chat_history_reads_its_thread_whole(memory: Memory) -> None:
    chain, asked = SHAPES["template"](ours(memory))
    for text in ("apple pie", f"my code is {WORD} dear", "river boat", "sun and moon"):
        ways.invoke(chain, asked(text))
    before = ours(memory)("chat").messages
    receipt = memory.forget(WORD, on_dependents="regenerate", regenerate=copied, scrub=False)
    after = ours(memory)("chat").messages
    assert len(receipt.regenerated) == 2
    assert [one.id for one in after] == [before[at].id for at in (0, 1, 4, 5, 6, 7)]
    assert after[:3] == [before[0], before[1], before[4]]
    assert [AGAIN in one.text for one in after] == [False, False, False, True, False, True]
    assert all(type(one) is type(HumanMessage("")) for one in after[::2])
    assert problems(after) == []
    HEARD.clear()
    ways.invoke(chain, asked("and now"))
    assert AGAIN in HEARD[-1][-2].text
    assert WORD not in str(HEARD)
    assert memory.scan(WORD, files=False).places == ()


def test_a_llamaindex_session_reads_its_thread_whole(memory: Memory) -> None:
    session = session_of(memory, "s")
    model = RepeatingChat()
    engine = SimpleChatEngine.from_defaults(llm=model, memory=session)
    for text in ("apple pie", f"my code is {WORD} dear", "river boat", "sun and moon"):
        engine.chat(text)
    before = session.get_all()
    plan = session.plan(WORD, on_dependents="regenerate")
    receipt = session.forget(plan, regenerate=copied, scrub=False)
    after = session.get_all()
    assert (len(plan.regenerates), len(receipt.regenerated)) == (2, 2)
    assert after[:3] == [before[0], before[1], before[4]]
    assert [one.role for one in after] == [one.role for one in before[:6]]
    assert [AGAIN in str(one.content) for one in after] == [False, False, False, True, False, True]
    engine.chat("and now")
    assert AGAIN in str(session.get_all())
    assert not memory.scan(WORD, files=False).places
