"""How records look: JSON without loss, and text that no terminal can be fooled by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from dellm.records import Record

LINE = 200  # characters of a record that a table shows


def shown(text: str) -> str:
    """Return text with control characters and lone surrogates escaped; line breaks stay."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text
    )


def one_line(text: str, most: int = LINE) -> str:
    """Return the beginning of a text on one line, escaped."""
    flat = " ".join(text.split())
    return shown(flat if len(flat) <= most else flat[: most - 1] + "…")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table; the last column takes what room is left, all cells are escaped."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE, pad_edge=False)
    for place, column in enumerate(columns, start=1):
        made.add_column(column, overflow="fold" if place == len(columns) else "ellipsis")
    for row in rows:
        made.add_row(*(Text(shown(str(cell))) for cell in row))
    return made


def records_table(records: Iterable[Record]) -> Table:
    """Return records as a table: id, when, thread, role, text."""
    return table(
        ("id", "when", "thread", "role", "text"),
        (
            (
                record.id,
                f"{record.created_at:%Y-%m-%d %H:%M}",
                record.thread or "",
                record.role,
                one_line(record.text),
            )
            for record in records
        ),
    )
