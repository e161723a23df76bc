"""Facts whose record got a new version: what is left of them is stated by that, from the same day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from . import audiences, fact_rows
from .credentials import MARKER as CREDENTIAL
from .database import Row, Scope, Tx
from .encoding import decode
from .fact_dates import OPEN
from .guarding import MARKER as GUARDED
from .redacting import MARKER

Stood = tuple[Sequence[Row], Sequence[Row], Sequence[Row]]
NONE: Stood = ((), (), ())


def standing(tx: Tx, ws: int, ids: Sequence[int]) -> Stood:
    """Return for `stand_in` the rows of what is to get a new version.

    Those are of statements, of their ends, and of what must not be extracted from messages again.
    """
    facts = tx.all(
        "select record, name, subject, since, confidence, said_in from fact "
        "where ws = :ws and record in :ids",
        ws=ws,
        ids=list(ids),
    )
    ends = tx.all(
        "select record, closer, at from fact_end "
        "where ws = :ws and (record in :ids or closer in :ids)",
        ws=ws,
        ids=list(ids),
    )
    refused = tx.all(
        "select record, name, subject, value from fact_refused where ws = :ws and record in :ids",
        ws=ws,
        ids=list(ids),
    )
    return facts, ends, refused


def stand_in(tx: Tx, scope: Scope, stood: Stood, made: Mapping[int, int]) -> None:
    """Let new versions state what is left of the facts that the old ones stated, from the same day.

    One whose key or value was taken states none any more. What was forgotten of a message is not
    extracted from what is left of it either.
    """
    facts, ends, refused = stood
    ws = scope.ws
    fact_rows.refuse(tx, ws, [(made[old], *what) for old, *what in refused if old in made])
    whose = audiences.labels(tx, scope) if facts else ()
    texts = _texts(tx, ws, [made[row[0]] for row in facts if row[0] in made])
    rows = [
        {
            "ws": ws,
            "record": made[old],
            "name": name,
            "subject": subject,
            "value": fact_rows.digest_of_value(scope, value),
            "since": since,
            "until": OPEN,
            "confidence": confidence,
            "said_in": made.get(said_in) or -made.get(-said_in, 0) or said_in,
        }
        for old, name, subject, since, confidence, said_in in facts
        if old in made
        for key, value, about in (texts[made[old]],)
        if (name, subject) in [fact_rows.group_of(scope, key, about, one) for one in whose]
        and says_something(value)
    ]
    fact_rows.insert(tx, rows)
    _end_again(tx, ws, ends, made)
    fact_rows.settle_records(tx, ws, sorted({*made.values(), *(row[0] for row in ends)}))


def _texts(tx: Tx, ws: int, ids: Sequence[int]) -> dict[int, tuple[str, str, str | None]]:
    rows = tx.all(
        "select id, text, subject from record where ws = :ws and id in :ids", ws=ws, ids=list(ids)
    )
    found = {}
    for id_, text, subject in rows:
        about = None if subject is None else decode(subject)
        found[id_] = (*fact_rows.read(decode(text), about), about)
    return found


def says_something(value: str) -> bool:
    """Whether a value is more than the marks of what was taken out, and what stood around them."""
    for mark in (MARKER, GUARDED, CREDENTIAL):
        value = value.replace(mark, "")
    return any(letter.isalnum() for letter in value)


def _end_again(tx: Tx, ws: int, ends: Iterable[Row], made: Mapping[int, int]) -> None:
    """Write again when statements ended, those with a new version and by what has one, if they are there."""
    tx.many(
        "insert into fact_end(ws, record, closer, at) "
        "select ws, record, :closer, :at from fact where ws = :ws and record = :record "
        "and (:closer = 0 or exists (select 1 from record r where r.ws = :ws and r.id = :closer)) "
        "on conflict (ws, record, closer) do nothing",
        [
            {"ws": ws, "record": made.get(old, old), "closer": made.get(closer, closer), "at": at}
            for old, closer, at in ends
        ],
    )
