"""The commands of those whom a memory is about: remembered, correct, import."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dellm.commands.session import DONE, NOTHING, Session, command
from dellm.portable import record_json


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    command(app)(remembered)
    command(app)(correct)
    command(app, "import")(import_)


def remembered(
    session: Session,
    subject: Annotated[
        str | None, typer.Argument(help="Whom it is about; all if left out.")
    ] = None,
    thread: Annotated[str | None, typer.Option(help="Of one conversation.")] = None,
    purpose: Annotated[str | None, typer.Option(help="For one purpose.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write an export to this file instead.")] = None,
    after: Annotated[int, typer.Option(help="Go on after this id.")] = 0,
    limit: Annotated[int, typer.Option(help="At most so many.")] = 100,
) -> int:
    """Show what is remembered about somebody, where it is from and until when. Exit code 1: nothing."""
    with session.opened() as memory:
        if out is not None:
            count = memory.remembered.export(out, subject, thread=thread, purpose=purpose)
            session.give({"records": count}, f"{count} record(s) written")
            return DONE
        known = memory.remembered(subject, thread=thread, purpose=purpose, after=after, limit=limit)
    rows = [record_json(one.record) | {"governed": one.governed.to_json()} for one in known]
    session.give(rows, "\n".join(map(str, known)) or "nothing is remembered of that")
    return DONE if known else NOTHING


def correct(
    session: Session,
    number: Annotated[int, typer.Argument(help="The record that is wrong.")],
    to: Annotated[str, typer.Argument(help="What it should say.")],
) -> int:
    """Put a record right; what was made from the old text is erased or made anew."""
    with session.opened() as memory:
        receipt = memory.correct(number, to)
    session.give(receipt.to_json(), str(receipt))
    return DONE


def import_(
    session: Session, path: Annotated[Path, typer.Argument(help="An export that was written.")]
) -> int:
    """Take an export in; nothing that was forgotten comes back."""
    with session.opened(create=True) as memory:
        brought = memory.remembered.bring_back(path)
    session.give(asdict(brought), str(brought))
    return DONE
