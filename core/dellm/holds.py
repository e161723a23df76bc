"""Legal holds as their keeper sees them: placing, listing, releasing. Reached as `memory.holds`.

What they do to records is in holding; that no forget gets past them, in erasing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from . import (
    concerns,
    erasing,
    forget,
    holding,
    item_rows,
    ledger,
    planning,
    policies,
    provenance,
    receipts,
    scrub,
    storing,
    values,
)
from .arguments import check_flag, check_text, check_whole, whole_numbers
from .database import Row, Scope, Tx
from .encoding import encode
from .engine import Engine
from .errors import InvalidInput, NotFound, StorageError
from .governance import ASKERS
from .holding import Waiting
from .plan import STRICT, depth
from .receipts import Receipt
from .records import from_micros
from .selectors import Look, Match, Selector

_REFERENCE = re.compile(r"[\w .,:/#@+-]{1,80}")


@dataclass(frozen=True, slots=True)
class Hold:
    """A legal hold: what it covers, on what basis, by whom, since when, and until when if it is over.

    `kind` is "ids", "subject", "thread" or "workspace"; `ids` are the records that it names or that
    hold the same as one it covers; `target` is the subject or thread, not kept once it is released.
    `records` counts what it covers now.
    """

    number: int
    kind: str
    basis: str
    by: str
    placed_at: datetime
    released_at: datetime | None = None
    target: str | None = None
    ids: tuple[int, ...] = ()
    records: int = 0


class Holds:
    """The legal holds of a workspace; call it for a list. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.holds instead."""
        self._engine = engine.overseeing  # a hold covers what its keeper may not read, too
        self.workspace = workspace

    def __call__(self, *, released: bool = False) -> list[Hold]:
        """Return the open holds by number; with `released` also those that are over."""
        check_flag(released, "released=")
        with self._engine.reading(self.workspace) as (tx, scope):
            rows = tx.all(
                f"{_HOLDS} and (released_at is null or :all = 1) order by id",
                ws=scope.ws,
                all=int(released),
            )
            return [_hold(tx, scope, row) for row in rows]

    def place(
        self,
        *,
        basis: str,
        by: str,
        ids: Sequence[int] | None = None,
        subject: str | None = None,
        thread: str | None = None,
        everything: bool = False,
    ) -> Hold:
        """Keep records from being erased by anybody until the hold is released; return it.

        One of `ids`, a `subject` (whatever its case), a `thread` or `everything` in the workspace. What is there now is out of every read as well; what comes in later under the
        subject or thread stays in use until somebody asks to forget it. `basis` refers to the case,
        and `by` to who asked: short, and without content, since the audit chain keeps them for good.
        Raises NotFound for an id that is not there, PolicyRefused (`by` is a tool, a document or a
        model, whose words are nobody's wish), InvalidInput.
        """
        kind, target = _target(ids, subject, thread, everything)
        _check_reference(basis, "basis=", target)
        _check_reference(by, "by=", target)
        self._require(by)
        named = [] if ids is None else sorted(set(whole_numbers(ids, "ids=")))
        at = self._engine.options.clock()
        with self._engine.writing(self.workspace, durable=True) as (tx, scope):
            forget.lock(tx, scope.ws)
            number = _write(tx, scope, kind, target, basis, by, at)
            covered = _name(tx, scope, number, named)
            out, _ = holding.settle(tx, scope.ws, covered)
            edges = provenance.edges_from(
                tx, scope.ws, provenance.dependents(tx, scope.ws, out) if out else []
            )
            said = {"hold": number, "kind": kind, "basis": basis, "by": by, "records": len(covered)}
            entry = ledger.append(tx, scope.ws, "hold", {**said, "ids": named}, at)
            erasing.kill(tx, scope.ws, erasing.reached_sequences(out, edges), at, entry.seq)
            return _hold(tx, scope, _row(tx, scope, number))

    def release(self, number: int, *, by: str = "") -> list[Receipt]:
        """End a hold: carry out what waited for that alone, and give the rest back to use.

        Returns a receipt for each kind of forget that is carried out; none where nothing waited. What
        another hold covers as well stays as it is. The subject or thread that the hold named is not
        kept. Raises NotFound for a number that is no open hold's, PolicyRefused, InvalidInput.
        """
        check_whole(number, "The hold's number")
        if by:
            _check_reference(by, "by=", None)
            self._require(by)
        made: list[Receipt] = []
        with self._engine.writing(self.workspace, durable=True) as (tx, scope):
            forget.lock(tx, scope.ws)
            at = self._engine.options.clock()
            covered = _end(tx, scope, number, at)
            waited = holding.free(tx, scope.ws)
            _, back = holding.settle(tx, scope.ws, {*covered, *(one.id for one in waited)})
            wanted = {one.id for one in waited}
            body = {
                "hold": number,
                "by": by,
                "waited": sorted(wanted),
                "back": [one for one in back if one not in wanted],
            }
            ledger.append(tx, scope.ws, "release", body, at)
            terms = self._terms(at)
            replaced = [one.id for one in waited if one.mode == holding.REPLACE]
            _empty(tx, scope.ws, replaced, at)
            for mode, alone in sorted({(one.mode, one.alone) for one in waited}):
                some = [one for one in waited if (one.mode, one.alone) == (mode, alone)]
                if mode != holding.REPLACE:
                    made += _carry_out(tx, scope, some, terms)
        for receipt in made:
            self._engine.listeners.tell(receipt)
        return self._after(made)

    def _after(self, made: Sequence[Receipt]) -> list[Receipt]:
        """Clean small files as a forget does; return the receipts with the levels reached by then."""
        engine = self._engine
        values.let_go()
        if made and engine.database.cleans_at_once(engine.options.scrub_below):
            with suppress(StorageError):  # what breaks off goes on with the next scrub
                scrub.scrub(engine, self.workspace, None)
        with engine.reading(self.workspace) as (tx, scope):
            return [receipts.read(tx, scope.ws, scope.name, one.number) for one in made]

    def waiting(self) -> list[int]:
        """Return the records that somebody asked to forget and that wait for the end of a hold."""
        with self._engine.reading(self.workspace) as (tx, scope):
            return [one.id for one in holding.listed(tx, scope.ws)]

    def _require(self, by: str) -> None:
        """Raise PolicyRefused for what came out of a tool, a document or a model."""
        if by in ASKERS:
            policies.Policies(self._engine, self.workspace).require("hold", by)

    def _terms(self, at: int) -> forget.Terms:
        options = self._engine.options
        look = Look(options.region, at)
        far = self._engine.database.out_of_reach()
        return forget.Terms(look, options.repeat_for, far, providers=options.providers)


# placing


def _target(
    ids: Sequence[int] | None, subject: str | None, thread: str | None, everything: bool
) -> tuple[str, str | None]:
    """Return the kind of a hold and the name it is of; InvalidInput unless it is of one thing."""
    check_flag(everything, "everything=")
    said = [ids is not None, subject is not None, thread is not None, everything]
    if sum(said) != 1:
        raise InvalidInput("A hold is of one thing: ids=, subject=, thread= or everything=True.")
    if ids is not None and not whole_numbers(ids, "ids="):
        raise InvalidInput("ids= is empty.")
    storing.check_thread(thread)
    if subject is not None:
        check_text(subject, "subject=")
        if not subject.strip():
            raise InvalidInput("subject= is empty.")
    return holding.KINDS[said.index(True)], subject if subject is not None else thread


def _check_reference(said: str, name: str, target: str | None) -> None:
    """Raise InvalidInput for what is no short reference, or says whom or what the hold is of."""
    if not isinstance(said, str) or not _REFERENCE.fullmatch(said) or not said.strip():
        raise InvalidInput(f"{name} is no reference of up to 80 letters, digits and .,:/#@+-.")
    named = target is not None and re.search(
        rf"(?<!\w){re.escape(target.casefold())}(?!\w)", said.casefold()
    )
    if named:
        raise InvalidInput(f"{name} says what the hold is of, and the audit chain would keep that.")


def _write(
    tx: Tx, scope: Scope, kind: str, target: str | None, basis: str, by: str, at: int
) -> int:
    row = tx.one("select coalesce(max(id), 0) + 1 from hold where ws = :ws", ws=scope.ws)
    number = 1 if row is None else int(row[0])
    about = target if kind == "subject" else None
    if about is not None and concerns.missing(tx, scope.ws):
        concerns.complete(tx, scope)
    tx.run(
        "insert into hold(ws, id, kind, target, key, basis, placed_by, placed_at, upto) "
        "select ws, :number, :kind, :target, :key, :basis, :by, :at, last_record from workspace "
        "where ws = :ws",
        ws=scope.ws,
        number=number,
        kind=kind,
        target=None if target is None else encode(target),
        key=None if about is None else concerns.key_of(scope, about),
        basis=basis,
        by=by,
        at=at,
    )
    tx.run("update workspace set holds = holds + 1 where ws = :ws", ws=scope.ws)
    return number


def _name(tx: Tx, scope: Scope, number: int, ids: Sequence[int]) -> list[int]:
    """Keep which records a hold names, and what holds the same as these; return all it covers."""
    _add(tx, scope.ws, number, ids)
    covered = holding.covered_by(tx, scope.ws, number)
    if missing := sorted(set(ids).difference(covered)):
        raise NotFound(f"{len(missing)} of the records are not there, the first is {missing[0]}.")
    copies = holding.with_copies(tx, scope.ws, covered).difference(covered)
    _add(tx, scope.ws, number, sorted(copies))
    return sorted(copies.union(covered))


def _add(tx: Tx, ws: int, number: int, ids: Sequence[int]) -> None:
    tx.many(
        "insert into hold_record(ws, id, hold) values (:ws, :id, :hold)",
        [{"ws": ws, "id": one, "hold": number} for one in ids],
    )


_HOLDS = (
    "select id, kind, target, basis, placed_by, placed_at, released_at from hold where ws = :ws"
)


def _row(tx: Tx, scope: Scope, number: int) -> Row:
    """Return a hold's row; NotFound where no open hold has the number."""
    row = tx.one(f"{_HOLDS} and id = :number and released_at is null", ws=scope.ws, number=number)
    if row is None:
        raise NotFound(f"No open hold of this workspace has the number {number}.")
    return row


def _hold(tx: Tx, scope: Scope, row: Row) -> Hold:
    number, kind, target, basis, by, placed, released = row
    named = tx.all(
        "select id from hold_record where ws = :ws and hold = :hold order by id",
        ws=scope.ws,
        hold=number,
    )
    return Hold(
        number,
        kind,
        basis,
        by,
        from_micros(placed),
        None if released is None else from_micros(released),
        holding.name_of(kind, target),
        tuple(one[0] for one in named),
        holding.count(tx, scope.ws, number),
    )


# releasing


def _end(tx: Tx, scope: Scope, number: int, at: int) -> list[int]:
    """Close a hold, and keep no longer what it was of; return the records that it covered."""
    _row(tx, scope, number)
    covered = holding.covered_by(tx, scope.ws, number)
    tx.run(
        "update hold set released_at = :at, target = null, key = null where ws = :ws and id = :number",
        ws=scope.ws,
        number=number,
        at=at,
    )
    tx.run("delete from hold_record where ws = :ws and hold = :hold", ws=scope.ws, hold=number)
    tx.run("update workspace set holds = holds - 1 where ws = :ws", ws=scope.ws)
    return covered


def _carry_out(
    tx: Tx, scope: Scope, waited: Sequence[Waiting], terms: forget.Terms
) -> list[Receipt]:
    """Do what was asked before and refused then; `waited` are of one mode, and alone or not."""
    matched = tuple(Match(one.id, "waited for the end of a hold", one.spans) for one in waited)
    alone = waited[0].alone
    plan = planning.make(
        tx,
        scope,
        Selector(matched=matched),
        terms.look,
        mode=waited[0].mode,
        reach=depth(0) if alone else STRICT,
        suspects=False,
        shown=False,
    )
    if not plan:
        return []
    receipt = forget.carry_out(tx, scope, plan, terms)
    _stand_for(tx, scope, {one.receipt for one in waited}, receipt.number)
    return [receipt]


def _stand_for(tx: Tx, scope: Scope, refused: set[int], receipt: int) -> None:
    """Let whoever repeats a forget that was refused as a whole be given the receipt made now."""
    entries = [ledger.entry(tx, scope.ws, one) for one in sorted(refused)]
    tx.many(
        "update repeat set receipt = :new where ws = :ws and receipt = :old",
        [
            {"ws": scope.ws, "old": one.seq, "new": receipt}
            for one in entries
            if one is not None and not one.body["ids"]
        ],
    )


def _empty(tx: Tx, ws: int, ids: Sequence[int], at: int) -> None:
    """Take the content out of values that others took the place of, and their names where they have one."""
    if ids:
        item_rows.empty(tx, ws, ids, at)
        tx.run("delete from item where ws = :ws and record in :ids", ws=ws, ids=list(ids))
