"""Commands about what comes in: what waits for confirmation, and what is kept from coming in again."""

from __future__ import annotations

from typing import Annotated

import typer

from dellm.commands.session import DONE, Session, command
from dellm.commands.showing import records_table, table
from dellm.portable import record_json

Id = Annotated[int, typer.Argument(help="The id of a record that waits.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    for function in (waiting, confirm, reject, guards):
        command(app)(function)


def waiting(session: Session) -> int:
    """List the records that wait for confirmation: they are in no context, search or history."""
    with session.opened() as memory:
        found = memory.waiting()
    if session.as_json:
        session.emit([record_json(one) for one in found])
    else:
        session.console.print(records_table(found))
    return DONE


def confirm(session: Session, id_: Id) -> int:
    """Let a record that waits be used from now on. Exit code 1: none of this id waits."""
    with session.opened() as memory:
        record = memory.confirm(id_)
    session.give(record_json(record), f"record {record.id} may be used now")
    return DONE


def reject(session: Session, id_: Id) -> int:
    """Forget a record that waits, and print the receipt. Exit code 1: none of this id waits."""
    with session.opened() as memory:
        receipt = memory.reject(id_)
    session.give(receipt.to_json(), str(receipt))
    return DONE


def guards(
    session: Session,
    lift: Annotated[
        int | None, typer.Option(help="Remove the guard of this receipt instead.")
    ] = None,
) -> int:
    """List what is kept from coming in again, by receipt: numbers of digests, no content."""
    with session.opened() as memory:
        if lift is not None:
            gone = memory.guards.lift(lift)
            session.give({"digests": gone}, f"{gone} digest(s) are removed")
            return DONE
        found = memory.guards()
    told = [(one.receipt, one.digests, one.made_at, one.until) for one in found]
    if session.as_json:
        names = ("receipt", "digests", "made_at", "until")
        rows = [(*one[:2], *(at and at.isoformat() for at in one[2:])) for one in told]
        session.emit([dict(zip(names, row, strict=True)) for row in rows])
    else:
        rows = [(*one[:2], *(f"{at:%Y-%m-%d}" if at else "ever" for at in one[2:])) for one in told]
        session.console.print(table(("receipt", "digests", "since", "until"), rows))
    return DONE
