"""The benchmark of LlamaIndex's turns compares equals, and judges the right way round. Nothing is timed."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks import llamaindex, llamaindex_turns
from benchmarks.core.stores import SqliteStore

SMALL = 6


@pytest.fixture
def store(tmp_path):
    return SqliteStore(str(tmp_path))


@pytest.fixture(autouse=True)
def uncollected(monkeypatch):
    """Leave the tests' own heap alone: collecting it takes longer than a turn."""
    monkeypatch.setattr(llamaindex_turns, "collected", nullcontext)


def test_every_memory_holds_the_same_messages_and_goes_on_with_them(store):
    with llamaindex_turns.memories(store, SMALL) as made:
        llamaindex_turns._alike(made, SMALL)
        for name, memory in made.items():
            llamaindex_turns.simple(memory)("What was said?")
            if name != llamaindex_turns.NOTHING:
                assert [one.content for one in memory.get_all()][SMALL] == "What was said?"


def test_memories_that_differ_are_not_compared(store):
    with llamaindex_turns.memories(store, SMALL) as made:
        made["ChatMemoryBuffer"].set(llamaindex_turns.talk(SMALL - 1))
        with pytest.raises(AssertionError, match="ChatMemoryBuffer"):
            llamaindex_turns._alike(made, SMALL)


@pytest.mark.parametrize("engine", llamaindex_turns.ENGINES)
def test_a_turn_of_each_engine_is_measured_with_each_memory(store, engine):
    found = llamaindex_turns.seconds(store, engine, SMALL, rounds=1)
    assert len(found) == 5
    assert all(taken > 0 for taken in found.values())


def test_only_what_ours_adds_to_the_stock_memory_at_600_messages_is_judged(store, monkeypatch):
    seconds = {"no memory": 1.0, "Memory": 3.0, "ChatMemoryBuffer": 2.0}
    seconds |= {"DeLLMMemory": 1.5, "DeLLMMemory(top_k=None)": 2.0}
    monkeypatch.setattr(llamaindex_turns, "seconds", lambda *_: seconds)
    rows = list(llamaindex.measured(store, [10, 600, 5_000], lambda _: None))
    judged = [row for row in rows if row.verdict]
    assert {row.verdict for row in judged} == {"pass"}
    assert sorted(row.value for row in judged) == [0.25] * 3 + [1.0] * 3
