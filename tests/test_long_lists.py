"""Naming many records must not make a database read the whole workspace."""

from __future__ import annotations

import psycopg
import pytest

from dellm import Draft, postgres_text

STATEMENTS = {
    "record": ("delete from record where ws = :ws and id in :ids", "id"),
    "edges into": ("delete from edge where ws = :ws and child in :ids", "child"),
    "edges from": ("delete from edge where ws = :ws and parent in :ids", "parent"),
    "keyword": ("delete from keyword where ws = :ws and id in :ids", "id"),
}
FILL = (
    "insert into record(ws, id, place, thread, kind, role, version, text, status, tokens, "
    "created_at) select 1, n, n, 't', 'message', 'user', 1, 'one', 0, 1, 1 "
    "from generate_series(2, 40000) n",
    "insert into keyword(ws, id, part, terms) select 1, n, 0, array_to_tsvector(array['one']) "
    "from generate_series(2, 40000) n",
    "insert into edge(ws, child, pos, parent) select 1, n, pos, n - pos "
    "from generate_series(7, 40000) n, generate_series(1, 5) pos",
)


@pytest.fixture(scope="module")
def ids() -> list[int]:
    return list(range(1_000, 1_800))


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_long_list_is_looked_up_by_key_on_a_database_without_statistics(
    name, ids, postgres_url, opened
):
    # Below some ten thousand rows a workspace is thought small enough to be read.
    opened(postgres_url, embedder=None).remember("one", thread="t")
    with psycopg.connect(postgres_url) as owner:
        for fill in FILL:
            owner.execute(fill)
        statement, key = STATEMENTS[name]
        translated = postgres_text.translate(statement)
        plan = owner.execute(f"explain {translated}", {"ws": 1, "ids": ids}).fetchall()
    looked_up = [line for (line,) in plan if "Index Cond" in line]
    assert looked_up, plan
    assert all(f"({key} = ANY" in line for line in looked_up), plan


def test_short_and_long_lists_give_the_same_rows(url, opened):
    memory = opened(url, embedder=None)
    memory.remember_many([Draft(f"one {i}", thread="t") for i in range(30)])
    for count in (1, 2, 7, 8, 9, 20):
        wanted = list(range(1, count + 1))
        assert memory.dependents(wanted) == wanted
        assert memory.dependents([*wanted, *wanted]) == wanted


def test_the_planner_may_only_follow_keys_while_a_transaction_of_ours_is_open(postgres_url, opened):
    # Seen at a million records: a closure of ten by hash join took five seconds, by keys half a
    # millisecond.
    memory = opened(postgres_url, embedder=None)
    memory.remember("one", thread="t")
    engine = memory._engine
    for write in (False, True):
        with engine.database.transaction(engine.scope("default"), write=write) as tx:
            for setting in ("enable_hashjoin", "enable_mergejoin", "jit"):
                assert tx.all("select current_setting(:name)", name=setting) == [("off",)]
