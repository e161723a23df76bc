"""Commands that store and read: remember, context, show, explain, graph, export, index."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated

import typer

from dellm.commands.selecting import given, numbers
from dellm.commands.session import DONE, NOTHING, Session, command
from dellm.commands.showing import one_line, records_table, table
from dellm.context import prompt as prompt_of
from dellm.errors import InvalidInput
from dellm.memory import Memory
from dellm.portable import record_json


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    for function in (remember, context, show, explain, graph, export, index):
        command(app)(function)


def remember(
    session: Session,
    text: Annotated[str, typer.Argument(help="What was said; - reads it from stdin.")],
    role: Annotated[str, typer.Option(help="Who said it.")] = "user",
    thread: Annotated[str | None, typer.Option(help="The conversation.")] = None,
    kind: Annotated[str, typer.Option(help="message, document, fact, ...")] = "message",
    subject: Annotated[str | None, typer.Option(help="Whom it is about.")] = None,
    at: Annotated[str | None, typer.Option(help="When, in ISO 8601; now if left out.")] = None,
    parts: Annotated[bool, typer.Option("--parts", help="Each sentence on its own.")] = False,
) -> int:
    """Store something, made from nothing that the memory knows of."""
    words = given(text) or ""
    when = None if at is None else time_of(at)
    with session.opened(create=True) as memory:
        store = memory.remember_parts if parts else memory.remember
        made = store(words, role=role, thread=thread, kind=kind, subject=subject, created_at=when)
    made = made if isinstance(made, list) else [made]
    ids = [record.id for record in made]
    session.give([record_json(record) for record in made], f"remembered as {_listed(ids)}")
    return DONE


def context(
    session: Session,
    query: Annotated[str, typer.Argument(help="What is asked; - reads it from stdin.")],
    thread: Annotated[str | None, typer.Option(help="The conversation it is asked in.")] = None,
    k: Annotated[int, typer.Option("-k", help="At most so many records by relevance.")] = 5,
    threshold: Annotated[float | None, typer.Option(help="Least cosine, in [-1, 1].")] = None,
    last: Annotated[int, typer.Option(help="The newest records of the thread, besides.")] = 0,
    by: Annotated[str | None, typer.Option(help="meaning, keyword or both.")] = None,
    scope: Annotated[str, typer.Option(help="workspace or thread.")] = "workspace",
    budget: Annotated[int | None, typer.Option(help="Most tokens in all.")] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the prompt instead.")] = False,
) -> int:
    """Choose what goes into the prompt for a query. Exit code 1: nothing relevant."""
    asked = given(query) or ""
    options = {"k": k, "threshold": threshold, "last": last, "by": by, "budget": budget}
    with session.opened() as memory:
        chosen = memory.context(asked, thread=thread, scope=scope, **options)  # type: ignore[arg-type]  # each has its own type, checked there
    if prompt:
        text = prompt_of(asked, chosen.records)
        session.give({"prompt": text, "ids": chosen.ids}, text)
    elif session.as_json:
        session.emit(
            [
                {"id": one.record.id, "score": one.score, "why": one.why, "text": one.record.text}
                for one in chosen
            ]
        )
    else:
        rows = (
            (one.record.id, one.why, one.record.role, one_line(one.record.text)) for one in chosen
        )
        session.console.print(table(("id", "why", "role", "text"), rows))
    return DONE if len(chosen) else NOTHING


def show(
    session: Session,
    ids: Annotated[str | None, typer.Argument(help="Record ids, such as 3,5-8.")] = None,
    thread: Annotated[str | None, typer.Option(help="One conversation, in order.")] = None,
    last: Annotated[int | None, typer.Option(help="Only its newest records.")] = None,
) -> int:
    """Show records, a thread, or, with neither, the list of threads. Exit code 1: none."""
    if ids is not None and thread is not None:
        raise InvalidInput("Show either ids or a thread.")
    with session.opened() as memory:
        if ids is None and thread is None:
            return _show_threads(session, memory)
        if thread is not None:
            records = memory.history(thread, last=last)
        else:
            records = [memory.get(id_) for id_ in numbers(ids or "")]
    if session.as_json:
        session.emit([record_json(record) for record in records])
    else:
        session.console.print(records_table(records))
    return DONE if records else NOTHING


def _show_threads(session: Session, memory: Memory) -> int:
    threads = memory.threads()
    if session.as_json:
        session.emit(threads)
    else:
        session.console.print(table(("thread", "records"), threads.items()))
    return DONE if threads else NOTHING


def explain(session: Session, number: Annotated[int, typer.Argument(help="A record's id.")]) -> int:
    """Answer "why do you know this?" for a record. Exit code 1: it is not there."""
    with session.opened() as memory:
        found = memory.explain(number)
    data = {
        "record": record_json(found.record),
        "context": [one.id for one in found.context],
        "sources": {str(id_): list(path) for id_, path in found.sources.items()},
    }
    session.give(data, str(found))
    return DONE


def graph(
    session: Session,
    ids: Annotated[str | None, typer.Argument(help="Record ids; all if left out.")] = None,
    dot: Annotated[bool, typer.Option("--dot", help="For Graphviz; the default.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="A Mermaid flowchart.")] = False,
) -> int:
    """Draw which record was made from which: ids and roles, no content."""
    if dot and mermaid:
        raise InvalidInput("Choose --dot or --mermaid.")
    with session.opened() as memory:
        drawing = memory.graph(None if ids is None else numbers(ids))
    session.give(asdict(drawing), drawing.mermaid() if mermaid else drawing.dot())
    return DONE


def export(
    session: Session,
    out: Annotated[Path | None, typer.Option(help="A file; stdout if left out.")] = None,
) -> int:
    """Write every record as a line of JSON, with the ids it was made from. `replay` reads it."""
    with session.opened() as memory:
        if out is None:
            _export(memory, sys.stdout)
        else:
            with out.open("w", encoding="ascii") as stream:
                count = _export(memory, stream)
            session.give({"records": count}, f"{count} record(s) written")
    return DONE


def _export(memory: Memory, stream: IO[str]) -> int:
    count = 0
    for record in memory.export():
        line = record_json(record)
        line["context"] = memory.context_of(record.id)
        stream.write(json.dumps(line) + "\n")
        count += 1
    return count


def index(session: Session) -> int:
    """Make the vectors that are missing; all anew where they are another embedder's."""
    from rich.progress import Progress

    console = session.progress
    with (
        session.opened() as memory,
        Progress(console=console, disable=not console.is_terminal, transient=True) as bar,
    ):
        task = bar.add_task("vectors", total=None)
        made = memory.index(lambda done, total: bar.update(task, completed=done, total=total))
    session.give({"made": made}, f"{made} vector(s) made")
    return DONE


def time_of(text: str) -> datetime:
    """Read a time in ISO 8601, UTC unless it says else; InvalidInput for anything else."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        problem = InvalidInput("A time is written in ISO 8601, such as 2026-03-01T09:30.")
    raise problem


def _listed(ids: list[int]) -> str:
    return ", ".join(map(str, ids))
