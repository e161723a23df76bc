"""Reach by influence: which dependents show nothing of what goes (paper, section III-B).

The measure is deliberately simple: a dependent is influenced when at least the given share of its
own distinct terms occur in an erased parent and in no surviving one. It can leave what was
forgotten: in a long reply one telling word is a small share, and a word that a surviving parent
says too does not count. Measured in benchmarks/results/ablation-*.md; only strict reach leaves none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import provenance
from .database import Tx
from .encoding import decode
from .records import Edge
from .terms import distinct

SHORTEST = 3  # characters; shorter terms ("a", "is") show nothing


def uninfluenced(
    tx: Tx,
    ws: int,
    seeds: Sequence[int],
    nodes: Sequence[int],
    edges: Sequence[Edge],
    threshold: float,
) -> dict[int, str]:
    """Return {id: reason} of the dependents that are below the threshold, in order of their ids.

    A dependent spared passes nothing on; one that is taken counts as erased for those after it.
    Copies of what goes always go.
    """
    alike = _copies(edges)
    going = _with_copies(seeds, alike)
    spared: dict[int, str] = {}
    vocabulary = _Vocabulary(tx, ws)
    for node in nodes:
        if node < 0 or node in going:
            continue
        share = _share(tx, ws, node, going, vocabulary)
        if share is None or share < threshold:
            spared[node] = "saw nothing that goes" if share is None else f"influence {share:.2f}"
        else:
            going |= _with_copies([node], alike)
    return {node: why for node, why in spared.items() if node not in going}


def _copies(edges: Sequence[Edge]) -> dict[int, list[int]]:
    alike: dict[int, list[int]] = {}
    for edge in edges:
        if edge.child > 0 and edge.position < 0:
            alike.setdefault(edge.parent, []).append(edge.child)
    return alike


def _with_copies(ids: Sequence[int], alike: Mapping[int, list[int]]) -> set[int]:
    """Return the ids and everything that holds the same content, however many copies away."""
    found: set[int] = set()
    left = list(ids)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += alike.get(node, ())
    return found


class _Vocabulary:
    """The distinct terms of records, read once each."""

    def __init__(self, tx: Tx, ws: int) -> None:
        self._tx = tx
        self._ws = ws
        self._known: dict[int, frozenset[str]] = {}

    def of(self, id_: int) -> frozenset[str]:
        if id_ not in self._known:
            row = self._tx.one(
                "select text from record where ws = :ws and id = :id", ws=self._ws, id=id_
            )
            words = distinct(decode(row[0])) if row else []
            self._known[id_] = frozenset(word for word in words if len(word) >= SHORTEST)
        return self._known[id_]


def _share(tx: Tx, ws: int, node: int, going: set[int], vocabulary: _Vocabulary) -> float | None:
    parents = provenance.context_of(tx, ws, node)
    erased = [parent for parent in parents if parent in going]
    if not erased:
        return None
    own = vocabulary.of(node)
    if not own:
        return 1.0
    lost = frozenset().union(*(vocabulary.of(parent) for parent in erased))
    kept = frozenset().union(*(vocabulary.of(parent) for parent in parents if parent not in going))
    return len((own & lost) - kept) / len(own)
