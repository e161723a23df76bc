"""The guards of a workspace, by the receipts of the forgets that made them. See guarding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from . import guarding, ledger, storing
from .arguments import check_flag, check_iterable, check_text, check_whole
from .engine import Engine
from .errors import InvalidInput, NotFound
from .receipts import Receipt
from .records import from_micros


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard: its receipt, how many digests it keeps, since when, and until when (None: ever).

    `receipt` is the number of the forget that made it, or of the entry of `guards.add`.
    """

    receipt: int
    digests: int
    made_at: datetime
    until: datetime | None


class Guards:
    """What is kept from coming in again; call it for a list. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.guards instead."""
        self._engine = engine
        self.workspace = workspace

    def __call__(self) -> list[Guard]:
        """Return the guards that hold now, oldest receipt first. Digests only: no content is kept."""
        with self._engine.reading(self.workspace) as (tx, scope):
            rows = tx.all(
                "select receipt, count(*), min(made_at), max(until) from guard where ws = :ws "
                "and (until is null or until > :at) group by receipt order by receipt",
                ws=scope.ws,
                at=self._engine.options.clock(),
            )
        return [
            Guard(receipt, count, from_micros(made), None if until is None else from_micros(until))
            for receipt, count, made, until in rows
        ]

    def add(self, values: str | Iterable[str]) -> Guard:
        """Keep values from coming in from now on, whether or not a record holds them; forget nothing.

        For what a user named in a deletion request and no record holds (any more): a guard of
        Memory.forget covers only what it takes. Each is known again in its spellings, never as a
        part of a word. The number in the audit chain stands for a receipt, also for `lift`. Raises
        InvalidInput where a value has no letter or digit, or none is given.
        """
        texts = [values] if isinstance(values, str) else _texts(values)
        if not texts:
            raise InvalidInput("There is no value to guard.")
        with self._engine.writing(self.workspace, durable=True) as (tx, scope):
            storing.lock(tx, scope.ws)
            at = self._engine.options.clock()
            number = ledger.head(tx, scope.ws)[0] + 1
            if not all(guarding.can_keep(scope, one) for one in texts):
                raise InvalidInput("A value to guard has no letter or digit.")
            count, until = guarding.keep(tx, scope, [("value", one) for one in texts], number, at)
            body = {"receipt": number, "guarded": count, "guarded_until": until}
            ledger.append(tx, scope.ws, "guard", body, at)
        return Guard(number, count, from_micros(at), None if until is None else from_micros(until))

    def lift(self, receipt: Receipt | int) -> int:
        """Remove the guard of a forget; return how many digests that were.

        The audit chain says of which receipt. Raises NotFound where the receipt has none.
        """
        number = receipt.number if isinstance(receipt, Receipt) else receipt
        check_whole(number, "The receipt's number")
        with self._engine.writing(self.workspace, durable=True) as (tx, scope):
            storing.lock(tx, scope.ws)
            gone = tx.run(
                "delete from guard where ws = :ws and receipt = :receipt",
                ws=scope.ws,
                receipt=number,
            )
            if not gone:
                raise NotFound(f"Receipt {number} has no guard in this workspace.")
            guarding.changed(tx, scope.ws)
            at = self._engine.options.clock()
            ledger.append(tx, scope.ws, "lift", {"receipts": [number]}, at)
        return gone

    def always(self, on: bool = True) -> None:
        """Let every forget of this workspace guard what it takes, unless it says guard=False."""
        check_flag(on, "on")
        with self._engine.writing(self.workspace) as (tx, scope):
            tx.run(
                "update workspace set guards_always = :on, version = version + 1 where ws = :ws",
                ws=scope.ws,
                on=int(on),
            )


def _texts(values: Iterable[str]) -> list[str]:
    check_iterable(values, "values")
    texts = list(values)
    for one in texts:
        check_text(one, "A value to guard")
    return texts
