"""Conversations side by side: at every turn each saver goes once, and who goes first alternates."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import checkpoint_chat as chat
from .checkpoint_savers import Contender, Saver, contender
from .core.stores import Store
from .core.timing import collected

MARKS = (50, 200, 1_000)
AROUND = 10  # turns on each side of the one whose time is given
EARLY = range(20, 81)  # turns whose writing is compared with that of the last ones
LAST = 60
READS, OPENINGS = 20, 7


@dataclass(slots=True)
class Figures:
    """What one saver took; seconds, but bytes for `size`. Keys are numbers of turns."""

    size: dict[int, int] = field(default_factory=dict)
    turn: dict[int, list[float]] = field(default_factory=dict)
    warm: dict[int, list[float]] = field(default_factory=dict)
    cold: dict[int, list[float]] = field(default_factory=dict)
    opened: dict[int, list[float]] = field(default_factory=dict)  # opening, then the cold read


@dataclass(slots=True)
class Talk:
    """A conversation with one saver."""

    contender: Contender
    url: str
    saver: Saver
    graph: Any
    deferred: chat.Deferred | None = None
    figures: Figures = field(default_factory=Figures)
    calls: list[chat.Calls] = field(default_factory=list)

    def turn(self, text: str) -> float:
        """Say something and have it answered; return the seconds."""
        start = time.perf_counter()
        self.graph.invoke(chat.said(text), chat.config())
        return time.perf_counter() - start

    def messages(self) -> list[Any]:
        """Return the messages as they are now."""
        return list(self.graph.get_state(chat.config()).values[chat.MESSAGES])


def marks(turns: int) -> list[int]:
    """Return the turns after which sizes and reads are measured: 50, 200, 1,000 and the last."""
    return sorted({mark for mark in MARKS if mark < turns} | {turns})


def stages(turns: int) -> dict[int, range]:
    """Return the turns whose time is told (20, 100, 200 and the last), each with those around it."""
    told = [one for one in (20, 100, 200) if one + AROUND < turns - 2 * AROUND]
    found = {one: range(one - AROUND + 1, one + AROUND + 1) for one in told}
    return {**found, turns: range(max(1, turns - 2 * AROUND + 1), turns + 1)}


def conversation(
    store: Store, kinds: Sequence[str], turns: int, say: Callable[[str], None]
) -> dict[str, Figures]:
    """Talk through the graph as users run it; measure turns, sizes and reads."""
    watched = stages(turns)
    with talks(store, kinds, turns) as all_:
        for number, text in settled(chat.texts(turns, 1), watched.values()):
            now = [stage for stage, around in watched.items() if number in around]
            for talk in rotated(all_, number):
                seconds = talk.turn(text)
                for stage in now:
                    talk.figures.turn.setdefault(stage, []).append(seconds)
            if number in marks(turns):
                for talk in all_:
                    talk.figures.size[number] = talk.contender.size(talk.url)
                read(all_, number)
                say(f"{store.name}: {number} turns")
        same(all_)
        return {talk.contender.kind: talk.figures for talk in all_}


def replayed(
    store: Store, kinds: Sequence[str], turns: int, say: Callable[[str], None]
) -> dict[str, Talk]:
    """Let the graph run without writing, then make its calls in one thread; measure those."""
    last = range(max(1, turns - LAST + 1), turns + 1)
    with talks(store, kinds, turns, deferred=True) as all_:
        for number, text in settled(chat.texts(turns, 1), (EARLY, last)):
            for talk in rotated(all_, number):
                talk.turn(text)
                assert talk.deferred
                talk.calls.append(talk.deferred.replay())
            if number in marks(turns):
                say(f"{store.name}: {number} turns replayed")
        for talk in all_:
            talk.figures.size[turns] = talk.contender.size(talk.url)
        same(all_)
        return {talk.contender.kind: talk for talk in all_}


@contextmanager
def talks(
    store: Store, kinds: Sequence[str], turns: int, *, deferred: bool = False
) -> Iterator[list[Talk]]:
    """Open the savers, each with a database of its own, which is dropped afterwards."""
    replies = chat.texts(turns, 2)
    with ExitStack() as open_:
        all_ = []
        for kind in kinds:
            one, url = contender(kind, store.name), store.fresh()
            open_.callback(store.drop, url)
            saver = open_.enter_context(one.open(url))
            later = chat.Deferred(saver) if deferred else None
            graph = chat.graph(later or saver, replies, delta=one.delta)
            all_.append(Talk(one, url, saver, graph, later))
        yield all_


def settled(texts: Sequence[str], watched: Iterable[range]) -> Iterator[tuple[int, str]]:
    """Yield the turns; before those that are watched, put what is on the heap out of gc's way."""
    starts = {around.start for around in watched}
    try:
        for number, text in enumerate(texts, 1):
            if number in starts:
                gc.collect()
                gc.freeze()
            yield number, text
    finally:
        gc.unfreeze()


def rotated(talks: Sequence[Talk], number: int) -> list[Talk]:
    """Return the talks, beginning with another one each time."""
    first = number % len(talks)
    return [*talks[first:], *talks[:first]]


def read(talks: Sequence[Talk], mark: int) -> None:
    """Measure reading the newest checkpoint: again and again, and by a saver just opened."""
    with collected():
        for number in range(READS + 1):
            for talk in rotated(talks, number):
                seconds = timed_load(talk.saver, delta=talk.contender.delta)
                if number:  # one unmeasured round goes first
                    talk.figures.warm.setdefault(mark, []).append(seconds)
        for number in range(OPENINGS):
            for talk in rotated(talks, number):
                read_anew(talk, mark)


def read_anew(talk: Talk, mark: int) -> None:
    """Measure opening another saver with its own connection, and its first read."""
    start = time.perf_counter()
    with talk.contender.open(talk.url) as saver:
        seconds = timed_load(saver, delta=talk.contender.delta)
        opened = time.perf_counter() - start
    talk.figures.cold.setdefault(mark, []).append(seconds)
    talk.figures.opened.setdefault(mark, []).append(opened)


def timed_load(saver: Saver, *, delta: bool) -> float:
    """Return the seconds of a load."""
    start = time.perf_counter()
    load(saver, delta=delta)
    return time.perf_counter() - start


def load(saver: Saver, *, delta: bool) -> Any:
    """Read the newest checkpoint; of a DeltaChannel also the writes that make up its value."""
    found = saver.get_tuple(chat.config())
    if found is None:
        raise AssertionError("nothing was stored")
    if delta:
        return saver.get_delta_channel_history(config=found.config, channels=[chat.MESSAGES])
    return found.checkpoint["channel_values"][chat.MESSAGES]


def same(talks: Sequence[Talk]) -> None:
    """Raise unless all savers tell the same conversation, and each read gives objects of its own."""
    told = [[(one.type, one.text) for one in talk.messages()] for talk in talks]
    if any(one != told[0] for one in told):
        raise AssertionError("the savers do not tell the same conversation")
    for talk in talks:
        if not talk.contender.delta:
            fresh(load(talk.saver, delta=False), load(talk.saver, delta=False))


def fresh(first: Sequence[Any], second: Sequence[Any]) -> None:
    """Raise unless the two lists are equal and share no object."""
    if first != second:
        raise AssertionError("two reads of one checkpoint differ")
    if {id(one) for one in first} & {id(one) for one in second}:
        raise AssertionError("two reads share a message: changing one would change the other")
