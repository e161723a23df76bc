"""A crash at any instant leaves all or nothing, and the repeated verb completes (invariant I5).

The process that does the verb is really killed: see crash_child.py.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from dellm import Memory
from dellm.errors import StorageError

pytestmark = pytest.mark.own_database

CANARY = "4711-kingsbury-castle-0815"
Kill = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def kill() -> Iterator[Kill]:
    """Return a function that has a child do a verb and kill itself at its n-th event."""
    program = Path(__file__).with_name("crash_child.py")
    with subprocess.Popen(
        [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def order(url: str, verb: str, at: int, how: str = "statement") -> dict[str, Any]:
            asked = {"url": url, "verb": verb, "how": how, "kill": at}
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, "the program that forks the children ended"
            said = json.loads(answer)
            assert not said["failed"], "the child raised; see its standard error"
            return said

        yield order
        process.stdin.close()


def plant(memory: Memory) -> None:
    """Store a doomed thread with derived records across threads, and one that lives on."""
    said = [
        memory.remember(
            f"In Kingsbury the code is {CANARY}, part {part}. My dog is Rex.",
            thread="doomed",
            metadata={"code": CANARY},
            framework_id=f"{len(memory.receipts())}-{part}",
        )
        for part in range(3)
    ]
    reply = memory.record("Kingsbury? Noted.", context=[one.id for one in said], thread="other")
    memory.record("Derived from that.", context=[reply.id], thread="other")
    memory.remember("Paris is nice", thread="living")
    long = [memory.remember(f"long {number}", thread="long").id for number in range(12)]
    memory.record("A reply to a long context", context=[*long, said[0].id], thread="long")
    memory.index()


@pytest.fixture
def planted(url: str, opened: Callable[..., Memory]) -> Memory:
    memory = opened(url, scrub_below=0).workspace("alex")
    plant(memory)
    return memory


def state(memory: Memory) -> str:
    """Return a digest of every row of every table."""
    said = hashlib.sha256()
    with memory._engine.database.transaction(memory._engine.scope(memory.id), owner=True) as tx:
        ws = memory._engine.scope(memory.id).ws
        for table, columns, scoped in tx.tables():
            if columns:
                rows = tx.table_rows(table, columns, ws if scoped else None)
                said.update(repr((table, sorted(map(repr, rows)))).encode())
    return said.hexdigest()


def doomed(memory: Memory) -> list[int]:
    """Return Dep of the doomed thread as it is now."""
    return memory.dependents([one.id for one in memory.history("doomed")])


def assert_forgotten(memory: Memory, ids: list[int]) -> None:
    assert memory.history("doomed") == []
    assert not [one for one in memory.export() if CANARY in one.text or one.id in ids]
    assert [one.text for one in memory.history("living")]
    receipt = memory.receipts()[-1]
    assert receipt.ids == tuple(ids)
    again = memory.forget(thread="doomed", scrub=False)  # the repeated verb gives the same receipt
    assert again.number == receipt.number


def survive(memory: Memory, url: str, kill: Kill, verb: str, how: str, step: int = 1) -> int:
    """Kill the verb at every event until it completes; return how many events there were."""
    at = 0
    while True:
        at += step
        before, going, receipts = state(memory), doomed(memory), len(memory.receipts())
        answer = kill(url, verb, at, how)
        report = memory.verify()
        assert report.ok, (at, report.problems)
        if state(memory) == before:
            assert answer["killed"]
            continue
        # Not nothing, therefore all.
        assert len(memory.receipts()) == receipts + 1
        if verb == "forget":
            assert_forgotten(memory, going)
        else:
            assert not memory.scan("Kingsbury", files=False).places
            assert not [one for one in memory.export() if "Kingsbury" in one.text]
        assert memory.verify().ok
        if not answer["killed"]:
            return answer["count"]
        plant(memory)


@pytest.mark.long
@pytest.mark.parametrize(("verb", "step"), [("forget", 1), ("redact", 4)])
def test_a_process_killed_at_any_statement_of_a_forget_leaves_all_or_nothing(
    planted: Memory, url: str, kill: Kill, verb: str, step: int
) -> None:
    assert survive(planted, url, kill, verb, "statement", step) > 10


@pytest.mark.long
def test_a_process_killed_within_any_write_of_a_forget_leaves_all_or_nothing(
    sqlite_url: str, opened: Callable[..., Memory], kill: Kill
) -> None:
    memory = opened(sqlite_url, scrub_below=0).workspace("alex")
    plant(memory)
    assert survive(memory, sqlite_url, kill, "forget", "write") > 5


def assert_half_scrubbed(memory: Memory, number: int, living: list[Any]) -> str:
    """Check that a scrub broken off changed no record and claims nothing; return the level."""
    assert list(memory.export()) == living
    assert memory.verify().ok
    level = memory.receipt(number).level
    with memory._engine.database.transaction(memory._engine.scope(memory.id)) as tx:
        probes = tx.one("select count(*) from residue")[0]
    assert (level, bool(probes)) in {("erased", True), ("scrubbed", False)}
    return level


def points(total: int, most: int) -> list[int]:
    """Return up to `most` events: the first and last ones all, the ones between spread evenly."""
    if total <= most:
        return list(range(1, total + 1))
    ends = most // 3
    step = max(1, (total - 2 * ends) // ends)
    middle = range(ends + 1, total - ends, step)
    return [*range(1, ends + 1), *middle, *range(total - ends + 1, total + 1)]


def survive_scrub(memory: Memory, url: str, kill: Kill, how: str, most: int) -> None:
    living = [one for one in memory.export() if one.id not in doomed(memory)]
    first = memory.forget(thread="doomed", scrub=False)
    probe = memory.remember(f"the first is {CANARY}")
    second = memory.forget(ids=[probe.id], scrub=False)
    total = kill(url, "scrub", 1 << 30, how)["count"]
    assert assert_half_scrubbed(memory, first.number, living) == "scrubbed"
    assert memory.receipt(second.number).level == "scrubbed"
    number = 0
    for at in points(total, most):
        if not number or memory.receipt(number).level == "scrubbed":
            said = memory.remember(f"number {at} is {CANARY}")
            number = memory.forget(ids=[said.id], scrub=False).number
        kill(url, "scrub", at, how)
        assert_half_scrubbed(memory, number, living)
    assert memory.scrub().clean
    assert assert_half_scrubbed(memory, number, living) == "scrubbed"
    assert memory.scan(CANARY).clean


@pytest.mark.long
@pytest.mark.parametrize("how", ["statement", "write"])
def test_a_scrub_killed_anywhere_loses_nothing_and_completes_when_repeated_on_sqlite(
    sqlite_url: str, opened: Callable[..., Memory], kill: Kill, how: str
) -> None:
    memory = opened(sqlite_url, scrub_below=0).workspace("alex")
    plant(memory)
    survive_scrub(memory, sqlite_url, kill, how, 60)


def setting(url: str, name: str) -> str:
    with psycopg.connect(url) as connection:
        return connection.execute("select current_setting(%s)", (name,)).fetchone()[0]


@pytest.mark.long
def test_a_scrub_killed_anywhere_loses_nothing_and_completes_when_repeated_on_postgresql(
    postgres_url: str, opened: Callable[..., Memory], kill: Kill
) -> None:
    memory = opened(postgres_url, scrub_below=0).workspace("alex")
    plant(memory)
    survive_scrub(memory, postgres_url, kill, "statement", 18)
    assert setting(postgres_url, "wal_recycle") == "on"  # as the server had it before


def test_a_scrub_killed_while_it_moves_the_log_leaves_the_server_s_settings_to_the_next_one(
    postgres_url: str, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dellm import postgres_clean

    memory = opened(postgres_url, scrub_below=0).workspace("alex")
    said = memory.remember(f"the code is {CANARY}")
    memory.forget(ids=[said.id])

    def killed(connection: psycopg.Connection[Any]) -> None:
        # As a kill -9 does it: no statement gets through any more, not even one in a finally.
        connection.close()

    with monkeypatch.context() as broken:
        broken.setattr(postgres_clean, "_switch", killed)
        with pytest.raises(StorageError):
            memory.scrub()
    assert setting(postgres_url, "wal_recycle") == "off"
    assert memory.scrub().clean
    assert setting(postgres_url, "wal_recycle") == "on"


def test_a_connection_ended_by_the_server_within_a_forget_leaves_nothing_done(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(postgres_url, scrub_below=0).workspace("alex")
    plant(memory)
    before = state(memory)

    def ends_every_connection(record: Any) -> bool:
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()"
            )
        return record.thread == "doomed"

    with pytest.raises(StorageError) as caught:
        memory.forget(where=ends_every_connection)
    assert "connection" in str(caught.value)
    assert "rolled back" in str(caught.value)
    fresh = opened(postgres_url, scrub_below=0).workspace("alex")
    assert state(fresh) == before
    assert fresh.verify().ok
    going = doomed(fresh)
    assert memory.forget(thread="doomed").ids == tuple(going)  # the old object works again too
    assert_forgotten(memory, going)


def test_a_log_that_was_cut_off_in_the_middle_loses_its_last_transactions_only(
    sqlite_url: str, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    memory = opened(sqlite_url, scrub_below=0).workspace("alex")
    plant(memory)
    memory._engine.database._connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    before, going = state(memory), doomed(memory)
    memory.forget(thread="doomed", scrub=False)
    after = state(memory)
    log = Path(f"{sqlite_url}-wal").read_bytes()
    seen = set()
    for cut in [*range(0, len(log), len(log) // 40), len(log)]:
        copy = tmp_path / f"cut-{cut}.db"
        copy.write_bytes(Path(sqlite_url).read_bytes())
        Path(f"{copy}-wal").write_bytes(log[:cut])
        with Memory.open(str(copy), embedder="hashing", scrub_below=0) as other:
            alex = other.workspace("alex")
            assert alex.verify().ok
            seen.add(state(alex))
            if state(alex) == before:
                alex.forget(thread="doomed", scrub=False)
            assert_forgotten(alex, going)
    assert seen == {before, after}
