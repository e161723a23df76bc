"""Carrying out a forget as a whole: what is to be rebuilt is made anew first, then all is erased.

The new texts are made between a reading transaction and the writing one, since a model may make
them. When the memory moved meanwhile, so that more or less would go, they are made again, but not
for ever: what could not be rebuilt is erased.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from . import forget, rebuilding, regenerating
from .database import Scope, Tx
from .engine import Engine
from .plan import Plan
from .receipts import Receipt

TRIES = 3

Planned = Callable[[Tx, Scope], Plan]


def rebuild_and_execute(
    engine: Engine, workspace: str, planned: Planned, terms: forget.Terms
) -> Receipt:
    """Do what the plan says that `planned` returns in a transaction; raises as forget.execute."""
    left = TRIES if terms.rebuilders else 1
    calls = 0
    while True:
        left -= 1
        before, made = _rebuilt(engine, workspace, planned, terms)
        calls += made.calls
        with engine.writing(workspace, durable=True) as (tx, scope):
            version = forget.lock(tx, scope.ws)
            # Where nothing was written meanwhile, the plan would come out the same.
            same = before is not None and before.version in {version, version - 1}
            plan = before if before is not None and same else planned(tx, scope)
            if not left or not made.is_stale(plan):
                complete = replace(terms, rebuilds=replace(made, calls=calls))
                return forget.execute(tx, scope, plan, version, complete)


def renew(
    engine: Engine, workspace: str, planned: Planned, terms: forget.Terms, id_: int
) -> tuple[Receipt | None, int]:
    """Do what a plan says if it gives a record a new text; else, or when that is stale, nothing.

    Returns the receipt, None where nothing was done, and how many model calls it took.
    """
    before, made = _rebuilt(engine, workspace, planned, terms)
    if id_ not in made.texts:
        return None, made.calls
    with engine.writing(workspace, durable=True) as (tx, scope):
        version = forget.lock(tx, scope.ws)
        same = before is not None and before.version in {version, version - 1}
        plan = before if before is not None and same else planned(tx, scope)
        if made.is_stale(plan):
            return None, made.calls
        receipt = forget.execute(tx, scope, plan, version, replace(terms, rebuilds=made))
    return receipt, made.calls


def _rebuilt(
    engine: Engine, workspace: str, planned: Planned, terms: forget.Terms
) -> tuple[Plan | None, rebuilding.Rebuilds]:
    """Return the plan as it is now and the new texts for it; no plan where none was needed."""
    names, look = terms.rebuilders, terms.look
    if not names:
        return None, rebuilding.NOTHING
    with engine.reading(workspace) as (tx, scope):
        plan = planned(tx, scope)
        left = regenerating.shortened(tx, scope, plan, terms.unit, look.region)
        job = rebuilding.gather(tx, scope, plan, names, look.at, look.region, left)
    return plan, rebuilding.NOTHING if job is None else job.run(terms.makers(engine.rebuilders))
