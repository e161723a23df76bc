"""Storing what is stated of facts: records with their parents, and the rows that give them dates.

Everything happens in the caller's write transaction, after the workspace's row was locked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from . import audiences, fact_rows, provenance, sequences, storing
from .database import Scope, Tx
from .fact_dates import OPEN, Run, runs
from .fact_rows import Group, Stated
from .records import Draft, Status
from .sequences import DIRECT, Tip, Tips

CLOSER = "closes"  # the role of a record that says no more than that facts ended


@dataclass(frozen=True, slots=True)
class Claim:
    """That a key has a value from `since` on, or, with `closes`, has it no longer. Checked before.

    `context` are the records that it was made from, `messages` those of them in which it may have
    been said, `said_in` the one in which it was (0: none), `model` who found it. Times are microseconds UTC.
    """

    key: str = field(repr=False)
    value: str | None = field(repr=False)
    since: int
    until: int | None = None
    closes: bool = False
    confidence: float = 1.0
    subject: str | None = field(default=None, repr=False)
    inferred: bool = False
    sensitivity: str | None = field(default=None, repr=False)
    context: tuple[int, ...] = ()
    said_in: int = 0
    messages: frozenset[int] = frozenset()
    model: str | None = None

    @property
    def waits(self) -> bool:
        """Whether it is out of every read until it is confirmed: sensitive, and said by nobody."""
        return self.inferred and self.sensitivity is not None


class _Stored(NamedTuple):
    """A record; whether it waits, and whether it is `whole`: redacted on entry it states no fact."""

    id: int
    waits: bool
    whole: bool


@dataclass(slots=True)
class Said:
    """What became of claims: records by position, those that are new, and what was refused.

    `records` has the record that states the value, one that did before where nothing was added, and
    None where it was refused. `closed` are the facts that were closed, by their records.
    """

    records: list[int | None] = field(default_factory=list)
    new: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    refused: int = 0


@dataclass(slots=True)
class Writer:
    """One write of facts. `noted` are the sequences to be remembered once it is committed."""

    tx: Tx
    scope: Scope
    at: int
    tips: Tips
    noted: list[Tip] = field(default_factory=list)

    def write(self, claims: Sequence[Claim]) -> Said:
        """Store what is said, in order. Raises ContextForgotten, NotFound: then nothing is stored."""
        ids = {one for claim in claims for one in claim.context}
        provenance.require_usable(self.tx, self.scope.ws, ids)
        said = Said()
        for closes, some in groupby(claims, key=lambda one: one.closes):
            if closes:
                for one in some:
                    self._close(one, said)
            else:
                self._state(list(some), said)
        return said

    def _group(self, claim: Claim) -> Group:
        whose = audiences.label(self.scope.actor)
        return fact_rows.group_of(self.scope, claim.key, claim.subject, whose)

    # stating

    def _state(self, claims: Sequence[Claim], said: Said) -> None:
        groups = [self._group(one) for one in claims]
        values = [fact_rows.digest_of_value(self.scope, one.value) for one in claims]
        known = _Known(self, groups, claims)
        fresh: list[int] = []  # positions of what is to be stored
        before: list[int | None] = []
        for at, named in enumerate(zip(claims, groups, values, strict=True)):
            before.append(known.find(*named))
            if known.is_refused(*named):
                said.refused += 1
            elif before[at] is None:
                fresh.append(at)
                known.add(*named, at)
        made = dict(zip(fresh, self._store([claims[at] for at in fresh]), strict=True))
        self._insert([(made[at], (claims[at], groups[at], values[at])) for at in fresh])
        for at, one in enumerate(before):
            new = made.get(at)
            if new is not None and new.whole:
                (said.waiting if new.waits else said.new).append(new.id)
            said.refused += new is not None and not new.whole
            same = made[-one - 1].id if one is not None and one < 0 else one
            said.records.append(same if new is None else new.id)
        fact_rows.settle(self.tx, self.scope.ws, {groups[at] for at in fresh})

    def _store(self, claims: Sequence[Claim]) -> list[_Stored]:
        """Store a record for each, with its parents."""
        found: list[_Stored] = []
        for start in range(0, len(claims), storing.AT_ONCE):
            some = claims[start : start + storing.AT_ONCE]
            until = self._kept_until(some)
            drafts = [_draft(one, until) for one in some]
            records, numbers = storing.store(self.tx, self.scope, drafts, self.at)
            ids = [one.id for one in records]
            for context, same in groupby(
                zip(ids, some, strict=True), key=lambda one: one[1].context
            ):
                self._attach([id_ for id_, _ in same], context)
            audiences.narrow(self.tx, self.scope, ids, numbers.governed)
            found += [
                _Stored(
                    one.id,
                    one.status == Status.QUARANTINED,
                    one.text == draft.text and one.subject == draft.subject,
                )
                for one, draft in zip(records, drafts, strict=True)
            ]
        return found

    def _kept_until(self, claims: Sequence[Claim]) -> dict[int, int]:
        """Return until when those of their sources are kept that are not kept for good."""
        ids = {id_ for one in claims for id_ in one.context}
        if not ids:
            return {}
        rows = self.tx.all(
            "select id, retention_until from record "
            "where ws = :ws and id in :ids and retention_until is not null",
            ws=self.scope.ws,
            ids=sorted(ids),
        )
        return {row[0]: row[1] for row in rows}

    def _attach(self, ids: Sequence[int], context: tuple[int, ...]) -> None:
        """Make a context that of records; a long one is stored once for all of them."""
        tx, ws = self.tx, self.scope.ws
        nodes: Sequence[int] = list(dict.fromkeys(context))
        rest = list(ids) if nodes else []
        if len(nodes) > DIRECT:
            row = tx.one(
                "update workspace set last_sequence = last_sequence - 1 where ws = :ws "
                "returning last_sequence",
                ws=ws,
            )
            fresh = 0 if row is None else int(row[0])
            child = rest.pop(0)
            tip = sequences.attach_context(tx, self.scope, child, nodes, "", fresh, self.tips)
            if tip is not None:
                self.noted.append(tip)
                nodes = [tip.marks[-1][1]]
        for child in rest:
            sequences.attach_surviving(tx, ws, child, nodes)

    def _insert(self, rows: Iterable[tuple[_Stored, tuple[Claim, Group, int]]]) -> None:
        listed = [(new.id, *rest) for new, rest in rows if new.whole]
        fact_rows.insert(
            self.tx,
            [
                {
                    "ws": self.scope.ws,
                    "record": id_,
                    "name": group[0],
                    "subject": group[1],
                    "value": value,
                    "since": one.since,
                    "until": OPEN,
                    "confidence": one.confidence,
                    "said_in": one.said_in or -max(one.messages, default=0),
                }
                for id_, one, group, value in listed
            ],
        )
        for id_, one, _, _ in listed:
            if one.until is not None:
                fact_rows.end(self.tx, self.scope.ws, [id_], id_, one.until)

    # closing

    def _close(self, claim: Claim, said: Said) -> None:
        ws, group = self.scope.ws, self._group(claim)
        rows = fact_rows.stated(self.tx, ws, [group])
        many = bool(fact_rows.many_of(self.tx, ws, [group[0]]))
        found = runs(fact_rows.statements(self.tx, ws, rows)[group], many=many)
        wanted = None if claim.value is None else fact_rows.digest_of_value(
            self.scope, claim.value
        )  # fmt: skip
        ended = _newest(found, wanted, claim.since, many=many)
        records = [id_ for run in ended for id_ in run.records]
        said.records.append(ended[0].records[0] if ended else None)
        if not ended or self._is_closed_already(records, claim):
            return
        fact_rows.end(self.tx, ws, records, self._closer(claim), claim.since)
        fact_rows.settle(self.tx, ws, [group])
        said.closed += [run.records[0] for run in ended if run.until > claim.since]

    def _closer(self, claim: Claim) -> int:
        """Return a record without content that has the claim's parents; 0 where it has none."""
        if not claim.context:
            return 0
        draft = Draft("", role=CLOSER, kind="state")
        records, numbers = storing.store(self.tx, self.scope, [draft], self.at)
        self._attach([records[0].id], claim.context)
        audiences.narrow(self.tx, self.scope, [records[0].id], numbers.governed)
        return records[0].id

    def _is_closed_already(self, records: Sequence[int], claim: Claim) -> bool:
        """Whether the same was said before, made from the same."""
        rows = self.tx.all(
            "select record, closer from fact_end "
            "where ws = :ws and record in :ids and at <= :at and closer <> record",
            ws=self.scope.ws,
            ids=list(records),
            at=claim.since,
        )
        closers = {row[1] for row in rows}
        same = {one for one in closers if self.made_from(one, claim.context)}
        return {row[0] for row in rows if row[1] in same} == set(records)

    def made_from(self, id_: int, context: Sequence[int]) -> bool:
        """Whether these, and no others, are what a record was made from; 0 is made from nothing."""
        return (self.sources(id_) if id_ else set()) == set(context)

    def sources(self, id_: int) -> set[int]:
        """Return what a record was made from."""
        return set(provenance.context_of(self.tx, self.scope.ws, id_))


def _draft(one: Claim, until: Mapping[int, int]) -> Draft:
    """Return the record of a claim, kept no longer than all that it was made from."""
    return Draft(
        fact_rows.written(one.key, one.value or "", one.subject),
        role="fact",
        kind="inferred" if one.inferred else "fact",
        subject=one.subject,
        sensitivity=one.sensitivity,
        retention_until=min((until[id_] for id_ in one.context if id_ in until), default=None),
        quarantined=one.waits,
        model=one.model,
    )


def _newest(found: Sequence[Run], value: int | None, at: int, *, many: bool) -> list[Run]:
    """Return the facts that end when those of a value end, or of any: the last to begin by then."""
    begun = [run for run in found if run.since <= at and value in {None, run.value}]
    last = {run.value if many else 0: run for run in begun}
    return sorted(last.values(), key=lambda run: (run.since, run.records[0]))


class _Known:
    """What is stated of the keys of a write, with what the write has added so far."""

    def __init__(self, writer: Writer, groups: Sequence[Group], claims: Sequence[Claim]) -> None:
        self._writer = writer
        tx, ws = writer.tx, writer.scope.ws
        self._rows: Mapping[Group, list[Stated]] = fact_rows.stated(tx, ws, set(groups))
        self._fresh: dict[tuple[Group, int], list[tuple[int, Claim]]] = {}
        messages = sorted({one for claim in claims for one in claim.messages})
        self._refused = fact_rows.refused(tx, ws, messages) if messages else set()

    def is_refused(self, one: Claim, group: Group, value: int) -> bool:
        """Whether it was forgotten of what a message says that stays."""
        said_in = {one.said_in} if one.said_in else one.messages
        return any((message, *group, value) in self._refused for message in said_in)

    def find(self, one: Claim, group: Group, value: int) -> int | None:
        """Return the record that states the same already, made from the same; below 0 one of this write.

        What was extracted from a message is not extracted from it again, whatever was in the prompt.
        """
        for row in self._rows[group]:
            if row.value == value and self._is_same(row, one):
                return row.record
        for at, other in self._fresh.get((group, value), ()):
            if other.since == one.since and set(other.context) == set(one.context):
                return -at - 1
        return None

    def add(self, one: Claim, group: Group, value: int, at: int) -> None:
        """Note what the write adds."""
        self._fresh.setdefault((group, value), []).append((at, one))

    def _is_same(self, row: Stated, one: Claim) -> bool:
        if one.messages and row.said_in >= 0:
            return row.said_in in ({one.said_in} if one.said_in else one.messages)
        if one.messages:
            return not one.messages.isdisjoint(self._writer.sources(row.record))
        if not row.usable or not row.since <= one.since < max(row.until, row.since + 1):
            return False
        if one.until is not None and (row.since != one.since or row.until > one.until):
            return False
        return self._writer.made_from(row.record, one.context)
