"""Commands about the audit chain: audit."""

from __future__ import annotations

from typing import Annotated

import typer

from dellm.commands.session import DONE, Session, command
from dellm.commands.showing import table
from dellm.records import from_micros


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    command(app)(audit)


def audit(
    session: Session,
    prune: Annotated[
        int | None, typer.Option(help="Remove what is older than so many days, first.")
    ] = None,
) -> int:
    """List the audit chain: what was done to which records, and when. It holds no content."""
    with session.opened() as memory:
        gone = 0 if prune is None else memory.audit.prune(prune)
        entries = memory.audit()
    if session.as_json:
        rows = [
            {"number": one.seq, "at": one.at, "action": one.action, "body": dict(one.body)}
            for one in entries
        ]
        session.emit({"pruned": gone, "entries": rows})
        return DONE
    shown = ((one.seq, f"{from_micros(one.at):%Y-%m-%d %H:%M:%S}", one.action) for one in entries)
    session.console.print(table(("entry", "when", "action"), shown))
    if prune is not None:
        session.say(f"{gone} older entry(s) removed")
    return DONE
