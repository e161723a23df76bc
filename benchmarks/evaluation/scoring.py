"""All scores of a set of answers, each with its interval: what the tables show."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dellm.embedding import Embedder

from .judging import Answered, Judge, recall, stems
from .results import Cell, Number, mean, rate, share
from .stating import STATED


@dataclass(frozen=True, slots=True)
class Scores:
    """What a set of answers reaches; shares are of answers, in [0, 1].

    `right` is the judge's (`judge` its name), over the answers it came to a verdict on, of which
    `no_verdict` are missing. `stated` is the share with at least half of the words that only the
    gold answer has, `recall` the mean share of those words. `nearest` is the share of answers that
    are nearer to the gold answer than to every distractor, of those that have any: it has no floor
    at zero, so it is to be shown beside the score without memory. `rouge` is the mean of ROUGE-L
    recall, which says little about short right answers to long gold ones.
    """

    judge: str
    right: Number
    no_verdict: int
    stated: Number
    recall: Number
    nearest: Number
    rouge: Number

    def row(self) -> dict[str, Cell | Number]:
        """Return the scores as columns of a table."""
        missing: dict[str, Cell | Number] = {"no verdict": self.no_verdict}
        return {
            "right": self.right,
            **(missing if self.no_verdict else {}),
            "stated": self.stated,
            "nearest to gold": self.nearest,
            "ROUGE-L recall": self.rouge,
        }


def score(
    items: Sequence[Answered], judge: Judge, embedder: Embedder | None = None, seed: int = 0
) -> Scores:
    """Score answers; raise ModelError or EmbedderError if a model can't be asked.

    Without an embedder, nearness is the overlap of words (Dice).
    """
    said = [judge.right(one) for one in items]
    recalls = [recall(one) for one in items]
    ranked = [one for one in items if one.distractors]
    return Scores(
        judge=judge.name,
        right=rate(said),
        no_verdict=said.count(None),
        stated=share(sum(one >= STATED for one in recalls), len(recalls)),
        recall=mean(recalls, seed),
        nearest=share(sum(nearest_gold(ranked, embedder)), len(ranked)),
        rouge=mean([rouge_recall(one.gold, one.answer) for one in items], seed),
    )


def nearest_gold(items: Sequence[Answered], embedder: Embedder | None) -> list[bool]:
    """Tell of each answer whether the gold one is nearer than every distractor; a tie is not.

    By the cosine of the embedder, which embeds every different text once, or by shared words.
    """
    if not items:
        return []
    near = overlap if embedder is None else _Cosine(items, embedder)
    return [
        near(one.answer, one.gold) > max(near(one.answer, text) for text in one.distractors)
        for one in items
    ]


class _Cosine:
    """The cosine of two texts of the items, in [-1, 1]; 0 for a blank one."""

    def __init__(self, items: Sequence[Answered], embedder: Embedder) -> None:
        texts = {text: None for one in items for text in (one.gold, one.answer, *one.distractors)}
        self._rows = dict(zip(texts, embedder.embed(list(texts)), strict=True))

    def __call__(self, one: str, other: str) -> float:
        return float(np.dot(self._rows[one], self._rows[other]))


def overlap(one: str, other: str) -> float:
    """Return how many different words two texts share, in [0, 1] (Dice's coefficient)."""
    here, there = stems(one), stems(other)
    return 2 * len(here & there) / (len(here) + len(there)) if here and there else 0.0


def rouge_recall(gold: str, answer: str) -> float:
    """Return ROUGE-L recall in [0, 1]: the longest common subsequence of words, of the gold ones.

    Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", by the package rouge-score,
    with its stemmer.
    """
    return float(_scorer().score(gold, answer)["rougeL"].recall)


@functools.cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # no types

    return RougeScorer(["rougeL"], use_stemmer=True)
