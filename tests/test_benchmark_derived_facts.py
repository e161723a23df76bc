"""The benchmark of facts compares equals, on both databases. Nothing is judged by its time."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks import derived_facts
from benchmarks.core import timing
from benchmarks.core.stores import SqliteStore
from dellm import Memory


@pytest.fixture(autouse=True)
def uncollected(monkeypatch):
    """Leave the tests' own heap alone: collecting it takes longer than what is timed."""
    monkeypatch.setattr(timing, "collected", nullcontext)


def test_every_question_is_asked_of_equals_and_only_the_bare_statement_judges(tmp_path):
    rows = list(derived_facts.measured(SqliteStore(str(tmp_path)), 40, lambda _: None))
    assert [row.bound for row in rows] == [None] + [2.0, None] * 3
    assert [row.note for row in rows[1:]][::2] == [row.note for row in rows[2:]][::2]
    assert rows[-1].note.endswith("of 40")


def test_the_peers_give_what_the_library_gives(sqlite_url, postgres_url):
    for url, name in ((sqlite_url, "sqlite"), (postgres_url, "postgres")):
        with Memory.open(url, embedder=None) as opened:
            memory = opened.workspace(derived_facts.WORKSPACE)
            derived_facts.fill(memory, 30)
            store = type("Store", (), {"name": name})()
            peer = derived_facts.Peer(store, memory, url)
            peer.copy()
            day = derived_facts.START.replace(year=2021, month=6)
            micros = round(day.timestamp()) * 1_000_000
            for key, whose in (("employer", derived_facts.person(1)), (None, None)):
                found = memory.facts(day, key, whose)
                for asked in (peer.same(key, whose, micros), peer.plain(key, whose, micros)):
                    derived_facts._alike(found, peer.run(*asked))
                    with pytest.raises(AssertionError):
                        derived_facts._alike(found[1:], peer.run(*asked))
            peer.run("drop table plain")
            peer.close()
