"""Choosing what goes into a prompt: candidates → rank → budget → Context.

Fewer and better records in a prompt mean a smaller Dep later (paper, section IV): the default is
the top few by meaning above the embedder's own threshold, not the last n messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from . import fact_rows, provenance, reading, search
from .arguments import check_callable, check_choice, check_number, check_whole
from .database import Filter, Scope, Tx, Vector
from .encoding import encode
from .errors import InvalidInput
from .records import Chosen, Context, Record

NEAR = 0.02  # cosines (or shares of the best score) this close count as equal
DEP_CAP = 1_000  # a Dep larger than this is simply "large"

# The paper's prompt (section VI-B).
PAST = "Here are past conversations between you and the user"
TASK = "Reply to the user's query based on past conversation"

Counter = Callable[[str], int]


def estimated_tokens(text: str) -> int:
    """Return an estimate of the tokens in `text`: one for every four characters, rounded up."""
    return math.ceil(len(text) / 4)


@dataclass(frozen=True, slots=True)
class Choice:
    """How a context is chosen.

    `k`: at most so many records by relevance. `threshold`: least cosine in [-1, 1] (None: the
    embedder's own). `last`: the newest n records of the thread, taken besides. `by`: "meaning",
    "keyword" or "both". `scope`: search the whole "workspace" or only the "thread". `budget`: most
    tokens in all, as counted by `count`. `without`: ids that must not be chosen.
    """

    k: int = 5
    threshold: float | None = None
    last: int = 0
    by: str = "meaning"
    scope: str = "workspace"
    budget: int | None = None
    count: Counter = estimated_tokens
    without: frozenset[int] = frozenset()

    def check(self) -> None:
        """Raise InvalidInput for a choice that makes no sense."""
        check_choice(self.by, ("meaning", "keyword", "both"), "by=")
        check_choice(self.scope, ("workspace", "thread"), "scope=")
        check_callable(self.count, "count=")
        for name, number in (("k", self.k), ("last", self.last), ("budget", self.budget)):
            if number is not None or name != "budget":
                check_whole(number, f"{name}=")
        if self.threshold is not None:
            check_number(self.threshold, "threshold=")
        if self.k < 0 or self.last < 0 or (self.budget is not None and self.budget < 0):
            raise InvalidInput("k=, last= and budget= are zero or more.")


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: the text, its vector where meaning counts, and the embedder's threshold."""

    text: str
    vector: Vector | None
    threshold: float


def choose(
    tx: Tx, scope: Scope, query: Query, thread: str | None, choice: Choice, at: int
) -> Context:
    """Return the context for a query, in the order of the conversation.

    Filtered before ranking: nothing erased, suppressed, quarantined or expired is a candidate.
    """
    if choice.scope == "thread" and thread is None:
        raise InvalidInput('scope="thread" needs thread=.')
    recent = _recent(tx, scope, thread, choice, at)
    limit_to = encode(thread) if choice.scope == "thread" and thread is not None else None
    taken = frozenset(one.record.id for one in recent)
    keep = Filter(at=at, thread=limit_to, without=choice.without | taken)
    relevant = _relevant(tx, scope, query, choice, keep)
    kept = _within(choice, [*relevant, *reversed(recent)])
    ordered = sorted(kept, key=lambda one: (one.record.place, one.record.id))
    return Context(query.text, tuple(ordered), scope.name, thread)


def _recent(tx: Tx, scope: Scope, thread: str | None, choice: Choice, at: int) -> list[Chosen]:
    if not choice.last or thread is None:
        return []
    last = choice.last + len(choice.without)
    found = reading.thread(tx, scope, thread, at, last=last, among="kept")
    usable = [record for record in found if record.id not in choice.without][-choice.last :]
    total = len(usable)
    return [
        Chosen(record, None, f"recent: {total - index} from the end of the thread")
        for index, record in enumerate(usable)
    ]


def _relevant(tx: Tx, scope: Scope, query: Query, choice: Choice, keep: Filter) -> list[Chosen]:
    hits, why = _ranked(tx, scope.ws, query, choice, keep)
    over = fact_rows.past(tx, scope.ws, [id_ for id_, _ in hits], keep.at) if hits else ()
    hits = [hit for hit in hits if hit[0] not in over]
    if not hits:
        return []
    best = _cheapest_among_equals(tx, scope.ws, hits, choice.k, absolute=choice.by == "meaning")
    records = reading.several(tx, scope, [id_ for id_, _ in best], keep.at)
    return [
        Chosen(records[id_], score, f"{why} {score:.3f}") for id_, score in best if id_ in records
    ]


def _ranked(tx: Tx, ws: int, query: Query, choice: Choice, keep: Filter) -> tuple[search.Hits, str]:
    wanted = choice.k + 8 if choice.k else 0
    if choice.by == "keyword":
        return search.by_keyword(tx, ws, query.text, wanted, keep), "keyword: bm25"
    threshold = query.threshold if choice.threshold is None else choice.threshold
    vector = query.vector
    near = [] if vector is None else search.by_meaning(tx, ws, vector, wanted, threshold, keep)
    if choice.by == "meaning":
        return near, "meaning: cosine"
    words = search.by_keyword(tx, ws, query.text, wanted, keep)
    return search.fused((near, words), wanted), "meaning and keyword: fused"


def _cheapest_among_equals(
    tx: Tx, ws: int, hits: search.Hits, k: int, *, absolute: bool
) -> search.Hits:
    """Return the best k; where near-equals compete for the last places, those that taint least.

    Originals before replies (a reply brings its sources' taint along), then the smaller Dep.
    """
    if len(hits) <= k or k < 1:
        return hits[:k]
    margin = NEAR if absolute else NEAR * abs(hits[0][1])
    edge = hits[k - 1][1]
    sure = [hit for hit in hits if hit[1] > edge + margin]
    rivals = [hit for hit in hits if abs(hit[1] - edge) <= margin]
    if len(sure) + len(rivals) <= k:
        return hits[:k]
    ids = [id_ for id_, _ in rivals]
    derived = {edge.child for edge in provenance.edges_into(tx, ws, ids)}
    costs = dict.fromkeys(ids, 1)
    for id_ in provenance.with_dependents(tx, ws, ids):
        costs[id_] = provenance.count_dependents(tx, ws, id_, DEP_CAP)
    rivals.sort(key=lambda hit: (hit[0] in derived, costs[hit[0]], -hit[1], hit[0]))
    return [*sure, *rivals[: k - len(sure)]]


def _within(choice: Choice, chosen: Sequence[Chosen]) -> list[Chosen]:
    """Return what fits the budget, the most relevant first; what does not fit is passed over."""
    if choice.budget is None:
        return list(chosen)
    left = choice.budget
    kept: list[Chosen] = []
    for one in chosen:
        cost = choice.count(one.record.text)
        if cost <= left:
            kept.append(one)
            left -= cost
    return kept


def prompt(query: str, records: Iterable[Record]) -> str:
    """Return the paper's prompt (section VI-B) for a query and the records chosen for it."""
    past = "\n".join(f"{record.role}: {record.text}" for record in records)
    return f"{PAST}:\n{past}\n\n{TASK}:\n{query}" if past else f"{TASK}:\n{query}"
