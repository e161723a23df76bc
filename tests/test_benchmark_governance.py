"""The benchmark of governance does what it says, at tiny sizes. Nothing is timed."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks import governance, governance_stock, governance_turns
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


def test_the_sweep_and_its_peer_take_the_same_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(governance_stock, "PEOPLE", 2)
    monkeypatch.setattr(governance_stock, "AT_ONCE", 100)
    kept = []
    store = SqliteStore(str(tmp_path))
    monkeypatch.setattr(store, "drop", kept.append)
    monkeypatch.setattr(governance_stock, "_questions", lambda *_: [])
    (row,) = governance_stock.measured(store, lambda _: None, 300)
    assert row.bound == 3
    left = []
    for url in kept:
        with Memory.open(url, embedder=None, clock=lambda: governance_stock.NOW) as memory:
            stock = memory.workspace("stock")
            assert stock.expiry.due() == 0
            left.append([(one.id, one.text) for one in stock.export()])
    assert len(left[0]) == 270
    assert left[0] == left[1]


def test_a_question_and_its_peer_find_the_same(tmp_path):
    url = str(tmp_path / "m.db")
    with Memory.open(url, embedder=None, clock=lambda: governance_stock.NOW) as memory:
        stock = memory.workspace("stock")
        governance_stock._fill(stock, 3_000)
        found = [one.record.id for one in stock.remembered("person 501", limit=100)]
        with stock._engine.reading("stock") as (tx, scope):
            key = governance_stock.key_of(scope, "person 501")
            rows = tx.all(
                governance_stock.STATEMENT, ws=scope.ws, key=key, at=governance_stock.NOW, limit=100
            )
    assert [row[0] for row in rows] == found == [502, 1502, 2502]
