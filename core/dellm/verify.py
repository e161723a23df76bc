"""Checking that what is stored is what it says it is: the audit chain, the graph, the counters.

And that checkpoints refer only to records, lists and names that are or once were there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import LiteralString

from . import cells, fact_rows, ledger
from .bodies import load_body
from .cycles import made_from_themselves
from .database import Scope, Tx
from .encoding import load_json
from .holding import PROTECTED, RESTRICTED

_CHECKS: tuple[tuple[str, LiteralString], ...] = (
    (
        "edge(s) whose child is gone",
        "select count(*) from edge e where e.ws = :ws and not exists"
        " (select 1 from record r where r.ws = :ws and r.id = e.child) and not exists"
        " (select 1 from sequence s where s.ws = :ws and s.id = e.child)",
    ),
    (
        "edge(s) whose parent is gone",
        "select count(*) from edge e where e.ws = :ws and not exists"
        " (select 1 from record r where r.ws = :ws and r.id = e.parent) and not exists"
        " (select 1 from sequence s where s.ws = :ws and s.id = e.parent)",
    ),
    (
        "record(s) that have a tombstone",
        "select count(*) from record r join tombstone t on t.ws = :ws and t.id = r.id"
        " where r.ws = :ws",
    ),
    (
        "vector(s) without a record",
        "select count(*) from embedding v where v.ws = :ws and not exists"
        " (select 1 from record r where r.ws = :ws and r.id = v.id)",
    ),
    (
        "record(s) that should have a vector and have none",
        "select count(*) from record r where r.ws = :ws and r.kind <> 'state'"
        " and r.status <> 2 and r.id <="
        " (select indexed_to from workspace where ws = :ws) and not exists"
        " (select 1 from embedding v where v.ws = :ws and v.id = r.id)",
    ),
    (
        "record(s) more or less than the workspace counts",
        "select abs(count(*) - (select documents from workspace where ws = :ws))"
        " from record where ws = :ws and kind <> 'state' and status <> 2",
    ),
    (
        "term(s) more or less than the workspace counts",
        "select abs(coalesce(sum(tokens), 0) - (select tokens from workspace where ws = :ws))"
        " from record where ws = :ws",
    ),
    (
        "kept value(s) without a record",
        "select count(*) from item i where i.ws = :ws and not exists"
        " (select 1 from record r where r.ws = :ws and r.id = i.record)",
    ),
    (
        "vector(s) of a value that is not kept",
        "select count(*) from item_vector v where v.ws = :ws and not exists"
        " (select 1 from item i where i.ws = :ws and i.record = v.record)",
    ),
    (
        "exposure(s) of what is not there",
        "select count(*) from exposure x where x.ws = :ws and x.node <> 0 and not exists"
        " (select 1 from record r where r.ws = :ws and r.id = x.node) and not exists"
        " (select 1 from sequence s where s.ws = :ws and s.id = x.node and s.dead_at is null)",
    ),
    (
        "hidden message(s) without a record",
        "select count(*) from hidden h where h.ws = :ws and not exists"
        " (select 1 from record r where r.ws = :ws and r.id = h.record)",
    ),
    (
        "job(s) to make anew what was not erased",
        "select count(*) from rebuild_job j where j.ws = :ws and not exists"
        " (select 1 from tombstone t where t.ws = :ws and t.id = j.id and t.successor is null)",
    ),
    (
        "source(s) that are erased, or of no job",
        "select count(*) from rebuild_source s where s.ws = :ws and (not exists"
        " (select 1 from rebuild_job j where j.ws = :ws and j.id = s.job) or not exists"
        " (select 1 from record r where r.ws = :ws and r.id = s.source union all"
        " select 1 from rebuild_job o where o.ws = :ws and o.id = s.source))",
    ),
    (
        "fact(s) stated by no record",
        "select count(*) from fact f where f.ws = :ws and not exists"
        " (select 1 from record r where r.ws = :ws and r.id = f.record)",
    ),
    (
        "end(s) of facts that nothing states",
        "select count(*) from fact_end e where e.ws = :ws and not exists"
        " (select 1 from fact f where f.ws = :ws and f.record = e.record)",
    ),
    (
        "mark(s) of extraction on messages that are gone",
        "select count(*) from (select record from fact_seen where ws = :ws union all"
        " select record from fact_refused where ws = :ws) m where not exists"
        " (select 1 from record r where r.ws = :ws and r.id = m.record)",
    ),
    (
        "governance of what is not there, or that its workspace does not know of",
        "select count(*) from governed g where g.ws = :ws and (not exists"
        " (select 1 from record r where r.ws = :ws and r.id = g.id) or not exists"
        " (select 1 from workspace w where w.ws = :ws and w.governed in (2, 3, 6, 7)))",
    ),
    (
        "record(s) of an audience that is not there, or that their workspace does not know of",
        "select count(*) from record r where r.ws = :ws and r.audience <> 0 and ((r.audience > 0"
        " and not exists (select 1 from audience a where a.ws = :ws and a.id = r.audience))"
        " or not exists (select 1 from workspace w where w.ws = :ws and w.governed >= 4))",
    ),
    (
        "record(s) for more than what they were made from is for",
        "with recursive down(audience, node) as ("
        " select r.audience, e.child from record r join edge e on e.ws = :ws and e.parent = r.id"
        " where r.ws = :ws and r.audience <> 0"
        " union"
        " select down.audience, e.child from down cross join edge e"
        " where e.ws = :ws and e.parent = down.node and down.node < 0) "
        "select count(*) from down join record c on c.ws = :ws and c.id = down.node"
        " where c.audience >= 0 and not exists (select 1 from audience a"
        " join audience b on b.ws = :ws and b.id = c.audience"
        " where a.ws = :ws and a.id = down.audience"
        " and (a.user_name is null or a.user_name = b.user_name)"
        " and (a.channel is null or a.channel = b.channel)"
        # A policy may let what is made in one project use what is another's.
        " and (a.project is null or b.project is not null)"
        " and (a.organisation is null or a.organisation = b.organisation))",
    ),
    (
        "record(s) that end in a workspace that does not know of any",
        "select count(*) from record r where r.ws = :ws and r.retention_until is not null"
        " and exists (select 1 from workspace w where w.ws = :ws and w.governed in (0, 2, 4, 6))",
    ),
    (
        "workspace(s) that say wrongly whether there are guards",
        "select count(*) from workspace w where w.ws = :ws and (w.guards > 0) <>"
        " exists (select 1 from guard g where g.ws = :ws)",
    ),
    (
        "workspace(s) that say wrongly how many holds are open",
        "select count(*) from workspace w where w.ws = :ws and w.holds <>"
        " (select count(*) from hold h where h.ws = :ws and h.released_at is null)",
    ),
    (
        "record(s) on hold that no hold keeps",
        "select count(*) from record r where r.ws = :ws"
        f" and (r.status <> 0 or r.retention_until is not null) and r.status = 3 and not ({RESTRICTED})",
    ),
    (
        "record(s) in use that a hold keeps out of it",
        "select count(*) from record r where r.ws = :ws and r.status = 0"
        " and ((select w.holds from workspace w where w.ws = :ws) > 0 or"
        f" exists (select 1 from hold_wait q where q.ws = :ws)) and ({RESTRICTED})",
    ),
    (
        "record(s) named by no open hold, or gone",
        "select count(*) from hold_record x where x.ws = :ws and (not exists"
        " (select 1 from hold h where h.ws = :ws and h.id = x.hold and h.released_at is null)"
        " or not exists (select 1 from record r where r.ws = :ws and r.id = x.id))",
    ),
    (
        "record(s) that wait for the end of no hold, or gone",
        "select count(*) from hold_wait q where q.ws = :ws and not exists"
        f" (select 1 from record r where r.ws = :ws and r.id = q.id and {PROTECTED})",
    ),
    (
        "released hold(s) that still say what they were of",
        "select count(*) from hold h where h.ws = :ws and h.released_at is not null"
        " and (h.target is not null or h.key is not null)",
    ),
    (
        "checkpoint(s) of a line that is not there",
        "select count(*) from checkpoint c where c.ws = :ws and not exists"
        " (select 1 from line l where l.ws = :ws and l.id = c.line)",
    ),
    (
        "write(s) of a line that is not there",
        "select count(*) from task_write w where w.ws = :ws and not exists"
        " (select 1 from line l where l.ws = :ws and l.id = w.line)",
    ),
    (
        "erased record(s) whose successor never was",
        "select count(*) from tombstone t where t.ws = :ws and t.successor is not null"
        " and not exists (select 1 from record r where r.ws = :ws and r.id = t.successor)"
        " and not exists (select 1 from tombstone o where o.ws = :ws and o.id = t.successor)",
    ),
)
_AT_ONCE = 5_000  # references looked up in one statement


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a check found wrong, one sentence each; nothing when all holds."""

    problems: tuple[str, ...]
    receipts: int
    entries: int

    @property
    def ok(self) -> bool:
        """Whether everything holds."""
        return not self.problems

    def __str__(self) -> str:
        head = "all holds" if self.ok else f"{len(self.problems)} problem(s)"
        return "\n".join([f"{head}; {self.entries} audit entry(s)", *self.problems])


def verify(tx: Tx, scope: Scope) -> VerifyReport:
    """Check the audit chain and the consistency of the workspace's rows."""
    problems: list[str] = []
    if (broken := ledger.broken_at(tx, scope.ws)) is not None:
        problems.append(f"the audit chain is broken at entry {broken}")
    for what, sql in _CHECKS:
        row = tx.one(sql, ws=scope.ws)
        if row is not None and row[0]:
            problems.append(f"{row[0]} {what}")
    if count := fact_rows.unsettled(tx, scope.ws):
        problems.append(f"{count} fact(s) with other dates than their statements give")
    if count := made_from_themselves(tx, scope.ws):
        problems.append(f"{count} record(s) made from themselves")
    references = _References(tx, scope.ws)
    references.read()
    problems += [f"{count} {what}" for what, count in references.wrong() if count]
    entries = ledger.entries(tx, scope.ws)
    forgets = sum(entry.action in {"erase", "redact", "suppress"} for entry in entries)
    return VerifyReport(tuple(problems), forgets, len(entries))


@dataclass(slots=True)
class _References:
    """What the checkpoints, writes and states of a workspace refer to."""

    tx: Tx
    ws: int
    records: set[int] = field(default_factory=set)
    lists: set[int] = field(default_factory=set)
    labels: set[int] = field(default_factory=set)
    unreadable: int = 0

    def read(self) -> None:
        """Collect every reference there is."""
        for (body,) in self.tx.stream("select body from checkpoint where ws = :ws", ws=self.ws):
            self._try(self._checkpoint, body)
        for (body,) in self.tx.stream("select body from task_write where ws = :ws", ws=self.ws):
            self._try(self._writes, body)
        states = (
            "select metadata from record where ws = :ws and kind = 'state' and metadata is not null"
        )
        for (metadata,) in self.tx.stream(states, ws=self.ws):
            self._note(one for one in load_json(metadata).get("refs", ()) if one)

    def _try(self, read: Callable[[str], None], body: str) -> None:
        try:
            read(body)
        except (ValueError, TypeError, LookupError, AttributeError):
            self.unreadable += 1

    def _checkpoint(self, body: str) -> None:
        self._note(load_body(body, self._label).refers())

    def _label(self, number: int) -> str:
        self.labels.add(number)
        return str(number)

    def _writes(self, body: str) -> None:
        for _, label, cell in json.loads(body):
            self.labels.add(label)
            self._note(cells.refers(cell))

    def _note(self, references: Iterable[int]) -> None:
        for one in references:
            (self.records if one > 0 else self.lists).add(one)

    def wrong(self) -> Iterator[tuple[str, int]]:
        """Yield what may be wrong, and how often it is."""
        yield "checkpoint(s) or write(s) that cannot be read", self.unreadable
        yield (
            "reference(s) of checkpoints to a record that never was",
            self._missing(
                self.records,
                "select id from record where ws = :ws and id in :ids "
                "union all select id from tombstone where ws = :ws and id in :ids",
            ),
        )
        yield (
            "reference(s) of checkpoints to a list that is not there or not kept",
            self._missing(
                self.lists,
                "select id from sequence where ws = :ws and id in :ids and listed = 1",
            ),
        )
        yield (
            "name(s) in checkpoints that are not there",
            self._missing(self.labels, "select id from label where ws = :ws and id in :ids"),
        )

    def _missing(self, wanted: Collection[int], there: LiteralString) -> int:
        ids = sorted(wanted)
        chunks = (ids[at : at + _AT_ONCE] for at in range(0, len(ids), _AT_ONCE))
        return sum(
            len(some) - len({row[0] for row in self.tx.all(there, ws=self.ws, ids=some)})
            for some in chunks
        )
