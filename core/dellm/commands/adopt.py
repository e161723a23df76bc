"""The command that reads another tool's database into the memory: adopt.

What can be read is found by entry points of the group "dellm.adopters"; this package names none.
"""

from __future__ import annotations

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


class Adopter(Protocol):
    """Reads a source into a memory's workspace. See dellm_langchain.adopting.adopt."""

    def __call__(
        self,
        source: str,
        memory: Memory,
        *,
        threads: list[str],
        lossy: bool,
        progress: Callable[[int, int], None],
    ) -> Mapping[str, int]:
        """Return what was seen and written, by name; `progress(done, total)` is called on the way."""


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
    what: Annotated[str, typer.Argument(help="What the source is of: langgraph.")],
    source: Annotated[
        str, typer.Argument(help="Path of its SQLite file, or postgresql://...; it is only read.")
    ],
    thread: Annotated[
        list[str] | None, typer.Option("--thread", help="Only this thread; may be repeated.")
    ] = None,
    lossy: Annotated[
        bool,
        typer.Option("--lossy", help="Take objects of classes not to be had here as plain data."),
    ] = False,
) -> int:
    """Read another tool's database into the memory, with contexts inferred.

    It can be broken off and run again at any time; what is there already is left as it is.
    """
    read = adopter(what)
    with target.opened(create=True) as memory, _progress(target) as progress:
        counts = read(source, memory, threads=thread or [], lossy=lossy, progress=progress)
    target.give(dict(counts), "\n".join(f"{name}: {count:,}" for name, count in counts.items()))
    return DONE


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
        raise UnsupportedHere(
            f"The module {error.name} is not installed, which reading {entry.name} needs.",
            remedy='Run `pip install "dellm[langchain]"`.',
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
