"""Making a plan: matches → Dep → reach → what is held back → suspects. Reads only.

The same function makes the preview and is run again inside the transaction that erases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from . import (
    governed,
    governing,
    holding,
    influences,
    ledger,
    provenance,
    rebuilding,
    regenerating,
    search,
    selectors,
    values,
)
from .arguments import check_choice
from .database import Filter, Scope, Tx, Vector
from .encoding import decode
from .errors import InvalidInput, SelectorError
from .plan import EXCERPT, MODES, Dependent, Entry, Held, Plan, Reach, Spared, Suspect, digest_of
from .records import Edge
from .selectors import Clue, Look, Match, Selector

MOST_SUSPECTS = 20
FEW = 5  # matches whose own meaning is looked for, where the selector has none


def make(
    tx: Tx,
    scope: Scope,
    selector: Selector,
    look: Look,
    *,
    mode: str = "erase",
    reach: Reach,
    suspects: bool = True,
    shown: bool = True,
    threshold: float | None = None,
    rebuilders: Collection[str] = (),
) -> Plan:
    """Return the plan for a selector; an empty one when nothing matches.

    `shown` adds what only a reader needs: traces, excerpts. The digest is the same without.
    `rebuilders` are the names by which records may ask to be made anew; see regenerating.names.
    `threshold` is the embedder's own, in cosine; None leaves meaning out of the suspects.
    Raises SelectorError, InvalidInput.
    """
    check_choice(mode, MODES, "mode=")
    if not isinstance(reach, Reach):
        raise InvalidInput("reach= is none: use STRICT, depth(...) or influence(...).")
    if selector.corrected and mode != "erase":
        raise SelectorError('What is put right is erased: corrected= goes with mode="erase".')
    found = _with_carriers(tx, scope, selector, look)
    if mode == "redact" and any(not match.spans for match in found):
        raise SelectorError(
            "Redaction needs to know where in each record the value stands.",
            remedy="Select by quote, value or description, or use mode='erase'.",
        )
    version, holds, head = _state(tx, scope.ws)
    empty = Plan(scope.name, mode, reach, selector, (), (), head=head, version=version)
    plan = _draw(tx, scope, empty, found, holds, shown=shown)
    if rebuilders and mode != "suppress":
        plan = _with_remade(tx, scope, plan, rebuilders, look)
    if suspects and plan:
        plan = replace(plan, suspects=_suspects(tx, scope, plan, look, threshold))
    said = digest_of(scope.name, mode, reach, plan.matches, plan.ids)
    return replace(plan, entries=_entries(tx, scope, plan, shown=shown), digest=said)


def _with_remade(tx: Tx, scope: Scope, plan: Plan, names: Collection[str], look: Look) -> Plan:
    """Return the plan with what can be made anew of it. How much a redaction takes is not known yet."""
    asks = regenerating.REPLY in names
    left = regenerating.shortened(tx, scope, plan, "span", look.region)
    rebuilds, regenerates = rebuilding.wanted(tx, scope, plan, names, look.at, left)
    return replace(
        plan,
        rebuilds=rebuilds,
        regenerates=regenerates,
        on_dependents="regenerate" if asks else "erase",
    )


def spared_copy(id_: int) -> Spared:
    """Return the entry of a copy that stays where only what matched is to go."""
    return Spared(id_, "a copy elsewhere")


def _state(tx: Tx, ws: int) -> tuple[int, int, str]:
    row = tx.one("select version, holds from workspace where ws = :ws", ws=ws)
    version, holds = (0, 0) if row is None else (row[0], row[1])
    return version, holds, ledger.head(tx, ws)[1]


def _draw(
    tx: Tx, scope: Scope, plan: Plan, found: Sequence[Match], holds: int, *, shown: bool
) -> Plan:
    """Return the plan with the parts that come from the graph; `holds`: how many are open."""
    seeds = [match.id for match in found]
    nodes = provenance.dependents(tx, scope.ws, seeds)
    edges = provenance.edges_from(tx, scope.ws, nodes)
    held = holding.why(tx, scope.ws, [node for node in nodes if node > 0], holds)
    matched = {match.id: match for match in found}
    spared = _spared(tx, scope, seeds, nodes, edges, plan.reach)
    held = {id_: reason for id_, reason in held.items() if id_ not in spared}
    kept = {*seeds, *held, *spared}
    reached = [node for node in nodes if node > 0 and node not in kept]
    return replace(
        plan,
        matches=tuple(match for match in found if match.id not in held),
        dependents=(
            _traced(seeds, edges, reached)
            if shown
            else tuple(Dependent(node, ()) for node in reached)
        ),
        spared=tuple(Spared(id_, why) for id_, why in sorted(spared.items())),
        held=tuple(Held(id_, held[id_], matched.get(id_)) for id_ in sorted(held)),
        edges=tuple(edges),
        above=_above(tx, scope, seeds, held, holds) if shown and holds else (),
    )


def _above(
    tx: Tx, scope: Scope, seeds: Sequence[int], held: Collection[int], holds: int
) -> tuple[Spared, ...]:
    """Return the records on hold that matches were made from, and that the plan does not reach."""
    nodes = {node for id_ in seeds for node in provenance.ancestors(tx, scope.ws, id_) if node > 0}
    reasons = holding.why(tx, scope.ws, nodes.difference(held, seeds), holds)
    return tuple(Spared(id_, reasons[id_]) for id_ in sorted(reasons))


def _traced(
    seeds: Sequence[int], edges: Sequence[Edge], reached: Sequence[int]
) -> tuple[Dependent, ...]:
    before = provenance.shortest_paths(seeds, edges)
    traces = provenance.traces(before)
    copies = {(edge.parent, edge.child) for edge in edges if edge.child > 0 and edge.position < 0}
    return tuple(Dependent(node, traces[node], (before[node], node) in copies) for node in reached)


def _spared(
    tx: Tx,
    scope: Scope,
    seeds: Sequence[int],
    nodes: Sequence[int],
    edges: Sequence[Edge],
    reach: Reach,
) -> dict[int, str]:
    if reach.kind == "depth":
        hops = provenance.depths(seeds, edges)
        return {
            node: f"{hops[node]} replies away"
            for node in nodes
            if node > 0 and hops[node] > reach.limit
        }
    if reach.kind == "expiry":
        return governing.on_their_own(tx, scope.ws, seeds, nodes, edges)
    if reach.kind == "influence":
        return influences.uninfluenced(tx, scope.ws, seeds, nodes, edges, reach.limit)
    return {}


def _with_carriers(tx: Tx, scope: Scope, selector: Selector, look: Look) -> list[Match]:
    """Return the matches, with those that carry a described value or a stated alias elsewhere."""
    found = selectors.find(tx, scope, selector, look)
    if not found or not (selector.description or selector.aliases):
        return found
    clues: list[Clue] = []
    if selector.description:
        clues += _spanned(tx, scope, found, look)
    if selector.aliases:
        clues += stated_aliases(tx, scope, selector, found, look)
    known = {match.id: match for match in found}
    for id_, clue in selectors.holding(tx, scope, clues, selector.thread):
        if id_ not in known and id_ not in selector.exclude:
            known[id_] = Match(id_, clue.why, _spans(tx, scope, id_, clue.needle, look))
    return [known[id_] for id_ in sorted(known)]


def _spanned(tx: Tx, scope: Scope, found: Iterable[Match], look: Look) -> list[Clue]:
    """Return clues for the values that the matches' spans cut out of their texts."""
    clues: dict[values.Needle, Clue] = {}
    texts = _texts(tx, scope, [match.id for match in found])
    for match in found:
        for start, end in match.spans:
            needle = values.needle(texts[match.id][start:end], region=look.region)
            clues.setdefault(
                needle, Clue(f"carries the {needle.kind} of record {match.id}", needle)
            )
    return list(clues.values())


def _spans(
    tx: Tx, scope: Scope, id_: int, needle: values.Needle, look: Look
) -> tuple[tuple[int, int], ...]:
    text = _texts(tx, scope, [id_])[id_]
    return tuple((one.start, one.end) for one in values.find(needle, text, region=look.region))


def stated_aliases(
    tx: Tx, scope: Scope, selector: Selector, found: Iterable[Match], look: Look
) -> list[Clue]:
    """Return clues for the other names that the matches state for what was asked.

    Only names that stand beside the asked one in an explicit statement ("X, also known as Y").
    """
    asked = [values.needle(text, region=look.region) for text in selector.texts]
    if not asked:
        return []
    return [
        Clue(f"holds an alias that record {id_} states", values.needle(other, region=look.region))
        for id_, text in _texts(tx, scope, [match.id for match in found]).items()
        for pair in values.aliases(text)
        for name, other in (pair, pair[::-1])
        if any(values.contains(one, name) for one in asked)
    ]


def _texts(tx: Tx, scope: Scope, ids: Sequence[int]) -> dict[int, str]:
    rows = tx.all(
        "select id, text from record where ws = :ws and id in :ids", ws=scope.ws, ids=list(ids)
    )
    return {row[0]: decode(row[1]) for row in rows}


def _suspects(
    tx: Tx, scope: Scope, plan: Plan, look: Look, threshold: float | None
) -> tuple[Suspect, ...]:
    going = frozenset(plan.ids) | {one.id for one in (*plan.held, *plan.spared)}
    found: dict[int, str] = {}
    for id_, clue in selectors.holding(tx, scope, _clues(tx, scope, plan, look)):
        if id_ not in going:
            found.setdefault(id_, clue.why)
    for id_, why in _alike(tx, scope, plan, look, threshold, going):
        found.setdefault(id_, why)
    kept = [(id_, why) for id_, why in found.items() if id_ not in plan.selector.exclude]
    return tuple(Suspect(id_, why) for id_, why in sorted(kept[:MOST_SUSPECTS]))


def _clues(tx: Tx, scope: Scope, plan: Plan, look: Look) -> list[Clue]:
    """Return what makes a record suspect: the asked values, the matches' own, stated aliases.

    Without another selector that narrows, every record with the asked values is a match already.
    """
    texts = plan.selector.texts
    clues = stated_aliases(tx, scope, plan.selector, plan.matches, look)
    if texts and plan.selector.narrowed:
        asked = [values.needle(text, region=look.region) for text in texts]
        clues += [Clue("carries the same", needle) for needle in asked]
    return clues if texts else clues + _own_values(tx, scope, plan, look)


def _own_values(tx: Tx, scope: Scope, plan: Plan, look: Look) -> list[Clue]:
    shown = [match.id for match in plan.matches[:MOST_SUSPECTS]]
    return [
        Clue(f"carries a {one.kind} of record {id_}", one)
        for id_, text in _texts(tx, scope, shown).items()
        for one in values.telling(text, region=look.region)
    ]


def _alike(
    tx: Tx, scope: Scope, plan: Plan, look: Look, threshold: float | None, going: Collection[int]
) -> Iterable[tuple[int, str]]:
    if threshold is None:
        return
    keep = Filter(look.at, None, frozenset(going), dropped=True)
    for vector in _meanings(tx, scope, plan):
        for id_, score in search.by_meaning(tx, scope.ws, vector, 10, threshold, keep):
            yield id_, f"means much the same (cosine {score:.2f})"


def _meanings(tx: Tx, scope: Scope, plan: Plan) -> list[Vector]:
    """Return the vector of what was asked, or those of the first matches where ids say it all."""
    if plan.selector.vector is not None:
        return [plan.selector.vector]
    return tx.vectors(scope.ws, [match.id for match in plan.matches[:FEW]])


def _entries(tx: Tx, scope: Scope, plan: Plan, *, shown: bool) -> Mapping[int, Entry]:
    """Return what is shown of each record; only the replies sent to a model where nothing is."""
    others = [one.id for one in (*plan.spared, *plan.held)]
    ids = {*plan.ids, *others, *(one.id for one in plan.suspects)}
    rows = tx.all(
        "select id, kind, role, thread, status, model, created_at, "
        "case when status <> 3 then substr(text, 1, :most) else '' end "
        "from record where ws = :ws and id in :ids and (model is not null or :most > 0)",
        ws=scope.ws,
        ids=sorted(ids),
        most=EXCERPT if shown else 0,
    )
    known = governed.of_several(tx, scope, [row[0] for row in rows]) if shown else {}
    return {
        row[0]: Entry(
            row[0],
            row[1],
            decode(row[2]),
            decode(row[3]) or None,
            row[4],
            None if row[5] is None else decode(row[5]),
            row[6],
            decode(row[7]),
            known.get(row[0]),
        )
        for row in rows
    }


def meaning_of(selector: Selector) -> str | None:
    """Return the text by whose meaning suspects are looked for, or None when there is none."""
    return selector.meaning or next(iter(selector.texts), None) or selector.description


def with_vector(selector: Selector, vector: Vector, threshold: float) -> Selector:
    """Return the selector with the vector of its meaning and a threshold to use with it."""
    return replace(
        selector,
        vector=vector,
        threshold=threshold if selector.threshold is None else selector.threshold,
    )
