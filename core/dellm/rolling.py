"""The rolling summary of a thread: each version is made of the one before and what was said since.

Every version's parents are all messages that ever flowed in, and the version before it, which was
in the prompt too. A version costs a few rows however long the thread is: what flowed in is a
sequence that continues the version's before. A forget takes every version that a message flowed
into; the newest is made anew from the messages that stay, never from an earlier text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import audiences, provenance, sequences, storing, summary_rows
from .database import Scope, Tx
from .errors import ContextForgotten, StorageError
from .records import USABLE, Draft, Record
from .sequences import Tip, Tips
from .summarising import OF_MESSAGES, Summariser
from .summary_rows import Moved, Shelf, Stamp

FORM = "rolling"
NEWEST = "newest"
TRIES = 50  # each one fails only because somebody else wrote something meanwhile
SEQUENCES = "summaries"  # the thread under whose name the sequences are: none of the user's


@dataclass(frozen=True, slots=True)
class _Seen:
    """The newest version and what is to flow into the next one.

    `record` is 0 where there is no version, `last` None where the next one has to begin anew.
    """

    stamp: Stamp
    record: int
    last: Record | None
    covered: list[int]
    fresh: list[int]


def bring_up_to_date(shelf: Shelf, summariser: Summariser, *, keep: bool) -> None:
    """Let all messages that the thread has now flow into the summary.

    A version is stored after each call of the model, so what a failure interrupts goes on from
    there. `keep`: earlier versions stay readable. Raises ModelError, StorageError.
    """
    with summariser.lock(shelf.key):
        for _ in range(TRIES):
            try:
                seen = _look(shelf)
                while seen.fresh:
                    seen = _next(shelf, summariser, seen, keep)
            except (Moved, ContextForgotten):
                continue
            return
    raise StorageError("The thread changed as often as it was summarised.")


def _look(shelf: Shelf) -> _Seen:
    at = shelf.at
    with shelf.engine.reading(shelf.workspace) as (tx, scope):
        places = summary_rows.messages(tx, scope, shelf.thread, at)
        stamp = shelf.stamp(tx, scope)
        newest = next((one for one in shelf.parts(tx, scope) if one.name == NEWEST), None)
        if newest is None:
            return _Seen(stamp, 0, None, [], list(places))
        covered = _covered(tx, scope, newest.record)
        hidden = [one for one in covered if one not in places]
        left = summary_rows.usable(tx, scope, hidden, at)
        if not newest.usable or len(left) < len(hidden):
            # What is left of it begins anew; so does what flowed in and is hidden by now.
            return _Seen(stamp, newest.record, None, [], summary_rows.in_order(places | left))
    last = shelf.records([newest.record])[0]
    known = set(covered)
    fresh = [one for one in places if one not in known]
    return _Seen(stamp, newest.record, last, covered, fresh)


def _covered(tx: Tx, scope: Scope, version: int) -> list[int]:
    """Return the messages that flowed into a version, in order: its context less other versions."""
    found = provenance.context_of(tx, scope.ws, version)
    others = tx.all(
        "select id from record where ws = :ws and id in :ids and kind not in ('message', 'tool')",
        ws=scope.ws,
        ids=found,
    )
    versions = {row[0] for row in others}
    return [one for one in found if one not in versions]


def _next(shelf: Shelf, summariser: Summariser, seen: _Seen, keep: bool) -> _Seen:
    """Make and store the next version; raises Moved, ContextForgotten, ModelError."""
    taken, texts = summariser.piece(shelf.records(seen.fresh[: summariser.pace.chunk]))
    new = [one.id for one in taken]
    given = taken if seen.last is None else [seen.last, *taken]
    with shelf.sending([one.id for one in given], summariser.model):
        text = summariser.call(None if seen.last is None else seen.last.text, texts)
        draft = summary_rows.draft(text, f"{OF_MESSAGES}{summariser.name}", summariser.model, given)
        made, stamp = _store(shelf, seen, new, draft, keep)
    # A version that waits for confirmation is not continued.
    left = seen.fresh[len(new) :] if made.status in USABLE else []
    return _Seen(stamp, made.id, made, [*seen.covered, *new], left)


def _store(
    shelf: Shelf, seen: _Seen, new: Sequence[int], draft: Draft, keep: bool
) -> tuple[Record, Stamp]:
    with shelf.engine.writing(shelf.workspace) as (tx, scope):
        shelf.expect(tx, scope, seen.stamp)
        if seen.last is not None:
            provenance.require_usable(tx, scope.ws, [seen.record])
        made, numbers = storing.store(tx, scope, [draft], shelf.at)
        _attach(tx, scope, made[0], seen, new, numbers.sequence)
        audiences.narrow(tx, scope, [made[0].id], numbers.governed)
        kept = keep and seen.last is not None
        if kept:
            _keep(shelf, tx, scope, seen.record)
        shelf.name(tx, scope, NEWEST, made[0].id, replaced=not kept)
        return made[0], shelf.stamp(tx, scope)


def _attach(
    tx: Tx, scope: Scope, made: Record, seen: _Seen, new: Sequence[int], fresh: int
) -> None:
    """Tie a version to all that flowed into it, and to the version that was in its prompt."""
    ids = [*seen.covered, *new]
    tips = Tips()
    if seen.covered and (base := _sequence(tx, scope, seen.record)) is not None:
        tips.note(scope.ws, SEQUENCES, Tip(seen.covered, [(len(seen.covered), base)]))
    sequences.attach_context(tx, scope, made.id, ids, SEQUENCES, fresh, tips)
    if seen.last is not None:
        sequences.attach_surviving(tx, scope.ws, made.id, [seen.record], after=len(ids))


def _sequence(tx: Tx, scope: Scope, version: int) -> int | None:
    """Return the sequence of what flowed into a version, where it is one and nothing else was."""
    row = tx.one(
        "select parent from edge where ws = :ws and child = :id and pos = 0",
        ws=scope.ws,
        id=version,
    )
    return None if row is None else int(row[0])


def _keep(shelf: Shelf, tx: Tx, scope: Scope, version: int) -> None:
    """Keep a version that is the newest no longer; a forget takes it, and it is not made anew."""
    tx.run("update record set metadata = null where ws = :ws and id = :id", ws=scope.ws, id=version)
    shelf.name(tx, scope, str(version), version, replaced=False)


def versions(shelf: Shelf) -> list[int]:
    """Return the records of the versions that were kept and the newest, oldest first."""
    with shelf.engine.reading(shelf.workspace) as (tx, scope):
        return sorted(one.record for one in shelf.parts(tx, scope) if one.usable)
