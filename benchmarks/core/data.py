"""Made-up data with the shape of the real thing: texts, vectors, and blocks of provenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

WIDTH = 384  # numbers in a vector
PARENTS = 5  # most parents of a record in a block
_WORDS = 20_000
_CHUNK = 10_000


class Texts:
    """English-like texts: 20,000 words by Zipf's law, the frequent ones short."""

    def __init__(self, seed: int = 7) -> None:
        self._rng = np.random.default_rng(seed)
        onsets, vowels = list("bcdfghjklmnprstvw"), list("aeiou")
        self._words = []
        for rank in range(_WORDS):
            syllables = 1 if rank < 60 else 2 if rank < 1_500 else 3
            letters = zip(
                self._rng.choice(onsets, syllables),
                self._rng.choice(vowels, syllables),
                strict=True,
            )
            self._words.append("".join(a + b for a, b in letters) + "nstr"[rank % 4])
        weights = 1 / np.arange(1, _WORDS + 1)
        self._steps = np.cumsum(weights / weights.sum())

    def take(self, count: int, characters: int = 100) -> list[str]:
        """Return texts of about so many characters each."""
        made: list[str] = []
        while len(made) < count:
            many = min(_CHUNK, count - len(made))
            at = np.searchsorted(self._steps, self._rng.random((many, round(characters / 5.8))))
            made += [" ".join([self._words[one] for one in row]) for row in at.tolist()]
        return made


def unit_vectors(count: int, seed: int) -> NDArray[np.float32]:
    """Return random unit vectors, float32 of shape (count, WIDTH)."""
    rows = np.random.default_rng(seed).standard_normal((count, WIDTH), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


@dataclass(frozen=True, slots=True)
class Blocks:
    """Runs of records that follow from their first one: Dep of a block's first id is the block.

    `sizes` are the blocks' sizes in order; ids run from 1 through all of them.
    """

    sizes: tuple[int, ...]

    @classmethod
    def of(cls, records: int, closure: int) -> Blocks:
        """Return mostly blocks of `closure`; a tenth is one block, a hundredth are blocks of ten."""
        tens = records // 1_000
        large = records // 10
        middling = (records - large - 10 * tens) // closure
        rest = records - large - 10 * tens - closure * middling
        return cls((large, *([10] * tens), *([closure] * middling), *([rest] if rest else [])))

    @property
    def records(self) -> int:
        """The number of records."""
        return sum(self.sizes)

    def roots(self, size: int) -> list[int]:
        """Return the first id of every block of a size."""
        starts = accumulate(self.sizes, initial=1)
        return [start for start, one in zip(starts, self.sizes, strict=False) if one == size]

    def edges(self, seed: int = 11) -> Iterator[tuple[Sequence[int], Sequence[int], Sequence[int]]]:
        """Yield (children, positions, parents) of each block, in key order.

        Every record but a block's first has up to five parents, drawn from those before it.
        """
        rng = np.random.default_rng(seed)
        start = 1
        for size in self.sizes:
            index = np.arange(1, size)
            drawn = (rng.random((size - 1, PARENTS)) * index[:, None]).astype(np.int64)
            drawn.sort(axis=1)
            fresh = np.ones(drawn.shape, bool)
            fresh[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
            child = np.broadcast_to(index[:, None], drawn.shape)[fresh] + start
            place = np.broadcast_to(np.arange(1, PARENTS + 1), drawn.shape)[fresh]
            yield child.tolist(), place.tolist(), (drawn[fresh] + start).tolist()
            start += size
