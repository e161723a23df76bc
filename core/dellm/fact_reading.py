"""Reading facts: what holds at a moment, what held before, what waits for confirmation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import LiteralString, NamedTuple

from . import audiences, fact_rows, hiding, holding, provenance, suppressing
from .database import R_USABLE, Row, Scope, Tx
from .encoding import decode, encode
from .fact_dates import OPEN, runs
from .records import Status, from_micros

INFERRED = "inferred"  # the kind of a record that states what the user did not say in so many words


class Fact(NamedTuple):
    """That a key has, or had, a value. `id` is the record that stated it first.

    What is stored is read when it is asked for: of a million facts most are only counted or
    compared. `since` and `until` are microseconds UTC; `confidence` is in [0, 1].
    """

    id: int
    text: str
    about: str | None
    since: int
    until: int
    confidence: float
    kind: str
    label: str | None
    status: int

    @property
    def key(self) -> str:
        """What is known: "employer"."""
        return fact_rows.read(decode(self.text), self.subject)[0]

    @property
    def value(self) -> str:
        """What it is."""
        return fact_rows.read(decode(self.text), self.subject)[1]

    @property
    def subject(self) -> str | None:
        """Whom it is about; None is the user."""
        return None if self.about is None else decode(self.about)

    @property
    def valid_from(self) -> datetime:
        """From when it holds, by what was stated."""
        return from_micros(self.since)

    @property
    def valid_to(self) -> datetime | None:
        """Until when it held, that moment left out; None while nothing has closed it."""
        return None if self.until == OPEN else from_micros(self.until)

    @property
    def inferred(self) -> bool:
        """Whether the user did not say it in so many words."""
        return self.kind == INFERRED

    @property
    def sensitivity(self) -> str | None:
        """What makes it sensitive: "health"; None where nothing does."""
        return None if self.label is None else decode(self.label)

    @property
    def waiting(self) -> bool:
        """Whether it is out of every read until it is confirmed."""
        return self.status == Status.QUARANTINED

    def __repr__(self) -> str:
        """Say which and when, and not what."""
        until = "" if self.valid_to is None else f", until {self.valid_to:%Y-%m-%d}"
        marks = "".join(f", {one}" for one in ("inferred", "waiting") if getattr(self, one))
        return f"Fact({self.id}, from {self.valid_from:%Y-%m-%d}{until}{marks})"


_FIELDS: LiteralString = (
    "select f.record, r.text, r.subject, f.since, f.until, f.confidence, r.kind, r.sensitivity, "
    "r.status"
)
_FACT: LiteralString = (
    f"{_FIELDS} from fact f join record r on r.ws = :ws and r.id = f.record where f.ws = :ws"
)
_SHOWN: LiteralString = f"{_FACT} and f.shown = 1 and {R_USABLE}"
# Of one key or subject: without statistics PostgreSQL would rather go through all that is open.
_THEN: LiteralString = "f.since <= :moment and f.until + 0 > :moment"
_IN_ORDER: LiteralString = "order by f.since, f.record"
_BY: Mapping[tuple[str, ...], LiteralString] = {
    ("name", "about"): (
        f"{_SHOWN} and f.name = :name and f.subject = :about and {_THEN} {_IN_ORDER}"
    ),
    ("name",): f"{_SHOWN} and f.name = :name and {_THEN} {_IN_ORDER}",
    ("about",): f"{_SHOWN} and f.subject = :about and {_THEN} {_IN_ORDER}",
}
# From the facts to their records: of a workspace's records few may be facts.
_ALL: LiteralString = (
    "with f as materialized (select record, since, until, confidence from fact "
    "where ws = :ws and shown = 1 and since <= :moment and until > :moment) "
    f"{_FIELDS} from f cross join record r where r.ws = :ws and r.id = f.record and {R_USABLE} "
    f"{_IN_ORDER}"
)


def facts(rows: Sequence[Row]) -> list[Fact]:
    """Return rows as facts."""
    return list(map(Fact._make, rows))


def at(
    tx: Tx, scope: Scope, moment: int, key: str | None, subject: str | None, now: int
) -> list[Fact]:
    """Return the facts that hold at a moment, oldest first; the last statement of a transaction."""
    ws = scope.ws
    if key is None and subject is None:
        return facts(tx.final(_ALL, ws=ws, moment=moment, at=now))
    asked: dict[str, object] = {}
    if key is not None:
        asked["name"] = fact_rows.digest(scope, "key", key)
    if subject is None:
        return facts(tx.final(_BY[tuple(asked)], ws=ws, moment=moment, at=now, **asked))
    ask, asked["about"] = _for_whom(tx, scope, _BY[(*asked, "about")], subject)
    return facts(tx.final(ask, ws=ws, moment=moment, at=now, **asked))


def _for_whom(
    tx: Tx, scope: Scope, ask: LiteralString, subject: str | None
) -> tuple[LiteralString, int | list[int]]:
    """Return a statement that asks for `:about`, and the digests by which the actor may know it."""
    if scope.actor is None:
        return ask, fact_rows.about(scope, subject)
    whose = audiences.labels(tx, scope)
    several = ask.replace("f.subject = :about", "f.subject in :about")
    return several, [fact_rows.about(scope, subject, one) for one in whose]


def history(tx: Tx, scope: Scope, key: str, subject: str | None, now: int) -> list[Fact]:
    """Return all facts of a key that ever held, oldest first."""
    ask, about = _for_whom(
        tx, scope, f"{_SHOWN} and f.name = :name and f.subject = :about {_IN_ORDER}", subject
    )
    rows = tx.all(
        ask,
        ws=scope.ws,
        name=fact_rows.digest(scope, "key", key),
        about=about,
        at=now,
    )
    return facts(rows)


def several(tx: Tx, scope: Scope, ids: Sequence[int], now: int) -> list[Fact]:
    """Return what the records state, by id, where it may be read, with its fact's dates.

    A record that states again what held already has its own first day.
    """
    rows = tx.all(
        f"{_FACT} and {R_USABLE} and f.record in :ids order by f.record",
        ws=scope.ws,
        ids=list(ids),
        at=now,
    )
    return facts(rows)


def waiting(tx: Tx, scope: Scope, now: int) -> list[Fact]:
    """Return what waits for confirmation, oldest first; not what is suppressed."""
    rows = tx.all(
        # As the index on what is not in use is made: there are few.
        f"{_FACT} and (r.status <> 0 or r.retention_until is not null) and r.status = :waiting "
        "and r.audience = 0 and (r.retention_until is null or r.retention_until > :at) order by f.record",
        ws=scope.ws,
        waiting=int(Status.QUARANTINED),
        at=now,
    )
    ids = [row[0] for row in rows]
    held = suppressing.withheld(tx, scope.ws) | holding.restricted(tx, scope.ws, ids) if ids else ()
    return facts([row for row in rows if row[0] not in held])


def newest(tx: Tx, scope: Scope, limit: int, now: int) -> list[Fact]:
    """Return the newest of the facts that hold now, oldest first."""
    rows = tx.all(
        f"{_SHOWN} and f.since <= :at and f.until > :at "
        "order by f.since desc, f.record desc limit :limit",
        ws=scope.ws,
        at=now,
        limit=limit,
    )
    return facts(rows[::-1])


def supports(tx: Tx, ws: int, id_: int) -> list[int]:
    """Return all records in use that state the fact of a record, ascending; empty if it states none."""
    found = tx.one("select name, subject from fact where ws = :ws and record = :id", ws=ws, id=id_)
    if found is None:
        return []
    group = (found[0], found[1])
    rows = fact_rows.stated(tx, ws, [group])
    many = bool(fact_rows.many_of(tx, ws, [group[0]]))
    for run in runs(fact_rows.statements(tx, ws, rows)[group], many=many):
        if id_ in run.records:
            return sorted(run.records)
    return []


def unseen(
    tx: Tx, scope: Scope, thread: str, roles: Sequence[str], extractor: str | None, now: int
) -> list[int]:
    """Return the messages of a thread, in order, that an extractor has not been through; None: all."""
    rows = tx.all(
        "select id, role from record where ws = :ws and thread = :thread and kind = 'message' "
        "and status = 0 and (retention_until is null or retention_until > :at) and audience = 0 "
        f"and {hiding.AMONG['kept']} and not exists (select 1 from fact_seen s where s.ws = :ws "
        "and s.record = record.id and s.extractor = :extractor) order by place, id",
        ws=scope.ws,
        thread=encode(thread),
        extractor="" if extractor is None else encode(extractor),
        at=now,
    )
    return [row[0] for row in rows if decode(row[1]) in roles]


def seen(tx: Tx, scope: Scope, ids: Sequence[int], extractor: str | None) -> set[int]:
    """Return those of the records that an extractor has been through; None: no extractor."""
    rows = tx.all(
        "select record from fact_seen where ws = :ws and record in :ids and extractor = :extractor",
        ws=scope.ws,
        ids=list(ids),
        extractor="" if extractor is None else encode(extractor),
    )
    return {row[0] for row in rows}


def require(tx: Tx, scope: Scope, ids: Sequence[int]) -> None:
    """Raise ContextForgotten or NotFound unless every record may be used."""
    provenance.require_usable(tx, scope.ws, ids)
