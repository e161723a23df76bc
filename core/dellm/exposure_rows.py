"""Who was sent what: read from the graph, and from the few rows that the graph cannot give.

A reply names its model, and its context is what that model was sent: so a model call leaves its
exposure with the reply, and writes no row of its own. A context shared by many replies is a chain of
sequences; the latest call of a record is found by one pass over these. Rows are kept for the rest:
vectors, calls without a reply that stayed, queries. When a reply or a sequence dies while records of
it live on, `leave` writes down what these were exposed to, at the highest sequences that live.

An exposure is a span of microseconds: of the first and the last time something was sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from . import provenance
from .database import Tx
from .encoding import decode, encode
from .plan import in_process
from .records import Edge

Who = tuple[str, bool]  # "provider/name", and whether it embeds
Span = tuple[int, int]
Seen = dict[Who, Span]

DAY = 86_400_000_000  # microseconds
_SEQUENCES = (
    "with recursive s(id) as ("
    " select e.child from edge e where e.ws = :ws and e.parent in :ids and e.child < 0"
    " union"
    " select e.child from s cross join edge e where e.ws = :ws and e.parent = s.id and e.child < 0) "
    "select id from s"
)
_PUT = (
    "insert into exposure(ws, node, outsider, day, calls, first_at, last_at) "
    "values (:ws, :node, :outsider, :day, :calls, :first, :last) "
    "on conflict (ws, node, outsider, day) do update set "
    "calls = exposure.calls + excluded.calls, "
    "first_at = case when excluded.first_at < exposure.first_at then excluded.first_at "
    "else exposure.first_at end, "
    "last_at = case when excluded.last_at > exposure.last_at then excluded.last_at "
    "else exposure.last_at end"
)


def of_records(
    tx: Tx, ws: int, ids: Collection[int] | None = None, edges: Iterable[Edge] | None = None
) -> dict[int, Seen]:
    """Return who was sent each of the records, or of all there are; those sent to nobody are left out.

    `edges`: every edge that leaves the records and the sequences that hold them, where it is known.
    """
    if ids is None:
        ids = [row[0] for row in tx.all("select id from record where ws = :ws", ws=ws)]
        rows = tx.all("select parent, child, pos from edge where ws = :ws", ws=ws)
        edges = [Edge._make(row) for row in rows]
    elif edges is None:
        held = [row[0] for row in tx.all(_SEQUENCES, ws=ws, ids=list(ids))]
        edges = provenance.edges_from(tx, ws, [*ids, *held])
    below = _below(edges)
    children = {one for some in below.values() for one in some}
    replies = _replies(tx, ws, {*ids, *(one for one in children if one > 0)})
    kept = _rows(tx, ws, {*ids, *(one for one in children if one < 0)})
    found = _spread(ids, below, replies, kept)
    return {id_: found[id_] for id_ in ids if found[id_]}


def _below(edges: Iterable[Edge]) -> dict[int, list[int]]:
    """Return what each node went into: sequences, and the replies whose context it is of."""
    below: dict[int, list[int]] = {}
    for edge in edges:
        if edge.child < 0 or edge.position >= 0:
            below.setdefault(edge.parent, []).append(edge.child)
    return below


def _replies(tx: Tx, ws: int, ids: Collection[int]) -> dict[int, Seen]:
    """Return those of the records that an outside model made, with that model and the time."""
    rows = tx.all(
        "select id, model, created_at from record "
        "where ws = :ws and id in :ids and model is not null",
        ws=ws,
        ids=list(ids),
    )
    made = ((id_, decode(model), at) for id_, model, at in rows)
    return {id_: {(model, False): (at, at)} for id_, model, at in made if not in_process(model)}


def _rows(tx: Tx, ws: int, nodes: Collection[int]) -> dict[int, Seen]:
    found: dict[int, Seen] = {}
    for node, name, embeds, first, last in tx.all(
        "select e.node, o.name, o.embeds, e.first_at, e.last_at from exposure e "
        "join outsider o on o.ws = :ws and o.id = e.outsider where e.ws = :ws and e.node in :nodes",
        ws=ws,
        nodes=list(nodes),
    ):
        found.setdefault(node, {})[decode(name), bool(embeds)] = (first, last)
    return found


def _add(into: Seen, more: Mapping[Who, Span]) -> None:
    for who, (first, last) in more.items():
        known = into.get(who, (first, last))
        into[who] = (min(first, known[0]), max(last, known[1]))


def _spread(
    nodes: Collection[int],
    below: Mapping[int, Sequence[int]],
    replies: Mapping[int, Seen],
    rows: Mapping[int, Seen],
) -> dict[int, Seen]:
    """Return what each node was exposed to: by its rows, by making it, and by what it went into.

    What a record went into was also sent on, but without what it was made from: so what is taken of
    a reply is the call that made it, and of a sequence all.
    """
    done: dict[int, Seen] = {}
    for start in nodes:
        pending = [start]
        while pending:
            node = pending[-1]
            into = below.get(node, ())
            missing = [one for one in into if one < 0 and one not in done]
            if missing:
                pending += missing
                continue
            pending.pop()
            if node in done:
                continue
            seen = done[node] = {}
            _add(seen, rows.get(node, {}))
            _add(seen, replies.get(node, {}))
            for one in into:
                _add(seen, done[one] if one < 0 else replies.get(one, {}))
    return done


def leave(tx: Tx, ws: int, ids: Collection[int], dead: Collection[int]) -> None:
    """Write down what the survivors of dying contexts were exposed to; let go of the dying's rows.

    `ids` are records that go and `dead` sequences that no longer hold: their rows and edges are still
    there. Reads the edges that lead to them, and no others.
    """
    dying = {*ids, *dead}
    replies, rows = _replies(tx, ws, ids), _rows(tx, ws, dead)
    if replies or rows:
        edges = provenance.edges_into(tx, ws, sorted(dying))
        while more := _dead(tx, ws, {one.parent for one in edges} - dying):
            dying |= more
            edges = provenance.edges_into(tx, ws, sorted(dying))
        below = _below(edges)
        left = [node for node in below if node not in dying]
        found = _spread(left, below, replies, rows)
        put(tx, ws, {node: found[node] for node in left if found[node]})
    tx.later("delete from exposure where ws = :ws and node in :nodes", ws=ws, nodes=sorted(dying))


def _dead(tx: Tx, ws: int, nodes: Collection[int]) -> set[int]:
    """Return the sequences that died before, when some of what they held went out of use."""
    sequences = sorted(node for node in nodes if node < 0)
    if not sequences:
        return set()
    rows = tx.all(
        "select id from sequence where ws = :ws and id in :ids and dead_at is not null",
        ws=ws,
        ids=sequences,
    )
    return {row[0] for row in rows}


def anew(tx: Tx, ws: int, ids: Collection[int], at: int) -> None:
    """Note that the models that made some records were asked again, with what these are made from now."""
    made = _replies(tx, ws, ids)
    if not made:
        return
    again = {id_: dict.fromkeys(seen, (at, at)) for id_, seen in made.items()}
    found = {id_: dict(seen) for id_, seen in again.items()}
    for edge in provenance.edges_into(tx, ws, sorted(made)):
        if edge.position >= 0:
            _add(found.setdefault(edge.parent, {}), again[edge.child])
    put(tx, ws, found)


def note(tx: Tx, ws: int, ids: Iterable[int], who: Who, at: int) -> None:
    """Note that records were sent to an outsider."""
    put(tx, ws, {id_: {who: (at, at)} for id_ in ids})


def note_living(tx: Tx, ws: int, ids: Iterable[int], who: Who, at: int) -> int:
    """Note that those of the records that are still there were sent; return how many these are."""
    rows = tx.all(
        "select id from record where ws = :ws and id in :ids", ws=ws, ids=sorted(set(ids))
    )
    note(tx, ws, [row[0] for row in rows], who, at)
    return len(rows)


def put(tx: Tx, ws: int, found: Mapping[int, Mapping[Who, Span]]) -> None:
    """Add exposures to what is known of records and sequences; the workspace's row is locked."""
    numbers = _numbers(tx, ws, {who for seen in found.values() for who in seen})
    tx.many(
        _PUT,
        [
            _row(ws, node, numbers[who], span)
            for node, seen in found.items()
            for who, span in seen.items()
        ],
    )


def asked(tx: Tx, ws: int, who: Who, at: int) -> None:
    """Count a query that an embedder was sent; the workspace's row is locked."""
    number = _numbers(tx, ws, {who})[who]
    tx.many(_PUT, [{**_row(ws, 0, number, (at, at)), "day": at // DAY, "calls": 1}])


def queries(tx: Tx, ws: int) -> list[tuple[str, int, int, int, int]]:
    """Return (embedder, day since 1970, queries, first, last) by name and day."""
    rows = tx.all(
        "select o.name, e.day, e.calls, e.first_at, e.last_at from exposure e "
        "join outsider o on o.ws = :ws and o.id = e.outsider "
        "where e.ws = :ws and e.node = 0 order by o.name, e.day",
        ws=ws,
    )
    return [(decode(row[0]), *row[1:]) for row in rows]


def _row(ws: int, node: int, outsider: int, span: Span) -> dict[str, int]:
    first, last = span
    return {"ws": ws, "node": node, "outsider": outsider, "day": 0, "calls": 0,
            "first": first, "last": last}  # fmt: skip


def _numbers(tx: Tx, ws: int, wanted: Collection[Who]) -> dict[Who, int]:
    """Return the numbers of outsiders, and number those that are new."""
    if not wanted:
        return {}
    rows = tx.all("select name, embeds, id from outsider where ws = :ws", ws=ws)
    found = {(decode(name), bool(embeds)): id_ for name, embeds, id_ in rows}
    last = max(found.values(), default=0)
    new = {who: last + at for at, who in enumerate(sorted(set(wanted) - found.keys()), 1)}
    tx.many(
        "insert into outsider(ws, id, name, embeds) values (:ws, :id, :name, :embeds)",
        [
            {"ws": ws, "id": id_, "name": encode(name), "embeds": int(embeds)}
            for (name, embeds), id_ in new.items()
        ],
    )
    return found | new
