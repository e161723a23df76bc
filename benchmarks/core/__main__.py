"""Run the comparison: python -m benchmarks.core [--small] [--database D] [--only NAME]."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from . import big_rows, chat_rows, context_rows, disk_rows, write_rows
from .scale import FULL, SMOKE, Scale
from .stores import Store, machine, stores
from .table import Found, say
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
    with stores(asked.database) as opened:
        head = [machine(), *(store.version() for store in opened)]
        if asked.small:
            head.append("SMOKE RUN: sizes too small to judge by")
        found = Found(head, asked.json)
        for name in asked.only or GROUPS:
            for store in opened:
                start = time.perf_counter()
                for row in GROUPS[name](store, scale):
                    found.add(row)
                say(f"-- {name} on {store.name} took {time.perf_counter() - start:.0f} s")
    found.show()


if __name__ == "__main__":
    main()
