"""What DeLLMSaver costs next to LangGraph's own savers: `python -m benchmarks.checkpoints`.

Side by side in one run: SqliteSaver, PostgresSaver, both with a DeltaChannel, and DeLLMSaver on both
databases; a graph START -> bot with a mock model, messages of 200 characters. The bounds speak of
1,000 turns; with fewer (--turns) only those that do not depend on the length are judged.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from . import checkpoint_rows as rows
from . import checkpoint_threads as threads
from .checkpoint_measures import conversation, replayed
from .checkpoint_savers import KINDS, OURS
from .core.stores import Store, machine, stores
from .core.table import Found, say
from .core.timing import Row, clock

GROUPS = ("chat", "replay", "threads")
ROUNDS = 5  # of the threads


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _asked(arguments)
    with stores(asked.database) as opened:
        head = [machine(), *(_version(store) for store in opened)]
        head += [f"a write with fsync takes {_fsync()}", f"{asked.turns:,} turns"]
        found = Found(head, asked.json)
        for store in opened:
            for group in asked.only or GROUPS:
                for row in _measured(group, store, asked):
                    found.add(row)
    found.show()


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoints", description=summary)
    parser.add_argument("--turns", type=int, default=rows.FULL, help="default: 1000")
    parser.add_argument("--only", action="append", choices=GROUPS, help="may be repeated")
    parser.add_argument("--saver", action="append", choices=KINDS, help="only these; repeatable")
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    return parser.parse_args(arguments)


def _measured(group: str, store: Store, asked: argparse.Namespace) -> Iterator[Row]:
    kinds = asked.saver or KINDS
    if group == "threads":
        if store.name == "postgres":
            rates = threads.rates(store, kinds, max(2, min(10, asked.turns // 20)), ROUNDS, say)
            for name, seen in rates.items():
                say(f"{name}: {', '.join(f'{rate:.0f}' for rate in seen)} turns/s")
            yield from rows.threads(store.name, rates)
    elif group == "chat":
        figures = conversation(store, kinds, asked.turns, say)
        say("\n".join(rows.told(store.name, figures)))
        if OURS in figures:
            yield from rows.conversation(store.name, figures)
    else:
        talks = replayed(store, kinds, asked.turns, say)
        say("\n".join(rows.told_of_writing(store.name, talks)))
        if OURS in talks:
            yield from rows.replayed(store.name, talks)


def _version(store: Store) -> str:
    if store.name == "postgres":
        return store.version()
    return f"{store.version()} (SqliteSaver: {sqlite3.sqlite_version})"


def _fsync() -> str:
    """Return what a commit to this disk takes at least: SqliteSaver and PostgreSQL wait for it."""
    seconds = []
    with tempfile.TemporaryFile() as file:
        for _ in range(21):
            file.write(b"x" * 4_096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - start)
    return clock(median(seconds))


if __name__ == "__main__":
    main()
