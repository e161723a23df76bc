"""The residue audit finds copies wherever they are, and counts what each system's deletion leaves."""

from __future__ import annotations

import base64
import os
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.evaluation import residue
from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.residue import NOTHING, Left, tried
from benchmarks.evaluation.residue_contest import ALL, MESSAGE, TELLING, Contestant, Place, Talk
from benchmarks.evaluation.residue_looking import Secret, in_files, sqlite_rows
from benchmarks.evaluation.results import Number, Report
from benchmarks.evaluation.running import Run
from dellm.embedding import HashingEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBER = "4155550142"
SECRET = Secret(NUMBER)
TIERS = ("live", "history", "tables", "cache", "files", "log")


@pytest.fixture(scope="module")
def small() -> Report:
    with pytest.MonkeyPatch.context() as patch:
        # Databases need not wait for a disk here; see conftest.
        patch.setattr(tempfile, "tempdir", os.environ.get("PYTEST_DEBUG_TEMPROOT"))
        return residue.run(Run(model=Canary(), embedder=HashingEmbedder(), small=True))


def rows(report: Report, system: str, scope: str) -> list[dict[str, Any]]:
    return [one for one in report.rows if one["system"] == system and one["of"] == scope]


def kept(row: dict[str, Any]) -> float:
    shown = row["others kept"]
    assert isinstance(shown, Number)
    assert shown.value is not None
    return shown.value


def contestant(name: str) -> Contestant:
    return next(one for one in residue.CONTESTANTS if one.name == name)


def place(folder: Path, url: str = "") -> Place:
    return Place(folder, url, HashingEmbedder())


@pytest.mark.parametrize(
    "spelt",
    [
        NUMBER.encode(),
        NUMBER.encode("utf-16-le"),
        NUMBER.encode("utf-16-be"),
        NUMBER.encode().hex().encode(),
        "".join(f"\\u00{ord(digit):x}" for digit in NUMBER).encode(),
        *(base64.b64encode(b"x" * before + NUMBER.encode() + b"yz") for before in range(6)),
    ],
)
def test_a_secret_is_found_once_in_each_spelling(spelt: bytes) -> None:
    assert SECRET.times(b"before " + spelt + b" after") == 1
    assert SECRET.times(spelt.replace(spelt[8:11], b"\xff\xff\xff")) == 0


def test_a_number_with_one_other_digit_is_not_the_secret() -> None:
    assert SECRET.times("4155560142") == 0
    assert SECRET.times(base64.b64encode(b"4155560142")) == 0
    assert SECRET.times({"said": [NUMBER, NUMBER]}) == 2


def test_rows_are_counted_in_every_table_of_every_database_and_no_file_is_touched(
    tmp_path: Path,
) -> None:
    (tmp_path / "below").mkdir()
    with closing(sqlite3.connect(tmp_path / "below" / "a.db", isolation_level=None)) as database:
        database.execute("pragma journal_mode = wal")
        database.execute("create table texts(text)")
        database.execute("create table blobs(blob)")
        database.executemany("insert into texts values (?)", [(NUMBER,), ("4155550143",)])
        database.execute("insert into blobs values (?)", (b"\x00" + NUMBER.encode() * 2,))
        before = {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()}
        assert sqlite_rows(tmp_path, SECRET) == 2
        assert {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()} == before
        assert in_files(tmp_path, SECRET)[1] > 0


def test_bytes_of_data_files_and_of_journals_are_counted_apart(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(NUMBER.encode() * 2)
    (tmp_path / "a.db-wal").write_bytes(NUMBER.encode("utf-16-le") * 3)
    assert in_files(tmp_path, SECRET) == (2, 3)


def test_a_copy_in_any_tier_counts_as_left() -> None:
    assert not Left(0, 0, 0, 0, 0, 0).anywhere
    assert not Left(0).anywhere
    for tier in TIERS:
        assert replace(Left(0), **{tier: 1}).anywhere


def test_without_a_deletion_every_system_shows_the_secret_in_every_tier_it_has(
    small: Report,
) -> None:
    controls = [one for one in small.rows if one["of"] == NOTHING.scope]
    assert len(controls) == sum(one.keeps != "postgres" for one in residue.CONTESTANTS)
    for one in controls:
        assert one["live"], one["system"]
        assert one["tables"], one["system"]
        assert one["files"], one["system"]  # or "–" where there are no files
        assert kept(one) == 1, one["system"]


def test_our_forget_leaves_no_copy_in_any_tier_and_keeps_what_is_not_named(small: Report) -> None:
    ours = [one for one in small.rows if str(one["deletion"]).startswith("forget")]
    assert len(ours) == 15
    for one in ours:
        assert [one[tier] for tier in TIERS if one[tier] not in (0, "–")] == [], one["system"]
        assert kept(one) == (0 if one["of"] == ALL else 1), one["system"]


def test_removing_the_message_from_a_stock_saver_leaves_replies_and_old_states(
    small: Report,
) -> None:
    (one,) = rows(small, "SqliteSaver", MESSAGE)
    assert one["live"] == 4  # three replies that repeat it, and the summary
    assert one["history"] > 0
    assert one["tables"] > 0
    (every,) = rows(small, "SqliteSaver", TELLING)
    assert every["live"] == 0
    assert every["history"] > 0


def test_without_secure_delete_the_deleted_thread_is_still_in_the_file(small: Report) -> None:
    (one,) = rows(small, "SqliteSaver, secure_delete off", ALL)
    assert (one["live"], one["tables"]) == (0, 0)
    assert one["files"] > 0


def test_mem0_keeps_deleted_memories_in_its_history_and_among_its_newest_messages(
    small: Report,
) -> None:
    (one,) = rows(small, "mem0", ALL)
    assert one["live"] == 0
    assert one["history"] > 0
    assert one["cache"] > 0
    assert one["tables"] > 0


def test_where_no_verb_is_documented_nothing_is_counted(small: Report) -> None:
    (one,) = rows(small, "RunnableWithMessageHistory", MESSAGE)
    assert one["n"] == 0
    assert one["live"] == "–"
    assert one["any copy left"] == Number(None, None, None, 0)


def test_versions_of_what_is_compared_are_named(small: Report) -> None:
    assert {"mem0ai", "langgraph", "llama-index-core", "sqlite3"} <= small.settings.keys()


def test_a_system_that_never_had_the_secret_is_no_success(tmp_path: Path) -> None:
    class Deaf:
        def play(self, said: Talk) -> None:
            self.heard = len(said.turns)

        def live(self) -> list[str]:
            return ["Noted."] * self.heard

    @contextmanager
    def opened(_: Place) -> Iterator[Deaf]:
        yield Deaf()

    deaf = Contestant("deaf", (), "memory", opened, ())
    with pytest.raises(RuntimeError, match="did not show the secret"):
        tried(deaf, NOTHING, place(tmp_path), Talk(SECRET))


@pytest.mark.own_database
@pytest.mark.parametrize(
    ("name", "verb", "left"),
    [
        ("DeLLMSaver, PostgreSQL", "forget, scrub", False),
        ("PostgresSaver", "delete_thread", True),
    ],
)
def test_on_postgresql_only_a_scrub_clears_the_write_ahead_log(
    name: str, verb: str, left: bool, postgres_url: str, tmp_path: Path
) -> None:
    one = contestant(name)
    (chosen,) = (each for each in one.verbs if each.words == verb)
    found = tried(one, chosen, place(tmp_path, postgres_url), Talk(Secret("4150099417"))).left
    assert (found.live, found.history, found.tables) == (0, 0, 0)
    assert bool(found.log) is left
    assert found.anywhere is left
