"""The vectors of items: numpy over one cached matrix, the same on both databases.

A store searches the items of one namespace, by vectors of its own embedder, several to an item: so
they are apart from the vectors by which memory is searched. Which items count is asked of the
database each time; the matrix only spares reading their vectors again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from .database import Tx, Vector
from .errors import InvalidInput

SPARE = 4_096  # vectors that may be kept of what was replaced since


_SINCE = (
    "select w.generation, v.record, v.data from workspace w "
    "left join item_vector v on v.ws = :ws and v.record > :last "
    "where w.ws = :ws order by v.record, v.field"
)


class ItemVectors:
    """The vectors of one workspace's items, dropped whenever something was erased. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._generation = -1
        self._forget()

    def _forget(self) -> None:
        self._last = self._read = 0
        self._ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._rows: NDArray[np.float32] = np.empty((0, 0), np.float32)

    def ranked(
        self, tx: Tx, ws: int, query: Vector
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the records that have vectors, and of each its best cosine to the query.

        The nearest comes first, the newer one of two alike. Some may not be items any more.
        `query` is float32 of shape (dimensions,). Raises InvalidInput for one of other dimensions.
        """
        asked = _unit(query)
        with self._guard:
            self._refresh(tx, ws, len(asked))
            rows, held = self._rows, self._ids
        if not held.size:
            return held, np.empty(0, np.float32)
        starts = np.flatnonzero(np.diff(held, prepend=-1))  # vectors of one record are neighbours
        best = np.maximum.reduceat(rows @ asked, starts)[::-1]
        order = np.argsort(-best, kind="stable")
        return held[starts][::-1][order], best[order]

    def _refresh(self, tx: Tx, ws: int, width: int) -> None:
        found = tx.all(_SINCE, ws=ws, last=self._last)
        generation = int(found[0][0]) if found else -1
        # What was replaced since is still here: from time to time all is read anew.
        if generation != self._generation or len(self._ids) > 2 * self._read + SPARE:
            known = self._last
            self._forget()
            self._generation = generation
            if known:
                found = tx.all(_SINCE, ws=ws, last=0)
        found = [row[1:] for row in found if row[1] is not None]
        new = np.frombuffer(b"".join(bytes(row[1]) for row in found), "<f4")
        if len(new) != len(found) * width or (self._rows.size and self._rows.shape[1] != width):
            raise InvalidInput("The query has other dimensions than the vectors that are kept.")
        if not found:
            return
        added = new.reshape(len(found), width)
        self._rows = np.concatenate([self._rows, added]) if self._rows.size else added
        self._ids = np.concatenate([self._ids, np.asarray([row[0] for row in found], np.int64)])
        self._read = self._read or len(self._ids)
        self._last = int(found[-1][0])

    @staticmethod
    def add(tx: Tx, ws: int, rows: Iterable[tuple[int, Sequence[Vector]]]) -> None:
        """Store the vectors of new records."""
        tx.many(
            "insert into item_vector(ws, record, field, data) values (:ws, :record, :field, :data)",
            [
                {"ws": ws, "record": id_, "field": at, "data": _unit(one).astype("<f4").tobytes()}
                for id_, vectors in rows
                for at, one in enumerate(vectors)
            ],
        )

    @staticmethod
    def drop(tx: Tx, ws: int, ids: Sequence[int]) -> None:
        """Delete the vectors of records."""
        tx.later("delete from item_vector where ws = :ws and record in :ids", ws=ws, ids=list(ids))


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
