"""What a request describes without saying it is shown beside the plan, and taken only when chosen."""

from __future__ import annotations

import pytest

from dellm import Memory
from dellm.requests import recognise
from dellm.suggesting import suggested, with_suggestions
from dellm.wishes import named_in


@pytest.fixture
def told(memory: Memory) -> Memory:
    """A memory that knows a house, its number and how to ask there."""
    memory.remember("The Maple House desk is at 415-555-0186.")
    memory.remember("Ring 415-555-0186 after lunch.")
    memory.remember("At the desk, ask for Rosa after six.")
    memory.remember("My dentist is at 415-555-0111.")
    return memory


def suggested_by(memory: Memory, text: str) -> set[str]:
    """The texts of the records that a request suggests."""
    found: set[int] = set()
    for way in suggested(memory, recognise(text)):
        found.update(one.id for one in memory.plan(suspects=False, **way).matches)
    return {memory.get(id_).text for id_ in found}


def test_a_name_and_a_kind_of_value_suggest_the_value_wherever_it_stands(told: Memory) -> None:
    found = suggested_by(told, "Forget the old Maple House desk number.")
    assert "Ring 415-555-0186 after lunch." in found
    assert "My dentist is at 415-555-0111." not in found


def test_a_described_instruction_suggests_the_clause_that_says_it(told: Memory) -> None:
    found = suggested_by(told, "Delete the note about asking for Rosa.")
    assert found == {"At the desk, ask for Rosa after six."}


def test_a_value_that_is_named_suggests_nothing_more(told: Memory) -> None:
    assert suggested_by(told, "Delete the code KX-4471 from memory.") == set()


def test_what_is_to_stay_is_not_suggested(told: Memory) -> None:
    request = recognise("Delete the note about asking for Rosa, but keep ask for Rosa after six.")
    assert request.keep
    assert suggested(told, request) == ()


def test_a_suggestion_is_a_suspect_of_the_plan_and_not_taken(told: Memory) -> None:
    plan = told.plan("dentist", suspects=False)
    shown = with_suggestions(
        told, plan, suggested(told, recognise("Delete the note about Rosa asking."))
    )
    asked = next(one.id for one in told.export() if "Rosa" in one.text)
    assert [one.id for one in shown.suspects] == [asked]
    assert shown.digest == plan.digest
    assert "ask for Rosa" in str(shown)
    assert "Rosa" not in str(shown.to_json())
    told.forget(shown, scrub=False)
    assert "Rosa" in told.get(asked).text


def test_a_plan_without_suggestions_is_left_as_it_is(told: Memory) -> None:
    plan = told.plan("dentist")
    assert with_suggestions(told, plan, ()) is plan


def test_what_a_request_names_is_known_whether_or_not_it_is_stored() -> None:
    assert named_in(recognise("Delete the old keypad code 2745 from memory.")) == ("2745",)
    assert named_in(recognise("Please forget my phone number.")) == ()
    assert named_in(recognise("Delete Harbor Guest Program and Nina from memory.")) == (
        "Harbor Guest Program",
        "Nina",
    )
