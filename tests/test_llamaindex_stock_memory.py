"""The stock Memory with our chat store and blocks, judged by the oracle: what was made from what.

Models and tools repeat every token that they saw; see test_llamaindex_oracle.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory as StockMemory
from llama_index.core.memory.memory import InsertMethod
from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from llama_models import RepeatingChat, fresh, own_tokens
from llama_talks import AGENTS, ENGINES, WAYS, Kit, engine_turn, run, talk, talk_at_once
from taint import Found, in_files, in_process, in_tables, measured, told

import dellm
from dellm_llamaindex import (
    DeLLMChatStore,
    DeLLMFactBlock,
    DeLLMSummaryBlock,
    DeLLMVectorBlock,
    track,
)

Opened = Callable[..., dellm.Memory]


class Extracting(RepeatingChat):
    """Takes one fact from a prompt, which repeats all that it was shown."""

    def say(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        said = super().say(messages).content
        return ChatMessage(f"<fact>{said}</fact>", role="assistant")


class Talk:
    """Conversations with stock memories over one open memory of ours."""

    def __init__(
        self, url: str, core: dellm.Memory, *, blocks: Sequence[str] = (), **options: Any
    ) -> None:
        self.url, self.core = url, core
        self.blocks, self.options = blocks, {"chat_store": DeLLMChatStore(core), **options}
        self.kit = Kit(self.session, random.Random(5), lambda index: track(index, core))

    def session(self, name: str) -> StockMemory:
        kinds: dict[str, Callable[[], Any]] = {
            "fact": lambda: DeLLMFactBlock(self.core, llm=Extracting()),
            "summary": lambda: DeLLMSummaryBlock(self.core, llm=RepeatingChat()),
            "vector": lambda: DeLLMVectorBlock(self.core, similarity_threshold=0.0),
        }
        return StockMemory.from_defaults(
            session_id=name,
            memory_blocks=[kinds[one]() for one in self.blocks],
            tokenizer_fn=str.split,
            **self.options,
        )

    def complaint(self, found: Found, *, extra: bool = True) -> list[str]:
        missed = [f"MISSED {one}" for one in told(self.core, found.missed)]
        return missed + [f"EXTRA {one}" for one in told(self.core, found.extra) if extra]


@pytest.fixture
def talking(sqlite_url: str, opened: Opened) -> Callable[..., Talk]:
    return lambda **more: Talk(sqlite_url, opened(sqlite_url).workspace("alex"), **more)


@pytest.fixture
def talking_on_both(url: str, opened: Opened) -> Callable[..., Talk]:
    return lambda **more: Talk(url, opened(url).workspace("alex"), **more)


ALL = ("fact", "summary", "vector")
SMALL = {"token_limit": 60, "token_flush_size": 10, "chat_history_token_ratio": 0.5}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_over_the_stock_memory_misses_nothing_and_ties_nothing_too_much(
    engine: str, way: str, talking: Callable[..., Talk]
) -> None:
    talked = talking()
    talk(talked.kit, engine_turn(talked.kit, talked.session("main"), engine, way), 4)
    found = measured(talked.core)
    assert talked.complaint(found) == []
    assert found.true


@pytest.mark.parametrize("agent", ["function_agent", "react_agent", "handoff"])
def test_an_agent_over_the_stock_memory_misses_nothing(
    agent: str, talking: Callable[..., Talk]
) -> None:
    talked = talking()
    talk(talked.kit, AGENTS[agent](talked.kit, talked.session("main"), "memory"), 3)
    found = measured(talked.core)
    assert talked.complaint(found) == []
    assert found.true


@pytest.mark.parametrize("method", list(InsertMethod))
@pytest.mark.parametrize("engine", ENGINES)
def test_with_blocks_nothing_is_missed_or_too_much(
    engine: str, method: InsertMethod, talking: Callable[..., Talk]
) -> None:
    talked = talking(blocks=ALL, insert_method=method, **SMALL)
    talk(talked.kit, engine_turn(talked.kit, talked.session("main"), engine, "achat"), 6)
    assert talked.complaint(measured(talked.core)) == []
    kinds = {one.kind for one in talked.core.history("main")}
    assert {"message", "fact", "summary"} <= kinds


@pytest.mark.parametrize("agent", ["function_agent", "react_agent"])
def test_with_blocks_an_agent_misses_nothing_and_ties_nothing_too_much(
    agent: str, talking: Callable[..., Talk]
) -> None:
    talked = talking(blocks=ALL, **SMALL)
    talk(talked.kit, AGENTS[agent](talked.kit, talked.session("main"), "memory"), 4)
    assert talked.complaint(measured(talked.core)) == []


def test_with_the_stock_store_nothing_of_what_was_flushed_is_missed(
    talking: Callable[..., Talk],
) -> None:
    talked = talking(blocks=ALL, chat_store=SQLAlchemyChatStore("stock"), **SMALL)
    talk(talked.kit, engine_turn(talked.kit, talked.session("main"), "simple", "achat"), 8)
    found = measured(talked.core)
    assert talked.complaint(found, extra=False) == []
    assert len(found.true) > 30


@pytest.mark.parametrize("block", ["fact", "summary"])
def test_the_oracle_sees_what_a_block_would_not_say_that_it_gave(
    block: str, talking: Callable[..., Talk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dellm_llamaindex.blocks.read", lambda *_: None)
    talked = talking(blocks=[block], **SMALL)
    talk(talked.kit, engine_turn(talked.kit, talked.session("main"), "simple", "achat"), 6)
    assert measured(talked.core).missed


@pytest.mark.parametrize("said", [True, False])
def test_what_was_found_again_is_a_source_because_the_block_says_so(
    said: bool, talking: Callable[..., Talk], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not said:
        monkeypatch.setattr("dellm_llamaindex.vector_block.read", lambda *_: None)
    talked = talking(blocks=["vector"])
    early = ChatMessage(f"the cat in her garden {fresh('U')}", role="user")
    store = DeLLMChatStore(talked.core)
    run(store.add_message("main", early, MessageStatus.ARCHIVED))
    turn = engine_turn(talked.kit, talked.session("main"), "simple", "achat")
    run(turn(f"what of the cat in her garden {fresh('U')}"))
    found = measured(talked.core)
    assert len(found.true) == 2
    assert bool(found.missed) is not said


@pytest.mark.parametrize("blocks", [(), ALL])
def test_of_several_turns_at_once_nothing_is_missed(
    blocks: Sequence[str], talking: Callable[..., Talk]
) -> None:
    talked = talking(blocks=blocks, **(SMALL if blocks else {}))
    memory = talked.session("main")
    turns = [engine_turn(talked.kit, memory, "simple", way) for way in WAYS]
    talk_at_once(talked.kit, turns, 3)
    assert talked.complaint(measured(talked.core), extra=False) == []


@pytest.mark.long
def test_after_random_forgets_nothing_is_left_anywhere(
    talking_on_both: Callable[..., Talk],
) -> None:
    talked = talking_on_both(blocks=ALL, **SMALL)
    memory, draw = talked.session("main"), random.Random(11)
    turn = engine_turn(talked.kit, memory, "simple", "achat")
    for _ in range(3):
        talk(talked.kit, turn, 4)
        first = [one for one in talked.core.history("main") if one.role == "user"]
        chosen = draw.choice(first)
        going = {one.id for one in talked.core.export()} & set(talked.core.dependents([chosen.id]))
        tokens = own_tokens([one.text for one in talked.core.export() if one.id in going])
        talked.core.forget(ids=[chosen.id])
        shown = str([run(_everything(memory)), run(memory.aget(input="what was said?"))])
        assert not [one for one in tokens if one in shown]
        talked.core.scrub()
        assert in_tables(talked.url, tokens) == in_files(talked.url, tokens) == []
        models = [talked.kit, *(one.llm for one in memory.memory_blocks if hasattr(one, "llm"))]
        assert in_process("dellm_llamaindex", tokens, spared=models) == []
    assert talked.complaint(measured(talked.core), extra=False) == []
    assert talked.core.verify().ok


async def _everything(memory: StockMemory) -> list[ChatMessage]:
    return await memory.aget_all()
