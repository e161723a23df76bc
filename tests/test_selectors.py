"""What each selector takes, and what none of them may: invariant I2 at its entrance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dellm import (
    EmbedderError,
    InvalidInput,
    Memory,
    NothingMatched,
    PreviewRequired,
    Record,
    SelectorError,
)

NOON = 1_700_000_000_000_000  # microseconds


@pytest.fixture
def stocked(memory: Memory) -> Memory:
    """A workspace whose records carry values in every place a record has."""
    tell = memory.remember
    tell("I am John Smith and I live in Paris", thread="chat-1", metadata={"mood": "calm"})
    tell("Johnson and Johnson make plasters", thread="chat-1")
    tell("call me at (212) 867-5309 or later", thread="chat-2")
    tell("so it is +1 212 867 5309, he said", role="assistant", thread="chat-2")
    tell("weather report", kind="document", role="tool", payload=b'{"city": "Paris"}')
    tell("lookup done", role="tool", metadata={"result": {"places": ["Paris"]}})
    tell("a trip", subject="Paris", created_at=NOON)
    tell("my favourite colour is teal", kind="fact", created_at=NOON + 1)
    memory.workspace("other").remember("I am John Smith and I live in Paris")
    return memory


def is_tool(record: Record) -> bool:
    return record.role == "tool"


CASES: list[tuple[dict[str, Any], list[int]]] = [
    ({"what": "John"}, [1]),
    ({"what": "Johnson"}, [2]),
    ({"what": "john smith"}, [1]),
    ({"what": "I live in Paris"}, [1]),
    ({"quote": "live in Paris"}, [1]),
    ({"what": "Par"}, []),
    ({"value": "Paris"}, [1, 5, 6, 7]),
    ({"what": "PARIS"}, [1, 5, 6, 7]),
    ({"value": "212.867.5309"}, [3, 4]),
    ({"value": "+12128675309"}, [3, 4]),
    ({"what": "(212) 867 53 09"}, [3, 4]),
    ({"value": "212 867 5308"}, []),
    ({"keyword": "paris live"}, [1]),
    ({"keyword": "Johnson"}, [2]),
    ({"keyword": "paris teal"}, []),
    ({"keyword": "john"}, [1]),
    ({"thread": "chat-2"}, [3, 4]),
    ({"thread": "chat"}, []),
    ({"thread": "chat-%"}, []),
    ({"thread": "chat_1"}, []),
    ({"thread": "chat-2", "where": {"role": "user"}}, [3]),
    ({"thread": "chat-1", "value": "Paris"}, [1]),
    ({"thread": "chat-1", "keyword": "paris"}, [1]),
    ({"where": {"kind": "document"}}, [5]),
    ({"where": {"role": "tool"}}, [5, 6]),
    ({"where": {"mood": "calm"}}, [1]),
    ({"where": {"subject": "Paris"}}, [7]),
    ({"where": {"mood": "wild"}}, []),
    ({"where": {"before": NOON + 1}}, [7]),
    ({"where": {"after": NOON + 1, "kind": "fact"}}, [8]),
    ({"where": is_tool}, [5, 6]),
    ({"where": is_tool, "value": "Paris", "ids": [6, 7]}, [6]),
    ({"ids": [3, 1, 3]}, [1, 3]),
    ({"ids": [3, 999]}, [3]),
    ({"ids": [999]}, []),
    ({"ids": [0, -1]}, []),
    ({"ids": [1, 2, 3], "value": "Paris"}, [1]),
    ({"value": "Paris", "exclude": [5]}, [1, 6, 7]),
    ({"value": "Paris", "include": [8]}, [1, 5, 6, 7, 8]),
    ({"value": "Paris", "include": [999]}, [1, 5, 6, 7]),
    ({"value": "Paris", "include": [8], "exclude": [8]}, [1, 5, 6, 7]),
    ({"include": [8]}, [8]),
    ({"everything": True}, [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"everything": True, "exclude": [8]}, [1, 2, 3, 4, 5, 6, 7]),
]


def test_each_selector_takes_exactly_what_it_says(stocked: Memory) -> None:
    for selection, expected in CASES:
        plan = stocked.plan(**selection)
        assert [one.id for one in plan.matches] == expected, selection
        assert bool(plan) == bool(expected)


WRONG: list[tuple[dict[str, Any], type[Exception]]] = [
    ({}, SelectorError),
    ({"what": ""}, SelectorError),
    ({"what": " \n\t"}, SelectorError),
    ({"quote": ""}, SelectorError),
    ({"value": "\u200b"}, SelectorError),
    ({"what": "%"}, SelectorError),
    ({"what": "*"}, SelectorError),
    ({"what": "_"}, SelectorError),
    ({"what": "%%_*?"}, SelectorError),
    ({"what": "..."}, SelectorError),
    ({"keyword": "%"}, SelectorError),
    ({"keyword": " * "}, SelectorError),
    ({"meaning": " "}, SelectorError),
    ({"description": ""}, SelectorError),
    ({"description": "the weather"}, SelectorError),
    ({"ids": []}, SelectorError),
    ({"where": {}}, SelectorError),
    ({"thread": ""}, SelectorError),
    ({"thread": "  "}, SelectorError),
    ({"exclude": [1]}, SelectorError),
    ({"aliases": True}, SelectorError),
    ({"threshold": 0.5}, SelectorError),
    ({"everything": False}, SelectorError),
    ({"everything": True, "ids": [1]}, SelectorError),
    ({"everything": True, "what": "Paris"}, SelectorError),
    ({"everything": True, "thread": "chat-1"}, SelectorError),
    ({"everything": True, "where": {"role": "user"}}, SelectorError),
    ({"everything": True, "include": [1]}, SelectorError),
    ({"where": lambda _: True}, SelectorError),
    ({"what": 5}, InvalidInput),
    ({"quote": b"Paris"}, InvalidInput),
    ({"thread": 5}, InvalidInput),
    ({"ids": ["1"]}, InvalidInput),
    ({"ids": [True]}, InvalidInput),
    ({"ids": [1.0]}, InvalidInput),
    ({"meaning": "Paris", "threshold": 2}, InvalidInput),
    ({"what": "Paris", "nonsense": 1}, InvalidInput),
    ({"what": "Paris", "mode": "burn"}, InvalidInput),
]


def test_an_empty_vague_or_contradictory_selector_is_an_error_and_changes_nothing(
    stocked: Memory,
) -> None:
    before = list(stocked.export())
    for selection, error in WRONG:
        with pytest.raises(error) as refused:
            stocked.plan(**selection)
        assert "Paris" not in str(refused.value), selection
        guess = isinstance(selection.get("description"), str) and selection["description"]
        with pytest.raises(PreviewRequired if guess else error) as refused:
            stocked.forget(**selection)
        assert "Paris" not in str(refused.value), selection
    assert list(stocked.export()) == before
    assert stocked.receipts() == []


def test_a_keyword_or_predicate_that_takes_every_record_is_refused(memory: Memory) -> None:
    for name in ("Ann", "Ben", "Cas"):
        memory.remember(f"{name} likes melons")
    for selection in ({"keyword": "melons"}, {"where": {"role": "user"}}):
        with pytest.raises(SelectorError):
            memory.plan(**selection)
    assert len(memory.plan(keyword="melons", exclude=[3], ids=[1, 2])) == 2
    memory.remember("plums")
    assert memory.plan(keyword="melons").ids == (1, 2, 3)


def test_ids_of_another_workspace_name_nothing_there(stocked: Memory) -> None:
    other = stocked.workspace("other")
    own = other.remember("kept")
    assert stocked.get(8).text != own.text
    assert other.plan(ids=[8]).ids == ()
    with pytest.raises(NothingMatched):
        other.forget(ids=[3, 8])
    assert len(list(stocked.export())) == 8


def test_a_described_value_is_taken_from_its_owner_and_from_whatever_else_carries_it(
    memory: Memory,
) -> None:
    memory.remember("My phone number is (212) 867-5309, by the way")
    memory.remember("Ann's phone number is 212-555-0147 now")
    memory.remember("dialled +12128675309", role="tool")
    memory.remember("I never gave a number")
    mine = memory.plan(description="my phone number")
    assert [one.id for one in mine.matches] == [1, 3]
    hers = memory.plan(description="Ann's phone number")
    assert [one.id for one in hers.matches] == [2]
    assert memory.plan(description="Ben's phone number").ids == ()


def test_a_stated_alias_is_a_suspect_and_is_taken_only_when_asked_for(memory: Memory) -> None:
    memory.remember("John Smith, also known as Jack Frost, called twice.")
    memory.remember("Jack Frost likes melons")
    memory.remember("plums are ripe")
    plan = memory.plan("John Smith")
    assert plan.ids == (1,)
    assert [one.id for one in plan.suspects] == [2]
    wider = memory.plan("John Smith", aliases=True)
    assert wider.ids == (1, 2)
    memory.forget(plan)
    assert [one.id for one in memory.export()] == [2, 3]


def test_a_guess_is_never_executed_without_a_plan(stocked: Memory) -> None:
    for guess in (
        {"meaning": "where I live"},
        {"description": "my phone number"},
        {"what": "John Smith", "aliases": True},
    ):
        with pytest.raises(PreviewRequired):
            stocked.forget(**guess)
    assert len(list(stocked.export())) == 8


def test_meaning_takes_what_is_above_the_threshold_and_nothing_else(memory: Memory) -> None:
    memory.remember("the falcon nests upon the tower")
    memory.remember("a falcon nests upon a tower")
    memory.remember("tax forms are due in april")
    assert memory.plan(meaning="falcon nests upon tower", threshold=0.5).ids == (1, 2)
    assert memory.plan(meaning="falcon nests upon tower", threshold=1.0).ids == ()
    with pytest.raises(SelectorError):
        memory.plan(meaning="falcon nests upon tower", threshold=-1)


def test_meaning_needs_an_embedder(url: str, opened: Callable[..., Memory]) -> None:
    bare = opened(url, embedder=None)
    bare.remember("I live in Paris")
    bare.remember("melons")
    assert bare.plan("Paris").ids == (1,)
    with pytest.raises(EmbedderError):
        bare.plan(meaning="Paris")


def test_suppressed_and_expired_records_are_found_by_every_selector(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, clock=lambda: NOON)
    memory.remember("I live in Paris", thread="chat")
    memory.remember("Paris in spring", retention_until=NOON - 1)
    memory.remember("melons")
    memory.forget(ids=[1], mode="suppress")
    for selection in ({"what": "Paris"}, {"keyword": "paris"}, {"ids": [1, 2]}):
        assert memory.plan(**selection).ids == (1, 2)
    assert memory.plan(thread="chat").ids == (1,)


def test_an_earlier_predicate_does_not_answer_for_another(memory: Memory) -> None:
    memory.remember("one")
    memory.remember("two")
    memory.forget(where=lambda record: record.text == "one")
    with pytest.raises(NothingMatched):
        memory.forget(where=lambda record: record.text == "three")
