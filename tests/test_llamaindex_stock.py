"""DeLLMMemory in place of LlamaIndex's own: what upstream's tests ask of a memory.

Classic mode must not be told from ChatMemoryBuffer, so the same is done with both and compared by
equality; with a choice by meaning what upstream asks of every memory must hold as well.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import llama_models
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CompletionResponseGen,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.workflow import Context
from llama_index.core.workflow.errors import WorkflowRuntimeError
from llama_index.core.workflow.events import HumanResponseEvent, InputRequiredEvent
from llama_models import RepeatingChat, fresh, repeated, tokens_in
from llama_talks import (
    AGENTS,
    ENGINES,
    TOOLS,
    WAYS,
    Kit,
    caller,
    engine_turn,
    given_context,
    run,
    talk,
)

import dellm
from dellm_llamaindex import DeLLMMemory

Opened = Callable[..., dellm.Memory]
Maker = Callable[..., BaseMemory]


class Buffer(ChatMemoryBuffer):
    """ChatMemoryBuffer without two faults of it that are not to be copied.

    It hands out copies, so that an agent's state does not get into it; and a tool that edits the
    state does not leave the agent with a fork of it.
    """

    def __deepcopy__(self, memo: object = None) -> Buffer:
        return self

    def get_all(self) -> list[ChatMessage]:
        return copy.deepcopy(super().get_all())

    def put(self, message: ChatMessage) -> None:
        super().put(copy.deepcopy(message))

    async def aget_all(self) -> list[ChatMessage]:
        return self.get_all()

    async def aput(self, message: ChatMessage) -> None:
        self.put(message)


def stock(**options: Any) -> BaseMemory:
    options.pop("session_id", None)
    options.pop("top_k", None)
    return Buffer.from_defaults(**options)


@pytest.fixture
def core(sqlite_url: str, opened: Opened) -> dellm.Memory:
    return opened(sqlite_url).workspace("alex")


@pytest.fixture
def ours(core: dellm.Memory) -> Maker:
    numbers = itertools.count()

    def make(**options: Any) -> BaseMemory:
        options.setdefault("session_id", f"session {next(numbers)}")
        options.setdefault("top_k", None)
        return DeLLMMemory.from_defaults(memory=core, **options)

    return make


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def reply(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


CALL = ToolCallBlock(tool_call_id="c1", tool_name="look", tool_kwargs={"text": "a", "n": 1})
CALLED = ChatMessage(role="assistant", blocks=[TextBlock(text="let me see"), CALL])
RESULT = ChatMessage(role="tool", content="seen", additional_kwargs={"tool_call_id": "c1"})
ODD = [
    ChatMessage(role="user", content="größer 日本 \U0001f600"),
    ChatMessage(role="assistant", content=None),
    ChatMessage(role="user", content=""),
    ChatMessage(role="user", blocks=[TextBlock(text="a"), TextBlock(text="b")]),
    ChatMessage(role="user", blocks=[ImageBlock(image=b"aGVsbG8=", image_mimetype="image/png")]),
    ChatMessage(role="assistant", blocks=[ThinkingBlock(content="hm"), TextBlock(text="so")]),
    CALLED,
    RESULT,
    ChatMessage(role="assistant", content="x", additional_kwargs={"tool_calls": [{"id": "c2"}]}),
    ChatMessage(role="system", content="be brief"),
    ChatMessage(role="user", content="n", additional_kwargs={"name": "Ada", "deep": {"a": [1.5]}}),
]

# one after the other, both memories


def read(memory: BaseMemory) -> list[list[ChatMessage]]:
    """Return what each way of reading gives."""
    return [memory.get(), memory.get_all(), run(memory.aget()), run(memory.aget_all())]


def put_one(memory: BaseMemory) -> None:
    memory.put(user("first"))


def put_twice_the_same(memory: BaseMemory) -> None:
    memory.put(message := user("first"))
    memory.put(message)
    memory.put(user("first"))


def put_many(memory: BaseMemory) -> None:
    memory.put_messages([user("first"), reply("answer"), user("second")])
    memory.put_messages([])


def put_odd_ones(memory: BaseMemory) -> None:
    for one in ODD:
        memory.put(one)


def put_later(memory: BaseMemory) -> None:
    async def work() -> None:
        await memory.aput(user("first"))
        await memory.aput_messages([reply("answer"), CALLED, RESULT])
        await memory.aput_messages([])

    run(work())


def set_a_list(memory: BaseMemory) -> None:
    memory.put(user("first"))
    memory.put(user("first"))
    memory.set([user("first")])


def set_later_and_go_on(memory: BaseMemory) -> None:
    memory.put_messages([user("a"), reply("b")])
    run(memory.aset([user("c"), reply("d"), user("a")]))
    memory.put(reply("e"))


def set_what_was_read_in_another_order(memory: BaseMemory) -> None:
    memory.put_messages([user("a"), reply("b"), user("c"), reply("d")])
    memory.set(memory.get_all()[::-1])
    memory.put(user("e"))


def set_without_the_middle(memory: BaseMemory) -> None:
    memory.put_messages([user("a"), reply("b"), user("c"), reply("d"), user("a"), reply("b")])
    listed = memory.get_all()
    memory.set([*listed[:1], *listed[3:]])


def set_nothing(memory: BaseMemory) -> None:
    memory.put(user("a"))
    memory.set([])


def reset_and_go_on(memory: BaseMemory) -> None:
    memory.put_messages([user("a"), reply("b")])
    memory.reset()
    memory.put(user("c"))
    run(memory.areset())
    memory.put(user("d"))


SCENES = (
    put_one,
    put_twice_the_same,
    put_many,
    put_odd_ones,
    put_later,
    set_a_list,
    set_later_and_go_on,
    set_what_was_read_in_another_order,
    set_without_the_middle,
    set_nothing,
    reset_and_go_on,
)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_what_is_put_set_and_reset_reads_as_in_the_stock_memory(
    ours: Maker, scene: Callable[[BaseMemory], None]
) -> None:
    mine, its = ours(), stock()
    scene(mine)
    scene(its)
    assert read(mine) == read(its)


def test_a_list_given_at_the_start_is_the_history_as_in_the_stock_memory(ours: Maker) -> None:
    given = [user("first"), reply("answer"), *ODD]
    assert read(ours(chat_history=given)) == read(stock(chat_history=given))


@pytest.mark.parametrize("limit", [1, 3, 5, 9, 100])
@pytest.mark.parametrize("spent", [0, 1, 3, 5, 6, 101])
def test_what_does_not_fit_is_left_out_as_in_the_stock_memory(
    ours: Maker, limit: int, spent: int
) -> None:
    said = [user("one two"), reply("three"), user("four five"), CALLED, RESULT, reply("six")]
    options = {"token_limit": limit, "tokenizer_fn": str.split, "chat_history": said}
    assert _given(ours(**options), spent) == _given(stock(**options), spent)


def _given(memory: BaseMemory, spent: int) -> list[ChatMessage] | str:
    try:
        given = memory.get(initial_token_count=spent)
        assert given == run(memory.aget(initial_token_count=spent))
    except ValueError as error:
        return str(error)
    return given


def test_the_default_limits_are_those_of_the_stock_memory(ours: Maker) -> None:
    model = RepeatingChat()
    assert ours().token_limit == stock().token_limit  # type: ignore[attr-defined]
    assert ours(llm=model).token_limit == stock(llm=model).token_limit  # type: ignore[attr-defined]
    assert (
        ours(llm=model, token_limit=7).token_limit == stock(llm=model, token_limit=7).token_limit  # type: ignore[attr-defined]
    )


def test_the_default_tokenizer_counts_as_that_of_the_stock_memory(ours: Maker) -> None:
    said = [
        user("Counting words is not counting tokens."),
        reply("Indeed: größer 日本!"),
        user("x"),
    ]
    for limit in range(1, 40, 3):
        options = {"token_limit": limit, "chat_history": said}
        assert ours(**options).get() == stock(**options).get()


ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
SAID = st.lists(st.tuples(ROLES, st.integers(0, 6)), max_size=12)


@pytest.fixture(scope="module")
def one_core() -> Iterator[dellm.Memory]:
    with dellm.Memory.open(":memory:", embedder="hashing") as memory:
        yield memory.workspace("alex")


SESSIONS = itertools.count()


@settings(max_examples=60)
@given(said=SAID, limit=st.integers(1, 30), spent=st.integers(0, 32))
def test_any_thread_is_cut_to_any_limit_as_in_the_stock_memory(
    one_core: dellm.Memory, said: list[tuple[str, int]], limit: int, spent: int
) -> None:
    listed = [ChatMessage(role=role, content=" ".join("w" * size)) for role, size in said]
    options = {"token_limit": limit, "tokenizer_fn": str.split}
    mine = DeLLMMemory.from_defaults(
        memory=one_core, session_id=f"s{next(SESSIONS)}", top_k=None, **options
    )
    its = stock(**options)
    for one in listed:
        mine.put(one)
        its.put(one)
    assert _given(mine, spent) == _given(its, spent)
    assert mine.get_all() == its.get_all()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.tuples(ROLES, st.integers(0, 3))),
        st.tuples(st.just("set"), st.lists(st.integers(0, 30), max_size=6)),
        st.tuples(st.just("reset"), st.none()),
    ),
    max_size=10,
)


@settings(max_examples=60)
@given(steps=STEPS)
def test_any_order_of_puts_sets_and_resets_reads_as_in_the_stock_memory(
    one_core: dellm.Memory, steps: list[tuple[str, Any]]
) -> None:
    mine = DeLLMMemory.from_defaults(memory=one_core, session_id=f"s{next(SESSIONS)}", top_k=None)
    its = stock()
    for memory in (mine, its):
        for what, how in steps:
            _do(memory, what, how)
    assert mine.get_all() == its.get_all()


def _do(memory: BaseMemory, what: str, how: Any) -> None:
    """Put something; set a list of some of what is there and something new; or reset."""
    if what == "put":
        memory.put(ChatMessage(role=how[0], content=f"w{how[1]}"))
    elif what == "reset":
        memory.reset()
    else:
        there = memory.get_all()
        new = [reply("new"), user("new")]
        memory.set([(there + new)[at % (len(there) + 2)] for at in how])


def test_an_empty_memory_is_not_false_so_that_nobody_replaces_it(ours: Maker) -> None:
    assert ours()
    engine = SimpleChatEngine.from_defaults(llm=RepeatingChat(), memory=(memory := ours()))
    engine.chat("hello")
    assert len(memory.get_all()) == 2


@pytest.mark.parametrize("top_k", [None, 5])
@pytest.mark.parametrize("how", ["string", "dict", "json", "pickle", "deepcopy", "model_copy"])
def test_a_memory_that_was_written_down_and_read_again_is_the_same_one(
    ours: Maker, how: str, top_k: int | None
) -> None:
    memory = ours(chat_history=[user("first")], token_limit=5, top_k=top_k)
    ways: dict[str, Callable[[], Any]] = {
        "string": lambda: DeLLMMemory.from_string(memory.to_string()),  # type: ignore[attr-defined]
        "dict": lambda: DeLLMMemory.from_dict(memory.to_dict()),
        "json": lambda: DeLLMMemory.from_json(memory.to_json()),
        "pickle": lambda: pickle.loads(pickle.dumps(memory)),
        "deepcopy": lambda: copy.deepcopy(memory),
        "model_copy": lambda: memory.model_copy(deep=True),
    }
    again = ways[how]()
    again.put(reply("second"))
    assert memory.get_all() == again.get_all() == [user("first"), reply("second")]
    assert again.token_limit == 5


# engines


def _anew() -> Kit:
    llama_models.NUMBERS, llama_models.CALLS = itertools.count(1), itertools.count(1)
    return Kit(lambda _: stock(), random.Random(2))


def _engine_talk(memory: BaseMemory, engine: str, way: str) -> list[ChatMessage]:
    kit = _anew()
    talk(kit, engine_turn(kit, memory, engine, way), 3)
    return kit.engines[0].chat_history


@pytest.mark.parametrize("limit", [40, 100_000])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_talk_with_an_engine_is_word_for_word_that_with_the_stock_memory(
    ours: Maker, engine: str, way: str, limit: int
) -> None:
    options = {"token_limit": limit, "tokenizer_fn": str.split}
    mine = _engine_talk(ours(**options), engine, way)
    assert mine == _engine_talk(stock(**options), engine, way)
    assert len(mine) == 6


@pytest.mark.parametrize("limit", [40, 100_000])
@pytest.mark.parametrize("agent", sorted(AGENTS.keys() - {"engine_as_tool", "memory_in_tool"}))
def test_a_run_of_an_agent_is_word_for_word_that_with_the_stock_memory(
    ours: Maker, agent: str, limit: int
) -> None:
    options = {"token_limit": limit, "tokenizer_fn": str.split}
    talks = []
    for memory in (ours(**options), stock(**options)):
        kit = _anew()
        talk(kit, AGENTS[agent](kit, memory, "memory"), 4)
        talks.append(memory.get_all())
    assert talks[0] == talks[1]
    assert len(talks[0]) >= 4


@pytest.mark.parametrize("top_k", [None, 5])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_said_is_known_in_the_next_turn_and_not_after_a_reset(
    ours: Maker, engine: str, way: str, top_k: int | None
) -> None:
    kit = Kit(lambda _: ours(top_k=top_k))
    turn = engine_turn(kit, ours(top_k=top_k), engine, way)
    mine = kit.engines[0]
    run(turn(first := f"{fresh('U')} the cat sleeps in her garden"))
    marks = kit.heard()
    run(turn(f"{fresh('U')} the cat sleeps where"))
    assert set(tokens_in(first)) <= kit.heard_since(marks)
    assert len(mine.chat_history) == 4
    mine.reset()
    assert mine.chat_history == []
    marks = kit.heard()
    run(turn(f"{fresh('U')} the cat sleeps where"))
    assert not set(tokens_in(first)) & kit.heard_since(marks)


@pytest.mark.parametrize("top_k", [None, 5])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_stream_that_nobody_reads_to_its_end_is_kept_all_the_same(
    ours: Maker, engine: str, top_k: int | None
) -> None:
    kit = Kit(lambda _: ours())
    engine_turn(kit, memory := ours(top_k=top_k), engine, "stream_chat")
    response = kit.engines[0].stream_chat(f"{fresh('U')} hello")
    for _ in response.response_gen:
        break
    if response.write_response_to_history_thread is not None:
        response.write_response_to_history_thread.join()
    assert [one.role.value for one in memory.get_all()] == ["user", "assistant"]
    assert memory.get_all()[1].content == response.response


@pytest.mark.parametrize("top_k", [None, 5])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_async_stream_that_nobody_reads_to_its_end_is_kept_all_the_same(
    ours: Maker, engine: str, top_k: int | None
) -> None:
    kit = Kit(lambda _: ours())
    engine_turn(kit, memory := ours(top_k=top_k), engine, "astream_chat")

    async def work() -> StreamingAgentChatResponse:
        response = await kit.engines[0].astream_chat(f"{fresh('U')} hello")
        async for _ in response.async_response_gen():
            break
        if response.awrite_response_to_history_task is not None:
            await response.awrite_response_to_history_task
        return response

    response = run(work())
    assert [one.role.value for one in memory.get_all()] == ["user", "assistant"]
    assert memory.get_all()[1].content == response.response


class BreaksOff(RepeatingChat):
    """A model whose stream ends in an error after the first words."""

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **_: Any
    ) -> CompletionResponseGen:
        def parts() -> CompletionResponseGen:
            yield CompletionResponse(text="half", delta="half")
            raise RuntimeError("the line is dead")

        return parts()

    def parts(self, messages: Sequence[ChatMessage]) -> Iterator[ChatResponse]:
        yield ChatResponse(message=reply("half"), delta="half")
        raise RuntimeError("the line is dead")


@pytest.mark.parametrize("top_k", [None, 5])
def test_an_error_in_a_stream_reaches_the_caller_and_leaves_no_half_reply(
    ours: Maker, top_k: int | None
) -> None:
    engine = SimpleChatEngine.from_defaults(llm=BreaksOff(), memory=(memory := ours(top_k=top_k)))

    async def work() -> None:
        response = await engine.astream_chat("hello")
        async for _ in response.async_response_gen():
            continue

    with pytest.raises(RuntimeError, match="the line is dead"):
        run(work())
    assert memory.get_all() == [user("hello")]


@pytest.mark.parametrize("later", [False, True])
def test_a_streamed_message_of_several_blocks_is_kept_as_the_engine_wrote_it(
    ours: Maker, later: bool
) -> None:
    def message() -> ChatMessage:
        return ChatMessage(
            role="assistant", blocks=[ThinkingBlock(content="hm"), TextBlock(text="x")]
        )

    def written(memory: BaseMemory) -> list[ChatMessage]:
        one = message()
        parts = [ChatResponse(message=one, delta="new "), ChatResponse(message=one, delta="text")]
        if not later:
            StreamingAgentChatResponse(chat_stream=iter(parts)).write_response_to_history(memory)
            return memory.get_all()

        async def stream() -> Any:
            for part in parts:
                yield part

        async def work() -> None:
            response = StreamingAgentChatResponse(achat_stream=stream())
            await response.awrite_response_to_history(memory)

        run(work())
        return memory.get_all()

    assert written(ours()) == written(stock())


def test_an_engine_makes_the_memory_itself_when_it_is_named_by_its_class() -> None:
    history = [user("earlier"), reply("indeed")]
    engine = SimpleChatEngine.from_defaults(
        llm=(model := RepeatingChat()), memory_cls=DeLLMMemory, chat_history=history
    )
    engine.chat(said := f"{fresh('U')} now")
    assert engine.chat_history[:3] == [*history, user(said)]
    assert set(tokens_in(said)) <= model.heard.since(0)


# agents


@pytest.mark.parametrize("top_k", [None, 5])
def test_an_agent_that_calls_tools_for_ever_is_stopped_and_what_was_said_is_kept(
    ours: Maker, top_k: int | None
) -> None:
    kit = _anew()
    agent = caller(kit)
    agent.llm.then(*[["look"]] * 9)
    with pytest.raises(WorkflowRuntimeError, match="Max iterations"):
        run(_run(agent, user_msg="hello", memory=(memory := ours(top_k=top_k)), max_iterations=3))
    assert memory.get_all() == [user("hello")]


async def _run(agent: Any, **given: Any) -> Any:
    return await agent.run(**given)


@pytest.mark.parametrize("top_k", [None, 5])
def test_an_agent_that_stops_early_answers_from_what_the_memory_gives(
    ours: Maker, top_k: int | None
) -> None:
    kit = _anew()
    agent = caller(kit, early_stopping_method="generate")
    agent.llm.then(["look"], ["look"])
    done = run(
        _run(agent, user_msg="hello", memory=(memory := ours(top_k=top_k)), max_iterations=2)
    )
    assert [one.role.value for one in memory.get_all()] == ["user", "assistant"]
    assert memory.get_all()[-1].content == done.response.content


@pytest.mark.parametrize("top_k", [None, 5])
def test_an_agent_keeps_calls_and_results_together_over_several_turns(
    ours: Maker, top_k: int | None
) -> None:
    kit = _anew()
    agent = caller(kit)
    memory = ours(top_k=top_k)
    for _ in range(3):
        agent.llm.then(["look", "weigh"], ["look"])
        run(_run(agent, user_msg=kit.question(), memory=memory))
    roles = [one.role.value for one in memory.get_all()]
    turn = ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    assert roles == turn * 3


@pytest.mark.parametrize("top_k", [None, 5])
def test_a_list_given_to_an_agent_is_its_history(ours: Maker, top_k: int | None) -> None:
    kit = _anew()
    given = [user(f"{fresh('U')} hello cat"), reply(f"{fresh('R')} hello"), user("and the cat")]
    memory = ours(top_k=top_k)
    run(_run(caller(kit), chat_history=given, memory=memory))
    assert memory.get_all()[:3] == given
    assert set(tokens_in(given)) & kit.heard_since([])


@pytest.mark.parametrize("top_k", [None, 5])
def test_an_agent_that_hands_over_to_another_shares_the_memory_with_it(
    ours: Maker, top_k: int | None
) -> None:
    kit = _anew()
    memory = ours(top_k=top_k)
    turn = AGENTS["handoff"](kit, memory, "context")
    flow: AgentWorkflow = turn.agent  # type: ignore[attr-defined]
    flow.agents["first"].llm.then(["handoff:second"])  # type: ignore[attr-defined]
    done = run(_run(flow, user_msg=f"{fresh('U')} hello", memory=memory))
    said = memory.get_all()
    assert done.current_agent_name == "second"
    assert [one.role.value for one in said] == ["user", "assistant", "tool", "assistant"]
    assert set(tokens_in(said[0])) <= set(tokens_in(said[-1]))


@pytest.mark.parametrize("top_k", [None, 5])
@pytest.mark.parametrize("written", [False, True])
def test_a_context_that_is_used_again_goes_on_with_the_same_memory(
    ours: Maker, top_k: int | None, written: bool
) -> None:
    kit = _anew()
    agent = caller(kit)
    memory = ours(top_k=top_k)
    run(_run(agent, user_msg="one", memory=memory, ctx=(context := Context(agent))))
    for text in ("two", "three"):
        if written:
            context = Context.from_dict(agent, json.loads(json.dumps(context.to_dict())))
        run(_run(agent, user_msg=text, ctx=context))
    assert [one.content for one in memory.get_all() if one.role == "user"] == [
        "one",
        "two",
        "three",
    ]
    assert len(memory.get_all()) == 6


@pytest.mark.parametrize("top_k", [None, 5])
def test_an_agent_that_waits_for_a_person_goes_on_from_a_written_context(
    ours: Maker, top_k: int | None
) -> None:
    kit = _anew()

    @given_context
    async def ask(ctx: Context, text: str) -> str:
        """Ask a person."""
        asked = InputRequiredEvent(prefix="may I?")
        said = await ctx.wait_for_event(HumanResponseEvent, waiter_event=asked)
        return f"{said.response} {repeated(text)}"

    agent = caller(kit, [ask])
    agent.llm.then(["ask"])
    memory = ours(top_k=top_k)

    async def work() -> None:
        handler = agent.run(user_msg="hello", memory=memory, ctx=Context(agent))
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                written = json.dumps(handler.ctx.to_dict())
                await handler.cancel_run()
                break
        handler = agent.run(ctx=Context.from_dict(agent, json.loads(written)))
        handler.ctx.send_event(HumanResponseEvent(response="yes"))
        await handler

    run(work())
    said = memory.get_all()
    assert [one.role.value for one in said] == ["user", "assistant", "tool", "assistant"]
    assert (said[2].content or "").startswith("yes")


@pytest.mark.parametrize("top_k", [None, 5])
def test_the_state_of_a_workflow_is_shown_once_and_changed_by_a_tool(
    ours: Maker, top_k: int | None
) -> None:
    kit = _anew()

    @given_context
    async def count(ctx: Context, text: str) -> str:
        """Count."""
        state = await ctx.store.get("state")
        await ctx.store.set("state", {"counter": state["counter"] + 1})
        return "counted"

    agent = caller(kit, [count], name="one")
    flow = AgentWorkflow(agents=[agent], initial_state={"counter": 0})
    agent.llm.then(["count"])

    async def work() -> Any:
        handler = flow.run(user_msg="hello", memory=memory, ctx=(context := Context(flow)))
        await handler
        return await context.store.get("state")

    memory = ours(top_k=top_k)
    assert run(work()) == {"counter": 1}
    assert memory.get_all()[0] == user("hello")


def test_a_tool_that_answers_directly_or_fails_is_kept_as_with_the_stock_memory(
    ours: Maker,
) -> None:
    talks = []
    for memory in (ours(), stock()):
        kit = _anew()
        agent = caller(kit, [TOOLS["show"], TOOLS["stumble"]])
        agent.llm.then(["stumble"], ["show"])
        run(_run(agent, user_msg="hello", memory=memory))
        talks.append(memory.get_all())
    assert talks[0] == talks[1]


# what is chosen by meaning


def test_what_is_near_to_the_question_is_given_with_its_answer(ours: Maker) -> None:
    memory = ours(top_k=1)
    memory.put_messages(
        [
            user("Jerry likes juice"),
            reply("noted"),
            user("Bob eats burgers"),
            user("Alice grows apples"),
        ]
    )
    given = [one.content for one in memory.get("what does Jerry like, juice")]
    assert "Jerry likes juice" in given
    assert "Bob eats burgers" not in given


def test_a_limit_smaller_than_what_is_spent_is_an_error_by_meaning_too(ours: Maker) -> None:
    memory = ours(top_k=5, token_limit=5)
    with pytest.raises(ValueError, match="Initial token count exceeds token limit"):
        memory.get(initial_token_count=6)
    with pytest.raises(ValueError, match="Initial token count exceeds token limit"):
        asyncio.run(memory.aget("hello", initial_token_count=6))
