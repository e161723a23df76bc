"""What one write of an adapter works with: its transaction, and the numbers reserved for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from .database import Scope, Tx
from .errors import InvalidInput
from .sequences import Tip, Tips

SPARE = 16  # sequence ids reserved at a time


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
    noted: list[Tip] = field(default_factory=list)

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
    tx: Tx, scope: Scope, at: int, thread: str, tips: Tips, trusted: int
) -> tuple[Desk, int]:
    """Lock the workspace and reserve numbers; return the desk and the workspace's generation.

    `trusted` is the generation up to which the caller knows its records to be there.
    """
    row = tx.one(
        "update workspace set version = version + 1, last_sequence = last_sequence - :spare "
        "where ws = :ws returning last_sequence, generation, last_record",
        ws=scope.ws,
        spare=SPARE,
    )
    if row is None:
        raise InvalidInput("The workspace has no row; it was never created.")
    last, generation = int(row[0]), int(row[1])
    first = last + SPARE - 1
    trusts = generation == trusted
    desk = Desk(tx, scope, at, thread, tips, trusts, generation, first, last, int(row[2]))
    return desk, generation
