"""What LoCoMo and MSC have in common: deletions whose right extent is known, turn by turn.

Deletions of one conversation are not independent, so that intervals are made by drawing whole
conversations.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from .personas import specific
from .results import Number, drawn, share

Part = tuple[float, float]  # how much of how much
Value = TypeVar("Value")
Get = Callable[[Value], Part]

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, by their last mark or the end of a line; none is blank."""
    return [one.strip() for one in _SENTENCE.split(text) if one.strip()]


def ratio(groups: Iterable[Sequence[Part]], seed: int = 0) -> Number:
    """Return the sum of the first over the sum of the second, with a 95 % interval.

    One group for each conversation, in it one part for each deletion; parts of nothing do not
    count, n is how many do. The interval is a percentile bootstrap over conversations, which `seed`
    makes repeatable; over deletions where there is one conversation. Where all parts are 0, or all are whole, there is nothing to draw from: then
    it is Wilson's for n deletions of which none, or each, is hit.
    """
    counted = [[part for part in group if part[1]] for group in groups]
    several = [group for group in counted if group]
    sums = several[0] if len(several) == 1 else [_sums(group) for group in several]
    n = sum(map(len, counted))
    if not n:
        return Number(None, None, None, 0)
    hits, total = _sums(sums)
    if hits in (0, total):
        return share(n if hits else 0, n)

    def sample(draw: random.Random) -> float:
        one, of = _sums(draw.choices(sums, k=len(sums)))
        return one / of

    return drawn(hits / total, sample, n, seed)


def ratios(groups: Iterable[Sequence[Value]], seed: int = 0) -> Callable[[Get[Value]], Number]:
    """Return what gives the ratio of one part of many outcomes; a group for each conversation."""
    kept = list(groups)
    return lambda part: ratio([[part(one) for one in group] for group in kept], seed)


def average(groups: Iterable[Sequence[float]], seed: int = 0) -> Number:
    """Return the mean of all values, one group for each conversation; the interval as of `ratio`.

    For values in [0, 1].
    """
    return ratio([[(value, 1.0) for value in group] for group in groups], seed)


def _sums(parts: Iterable[Part]) -> Part:
    several = list(parts)
    return sum(one for one, _ in several), sum(of for _, of in several)


def summary(texts: Sequence[str], most: int) -> str:
    """Return the sentences of texts that say most of what they say, in order, within `most` characters.

    After SumBasic (Nenkova and Vanderwende, 2005): the sentence whose telling words are the most
    frequent on average comes next, and the words of a chosen one count as their frequency squared
    from then on. At least one sentence; "" where there is none.
    """
    every = [one for text in texts for one in sentences(text)]
    telling = [sorted(specific(one)) for one in every]
    counts = Counter(word for some in telling for word in some)
    weight = {word: count / counts.total() for word, count in counts.items()}
    left = [at for at, some in enumerate(telling) if some] or list(range(len(every)))[:1]
    chosen: list[int] = []
    room = most
    while left:
        best = max(left, key=lambda at: (_mean_weight(telling[at], weight), -at))
        left.remove(best)
        if chosen and len(every[best]) > room:
            continue
        chosen.append(best)
        room -= len(every[best]) + 1
        weight.update({word: weight[word] ** 2 for word in telling[best]})
    return " ".join(every[at] for at in sorted(chosen))


def _mean_weight(telling: Sequence[str], weight: dict[str, float]) -> float:
    return sum(weight[word] for word in telling) / max(len(telling), 1)
