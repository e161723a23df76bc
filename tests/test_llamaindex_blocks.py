"""Memory blocks in the stock Memory: what they make goes with what it was made from."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.memory import Memory as StockMemory
from llama_index.core.memory.memory import InsertMethod
from llama_index.core.postprocessor import SimilarityPostprocessor

from dellm import InvalidInput, Memory
from dellm_llamaindex.blocks import DeLLMBlock
from dellm_llamaindex.fact_block import DeLLMFactBlock
from dellm_llamaindex.messages import message_of
from dellm_llamaindex.summary_block import DeLLMSummaryBlock
from dellm_llamaindex.vector_block import DeLLMVectorBlock

Opened = Callable[..., Memory]


class Told(CustomLLM):
    """Says what it was told to say; keeps what it was shown."""

    _answers: list[str] = PrivateAttr(default_factory=list)
    _prompts: list[str] = PrivateAttr(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True)

    @property
    def prompts(self) -> list[str]:
        return self._prompts

    def then(self, *answers: str) -> None:
        self._answers += answers

    def say(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        self._prompts.append("\n".join(str(one) for one in messages))
        if not self._answers:
            raise RuntimeError("the model is not there")
        return ChatResponse(message=ChatMessage(self._answers.pop(0), role="assistant"))

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return self.say(messages)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return self.say(messages)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=self.say([ChatMessage(prompt)]).message.content or "")

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **_: Any
    ) -> CompletionResponseGen:
        return (one for one in [self.complete(prompt)])


def facts(*said: str) -> str:
    return "<facts>" + "".join(f"<fact>{one}</fact>" for one in said) + "</facts>"


def user(text: str) -> ChatMessage:
    return ChatMessage(text, role="user")


def reply(text: str) -> ChatMessage:
    return ChatMessage(text, role="assistant")


@pytest.fixture
def llm() -> Told:
    return Told()


@pytest.fixture
def local(sqlite_url: str, opened: Opened) -> Memory:
    return opened(sqlite_url).workspace("alex")


def texts(memory: Memory, thread: str = "s") -> list[str]:
    return [one.text for one in memory.history(thread) if one.kind in ("message", "tool")]


def id_of(memory: Memory, text: str, thread: str = "s") -> int:
    [found] = [one.id for one in memory.history(thread) if one.text == text]
    return found


def stock(*blocks: DeLLMBlock, session: str = "s", **options: Any) -> StockMemory:
    """Return a stock memory that flushes all but the last message or two."""
    return StockMemory.from_defaults(
        session_id=session,
        token_limit=40,
        token_flush_size=8,
        chat_history_token_ratio=0.4,
        memory_blocks=list(blocks),
        tokenizer_fn=str.split,
        **options,
    )


TURNS = [
    (user("My cat is called Heliotrope"), reply("What a fine name for her")),
    (user("I work as a baker in Ghent"), reply("Bread is a noble calling indeed")),
    (user("Tell me about the weather today"), reply("It is raining cats and dogs")),
    (user("And what about tomorrow then"), reply("Tomorrow will be a bit drier")),
]


async def talk(memory: StockMemory, turns: Sequence[tuple[ChatMessage, ChatMessage]]) -> None:
    for turn in turns:
        for one in turn:
            await memory.aput(copy.deepcopy(one))


# facts


async def test_each_fact_is_made_from_its_batch_and_the_facts_that_were_known(
    memory: Memory, llm: Told
) -> None:
    block = DeLLMFactBlock(memory, llm=llm)
    llm.then(facts("A", "B"), facts("C", "A"))
    await block.aput([user("one"), reply("two")], session_id="s")
    await block.aput([user("three")], session_id="s")
    assert block.facts("s") == ["A", "B", "C"]
    assert await block.aget(session_id="s") == "<fact>A</fact>\n<fact>B</fact>\n<fact>C</fact>"
    ids = {one.text: one.id for one in memory.history("s")}
    assert memory.context_of(ids["A"]) == [ids["one"], ids["two"]]
    assert memory.context_of(ids["C"]) == [ids["three"], ids["A"], ids["B"]]
    assert {one.kind for one in memory.history("s") if one.text in "ABC"} == {"fact"}
    assert "<fact>A</fact>" in llm.prompts[1]


async def test_a_forgotten_message_takes_the_facts_it_was_looked_at_for(
    memory: Memory, llm: Told
) -> None:
    block = DeLLMFactBlock(memory, llm=llm)
    llm.then(facts("Their cat is Heliotrope"), facts("They bake"), facts("They like rain"))
    await block.aput([user("My cat is called Heliotrope")], session_id="s")
    await block.aput([user("I bake")], session_id="t")
    await block.aput([user("I like rain")], session_id="u")
    memory.forget("My cat is called Heliotrope")
    assert block.facts("s") == []
    assert await block.aget(session_id="s") == ""
    assert (block.facts("t"), block.facts("u")) == (["They bake"], ["They like rain"])
    memory.scrub()
    assert memory.scan("Heliotrope").clean


async def test_more_facts_than_may_be_are_condensed_and_keep_their_sources(
    memory: Memory, llm: Told
) -> None:
    block = DeLLMFactBlock(memory, llm=llm, max_facts=2)
    llm.then(facts("A", "B"), facts("C"), facts("A", "B and C"))
    await block.aput([user("one")], session_id="s")
    await block.aput([user("two")], session_id="s")
    assert block.facts("s") == ["A", "B and C"]
    assert memory.context_of(id_of(memory, "A")) == [id_of(memory, "one")]
    memory.forget("two")
    assert block.facts("s") == ["A"]
    memory.forget("one")
    assert block.facts("s") == []
    assert memory.verify().ok


async def test_facts_that_cannot_be_condensed_stay(local: Memory, llm: Told) -> None:
    block = DeLLMFactBlock(local, llm=llm, max_facts=1)
    llm.then(facts("A", "B"), "no list at all")
    await block.aput([user("one")], session_id="s")
    assert block.facts("s") == ["A", "B"]


async def test_a_fact_of_what_was_forgotten_while_the_model_thought_is_not_kept(
    memory: Memory, llm: Told
) -> None:
    class Slow(Told):
        @llm_chat_callback()
        async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
            await asyncio.to_thread(memory.forget, "My PIN is 1234")
            return self.say(messages)

    slow = Slow()
    slow.then(facts("Their PIN is 1234"))
    block = DeLLMFactBlock(memory, llm=slow)
    await block.aput([user("My PIN is 1234"), user("Hello")], session_id="s")
    assert block.facts("s") == []
    assert memory.scan("1234", files=False).clean


@pytest.mark.parametrize("kind", [DeLLMFactBlock, DeLLMSummaryBlock])
async def test_a_model_that_fails_loses_nothing(
    kind: type[DeLLMFactBlock | DeLLMSummaryBlock], memory: Memory, llm: Told
) -> None:
    block = kind(memory, llm=llm)
    for said in ("My cat is called Heliotrope", "I bake"):
        with pytest.raises(RuntimeError, match="not there"):
            await block.aput([user(said)], session_id="s")
    assert texts(memory) == ["My cat is called Heliotrope", "I bake"]
    assert await block.aget(session_id="s") == ""
    memory.forget("My cat is called Heliotrope")
    llm.then(facts("a baker from Ghent"), facts("old"))
    await block.aput([user("I live in Ghent")], session_id="s")
    assert "I bake" in llm.prompts[-1]
    assert "I live in Ghent" in llm.prompts[-1]
    assert "Heliotrope" not in llm.prompts[-1]
    [made] = [one for one in memory.history("s") if one.kind == block.kind]
    assert memory.context_of(made.id) == [id_of(memory, "I bake"), id_of(memory, "I live in Ghent")]
    await block.aput([user("I am old")], session_id="s")
    assert "I bake" not in llm.prompts[-1].replace(made.text, "")
    assert memory.verify().ok


async def test_the_prompts_may_be_given_as_texts(local: Memory, llm: Told) -> None:
    block = DeLLMFactBlock(
        local,
        llm=llm,
        fact_extraction_prompt_template="Known: {existing_facts}",
        fact_condense_prompt_template="At most {{ max_facts }}: {{ existing_facts }}",
        max_facts=1,
    )
    llm.then(facts("A", "B"), facts("A and B"))
    await block.aput([user("one")], session_id="s")
    assert "Known: " in llm.prompts[0]
    assert "At most 1: <fact>A</fact>" in llm.prompts[1]
    assert block.facts("s") == ["A and B"]


# summaries


class Counting(Told):
    """Takes its time, and says how many prompts it has seen."""

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        await asyncio.sleep(0.02)
        self.then(facts(f"fact {len(self.prompts)}"))
        return self.say(messages)


@pytest.mark.parametrize("kind", [DeLLMFactBlock, DeLLMSummaryBlock])
async def test_batches_that_are_given_at_once_are_taken_in_one_after_the_other(
    kind: type[DeLLMFactBlock | DeLLMSummaryBlock], memory: Memory
) -> None:
    slow = Counting()
    block = kind(memory, llm=slow)
    given = [asyncio.create_task(block.aput([user(f"No {at}")], session_id="s")) for at in range(6)]
    await asyncio.sleep(0.03)
    given[3].cancel()  # its message is not taken in, or waits
    await asyncio.gather(*given, return_exceptions=True)
    elsewhere = [
        asyncio.to_thread(asyncio.run, block.aput([user(one)], session_id="s")) for one in "xy"
    ]
    await asyncio.gather(*elsewhere)
    last = (await asyncio.to_thread(block._shelf("s").all))[-1].record
    for said in ("No 0", "No 5", "x", "y"):
        assert last.id in memory.dependents([id_of(memory, said)])
    assert f"fact {len(slow.prompts) - 2}" in slow.prompts[-1]


@pytest.mark.parametrize("kind", [DeLLMFactBlock, DeLLMSummaryBlock])
async def test_what_else_was_said_is_taken_in_later_where_something_is_forgotten_meanwhile(
    kind: type[DeLLMFactBlock | DeLLMSummaryBlock], memory: Memory
) -> None:
    class Slow(Told):
        @llm_chat_callback()
        async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
            if not self.prompts:
                await asyncio.to_thread(memory.forget, "My PIN is 1234")
            return self.say(messages)

    slow = Slow()
    slow.then(facts("a baker with the PIN 1234"), facts("a baker"))
    block = kind(memory, llm=slow)
    await block.aput([user("My PIN is 1234"), user("I bake")], session_id="s")
    assert await block.aget(session_id="s") == ""
    await block.aput([user("Hello")], session_id="s")
    assert "I bake" in slow.prompts[-1]
    assert "1234" not in slow.prompts[-1]
    assert "a baker" in await block.aget(session_id="s")
    assert memory.scan("1234", files=False).clean


async def test_a_summary_is_made_from_all_that_it_sums_up(memory: Memory, llm: Told) -> None:
    block = DeLLMSummaryBlock(memory, llm=llm)
    llm.then("first", "second")
    await block.aput([user("one"), reply("two")], session_id="s")
    before = id_of(memory, "first")
    await block.aput([user("three")], session_id="s")
    assert block.summary("s") == await block.aget(session_id="s") == "second"
    assert "first" in llm.prompts[1]
    assert "two" not in llm.prompts[1]
    ids = {one.text: one.id for one in memory.history("s")}
    assert memory.context_of(ids["second"]) == [ids["one"], ids["two"], before, ids["three"]]
    assert memory.scan("first", files=False).clean


async def test_a_forgotten_message_makes_the_summary_anew_from_the_others(
    memory: Memory, llm: Told
) -> None:
    block = DeLLMSummaryBlock(memory, llm=llm)
    llm.then("a cat called Heliotrope", "a baker with Heliotrope", "a baker")
    await block.aput([user("My cat is called Heliotrope")], session_id="s")
    await block.aput([user("I bake"), user("I live in Ghent")], session_id="s")
    receipt = memory.forget("My cat is called Heliotrope")
    assert receipt.rebuilt
    assert block.summary("s") == await block.aget(session_id="s") == "a baker"
    assert "I bake" in llm.prompts[2]
    assert "I live in Ghent" in llm.prompts[2]
    assert "Heliotrope" not in llm.prompts[2]
    memory.scrub()
    assert memory.scan("Heliotrope").clean
    llm.then("a baker in Ghent")
    await block.aput([user("Hello")], session_id="s")
    assert block.summary("s") == "a baker in Ghent"
    memory.forget(ids=[id_of(memory, "I live in Ghent")])
    assert block.summary("s") == ""


async def test_a_summary_that_cannot_be_made_anew_is_erased(memory: Memory, llm: Told) -> None:
    block = DeLLMSummaryBlock(memory, llm=llm)
    llm.then("Heliotrope", "says Heliotrope again")
    await block.aput([user("My cat is called Heliotrope"), user("Hello")], session_id="s")
    memory.forget("Heliotrope")
    assert block.summary("s") == ""
    assert texts(memory) == ["Hello"]
    assert memory.scan("Heliotrope", files=False).clean


async def test_a_summary_is_erased_where_nobody_can_make_it_anew(
    sqlite_url: str, opened: Opened, llm: Told
) -> None:
    first = opened(sqlite_url)
    block = DeLLMSummaryBlock(first, llm=llm)
    llm.then("about a cat")
    await block.aput([user("My cat"), user("Hello")], session_id="s")
    first.close()
    other = opened(sqlite_url)
    other.forget("My cat")
    assert [one.text for one in other.history("s")] == ["Hello"]


async def test_a_long_conversation_is_summed_up_anew_in_portions(
    local: Memory, llm: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dellm_llamaindex.summary_block.AT_ONCE", 10)
    block = DeLLMSummaryBlock(local, llm=llm)
    llm.then("all", "first half", "both halves")
    await block.aput([user("aaaaaaaa"), user("bbbbbbbb"), user("cccccccc")], session_id="s")
    local.forget("bbbbbbbb")
    assert block.summary("s") == "both halves"
    assert "first half" in llm.prompts[2]


def test_a_prompt_without_its_places_is_refused(local: Memory, llm: Told) -> None:
    with pytest.raises(InvalidInput, match=r"\{summary\}"):
        DeLLMSummaryBlock(local, llm=llm, prompt="Sum up {messages}")


# what is found again


async def test_what_was_said_in_one_session_is_not_found_in_another(memory: Memory) -> None:
    block = DeLLMVectorBlock(memory, similarity_threshold=0.0, similarity_top_k=5)
    await block.aput([user("The secret of Sam is heliotrope")], session_id="sam")
    await block.aput([user("The secret of Kim is turmeric")], session_id="kim")
    for _ in range(2):  # the stock block kept the filter of its first session
        for name, own, other in (
            ("sam", "heliotrope", "turmeric"),
            ("kim", "turmeric", "heliotrope"),
        ):
            found = await block.aget([user("What is the secret?")], session_id=name)
            assert own in found
            assert other not in found
    everywhere = await block.aget([user("What is the secret?")])
    assert "heliotrope" in everywhere
    assert "turmeric" in everywhere


async def test_what_was_forgotten_is_not_found(memory: Memory) -> None:
    block = DeLLMVectorBlock(memory, similarity_threshold=0.0)
    await block.aput([user("My cat is called Heliotrope"), user("My dog is Rex")], session_id="s")
    asked = [user("What is my cat called, and my dog?")]
    assert "Heliotrope" in await block.aget(asked, session_id="s")
    memory.forget("My cat is called Heliotrope")
    assert await block.aget(asked, session_id="s") == "<message role='user'>My dog is Rex</message>"


async def test_what_stands_in_the_prompt_is_not_found_again(local: Memory) -> None:
    block = DeLLMVectorBlock(local, similarity_threshold=0.0, similarity_top_k=3)
    said = [user("My cat is called Heliotrope"), reply("A fine name for a cat")]
    await block.aput(said, session_id="s")
    found = await block.aget([said[1], user("What is my cat called?")], session_id="s")
    assert found == "<message role='user'>My cat is called Heliotrope</message>"


async def test_facts_and_summaries_do_not_take_the_place_of_messages(
    local: Memory, llm: Told
) -> None:
    made = DeLLMFactBlock(local, llm=llm)
    llm.then(facts(*(f"the cat is called Heliotrope {at}" for at in range(30))))
    await made.aput([user("the cat is called Heliotrope")], session_id="s")
    block = DeLLMVectorBlock(local, similarity_threshold=0.0)
    found = await block.aget([user("the cat Heliotrope?")], session_id="s")
    assert found == "<message role='user'>the cat is called Heliotrope</message>"


async def test_the_options_of_the_stock_block_work(local: Memory) -> None:
    block = DeLLMVectorBlock(
        local,
        similarity_threshold=0.0,
        format_template="Earlier: {text}",
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.5)],
    )
    await block.aput([user("the cat is called Heliotrope"), user("dogs bark")], session_id="s")
    found = await block.aget([user("the cat is called")], session_id="s")
    assert found == "Earlier: <message role='user'>the cat is called Heliotrope</message>"
    assert await block.aget([], session_id="s") == ""
    assert await block.aget([user("  ")], session_id="s") == ""
    by_words = DeLLMVectorBlock(local, by="keyword", similarity_top_k=1)
    assert "dogs" in await by_words.aget([user("dogs")], session_id="s")


# messages


async def test_the_messages_and_options_of_the_caller_are_not_changed(
    local: Memory, llm: Told
) -> None:
    blocks = [DeLLMVectorBlock(local), DeLLMFactBlock(local, llm=llm)]
    llm.then(facts("A"))
    said = [
        user("one"),
        ChatMessage("two", role="assistant", additional_kwargs={"usage": {"n": 1}}),
    ]
    before = copy.deepcopy(said)
    for one in blocks:
        await one.aput(said, session_id="s")
        await one.aget(said, session_id="s")
    assert said == before
    assert [message_of(one) for one in local.history("s")[:2]] == before


async def test_blocks_that_are_given_the_same_messages_store_each_once(
    memory: Memory, llm: Told
) -> None:
    llm.then(facts("A"), "summary")
    blocks = [
        DeLLMFactBlock(memory, llm=llm),
        DeLLMVectorBlock(memory),
        DeLLMSummaryBlock(memory, llm=llm),
    ]
    said = [user("one"), reply("two"), reply("two")]
    await asyncio.gather(*(one.aput(said, session_id="s") for one in blocks))
    assert texts(memory) == ["one", "two", "two"]


async def test_a_reply_given_twice_depends_on_what_came_before_each_time(local: Memory) -> None:
    block = DeLLMVectorBlock(local)
    await block.aput([user("one"), reply("yes")], session_id="s")
    await block.aput([user("two"), reply("yes"), user("one")], session_id="s")
    assert texts(local) == ["one", "yes", "two", "yes"]
    local.forget("two")
    assert texts(local) == ["one", "yes"]
    local.forget("one")
    assert texts(local) == []


async def test_what_was_forgotten_does_not_come_back_when_it_is_put_again(
    memory: Memory, llm: Told
) -> None:
    block = DeLLMFactBlock(memory, llm=llm)
    llm.then(facts("a cat called Heliotrope"), facts("a baker"))
    said = [user("My cat is called Heliotrope"), reply("Heliotrope, how fine")]
    await block.aput(copy.deepcopy(said), session_id="s")
    memory.forget("My cat is called Heliotrope")
    await block.aput([*copy.deepcopy(said), user("I bake")], session_id="s")
    assert "Heliotrope" not in llm.prompts[1]
    assert (texts(memory), block.facts("s")) == (["I bake"], ["a baker"])
    assert memory.scan("Heliotrope", files=False).clean


async def test_what_is_put_without_a_session_is_in_one_of_its_own(local: Memory, llm: Told) -> None:
    block = DeLLMFactBlock(local, llm=llm)
    llm.then(facts("A"))
    await block.aput([user("one")])
    assert block.facts() == ["A"]
    assert await block.aget() == "<fact>A</fact>"
    block.clear()
    assert block.facts() == []
    assert texts(local, "default") == ["one"]


async def test_a_block_that_does_not_accept_what_is_flushed_takes_what_it_is_given(
    local: Memory,
) -> None:
    block = DeLLMVectorBlock(local, accept_short_term_memory=False)
    await block.aput([user("one")], from_short_term_memory=True, session_id="s")
    await block.aput([], session_id="s")
    assert texts(local) == []
    await block.aput([user("one")], session_id="s")
    assert texts(local) == ["one"]


# in the stock Memory


async def test_in_the_stock_memory_a_forget_leaves_nothing_in_any_block(
    memory: Memory, llm: Told
) -> None:
    blocks = [
        DeLLMFactBlock(memory, llm=llm),
        DeLLMSummaryBlock(memory, llm=llm),
        DeLLMVectorBlock(memory, similarity_threshold=0.0, similarity_top_k=5),
    ]

    class Repeats(Told):
        def say(self, messages: Sequence[ChatMessage]) -> ChatResponse:
            shown = "\n".join(str(one) for one in messages)
            found = [one for one in ("Heliotrope", "baker", "raining") if one in shown]
            said = ", ".join(found)
            return ChatResponse(message=ChatMessage(facts(*found) or said, role="assistant"))

    for one in blocks[:2]:
        one.llm = Repeats()
    kept = stock(*blocks)
    await talk(kept, TURNS)
    shown = str(await kept.aget(input="What do you know of my cat Heliotrope and of the baker?"))
    assert shown.count("Heliotrope") >= 3
    memory.forget("My cat is called Heliotrope")
    for block in blocks:
        said = await block.aget([user("my cat is called? the baker")], session_id="s")
        assert "Heliotrope" not in said
    assert "baker" in blocks[1].summary("s")
    memory.scrub()
    assert memory.scan("Heliotrope").clean
    assert memory.verify().ok
    assert "Heliotrope" not in str(await kept.aget(input="What of my cat?"))


@pytest.mark.parametrize("method", list(InsertMethod))
def test_a_synchronous_memory_has_its_blocks(
    method: InsertMethod, local: Memory, llm: Told
) -> None:
    llm.then(facts("a cat called Heliotrope"), *([facts()] * 9))
    kept = stock(DeLLMFactBlock(local, llm=llm), insert_method=method)
    for turn in TURNS:
        for one in turn:
            kept.put(copy.deepcopy(one))
    shown = kept.get()
    assert sum("a cat called Heliotrope" in str(one.blocks) for one in shown) == 1
    assert texts(local)[:2] == [TURNS[0][0].content, TURNS[0][1].content]


# handles


@pytest.mark.parametrize("kind", [DeLLMFactBlock, DeLLMSummaryBlock, DeLLMVectorBlock])
async def test_copies_of_a_block_share_its_memory_and_hold_no_content(
    kind: type[DeLLMBlock], local: Memory, llm: Told
) -> None:
    options: dict[str, Any] = {} if kind is DeLLMVectorBlock else {"llm": llm}
    block = kind(local, name="Mine", **options)
    llm.then(facts("Heliotrope"))
    await block.aput([user("My cat is called Heliotrope")], session_id="s")
    copies = [copy.deepcopy(block), block.model_copy(), copy.copy(block)]
    said = block.model_dump(include={"url", "workspace", "opened", "name"})
    copies.append(kind(**said, **options))
    if kind is DeLLMVectorBlock:
        copies.append(pickle.loads(pickle.dumps(block)))
    for one in copies:
        assert one.core.identity == local.identity
        assert (one.core.id, one.name) == ("alex", "Mine")
        assert await one.aget([user("cat")], session_id="s") == await block.aget(
            [user("cat")], session_id="s"
        )
    assert "Heliotrope" not in repr(block.model_dump(exclude={"llm"}))


async def test_messages_that_have_no_json_form_are_taken_in(local: Memory) -> None:
    class Odd:
        pass

    block = DeLLMVectorBlock(local)
    odd = ChatMessage("one", role="user", additional_kwargs={"raw": Odd(), "of": {1, 2}})
    await block.aput([odd], session_id="s")
    assert texts(local) == ["one"]


def test_a_block_may_be_given_a_path_and_a_workspace_and_nothing_else(
    sqlite_url: str, local: Memory
) -> None:
    block = DeLLMVectorBlock(sqlite_url, workspace="alex")
    assert block.core.identity == local.identity or block.core.url == local.url
    assert block.core.id == "alex"
    with pytest.raises(InvalidInput, match=r"takes a dellm\.Memory"):
        DeLLMVectorBlock()
    with pytest.raises(InvalidInput, match="neither a memory"):
        DeLLMVectorBlock(7)
