"""The eight problems that users of LlamaIndex's memories report most, each as it is reported.

The numbers are those of the issues and pull requests of run-llama/llama_index.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.workflow import Context
from llama_models import RepeatingChat, fresh, own_tokens, tokens_in
from llama_talks import TOOLS, Kit, caller, restored, run

import dellm
from dellm_llamaindex import DeLLMMemory

Opened = Callable[..., dellm.Memory]
Maker = Callable[..., DeLLMMemory]


@pytest.fixture
def ours(memory: dellm.Memory) -> Maker:
    def make(session: str = "main", **options: Any) -> DeLLMMemory:
        options.setdefault("top_k", None)
        return DeLLMMemory.from_defaults(memory=memory, session_id=session, **options)

    return make


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def reply(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


async def _run(agent: Any, **given: Any) -> Any:
    return await agent.run(**given)


def _agent(*tools: Any, **options: Any) -> FunctionAgent:
    return caller(Kit(lambda _: DeLLMMemory.from_defaults()), tools, **options)


# 1: #18628, #18069, #18475, #19228


@pytest.mark.parametrize("top_k", [None, 5])
@pytest.mark.parametrize("written", [False, True])
def test_1_a_context_that_is_used_again_or_restored_neither_loses_nor_forks_the_memory(
    ours: Maker, top_k: int | None, written: bool
) -> None:
    agent = _agent()
    context = Context(agent)
    memory = ours(top_k=top_k)
    run(_run(agent, user_msg="one", memory=memory, ctx=context))
    for text in ("two", "three"):
        context = restored(agent, context) if written else context
        run(_run(agent, user_msg=text, ctx=context))
    said = memory.get_all()
    assert [one.content for one in said if one.role == "user"] == ["one", "two", "three"]
    assert len(said) == len(ours(top_k=top_k).get_all()) == 6


def test_1_what_a_context_writes_down_of_a_memory_holds_nothing_that_was_said(ours: Maker) -> None:
    agent = _agent()
    context = Context(agent)
    run(_run(agent, user_msg=fresh("U"), memory=(memory := ours()), ctx=context))
    run(_run(agent, user_msg="and now", ctx=context))
    said = {token for one in memory.get_all() for token in own_tokens(one) if token[1] == "U"}
    assert said
    assert not said & set(tokens_in(json.dumps(context.to_dict())))
    assert not said & set(tokens_in(json.dumps(memory.to_dict())))


# 2: #10493, #13715, #14014, #19898, #16214


@pytest.fixture(scope="module")
def one_core() -> Iterator[dellm.Memory]:
    with dellm.Memory.open(":memory:", embedder="hashing") as memory:
        yield memory.workspace("alex")


SESSIONS = itertools.count()
TURN = st.lists(st.integers(1, 3), max_size=3)  # how many tools are called at once, step by step


def _turn(at: int, steps: Sequence[int]) -> list[ChatMessage]:
    said = [user(f"question {at} of the cat")]
    for step, count in enumerate(steps):
        ids = [f"call {at} {step} {one}" for one in range(count)]
        calls = [
            ToolCallBlock(tool_call_id=id_, tool_name="look", tool_kwargs={"of": "cat"})
            for id_ in ids
        ]
        said.append(ChatMessage(role="assistant", blocks=[TextBlock(text="I look"), *calls]))
        said += [
            ChatMessage(role="tool", content="a cat", additional_kwargs={"tool_call_id": id_})
            for id_ in ids
        ]
    return [*said, reply(f"answer {at} on the cat")]


def unpaired(messages: Sequence[ChatMessage]) -> list[str]:
    """Return the calls without results, and the results not after their call, of a list."""
    open_, wrong = set(), []
    for one in messages:
        if one.role != "tool":
            wrong += [f"call {id_} has no result" for id_ in sorted(open_)]
            open_ = {it.tool_call_id for it in one.blocks if isinstance(it, ToolCallBlock)}
        elif (id_ := one.additional_kwargs["tool_call_id"]) in open_:
            open_.discard(id_)
        else:
            wrong.append(f"result {id_} has no call")
    return wrong + [f"call {id_} has no result" for id_ in sorted(open_)]


def test_2_a_call_without_a_result_is_found_by_the_test_itself() -> None:
    whole = _turn(0, [2])
    assert not unpaired(whole)
    assert unpaired(whole[:2] + whole[3:])
    assert unpaired(whole[2:])
    assert unpaired([whole[0], *whole[2:]])


@settings(max_examples=50)
@given(turns=st.lists(TURN, min_size=1, max_size=4), drawn=st.data())
def test_2_calls_and_results_stay_together_whatever_is_cut_chosen_or_forgotten(
    one_core: dellm.Memory, turns: list[list[int]], drawn: st.DataObject
) -> None:
    session = f"s{next(SESSIONS)}"
    options: dict[str, Any] = {"memory": one_core, "session_id": session, "tokenizer_fn": str.split}
    whole = DeLLMMemory.from_defaults(top_k=None, **options)
    for at, steps in enumerate(turns):
        whole.put_messages(_turn(at, steps))
    _reads_are_paired(options, drawn)
    there = [one.id for one in one_core.history(session)]
    gone = drawn.draw(st.lists(st.sampled_from(there), min_size=1, max_size=3, unique=True))
    whole.forget(ids=gone)
    assert not set(gone) & {one.id for one in one_core.history(session)}
    _reads_are_paired(options, drawn)


def _reads_are_paired(options: dict[str, Any], drawn: st.DataObject) -> None:
    limit = drawn.draw(st.integers(3, 60))
    top_k = drawn.draw(st.integers(1, 6))
    for one in (
        DeLLMMemory.from_defaults(top_k=None, token_limit=100_000, **options),
        DeLLMMemory.from_defaults(top_k=None, token_limit=limit, **options),
        DeLLMMemory.from_defaults(top_k=top_k, token_limit=100_000, threshold=-1.0, **options),
        DeLLMMemory.from_defaults(top_k=top_k, token_limit=limit, threshold=-1.0, **options),
    ):
        assert not unpaired(one.get())
        assert not unpaired(one.get("what of the cat"))
        assert not unpaired(one.get_all())


# 3: #22701


def test_3_what_one_session_said_is_not_chosen_for_another(ours: Maker) -> None:
    first, second = ours("first", top_k=5), ours("second", top_k=5)
    first.put(user("the code of the safe is 4711"))
    assert first.get("the code of the safe")
    second.put(user("the code of the door is 9"))
    for memory, secret, other in ((first, "4711", "door"), (second, "door", "4711")):
        for question in ("the code of the safe", "the code of the door"):
            given = " ".join(one.content or "" for one in memory.get(question))
            assert secret in given
            assert other not in given


# 4: #23144, #22867


def test_4_a_system_message_stays_however_long_the_talk_gets(ours: Maker) -> None:
    memory = ours(top_k=2, token_limit=40, tokenizer_fn=str.split)
    memory.put(system := ChatMessage(role="system", content="you speak like a pirate"))
    for at in range(20):
        memory.put_messages([user(f"question {at} " + "word " * 5), reply(f"answer {at}")])
    given = memory.get("question 3")
    assert given[0] == system
    assert sum(len((one.content or "").split()) for one in given) <= 40


def test_4_what_cannot_be_indexed_now_is_not_lost(sqlite_url: str, opened: Opened) -> None:
    class Down:
        """An embedding service that does not answer."""

        name = "down"
        dimensions = 8
        threshold = 0.25

        def embed(self, texts: Sequence[str]) -> Any:
            raise dellm.EmbedderError("no answer")

    core = opened(sqlite_url, embedder=Down())
    memory = DeLLMMemory.from_defaults(memory=core, session_id="main", top_k=None)
    memory.put_messages([user("one"), reply("two")])
    assert memory.get() == memory.get_all() == [user("one"), reply("two")]


def test_4_puts_at_once_are_all_kept_as_puts_in_a_row_are(ours: Maker) -> None:
    memory = ours(top_k=None)

    async def work() -> None:
        await asyncio.gather(*(memory.aput(user(f"message {at}")) for at in range(30)))

    asyncio.run(work())
    assert sorted(one.content or "" for one in memory.get_all()) == sorted(
        f"message {at}" for at in range(30)
    )


# 5: #15293, #23184, #23185, #19389


@pytest.mark.parametrize("kind", ["tasks", "threads"])
def test_5_twenty_first_puts_at_once_in_a_new_database_are_all_kept(
    url: str, opened: Opened, kind: str
) -> None:
    core = opened(url)
    memories = [
        DeLLMMemory.from_defaults(memory=core, session_id="new", top_k=None) for _ in range(20)
    ]

    async def tasks() -> None:
        await asyncio.gather(*(one.aput(user(f"m{at}")) for at, one in enumerate(memories)))

    if kind == "tasks":
        asyncio.run(tasks())
    else:
        threads = [
            threading.Thread(target=one.put, args=(user(f"m{at}"),))
            for at, one in enumerate(memories)
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert {one.content for one in memories[0].get_all()} == {f"m{at}" for at in range(20)}
    assert len(memories[0].get_all()) == 20


def test_5_an_empty_batch_changes_nothing_and_raises_nothing(ours: Maker) -> None:
    memory = ours()
    memory.put_messages([])
    asyncio.run(memory.aput_messages([]))
    asyncio.run(memory.aset([]))
    assert memory.get_all() == []


def test_5_what_was_put_without_a_loop_is_there_in_every_later_loop(ours: Maker) -> None:
    memory = ours()
    memory.put(user("one"))
    assert asyncio.run(memory.aget()) == [user("one")]
    asyncio.run(memory.aput(reply("two")))
    assert asyncio.run(memory.aget_all()) == memory.get() == [user("one"), reply("two")]


def test_5_messages_of_one_moment_keep_their_order(ours: Maker) -> None:
    memory = ours()
    said = [user(f"m{at}") for at in range(50)]
    memory.put_messages(said)
    assert memory.get_all() == said


# 6: #20895, #21679, #23151


@pytest.mark.parametrize("later", [False, True])
def test_6_a_stream_that_is_left_after_one_word_is_kept_whole_and_with_its_sources(
    ours: Maker, memory: dellm.Memory, later: bool
) -> None:
    engine = SimpleChatEngine.from_defaults(llm=RepeatingChat(), memory=(held := ours()))
    held.put_messages([user(f"{fresh('U')} earlier"), reply("indeed")])

    async def left_early() -> str:
        response = await engine.astream_chat("and now")
        async for _ in response.async_response_gen():
            break
        if response.awrite_response_to_history_task is not None:
            await response.awrite_response_to_history_task
        return response.response

    def left() -> str:
        response = engine.stream_chat("and now")
        for _ in response.response_gen:
            break
        if response.write_response_to_history_thread is not None:
            response.write_response_to_history_thread.join()
        return response.response

    whole = run(left_early()) if later else left()
    said = held.get_all()
    assert [one.role.value for one in said] == ["user", "assistant", "user", "assistant"]
    assert said[-1].content == whole
    first, second, third, last = [one.id for one in memory.history("main")]
    assert memory.context_of(last) == [first, second, third]


# 7: #18416, #22248, #23055


@pytest.mark.parametrize("top_k", [None, 5])
def test_7_the_state_shown_to_a_model_does_not_get_into_what_the_user_said(
    ours: Maker, top_k: int | None
) -> None:
    agent = _agent(TOOLS["look"], TOOLS["note"], initial_state={"mood": "calm"})
    memory = ours(top_k=top_k)
    sent = [f"{fresh('U')} one", f"{fresh('U')} two", f"{fresh('U')} three"]
    mine = [user(text) for text in sent]
    context = Context(agent)
    for message in mine:
        agent.llm.then(["note"])
        run(_run(agent, user_msg=message, memory=memory, ctx=context))
    assert [one.content for one in memory.get_all() if one.role == "user"] == sent
    assert [one.content for one in mine] == sent


# 8: #23183, #21103


def test_8_after_a_reset_nothing_is_given_and_after_a_forget_nothing_is_left(
    sqlite_url: str, opened: Opened
) -> None:
    core = opened(sqlite_url)
    memory = DeLLMMemory.from_defaults(memory=core, session_id="main", top_k=5)
    agent = _agent()
    context = Context(agent)
    secret = own_tokens(said := f"{fresh('U')} is where the treasure lies")[0]
    for text in (said, "where does the treasure lie"):
        run(_run(agent, user_msg=text, memory=memory, ctx=context))
    memory.reset()
    assert memory.get("the treasure") == memory.get_all() == memory.get() == []
    receipt = memory.forget(keyword=secret)
    assert len(receipt.ids) >= 3
    core.scrub()
    assert secret not in json.dumps(context.to_dict())
    assert not any(secret.encode() in path.read_bytes() for path in _files(sqlite_url))


def _files(url: str) -> list[Path]:
    return list(Path(url).parent.glob(Path(url).name + "*"))


def test_8_a_list_that_cannot_be_set_leaves_what_was_there(ours: Maker) -> None:
    memory = ours()
    memory.put_messages([user("one"), reply("two")])
    with pytest.raises((dellm.DellmError, TypeError, ValueError, AttributeError)):
        memory.set([user("three"), "not a message"])  # type: ignore[list-item]
    assert memory.get_all() == [user("one"), reply("two")]
