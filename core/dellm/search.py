"""Finding records by keyword, by meaning, or by both, inside one workspace.

The same results on both databases: terms come from one tokenizer, bm25 is computed here from the
workspace's own counts (no other tenant's statistics leak into a ranking), and vectors are compared
exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from .database import Filter, Tx, Vector
from .encoding import decode
from .terms import distinct, terms

K1, B = 1.2, 0.75  # bm25's usual constants
MOST_TERMS = 32  # distinct terms of a query that count
MOST_RANKED = 1_000  # records whose text is read; chosen by the weight of the terms they hold
FUSION = 60  # reciprocal rank fusion's constant (Cormack et al., SIGIR 2009)

Hits = list[tuple[int, float]]


def by_keyword(tx: Tx, ws: int, query: str, limit: int, keep: Filter) -> Hits:
    """Return up to `limit` (id, bm25) of usable records that hold a term of the query, best first."""
    holders = tx.with_terms(ws, distinct(query)[:MOST_TERMS])
    counts = tx.one("select documents, tokens from workspace where ws = :ws", ws=ws)
    if counts is None or limit < 1 or not any(holders.values()):
        return []
    documents = max(counts[0], 1)
    weights = {term: _weight(documents, len(ids)) for term, ids in holders.items()}
    ranked = _heaviest(holders, weights, _left_out(tx, ws, keep))
    average = max(counts[1] / documents, 1.0)
    scored = [(id_, _bm25(decode(text), weights, average)) for id_, text in _texts(tx, ws, ranked)]
    return sorted(scored, key=lambda hit: (-hit[1], hit[0]))[:limit]


def with_all_terms(tx: Tx, ws: int, wanted: Sequence[str]) -> set[int]:
    """Return the ids of the workspace's records that hold every one of the terms."""
    if not wanted:
        return set()
    holders = tx.with_terms(ws, wanted)
    return set.intersection(*(set(holders[term]) for term in wanted))


def by_meaning(tx: Tx, ws: int, query: Vector, limit: int, threshold: float, keep: Filter) -> Hits:
    """Return up to `limit` (id, cosine) of usable records above the threshold, best first.

    `query` is float32 of shape (dimensions,), unit length; `threshold` a cosine in [-1, 1].
    """
    return [hit for hit in tx.nearest(ws, query, limit, keep) if hit[1] > threshold]


def fused(rankings: Iterable[Hits], limit: int) -> Hits:
    """Return the rankings merged by reciprocal rank, best first; ties go to the smaller id."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for place, (id_, _) in enumerate(ranking):
            scores[id_] = scores.get(id_, 0.0) + 1 / (FUSION + place + 1)
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))[:limit]


def _weight(documents: int, holders: int) -> float:
    return math.log(1 + (documents - holders + 0.5) / (holders + 0.5))


def _heaviest(
    holders: dict[str, list[int]], weights: dict[str, float], left_out: set[int]
) -> list[int]:
    totals: dict[int, float] = {}
    for term, ids in holders.items():
        weight = weights[term]
        for id_ in ids:
            totals[id_] = totals.get(id_, 0.0) + weight
    usable = [id_ for id_ in totals if id_ not in left_out]
    return sorted(usable, key=lambda id_: (-totals[id_], -id_))[:MOST_RANKED]


def _left_out(tx: Tx, ws: int, keep: Filter) -> set[int]:
    """Return what the filter forbids, so that it is gone before anything is ranked."""
    found = tx.all(keep.left_out, ws=ws, at=keep.at)
    if keep.thread is not None:
        found += tx.all(
            "select id from record where ws = :ws and thread <> :thread", ws=ws, thread=keep.thread
        )
    return {*keep.without, *(row[0] for row in found)}


def _texts(tx: Tx, ws: int, ids: Sequence[int]) -> list[tuple[int, str]]:
    rows = tx.all("select id, text from record where ws = :ws and id in :ids", ws=ws, ids=list(ids))
    return [(row[0], row[1]) for row in rows]


def _bm25(text: str, weights: dict[str, float], average: float) -> float:
    held = Counter(terms(text))
    length = sum(held.values())
    norm = K1 * (1 - B + B * length / average)
    return sum(
        weight * held[term] * (K1 + 1) / (held[term] + norm)
        for term, weight in weights.items()
        if held[term]
    )
