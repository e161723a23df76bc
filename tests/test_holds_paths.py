"""No way of deleting gets past a hold: a table of every way, kind of hold and database.

The last tests switch off what plans know of holds, where the check in `erasing` alone must do, and that
check as well, where all must be lost: else the table would show nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from delete_paths import PATHS, WORD, Path
from raw_tables import connected, rows_of, statement

from dellm import ContextForgotten, HeldRecord, Memory, holding

HOLDS = ("ids", "subject", "thread", "workspace", "thread before", "workspace before")
RAW = ("text", "payload", "metadata")


class Clock:
    """A clock that a test moves, in microseconds."""

    hours = 490_000

    def __call__(self) -> int:
        return self.hours * 3_600_000_000


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    memory = opened(url, clock=Clock()).workspace("alex")
    memory.index()
    return memory


def holders(url: str) -> dict[int, tuple[str, str, int]]:
    """Return text, thread and status of the records that hold the word, by id, read by a plain driver."""
    with connected(url) as raw:
        rows = statement(raw, "select id, text, payload, metadata, thread, status from record")
    return {
        row[0]: (row[1], row[4], row[5])
        for row in rows
        if any(WORD in _text(one) for one in row[1:4] if one is not None)
    }


def _text(stored: Any) -> str:
    return stored if isinstance(stored, str) else bytes(stored).decode("latin-1")


def hold(memory: Memory, url: str, kind: str) -> int | None:
    """Place a hold of a kind on all that holds the word; None where there is no such kind for it."""
    about = {"basis": "case 4711", "by": "counsel"}
    found = holders(url)
    if kind == "subject":
        with connected(url) as raw:
            for id_ in found:
                statement(raw, "update record set subject = ? where id = ?", "Ann", id_)
            statement(raw, "update workspace set concerns = 0")  # as of an older version
        return memory.holds.place(subject="Ann", **about).number
    if kind.startswith("workspace"):
        return memory.holds.place(everything=True, **about).number
    if kind == "ids":
        return memory.holds.place(ids=sorted(found), **about).number
    threads = {one[1] for one in found.values()} or {"t"}
    return memory.holds.place(thread="t", **about).number if threads == {"t"} else None


def shown(memory: Memory) -> str:
    """Return all that the reads give."""
    told = [one.text for one in memory.export()]
    told += [one.text for thread in memory.threads() for one in memory.history(thread)]
    told += [one.record.text for one in memory.search(f"born in {WORD}")]
    told += [one.record.text for one in memory.items.search("store", limit=50)]
    told += [one.text for one in memory.waiting()]
    told += [str(memory.answers.find(f"where is {WORD}?", scope="s"))]
    return "\n".join(told)


@pytest.mark.parametrize("name", PATHS)
def test_without_a_hold_it_is_gone(memory: Memory, url: str, name: str) -> None:
    path = PATHS[name]
    given = path.put(memory)
    assert holders(url)
    path.take(memory, given)
    if path.left != "unused":
        assert holders(url) == {}
    assert WORD not in shown(memory)


@pytest.mark.parametrize("kind", HOLDS)
@pytest.mark.parametrize("name", PATHS)
def test_no_way_gets_past_a_hold(memory: Memory, url: str, name: str, kind: str) -> None:
    path = PATHS[name]
    before = kind.endswith("before")
    number = hold(memory, url, kind) if before else None
    given = path.put(memory)
    if before and kind.startswith("thread") and {one[1] for one in holders(url).values()} != {"t"}:
        pytest.skip("what is put here is in no thread")
    if not before:
        number = hold(memory, url, kind)
        if number is None:
            pytest.skip("what is put here is in no thread")
        assert WORD not in shown(memory)
    held = {id_: one[0] for id_, one in holders(url).items()}
    with suppress(HeldRecord, ContextForgotten):
        path.take(memory, given)
    _is_kept(memory, url, held)
    assert number is not None
    memory.holds.release(number)
    _has_followed(memory, url, path, before=before)


def _is_kept(memory: Memory, url: str, held: dict[int, str]) -> None:
    now = holders(url)
    assert {id_: now[id_][0] for id_ in held if id_ in now} == held
    assert WORD not in shown(memory)
    assert list(memory.verify().problems) == []
    with connected(url) as raw:
        tables = rows_of(raw)
    for table in ("ledger", "hold", "hold_record", "hold_wait", "repeat", "tombstone"):
        assert WORD not in repr(tables[table]), table


def _has_followed(memory: Memory, url: str, path: Path, *, before: bool) -> None:
    assert list(memory.verify().problems) == []
    assert memory.holds() == []
    assert memory.holds.waiting() == []
    if path.left == "gone" or (path.left == "back" and before):
        assert holders(url) == {}
    if path.left != "back":
        assert WORD not in shown(memory)


# Ways that do not go through a plan but take the content out of a value: see holding.replaced.
REPLACING = ("item", "store.", "cache.", "answers", "summary", "tied")


def _on_hold(memory: Memory, path: Path) -> Any:
    given = path.put(memory)
    memory.holds.place(everything=True, basis="case 4711", by="counsel")
    return given


@pytest.mark.parametrize("name", [one for one in PATHS if not one.startswith(REPLACING)])
def test_where_no_plan_looks_the_erasing_itself_refuses(
    memory: Memory, url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "why", lambda *_: {})
    path = PATHS[name]
    given = _on_hold(memory, path)
    before = holders(url)
    with suppress(HeldRecord, ContextForgotten, AssertionError):  # of the command's exit code
        path.take(memory, given)
    assert {id_: one[0] for id_, one in holders(url).items()} == {
        id_: one[0] for id_, one in before.items()
    }
    assert list(memory.verify().problems) == []


@pytest.mark.parametrize("name", [one for one, path in PATHS.items() if path.left == "gone"])
def test_without_the_checks_the_table_would_fail(
    memory: Memory, url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "why", lambda *_: {})
    monkeypatch.setattr(holding, "refuse", lambda *_: None)
    monkeypatch.setattr(holding, "covering", lambda *_: {})
    monkeypatch.setattr(holding, "settle", lambda *_: ([], []))
    path = PATHS[name]
    path.take(memory, _on_hold(memory, path))
    assert holders(url) == {}
