"""The command for what has expired: sweep."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from dellm.commands.session import DONE, NOTHING, Session, command


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    command(app)(sweep)


def sweep(
    session: Session,
    most: Annotated[int | None, typer.Option(help="Look at so many expired records.")] = None,
    scrub: Annotated[bool, typer.Option(help="Clean the files up at the end.")] = True,
) -> int:
    """Forget what has expired, with all that was made from it. Exit code 1: a hold keeps some."""
    with session.opened() as memory, session.progress.status("sweeping") as status:
        done = memory.expiry.sweep(
            most=most,
            scrub=scrub,
            progress=lambda seen, total: status.update(f"{seen} of {total}"),
        )
    session.give(asdict(done), str(done))
    return NOTHING if done.kept else DONE
