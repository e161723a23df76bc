"""Commands about legal holds: hold place, hold list, hold release."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dellm.commands.selecting import numbers
from dellm.commands.session import DONE, Session, command
from dellm.commands.showing import table
from dellm.holds import Hold


def register(app: typer.Typer) -> None:
    """Add the commands to the app, as `hold ...`."""
    group = typer.Typer(no_args_is_help=True, help="Legal holds: what no forget gets past.")
    command(group)(place)
    command(group, "list")(list_holds)
    command(group)(release)
    app.add_typer(group, name="hold")


def place(
    session: Session,
    basis: Annotated[str, typer.Option(help='What it is for, without content: "case 4711".')],
    by: Annotated[str, typer.Option(help="Who asked for it.")],
    ids: Annotated[str | None, typer.Option(help="Record ids: 3,5-8.")] = None,
    subject: Annotated[str | None, typer.Option(help="All about this subject.")] = None,
    thread: Annotated[str | None, typer.Option(help="All of this thread.")] = None,
    everything: Annotated[bool, typer.Option(help="All of the workspace.")] = False,
) -> int:
    """Keep records from being erased, and out of use, until the hold is released."""
    listed = None if ids is None else numbers(ids)
    with session.opened() as memory:
        made = memory.holds.place(
            basis=basis, by=by, ids=listed, subject=subject, thread=thread, everything=everything
        )
    session.give(_json(made), f"hold {made.number} keeps {made.records} record(s)")
    return DONE


def list_holds(
    session: Session,
    released: Annotated[bool, typer.Option(help="Also the holds that are over.")] = False,
) -> int:
    """List the open holds, and how many records wait for the end of one."""
    with session.opened() as memory:
        found, waiting = memory.holds(released=released), memory.holds.waiting()
    if session.as_json:
        session.emit({"holds": [_json(one) for one in found], "waiting": waiting})
        return DONE
    rows = [
        (
            one.number,
            one.kind,
            one.target or "",
            one.basis,
            one.by,
            f"{one.placed_at:%Y-%m-%d}",
            f"{one.released_at:%Y-%m-%d}" if one.released_at else "open",
            one.records,
        )
        for one in found
    ]
    columns = ("hold", "of", "name", "basis", "by", "since", "until", "records")
    session.console.print(table(columns, rows))
    session.say(f"{len(waiting)} record(s) wait to be forgotten")
    return DONE


def release(
    session: Session,
    number: Annotated[int, typer.Argument(help="The number of an open hold.")],
    by: Annotated[str, typer.Option(help="Who asked for it.")] = "",
) -> int:
    """End a hold: forget what waited for it, give back the rest. Exit code 1: no such open hold."""
    with session.opened() as memory:
        receipts = memory.holds.release(number, by=by)
    told = "\n".join(map(str, receipts)) or "nothing waited for it"
    session.give([one.to_json() for one in receipts], told)
    return DONE


def _json(hold: Hold) -> dict[str, Any]:
    over = hold.released_at
    return {
        "number": hold.number,
        "kind": hold.kind,
        "target": hold.target,
        "ids": list(hold.ids),
        "basis": hold.basis,
        "by": hold.by,
        "placed_at": hold.placed_at.isoformat(),
        "released_at": None if over is None else over.isoformat(),
        "records": hold.records,
    }
