"""A real ChatOpenAI over HTTP with all of ours around it: tools, streaming, and then a forget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.types import Command
from openai_server import OpenAIServer, tool_call
from weights_at_hand import weights_folder

from dellm import Memory, SmolModel
from dellm_langchain import DeLLMMiddleware, DeLLMSaver, DeLLMStore

HOME = "My home town is Tallinn"
TEA = "My favourite tea is oolong"


@tool
def note(fact: str, runtime: ToolRuntime) -> str:
    """Keep a fact about the user."""
    assert runtime.store is not None
    runtime.store.put(("facts",), fact[-12:], {"fact": fact})
    return "Noted."


@tool
def recall(about: str, runtime: ToolRuntime) -> str:
    """Look up what was kept."""
    assert runtime.store is not None
    found = runtime.store.search(("facts",))
    return "; ".join(one.value["fact"] for one in found if about in one.value["fact"])


class Reader:
    """Calls a tool where the user's words ask for it; else says what its prompt holds.

    `complete` writes the text: a local model, or the words of the prompt.
    """

    def __init__(self, complete: Callable[[list[dict[str, Any]]], str]) -> None:
        self.complete = complete
        self.calls = 0

    def __call__(self, messages: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
        last = messages[-1]
        said = str(last["content"] or "")
        if last["role"] == "user" and said.startswith("Note: "):
            return [self._call("note", fact=said.removeprefix("Note: "))]
        if last["role"] == "user" and said.startswith("Recall "):
            return [self._call("recall", about=said.removeprefix("Recall "))]
        return self.complete(messages)

    def _call(self, name: str, **arguments: str) -> dict[str, Any]:
        self.calls += 1
        return tool_call(name, f"call_{self.calls}", **arguments)


def repeated(messages: list[dict[str, Any]]) -> str:
    return "I was told: " + " | ".join(str(one["content"] or "") for one in messages)


def asked_locally(model: SmolModel) -> Callable[[list[dict[str, Any]]], str]:
    def complete(messages: list[dict[str, Any]]) -> str:
        last = messages[-1]
        known = "\n".join(str(one["content"]) for one in messages[:-1] if one["content"])
        content = f"<memory>\n{known}\n</memory>\n\n{last['content']}"
        return str(model.complete([{"role": "user", "content": content}]))

    return complete


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Iterator[OpenAIServer]:
    """A server whose texts are the prompt's words, or a small local model's."""
    complete = repeated
    if request.param == "local":
        weights_folder("smollm2")
        complete = asked_locally(SmolModel(max_tokens=24))
    with OpenAIServer(reply=Reader(complete)) as server:
        yield server


def agent(memory: Memory, server: OpenAIServer, **options: Any) -> Any:
    model = ChatOpenAI(model="local", base_url=server.url, api_key="none", **options)
    return create_agent(
        model,
        [note, recall],
        middleware=[DeLLMMiddleware(memory, k=0, last=8)],
        checkpointer=DeLLMSaver(memory),
        store=DeLLMStore(memory),
    )


def say(graph: Any, text: Any, thread: str, *, stream: bool) -> str:
    config = {"configurable": {"thread_id": thread}}
    given = text if isinstance(text, Command) else {"messages": [("user", text)]}
    if not stream:
        graph.invoke(given, config)
    else:
        assert list(graph.stream(given, config, stream_mode=["messages", "updates"]))
    return str(graph.get_state(config).values["messages"][-1].text)


@pytest.mark.parametrize(
    ("served", "stream"),
    [
        ("words", False),
        ("words", True),
        pytest.param("local", True, marks=pytest.mark.long),
    ],
    indirect=["served"],
)
def test_what_is_forgotten_is_neither_stored_nor_sent_again(
    served: OpenAIServer, stream: bool, sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(sqlite_url, embedder=None)
    graph = agent(memory, served, streaming=stream)
    say(graph, TEA, "tea", stream=stream)
    say(graph, f"Note: {TEA}", "tea", stream=stream)
    say(graph, HOME, "home", stream=stream)
    say(graph, f"Note: {HOME}", "home", stream=stream)
    say(graph, "Recall home town", "third", stream=stream)
    recalled = graph.get_state({"configurable": {"thread_id": "third"}}).values["messages"]
    assert any(HOME in one.text for one in recalled if one.type == "tool")

    say(graph, f"Please forget that {HOME[0].lower()}{HOME[1:]}", "home", stream=stream)
    sent = len(served.requests)
    said = say(graph, Command(resume="yes"), "home", stream=stream)
    assert "Tallinn" not in said
    assert len(served.requests) == sent  # the model was not asked
    assert memory.scan("Tallinn").clean

    for thread in ("home", "third", "tea"):
        say(graph, "What do you know of me?", thread, stream=stream)
    later = str(served.requests[sent:])
    assert "Tallinn" not in later
    assert "oolong" in later
    assert [one.value["fact"] for one in graph.store.search(("facts",))] == [TEA]
    assert memory.verify().ok
