"""Finding items in a space and below it: the newest, or those nearest to a query.

First come ids alone, in order, a few and then ever more; the values are only read of what may be
among the answers. All within one snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from . import reading
from .arguments import texts
from .database import Row, Scope, Tx, Vector
from .encoding import decode, encode
from .item_vectors import ItemVectors
from .records import Record

PAGE = 256  # items looked at before more are
MORE = 8  # times as many the next time

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

    Each text has to hold every one of `holding`, and `where` has to say yes; letters of another case
    may count as the same in `holding`.
    """

    need: int
    where: Where | None = None
    holding: Sequence[str] = ()

    @property
    def all_count(self) -> bool:
        """Whether every item counts."""
        return self.where is None and not self.holding


class Finder:
    """The items of one family in a space and below it, that are there at a moment."""

    def __init__(self, tx: Tx, scope: Scope, family: str, prefix: Space, at: int) -> None:
        self._tx, self._scope, self._at = tx, scope, at
        low, high = between(prefix)
        self._values = {
            "ws": scope.ws,
            "family": encode(family),
            "low": low,
            "high": high,
            "at": at,
        }

    def newest(self, wanted: Wanted) -> Iterator[Item]:
        """Yield the items, the last written first."""
        if wanted.all_count:
            yield from self._read(self._ids(wanted.need), wanted)
            yield from self._read(self._ids(start=wanted.need), wanted)
        else:
            for ids in _pages(self._ids(), PAGE):
                yield from self._read(ids, wanted)

    def nearest(self, vectors: ItemVectors, query: Vector, wanted: Wanted) -> Iterator[Item]:
        """Yield the items, the nearest first, and then those without vectors, newest first."""
        ids, scores = vectors.ranked(self._tx, self._scope.ws, query)
        first = ids[:PAGE].tolist()
        yield from self._scored(self._here(first), _by_id(ids[:PAGE], scores[:PAGE]), wanted)
        here = np.asarray(self._ids(), np.int64)
        left = np.isin(ids[PAGE:], here)
        said = _by_id(ids[PAGE:][left], scores[PAGE:][left])
        for some in _pages(list(said), PAGE):
            yield from self._scored(some, said, wanted)
        for some in _pages(here[~np.isin(here, ids)].tolist(), PAGE):
            yield from self._read(some, wanted)

    def named(self, space: str, name: str) -> Item | None:
        """Return the item of a space, as it is stored, and a name."""
        row = self._tx.one(
            f"select {_COLUMNS} from item where ws = :ws and family = :family "
            "and space = :space and name = :name and (expires_at is null or expires_at > :at)",
            ws=self._scope.ws,
            family=self._values["family"],
            space=space,
            name=encode(name),
            at=self._at,
        )
        return next(self._made([row]), None) if row else None

    def _ids(self, limit: int = 1 << 62, start: int = 0) -> list[int]:
        rows = self._tx.all(
            f"select record from item where {_HERE} "
            "order by updated_at desc, record desc limit :limit offset :start",
            **self._values,
            limit=limit,
            start=start,
        )
        return [row[0] for row in rows]

    def _here(self, ids: Sequence[int]) -> list[int]:
        """Return those of the records that are items here, in their order."""
        rows = self._tx.all(
            f"select record from item where {_HERE} and record in :ids",
            **self._values,
            ids=list(ids),
        )
        held = {row[0] for row in rows}
        return [one for one in ids if one in held]

    def _scored(
        self, ids: Sequence[int], scores: dict[int, float], wanted: Wanted
    ) -> Iterator[Item]:
        for one in self._read(ids, wanted):
            yield Item(
                one.space,
                one.name,
                one.record,
                one.created_at,
                one.updated_at,
                one.ttl,
                scores[one.record.id],
            )

    def _read(self, ids: Sequence[int], wanted: Wanted) -> Iterator[Item]:
        """Yield those of the items, given by record, that count; a few are read at a time."""
        counting = ids if wanted.all_count else self._counting(ids, wanted)
        for some in _pages(counting, max(1, wanted.need), 1):
            rows = self._tx.all(
                f"select {_COLUMNS} from item where ws = :ws and record in :ids",
                ws=self._scope.ws,
                ids=list(some),
            )
            place = {one: at for at, one in enumerate(some)}
            yield from self._made(sorted(rows, key=lambda row: place[row[2]]))

    def _counting(self, ids: Sequence[int], wanted: Wanted) -> list[int]:
        holding = {f"held{at}": _pattern(one) for at, one in enumerate(wanted.holding)}
        asked = " ".join(f"and text like :{name} escape '!'" for name in holding)
        rows = self._tx.all(
            f"select id, text from record where ws = :ws and id in :ids {asked}",
            ws=self._scope.ws,
            ids=list(ids),
            **holding,
        )
        where = wanted.where
        held = {id_ for id_, text in rows if where is None or where(decode(text))}
        return [one for one in ids if one in held]

    def _made(self, rows: Iterable[Row]) -> Iterator[Item]:
        listed = list(rows)
        held = reading.several(self._tx, self._scope, [row[2] for row in listed], self._at)
        for space, name, record, ttl, created, updated in listed:
            if record in held:
                yield Item(labels(space), decode(name), held[record], created, updated, ttl)


_COLUMNS = "space, name, record, ttl, created_at, updated_at"
_HERE = (
    "ws = :ws and family = :family and space between :low and :high "
    "and (expires_at is null or expires_at > :at)"
)


def stored(space: Space) -> str:
    """Return a space as it is stored: JSON, so that no label can pass for two."""
    return json.dumps(texts(space, "A space"), ensure_ascii=True, separators=(",", ":"))


def labels(space: str) -> Space:
    """Return a space from its stored form."""
    return tuple(json.loads(space))


def between(prefix: Space) -> tuple[str, str]:
    """Return the first and the last that a space with the prefix may be, as they are stored.

    After the prefix comes a comma or the closing bracket, and nothing else begins like that.
    """
    exact = stored(prefix)
    return (f"{exact[:-1]},", exact) if prefix else ("[", "]")


def _by_id(ids: NDArray[np.int64], scores: NDArray[np.float32]) -> dict[int, float]:
    return dict(zip(ids.tolist(), scores.tolist(), strict=True))


def _pages(ids: Sequence[int], size: int, more: int = MORE) -> Iterator[Sequence[int]]:
    start = 0
    while start < len(ids):
        yield ids[start : start + size]
        start += size
        size *= more


def _pattern(text: str) -> str:
    kept = encode(text)
    for one in "!%_":
        kept = kept.replace(one, f"!{one}")
    return f"%{kept}%"
