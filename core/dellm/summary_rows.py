"""The rows of summaries: what there is of one thread's summary, and putting a new part in.

Each part is a record of kind "summary" kept by a name of the family "summary", so a forget that
reaches it takes the name along, and what it is rebuilt to gets the name. A part that is replaced
is emptied, as every replaced value is: what was made from it stays tied to what it was made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString, NamedTuple

from . import audiences, hiding, item_rows, reading, storing
from .database import R_USABLE, USABLE, Scope, Tx
from .encoding import decode, encode
from .engine import Engine
from .errors import ContextForgotten, CredentialRefused, ModelError
from .exposures import Exposures
from .item_search import stored
from .making import ASKS
from .records import Draft, Record

FAMILY = "summary"

Stamp = tuple[int, int]


class Part(NamedTuple):
    """A record under its name; `usable` is False where it is suppressed, say."""

    name: str
    record: int
    usable: bool


class Span(NamedTuple):
    """From where to where the messages of a leaf stand in their thread, and how many there are."""

    leaf: int
    low: int
    high: int
    messages: int
    usable: int


class Moved(Exception):
    """Something was written meanwhile; who brings a summary up to date looks again."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the parts of one summary are: of a thread, in one form, by one summariser."""

    engine: Engine
    workspace: str
    thread: str
    form: str
    by: str

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from every other of this open memory."""
        return (self.workspace, self.thread, self.form, self.by, self.whose)

    @property
    def whose(self) -> str:
        """For whom it is, where that is not everybody: each audience has a summary of its own."""
        return audiences.label(self.engine.actor)

    @property
    def space(self) -> str:
        """Its space among the kept values, as it is stored."""
        named = (self.thread, self.form, self.by)
        return stored((*named, self.whose) if self.whose else named)

    @property
    def at(self) -> int:
        """The present, in microseconds since 1970."""
        return self.engine.options.clock()

    def parts(self, tx: Tx, scope: Scope) -> list[Part]:
        """Return the parts there are, whether or not they may be used."""
        rows = tx.all(
            f"select i.name, i.record, {R_USABLE} from item i "
            "join record r on r.ws = :ws and r.id = i.record "
            "where i.ws = :ws and i.family = :family and i.space = :space",
            ws=scope.ws,
            family=encode(FAMILY),
            space=self.space,
            at=self.at,
        )
        return [Part(decode(name), record, bool(usable)) for name, record, usable in rows]

    def stamp(self, tx: Tx, scope: Scope) -> Stamp:
        """Return what changes with every change of the parts: how many, and the newest of them."""
        row = tx.one(
            "select count(*), coalesce(max(record), 0) from item "
            "where ws = :ws and family = :family and space = :space",
            ws=scope.ws,
            family=encode(FAMILY),
            space=self.space,
        )
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def expect(self, tx: Tx, scope: Scope, stamp: Stamp) -> None:
        """Keep other writers out; raise Moved where the parts are not as they were."""
        storing.lock(tx, scope.ws)
        if self.stamp(tx, scope) != stamp:
            raise Moved

    def name(self, tx: Tx, scope: Scope, name: str, record: int, *, replaced: bool = True) -> None:
        """Put a record under a name; what was there is emptied, where it is `replaced`."""
        row = {
            "ws": scope.ws,
            "family": encode(FAMILY),
            "space": self.space,
            "name": encode(name),
            "record": record,
            "ttl": None,
            "until": None,
            "at": self.at,
        }
        if replaced:
            item_rows.make_way(tx, scope.ws, [row], self.at)
        item_rows.keep(tx, [row])

    def drop(self, tx: Tx, scope: Scope, parts: Iterable[Part]) -> None:
        """Take parts away: their records are emptied."""
        rows = [(self.space, encode(one.name), one.record) for one in parts]
        if rows:
            item_rows.delete(tx, scope.ws, FAMILY, rows, self.at)

    @contextmanager
    def sending(self, ids: Sequence[int], model: str | None) -> Iterator[None]:
        """Note that records were sent to a model for nothing, where what it made is not stored."""
        try:
            yield
        except (Moved, ContextForgotten, CredentialRefused, ModelError):
            if model is not None:
                Exposures(self.engine, self.workspace).note(ids, model=model)
            raise

    def records(self, ids: Sequence[int]) -> list[Record]:
        """Return records in the order of their ids given; raises Moved where one is gone."""
        with self.engine.reading(self.workspace) as (tx, scope):
            found = reading.several(tx, scope, ids, self.at)
        if len(found) < len(set(ids)):
            raise Moved
        return [found[one] for one in ids]


def draft(text: str, asks: str, model: str | None, sources: Sequence[Record]) -> Draft:
    """Return a part as it is stored: in no thread, so that no chat takes it for a message.

    It is kept no longer than any of its sources, and about whom and for what all of these are.
    """
    until = [one.retention_until for one in sources if one.retention_until is not None]
    return Draft(
        text,
        role="assistant",
        kind="summary",
        metadata={ASKS: asks},
        subject=_only({one.subject for one in sources}),
        purpose=_only({one.purpose for one in sources}),
        sensitivity=_only({one.sensitivity for one in sources} - {None}),
        retention_until=min(until, default=None),
        model=model,
    )


def _only(said: set[str | None]) -> str | None:
    return said.pop() if len(said) == 1 else None


def messages(tx: Tx, scope: Scope, thread: str, at: int) -> dict[int, int]:
    """Return the messages of a thread that may be summarised, in order: place by id.

    Those dropped from it are not; archived ones, which it only shows no more, are.
    """
    rows = tx.all(
        f"select id, place from record where ws = :ws and thread = :thread and {USABLE} "
        f"and kind in ('message', 'tool') and {hiding.among('kept')} order by place, id",
        ws=scope.ws,
        thread=encode(thread),
        at=at,
    )
    return {row[0]: row[1] for row in rows}


# What parts were made from, through the sequences that a context may be built of.
_MADE_OF: LiteralString = (
    "with recursive m(part, node) as ("
    " select e.child, e.parent from edge e"
    " where e.ws = :ws and e.child in :parts and e.pos >= 0"
    " union"
    " select m.part, e.parent from m cross join edge e"
    " where e.ws = :ws and e.child = m.node and m.node < 0) "
)


def unsummed(tx: Tx, scope: Scope, thread: str, leaves: Sequence[int], at: int) -> dict[int, int]:
    """Return those of the messages from which none of the leaves was made: place by id, in order."""
    if not leaves:
        return messages(tx, scope, thread, at)
    rows = tx.all(
        f"{_MADE_OF} select id, place from record where ws = :ws and thread = :thread "
        f"and {USABLE} and kind in ('message', 'tool') and {hiding.among('kept')} "
        "and id not in (select node from m where node > 0) order by place, id",
        ws=scope.ws,
        thread=encode(thread),
        parts=list(leaves),
        at=at,
    )
    return {row[0]: row[1] for row in rows}


def spans(tx: Tx, scope: Scope, leaves: Sequence[int], at: int) -> list[Span]:
    """Return where the messages of leaves stand, and how many there are."""
    if not leaves:
        return []
    rows = tx.all(
        f"{_MADE_OF} select m.part, min(r.place), max(r.place), count(*), "
        f"sum(case when {R_USABLE} then 1 else 0 end) from m "
        "join record r on r.ws = :ws and r.id = m.node group by m.part",
        ws=scope.ws,
        parts=list(leaves),
        at=at,
    )
    return [Span(*map(int, row)) for row in rows]


def usable(tx: Tx, scope: Scope, ids: Iterable[int], at: int) -> dict[int, int]:
    """Return which of the records are messages that may be used: place by id."""
    listed = list(ids)
    if not listed:
        return {}
    rows = tx.all(
        f"select id, place from record where ws = :ws and id in :ids and {USABLE} "
        "and kind in ('message', 'tool')",
        ws=scope.ws,
        ids=listed,
        at=at,
    )
    return {row[0]: row[1] for row in rows}


def in_order(places: Mapping[int, int]) -> list[int]:
    """Return the messages as their thread has them."""
    return sorted(places, key=lambda one: (places[one], one))


def sources(
    tx: Tx, scope: Scope, parts: Sequence[int], at: int
) -> list[tuple[int, int, int, bool]]:
    """Return (part, source, place of the source, whether it may be used), in the thread's order."""
    if not parts:
        return []
    rows = tx.all(
        f"{_MADE_OF} select m.part, m.node, r.place, {R_USABLE} from m "
        "join record r on r.ws = :ws and r.id = m.node order by r.place, m.node",
        ws=scope.ws,
        parts=list(parts),
        at=at,
    )
    return [(row[0], row[1], row[2], bool(row[3])) for row in rows]
