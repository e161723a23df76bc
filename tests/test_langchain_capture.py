"""What the capturing handler knows of real graphs, checked against what the model was really given."""

from __future__ import annotations

import asyncio
import gc
import json
import operator
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    merge_message_runs,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore
from langgraph.store.base import BaseStore
from langgraph.types import Command, RetryPolicy, Send, interrupt
from openai_server import OpenAIServer
from pydantic import BaseModel, Field

from dellm_langchain.calls import Prompt, generated, text_of
from dellm_langchain.capture import Call, Captured, _Handler, captured
from dellm_langchain.injection import reads_state

Answer = Callable[[list[BaseMessage]], AIMessage]


class Scripted(BaseChatModel):
    """A chat model that answers by a function, and keeps what it was really given."""

    answer: Any
    streams: bool = False
    heard: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Scripted:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.heard.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])

    def _stream(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> Iterator[ChatGenerationChunk]:
        if not self.streams:
            raise NotImplementedError
        self.heard.append(list(messages))
        whole = self.answer(messages)
        for letter in whole.content:
            yield ChatGenerationChunk(message=AIMessageChunk(content=letter))
        for at, call in enumerate(whole.tool_calls):
            piece = {
                "name": call["name"],
                "args": json.dumps(call["args"]),
                "id": call["id"],
                "index": at,
            }
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[piece]))

    def _should_stream(self, *args: Any, **kwargs: Any) -> bool:
        return self.streams and super()._should_stream(*args, **kwargs)


def last_text(messages: list[BaseMessage]) -> AIMessage:
    return AIMessage(f"re: {messages[-1].text}")


def calls(*named: tuple[str, dict[str, Any]]) -> AIMessage:
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": args, "id": f"call-{uuid4()}", "type": "tool_call"}
            for name, args in named
        ],
    )


def tools_first(*named: tuple[str, dict[str, Any]]) -> Answer:
    """Answer a human message with tool calls and tool results with words."""

    def answer(messages: list[BaseMessage]) -> AIMessage:
        return calls(*named) if isinstance(messages[-1], HumanMessage) else last_text(messages)

    return answer


class Write(NamedTuple):
    task_id: str
    channel: str
    value: Any
    path: str


class Watching(InMemorySaver):
    """Keeps every write of a task as the saver is given it."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Write] = []

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.log += [Write(task_id, channel, value, task_path) for channel, value in writes]
        super().put_writes(config, writes, task_id, task_path)

    def written(self, kind: type[BaseMessage]) -> list[tuple[str, Any]]:
        found = []
        for write in self.log:
            if write.channel == "messages":
                values = write.value if isinstance(write.value, list) else [write.value]
                found += [(write.task_id, one) for one in values if isinstance(one, kind)]
        return found

    def tasks_of(self, node: str) -> list[str]:
        return list(dict.fromkeys(one.task_id for one in self.log if node in one.path))


def config(thread: str | None = None) -> RunnableConfig:
    return {"configurable": {"thread_id": thread or str(uuid4())}}


def in_thread(thread: str | None = None) -> RunnableConfig:
    """Outside graphs a call knows its thread from metadata, or from the chain it runs in."""
    return {"metadata": {"thread_id": thread or str(uuid4())}}


def exactly(call: Call | None, heard: list[BaseMessage]) -> bool:
    """Whether the call's prompt is the very objects the model was given."""
    assert call is not None
    return not call.opaque and [id(one) for one in call.prompt.messages] == [id(m) for m in heard]


@tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@tool
def double(a: int) -> str:
    """Double a number."""
    return str(2 * a)


STREAM_MODES = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]
WAYS = ["invoke", "ainvoke", *STREAM_MODES, "all", "async all", "events"]


def run(graph: Any, given: Any, how: str, where: RunnableConfig) -> None:
    async def awaited() -> None:
        if how == "ainvoke":
            await graph.ainvoke(given, where)
        elif how == "async all":
            async for _ in graph.astream(given, where, stream_mode=STREAM_MODES):
                continue
        else:
            async for _ in graph.astream_events(given, where, version="v2"):
                continue

    if how == "invoke":
        graph.invoke(given, where)
    elif how in {"ainvoke", "async all", "events"}:
        asyncio.run(awaited())
    else:
        mode = STREAM_MODES if how == "all" else how
        for _ in graph.stream(given, where, stream_mode=mode):
            continue


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("streams", [False, True])
def test_the_reply_of_an_agent_is_joined_with_the_very_messages_the_model_read(
    how: str, streams: bool
) -> None:
    model = Scripted(answer=tools_first(("add", {"a": 1, "b": 2})), streams=streams)
    saver = Watching()
    agent = create_agent(model, [add], system_prompt="Be brief.", checkpointer=saver)
    where = config()
    for text in ("one and two?", "again?"):
        run(agent, {"messages": [HumanMessage(text)]}, how, where)
    replies = saver.written(AIMessage)
    assert len(model.heard) == len(replies) == 4
    for (task_id, reply), heard in zip(replies, model.heard, strict=True):
        call = captured.of_reply(reply)
        assert exactly(call, heard)
        assert call is not None
        assert call.tasks == (task_id,)
        assert call.thread_id == where["configurable"]["thread_id"]
        assert captured.of_task(task_id) == [call]
        assert captured.of_reply(reply, task_id=task_id) is call
        # All but the system prompt have the id they have in the state.
        assert call.prompt.ids[0] is None
        assert None not in call.prompt.ids[1:]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_parallel_tools_are_told_apart_by_their_calls(how: str) -> None:
    model = Scripted(answer=tools_first(("add", {"a": 1, "b": 2}), ("double", {"a": 4})))
    saver = Watching()
    agent = create_agent(model, [add, double], checkpointer=saver)
    run(agent, {"messages": [HumanMessage("both")]}, how, config())
    results = saver.written(ToolMessage)
    assert sorted(one.content for _, one in results) == ["3", "8"]
    asked = saver.written(AIMessage)[0][1].tool_calls
    for task_id, result in results:
        found = captured.tool(result.tool_call_id, task_id)
        assert found is not None
        assert (found.name, found.tasks) == (result.name, (task_id,))
        assert found.gave(result)
        assert [found.asked(one) for one in asked] == [one["name"] == result.name for one in asked]
        assert not found.reads_state
        assert found.calls == ()
        assert captured.tool(result.tool_call_id, "another task") is None


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "messages", "async all"])
def test_calls_of_an_agent_inside_a_tool_belong_to_the_tool_run_and_its_task(how: str) -> None:
    inner_model = Scripted(answer=tools_first(("double", {"a": 21})))
    inner = create_agent(inner_model, [double], system_prompt="Inner.")

    @tool
    def ask_expert(question: str) -> str:
        """Ask the expert."""
        return inner.invoke({"messages": [HumanMessage(question)]})["messages"][-1].text

    @tool("ask_expert")
    async def ask_expert_later(question: str) -> str:
        """Ask the expert."""
        found = await inner.ainvoke({"messages": [HumanMessage(question)]})
        return found["messages"][-1].text

    asked = ask_expert_later if how in {"ainvoke", "async all"} else ask_expert
    model = Scripted(answer=tools_first(("ask_expert", {"question": "what?"})))
    saver = Watching()
    agent = create_agent(model, [asked], checkpointer=saver)
    run(agent, {"messages": [HumanMessage("ask")]}, how, config())
    ((task_id, result),) = [
        (at, one) for at, one in saver.written(ToolMessage) if one.name == "ask_expert"
    ]
    found = captured.tool(result.tool_call_id, task_id)
    assert found is not None
    assert found.gave(result)
    assert list(found.calls) == captured.of_task(task_id)
    assert len(found.calls) == len(inner_model.heard) == 2
    for call, heard in zip(found.calls, inner_model.heard, strict=True):
        assert exactly(call, heard)
        assert call.tool_call_id == result.tool_call_id
        assert call.tasks[0] == task_id
        assert len(call.tasks) == 2
        assert call.node == "tools|model"
    replies = [captured.of_reply(one) for _, one in saver.written(AIMessage)]
    outer = [one for one in replies if one is not None and len(one.tasks) == 1]
    assert [one.tool_call_id for one in outer] == [None, None]
    assert all(exactly(*pair) for pair in zip(outer, model.heard, strict=True))


class Text(TypedDict, total=False):
    messages: Annotated[list[BaseMessage], operator.add]
    summary: str


def one_node(model: Scripted, **options: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("bot", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_edge(START, "bot")
    return graph.compile(**options)


@pytest.mark.parametrize("own", [None, True])
@pytest.mark.parametrize("how", ["invoke", "ainvoke", "messages"])
def test_calls_in_a_subgraph_belong_to_the_tasks_of_both_graphs(how: str, own: bool | None) -> None:
    model = Scripted(answer=last_text)
    saver = Watching()
    outer = StateGraph(MessagesState)
    outer.add_node("sub", one_node(model, checkpointer=own))
    outer.add_edge(START, "sub")
    where = config()
    run(outer.compile(checkpointer=saver), {"messages": [HumanMessage("hi")]}, how, where)
    (inner_task,) = saver.tasks_of("bot")
    (outer_task,) = saver.tasks_of("sub")
    (call,) = captured.of_task(outer_task)
    assert captured.of_task(inner_task) == [call]
    assert set(call.tasks) == {outer_task, inner_task}
    assert call.tasks[0] == outer_task
    assert exactly(call, model.heard[0])
    assert captured.of_step(where["configurable"]["thread_id"], 1) == [call]


def test_a_subgraph_called_inside_a_node_belongs_to_that_nodes_task() -> None:
    model = Scripted(answer=last_text)
    inner, saver = one_node(model), Watching()

    def node(state: MessagesState) -> dict[str, Any]:
        for _ in range(2):
            found = inner.invoke({"messages": [HumanMessage("inside")]})
        return {"messages": found["messages"][-1:]}

    outer = StateGraph(MessagesState)
    outer.add_node("wrap", node)
    outer.add_edge(START, "wrap")
    outer.compile(checkpointer=saver).invoke({"messages": [HumanMessage("hi")]}, config())
    (outer_task,) = saver.tasks_of("wrap")
    found = captured.of_task(outer_task)
    assert len(found) == 2
    assert all(one.tasks[0] == outer_task for one in found)
    _, reply = saver.written(AIMessage)[-1]
    assert captured.of_reply(reply, task_id=outer_task) is found[-1]


def test_a_graph_run_on_another_thread_inside_a_node_belongs_to_both_threads() -> None:
    model = Scripted(answer=last_text)
    inner = create_agent(model, [], checkpointer=InMemorySaver())
    saver, here, there = Watching(), config(), config()

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": inner.invoke({"messages": [HumanMessage("x")]}, there)["messages"][-1:]}

    outer = StateGraph(MessagesState)
    outer.add_node("first", lambda _: {})
    outer.add_node("wrap", node)
    outer.add_edge(START, "first")
    outer.add_edge("first", "wrap")
    outer.compile(checkpointer=saver).invoke({"messages": [HumanMessage("hi")]}, here)
    ((task_id, reply),) = saver.written(AIMessage)
    threads = [one["configurable"]["thread_id"] for one in (here, there)]
    (call,) = captured.of_task(task_id)
    # Which step of the other thread it was, LangChain does not tell: it counts for each.
    assert call.steps == ((threads[0], 2), (threads[1], None))
    assert (call.thread_id, call.step) == (threads[1], None)
    assert captured.of_step(threads[0], 2) == captured.of_step(threads[1], 1) == [call]
    assert captured.of_reply(reply, thread_id=threads[0]) is call
    assert captured.of_reply(reply, thread_id=threads[1]) is call
    assert captured.of_reply(reply, thread_id="another") is None


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_each_task_of_a_fan_out_has_its_own_call(how: str) -> None:
    model = Scripted(answer=last_text)
    saver = Watching()

    def each(state: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [model.invoke([HumanMessage(state["subject"])])]}

    graph = StateGraph(MessagesState)
    graph.add_node("each", each)
    graph.add_conditional_edges(
        START, lambda _: [Send("each", {"subject": name}) for name in "abc"], ["each"]
    )
    run(graph.compile(checkpointer=saver), {"messages": [HumanMessage("go")]}, how, config())
    written = saver.written(AIMessage)
    assert sorted(one.content for _, one in written) == ["re: a", "re: b", "re: c"]
    for task_id, reply in written:
        call = captured.of_reply(reply, task_id=task_id)
        assert captured.of_task(task_id) == [call]
        assert call is not None
        assert f"re: {call.prompt[0].text}" == reply.content


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "messages"])
def test_the_failed_calls_of_a_retried_node_are_kept_too(how: str) -> None:
    turns = count()

    def answer(messages: list[BaseMessage]) -> AIMessage:
        if next(turns) < 2:
            raise ConnectionError
        return last_text(messages)

    model, saver = Scripted(answer=answer), Watching()
    graph = StateGraph(MessagesState)
    policy = RetryPolicy(initial_interval=0.001, max_attempts=3, jitter=False)
    graph.add_node(
        "bot",
        lambda state: {"messages": [model.invoke(state["messages"])]},
        retry_policy=policy,
    )
    graph.add_edge(START, "bot")
    run(graph.compile(checkpointer=saver), {"messages": [HumanMessage("hi")]}, how, config())
    ((task_id, reply),) = saver.written(AIMessage)
    found = captured.of_task(task_id)
    assert len(found) == 3
    assert captured.of_reply(reply) is found[-1]


class Weather(BaseModel):
    """The weather."""

    degrees: int


def test_structured_output_by_a_tool_call_has_its_call_but_no_tool_run() -> None:
    model = Scripted(answer=lambda _: calls(("Weather", {"degrees": 20})))
    saver = Watching()
    agent = create_agent(model, [], response_format=ToolStrategy(Weather), checkpointer=saver)
    found = agent.invoke({"messages": [HumanMessage("weather?")]}, config())
    assert found["structured_response"] == Weather(degrees=20)
    ((task_id, reply),) = saver.written(AIMessage)
    assert exactly(captured.of_reply(reply, task_id=task_id), model.heard[0])
    ((_, result),) = saver.written(ToolMessage)
    assert result.tool_call_id == reply.tool_calls[0]["id"]
    assert captured.tool(result.tool_call_id) is None


def test_the_call_of_a_summarizer_is_marked_and_its_prompt_has_no_ids() -> None:
    summarizer, model, saver = Scripted(answer=last_text), Scripted(answer=last_text), Watching()
    middleware = SummarizationMiddleware(summarizer, trigger=("messages", 3), keep=("messages", 1))
    agent = create_agent(model, [], middleware=[middleware], checkpointer=saver)
    where = config()
    for text in ("one", "two"):
        agent.invoke({"messages": [HumanMessage(text)]}, where)
    found = [
        call for at in saver.tasks_of("SummarizationMiddleware") for call in captured.of_task(at)
    ]
    (call,) = found
    assert call.lc_source == "summarization"
    assert call.prompt.ids == (None,)
    assert "one" in call.prompt[0].text
    assert not call.prompt[0].constant
    # What the node wrote is made of the summary, but is not the generated message itself.
    (summary,) = [
        one
        for _, one in saver.written(HumanMessage)
        if one.additional_kwargs.get("lc_source") == "summarization"
    ]
    assert captured.of_reply(summary) is None


def test_a_cached_reply_with_a_foreign_id_belongs_to_the_call_that_returned_it() -> None:
    model = Scripted(answer=last_text, cache=InMemoryCache())
    saver = Watching()
    graph = one_node(model, checkpointer=saver)
    threads = [config(), config()]
    for where in threads:
        graph.invoke({"messages": [HumanMessage("same")]}, where)
    assert len(model.heard) == 1
    (first, one), (second, other) = saver.written(AIMessage)
    assert one.id == other.id
    assert captured.of_task(second)[0].prompt[0].id != captured.of_task(first)[0].prompt[0].id
    for where, task_id, reply in zip(threads, (first, second), (one, other), strict=True):
        (call,) = captured.of_task(task_id)
        assert captured.of_reply(reply, task_id=task_id) is call
        assert captured.of_reply(reply, thread_id=where["configurable"]["thread_id"]) is call
    assert captured.of_reply(one) is None  # two threads, two prompts: nobody can tell


def test_a_reply_repeated_in_one_task_from_the_same_prompt_is_still_known() -> None:
    model = Scripted(answer=lambda _: AIMessage("fixed", id=f"mine-{model.cache}"), cache=False)
    saver = Watching()

    def twice(state: MessagesState) -> dict[str, Any]:
        model.invoke(state["messages"])
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("bot", twice)
    graph.add_edge(START, "bot")
    graph.compile(checkpointer=saver).invoke({"messages": [HumanMessage("hi")]}, config())
    ((task_id, reply),) = saver.written(AIMessage)
    assert captured.of_reply(reply, task_id=task_id) is captured.of_task(task_id)[-1]


def test_one_reply_to_two_prompts_in_one_task_is_nobodys() -> None:
    name = f"fixed-{uuid4()}"
    model, saver = Scripted(answer=lambda _: AIMessage("fixed", id=name)), Watching()

    def twice(state: MessagesState) -> dict[str, Any]:
        model.invoke([HumanMessage("something else")])
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("bot", twice)
    graph.add_edge(START, "bot")
    graph.compile(checkpointer=saver).invoke({"messages": [HumanMessage("hi")]}, config())
    ((task_id, reply),) = saver.written(AIMessage)
    assert len(captured.of_task(task_id)) == 2
    assert captured.of_reply(reply, task_id=task_id) is None


def test_merged_messages_show_in_the_prompt_as_the_model_read_them() -> None:
    model, saver = Scripted(answer=last_text), Watching()
    graph = StateGraph(MessagesState)
    graph.add_node(
        "bot", lambda state: {"messages": [model.invoke(merge_message_runs(state["messages"]))]}
    )
    graph.add_edge(START, "bot")
    given = [HumanMessage("first", id=str(uuid4())), HumanMessage("second", id=str(uuid4()))]
    graph.compile(checkpointer=saver).invoke({"messages": given}, config())
    ((task_id, _),) = saver.written(AIMessage)
    (seen,) = captured.of_task(task_id)[0].prompt
    assert seen.id == given[0].id
    assert seen.content == "first\nsecond"
    assert seen.message is not given[0]


def test_a_chain_outside_graphs_is_kept_only_if_its_thread_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(captured, "_everywhere", False)  # other tests may have asked for more
    model = Scripted(answer=last_text)
    chain = ChatPromptTemplate.from_messages([("human", "{text}")]) | model
    assert captured.of_reply(chain.invoke({"text": "nowhere"})) is None
    for where in (config, in_thread):
        thread = str(uuid4())
        call = captured.of_reply(chain.invoke({"text": "somewhere"}, where(thread)))
        assert exactly(call, model.heard[-1])
        assert call is not None
        assert (call.thread_id, call.tasks, call.step, call.node) == (thread, (), None, "")


def test_every_run_of_a_batch_is_its_own() -> None:
    model = Scripted(answer=last_text)
    chain = ChatPromptTemplate.from_messages([("human", "{text}")]) | model
    wheres = [in_thread() for _ in range(6)]
    replies = chain.batch([{"text": str(at)} for at in range(6)], wheres)
    for where, reply in zip(wheres, replies, strict=True):
        call = captured.of_reply(reply)
        assert call is not None
        assert call.thread_id == where["metadata"]["thread_id"]
        assert reply.content == f"re: {call.prompt[0].content}"


def test_a_string_prompt_is_opaque() -> None:
    model, saver = FakeListLLM(responses=["words"]), Watching()
    graph = StateGraph(Text)
    graph.add_node("sum", lambda state: {"summary": model.invoke("Summarise: ...")})
    graph.add_edge(START, "sum")
    graph.compile(checkpointer=saver).invoke({"messages": []}, config())
    (task_id,) = saver.tasks_of("sum")
    (call,) = captured.of_task(task_id)
    assert call.opaque
    assert len(call.prompt) == 0


def reply_in_thread() -> AIMessage:
    chosen = calls(("add", {"a": 1, "b": 2}))
    found = Scripted(answer=lambda _: chosen).invoke([HumanMessage("hi")], in_thread())
    assert captured.of_reply(found) is not None
    return found


def change_content(reply: AIMessage) -> None:
    reply.content = "| what the node read itself"


def change_call(reply: AIMessage) -> None:
    reply.tool_calls[0]["args"]["a"] = "what a person edited"


def add_call(reply: AIMessage) -> None:
    reply.tool_calls = [*reply.tool_calls, *calls(("double", {"a": 3})).tool_calls]


def add_kwarg(reply: AIMessage) -> None:
    reply.additional_kwargs["sources"] = ["a document"]


def add_metadata(reply: AIMessage) -> None:
    reply.response_metadata["sources"] = ["a document"]


def change_id(reply: AIMessage) -> None:
    reply.id = str(uuid4())


def change_name(reply: AIMessage) -> None:
    reply.name = "said by"


CHANGES = [
    change_content,
    change_call,
    add_call,
    add_kwarg,
    add_metadata,
    change_id,
    change_name,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_reply_that_a_node_changed_is_no_longer_what_the_model_said(
    change: Callable[[AIMessage], None],
) -> None:
    copy = reply_in_thread().model_copy(deep=True)
    assert captured.of_reply(copy) is not None
    change(copy)
    assert captured.of_reply(copy) is None
    reply = reply_in_thread()
    change(reply)
    assert captured.of_reply(reply) is None


def test_the_name_an_agent_gives_its_replies_does_not_hide_them() -> None:
    model, saver = Scripted(answer=last_text), Watching()
    agent = create_agent(model, [], name="expert", checkpointer=saver)
    agent.invoke({"messages": [HumanMessage("hi")]}, config())
    ((task_id, reply),) = saver.written(AIMessage)
    assert reply.name == "expert"
    assert captured.of_reply(reply) is captured.of_task(task_id)[0]


def test_a_message_changed_in_place_after_the_call_shows_as_it_was_read() -> None:
    model, saver = Scripted(answer=last_text), Watching()

    def node(state: MessagesState) -> dict[str, Any]:
        reply = model.invoke(state["messages"])
        state["messages"][0].content = "changed"
        state["messages"][1].content[0]["text"] = "changed"
        return {"messages": [reply]}

    graph = StateGraph(MessagesState)
    graph.add_node("bot", node)
    graph.add_edge(START, "bot")
    given = [HumanMessage("as it was"), HumanMessage([{"type": "text", "text": "as it was"}])]
    graph.compile(checkpointer=saver).invoke({"messages": given}, config())
    ((task_id, _),) = saver.written(AIMessage)
    prompt = captured.of_task(task_id)[0].prompt
    assert [one.text for one in prompt] == ["as it was", "as it was"]
    assert [text_of(one.message.content) for one in prompt] == ["changed", "changed"]


def test_an_image_prompt_keeps_ids_and_texts() -> None:
    model = Scripted(answer=lambda _: AIMessage("seen"))
    image = {"type": "image", "source_type": "base64", "data": "aGk=", "mime_type": "image/png"}
    given = HumanMessage([{"type": "text", "text": "look"}, image], id=str(uuid4()))
    call = captured.of_reply(model.invoke([given], in_thread()))
    assert call is not None
    assert (call.prompt[0].id, call.prompt[0].text) == (given.id, "look")


def test_a_system_prompt_is_constant_from_the_second_run_of_an_agent_on() -> None:
    saver = Watching()
    agent = create_agent(
        Scripted(answer=tools_first(("add", {"a": 1, "b": 2}))),
        [add],
        system_prompt="Be brief.",
        checkpointer=saver,
    )
    for where in (config(), config()):
        agent.invoke({"messages": [HumanMessage("hi")]}, where)
    constant = [
        [seen.constant for seen in captured.of_task(task_id)[0].prompt]
        for task_id, _ in saver.written(AIMessage)
    ]
    # Twice in one run proves nothing: a node may have built it from what it read.
    assert [any(one) for one in constant] == [False, False, True, True]
    assert constant[2] == [True, False]
    assert constant[3] == [True, False, False, False]


def prompts_of(builds: Callable[[MessagesState], list[BaseMessage]], runs: int) -> list[Prompt]:
    model, saver = Scripted(answer=last_text), Watching()
    graph = StateGraph(MessagesState)
    graph.add_node("bot", lambda state: {"messages": [model.invoke(builds(state))]})
    graph.add_edge(START, "bot")
    compiled = graph.compile(checkpointer=saver)
    for at in range(runs):
        compiled.invoke({"messages": [HumanMessage(str(at))]}, config())
    return [captured.of_task(at)[0].prompt for at, _ in saver.written(AIMessage)]


def test_a_system_message_built_anew_for_each_call_is_never_constant() -> None:
    prompts = prompts_of(lambda state: [SystemMessage(f"You said {state['messages']}")], 3)
    assert [prompt[0].constant for prompt in prompts] == [False] * 3


def test_a_message_that_is_not_a_system_prompt_is_never_constant() -> None:
    held = HumanMessage("kept by a node")
    prompts = prompts_of(lambda _: [held], 3)
    assert [prompt[0].constant for prompt in prompts] == [False] * 3


def test_a_system_message_the_caller_hands_in_is_not_constant() -> None:
    model, saver = Scripted(answer=last_text), Watching()
    graph = StateGraph(Text)
    graph.add_node("bot", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_edge(START, "bot")
    compiled, system = graph.compile(checkpointer=saver), SystemMessage("about you: ...")
    for _ in range(3):
        compiled.invoke({"messages": [system]}, config())
    prompts = [captured.of_task(at)[0].prompt for at, _ in saver.written(AIMessage)]
    assert [prompt.constants for prompt in prompts] == [frozenset()] * 3


def test_only_the_input_of_an_outermost_run_is_given() -> None:
    inside = HumanMessage("inside")
    model = Scripted(answer=last_text)
    inner = one_node(model)

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": inner.invoke({"messages": [inside]})["messages"][-1:]}

    outer = StateGraph(MessagesState)
    outer.add_node("wrap", node)
    outer.add_edge(START, "wrap")
    from_dict, from_command = HumanMessage("hi"), HumanMessage("hi")
    compiled = outer.compile(checkpointer=InMemorySaver())
    found = compiled.invoke({"messages": [from_dict]}, config())
    compiled.invoke(Command(update={"messages": from_command}, goto="wrap"), config())
    assert captured.given(from_dict)
    assert captured.given(from_command)
    assert not captured.given(inside)
    assert not captured.given(found["messages"][-1])
    assert not captured.given(from_dict.model_copy())


def test_what_was_given_is_not_kept_alive_once_the_run_is_over() -> None:
    kept, run = Captured(), uuid4()
    message = HumanMessage("hi")
    kept.chain_started(run, None, {"thread_id": "t"}, {"messages": [message]})
    assert kept.given(message)
    assert len(kept._given) == 1
    kept.ended(run)
    del message
    gc.collect()
    assert len(kept._given) == 0


def test_a_functional_workflow_joins_its_tasks_with_their_calls() -> None:
    model, saver = Scripted(answer=last_text), Watching()

    @task
    def ask(text: str) -> BaseMessage:
        return model.invoke([HumanMessage(text)])

    @entrypoint(checkpointer=saver)
    def flow(texts: list[str]) -> list[BaseMessage]:
        return [one.result() for one in [ask(text) for text in texts]]

    replies = flow.invoke(["a", "b"], config())
    returned = {id(one.value): one.task_id for one in saver.log if one.channel == "__return__"}
    for reply in replies:
        call = captured.of_reply(reply)
        assert call is not None
        assert reply.content == f"re: {call.prompt[0].content}"
        assert returned[id(reply)] in call.tasks


def test_a_call_made_without_the_nodes_callbacks_is_still_joined_with_its_task() -> None:
    model, saver = Scripted(answer=last_text), Watching()
    graph = StateGraph(MessagesState)

    def node(state: MessagesState) -> dict[str, Any]:
        model.invoke(state["messages"], {"callbacks": [], "metadata": {"mine": 1}})
        model.invoke(state["messages"], {"callbacks": [BaseCallbackHandler()]})
        return {"messages": [model.with_config(tags=["x"]).invoke(state["messages"])]}

    graph.add_node("bot", node)
    graph.add_edge(START, "bot")
    graph.compile(checkpointer=saver).invoke({"messages": [HumanMessage("hi")]}, config())
    ((task_id, _),) = saver.written(AIMessage)
    assert len(captured.of_task(task_id)) == len(model.heard) == 3


def test_calls_of_one_step_are_found_when_a_run_saves_only_at_its_end() -> None:
    model, saver = Scripted(answer=tools_first(("add", {"a": 1, "b": 2}))), Watching()
    agent = create_agent(model, [add], checkpointer=saver)
    where = config()
    found = agent.invoke({"messages": [HumanMessage("hi")]}, where, durability="exit")
    assert saver.log == []
    thread = where["configurable"]["thread_id"]
    steps = [captured.of_step(thread, step) for step in range(5)]
    assert [len(one) for one in steps] == [0, 1, 0, 1, 0]
    replies = [one for one in found["messages"] if isinstance(one, AIMessage)]
    assert [captured.of_reply(one) for one in replies] == [steps[1][0], steps[3][0]]


def test_an_aborted_stream_leaves_the_call_and_no_reply() -> None:
    model = Scripted(answer=lambda _: AIMessage("abcdef"), streams=True)
    chunks = model.stream([HumanMessage("hi")], in_thread())
    first = next(chunks)
    second = next(chunks)
    chunks.close()
    assert captured.of_reply(first + second) is None


def test_a_streamed_reply_put_together_by_the_node_is_known() -> None:
    model = Scripted(answer=tools_first(("add", {"a": 1, "b": 2})), streams=True)
    chunks = list(model.stream([HumanMessage("hi")], in_thread()))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    assert whole.tool_calls
    assert exactly(captured.of_reply(whole), model.heard[0])


@pytest.mark.parametrize("options", [{}, {"streaming": True}, {"stream_usage": True}], ids=str)
def test_replies_of_a_real_client_are_known_streamed_or_not(options: dict[str, Any]) -> None:
    with OpenAIServer() as server:
        model = ChatOpenAI(model="small", base_url=server.url, api_key="none", **options)
        given, where = HumanMessage("what is it?", id=str(uuid4())), in_thread()
        whole = None
        for chunk in model.stream([given], where):
            whole = chunk if whole is None else whole + chunk
        assert whole is not None
        for reply in (model.invoke([given], where), whole, message_chunk_to_message(whole)):
            assert exactly(captured.of_reply(reply), [given])
        agent = create_agent(model, [], name="small", checkpointer=InMemorySaver())
        for how in ("invoke", "ainvoke", "messages", "all", "async all"):
            at = config()
            run(agent, {"messages": [HumanMessage("hi")]}, how, at)
            first, last = agent.get_state(at).values["messages"]
            call = captured.of_reply(last)
            assert call is not None
            assert call.prompt.ids == (first.id,)


def test_a_call_repeated_after_an_interrupt_belongs_to_the_same_task() -> None:
    model, saver = Scripted(answer=last_text), Watching()

    def node(state: MessagesState) -> dict[str, Any]:
        model.invoke(state["messages"])
        return {"messages": [model.invoke([*state["messages"], HumanMessage(interrupt("?"))])]}

    graph = StateGraph(MessagesState)
    graph.add_node("bot", node)
    graph.add_edge(START, "bot")
    compiled, where = graph.compile(checkpointer=saver), config()
    compiled.invoke({"messages": [HumanMessage("hi")]}, where)
    compiled.invoke(Command(resume="yes"), where)
    ((task_id, reply),) = saver.written(AIMessage)
    found = captured.of_task(task_id)
    assert [exactly(*pair) for pair in zip(found, model.heard, strict=True)] == [True] * 3
    assert captured.of_reply(reply) is found[-1]
    assert [one.text for one in found[-1].prompt] == ["hi", "yes"]


@pytest.mark.parametrize("kind", ["edit", "approve"])
def test_a_tool_run_with_arguments_that_a_person_edited_is_not_what_the_model_asked_for(
    kind: str,
) -> None:
    model, saver = Scripted(answer=tools_first(("add", {"a": 1, "b": 2}))), Watching()
    review = HumanInTheLoopMiddleware(interrupt_on={"add": True})
    agent, where = create_agent(model, [add], middleware=[review], checkpointer=saver), config()
    agent.invoke({"messages": [HumanMessage("hi")]}, where)
    ((_, reply),) = saver.written(AIMessage)
    edited = {"edited_action": {"name": "add", "args": {"a": 5, "b": 5}}} if kind == "edit" else {}
    agent.invoke(Command(resume={"decisions": [{"type": kind, **edited}]}), where)
    ((task_id, result),) = saver.written(ToolMessage)
    found = captured.tool(reply.tool_calls[0]["id"], task_id)
    assert found is not None
    assert result.tool_call_id == found.tool_call_id
    assert found.asked(calls(("add", {"a": 1, "b": 2})).tool_calls[0]) is (kind == "approve")
    assert found.asked(calls(("add", {"a": 5, "b": 5})).tool_calls[0]) is (kind == "edit")


def test_many_threads_at_once_are_kept_apart() -> None:
    model, saver = Scripted(answer=tools_first(("add", {"a": 1, "b": 2}))), Watching()
    agent = create_agent(model, [add], checkpointer=saver)

    def talk(at: int) -> str:
        where = config()
        for turn in range(3):
            agent.invoke({"messages": [HumanMessage(f"{at}.{turn}")]}, where)
        return where["configurable"]["thread_id"]

    with ThreadPoolExecutor(8) as pool:
        threads = list(pool.map(talk, range(8)))
    replies = saver.written(AIMessage)
    assert len(replies) == 8 * 6
    for task_id, reply in replies:
        call = captured.of_reply(reply, task_id=task_id)
        assert call is not None
        own = threads.index(call.thread_id)
        texts = [m.text for m in call.prompt.messages if isinstance(m, HumanMessage)]
        assert {text.split(".")[0] for text in texts} == {str(own)}


# Tools.


@contextmanager
def ran(*tools: BaseTool, **options: Any) -> Iterator[tuple[Watching, Any]]:
    saver = Watching()
    answer = tools_first(*[(one.name, {"text": "x"}) for one in tools])
    yield saver, create_agent(Scripted(answer=answer), list(tools), checkpointer=saver, **options)


def plain(text: str) -> str:
    """Do it."""
    return text


async def plain_later(text: str) -> str:
    """Do it."""
    return text


def with_call_id(text: str, call: Annotated[str, InjectedToolCallId]) -> str:
    """Do it."""
    return text + call


def with_state(text: str, state: Annotated[dict, InjectedState]) -> str:
    """Do it."""
    return text + str(len(state))


def with_field(text: str, seen: Annotated[list, InjectedState("messages")]) -> str:
    """Do it."""
    return text + str(len(seen))


def with_store(text: str, store: Annotated[Any, InjectedStore()]) -> str:
    """Do it."""
    return text + str(store)


def with_runtime(text: str, runtime: ToolRuntime) -> str:
    """Do it."""
    return text + str(len(runtime.state))


async def with_typed_runtime_later(text: str, runtime: ToolRuntime[None, dict]) -> str:
    """Do it."""
    return text + str(len(runtime.state))


def store_of_runtime(text: str, runtime: ToolRuntime) -> str:
    """Do it."""
    runtime.store.put(("saved",), runtime.tool_call_id, {"text": text})
    return text + str(len(runtime.store.search(("saved",))))


def passes_runtime_on(text: str, runtime: ToolRuntime) -> str:
    """Do it."""
    return text + str(runtime.store) + str(vars(runtime))


def runtime_in_inner(text: str, runtime: ToolRuntime) -> str:
    """Do it."""
    return text + str([len(runtime.state) for _ in text])


def with_config(text: str, config: RunnableConfig) -> str:
    """Do it."""
    return text + str(len(config))


def calls_store(text: str) -> str:
    """Do it."""

    def inner() -> BaseStore:
        return get_store()

    return text + str(inner())


class ClassTool(BaseTool):
    name: str = "class_tool"
    description: str = "Do it."

    def _run(self, text: str) -> str:
        return text


class ClassStateTool(BaseTool):
    name: str = "class_state_tool"
    description: str = "Do it."

    def _run(self, text: str, state: Annotated[dict, InjectedState]) -> str:
        return text + str(len(state))


class StateSchema(BaseModel):
    text: str
    state: Annotated[dict, InjectedState]


@tool(args_schema=StateSchema)
def told_by_schema(text: str, state) -> str:
    """Do it."""
    return text + str(len(state))


def any_arguments(**arguments: Any) -> str:
    return str(arguments)


def any_with_runtime(runtime: Any = None, **arguments: Any) -> str:
    return str(arguments)


JSON_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


def from_json(function: Callable[..., str]) -> BaseTool:
    return StructuredTool(
        name=function.__name__, description="Do it.", args_schema=JSON_SCHEMA, func=function
    )


READING = [
    (tool(plain), False),
    (tool(plain_later), False),
    (tool(with_call_id), False),
    (ClassTool(), False),
    (from_json(any_arguments), False),
    (tool(with_state), True),
    (tool(with_field), True),
    (tool(with_store), True),
    (tool(with_runtime), True),
    (tool(with_typed_runtime_later), True),
    (tool(with_config), True),
    (tool(calls_store), True),
    (ClassStateTool(), True),
    (told_by_schema, True),
    (from_json(any_with_runtime), False),  # it is given one, and does not look at it
    (tool(store_of_runtime), True),
    (tool(passes_runtime_on), True),
    (tool(runtime_in_inner), True),
    (StructuredTool(name="builtin", description="", args_schema=JSON_SCHEMA, func=dict), True),
]


@pytest.mark.parametrize(("one", "reads"), READING, ids=[one.name for one, _ in READING])
def test_whether_a_tool_can_read_the_state_is_told_from_the_tool(
    one: BaseTool, reads: bool
) -> None:
    assert reads_state(one) is reads


@pytest.mark.parametrize(
    ("one", "reads"),
    [
        (with_store, False),
        (store_of_runtime, False),
        (calls_store, False),
        (with_state, True),
        (with_runtime, True),
        (passes_runtime_on, True),
        (runtime_in_inner, True),
        (with_config, True),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_tool_that_reads_only_a_store_which_tells_reads_nothing_unseen(
    one: Callable[..., str], reads: bool
) -> None:
    assert reads_state(tool(one), store_tells=True) is reads


SYNC_WAYS, ASYNC_WAYS = ["invoke", "messages", "all"], ["ainvoke", "async all", "events"]
FOUND = [
    (how, one, reads)
    for ways, tools in [
        (SYNC_WAYS + ASYNC_WAYS, [(tool(plain), False), (tool(with_runtime), True)]),
        (ASYNC_WAYS, [(tool(plain_later), False), (tool(with_typed_runtime_later), True)]),
    ]
    for how in ways
    for one, reads in tools
]


@pytest.mark.parametrize(
    ("how", "one", "reads"), FOUND, ids=[f"{one.name}-{how}" for how, one, _ in FOUND]
)
def test_the_tool_is_found_from_its_run(how: str, one: BaseTool, reads: bool) -> None:
    with ran(one) as (saver, agent):
        run(agent, {"messages": [HumanMessage("hi")]}, how, config())
    ((task_id, result),) = saver.written(ToolMessage)
    found = captured.tool(result.tool_call_id, task_id)
    assert found is not None
    assert (found.name, found.reads_state) == (one.name, reads)
    assert found.gave(result)
    assert found.asked(saver.written(AIMessage)[0][1].tool_calls[0])


def test_a_tool_that_cannot_be_found_may_have_read_anything() -> None:
    assert reads_state(None)
    kept = Captured()
    kept.tool_started(uuid4(), None, {"thread_id": "t"}, "call", "unknown", {})
    found = kept.tool("call")
    assert found is not None
    assert found.reads_state
    assert kept.tool("never called") is None


def test_a_tool_reads_what_a_tool_inside_it_reads() -> None:
    inner = create_agent(
        Scripted(answer=tools_first(("with_runtime", {"text": "x"}))), [tool(with_runtime)]
    )

    @tool
    def outer(text: str) -> str:
        """Do it."""
        return inner.invoke({"messages": [HumanMessage(text)]})["messages"][-1].text

    with ran(outer) as (saver, agent):
        agent.invoke({"messages": [HumanMessage("hi")]}, config())
    task_id, result = saver.written(ToolMessage)[-1]
    found = captured.tool(result.tool_call_id, task_id)
    assert found is not None
    assert (found.name, found.reads_state) == ("outer", True)


def test_a_call_inside_tools_inside_tools_belongs_to_the_innermost() -> None:
    model = Scripted(answer=last_text)

    @tool
    def deep(text: str) -> str:
        """Do it."""
        return model.invoke([HumanMessage(text)]).text

    inner = create_agent(Scripted(answer=tools_first(("deep", {"text": "deep"}))), [deep])

    @tool
    def shallow(text: str) -> str:
        """Do it."""
        return inner.invoke({"messages": [HumanMessage(text)]})["messages"][-1].text

    with ran(shallow) as (saver, agent):
        agent.invoke({"messages": [HumanMessage("hi")]}, config())
    results = {one.name: (at, one.tool_call_id) for at, one in saver.written(ToolMessage)}
    runs = {name: captured.tool(call, at) for name, (at, call) in results.items()}
    assert runs["deep"] is not None
    assert runs["shallow"] is not None
    (call,) = runs["deep"].calls
    assert exactly(call, model.heard[0])
    assert call.tool_call_id == runs["deep"].tool_call_id
    assert call in runs["shallow"].calls
    assert len(runs["shallow"].calls) == 3
    assert {one.tool_call_id for one in runs["shallow"].calls} == {
        one.tool_call_id for one in (runs["deep"], runs["shallow"])
    }


def test_a_result_rewritten_by_middleware_is_not_what_the_tool_gave() -> None:
    class Adds(AgentMiddleware):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            result = handler(request)
            result.content += f" | {request.state['messages'][0].text}"
            return result

    with ran(tool(plain), middleware=[Adds()]) as (saver, agent):
        agent.invoke({"messages": [HumanMessage("secret")]}, config())
    ((task_id, result),) = saver.written(ToolMessage)
    assert result.content == "x | secret"
    found = captured.tool(result.tool_call_id, task_id)
    assert found is not None
    assert not found.gave(result)


def test_a_result_whose_artifact_was_replaced_is_not_what_the_tool_gave() -> None:
    class Adds(AgentMiddleware):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            result = handler(request)
            if request.tool_call["args"]["text"] == "x":
                result.artifact = [*result.artifact, request.state["messages"][0].text]
            return result

    @tool(response_format="content_and_artifact")
    def finds(text: str) -> tuple[str, list[Weather]]:
        """Do it."""
        return "found", [Weather(degrees=1)]

    for text, same in (("x", False), ("y", True)):
        saver = Watching()
        model = Scripted(answer=tools_first(("finds", {"text": text})))
        agent = create_agent(model, [finds], middleware=[Adds()], checkpointer=saver)
        agent.invoke({"messages": [HumanMessage("secret")]}, config())
        ((task_id, result),) = saver.written(ToolMessage)
        found = captured.tool(result.tool_call_id, task_id)
        assert found is not None
        assert found.gave(result) is same


def test_a_tool_that_returns_a_command_gave_the_message_in_it() -> None:
    @tool
    def moves(text: str, call: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Do it."""
        return Command(update={"messages": [ToolMessage("moved", tool_call_id=call)]})

    with ran(moves) as (saver, agent):
        agent.invoke({"messages": [HumanMessage("hi")]}, config())
    ((task_id, result),) = saver.written(ToolMessage)
    found = captured.tool(result.tool_call_id, task_id)
    assert found is not None
    assert found.gave(result)
    assert not found.gave(ToolMessage("else", tool_call_id=result.tool_call_id))


def test_the_message_of_a_failed_tool_is_not_what_it_gave() -> None:
    class Catches(AgentMiddleware):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            try:
                return handler(request)
            except ArithmeticError:
                return ToolMessage("failed", tool_call_id=request.tool_call["id"], status="error")

    @tool
    def fails(text: str) -> str:
        """Do it."""
        raise ArithmeticError

    with ran(fails, middleware=[Catches()]) as (saver, agent):
        agent.invoke({"messages": [HumanMessage("hi")]}, config())
    ((task_id, result),) = saver.written(ToolMessage)
    found = captured.tool(result.tool_call_id, task_id)
    assert found is not None
    assert not found.gave(result)


def test_runs_of_one_tool_call_are_taken_together() -> None:
    class Again(AgentMiddleware):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            handler(request)
            return handler(request)

    model = Scripted(answer=last_text)

    @tool
    def asks(text: str) -> str:
        """Do it."""
        return model.invoke([HumanMessage(text)]).text

    with ran(asks, middleware=[Again()]) as (saver, agent):
        agent.invoke({"messages": [HumanMessage("hi")]}, config())
    ((task_id, result),) = saver.written(ToolMessage)
    found = captured.tool(result.tool_call_id, task_id)
    assert found is not None
    assert len(found.calls) == 2
    assert list(found.calls) == captured.of_task(task_id)


# Bounds and faults.


def in_task(name: str) -> dict[str, Any]:
    return {"thread_id": "t", "langgraph_checkpoint_ns": f"bot:{name}", "langgraph_step": 1}


def test_a_task_whose_call_was_dropped_has_an_opaque_one_in_its_place() -> None:
    kept = Captured(calls=3)
    reply = AIMessage("words", id="reply")
    first = uuid4()
    kept.call_started(first, None, in_task("first"), [HumanMessage("hi")])
    kept.call_ended(first, [reply])
    assert [one.opaque for one in kept.of_task("first")] == [False]
    assert kept.of_reply(reply) is not None
    for name in ("first", "b", "c"):
        kept.call_started(uuid4(), None, in_task(name), [HumanMessage("hi")])
    assert [one.opaque for one in kept.of_task("first")] == [True, False]
    assert kept.of_reply(reply) is None
    assert kept._replies == {}
    for name in "def":
        kept.call_started(uuid4(), None, in_task(name), [HumanMessage("hi")])
    assert [one.opaque for one in kept.of_task("first")] == [True]
    assert kept.of_task("first")[0].tasks == ("first",)
    assert [one.opaque for one in kept.of_step("t", 1)] == [True, False, False, False]
    assert kept.of_task("never was") == []


def test_long_prompts_are_dropped_before_they_fill_the_memory() -> None:
    kept = Captured(size=100_000)
    for at in range(50):
        kept.call_started(uuid4(), None, in_task(str(at)), [HumanMessage("x" * 30_000)])
    assert [one.opaque for at in range(50) for one in kept.of_task(str(at))].count(False) == 3
    kept.call_started(uuid4(), None, in_task("huge"), [HumanMessage([{"text": "x" * 10**6}])])
    assert [one.opaque for one in kept.of_task("huge")] == [False]
    assert len(kept._kept) == 1


def test_nothing_grows_without_bound() -> None:
    kept = Captured(calls=32, size=1_000_000)

    def turn(at: int) -> None:
        root, tool_run, call = uuid4(), uuid4(), uuid4()
        message = HumanMessage("x" * 200)
        kept.chain_started(root, None, {"thread_id": f"t{at}"}, {"messages": [message]})
        kept.tool_started(tool_run, root, in_task(f"task{at}"), f"call{at}", "tool", {})
        system = SystemMessage("y" * 200)
        kept.call_started(call, tool_run, in_task(f"task{at}"), [system, message])
        kept.call_ended(call, [AIMessage("z" * 200, id=f"reply{at}")])
        kept.tool_ended(tool_run, ToolMessage("w" * 200, tool_call_id=f"call{at}"))

    for at in range(800):
        turn(at)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for at in range(800, 1_600):
        turn(at)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    sizes = {
        name: len(getattr(kept, name))
        for name in ("_kept", "_tools", "_systems", "_tool_calls", "_replies")
    }
    assert set(sizes.values()) == {32}
    assert len(kept._places) <= 16 * 32
    assert len(kept._index._lost) <= 16 * 32
    assert len(kept._index._calls) <= 4 * 32
    # Fresh objects have taken the place of the earlier ones, which tracemalloc did not see go.
    assert grown < 1_250_000


def test_a_prompt_that_cannot_be_read_is_opaque_and_does_not_stop_the_run() -> None:
    kept = Captured()
    kept.call_started(uuid4(), None, in_task("odd"), [object()])
    assert [one.opaque for one in kept.of_task("odd")] == [True]


def test_a_call_that_could_not_be_noted_does_not_pass_for_one_that_never_was() -> None:
    class Full(Captured):
        def call_started(self, *_: Any) -> None:
            raise MemoryError

    model = Scripted(answer=last_text)
    with pytest.raises(MemoryError):
        model.invoke([HumanMessage("hi")], {"callbacks": [_Handler(Full())]})
    assert model.heard == []


def test_nothing_of_a_memory_shows_in_how_captured_values_are_printed() -> None:
    model = Scripted(answer=lambda _: AIMessage("a secret reply"))
    call = captured.of_reply(model.invoke([HumanMessage("a secret")], in_thread()))
    assert call is not None
    assert "secret" not in repr(call) + repr(call.prompt) + repr(call.prompt[0])


def test_a_prompt_is_a_sequence() -> None:
    messages = [HumanMessage(str(at)) for at in range(4)]
    prompt = Prompt(messages)
    assert [one.message for one in prompt] == messages
    assert prompt[-1].message is messages[-1]
    assert [one.content for one in prompt[1:3]] == ["1", "2"]
    with pytest.raises(IndexError):
        prompt[4]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "as it was \ud800", "nested": [{"a": (1, None, True)}]},
        {"type": "text", "text": "as it was", "odd": object()},
        "as it was",
    ],
)
def test_content_blocks_are_kept_as_they_were(block: Any) -> None:
    message = HumanMessage(["first", {"text": "to go"}])
    message.content = [block]
    prompt = Prompt([HumanMessage("a string"), message])
    assert prompt.contents == ("a string", [block])
    assert prompt.weight > 2_000
    again = Prompt([HumanMessage("a string"), message.model_copy()])
    assert not prompt.same(again)  # without ids, only the same objects are the same messages
    message.content[0] = "changed"
    assert prompt[1].content == [block]
    assert again.contents == prompt.contents


def test_a_chunk_and_its_message_have_the_same_fingerprint() -> None:
    chosen = calls(("add", {"a": 1, "nested": {"b": [1, {"c": None}]}}))
    chunk = AIMessageChunk(content="", tool_calls=chosen.tool_calls)
    assert generated(chunk) == generated(chosen)
    assert generated(AIMessage("a")) != generated(AIMessage("b"))


def test_runs_that_are_over_leave_no_place_behind() -> None:
    before = len(captured._places)
    model = Scripted(answer=tools_first(("add", {"a": 1, "b": 2})))
    agent = create_agent(model, [add], checkpointer=InMemorySaver())
    for how in WAYS:
        run(agent, {"messages": [HumanMessage("hi")]}, how, config())
    failing = one_node(Scripted(answer=lambda _: 1 / 0), checkpointer=InMemorySaver())
    with pytest.raises(ZeroDivisionError):
        failing.invoke({"messages": [HumanMessage("hi")]}, config())
    assert len(captured._places) == before
