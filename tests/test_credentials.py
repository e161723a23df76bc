"""Credentials that come in: recognised before anything is stored, whatever writes; little else is taken for one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dellm import (
    Atom,
    CredentialRefused,
    Draft,
    Foreign,
    InvalidInput,
    Keep,
    Memory,
    Saying,
    contents,
)
from dellm.credentials import MARKER, may_hold, recognise, redacted

Opened = Callable[..., Memory]
PASSWORD = "zanzibar-Tr0ub4dor"
CARD = "4111 1111 1111 1111"
A36, HEX64 = "a1B2" * 9, "0123456789abcdef" * 4
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/A=\nb0=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0"

CREDENTIALS = [
    *(f"gh{kind}_{A36}" for kind in "opusr"),
    f"github_pat_{A36}_{A36}",
    f"glpat-{'a1B2' * 5}",
    "xoxb-1234567890-abcdefABCDEF",
    f"https://hooks.slack.com/services/T0001/B0001/{'x1' * 12}",
    "AKIAIOSFODNN7EXAMPLE",
    f"sk_live_{'a1B2' * 6}",
    f"sk-ant-api03-{A36}",
    f"sk-proj-{A36}_{A36}",
    f"sk-{'a1B2' * 12}",
    f"sk-or-v1-{HEX64}",
    f"AIza{'a1B2-' * 7}",
    f"hf_{A36}",
    f"gsk_{A36}{A36}",
    f"r8_{A36}9",
    f"SG.{'a' * 22}.{'b1' * 21}c",
    f"npm_{A36}",
    f"pypi-AgEIcHlwaS5vcmc{A36}{A36}",
    f"dop_v1_{HEX64}",
    f"dapi{HEX64[:32]}",
    f"shpat_{HEX64[:32]}",
    f"hvs.{A36}",
    f"1234567890:AA{'a1-_b' * 6}abc",
    JWT,
    PEM,
]
SAID = [  # the text, and what of it is to go
    ("my password is hunter2", "hunter2"),
    ('my wifi password at the cabin is "correct horse battery"', "correct horse battery"),
    ("The password for my bank account is Zx9!kk.", "Zx9!kk"),
    ("pwd: s3cr3t", "s3cr3t"),
    ("password=Tr0ub4dor&3", "Tr0ub4dor&3"),
    ('{"user": "bob", "password": "hunter"}', "hunter"),
    ("Our old Netflix passphrase was sunFlower-99, now it is another", "sunFlower-99"),
    ("my api key is abcd1234efgh5678ijkl", "abcd1234efgh5678ijkl"),
    ("client_secret = 'a1b2c3d4e5f6g7h8'", "a1b2c3d4e5f6g7h8"),
    ("postgres://bob:hunter2@db.local:5432/x", "hunter2"),
    ("Authorization: Bearer abcdef0123456789abcdef01", "abcdef0123456789abcdef01"),
    ("my card is 4111 1111 1111 1111", CARD),
    ("pay with 5555-5555-5555-4444, please", "5555-5555-5555-4444"),
    ("visa 4111111111111111 exp 12/27", "4111111111111111"),
    ("amex 3782 822463 10005", "3782 822463 10005"),
    ("credit card:378282246310005", "378282246310005"),
]
NONE = [
    "my password is wrong",
    "the password is not working, and my password is the same as before",
    "the password is case-sensitive",
    "password: required",
    "password: ********",
    f"my password is {MARKER}",
    "is there a way to reset my password?",
    "order 4111111111111111 was shipped",
    "card 4111 1111 1111 1112",
    "id 123e4567-e89b-12d3-a456-426614174000 of the card",
    "call +1 212 867 5309 ext 4111 or +44 20 7946 0958",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "commit 71fb9eb1c0ffee71fb9eb1c0ffee71fb9eb1c0ff",
    "call_AbCdEf0123456789AbCdEf01",
    "run--0f8fad5b-d9cb-469f-a165-70867728950e",
    "resp_68a1b2c3d4e5f60718293a4b5c6d7e8f",
    "access token is required",
    "the secret key to success is persistence-and-hard-work",
    "IBAN DE89 3704 0044 0532 0130 00",
    "https://user@example.com:8080/x?y=z",
    "at 1764541234567890 microseconds; 2026-11-30T23:59:59.123456+00:00",
    "the locker's PIN is 4417, the room is 6011",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "skating-with-sk-team-of-nineteen-people-in-town",
    "task-force-and-risk-assessment-2024-final-report",
]


@pytest.mark.parametrize("value", CREDENTIALS)
def test_a_key_of_a_known_format_is_recognised_as_a_whole(value: str) -> None:
    for before, after in (("", ""), ("use ", " from now on"), ("key=", ";"), ('{"k":"', '"}')):
        text = before + value + after
        assert redacted(text, recognise(text)) == before + MARKER + after
    assert recognise(value[: len(value) // 3]) == []


@pytest.mark.parametrize(("text", "value"), SAID)
def test_what_a_text_calls_a_password_key_or_card_is_recognised(text: str, value: str) -> None:
    assert redacted(text, recognise(text)) == text.replace(value, MARKER)


@pytest.mark.parametrize("text", NONE)
def test_ids_hashes_images_and_talk_of_passwords_are_none(text: str) -> None:
    assert recognise(text) == []
    assert recognise(f"Well: {text}\n{text}.") == []


@settings(max_examples=25)
@given(st.text(max_size=80), st.sampled_from([*CREDENTIALS, "my password is hunter2"]))
def test_the_cheap_question_never_overlooks_what_the_exact_one_finds(
    around: str, value: str
) -> None:
    for text in (around, f"{around} {value} {around}"):
        found = recognise(text)
        assert not found or may_hold(text.encode("utf-8", "surrogatepass"))
        assert recognise(redacted(text, found)) == []
    assert any(f" {value} "[one.start : one.end].strip() for one in recognise(f" {value} "))


def texts_of(path: Path) -> Iterator[str]:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = [raw] if path.suffix == ".json" else raw.splitlines()
    for line in lines:
        yield from contents.strings(json.loads(line))


@pytest.mark.long
def test_conversations_of_public_data_sets_hold_no_false_one(shared: Path) -> None:
    chars, found = 0, []
    for name in ("locomo", "msc", "spc", "tofu", "clinc150", "meme", "gatemem"):
        for path in sorted((shared / "data" / name).glob("*.json*")):
            for text in texts_of(path):
                chars += len(text)
                found += [one.kind for one in recognise(text)]
    assert chars > 5_000_000
    # Real ones: signed addresses of pictures.
    assert set(found) == {"web token"}
    assert len(found) <= 3


# what is done with them, on every way in


def everywhere(memory: Memory) -> list[Any]:
    """Return what can be read, and prove that the password is nowhere."""
    memory.index()
    assert memory.scan(PASSWORD, files=False).clean
    assert memory.verify().ok
    return list(memory.export())


def test_a_credential_is_redacted_before_anything_has_it(memory: Memory) -> None:
    text = f"my password is {PASSWORD}"
    one = memory.remember(
        text,
        payload=text.encode(),
        subject="Sam",
        metadata={"note": text, "password": PASSWORD, "kept": 1, "inner": {"password": PASSWORD}},
        framework_id="f",
        thread="t",
    )
    assert one.text == f"my password is {MARKER}"
    assert one.payload == b"my password is " + b"*" * len(PASSWORD)
    assert (one.metadata, one.subject) == ({"kept": 1}, "Sam")
    again = memory.remember(text, payload=text.encode(), framework_id="f", thread="t")
    assert again.id == one.id
    made = memory.record(f"noted, {text}", context=[one.id], framework_id="r", thread="t")
    assert memory.record(f"noted, {text}", context=[one.id], framework_id="r", thread="t") == made
    memory.remember("only beside", payload=f'{{"password": "{PASSWORD}"}}'.encode())
    memory.remember_parts(f"Hello. {text.capitalize()}!")
    assert [one.text for one in everywhere(memory)] == [
        f"my password is {MARKER}",
        f"noted, my password is {MARKER}",
        "only beside",
        "Hello. ",
        f"My password is {MARKER}",
    ]
    assert memory.search("Tr0ub4dor", by="keyword") == []


@pytest.mark.parametrize("name", ["subject", "purpose", "sensitivity"])
def test_a_credential_that_stands_in_one_detail_alone_is_redacted(
    memory: Memory, name: str
) -> None:
    said: dict[str, Any] = {name: f"my password is {PASSWORD}"}
    assert getattr(memory.remember("hello", **said), name) is None
    assert memory.scan(PASSWORD, files=False).clean


def test_ways_of_adapters_redact_as_well(memory: Memory) -> None:
    text = f"my password is {PASSWORD}"
    said = [Saying(Draft(text, thread="t", framework_id=name)) for name in ("1", "2")]
    memory.conversations.add("t", said)
    memory.conversations.add("t", said)
    document = [Foreign("d", Atom(Draft(text, role="document", kind="document")))]
    first = memory.elsewhere.take("docs", document)
    again = [Foreign("d", Atom(Draft(text, role="document", kind="document")))]
    assert memory.elsewhere.take("docs", again) == first
    assert [one.text for one in everywhere(memory)] == [f"my password is {MARKER}"] * 3


def test_an_agents_own_state_stays_exact_and_a_forget_reaches_it(memory: Memory) -> None:
    draft = Draft(f'{{"password": "{PASSWORD}"}}', role="item", kind="state", payload=b"p")
    memory.items.put("store", [Keep(("a",), "k", Atom(draft))])
    (found,) = memory.items.get("store", [(("a",), "k")])
    assert found is not None
    assert found.record.text == draft.text
    memory.forget(PASSWORD)
    assert memory.items.get("store", [(("a",), "k")]) == [None]
    everywhere(memory)


def test_a_memory_may_refuse_them(url: str, opened: Opened) -> None:
    memory = opened(url, credentials="refuse").workspace("alex")
    memory.remember("kept")
    for write in (
        lambda: memory.remember(f"my password is {PASSWORD}"),
        lambda: memory.remember_many([Draft("fine"), Draft(f"pay with {CARD}")]),
        lambda: memory.record("fine", metadata={"password": PASSWORD}),
        lambda: memory.conversations.add("t", [Saying(Draft(f"password: {PASSWORD}"))]),
    ):
        with pytest.raises(CredentialRefused) as caught:
            write()
        assert PASSWORD not in str(caught.value)
        assert CARD not in str(caught.value)
        assert caught.value.__cause__ is None
    assert [one.text for one in everywhere(memory)] == ["kept"]


def test_what_was_stored_before_can_be_redacted_by_a_memory_that_refuses(
    url: str, opened: Opened
) -> None:
    before = opened(url, credentials="allow").workspace("alex")
    old = before.remember(f"Sam lives in Paris, my password is {PASSWORD}")
    memory = opened(url, credentials="refuse").workspace("alex")
    receipt = memory.forget("Paris", mode="redact")
    left = memory.get(receipt.redacted[old.id])
    assert left.text == f"Sam lives in [redacted], my password is {MARKER}"
    everywhere(memory)


def test_a_memory_may_hold_them_for_confirmation(url: str, opened: Opened) -> None:
    memory = opened(url, credentials="quarantine").workspace("alex")
    one = memory.remember(f"my password is {PASSWORD}")
    memory.remember("kept")
    assert [found.text for found in memory.export()] == ["kept"]
    assert [found.id for found in memory.waiting()] == [one.id]
    memory.index()
    assert memory.search("Tr0ub4dor", by="keyword") == []
    memory.reject(one.id)
    everywhere(memory)


def test_a_memory_may_allow_them(url: str, opened: Opened) -> None:
    memory = opened(url, credentials="allow").workspace("alex")
    one = memory.remember(f"my password is {PASSWORD}", payload=b"p")
    assert memory.get(one.id).text == f"my password is {PASSWORD}"
    with pytest.raises(InvalidInput):
        opened(url, credentials="sometimes")


# adapters


def test_a_langchain_history_gives_what_was_redacted(memory: Memory) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from pairing import problems

    from dellm_langchain.history import DeLLMChatMessageHistory

    call = {"name": "login", "args": {"password": PASSWORD}, "id": "c-1"}
    given = [
        HumanMessage(f"my password is {PASSWORD}", id="h"),
        AIMessage("", tool_calls=[call], id="a"),
        ToolMessage(f"logged in, password: {PASSWORD}", tool_call_id="c-1", id="t"),
        AIMessage("Done.", id="b"),
    ]
    DeLLMChatMessageHistory(memory, "chat").add_messages(given)
    found = DeLLMChatMessageHistory(memory, "chat").messages
    assert problems(found) == []
    assert found[0].content == f"my password is {MARKER}"
    assert found[-1].content == "Done."
    assert [found[0].id, found[-1].id] == ["h", "b"]
    assert PASSWORD not in str(found)
    DeLLMChatMessageHistory(memory, "chat").add_messages(given)
    assert DeLLMChatMessageHistory(memory, "chat").messages == found
    everywhere(memory)


def test_a_langgraph_thread_gives_what_was_redacted(memory: Memory) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langgraph.graph import START, MessagesState, StateGraph
    from pairing import problems

    from dellm_langchain import DeLLMSaver

    def bot(state: Any) -> Any:
        if state["messages"][-1].content != "log me in":
            return {"messages": [AIMessage(f"{len(state['messages'])} messages", id="b2")]}
        call = {"name": "login", "args": {"password": PASSWORD}, "id": "c-1"}
        return {
            "messages": [
                AIMessage("", tool_calls=[call], id="a"),
                ToolMessage("in", tool_call_id="c-1", id="t"),
                AIMessage("Done.", id="b"),
            ]
        }

    def app() -> Any:
        graph = StateGraph(MessagesState)
        graph.add_node("bot", bot)
        graph.add_edge(START, "bot")
        return graph.compile(checkpointer=DeLLMSaver(memory))

    config: Any = {"configurable": {"thread_id": "t"}}
    first = [HumanMessage(f"my password is {PASSWORD}", id="h"), HumanMessage("log me in", id="i")]
    app().invoke({"messages": first}, config)
    app().invoke({"messages": [HumanMessage("and now?", id="j")]}, config)
    found = app().get_state(config).values["messages"]
    assert problems(found) == []
    assert found[0].content == f"my password is {MARKER}"
    assert [one.id for one in found][:2] == ["h", "i"]
    assert [one.content for one in found][-3] == "Done."
    assert PASSWORD not in str(found)
    assert memory.scan(PASSWORD, files=False).clean
    assert memory.verify().ok


def test_a_llamaindex_memory_gives_what_was_redacted(memory: Memory) -> None:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole

    from dellm_llamaindex import DeLLMMemory

    call = {
        "id": "c-1",
        "type": "function",
        "function": {"name": "login", "arguments": f'{{"password": "{PASSWORD}"}}'},
    }
    given = [
        ChatMessage(f"my password is {PASSWORD}"),
        ChatMessage("", role=MessageRole.ASSISTANT, additional_kwargs={"tool_calls": [call]}),
        ChatMessage("in", role=MessageRole.TOOL, additional_kwargs={"tool_call_id": "c-1"}),
        ChatMessage("Done.", role=MessageRole.ASSISTANT),
    ]
    DeLLMMemory.from_defaults(memory, "main", top_k=None).put_messages(given)
    found = DeLLMMemory.from_defaults(memory, "main", top_k=None).get_all()
    assert found[0].content == f"my password is {MARKER}"
    assert found[-1].content == "Done."
    assert PASSWORD not in str(found)
    called = [one for one in found if one.additional_kwargs.get("tool_calls")]
    assert len(called) == sum(one.role == MessageRole.TOOL for one in found)
    everywhere(memory)
