"""What LoCoMo and MSC have in common: deletions whose right extent is known, turn by turn.

Deletions of one conversation are not independent, so that intervals are made by drawing whole
conversations.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from .personas import specific, words
from .results import RESAMPLES, Number, share

STATED = 0.5  # the share of an answer's telling words from which a text states it
Part = tuple[float, float]  # how much of how much

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def states(text: str, answer: str) -> bool:
    """Tell whether a text holds at least half of an answer's telling words (see `specific`).

    False for an answer without one.
    """
    return tells(frozenset(words(text)), specific(answer))


def tells(said: AbstractSet[str], wanted: AbstractSet[str]) -> bool:
    """Tell whether words that were said hold at least half of those wanted; never of none."""
    return bool(wanted) and len(wanted & said) >= STATED * len(wanted)


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
    draw = random.Random(seed)
    drawn = [_sums(draw.choices(sums, k=len(sums))) for _ in range(RESAMPLES)]
    found = sorted(one / of for one, of in drawn)
    return Number(hits / total, found[int(RESAMPLES * 0.025)], found[int(RESAMPLES * 0.975) - 1], n)


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
