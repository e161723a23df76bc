"""What is measured of the store and of the middleware, next to LangGraph's own stores and no middleware."""

from __future__ import annotations

import itertools
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

import numpy as np
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray

from dellm import Draft, Memory
from dellm.embedding import Embedder, HashingEmbedder
from dellm_langchain.middleware import DeLLMMiddleware
from dellm_langchain.store import DeLLMStore

from .core.stores import Store
from .core.timing import Row, clock, timed, turns
from .store_items import stock

SPACES, EACH = 10, 100  # namespaces, and items in each
ROUNDS, TIMES = 5, 10  # of calls, and calls in a row of a round
TURNS = 30
BOUND_MS = 3.0
SHARE = 10_000  # records for which the bound of the middleware holds
STOCK = {"sqlite": "SqliteStore", "postgres": "PostgresStore"}
MEMORY = "InMemoryStore"


def items(store: Store, sizes: Sequence[int], say: Callable[[str], None]) -> Iterator[Row]:
    """Yield the rows about items: put, get, and search with a filter, in a store of a thousand."""
    each = max(1, min(EACH, sizes[-1] // SPACES))
    with ExitStack() as stack:
        ours = stack.enter_context(_ours(store, stack))
        for peer, theirs in (
            (STOCK[store.name], stack.enter_context(stock(store))),
            (MEMORY, InMemoryStore()),
        ):
            say(f"{store.name}: {SPACES * each} items, {peer}")
            for one in (ours, theirs):
                _fill(one, each)
            _alike(ours, theirs)
            bound = None if peer == MEMORY else 1.0
            for name, act in ACTS.items():
                pair = turns(act(ours), act(theirs), ROUNDS, each=TIMES)
                yield pair.row(f"store: {name}", store.name, peer, bound)


@contextmanager
def _ours(store: Store, stack: ExitStack) -> Iterator[DeLLMStore]:
    url = store.fresh()
    stack.callback(store.drop, url)
    with Memory.open(url, embedder=None) as memory:
        yield DeLLMStore(memory)


def _fill(store: Any, each: int) -> None:
    for space, number in itertools.product(range(SPACES), range(each)):
        store.put(("notes", str(space)), str(number), _value(number))


def _value(number: int) -> dict[str, Any]:
    return {"text": f"note {number} ".ljust(200, "x"), "kind": number % 7}


def _alike(ours: Any, theirs: Any) -> None:
    """Raise unless both hold the same."""
    assert ours.get(("notes", "1"), "0").value == theirs.get(("notes", "1"), "0").value
    found = [
        {
            (one.namespace, one.key)
            for one in each.search(("notes", "1"), filter={"kind": 3}, limit=99)
        }
        for each in (ours, theirs)
    ]
    assert found[0] == found[1]


def _putting(store: Any) -> Callable[[], object]:
    return lambda: store.put(("notes", "1"), str(uuid.uuid4()), _value(1_000))


def _getting(store: Any) -> Callable[[], object]:
    return lambda: store.get(("notes", "1"), "0")


def _searching(store: Any) -> Callable[[], object]:
    return lambda: store.search(("notes", "1"), filter={"kind": 3}, limit=10)


ACTS = {"put": _putting, "get": _getting, "search with a filter": _searching}


def middleware(store: Store, sizes: Sequence[int], say: Callable[[str], None]) -> Iterator[Row]:
    """Yield what DeLLMMiddleware adds to an agent's turn with a model that takes no time."""
    for embedder in (HashingEmbedder(), Dense()):
        say(f"{store.name}: an agent with {sizes[-1]:,} records, {embedder.name}")
        yield _middleware(store, sizes[-1], embedder)


class Dense:
    """Vectors of as many numbers as those of MiniLM, none of which is zero; they say nothing."""

    name, dimensions, threshold = "dense:384", 384, -1.0

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return a row of unit length for each text."""
        seeds = [zlib.crc32(one.encode()) for one in texts]
        made = np.stack([np.random.default_rng(one).standard_normal(384) for one in seeds])
        rows: NDArray[np.float32] = made / np.linalg.norm(made, axis=1, keepdims=True)
        return rows.astype(np.float32)


def _middleware(store: Store, size: int, embedder: Embedder) -> Row:
    url = store.fresh()
    with Memory.open(url, embedder=embedder) as memory:
        drafts = [Draft(f"fact {at} {uuid.uuid4()}", thread="t") for at in range(size)]
        memory.remember_many(drafts)
        memory.index()
        with_, without = (_turn(memory, extended=one) for one in (True, False))
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for number in range(TURNS):
            for extended in (number % 2 == 0, number % 2 != 0):
                seconds[extended].append(timed(with_ if extended else without))
    store.drop(url)
    mine, bare = (median(seconds[one][2:]) for one in (True, False))
    return Row(
        name=f"middleware: an agent's turn at {size:,} records, {embedder.name}",
        database=store.name,
        peer="no middleware",
        ours=clock(mine),
        theirs=clock(bare),
        value=round(1e3 * (mine - bare), 2),
        unit="ms more",
        bound=BOUND_MS if size >= SHARE else None,
        note="by meaning; a checkpointer in memory",
    )


def _turn(memory: Memory, *, extended: bool) -> Callable[[], object]:
    """Return a turn of an agent, each in a thread of its own so that none grows."""
    model = GenericFakeChatModel(messages=(AIMessage("so it is") for _ in itertools.count()))
    chosen: list[Any] = [DeLLMMiddleware(memory, scope="workspace")] if extended else []
    agent = create_agent(model, middleware=chosen, checkpointer=InMemorySaver())

    def turn() -> object:
        said = {"messages": [HumanMessage("what is fact 77")]}
        return agent.invoke(said, {"configurable": {"thread_id": str(uuid.uuid4())}})

    return turn
