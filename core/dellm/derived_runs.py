"""Making derived records anew: what forgets have put off, and what older versions have made.

Each text is made outside of any transaction. The one that stores it looks again whether it is still
wanted, and of the same sources: so a run may end at any point and go on in any process, and two at
once leave one result. What both have made meanwhile is thrown away by the slower one.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from . import derivations, derived_jobs, derived_needles, executing, forget, planning
from .arguments import check_choice
from .database import Scope, Tx
from .engine import Engine
from .making import Derivation, Rebuilder, versions_of
from .plan import STRICT, Plan
from .receipts import Receipt
from .selectors import Look, Selector

WHEN = ("now", "later", "never")
TRIES = 3  # of one job in one run, while its sources change
Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a run of rebuilds did.

    `made` names the new record by the erased one in whose place it stands. `failed` counts attempts
    that made no text, `given_up` the results that are erased for good by that. `pending` are still to
    be made: they failed, or wait for a source or for a process that has their function. `calls` counts
    model calls, failed ones too.
    """

    made: Mapping[int, int] = field(default_factory=dict)
    failed: int = 0
    given_up: int = 0
    pending: int = 0
    calls: int = 0


class _Outcome(Enum):
    MADE = 1
    FAILED = 2
    GIVEN_UP = 3
    WAITS = 4
    GONE = 5


@dataclass(slots=True)
class _Run:
    engine: Engine
    workspace: str
    made: dict[int, int] = field(default_factory=dict)
    calls: int = 0

    def one(self, id_: int) -> _Outcome:
        """Make what a job promises, as often as its sources change while that is done."""
        for _ in range(TRIES):
            outcome = self._attempt(id_)
            if outcome is not None:
                return outcome
        return _Outcome.WAITS

    def _attempt(self, id_: int) -> _Outcome | None:
        at = self.engine.options.clock()
        with self.engine.reading(self.workspace) as (tx, scope):
            job = derived_jobs.load(tx, scope.ws, id_)
            sources = None if job is None else derived_jobs.sources_of(tx, scope, job, at)
        if job is None:
            return _Outcome.GONE
        maker = _maker(self.engine, job)
        if sources is None or maker is None:
            return _Outcome.WAITS
        made, error = derivations.attempted(maker, sources) if sources else derived_jobs.NO_SOURCE
        self.calls += made.calls
        region = self.engine.options.region
        if made.text is not None and derived_needles.carries(scope, made.text, job.needles, region):
            made, error = replace(made, text=None), "forgotten value"
        with self.engine.writing(self.workspace, durable=True) as (tx, scope):
            forget.lock(tx, scope.ws)
            again = derived_jobs.load(tx, scope.ws, id_)
            same = again is not None and derived_jobs.sources_of(tx, scope, again, at) == sources
            if made.text is None or not same:
                derivations.note_lost(tx, scope, maker, sources, at)
            if again is None or not same:
                return None if again else _Outcome.GONE
            if made.text is None:
                given_up = derived_jobs.fail(
                    tx, scope.ws, again, error, made.calls, at, last=not sources
                )
                return _Outcome.GIVEN_UP if given_up else _Outcome.FAILED
            new = derived_jobs.finish(tx, scope, again, maker, made.text, sources, made.calls, at)
        self.made[id_] = new.id
        return _Outcome.MADE


def _maker(engine: Engine, job: derived_jobs.Promise) -> Derivation | None:
    """Return the function that may make what a job promises: none older than what made it before."""
    found = engine.rebuilders.get(job.name)
    newest = isinstance(found, Derivation) and found.version >= job.version
    return found if isinstance(found, Derivation) and newest else None


def rederive(engine: Engine, workspace: str, name: str, progress: Progress | None) -> Rebuilt:
    """Make anew what older versions of a derivation made; see Memory.rederive."""
    with engine.reading(workspace) as (tx, scope):
        maker = derivations.registered(engine, name)
        at = engine.options.clock()
        older = derivations.of_older_versions(tx, scope, maker, at)
    made: dict[int, int] = {}
    failed = calls = 0
    for done, id_ in enumerate(older, 1):
        receipt, tried = _renewed(engine, workspace, id_)
        calls += tried
        if receipt is not None:
            made |= receipt.rebuilt
        elif tried:
            failed += 1
        if progress is not None:
            progress(done, len(older))
    with engine.reading(workspace) as (tx, scope):
        left = derivations.of_older_versions(tx, scope, maker, engine.options.clock())
    return Rebuilt(made, failed, 0, len(left), calls)


def _renewed(engine: Engine, workspace: str, id_: int) -> tuple[Receipt | None, int]:
    """Make one record anew, by a forget of it that takes what was made of it along."""
    options = engine.options
    look = Look(options.region, options.clock())
    terms = forget.Terms(
        look,
        options.repeat_for,
        engine.database.out_of_reach(),
        rebuilders=versions_of(engine.rebuilders),
        providers=options.providers,
    )

    def planned(tx: Tx, scope: Scope) -> Plan:
        return planning.make(
            tx, scope, Selector(ids=(id_,), renewed=True), look, reach=STRICT, suspects=False,
            shown=False, rebuilders=terms.rebuilders,
        )  # fmt: skip

    calls = 0
    for _ in range(TRIES):
        receipt, tried, stale = executing.renew(engine, workspace, planned, terms, id_)
        calls += tried
        if receipt is not None:
            engine.listeners.tell(receipt)
        if not stale:
            return receipt, calls
    return None, calls


def to_be_used(engine: Engine, rebuild: str) -> dict[str, Rebuilder]:
    """Return the functions that a forget is to use at once, by name; InvalidInput for another choice.

    What a function registered as a plain rebuilder makes cannot be put off.
    """
    check_choice(rebuild, WHEN, "rebuild=")
    known = dict(engine.rebuilders)
    if rebuild == "now":
        return known
    plain = {name: one for name, one in known.items() if not isinstance(one, Derivation)}
    return plain if rebuild == "later" else {}


def rebuild(engine: Engine, workspace: str, progress: Progress | None) -> Rebuilt:
    """Make what forgets have put off, each after what it is made from; see Memory.rebuild."""
    with engine.reading(workspace) as (tx, scope):
        left = derived_jobs.listed(tx, scope.ws)
    # Several processes begin at different ones, so that few texts are made twice.
    start = secrets.randbelow(len(left) or 1)
    left = left[start:] + left[:start]
    run, total = _Run(engine, workspace), len(left)
    outcomes: dict[int, _Outcome] = {}
    moved = True
    while moved:
        moved = False
        for id_ in [one for one in left if outcomes.get(one, _Outcome.WAITS) is _Outcome.WAITS]:
            outcomes[id_] = run.one(id_)
            if outcomes[id_] is not _Outcome.WAITS:
                moved = True
                if progress is not None:
                    progress(sum(one is not _Outcome.WAITS for one in outcomes.values()), total)
    with engine.reading(workspace) as (tx, scope):
        pending = len(derived_jobs.listed(tx, scope.ws))
    ends = list(outcomes.values())
    failed = ends.count(_Outcome.FAILED) + ends.count(_Outcome.GIVEN_UP)
    return Rebuilt(run.made, failed, ends.count(_Outcome.GIVEN_UP), pending, run.calls)
