"""What DeLLMStore costs next to LangGraph's own store on the same database, item by item."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from langgraph.store.base import BaseStore, IndexConfig, PutOp

from .core.stores import Store
from .core.timing import Row, turns

DIMENSIONS = 384
NAMESPACES = 10
ROUNDS = 15
WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
]


def embedded(texts: Sequence[str]) -> list[list[float]]:
    """Return a vector for each text, the same one each time; nothing is near to anything."""
    seeds = (hashlib.blake2b(one.encode(), digest_size=8).digest() for one in texts)
    made = (np.random.default_rng(int.from_bytes(one, "big")) for one in seeds)
    return [one.standard_normal(DIMENSIONS).tolist() for one in made]


INDEX: IndexConfig = {"dims": DIMENSIONS, "embed": embedded, "fields": ["text"]}


def measured(store: Store, sizes: Sequence[int], say: Callable[[str], None]) -> Iterator[Row]:
    """Fill ours and the stock store with as many items as the last size, and time both in turn."""
    items = sizes[-1]
    say(f"{store.name}: {items:,} items with vectors")
    from dellm_langchain.store import DeLLMStore

    index = INDEX if store.name == "postgres" or _loads_extensions() else None
    mine = DeLLMStore.from_conn_string(store.fresh(), embedder=None, index=index)
    with mine as ours, stock(store, index) as theirs:
        peer = type(theirs).__name__
        for one in (ours, theirs):
            _fill(one, items)
        for name, act in _acts(items, near=index is not None):
            pair = turns(_numbered(act, ours), _numbered(act, theirs), ROUNDS)
            yield pair.row(f"{name}, {items:,} items", store.name, peer, 1.0)


@contextmanager
def stock(store: Store, index: IndexConfig | None = None) -> Iterator[BaseStore]:
    """Open LangGraph's own store on a fresh database of the kind."""
    from langgraph.store.postgres import PostgresStore
    from langgraph.store.sqlite import SqliteStore

    kind: Any = PostgresStore if store.name == "postgres" else SqliteStore
    with kind.from_conn_string(store.fresh(), index=index) as found:
        found.setup()
        yield found


def _loads_extensions() -> bool:
    """Whether the stock store can search by vectors on SQLite: not every Python lets it."""
    return hasattr(sqlite3.Connection, "enable_load_extension")


def _value(number: int) -> dict[str, Any]:
    chosen = random.Random(number).choices(WORDS, k=30)
    return {"text": " ".join(chosen), "n": number, "kind": "abc"[number % 3]}


def _space(number: int) -> tuple[str, ...]:
    return ("users", str(number % NAMESPACES), "memories")


def _fill(store: Any, items: int) -> None:
    for start in range(0, items, 500):
        numbers = range(start, min(items, start + 500))
        store.batch([PutOp(_space(one), str(one), _value(one)) for one in numbers])


Act = Callable[[Any, int], object]


def _acts(items: int, *, near: bool) -> Iterator[tuple[str, Act]]:
    def at(number: int) -> int:
        return number * 37 % items

    user = ("users", "7")
    yield "put", lambda store, n: store.put(_space(n), f"new {n}", _value(items + n))
    yield "put again", lambda store, n: store.put(_space(n), str(n), _value(n + 1))
    yield "get", lambda store, n: store.get(_space(at(n)), str(at(n)))
    yield "newest of a user", lambda store, _: store.search(user)
    yield "newest of all", lambda store, _: store.search(())
    yield "filter of a user", lambda store, _: store.search(user, filter={"kind": "b"})
    yield "filter of all", lambda store, _: store.search((), filter={"kind": "b"})
    yield "filter for one", lambda store, n: store.search((), filter={"n": at(n)})
    yield "namespaces", lambda store, _: store.list_namespaces(prefix=("users",))
    if near:
        yield "nearest of a user", lambda store, n: store.search(user, query=_value(-n)["text"])
        yield "nearest of all", lambda store, n: store.search((), query=_value(-n)["text"])


def _numbered(act: Act, store: Any) -> Callable[[], object]:
    """Return an act as a call without arguments, with another number each time."""
    numbers = iter(range(1, 1_000_000))
    return lambda: act(store, next(numbers))
