"""One phone number in six tables: an app's own six, and DeLLM's. Then it is forgotten."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from raw_tables import connected, is_postgres, rows_of, statement

from dellm import Memory, values

EXAMPLE = Path(__file__).parents[1] / "examples" / "six_tables.py"
SPELLINGS = (b"4155550142", b"415 555 0142", b"415-555-0142", b"(415) 555-0142", b"415.555.0142")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("six_tables", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["six_tables"] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    return made


def holding(url: str) -> dict[str, int]:
    """Return in how many rows of each table the number is, read with a plain driver."""
    holds = values.quick(values.needle("+1 415 555 0142"))
    with connected(url) as database:
        found = {
            table: sum(holds(" ".join(map(_text, row))) for row in rows)
            for table, rows in rows_of(database).items()
        }
    return {table: count for table, count in found.items() if count}


def _text(cell: object) -> str:
    return bytes(cell).decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)


def in_bytes(folder: Path) -> int:
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert files
    return sum(one.read_bytes().count(spelling) for one in files for spelling in SPELLINGS)


def test_the_app_keeps_five_of_six_tables_and_dellm_none(
    example: ModuleType, url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    outcome = example.run(url, folder)
    before, after = outcome.left
    assert list(before) == list(example.TABLES)
    assert list(before.values()) == [1, 1, 1, 1, 1, 2]  # as it was counted in a real app
    assert list(after.values()) == [0, 1, 1, 1, 1, 2]
    held, kept = outcome.right
    assert all(held[name] for name in example.TABLES if name != "audit_log")
    assert set(kept.values()) == {0}
    assert held["response_cache"] == before["response_cache"]
    assert outcome.as_it_should
    assert outcome.receipt.level == "scrubbed"
    assert outcome.receipt.not_rebuilt == 0
    assert len(outcome.before) > 0
    assert outcome.after.clean
    assert holding(url) == {}


def test_what_the_table_prints_is_what_was_counted(
    example: ModuleType, sqlite_url: str, tmp_path: Path
) -> None:
    told = example.shown(example.run(sqlite_url, tmp_path))
    counts = {line.split()[0]: line.split()[1:] for line in told.splitlines() if line.strip()}
    assert counts["response_cache"][:2] == ["2", "2"]
    assert counts["messages"] == ["1", "0", "1", "0"]
    assert "415" not in told


@pytest.fixture
def right(example: ModuleType, url: str, tmp_path: Path) -> Iterator[object]:
    """Return the right side after the conversation, in a memory that is cleaned only when asked."""
    with Memory.open(url, embedder="hashing", scrub_below=0) as memory:
        side = example.OneMemory(memory.workspace("alex"))
        example.played(side)
        yield side


def test_the_number_is_there_before_in_tables_read_without_dellm_too(
    right: object, example: ModuleType, url: str
) -> None:
    """The negative control: what finds nothing afterwards does find it before."""
    assert holding(url)["record"] >= 5
    assert right.memory.scan(example.NUMBER).files  # type: ignore[attr-defined] # of the example
    assert is_postgres(url) or in_bytes(Path(url).parent) > 0


def test_nothing_is_left_in_rows_or_bytes(right: object, example: ModuleType, url: str) -> None:
    memory: Memory = right.memory  # type: ignore[attr-defined] # of the example
    vectors = "select count(*) from embedding"
    with connected(url) as database:
        ((had,),) = statement(database, vectors)
    receipt = memory.forget(example.NUMBER, scrub=True)
    with connected(url) as database:
        ((left,),) = statement(database, vectors)
    assert memory.receipt(receipt.number).level == "scrubbed"
    assert memory.scan(example.NUMBER).clean
    assert left < had
    assert holding(url) == {}
    assert memory.search(example.NUMBER, by="keyword") == []
    assert [one.text for one in memory.history("chat")] == [example.SAID[0], example.SAID[2]]
    if not is_postgres(url):
        memory.close()
        assert in_bytes(Path(url).parent) == 0


def test_a_table_that_somebody_adds_is_looked_at_without_a_change(
    right: object, example: ModuleType, url: str
) -> None:
    memory: Memory = right.memory  # type: ignore[attr-defined] # of the example
    memory.forget(example.NUMBER, scrub=False)
    looked = memory.scan(example.NUMBER).looked_at
    with connected(url) as database:
        statement(database, "create table seventh(note text)")
        statement(database, "insert into seventh values ('ring 415.555.0142 back')")
    report = memory.scan(example.NUMBER)
    assert [(one.table, one.column, one.count) for one in report.places] == [("seventh", "note", 1)]
    assert not report.clean
    assert set(report.looked_at) - set(looked) >= {"seventh"}
    with connected(url) as database:
        statement(database, "drop table seventh")


def test_the_example_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "six tables of an app" in done.stdout
