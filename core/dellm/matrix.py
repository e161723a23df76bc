"""Exact vector search for SQLite: numpy over one cached matrix per workspace.

The cache is right because of two counters in the workspace's row: `generation` moves whenever a
vector goes or all are made anew, so that every process drops its copy at its next use; and
vectors are only ever added for ids above `indexed_to`, so newer ones can be appended.

A vector is a column, so that of a query with few numbers that are not zero only those are multiplied.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .database import Filter, Vector

if TYPE_CHECKING:
    from .database import Tx

# Below so many numbers one thread is faster: those that BLAS wakes go on spinning after it, each on a
# core that the rest of the program wants. A call takes a millisecond then, and ten on a busy machine.
THREADED = 1 << 26
SPARSE = 4  # a query with less than one in so many numbers that are not zero has few
MOST = 8  # workspaces whose matrix is kept
SMALL = 4  # a thread with less than one in so many of the vectors is looked at alone


@dataclass(slots=True)
class _Matrix:
    generation: int
    indexed_to: int
    ids: NDArray[np.int64]
    columns: NDArray[np.float32]  # of shape (dimensions, room)
    threads: NDArray[np.int32]  # the numbers of the records' threads
    filled: int = 0
    names: dict[str, int] = field(default_factory=dict)  # the number of each thread, from 1 on


def _empty(generation: int, width: int) -> _Matrix:
    columns = np.empty((width, 0), np.float32)
    return _Matrix(generation, 0, np.empty(0, np.int64), columns, np.empty(0, np.int32))


class Matrices:
    """The matrices of one process, the most recently used ones; guarded by the database's lock."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, _Matrix] = OrderedDict()

    def clear(self) -> None:
        """Drop every vector held in memory."""
        self._kept.clear()

    def nearest(
        self, tx: Tx, ws: int, query: Vector, limit: int, keep: Filter
    ) -> list[tuple[int, float]]:
        """Return up to `limit` (id, cosine) of usable records, best first; see Tx.nearest."""
        held = self._fresh(tx, ws, len(query))
        if held is None or limit < 1:
            return []
        ids, scores = _scored(held, query, keep.thread)
        _strike(scores, ids, _left_out(tx, ws, keep))
        return _best(ids, scores, limit)

    def _fresh(self, tx: Tx, ws: int, width: int) -> _Matrix | None:
        state = tx.one("select generation, indexed_to from workspace where ws = :ws", ws=ws)
        if state is None or not state[1]:
            self._kept.pop(ws, None)
            return None
        held = self._kept.get(ws)
        if held is None or held.generation != state[0] or len(held.columns) != width:
            held = _empty(state[0], width)
        if held.indexed_to < state[1]:
            _extend(held, tx, ws)
            held.indexed_to = state[1]
        self._kept[ws] = held
        self._kept.move_to_end(ws)
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return held


def _scored(
    held: _Matrix, query: Vector, thread: str | None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return ids and cosines; those of other threads than the one asked for are left out or -inf."""
    ids, columns = held.ids[: held.filled], held.columns[:, : held.filled]
    if thread is None:
        return ids, _product(query, columns)
    inside = held.threads[: held.filled] == held.names.get(thread, 0)
    at = np.flatnonzero(inside)
    if SMALL * len(at) < held.filled:
        return ids[at], _product(query, columns[:, at])
    return ids, np.where(inside, _product(query, columns), np.float32(-np.inf))


def _product(query: Vector, columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine of each column with the query; of equal columns an equal one, if not threaded."""
    used = np.flatnonzero(query)
    if SPARSE * len(used) < len(query):
        query, columns = query[used], columns[used]
    if columns.size >= THREADED:
        return query @ columns
    return np.asarray(np.einsum("i,ij->j", query, columns), np.float32)


def _extend(held: _Matrix, tx: Tx, ws: int) -> None:
    found = tx.all(
        "select v.id, v.data, r.thread from embedding v "
        "join record r on r.ws = :ws and r.id = v.id "
        "where v.ws = :ws and v.id > :after order by v.id",
        ws=ws,
        after=held.indexed_to,
    )
    if not found:
        return
    width = len(held.columns)
    _reserve(held, held.filled + len(found), width)
    end = held.filled + len(found)
    held.ids[held.filled : end] = [row[0] for row in found]
    names = held.names
    held.threads[held.filled : end] = [names.setdefault(row[2], len(names) + 1) for row in found]
    joined = b"".join(row[1] for row in found)
    held.columns[:, held.filled : end] = np.frombuffer(joined, "<f4").reshape(-1, width).T
    held.filled = end


def _reserve(held: _Matrix, needed: int, width: int) -> None:
    """Grow by half at a time, so that appending one vector a turn does not copy the matrix."""
    if needed <= len(held.ids):
        return
    room = needed if held.filled == 0 else max(needed, len(held.ids) * 3 // 2)
    ids = np.empty(room, np.int64)
    columns = np.empty((width, room), np.float32)
    threads = np.empty(room, np.int32)
    ids[: held.filled] = held.ids[: held.filled]
    columns[:, : held.filled] = held.columns[:, : held.filled]
    threads[: held.filled] = held.threads[: held.filled]
    held.ids, held.columns, held.threads = ids, columns, threads


def _left_out(tx: Tx, ws: int, keep: Filter) -> list[int]:
    rows = tx.all(keep.left_out, ws=ws, at=keep.at)
    return [*keep.without, *(row[0] for row in rows)]


def _strike(scores: NDArray[np.float32], ids: NDArray[np.int64], left_out: list[int]) -> None:
    if left_out and len(ids):
        wanted = np.asarray(left_out, np.int64)
        at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        scores[at[ids[at] == wanted]] = -np.inf


def _best(
    ids: NDArray[np.int64], scores: NDArray[np.float32], limit: int
) -> list[tuple[int, float]]:
    if limit < len(scores):
        # Everything that ties with the last place stays in until ids decide.
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        at = np.flatnonzero(scores >= least)
    else:
        at = np.arange(len(scores))
    at = at[np.isfinite(scores[at])]
    order = np.lexsort((ids[at], -scores[at]))[:limit]
    return [(int(ids[i]), float(scores[i])) for i in at[order]]
