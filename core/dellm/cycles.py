"""Records that are made from themselves by way of others: in the provenance graph there are none.

But for copies, which point both ways, and for values that were stored at once: where it cannot be
told which came first, both may be made from the other. The one stored first is marked inexact then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import LiteralString

from .database import Tx
from .encoding import load_json

# An edge back in time is on every cycle, as what is made of older records only is on none. A
# redaction makes such edges too, so where there is one it is looked further.
_BACK: tuple[LiteralString, ...] = (
    "select 1 from edge e where e.ws = :ws and e.child > 0 and e.pos >= 0"
    " and e.parent >= e.child limit 1",
    "select 1 from edge e join edge s on s.ws = :ws and s.child = e.parent"
    " where e.ws = :ws and e.child > 0 and e.parent < 0 and e.pos >= 0"
    " and s.parent >= e.child limit 1",
)


def made_from_themselves(tx: Tx, ws: int) -> int:
    """Return how many records are on a cycle, even without what they only may be made from."""
    if not any(tx.one(back, ws=ws) for back in _BACK):
        return 0
    inexact = _inexact(tx, ws)
    parents: dict[int, list[int]] = {}
    edges = "select child, parent from edge where ws = :ws and pos >= 0"
    for child, parent in tx.stream(edges, ws=ws):
        if parent < child or child not in inexact:
            parents.setdefault(child, []).append(parent)
    return sum(one > 0 for ring in rings(parents) for one in ring)


def _inexact(tx: Tx, ws: int) -> set[int]:
    rows = tx.stream("select id, metadata from record where ws = :ws", ws=ws)
    return {id_ for id_, said in rows if said is not None and load_json(said).get("inexact")}


def rings(parents: Mapping[int, Sequence[int]]) -> Iterator[list[int]]:
    """Yield every greatest set of nodes that all reach each other, single ones with an edge to itself.

    Tarjan, Depth-first search and linear graph algorithms, 1972; with a stack of its own.
    """
    low: dict[int, int] = {}
    path: list[int] = []
    done: set[int] = set()
    for root in parents:
        if root in low:
            continue
        work = [(root, _enter(root, low, path), iter(parents[root]))]
        while work:
            node, number, left = work[-1]
            for one in left:
                if one not in low:
                    work.append((one, _enter(one, low, path), iter(parents.get(one, ()))))
                    break
                if one not in done:
                    low[node] = min(low[node], low[one])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number:
                    ring = _leave(node, path)
                    done.update(ring)
                    if len(ring) > 1 or node in parents.get(node, ()):
                        yield ring


def _enter(node: int, low: dict[int, int], path: list[int]) -> int:
    low[node] = len(low)
    path.append(node)
    return low[node]


def _leave(node: int, path: list[int]) -> list[int]:
    at = len(path) - 1
    while path[at] != node:
        at -= 1
    ring = path[at:]
    del path[at:]
    return ring
