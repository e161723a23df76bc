"""Looking for a value everywhere it could still be: every table there is, and the files.

The list of tables is read from the database itself, so a new table is covered without a change
here. Cells are read decoded (JSON, compressed, base64, UTF-16) and raw; file bytes are searched in
every spelling that has a byte form. What could not be looked at is said, never called clean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import contents, search, values
from .database import Row, Scope, Tx
from .encoding import decode
from .engine import Engine
from .errors import UnsupportedHere
from .terms import distinct


@dataclass(frozen=True, slots=True)
class Place:
    """A column that holds the value: in how many rows, and in which records where they have ids."""

    table: str
    column: str
    count: int
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A file of the whole database whose bytes hold the value, and how often."""

    file: str
    count: int


@dataclass(frozen=True, slots=True)
class ScanReport:
    """Where a value still is. Tables are this workspace's rows; files are the whole database's."""

    places: tuple[Place, ...]
    files: tuple[FilePlace, ...]
    looked_at: tuple[str, ...]
    not_looked_at: tuple[str, ...] = field(default=())

    @property
    def clean(self) -> bool:
        """Whether everything was looked at and the value is nowhere."""
        return not (self.places or self.files or self.not_looked_at)

    def __len__(self) -> int:
        """In how many places the value is: rows of tables, and occurrences in files."""
        return sum(one.count for one in self.places) + sum(one.count for one in self.files)

    def __str__(self) -> str:
        lines = [f"{len(self)} place(s); {len(self.looked_at)} table(s) and file(s) looked at"]
        lines += [f"{one.table}.{one.column}: {one.count} row(s)" for one in self.places]
        lines += [f"file {one.file}: {one.count} time(s)" for one in self.files]
        lines += [f"not looked at: {one}" for one in self.not_looked_at]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values; it does not repeat the value."""
        return {
            "places": [
                {"table": one.table, "column": one.column, "count": one.count, "ids": list(one.ids)}
                for one in self.places
            ],
            "files": [{"file": one.file, "count": one.count} for one in self.files],
            "looked_at": list(self.looked_at),
            "not_looked_at": list(self.not_looked_at),
            "clean": self.clean,
        }


def scan(engine: Engine, name: str, value: str, *, files: bool = True) -> ScanReport:
    """Return every place that holds the value in any spelling; SelectorError for a blank one."""
    needle = values.needle(value, region=engine.options.region)
    look = _Look(needle)
    looked: list[str] = []
    with engine.reading(name, owner=True) as (tx, scope):
        places = list(_places(tx, scope, look, looked, shared=files))
        places += _terms(tx, scope, value)
    missed: list[str] = []
    hits: list[FilePlace] = []
    if files:
        try:
            hits = _files(engine, look, looked)
        except UnsupportedHere as error:
            missed.append(error.what)
    return ScanReport(tuple(places), tuple(hits), tuple(looked), tuple(missed))


class _Look:
    """The value, ready to be looked for in texts and in bytes."""

    def __init__(self, needle: values.Needle) -> None:
        self.holds: Callable[[str], bool] = values.quick(needle)
        self.spellings = values.byte_spellings(needle)
        self.longest = max(map(len, self.spellings), default=1)

    def in_cell(self, cell: object) -> bool:
        """Whether a stored cell holds the value, decoded or raw."""
        if isinstance(cell, str):
            plain = decode(cell)
            return self.holds(plain) or any(map(self.holds, contents.text_readings(plain)))
        if isinstance(cell, bytes | bytearray | memoryview):
            data = bytes(cell)
            if any(spelling in data for spelling in self.spellings):
                return True
            return any(map(self.holds, contents.readings(data)))
        if isinstance(cell, list | tuple | dict):
            return any(map(self.holds, contents.strings(cell)))
        return False

    def in_chunk(self, chunk: bytes) -> set[int]:
        """Return the offsets at which the bytes hold the value in some spelling."""
        found: set[int] = set()
        for spelling in self.spellings:
            at = chunk.find(spelling)
            while at >= 0:
                if not _inside_a_word(chunk, at, spelling):
                    found.add(at)
                at = chunk.find(spelling, at + 1)
        return found


def _inside_a_word(chunk: bytes, at: int, spelling: bytes) -> bool:
    """Whether a one-word spelling stands between two letters, or a number between two digits.

    "paris" in "comparison" is no trace. One such neighbour proves nothing: the databases put
    fields next to each other without a separator.
    """
    before, after = chunk[max(at - 1, 0) : at], chunk[at + len(spelling) : at + len(spelling) + 1]
    if spelling.isalpha():
        return before.isalpha() and after.isalpha()
    return spelling.isdigit() and before.isdigit() and after.isdigit()


def _places(
    tx: Tx, scope: Scope, look: _Look, looked: list[str], *, shared: bool
) -> Iterator[Place]:
    """Yield where the workspace's rows hold the value.

    `shared` also looks into tables that hold every workspace's rows in one, as the files do.
    """
    for table, columns, scoped in tx.tables():
        if not columns or not (scoped or shared):
            continue
        looked.append(table)
        hits: dict[str, list[int]] = {}
        key = columns.index("id") if "id" in columns else None
        for row in tx.table_rows(table, columns, scope.ws if scoped else None):
            for column, cell in zip(columns, row, strict=True):
                if look.in_cell(cell):
                    hits.setdefault(column, []).append(_id(row, key))
        for column, ids in hits.items():
            known = tuple(sorted({id_ for id_ in ids if id_}))
            yield Place(table, column, len(ids), known if scoped else ())


def _id(row: Row, key: int | None) -> int:
    return row[key] if key is not None and isinstance(row[key], int) else 0


def _terms(tx: Tx, scope: Scope, value: str) -> list[Place]:
    """Return the keyword index as a place when records are still found there by the value's terms."""
    ids = search.with_all_terms(tx, scope.ws, distinct(value))
    living = _living(tx, scope, sorted(ids))
    left = sorted(ids - living)
    return [Place("keyword", "terms", len(left), tuple(left))] if left else []


def _living(tx: Tx, scope: Scope, ids: Sequence[int]) -> set[int]:
    rows = tx.all("select id from record where ws = :ws and id in :ids", ws=scope.ws, ids=list(ids))
    return {row[0] for row in rows}


def _files(engine: Engine, look: _Look, looked: list[str]) -> list[FilePlace]:
    counts: dict[str, int] = {}
    for file, chunk in engine.database.file_chunks(look.longest - 1):
        if file not in counts:
            looked.append(file)
        counts[file] = counts.get(file, 0) + len(look.in_chunk(chunk))
    return [FilePlace(file, count) for file, count in counts.items() if count]
