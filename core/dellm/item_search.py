"""Finding items in a space and below it: the newest, or those nearest to a query.

First come ids alone, in order; the values are only read of what may be among the answers. All
within one snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import texts
from .database import R_USABLE, Row, Scope, Tx, Vector
from .encoding import decode, encode
from .item_vectors import ItemVectors
from .records import Record
from .storing import COLUMNS

PAGE = 256  # the nearest items, looked at before the others are
FEW = 1_024  # items that hold what is asked for, up to which they are read at once
MOST = 1 << 62  # items that may be asked for

_written = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode

Space = tuple[str, ...]
Where = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Item:
    """A value that is kept, with the record that holds it; times in microseconds since 1970.

    `score` is the cosine in [-1, 1] of the best of its vectors, None without a query or vectors.
    """

    space: Space
    name: str = field(repr=False)
    record: Record
    created_at: int
    updated_at: int
    ttl: float | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which items are asked for: `need` of them, by their records' texts.

    Each text has to hold one text of each group of `holding`, and `where` has to say yes.
    """

    need: int
    where: Where | None = None
    holding: Sequence[Sequence[str]] = ()

    @property
    def all_count(self) -> bool:
        """Whether every item counts."""
        return self.where is None and not self.holding

    def says(self, text: str) -> bool:
        """Whether a text that holds what is asked for counts, given as it is stored."""
        return self.where is None or self.where(decode(text))


class Finder:
    """The items of one family in a space and below it, that are there at a moment."""

    def __init__(self, tx: Tx, scope: Scope, family: str, prefix: Space, at: int) -> None:
        self._tx, self._scope = tx, scope
        self._there: dict[str, Any] = {"ws": scope.ws, "family": encode(family), "at": at}
        low, high = between(prefix)
        self._values = {**self._there, "low": low, "high": high}

    def newest(self, wanted: Wanted) -> Iterator[Item]:
        """Yield the items, the last written first."""
        size = wanted.need if wanted.all_count else max(PAGE, wanted.need)
        first = self._first(size, wanted)
        yield from first
        left = wanted.need - len(first)
        # Few of them count, or some are not for use; mostly there just are no more.
        if left and not (wanted.all_count and len(self._ids(size)) < size):
            rest = self._counting(wanted, left, {one.record.id for one in first})
            yield from self._read(rest, wanted.need)

    def nearest(self, vectors: ItemVectors, query: Vector, wanted: Wanted) -> Iterator[Item]:
        """Yield the items, the nearest first, and then those without vectors, newest first."""
        ids, scores = vectors.ranked(self._tx, self._values["ws"], query)
        # Mostly the answers are among the first: then nobody needs to know what else there is.
        first = self._those(self._here(ids[:PAGE].tolist()), wanted)
        near = _by_id(ids[:PAGE], scores[:PAGE])
        near = {one: near[one] for one in first}
        yield from self._scored(near, wanted.need)
        here = np.asarray(self._counting(wanted), np.int64)
        left = np.isin(ids[PAGE:], here)
        yield from self._scored(_by_id(ids[PAGE:][left], scores[PAGE:][left]), wanted.need)
        yield from self._read(here[~np.isin(here, ids)].tolist(), wanted.need)

    def named(self, space: str, name: str, *, last: bool) -> Item | None:
        """Return the item of a space, as it is stored, and a name; `last`: nothing else is asked."""
        ask = self._tx.final if last else self._tx.all
        rows = ask(
            f"{_WHOLE} i.family = :family and i.space = :space and i.name = :name {_RECORD}",
            **self._there,
            space=space,
            name=encode(name),
        )
        return next(self._made(rows), None)

    def _first(self, most: int, wanted: Wanted) -> list[Item]:
        """Return those that count of the items written last, of so many; no more than are needed."""
        holding, values = _held(wanted.holding)
        rows = self._tx.all(
            f"{_WHOLE} {_HERE[4:]} {_ORDER} limit {most:d}) i {_THEIRS} {holding} {_ORDER}",
            **self._values,
            **values,
        )
        found = (one for one in rows if wanted.says(one[_TEXT]))
        return list(self._made(islice(found, wanted.need)))

    def _those(self, ids: Sequence[int], wanted: Wanted) -> Sequence[int]:
        """Return those of a few items, given by record, that count, in their order."""
        if wanted.all_count:
            return ids
        holding, values = _held(wanted.holding)
        rows = self._tx.all(
            f"select r.id, r.text from record r where r.ws = :ws and r.id in :ids {holding}",
            ws=self._scope.ws,
            ids=list(ids),
            **values,
        )
        found = {id_ for id_, text in rows if wanted.says(text)}
        return [one for one in ids if one in found]

    def _counting(
        self, wanted: Wanted, most: int = MOST, without: Collection[int] = ()
    ) -> list[int]:
        """Return the records of at most so many items that count, the last written first."""
        if wanted.all_count:
            return [one for one in self._ids() if one not in without]
        holding, values = _held(wanted.holding)
        asked = f"select i.record, r.text {_JOINED} {_HERE} {_LIVING} {holding} {_ORDER}"
        rows: Sequence[Row] | Iterator[Row] = ()
        if holding:  # mostly few hold it: those a server gives in one round trip
            rows = self._tx.all(f"{asked} limit {FEW}", **self._values, **values)
        if not holding or len(list(rows)) == FEW:
            rows = self._tx.stream(asked, **self._values, **values)
        found = (id_ for id_, text in rows if id_ not in without and wanted.says(text))
        return list(islice(found, most))

    def _ids(self, most: int = MOST) -> list[int]:
        rows = self._tx.all(
            f"select i.record from item i where i.ws = :ws {_HERE} {_ORDER} limit :most",
            **self._values,
            most=most,
        )
        return [row[0] for row in rows]

    def _here(self, ids: Sequence[int]) -> list[int]:
        """Return those of a few records that are items here, in their order."""
        rows = self._tx.all(
            "select i.record, i.family, i.space from item i "
            f"where i.ws = :ws and i.record in :ids {_UNEXPIRED}",
            ws=self._scope.ws,
            at=self._there["at"],
            ids=list(ids),
        )
        # Asked for in the statement, PostgreSQL would walk through the whole space instead.
        family, low, high = (self._values[one] for one in ("family", "low", "high"))
        here = {row[0] for row in rows if row[1] == family and low <= row[2] <= high}
        return [one for one in ids if one in here]

    def _scored(self, scores: Mapping[int, float], at_once: int) -> Iterator[Item]:
        for one in self._read(list(scores), at_once):
            yield Item(
                one.space,
                one.name,
                one.record,
                one.created_at,
                one.updated_at,
                one.ttl,
                scores[one.record.id],
            )

    def _read(self, ids: Sequence[int], at_once: int) -> Iterator[Item]:
        """Yield the items that the records are, in this order; so many are read at a time."""
        for start in range(0, len(ids), max(1, at_once)):
            some = ids[start : start + max(1, at_once)]
            rows = self._tx.all(
                f"{_WHOLE} i.record in :ids {_RECORDS}",
                ws=self._scope.ws,
                at=self._there["at"],
                ids=list(some),
            )
            found = {one.record.id: one for one in self._made(rows)}
            yield from (found[one] for one in some if one in found)

    def _made(self, rows: Iterable[Row]) -> Iterator[Item]:
        for space, name, ttl, created, updated, *record in rows:
            kept = Record.from_row(record, self._scope.name)
            yield Item(labels(space), decode(name), kept, created, updated, ttl)


# With a limit, which must not be bound, the items come first whatever the planner thinks; and SQLite
# would prepare a plain join anew each time, since it plans by the values that are bound.
_WHOLE = (
    "select i.space, i.name, i.ttl, i.created_at, i.updated_at, r."
    + COLUMNS.replace(", ", ", r.")
    + " from (select * from item i where i.ws = :ws and "
)
_TEXT = 5 + COLUMNS.split(", ").index("text")  # where it is in what this gives
_THEIRS = f"join record r on r.ws = :ws and r.id = i.record where {R_USABLE}"
_RECORDS = f"and (i.expires_at is null or i.expires_at > :at) limit {MOST}) i {_THEIRS}"
_RECORD = _RECORDS.replace(f"limit {MOST}", "limit 1")
_JOINED = "from item i join record r on r.ws = :ws and r.id = i.record where i.ws = :ws"
_UNEXPIRED = "and (i.expires_at is null or i.expires_at > :at)"
_HERE = f"and i.family = :family and i.space between :low and :high {_UNEXPIRED}"
_LIVING = f"{_UNEXPIRED} and {R_USABLE}"
_ORDER = "order by i.updated_at desc, i.record desc"


def _held(groups: Sequence[Sequence[str]]) -> tuple[str, dict[str, str]]:
    """Return the condition that texts hold one of each group, and its values."""
    conditions: list[str] = []
    values: dict[str, str] = {}
    for group in groups:
        names = [f"held{len(values) + at}" for at, _ in enumerate(group)]
        values.update(zip(names, map(encode, group), strict=True))
        either = " or ".join(f"instr(r.text, :{one}) > 0" for one in names)
        conditions.append(f"and ({either})")
    return " ".join(conditions), values


def stored(space: Space) -> str:
    """Return a space as it is stored: JSON, so that no label can pass for two."""
    return _written(texts(space, "A space"))


def labels(space: str) -> Space:
    """Return a space from its stored form."""
    return tuple(json.loads(space))


def between(prefix: Space) -> tuple[str, str]:
    """Return the first and the last that a space with the prefix may be, as they are stored.

    After the prefix comes a comma or the closing bracket, and nothing else begins like that.
    """
    if prefix == ():
        return "[", "]"
    exact = stored(prefix)
    return (f"{exact[:-1]},", exact) if prefix else ("[", "]")


def _by_id(ids: NDArray[np.int64], scores: NDArray[np.float32]) -> dict[int, float]:
    return dict(zip(ids.tolist(), scores.tolist(), strict=True))
