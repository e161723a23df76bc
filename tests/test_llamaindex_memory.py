"""DeLLMMemory: messages kept exactly, put and read in any way, and really forgotten."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    ChatResponse,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    LLMMetadata,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.schema import ImageDocument, TextNode
from pydantic import AnyUrl, BaseModel, ConfigDict

import dellm
from dellm_llamaindex import DeLLMMemory, exact_json
from dellm_llamaindex.messages import draft_of, message_of, text_of
from dellm_llamaindex.tags import tag_of

Maker = Callable[..., DeLLMMemory]


class Colour(Enum):
    RED = "red"


class Call(BaseModel):
    """As a provider's client keeps a tool call."""

    model_config = ConfigDict(extra="allow")

    id: str
    arguments: str = "{}"


class Own(ChatMessage):
    """A message class of somebody's own."""

    name: str = "?"


@pytest.fixture
def ours(memory: dellm.Memory) -> Maker:
    def make(session: str = "main", **options: Any) -> DeLLMMemory:
        options.setdefault("top_k", None)
        return DeLLMMemory.from_defaults(memory, session, **options)

    return make


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def reply(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def remade(message: ChatMessage) -> ChatMessage:
    """Return a message as a record of it is read."""
    draft = draft_of(message, "main", "f")
    fields = {"role": draft.role, "text": draft.text, "payload": draft.payload}
    return message_of(SimpleNamespace(metadata=draft.metadata or {}, **fields))


# messages as records

CALLED = [ToolCallBlock(tool_call_id="c", tool_name="f", tool_kwargs={"a": [1, {"!": (2, None)}]})]
BLOCKS: list[list[Any]] = [
    [],
    [TextBlock(text="")],
    [TextBlock(text="a"), TextBlock(text="b")],
    [TextBlock(text="so"), *CALLED],
    CALLED,
    [ThinkingBlock(content="hm", num_tokens=2, additional_information={"a": float("inf")})],
    [ImageBlock(image=b"aGVsbG8=", image_mimetype="image/png", detail="low")],
    [ImageBlock(url="https://example.org/a.png"), ImageBlock(path=__file__)],
    [AudioBlock(audio=b"aGVsbG8=", format="wav"), VideoBlock(video=b"aGVsbG8=")],
    [DocumentBlock(data=b"aGVsbG8=", document_mimetype="text/plain", title="t")],
    [CachePoint(cache_control=CacheControl(type="ephemeral"))],
    [CitableBlock(title="t", source="s", content=[TextBlock(text="cited")])],
    [
        CitationBlock(
            cited_content=TextBlock(text="cited"),
            source="s",
            title="t",
            additional_location_info={"page": 3},
        )
    ],
]
KWARGS: list[dict[str, Any]] = [
    {"name": "Ada", "deep": {"a": [1.5, None, True, "\ud800"]}},
    {"tool_calls": [Call(id="c", arguments='{"a": 1}', kind="function")]},
    {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},
    {"of": {1: "a", (1, 2): "b"}, "!": "c"},
    {"some": {1, 2}, "frozen": frozenset({3}), "pair": (1, [2]), "bytes": b"\x00\xff"},
    {"when": datetime(2026, 1, 2, 3, 4, 5, 6, UTC), "day": date(2026, 1, 2)},
    {"id": UUID(int=5), "of": Decimal("1.10"), "at": Path("/tmp/x"), "to": AnyUrl("https://a.b/c")},
    {"colour": Colour.RED, "role": MessageRole.TOOL},
    {"node": TextNode(text="a node", id_="n", metadata={"k": 1})},
]


@pytest.mark.parametrize("role", list(MessageRole))
@pytest.mark.parametrize("blocks", BLOCKS, ids=range(len(BLOCKS)))
def test_a_message_of_any_role_and_blocks_is_read_as_it_was(
    role: MessageRole, blocks: list[Any]
) -> None:
    message = ChatMessage(role=role, blocks=blocks)
    found = remade(message)
    assert found == message
    assert found.model_dump() == message.model_dump()
    assert (type(found), found.role) == (ChatMessage, role)
    assert [type(one) for one in found.blocks] == [type(one) for one in blocks]


@pytest.mark.parametrize("kwargs", KWARGS, ids=range(len(KWARGS)))
def test_what_a_provider_adds_to_a_message_is_read_as_it_was(kwargs: dict[str, Any]) -> None:
    message = ChatMessage(role="assistant", content="so", additional_kwargs=kwargs)
    found = remade(message)
    assert found == message
    pairs = zip(found.additional_kwargs.values(), kwargs.values(), strict=True)
    assert [type(one) for one, _ in pairs] == [type(one) for one in kwargs.values()]


@given(text=st.text(), role=st.sampled_from(MessageRole))
def test_any_text_is_read_as_it_was(text: str, role: MessageRole) -> None:
    message = ChatMessage(role=role, content=text)
    assert remade(message) == message


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.binary() | st.dates() | st.uuids() | st.decimals(allow_nan=False) | st.just(Colour.RED),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner)
    | st.dictionaries(st.integers() | st.tuples(st.text()), inner),
)  # fmt: skip


@settings(max_examples=200)
@given(value=VALUES)
def test_any_value_is_read_as_it_was(value: Any) -> None:
    assert exact_json.load(exact_json.dump(value)) == value


def test_an_image_of_the_old_kind_is_read_as_it_was() -> None:
    image = ImageDocument(image=b"aGVsbG8=")
    message = ChatMessage(role="user", content="see", additional_kwargs={"images": [image]})
    assert remade(message) == message
    assert len(remade(message).blocks) == 2


def test_a_stream_of_bytes_is_kept_as_its_bytes_and_left_where_it_was() -> None:
    stream = BytesIO(b"aGVsbG8=")
    stream.read(2)
    assert exact_json.load(exact_json.dump({"a": stream})) == {"a": b"aGVsbG8="}
    assert stream.tell() == 2


def test_a_message_class_of_ones_own_is_read_as_it_was() -> None:
    message = Own(role="user", content="mine", name="Ada")
    found = remade(message)
    assert found == message
    assert (type(found), text_of(found)) == (Own, "mine")


def test_a_class_that_is_not_loaded_here_comes_back_as_its_fields(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = ChatMessage(role="user", content="a", additional_kwargs={"call": Call(id="c", more=1)})
    drafts = [draft_of(one, "main", "f") for one in (said, Own(role="user", content="mine"))]
    monkeypatch.setattr(f"{__name__}.Call", None)
    monkeypatch.setattr(f"{__name__}.Own", None)
    read = [
        message_of(SimpleNamespace(role=one.role, text=one.text, payload=one.payload, metadata={}))
        for one in drafts
    ]
    assert read[0].additional_kwargs == {"call": {"id": "c", "arguments": "{}", "more": 1}}
    assert read[1] == user("mine")


def test_reading_a_record_imports_nothing_that_it_names() -> None:
    for name in ("antigravity:x", "os:system", "subprocess:Popen", "builtins:dict", "a.b:C"):
        assert exact_json.unplain({"!": name, "a": 1}) == {"a": 1}
    assert "antigravity" not in sys.modules


# putting and reading


def test_every_way_to_put_and_read_is_the_same(ours: Maker) -> None:
    async def work(memory: DeLLMMemory) -> list[list[ChatMessage]]:
        await memory.aput(user("one"))
        await memory.aput_messages([reply("two"), user("three")])
        memory.put(reply("four"))  # from code that a loop runs
        return [await memory.aget(), await memory.aget_all(), memory.get(), memory.get_all()]

    memory = ours()
    expected = [user("one"), reply("two"), user("three"), reply("four")]
    assert asyncio.run(work(memory)) == [expected] * 4
    other = ours("other")
    other.put_messages(expected)
    assert other.get() == expected
    assert asyncio.run(other.aget("x", initial_token_count=3)) == expected


def test_an_empty_batch_changes_nothing(ours: Maker) -> None:
    memory = ours()
    memory.put_messages([])
    asyncio.run(memory.aput_messages([]))
    assert memory.get_all() == []
    assert memory.core.threads() == {}


def test_a_batch_is_stored_whole_or_not_at_all(ours: Maker) -> None:
    memory = ours()
    with pytest.raises(dellm.InvalidInput):
        memory.put_messages([user("one"), "two"])  # type: ignore[list-item] # is what is tried
    assert memory.get_all() == []


def test_twenty_first_puts_at_once_are_all_kept(ours: Maker) -> None:
    threads = [
        threading.Thread(target=ours().put, args=(user(f"message {at}"),)) for at in range(20)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    found = sorted(one.content or "" for one in ours().get_all())
    assert found == sorted(f"message {at}" for at in range(20))


def test_sessions_and_workspaces_are_apart(ours: Maker, memory: dellm.Memory) -> None:
    ours("one").put(user("of one"))
    ours("two").put(user("of two"))
    kim = DeLLMMemory.from_defaults(memory, "one", workspace="kim")
    kim.put(user("of kim"))
    assert ours("one").get_all() == [user("of one")]
    assert ours("two").get_all() == [user("of two")]
    assert kim.get_all() == [user("of kim")]


def test_what_is_given_is_made_anew_each_time_and_known_as_its_record(ours: Maker) -> None:
    memory = ours()
    memory.put(user("one"))
    first, second = memory.get_all()[0], memory.get_all()[0]
    assert first is not second
    assert tag_of(first) == tag_of(second)
    assert "_dellm" not in str(first.model_dump())
    first.blocks.append(TextBlock(text="more"))
    assert memory.get_all() == [user("one")]


def test_a_limit_is_above_zero_and_more_tokens_than_that_are_an_error(ours: Maker) -> None:
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        ours(token_limit=0)
    memory = ours(token_limit=5)
    memory.put(user("one"))
    with pytest.raises(ValueError, match="Initial token count exceeds token limit"):
        memory.get(initial_token_count=6)
    with pytest.raises(ValueError, match="Initial token count exceeds token limit"):
        asyncio.run(memory.aget(initial_token_count=6))


def test_a_model_says_how_much_it_takes(ours: Maker) -> None:
    llm = SimpleNamespace(metadata=LLMMetadata(context_window=1_000))
    assert ours(llm=llm).token_limit == 750
    assert ours(llm=llm, token_limit=10).token_limit == 10
    assert ours().token_limit == 3_000


def test_an_odd_tokenizer_cuts_as_it_counts(ours: Maker) -> None:
    one_token = ours("a", token_limit=1, tokenizer_fn=lambda _: ["all"])
    one_token.put_messages([user(f"message {at}") for at in range(200)])
    assert len(one_token.get()) == 200  # all of it is one token together
    letters = ours("a", token_limit=len("message 198 message 199"), tokenizer_fn=list)
    assert letters.get() == [user("message 198"), user("message 199")]


def test_the_memory_is_true_and_has_no_length(ours: Maker) -> None:
    assert bool(ours())
    assert not hasattr(ours(), "__len__")


# forgetting


class Interrupted(CustomLLM):
    """Answers with what it was told, after something else has happened."""

    meanwhile: Any = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        said = " ".join(one.content or "" for one in messages)
        if self.meanwhile is not None:
            self.meanwhile()
        return ChatResponse(message=reply(f"you said: {said}"))

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise AssertionError(prompt, formatted)

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise AssertionError(prompt, formatted)


def test_what_is_forgotten_while_the_model_answers_is_in_no_reply_that_is_stored(
    ours: Maker,
) -> None:
    memory = ours()
    llm = Interrupted()
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory)
    engine.chat("my zebra lives in the garden")
    llm.meanwhile = lambda: memory.forget("zebra", scrub=False)
    engine.chat("and what of bread")
    assert memory.get_all() == [user("and what of bread")]
    assert not memory.core.scan("zebra", files=False).places


def test_a_forget_takes_the_replies_that_were_made_of_it_and_no_others(ours: Maker) -> None:
    memory = ours(top_k=1, threshold=0.4)
    engine = SimpleChatEngine.from_defaults(llm=Interrupted(), memory=memory)
    for text in ("a zebra in my garden", "bread is baked slowly", "zebra in my garden"):
        engine.chat(text)
    plan = memory.plan("a zebra in my garden")
    memory.forget(plan, scrub=False)
    left = [user("bread is baked slowly"), reply("you said: bread is baked slowly")]
    assert memory.get_all() == [*left, user("zebra in my garden")]


def test_a_forget_is_of_the_whole_workspace_unless_a_session_is_named(ours: Maker) -> None:
    for session in ("one", "two"):
        ours(session).put(user("my zebra"))
    ours("one").forget("zebra", thread="one", scrub=False)
    assert (ours("one").get_all(), ours("two").get_all()) == ([], [user("my zebra")])
    ours("one").put(user("my zebra again"))
    assert len(asyncio.run(ours("one").aplan("zebra"))) == 2
    asyncio.run(ours("one").aforget("zebra", scrub=False))
    assert (ours("one").get_all(), ours("two").get_all()) == ([], [])


TALK = [
    user("look, and tell me"),
    ChatMessage(
        role="assistant",
        blocks=[
            ThinkingBlock(content="hm"),
            ToolCallBlock(tool_call_id="c1", tool_name="look"),
            ToolCallBlock(tool_call_id="c2", tool_name="look"),
        ],
        additional_kwargs={"tool_calls": [{"id": "c1"}, {"id": "c2"}]},
    ),
    ChatMessage(role="tool", content="a cat", additional_kwargs={"tool_call_id": "c1"}),
    ChatMessage(role="tool", content="a dog", additional_kwargs={"tool_call_id": "c2"}),
    user("and now"),
    user("still there?"),
    reply("a cat and a dog"),
]


def erased(memory: DeLLMMemory, *places: int) -> list[ChatMessage]:
    """Return a talk as it is read after a forget of some of its messages, and of nothing else."""
    memory.put_messages([one.model_copy(deep=True) for one in TALK])
    gone = []
    for at in places:
        found = tag_of(memory.get_all()[at])
        assert found is not None
        gone.append(found.record)
    memory.forget(ids=gone, reach=dellm.depth(0), scrub=False)
    return memory.get_all()


def test_a_call_goes_from_its_message_with_its_result(ours: Maker) -> None:
    left = erased(ours(), 2)
    call = TALK[1].model_copy(deep=True)
    del call.blocks[1]
    call.additional_kwargs["tool_calls"] = [{"id": "c2"}]
    assert left == [TALK[0], call, *TALK[3:]]


def test_a_message_of_which_nothing_but_thoughts_is_left_goes(ours: Maker) -> None:
    assert erased(ours(), 2, 3) == [TALK[0], *TALK[4:]]


def test_results_go_with_their_call(ours: Maker) -> None:
    memory = ours()
    left = erased(memory, 1)
    assert left == [TALK[0], *TALK[4:]]
    assert ours(token_limit=8, tokenizer_fn=str.split).get() == TALK[5:]


def test_user_messages_in_a_row_stay_as_they_are(ours: Maker) -> None:
    assert erased(ours(), 6) == TALK[:6]


def test_a_redacted_message_still_says_the_rest_and_answers_its_call(ours: Maker) -> None:
    memory = ours()
    memory.put_messages([one.model_copy(deep=True) for one in TALK])
    memory.forget("dog", mode="redact", scrub=False, reach=dellm.depth(0))
    said = {one.role.value: one for one in memory.get_all()}
    assert said["tool"].additional_kwargs == {"tool_call_id": "c2"}
    assert said["tool"].content == "a [redacted]"


def test_a_message_is_found_by_what_its_calls_and_blocks_say(ours: Maker) -> None:
    memory = ours()
    call = ToolCallBlock(tool_call_id="c", tool_name="f", tool_kwargs={"city": "Zürich"})
    memory.put(ChatMessage(role="assistant", blocks=[call]))
    memory.put(ChatMessage(role="user", content="a", additional_kwargs={"raw": Call(id="Zürich")}))
    memory.put(ChatMessage(role="user", blocks=[ThinkingBlock(content="in Zürich")]))
    assert len(memory.plan("Zürich")) == 3
