"""Putting a record right: the new text in its place, what was made from the old one gone or made anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dellm import InvalidInput, Memory, NothingMatched, Plan, SelectorError


def texts(memory: Memory) -> list[str]:
    return [one.text for one in memory.export()]


@pytest.fixture
def home(memory: Memory) -> Memory:
    """A memory that knows a home, a reply made from it, a list of it, and something else."""

    @memory.derivation("list", version=1)
    def listed(sources: list[Any]) -> str:
        return "list: " + "; ".join(one.text for one in sources)

    said = memory.remember(
        "I live in Paris",
        thread="t",
        subject="ann",
        purpose="scheduling",
        metadata={"city": "Paris", "zone": 1},
    )
    memory.record("Paris is lovely.", context=[said.id], thread="t")
    tea = memory.remember("I like tea", thread="t")
    memory.derive("list", sources=[said.id, tea.id])
    return memory


def test_the_new_text_stands_in_the_place_of_the_old_one(home: Memory) -> None:
    tea = home.get(3)
    receipt = home.correct(1, "I live in Oslo")
    new = home.get(receipt.redacted[1])
    assert (new.text, new.thread, new.place, new.subject) == ("I live in Oslo", "t", 1, "ann")
    assert (new.purpose, new.metadata) == ("scheduling", {"zone": 1})
    assert [one.text for one in home.history("t")] == ["I live in Oslo", "I like tea"]
    assert home.get(3) == tea
    assert home.scan("Paris", files=False).clean
    assert home.verify().ok


def test_what_can_be_made_anew_is_made_from_the_new_text(home: Memory) -> None:
    receipt = home.correct(1, "I live in Oslo")
    new = receipt.rebuilt[4]
    assert home.get(new).text == "list: I live in Oslo; I like tea"
    assert home.context_of(new) == [receipt.redacted[1], 3]
    assert set(receipt.ids) == {1, 2, 4}


def test_a_plan_shows_what_putting_right_takes(home: Memory) -> None:
    plan = home.plan(ids=[1], corrected={1: "I live in Oslo"})
    assert plan.ids == (1, 2, 4)
    assert [one.id for one in plan.rebuilds] == [4]
    assert "Oslo" not in str(plan.to_json())
    with pytest.raises(InvalidInput):
        Plan.from_json(plan.to_json())
    receipt = home.forget(plan)
    assert home.get(receipt.redacted[1]).text == "I live in Oslo"


def test_a_derived_record_is_put_right_and_keeps_its_sources(home: Memory) -> None:
    receipt = home.correct(2, "Noted.")
    new = receipt.redacted[2]
    assert home.context_of(new) == [1]
    assert home.get(1).text == "I live in Paris"
    assert [one.text for one in home.history("t")] == ["I live in Paris", "Noted.", "I like tea"]
    home.forget(ids=[1])
    assert "Noted." not in texts(home)


def test_doing_it_again_gives_the_same_receipt(home: Memory) -> None:
    receipt = home.correct(1, "I live in Oslo")
    assert home.correct(1, "I live in Oslo").number == receipt.number
    assert texts(home).count("I live in Oslo") == 1


def test_the_new_text_passes_what_every_write_passes(home: Memory) -> None:
    receipt = home.correct(1, "my key is sk-proj-" + "a1B2" * 12)
    assert "sk-proj" not in home.get(receipt.redacted[1]).text


def test_what_cannot_be_put_right_is_refused(home: Memory) -> None:
    with pytest.raises(NothingMatched):
        home.correct(99, "text")
    for wrong in ("", " ", 3, None):
        with pytest.raises(InvalidInput):
            home.correct(1, wrong)  # type: ignore[arg-type] # that is what is tried
    with pytest.raises(InvalidInput):
        home.forget("Paris", corrected={1: "text"})
    with pytest.raises(InvalidInput):
        home.forget(ids=[3], corrected={1: "text"})
    with pytest.raises(SelectorError):
        home.forget(ids=[1], corrected={1: "text"}, mode="suppress")
    assert texts(home)[0] == "I live in Paris"


def test_a_checkpoint_shows_the_new_text(home: Memory) -> None:
    """What refers to the old record refers to the new one."""
    home.remember("first", thread="u", framework_id="m1")
    receipt = home.correct(5, "second")
    new = home.get(receipt.redacted[5])
    assert (new.framework_id, new.version, new.text) == ("m1", 2, "second")
    with pytest.raises(Exception, match="erased"):
        home.remember("first", thread="u", framework_id="m1")


def test_putting_right_is_kept_from_the_word_of_a_tool(
    home: Memory, opened: Callable[..., Memory]
) -> None:
    from dellm import PolicyRefused

    with pytest.raises(PolicyRefused):
        home.correct(1, "I live in Oslo", by="tool")
    assert texts(home)[0] == "I live in Paris"
