"""The rows of facts: keeping their dates what the statements give, and following a forget.

The key, the value and whom a fact is about are in its record alone. The rows have digests of them
under the workspace's key, to find and to compare; they go with the record. Where nothing else is
said, the caller has locked the workspace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple
from unicodedata import normalize

from . import provenance, values
from .database import Scope, Tx
from .encoding import decode, encode
from .fact_dates import OPEN, Statement, runs

FACTS = ("fact", "inferred")  # the kinds of record that state one
LONGEST_FORM = 100  # characters of a value that may be a phone number or the like as a whole
SPELLED = frozenset({"email", "phone", "date", "iban", "card"})  # of which there are spellings
FEWEST_DIGITS = 5  # of one that has no @
AT_ONCE = 5_000  # subjects whose facts are checked at a time
Group = tuple[int, int]  # the digests of a key and of whom it is about


class Stated(NamedTuple):
    """A row: a statement, whether it is in use, and until when its fact holds by what is stored.

    `said_in` is the message that it was extracted from; below 0 the last of those that it may have
    been extracted from, and 0 for what was stated without an extractor.
    """

    record: int
    value: int
    since: int
    until: int
    shown: int
    said_in: int
    status: int

    @property
    def usable(self) -> bool:
        """Whether it counts: it is neither suppressed nor held, nor waits for confirmation."""
        return self.status == 0


def normal(said: str | None) -> str:
    """Return a key, value or name as it is compared: without case, or how often spaces stand."""
    said = said or ""
    folded = said.lower() if said.isascii() else normalize("NFC", said).casefold()
    return " ".join(folded.split())


def digest(scope: Scope, kind: str, said: str | None) -> int:
    """Return 63 bits of a digest under the workspace's key of what is said, in normal form.

    `kind` is "key", "subject" or "value": the same said as another kind has another digest.
    """
    data = f"{kind}:{normal(said)}".encode("utf-8", "surrogatepass")
    made = blake2b(data, digest_size=8, key=scope.secret, person=b"dellm fact")
    return int.from_bytes(made.digest(), "big") >> 1


def digest_of_value(scope: Scope, said: str | None) -> int:
    """Return the digest of a value: the same for a phone number, address or date in any spelling.

    Else what was forgotten of a message could be found in it again, only written in another way.
    """
    said = (said or "").strip()
    digits = sum(one.isdigit() for one in said)
    if len(said) <= LONGEST_FORM and (digits >= FEWEST_DIGITS or "@" in said):
        found = values.recognise(said, region=scope.entering.region, kinds=SPELLED)
        if len(found) == 1 and (found[0].start, found[0].end) == (0, len(said)):
            return digest(scope, found[0].kind, found[0].key)
    return digest(scope, "value", said)


def group_of(scope: Scope, key: str, subject: str | None, whose: str = "") -> Group:
    """Return the digests of a key and of whom it is about (None: the user).

    `whose` is the label of the audience that it was stated for: what one audience is told closes
    nothing of what others know.
    """
    return digest(scope, "key", key), about(scope, subject, whose)


def about(scope: Scope, subject: str | None, whose: str = "") -> int:
    """Return the digest of whom a fact is about; `whose` as in group_of."""
    return digest(scope, f"subject for {whose}" if whose else "subject", subject)


def written(key: str, value: str, subject: str | None) -> str:
    """Return the text of the record that states a fact."""
    return f"{key}: {value}" if subject is None else f"{key} of {subject}: {value}"


def read(text: str, subject: str | None) -> tuple[str, str]:
    """Return the key and the value that a record's text states; see `written`."""
    head, _, value = text.partition(": ")
    return (head if subject is None else head.removesuffix(f" of {subject}")), value


# keys


def many_of(tx: Tx, ws: int, names: Collection[int]) -> set[int]:
    """Return those of the keys that are declared to be lists."""
    rows = tx.all(
        "select name from fact_key where ws = :ws and name in :names and many = 1",
        ws=ws,
        names=sorted(names),
    )
    return {row[0] for row in rows}


def declare(tx: Tx, scope: Scope, key: str, *, many: bool) -> None:
    """Keep whether a key has many values at a time, and the dates that follow from it."""
    name = digest(scope, "key", key)
    tx.run(
        "insert into fact_key(ws, name, key, many) values (:ws, :name, :key, :many) "
        "on conflict (ws, name) do update set key = excluded.key, many = excluded.many",
        ws=scope.ws,
        name=name,
        key=encode(key),
        many=int(many),
    )
    rows = tx.all(
        "select distinct subject from fact where ws = :ws and name = :name", ws=scope.ws, name=name
    )
    settle(tx, scope.ws, {(name, row[0]) for row in rows})


def declared(tx: Tx, ws: int) -> dict[str, bool]:
    """Return the declared keys, sorted, with whether they are lists."""
    rows = tx.all("select key, many from fact_key where ws = :ws", ws=ws)
    return {key: bool(many) for key, many in sorted((decode(row[0]), row[1]) for row in rows)}


# dates


def stated(tx: Tx, ws: int, groups: Collection[Group]) -> dict[Group, list[Stated]]:
    """Return every row of the groups, in use or not, in the order of their dates."""
    found: dict[Group, list[Stated]] = {one: [] for one in groups}
    if not groups:
        return found
    rows = tx.all(
        "select f.name, f.subject, f.record, f.value, f.since, f.until, f.shown, f.said_in, "
        "r.status from fact f join record r on r.ws = :ws and r.id = f.record "
        "where f.ws = :ws and f.name in :names and f.subject in :subjects "
        "order by f.since, f.record",
        ws=ws,
        names=sorted({name for name, _ in groups}),
        subjects=sorted({subject for _, subject in groups}),
    )
    for row in rows:
        if (row[0], row[1]) in found:
            found[row[0], row[1]].append(Stated._make(row[2:]))
    return found


def statements(
    tx: Tx, ws: int, rows: Mapping[Group, Sequence[Stated]]
) -> dict[Group, list[Statement]]:
    """Return the statements of the rows that count, each with when it was said to have ended."""
    ids = [one.record for some in rows.values() for one in some if one.usable]
    ends = _ends(tx, ws, ids)
    return {
        group: [
            Statement(one.record, one.value, one.since, ends.get(one.record, OPEN))
            for one in some
            if one.usable
        ]
        for group, some in rows.items()
    }


def _ends(tx: Tx, ws: int, ids: Sequence[int]) -> dict[int, int]:
    rows = tx.all(
        "select e.record, min(e.at) from fact_end e where e.ws = :ws and e.record in :ids "
        "and (e.closer in (0, e.record) or exists (select 1 from record c "
        "where c.ws = :ws and c.id = e.closer and c.status = 0)) group by e.record",
        ws=ws,
        ids=list(ids),
    )
    return dict(rows)


def settle(tx: Tx, ws: int, groups: Collection[Group]) -> None:
    """Make the dates of the groups' facts those that their statements give now."""
    changes = _wrong(tx, ws, groups) if groups else ()
    tx.many(
        "update fact set shown = :shown, until = :until where ws = :ws and record = :record",
        [
            {"ws": ws, "record": id_, "shown": shown, "until": until}
            for id_, shown, until in changes
        ],
    )


def _wrong(tx: Tx, ws: int, groups: Collection[Group]) -> list[tuple[int, int, int]]:
    """Return (record, shown, until) as they should be, of the rows in which they are something else."""
    rows = stated(tx, ws, groups)
    lists = many_of(tx, ws, {name for name, _ in groups})
    found: list[tuple[int, int, int]] = []
    for group, said in statements(tx, ws, rows).items():
        wanted = {
            record: (int(at == 0), run.until)
            for run in runs(said, many=group[0] in lists)
            for at, record in enumerate(run.records)
        }
        for row in rows[group]:
            should = wanted.get(row.record, (0, OPEN))
            if should != (row.shown, row.until):
                found.append((row.record, *should))
    return found


def unsettled(tx: Tx, ws: int) -> int:
    """Return how many rows have other dates than their statements give."""
    keys = tx.all("select distinct name from fact where ws = :ws", ws=ws)
    found = 0
    for (name,) in keys:
        about = tx.all(
            "select distinct subject from fact where ws = :ws and name = :name", ws=ws, name=name
        )
        for start in range(0, len(about), AT_ONCE):
            groups = {(name, row[0]) for row in about[start : start + AT_ONCE]}
            found += len(_wrong(tx, ws, groups))
    return found


def settle_records(tx: Tx, ws: int, ids: Sequence[int]) -> None:
    """Make the dates right of all facts that the records state or close, after a change of status."""
    rows = tx.all(
        "select name, subject from fact where ws = :ws and record in :ids union "
        "select f.name, f.subject from fact_end e join fact f on f.ws = :ws and f.record = e.record "
        "where e.ws = :ws and e.closer in :ids",
        ws=ws,
        ids=list(ids),
    )
    settle(tx, ws, {(row[0], row[1]) for row in rows})


def past(tx: Tx, ws: int, ids: Sequence[int], at: int) -> set[int]:
    """Return those of the records that state what does not hold at a moment, or only state it again."""
    rows = tx.all(
        "select record from fact where ws = :ws and record in :ids "
        "and (shown = 0 or since > :at or until <= :at)",
        ws=ws,
        ids=list(ids),
        at=at,
    )
    return {row[0] for row in rows}


# writing and erasing


def insert(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as if each stood for its fact, as most do; `settle` makes the others right."""
    tx.many(
        "insert into fact(ws, record, name, subject, value, since, until, shown, confidence, said_in) "
        "values (:ws, :record, :name, :subject, :value, :since, :until, 1, :confidence, :said_in)",
        rows,
    )


def end(tx: Tx, ws: int, records: Iterable[int], closer: int, at: int) -> None:
    """Note that statements hold no longer from `at` on; the first moment that one closer says counts."""
    tx.many(
        "insert into fact_end(ws, record, closer, at) values (:ws, :record, :closer, :at) "
        "on conflict (ws, record, closer) do update set at = excluded.at "
        "where excluded.at < fact_end.at",
        [{"ws": ws, "record": one, "closer": closer, "at": at} for one in records],
    )


def see(tx: Tx, ws: int, records: Iterable[int], extractor: str) -> None:
    """Note that an extractor has been through messages."""
    tx.many(
        "insert into fact_seen(ws, record, extractor) values (:ws, :record, :extractor) "
        "on conflict (ws, record, extractor) do nothing",
        [{"ws": ws, "record": one, "extractor": encode(extractor)} for one in records],
    )


def refused(tx: Tx, ws: int, messages: Sequence[int]) -> set[tuple[int, int, int, int]]:
    """Return what must not be extracted from messages again: (message, name, subject, value)."""
    rows = tx.all(
        "select record, name, subject, value from fact_refused where ws = :ws and record in :ids",
        ws=ws,
        ids=list(messages),
    )
    return {(row[0], row[1], row[2], row[3]) for row in rows}


def told(tx: Tx, ws: int, ids: Sequence[int]) -> dict[int, set[int]]:
    """Return what each of the records that states or closes a fact was made from, before they go."""
    rows = tx.all(
        "select e.child, e.parent from edge e where e.ws = :ws and e.child in :ids and e.pos >= 0 "
        "and (exists (select 1 from fact f where f.ws = :ws and f.record = e.child) "
        "or exists (select 1 from fact_end d where d.ws = :ws and d.closer = e.child))",
        ws=ws,
        ids=list(ids),
    )
    shared = {parent: provenance.expand(tx, ws, parent) for _, parent in set(rows) if parent < 0}
    found: dict[int, set[int]] = {}
    for child, parent in rows:
        found.setdefault(child, set()).update(shared.get(parent, (parent,)))
    return found


def refuse(tx: Tx, ws: int, rows: Iterable[Sequence[int]]) -> None:
    """Keep what must not be extracted again from messages that stay: (message, name, subject, value)."""
    tx.many(
        "insert into fact_refused(ws, record, name, subject, value) "
        "select ws, id, :name, :subject, :value from record where ws = :ws and id = :record "
        "and kind not in ('fact', 'inferred', 'state') "
        "on conflict (ws, record, name, subject, value) do nothing",
        [
            {"ws": ws, "record": row[0], "name": row[1], "subject": row[2], "value": row[3]}
            for row in rows
        ],
    )


def erase(
    tx: Tx, ws: int, ids: Sequence[int], asked: Collection[int], sources: Mapping[int, set[int]]
) -> int:
    """Delete the rows of records that were just erased; return how many facts were stated by them.

    `asked`: those of them that were asked for; `sources`: see told. What one of these stated is not
    extracted again from a message that stays and says it; where what was extracted only followed
    from others, all messages that it was made from count as new, and so do those of what closed one.
    What was closed by an erased record is open again, unless something that stays closes it too.
    """
    here = list(ids)
    gone = tx.all(
        "delete from fact where ws = :ws and record in :ids "
        "returning record, name, subject, value, said_in",
        ws=ws,
        ids=here,
    )
    tx.run("delete from fact_end where ws = :ws and record in :ids", ws=ws, ids=here)
    groups = {(row[1], row[2]) for row in gone}
    reopened = tx.all(
        "delete from fact_end where ws = :ws and closer in :ids returning record, closer",
        ws=ws,
        ids=here,
    )
    groups |= _groups(tx, ws, [row[0] for row in reopened])
    for table in _OF_MESSAGES:
        tx.run(table, ws=ws, ids=here)
    for row in gone:
        if row[0] in asked:  # of all that it was made from, where it is not known which says it
            messages = {row[4]} if row[4] > 0 else sources.get(row[0], ())
            refuse(tx, ws, [(one, *row[1:4]) for one in sorted(messages)])
    again = [row[0] for row in gone if row[4] and row[0] not in asked]
    again += {row[1] for row in reopened}
    _unsee(tx, ws, {one for id_ in again for one in sources.get(id_, ())})
    settle(tx, ws, groups)
    return len(gone)


_OF_MESSAGES = (
    "delete from fact_seen where ws = :ws and record in :ids",
    "delete from fact_refused where ws = :ws and record in :ids",
)


def _groups(tx: Tx, ws: int, records: Sequence[int]) -> set[Group]:
    if not records:
        return set()
    rows = tx.all(
        "select name, subject from fact where ws = :ws and record in :ids", ws=ws, ids=records
    )
    return {(row[0], row[1]) for row in rows}


def _unsee(tx: Tx, ws: int, messages: Collection[int]) -> None:
    """Let messages be read again, for what they say without what was forgotten."""
    if messages:
        tx.run(
            "delete from fact_seen where ws = :ws and record in :ids", ws=ws, ids=sorted(messages)
        )
