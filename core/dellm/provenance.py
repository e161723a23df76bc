"""The provenance graph G: who was made from what, and everything that follows from a record.

Nodes are records (positive ids) and sequences (negative ids); one relation, `edge`, holds all
edges. An edge is written only together with its child, and only to a parent that may be used, in
the transaction that checked it; so G is acyclic but for copies, which point both ways, and for what
`cycles` tells of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .database import Tx
from .errors import ContextForgotten, NotFound
from .records import Edge

if TYPE_CHECKING:
    import rustworkx

_DEP = (
    "with recursive dep(id) as ("
    " select id from record where ws = :ws and id in :seeds"
    " union"
    " select e.child from dep cross join edge e where e.ws = :ws and e.parent = dep.id) "
    "select id from dep"
)
_EXPAND = (
    "with recursive x(id, d, parent, pos) as ("
    " select cast(:sequence as bigint), 0, cast(null as bigint), cast(0 as bigint)"
    " union all"
    " select case when e.pos = 0 then e.parent end, x.d + 1, e.parent, e.pos"
    " from x cross join edge e where e.ws = :ws and e.child = x.id) "
    "select parent from x where pos <> 0 "
    "order by pos > 0, case when pos < 0 then d else -d end, pos"
)
# Records that had the given one in their context, through any number of sequences built on it.
_USED_IN = (
    "with recursive x(id) as ("
    " select e.child from edge e where e.ws = :ws and e.parent = :id and (e.child < 0 or e.pos >= 0)"
    " union"
    " select e.child from x cross join edge e where e.ws = :ws and e.parent = x.id and x.id < 0) "
    "select id from x where id > 0 order by id"
)
# The records of `ids` and the sequences that their contexts are built of.
_CONTEXTS = (
    "with recursive up(id) as ("
    " select id from record where ws = :ws and id in :ids"
    " union"
    " select e.parent from up cross join edge e"
    " where e.ws = :ws and e.child = up.id and e.parent < 0) "
    "select id from up"
)
_ANCESTORS = (
    "with recursive up(id) as ("
    " select cast(:id as bigint)"
    " union"
    " select e.parent from up cross join edge e where e.ws = :ws and e.child = up.id) "
    "select id from up"
)


def dependents(tx: Tx, ws: int, seeds: Sequence[int]) -> list[int]:
    """Return Dep(seeds): the living seeds and everything reachable from them, sequences included.

    The paper's Definition 2, extended to sets (section III-B). Ascending.
    """
    return sorted(row[0] for row in tx.all(_DEP, ws=ws, seeds=list(seeds)))


def with_dependents(tx: Tx, ws: int, ids: Sequence[int]) -> set[int]:
    """Return which of the living records anything was made of."""
    rows = tx.all(
        "select id from record as r where r.ws = :ws and r.id in :ids "
        "and exists (select 1 from edge e where e.ws = :ws and e.parent = r.id)",
        ws=ws,
        ids=list(ids),
    )
    return {row[0] for row in rows}


def count_dependents(tx: Tx, ws: int, id_: int, most: int) -> int:
    """Return the size of Dep({id}), counted no further than `most` nodes."""
    row = tx.one(
        "with recursive dep(id) as ("
        " select cast(:id as bigint)"
        " union"
        " select e.child from dep cross join edge e where e.ws = :ws and e.parent = dep.id) "
        "select count(*) from (select id from dep limit :most) as counted",
        ws=ws,
        id=id_,
        most=most,
    )
    return int(row[0]) if row else 0


def edges_from(tx: Tx, ws: int, nodes: Sequence[int]) -> list[Edge]:
    """Return every edge whose parent is one of `nodes`."""
    rows = tx.all(
        "select parent, child, pos from edge where ws = :ws and parent in :nodes",
        ws=ws,
        nodes=list(nodes),
    )
    return [Edge._make(row) for row in rows]


def edges_into(tx: Tx, ws: int, nodes: Sequence[int]) -> list[Edge]:
    """Return every edge whose child is one of `nodes`."""
    rows = tx.all(
        "select parent, child, pos from edge where ws = :ws and child in :nodes",
        ws=ws,
        nodes=list(nodes),
    )
    return [Edge._make(row) for row in rows]


def context_edges(tx: Tx, ws: int, ids: Sequence[int]) -> list[Edge]:
    """Return every edge that the contexts of the records are made of, and their copy edges."""
    return edges_into(tx, ws, [row[0] for row in tx.all(_CONTEXTS, ws=ws, ids=list(ids))])


def expand(tx: Tx, ws: int, sequence: int) -> list[int]:
    """Return the record ids of a sequence in order: prefixes, then the base, then what was added."""
    return [row[0] for row in tx.all(_EXPAND, ws=ws, sequence=sequence)]


def context_of(tx: Tx, ws: int, id_: int) -> list[int]:
    """Return context(m) in prompt order: the records that were in the prompt of record `id_`."""
    rows = tx.all(
        "select parent, pos from edge where ws = :ws and child = :id and pos >= 0 order by pos",
        ws=ws,
        id=id_,
    )
    found: dict[int, None] = {}
    again: list[int] = []
    for parent, _ in rows:
        for one in expand(tx, ws, parent) if parent < 0 else [parent]:
            again.append(one)
            found[one] = None
    # A prompt may hold a record twice; what several lists of a checkpoint share counts once.
    sequences = sum(parent < 0 for parent, _ in rows)
    return list(found) if sequences > 1 or (sequences and len(rows) > 1) else again


def contexts_of(tx: Tx, ws: int, ids: Sequence[int]) -> dict[int, list[int]]:
    """Return context_of of many records, by id: what their contexts share is read once."""
    edges: dict[int, list[Edge]] = {}
    for edge in sorted(context_edges(tx, ws, ids), key=lambda one: one.position):
        edges.setdefault(edge.child, []).append(edge)
    known: dict[int, tuple[list[int], list[int]]] = {}
    return {id_: _context(edges.get(id_, ()), edges, known) for id_ in ids}


def _context(
    own: Sequence[Edge],
    edges: Mapping[int, Sequence[Edge]],
    known: dict[int, tuple[list[int], list[int]]],
) -> list[int]:
    parents = [edge.parent for edge in own if edge.position >= 0]
    again: list[int] = []
    for parent in parents:
        if parent < 0:
            prefixes, added = _expanded(parent, edges, known)
            again += prefixes + added
        else:
            again.append(parent)
    several = len(parents) > 1 and any(parent < 0 for parent in parents)
    return list(dict.fromkeys(again)) if several else again


def _expanded(
    sequence: int,
    edges: Mapping[int, Sequence[Edge]],
    known: dict[int, tuple[list[int], list[int]]],
) -> tuple[list[int], list[int]]:
    """Return what a sequence has before and after that of its base, the base's included."""
    chain = [sequence]
    while chain[-1] not in known:
        base = next((one.parent for one in edges.get(chain[-1], ()) if one.position == 0), None)
        if base is None:
            known[chain[-1]] = _own(edges.get(chain[-1], ()))
        else:
            chain.append(base)
    prefixes, added = known[chain[-1]]
    for one in reversed(chain[:-1]):
        before, after = _own(edges[one])
        prefixes, added = before + prefixes, added + after
        known[one] = prefixes, added
    return prefixes, added


def _own(edges: Sequence[Edge]) -> tuple[list[int], list[int]]:
    return (
        [one.parent for one in edges if one.position < 0],
        [one.parent for one in edges if one.position > 0],
    )


def used_in(tx: Tx, ws: int, id_: int) -> list[int]:
    """Return the inverse of context: the records that had `id_` in their prompt, ascending."""
    return [row[0] for row in tx.all(_USED_IN, ws=ws, id=id_)]


def ancestors(tx: Tx, ws: int, id_: int) -> list[int]:
    """Return every node from which `id_` can be reached, itself included."""
    return [row[0] for row in tx.all(_ANCESTORS, ws=ws, id=id_)]


def require_usable(tx: Tx, ws: int, ids: Iterable[int]) -> None:
    """Raise unless every id is a record of the workspace that may be used in a context.

    Raises ContextForgotten for erased or suppressed ones, NotFound for ids that never were, and for
    what the actor may not read.
    """
    wanted = sorted(set(ids))
    rows = tx.all(
        "select id from record where ws = :ws and id in :ids and status = 0 and audience = 0",
        ws=ws,
        ids=wanted,
    )
    if len(rows) == len(wanted):
        return
    missing = sorted(set(wanted) - {row[0] for row in rows})
    if tx.one(
        "select 1 from record where ws = :ws and id in :ids and status = 0", ws=ws, ids=missing
    ):
        raise NotFound("The context names record(s) that are not there to be read.")
    last = tx.one("select last_record from workspace where ws = :ws", ws=ws)
    if missing[0] < 1 or last is None or missing[-1] > last[0]:
        raise NotFound(f"The context names {len(missing)} record(s) this workspace never had.")
    raise ContextForgotten(
        f"{len(missing)} record(s) of the context can no longer be used: {_listed(missing)}."
    )


def _listed(ids: Sequence[int]) -> str:
    shown = ", ".join(str(one) for one in ids[:10])
    return shown if len(ids) <= 10 else f"{shown} and {len(ids) - 10} more"


def link_copy(tx: Tx, ws: int, copy: int, original: int) -> None:
    """Note that two records hold the same content, so that neither outlives the other."""
    require_usable(tx, ws, [original])
    for child, parent in ((copy, original), (original, copy)):
        tx.run(
            "insert into edge(ws, child, pos, parent) select cast(:ws as bigint), "
            "cast(:child as bigint), coalesce(min(pos), 0) - 1, cast(:parent as bigint) "
            "from edge where ws = :ws and child = :child and pos < 0",
            ws=ws,
            child=child,
            parent=parent,
        )


def shortest_paths(seeds: Iterable[int], edges: Iterable[Edge]) -> dict[int, int | None]:
    """Return for each node reached from the seeds the node before it on one shortest path.

    Seeds map to None. Among equally short paths the one through smaller ids is taken.
    """
    children: dict[int, list[int]] = {}
    for edge in edges:
        children.setdefault(edge.parent, []).append(edge.child)
    before: dict[int, int | None] = dict.fromkeys(sorted(seeds))
    queue = deque(before)
    while queue:
        node = queue.popleft()
        for child in sorted(children.get(node, ())):
            if child not in before:
                before[child] = node
                queue.append(child)
    return before


def trace(before: dict[int, int | None], node: int) -> tuple[int, ...]:
    """Return the records on the path from a seed to `node`, the seed first."""
    path: list[int] = []
    at: int | None = node
    while at is not None:
        if at > 0:
            path.append(at)
        at = before[at]
    return tuple(reversed(path))


def traces(before: dict[int, int | None]) -> dict[int, tuple[int, ...]]:
    """Return `trace` of every node that was reached, each made from the one before it."""
    found: dict[int, tuple[int, ...]] = {}
    for node, previous in before.items():
        path = () if previous is None else found[previous]
        found[node] = (*path, node) if node > 0 else path
    return found


def depths(seeds: Iterable[int], edges: Iterable[Edge]) -> dict[int, int]:
    """Return for each node the least number of record hops from a seed; sequences and copies are free."""
    children: dict[int, list[Edge]] = {}
    for edge in edges:
        children.setdefault(edge.parent, []).append(edge)
    found: dict[int, int] = dict.fromkeys(seeds, 0)
    queue = deque(found)
    while queue:
        node = queue.popleft()
        for edge in children.get(node, ()):
            free = edge.child < 0 or (edge.child > 0 and edge.position < 0)
            depth = found[node] + (0 if free else 1)
            if depth < found.get(edge.child, depth + 1):
                found[edge.child] = depth
                (queue.appendleft if free else queue.append)(edge.child)
    return found


def graph(nodes: Iterable[int], edges: Iterable[Edge]) -> rustworkx.PyDiGraph[int, int]:
    """Return the subgraph as a rustworkx graph: node payload = id, edge payload = position."""
    import rustworkx

    made: rustworkx.PyDiGraph[int, int] = rustworkx.PyDiGraph()
    listed = sorted(set(nodes))
    at = dict(zip(listed, made.add_nodes_from(listed), strict=True))
    made.add_edges_from(
        [
            (at[edge.parent], at[edge.child], edge.position)
            for edge in edges
            if edge.parent in at and edge.child in at
        ]
    )
    return made
