"""Run the comparison: python -m benchmarks.core [--small] [--database D] [--only NAME]."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from . import big_rows, chat_rows, context_rows, disk_rows, write_rows
from .scale import FULL, SMOKE, Scale
from .stores import Store, machine, stores
from .table import show
from .timing import Row

GROUPS: dict[str, Callable[[Store, Scale], Iterator[Row]]] = {
    "write": write_rows.rows,
    "context": context_rows.rows,
    "disk": disk_rows.rows,
    "chat": chat_rows.rows,
    "big": big_rows.rows,
}


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a smoke run: sizes / 50")
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--only", action="append", choices=list(GROUPS), help="may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    return parser.parse_args()


def main() -> None:
    asked = _asked()
    scale = SMOKE if asked.small else FULL
    found: list[Row] = []
    with stores(asked.database) as opened:
        head = [machine(), *(store.version() for store in opened)]
        if asked.small:
            head.append("SMOKE RUN: sizes too small to judge by")
        for name in asked.only or GROUPS:
            for store in opened:
                start = time.perf_counter()
                for row in GROUPS[name](store, scale):
                    found.append(row)
                    if asked.json:
                        _keep(asked.json, head, found)
                    _say(f"{row.name} ({row.database}): {row.value:g} {row.unit} {row.verdict}")
                _say(f"-- {name} on {store.name} took {time.perf_counter() - start:.0f} s")
    show(found, head)


def _keep(file: Path, head: list[str], rows: list[Row]) -> None:
    """Write what is known so far, so that a run that is stopped was not for nothing."""
    written = {"head": head, "rows": [row.to_json() for row in rows]}
    file.write_text(json.dumps(written, indent=1) + "\n")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
