"""What chat histories cost next to LangChain's own: `python -m benchmarks.histories`.

Side by side in one run: SQLChatMessageHistory on SQLite, PostgresChatMessageHistory, and
DeLLMChatMessageHistory on both; messages of 200 characters, added in pairs. Then DeLLMStore next to
LangGraph's stores, with 1,000 items ("store") and with 10,000 and vectors ("items"), and what
DeLLMMiddleware adds to an agent's turn. The bounds on reading the last messages and on the
middleware speak of 10,000.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from . import history_rows as rows
from . import history_stores, store_items
from .core.stores import Store, machine, stores
from .core.table import Found, say
from .core.timing import Row

Measure = Callable[[Store, Sequence[int], Callable[[str], None]], Iterator[Row]]
GROUPS: dict[str, Measure] = {
    "history": rows.history,
    "store": history_stores.items,
    "items": store_items.measured,
    "middleware": history_stores.middleware,
}


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _asked(arguments)
    sizes = [one for one in rows.SIZES if one <= asked.most] or [asked.most]
    with stores(asked.database) as opened:
        head = [machine(), *(store.version() for store in opened)]
        found = Found(head, asked.json)
        for store in opened:
            for group in asked.only or GROUPS:
                for row in GROUPS[group](store, sizes, say):
                    found.add(row)
    found.show()


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.histories", description=summary)
    parser.add_argument("--most", type=int, default=rows.SIZES[-1], help="default: 10000 messages")
    parser.add_argument("--only", action="append", choices=[*GROUPS], help="may be repeated")
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
