"""Retention is forgetting: what has expired is out at once, and a sweep takes it with all of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dellm import Draft, InvalidInput, Memory
from dellm.records import from_micros

DAY = 24 * 3600 * 1_000_000
START = 1_900_000_000_000_000


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> int:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory], clock: Clock) -> Memory:
    return opened(url, clock=clock, scrub_below=0).workspace("alex")


def texts(memory: Memory) -> list[str]:
    return [one.text for one in memory.export()]


def test_what_has_expired_is_out_of_every_read_before_any_sweep(
    memory: Memory, clock: Clock
) -> None:
    said = memory.remember("the visitor code is 4711", thread="t", retention_until=START + DAY)
    memory.remember("the door is green", thread="t")
    memory.index()
    clock.at += DAY
    assert texts(memory) == ["the door is green"]
    assert [one.text for one in memory.history("t")] == ["the door is green"]
    assert said.id not in memory.context("visitor code", k=5, threshold=-1.0).ids
    assert memory.search("visitor", by="keyword") == []
    assert memory.expiry.due() == 1


def test_a_sweep_takes_what_was_made_from_it_and_nothing_else(memory: Memory, clock: Clock) -> None:
    said = memory.remember("the visitor code is 4711", thread="t", retention_until=START + DAY)
    memory.record("Noted: 4711.", context=[said.id], thread="t")
    memory.remember("the door is green", thread="t")
    later = memory.remember("tomorrow's code is 4712", retention_until=START + 2 * DAY)
    before = {one.id: one for one in memory.export()}
    clock.at += DAY
    swept = memory.expiry.sweep()
    assert (swept.expired, swept.gone, swept.kept, len(swept.receipts)) == (2, 2, 0, 1)
    receipt = memory.receipt(swept.receipts[0])
    assert receipt.ids == (1, 2)
    assert receipt.level == "scrubbed"
    assert memory.scan("4711").clean
    assert {one.id: one for one in memory.export()} == {id_: before[id_] for id_ in (3, later.id)}
    assert memory.verify().ok
    assert memory.expiry.next() == from_micros(START + 2 * DAY)


def test_a_sweep_of_nothing_does_nothing(memory: Memory) -> None:
    assert memory.expiry.next() is None
    memory.remember("the door is green")
    swept = memory.expiry.sweep()
    assert (swept.expired, swept.gone, swept.receipts) == (0, 0, ())
    assert memory.ledger() == []


def test_what_was_rebuilt_stays_and_says_it_no_more(memory: Memory, clock: Clock) -> None:
    @memory.derivation("list", version=1)
    def listed(sources: list[Any]) -> str:
        return "list: " + "; ".join(one.text for one in sources)

    first = memory.remember("the code is 4711", retention_until=START + DAY)
    second = memory.remember("the door is green")
    made = memory.derive("list", sources=[first.id, second.id])
    assert made.retention_until == first.retention_until
    clock.at += DAY
    assert texts(memory) == ["the door is green"]
    swept = memory.expiry.sweep()
    assert memory.receipt(swept.receipts[0]).rebuilt == {made.id: made.id + 1}
    assert texts(memory) == ["the door is green", "list: the door is green"]
    assert memory.get(made.id + 1).retention_until is None
    assert memory.scan("4711").clean


def test_a_sweep_goes_on_where_it_was_broken_off(memory: Memory, clock: Clock) -> None:
    ends = [START + DAY + number % 7 for number in range(25)]
    memory.remember_many([Draft(f"note {end}", retention_until=end) for end in ends])
    clock.at += 2 * DAY
    assert memory.expiry.sweep(most=10, scrub=False).expired == 10
    assert memory.expiry.due() == 15
    seen: list[tuple[int, int]] = []
    swept = memory.expiry.sweep(scrub=False, progress=lambda *done: seen.append(done))
    assert (swept.gone, memory.expiry.due()) == (15, 0)
    assert seen == [(15, 15)]


def test_what_expired_may_be_said_again(memory: Memory, clock: Clock) -> None:
    memory.guards.always()
    memory.remember("my code is 4711-alpha", retention_until=START + DAY)
    clock.at += DAY
    memory.expiry.sweep()
    again = memory.remember("my code is 4711-alpha")
    assert memory.get(again.id).text == "my code is 4711-alpha"


def test_a_thread_of_which_a_part_expired_is_still_read(memory: Memory, clock: Clock) -> None:
    call = memory.remember("what is my code?", thread="t", retention_until=START + DAY)
    memory.record("It is 4711.", context=[call.id], thread="t")
    rest = memory.remember("and the door?", thread="t")
    memory.record("Green.", context=[rest.id], thread="t")
    clock.at += DAY
    memory.expiry.sweep()
    assert [one.text for one in memory.history("t")] == ["and the door?", "Green."]


def test_several_processes_sweep_at_once(url: str, opened: Callable[..., Memory]) -> None:
    past = START - 100 * DAY
    memory = opened(url, scrub_below=0, embedder=None).workspace("alex")
    memory.remember_many(
        [
            Draft(f"note {number}", retention_until=past, created_at=past - 1)
            for number in range(2_500)
        ]
    )
    memory.remember("kept")
    child = (
        "import sys; from dellm import Memory\n"
        "with Memory.open(sys.argv[1], embedder=None, scrub_below=0, "
        f"clock=lambda: {START}) as memory:\n"
        "    print(memory.workspace('alex').expiry.sweep(scrub=False).gone)\n"
    )
    run = [sys.executable, "-c", child, url]
    children = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [one.communicate()[0] for one in children]
    assert [one.returncode for one in children] == [0, 0, 0]
    assert len(said) == 3
    assert texts(memory) == ["kept"]
    taken = [id_ for receipt in memory.receipts() for id_ in receipt.ids]
    assert sorted(taken) == list(range(1, 2_501))
    assert memory.verify().ok


def test_a_sweep_in_the_background_ends_when_it_is_told_to(memory: Memory, clock: Clock) -> None:
    memory.remember("the code is 4711", retention_until=START + DAY)
    clock.at += DAY
    stop = memory.expiry.every(3600)
    for _ in range(200):
        if not memory.expiry.due():
            break
        time.sleep(0.05)
    stop()
    assert memory.expiry.due() == 0
    with pytest.raises(InvalidInput):
        memory.expiry.every(0)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 30), max_size=3)), max_size=25)
)
def test_what_is_left_is_what_no_expired_record_led_to(
    said: list[tuple[int, list[int]]],
) -> None:
    """Against brute force: days until a record expires (0: never), and what it was made from."""
    clock = Clock()
    with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        made: dict[int, tuple[int, set[int]]] = {}
        for number, (days, sources) in enumerate(said):
            until = START + days * DAY if days else None
            context = sorted({1 + one for one in sources if one < number})
            id_ = memory.record(f"note {number}", context=context, retention_until=until).id
            ends = [days, *(made[one][0] for one in context)]
            made[id_] = (min((one for one in ends if one), default=0), set(context))
        for day in range(1, 7):
            clock.at = START + day * DAY
            memory.expiry.sweep()
            gone = {id_ for id_, (days, _) in made.items() if days and days <= day}
            while more := {id_ for id_, (_, of) in made.items() if of & gone} - gone:
                gone |= more
            assert {one.id for one in memory.export()} == made.keys() - gone
            assert memory.verify().ok
