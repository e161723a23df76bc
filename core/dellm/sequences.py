"""Contexts as sequences: a chat that sends its whole history writes O(1) rows a turn.

A sequence is immutable: a base sequence plus what was appended. `Tips` remembers, per thread, the
ids of the longest sequences and where each of their bases ends, so that a longer context is stored
as an extension, and a shorter one finds its own sequence again. What `Tips` says is only a guess
about the database: a base is used after its row was found alive in the same transaction.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from . import provenance
from .database import Scope, Tx
from .encoding import encode

DIRECT = 8  # a context up to this long that extends nothing is stored as direct parents
TIPS_PER_THREAD = 4
THREADS = 256


@dataclass(slots=True)
class Tip:
    """The ids of a sequence, and (length, sequence id) of it and of every base below it.

    `generation` is that of the workspace in which they were seen alive, if that is known: they live
    as long as it does not move.
    """

    ids: list[int]
    marks: list[tuple[int, int]]
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class Base:
    """A live sequence that holds the first `length` ids of a context."""

    sequence: int
    length: int


class Tips:
    """The newest sequences of the threads this process has written to. Thread-safe."""

    def __init__(self) -> None:
        self._tips: OrderedDict[tuple[int, str], list[Tip]] = OrderedDict()
        self._guard = threading.Lock()

    def find(self, ws: int, thread: str, ids: Sequence[int]) -> tuple[Tip, int] | None:
        """Return the tip that shares the longest marked beginning with `ids`, and its length."""
        with self._guard:
            tips = list(self._tips.get((ws, thread), ()))
        shared = [(tip, _shared(tip, ids)) for tip in tips]
        best = max(shared, key=itemgetter(1), default=None)
        return best if best is not None and best[1] else None

    def note(self, ws: int, thread: str, tip: Tip) -> None:
        """Remember a committed sequence; it takes the place of the tip it extends."""
        with self._guard:
            tips = self._tips.setdefault((ws, thread), [])
            others = [one for one in tips if one.marks[-1] != _longest(tip.marks, len(one.ids))]
            tips[:] = others[-TIPS_PER_THREAD + 1 :]
            tips.append(tip)
            self._tips.move_to_end((ws, thread))
            while len(self._tips) > THREADS:
                self._tips.popitem(last=False)

    def drop(self, ws: int, thread: str, tip: Tip) -> None:
        """Forget a tip that turned out to be dead."""
        with self._guard:
            tips = self._tips.get((ws, thread), [])
            tips[:] = [one for one in tips if one is not tip]


def _up_to(marks: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return the marks, ascending as they are, of the bases of at most this length."""
    return marks[: bisect_right(marks, length, key=itemgetter(0))]


def _longest(marks: list[tuple[int, int]], length: int) -> tuple[int, int] | None:
    """Return the mark of the longest base of at most this length, None if there is none."""
    below = bisect_right(marks, length, key=itemgetter(0))
    return marks[below - 1] if below else None


def _shared(tip: Tip, ids: Sequence[int]) -> int:
    """Return the length of the longest base of `tip` that `ids` begins with."""
    common = _common(tip.ids, ids if isinstance(ids, list) else list(ids))
    if common == len(tip.ids):
        return common
    mark = _longest(tip.marks, common)
    return 0 if mark is None else mark[0]


def _common(one: list[int], other: list[int]) -> int:
    """Return how many ids two lists begin with alike; slices are compared, as fast as memory is."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def attach_context(
    tx: Tx,
    scope: Scope,
    child: int,
    ids: Sequence[int],
    thread: str,
    fresh: int,
    tips: Tips,
    checked_in: int | None = None,
) -> Tip | None:
    """Write the edges that make `ids` the context of record `child`, in order.

    `fresh` is a sequence id reserved for this write. `checked_in` is the workspace's generation where
    the ids were found usable in this transaction. Returns the tip to note after the commit.
    Raises ContextForgotten, NotFound (nothing is written then).
    """
    if not ids:
        return None
    base, known = _base(tx, scope, ids, thread, tips, checked_in)
    if checked_in is None:
        known_here = base is not None and scope.actor is None  # another actor may have had it
        provenance.require_usable(tx, scope.ws, ids[base.length if base and known_here else 0 :])
    if base is None and len(ids) <= DIRECT:
        _write(tx, scope.ws, child, [(pos + 1, one) for pos, one in enumerate(ids)])
        return None
    tip = _extended(tx, scope.ws, ids, thread, fresh, base, known, listed=False)
    tip.generation = checked_in
    _write(tx, scope.ws, child, [(0, tip.marks[-1][1])])
    return tip


def listed(
    tx: Tx,
    scope: Scope,
    ids: Sequence[int],
    thread: str,
    fresh: int,
    tips: Tips,
    checked_in: int | None = None,
) -> tuple[int, Tip]:
    """Return the sequence that holds `ids` as the value of a channel, and the tip to note.

    The ids were checked before. `fresh` and `checked_in`: see attach_context.
    """
    base, known = _base(tx, scope, ids, thread, tips, checked_in)
    tip = _extended(tx, scope.ws, ids, thread, fresh, base, known, listed=True)
    tip.generation = checked_in
    return tip.marks[-1][1], tip


def placed(tx: Tx, scope: Scope, ids: Sequence[int | None], thread: str, fresh: int) -> int:
    """Return a new listed sequence in which every id keeps its position; None leaves a gap."""
    _write_row(tx, scope.ws, fresh, len(ids), thread, listed=True)
    rows = [(pos + 1, one) for pos, one in enumerate(ids) if one is not None]
    _write(tx, scope.ws, fresh, rows)
    return fresh


def _extended(
    tx: Tx,
    ws: int,
    ids: Sequence[int],
    thread: str,
    fresh: int,
    base: Base | None,
    known: list[tuple[int, int]],
    *,
    listed: bool,
) -> Tip:
    """Return the tip of the sequence that holds exactly `ids`: the base itself, or a new one on it."""
    marks = _up_to(known, base.length) if base else []
    if base is not None and base.length == len(ids):
        if listed:
            tx.later(
                "update sequence set listed = 1 where ws = :ws and id = :id and listed = 0",
                ws=ws,
                id=base.sequence,
            )
        return Tip(list(ids), marks)
    _write_row(tx, ws, fresh, len(ids), thread, listed=listed)
    start = base.length if base else 0
    rows = [(pos + 1, one) for pos, one in enumerate(ids[start:])]
    _write(tx, ws, fresh, [(0, base.sequence), *rows] if base else rows)
    return Tip(list(ids), [*marks, (len(ids), fresh)])


def attach_surviving(tx: Tx, ws: int, child: int, ids: Sequence[int], after: int = 0) -> None:
    """Write nodes as direct parents, from position `after` + 1 on; they were checked before."""
    _write(tx, ws, child, [(after + pos + 1, one) for pos, one in enumerate(ids)])


def _base(
    tx: Tx, scope: Scope, ids: Sequence[int], thread: str, tips: Tips, generation: int | None
) -> tuple[Base | None, list[tuple[int, int]]]:
    while found := tips.find(scope.ws, thread, ids):
        tip, shared = found
        mark = _longest(tip.marks, shared) if tip.generation == generation else None
        if generation is not None and mark is not None:
            return Base(mark[1], mark[0]), tip.marks
        base = _alive(tx, scope.ws, tip, shared)
        if base is not None:
            return base, tip.marks
        tips.drop(scope.ws, thread, tip)
    if len(ids) > DIRECT and (stored := _stored_tip(tx, scope.ws, thread, len(ids))):
        base = _alive(tx, scope.ws, stored, _shared(stored, ids))
        return base, stored.marks
    return None, []


def _alive(tx: Tx, ws: int, tip: Tip, shared: int) -> Base | None:
    """Return the longest live base of `tip` among those of at most `shared` ids."""
    for length, sequence in reversed(_up_to(tip.marks, shared)):
        row = tx.one(
            "select length from sequence where ws = :ws and id = :id and dead_at is null",
            ws=ws,
            id=sequence,
        )
        if row is not None and row[0] == length:
            return Base(sequence, length)
    return None


def _stored_tip(tx: Tx, ws: int, thread: str, most: int) -> Tip | None:
    """Return the newest live sequence of the thread from the database, for a cold start."""
    row = tx.one(
        "select id from sequence where ws = :ws and thread = :thread and dead_at is null "
        "and length <= :most order by id limit 1",
        ws=ws,
        thread=encode(thread),
        most=most,
    )
    if row is None:
        return None
    marks = tx.all(
        "with recursive chain(id) as ("
        " select cast(:id as bigint)"
        " union"
        " select e.parent from chain cross join edge e"
        " where e.ws = :ws and e.child = chain.id and e.pos = 0) "
        "select s.length, s.id from chain cross join sequence s where s.ws = :ws and s.id = chain.id "
        "order by s.length",
        ws=ws,
        id=row[0],
    )
    return Tip(provenance.expand(tx, ws, row[0]), [(length, id_) for length, id_ in marks])


def _write_row(tx: Tx, ws: int, sequence: int, length: int, thread: str, *, listed: bool) -> None:
    tx.later(
        "insert into sequence(ws, id, thread, length, listed) "
        "values (:ws, :id, :thread, :length, :listed)",
        ws=ws,
        id=sequence,
        thread=encode(thread),
        length=length,
        listed=int(listed),
    )


def _write(tx: Tx, ws: int, child: int, parents: Sequence[tuple[int, int]]) -> None:
    tx.many(
        "insert into edge(ws, child, pos, parent) values (:ws, :child, :pos, :parent)",
        [(ws, child, pos, parent) for pos, parent in parents],
    )
