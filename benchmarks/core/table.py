"""Printing the rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from .timing import Row


def show(rows: Sequence[Row], head: Sequence[str]) -> None:
    """Print the table, with what it was measured on above it."""
    console = Console(width=None if Console().is_terminal else 170)
    table = Table(title="; ".join([*head, str(dt.datetime.now(dt.UTC).date())]))
    for name in ("row", "database", "DeLLM", "peer", "named peer", "value", "bound", "", "note"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(
            row.name,
            row.database,
            row.ours,
            row.theirs,
            row.peer,
            f"{row.value:g} {row.unit}",
            row.limit,
            row.verdict,
            row.note,
        )
    console.print(table)
