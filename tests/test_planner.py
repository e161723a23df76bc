"""Statistics taken at the wrong moment must not make PostgreSQL read a whole workspace."""

from __future__ import annotations

import psycopg

from dellm import Draft, provenance


def test_a_workspace_filled_after_analyze_is_still_read_by_its_primary_key(postgres_url, opened):
    memory = opened(postgres_url, embedder=None)
    memory.workspace("first").remember_many([Draft(f"one {i}", thread="t") for i in range(3_000)])
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("analyze")
    second = memory.workspace("second")
    second.remember_many([Draft(f"two {i}", thread="t") for i in range(3_000)])
    for start in range(1, 3_000, 60):
        second.record("reply", context=list(range(start, start + 40)), thread="t")
    with psycopg.connect(postgres_url) as owner:
        plan = owner.execute(
            "explain select id from record where ws = 2 and id = any(cast(%s as bigint[])) "
            "and status = 0",
            ([1, 2, 3],),
        ).fetchall()
        key = owner.execute(
            "explain select child from edge where ws = 2 and parent = any(cast(%s as bigint[]))",
            ([1, 2, 3],),
        ).fetchall()
    assert any("record_pkey" in line for (line,) in plan), plan
    assert any("Index Cond" in line and "id = ANY" in line for (line,) in plan), plan
    assert any("edge_parent" in line for (line,) in key), key


def test_no_content_and_no_key_is_in_the_planners_statistics(postgres_url, opened):
    memory = opened(postgres_url)
    memory.remember("zqxcanary lives in the statistics", subject="zqxcanary", thread="t")
    memory.index()
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("analyze")
        columns = owner.execute(
            "select tablename, attname from pg_stats where schemaname = 'public'"
        ).fetchall()
    kept = {(table, column) for table, column in columns if table == "record"}
    assert not kept & {
        ("record", name) for name in ("ws", "id", "text", "payload", "metadata", "subject", "fid")
    }


def test_each_step_of_a_recursion_looks_its_neighbours_up_by_key(postgres_url, opened):
    memory = opened(postgres_url, embedder=None).workspace("w")
    ids = [memory.remember("start", thread="t").id]
    for _ in range(500):
        ids.append(memory.record("reply", context=ids, thread="t").id)
    engine = memory._engine
    with engine.database.transaction(engine.scope("w")) as tx:
        told = tx.all("explain " + provenance._DEP, ws=1, seeds=[1])
    lines = [line for (line,) in told]
    assert any("Recursive Union" in line for line in lines)
    # Either would mean that a step compares what it has with every edge of the workspace.
    assert not any("Join Filter" in line or "Materialize" in line for line in lines), lines
