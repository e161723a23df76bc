"""Checking that what is stored is what it says it is: the audit chain, the graph, the counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from . import ledger
from .database import Scope, Tx

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
        "select count(*) from record r where r.ws = :ws and r.kind <> 'state' and r.id <="
        " (select indexed_to from workspace where ws = :ws) and not exists"
        " (select 1 from embedding v where v.ws = :ws and v.id = r.id)",
    ),
    (
        "record(s) more or less than the workspace counts",
        "select abs(count(*) - (select documents from workspace where ws = :ws))"
        " from record where ws = :ws and kind <> 'state'",
    ),
    (
        "term(s) more or less than the workspace counts",
        "select abs(coalesce(sum(tokens), 0) - (select tokens from workspace where ws = :ws))"
        " from record where ws = :ws",
    ),
)


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
    entries = ledger.entries(tx, scope.ws)
    forgets = sum(entry.action in {"erase", "redact", "suppress"} for entry in entries)
    return VerifyReport(tuple(problems), forgets, len(entries))
