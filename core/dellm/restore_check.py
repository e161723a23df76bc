"""After a backup was brought back: erasing again what the journal says is gone (invariant I4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import holding, journaling, ledger, storing
from .engine import Engine
from .errors import NothingMatched, UnsupportedHere
from .journal import Journal, Noted

if TYPE_CHECKING:
    from .memory import Memory


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What a check after a restore did: `receipts` by workspace, and what it could not take.

    `lost` counts the forgets that the database knew nothing of. `held` are records that were to go
    and are still there, by workspace: a hold keeps them, out of use, and they go when it ends.
    """

    workspaces: int
    lost: int
    receipts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    held: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether all that the journal has is gone."""
        return not self.held

    def __str__(self) -> str:
        done = sum(map(len, self.receipts.values()))
        lines = [f"{self.workspaces} workspace(s) looked at, {self.lost} forget(s) were lost"]
        lines.append(f"erased again in {done} forget(s)" if done else "nothing had come back")
        kept = sum(map(len, self.held.values()))
        return "\n".join([*lines, *([f"{kept} record(s) are held and stay"] if kept else [])])

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {
            "workspaces": self.workspaces,
            "lost": self.lost,
            "receipts": {name: list(numbers) for name, numbers in self.receipts.items()},
            "held": {name: list(ids) for name, ids in self.held.items()},
            "ok": self.ok,
        }


def check(memory: Memory, engine: Engine) -> RestoreReport:
    """Erase again, in every workspace, what the journal says is gone; safe to repeat and to break off.

    Raises UnsupportedHere for a memory that was opened without a journal, StorageError for a damaged
    one.
    """
    journal = engine.options.journal
    with engine.checking():
        with engine.reading("default"):  # a closed memory says so
            noted = {} if journal is None else journal.read()
        if journal is None:
            raise UnsupportedHere(
                "The memory was opened without a journal.", remedy="Open it with journal=PATH."
            )
        receipts: dict[str, tuple[int, ...]] = {}
        held: dict[str, tuple[int, ...]] = {}
        lost = 0
        for name in noted:
            with engine.reading(name) as (tx, scope):
                gone = journaling.standing(tx, scope.ws, noted[name]).lost
                back = journaling.come_back(tx, scope, gone)
            lost += len(gone)
            receipts[name] = tuple(_again(memory.workspace(name), back))
            with engine.reading(name) as (tx, scope):
                left = journaling.come_back(tx, scope, gone).get("erase", [])
                waiting = {one.id for one in holding.listed(tx, scope.ws, left)}
            if left:
                held[name] = tuple(left)
            if gone and waiting.issuperset(left):  # out of use, and erased when the hold ends
                _settled(engine, journal, name, gone)
    done = {name: numbers for name, numbers in receipts.items() if numbers}
    return RestoreReport(len(noted), lost, done, held)


def _settled(engine: Engine, journal: Journal, name: str, gone: Sequence[Noted]) -> None:
    """Say in the audit chain and in the journal that lost forgets were carried out again."""
    with engine.writing(name, durable=True) as (tx, scope):
        storing.lock(tx, scope.ws)
        entry = ledger.append(
            tx, scope.ws, "restore-check", {"lost": len(gone)}, engine.options.clock()
        )
    journal.checked(name, gone, (entry.seq, entry.digest))
    engine.checked(name)


def _again(memory: Memory, back: Mapping[str, list[int]]) -> list[int]:
    """Forget the records that came back, with all made from them; return the receipts' numbers."""
    made = []
    for mode in sorted(back):
        try:
            made.append(memory.forget(ids=back[mode], mode=mode).number)
        except NothingMatched:  # all of them are held, or went with those before
            continue
    return made
