"""Executing a plan: what goes is erased, what takes its place is stored, and a receipt says so.

Everything happens in the caller's write transaction, after the workspace's row is locked: the
erasing itself (see erasing.py), the stand-ins, the ledger entry. Either all of it is committed or
nothing is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from . import (
    audiences,
    derivations,
    derived_jobs,
    derived_needles,
    disclosures,
    erasing,
    exposure_rows,
    fact_stand_ins,
    forbidding,
    governed_rows,
    governing,
    guard_values,
    guarding,
    hiding,
    holding,
    item_rows,
    journaling,
    ledger,
    planning,
    rebuilding,
    receipts,
    regenerating,
    repeating,
    stand_ins,
    suppressing,
    surviving,
)
from .database import Scope, Tx
from .errors import HeldRecord, NothingMatched, PlanChanged
from .making import Rebuilder
from .plan import Held, Plan, digest_of
from .policy_values import By
from .providers import SHIPPED, Providers
from .receipts import Receipt
from .redacting import Version
from .remaking import NOTHING, Rebuilds
from .selectors import Look


@dataclass(frozen=True, slots=True)
class Terms:
    """What an execution needs besides the plan: time, phone region, lifetimes, limits to name.

    `rebuilds` are the texts that were made for it, by the functions `rebuilders`; `asker` makes those
    of replies. What cannot be made here is made later where `puts_off` says so. `guard`: whether what
    goes is kept from coming in again; None as the workspace says. `by` is who asked for it, None where
    nobody says. `alone`: the plan is of what matched
    and leaves what was made of it, which it still does for what a hold makes wait.
    """

    look: Look
    repeat_for: int
    out_of_reach: tuple[str, ...]
    unit: str = "span"
    rebuilds: Rebuilds = NOTHING
    rebuilders: Collection[str] = ()
    asker: regenerating.Asker | None = None
    providers: Providers = SHIPPED
    puts_off: bool = True
    guard: bool | None = None
    by: By | None = None
    alone: bool = False

    def makers(self, known: Mapping[str, Rebuilder]) -> dict[str, Rebuilder]:
        """Return what makes texts, by name: the functions registered, and what asks for replies again."""
        return {**known} if self.asker is None else {**known, regenerating.REPLY: self.asker}


def lock(tx: Tx, ws: int) -> int:
    """Keep every other writer out of the workspace until the transaction ends; return its version.

    Comes before the plan is made or checked, so that nothing moves between the two.
    """
    row = tx.one(
        "update workspace set version = version + 1, generation = generation + 1 "
        "where ws = :ws returning version",
        ws=ws,
    )
    return 0 if row is None else int(row[0])


def execute(tx: Tx, scope: Scope, plan: Plan, version: int, terms: Terms) -> Receipt:
    """Do what the plan says, or return the receipt of the time it was done before.

    `version` is the locked workspace's. Raises PlanChanged when the memory no longer gives the
    plan's answer, NothingMatched for an empty plan that was never executed. What a hold keeps waits
    for its end: a receipt of no record says so, where that is all of it. HeldRecord for one that was
    to be put right: what it is to say cannot wait.
    """
    if plan.workspace != scope.name:
        raise PlanChanged("The plan is of another workspace.")
    waited = derived_jobs.drop_named(tx, scope.ws, plan.selector) if plan.mode == "erase" else None
    if (before := repeating.receipt_of(tx, scope, plan)) is not None:
        return before
    if digest_of(plan.workspace, plan.mode, plan.reach, plan.matches, plan.ids) != plan.digest:
        raise PlanChanged("The plan was altered after it was made.")
    if plan.version not in {version, version - 1}:
        plan = _again(tx, scope, plan, terms.look)
    if not plan.ids and waited is not None:  # all of it was erased before, and will not come back
        return receipts.read(tx, scope.ws, scope.name, waited)
    if put_right := [one.id for one in plan.held if one.id in plan.selector.corrected]:
        raise HeldRecord(f"Record {put_right[0]} is on hold and cannot be changed.", ids=put_right)
    if not plan.ids and not plan.held:
        raise NothingMatched("No record matches.")
    if not plan.ids and (number := _refused(tx, scope, plan, terms)) is not None:
        return receipts.read(tx, scope.ws, scope.name, number)
    if plan.mode != "suppress":
        role = None if scope.asking is None else scope.asking.role
        wanted = [*plan.ids, *(one.id for one in plan.held)]
        governing.require_erasable(tx, scope, wanted, terms.by or By(role=role))
    return carry_out(tx, scope, plan, terms)


def _again(tx: Tx, scope: Scope, plan: Plan, look: Look) -> Plan:
    """Return the plan as it comes out now; PlanChanged when it says anything else."""
    now = planning.make(
        tx,
        scope,
        plan.selector,
        look,
        mode=plan.mode,
        reach=plan.reach,
        suspects=False,
        shown=False,
    )
    if now.digest != plan.digest:
        raise PlanChanged(
            f"The plan took {len(plan)} record(s); now it would take {len(now)}, or other ones."
        )
    return replace(now, rebuilds=plan.rebuilds, regenerates=plan.regenerates)


def carry_out(tx: Tx, scope: Scope, plan: Plan, terms: Terms) -> Receipt:
    """Do what a plan says that was made in this transaction, after the lock; return the receipt."""
    number = ledger.head(tx, scope.ws)[0] + 1
    known = journaling.identities(tx, scope, plan.ids) if scope.journal else {}
    rows: dict[str, int] = {}
    redacted: dict[int, int] = {}
    anew: dict[int, int] = {}
    later: list[int] = []
    seen = exposure_rows.of_records(tx, scope.ws, plan.ids, plan.edges)
    values = _guarded_values(tx, scope, plan, terms)
    if plan.mode == "suppress":
        rows = suppressing.suppress(tx, scope, plan, number, terms.look.at)
    elif plan.ids:
        rows, redacted, anew, later = _replace(tx, scope, plan, number, terms)
        # What is left of a redacted record was sent as well.
        left = {new: seen[old] for old, new in redacted.items() if old in seen}
        exposure_rows.put(tx, scope.ws, left)
        exposure_rows.anew(tx, scope.ws, anew.values(), terms.look.at)
        regenerating.note_lost(tx, scope, terms.asker, anew, terms.look.at)
    guarded = guarding.keep(tx, scope, values, number, terms.look.at) if values else (0, None)
    body = {
        "ids": list(plan.ids),
        "matched": len(plan.matches),
        "reach": str(plan.reach),
        "relaxed": plan.reach.relaxed,
        "redacted": {str(old): new for old, new in redacted.items()},
        **_made_anew(plan, anew, later, terms),
        "spared": len(plan.spared),
        **_held_back(tx, scope, plan, number, terms),
        "exposures": plan.exposures,
        "providers": [one.to_json() for one in disclosures.disclosed(seen, terms.providers)],
        "rows": rows,
        "guarded": guarded[0],
        "guarded_until": guarded[1],
        "out_of_reach": list(terms.out_of_reach),
        "digest": plan.digest,
        **({} if terms.by is None else {"by": terms.by.who}),
    }
    entry = ledger.append(tx, scope.ws, plan.mode, body, terms.look.at)
    if scope.journal is not None:
        journaling.write(scope, scope.journal, entry, known)
    until = terms.look.at + terms.repeat_for
    repeating.remember(tx, scope, plan, entry.seq, terms.look.at, until)
    return receipts.from_entry(entry, scope.name, set())


def _held_back(
    tx: Tx, scope: Scope, plan: Plan, receipt: int, terms: Terms
) -> dict[str, list[int]]:
    """Let what holds keep wait for their end, out of use; return what the receipt says of it."""
    holding.wait(tx, scope.ws, [_waiting(plan, one, receipt, terms) for one in plan.held])
    # Besides, values of caches from which something came that goes.
    ids = sorted({*holding.of_receipt(tx, scope.ws, receipt), *(one.id for one in plan.held)})
    if not ids:
        return {"held": []}
    out, _ = holding.settle(tx, scope.ws, ids)
    if out:
        dead = erasing.reached_sequences(out, plan.edges)
        erasing.kill(tx, scope.ws, dead, terms.look.at, receipt)
    return {"held": ids, "holds": holding.numbers(holding.covering(tx, scope.ws, ids))}


def _refused(tx: Tx, scope: Scope, plan: Plan, terms: Terms) -> int | None:
    """Return the receipt by which all that a plan holds back waits already, None if some does not."""
    waits = [_waiting(plan, one, 0, terms) for one in plan.held]
    number = holding.refused_before(tx, scope.ws, waits)
    return number if number and ledger.entry(tx, scope.ws, number) else None


def _waiting(plan: Plan, one: Held, receipt: int, terms: Terms) -> holding.Waiting:
    alone = terms.alone or plan.reach.relaxed
    spans = one.match.spans if one.match is not None else ()
    # What is redacted is only what matched; what was made of it goes as a whole.
    mode = "erase" if plan.mode == "redact" and not spans else plan.mode
    return holding.Waiting(one.id, mode, alone, spans if mode == "redact" else (), receipt)


def _guarded_values(tx: Tx, scope: Scope, plan: Plan, terms: Terms) -> list[tuple[str, str]]:
    """Return what is to be kept from coming in again, nothing where no guard is wanted."""
    wanted = terms.guard
    if wanted is None:
        row = tx.one("select guards_always from workspace where ws = :ws", ws=scope.ws)
        wanted = row is not None and bool(row[0])
    if not wanted or plan.mode == "suppress":
        return []
    return guard_values.values_of(tx, scope, plan, terms.look.region)


def _made_anew(
    plan: Plan, anew: Mapping[int, int], later: Collection[int], terms: Terms
) -> dict[str, object]:
    """Return what a receipt says of what was made anew: new ids by old, failures, calls for replies."""
    replies = {one.id for one in plan.regenerates}
    rebuilt = {str(old): new for old, new in anew.items() if old not in replies}
    regenerated = {str(old): new for old, new in anew.items() if old in replies}
    asked = 0 if terms.asker is None else terms.asker.calls
    return {
        "rebuilt": rebuilt,
        "not_rebuilt": len({one.id for one in plan.rebuilds}.difference(later)) - len(rebuilt),
        "pending": sorted(later),
        "rebuild_calls": terms.rebuilds.calls - asked,
        "regenerated": regenerated,
        "not_regenerated": len(replies) - len(regenerated),
        "regenerate_calls": asked,
    }


def _replace(
    tx: Tx, scope: Scope, plan: Plan, receipt: int, terms: Terms
) -> tuple[dict[str, int], dict[int, int], dict[int, int], list[int]]:
    """Erase, and store what takes the place of some.

    Returns rows by table; by old id what was redacted and what was made anew; what is put off.
    """
    at = terms.look.at
    versions = regenerating.shortened(tx, scope, plan, terms.unit, terms.look.region)
    short = dict(versions)
    anew = rebuilding.new_versions(tx, scope, plan, terms.rebuilds, terms.rebuilders, at, short)
    later = _put_off(tx, scope, plan, terms, anew.keys(), short)
    versions |= regenerating.named(anew, plan, terms.asker)
    versions = governed_rows.inherited(tx, scope.ws, versions)
    versions = audiences.inherited(tx, scope.ws, versions)
    left = surviving.contexts(tx, scope, plan, versions)
    stood = stand_ins.places(tx, scope.ws, plan, list(versions)) if versions else []
    named = item_rows.standing(tx, scope.ws, list(versions)) if versions else []
    facts = (
        fact_stand_ins.standing(tx, scope.ws, list(versions)) if versions else fact_stand_ins.NONE
    )
    threads = derived_jobs.threads_of(tx, scope.ws, plan)
    rows = erasing.erase(tx, scope, plan, receipt, at)
    made = stand_ins.store(tx, scope, versions, plan.edges, at)
    stand_ins.put_back(tx, scope.ws, stood, made)
    item_rows.stand_in(tx, scope.ws, named, made)
    fact_stand_ins.stand_in(tx, scope, facts, made)
    surviving.attach(tx, scope, left, made)
    hiding.settle(tx, scope.ws, plan.ids, made)
    derivations.rename(tx, scope, [made[old] for old in anew])
    remade = {old: made[old] for old in anew}
    derived_jobs.write(tx, scope.ws, later, receipt)
    derived_jobs.follow(tx, scope.ws, plan, made, threads, receipt)
    audiences.prune(tx, scope.ws)
    return rows, {old: new for old, new in made.items() if old not in anew}, remade, [*later]


def _put_off(
    tx: Tx,
    scope: Scope,
    plan: Plan,
    terms: Terms,
    anew: Collection[int],
    shortened: Mapping[int, Version],
) -> dict[int, derived_jobs.Promise]:
    """Return what is to be made anew later, by old id, with what must be known of it then."""
    if not terms.puts_off:
        return {}
    left = rebuilding.put_off(
        tx, scope, plan, terms.rebuilds, anew, terms.rebuilders, terms.look.at, shortened
    )
    if not left:
        return {}
    needles = forbidding.forbidden(tx, scope, plan, left, shortened, terms.look.region)
    return derived_jobs.promised(tx, scope, plan, left, derived_needles.digests(scope, needles))
