"""The rows of a run: told and kept as they come, and printed as a table at the end."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .timing import Row


def say(line: str) -> None:
    """Tell how far a run is."""
    print(line, file=sys.stderr, flush=True)


class Found:
    """The rows of a run; `head` says what it is measured on, `file` is where they are kept, too."""

    def __init__(self, head: Sequence[str], file: Path | None = None) -> None:
        self._head, self._file = list(head), file
        self._rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Take a row, tell it, and keep what is known so far: a run may be stopped."""
        self._rows.append(row)
        if self._file is not None:
            written = {"head": self._head, "rows": [one.to_json() for one in self._rows]}
            self._file.write_text(json.dumps(written, indent=1) + "\n")
        say(f"{row.name} ({row.database}): {row.value:g} {row.unit} {row.verdict}")

    def show(self) -> None:
        """Print the table."""
        show(self._rows, self._head)


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
