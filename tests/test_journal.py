"""Backups: what was forgotten comes back with a restore, and goes again by the journal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_tables import is_postgres

from dellm import InvalidInput, Memory, RestoreCheckNeeded, StorageError, UnsupportedHere
from dellm.journal import Journal

pytestmark = pytest.mark.own_database

SECRET = "zanzibar 4711"


class Place:
    """A database and its journal, of which backups are made and brought back."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.journal, self.folder = url, folder / "journal.jsonl", folder

    @contextmanager
    def opened(self, **options: Any) -> Iterator[Memory]:
        chosen = {"embedder": None, "journal": self.journal, "scrub_below": 0, **options}
        with Memory.open(self.url, **chosen) as memory:
            yield memory

    def back_up(self, name: str = "one") -> str:
        if is_postgres(self.url):
            copy = f"{_database(self.url)}_{name}"
            _server(self.url, f"create database {copy} template {_database(self.url)}")
            return copy
        kept = self.folder / name
        shutil.copy(self.url, kept)
        return str(kept)

    def restore(self, backup: str) -> None:
        if is_postgres(self.url):
            own = _database(self.url)
            _server(self.url, f"drop database {own} with (force)")
            _server(self.url, f"create database {own} template {backup}")
            return
        for suffix in ("-wal", "-shm"):
            Path(self.url + suffix).unlink(missing_ok=True)
        shutil.copy(backup, self.url)


def _database(url: str) -> str:
    return url.split("/")[3].split("?")[0]


def _server(url: str, statement: str) -> None:
    with psycopg.connect(url.replace(f"/{_database(url)}?", "/postgres?"), autocommit=True) as own:
        own.execute(statement)  # type: ignore[arg-type] # names of the test's own making


@pytest.fixture
def place(url: str, tmp_path: Path) -> Iterator[Place]:
    made = Place(url, tmp_path)
    with made.opened() as memory:
        said = memory.remember(SECRET, thread="t")
        memory.record(f"noted {SECRET}", context=[said.id], thread="t")
        memory.remember("kept", thread="t")
    yield made
    if is_postgres(url):
        for name in ("one", "two"):
            _server(url, f"drop database if exists {_database(url)}_{name} with (force)")


def texts(memory: Memory) -> list[str]:
    return [one.text for one in memory.export()]


def test_what_a_backup_brings_back_is_refused_and_erased_again(place: Place) -> None:
    backup = place.back_up()
    with place.opened() as memory:
        memory.forget(ids=[1])
    place.restore(backup)
    with place.opened() as memory:
        for read in (lambda: texts(memory), lambda: memory.context("zanzibar"), memory.verify):
            with pytest.raises(RestoreCheckNeeded):
                read()
        with pytest.raises(RestoreCheckNeeded):
            memory.remember("more")
        report = memory.restore_check()
        assert (report.workspaces, report.lost, report.ok) == (1, 1, True)
        assert memory.receipt(report.receipts["default"][0]).ids == (1, 2)
        assert texts(memory) == ["kept"]
        assert memory.scan("zanzibar", files=False).clean
        assert memory.verify().ok
    with place.opened() as memory:
        assert texts(memory) == ["kept"]
        assert memory.restore_check().lost == 0


def test_the_same_backup_may_come_back_twice(place: Place) -> None:
    backup = place.back_up()
    with place.opened() as memory:
        memory.forget(ids=[1])
    for _ in range(2):
        place.restore(backup)
        with place.opened() as memory:
            with pytest.raises(RestoreCheckNeeded):
                texts(memory)
            memory.restore_check()
            assert texts(memory) == ["kept"]


def test_without_the_journal_it_is_back(place: Place) -> None:
    """The control."""
    backup = place.back_up()
    with place.opened() as memory:
        memory.forget(ids=[1])
    place.restore(backup)
    with place.opened(journal=None) as memory:
        assert SECRET in texts(memory)
        with pytest.raises(UnsupportedHere):
            memory.restore_check()


def test_it_is_served_unchecked_where_that_is_asked_for(place: Place) -> None:
    backup = place.back_up()
    with place.opened() as memory:
        memory.forget(ids=[1])
    place.restore(backup)
    with place.opened(unchecked="serve") as memory:
        assert SECRET in texts(memory)
        new = memory.remember("said since")
        memory.restore_check()
        assert texts(memory) == ["kept", new.text]


def test_ids_that_were_given_anew_are_not_taken_for_the_old_ones(place: Place) -> None:
    backup = place.back_up()
    with place.opened() as memory:
        late = memory.remember("gone for good")
        memory.forget(ids=[late.id])
    place.restore(backup)
    with place.opened(unchecked="serve") as memory:
        other = memory.remember("said after the restore")
        assert other.id == late.id
        report = memory.restore_check()
        assert (report.lost, report.receipts) == (1, {})
        assert memory.get(other.id).text == other.text
    with place.opened() as memory:
        assert len(texts(memory)) == 4


def test_a_suppression_comes_again_unless_it_was_undone(place: Place) -> None:
    backup = place.back_up()
    with place.opened() as memory:
        memory.forget(ids=[3], mode="suppress")
        undone = memory.forget(ids=[1], mode="suppress")
        memory.restore(undone)
    place.restore(backup)
    with place.opened() as memory:
        memory.restore_check()
        assert texts(memory) == [SECRET, f"noted {SECRET}"]


def test_of_a_redacted_record_the_old_version_goes(place: Place) -> None:
    backup = place.back_up()
    with place.opened() as memory:
        memory.forget("4711", mode="redact")
    place.restore(backup)
    with place.opened() as memory:
        memory.restore_check()
        assert memory.scan("4711", files=False).clean


def test_a_thread_that_a_checkpointer_deleted_is_in_the_journal_too(place: Place) -> None:
    backup = place.back_up()
    with place.opened() as memory:
        memory.checkpoints.delete_thread("t")
        assert texts(memory) == []
    place.restore(backup)
    with place.opened() as memory:
        memory.restore_check()
        assert texts(memory) == []


def test_each_workspace_is_refused_on_its_own(place: Place) -> None:
    with place.opened() as memory:
        memory.workspace("kim").remember("kim's")
    backup = place.back_up()
    with place.opened() as memory:
        memory.forget(ids=[1])
    place.restore(backup)
    with place.opened() as memory:
        assert texts(memory.workspace("kim")) == ["kim's"]
        with pytest.raises(RestoreCheckNeeded):
            texts(memory)


def test_a_pruned_chain_is_not_taken_for_an_old_database(place: Place) -> None:
    clock = [1_900_000_000_000_000]
    with place.opened(clock=lambda: clock[0]) as memory:
        memory.forget(ids=[1])
        memory.scrub()
        clock[0] += 100 * 24 * 3600 * 1_000_000
        assert memory.audit.prune(30) == 2
    with place.opened() as memory:
        assert texts(memory) == ["kept"]


CHILD = """
import os, sys
from dellm import Memory
from dellm.journal import Journal

def dies(method, after):
    real = getattr(Journal, method)
    def dying(self, *given, **named):
        if after:
            real(self, *given, **named)
        os._exit(9)
    setattr(Journal, method, dying)

dies(*{"before the commit": ("meant", True), "after the commit": ("settle", False)}[sys.argv[3]])
memory = Memory.open(sys.argv[1], embedder=None, journal=sys.argv[2], scrub_below=0)
memory.forget(ids=[1])
"""


def crash(place: Place, when: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, place.url, str(place.journal), when], check=False
    )
    assert ran.returncode == 9


def test_what_was_written_down_and_never_committed_is_not_erased(place: Place) -> None:
    crash(place, "before the commit")
    with place.opened() as memory:
        assert len(texts(memory)) == 3
        assert memory.restore_check().lost == 0
    backup = place.back_up()
    with place.opened() as memory:
        memory.forget(ids=[3])
    place.restore(backup)
    with place.opened() as memory:
        memory.restore_check()
        assert texts(memory) == [SECRET, f"noted {SECRET}"]


def test_what_was_committed_and_never_marked_is_erased_again(place: Place) -> None:
    backup = place.back_up()
    crash(place, "after the commit")
    with place.opened() as memory:
        assert texts(memory) == ["kept"]
    place.restore(backup)
    with place.opened() as memory:
        memory.restore_check()
        assert texts(memory) == ["kept"]


def test_what_nobody_could_mark_goes_when_others_were_lost(place: Place) -> None:
    backup = place.back_up()
    with place.opened() as memory:
        memory.forget(ids=[3])
    crash(place, "after the commit")
    place.restore(backup)
    with place.opened() as memory:
        memory.restore_check()
        assert texts(memory) == []


def test_a_journal_that_cannot_be_written_stops_the_forget(place: Place) -> None:
    with place.opened() as memory:
        memory.forget(ids=[3])
        place.journal.unlink()
        place.journal.mkdir()
        with pytest.raises(StorageError):
            memory.forget(ids=[1])
        assert SECRET in texts(memory)
        assert len(memory.receipts()) == 1


def test_a_line_that_broke_off_counts_for_nothing_and_is_written_over(place: Place) -> None:
    with place.opened() as memory:
        memory.forget(ids=[3])
    whole = place.journal.read_bytes()
    for cut in (1, 40, 200):
        place.journal.write_bytes(whole + whole[: len(whole) - cut].splitlines(True)[-1][:-1])
        with place.opened() as memory:
            said = memory.remember("more")
            memory.forget(ids=[said.id])
        found = Journal(place.journal).read()["default"]
        assert [one.state for one in found] == ["done", "done"]
        place.journal.write_bytes(whole)
        with place.opened() as memory:
            memory.remember("a forget that this journal does not have is nothing it can miss")


def test_a_damaged_journal_is_refused(place: Place) -> None:
    with place.opened() as memory:
        memory.forget(ids=[3])
    whole = place.journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    damages = {
        "a byte": whole.replace(b'"3"', b'"2"', 1),
        "a line left out": b"".join([lines[0], *lines[2:]]),
        "the beginning": b"".join(lines[1:]),
        "no journal": b"hello\n",
        "two lines exchanged": b"".join([lines[0], lines[2], lines[1]]),
    }
    for damage, content in damages.items():
        place.journal.write_bytes(content)
        with place.opened() as memory, pytest.raises(StorageError) as caught:
            texts(memory)
        assert "journal" in str(caught.value), damage


def test_no_content_is_in_the_journal(place: Place) -> None:
    with place.opened() as memory:
        memory.forget("zanzibar")
    said = place.journal.read_text()
    assert "zanzibar" not in said
    assert "4711" not in said
    assert json.loads(said.splitlines()[1])["ids"].keys() == {"1", "2"}


def test_several_processes_write_one_journal(place: Place) -> None:
    child = (
        "import sys; from dellm import Memory\n"
        "memory = Memory.open(sys.argv[1], embedder=None, journal=sys.argv[2], scrub_below=0)\n"
        "mine = memory.workspace(sys.argv[3])\n"
        "for number in range(8):\n"
        "    mine.forget(ids=[mine.remember('note').id])\n"
    )
    run = [sys.executable, "-c", child, place.url, str(place.journal)]
    children = [subprocess.Popen([*run, name]) for name in ("a", "b", "c")]
    assert [one.wait() for one in children] == [0, 0, 0]
    found = Journal(place.journal).read()
    assert {name: [one.state for one in found[name]] for name in "abc"} == {
        name: ["done"] * 8 for name in "abc"
    }
    with place.opened() as memory:
        assert memory.restore_check().lost == 0


def test_where_no_file_can_be_is_refused(tmp_path: Path, opened: Callable[..., Memory]) -> None:
    for wrong in ("", " ", tmp_path, tmp_path / "no" / "journal", "a\0b", 3):
        with pytest.raises(InvalidInput):
            opened(":memory:", journal=wrong)
    with pytest.raises(InvalidInput):
        opened(":memory:", journal=tmp_path / "j", unchecked="maybe")


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(st.sampled_from(["say", "forget", "reply", "back up", "restore"]), max_size=14)
)
def test_whatever_is_restored_what_was_forgotten_stays_gone(
    steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = Place(str(tmp_path_factory.mktemp("machine") / "m.db"), Path(os.devnull))
    place.folder = Path(place.url).parent
    place.journal = place.folder / "journal.jsonl"
    said = 0
    living: dict[str, list[str]] = {}  # what is there: text -> what it was made of
    kept: tuple[str, dict[str, list[str]]] | None = None
    gone: set[str] = set()
    for step in steps:
        with place.opened() as memory:
            ids = {one.text: one.id for one in memory.export()}
            if step == "say":
                said += 1
                memory.remember(f"note {said}")
                living[f"note {said}"] = []
            elif step == "reply" and ids:
                said += 1
                source = sorted(ids)[said % len(ids)]
                memory.record(f"reply {said}", context=[ids[source]])
                living[f"reply {said}"] = [source]
            elif step == "forget" and ids:
                taken = {sorted(ids)[said % len(ids)]}
                memory.forget(ids=[ids[next(iter(taken))]])
                while more := {one for one, of in living.items() if taken & {*of}} - taken:
                    taken |= more
                gone |= taken
                living = {one: of for one, of in living.items() if one not in taken}
        if step == "back up":
            kept = (place.back_up(), dict(living))
        elif step == "restore" and kept is not None:
            place.restore(kept[0])
            with place.opened() as memory:
                memory.restore_check()
            living = {one: of for one, of in kept[1].items() if one not in gone}
        with place.opened() as memory:
            assert {one.text for one in memory.export()} == living.keys()
            assert memory.verify().ok
