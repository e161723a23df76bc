"""Commands that talk: chat and replay."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dellm.assistant import Assistant
from dellm.commands.replaying import Replay, read_lines
from dellm.commands.session import DONE, Model, Session, command
from dellm.commands.showing import shown
from dellm.errors import DatabaseClosed, DellmError
from dellm.models import resolve_model
from dellm.systems import Reply


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    for function in (chat, replay):
        command(app)(function)


def chat(
    session: Session,
    model: Model = None,
    thread: Annotated[str, typer.Option(help="The conversation's name.")] = "main",
    k: Annotated[int, typer.Option("-k", help="At most so many records by relevance.")] = 5,
    last: Annotated[int, typer.Option(help="The newest records of the thread, besides.")] = 0,
    by: Annotated[str | None, typer.Option(help="meaning, keyword or both.")] = None,
    budget: Annotated[int | None, typer.Option(help="Most tokens of context.")] = None,
    regenerate: Annotated[
        bool, typer.Option("--regenerate", help="Ask again for replies that a forget would take.")
    ] = False,
) -> int:
    """Talk with an assistant that remembers, and forgets when you ask it to.

    Ask "forget that ..." to see what would go, then answer yes, no or numbers. An empty line is
    passed over; end with Ctrl-D or /quit.
    """
    asked = resolve_model(model)
    with session.opened(create=True) as memory:
        talk = Assistant(
            memory,
            asked,
            thread=thread,
            k=k,
            last=last,
            by=by,
            budget=budget,
            on_dependents="regenerate" if regenerate else "erase",
        )
        for text in _said(session):
            try:
                _answer(session, talk.send(text))
            except DatabaseClosed:
                raise
            except DellmError as error:
                typer.echo(f"dellm: {shown(str(error))}", err=True)
    return DONE


def _said(session: Session) -> Iterator[str]:
    """Yield what the user types, or the lines of a pipe."""
    at_terminal = sys.stdin.isatty() and not session.as_json
    while True:
        if at_terminal:
            typer.echo("you> ", nl=False)
        line = sys.stdin.readline()
        if not line or line.strip() == "/quit":
            return
        if line.strip():
            yield line.rstrip("\n")


def _answer(session: Session, reply: Reply) -> None:
    plan = reply.plan.to_json() if reply.plan else None
    receipt = reply.receipt.to_json() if reply.receipt else None
    data = {
        "text": reply.text,
        "question": reply.question,
        "answer": reply.answer,
        "context": list(reply.context),
        "pending": reply.pending,
        "plan": plan,
        "receipt": receipt,
    }
    made = f"\n  [{reply.answer}, made from {_listed(reply.context)}]" if reply.context else ""
    session.give(data, reply.text + made)


def _listed(ids: tuple[int, ...]) -> str:
    return ", ".join(map(str, ids))


def replay(
    session: Session,
    file: Annotated[Path, typer.Argument(help="JSON Lines or a JSON array of messages.")],
    model: Model = None,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Keep replies as written; ask no model.")
    ] = False,
    k: Annotated[int, typer.Option("-k", help="At most so many records by relevance.")] = 5,
) -> int:
    """Play a conversation into the memory.

    A message has role, text, and if wanted thread, at (ISO 8601 or seconds) and context (places of
    earlier messages, from 0; or their ids, where every message has an id). A reply with a context is
    recorded with it; one without is replaced by what the model answers now, or, with --no-model,
    kept with all that was said before in its thread as its context.
    """
    from rich.progress import Progress

    lines = read_lines(file)
    asked = None if no_model else functools.cache(lambda: resolve_model(model))
    with session.opened(create=True) as memory:
        console = session.progress
        with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
            task = bar.add_task("messages", total=len(lines))
            tally = Replay(memory, asked, k).play(lines, lambda: bar.advance(task))
    done = ", ".join(f"{count} {name}" for name, count in asdict(tally).items() if count)
    session.give(asdict(tally), done or "nothing to do")
    return DONE
