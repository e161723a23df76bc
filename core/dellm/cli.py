"""The command line: `dellm`. Each command is in dellm.commands; here they become one program.

Exit codes: 0 done; 1 nothing matched, declined, not clean or not verified; 2 wrong usage; 3 an error
of the database, a model or the library.
"""

from __future__ import annotations

from typing import Annotated

import typer

from dellm.commands import (
    adopt,
    auditing,
    entering,
    forgetting,
    holding,
    remembered,
    remembering,
    restoring,
    sweeping,
    talking,
    vouching,
    weighing,
)

app = typer.Typer(
    help="Agent memory that records what every reply was made from, and can therefore forget.",
    epilog="Exit codes: 0 done; 1 nothing matched, declined, not clean, not verified; 2 usage; 3 error.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they would show what is stored
    add_completion=False,
)
for group in (
    talking,
    remembering,
    remembered,
    forgetting,
    vouching,
    auditing,
    restoring,
    sweeping,
    holding,
    entering,
    adopt,
    weighing,
):
    group.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("dellm"))
        raise typer.Exit


@app.callback()
def _program(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Agent memory that records what every reply was made from, and can therefore forget."""


def main() -> None:
    """Run the command line on the process's arguments; ends the process with the exit code."""
    app()


if __name__ == "__main__":
    main()
