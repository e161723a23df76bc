"""What a reader gets in the place of a channel's value that went; see restoring.

A task that read a checkpoint after a forget has seen that, so what it made is tied to it, and a
checkpoint that leaves the channel as it is holds it from then on.
"""

from __future__ import annotations

from collections.abc import Collection

from .bodies import load_body
from .cells import Stored
from .database import Scope, Tx
from .keeping import Known
from .naming import Naming
from .settling import successor, usable


def stand_ins(
    tx: Tx, scope: Scope, naming: Naming, known: Known, gone: Collection[int]
) -> dict[str, Stored]:
    """Return, by channel, what is read where the value was refused or is one of the `gone`.

    That is the record that redaction put in its place, else the last earlier value that is there.
    """
    found: dict[str, Stored] = {}
    left: dict[str, int] = {}
    for name, cell in known.body.cells.items():
        if isinstance(cell, int) and (cell == 0 or (cell > 0 and cell in gone)):
            new = _there(tx, scope, cell)
            if new:
                found[name] = new
            else:
                left[name] = cell
    at = known.parent
    while at is not None and left:
        row = tx.one(
            "select body, parent from checkpoint where ws = :ws and line = :line and cid = :cid",
            ws=scope.ws,
            line=known.line,
            cid=at,
        )
        if row is None:
            break
        for name, earlier in load_body(row[0], naming.name).cells.items():
            if name in left and earlier != left[name] and (cell := _there(tx, scope, earlier)):
                found[name] = cell
                del left[name]
        at = row[1]
    return found


def _there(tx: Tx, scope: Scope, cell: Stored) -> Stored:
    """Return a cell as it reads, 0 where it holds one record and that is gone."""
    if not isinstance(cell, int) or cell < 0:
        return cell
    if cell and usable(tx, scope.ws, [cell]):
        return cell
    return (successor(tx, scope.ws, cell) if cell else None) or 0
