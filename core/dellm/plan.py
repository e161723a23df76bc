"""The preview of a forget: what goes, why, by which path, and what does not. Pure values.

A plan changes nothing. It is binding: it carries the ledger head it was made at and a digest of
what it says, and forget(plan) refuses when the memory no longer gives the same answer. Its JSON
holds ids and reasons, no content, so that it may be kept at rest (invariant I7); the tree that
`print(plan)` shows does hold the beginning of each record, for the user to recognise it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from . import provenance
from .arguments import check_choice, check_number, check_text, check_whole, whole_numbers
from .disclosures import Disclosure
from .errors import InvalidInput
from .records import Edge
from .selectors import Match, Selector

if TYPE_CHECKING:
    import rustworkx

    from .governed import Governed

MODES = ("erase", "suppress", "redact")
ON_DEPENDENTS = ("erase", "regenerate")  # what becomes of the replies among what goes
EXCERPT = 200  # characters of a record that a plan shows


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a forget follows G (paper, section III-B).

    "strict": all of Dep(M). "depth": at most `limit` replies away from a match. "influence": only those
    with a share `limit` of own words that can come from what goes. "expiry": see expiry.EXPIRY.
    """

    kind: str = "strict"
    limit: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}({self.limit:g})" if self.kind in {"depth", "influence"} else self.kind

    @property
    def relaxed(self) -> bool:
        """Whether less than Dep(M) may go."""
        return self.kind != "strict"


STRICT = Reach()


def in_process(model: str) -> bool:
    """Whether a record's model, "provider/name", is one that runs in this process."""
    return model.startswith("local/")


def depth(hops: int) -> Reach:
    """Return the reach of at most `hops` replies: 0 only what matched, 1 what saw it directly."""
    check_whole(hops, "A depth")
    if hops < 0:
        raise InvalidInput("A depth is zero or more.")
    return Reach("depth", hops)


def influence(threshold: float) -> Reach:
    """Return the reach that drops dependents whose text shows less influence than the threshold.

    `threshold` is a share in [0, 1] of the dependent's own words.
    """
    check_number(threshold, "An influence threshold")
    if not 0 <= threshold <= 1:
        raise InvalidInput("An influence threshold is between 0 and 1.")
    return Reach("influence", threshold)


def _reach(kind: str, limit: float) -> Reach:
    """Return the reach of a plan's JSON; InvalidInput where there is no such."""
    if kind in {"strict", "expiry"}:
        return Reach(kind)
    check_choice(kind, ("depth", "influence"), "reach=")
    return influence(limit) if kind == "influence" else depth(int(limit))


@dataclass(frozen=True, slots=True)
class Entry:
    """What a plan says of one record: where it stands, how it begins, and how it is governed."""

    id: int
    kind: str
    role: str
    thread: str | None
    status: int
    model: str | None
    created_at: int
    excerpt: str = field(repr=False)
    governed: Governed | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Dependent:
    """A record tainted by a match; `trace` is one shortest path of record ids from the match to it."""

    id: int
    trace: tuple[int, ...]
    copy: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A reply that a model is asked for again, without what goes; `trace` as of a dependent.

    `calls` are the model calls that takes, 0 where the same reply is asked for already, and `tokens`
    an estimate of what they send: one for every four characters.
    """

    id: int
    trace: tuple[int, ...]
    calls: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Spared:
    """A record that a strict forget would take and this one does not, and why."""

    id: int
    why: str


@dataclass(frozen=True, slots=True)
class Held(Spared):
    """A record that a hold keeps, and why. What was asked of it waits: `match` as in the plan.

    That is None of one which would go only because of what it was made from.
    """

    match: Match | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """A record outside Dep(M) that may say the same (paper, section VII-B): shown, not taken."""

    id: int
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a forget would do. Printable as a tree; `to_json` holds no content.

    `rebuilds` are those of its records that are made anew from what stays, where that succeeds, each
    after what it is made from; what they say now goes like all else. `regenerates` are the same for
    replies, where they were to be asked for again. `providers` are those that were sent some of it.
    `above` are records on hold that some of it was made from, which stay as they are.
    """

    workspace: str
    mode: str
    reach: Reach
    selector: Selector = field(repr=False)
    matches: tuple[Match, ...]
    dependents: tuple[Dependent, ...]
    spared: tuple[Spared, ...] = ()
    held: tuple[Held, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    entries: Mapping[int, Entry] = field(default_factory=dict, repr=False)
    edges: tuple[Edge, ...] = field(default=(), repr=False)
    head: str = ""
    version: int = -1
    digest: str = ""
    rebuilds: tuple[Dependent, ...] = ()
    regenerates: tuple[Asked, ...] = ()
    on_dependents: str = "erase"
    providers: tuple[Disclosure, ...] = ()
    above: tuple[Spared, ...] = ()

    @property
    def remade(self) -> frozenset[int]:
        """The records in whose place a new text is to stand."""
        return frozenset([one.id for one in self.rebuilds] + [one.id for one in self.regenerates])

    @property
    def cost(self) -> tuple[int, int]:
        """What asking for the replies again takes: model calls, and an estimate of the tokens sent."""
        return (
            sum(one.calls for one in self.regenerates),
            sum(one.tokens for one in self.regenerates),
        )

    @property
    def ids(self) -> tuple[int, ...]:
        """Every record that goes, ascending."""
        return tuple(sorted({one.id for one in self.matches} | {one.id for one in self.dependents}))

    @property
    def asked(self) -> tuple[Match, ...]:
        """What matched, whether it goes or is on hold, by id."""
        held = (one.match for one in self.held if one.match is not None)
        return tuple(sorted((*self.matches, *held), key=lambda one: one.id))

    @property
    def copies(self) -> tuple[int, ...]:
        """The dependents that hold the same content as what they depend on."""
        return tuple(one.id for one in self.dependents if one.copy)

    @property
    def threads(self) -> tuple[str, ...]:
        """The threads that lose a record, by name."""
        touched = {self.entries[id_].thread for id_ in self.ids if id_ in self.entries}
        return tuple(sorted(name for name in touched if name is not None))

    @property
    def exposures(self) -> dict[str, int]:
        """For each model or provider known to have been sent something that goes: in how many replies.

        Replies that a relaxed reach spares, or a hold keeps, were made from it all the same. A model
        recorded as "local/..." ran in this process: what it saw was sent to nobody.
        """
        counts: dict[str, int] = {}
        kept = [one.id for one in (*self.spared, *self.held)]
        hops = provenance.depths(self.ids, self.edges) if kept else {}
        left = [id_ for id_ in kept if hops.get(id_, 2) <= 1]
        for id_ in (*self.ids, *left):
            entry = self.entries.get(id_)
            if entry is not None and entry.model is not None and not in_process(entry.model):
                counts[entry.model] = counts.get(entry.model, 0) + 1
        return counts

    def __len__(self) -> int:
        """Return the what-if size: how many records go."""
        return len(self.ids)

    def __bool__(self) -> bool:
        return bool(self.matches or self.held)

    def __str__(self) -> str:
        from .preview import tree

        return tree(self)

    def explain(self, id_: int) -> str:
        """Return why a record is in the plan, in one line without content; InvalidInput if it is not."""
        after = "; to be rebuilt" if any(one.id == id_ for one in self.rebuilds) else ""
        if any(one.id == id_ for one in self.regenerates):
            after = "; to be asked again"
        for match in self.matches:
            if match.id == id_:
                return match.reason + after
        for one in self.dependents:
            if one.id == id_:
                return "made from " + " → ".join(str(node) for node in one.trace) + after
        raise InvalidInput(f"Record {id_} is not in this plan.")

    def to_json(self) -> dict[str, Any]:
        """Return the plan without content: ids, reasons, spans, counts, digest."""
        return {
            "workspace": self.workspace,
            "mode": self.mode,
            "reach": [self.reach.kind, self.reach.limit],
            "size": len(self),
            "matches": [
                {"id": one.id, "why": one.reason, "spans": [list(span) for span in one.spans]}
                for one in self.matches
            ],
            "dependents": [
                {"id": one.id, "trace": list(one.trace), "copy": one.copy}
                for one in self.dependents
            ],
            "rebuilt": [{"id": one.id, "trace": list(one.trace)} for one in self.rebuilds],
            "on_dependents": self.on_dependents,
            "regenerated": [
                {"id": one.id, "trace": list(one.trace), "calls": one.calls, "tokens": one.tokens}
                for one in self.regenerates
            ],
            "calls": self.cost[0],
            "tokens": self.cost[1],
            "spared": [{"id": one.id, "why": one.why} for one in self.spared],
            "held": [_held_json(one) for one in self.held],
            "above": [{"id": one.id, "why": one.why} for one in self.above],
            "suspects": [{"id": one.id, "why": one.why} for one in self.suspects],
            "threads": len(self.threads),
            "exposures": self.exposures,
            "providers": [one.to_json() for one in self.providers],
            "relaxed": self.reach.relaxed,
            "head": self.head,
            "digest": self.digest,
            "corrected": sorted(self.selector.corrected),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return a plan kept at rest; it selects its matches by id, since it holds no content.

        Raises InvalidInput when `data` is not a plan's JSON.
        """
        try:
            matches = tuple(map(_match, data["matches"]))
            held = tuple(map(_held, data["held"]))
            every = (*matches, *(one.match for one in held if one.match is not None))
            made = cls(
                workspace=data["workspace"],
                mode=data["mode"],
                reach=_reach(*data["reach"]),
                selector=Selector(matched=every, named=_not_rebuilt(every, data)),
                matches=matches,
                dependents=tuple(
                    Dependent(one["id"], tuple(one["trace"]), one["copy"])
                    for one in data["dependents"]
                ),
                spared=tuple(Spared(one["id"], one["why"]) for one in data["spared"]),
                held=held,
                suspects=tuple(Suspect(one["id"], one["why"]) for one in data["suspects"]),
                head=data["head"],
                digest=data["digest"],
                rebuilds=tuple(
                    Dependent(one["id"], tuple(one["trace"])) for one in data.get("rebuilt", ())
                ),
                regenerates=tuple(
                    Asked(one["id"], tuple(one["trace"]), one["calls"], one["tokens"])
                    for one in data.get("regenerated", ())
                ),
                on_dependents=data.get("on_dependents", "erase"),
                providers=tuple(map(Disclosure.from_json, data.get("providers", ()))),
                above=tuple(Spared(one["id"], one["why"]) for one in data.get("above", ())),
            )
            made._check()
            _refuse_corrected(data)
        except (AttributeError, KeyError, TypeError, ValueError, InvalidInput):
            problem = InvalidInput("This is not the JSON of a plan.")
        else:
            return made
        raise problem

    def _check(self) -> None:
        """Raise InvalidInput where a value read from JSON is none that a plan has."""
        check_choice(self.mode, MODES, "mode=")
        check_choice(self.on_dependents, ON_DEPENDENTS, "on_dependents=")
        for text in (self.workspace, self.head, self.digest, *(one.reason for one in self.matches)):
            check_text(text, "A name, reason or digest")
        beside: list[Spared | Suspect] = [*self.spared, *self.held, *self.suspects]
        beside += self.above
        ids = [one.id for one in self.matches] + [one.id for one in self.dependents]
        made: list[Dependent | Asked] = [*self.rebuilds, *self.regenerates]
        ids += [one.id for one in (*beside, *made)]
        ids += [count for one in self.regenerates for count in (one.calls, one.tokens)]
        steps = [step for one in (*self.dependents, *made) for step in one.trace]
        matched = [*self.matches, *(self.selector.matched or ())]
        places = [place for one in matched for span in one.spans for place in span]
        whole_numbers([*ids, *steps, *places], "a plan")
        for one in beside:
            check_text(one.why, "A reason")

    def graph(self) -> rustworkx.PyDiGraph[int, int]:
        """Return what goes as a rustworkx graph: node payload = id (sequences negative)."""
        nodes = set(self.ids)
        inner = {edge.child for edge in self.edges if edge.child < 0}
        return provenance.graph(nodes | inner, self.edges)


def _match(data: Mapping[str, Any]) -> Match:
    return Match(data["id"], data["why"], tuple((a, b) for a, b in data["spans"]))


def _held_json(one: Held) -> dict[str, Any]:
    said: dict[str, Any] = {"id": one.id, "why": one.why}
    if one.match is not None:
        spans = [list(span) for span in one.match.spans]
        said |= {"match": {"id": one.id, "why": one.match.reason, "spans": spans}}
    return said


def _held(data: Mapping[str, Any]) -> Held:
    match = data.get("match")
    return Held(data["id"], data["why"], None if match is None else _match(match))


def _not_rebuilt(matches: Iterable[Match], data: Mapping[str, Any]) -> tuple[int, ...]:
    rebuilt = {one["id"] for one in (*data.get("rebuilt", ()), *data.get("regenerated", ()))}
    return tuple(one.id for one in matches if one.id not in rebuilt)


def digest_of(
    workspace: str, mode: str, reach: Reach, matches: Iterable[Match], going: Iterable[int]
) -> str:
    """Return the digest of what a plan says: ids and spans only, so it needs no key."""
    said = json.dumps(
        [
            workspace,
            mode,
            reach.kind,
            reach.limit,
            sorted((one.id, one.spans if mode == "redact" else ()) for one in matches),
            sorted(going),
        ]
    )
    return hashlib.sha256(said.encode()).hexdigest()


def refuse_others(
    plan: Plan, mode: str, reach: Reach, on_dependents: str, selection: Mapping[str, Any]
) -> None:
    """Raise InvalidInput for options that say other than the plan they are given with."""
    said = mode in {"erase", plan.mode} and on_dependents in {"erase", plan.on_dependents}
    if selection or not said or reach not in (STRICT, plan.reach):
        raise InvalidInput(
            "A plan already says what goes, how and how far.",
            remedy="Make a new plan with the other options.",
        )


def _refuse_corrected(data: Mapping[str, Any]) -> None:
    """Refuse a plan that was to put something right: its new texts are content, and not kept at rest."""
    if data.get("corrected"):
        raise InvalidInput("The plan was to put a record right.")
