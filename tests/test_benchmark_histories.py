"""The benchmark of chat histories compares equals, and judges the right way round. Nothing is timed."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from benchmarks import histories, history_stores
from benchmarks import history_rows as rows
from benchmarks.core import timing
from benchmarks.core.stores import SqliteStore

pytest.importorskip("langchain_community")
SMALL = 12


@pytest.fixture
def store(tmp_path):
    return SqliteStore(str(tmp_path))


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Measure as little as there is: nothing here looks at a time."""
    for module in (rows, history_stores):
        for name, number in (("ROUNDS", 1), ("TIMES", 1), ("WHOLE", 1), ("TURNS", 3)):
            monkeypatch.setattr(module, name, number, raising=False)
    # Collecting the tests' own heap takes longer than what is measured.
    monkeypatch.setattr(timing, "collected", nullcontext)


def quiet(_line):
    return None


def test_both_sides_keep_the_same_messages_at_every_length(store):
    with rows.talk(store) as talk:
        for length in (3, SMALL):
            talk.grow(length)
            rows.alike(talk)
            told = [[one.text for one in side.messages] for side in (talk.ours, talk.theirs)]
            assert told[0] == told[1]
            assert len(told[0]) == length == talk.length
        rows.added(talk)
        rows.alike(talk)


def test_sides_that_differ_are_not_compared(store):
    with rows.talk(store) as talk:
        talk.grow(3)
        talk.theirs.add_messages([rows.message(4)])
        with pytest.raises(AssertionError):
            rows.alike(talk)


def test_every_message_has_two_hundred_characters_and_is_another(store):
    made = [rows.message(at) for at in range(SMALL)]
    assert {len(one.text) for one in made} == {200}
    assert len({one.text for one in made}) == SMALL
    assert [one.type for one in made[:2]] == ["human", "ai"]


def test_reading_the_last_messages_is_judged_at_ten_thousand_and_by_how_much_faster(store):
    with rows.talk(store) as talk:
        talk.grow(SMALL)
        small, large = (rows.lasts(talk, "sqlite", size) for size in (SMALL, rows.SHARE))
    assert small.verdict == ""
    assert large.verdict == ("pass" if large.value >= 20 else "miss")
    assert large.at_least


def test_what_a_turn_of_the_middleware_costs_is_told_in_milliseconds_more(store):
    found = list(history_stores.middleware(store, [SMALL], quiet))
    assert [row.name.rpartition(" ")[2] for row in found] == ["hashing:512", "dense:384"]
    for row in found:
        assert (row.unit, row.verdict, row.peer) == ("ms more", "", "no middleware")


def test_the_stores_hold_the_same_and_only_the_one_on_the_database_is_judged(store):
    found = list(history_stores.items(store, [SMALL], quiet))
    assert len(found) == 2 * len(history_stores.ACTS)
    judged = {row.peer for row in found if row.verdict}
    assert judged == {"SqliteStore"}


def test_the_command_writes_its_rows(tmp_path, capsys):
    file = tmp_path / "rows.json"
    asked = ["--most", str(SMALL), "--database", "sqlite", "--only", "history", "--json", str(file)]
    histories.main(asked)
    written = json.loads(file.read_text())["rows"]
    assert {row["database"] for row in written} == {"sqlite"}
    assert [row["verdict"] != "" for row in written] == [True, False, False]
    assert "add a question and an answer at 10" in capsys.readouterr().err
