"""Agents with our middleware around the model that repeats all it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from graphs import HEARD, STATEMENT, Parrot
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.types import Command

from dellm import Memory
from dellm_langchain import DeLLMSaver
from dellm_langchain.middleware import DeLLMMiddleware

REQUEST = f"Please forget that {STATEMENT}"
Config = dict[str, Any]
Ways = ("invoke", "stream", "ainvoke", "astream")


def agent(
    memory: Memory,
    *,
    tools: Sequence[Any] = (),
    before: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    after: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    saver: Any = None,
    workspace: str | None = None,
    **options: Any,
) -> Any:
    """Return an agent with DeLLMMiddleware between others, on a DeLLMSaver of the same memory."""
    return create_agent(
        Parrot(),
        list(tools),
        middleware=[*before, DeLLMMiddleware(memory, workspace=workspace, **options), *after],
        checkpointer=saver or DeLLMSaver(memory, workspace=workspace),
    )


def at(thread: str = "t", **more: Any) -> Config:
    return {"configurable": {"thread_id": thread, **more}}


def run(graph: Any, given: Any, config: Config, way: str = "invoke", **options: Any) -> None:
    """Run a graph one way or another; what it says is read from its state."""
    called = getattr(graph, way)(given, config, **options)
    if way == "stream":
        list(called)
    elif way == "ainvoke":
        asyncio.run(called)
    elif way == "astream":
        asyncio.run(_all(called))


async def _all(stream: Any) -> None:
    async for _ in stream:
        continue


def say(
    graph: Any, text: str, config: Config | None = None, way: str = "invoke", **options: Any
) -> None:
    run(graph, {"messages": [HumanMessage(text)]}, config or at(), way, **options)


def resume(graph: Any, value: Any, config: Config | None = None, way: str = "invoke") -> None:
    run(graph, Command(resume=value), config or at(), way)


def asked(graph: Any, config: Config | None = None) -> dict[str, Any] | None:
    """Return the question that a thread waits with, None when it does not wait."""
    tasks = graph.get_state(config or at()).tasks
    found = [one.value for task in tasks for one in task.interrupts]
    return found[0] if found else None


def texts(graph: Any, config: Config | None = None) -> list[str]:
    """Return what the thread's messages say."""
    return [one.text for one in graph.get_state(config or at()).values["messages"]]


def heard(act: Callable[[], None]) -> list[list[BaseMessage]]:
    """Return the prompts that the model was given while something was done."""
    mark = len(HEARD)
    act()
    return HEARD[mark:]


def said(prompt: Sequence[BaseMessage]) -> list[str]:
    return [one.text for one in prompt]
