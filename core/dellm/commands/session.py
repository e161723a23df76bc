"""What every command shares: where the memory is, how results are printed, how a run ends.

Exit codes: 0 done; 1 nothing matched, declined, not clean or not verified; 2 wrong usage; 3 an error
of the database, a model or the library. No error shows what is stored.
"""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console

from dellm.commands.showing import shown
from dellm.errors import DellmError, InvalidInput, NotFound, NothingMatched, SelectorError
from dellm.memory import Memory

DONE, NOTHING, USAGE, FAILED = 0, 1, 2, 3
PIPED_WIDTH = 160  # columns of tables that go to a file or a pipe


Model = Annotated[
    str | None,
    typer.Option(
        envvar="DELLM_MODEL",
        help='"openai:MODEL", "local" or "extractive"; else what the environment names.',
    ),
]


@dataclass(frozen=True, slots=True)
class Session:
    """One run of a command: its options, the memory and the console."""

    db: Annotated[
        str, typer.Option(envvar="DELLM_DB", help="Path of a SQLite file, or postgresql://...")
    ] = "memory.db"
    workspace: Annotated[
        str, typer.Option("--workspace", "-w", envvar="DELLM_WORKSPACE", help="Workspace (tenant).")
    ] = "default"
    embedder: Annotated[
        str,
        typer.Option(
            envvar="DELLM_EMBEDDER",
            help='"local", "openai:MODEL", "none", or "auto": local where it is installed.',
        ),
    ] = "auto"
    region: Annotated[
        str,
        typer.Option(envvar="DELLM_REGION", help="Whose phone numbers need no country code."),
    ] = "US"
    journal: Annotated[
        str | None,
        typer.Option(
            envvar="DELLM_JOURNAL", help="File that says what was forgotten; see backups."
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False

    @contextmanager
    def opened(self, *, create: bool = False) -> Iterator[Memory]:
        """Open the memory for a `with`; InvalidInput where it is not there and not to be made."""
        served = self.db.startswith(("postgresql://", "postgres://"))
        if not (create or served or Path(self.db.removeprefix("sqlite:///")).is_file()):
            raise InvalidInput(
                "There is no memory at the path given.", remedy="Pass --db, or set DELLM_DB."
            )
        embedder = None if self.embedder == "none" else self.embedder
        with Memory.open(
            self.db, embedder=embedder, region=self.region, journal=self.journal
        ) as memory:
            yield memory.workspace(self.workspace)

    @property
    def console(self) -> Console:
        """The console for results."""
        return console_for()

    @property
    def progress(self) -> Console:
        """The console for what only a person at a terminal wants to see: stderr."""
        return console_for(stderr=True)

    def say(self, text: str) -> None:
        """Print lines for people, fit for any terminal."""
        typer.echo(shown(text))

    def give(self, data: object, text: str) -> None:
        """Print a result: as one JSON value where that was asked for, else as text."""
        give(data, text, as_json=self.as_json)

    def emit(self, data: object) -> None:
        """Print one JSON value on one line, in ASCII."""
        give(data, "", as_json=True)


def give(data: object, text: str, *, as_json: bool) -> None:
    """Print a result: one JSON value on one line in ASCII, or text for people."""
    typer.echo(json.dumps(data) if as_json else shown(text))


def console_for(*, stderr: bool = False) -> Console:
    """Return a console; colour and the terminal's width only on a terminal."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


Function = Callable[..., int | None]


def command(app: typer.Typer, name: str | None = None) -> Callable[[Function], Function]:
    """Register a function as a command of the app.

    A parameter whose type is a dataclass (Session, Selecting) stands for one option per field.
    What the function returns is the exit code, None for 0.
    """

    def register(function: Function) -> Function:
        hints = get_type_hints(function, include_extras=True)
        own = inspect.signature(function).parameters.values()
        groups = {one.name: hints[one.name] for one in own if is_dataclass(hints[one.name])}
        flat = [part for one in own for part in _options(one, hints[one.name])]

        def run(**given: Any) -> None:
            for key, group in groups.items():
                names = [field.name for field in fields(group)]
                given[key] = group(**{name: given.pop(name) for name in names})
            raise typer.Exit(_outcome(function, given))

        setattr(run, "__signature__", inspect.Signature(flat))  # noqa: B010 - functions have no such attribute in the stubs
        run.__annotations__ = {one.name: one.annotation for one in flat}
        app.command(name or function.__name__, help=inspect.getdoc(function))(run)
        return function

    return register


def _options(parameter: inspect.Parameter, hint: Any) -> list[inspect.Parameter]:
    """Return a parameter, or one for each field of its dataclass, all by keyword."""
    kind = inspect.Parameter.KEYWORD_ONLY
    if not is_dataclass(hint):
        return [parameter.replace(kind=kind, annotation=hint)]
    types = get_type_hints(hint, include_extras=True)
    return [
        inspect.Parameter(one.name, kind, default=one.default, annotation=types[one.name])
        for one in fields(hint)
    ]


def _outcome(function: Function, given: dict[str, Any]) -> int:
    """Run a command and return its exit code; an error becomes a line on stderr, never a traceback."""
    try:
        return function(**given) or DONE
    except DellmError as error:
        typer.echo(f"dellm: {shown(str(error))}", err=True)
        return code_of(error)
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except OSError as error:
        typer.echo(f"dellm: {error.strerror or type(error).__name__}.", err=True)
        return USAGE
    except Exception as error:  # noqa: BLE001 - a fault of ours; its message may quote what is stored
        typer.echo(f"dellm: internal error: {_where(error)}", err=True)
        return FAILED


def code_of(error: DellmError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, InvalidInput | SelectorError):
        return USAGE
    return NOTHING if isinstance(error, NothingMatched | NotFound) else FAILED


def _where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"
