"""A message becomes fields of a record and comes back equal, of the same type, and fresh."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import datetime as dt
import hashlib
import json
import logging
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import langchain_core.messages as lc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.message import add_messages
from pydantic import BaseModel

from dellm_langchain.messages import Declared, Fields, fields_of, recipe

STOCK = JsonPlusSerializer()
CALL = {"name": "weather", "args": {"city": "Paris", "days": [1, {"n": None}]}, "id": "c1"}
RAW_CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
USAGE = {
    "input_tokens": 3,
    "output_tokens": 4,
    "total_tokens": 7,
    "input_token_details": {"cache_read": 0},
}


class Keystream:
    """A cipher for the EncryptedSerializer: a keystream of SHA-256, enough to hide text."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "sha", self._mixed(plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "sha"
        return self._mixed(ciphertext)

    @staticmethod
    def _mixed(data: bytes) -> bytes:
        blocks = range(len(data) // 32 + 1)
        stream = b"".join(hashlib.sha256(b"key%d" % n).digest() for n in blocks)
        return bytes(a ^ b for a, b in zip(data, stream, strict=False))


ENCRYPTED = EncryptedSerializer(Keystream())


class Weather(BaseModel):
    """An artifact a tool may return."""

    city: str
    degrees: float


@dataclasses.dataclass
class Spot:
    """Another."""

    x: int
    tags: tuple[str, ...]


class Note(HumanMessage):
    """A message class that is not LangChain's own."""

    mood: str = "fine"


class Cue(ToolMessage):
    """A tool message that is not LangChain's own."""


def of_every_kind() -> dict[str, BaseMessage]:
    unset = AIMessage("in place")
    unset.tool_calls.append({"name": "late", "args": {}, "id": "l", "type": "tool_call"})
    unset.id = "set later"
    return {
        "human": HumanMessage("I live in Paris", id="1"),
        "no id": HumanMessage("x"),
        "empty": HumanMessage("", id=""),
        "named": HumanMessage("x", name="alex", id="1"),
        "extra fields": HumanMessage("x", foo={"a": [1]}, bar="b"),
        "ai": AIMessage("hello", id="lc_run--1"),
        "reply": AIMessage(
            "hello", id="1", usage_metadata=USAGE, response_metadata={"model": "m", "n": [1, 2.5]}
        ),
        "calls": AIMessage("", id="1", tool_calls=[CALL, {**CALL, "id": "c2"}]),
        "raw calls": AIMessage("", additional_kwargs={"tool_calls": [RAW_CALL]}),
        "bad calls": AIMessage(
            "", invalid_tool_calls=[{"name": "w", "args": "{", "id": "c", "error": None}]
        ),
        "blocks": AIMessage(
            [
                {"type": "thinking", "thinking": "hm", "signature": "abc"},
                {"type": "text", "text": "Paris"},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}},
            ],
            id="1",
        ),
        "v1 blocks": AIMessage(content_blocks=[{"type": "text", "text": "a"}]),
        "mixed content": SystemMessage(["a", {"type": "text", "text": "b"}, "c"]),
        "no content": HumanMessage([]),
        "image": HumanMessage([{"type": "image_url", "image_url": {"url": "data:x"}}]),
        "system": SystemMessage("be kind", id="s"),
        "developer": SystemMessage("x", additional_kwargs={"__openai_role__": "developer"}),
        "tool": ToolMessage("22 degrees", tool_call_id="c1", id="t"),
        "tool failed": ToolMessage("boom", tool_call_id="c1", status="error", name="weather"),
        "artifact": ToolMessage("x", tool_call_id="c", artifact={"rows": [1, 2]}),
        "artifact tuple": ToolMessage("x", tool_call_id="c", artifact=(1, ("a", [2]), {3})),
        "artifact bytes": ToolMessage("x", tool_call_id="c", artifact=b"\x00\xff"),
        "artifact model": ToolMessage("x", tool_call_id="c", artifact=Weather(city="P", degrees=1)),
        "artifact dataclass": ToolMessage("x", tool_call_id="c", artifact=[Spot(1, ("a", "b"))]),
        "artifact messages": ToolMessage(
            "x", tool_call_id="c", artifact=[AIMessage("in\ud800", id="i", tool_calls=[CALL])]
        ),
        "dates": AIMessage("x", response_metadata={"at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}),
        "function": FunctionMessage("x", name="f", id="1"),
        "critic": ChatMessage("x", role="critic", id="1"),
        "assistant chat": ChatMessage("x", role="assistant"),
        "remove": RemoveMessage(id="gone"),
        "human chunk": lc.HumanMessageChunk("x", id="1"),
        "system chunk": lc.SystemMessageChunk("x", id="1"),
        "tool chunk": lc.ToolMessageChunk("x", tool_call_id="c"),
        "function chunk": lc.FunctionMessageChunk("x", name="f"),
        "chat chunk": lc.ChatMessageChunk("x", role="r"),
        "ai chunk": AIMessageChunk(
            "x",
            id="1",
            tool_call_chunks=[{"name": "w", "args": '{"a', "id": "c", "index": 0}],
            usage_metadata=USAGE,
        ),
        "last chunk": AIMessageChunk("x", chunk_position="last"),
        "NUL": HumanMessage("a\x00b", id="\x00", name="\x00"),
        "surrogates": HumanMessage("a\ud800b", id="\udfff", name="\udc00"),
        "surrogate calls": AIMessage("", tool_calls=[{**CALL, "args": {"\ud800": "\udfff"}}]),
        "looks like a marker": AIMessage(
            "", tool_calls=[{**CALL, "args": {"\ufdd1dellm:m0": "\ufdd1dellm:m1\ud800"}}]
        ),
        "non-string keys": AIMessage("x", response_metadata={1: "one", None: 2}),
        "in place": unset,
    }


KINDS = of_every_kind()
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


@pytest.fixture(params=KINDS)
def message(request: pytest.FixtureRequest) -> BaseMessage:
    return KINDS[request.param]


def again(message: BaseMessage, serde: Any = STOCK) -> BaseMessage:
    kept = fields_of(message, serde)
    return recipe(*kept[1:5], serde, kept.metadata).make()


def containers(value: Any) -> Iterator[int]:
    """Yield the identity of everything in a message that can be changed in place."""
    if isinstance(value, BaseModel):
        yield id(value)
        if not isinstance(value.__pydantic_fields_set__, Declared):  # nothing can be added to one
            yield id(value.__pydantic_fields_set__)
        for part in (value.__dict__, value.__pydantic_extra__):
            yield from containers(part)
    elif isinstance(value, dict):
        yield id(value)
        for one in value.values():
            yield from containers(one)
    elif isinstance(value, (list, set, tuple)):
        if not isinstance(value, tuple):
            yield id(value)
        for one in value:
            yield from containers(one)


@pytest.mark.parametrize("serde", [STOCK, ENCRYPTED], ids=["stock", "encrypted"])
def test_every_message_comes_back_equal_and_of_its_type(message: BaseMessage, serde: Any) -> None:
    made = again(message, serde)
    assert type(made) is type(message)
    assert made == message
    assert repr(made) == repr(message)
    assert made.model_dump() == message.model_dump()
    assert made.__pydantic_extra__ == message.__pydantic_extra__


def test_what_comes_back_is_what_the_stock_serializer_brings_back_where_it_keeps_it(
    message: BaseMessage,
) -> None:
    stock = STOCK.loads_typed(STOCK.dumps_typed(message)) if writable(message) else None
    if stock == message:
        made = again(message)
        assert made == stock
        assert list(made.__dict__) == list(stock.__dict__)
        assert made.model_fields_set == type(stock).model_fields.keys()


def writable(message: BaseMessage) -> bool:
    try:
        STOCK.dumps_typed(message)
    except TypeError:  # a lone surrogate as a key
        return False
    return True


def test_two_made_messages_share_nothing_that_can_be_changed(message: BaseMessage) -> None:
    kept = fields_of(message, STOCK)
    made = recipe(*kept[1:5], STOCK, kept.metadata)
    first, second = made.make(), made.make()
    assert not set(containers(first)) & set(containers(second))
    assert not set(containers(first)) & set(containers(message))
    first.additional_kwargs["late"] = 1
    first.id = "other"
    first.content = "other"
    assert second == message == made.make()


def test_an_attribute_added_to_one_message_is_no_other_ones(message: BaseMessage) -> None:
    kept = fields_of(message, STOCK)
    made = recipe(*kept[1:5], STOCK, kept.metadata)
    first, second, names = made.make(), made.make(), set(made.make().model_fields_set)
    first.model_copy(update={"mood": "new"})
    with contextlib.suppress(ValueError):  # a class may allow no more attributes
        first.mood = "good"
    for one in (first.model_copy(update={"mood": "new"}), copy.deepcopy(first), copy.copy(first)):
        assert type(one.__pydantic_fields_set__) is set
    assert second.model_fields_set == made.make().model_fields_set == names
    assert not hasattr(second, "mood")
    assert second.model_dump() == made.make().model_dump()


def test_a_made_message_can_be_copied_pickled_and_changed(message: BaseMessage) -> None:
    made = again(message)
    assert copy.copy(made) == copy.deepcopy(made) == made.model_copy() == message
    assert pickle.loads(pickle.dumps(made)) == message
    changed = made.model_copy(update={"id": "new"})
    assert changed.id == "new"
    assert made.id == message.id
    made.brand_new = [1]
    assert made.model_dump()["brand_new"] == [1]
    assert not hasattr(again(message), "brand_new")


@pytest.mark.parametrize(
    "plain",
    [HumanMessage("x" * 50, id="1"), AIMessage("x", id="1"), SystemMessage("x"), HumanMessage("")],
)
def test_a_plain_message_needs_no_payload(plain: BaseMessage) -> None:
    assert fields_of(plain, STOCK).payload is None


def test_the_payload_never_repeats_a_plain_content() -> None:
    for name, message in KINDS.items():
        content = "A secret that is told once."
        if isinstance(message.content, str) and type(message) is not RemoveMessage:
            told = message.model_copy(update={"content": content})
            kept = fields_of(told, STOCK)
            assert kept.text == content, name
            assert b"told once" not in (kept.payload or b""), name


def test_the_columns_say_what_a_reader_expects() -> None:
    said = {name: fields_of(message, STOCK) for name, message in KINDS.items()}
    assert said["human"] == Fields("message", "user", "I live in Paris", "1", None, None)
    assert said["tool"][:4] == ("tool", "tool", "22 degrees", "t")
    assert said["tool"].metadata == {"tool_call_id": "c1"}
    assert said["tool chunk"].metadata == {"tool_call_id": "c"}
    assert said["blocks"].text == "Paris"
    assert said["mixed content"].text == "a\nb\nc"
    assert {said[one].role for one in ("ai", "calls", "ai chunk", "assistant chat")} == {
        "assistant"
    }
    assert {said[one].role for one in ("critic", "human chunk", "no id")} == {"user"}
    assert {said[one].role for one in ("system", "system chunk", "remove")} == {"system"}


def test_the_text_of_blocks_inside_blocks_is_readable() -> None:
    inner = [{"type": "text", "text": "deep"}, {"type": "image", "url": "x"}]
    blocks = ["a", {"type": "tool_result", "tool_use_id": "c", "content": inner}]
    assert fields_of(HumanMessage(blocks), STOCK).text == "a\ndeep"


@pytest.mark.parametrize(
    ("role", "metadata", "made"),
    [
        ("user", None, HumanMessage("[gone]", id="1")),
        ("assistant", None, AIMessage("[gone]", id="1")),
        ("system", None, SystemMessage("[gone]", id="1")),
        ("tool", {"tool_call_id": "c1"}, ToolMessage("[gone]", tool_call_id="c1", id="1")),
        ("tool", None, ToolMessage("[gone]", tool_call_id="", id="1")),
    ],
)
def test_a_redacted_message_is_built_from_its_columns(
    role: str, metadata: dict[str, Any] | None, made: BaseMessage
) -> None:
    assert recipe(role, "[gone]", "1", None, STOCK, metadata).make() == made


def test_the_other_classes_are_kept_as_the_stock_serializer_keeps_them() -> None:
    for message in (Note("hi\x00", mood="sad", id="1"), Cue("r", tool_call_id="c", artifact=[1])):
        made = again(message)
        assert type(made) is type(message)
        assert made == message == STOCK.loads_typed(STOCK.dumps_typed(message))
    assert fields_of(Cue("r", tool_call_id="c"), STOCK)[:2] == ("tool", "tool")
    assert again(Note("a\ud800")).content == "a\ud800"


def test_another_class_warns_as_the_stock_serializer_does(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph.checkpoint.serde import jsonplus

    said = []
    for load in (again, lambda one: STOCK.loads_typed(STOCK.dumps_typed(one))):
        monkeypatch.setattr(jsonplus, "_warned_unregistered_types", set())
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert load(Note("hi")) == Note("hi")
        said.append(caplog.messages)
    assert said[0] == said[1]
    assert "unregistered type" in said[0][0]


def test_a_message_without_some_of_its_fields_is_kept_as_far_as_the_stock_serializer_does() -> None:
    broken = HumanMessage.model_construct(content="x")
    del broken.__dict__["additional_kwargs"]
    assert again(broken).content == "x"


def test_an_id_that_is_no_string_comes_back_as_it_was() -> None:
    message = HumanMessage("x")
    message.__dict__["id"] = 5
    kept = fields_of(message, STOCK)
    assert kept.framework_id is None
    assert again(message).id == 5


def test_an_object_no_serializer_knows_is_refused_as_by_the_stock_one() -> None:
    message = ToolMessage("x", tool_call_id="c", artifact=object())
    with pytest.raises(TypeError):
        STOCK.dumps_typed(message)
    with pytest.raises(TypeError):
        fields_of(message, STOCK)


def test_encryption_hides_everything_but_the_columns() -> None:
    args = {"city": "Neuilly-sur-Seine"}
    message = ToolMessage(
        "x", tool_call_id="c", artifact=[HumanMessage("Neuilly-sur-Seine"), args, Weather(**W)]
    )
    for one in (message, AIMessage("", tool_calls=[{**CALL, "args": args}])):
        assert b"Neuilly" in (fields_of(one, STOCK).payload or b"")
        assert b"Neuilly" not in (fields_of(one, ENCRYPTED).payload or b"")
        assert again(one, ENCRYPTED) == one


W = {"city": "Neuilly-sur-Seine", "degrees": 1}


def test_five_megabytes_are_kept_once() -> None:
    huge = "é" * 2_500_000
    kept = fields_of(AIMessage(huge, id="1", usage_metadata=USAGE), STOCK)
    assert len(kept.payload or b"") < 200
    assert again(HumanMessage(huge)).content == huge
    assert again(ToolMessage("x", tool_call_id="c", artifact=huge)).artifact == huge


def test_made_chunks_can_be_added_up() -> None:
    parts = [AIMessageChunk("Pa", id="1"), AIMessageChunk("ris", id="1", usage_metadata=USAGE)]
    whole = again(parts[0]) + again(parts[1])
    assert whole == parts[0] + parts[1]
    assert whole.content == "Paris"


def test_the_reducer_takes_made_messages() -> None:
    kept = [again(HumanMessage("a", id="1")), again(AIMessage("b", id="2"))]
    assert add_messages(kept, [again(RemoveMessage(id="1"))]) == [AIMessage("b", id="2")]


def test_a_message_validates_in_a_state_of_pydantic() -> None:
    class State(BaseModel):
        messages: list[AnyMessage]

    for name, message in KINDS.items():
        if "chunk" not in name and type(message) is not RemoveMessage:
            assert State(messages=[again(message)]).messages == [message], name


STRICT = """
import json, logging, sys
from test_langchain_messages import STOCK, Note, again, KINDS
logging.disable()
stock = STOCK.loads_typed(STOCK.dumps_typed(Note("hi", mood="sad", id="1")))
print(json.dumps([stock == again(Note("hi", mood="sad", id="1")), type(stock).__name__,
    [name for name, one in KINDS.items() if again(one) != one]]))
"""


def test_strict_mode_blocks_what_the_stock_serializer_blocks_and_nothing_else(
    request: pytest.FixtureRequest,
) -> None:
    env = {"LANGGRAPH_STRICT_MSGPACK": "true", "PYTHONPATH": f"{request.path.parent}:."}
    done = subprocess.run(
        [sys.executable, "-c", STRICT],
        capture_output=True,
        text=True,
        check=True,
        env=env,
        cwd=request.config.rootpath,
    )
    same, name, changed = json.loads(done.stdout)
    assert same
    assert name == "dict"
    assert changed == ["artifact model", "artifact dataclass"]


TEXT = st.text(st.characters(codec=None), max_size=20)
NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.booleans() | st.none()
VALUES = st.recursive(
    TEXT | NUMBERS | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXT, inner, max_size=3)
        | st.tuples(inner, inner)
        | st.frozensets(TEXT, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=3)
CALLS = st.lists(st.fixed_dictionaries({"name": TEXT, "args": OBJECTS, "id": TEXT}), max_size=2)
CONTENTS = TEXT | st.lists(TEXT | OBJECTS, max_size=3)
COMMON = {
    "content": CONTENTS,
    "id": st.none() | TEXT,
    "name": st.none() | TEXT,
    "additional_kwargs": OBJECTS,
    "response_metadata": OBJECTS,
}
MESSAGES = st.one_of(
    st.builds(HumanMessage, **COMMON),
    st.builds(SystemMessage, **COMMON),
    st.builds(AIMessage, **COMMON, tool_calls=CALLS),
    st.builds(AIMessageChunk, **COMMON),
    st.builds(ToolMessage, **COMMON, tool_call_id=TEXT, artifact=VALUES),
    st.builds(ChatMessage, **COMMON, role=TEXT),
    st.builds(FunctionMessage, **{**COMMON, "name": TEXT}),
)


@settings(deadline=None, max_examples=200)
@given(MESSAGES, st.sampled_from([STOCK, ENCRYPTED]))
def test_any_message_comes_back_equal(message: BaseMessage, serde: Any) -> None:
    made = again(message, serde)
    assert type(made) is type(message)
    assert made == message
    assert not set(containers(made)) & set(containers(message))
