"""Sixteen conversations at once on PostgreSQL: how many turns a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from . import checkpoint_chat as chat
from .checkpoint_savers import OURS, STOCK, Saver, contender
from .core.stores import Store
from .core.timing import collected

THREADS = 16
STOCK_POOL, STOCK_ONE = "AsyncPostgresSaver, pool of 16", "AsyncPostgresSaver, one connection"
OURS_ASYNC, OURS_SYNC = "DeLLMSaver, ainvoke", "DeLLMSaver, 16 threads"


@dataclass(frozen=True, slots=True)
class Crowd:
    """Sixteen conversations; `round` takes so many turns in each and returns when all are done."""

    name: str
    round: Callable[[int], None]


def rates(
    store: Store, kinds: Sequence[str], turns: int, rounds: int, say: Callable[[str], None]
) -> dict[str, list[float]]:
    """Return turns a second in each of the rounds of so many turns, by the name of the crowd."""
    with ExitStack() as open_:
        crowds: list[Crowd] = []
        for kind, make in ((STOCK, _pool), (STOCK, _one), (OURS, _async), (OURS, _sync)):
            if kind in kinds:
                url = store.fresh()
                open_.callback(store.drop, url)
                crowds.append(open_.enter_context(make(url, turns * (rounds + 1))))
        found: dict[str, list[float]] = {crowd.name: [] for crowd in crowds}
        for number in range(rounds + 1):
            first = number % len(crowds)
            for crowd in [*crowds[first:], *crowds[:first]]:
                rate = _rate(crowd, turns)
                if number:  # one unmeasured round goes first
                    found[crowd.name].append(rate)
            say(f"{store.name}: round {number} of {rounds}, {THREADS} threads")
    return found


def _rate(crowd: Crowd, turns: int) -> float:
    with collected():
        start = time.perf_counter()
        crowd.round(turns)
        return THREADS * turns / (time.perf_counter() - start)


def _pool(url: str, turns: int) -> Any:
    return _in_a_loop(STOCK_POOL, _pooled(url), turns)


def _one(url: str, turns: int) -> Any:
    return _in_a_loop(STOCK_ONE, _single(url), turns)


@contextmanager
def _async(url: str, turns: int) -> Iterator[Crowd]:
    with (
        contender(OURS, "postgres").open(url) as saver,
        _in_a_loop(OURS_ASYNC, _already(saver), turns) as crowd,
    ):
        yield crowd


@contextmanager
def _sync(url: str, turns: int) -> Iterator[Crowd]:
    with contender(OURS, "postgres").open(url) as saver, ThreadPoolExecutor(THREADS) as pool:
        graph, texts = chat.graph(saver, chat.texts(turns, 2)), chat.texts(turns, 1)

        def talk(thread: int, turns: int) -> None:
            for number in range(turns):
                graph.invoke(chat.said(texts[number]), chat.config(f"chat-{thread}"))

        def round_(turns: int) -> None:
            list(pool.map(talk, range(THREADS), [turns] * THREADS))

        yield Crowd(OURS_SYNC, round_)


@contextmanager
def _in_a_loop(
    name: str, opening: AbstractAsyncContextManager[Saver], turns: int
) -> Iterator[Crowd]:
    """Yield a crowd whose conversations are tasks of one event loop."""
    with asyncio.Runner() as runner:
        saver = runner.run(opening.__aenter__())
        graph, texts = chat.graph(saver, chat.texts(turns, 2)), chat.texts(turns, 1)

        async def talk(thread: int, turns: int) -> None:
            for number in range(turns):
                await graph.ainvoke(chat.said(texts[number]), chat.config(f"chat-{thread}"))

        async def everyone(turns: int) -> None:
            await asyncio.gather(*[talk(thread, turns) for thread in range(THREADS)])

        try:
            yield Crowd(name, lambda turns: runner.run(everyone(turns)))
        finally:
            runner.run(opening.__aexit__(None, None, None))


@asynccontextmanager
async def _pooled(url: str) -> AsyncIterator[Saver]:
    """Open the stock saver as its documentation does for a server."""
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: Any = AsyncConnectionPool(url, max_size=THREADS, open=False, kwargs=options)
    async with pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        yield saver


@asynccontextmanager
async def _single(url: str) -> AsyncIterator[Saver]:
    async with AsyncPostgresSaver.from_conn_string(url) as saver:
        await saver.setup()
        yield saver


@asynccontextmanager
async def _already(saver: Saver) -> AsyncIterator[Saver]:
    yield saver
