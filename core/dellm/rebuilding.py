"""Rebuilding: a dependent that is made anew from its surviving sources, not only erased.

A summary of ten messages need not go for good because one of them does. Its record asks for it by
name (metadata `rebuild`), a function registered under that name makes the new text, outside of any
transaction since it may ask a model; what stands in the new text's way is checked again inside the
one that erases. The old text goes in any case, and is never an input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from . import expiring, forbidding, provenance, reading, regenerating
from .database import Scope, Tx
from .making import ASKS, VERSION, derived_by
from .plan import Asked, Dependent, Plan
from .records import Draft, Record, Status
from .redacting import Version, draft_of, holding
from .regenerating import REPLY
from .remaking import Job, Rebuilds, Sources


def wanted(
    tx: Tx, scope: Scope, plan: Plan, names: Collection[str], at: int, shortened: Collection[int]
) -> tuple[tuple[Dependent, ...], tuple[Asked, ...]]:
    """Return which records of a plan can be made anew, each after what it is made from.

    First those rebuilt by name, then the replies. `shortened` are matches of which something is left.
    Those ask for one of the `names`, are in use at `at`, and were made from something that goes and
    from something that does not: a source outside of Dep(M), or one that is itself made anew. A
    match is one of them only where it was found by what it says, which it has from there.
    """
    found = _found(tx, scope, plan, names, at, shortened)
    known = {one.id: one for one in plan.dependents}
    made = [known.get(id_) or _traced(tx, scope, plan, id_) for id_ in found.sources]
    again = [one for one in made if one.id in found.replies]
    return (
        tuple(one for one in made if one.id not in found.replies),
        regenerating.asked(tx, scope, again, found.sources, found.twins),
    )


def _traced(tx: Tx, scope: Scope, plan: Plan, id_: int) -> Dependent:
    """Return a match as what it is as well, a dependent of another."""
    traces = {one.id: one.trace for one in plan.dependents}
    traces.update((one.id, (one.id,)) for one in plan.matches)
    above = [traces[one] for one in provenance.context_of(tx, scope.ws, id_) if one in traces]
    return Dependent(id_, (*min(above, key=len, default=()), id_))


@dataclass(frozen=True, slots=True)
class _Found:
    """What can be made anew: sources and twins by id; which of them are replies.

    `later` are derived records that cannot be made here, nor what is derived from them: with their
    sources, each after what it is made from. `derived` are all derived ones.
    """

    sources: Sources
    twins: dict[int, list[int]]
    replies: set[int]
    later: Sources
    derived: set[int]


def _found(
    tx: Tx,
    scope: Scope,
    plan: Plan,
    names: Collection[str],
    at: int,
    shortened: Collection[int],
) -> _Found:
    asked = _asking(tx, scope, plan, at)
    derived = {id_ for id_, record in asked.items() if derived_by(record.metadata)}
    here = {id_ for id_, record in asked.items() if _is_made_by(record.metadata, names)}
    replies = _replies(tx, scope, plan, names, at).difference(here | derived)
    asking = here | derived | replies
    if not asking:
        return _Found({}, {}, set(), {}, set())
    before = provenance.contexts_of(tx, scope.ws, sorted(asking))
    going = set(plan.ids)
    groups = {id_: _copies(tx, scope.ws, id_) for id_ in asking}
    renewed = {one.id for one in plan.matches} if plan.selector.renewed else set[int]()
    made = {id_ for id_ in asking if id_ in renewed or not going.isdisjoint(before[id_])}
    beside = {id_ for id_ in asking if not made.isdisjoint(groups[id_])}
    found = {one.id for one in plan.matches if plan.selector.by_content(one.id)} | renewed
    matches = {one.id for one in plan.matches} - (beside & found)
    twins = {
        id_: sorted(groups[id_] & asking - {id_})
        for id_ in sorted(asking)
        if groups[id_].isdisjoint(matches)
    }
    tainted = {*going, *(one.id for one in (*plan.spared, *plan.held))}
    there = set(reading.several(tx, scope, sorted({i for s in before.values() for i in s}), at))
    questions = regenerating.questions(tx, scope, {one: before[one] for one in replies})
    sources: Sources = {}
    later: Sources = {}
    for id_ in _in_order(before, twins):
        kept = tuple(one for one in dict.fromkeys(before[id_]) if one in sources
                     or (one in there and (one in shortened or one not in tainted)))  # fmt: skip
        if id_ in derived and (id_ not in here or not later.keys().isdisjoint(before[id_])):
            waited = [one for one in dict.fromkeys(before[id_]) if one in kept or one in later]
            later |= {id_: tuple(waited)} if waited else {}
            continue
        answers = id_ not in replies or questions.get(id_) in kept
        if (kept and answers) or any(twin in sources for twin in twins[id_]):
            sources[id_] = kept
    return _Found(sources, twins, replies, later, derived)


def _replies(tx: Tx, scope: Scope, plan: Plan, names: Collection[str], at: int) -> set[int]:
    return regenerating.replies(tx, scope, plan.ids, at) if REPLY in names else set()


def _is_made_by(metadata: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether one of the functions makes a record anew: no derivation that is older than it."""
    asks, by = metadata.get(ASKS), derived_by(metadata)
    if asks == REPLY or asks not in names:
        return False
    newest = names[asks] if isinstance(names, Mapping) else None
    return by is None or newest is None or newest >= by[1]


def _asking(tx: Tx, scope: Scope, plan: Plan, at: int) -> dict[int, Record]:
    """Return the records of a plan, in use, that ask for a function.

    One that has expired counts as in use where it did so because a source did, as sources bound what
    is made of them: its successor is bounded by those that stay.
    """
    rows = tx.all(
        "select id from record where ws = :ws and id in :ids and metadata like :asks",
        ws=scope.ws,
        ids=list(plan.ids),
        asks=f'%"{ASKS}"%',
    )
    found = reading.several(tx, scope, [row[0] for row in rows], None)
    ended = expiring.by_their_sources(tx, scope.ws, list(found.values()), at)
    return {
        id_: record
        for id_, record in found.items()
        if record.status == Status.ACTIVE
        and isinstance(record.metadata.get(ASKS), str)
        and (expiring.lasts(record, at) or id_ in ended)
    }


def _copies(tx: Tx, ws: int, id_: int) -> set[int]:
    """Return the record and all that hold the same content, directly or by way of others."""
    found, fresh = {id_}, {id_}
    while fresh:
        into = provenance.edges_into(tx, ws, sorted(fresh))
        fresh = {one.parent for one in into if one.position < 0 and one.child > 0} - found
        found |= fresh
    return found


def _in_order(
    before: Mapping[int, Iterable[int]], twins: Mapping[int, Collection[int]]
) -> Iterable[int]:
    """Return the records, each after those it is made from and the older ones of its content."""
    needs = {
        id_: {one for one in before[id_] if one in twins} | {one for one in same if one < id_}
        for id_, same in twins.items()
    }
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError:  # cannot be told apart any more: then they are erased
        return ()


def gather(
    tx: Tx,
    scope: Scope,
    plan: Plan,
    names: Collection[str],
    at: int,
    region: str,
    shortened: Mapping[int, Version],
) -> Job | None:
    """Return what a forget has to make anew, None if nothing; `region` as in Memory.open.

    `shortened` are the new versions of matches of which something is left.
    """
    if not plan.remade:
        return None
    found = _found(tx, scope, plan, names, at, shortened)
    sources, twins = _listed(plan, found), found.twins
    if not sources:
        return None
    matched = [one.id for at, one in enumerate(plan.matches) if one.spans or at < forbidding.MOST]
    ids = {*sources, *(one for some in sources.values() for one in some), *matched}
    records = reading.several(tx, scope, sorted(ids), None)
    given = records | {
        one: regenerating.anew(records[one], version.draft.text)
        for one, version in shortened.items()
        if one in records
    }
    left = {one for some in sources.values() for one in some}.difference(sources)
    kept = [given[one].text for one in sorted(left)]
    gone = forbidding.needles(plan, records, kept, region)
    return Job(plan.digest, sources, twins, given, holding(gone, region), found.replies)


def _listed(plan: Plan, found: _Found) -> Sources:
    """Leave out what the plan did not say would be made anew."""
    said = set(plan.remade)
    kept: Sources = {}
    for id_, some in found.sources.items():
        left = tuple(one for one in some if one not in found.sources or one in kept)
        if id_ in said and (left or any(twin in kept for twin in found.twins[id_])):
            kept[id_] = left
    return kept


def new_versions(
    tx: Tx,
    scope: Scope,
    plan: Plan,
    made: Rebuilds,
    names: Collection[str],
    at: int,
    shortened: Collection[int],
) -> dict[int, Version]:
    """Return, by old id, what takes its place, each after what it is made from.

    Nothing where the plan is no longer the one they were made for, and none for a text of which a
    source is no longer there to be used. `shortened` are matches that have a new version themselves.
    A context may name the old id of a record that has a new version too.
    """
    if not made.texts or made.digest != plan.digest:
        return {}
    found = _found(tx, scope, plan, names, at, shortened)
    texts = _still(made, _listed(plan, found), found.twins)
    stored = expiring.renewed(tx, scope, made.sources, list(texts), at)
    return {
        id_: Version(
            regenerating.draft_of(stored[id_], text, made.holds)
            if id_ in found.replies
            else _draft(stored[id_], text, made),
            [one for one in made.sources[id_] if one not in made.sources or one in texts],
            stored[id_].status,
        )
        for id_, text in texts.items()
    }


def _still(made: Rebuilds, now: Sources, twins: Mapping[int, Collection[int]]) -> dict[int, str]:
    """Return the texts whose sources, and theirs in turn, are what they were when these were made."""
    left: dict[int, str] = {}
    lost: set[int] = set()
    for (
        id_,
        text,
    ) in made.texts.items():  # each after what it is made from, and the first of its twins
        same = now.get(id_) == made.sources[id_]
        if same and lost.isdisjoint(made.sources[id_]) and lost.isdisjoint(twins.get(id_, ())):
            left[id_] = text
        else:
            lost.add(id_)
    return left


def _draft(record: Record, text: str, made: Rebuilds) -> Draft:
    draft = replace(draft_of(record, text, made.holds), payload=record.payload)
    draft = replace(draft, model=made.models.get(record.id, draft.model))
    if derived_by(record.metadata) is None or record.id not in made.versions:
        return draft
    return replace(draft, metadata={**(draft.metadata or {}), VERSION: made.versions[record.id]})


def put_off(
    tx: Tx,
    scope: Scope,
    plan: Plan,
    made: Rebuilds,
    anew: Collection[int],
    names: Collection[str],
    at: int,
    shortened: Collection[int],
) -> Sources:
    """Return the derived records that are to be made anew later, each after what it is made from.

    That is what could not be tried: what failed is erased for good. `anew` has a new version. The
    sources are ids of records that stay, of `anew`, and of others that are put off.
    """
    if not any(derived_by(one.metadata) for one in _asking(tx, scope, plan, at).values()):
        return {}
    found = _found(tx, scope, plan, names, at, shortened)
    tried = made.digest == plan.digest and _listed(plan, found) == made.sources
    done = {*anew, *(made.sources if tried else ())}
    either = found.sources | found.later
    left: Sources = {}
    for id_ in _in_order(either, dict.fromkeys(either, ())):
        kept = tuple(one for one in either[id_] if one in anew or one in left or one not in either)
        if kept and id_ in found.derived and id_ not in done:
            left[id_] = kept
    return left
