"""What governance costs: `python -m benchmarks.governance`.

Turns: a turn of an agent (a question is remembered, a context chosen, a reply recorded with it) with a
policy of rules and with none, in two databases that take turns. Stock: a sweep of what has expired
among many records, and questions about somebody.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from . import governance_stock, governance_turns
from .core.stores import Store, machine, stores
from .core.table import Found, say
from .core.timing import Row

PARTS = ("turns", "stock")


def measured(
    store: Store,
    rounds: int,
    tell: Callable[[str], None],
    only: Sequence[str] = PARTS,
    records: int = governance_stock.RECORDS,
) -> Iterator[Row]:
    """Yield the rows of every part that is asked for."""
    if "turns" in only:
        yield from governance_turns.measured(store, tell, rounds)
    if "stock" in only:
        yield from governance_stock.measured(store, tell, records)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure on the databases that are asked for, and print the table."""
    asked = _asked(arguments)
    with stores(asked.database) as opened:
        found = Found([machine(), *(store.version() for store in opened)], asked.json)
        for store in opened:
            for row in measured(store, asked.rounds, say, asked.only or PARTS, asked.records):
                found.add(row)
    found.show()


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.governance", description=summary)
    parser.add_argument("--rounds", type=int, default=governance_turns.ROUNDS)
    parser.add_argument("--records", type=int, default=governance_stock.RECORDS)
    parser.add_argument("--only", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
