"""The command for the time after a restore: restore-check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dellm.commands.session import DONE, NOTHING, Session, command


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    command(app, "restore-check")(restore_check)


def restore_check(
    session: Session,
    path: Annotated[
        Path, typer.Argument(metavar="JOURNAL", help="The journal that the memory is opened with.")
    ],
) -> int:
    """Erase again what a journal says is gone and a backup brought back. Exit code 1: some is held."""
    with replace(session, journal=str(path)).opened() as memory:
        report = memory.restore_check()
    session.give(report.to_json(), str(report))
    return DONE if report.ok else NOTHING
