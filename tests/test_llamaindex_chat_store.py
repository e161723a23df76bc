"""DeLLMChatStore under the stock Memory: as the stock store, and with what each message was made from."""

from __future__ import annotations

import asyncio
import copy
import io
import itertools
import json
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import Memory as StockMemory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from llama_models import RepeatingCaller, RepeatingChat, fresh, repeated, tokens_in
from llama_talks import WAYS

from dellm import InvalidInput, Memory
from dellm_llamaindex.chat_store import DeLLMChatStore
from dellm_llamaindex.fact_block import DeLLMFactBlock
from dellm_llamaindex.lines import Line
from dellm_llamaindex.memory import DeLLMMemory
from dellm_llamaindex.vector_block import DeLLMVectorBlock

Opened = Callable[..., Memory]
ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED
NUMBERS = itertools.count(1)


def user(text: str) -> ChatMessage:
    return ChatMessage(text, role="user")


def reply(text: str) -> ChatMessage:
    return ChatMessage(text, role="assistant")


TALK = (user("one"), reply("two"), user("three"), reply("four"))
CALL = ToolCallBlock(tool_call_id="c1", tool_name="f", tool_kwargs={"a": [1, None]})
ZOO = (
    ChatMessage("Be brief.", role="system"),
    ChatMessage(role="user", blocks=[TextBlock(text="🦊 م"), ImageBlock(url="http://a.b/c.png")]),
    ChatMessage(role="assistant", blocks=[TextBlock(text="I see"), CALL]),
    ChatMessage("18C", role="tool", additional_kwargs={"tool_call_id": "c1", "name": "f"}),
    ChatMessage("Fine.", role="assistant", additional_kwargs={"usage": {"tokens": 3}}),
    ChatMessage(role="user", blocks=[]),
)


def talk() -> list[ChatMessage]:
    """Return the messages as they are before any memory has seen them."""
    return copy.deepcopy(list(TALK))


def zoo() -> list[ChatMessage]:
    """Return one of each kind of message."""
    return copy.deepcopy(list(ZOO))


@pytest.fixture
def local(sqlite_url: str, opened: Opened) -> Memory:
    return opened(sqlite_url).workspace("alex")


def stock() -> SQLAlchemyChatStore:
    return SQLAlchemyChatStore(f"t{next(NUMBERS)}")


@pytest.fixture(params=["stock", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, opened: Opened) -> AsyncDBChatStore:
    """Return the stock store, and ours on both databases."""
    if request.param == "stock":
        return stock()
    url = request.getfixturevalue(f"{request.param}_url")
    return DeLLMChatStore(opened(url).workspace("alex"))


def said(messages: Sequence[ChatMessage]) -> list[str | None]:
    return [one.content for one in messages]


def context(memory: Memory, text: str, thread: str = "s") -> list[str]:
    records = {one.id: one.text for one in memory.history(thread)}
    [found] = [id_ for id_, one in records.items() if one == text]
    return [records[one] for one in memory.context_of(found)]


# as the stock store


async def test_messages_come_back_equal_and_in_order(store: AsyncDBChatStore) -> None:
    for one in zoo()[:2]:
        await store.add_message("s", one)
    await store.add_messages("s", zoo()[2:])
    assert await store.get_messages("s") == list(ZOO)
    assert await store.count_messages("s") == len(ZOO)
    assert await store.get_messages("t") == []
    assert await store.count_messages("t") == 0


async def test_setting_replaces_all_there_was(store: AsyncDBChatStore) -> None:
    await store.add_messages("s", talk())
    await store.add_message("t", user("other"))
    await store.archive_oldest_messages("s", 1)
    await store.set_messages("s", [user("new"), reply("newer")])
    assert said(await store.get_messages("s", status=None)) == ["new", "newer"]
    assert said(await store.get_messages("t")) == ["other"]
    await store.set_messages("s", [user("old")], status=ARCHIVED)
    assert await store.get_messages("s") == []
    assert said(await store.get_messages("s", status=ARCHIVED)) == ["old"]
    await store.set_messages("s", [])
    assert await store.get_messages("s", status=None) == []


async def test_setting_what_is_there_drops_what_was_archived(store: AsyncDBChatStore) -> None:
    await store.add_messages("s", talk())
    await store.archive_oldest_messages("s", 2)
    await store.set_messages("s", await store.get_messages("s"))
    assert said(await store.get_messages("s", status=None)) == ["three", "four"]


async def test_a_message_is_deleted_by_its_id(store: AsyncDBChatStore) -> None:
    await store.add_messages("s", talk())
    await store.add_message("t", user("other"))
    found = await store.delete_message("s", 2)
    assert found == TALK[1]
    assert said(await store.get_messages("s")) == ["one", "three", "four"]
    assert await store.delete_message("s", 2) is None
    assert await store.delete_message("s", 99) is None
    assert await store.delete_message("s", 5) is None
    assert said(await store.get_messages("t")) == ["other"]


async def test_messages_are_deleted_by_their_status(store: AsyncDBChatStore) -> None:
    for key in ("s", "t", "u"):
        await store.add_messages(key, talk())
        await store.archive_oldest_messages(key, 1)
    await store.delete_messages("s", status=ACTIVE)
    await store.delete_messages("t", status=ARCHIVED)
    await store.delete_messages("u")
    assert said(await store.get_messages("s", status=None)) == ["one"]
    assert said(await store.get_messages("t", status=None)) == ["two", "three", "four"]
    assert await store.get_messages("u", status=None) == []
    await store.delete_messages("nothing")


async def test_the_oldest_are_deleted_or_archived(store: AsyncDBChatStore) -> None:
    await store.add_messages("s", talk())
    assert said(await store.archive_oldest_messages("s", 1)) == ["one"]
    assert said(await store.delete_oldest_messages("s", 1)) == ["two"]
    assert said(await store.archive_oldest_messages("s", 9)) == ["three", "four"]
    assert await store.get_messages("s") == []
    assert await store.archive_oldest_messages("s", 1) == []
    assert await store.delete_oldest_messages("s", 1) == []
    assert said(await store.get_messages("s", status=ARCHIVED)) == ["one", "three", "four"]
    assert await store.count_messages("s", status=ARCHIVED) == 3
    assert await store.count_messages("s", status=None) == 3


async def test_the_oldest_are_archived_one_after_another_by_who_has_read_them(
    store: AsyncDBChatStore,
) -> None:
    await store.add_messages("s", talk())
    await store.get_messages("s")
    assert said(await store.archive_oldest_messages("s", 1)) == ["one"]
    assert said(await store.archive_oldest_messages("s", 2)) == ["two", "three"]
    await store.add_message("s", user("five"))
    assert said(await store.archive_oldest_messages("s", 2)) == ["four", "five"]


async def test_messages_may_be_added_archived(store: AsyncDBChatStore) -> None:
    await store.add_messages("s", talk()[:2], status=ARCHIVED)
    await store.add_message("s", talk()[2])
    assert said(await store.get_messages("s")) == ["three"]
    assert said(await store.get_messages("s", status=None)) == ["one", "two", "three"]


async def test_pages_are_read(store: AsyncDBChatStore) -> None:
    await store.add_messages("s", [user(str(at)) for at in range(10)])
    assert said(await store.get_messages("s", limit=3)) == ["0", "1", "2"]
    assert said(await store.get_messages("s", limit=3, offset=8)) == ["8", "9"]
    assert said(await store.get_messages("s", limit=3, offset=20)) == []
    assert said(await store.get_messages("s", limit=0)) == []


async def test_a_number_below_none_is_none(store: AsyncDBChatStore) -> None:
    await store.add_messages("s", talk())
    texts = [one.content for one in await store.get_messages("s", limit=2, offset=-1)]
    assert texts == ["one", "two"]
    assert len(await store.get_messages("s", limit=-1)) == 4


async def test_the_keys_are_those_with_messages(store: AsyncDBChatStore) -> None:
    assert await store.get_keys() == []
    for key in ("a", "b", "c"):
        await store.add_messages(key, talk())
    await store.archive_oldest_messages("b", 4)
    await store.delete_messages("c")
    assert sorted(await store.get_keys()) == ["a", "b"]


# where the stock store fails


async def test_an_empty_batch_is_none(local: Memory) -> None:
    store = DeLLMChatStore(local)
    await store.add_messages("s", [])
    assert await store.get_messages("s") == []


async def test_twenty_first_messages_at_once_are_all_kept_in_their_order(memory: Memory) -> None:
    store = DeLLMChatStore(memory)
    asked = [user(str(at)) for at in range(20)]
    await asyncio.gather(*(store.add_message("s", one) for one in asked))
    assert await store.get_messages("s") == asked


async def test_a_list_that_cannot_be_set_leaves_what_was_there(
    local: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DeLLMChatStore(local)
    await store.add_messages("s", talk())
    from dellm.settling import Settling

    def fail(*_: object) -> None:
        raise RuntimeError("broken off")

    with monkeypatch.context() as patched:
        patched.setattr(Settling, "settle", fail)
        with pytest.raises(RuntimeError, match="broken off"):
            await store.set_messages("s", [user("new")])
    assert await store.get_messages("s") == list(TALK)


async def test_what_is_given_and_what_is_kept_are_never_one_object(local: Memory) -> None:
    store = DeLLMChatStore(local)
    mine = zoo()
    await store.add_messages("s", mine)
    mine[0].blocks.clear()
    found = await store.get_messages("s")
    found[1].blocks.clear()
    found[4].additional_kwargs["usage"]["tokens"] = 7
    assert await store.get_messages("s") == list(ZOO)


# what a delete is


async def test_a_delete_hides_and_a_forget_erases(memory: Memory) -> None:
    store = DeLLMChatStore(memory)
    await store.add_messages("s", [user("My word is Heliotrope"), reply("Heliotrope, noted")])
    await store.delete_messages("s")
    assert await store.get_messages("s", status=None) == []
    assert list(memory.context("word Heliotrope", threshold=-1.0)) == []
    assert not memory.scan("Heliotrope", files=False).clean
    memory.forget("My word is Heliotrope")
    memory.scrub()
    assert memory.scan("Heliotrope").clean


async def test_a_delete_erases_with_what_was_made_from_it_where_that_is_wanted(
    memory: Memory,
) -> None:
    store = DeLLMChatStore(memory, deletes_forget=True)
    await store.add_messages(
        "s", [user("My word is Heliotrope"), reply("Heliotrope, noted"), user("Hello")]
    )
    await store.add_messages("t", [user("Rex"), reply("Rex it is"), user("Hi")])
    assert said([await store.delete_message("s", 1) or user("")]) == ["My word is Heliotrope"]
    assert said(await store.get_messages("s")) == ["Hello"]
    assert said(await store.delete_oldest_messages("t", 1)) == ["Rex"]
    assert said(await store.get_messages("t")) == ["Hi"]
    await store.delete_messages("t")
    await store.delete_messages("t")
    memory.scrub()
    for one in ("Heliotrope", "Rex it is"):
        assert memory.scan(one).clean
    assert [one.text for one in memory.history("t")] == []


async def test_what_is_archived_is_found_by_relevance_and_what_is_deleted_is_not(
    local: Memory,
) -> None:
    store = DeLLMChatStore(local)
    block = DeLLMVectorBlock(local, similarity_threshold=0.0, similarity_top_k=5)
    await store.add_messages("s", [user("the cat Heliotrope"), user("the cat Rex"), user("cat")])
    await store.delete_message("s", 2)
    await store.archive_oldest_messages("s", 1)
    found = await block.aget(await store.get_messages("s"), session_id="s")
    assert found == "<message role='user'>the cat Heliotrope</message>"


async def test_after_a_forget_no_call_is_left_without_its_result(memory: Memory) -> None:
    store = DeLLMChatStore(memory)
    await store.add_messages("s", zoo())
    memory.forget(ids=[4])
    kept = await store.get_messages("s")
    assert [str(one.role.value) for one in kept] == ["system", "user", "assistant", "user"]
    assert not any(isinstance(one, ToolCallBlock) for message in kept for one in message.blocks)
    assert said(await store.archive_oldest_messages("s", 3)) == said(kept[:3])
    assert await store.get_messages("s") == kept[3:]


# what messages were made from


async def test_a_reply_that_nobody_saw_made_depends_on_all_before_it(memory: Memory) -> None:
    store = DeLLMChatStore(memory)
    for one in talk():
        await store.add_message("s", one)
    await store.add_messages("t", talk())
    for thread in ("s", "t"):
        assert memory.dependents([memory.history(thread)[0].id]) == [
            one.id for one in memory.history(thread) if one.text != "three"
        ]
    memory.forget("three")
    assert said(await store.get_messages("s")) == ["one", "two"]


async def test_what_is_copied_from_another_memory_depends_on_what_came_before_it(
    local: Memory,
) -> None:
    old, new = DeLLMChatStore(local.workspace("sam")), DeLLMChatStore(local)
    await old.add_messages("s", talk())
    await new.add_messages("s", await old.get_messages("s"))
    await new.set_messages("t", await old.get_messages("s"))
    for thread in ("s", "t"):
        local.forget(ids=[local.history(thread)[0].id])
        assert [one.text for one in local.history(thread)] == ["three"]
    assert await old.get_messages("s") == list(TALK)


async def test_in_an_engine_a_reply_depends_on_what_its_model_was_shown(memory: Memory) -> None:
    kept = StockMemory.from_defaults(session_id="s", chat_store=DeLLMChatStore(memory))
    engine = SimpleChatEngine.from_defaults(llm=RepeatingChat(), memory=kept)
    for way in WAYS.values():
        await way(engine, f"say {fresh('U')}")
    records = memory.history("s")
    assert len(records) == 8
    for one in records:
        truly = {
            other.id
            for other in records
            if other.id != one.id and set(tokens_in(other.text)[:1]) & set(tokens_in(one.text))
        }
        assert set(memory.context_of(one.id)) == truly
        assert not one.metadata.get("inexact")


async def test_an_agent_may_have_it_for_its_memory(memory: Memory) -> None:
    def look(text: str) -> str:
        """Look something up."""
        return f"{fresh('T')} {repeated(text)}"

    llm = RepeatingCaller()
    kept = StockMemory.from_defaults(session_id="s", chat_store=DeLLMChatStore(memory))
    agent = FunctionAgent(tools=[look], llm=llm)
    for _ in range(2):
        llm.then(["look"])
        await agent.run(f"ask {fresh('U')}", memory=kept)
    records = memory.history("s")
    assert [one.role for one in records] == ["user", "assistant", "tool", "assistant"] * 2
    for one in records:
        below = set(memory.dependents([one.id]))
        own = tokens_in(one.text)[0]
        assert {other.id for other in records if own in tokens_in(str(other.text))} <= below
    memory.forget(ids=[records[0].id])
    left = [one.content for one in await kept.aget_all()]
    assert len(left) == 1
    assert tokens_in(records[0].text)[0] not in str(left)


async def test_what_a_block_gives_to_a_prompt_is_a_source_of_the_reply(memory: Memory) -> None:
    class Facts(RepeatingChat):
        def say(self, messages: Sequence[ChatMessage]) -> ChatMessage:
            return reply(f"<fact>a fact of {repeated(list(messages))}</fact>")

    store, facts = DeLLMChatStore(memory), DeLLMFactBlock(memory, llm=Facts())
    kept = StockMemory.from_defaults(session_id="s", chat_store=store, memory_blocks=[facts])
    early = ChatMessage(f"early {fresh('U')}", role="user")
    await store.add_message("s", early)
    await facts.aput(await store.archive_oldest_messages("s", 1), session_id="s")
    assert len(facts.facts("s")) == 1
    engine = SimpleChatEngine.from_defaults(llm=RepeatingChat(), memory=kept)
    answer = str(await engine.achat(f"say {fresh('U')}"))
    [token] = tokens_in(early.content)
    assert token in answer
    memory.forget(early.content)
    assert facts.facts("s") == []
    assert token not in str(await kept.aget())
    assert len(await kept.aget_all()) == 1
    memory.scrub()
    assert memory.scan(token).clean


# in the stock Memory


def small(store: AsyncDBChatStore, **options: Any) -> StockMemory:
    return StockMemory.from_defaults(
        session_id="s",
        token_limit=10,
        token_flush_size=4,
        chat_history_token_ratio=0.8,
        chat_store=store,
        tokenizer_fn=str.split,
        **options,
    )


async def test_the_queue_archives_as_with_the_stock_store(store: AsyncDBChatStore) -> None:
    kept = small(store)
    expected = small(stock())
    for at in range(6):
        for one in (user(f"a question {at}"), reply(f"an answer {at}")):
            await kept.aput(one)
            await expected.aput(one)
    for status in (ACTIVE, ARCHIVED, None):
        assert await kept.aget_all(status) == await expected.aget_all(status)
    assert await kept.aget() == await expected.aget()
    assert len(await kept.aget_all(ARCHIVED)) > 4


async def test_puts_at_once_archive_no_more_than_they_have_to(memory: Memory) -> None:
    kept = small(DeLLMChatStore(memory))
    asked = [user(f"a question {at}") for at in range(20)]
    await asyncio.gather(*(kept.aput(one) for one in asked))
    assert await kept.aget_all() == asked
    active = await kept.aget_all(ACTIVE)
    assert active == asked[-len(active) :]
    assert 1 <= len(active) <= 2


def test_a_synchronous_memory_works_across_loops(memory: Memory) -> None:
    kept = small(DeLLMChatStore(memory))
    kept.put(user("one"))
    kept.put_messages([reply("two"), user("three")])
    assert said(asyncio.run(kept.aget())) == ["one", "two", "three"]
    asyncio.run(kept.aput(reply("four")))
    assert said(kept.get()) == ["one", "two", "three", "four"]
    kept.set([user("new")])
    assert said(kept.get_all()) == ["new"]
    kept.reset()
    assert kept.get_all() == []


def test_a_history_may_be_given_when_a_memory_is_made(local: Memory) -> None:
    kept = small(DeLLMChatStore(local), chat_history=talk())
    assert kept.get() == list(TALK)


async def test_its_sessions_are_those_of_a_dellm_memory(local: Memory) -> None:
    store = DeLLMChatStore(local)
    await store.add_messages("s", talk())
    other = DeLLMMemory.from_defaults(local, session_id="s", top_k=None)
    assert other.get_all() == list(TALK)
    other.put(user("five"))
    assert said(await store.get_messages("s"))[-1] == "five"


# handles


async def test_copies_are_handles_and_hold_no_message(local: Memory) -> None:
    store = DeLLMChatStore(local, deletes_forget=True)
    await store.add_messages("s", [user("Heliotrope")])
    data = store.model_dump()
    assert "Heliotrope" not in json.dumps(data)
    for one in (
        copy.deepcopy(store),
        copy.copy(store),
        store.model_copy(),
        pickle.loads(pickle.dumps(store)),
        DeLLMChatStore(**data),
        DeLLMChatStore.model_validate_json(store.model_dump_json()),
    ):
        assert isinstance(one, DeLLMChatStore)
        assert one.deletes_forget
        assert one.core.identity == local.identity
        assert said(await one.get_messages("s")) == ["Heliotrope"]
    elsewhere = store.model_copy(update={"workspace": "sam"})
    assert await elsewhere.get_messages("s") == []


async def test_ids_are_told_of_what_it_was_given_or_gave(local: Memory) -> None:
    store, other = DeLLMChatStore(local), DeLLMChatStore(local.workspace("sam"))
    one = user("one")
    assert store.id_of(one) is None
    await store.add_message("s", one)
    assert store.id_of(one) == store.id_of((await store.get_messages("s"))[0]) == 1
    assert other.id_of(one) is None
    with pytest.raises(InvalidInput, match="empty"):
        await store.add_message(" ", one)


async def test_what_is_no_message_is_refused_without_a_word_of_it(local: Memory) -> None:
    store, block = DeLLMChatStore(local), DeLLMVectorBlock(local)
    own: dict[str, Any] = {}
    own["own"] = own
    turned = ChatMessage("my secret", role="user")
    turned.additional_kwargs = own
    for wrong in ("my secret", None, {"role": "user", "content": "my secret"}, turned):
        writes = [
            lambda one=wrong: store.add_message("s", one),
            lambda one=wrong: store.add_messages("s", [user("hello"), one]),
            lambda one=wrong: store.set_messages("s", [user("hello"), one]),
            lambda one=wrong: block.aput([one], session_id="s"),
        ]
        for write in writes:
            with pytest.raises(InvalidInput) as caught:
                await write()
            assert "secret" not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert list(local.export()) == []


async def test_text_streams_and_numbers_of_other_classes_are_kept_as_what_they_say(
    local: Memory,
) -> None:
    store = DeLLMChatStore(local)
    said = {"text": io.StringIO("abc"), "count": np.int64(3), "share": np.float32(0.5)}
    await store.add_message("s", ChatMessage("hello", role="user", additional_kwargs=said))
    [found] = await store.get_messages("s")
    assert found.additional_kwargs == {"text": "abc", "count": 3, "share": 0.5}


# lines


async def test_calls_are_made_in_order_and_their_errors_reach_their_callers() -> None:
    line, made = Line(), []

    def work(at: int) -> int:
        made.append(at)
        if at == 3:
            raise ValueError("three")
        return at

    found = await asyncio.gather(
        *(line.call(lambda at=at: work(at)) for at in range(30)),  # type: ignore[misc] # bound now
        return_exceptions=True,
    )
    assert made == list(range(30))
    assert [one for one in found if not isinstance(one, ValueError)] == [
        at for at in range(30) if at != 3
    ]
    assert str(found[3]) == "three"


async def test_a_call_that_is_given_up_while_it_waits_is_not_made_and_keeps_nobody_waiting() -> (
    None
):
    line, made = Line(), []
    begun, go = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        go.wait(30)
        made.append("first")

    calls = [asyncio.create_task(line.call(first))]
    await asyncio.to_thread(begun.wait, 30)
    calls += [
        asyncio.create_task(line.call(lambda name=name: made.append(name)))  # type: ignore[misc] # bound now
        for name in ("second", "third")
    ]
    await asyncio.sleep(0)
    calls[1].cancel()
    await asyncio.gather(calls[1], return_exceptions=True)
    go.set()
    await asyncio.gather(calls[0], calls[2])
    assert made == ["first", "third"]
    assert calls[1].cancelled()
