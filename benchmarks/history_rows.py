"""What is measured of a chat history, a store and a middleware: each next to its stock peer."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from dellm import Memory
from dellm_langchain.history import DeLLMChatMessageHistory

from .core.stores import Store
from .core.timing import Pair, Row, clock, timed, turns

SIZES = (10, 1_000, 10_000)
LAST = 20
ROUNDS = 7
TIMES = 5  # calls in a row of a round
WHOLE = 3  # rounds of what reads a whole thread
LASTS_FASTER = 20.0
SHARE = 10_000  # messages in a thread for which the bound of the last ones holds
PART = 500  # messages that a thread is filled with at a time


def message(at: int) -> BaseMessage:
    """Return the message at a place: two hundred characters, and no two alike."""
    text = f"message {at} {uuid.uuid4()} ".ljust(200, "x")
    return AIMessage(text) if at % 2 else HumanMessage(text)


@dataclass(slots=True)
class Talk:
    """One thread that both sides keep, with as many messages."""

    ours: Any
    theirs: Any
    length: int = 0

    def grow(self, to: int) -> None:
        """Add messages on both sides up to a length."""
        while self.length < to:
            some = [message(at) for at in range(self.length, min(to, self.length + PART))]
            for one in (self.ours, self.theirs):
                one.add_messages([each.model_copy(deep=True) for each in some])
            self.length += len(some)


@contextmanager
def talk(store: Store) -> Iterator[Talk]:
    """Open one thread of ours and one of the stock class, on the same kind of database."""
    session = str(uuid.uuid4())
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        url = store.fresh()
        memory = stack.enter_context(Memory.open(url, embedder=None))
        stack.callback(store.drop, url)
        theirs = _stock_sqlite if store.name == "sqlite" else _stock_postgres
        ours = DeLLMChatMessageHistory(memory, session)
        yield Talk(ours, theirs(store.fresh(), session, stack))


def _stock_sqlite(url: str, session: str, stack: ExitStack) -> Any:
    from langchain_community.chat_message_histories.sql import SQLChatMessageHistory

    found = SQLChatMessageHistory(session, connection=f"sqlite:///{url}")
    stack.callback(found.engine.dispose)
    return found


def _stock_postgres(url: str, session: str, stack: ExitStack) -> Any:
    import psycopg
    from langchain_postgres import PostgresChatMessageHistory

    connection = stack.enter_context(psycopg.connect(url))
    PostgresChatMessageHistory.create_tables(connection, "message_store")
    return PostgresChatMessageHistory("message_store", session, sync_connection=connection)


PEERS = {"sqlite": "SQLChatMessageHistory", "postgres": "PostgresChatMessageHistory"}


def history(store: Store, sizes: Sequence[int], say: Callable[[str], None]) -> Iterator[Row]:
    """Yield the rows about adding to threads of some lengths, and reading them."""
    peer = PEERS[store.name]
    with talk(store) as one:
        for size in sizes:
            say(f"{store.name}: a thread of {size:,} messages")
            one.grow(size)
            yield added(one).row(f"add a question and an answer at {size:,}", store.name, peer, 1.0)
            alike(one)
            yield read_whole(one).row(f"read all of {size:,}", store.name, peer, None)
            yield lasts(one, store.name, size)


def added(one: Talk) -> Pair:
    """Time adding two messages, which both sides then have."""
    made = iter(range(10**9))

    def pair() -> list[BaseMessage]:
        return [message(2 * next(made)), message(2 * next(made) + 1)]

    found = turns(
        lambda: one.ours.add_messages(pair()),
        lambda: one.theirs.add_messages(pair()),
        ROUNDS,
        each=TIMES,
    )
    one.length += 2 * (ROUNDS + 1) * TIMES
    return found


def alike(one: Talk) -> None:
    """Raise unless both sides keep as many messages, of which ours reads the last alike alone."""
    whole = one.ours.messages
    assert len(whole) == len(one.theirs.messages) == one.length
    assert one.ours.last(LAST) == whole[-LAST:]


def read_whole(one: Talk) -> Pair:
    """Time reading the whole thread."""
    return turns(lambda: one.ours.messages, lambda: one.theirs.messages, WHOLE)


def lasts(one: Talk, database: str, size: int) -> Row:
    """Time reading the last messages, which the stock class can only read with all others."""
    theirs = min(timed(lambda: one.theirs.messages) for _ in range(WHOLE))
    ours = median([timed(lambda: one.ours.last(LAST), TIMES) for _ in range(ROUNDS)])
    return Row(
        name=f"read the last {LAST} of {size:,}",
        database=database,
        peer=f"{PEERS[database]}, reading all",
        ours=clock(ours),
        theirs=clock(theirs),
        value=round(theirs / ours, 1),
        unit="times faster",
        bound=LASTS_FASTER if size >= SHARE else None,
        at_least=True,
    )
