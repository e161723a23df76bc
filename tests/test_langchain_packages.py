"""Packages that take a checkpointer or a store, used as their readers would: they run, and forget.

Each test is skipped where its package is not installed.
"""

from __future__ import annotations

import json
import re
import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from forgotten import remains, thread
from graphs import STATEMENT, WORD, Parrot, Way, lookup
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.graph import START, MessagesState, StateGraph

from dellm import Memory
from dellm_langchain import DeLLMSaver
from dellm_langchain.store import DeLLMStore

Opened = Callable[..., Memory]
INVOKE, ASTREAM = Way(), Way("astream")
ways = pytest.mark.parametrize("way", [INVOKE, ASTREAM], ids=str)


class Actor(Parrot):
    """Calls what the newest human says between << and >>; "$" there is the whole prompt."""

    def _calls(
        self, messages: list[BaseMessage], heard: str, kwargs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        last = messages[-1]
        wanted = re.search("<<(.*)>>", last.text) if isinstance(last, HumanMessage) else None
        calls = json.loads(wanted[1].replace("$", heard)) if wanted else []
        return [
            {"name": name, "args": args, "id": f"call_{uuid.uuid4().hex[:12]}"}
            for name, args in calls
            if name in (kwargs.get("names") or ())
        ]

    def _chunks(self, reply: AIMessage) -> Iterator[ChatGenerationChunk]:
        yield from super()._chunks(reply.model_copy(update={"tool_calls": []}))
        calls: list[Any] = [
            {**call, "args": json.dumps(call["args"]), "index": at, "type": "tool_call_chunk"}
            for at, call in enumerate(reply.tool_calls)
        ]
        yield ChatGenerationChunk(message=AIMessageChunk("", id=reply.id, tool_call_chunks=calls))


def do(name: str, **arguments: Any) -> str:
    """Return what makes the Actor call a tool."""
    return f"<<{json.dumps([[name, arguments]])}>>"


class Bench:
    """A memory with a saver and a store, and the turns of agents on it."""

    def __init__(self, memory: Memory, way: Way) -> None:
        self.memory = memory
        self.saver = DeLLMSaver(memory)
        self.store = DeLLMStore(memory)
        self._way = way

    def say(self, agent: Any, text: str, name: str = "t") -> None:
        config = {"configurable": {"thread_id": name, "user_id": "sam"}, "recursion_limit": 60}
        self._way.run(agent, {"messages": [HumanMessage(text)]}, config)

    def said(self, agent: Any, name: str = "t") -> list[str]:
        messages = agent.get_state(thread(name)).values["messages"]
        return [f"{one.type} {one.text}" for one in messages]

    def files(self) -> dict[str, str]:
        return {one.key: str(one.value["content"]) for one in self.store.search((), limit=100)}

    def forget(self) -> None:
        """Forget the statement that was made in the first thread."""
        (one,) = (
            one.id
            for one in self.memory.history("t")
            if one.role == "user" and one.text.startswith(STATEMENT)
        )
        self.memory.forget(ids=[one])

    def check(self, agent: Any, *names: str) -> None:
        """Say that nothing of the statement is left, and that every thread can go on."""
        for name in names:
            assert remains(self.saver, agent, thread(name), brief=True) == []
        assert WORD not in str(self.files())
        assert self.memory.scan(WORD, files=False).clean
        assert self.memory.verify().ok
        for name in names:
            self.say(agent, "go on", name)
            assert self.said(agent, name)[-1].startswith("ai reply")
            assert WORD not in str(agent.get_state(thread(name)).values)


@pytest.fixture
def bench(sqlite_url: str, opened: Opened, way: Way) -> Bench:
    return Bench(opened(sqlite_url), way)


def imported(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a package says of its own dependencies
        return pytest.importorskip(name, reason=f"{name} is not installed")


# LangMem


@ways
def test_what_langmem_keeps_goes_with_what_it_was_made_from(bench: Bench) -> None:
    langmem = imported("langmem")
    space = ("memories", "{user_id}")
    tools = [langmem.create_manage_memory_tool(space), langmem.create_search_memory_tool(space)]
    agent = create_agent(Actor(), tools, checkpointer=bench.saver, store=bench.store)
    bench.say(agent, "Blue. " + do("manage_memory", content="the sky is blue", action="create"))
    bench.say(agent, STATEMENT + do("manage_memory", content="$", action="create"))
    bench.say(agent, "Seek " + do("search_memory", query="code"), "other")
    assert WORD in " ".join(bench.said(agent, "other"))
    assert len(bench.files()) == 2
    bench.forget()
    bench.check(agent, "t", "other")
    assert list(bench.files().values()) == ["the sky is blue"]
    bench.say(agent, "Seek " + do("search_memory", query="sky"), "new")
    assert "the sky is blue" in " ".join(bench.said(agent, "new"))


def test_langmem_changes_and_deletes_its_own_items(sqlite_url: str, opened: Opened) -> None:
    langmem = imported("langmem")
    bench = Bench(opened(sqlite_url), INVOKE)
    manage = langmem.create_manage_memory_tool(("memories",))
    agent = create_agent(Actor(), [manage], checkpointer=bench.saver, store=bench.store)
    bench.say(agent, "A " + do("manage_memory", content="first", action="create"))
    (key,) = bench.files()
    bench.say(agent, "B " + do("manage_memory", content="second", action="update", id=key))
    assert bench.files() == {key: "second"}
    bench.say(agent, "C " + do("manage_memory", action="delete", id=key))
    assert bench.files() == {}


class Extractor(Actor):
    """Has one memory to note of each talk: its whole prompt."""

    def _calls(
        self, messages: list[BaseMessage], heard: str, kwargs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        if "Memory" not in (kwargs.get("names") or ()):
            return []
        return [{"name": "Memory", "args": {"content": heard}, "id": f"call_{uuid.uuid4().hex}"}]


def test_what_langmem_extracts_from_a_talk_goes_with_the_talk(
    sqlite_url: str, opened: Opened
) -> None:
    langmem = imported("langmem")
    bench = Bench(opened(sqlite_url), INVOKE)
    manager = langmem.create_memory_store_manager(Extractor(), namespace=("memories",))

    def talk(state: MessagesState) -> dict[str, Any]:
        reply = Parrot().invoke(state["messages"])
        manager.invoke({"messages": [*state["messages"], reply]})
        return {"messages": [reply]}

    graph = StateGraph(MessagesState).add_node("talk", talk).add_edge(START, "talk")
    agent = graph.compile(checkpointer=bench.saver, store=bench.store)
    bench.say(agent, "the sky is blue", "sky")
    (control,) = bench.files().items()
    bench.say(agent, STATEMENT)
    assert WORD in str(bench.files())
    bench.forget()
    assert dict([control]) == bench.files()
    bench.check(agent, "t", "sky")


# deepagents


@pytest.mark.parametrize("way", [ASTREAM], ids=str)
def test_files_and_todos_of_a_deep_agent_go_with_what_they_were_made_from(bench: Bench) -> None:
    deepagents = imported("deepagents")
    from langchain.agents.middleware import TodoListMiddleware

    agent = deepagents.create_deep_agent(
        Actor(), tools=[lookup], middleware=[TodoListMiddleware()], checkpointer=bench.saver
    )
    todo = {"content": "watch the sky", "status": "pending"}
    bench.say(agent, "Blue. " + do("write_file", file_path="/sky.txt", content="so blue"))
    bench.say(agent, "Plan. " + do("write_todos", todos=[todo]))
    bench.say(agent, STATEMENT + do("write_file", file_path="/code.txt", content="$"))
    bench.say(
        agent, "More. " + do("edit_file", file_path="/sky.txt", old_string="so", new_string="$")
    )
    bench.say(agent, "Help. " + do("task", description="ask $", subagent_type="general-purpose"))
    before = agent.get_state(thread()).values
    assert WORD in before["files"]["/sky.txt"]["content"]
    assert "/code.txt" in before["files"]
    bench.forget()
    bench.check(agent, "t")
    after = agent.get_state(thread()).values
    assert {name: one["content"] for name, one in after["files"].items()} == {"/sky.txt": "so blue"}
    assert after["todos"] == [todo]
    assert any(one.startswith("human Blue.") for one in bench.said(agent))


@pytest.mark.parametrize("way", [INVOKE], ids=str)
def test_what_a_deep_agent_keeps_in_the_store_is_forgotten_in_every_thread(bench: Bench) -> None:
    deepagents = imported("deepagents")
    from deepagents.backends import CompositeBackend, StateBackend, StoreBackend

    kept = StoreBackend(namespace=lambda _: ("files",))
    agent = deepagents.create_deep_agent(
        Actor(),
        tools=[lookup],
        backend=CompositeBackend(default=StateBackend(), routes={"/memories/": kept}),
        memory=["/memories/AGENTS.md"],
        checkpointer=bench.saver,
        store=bench.store,
    )
    sky = do("write_file", file_path="/memories/sky.txt", content="so blue")
    bench.say(agent, "Blue. " + sky, "sky")
    bench.say(agent, STATEMENT + do("write_file", file_path="/memories/AGENTS.md", content="$"))
    bench.say(agent, "Good day.", "other")
    assert WORD in str(agent.get_state(thread("other")).values["memory_contents"])
    assert WORD in bench.said(agent, "other")[-1]
    bench.forget()
    bench.check(agent, "t", "other", "sky")
    assert bench.files() == {"/sky.txt": "so blue"}


def test_what_a_deep_agent_still_does_after_a_forget_is_refused(
    sqlite_url: str, opened: Opened
) -> None:
    deepagents = imported("deepagents")
    from langchain.agents.middleware import TodoListMiddleware

    bench = Bench(opened(sqlite_url), INVOKE)

    class Forgetting(Actor):
        """Forgets the statement while it thinks about the last turn."""

        def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
            if isinstance(messages[-1], HumanMessage) and messages[-1].text.startswith("Last."):
                bench.forget()
            return super()._reply(messages, kwargs)

    agent = deepagents.create_deep_agent(
        Forgetting(), middleware=[TodoListMiddleware()], checkpointer=bench.saver
    )
    bench.say(agent, "Blue.")
    bench.say(agent, STATEMENT)
    bench.say(agent, "Last. " + do("write_file", file_path="/x.txt", content="$"))
    bench.check(agent, "t")


# langgraph-supervisor, langgraph-swarm


@pytest.mark.parametrize("mode", ["full_history", "last_message"])
@pytest.mark.parametrize("way", [INVOKE], ids=str)
def test_a_supervisor_and_its_agents_forget(bench: Bench, mode: Any) -> None:
    supervisor = imported("langgraph_supervisor")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is built on what LangGraph calls deprecated
        helper = create_agent(Actor(), [lookup], name="helper")
        graph = supervisor.create_supervisor([helper], model=Actor(), output_mode=mode)
    agent = graph.compile(checkpointer=bench.saver)
    bench.say(agent, "Blue. " + do("transfer_to_helper"))
    control = bench.said(agent)
    bench.say(agent, STATEMENT)
    bench.say(agent, "Help. " + do("transfer_to_helper"))
    bench.forget()
    assert bench.said(agent)[: len(control)] == control
    bench.check(agent, "t")


@pytest.mark.parametrize("way", [INVOKE], ids=str)
def test_a_swarm_of_agents_forgets(bench: Bench) -> None:
    swarm = imported("langgraph_swarm")
    hand = swarm.create_handoff_tool
    alice = create_agent(Actor(), [lookup, hand(agent_name="bob")], name="alice")
    bob = create_agent(Actor(), [lookup, hand(agent_name="alice")], name="bob")
    graph = swarm.create_swarm([alice, bob], default_active_agent="alice")
    agent = graph.compile(checkpointer=bench.saver)
    bench.say(agent, "Blue.")
    control = bench.said(agent)
    bench.say(agent, STATEMENT)
    bench.say(agent, "Go. " + do("transfer_to_bob"))
    assert agent.get_state(thread()).values["active_agent"] == "bob"
    bench.forget()
    assert bench.said(agent)[: len(control)] == control
    bench.check(agent, "t")


# packages that wrap a saver, to trace it for one


class Traced(DeLLMSaver):
    """Says nothing of the parameters, so LangGraph does not tell it the paths of tasks."""

    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        super().put_writes(*args, **kwargs)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        await super().aput_writes(*args, **kwargs)


@ways
def test_a_wrapped_saver_misses_no_dependency(bench: Bench) -> None:
    bench.saver = Traced(bench.memory)
    agent = create_agent(Actor(), [lookup], checkpointer=bench.saver)
    bench.say(agent, "Blue.")
    control = bench.said(agent)
    bench.say(agent, STATEMENT)
    bench.say(agent, "Look. " + do("lookup", query="$"))
    bench.forget()
    assert bench.said(agent)[: len(control)] == control
    bench.check(agent, "t")
