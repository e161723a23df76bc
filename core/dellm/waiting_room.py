"""The waiting room: records that came in quarantined, until the user confirms or rejects them.

What waits is in no context, search, history or export, and neither the keyword index nor the
vectors have seen it. A forget finds it by what it says, as everything else.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import fact_rows, holding, indexing, ledger, reading, storing, suppressing
from .arguments import check_whole
from .database import Scope, Tx
from .errors import NotFound, StorageError
from .previews import Previews
from .records import HIDDEN, Record, Status
from .terms import terms

TRIES = 3


class WaitingRoom(Previews):
    """The verbs `waiting` and `confirm`; `reject` is a forget, and Memory's."""

    def waiting(self) -> list[Record]:
        """Return the records that wait for confirmation, oldest first; none that is suppressed.

        For the user's eyes: what goes from here into a prompt is in no context that we know of.
        """
        with self._engine.reading(self.id) as (tx, scope):
            rows = tx.all(
                f"select {storing.COLUMNS} from record where ws = :ws and status = :waiting "
                "and audience = 0 and (retention_until is null or retention_until > :at) order by id",
                ws=scope.ws,
                waiting=int(Status.QUARANTINED),
                at=self._now(),
            )
            held = _withheld(tx, scope, [row[0] for row in rows])
            found = [Record.from_row(row, scope.name) for row in rows if row[0] not in held]
        self._engine.readers.tell(self.id, [one.id for one in found])
        return found

    def confirm(self, id_: int) -> Record:
        """Let a record that waits be used from now on, as if it had just come in; return it.

        Its vector is made first, where the workspace has vectors. The audit chain says which id was
        confirmed. Raises NotFound for one that does not wait, EmbedderError, StorageError.
        """
        check_whole(id_, "The id")
        for _ in range(TRIES):
            with self._engine.reading(self.id) as (tx, scope):
                found = _waits(tx, scope, id_)
            hidden = found.kind in HIDDEN
            made = None if hidden else indexing.vector_for(self._engine, self.id, found.text)
            with self._engine.writing(self.id, durable=True) as (tx, scope):
                storing.lock(tx, scope.ws)
                found = _waits(tx, scope, id_)
                if hidden or indexing.add(tx, scope.ws, id_, made):
                    _let_in(tx, scope, found, self._now())
                    return reading.several(tx, scope, [id_], None)[id_]
        raise StorageError(
            "The workspace's embedder changed again and again.", remedy="Try again later."
        )


def _withheld(tx: Tx, scope: Scope, ids: Sequence[int]) -> set[int]:
    """Return those of records that wait which are suppressed or on hold: they wait no longer."""
    if not ids:
        return set()
    return suppressing.withheld(tx, scope.ws) | holding.restricted(tx, scope.ws, ids)


def _waits(tx: Tx, scope: Scope, id_: int) -> Record:
    found = reading.several(tx, scope, [id_], None, asked=True).get(id_)
    waits = found is not None and found.status == Status.QUARANTINED
    if found is None or not waits or id_ in _withheld(tx, scope, [id_]):
        raise NotFound(f"No record with the id {id_} waits for confirmation.")
    return found


def _let_in(tx: Tx, scope: Scope, record: Record, at: int) -> None:
    split = [] if record.kind in HIDDEN else terms(record.text)
    tx.run(
        "update record set status = 0, tokens = :tokens where ws = :ws and id = :id",
        ws=scope.ws,
        id=record.id,
        tokens=len(split),
    )
    tx.add_terms(scope.ws, [(record.id, split)])
    # A new generation: of the vectors that are kept at hand, and of what adapters know is there.
    tx.run(
        "update workspace set documents = documents + :found, tokens = tokens + :tokens, "
        "version = version + 1, generation = generation + 1 where ws = :ws",
        ws=scope.ws,
        found=int(record.kind not in HIDDEN),
        tokens=len(split),
    )
    fact_rows.settle_records(tx, scope.ws, [record.id])
    ledger.append(tx, scope.ws, "confirm", {"ids": [record.id]}, at)
