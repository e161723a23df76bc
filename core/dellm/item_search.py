"""Finding items in a space and below it: the newest, or those nearest to a query.

First come ids alone, in order; the values are only read of what may be among the answers. All
within one snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np

from .arguments import texts
from .database import R_USABLE, Row, Scope, Tx, Vector
from .encoding import decode, encode
from .item_vectors import ItemVectors
from .records import Record
from .storing import COLUMNS

PAGE = 256  # the nearest items, looked at before the others are
NEWEST = 64  # and the newest: of most filters enough is among them
MOST = 1 << 62  # items that may be asked for

Space = tuple[str, ...]
Where = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Item:
    """A value that is kept, with the record that holds it; times in microseconds since 1970.

    `score` is the cosine in [-1, 1] of the best of its vectors, None without a query or vectors.
    What else there is to say is made of its row when it is asked for: mostly nobody asks for all.
    """

    space: Space
    name: str = field(repr=False)
    score: float | None
    _row: Row = field(repr=False)
    _workspace: str = field(repr=False)

    @property
    def id(self) -> int:
        """The id of the record that holds it."""
        return int(self._row[_ID])

    @property
    def text(self) -> str:
        """The text of the record that holds it."""
        return decode(self._row[_TEXT])

    @property
    def record(self) -> Record:
        """The record that holds it."""
        return Record.from_row(self._row[_ID:], self._workspace)

    @property
    def ttl(self) -> float | None:
        """How many minutes it lives after it was last written, or read with refresh."""
        found: float | None = self._row[2]
        return found

    @property
    def created_at(self) -> int:
        """When something was first kept under its name."""
        return int(self._row[3])

    @property
    def updated_at(self) -> int:
        """When it was kept."""
        return int(self._row[4])


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

    def first(self, wanted: Wanted) -> list[Item] | None:
        """Return the items, the last written first, if one statement tells; None if it does not.

        Nothing else may be asked then.
        """
        return self._newest_of_all(wanted.need) if wanted.all_count else self._of_newest(wanted)

    def _newest_of_all(self, need: int) -> list[Item] | None:
        rows = self._tx.final(_NEWEST.format(need=need), **self._values)
        found = [row for row in rows if row[_ID] is not None]
        if len(found) < len(rows) == need:  # some are not for use, so that there may be others
            return None
        return list(self._made(found))

    def _of_newest(self, wanted: Wanted) -> list[Item] | None:
        """Look only at the items that were written last, as far as there are more."""
        looked = max(NEWEST, min(4 * wanted.need, MOST))
        most = wanted.need if wanted.holding else looked
        holding, values = _held(wanted.holding)
        rows = self._tx.final(
            f"select {_COLUMNS}, (select count(*) from (select 1 {_HERE} limit {looked:d}) c) "
            f"from (select * {_HERE} {_ORDER} limit {looked:d}) i "
            f"{_THEIRS} {holding} {_ORDER} limit {most:d}",
            **self._values,
            **values,
        )
        found = [row for row in rows if wanted.says(row[_TEXT])][: wanted.need]
        every = 0 < len(rows) < most and rows[0][-1] < looked
        return list(self._made(found)) if every or len(found) == wanted.need else None

    def newest(self, wanted: Wanted) -> Iterator[Item]:
        """Yield the items, the last written first."""
        holding, values = _held(wanted.holding)
        asked = f"select {_COLUMNS} {_JOINED} {holding} and {_LIVING} {_ORDER}"
        most = wanted.need if wanted.where is None else max(wanted.need, PAGE)
        rows = self._tx.all(f"{asked} limit {most:d}", **self._values, **values)
        yield from self._made(row for row in rows if wanted.says(row[_TEXT]))
        if len(rows) == most and wanted.where is not None:  # that did not leave enough of them
            seen = {row[_ID] for row in rows}
            rest = self._tx.stream(asked, **self._values, **values)
            left = (one for one in rest if one[_ID] not in seen and wanted.says(one[_TEXT]))
            yield from self._made(left)

    def nearest(self, vectors: ItemVectors, query: Vector, wanted: Wanted) -> Iterator[Item]:
        """Yield the items, the nearest first, and then those without vectors, newest first."""
        ids, scores = vectors.ranked(self._tx, self._values["ws"], query)
        # Mostly the answers are among the first: then nobody needs to know what else there is.
        near = ids[:PAGE].tolist()
        score = dict(zip(near, scores[:PAGE].tolist(), strict=True))
        yield from self._those(near, score, wanted)
        here = np.asarray(self._counting(wanted), np.int64)
        left = np.isin(ids[PAGE:], here)
        score = dict(zip(ids[PAGE:][left].tolist(), scores[PAGE:][left].tolist(), strict=True))
        yield from self._read(list(score), wanted.need, score)
        yield from self._read(here[~np.isin(here, ids)].tolist(), wanted.need)

    def named(self, space: Space, name: str, *, last: bool) -> Item | None:
        """Return the item of a space and a name; `last`: nothing else is asked."""
        ask = self._tx.final if last else self._tx.all
        rows = ask(_NAMED, **self._there, space=stored(space), name=encode(name))
        return Item(tuple(space), name, None, rows[0], self._scope.name) if rows else None

    def _those(
        self, ids: Sequence[int], scores: Mapping[int, float], wanted: Wanted
    ) -> Iterator[Item]:
        """Yield those of a few items, given by record, that are here and count, in their order."""
        holding, values = _held(wanted.holding)
        # With the limit, PostgreSQL does not walk through the whole space instead.
        rows = self._tx.all(
            f"select {_COLUMNS} from (select * from item i where i.ws = :ws + 0 and i.record in :ids "
            f"{_UNEXPIRED} limit {MOST}) i {_THEIRS} and {_INSIDE} {holding}",
            **self._values,
            **values,
            ids=list(ids),
        )
        found = {row[_ID]: row for row in rows if wanted.says(row[_TEXT])}
        yield from self._made((found[one] for one in ids if one in found), scores)

    def _counting(self, wanted: Wanted) -> list[int]:
        """Return the records of all items that count, the last written first."""
        holding, values = _held(wanted.holding)
        if wanted.all_count:
            rows = self._tx.all(f"select i.record {_HERE} {_ORDER}", **self._values)
            return [row[0] for row in rows]
        asked = f"select i.record, r.text {_JOINED} {holding} and {_LIVING} {_ORDER}"
        found = self._tx.stream(asked, **self._values, **values)
        return [id_ for id_, text in found if wanted.says(text)]

    def _read(
        self, ids: Sequence[int], at_once: int, scores: Mapping[int, float] | None = None
    ) -> Iterator[Item]:
        """Yield the items that the records are, in this order; so many are read at a time."""
        for start in range(0, len(ids), max(1, at_once)):
            some = ids[start : start + max(1, at_once)]
            rows = self._tx.all(
                f"select {_COLUMNS} from (select * from item i where i.ws = :ws + 0 "
                f"and i.record in :ids {_UNEXPIRED} limit {MOST}) i {_THEIRS}",
                ws=self._scope.ws,
                at=self._there["at"],
                ids=list(some),
            )
            found = {row[_ID]: row for row in rows}
            yield from self._made((found[one] for one in some if one in found), scores)

    def _made(
        self, rows: Iterable[Row], scores: Mapping[int, float] | None = None
    ) -> Iterator[Item]:
        workspace = self._scope.name
        spaces: dict[str, Space] = {}  # mostly they are all of one
        for row in rows:
            space = spaces.get(row[0])
            if space is None:
                space = spaces[row[0]] = labels(row[0])
            score = None if scores is None else scores.get(row[_ID])
            yield Item(space, decode(row[1]), score, row, workspace)


# SQLite plans a join by the values that are bound, and so prepares it anew for every call: that
# takes ten times as long as running it, and is not done where what is compared is computed.
_AT = "cast(:at as bigint)"
_COLUMNS = "i.space, i.name, i.ttl, i.created_at, i.updated_at, r." + COLUMNS.replace(", ", ", r.")
_ID = 5  # where the columns of the record begin, the id being the first
_TEXT = _ID + COLUMNS.split(", ").index("text")
_FAMILY = "i.family = cast(:family as text)"
_INSIDE = f"{_FAMILY} and i.space between cast(:low as text) and cast(:high as text)"
_UNEXPIRED = f"and (i.expires_at is null or i.expires_at > {_AT})"
_LIVING = R_USABLE.replace(":at", _AT)
_ORDER = "order by i.updated_at desc, i.record desc"
_HERE = f"from item i where i.ws = :ws + 0 and {_INSIDE} {_UNEXPIRED}"
_RECORD = "join record r on r.ws = :ws + 0 and r.id = i.record"
_JOINED = f"from item i {_RECORD} where i.ws = :ws + 0 and {_INSIDE} {_UNEXPIRED}"
# With a limit, which must not be bound, the items come first whatever the planner thinks.
_THEIRS = f"{_RECORD} where {_LIVING}"
_NEWEST = (
    f"select {_COLUMNS} from (select * {_HERE} {_ORDER} limit {{need:d}}) i "
    f"left {_RECORD} and {_LIVING} {_ORDER}"
)
_NAMED = (
    f"select {_COLUMNS} from (select * from item i where i.ws = :ws + 0 and {_FAMILY} "
    f"and i.space = cast(:space as text) and i.name = cast(:name as text) {_UNEXPIRED} limit 1) i "
    f"{_THEIRS}"
)


def _held(groups: Sequence[Sequence[str]]) -> tuple[str, dict[str, str]]:
    """Return the condition that texts hold one of each group, and its values."""
    conditions: list[str] = []
    values: dict[str, str] = {}
    for group in groups:
        names = [f"held{len(values) + at}" for at, _ in enumerate(group)]
        values.update(zip(names, map(encode, group), strict=True))
        either = " or ".join(f"instr(r.text, cast(:{one} as text)) > 0" for one in names)
        conditions.append(f"and ({either})")
    return " ".join(conditions), values


def stored(space: Space) -> str:
    """Return a space as it is stored: JSON, so that no label can pass for two."""
    return f"[{','.join(map(encode_basestring_ascii, texts(space, 'A space')))}]"


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
