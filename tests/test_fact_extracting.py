"""Facts found in messages: by rules, by a model over HTTP, again, and after something was forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from openai_server import OpenAIServer
from raw_tables import connected, rows_of, statement

from dellm import (
    ContextForgotten,
    Fact,
    InvalidInput,
    Memory,
    ModelError,
    NotFound,
    OpenAIExtractor,
    Proposed,
    Record,
    RuleExtractor,
)

START = datetime(2026, 1, 5, tzinfo=UTC)
CHATS = (
    "Hi! I work at Freightly and my dog is called Biscuit.",
    "Oh, and my phone number is +1 415 555 0142 in case you need it for booking reminders.",
    "I'm flying to Lisbon next week.",
    "I've just started working at Ledgerly.",
    "My dog Biscuit died. I have a dog called Comet now.",
    "Where do I work?",
)


def talked(memory: Memory, said: Sequence[str] = CHATS, thread: str = "t") -> list[int]:
    return [
        memory.remember(text, thread=thread, created_at=START + timedelta(days=n)).id
        for n, text in enumerate(said)
    ]


def held(facts: list[Fact]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in facts:
        found.setdefault(one.key, []).append(one.value)
    return found


def record(text: str) -> Record:
    return Record(1, "w", None, "message", "user", text, START, 1)


# the rules


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I live in Paris.", [("home", "Paris")]),
        ("i live in new york city, as you know", [("home", "new york city")]),
        ("I've moved to Porto and I love it.", [("home", "Porto")]),
        ("I work for Ledgerly since May", [("employer", "Ledgerly")]),
        ("I work as a carpenter.", [("job", "carpenter")]),
        ("My sister is Nia.", [("sister_name", "Nia")]),
        ("My sister is tired.", []),
        ("my dog's name is Rex!", [("dog_name", "Rex")]),
        ("My name is Alex Meyer and I am new here", [("name", "Alex Meyer")]),
        ("My favorite colour is dark green.", [("favourite_colour", "dark green")]),
        ("My phone number is (415) 555-0142, call me.", [("phone", "(415) 555-0142")]),
        ("My e-mail is a.b@example.org", [("email", "a.b@example.org")]),
        ("Do you know that I live in Paris?", []),
        ("Please forget that I live in Paris.", []),
        ("Forget that my sister is Nia", []),
        ("She lives in Paris. The dog is called Rex.", []),
        ("I'm going to sleep", []),
        ("I'm going to Rome tomorrow", [("trip_destination", "Rome")]),
        ("I am allergic to nuts.", [("allergy", "nuts")]),
        ("", []),
    ],
)
def test_the_rules_find_what_is_said_in_so_many_words(
    text: str, found: list[tuple[str, str]]
) -> None:
    proposed = RuleExtractor()([record(text)], [], [])
    assert [(one.key, one.value) for one in proposed] == found
    assert not any(one.inferred or one.closes for one in proposed)
    assert all(one.sources == [1] and one.said_in == 1 for one in proposed)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("I no longer work at Freightly.", "employer", "Freightly"),
        ("I left Freightly last week", "employer", "Freightly"),
        ("I don't live in Paris anymore", "home", "Paris anymore"),
        ("My dog Biscuit has died.", "dog_name", "Biscuit"),
    ],
)
def test_the_rules_find_what_is_over(text: str, key: str, value: str) -> None:
    proposed = RuleExtractor()([record(text)], [], [])
    assert [(one.key, one.closes) for one in proposed] == [(key, True)]
    assert str(proposed[0].value).startswith(value.split()[0])


def test_the_rules_infer_what_is_sensitive_only_as_something_to_be_confirmed(
    memory: Memory,
) -> None:
    talked(memory, ["I have to take my insulin before church.", "The church is old."])
    found = memory.facts.extract(RuleExtractor(), thread="t")
    assert found.stated == ()
    assert {(one.key, one.value) for one in memory.facts.waiting()} == {
        ("health", "insulin"),
        ("religion", "church"),
    }
    assert memory.facts() == []


# a thread


def test_a_thread_becomes_facts_with_the_days_on_which_they_were_said(memory: Memory) -> None:
    facts = memory.facts
    facts.declare("dog_name")
    ids = talked(memory)
    found = facts.extract(RuleExtractor(), thread="t")
    assert (found.messages, found.calls, found.refused, found.waiting) == (6, 1, 0, ())
    assert held(facts()) == {
        "dog_name": ["Comet"],
        "phone": ["+1 415 555 0142"],
        "trip_destination": ["Lisbon"],
        "employer": ["Ledgerly"],
    }
    assert [one.valid_from for one in facts(key="employer")] == [START + timedelta(days=3)]
    before = facts.previous("employer")
    assert before is not None
    assert (before.value, before.valid_to) == ("Freightly", START + timedelta(days=3))
    assert [one.value for one in facts.history("dog_name")] == ["Biscuit", "Comet"]
    assert [memory.context_of(one.id) for one in facts.history("employer")] == [[ids[0]], [ids[3]]]
    assert [memory.get(one).text for one in found.closed] == ["dog_name: Biscuit"]
    assert memory.verify().ok


def test_only_what_is_new_is_read_and_nothing_is_doubled(memory: Memory) -> None:
    calls: list[list[str]] = []

    def rules(messages: Sequence[Record], known: Sequence[Fact], lists: Sequence[str]) -> Any:
        calls.append([one.text for one in messages])
        return RuleExtractor()(messages, known, lists)

    talked(memory)
    memory.remember("I work at Elsewhere", role="assistant", thread="t")
    facts = memory.facts
    facts.extract(rules, thread="t")
    with connected(memory.url) as raw:
        before = {name: rows_of(raw)[name] for name in ("fact", "fact_end", "record")}
        assert facts.extract(rules, thread="t").calls == 0
        again = facts.extract(rules, thread="t", again=True)
        assert (again.stated, again.closed, again.messages) == ((), (), 6)
        assert {name: rows_of(raw)[name] for name in before} == before
    memory.remember("I live in Porto", thread="t")
    assert len(facts.extract(rules, thread="t").stated) == 1
    assert calls == [list(CHATS), list(CHATS), ["I live in Porto"]]
    # Another extractor has not read any of it.
    assert facts.extract(RuleExtractor(), thread="t").messages == 7


def test_after_a_forget_nothing_comes_back_and_the_rest_is_found_again(memory: Memory) -> None:
    facts = memory.facts
    talked(memory)
    facts.extract(RuleExtractor(), thread="t")
    memory.forget("Freightly")
    for again in (False, True):
        facts.extract(RuleExtractor(), thread="t", again=again)
        assert [one.value for one in facts.history("employer")] == ["Ledgerly"]
        assert facts.previous("employer") is None
        assert not memory.scan("Freightly", files=False).places
    assert memory.verify().ok


def test_a_fact_forgotten_alone_is_not_taken_from_its_message_again(memory: Memory) -> None:
    facts = memory.facts
    ids = talked(memory, ["I live in Paris and my dog is called Rex."])
    facts.extract(RuleExtractor(), thread="t")
    home = facts(key="home")[0].id
    memory.forget(ids=[home])
    found = facts.extract(RuleExtractor(), thread="t", again=True)
    assert (found.stated, found.refused) == ((), 1)
    assert held(facts()) == {"dog_name": ["Rex"]}
    memory.remember("I live in Paris, I say", thread="t")  # said anew, it is a fact again
    assert len(facts.extract(RuleExtractor(), thread="t").stated) == 1
    # The digests that remember this go with the message.
    memory.forget(ids=ids)
    with connected(memory.url) as raw:
        assert statement(raw, "select count(*) from fact_refused") == [(0,)]


@pytest.mark.parametrize("mark", ["[redacted]", "[removed at the user's request]", "[credential]."])
def test_the_mark_of_what_was_taken_out_is_no_fact(memory: Memory, mark: str) -> None:
    memory.remember(f"I live in {mark}", thread="t")
    found = memory.facts.extract(RuleExtractor(), thread="t")
    assert (found.messages, found.stated) == (1, ())


def test_what_was_forgotten_is_not_taken_from_its_message_in_another_spelling(
    memory: Memory,
) -> None:
    for first, other in (
        ("+1 415 555 0142", "(415) 555-0142"),
        ("Ada@Example.com", "ada@example.com"),
        ("2026-03-05", "March 5, 2026"),
        ("Rue  Cler 12", "rue cler 12"),
    ):
        said = memory.remember(f"it is {first}", thread="t")
        spelling = [first]
        finder = [lambda some, _k, _l, is_=spelling: [Proposed("it", is_[0], said_in=some[0].id)]]
        (made,) = memory.facts.extract(finder[0], records=[said.id]).stated
        spelling[0] = other
        found = memory.facts.extract(finder[0], records=[said.id], again=True)
        assert (found.stated, found.refused) == ((), 0)
        memory.forget(ids=[made])
        assert memory.facts.extract(finder[0], records=[said.id], again=True).refused == 1
    assert memory.facts() == []


def test_a_message_that_closed_a_fact_closes_it_again_when_what_was_read_with_it_goes(
    memory: Memory,
) -> None:
    def quitting(some: Sequence[Record], _k: object, _l: object) -> list[Proposed]:
        said = [one.id for one in some if "quit" in one.text]
        return [Proposed("employer", "Freightly", closes=True, said_in=one) for one in said]

    memory.facts.state("employer", "Freightly", valid_from=START)
    first = memory.remember("hello", thread="t")
    memory.remember("I quit.", thread="t")
    memory.facts.extract(quitting, thread="t")
    assert memory.facts() == []
    memory.forget(ids=[first.id])
    assert len(memory.facts()) == 1
    assert len(memory.facts.extract(quitting, thread="t").closed) == 1
    assert memory.facts() == []
    assert memory.verify().ok


def vague(
    messages: Sequence[Record], _known: Sequence[Fact], _lists: Sequence[str]
) -> list[Proposed]:
    """Find a phone number without saying in which of the messages."""
    found = any("555" in one.text for one in messages)
    return [Proposed("phone", "555")] if found else []


def test_a_fact_of_no_message_by_name_is_neither_doubled_nor_found_again(memory: Memory) -> None:
    facts = memory.facts
    for text in ("hello", "call 555", "thanks"):
        memory.remember(text, thread="t")
    for _ in range(2):
        facts.extract(vague, thread="t", again=True)
    assert len(list(memory.export())) == 4
    memory.forget(ids=[facts()[0].id])
    memory.remember("another", thread="t")  # so that the parts are others
    for messages in ({"thread": "t"}, {"records": [2]}, {"records": [2, 5]}):
        assert facts.extract(vague, again=True, **messages).refused == 1
    assert facts() == []
    memory.forget(ids=[2])
    memory.remember("it is 555 now", thread="t")
    assert len(facts.extract(vague, thread="t").stated) == 1
    assert memory.verify().ok


def test_a_stated_fact_that_is_forgotten_is_not_extracted_from_its_context(memory: Memory) -> None:
    said = memory.remember("I live in Paris.", thread="t")
    stated = memory.facts.state("home", "Paris", context=[said.id])
    memory.forget(ids=[stated])
    assert memory.facts.extract(RuleExtractor(), thread="t").refused == 1
    assert memory.facts() == []


def test_what_was_forgotten_of_a_message_is_not_taken_from_what_redaction_left(
    memory: Memory,
) -> None:
    memory.remember("My dog is called Biscuit. I live in Paris.", thread="t")
    memory.facts.extract(RuleExtractor(), thread="t")
    memory.forget(ids=[memory.facts(key="dog_name")[0].id])
    for value in ("Paris", "dog"):
        memory.forget(value, mode="redact")
        memory.facts.extract(RuleExtractor(), thread="t", again=True)
        assert memory.facts() == []
    assert [one.text for one in memory.history("t")] == [
        "My [redacted] is called Biscuit. I live in [redacted]."
    ]
    assert memory.verify().ok


def test_a_message_that_said_what_another_said_is_read_again_without_that(memory: Memory) -> None:
    def once(messages: Sequence[Record], known: Sequence[Fact], _: Sequence[str]) -> list[Proposed]:
        said = [one for one in messages if "Porto" in one.text and not known]
        return [Proposed("home", "Porto", said_in=one.id) for one in said[:1]]

    first = memory.remember("I moved to Porto.", thread="t")
    second = memory.remember("Porto is where I live.", thread="t")
    memory.facts.extract(once, thread="t")
    memory.forget(ids=[first.id])
    assert memory.facts() == []
    assert memory.facts.extract(once, thread="t").messages == 1
    assert memory.context_of(memory.facts()[0].id) == [second.id]


def test_a_rejected_inference_is_not_made_again(memory: Memory) -> None:
    talked(memory, ["I have to take my insulin."])
    facts = memory.facts
    facts.extract(RuleExtractor(), thread="t")
    facts.reject(facts.waiting()[0].id)
    facts.extract(RuleExtractor(), thread="t", again=True)
    assert facts.waiting() == []


def repeating(messages: Sequence[Record], known: Sequence[Fact], lists: Sequence[str]) -> Any:
    """Leak as much as there is: each fact repeats all messages and all known facts."""
    said = " ".join([*(one.text for one in messages), *(one.value for one in known), *lists])
    return [Proposed(f"about_{one.id}", said, said_in=one.id) for one in messages]


def test_facts_of_one_prompt_go_with_any_of_it_and_are_found_again_without(
    memory: Memory,
) -> None:
    canary = "canaryqzxv"
    facts = memory.facts
    first = talked(memory, ["one", f"two {canary}", "three"])
    facts.extract(repeating, thread="t")
    later = talked(memory, ["four"])
    facts.extract(repeating, thread="t")
    assert memory.context_of(facts(key=f"about_{first[0]}")[0].id) == first
    assert set(memory.context_of(facts(key=f"about_{later[0]}")[0].id)) == {
        *later,
        *(facts(key=f"about_{one}")[0].id for one in first),
    }
    assert len(memory.scan(canary).places) > 1
    receipt = memory.forget(ids=[first[1]], scrub=True)
    assert receipt.rows["fact"] == 4
    report = memory.scan(canary)
    assert not report.places
    assert not report.files
    assert facts() == []
    # What was only made together with it counts as unread, so that it is found again from the rest.
    found = facts.extract(repeating, thread="t")
    assert (found.messages, len(found.stated)) == (3, 3)
    assert {one.value for one in facts()} == {"one three four"}
    assert memory.verify().ok


def test_long_threads_are_read_in_parts_and_what_broke_off_goes_on(memory: Memory) -> None:
    ids = talked(memory, [f"I live in Town{chr(65 + n % 26)}" for n in range(45)])
    left = [2]

    def rules(messages: Sequence[Record], known: Sequence[Fact], lists: Sequence[str]) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise ValueError(messages[0].text)
        return RuleExtractor()(messages, known, lists)

    with pytest.raises(ModelError) as failed:
        memory.facts.extract(rules, thread="t")
    assert "Town" not in f"{failed.value} {failed.value.__cause__} {failed.value.__context__}"
    assert len(memory.facts.history("home")) == 40
    left[0] = 9
    assert memory.facts.extract(rules, thread="t").messages == 5
    assert len(memory.facts.history("home")) == 45
    assert memory.context_of(memory.facts(key="home")[0].id) == ids[-1:]


def test_what_is_forgotten_while_an_extractor_reads_is_not_stored(memory: Memory) -> None:
    ids = talked(memory, ["one", "two secretly"])
    seen: list[list[int]] = []

    def slow(messages: Sequence[Record], known: Sequence[Fact], lists: Sequence[str]) -> Any:
        seen.append([one.id for one in messages])
        if len(seen) == 1:
            memory.forget(ids=[ids[1]], scrub=False)
        return repeating(messages, known, lists)

    found = memory.facts.extract(slow, thread="t")
    assert (seen, found.messages, found.calls) == ([ids, ids[:1]], 1, 2)
    assert [one.value for one in memory.facts()] == ["one"]
    # An extractor under which something goes each time is given up.
    more = talked(memory, [f"more {n}" for n in range(6)], "u")

    def slower(messages: Sequence[Record], known: Sequence[Fact], lists: Sequence[str]) -> Any:
        memory.forget(ids=[messages[-1].id], scrub=False)
        return repeating(messages, known, lists)

    with pytest.raises(ContextForgotten):
        memory.facts.extract(slower, thread="u")
    assert [one.id for one in memory.history("u")] == more[:3]


def test_records_can_be_read_wherever_they_are(memory: Memory) -> None:
    one = memory.remember("I live in Paris")
    assert memory.facts.extract(RuleExtractor(), records=[one.id]).messages == 1
    assert memory.facts.extract(RuleExtractor(), records=[one.id]).messages == 0
    assert held(memory.facts()) == {"home": ["Paris"]}
    with pytest.raises(NotFound):
        memory.facts.extract(RuleExtractor(), records=[99])
    for wrong in ({}, {"thread": "t", "records": [1]}):
        with pytest.raises(InvalidInput):
            memory.facts.extract(RuleExtractor(), **wrong)  # type: ignore[arg-type] # as said
    for bad in (
        Proposed("k", "v", sources=[99]),
        Proposed("k", "v", said_in=99),
        Proposed("k:", "v"),
        "no proposal",
    ):
        with pytest.raises(InvalidInput):
            memory.facts.extract(
                lambda *_, bad=bad: [bad],
                records=[one.id],
                again=True,
            )


# a model over HTTP


def fact(key: str, value: object, message: int, **more: Any) -> dict[str, Any]:
    return {
        "key": key, "value": value, "closes": False, "message": message, "valid_from": None,
        "confidence": 0.9, "about": None, "inferred": False, "sensitivity": None, **more,
    }  # fmt: skip


def answering(*facts: dict[str, Any]) -> Callable[[list[dict[str, Any]]], str]:
    return lambda _: json.dumps({"facts": list(facts)})


def extractor(server: OpenAIServer, **options: Any) -> OpenAIExtractor:
    return OpenAIExtractor("test", base_url=server.url, api_key="k", retries=0, **options)


def test_a_model_is_asked_by_a_schema_and_its_facts_are_made_from_the_whole_prompt(
    memory: Memory,
) -> None:
    ids = talked(memory, ["I am at Ledgerly now", "Anna is ill again"])
    memory.facts.declare("dog_name")
    known = memory.facts.state("employer", "Freightly", valid_from=START - timedelta(days=9))
    reply = answering(
        fact("Employer", "Ledgerly", 1, valid_from="2026-01-02"),
        fact("illness", "unknown", 2, about="Anna", inferred=True, sensitivity="health"),
        fact("trip", None, 1, closes=True),
    )
    with OpenAIServer(reply=reply) as server:
        asked = extractor(server)
        found = memory.facts.extract(asked, thread="t")
        asked.close()
    assert len(server.requests) == 1
    form = server.requests[0]["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    told = json.loads(server.requests[0]["messages"][1]["content"])
    assert [one["text"] for one in told["messages"]] == [
        "I am at Ledgerly now",
        "Anna is ill again",
    ]
    assert [(one["key"], one["value"]) for one in told["known"]] == [("employer", "Freightly")]
    assert told["list_keys"] == ["dog_name"]
    now = memory.facts(key="employer")[0]
    assert (now.value, now.valid_from, now.confidence) == (
        "Ledgerly",
        datetime(2026, 1, 2, tzinfo=UTC),
        0.9,
    )
    assert set(memory.context_of(now.id)) == {*ids, known}
    waiting = memory.facts.waiting()
    assert [(one.id, one.subject, one.sensitivity) for one in waiting] == [
        (found.waiting[0], "Anna", "health")
    ]
    sent = memory.exposures([*ids, known, now.id])
    assert {(one.record, one.model) for one in sent} == {
        (one, "test") for one in (*ids, known, now.id)
    }
    # Forgetting the fact it was told of takes what was made with it, and opens nothing wrongly.
    memory.forget(ids=[known])
    assert memory.facts() == memory.facts.waiting() == []


@pytest.mark.parametrize(
    "first",
    [
        "no json",
        "[]",
        '{"facts": 5}',
        json.dumps({"facts": [fact("k", "v", 9)]}),
        json.dumps({"facts": [fact("", "v", 1)]}),
        json.dumps({"facts": [fact("k", None, 1)]}),
        json.dumps({"facts": [fact("k", "v", 1, valid_from="soon")]}),
        json.dumps({"facts": [fact("k", "v", 1, confidence="high")]}),
        json.dumps({"facts": [fact("k", "v", 1, inferred="yes")]}),
        json.dumps({"facts": [fact("k", 5, 1)]}),
    ],
)
def test_an_answer_of_another_form_is_asked_for_once_more(first: str, sqlite_url: str) -> None:
    answers = [first, '```json\n{"facts": [' + json.dumps(fact("k", "v", 1)) + "]}\n```"]
    with Memory.open(sqlite_url, embedder=None) as memory:
        talked(memory, ["secretly"])
        with OpenAIServer(reply=lambda _: answers.pop(0)) as server:
            memory.facts.extract(extractor(server), thread="t")
            assert len(server.requests) == 2
        assert held(memory.facts()) == {"k": ["v"]}
        with OpenAIServer(reply=lambda _: first) as server, pytest.raises(ModelError) as failed:
            memory.facts.extract(extractor(server), thread="t", again=True)
        assert "secretly" not in f"{failed.value} {failed.value.__cause__!r}"
        assert held(memory.facts()) == {"k": ["v"]}


def test_an_endpoint_that_refuses_schemas_is_asked_without(sqlite_url: str) -> None:
    with (
        Memory.open(sqlite_url, embedder=None) as memory,
        OpenAIServer(reply=answering(fact("k", "v", 1)), faults=["400"]) as server,
    ):
        talked(memory, ["one"])
        asked = extractor(server, temperature=None)
        memory.facts.extract(asked, thread="t")
        talked(memory, ["two"])
        memory.facts.extract(asked, thread="t")
        assert ["response_format" in one for one in server.requests] == [True, False, False]
        assert all("temperature" not in one for one in server.requests)


@pytest.mark.parametrize("fault", ["500", "401", "drop", "not_json", "no_text", "no_choices"])
def test_an_endpoint_that_fails_leaves_everything_unread_and_says_nothing_of_it(
    fault: str, sqlite_url: str
) -> None:
    with (
        Memory.open(sqlite_url, embedder=None) as memory,
        OpenAIServer(
            reply=answering(fact("k", "v", 1)), faults=[fault] * (1 + (fault == "no_text"))
        ) as server,
    ):
        talked(memory, ["secretly"])
        asked = extractor(server)
        with pytest.raises(ModelError) as failed:
            memory.facts.extract(asked, thread="t")
        assert "secretly" not in f"{failed.value} {failed.value.__cause__!r}"
        assert memory.facts() == []
        assert [one.record for one in memory.exposures()] == [1]  # it was sent all the same
        memory.facts.extract(extractor(server), thread="t")
        assert held(memory.facts()) == {"k": ["v"]}
