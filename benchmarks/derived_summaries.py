"""What a forget costs a thread's summaries, by the length of the thread: model calls and time.

The same thread summed up in both forms, each in a memory of its own, by a summariser that takes no
time and returns the first 400 characters: what is measured is the library. A real model's time comes
on top for each call, so the calls are what counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import linear_regression, mean, median

from dellm import Draft, Memory, Receipt, Summary

from .core.stores import Store
from .core.timing import Row, clock, timed

SIZES = (100, 1_000, 10_000)
LEAF, FAN_OUT, CHUNK = 16, 8, 32
FORGETS = 5  # forgets of one message, spread over the thread
MANY = 10  # messages of one forget
APPENDED = 64
FORMS = ("rolling", "tree")


@dataclass(frozen=True, slots=True)
class Cost:
    """Model calls and seconds of each of several runs."""

    calls: list[int]
    seconds: list[float]

    def __str__(self) -> str:
        return f"{mean(self.calls):.3g} calls, {clock(median(self.seconds))}"


class Model:
    """A summariser that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, previous: str | None, texts: Sequence[str]) -> str:
        self.calls += 1
        return " ".join([previous or "", *texts])[:400]


class Talk:
    """A thread of messages with a summary in one form, up to date."""

    def __init__(self, memory: Memory, form: str, messages: int) -> None:
        self.memory, self.form, self.model = memory, form, Model()
        memory.summaries.use(self.model, chunk=CHUNK)
        self.messages = [one.id for one in memory.remember_many(_drafts(0, messages))]
        self.built = self._cost(self.update)

    def update(self) -> Summary:
        """Bring the summary up to date."""
        if self.form == "rolling":
            return self.memory.summaries.rolling("talk")
        return self.memory.summaries.tree("talk", leaf=LEAF, fan_out=FAN_OUT)

    def forget(self, count: int, times: int) -> Cost:
        """Forget messages spread over the thread, `count` in each of `times` forgets."""
        step = len(self.messages) // (count * times)
        chosen = self.messages[step // 2 :: step][: count * times]
        taken = set(chosen)
        self.messages = [one for one in self.messages if one not in taken]
        return self._all([lambda at=at: self._forget(chosen[at::times]) for at in range(times)])  # type: ignore[misc] # a default

    def _forget(self, ids: Sequence[int]) -> Receipt:
        before = self.model.calls
        receipt = self.memory.forget(ids=ids, scrub=False)
        assert receipt.rebuild_calls == self.model.calls - before
        assert receipt.not_rebuilt == 0
        return receipt

    def append(self, count: int) -> Cost:
        """Say messages one by one, and bring the summary up to date after each."""
        added = self.memory.remember_many
        calls: list[Callable[[], object]] = []
        for at in range(count):
            drafts = _drafts(len(self.messages) + at, 1)
            calls += [lambda drafts=drafts: added(drafts), self.update]  # type: ignore[misc] # a default
        found = self._all(calls)
        return Cost(found.calls[1::2], found.seconds[1::2])

    def _all(self, calls: Sequence[Callable[[], object]]) -> Cost:
        costs = [self._cost(one) for one in calls]
        return Cost([one.calls[0] for one in costs], [one.seconds[0] for one in costs])

    def _cost(self, call: Callable[[], object]) -> Cost:
        before = self.model.calls
        seconds = timed(call)
        return Cost([self.model.calls - before], [seconds])


def _drafts(first: int, count: int) -> list[Draft]:
    return [
        Draft(
            f"Message {at} of a talk about the weather, the garden and the trains.", thread="talk"
        )
        for at in range(first, first + count)
    ]


@contextmanager
def talks(store: Store, messages: int) -> Iterator[dict[str, Talk]]:
    """Yield the same talk summed up in each form, each in a database of its own."""
    urls = {form: store.fresh() for form in FORMS}
    opened = {form: Memory.open(url, embedder=None) for form, url in urls.items()}
    try:
        yield {form: Talk(memory, form, messages) for form, memory in opened.items()}
    finally:
        for form, memory in opened.items():
            memory.close()
            store.drop(urls[form])


def path(messages: int) -> int:
    """Return the parts of a tree that one message is in: the leaf, and one at each full level."""
    return 1 + int(math.log(max(messages // LEAF, 1), FAN_OUT) + 1e-9)


def measured(
    store: Store, tell: Callable[[str], None], sizes: Sequence[int] = SIZES
) -> Iterator[Row]:
    """Yield the rows of every size, and how both forms grow."""
    once: dict[str, dict[int, Cost]] = {form: {} for form in FORMS}
    for size in sizes:
        tell(f"{store.name}: summaries of {size:,} messages")
        with talks(store, size) as made:
            built = {form: talk.built for form, talk in made.items()}
            yield _calls(store, f"summing up {size:,} messages", built, None)
            one = {form: talk.forget(1, FORGETS) for form, talk in made.items()}
            yield _calls(store, f"forgetting 1 of {size:,}", one, path(size))
            yield _times(store, f"forgetting 1 of {size:,}", one)
            many = {form: talk.forget(MANY, 1) for form, talk in made.items()}
            yield _calls(store, f"forgetting {MANY} of {size:,}", many, MANY * path(size))
            yield _times(store, f"forgetting {MANY} of {size:,}", many)
            added = {form: talk.append(APPENDED) for form, talk in made.items()}
            yield _calls(store, f"one more after {size:,}", added, 2)
            yield _times(store, f"one more after {size:,}", added)
        for form, cost in one.items():
            once[form][size] = cost
    if len(sizes) > 1:
        yield from _growth(store, once)


def _calls(store: Store, name: str, costs: dict[str, Cost], bound: float | None) -> Row:
    """Return the line of the model calls, on average; the bound is the tree's."""
    return Row(
        name=f"{name}: calls",
        database=store.name,
        peer="rolling",
        ours=str(costs["tree"]),
        theirs=str(costs["rolling"]),
        value=round(mean(costs["tree"].calls), 2),
        unit="calls",
        bound=bound,
    )


def _times(store: Store, name: str, costs: dict[str, Cost]) -> Row:
    seconds = {form: median(cost.seconds) for form, cost in costs.items()}
    return Row(
        name=f"{name}: time without the model's",
        database=store.name,
        peer="rolling",
        ours=clock(seconds["tree"]),
        theirs=clock(seconds["rolling"]),
        value=round(seconds["tree"] / seconds["rolling"], 2),
    )


def _growth(store: Store, once: dict[str, dict[int, Cost]]) -> Iterator[Row]:
    """Yield how the calls of forgetting one message grow: fitted to log2 n, and to n."""
    for form, scale, unit in (
        ("tree", math.log2, "calls for each doubling"),
        ("rolling", float, "calls for each message"),
    ):
        sizes = sorted(once[form])
        calls = [mean(once[form][size].calls) for size in sizes]
        fit = linear_regression([scale(size) for size in sizes], calls)
        off = max(
            abs(fit.intercept + fit.slope * scale(n) - k) for n, k in zip(sizes, calls, strict=True)
        )
        seconds = [median(once[form][size].seconds) for size in (sizes[0], sizes[-1])]
        yield Row(
            name=f"growth of forgetting 1, {form}",
            database=store.name,
            peer=f"n from {sizes[0]:,} to {sizes[-1]:,}",
            ours=f"{calls[-1]:.3g} calls, {clock(seconds[1])}",
            theirs=f"{calls[0]:.3g} calls, {clock(seconds[0])}",
            value=round(fit.slope, 4),
            unit=unit,
            bound=1 / math.log2(FAN_OUT) + 0.2 if form == "tree" else None,
            note=f"least squares, at most {off:.2g} calls off",
        )
