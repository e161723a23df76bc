"""What derived memory costs when something is forgotten: `python -m benchmarks.derived`.

Summaries: model calls and time of a forget against the length of the thread, for the rolling summary
and the tree. Facts: what held on a day, against a bare indexed query of as many rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from . import derived_facts, derived_summaries
from .core.stores import Store, machine, stores
from .core.table import Found, say
from .core.timing import Row

PARTS = ("summaries", "facts")


def measured(
    store: Store,
    most: int,
    facts: int,
    tell: Callable[[str], None],
    only: Sequence[str] = PARTS,
) -> Iterator[Row]:
    """Yield the rows of every part that is asked for, of at most so many messages, and so many facts."""
    if "summaries" in only:
        sizes = [one for one in derived_summaries.SIZES if one <= most] or [most]
        yield from derived_summaries.measured(store, tell, sizes)
    if "facts" in only:
        yield from derived_facts.measured(store, facts, tell)


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _asked(arguments)
    only = asked.only or PARTS
    with stores(asked.database) as opened:
        found = Found([machine(), *(store.version() for store in opened)], asked.json)
        for store in opened:
            for row in measured(store, asked.most, asked.facts, say, only):
                found.add(row)
    found.show()


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.derived", description=summary)
    parser.add_argument("--most", type=int, default=10_000, help="default: 10000 messages")
    parser.add_argument("--facts", type=int, default=derived_facts.ROWS, help="default: 1000000")
    parser.add_argument("--only", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
