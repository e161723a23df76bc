"""Counting how often a word is left: in rows, in the bytes of files, in what LangGraph reads back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import BaseCheckpointSaver

from dellm import ScanReport


@dataclass(frozen=True, slots=True)
class Word:
    """A word that stands for the secret: whatever holds it, in any case, tells the secret."""

    text: str

    def told_by(self, value: object) -> bool:
        """Whether a database cell, or any object by its repr, holds the word."""
        return self.times(value) > 0

    def times(self, value: object) -> int:
        """How often a database cell, or any object by its repr, holds the word."""
        if isinstance(value, bytes):
            return value.lower().count(self.text.lower().encode())
        return (
            (value if isinstance(value, str) else repr(value))
            .casefold()
            .count(self.text.casefold())
        )


class Database(Protocol):
    """What a sqlite3.Connection does, as far as it is needed to look at every row."""

    def execute(self, statement: str, /) -> Iterable[tuple[object, ...]]:
        """Run a statement and return its rows."""
        ...


def rows(database: Database, word: Word) -> dict[str, int]:
    """Return, for each table of a SQLite database that has any, how many rows hold the word."""
    counts = {name: _rows_of(database, name, word) for name in _tables(database)}
    return {name: count for name, count in counts.items() if count}


def _tables(database: Database) -> list[str]:
    # A virtual table's rows are in tables of its own, which are listed as well.
    found = database.execute(
        "select name from sqlite_master where type = 'table' and sql not like 'create virtual%'"
    )
    return [str(row[0]) for row in found]


def _rows_of(database: Database, table: str, word: Word) -> int:
    quoted = table.replace('"', '""')
    found = database.execute(f'select * from "{quoted}"')
    return sum(any(map(word.told_by, row)) for row in found)


def scanned_rows(report: ScanReport) -> dict[str, int]:
    """Return what memory.scan has found, by table; a row that holds it in two columns once."""
    counts: dict[str, int] = {}
    ids: dict[str, set[int]] = {}
    for place in report.places:
        known = ids.setdefault(place.table, set())
        known.update(place.ids)
        counts[place.table] = max(counts.get(place.table, 0), place.count, len(known))
    return counts


def times_in_files(folder: Path, word: Word) -> dict[str, int]:
    """Return, for each file of a folder, how often its bytes hold the word (UTF-8)."""
    files = sorted(one for one in folder.iterdir() if one.is_file())
    return {one.name: word.times(one.read_bytes()) for one in files}


def size_of_files(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(one.stat().st_size for one in folder.iterdir() if one.is_file())


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many tell the secret."""

    telling: int
    of: int

    def __str__(self) -> str:
        return f"{self.telling} of {self.of}"

    @classmethod
    def counted(cls, things: Iterable[object], word: Word) -> Share:
        """Count the things, and those that hold the word."""
        told = [word.told_by(one) for one in things]
        return cls(sum(told), len(told))


def checkpoints(saver: BaseCheckpointSaver[Any], thread: str, word: Word) -> Share:
    """Read every checkpoint of a thread, subgraphs and pending writes too; count those that tell."""
    config: Any = {"configurable": {"thread_id": thread}}
    found = saver.list(config)
    return Share.counted(
        ((one.checkpoint, one.metadata, one.pending_writes) for one in found), word
    )


def states(graph: Any, config: Any, word: Word) -> Share:
    """Read the state history of a thread as an application does; count the states that tell."""
    history = graph.get_state_history(config)
    return Share.counted(((one.values, one.tasks, one.interrupts) for one in history), word)


def tells(message: BaseMessage, word: Word) -> bool:
    """Whether a message tells the secret: in its content, or in what it calls a tool with."""
    return in_prompt([message], word) > 0


def in_prompt(messages: Sequence[BaseMessage], word: Word) -> int:
    """Return how often messages hold the word, in contents and in what tools are called with."""
    return sum(word.times((one.content, getattr(one, "tool_calls", []))) for one in messages)
