"""Values that a description names itself, found from a request in the user's words."""

from __future__ import annotations

import pytest

from dellm import Memory, wishes
from dellm.requests import RequestKind, recognise
from dellm.values import named_parts, without_pointing

THREAD = "main"


@pytest.mark.parametrize(
    ("description", "value"),
    [
        ("the current helper phrase cinder soft", "cinder soft"),
        ("the old bridge label bridge-44", "bridge-44"),
        ("my alias Iris", "Iris"),
        ("the exact 6:35 PM minute", "6:35 PM"),
        ("the exact layer 7:45 AM", "7:45 AM"),
        ("the room 12 note", "room 12"),
        ("line 415-555-0184 extension 12", "extension 12"),
        ("the note tin box on the sill", "tin box on the sill"),
        ("the key location behind the blue bin by the gate", "blue bin by the gate"),
    ],
)
def test_what_stands_after_a_noun_for_a_kind_of_thing_is_the_value(
    description: str, value: str
) -> None:
    assert named_parts(description) == (value,)


@pytest.mark.parametrize(
    "description",
    [
        "my phone number",
        "the old code",
        "my password that I told you",
        "the name of my sister",
        "my room upstairs",
        "my trip to Rome",
        "my lunch at 3:00 PM",
        "my place at home",
        "",
    ],
)
def test_a_description_that_names_no_value_gives_none(description: str) -> None:
    assert named_parts(description) == ()


def test_each_value_of_a_description_is_named() -> None:
    assert named_parts("the minute 6:10 PM and exact location north garage ramp") == (
        "north garage ramp",
        "6:10 PM",
    )
    assert named_parts("the layer 7:45 AM at the old mill gate") == ("7:45 AM", "old mill gate")
    assert named_parts("the phrase salt and pepper") == ("salt and pepper",)


def test_words_that_only_point_are_left_off() -> None:
    assert without_pointing("the exact south courtyard bench") == "south courtyard bench"
    assert without_pointing("the old") == ""


@pytest.mark.parametrize(
    ("request_", "said", "kept"),
    [
        (
            "Delete the old helper phrase cinder soft.",
            ["The phrase is cinder soft.", "Say 'cinder soft' at the door."],
            "The phrase for the gate comes later.",
        ),
        (
            "Please forget the exact south courtyard bench.",
            ["Meet me at the south courtyard bench."],
            "The bench in the hall is new.",
        ),
        (
            'Delete the note "Project Anchor = BlueTide Maritime" from memory.',
            ["For Anchor, the customer is BlueTide Maritime."],
            "Anchor starts on Monday.",
        ),
        (
            "Please delete the Willow House desk number, door code A17, and the alias Mara.",
            ["Willow House desk: 628-555-0191.", "The door opens with A17.", "Ask for Mara."],
            "Willow House has a garden.",
        ),
    ],
)
def test_a_request_that_names_a_value_finds_the_records_that_hold_it_without_guessing(
    url: str, request_: str, said: list[str], kept: str
) -> None:
    with Memory.open(url, embedder=None) as memory:
        ids = [memory.remember(text, thread=THREAD).id for text in said]
        memory.remember(kept, thread=THREAD)
        request = recognise(request_)
        assert request.kind is RequestKind.FORGET
        wish = wishes.wish_of(memory, request, THREAD)
        plan = wishes.plan_of(memory, wish)
        assert plan is not None
        assert [one.id for one in plan.matches] == ids
        assert not wish.guessed


@pytest.mark.parametrize(
    ("request_", "rest"),
    [
        ("Delete my home address: 12 Oak Street.", ""),
        ("Delete my nickname: Biscuit the Third. Thanks", "Thanks"),
        ("Delete my address: I moved.", "I moved."),
    ],
)
def test_what_is_listed_after_a_colon_is_not_kept_as_the_rest_of_the_message(
    request_: str, rest: str
) -> None:
    assert recognise(request_).rest == rest


@pytest.mark.parametrize(
    "news",
    [
        "Deleted temporary backup contact: Willow House desk 628-555-0191, ask for Mara.",
        "Deletion request recorded for the Willow House desk 628-555-0191 and alias Mara.",
        "The old Willow House desk 628-555-0191 and alias Mara are deleted.",
    ],
)
def test_a_deletion_that_is_reported_offers_each_value_it_names(url: str, news: str) -> None:
    with Memory.open(url, embedder=None) as memory:
        number = memory.remember("Call 628-555-0191 first.", thread=THREAD)
        memory.remember("The desk opens at nine.", thread=THREAD)
        request = recognise(news)
        assert request.kind is RequestKind.OFFER
        assert request.rest == news
        plan = wishes.plan_of(memory, wishes.wish_of(memory, request, THREAD))
        assert plan is not None
        assert [one.id for one in plan.matches] == [number.id]


@pytest.mark.parametrize(
    "text",
    ["I deleted the app yesterday.", "Deleted?", "Was it deleted?", "Deleted values stay out."],
)
def test_what_somebody_did_to_something_else_is_no_offer(text: str) -> None:
    assert recognise(text).kind is RequestKind.NONE
