"""Commands about proofs: prove, verify-receipt, keygen."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dellm.commands.session import DONE, NOTHING, Session, command, give
from dellm.commands.weighing import Output
from dellm.errors import InvalidInput
from dellm.proof import check_proof
from dellm.signing import write_key


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    command(app)(prove)
    command(app, "verify-receipt")(verify_receipt)
    command(app)(keygen)


def prove(
    session: Session,
    number: Annotated[int, typer.Argument(help="The receipt's number.")],
    key: Annotated[Path | None, typer.Option(help="Sign with this Ed25519 key (PEM).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the proof to this file.")] = None,
    days: Annotated[int, typer.Option(help="For how long it says so.")] = 365,
) -> int:
    """Write a receipt that others can check without the database. Exit code 1: a store is not clean."""
    with session.opened() as memory:
        made = memory.proof(number, valid_days=days)
    if key is not None:
        made = made.signed(_read(key))
    if out is not None:
        out.write_bytes(made.to_bytes() + b"\n")
    session.give(json.loads(made.to_bytes()), str(made))
    return DONE if all(one.clean for one in made.stores if one.after is not None) else NOTHING


def verify_receipt(
    output: Output,
    file: Annotated[Path, typer.Argument(help="A proof that `prove` wrote.")],
    key: Annotated[Path | None, typer.Option(help="The public key it must be signed by.")] = None,
) -> int:
    """Check a proof without the database. Exit code 1: something in it is wrong or out of date."""
    found = check_proof(_read(file), public_key=None if key is None else _read(key))
    give(asdict(found), str(found), as_json=output.as_json)
    return DONE if found.valid else NOTHING


def keygen(
    output: Output, path: Annotated[Path, typer.Argument(help="Where the private key goes.")]
) -> int:
    """Make an Ed25519 key to sign proofs with; the public part goes beside it, as PATH.pub."""
    public = write_key(path)
    give({"private": str(path), "public": str(public)}, f"{path}\n{public}", as_json=output.as_json)
    return DONE


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"The file {path} can't be read ({type(error).__name__}).") from None
