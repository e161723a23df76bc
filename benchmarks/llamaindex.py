"""What a turn costs in LlamaIndex with each memory: `python -m benchmarks.llamaindex`.

Side by side in one run, with a model that takes no time: SimpleChatEngine,
CondensePlusContextChatEngine and FunctionAgent, each with the stock Memory, with ChatMemoryBuffer,
with DeLLMMemory (relevant context, and all as ChatMemoryBuffer), and with a memory that keeps
nothing. What a memory adds is its turn less the turn with that last one. The stock classes keep
their messages in this process's own memory, DeLLMMemory in a database.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from . import llamaindex_turns as turns
from .core.stores import Store, machine, stores
from .core.table import Found, say
from .core.timing import Row, clock

SIZES = (10, 600, 5_000)
JUDGED = 600  # messages at which what we add is held against the stock Memory
HALF = 0.5  # of what the stock Memory adds
FLAT = 1.5  # what we add at the most messages, by what we add at JUDGED
STOCK, OURS = "Memory", "DeLLMMemory"


def measured(
    store: Store,
    sizes: Sequence[int],
    tell: Callable[[str], None],
    engines: Sequence[str] = tuple(turns.ENGINES),
) -> Iterator[Row]:
    """Yield the rows of every engine, at every size."""
    for engine in engines:
        added: dict[int, float] = {}
        for size in sizes:
            tell(f"{store.name}: {engine}, {size:,} messages")
            seconds = turns.seconds(store, engine, size)
            bare = seconds[turns.NOTHING]
            more = {name: max(taken - bare, 1e-9) for name, taken in seconds.items()}
            added[size] = more[OURS]
            yield from _compared(store.name, engine, size, seconds, more)
        if JUDGED in added and sizes[-1] > JUDGED:
            yield _flat(store.name, engine, added, sizes[-1])


def _compared(
    database: str, engine: str, size: int, seconds: dict[str, float], more: dict[str, float]
) -> Iterator[Row]:
    name = f"{engine}: a turn at {size:,} messages"
    bare = clock(seconds[turns.NOTHING])
    for mine in (OURS, turns.WHOLE):
        for peer in (STOCK, "ChatMemoryBuffer"):
            judged = size == JUDGED and mine == OURS and peer == STOCK
            yield Row(
                name=name,
                database=database,
                peer=peer,
                ours=f"{clock(seconds[mine])}",
                theirs=f"{clock(seconds[peer])}",
                value=round(more[mine] / more[peer], 2),
                unit="times what it adds",
                bound=HALF if judged else None,
                note=f"{mine}; without memory {bare}",
            )


def _flat(database: str, engine: str, added: dict[int, float], most: int) -> Row:
    return Row(
        name=f"{engine}: what DeLLMMemory adds at {most:,} messages",
        database=database,
        peer=f"itself at {JUDGED}",
        ours=clock(added[most]),
        theirs=clock(added[JUDGED]),
        value=round(added[most] / added[JUDGED], 2),
        bound=FLAT,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _asked(arguments)
    sizes = [one for one in SIZES if one <= asked.most] or [asked.most]
    with stores(asked.database) as opened:
        found = Found([machine(), *(store.version() for store in opened)], asked.json)
        for store in opened:
            for row in measured(store, sizes, say, asked.only or tuple(turns.ENGINES)):
                found.add(row)
    found.show()


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.llamaindex", description=summary)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="default: 5000 messages")
    parser.add_argument("--only", action="append", choices=[*turns.ENGINES], help="may be repeated")
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
