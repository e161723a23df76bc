"""Showing what is remembered about somebody, taking it along, and bringing back no more than may be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import LiteralString

import pytest

from dellm import Brought, Draft, InvalidInput, Memory, PolicyRefused

SECRET = "zanzibar 4711"


def texts(known: list[object]) -> list[str]:
    return [one.record.text for one in known]  # type: ignore[attr-defined] # Known


@pytest.fixture
def filled(memory: Memory) -> Memory:
    memory.remember("likes tea", thread="t", subject="Ann Lee", purpose="catering", source="form 7")
    memory.remember("likes rain", thread="t", subject="Bob")
    memory.record("Ann gets tea.", context=[1], thread="t", subject="ann  lee")
    memory.remember("nobody's note", thread="u")
    return memory


def test_what_is_about_somebody_is_shown_with_where_it_is_from(filled: Memory) -> None:
    found = filled.remembered(" ann lee")
    assert texts(found) == ["likes tea", "Ann gets tea."]
    assert (found[0].governed.source, found[0].governed.purpose) == ("form 7", "catering")
    assert "from form 7" in str(found[0])
    assert texts(filled.remembered("ann")) == []
    assert texts(filled.remembered(thread="u")) == ["nobody's note"]
    assert texts(filled.remembered(purpose="catering")) == ["likes tea"]
    assert len(filled.remembered()) == 4


def test_it_comes_in_pages(filled: Memory) -> None:
    filled.remember_many([Draft(f"note {number}", subject="Ann Lee") for number in range(1_200)])
    assert texts(filled.remembered("ann lee", after=1, limit=2)) == ["Ann gets tea.", "note 0"]
    assert len(list(filled.remembered.each("Ann Lee"))) == 1_202
    assert filled.remembered("ann lee", limit=0) == []


def test_what_may_not_be_read_is_not_shown(filled: Memory) -> None:
    filled.remember("short", subject="Bob", retention_until=1)
    filled.remember_many([Draft("waits", subject="Bob", quarantined=True)])
    filled.forget(ids=[2], mode="suppress")
    assert filled.remembered("Bob") == []


def test_what_is_forgotten_or_put_right_is_found_so(filled: Memory) -> None:
    filled.correct(1, "likes coffee")
    assert texts(filled.remembered("Ann Lee")) == ["likes coffee"]
    filled.forget("coffee")
    assert filled.remembered("Ann Lee") == []
    with filled._engine.reading(filled.id) as (tx, scope):
        left = tx.all("select record from concerns where ws = :ws", ws=scope.ws)
    assert [row[0] for row in left] == [2]
    assert filled.verify().ok


def test_records_from_before_are_found_as_well(filled: Memory) -> None:
    statements: tuple[LiteralString, ...] = (
        "delete from concerns where ws = :ws",
        "update workspace set concerns = 0 where ws = :ws",
    )
    with filled._engine.writing(filled.id) as (tx, scope):
        for statement in statements:
            tx.run(statement, ws=scope.ws)
    filled.remember("late", subject="Ann Lee")
    assert texts(filled.remembered("Ann Lee")) == ["likes tea", "Ann gets tea.", "late"]
    assert texts(filled.remembered("Bob")) == ["likes rain"]


def test_no_subject_is_kept_but_in_its_record(filled: Memory) -> None:
    with filled._engine.reading(filled.id) as (tx, scope):
        rows = tx.all("select * from concerns where ws = :ws", ws=scope.ws)
    assert all(type(value) is int for row in rows for value in row)
    other = filled.workspace("kim")
    other.remember("note", subject="Bob")
    with other._engine.reading(other.id) as (tx, scope):
        (key,) = tx.one("select key from concerns where ws = :ws", ws=scope.ws) or ()
    assert key not in {row[1] for row in rows}  # each workspace has a key of its own


def test_an_export_is_taken_in_elsewhere_once(
    filled: Memory, tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    path = tmp_path / "ann.jsonl"
    assert filled.remembered.export(path, "Ann Lee") == 2
    head, first, second = map(json.loads, path.read_text().splitlines())
    assert (head["format"], first["text"], second["context"]) == (
        "dellm-export/1",
        "likes tea",
        [1],
    )
    other = opened(":memory:")
    assert other.remembered.bring_back(path) == Brought(new=2)
    assert texts(other.remembered("Ann Lee")) == ["likes tea", "Ann gets tea."]
    assert other.context_of(2) == [1]
    assert other.governed(1).created_by == "import"
    assert other.get(1).created_at == filled.get(1).created_at
    assert other.remembered.bring_back(path) == Brought(here=2)
    assert len(list(other.export())) == 2
    assert other.verify().ok


def test_nothing_that_was_forgotten_comes_back(
    filled: Memory, tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    path = tmp_path / "all.jsonl"
    filled.remembered.export(path)
    filled.forget(ids=[1])
    assert filled.remembered.bring_back(path) == Brought(here=2, forgotten=2)
    assert texts(filled.remembered()) == ["likes rain", "nobody's note"]
    other = opened(":memory:")
    other.remembered.bring_back(path)
    other.forget(ids=[1])
    assert other.remembered.bring_back(path).forgotten == 2
    assert other.scan("likes tea").clean


def test_a_guard_holds_against_an_export(
    filled: Memory, tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    path = tmp_path / "all.jsonl"
    filled.remember(f"the code is {SECRET}", thread="v")
    filled.remembered.export(path, thread="v")
    other = opened(":memory:")
    other.remember(f"my code: {SECRET}")
    other.forget(SECRET, guard=True)
    other.remembered.bring_back(path)
    assert other.scan("zanzibar 4711").clean


def test_what_is_made_of_what_is_not_in_the_file_is_left_out(
    filled: Memory, tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    path = tmp_path / "some.jsonl"
    filled.record("Bob gets rain.", context=[2], thread="w")
    filled.remembered.export(path, thread="w")
    assert opened(":memory:").remembered.bring_back(path) == Brought(forgotten=1)


DAMAGES = {
    "nothing": "",
    "no JSON": "hello\n",
    "another format": '{"format": "x"}\n',
    "no id": '{"format": "dellm-export/1", "origin": "a", "workspace": "b"}\n{"text": "x"}\n',
    "a list": '{"format": "dellm-export/1", "origin": "a", "workspace": "b"}\n[1]\n',
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_whole(memory: Memory, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "export"
    path.write_text(DAMAGES[damage])
    with pytest.raises(InvalidInput):
        memory.remembered.bring_back(path)
    with pytest.raises(InvalidInput):
        memory.remembered.bring_back(tmp_path / "none")
    assert list(memory.export()) == []


def test_a_cut_file_stores_nothing(
    filled: Memory, tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    path = tmp_path / "all.jsonl"
    filled.remembered.export(path)
    path.write_text(path.read_text()[:-20])
    other = opened(":memory:")
    with pytest.raises(InvalidInput):
        other.remembered.bring_back(path)
    assert list(other.export()) == []


def test_what_the_policy_keeps_in_is_in_no_export(
    url: str, tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[classes.inside]\nexport = false\n")
    memory = opened(url, policy=policy).workspace("alex")
    memory.remember("stays", retention="inside")
    memory.remember("goes")
    assert memory.remembered.export(tmp_path / "out") == 1
    assert "stays" not in (tmp_path / "out").read_text()


def test_a_blank_or_wrong_question_is_refused(memory: Memory) -> None:
    for wrong in ("", " ", 3, b"x"):
        with pytest.raises(InvalidInput):
            memory.remembered(wrong)  # type: ignore[arg-type] # that is what is tried
    with pytest.raises(InvalidInput):
        memory.remembered("ann", limit=-1)


def test_a_tool_exports_nothing(memory: Memory) -> None:
    with pytest.raises(PolicyRefused):
        memory.policies.require("export", "tool")
