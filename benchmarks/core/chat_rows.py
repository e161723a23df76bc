"""Rows e and g: a chat that sends its whole history with every turn."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from dellm import Memory

from .bare import Bare
from .data import Texts
from .scale import Scale
from .stores import Store
from .timing import Row, clock, timed, turns

WINDOW = 50  # turns over which a time is taken


def rows(store: Store, scale: Scale) -> Iterator[Row]:
    """Yield the rows of one database."""
    url = store.fresh()
    with Memory.open(url, embedder=None) as opened:
        memory = opened.workspace("chat")
        chat = Chat(memory, 2 * scale.turns)
        chat.go(1)
        bare = store.bare(url)
        ws = bare.ws("chat")
        early = chat.stage(scale.turns // 100, bare, ws)
        chat.go(scale.turns - chat.turns - WINDOW)
        late = chat.stage(scale.turns, bare, ws)
        yield _written(store, early, late)
        yield _time(store, early, late)
        first = memory.dependents([1])
        if len(first) != chat.turns + 1 or first != sorted(bare.dependents(ws, 1)):
            raise AssertionError("the two answers differ")
        pair = turns(
            lambda: memory.dependents([1]), lambda: bare.dependents(ws, 1), 2 * scale.rounds
        )
        name = f"e Dep of a chat of {chat.turns:,} turns"
        yield pair.row(name, store.name, "bare recursive statement", 1.5, "never analysed")
        bare.close()
    store.drop(url)


class Chat:
    """A user and an assistant; every reply has all before it as its context."""

    def __init__(self, memory: Memory, messages: int) -> None:
        self._memory = memory
        self._texts = iter(Texts().take(messages + 4 * WINDOW, 200))
        self._ids: list[int] = []
        self.turns = 0

    def turn(self) -> None:
        """Say something and have it answered."""
        said = self._memory.remember(next(self._texts), thread="chat")
        self._ids.append(said.id)
        reply = self._memory.record(next(self._texts), thread="chat", context=self._ids)
        self._ids.append(reply.id)
        self.turns += 1

    def go(self, turns: int) -> None:
        """Take so many turns."""
        for _ in range(turns):
            self.turn()

    def stage(self, at: int, bare: Bare, ws: int) -> tuple[int, float, float]:
        """Go on to turn `at` + WINDOW; return (that, rows per turn, seconds per turn) around it."""
        self.go(max(0, at - self.turns - WINDOW))
        before = sum(bare.counts(ws).values())
        start = self.turns
        times = [timed(self.turn) for _ in range(WINDOW)]
        written = (sum(bare.counts(ws).values()) - before) / (self.turns - start)
        return self.turns, written, median(times)


def _written(store: Store, early: tuple[int, float, float], late: tuple[int, float, float]) -> Row:
    return Row(
        name="g rows written per turn of a chat",
        database=store.name,
        peer=f"the same at turn {early[0]:,}",
        ours=f"{late[1]:g} rows at turn {late[0]:,}",
        theirs=f"{early[1]:g} rows",
        value=round(late[1] / early[1], 2),
        bound=1.0,
        note="two messages a turn; index rows of SQLite's FTS5 not counted",
    )


def _time(store: Store, early: tuple[int, float, float], late: tuple[int, float, float]) -> Row:
    return Row(
        name="g time per turn of a chat",
        database=store.name,
        peer=f"the same at turn {early[0]:,}",
        ours=f"{clock(late[2])} at turn {late[0]:,}",
        theirs=clock(early[2]),
        value=round(late[2] / early[2], 2),
        note="the two were not measured side by side",
    )
