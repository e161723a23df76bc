"""The vectors of items: numpy over one cached matrix, the same on both databases.

A store searches the items of one namespace, by vectors of its own embedder, several to an item: so
they are apart from the vectors by which memory is searched. Which items count is asked of the
database each time; the matrix only spares reading their vectors again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .database import Tx, Vector
from .errors import InvalidInput


class ItemVectors:
    """The vectors of one workspace's items, dropped whenever something was erased. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._generation = -1
        self._forget()

    def _forget(self) -> None:
        self._last = 0
        self._ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._rows: NDArray[np.float32] = np.empty((0, 0), np.float32)

    def scores(self, tx: Tx, ws: int, query: Vector, ids: Sequence[int]) -> dict[int, float]:
        """Return for each record that has vectors its best cosine to the query.

        `query` is float32 of shape (dimensions,). Raises InvalidInput for one of other dimensions.
        """
        asked = _unit(query)
        with self._guard:
            self._refresh(tx, ws, len(asked))
            rows, held = self._rows, self._ids
        if not held.size:
            return {}
        wanted = np.isin(held, np.asarray(ids, np.int64))
        best: dict[int, float] = {}
        for id_, score in zip(held[wanted].tolist(), (rows[wanted] @ asked).tolist(), strict=True):
            best[id_] = max(score, best.get(id_, -1.0))
        return best

    def _refresh(self, tx: Tx, ws: int, width: int) -> None:
        row = tx.one("select generation from workspace where ws = :ws", ws=ws)
        generation = -1 if row is None else int(row[0])
        if generation != self._generation:
            self._forget()
            self._generation = generation
        found = tx.all(
            "select record, data from item_vector where ws = :ws and record > :last "
            "order by record, field",
            ws=ws,
            last=self._last,
        )
        new = np.frombuffer(b"".join(bytes(row[1]) for row in found), "<f4")
        if len(new) != len(found) * width or (self._rows.size and self._rows.shape[1] != width):
            raise InvalidInput("The query has other dimensions than the vectors that are kept.")
        if not found:
            return
        added = new.reshape(len(found), width)
        self._rows = np.concatenate([self._rows, added]) if self._rows.size else added
        self._ids = np.concatenate([self._ids, np.asarray([row[0] for row in found], np.int64)])
        self._last = int(found[-1][0])

    @staticmethod
    def add(tx: Tx, ws: int, record: int, vectors: Sequence[Vector]) -> None:
        """Store the vectors of a new record."""
        tx.many(
            "insert into item_vector(ws, record, field, data) values (:ws, :record, :field, :data)",
            [
                {
                    "ws": ws,
                    "record": record,
                    "field": at,
                    "data": _unit(one).astype("<f4").tobytes(),
                }
                for at, one in enumerate(vectors)
            ],
        )

    @staticmethod
    def drop(tx: Tx, ws: int, ids: Sequence[int]) -> None:
        """Delete the vectors of records."""
        tx.run("delete from item_vector where ws = :ws and record in :ids", ws=ws, ids=list(ids))


def _unit(vector: Vector) -> NDArray[np.float32]:
    """Return a vector at unit length; one of zeros stays what it is."""
    try:
        made: NDArray[np.float32] = np.asarray(vector, np.float32)
    except (TypeError, ValueError, OverflowError):
        made = np.empty(0, np.float32)
    if made.ndim != 1 or not made.size or not np.isfinite(made).all():
        raise InvalidInput("A vector is no row of finite numbers.")
    length = float(np.linalg.norm(made.astype(np.float64)))
    return np.divide(made, length, dtype=np.float32) if length else made
