"""The re-entry guard: what was forgotten under it does not come in again unawares, on no way."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lines import run, said, state
from raw_tables import connected, rows_of

from dellm import (
    Atom,
    ContextForgotten,
    Draft,
    Foreign,
    InvalidInput,
    Keep,
    Memory,
    NotFound,
    Saying,
    values,
)
from dellm.guard_digests import Forms, forms_of
from dellm.guarding import MARKER
from dellm.restating import restates

Opened = Callable[..., Memory]
NIA = "My sister is Nia"


@pytest.fixture
def guarded(memory: Memory) -> Memory:
    """A memory in which a name was forgotten under a guard."""
    memory.remember(NIA, thread="t")
    memory.remember("I live in Rome", thread="t")
    memory.forget("Nia", guard=True, scrub=False)
    return memory


def clean(memory: Memory, value: str = "Nia") -> None:
    memory.index()
    assert memory.scan(value, files=False).clean
    assert memory.verify().ok


# what was named, and nothing holds


def test_a_value_that_no_record_holds_is_guarded_all_the_same(memory: Memory) -> None:
    memory.remember("I live in Rome", thread="t")
    made = memory.guards.add(["2745", "Nia"])
    assert made.digests == 3  # of the number its key, too
    assert memory.guards() == [made]
    assert memory.remember("Was it 2745, or NIA?").text == f"Was it {MARKER}, or {MARKER}?"
    assert memory.remember("I moved to Rome in 1990").text == "I moved to Rome in 1990"
    assert memory.scan("2745", files=False).clean
    assert memory.verify().ok


def test_a_guard_added_by_itself_is_in_the_chain_without_content_and_can_be_lifted(
    memory: Memory,
) -> None:
    made = memory.guards.add("Nia")
    entry = memory.audit()[-1]
    assert (entry.action, entry.seq) == ("guard", made.receipt)
    assert "Nia" not in str(entry)
    assert memory.guards.lift(made.receipt) == made.digests
    assert memory.remember("Was it Nia?").text == "Was it Nia?"
    with pytest.raises(NotFound):
        memory.guards.lift(made.receipt)


@pytest.mark.parametrize("values", [[], "", "?!", ["Nia", " "], 5, [5]])
def test_what_says_nothing_is_not_guarded(memory: Memory, values: Any) -> None:
    with pytest.raises(InvalidInput):
        memory.guards.add(values)
    assert memory.guards() == []
    assert memory.audit() == []


# what is found again

SPELLINGS: dict[str, list[str]] = {
    "Nia": [
        "Nia",
        "NIA",
        "nia",
        "Nía",
        "“Nia”",
        "Nia's",
        "Ｎｉａ",
        "\u041dia".replace("\u041d", "N"),
    ],
    "Harrow Street 12": ["harrow street 12", "Harrow  Street, 12", "HARROW-STREET 12"],
    "(212) 867-5309": ["212-867-5309", "+1 212 867 5309", "2128675309", "1.212.867.5309"],
    "alice@acme.io": ["Alice@ACME.io", "alice at acme dot io", "alice [at] acme.io"],
    "3 April 1990": ["1990-04-03", "April 3, 1990", "3.4.1990".replace("3.4.", "03 Apr ")],
    "KX-4471": ["kx-4471", "KX4471", "KX 4471", "kx_4471"],
    "DE89 3704 0044 0532 0130 00": ["DE89370400440532013000", "de89-3704-0044-0532-0130-00"],
    "https://acme.io/plans": ["acme.io/plans", "http://www.acme.io/plans/"],
    "王小明": ["王小明"],
    "Zoë O'Neil": ["Zoe O’Neil", "ZOË O'NEIL"],
}
AROUND = [
    "{}",
    "was it {}?",
    "Got it: {}. Anything else?",
    "({}) and so on\nmore",
    "so {}, and Rome",
]


@pytest.mark.parametrize("value", SPELLINGS)
def test_every_spelling_is_found_in_any_text_as_the_search_by_value_does(value: str) -> None:
    needle, secret = values.needle(value), b"k" * 32
    forms = Forms(secret, "US")
    known = forms_of(secret, value, "value", "US")
    for one in known:
        forms.expect(one.kind, one.chars, one.words)
    digests = {one.digest for one in known}
    for spelling in [value, *SPELLINGS[value]]:
        for around in AROUND:
            text = around.format(spelling)
            spans = [(one.start, one.end) for one in forms.of(text) if one.digest in digests]
            left = text
            for start, end in sorted(set(spans), reverse=True):
                left = left[:start] + "#" + left[end:]
            assert spans, text
            assert not values.contains(needle, left), text
    for around in AROUND:
        assert not [one for one in forms.of(around) if one.digest in digests]


WORDS = ["nia", "rome", "blue", "anchor", "street", "12", "4471", "kx", "ann", "marie", "o", "neil"]


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9),
    st.sampled_from([" ", ", ", "-", "\n", "_"]),
)
def test_a_text_holds_a_guarded_value_just_where_the_words_stand_together(
    wanted: list[str], words: list[str], gap: str
) -> None:
    """Brute force: every stretch of words, compared in the open."""
    secret, forms = b"k" * 32, Forms(b"k" * 32, "US")
    known = [
        one for one in forms_of(secret, " ".join(wanted), "value", "US") if one.kind == "words"
    ]
    for one in known:
        forms.expect("words", one.chars, one.words)
    most, compact = known[0].words, "".join(wanted)
    expected = {
        (first, last)
        for first in range(len(words))
        for last in range(first + 1, min(first + most, len(words)) + 1)
        if "".join(words[first:last]) == compact
    }
    text = gap.join(words)
    starts = {text_at(words, gap, at): at for at in range(len(words))}
    found = {
        (starts[one.start], starts[one.end + len(gap)] if one.end < len(text) else len(words))
        for one in forms.of(text)
        if one.digest == known[0].digest
    }
    assert found == expected


def text_at(words: list[str], gap: str, at: int) -> int:
    return sum(len(one) + len(gap) for one in words[:at])


def test_the_digests_of_two_workspaces_have_nothing_in_common() -> None:
    one, other = (forms_of(key * 32, "Nia", "value", "US") for key in (b"a", b"b"))
    assert one[0].digest != other[0].digest
    assert forms_of(b"a" * 32, " !? ", "value", "US") == []


# every way in


def remembered(memory: Memory, text: str) -> None:
    memory.remember(text, role="assistant", metadata={"note": text, "kept": 1}, subject=text)


def recorded(memory: Memory, text: str) -> None:
    memory.record(text, context=[2], framework_id="r", thread="t")
    memory.record(text, context=[2], framework_id="r", thread="t")


def many(memory: Memory, text: str) -> None:
    drafts = [Draft(text, "tool", "t", "tool", "f", payload=text.encode()), Draft("other")]
    assert memory.remember_many(drafts)[0] == memory.remember_many(drafts)[0]


def parts(memory: Memory, text: str) -> None:
    memory.remember_parts(f"Hello there. {text}", role="assistant")


def conversed(memory: Memory, text: str) -> None:
    for _ in range(2):
        memory.conversations.add(
            "t", [Saying(Draft(text, role="assistant", thread="t", framework_id="c"))]
        )


def checkpointed(memory: Memory, text: str) -> None:
    one = run(memory, "line")
    one.more("list", said(text, "line", "m1", role="assistant"), value=state(text, "line"))
    one.write((0, "pending", state(text, "line")))


def kept(memory: Memory, text: str) -> None:
    draft = Draft(json.dumps({"v": text}), role="item", kind="state")
    memory.items.put("store", [Keep(("a",), "k", Atom(draft))])


def sent_again(memory: Memory, text: str) -> None:
    for _ in range(2):
        document = Foreign("d", Atom(Draft(text, role="document", kind="document")))
        assert memory.elsewhere.take("docs", [document]) == [None]  # not to be given to a model


def encoded(memory: Memory, text: str) -> None:
    memory.remember(base64.b64encode(f"{text} and more of it".encode()).decode() + "==="[3:])
    memory.remember("fine", metadata={"b": base64.b64encode(f"{text:>30}".encode()).decode()})
    memory.remember("fine", payload=json.dumps([json.dumps({"v": text})]).encode("utf-16"))


def rebuilt(memory: Memory, text: str) -> None:
    first = memory.remember("a source that goes")
    second = memory.remember("a source that stays")
    memory.rebuilder("digest", lambda _record, _sources: text)
    memory.record("made", context=[first.id, second.id], metadata={"rebuild": "digest"})
    receipt = memory.forget(ids=[first.id], scrub=False)
    assert len(receipt.rebuilt) == 1


WAYS: list[Callable[[Memory, str], None]] = [
    remembered, recorded, many, parts, conversed, checkpointed, kept, sent_again, encoded, rebuilt,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=[one.__name__ for one in WAYS])
def test_on_no_way_does_a_guarded_value_come_in(memory: Memory, way: Callable[..., None]) -> None:
    control = memory.workspace("control")
    for one in (memory, control):
        one.remember(NIA, thread="t")
        one.remember("I live in Rome", thread="t")
        one.forget("Nia", guard=one is memory, scrub=False)
    way(memory, "Got it, NIA, noted")
    clean(memory)
    if way is not sent_again:
        way(control, "Got it, NIA, noted")
        assert not control.scan("Nia", files=False).clean


def test_of_a_value_that_was_not_stored_whole_no_vector_is(guarded: Memory) -> None:
    for name, text, found in (("a", "was it Nia?", 0), ("b", "was it Ann?", 1)):
        atom = Atom(Draft(json.dumps({"v": text}), role="item", kind="state"))
        keep = Keep(("u",), name, atom, vectors=[np.ones(2, np.float32)])
        guarded.items.put("store", [keep])
        near = guarded.items.search("store", ("u",), near=np.ones(2, np.float32))
        assert sum(one.score is not None for one in near) == found
    clean(guarded)


def test_what_is_taken_out_leaves_the_rest(guarded: Memory) -> None:
    text = "Was it Nia who lives in Rome?"
    one = guarded.remember(text, payload=text.encode(), metadata={"a": "to nia", "b": "Rome"})
    assert one.text == f"Was it {MARKER} who lives in Rome?"
    assert one.payload == b"Was it *** who lives in Rome?"
    assert one.metadata == {"b": "Rome"}
    assert guarded.remember("a niagara of anacondas").text == "a niagara of anacondas"
    clean(guarded)


def test_it_may_wait_for_confirmation_instead(url: str, opened: Opened) -> None:
    memory = opened(url, guards="quarantine").workspace("alex")
    memory.remember(NIA)
    memory.forget("Nia", guard=True)
    one = memory.remember("was it Nia?")
    assert [found.text for found in memory.waiting()] == ["was it Nia?"]
    assert list(memory.export()) == []
    with pytest.raises(ContextForgotten):
        memory.record("yes", context=[one.id])
    memory.reject(one.id)
    clean(memory)
    again = memory.remember("so, Nia it was?")
    assert memory.confirm(again.id).text == "so, Nia it was?"
    assert memory.verify().ok


def test_what_is_not_guarded_comes_in_as_ever(memory: Memory) -> None:
    memory.remember(NIA)
    receipt = memory.forget("Nia")
    assert (receipt.guarded, memory.guards()) == (0, [])
    assert memory.remember("was it Nia?").text == "was it Nia?"


# what is guarded


def test_values_that_the_matches_say_are_guarded_but_those_that_stay_elsewhere_are_not(
    memory: Memory,
) -> None:
    first = memory.remember("Sam: 212-867-5309, sam@acme.io")
    memory.remember("the office is office@acme.io, and sam@acme.io is on holiday")
    memory.forget(ids=[first.id], guard=True, scrub=False)
    one = memory.remember("call (212) 867 5309 or mail sam@acme.io", role="assistant")
    assert one.text == f"call {MARKER} or mail sam@acme.io"
    again = memory.remember("SAM 212 867 5309 sam@acme.io", role="tool")
    assert again.text == MARKER


@pytest.mark.parametrize("name", ["Nia", "Zoë Müller-Lüd", "O'Brien", "Иван"])
def test_a_forget_without_a_text_guards_the_names_that_nothing_else_holds(
    memory: Memory, name: str
) -> None:
    gone = memory.remember(f"Well, I think that {name} moved to Oslo on Monday")
    memory.remember("I work in Oslo")
    memory.forget(ids=[gone.id], guard=True, scrub=False)
    came = memory.remember(f"was it {name} of Oslo, on Monday?")
    assert came.text == f"was it {MARKER} of Oslo, on Monday?"
    assert memory.remember("I think so too", role="tool").text == "I think so too"


def test_a_redaction_guards_what_it_takes(memory: Memory) -> None:
    memory.remember("Nia lives in Rome")
    memory.forget("Nia", mode="redact", guard=True, scrub=False)
    assert memory.remember("was it Nia?").text == f"was it {MARKER}?"
    assert memory.remember("is it in Rome?").text == "is it in Rome?"
    clean(memory)


def test_nothing_but_digests_is_kept_and_the_receipt_says_so(guarded: Memory, url: str) -> None:
    (receipt,) = guarded.receipts()
    assert receipt.guarded == 2
    assert "2 keyed digest(s), the only trace" in str(receipt)
    assert receipt.to_json()["guarded"] == 2
    assert guarded.scan(NIA, files=False).clean
    (guard,) = guarded.guards()
    assert (guard.receipt, guard.digests) == (receipt.number, 2)
    assert guard.until == receipt.guarded_until
    with connected(url) as raw:
        assert not any(b"nia" in repr(row).lower().encode() for row in rows_of(raw)["guard"])


def test_a_workspace_may_guard_every_forget(memory: Memory) -> None:
    memory.guards.always()
    memory.remember(NIA)
    memory.remember("my cat is Momo")
    assert memory.forget("Nia", scrub=False).guarded == 2
    assert memory.forget("Momo", guard=False, scrub=False).guarded == 0
    memory.guards.always(False)
    memory.remember("my dog is Biscuit")
    assert memory.forget("Biscuit", scrub=False).guarded == 0


# how it ends


def test_a_guard_is_lifted_by_receipt(guarded: Memory, url: str, opened: Opened) -> None:
    other = opened(url).workspace("alex")
    assert other.remember("was it Nia?").text == f"was it {MARKER}?"
    receipt = guarded.receipts()[0]
    assert guarded.guards.lift(receipt) == 2
    for one in (guarded, other):
        assert one.remember("was it Nia?").text == "was it Nia?"
    assert guarded.ledger()[-1].body == {"receipts": [receipt.number]}
    with pytest.raises(NotFound):
        guarded.guards.lift(receipt.number)
    assert guarded.verify().ok


def test_a_guard_ends_when_its_time_is_over(url: str, opened: Opened) -> None:
    now = 1_000_000_000_000_000
    memory = opened(url, guard_days=2, clock=lambda: now).workspace("alex")
    memory.remember(NIA)
    memory.forget("Nia", guard=True)
    now += 2 * 24 * 3600 * 1_000_000 - 1
    assert memory.remember("was it Nia?").text == f"was it {MARKER}?"
    now += 1
    assert memory.remember("was it Nia?").text == "was it Nia?"
    assert memory.guards() == []
    memory.remember("my cat is Momo")
    memory.forget("Momo", guard=True)
    assert [one.digests for one in memory.guards()] == [2]
    for wrong in (0, -1, 1 << 40, 1.5):
        with pytest.raises(InvalidInput):
            opened(url, guard_days=wrong)


def test_a_new_statement_of_the_user_lifts_it_and_nothing_else_does(guarded: Memory) -> None:
    for text in ("Forget that my sister is Nia", "is my sister Nia?", "thanks, Nia", NIA):
        assert "Nia" not in guarded.remember(text).text
    for role in ("assistant", "tool", "system"):
        assert "Nia" not in guarded.remember("My new cat is called Nia", role=role).text
    old = guarded.remember("My new cat is called Nia", created_at=1)  # of an import
    assert "Nia" not in old.text
    assert guarded.remember("My new cat is called Nia").text == "My new cat is called Nia"
    assert guarded.ledger()[-1].action == "lift"
    assert guarded.remember("was it Nia?", role="assistant").text == "was it Nia?"
    assert guarded.remember(NIA).text == MARKER  # the text itself, sent again
    assert guarded.verify().ok


@pytest.mark.parametrize("way", ["conversations", "checkpoints"])
def test_what_adapters_write_lifts_it_as_well(guarded: Memory, way: str) -> None:
    text = "Remember that my new cat is called Nia"
    if way == "conversations":
        guarded.conversations.add("t", [Saying(Draft(text, thread="t", framework_id="x"))])
        guarded.conversations.add("t", [Saying(Draft("hi, nia", thread="t", framework_id="y"))])
    else:
        one = run(guarded, "t")
        one.more("list", said(text, "t", "x", role="user"))
        one.more("list", said("hi, nia", "t", "y", role="user"))
    assert {text, "hi, nia"} <= {one.text for one in guarded.export()}
    assert guarded.verify().ok


NEW = [
    "My sister is Nia.",
    "my sister's name is Nia",
    "I have a new friend, Nia",
    "I live with Nia now",
    "I'm Nia",
    "Nia is my sister",
    "Please remember that my sister is Nia.",
    "Remember: Nia is the plumber",
    "Note that the plumber is called Nia",
    "For the record, our new neighbour is Nia",
    "FYI my boss is Nia",
    "Don't forget my dog Nia",
    "We adopted a cat called Nia",
    "We moved in with Nia last week",
    "I married Nia in June",
    "I work with Nia",
    "Hello! My name is Nia. Nice weather.",
    "My dog is called \"Nia\"",
    "I bought a boat and named it Nia",
    "Our daughter is called Nia",
    "Correction: my sister is Nia",
    "Save this: Nia, room 4",
    "I love Nia",
    "Just so you know, Nia lives upstairs",
    "My favourite singer is Nia",
    "We call her Nia, she is our cat",
    "keep in mind that Nia comes on Monday",
    "I've started to speak with Nia",
]  # fmt: skip
NOT_NEW = [
    "was it Nia?",
    "Is my sister Nia?",
    "Do you still remember Nia?",
    "Did I tell you that my sister is Nia?",
    "Who is Nia",
    "What do you know about Nia?",
    "my sister is Nia, isn't she?",
    "Nia",
    "Nia.",
    "thanks, Nia",
    "ok, so Nia it is",
    "Got it, Nia.",
    "You said Nia",
    "you told me about Nia",
    "I told you about Nia",
    "I said my sister is Nia",
    "I asked about Nia before",
    "Forget that my sister is Nia",
    "forget Nia",
    "Please delete everything about Nia.",
    "Erase my sister's name, Nia",
    "don't remember that my sister is Nia",
    "Stop mentioning my sister Nia",
    "my sister is not Nia",
    "My sister was never called Nia",
    "It used to be Nia, my sister",
    'Anna wrote: "my sister is Nia"',
    "“My sister is Nia”, it says here",
    "> my sister is Nia",
    "He says my sister is Nia",
    "I wonder if my sister is Nia",
    "Maybe my sister is Nia",
    "Why do you ask about Nia, I live in Rome",
    "have I mentioned Nia",
    "I no longer live with Nia",
    "Confirmed. I am deleting Nia from my notes.",
    "I have removed my sister's name: Nia",
    "I am marking my old values: Nia",
    "My former name for her is Nia",
    "Finish this deleted note: Nia ___ and her number.",
    "A caller asked whether there was a Nia note.",
    "Compare the deleted line of Nia with our note.",
]


@pytest.mark.parametrize("text", NEW)
def test_a_declaration_of_the_user_is_a_new_statement(text: str) -> None:
    at = text.index("Nia")
    assert restates(text, at, at + 3)


@pytest.mark.parametrize("text", NOT_NEW)
def test_questions_requests_quotations_and_acknowledgements_are_none(text: str) -> None:
    at = text.index("Nia")
    assert not restates(text, at, at + 3)
    assert not restates(f"I live in Rome. {text}", at + 16, at + 19)


# cost


def test_a_write_without_guards_asks_the_database_no_more_than_before(
    sqlite_url: str, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dellm import guarding

    memory = opened(sqlite_url).workspace("alex")

    def never(*_: object) -> None:
        raise AssertionError("the guards were read")

    monkeypatch.setattr(guarding, "_guards", never)
    memory.remember("one", framework_id="f", thread="t")
    memory.record("two", context=[1], framework_id="g", thread="t")
    run(memory, "line").put(x=state("three", "line"))
    assert len(list(memory.export())) >= 2


# adapters


def test_a_langchain_history_gives_what_was_guarded_redacted(guarded: Memory) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from pairing import problems

    from dellm_langchain.history import DeLLMChatMessageHistory

    call = {"name": "call", "args": {"who": "nia"}, "id": "c-1"}
    given = [
        HumanMessage("was it Nia?", id="h"),
        AIMessage("Let me ask Nia", tool_calls=[call], id="a"),
        ToolMessage("NIA is here", tool_call_id="c-1", id="t"),
        AIMessage("Yes.", id="b"),
    ]
    DeLLMChatMessageHistory(guarded, "chat").add_messages(given)
    found = DeLLMChatMessageHistory(guarded, "chat").messages
    assert problems(found) == []
    assert [one.id for one in found] == ["h", "a", "t", "b"]
    assert [one.content for one in found] == [
        f"was it {MARKER}?",
        f"Let me ask {MARKER}",
        f"{MARKER} is here",
        "Yes.",
    ]
    clean(guarded)


def test_a_langgraph_thread_gives_what_was_guarded_redacted(guarded: Memory) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langgraph.graph import START, MessagesState, StateGraph
    from pairing import problems

    from dellm_langchain import DeLLMSaver

    call = {"name": "call", "args": {"who": "nia"}, "id": "c-1"}

    def bot(_: Any) -> Any:
        asked = AIMessage("Let me ask Nia", tool_calls=[call], id="a")
        return {"messages": [asked, ToolMessage("NIA", tool_call_id="c-1", id="t"), AIMessage("Yes.", id="b")]}  # fmt: skip

    def app() -> Any:
        graph = StateGraph(MessagesState)
        graph.add_node("bot", bot)
        graph.add_edge(START, "bot")
        return graph.compile(checkpointer=DeLLMSaver(guarded))

    config: Any = {"configurable": {"thread_id": "g"}}
    app().invoke({"messages": [HumanMessage("was it Nia?", id="h")]}, config)
    found = app().get_state(config).values["messages"]
    assert problems(found) == []
    assert [one.id for one in found] == ["h", "a", "t", "b"]
    assert "nia" not in str(found).lower()
    clean(guarded)


def test_a_llamaindex_memory_gives_what_was_guarded_redacted(guarded: Memory) -> None:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole

    from dellm_llamaindex import DeLLMMemory

    call = {"id": "c-1", "type": "function", "function": {"name": "call", "arguments": '{"who": "nia"}'}}  # fmt: skip
    given = [
        ChatMessage("was it Nia?"),
        ChatMessage("", role=MessageRole.ASSISTANT, additional_kwargs={"tool_calls": [call]}),
        ChatMessage("NIA is in", role=MessageRole.TOOL, additional_kwargs={"tool_call_id": "c-1"}),
        ChatMessage("Yes.", role=MessageRole.ASSISTANT),
    ]
    DeLLMMemory.from_defaults(guarded, "main", top_k=None).put_messages(given)
    found = DeLLMMemory.from_defaults(guarded, "main", top_k=None).get_all()
    assert [one.content for one in found] == [f"was it {MARKER}?", "", f"{MARKER} is in", "Yes."]
    assert len([one for one in found if one.additional_kwargs.get("tool_calls")]) == 1
    assert "nia" not in str(found).lower()
    clean(guarded)
