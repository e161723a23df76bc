"""Commands that forget, and those that prove it: plan, forget, restore, scan, scrub, ..."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dellm.commands.selecting import Selecting, given, read_plan
from dellm.commands.session import DONE, NOTHING, Model, Session, command
from dellm.commands.showing import table
from dellm.errors import InvalidInput, NothingMatched
from dellm.memory import Memory
from dellm.models import resolve_model
from dellm.plan import Plan
from dellm.receipts import Receipt
from dellm.regenerating import Ask
from dellm.systems import reply_with


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    for function in (plan, forget, restore, scan, scrub, verify, receipts):
        command(app)(function)


def plan(
    session: Session,
    selecting: Selecting,
    save: Annotated[
        Path | None, typer.Option(help="Keep the plan here as JSON, for forget --plan.")
    ] = None,
) -> int:
    """Show what a forget would take, and why. Nothing is changed. Exit code 1: nothing matches."""
    with session.opened() as memory:
        made = selecting.plan(memory)
    if save is not None:
        save.write_text(json.dumps(made.to_json()), "utf-8")
    session.give(made.to_json(), str(made))
    return DONE if made else NOTHING


def forget(
    session: Session,
    selecting: Selecting,
    kept: Annotated[
        Path | None, typer.Option("--plan", help="A plan kept as JSON; - reads it from stdin.")
    ] = None,
    model: Model = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    unit: Annotated[str, typer.Option(help="How much redact takes: span or clause.")] = "span",
    scrub: Annotated[
        bool | None,
        typer.Option("--scrub/--no-scrub", help="Clean the files too; small SQLite files are."),
    ] = None,
    guard: Annotated[
        bool | None,
        typer.Option("--guard/--no-guard", help="Keep what goes from coming in again."),
    ] = None,
) -> int:
    """Forget: show the plan, ask, execute it, print the receipt.

    Repeating it gives the same receipt. Exit code 1: nothing matches, or it was declined.
    """
    if session.as_json and not yes:
        raise InvalidInput("--json does not ask.", remedy="Add --yes.")
    with session.opened() as memory:
        made = _plan(memory, selecting, kept)
        ask = reply_with(resolve_model(model)) if made.on_dependents == "regenerate" else None
        if not made:
            return _done_before(session, memory, made, ask)
        if not yes:
            session.say(str(made))
            if not typer.confirm("Forget this?"):
                session.say("Nothing was forgotten.")
                return NOTHING
        receipt = memory.forget(made, unit=unit, scrub=scrub, guard=guard, regenerate=ask)
    session.give(receipt.to_json(), str(receipt))
    return DONE


def _done_before(session: Session, memory: Memory, empty: Plan, ask: Ask | None) -> int:
    """Show the receipt of the time when what now matches nothing did; there may be none."""
    try:
        receipt = memory.forget(empty, regenerate=ask)
    except NothingMatched:
        session.give(empty.to_json(), str(empty))
        return NOTHING
    session.give(receipt.to_json(), str(receipt))
    return DONE


def _plan(memory: Memory, selecting: Selecting, kept: Path | None) -> Plan:
    if kept is None:
        return selecting.plan(memory)
    if selecting.named or selecting.regenerate:
        raise InvalidInput("--plan takes no selector besides, and no --regenerate.")
    return read_plan(kept)


def restore(
    session: Session, number: Annotated[int, typer.Argument(help="The suppression's receipt.")]
) -> int:
    """Undo a suppression. Exit code 1: there is no such receipt."""
    with session.opened() as memory:
        back = memory.restore(memory.receipt(number))
    session.give({"ids": back}, f"{len(back)} record(s) may be used again")
    return DONE


def scan(
    session: Session,
    value: Annotated[str, typer.Argument(help="A value or phrase; - reads it from stdin.")],
    files: Annotated[bool, typer.Option(help="Read the database's files, too.")] = True,
) -> int:
    """Find every place that still holds a value, in any spelling. Exit code 1: it is somewhere."""
    with session.opened() as memory:
        report = memory.scan(given(value) or "", files=files)
    session.give(report.to_json(), str(report))
    return DONE if report.clean else NOTHING


def scrub(session: Session) -> int:
    """Clean the files up and prove that erased content is gone. Exit code 1: not clean yet."""
    with session.opened() as memory, session.progress.status("cleaning") as status:
        report = memory.scrub(status.update)
    session.give(report.to_json(), str(report))
    return DONE if report.clean else NOTHING


def verify(session: Session) -> int:
    """Check the audit chain and the consistency of what is stored. Exit code 1: a problem."""
    with session.opened() as memory:
        report = memory.verify()
    session.give({**asdict(report), "ok": report.ok}, str(report))
    return DONE if report.ok else NOTHING


def receipts(
    session: Session,
    number: Annotated[int | None, typer.Argument(help="One receipt, in full.")] = None,
) -> int:
    """List the receipts of the workspace, or show one."""
    with session.opened() as memory:
        found = memory.receipts() if number is None else [memory.receipt(number)]
    if session.as_json:
        session.emit([one.to_json() for one in found])
    elif number is not None:
        session.say(str(found[0]))
    else:
        columns = ("receipt", "when", "mode", "reach", "level", "records", "matched")
        session.console.print(table(columns, map(_row, found)))
    return DONE


def _row(receipt: Receipt) -> tuple[object, ...]:
    when = f"{receipt.at:%Y-%m-%d %H:%M:%S}"
    about = (receipt.mode, receipt.reach, receipt.level, len(receipt), receipt.matched)
    return (receipt.number, when, *about)
