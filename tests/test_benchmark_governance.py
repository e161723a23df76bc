"""The benchmark of governance does what it says, at tiny sizes. Nothing is timed."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks import governance, governance_turns
from benchmarks.core import timing
from benchmarks.core.stores import SqliteStore
from dellm import Memory, Policy


@pytest.fixture(autouse=True)
def uncollected(monkeypatch):
    """Leave the tests' own heap alone: collecting it takes longer than what is measured."""
    monkeypatch.setattr(timing, "collected", nullcontext)


def test_a_turn_is_the_same_with_a_policy_and_without():
    with (
        Memory.open(":memory:", embedder=None) as plain,
        Memory.open(
            ":memory:", embedder=None, policy=Policy.parse(governance_turns.ALL_END)
        ) as governed,
    ):
        for memory in (plain, governed):
            agent = governance_turns.Agent(memory)
            for _ in range(40):
                agent.turn()
        ends = {one.retention_until is None for one in plain.export()}
        assert ends == {True}
        assert {one.retention_until is None for one in governed.export()} == {False}
        said = [[one.text for one in memory.export()] for memory in (plain, governed)]
        assert said[0] == said[1]
        contexts = [
            [memory.context_of(id_) for id_ in range(1, 81)] for memory in (plain, governed)
        ]
        assert contexts[0] == contexts[1]


def test_every_part_has_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(governance_turns, "BEFORE", 2)
    store = SqliteStore(str(tmp_path))
    rows = list(governance.measured(store, 2, lambda _: None, ["turns"]))
    assert [one.bound for one in rows] == [1.05, None]
