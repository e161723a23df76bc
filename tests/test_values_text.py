"""Sentences, clauses, aliases, descriptions and raw bytes."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from dellm.values import (
    Described,
    aliases,
    byte_spellings,
    contains,
    described,
    find,
    needle,
    recognise,
    redact,
    redact_clause,
    sentences,
    value_matches_description,
)

FORGETEVAL = Path(__file__).parents[2] / "shared" / "data" / "forgeteval" / "cases.jsonl"


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Smith paid 3.50 to J. R. Tolkien. ", "See https://a.b/c?d=1. ", "Yes!"],
        ["Ok... then we left! ", "“Really?” he asked. ", "No. 5 is Mr. Roe."],
        ["你好。", "再见！", "真的吗？"],
        ["- one\n", "- two\n", "1. three\n\t", "Last"],
        ["A wrapped\nline goes on. ", "Next.\n\n", "New paragraph"],
        ["  leading and trailing  "],
        ["The U.S. economy grew. ", "It did."],
        ["मैं घर गया। ", "वह आया।"],
        [],
    ],
)
def test_sentences_end_where_a_reader_would_end_them(expected: list[str]) -> None:
    text = "".join(expected)
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("I live in Paris and my dog is Rex.", "Paris", "My dog is Rex."),
        ("I live in Paris and my dog is Rex", "Paris", "My dog is Rex"),
        ("My dog is Rex and I live in Paris.", "Paris", "My dog is Rex."),
        ("I live in Paris. My dog is Rex.", "Paris", "My dog is Rex."),
        ("I live in Paris.", "Paris", None),
        ("Ok. I live in Paris!", "Paris", None),
        ("User lives in Berlin and works at Stripe.", "Berlin", "User works at Stripe."),
        ("User is married to Jamie and works at Google.", "Google", "User is married to Jamie."),
        ("Sam lives in Berlin and works at Stripe.", "Sam", "Works at Stripe."),
        ("I like tea; my PIN is 4417; call me.", "4417", "I like tea; call me."),
        (
            "I like tea, but my PIN is 4417, and I own a cat.",
            "4417",
            "I like tea, and I own a cat.",
        ),
        ("She speaks English and Mandarin. She is 30.", "Mandarin", "She is 30."),
        ("东京很大。我住在北京。", "北京", "东京很大。"),
    ],
)
def test_the_clause_with_the_value_goes_and_the_rest_stays_readable(
    text: str, gone: str, left: str | None
) -> None:
    assert redact_clause(text, find(needle(gone), text)) == left


def test_redacting_touches_only_the_spans_and_merges_neighbours() -> None:
    text = "Call 415-555-0142 415-555-0142, or  not."
    spans = find(needle("+1 415 555 0142"), text)
    assert redact(text, spans) == "Call [redacted], or  not."
    assert redact(text, spans, marker="") == "Call, or not."
    assert redact(text, []) == text


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Robert Smith, also known as Bob Smith, was promoted.", [("Robert Smith", "Bob Smith")]),
        ("Robert Smith aka Bob left.", [("Robert Smith", "Bob")]),
        ("customer Zhang Wei aka 张伟", [("Zhang Wei", "张伟")]),
        ("NYC is short for New York City.", [("New York City", "NYC")]),
        ('We call Project Falcon "Birdie".', [("Project Falcon", "Birdie")]),
        ("It has the codename Falcon for Project Orion.", [("Project Orion", "Falcon")]),
        ("Robert goes by Bob.", [("Robert", "Bob")]),
        ("Maria Lopez under alias Mia K.", [("Maria Lopez", "Mia K")]),
        ("The desk has ext 31 under alias Ana. I left.", []),
        ("J. R. Roe, nicknamed Ro. Then we left.", [("J. R. Roe", "Ro")]),
        ("Microsoft Office (Office) is installed.", []),
        ("He goes by Max.", []),
        ("They call Sam every day.", []),
        ("Paris is known as a city of light.", []),
        ("Alice and Bob also met Carol.", []),
        ("The report is also known as the Office", []),
    ],
)
def test_an_alias_needs_an_explicit_statement_between_two_names(
    text: str, pairs: list[tuple[str, str]]
) -> None:
    assert aliases(text) == pairs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the desk number of Maple House", Described("Maple House", "phone", ("desk",))),
        ("Maple House's desk number", Described("Maple House", "phone", ("desk",))),
        ("the Maple House desk number", Described("Maple House", "phone", ("desk",))),
        ("Sam's phone number", Described("Sam", "phone", ())),
        ("my home address", Described(None, "address", ("home",))),
        ("my phone number", Described(None, "phone", ())),
        ("the old gate code for Cedar Lodge", Described("Cedar Lodge", "code", ("gate",))),
        ("James' e-mail address", Described("James", "email", ())),
        ("the weather in Paris", None),
        ("everything", None),
        ("", None),
    ],
)
def test_a_description_gives_its_owner_and_kind(text: str, expected: Described | None) -> None:
    assert described(text) == expected


@pytest.mark.parametrize(
    ("description", "text", "values"),
    [
        ("Maple House's desk number",
         "MAPLE HOUSE desk is 628-555-0191 extension 24. Call me at 415-555-0100.",
         ["628-555-0191 extension 24"]),
        ("Sam's phone number", "Samantha is at 415-555-0100.", []),
        ("Sam's phone number", "This is about Sam. The line is 415-555-0100.", ["415-555-0100"]),
        ("my home address", "I moved to 12 Oak Street, Springfield.", ["12 Oak Street, Springfield"]),
        ("my e-mail address", "My mail is a.b@acme.io", ["a.b@acme.io"]),
        ("the gate code for Cedar Lodge", "Cedar Lodge: the gate code is KX-4471.", ["KX-4471"]),
    ],
)  # fmt: skip
def test_a_description_finds_the_value_beside_its_owner(
    description: str, text: str, values: list[str]
) -> None:
    wanted = described(description)
    assert wanted is not None
    spans = value_matches_description(wanted, text)
    assert [text[span.start : span.end] for span in spans] == values
    assert not any(span.exact for span in spans)


@pytest.mark.parametrize("value", ["+1 415 555 0142", "Zoë Müller", "1990-03-14", "alice@acme.io"])
def test_the_value_is_seen_in_every_encoding_of_a_raw_file(value: str) -> None:
    raw = f"before {value} after"
    files = [
        raw.encode(),
        raw.encode("utf-16-le"),
        raw.encode("utf-16-be"),
        json.dumps(raw).encode(),
        *(base64.b64encode(b"x" * shift + raw.encode()) for shift in range(3)),
    ]
    spellings = byte_spellings(needle(value))
    assert all(any(spelling in file for spelling in spellings) for file in files)
    assert len(spellings) == len(set(spellings)) < 300
    assert not any(spelling in b"nothing of the kind, 415 or 1990" for spelling in spellings)


def test_a_word_of_another_script_is_a_look_alike_only_where_it_is_no_word() -> None:
    assert contains(needle("cop"), "see the сор now")
    assert not contains(needle("cop"), "вынеси сор из избы")
    assert not contains(needle("сор"), "the cop is here")
    assert contains(needle("сор"), "вынеси СОР из избы")


@pytest.mark.skipif(not FORGETEVAL.exists(), reason="the ForgetEval cases are not on this machine")
def test_forgeteval_values_are_found_and_the_facts_to_keep_are_not() -> None:
    """At least 108 of 109 cases: one names a number that another fact also counts (8080)."""
    good = 0
    cases = [json.loads(line) for line in FORGETEVAL.read_text("utf-8").splitlines()]
    for case in cases:
        facts = case["setup_facts"]
        unwanted = case["must_not_contain"]
        found = all(contains(needle(u), f) for u in unwanted for f in facts if u in f)
        kept = [
            fact
            for fact in facts
            if any(k in fact for k in case["must_contain"]) and not any(u in fact for u in unwanted)
        ]
        named = [
            needle(request[1][value.start : value.end])
            for request in case["mutations"]
            if request[0] != "supersede"
            for value in recognise(request[1])
        ]
        good += found and not any(contains(value, fact) for value in named for fact in kept)
    assert good >= len(cases) - 1


@pytest.mark.skipif(not FORGETEVAL.exists(), reason="the ForgetEval cases are not on this machine")
def test_forgeteval_compound_facts_lose_one_clause_and_keep_the_other() -> None:
    for line in FORGETEVAL.read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["category"] == "compound_fact":
            fact, unwanted = case["setup_facts"][0], needle(case["must_not_contain"][0])
            left = redact_clause(fact, find(unwanted, fact))
            assert left is not None
            assert all(kept in left for kept in case["must_contain"])
            assert not contains(unwanted, left)
