"""A phrase means the records a developer would name: all of them, and none beside them."""

from __future__ import annotations

import pytest

from dellm import Memory, about, scripts, subjects
from dellm.errors import SelectorError

# (facts, phrase, places of the facts that it means): what any spelling, script or wording must find
WHOLE = {
    "a value beside a longer one": (
        ["alice@acme.io pays.", "alice.smith@acme.io pays.", "alice@acme.io.uk pays."],
        "alice@acme.io bill",
        {0},
    ),
    "a mailbox with a tag": (
        ["Write to eva+news@mail.org.", "Eva is eva@mail.org.", "Eve is eve@mail.org."],
        "eva@mail.org",
        {0, 1},
    ),
    "a part of a code": (
        ["Token 77aa88bb-1c2d-4e5f.", "Token 99aa88bb-1c2d-4e5f.", "It rained."],
        "token 77aa88bb",
        {0},
    ),
    "a code, not a longer one that begins so": (
        ["Server db01 is full.", "Server db01-replica is empty.", "It rained."],
        "server db01",
        {0},
    ),
    "a time of the day": (
        ["The dentist is at 3 PM.", "Entered as 15:00.", "Lunch is at 3 AM."],
        "dentist at 15:00",
        {0, 1},
    ),
    "a short number with its word": (
        ["Her locker PIN is 4410.", "She filed 4410 forms.", "It rained."],
        "4410 locker PIN",
        {0},
    ),
    "a name, not a word like it": (
        ["Frank sings.", "A frank talk was had.", "Frankfurt is far.", "We met Frank."],
        "everything about Frank the singer",
        {0, 3},
    ),
    "a name in another script": (
        ["Ольга Смирнова moved in.", "Olga Smirnova pays late.", "Пётр Волков moved out."],
        "tenant Olga Smirnova",
        {0, 1},
    ),
    "a name with and without accents": (
        ["Carlos Núñez runs the lab.", "Carlos Nunez is ill.", "Carla Nunes is well."],
        "Carlos Nunez",
        {0, 1},
    ),
    "another name that a record states": (
        ["Falcon ships.", "Falcon, also known as Bird, leads.", "Bird was late.", "A bird sang."],
        "project Falcon",
        {0, 1, 2},
    ),
    "what refers back": (
        ["Customer 李娜 called.", "The same customer, written Li Na, paid.", "It rained."],
        "customer Li Na",
        {0, 1},
    ),
    "what another refers back to": (
        ["The site is in Kyiv.", "Old letters use the spelling Kiev.", "Lviv has a site too."],
        "everything about Kyiv",
        {0, 1},
    ),
}


@pytest.mark.parametrize("case", WHOLE)
def test_a_phrase_means_every_record_about_it_and_no_other(memory: Memory, case: str) -> None:
    facts, phrase, places = WHOLE[case]
    ids = [memory.remember(fact, thread="t").id for fact in facts]
    found = about.meant(memory, phrase)
    assert not found.clauses
    assert set(found.ids) == {ids[place] for place in places}


def test_of_two_facts_in_a_sentence_only_the_one_meant_goes(memory: Memory) -> None:
    memory.remember("Maria teaches yoga and plays the violin", thread="t")
    memory.remember("Maria has a brother called Tom", thread="t")
    for plan in about.plans(memory, "Maria's violin"):
        memory.forget(plan, unit="clause")
    assert [one.text for one in memory.history("t")] == [
        "Maria teaches yoga",
        "Maria has a brother called Tom",
    ]


def test_the_fact_that_stays_keeps_the_subject_of_the_one_that_goes(memory: Memory) -> None:
    memory.remember("Nora lives in Lima and works as a nurse.", thread="t")
    for plan in about.plans(memory, "where Nora lives"):
        memory.forget(plan, unit="clause")
    assert [one.text for one in memory.history("t")] == ["Nora works as a nurse."]


def test_everything_about_someone_takes_both_facts_of_a_sentence(memory: Memory) -> None:
    memory.remember("Uma works in the lab and ships services.", thread="t")
    kept = memory.remember("Victor works in the lab.", thread="t").id
    (plan,) = about.plans(memory, "everything about Uma")
    memory.forget(plan)
    assert [one.id for one in memory.history("t")] == [kept]


def test_a_phrase_that_nothing_is_about_means_nothing(memory: Memory) -> None:
    assert not about.meant(memory, "everything about Frank")
    assert about.plans(memory, "phone 415-555-0123") == []


def test_only_the_thread_asked_for_is_looked_at(memory: Memory) -> None:
    memory.remember("Call 415-555-0123.", thread="a")
    here = memory.remember("Ring (415) 555-0123.", thread="b").id
    assert about.meant(memory, "phone 415-555-0123", thread="b").ids == (here,)


def test_a_phrase_without_a_word_is_refused(memory: Memory) -> None:
    with pytest.raises(SelectorError):
        about.meant(memory, " ... ")


def test_no_clause_is_shown_where_what_was_found_is_printed(memory: Memory) -> None:
    memory.remember("Maria teaches yoga and plays the violin", thread="t")
    found = about.meant(memory, "Maria's violin")
    assert found.clauses
    assert "violin" not in repr(found)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Zhang Wei", "客户 张伟 付款"),
        ("Kim Minji", "User 김민지 logged in"),
        ("Fatima Hassan", "المريضة فاطمة حسن"),
        ("David Cohen", "Patient דוד כהן"),
        ("Иван Петров", "Customer Ivan Petrov"),
    ],
)
def test_a_name_is_recognised_in_another_script(name: str, text: str) -> None:
    assert scripts.named_in(name, text) is not None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Zhang Wei", "Customer 李娜"),
        ("Kim Minji", "User 박지수"),
        ("Ivan Petrov", "Customer Сергей Волков"),
        ("Ivan Petrov", "Customer Ivan Petrov"),  # the same script: no matter of this function
        ("Al", "العميل"),
    ],
)
def test_another_name_is_not_taken_for_it(name: str, text: str) -> None:
    assert scripts.named_in(name, text) is None


def test_a_kind_beside_a_value_is_not_a_value() -> None:
    assert subjects.read("case_id 12345 district court").values == ("12345",)
    assert subjects.read("handle dora_writes").values == ("dora_writes",)


def test_a_year_is_a_word_and_no_number() -> None:
    read = subjects.read("holiday party 2024")
    assert (read.values, read.numbers, read.words) == ((), (), ("holiday", "party", "2024"))


def test_noon_and_midnight_are_told_apart() -> None:
    assert subjects.read("call at 12 am / 12 pm").times == (0, 720)


def test_a_record_without_a_word_that_says_anything_can_be_looked_at(memory: Memory) -> None:
    record = memory.remember("the and, and the is; it was and this has been of the")
    found = about.meant(memory, "the phone of Frank")  # all there is to guess at
    assert {id_ for id_, _ in found.clauses} == {record.id}
    assert found.ids == ()
