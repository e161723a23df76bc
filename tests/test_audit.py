"""How long the audit chain is kept, what is missed when it is cut, and traces with an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import LiteralString

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dellm import InvalidInput, Memory, NotFound, NothingMatched
from dellm.tracing import MINUTE

DAY = 24 * 3600 * 1_000_000
START = 1_700_000_000_000_000


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> int:
        return self.at

    def days(self, number: int) -> None:
        self.at += number * DAY


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory], clock: Clock) -> Iterator[Memory]:
    """A memory of ten notes whose time stands still."""
    made = opened(url, scrub_below=0, clock=clock, embedder=None).workspace("alex")
    for number in range(10):
        made.remember(f"note {number} of the kingsbury files", thread="t")
    return made


def run(memory: Memory, sql: LiteralString) -> int:
    with memory._engine.writing(memory.id) as (tx, scope):
        return tx.run(sql, ws=scope.ws)


def numbers(memory: Memory) -> list[int]:
    return [one.seq for one in memory.audit()]


def test_a_pruned_chain_verifies_from_its_anchor(memory: Memory, clock: Clock) -> None:
    for id_ in (1, 2, 3):
        memory.forget(ids=[id_], scrub=False)
        clock.days(1)
    memory.scrub()
    clock.days(30)
    late = memory.forget(ids=[4], scrub=False)
    before = memory.audit()
    assert memory.audit.prune(10) == 4
    assert numbers(memory) == [5, 6]
    assert memory.audit()[0] == before[4]
    assert memory.audit()[1].body == {"to": 4, "entries": 4, "digest": before[3].digest}
    assert memory.verify().ok
    assert memory.receipt(late.number).ids == (4,)
    with pytest.raises(NotFound, match="was pruned"):
        memory.receipt(1)
    assert memory.audit.prune(10) == 0
    assert numbers(memory) == [5, 6]
    memory.forget(ids=[5])
    assert memory.verify().ok


def test_all_of_a_chain_may_go_and_it_goes_on_from_there(memory: Memory, clock: Clock) -> None:
    memory.forget(ids=[1])
    memory.scrub()
    clock.days(400)
    assert memory.audit.prune(1) == 2
    assert numbers(memory) == [3]
    assert memory.verify().ok
    with pytest.raises(NothingMatched):
        memory.forget(ids=[1])  # its receipt is no more
    assert memory.forget(ids=[2]).number == 4
    assert memory.verify().ok


CUTS: dict[str, LiteralString] = {
    "the newest": "delete from ledger where ws = :ws and seq = 6",
    "the newest two": "delete from ledger where ws = :ws and seq >= 5",
    "all": "delete from ledger where ws = :ws",
    "one more at the anchor": "delete from ledger where ws = :ws and seq <= 5",
    "the anchor moved": "update workspace set audit_from = 3 where ws = :ws",
    "another anchor": "update workspace set audit_anchor = audit_head where ws = :ws",
    "an entry changed": "update ledger set at = at + 1 where ws = :ws and seq = 5",
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_end_is_missed(memory: Memory, clock: Clock, cut: str) -> None:
    for id_ in (1, 2, 3):
        memory.forget(ids=[id_], scrub=False)
    memory.scrub()
    clock.days(30)
    memory.forget(ids=[4], scrub=False)
    memory.audit.prune(10)
    assert memory.verify().ok
    assert run(memory, CUTS[cut]) >= 1
    assert "audit chain is broken" in str(memory.verify())


def test_what_is_still_needed_stays(memory: Memory, clock: Clock) -> None:
    hidden = memory.forget(ids=[1], mode="suppress")
    guarded = memory.forget(ids=[2], guard=True, scrub=False)
    clock.days(200)
    assert memory.audit.prune(30) == 0
    memory.restore(hidden)
    assert memory.audit.prune(30) == 1  # the guard's own stays
    assert [one.receipt for one in memory.guards()] == [guarded.number]
    memory.guards.lift(guarded)
    assert memory.audit.prune(30) == 0  # no scrub has proved it yet
    memory.scrub()
    assert memory.audit.prune(30) == 1
    assert memory.verify().ok


def test_a_suppression_still_holds_after_pruning(memory: Memory, clock: Clock) -> None:
    memory.forget(ids=[1], scrub=False)
    memory.scrub()
    hidden = memory.forget(ids=[2], mode="suppress")
    clock.days(100)
    assert memory.audit.prune(1) == 2
    assert 2 not in [one.id for one in memory.export()]
    assert memory.restore(hidden) == [2]


def test_less_than_a_day_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput):
        memory.audit.prune(0)
    with pytest.raises(InvalidInput):
        memory.audit.trace(0)
    with pytest.raises(InvalidInput):
        memory.audit.trace(7 * 24 * 60 + 1)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["erase", "suppress", "restore", "scrub", "prune"]), st.integers(0, 40)
        ),
        max_size=14,
    )
)
def test_whatever_is_pruned_when_the_chain_holds(steps: list[tuple[str, int]]) -> None:
    clock = Clock()
    with Memory.open(":memory:", embedder=None, clock=clock) as memory:
        ids = [memory.remember(f"note {number}").id for number in range(20)]
        hidden = []
        for step, days in steps:
            clock.days(days)
            if step == "erase":
                memory.forget(ids=[ids.pop()], scrub=False)
            elif step == "suppress":
                hidden.append(memory.forget(ids=[ids.pop()], mode="suppress"))
            elif step == "restore" and hidden:
                back = memory.restore(hidden[-1])
                assert back == list(hidden.pop().ids)
                ids += back
            elif step == "scrub":
                memory.scrub()
            elif step == "prune":
                memory.audit.prune(20)
            kept = numbers(memory)
            assert kept == list(range(kept[0], kept[0] + len(kept))) if kept else True
            assert memory.verify().ok
        assert sorted(one.id for one in memory.export()) == sorted(ids)


def test_contexts_are_traced_in_an_open_window_only(memory: Memory, clock: Clock) -> None:
    memory.context("kingsbury", k=2)
    assert memory.audit.traces() == []
    until = memory.audit.trace(10)
    assert until.timestamp() * 1_000_000 == START + 10 * MINUTE
    memory.context("kingsbury", k=2)
    (trace,) = memory.audit.traces()
    assert trace.text.count("kingsbury") == 2
    assert memory.context_of(trace.id)
    memory.audit.end_trace()
    memory.context("kingsbury", k=2)
    assert len(memory.audit.traces()) == 1
    assert memory.audit()[-1].action == "trace"
    assert "kingsbury" not in str(memory.audit())


def test_a_window_ends_and_its_traces_with_it(memory: Memory, clock: Clock) -> None:
    memory.audit.trace(10)
    memory.context("kingsbury", k=2)
    clock.at += 10 * MINUTE
    memory.context("kingsbury", k=3)
    assert memory.audit.traces() == []
    assert all(one.role != "trace" for one in memory.export())


def test_forgetting_reaches_the_traces(memory: Memory) -> None:
    said = memory.remember("my safe is 4711-zulu", thread="t")
    memory.audit.trace(10)
    memory.context("safe zulu", k=1)
    memory.context("kingsbury", k=1)
    assert not memory.scan("4711-zulu").clean
    receipt = memory.forget(ids=[said.id], scrub=True)
    assert len(receipt.ids) == 2
    assert memory.scan("4711-zulu").clean
    assert len(memory.audit.traces()) == 1
    assert memory.verify().ok


def test_no_read_returns_a_trace(memory: Memory) -> None:
    memory.audit.trace(10)
    for _ in range(2):
        memory.context("kingsbury", k=3)
    assert {one.record.role for one in memory.search("kingsbury", limit=99)} == {"user"}
    assert {one.role for one in memory.history("t")} == {"user"}
    assert memory.threads() == {"t": 10}
