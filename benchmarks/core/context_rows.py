"""Row c: choosing the five best of many vectors, next to numpy or pgvector alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from dellm import Draft, Memory

from .bare_postgres import BarePostgres
from .data import WIDTH, unit_vectors
from .scale import Scale
from .stores import Store
from .timing import Row, clock, timed, turns

Matrix = NDArray[np.float32]
K = 5
QUERIES = 8


class Given:
    """An embedder that has every vector already, so that no time goes into making them."""

    name = "given"
    dimensions = WIDTH
    threshold = 0.25

    def __init__(self, rows: Matrix, queries: Matrix) -> None:
        self._rows = rows
        self._queries = queries

    def embed(self, texts: Sequence[str], /) -> Matrix:
        """Return the vectors of texts that begin with "r" or "q" and a number."""
        if texts[0].startswith("q"):
            return self._queries[[int(text.split()[0][1:]) for text in texts]]
        return self._rows[[int(text.split()[0][1:]) for text in texts]]


def planted(count: int) -> tuple[Matrix, Matrix]:
    """Return vectors and queries; each query has neighbours at cosines 0.95, 0.92, 0.89 ...

    Well apart, so that near-equals, among which the library prefers the cheaper one to forget, do
    not make the two answers differ.
    """
    rows, queries = unit_vectors(count, 1), unit_vectors(QUERIES, 2)
    for number, query in enumerate(queries):
        for step in range(3 * K):
            cosine = 0.95 - 0.03 * step
            at = (number * 3 * K + step) * (count // (3 * K * QUERIES))
            across = rows[at] - (rows[at] @ query) * query
            across /= np.linalg.norm(across)
            rows[at] = cosine * query + np.sqrt(1 - cosine**2) * across
    return rows, queries


def rows(store: Store, scale: Scale) -> Iterator[Row]:
    """Yield the rows of one database."""
    url = store.fresh()
    matrix, queries = planted(scale.vectors)
    given = Given(matrix, queries)
    with Memory.open(url, embedder=given) as opened:
        memory = opened.workspace("context")
        memory.remember_many([Draft(f"r{number} of many") for number in range(scale.vectors)])
        memory.index()
    bare = store.bare(url)
    nearest = _peer(bare, bare.ws("context"), matrix)
    with Memory.open(url, embedder=given) as opened:
        memory = opened.workspace("context")
        cold = timed(lambda: memory.context("q0", k=K))
        for number, query in enumerate(queries):
            mine, theirs = set(memory.context(f"q{number}", k=K).ids), set(nearest(query))
            if mine != theirs:
                raise AssertionError(f"query {number}: the two answers differ")
        ours, asked = cycle(range(QUERIES)), cycle(queries)
        pair = turns(
            lambda: memory.context(f"q{next(ours)}", k=K),
            lambda: nearest(next(asked)),
            2 * scale.rounds,
            each=QUERIES,
        )
    bare.close()
    store.drop(url)
    peer = (
        "numpy: matrix @ query, argpartition" if store.name == "sqlite" else "pgvector: <=> limit 5"
    )
    name = f"c context, top 5 of {scale.vectors:,}"
    yield pair.row(name, store.name, peer, 1.5, f"same answers; first call {clock(cold)}")


def _peer(bare: object, ws: int, matrix: Matrix) -> Callable[[Matrix], list[int]]:
    if isinstance(bare, BarePostgres):
        return lambda query: bare.nearest(ws, query)

    def nearest(query: Matrix) -> list[int]:
        scores = matrix @ query
        best = np.argpartition(scores, -K)[-K:]
        return [int(at) + 1 for at in best[np.argsort(-scores[best])]]

    return nearest
