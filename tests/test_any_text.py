"""Any Python string can be remembered, found again and forgotten, the same on both databases."""

from __future__ import annotations

import itertools
import json
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_tables import is_postgres

from dellm import Memory
from dellm.encoding import decode, encode
from dellm.errors import SelectorError
from dellm.records import Draft
from dellm.terms import distinct
from dellm.values import needle

# Hypothesis leaves surrogates out unless asked; the others it would rarely draw.
ODD = st.sampled_from(
    [
        "\x00", "\ud800", "\udfff", "\udc80", "\ufdd0", "\ufdd00000", "\ufffe", "\U0010ffff", "\ufdef",
        "e\u0301", "é", "\u0344", "ﬁ", "ﷺ", "İ", "ß", "ς", "ǆ", "\u200f", "שלום", "مرحبا", "\u202e",
        "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "ไทย", "漢字", "かな", "한글", "한", "\u00a0", "\u2028", "\u0085",
        "\r\n", "\t", "'", '"', "\\", "%", "_", ":ws", "%s", "{}", "--", "/*", "; drop", "$1", "\\u0000",
    ]
)  # fmt: skip
LETTERS = st.characters(codec=None, exclude_categories=())
TEXTS = st.lists(st.one_of(LETTERS, ODD, st.sampled_from(["word", " ", "7"])), max_size=30).map(
    "".join
)
NAMES = TEXTS.filter(lambda text: bool(text.strip()))
JSON = st.recursive(
    st.one_of(TEXTS, st.integers(-(2**53), 2**53), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
VERSIONS = itertools.count(1)
RELAXED = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@given(TEXTS)
@settings(max_examples=500, deadline=None)
def test_the_stored_form_is_reversible_and_holds_nothing_a_database_refuses(text: str) -> None:
    stored = encode(text)
    assert decode(stored) == text
    assert "\x00" not in stored
    assert stored.encode("utf-8").decode("utf-8") == stored


@given(TEXTS, TEXTS)
@settings(max_examples=300, deadline=None)
def test_two_texts_never_share_a_stored_form(one: str, other: str) -> None:
    assert (encode(one) == encode(other)) == (one == other)


@pytest.fixture
def both(
    sqlite_url: str, postgres_url: str, opened: Callable[..., Memory]
) -> tuple[Memory, Memory]:
    return opened(sqlite_url, scrub_below=0), opened(postgres_url, scrub_below=0)


@pytest.mark.long
@given(
    name=NAMES,
    text=TEXTS,
    thread=st.none() | NAMES,
    role=NAMES,
    details=st.fixed_dictionaries(
        {},
        optional={
            "subject": TEXTS,
            "purpose": TEXTS,
            "sensitivity": TEXTS,
            "model": TEXTS,
            "framework_id": TEXTS,
            "metadata": st.dictionaries(TEXTS, JSON, max_size=3),
            "payload": st.binary(max_size=60),
        },
    ),
)
@RELAXED
def test_whatever_is_remembered_comes_back_and_goes_again_alike_on_both_databases(
    both: tuple[Memory, Memory],
    name: str,
    text: str,
    thread: str | None,
    role: str,
    details: dict[str, Any],
) -> None:
    answers = [_life(memory.workspace(name), text, thread, role, details) for memory in both]
    assert answers[0] == answers[1]


def _life(
    memory: Memory, text: str, thread: str | None, role: str, details: dict[str, Any]
) -> list[Any]:
    """Store, read, search, select and erase one record; return what was seen, without its id."""
    # One workspace sees many examples, and an erased version of an object may not come back.
    said = memory.remember(text, role=role, thread=thread, version=next(VERSIONS), **details)
    assert said.text == text
    assert memory.get(said.id) == said
    assert said in list(memory.export())
    assert (said.thread, said.role, said.workspace) == (thread, role, memory.id)
    assert dict(said.metadata) == details.get("metadata", {})
    for option in ("subject", "purpose", "sensitivity", "model", "framework_id"):
        assert getattr(said, option) == details.get(option)
    if thread is not None:
        assert said in memory.history(thread)
        assert thread in memory.threads()
    reply = memory.record("reply", context=[said.id], thread=thread)
    assert memory.explain(reply.id).context == (said,)
    seen: list[Any] = [sorted(memory.threads())]
    seen.append([one.score for one in memory.search(text, by="keyword") if one.record == said])
    if distinct(text):
        assert said.id in [one.id for one in memory.plan(keyword=text, exclude=[reply.id]).matches]
    if _can_be_asked(text):
        plan = memory.plan(quote=text)
        seen.append([(one.reason, one.spans) for one in plan.matches if one.id == said.id])
        assert said.id in plan.ids
        json.dumps(plan.to_json())
        assert str(plan)
        places = memory.scan(text, files=False).places
        assert [one for one in places if one.column == "text" and said.id in one.ids]
    receipt = memory.forget(ids=[said.id])
    seen.append(receipt.rows["record"])
    assert set(receipt.ids) == {said.id, reply.id}
    assert receipt.workspace == memory.id
    assert memory.receipt(receipt.number) == receipt
    assert said.id not in [one.id for one in memory.export()]
    assert not memory.search(text, by="keyword")
    if _can_be_asked(text):
        left = memory.scan(text, files=False).places
        assert not [one for one in left if one.table in {"record", "keyword", "embedding"}]
    assert memory.verify().ok
    return seen


def _can_be_asked(text: str) -> bool:
    try:
        needle(text)
    except SelectorError:
        return False
    return True


@given(name=NAMES, other=NAMES)
@RELAXED
def test_workspaces_are_told_apart_by_their_exact_names(
    both: tuple[Memory, Memory], name: str, other: str
) -> None:
    for memory in both:
        one, two = memory.workspace(name), memory.workspace(other)
        said = one.remember("kept here")
        assert (said in list(two.export())) == (name == other)
        one.forget(everything=True)
        assert list(one.export()) == []


@pytest.mark.parametrize(
    "names",
    [
        ("a", "ab", "a%", "a_b", "a/b", "A", "a ", " a", "а"),
        ("é", "e\u0301"),
        ("x\x00", "x", "x\\0"),
    ],
)
def test_names_that_look_alike_are_other_workspaces_and_threads(
    memory: Memory, names: tuple[str, ...]
) -> None:
    for name in names:
        memory.workspace(name).remember(f"of {name!r}", thread="t")
        memory.remember("in the thread", thread=name)
    for name in names:
        space = memory.workspace(name)
        assert [one.text for one in space.export()] == [f"of {name!r}"]
        assert len(memory.history(name)) == 1
        assert space.search("of", by="keyword")[0].record.text == f"of {name!r}"
    memory.forget(thread=names[0])
    assert sorted(memory.threads()) == sorted(names[1:])
    memory.workspace(names[0]).forget(everything=True)
    assert all(list(memory.workspace(name).export()) for name in names[1:])


SAMPLES = {
    "NUL": "before\x00after kingsbury",
    "lone high surrogate": "kingsbury \ud83d alone",
    "lone low surrogate": "kingsbury \udc00 alone",
    "noncharacters": "kingsbury \ufdd0 \ufdd00041 \ufffe \U0001ffff",
    "combining": "kingsbury cafe\u0301 n\u0303 a\u0323\u0302",
    "right to left": "kingsbury שלום עולם مرحبا بالعالم \u202eabc",
    "emoji": "kingsbury 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪",
    "no spaces": "漢字かな交じり文 ภาษาไทย kingsbury",
    "ligatures": "kingsbury ﬁre ﷺ ㎏ Ⅷ ½",
    "separators": "kingsbury\u2028two\u2029three\u0085four\x0bfive\x1csix",
    "SQL": "kingsbury'); drop table record; -- %s :ws ? $1 \\u0000 {0}",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_each_kind_of_odd_text_is_found_by_quote_keyword_and_scan_and_then_gone(
    memory: Memory, url: str, name: str
) -> None:
    files = not is_postgres(url)  # there all of them are looked for at once, in the next test
    text = SAMPLES[name]
    said = memory.remember(text, thread=text, role=text, subject=text, metadata={text: [text]})
    memory.remember("something else altogether")
    assert memory.get(said.id).metadata == {text: [text]}
    assert [one.id for one in memory.plan(quote=text).matches] == [said.id]
    assert [one.record.id for one in memory.search("Kingsbury", by="keyword")] == [said.id]
    assert [one.record.id for one in memory.search(text, by="meaning", limit=1)] == [said.id]
    columns = {one.column for one in memory.scan(text, files=False).places if said.id in one.ids}
    assert {"text", "thread", "role", "subject", "metadata"} <= columns
    memory.forget(quote=text, scrub=files)
    assert memory.scan("kingsbury", files=files).clean
    assert memory.verify().ok


def test_no_kind_of_odd_text_is_left_in_the_files(memory: Memory) -> None:
    for text in SAMPLES.values():
        memory.remember(text, thread=text, role=text, subject=text, metadata={text: [text]})
    memory.remember("something else altogether")
    memory.forget(keyword="kingsbury", scrub=True)
    assert memory.scan("kingsbury").clean
    assert memory.verify().ok


def test_a_composed_and_a_decomposed_letter_are_found_by_each_other(memory: Memory) -> None:
    for text in ("Zoë Maréchal", unicodedata.normalize("NFD", "Zoë Maréchal")):
        memory.remember(text)
    for asked in ("Zoë Maréchal", unicodedata.normalize("NFD", "Zoë Maréchal"), "ZOE MARECHAL"):
        assert len(memory.plan(asked).matches) == 2
        assert len(memory.search(asked, by="keyword")) == 2


@pytest.mark.long
def test_a_message_of_megabytes_is_remembered_found_and_gone(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=None).workspace("alex")
    megabytes = 2 if is_postgres(url) else 4
    words = (f"w{number % 50_000:x}" for number in range(180_000 * megabytes))
    text = " ".join(words) + " the needle kingsbury-4711 \x00 é"
    assert len(text.encode()) > 950_000 * megabytes
    said = memory.remember(text, metadata={"again": text[:20_000]})
    memory.remember("another one")
    assert memory.get(said.id).text == text
    assert [one.record.id for one in memory.search("kingsbury")] == [said.id]
    plan = memory.plan("kingsbury-4711", suspects=False)
    assert [one.id for one in plan.matches] == [said.id]
    assert memory.scan("kingsbury-4711", files=False).places[0].ids == (said.id,)
    receipt = memory.forget(plan, scrub=True)
    assert receipt.level == "scrubbed"
    assert memory.scan("kingsbury-4711").clean
    assert memory.verify().ok


def test_many_drafts_with_odd_texts_come_back_in_order(memory: Memory) -> None:
    texts = list(SAMPLES.values())
    made = memory.remember_many([Draft(text, thread="t", framework_id=text) for text in texts])
    again = memory.remember_many([Draft(text, thread="t", framework_id=text) for text in texts])
    assert [one.id for one in made] == [one.id for one in again]
    assert [one.text for one in memory.history("t")] == texts


def test_the_parts_of_any_text_joined_are_the_text(memory: Memory) -> None:
    for number, text in enumerate([*SAMPLES.values(), "", " ", "One. Two!\x00 Three? \ud800."]):
        parts = memory.remember_parts(text, thread=f"t{number}")
        assert "".join(one.text for one in parts) == text


def characters() -> Iterator[str]:
    """Yield every code point there is, ten thousand to a text."""
    for start in range(0, 0x110000, 10_000):
        yield "".join(map(chr, range(start, min(start + 10_000, 0x110000))))


@pytest.mark.long
def test_every_code_point_can_be_stored(url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(url, embedder=None, scrub_below=0).workspace("alex")
    texts = list(characters())
    made = memory.remember_many([Draft(text, subject=text[:50]) for text in texts])
    assert [one.text for one in memory.export()] == texts
    memory.forget(ids=[one.id for one in made])
    assert memory.verify().ok
    with memory._engine.database.transaction(memory._engine.scope("alex")) as tx:
        terms = distinct("".join(texts[:20]))[:2_000]
        assert not any(tx.with_terms(1, terms).values())
