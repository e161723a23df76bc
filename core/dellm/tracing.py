"""Debug traces: what went into each context, kept only inside a window that somebody opened.

A trace is a record (of a kind that no read returns) made from the records it shows, and it expires
with its window: so forgetting, scanning and expiry reach it like anything else that was derived. The
query itself is left out: it may repeat what no record of the context says.
"""

from __future__ import annotations

from contextlib import suppress

from . import audiences, ledger, sequences, storing
from .database import USABLE
from .engine import Engine
from .errors import DellmError
from .records import Context, Draft, Record, to_micros

ROLE = "trace"
MINUTE = 60 * 1_000_000


def open_window(engine: Engine, workspace: str, minutes: int) -> int:
    """Keep traces for so many minutes from now on, in this process; return when that ends."""
    now = engine.options.clock()
    until = now + minutes * MINUTE
    with engine.writing(workspace, durable=True) as (tx, scope):
        storing.lock(tx, scope.ws)
        ledger.append(tx, scope.ws, "trace", {"until": until}, now)
    engine.traced[workspace] = until
    return until


def note(engine: Engine, workspace: str, chosen: Context) -> None:
    """Keep a trace of a context if a window is open; what fails is nobody's: the context counts."""
    until = engine.traced.get(workspace)
    if until is None or not chosen.ids:
        return
    if until <= engine.options.clock():
        engine.traced.pop(workspace, None)
        return
    with suppress(DellmError):
        _store(engine, workspace, chosen, until)


def _store(engine: Engine, workspace: str, chosen: Context, until: int) -> None:
    shown = "\n".join(f"{one.record.role} ({one.why}): {one.record.text}" for one in chosen)
    least = [to_micros(one.retention_until) for one in chosen.records if one.retention_until]
    draft = Draft(shown, role=ROLE, kind="state", retention_until=min([until, *least]))
    with engine.writing(workspace) as (tx, scope):
        made, numbers = storing.store(tx, scope, [draft], engine.options.clock(), again=True)
        sequences.attach_context(
            tx, scope, made[0].id, chosen.ids, "", numbers.sequence, engine.tips
        )
        audiences.narrow(tx, scope, [made[0].id], numbers.governed)


def traces(engine: Engine, workspace: str) -> list[Record]:
    """Return the traces that have not expired, oldest first."""
    with engine.reading(workspace) as (tx, scope):
        rows = tx.all(
            f"select {storing.COLUMNS} from record where ws = :ws and kind = 'state' "
            f"and role = :role and {USABLE} order by id",
            ws=scope.ws,
            role=ROLE,
            at=engine.options.clock(),
        )
        return [Record.from_row(row, scope.name) for row in rows]
