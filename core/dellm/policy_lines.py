"""The line of a TOML text on which something stands; the parser of the standard library tells none.

A text cut off after a line is a TOML document as well, unless the cut is inside a value. So the line
of a key is where the first such document begins to hold it, whatever way of writing it was used.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

Path = tuple[str | int, ...]


def line_of(text: str, path: Path) -> int:
    """Return the line, from 1, on which the value at a path begins; of the nearest one around it.

    A path names keys, and the positions in lists of tables.
    """
    lines = text.split("\n")
    whole = tomllib.loads(text)
    while path and not _holds(whole, path):
        path = path[:-1]
    if not path:
        return 1
    counts = range(len(lines) + 1)
    found = bisect_left(counts, True, key=lambda count: _holds(_before(lines, count)[1], path))
    return _before(lines, found - 1)[0] + 1


def _before(lines: list[str], count: int) -> tuple[int, dict[str, Any]]:
    """Return the longest document of at most so many lines, and what it says."""
    for cut in range(count, 0, -1):
        try:
            return cut, tomllib.loads("\n".join(lines[:cut]) + "\n")
        except tomllib.TOMLDecodeError:
            continue
    return 0, {}


def _holds(table: Any, path: Path) -> bool:
    for step in path:
        if isinstance(step, int):
            if not isinstance(table, list) or step >= len(table):
                return False
        elif not isinstance(table, Mapping) or step not in table:
            return False
        table = table[step]
    return True
