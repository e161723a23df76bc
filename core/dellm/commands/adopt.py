"""The command that reads what another tool stored into the memory: adopt.

What can be read is found by entry points of the group "dellm.adopters"; this package names none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Protocol, cast

import typer

from dellm.commands.session import DONE, Session, command
from dellm.errors import InvalidInput, UnsupportedHere
from dellm.memory import Memory

GROUP = "dellm.adopters"
SHOWN = 20  # ids that are printed; --json prints all


class Adopter(Protocol):
    """Reads a source into a memory's workspace. See dellm_langchain.adopting.adopt.

    It may have the options `lossy`, `table` and `session_column` besides.
    """

    def __call__(
        self,
        source: str,
        memory: Memory,
        *,
        threads: list[str],
        progress: Callable[[int, int], None],
        **options: Any,
    ) -> Mapping[str, int | list[str]]:
        """Return what was seen and written, by name: a number, or the ids of what there is to look at.

        `progress(done, total)` is called on the way.
        """


@dataclass(frozen=True, slots=True)
class Target(Session):
    """The memory into which is read."""

    db: Annotated[
        str,
        typer.Option(
            "--memory", "--db", envvar="DELLM_DB", help="Path of a SQLite file, or postgresql://..."
        ),
    ] = "memory.db"


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    command(app)(adopt)


def adopt(
    target: Target,
    what: Annotated[
        str,
        typer.Argument(
            help="What the source is of: langchain (chat histories), langgraph or llamaindex."
        ),
    ],
    source: Annotated[
        str,
        typer.Argument(
            help="Path of its SQLite or JSON file, or postgresql://...; it is only read."
        ),
    ],
    thread: Annotated[
        list[str] | None, typer.Option("--thread", help="Only this thread; may be repeated.")
    ] = None,
    lossy: Annotated[
        bool,
        typer.Option("--lossy", help="Take objects of classes not to be had here as plain data."),
    ] = False,
    table: Annotated[
        str | None, typer.Option("--table", help="The table of the chat histories.")
    ] = None,
    session_column: Annotated[
        str | None, typer.Option("--session-column", help="Its column that names the session.")
    ] = None,
) -> int:
    """Read what another tool stored into the memory, with contexts inferred.

    It can be broken off and run again at any time; what is there already is left as it is.
    """
    read = adopter(what)
    said = {"lossy": lossy or None, "table": table, "session_column": session_column}
    options = {name: value for name, value in said.items() if value is not None}
    _check(what, read, options)
    with target.opened(create=True) as memory, _progress(target) as progress:
        counts = read(source, memory, threads=thread or [], progress=progress, **options)
    target.give(dict(counts), "\n".join(_line(*one) for one in counts.items()))
    return DONE


def _check(what: str, read: Adopter, options: Mapping[str, object]) -> None:
    """Raise InvalidInput for an option that an adopter does not have."""
    if unknown := options.keys() - inspect.signature(read).parameters.keys():
        named = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(unknown))
        raise InvalidInput(f"To adopt {what} there is no {named}.")


def _line(name: str, found: int | list[str]) -> str:
    """Return what is printed of one result: a number, and the first of the ids."""
    if isinstance(found, int):
        return f"{name}: {found:,}"
    first = f" ({', '.join(found[:SHOWN])}{', ...' if len(found) > SHOWN else ''})" if found else ""
    return f"{name}: {len(found):,}{first}"


def adopter(name: str) -> Adopter:
    """Return what reads the databases of the tool named. Raises InvalidInput, UnsupportedHere."""
    known = {one.name: one for one in entry_points(group=GROUP)}
    if name not in known:
        raise InvalidInput(
            "There is no adopter of that name.", remedy=f"Known are: {', '.join(sorted(known))}."
        )
    return _loaded(known[name])


def _loaded(entry: EntryPoint) -> Adopter:
    try:
        return cast("Adopter", entry.load())
    except ModuleNotFoundError as error:
        extra = entry.module.partition(".")[0].removeprefix("dellm_")
        raise UnsupportedHere(
            f"The module {error.name} is not installed, which reading {entry.name} needs.",
            remedy=f'Run `pip install "dellm[{extra}]"`.',
        ) from error


@contextmanager
def _progress(target: Target) -> Iterator[Callable[[int, int], None]]:
    """Show how far it is, to a person at a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = target.progress
    columns: list[Any] = [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    with Progress(
        *columns, console=console, disable=not console.is_terminal, transient=True
    ) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
