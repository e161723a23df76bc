"""Commands about the local models' weights: models list, models install."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dellm import weights
from dellm.commands.session import DONE, command, console_for, give
from dellm.commands.showing import table


@dataclass(frozen=True, slots=True)
class Output:
    """How a command without a memory prints."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False


def register(app: typer.Typer) -> None:
    """Add the commands to the app, as `models ...`."""
    group = typer.Typer(no_args_is_help=True, help="The weights of the local models.")
    command(group, "list")(list_models)
    command(group)(install)
    app.add_typer(group, name="models")


def list_models(output: Output) -> int:
    """List the models whose weights can be installed, and where they are."""
    found = weights.status()
    if output.as_json:
        data = [
            {
                "name": one.name,
                "title": one.title,
                "licence": one.licence,
                "package": one.package,
                "bytes": one.size,
                "folder": None if one.folder is None else str(one.folder),
            }
            for one in found
        ]
        give(data, "", as_json=True)
        return DONE
    rows = (
        (
            one.name,
            one.title,
            one.licence,
            f"{one.size / 1e6:.0f} MB",
            one.folder or "not installed",
        )
        for one in found
    )
    console_for().print(table(("name", "model", "licence", "size", "folder"), rows))
    return DONE


def install(
    output: Output,
    names: Annotated[list[str] | None, typer.Argument(help="Which; all if left out.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Take the files from here; download nothing.")
    ] = None,
) -> int:
    """Download the weights of the local models, or copy them; each is checked by its sha256."""
    wanted = names or [one.name for one in weights.status()]
    with console_for(stderr=True).status("looking") as status:
        done = weights.install(wanted, folder=folder, progress=status.update)
    lines = [
        f"{one.name}: {'installed' if one.fetched else 'was there'}, {one.folder}" for one in done
    ]
    data = [{"name": one.name, "folder": str(one.folder), "fetched": one.fetched} for one in done]
    give(data, "\n".join(lines), as_json=output.as_json)
    return DONE
