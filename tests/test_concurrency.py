"""Processes and threads on one database: invariants I1, I4 and I5 while everything moves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from other_process import CONTEXT
from raw_tables import connected, is_postgres, rows_of
from workers import OWN, WORD, Done, forget, spawned, write

from dellm import DellmError, Draft, Memory, NotFound, Saying

pytestmark = [pytest.mark.long, pytest.mark.own_database]


def in_processes(kinds: list[str], url: str, rounds: int) -> list[Done]:
    """Run workers in processes of their own, started together; return what each did."""
    barrier, results = CONTEXT.Barrier(len(kinds)), CONTEXT.Queue()
    processes = [
        CONTEXT.Process(target=spawned, args=(kind, url, number, rounds, barrier, results))
        for number, kind in enumerate(kinds)
    ]
    for one in processes:
        one.start()
    found = dict(results.get(timeout=120) for _ in processes)
    for one in processes:
        one.join(60)
        assert one.exitcode == 0
    return [found[number] for number in range(len(kinds))]


def in_threads(works: list[Callable[[Done], None]]) -> list[Done]:
    found = [Done() for _ in works]

    def run(work: Callable[[Done], None], done: Done) -> None:
        try:
            work(done)
        except DellmError as error:
            done.wrong.append(repr(error))

    threads = [threading.Thread(target=run, args=pair) for pair in zip(works, found, strict=True)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(120)
        assert not one.is_alive()
    return found


def check(url: str, memory: Memory, found: list[Done]) -> None:
    """Nothing erased is left, nothing is half there, and every reply says what it was made from."""
    assert [error for done in found for error in done.wrong] == []
    erased = {id_: word for done in found for id_, word in done.erased.items()}
    living = {one.id: one for one in memory.export()}
    receipts = memory.receipts()
    gone = [id_ for one in receipts for id_ in one.ids]
    assert len(gone) == len(set(gone))
    assert set(gone) >= set(erased)
    assert not set(gone) & set(living)
    for id_ in gone:
        with pytest.raises(NotFound):
            memory.get(id_)
    words = {OWN.findall(one.text)[0]: id_ for id_, one in living.items()}
    for id_, one in living.items():
        own, *quoted = WORD.findall(one.text)
        assert own not in erased.values()
        assert [words[word] for word in quoted] == memory.context_of(id_)
    with connected(url) as raw:
        said = set(WORD.findall(repr(rows_of(raw))))
    assert said == set(words)
    assert len(living) + len(gone) == sum(2 * done.written + done.refused for done in found)
    assert memory.verify().ok
    assert [entry.seq for entry in memory.ledger()] == list(range(1, len(receipts) + 1))


def test_processes_that_write_while_others_forget_leave_nothing_erased_and_nothing_torn(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, scrub_below=0).workspace("alex")
    found = in_processes(["write", "write", "write", "forget", "forget"], url, 40)
    check(url, memory, found)
    assert sum(len(done.erased) for done in found) > 0
    assert sum(done.written for done in found) > 0


def test_threads_that_write_while_others_forget_leave_nothing_erased_and_nothing_torn(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=None, scrub_below=0).workspace("alex")
    works: list[Callable[[Done], None]] = [
        lambda done, n=n: write(memory, n, 30, done) for n in range(3)
    ]
    works += [lambda done, n=n: forget(memory, n, 30, done) for n in range(3, 5)]
    found = in_threads(works)
    check(url, memory, found)
    assert sum(len(done.erased) for done in found) > 0


def test_a_reader_sees_all_of_a_forget_or_none_of_it(
    url: str, opened: Callable[..., Memory]
) -> None:
    size, groups = 6, 30
    memory = opened(url, scrub_below=0).workspace("alex")
    for group in range(groups):
        first = memory.remember(f"group {group}", thread="t").id
        for _ in range(size - 1):
            memory.record("made from it", context=[first], thread="t")

    def erase(_: Done) -> None:
        for group in range(groups):
            memory.forget(ids=[group * size + 1])

    with opened(url, scrub_below=0) as other:
        works = [erase, lambda done: read(other, done)]

        def read(reader: Memory, done: Done) -> None:
            from workers import read_groups

            read_groups(reader.workspace("alex"), size, done)

        found = in_threads(works)
    assert [done.wrong for done in found] == [[], []]
    assert found[1].torn == 0
    assert "0" in found[1].seen


def test_one_framework_object_from_many_processes_is_one_record(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url).workspace("alex")
    found = in_processes(["same", "same", "same"], url, 25)
    assert [done.wrong for done in found] == [[], [], []]
    assert found[0].ids == found[1].ids == found[2].ids
    assert [one.text for one in memory.history("t")] == [f"object {n}" for n in range(25)]
    assert memory.verify().ok


@pytest.fixture(params=["sqlite", "postgres"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    """Return the URLs of databases that nobody has opened yet."""
    names = [f"fresh{n}" for n in range(6 if request.param == "sqlite" else 3)]
    if request.param == "sqlite":
        yield [str(tmp_path / f"{name}.db") for name in names]
        return
    server = request.getfixturevalue("postgres")
    with psycopg.connect(server, autocommit=True) as admin:
        for name in names:
            admin.execute(f"create database dellm_{name}")
        yield [server.replace("/postgres?", f"/dellm_{name}?") for name in names]
        for name in names:
            admin.execute(f"drop database dellm_{name} with (force)")


def test_processes_that_open_a_fresh_database_at_once_all_find_it_whole(
    fresh: list[str], opened: Callable[..., Memory]
) -> None:
    found = in_processes(["open", "open", "open"], "\n".join(fresh), 0)
    assert [done.wrong for done in found] == [[], [], []]
    for place, url in enumerate(fresh):
        assert sorted(done.ids[place] for done in found) == [1, 2, 3]
        memory = opened(url).workspace("alex")
        assert len(list(memory.export())) == 3
        assert memory.verify().ok


def test_many_threads_may_create_one_workspace_at_once(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=None)
    ids: list[int] = []
    works: list[Callable[[Done], None]] = [
        lambda _: ids.append(memory.workspace("new").remember("said").id) for _ in range(8)
    ]
    assert [done.wrong for done in in_threads(works)] == [[]] * 8
    assert sorted(ids) == list(range(1, 9))
    assert is_postgres(url) or len(memory.workspace("new").history("t")) == 0


def test_two_memories_add_to_one_thread_by_turns_and_forget_between(
    url: str, opened: Callable[..., Memory]
) -> None:
    """What one knows of the workspace from its last write is no more than a guess."""
    one, two = (opened(url, embedder=None).workspace("alex") for _ in range(2))
    made: list[int] = []
    for number in range(12):
        memory = (one, two, two, one, one)[number % 5]
        first = Saying(Draft(f"asked {number}", thread="chat", framework_id=f"q{number}"))
        reply = Draft(f"said {number}", role="assistant", thread="chat")
        memory.conversations.add("chat", [first, Saying(reply, parents=made[-2:], after=[first])])
        made = [record.id for record in two.history("chat")]
        assert len(made) == len(set(made)) == 2 * (number + 1)
    assert [record.text for record in one.history("chat")][:3] == ["asked 0", "said 0", "asked 1"]
    generation = one.conversations.add("chat", [Saying(Draft("last", thread="chat"))])
    gone = two.forget(ids=[made[0]])
    late = Saying(Draft("late", role="assistant", thread="chat"), parents=[made[1]])
    again = Saying(Draft("asked 0", thread="chat", framework_id="q0"))
    one.conversations.add("chat", [late, again], trusted=generation)
    assert (late.id, again.id) == (None, None)
    assert gone.level in {"erased", "scrubbed"}
    left = [f"asked {number}" for number in range(1, 12)]
    assert [record.text for record in one.history("chat")] == [*left, "last"]
    assert one.verify().ok


def test_threads_that_add_at_once_lose_nothing(url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(url, embedder=None).workspace("alex")
    failed: list[BaseException] = []

    def add(name: str) -> None:
        try:
            for number in range(15):
                memory.conversations.add(name, [Saying(Draft(f"{number}", thread=name))])
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=add, args=(f"chat {number}",)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []
    for number in range(4):
        said = [record.text for record in memory.history(f"chat {number}")]
        assert said == [f"{at}" for at in range(15)]
    assert memory.verify().ok
