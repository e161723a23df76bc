"""The benchmark of derived memory does what it says, at tiny sizes. Nothing is timed."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks import derived, derived_summaries
from benchmarks.core import timing
from benchmarks.core.stores import SqliteStore
from benchmarks.derived_summaries import CHUNK, FAN_OUT, LEAF, talks
from dellm import Memory


@pytest.fixture
def store(tmp_path):
    return SqliteStore(str(tmp_path))


@pytest.fixture(autouse=True)
def uncollected(monkeypatch):
    """Leave the tests' own heap alone: collecting it takes longer than what is measured."""
    monkeypatch.setattr(timing, "collected", nullcontext)


def test_both_forms_sum_up_the_same_talk_and_forget_the_same_messages(store):
    size = LEAF * FAN_OUT + 4
    with talks(store, size) as made:
        rolling, tree = made["rolling"], made["tree"]
        assert rolling.built.calls == [-(-size // CHUNK)]
        assert tree.built.calls == [FAN_OUT + 1 + 1]
        costs = {form: talk.forget(1, 2).calls for form, talk in made.items()}
        assert costs == {"rolling": [5, 5], "tree": [2, 2]}
        assert rolling.messages == tree.messages
        assert len(rolling.messages) == size - 2
        many = tree.forget(4, 1).calls
        assert 2 <= many[0] <= 4 + 1
        assert rolling.append(3).calls == [1, 1, 1]
        assert rolling.model.calls == 5 + 5 + 5 + 3
        assert tree.model.calls == 10 + 2 + 2 + many[0]
        told = [one.text for one in rolling.memory.history("talk")]
        assert told[-1].startswith(f"Message {len(rolling.messages) + 2} ")


def test_the_bound_is_the_path_of_a_message():
    assert [derived_summaries.path(one) for one in (1, 100, 128, 1_000, 1_024, 10_000)] == [
        1, 1, 2, 2, 3, 4,
    ]  # fmt: skip


def test_the_rows_judge_the_calls_of_the_tree_and_its_growth(store):
    rows = list(derived.measured(store, 0, 0, lambda _: None, only=()))
    assert rows == []
    rows = list(derived_summaries.measured(store, lambda _: None, sizes=[20, 300]))
    judged = [one for one in rows if one.verdict]
    assert {one.verdict for one in judged} == {"pass"}
    assert len(rows) == 2 * 7 + 2
    assert [one.name.partition(" ")[0] for one in judged] == [
        *["forgetting", "forgetting", "one"] * 2,
        "growth",
    ]
    assert not list(store._folder.iterdir())


def test_a_rebuild_that_costs_more_than_the_path_misses(store, monkeypatch):
    monkeypatch.setattr(derived_summaries, "path", lambda _: 0)
    rows = derived_summaries.measured(store, lambda _: None, sizes=[20])
    assert "miss" in {one.verdict for one in rows}


def test_a_summary_that_is_not_made_anew_is_not_measured(store, monkeypatch):
    with talks(store, 20) as made:
        monkeypatch.setattr(Memory, "forget", lambda memory, **_: memory.receipts())
        with pytest.raises(AttributeError):
            made["tree"].forget(1, 1)
