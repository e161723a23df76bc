"""Carrying out a forget as a whole: what is to be rebuilt is made anew first, then all is erased.

The new texts are made between a reading transaction and the writing one, since a model may make
them. When the memory moved meanwhile, so that more or less would go, they are made again, but not
for ever: what could not be rebuilt is erased.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from . import forget, holding, rebuilding, regenerating, remaking, storing
from .database import Scope, Tx
from .engine import Engine
from .errors import HeldRecord, NothingMatched, PlanChanged
from .plan import Plan
from .receipts import Receipt

TRIES = 3

Planned = Callable[[Tx, Scope], Plan]


def rebuild_and_execute(
    engine: Engine, workspace: str, planned: Planned, terms: forget.Terms
) -> Receipt:
    """Do what the plan says that `planned` returns in a transaction; raises as forget.execute."""
    sent: remaking.Sent = []
    try:
        return _executed(engine, workspace, planned, terms, sent)
    except (PlanChanged, NothingMatched):
        _note(engine, workspace, terms, sent)
        raise
    except HeldRecord as error:
        with engine.writing(workspace, durable=True) as (tx, scope):
            storing.lock(tx, scope.ws)
            holding.note(tx, scope.ws, error.ids, terms.look.at)
        raise


def _executed(
    engine: Engine, workspace: str, planned: Planned, terms: forget.Terms, sent: remaking.Sent
) -> Receipt:
    left = TRIES if terms.rebuilders else 1
    calls = 0
    while True:
        left -= 1
        before, made = _rebuilt(engine, workspace, planned, terms, sent)
        calls += made.calls
        with engine.writing(workspace, durable=True) as (tx, scope):
            version = forget.lock(tx, scope.ws)
            # Where nothing was written meanwhile, the plan would come out the same.
            same = before is not None and before.version in {version, version - 1}
            plan = before if before is not None and same else planned(tx, scope)
            if not left or not made.is_stale(plan):
                complete = replace(terms, rebuilds=replace(made, calls=calls))
                receipt = forget.execute(tx, scope, plan, version, complete)
                remaking.note_sent(tx, scope, sent, receipt.rebuilt, terms.look.at)
                return receipt


def renew(
    engine: Engine, workspace: str, planned: Planned, terms: forget.Terms, id_: int
) -> tuple[Receipt | None, int, bool]:
    """Do what a plan says if it gives a record a new text; else, or when that is stale, nothing.

    Returns the receipt, None where nothing was done, how many model calls it took, and whether the
    text was stale.
    """
    sent: remaking.Sent = []
    before, made = _rebuilt(engine, workspace, planned, terms, sent)
    with engine.writing(workspace, durable=True) as (tx, scope):
        version = forget.lock(tx, scope.ws)
        same = before is not None and before.version in {version, version - 1}
        plan = before if before is not None and same else planned(tx, scope)
        stale = made.is_stale(plan)
        if id_ not in made.texts or stale:
            remaking.note_sent(tx, scope, sent, {}, terms.look.at)
            return None, made.calls, stale
        receipt = forget.execute(tx, scope, plan, version, replace(terms, rebuilds=made))
        remaking.note_sent(tx, scope, sent, receipt.rebuilt, terms.look.at)
    return receipt, made.calls, False


def _note(engine: Engine, workspace: str, terms: forget.Terms, sent: remaking.Sent) -> None:
    """Note what outside models were sent for a forget that was not carried out."""
    with engine.writing(workspace) as (tx, scope):
        storing.lock(tx, scope.ws)
        remaking.note_sent(tx, scope, sent, {}, terms.look.at)
        regenerating.note_lost(tx, scope, terms.asker, (), terms.look.at)


def _rebuilt(
    engine: Engine, workspace: str, planned: Planned, terms: forget.Terms, sent: remaking.Sent
) -> tuple[Plan | None, remaking.Rebuilds]:
    """Return the plan as it is now and the new texts for it; no plan where none was needed.

    Adds to `sent` what outside models were given for them.
    """
    names, look = terms.rebuilders, terms.look
    if not names:
        return None, remaking.NOTHING
    with engine.reading(workspace) as (tx, scope):
        plan = planned(tx, scope)
        left = regenerating.shortened(tx, scope, plan, terms.unit, look.region)
        job = rebuilding.gather(tx, scope, plan, names, look.at, look.region, left)
    if job is None:
        return plan, remaking.NOTHING
    made = job.run(terms.makers(engine.rebuilders))
    sent += job.sent
    return plan, made
