"""The contexts of records that stay while some of what they were made from goes.

Under a relaxed reach, or a hold, a record outlives its sources. It may still hold what they were
made from, so in the place of what went it is tied to that: a later strict forget of a source of
the source still reaches it. Its parents are then more than its prompt held, never fewer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from . import provenance, sequences
from .database import Scope, Tx
from .plan import Plan
from .records import Edge


def contexts(tx: Tx, scope: Scope, plan: Plan, replaced: Collection[int]) -> dict[int, list[int]]:
    """Return what the context of each record that the plan spares or holds is to be, by id.

    What survives of it in order, then the surviving sources of what goes, ascending. Ids of
    `replaced` count as surviving: `attach` is told what takes their place.
    """
    left = [one.id for one in (*plan.spared, *plan.held)]
    if not left:
        return {}
    going = set(plan.ids).difference(replaced)
    edges = provenance.context_edges(tx, scope.ws, [*plan.ids, *left])
    above: dict[int, list[Edge]] = {}
    for edge in edges:
        above.setdefault(edge.child, []).append(edge)
    found: dict[int, list[int]] = {}
    for id_ in left:
        kept = [one for one in provenance.context_of(tx, scope.ws, id_) if one not in going]
        found[id_] = kept + sorted(_sources(id_, above, going).difference(kept))
    return found


def _sources(id_: int, above: Mapping[int, Iterable[Edge]], going: Collection[int]) -> set[int]:
    """Return the first survivors on every way up from a record, less itself and its own copies."""
    found: set[int] = set()
    seen = {id_}
    nodes = [id_]
    while nodes:
        for edge in above.get(nodes.pop(), ()):
            if edge.parent in seen:
                continue
            if edge.parent < 0 or edge.parent in going:
                seen.add(edge.parent)
                nodes.append(edge.parent)
            else:
                found.add(edge.parent)
    return found - {edge.parent for edge in above.get(id_, ()) if edge.position < 0} - {id_}


def attach(
    tx: Tx, scope: Scope, contexts_: Mapping[int, Iterable[int]], versions: Mapping[int, int]
) -> None:
    """Write the contexts in the place of what is left of the old; `versions` is new id by old."""
    for id_, context in contexts_.items():
        tx.run("delete from edge where ws = :ws and child = :id and pos >= 0", ws=scope.ws, id=id_)
        ids = [versions.get(one, one) for one in context]
        sequences.attach_surviving(tx, scope.ws, id_, ids)
