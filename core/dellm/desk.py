"""What one write of an adapter works with: its transaction, and the numbers reserved for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .database import Scope, Tx
from .errors import InvalidInput
from .sequences import Tip, Tips

SPARE = 16  # sequence ids reserved at a time


@dataclass(frozen=True, slots=True)
class Standing:
    """How a write of this process left its workspace: what nobody else has written to since."""

    generation: int
    last_record: int
    last_sequence: int
    guards: int = 0  # the number of the workspace's guards, which moves with its generation
    policy: int = 0  # that of its own policy, which does too
    governed: int = 0  # see governing; what sets it stores a record
    holds: int = 0  # how many are open; placing or releasing one moves the generation


@dataclass(slots=True)
class Desk:
    """What one write needs: the transaction, numbers reserved for it, and what to note afterwards.

    `last_record` is the workspace's newest record: its row is locked, so that does not change.
    `trusted` says that no record the adapter knows can have gone since it learned of it. In
    `generation` 0 nothing was ever erased or suppressed in the workspace.
    """

    tx: Tx
    scope: Scope
    at: int
    thread: str
    tips: Tips
    trusted: bool
    generation: int
    next_sequence: int
    last_reserved: int
    last_record: int
    guards: int = 0
    policy: int = 0
    governed: int = 0
    holds: int = 0
    noted: list[Tip] = field(default_factory=list)

    @property
    def standing(self) -> Standing:
        """How the workspace stands once this write is committed."""
        last, reserved = self.last_record, self.last_reserved
        return Standing(
            self.generation, last, reserved, self.guards, self.policy, self.governed, self.holds
        )

    def take(self) -> int:
        """Return a sequence id reserved for this write; ids that are not used do no harm."""
        if self.next_sequence < self.last_reserved:
            row = self.tx.one(
                "update workspace set last_sequence = last_sequence - :spare "
                "where ws = :ws returning last_sequence",
                ws=self.scope.ws,
                spare=SPARE,
            )
            self.last_reserved = row[0] if row else 0
            self.next_sequence = self.last_reserved + SPARE - 1
        self.next_sequence -= 1
        return self.next_sequence + 1


def open_desk(
    tx: Tx,
    scope: Scope,
    at: int,
    thread: str,
    tips: Tips,
    trusted: int,
    expected: Standing | None = None,
) -> tuple[Desk, int]:
    """Lock the workspace and reserve numbers; return the desk and the workspace's generation.

    `trusted` is the generation up to which the caller knows its records to be there. `expected` is
    how the workspace most likely stands, so that nobody need wait for the answer: what is asked of
    the transaction next, or its commit, raises Moved if it does not.
    """
    found = _locked(tx, scope) if expected is None else _assumed(tx, scope, expected)
    last, first = found.last_sequence, found.last_sequence + SPARE - 1
    trusts, newest = found.generation == trusted, found.last_record
    desk = Desk(
        tx,
        scope,
        at,
        thread,
        tips,
        trusts,
        found.generation,
        first,
        last,
        newest,
        found.guards,
        found.policy,
        found.governed,
        found.holds,
    )
    return desk, found.generation


def _locked(tx: Tx, scope: Scope) -> Standing:
    row = tx.one(
        "update workspace set version = version + 1, last_sequence = last_sequence - :spare "
        "where ws = :ws returning generation, last_record, last_sequence, guards, "
        "policy, governed, holds",
        ws=scope.ws,
        spare=SPARE,
    )
    if row is None:
        raise InvalidInput("The workspace has no row; it was never created.")
    return Standing(*map(int, row))


def _assumed(tx: Tx, scope: Scope, expected: Standing) -> Standing:
    tx.expect(
        "update workspace set version = version + 1, last_sequence = last_sequence - :spare "
        "where ws = :ws and generation = :generation and last_record = :newest "
        "and last_sequence = :last",
        ws=scope.ws,
        spare=SPARE,
        generation=expected.generation,
        newest=expected.last_record,
        last=expected.last_sequence,
    )
    return replace(expected, last_sequence=expected.last_sequence - SPARE)
