"""What was measured, as rows of the table: DeLLMSaver next to each stock saver, and the bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from .checkpoint_chat import Calls
from .checkpoint_measures import EARLY, LAST, Figures, Talk
from .checkpoint_savers import DELTA, OURS, STOCK, contender
from .checkpoint_threads import OURS_ASYNC, OURS_SYNC, STOCK_ONE, STOCK_POOL
from .core.timing import Row, clock

FULL = 1_000  # most bounds speak of so many turns
SMALLER = {"sqlite": 250, "postgres": 130}
FASTER = {"sqlite": 15, "postgres": 8}
MEGABYTES = 4.0


def size(count: float) -> str:
    """Return bytes in words."""
    return f"{count / 1e6:,.2f} MB"


@dataclass(frozen=True, slots=True)
class Versus:
    """Makes the rows that compare DeLLMSaver with one stock saver in one database."""

    database: str
    kind: str

    def at_most(
        self, name: str, ours: float, theirs: float, bound: float | None = None, note: str = ""
    ) -> Row:
        """Compare seconds: ours over theirs, for bounds like "at most 1.2 times"."""
        peer = contender(self.kind, self.database).name
        value = round(ours / theirs, 2)
        return Row(
            name, self.database, peer, clock(ours), clock(theirs), value, bound=bound, note=note
        )

    def better(
        self,
        name: str,
        ours: float,
        theirs: float,
        bound: float | None = None,
        note: str = "",
        *,
        say: Callable[[float], str] = clock,
    ) -> Row:
        """Compare seconds or bytes: theirs over ours, for bounds like "at most 1/15"."""
        peer = contender(self.kind, self.database).name
        unit = "times smaller" if say is size else "times faster"
        value = round(theirs / ours, 2)
        return Row(
            name, self.database, peer, say(ours), say(theirs), value, unit, bound, True, note
        )


def conversation(database: str, figures: Mapping[str, Figures]) -> Iterator[Row]:
    """Yield the rows about bytes, whole turns and reads."""
    ours = figures[OURS]
    for turns, count in ours.size.items():
        yield _megabytes(database, turns, count)
    for kind in (STOCK, DELTA):
        if kind in figures:
            versus = Versus(database, kind)
            yield from _sizes(versus, ours, figures[kind])
            yield from _turns(versus, ours, figures[kind])
            yield from _reads(versus, ours, figures[kind])


def _megabytes(database: str, turns: int, count: int, note: str = "") -> Row:
    return Row(
        name=f"bytes after {turns:,} turns",
        database=database,
        peer="-",
        ours=size(count),
        theirs="-",
        value=round(count / 1e6, 2),
        unit="MB",
        bound=MEGABYTES if turns == FULL else None,
        note=note or "keyword index included",
    )


def _sizes(versus: Versus, ours: Figures, theirs: Figures) -> Iterator[Row]:
    full = 3 if versus.kind == DELTA else SMALLER[versus.database]
    for turns, count in ours.size.items():
        bound = full if turns == FULL else None
        name = f"bytes after {turns:,} turns"
        yield versus.better(name, count, theirs.size[turns], bound, say=size)


def _turns(versus: Versus, ours: Figures, theirs: Figures) -> Iterator[Row]:
    for turn, seconds in ours.turn.items():
        bound: float | None = 1.0 if turn >= 100 else 1.2
        if versus.kind == DELTA and turn != FULL:
            bound = None
        name = f"a whole turn, at turn {turn:,}"
        yield versus.at_most(name, median(seconds), median(theirs.turn[turn]), bound)


def _reads(versus: Versus, ours: Figures, theirs: Figures) -> Iterator[Row]:
    delta = versus.kind == DELTA
    note = "with the writes its value is made of, not their replay" if delta else ""
    for name, bound, mine, peer in (
        ("get_tuple, warm", 6.0, ours.warm, theirs.warm),
        ("get_tuple, new saver and connection", 2.0, ours.cold, theirs.cold),
        ("opening and get_tuple", None, ours.opened, theirs.opened),
    ):
        for turns, seconds in mine.items():
            judged = None if delta or turns != FULL else bound
            full = f"{name}, {2 * turns:,} messages"
            yield versus.better(full, median(seconds), median(peer[turns]), judged, note)


def replayed(database: str, talks: Mapping[str, Talk]) -> Iterator[Row]:
    """Yield the rows about put and put_writes, the calls replayed in one thread."""
    ours = talks[OURS].calls
    for kind in (STOCK, DELTA):
        if kind in talks:
            yield from _writing(Versus(database, kind), ours, talks[kind].calls)
    if len(ours) >= EARLY.stop + LAST:
        yield _growth(database, ours)
    for turns, count in talks[OURS].figures.size.items():
        yield _megabytes(database, turns, count, "of messages that have ids when first written")


def _writing(versus: Versus, ours: Sequence[Calls], theirs: Sequence[Calls]) -> Iterator[Row]:
    mine, peer = middle(ours), middle(theirs)
    judged = len(ours) >= FULL
    span = f"last {min(LAST, len(ours))} of {len(ours):,}"
    name = f"put + put_writes of a turn, {span}"
    note = f"{ours[-1].puts} put and {ours[-1].writes} put_writes"
    if versus.kind == STOCK:
        bound = FASTER[versus.database] if judged else None
        yield versus.better(name, mine, peer, bound, note)
    else:
        yield versus.at_most(name, mine, peer, 2.0 if judged else None, note)
    yield versus.at_most(f"one put, {span}", _one_put(ours), _one_put(theirs))
    yield versus.at_most(f"one put_writes, {span}", _one_write(ours), _one_write(theirs))


def _one_put(calls: Sequence[Calls]) -> float:
    return median([call.put / call.puts for call in calls[-LAST:]])


def _one_write(calls: Sequence[Calls]) -> float:
    return median([call.put_writes / call.writes for call in calls[-LAST:]])


def _growth(database: str, ours: Sequence[Calls]) -> Row:
    early, late = middle(ours, early=True), middle(ours)
    return Row(
        name="put + put_writes of a turn, growth",
        database=database,
        peer="itself, turns 20 to 80",
        ours=clock(late),
        theirs=clock(early),
        value=round(late / early, 2),
        bound=1.5,
        note=f"last {LAST} of {len(ours):,}",
    )


def middle(calls: Sequence[Calls], *, early: bool = False) -> float:
    """Return the median of a turn's seconds, in turns 20 to 80 or in the last 60."""
    chosen = calls[EARLY.start - 1 : EARLY.stop - 1] if early else calls[-LAST:]
    return median([call.seconds for call in chosen or calls])


def threads(database: str, rates: Mapping[str, Sequence[float]]) -> Iterator[Row]:
    """Yield the rows about sixteen conversations at once."""
    for mine in (OURS_ASYNC, OURS_SYNC):
        for peer in (STOCK_POOL, STOCK_ONE):
            if mine in rates and peer in rates:
                ours, theirs = median(rates[mine]), median(rates[peer])
                yield Row(
                    name=f"16 conversations at once, {mine}",
                    database=database,
                    peer=peer,
                    ours=f"{ours:,.0f} turns/s",
                    theirs=f"{theirs:,.0f} turns/s",
                    value=round(ours / theirs, 2),
                    bound=1.0,
                    at_least=True,
                )


def told(database: str, figures: Mapping[str, Figures]) -> Iterator[str]:
    """Yield a line for each figure of each saver, without comparing."""
    for kind, one in figures.items():
        name = contender(kind, database).name
        yield from (f"{name}: {size(count)} after {n:,} turns" for n, count in one.size.items())
        for what, times in (
            ("a turn, at", one.turn),
            ("get_tuple warm, at", one.warm),
            ("get_tuple new, at", one.cold),
            ("opening and get_tuple, at", one.opened),
        ):
            yield from (f"{name}: {what} {n:,}: {clock(median(t))}" for n, t in times.items())


def told_of_writing(database: str, talks: Mapping[str, Talk]) -> Iterator[str]:
    """Yield a line for each saver: what its calls took, without comparing."""
    for kind, talk in talks.items():
        early, late = clock(middle(talk.calls, early=True)), clock(middle(talk.calls))
        name = contender(kind, database).name
        put, writes = _one_put(talk.calls), _one_write(talk.calls)
        yield f"{name}: put + put_writes of a turn: early {early}, late {late}"
        yield f"{name}: late, one put {clock(put)}, one put_writes {clock(writes)}"
