"""The audit chain as its keeper sees it: how long it is kept. Reached as `memory.audit`.

A log is kept no longer than it is needed either (seed "memory governance": apply retention to logs
themselves). What is pruned is the old end of the chain; the rest verifies from its anchor.
"""

from __future__ import annotations

from datetime import datetime
from typing import LiteralString

from . import ledger, receipts, storing, suppressing, tracing
from .arguments import check_whole
from .database import Tx
from .engine import Engine
from .errors import InvalidInput
from .ledger import LedgerEntry
from .records import Record, from_micros

DAY = 24 * 3600 * 1_000_000
WEEK = 7 * 24 * 60  # minutes
# The oldest forget that something still stored asks for by its receipt's number.
_NEEDED: tuple[LiteralString, ...] = (
    "select min(receipt) from residue where ws = :ws",
    "select min(receipt) from rebuild_job where ws = :ws",
    "select min(receipt) from guard where ws = :ws",
    "select min(receipt) from hold_wait where ws = :ws and receipt > 0",
    "select min(receipt) from repeat where ws = :ws and expires_at > :at",
)


class Audit:
    """The audit chain of a workspace; call it for the entries, oldest first. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.audit instead."""
        self._engine = engine
        self.workspace = workspace

    def __call__(self) -> list[LedgerEntry]:
        """Return the entries that are kept, oldest first; they hold ids, counts and codes only."""
        with self._engine.reading(self.workspace) as (tx, scope):
            return ledger.entries(tx, scope.ws)

    def prune(self, keep_days: int) -> int:
        """Remove the entries that are older than `keep_days` days; return how many went.

        Their receipts go with them. An entry stays, with all after it, as long as something needs it:
        a suppression that was not undone, what no scrub has proved yet, what is still to be made
        anew, a guard, a forget that may be repeated. The chain says what was pruned and verifies
        from there. Raises InvalidInput for less than a day.
        """
        check_whole(keep_days, "keep_days=")
        if keep_days < 1:
            raise InvalidInput("keep_days= is a day at least.")
        at = self._engine.options.clock()
        with self._engine.writing(self.workspace, durable=True) as (tx, scope):
            storing.lock(tx, scope.ws)
            to = min(
                _older(tx, scope.ws, at - keep_days * DAY), _first_needed(tx, scope.ws, at) - 1
            )
            return ledger.prune(tx, scope.ws, to, at) if to > ledger.anchor(tx, scope.ws)[0] else 0

    def trace(self, minutes: int = 30) -> datetime:
        """Keep what goes into each context for so many minutes, in this process; return until when.

        An explicit window for debugging, noted in the audit chain. Traces hold content: they are
        records made from those they show, so a forget takes them along, and they expire with the
        window. Raises InvalidInput for less than a minute or more than a week.
        """
        check_whole(minutes, "minutes=")
        if not 1 <= minutes <= WEEK:
            raise InvalidInput("minutes= is a minute at least and a week at most.")
        return from_micros(tracing.open_window(self._engine, self.workspace, minutes))

    def end_trace(self) -> None:
        """Keep no more traces; those there are stay until their window's end. Safe to repeat."""
        with self._engine.reading(self.workspace):  # a closed memory says so
            self._engine.traced.pop(self.workspace, None)

    def traces(self) -> list[Record]:
        """Return the traces that have not expired, oldest first."""
        return tracing.traces(self._engine, self.workspace)


def _older(tx: Tx, ws: int, before: int) -> int:
    """Return the number of the last entry before which, and at which, all are older; 0 for none."""
    row = tx.one(
        "select min(seq) - 1 from ledger where ws = :ws and at >= :before", ws=ws, before=before
    )
    return ledger.head(tx, ws)[0] if row is None or row[0] is None else int(row[0])


def _first_needed(tx: Tx, ws: int, at: int) -> int:
    numbers = [
        ledger.head(tx, ws)[0] + 1,
        *receipts.unproved(tx, ws),
        *suppressing.open_since(tx, ws),
    ]
    for statement in _NEEDED:
        row = tx.one(statement, ws=ws, at=at)
        numbers += [] if row is None or row[0] is None else [int(row[0])]
    return min(numbers)
