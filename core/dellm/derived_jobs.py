"""Derived records that are still to be made anew: what a forget keeps of them until then.

A job has the place of the erased record and the ids of its surviving sources, no content; among the
sources may be records that are to be made anew themselves, by their old ids. It is written in the
transaction that erases. A later forget takes what it erases from the sources, and the job with the
last of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from . import (
    audiences,
    derivations,
    exposure_rows,
    ledger,
    reading,
    sequences,
    stand_ins,
    storing,
)
from .database import Scope, Tx
from .derived_needles import Digests
from .encoding import decode, encode
from .making import Derivation, Made, derived_by
from .plan import Plan
from .records import USABLE, Record, from_micros, to_micros
from .selectors import Selector

GIVES_UP = 3  # attempts after which a job is dropped
NO_SOURCE = Made(None, 0), "no source"
_COLUMNS = (
    "id, receipt, name, version, kind, role, thread, place, until, created_at, hidden, places, "
    "needles, attempts, calls, error"
)


@dataclass(frozen=True, slots=True)
class Promise:
    """What is known of a record that is to be made anew: where it stands, and from what it is made.

    `places` are (sequence, position) in values of channels; `hidden` as in hiding; `until` and
    `created_at` microseconds. `error` is the class of the last attempt's failure.
    """

    id: int
    receipt: int
    name: str
    version: int
    kind: str
    role: str
    thread: str | None
    place: int
    until: int | None
    created_at: int
    hidden: int | None
    places: tuple[tuple[int, int], ...]
    sources: tuple[int, ...]
    needles: Digests
    attempts: int = 0
    calls: int = 0
    error: str | None = None


def promised(
    tx: Tx, scope: Scope, plan: Plan, left: Mapping[int, Sequence[int]], needles: Digests
) -> dict[int, Promise]:
    """Return what is to be kept of records that a plan erases, with the sources of `left`.

    `needles` are digests of what the new texts must not say.
    """
    if not left:
        return {}
    stood: dict[int, list[tuple[int, int]]] = {}
    for sequence, position, id_ in stand_ins.places(tx, scope.ws, plan, list(left)):
        stood.setdefault(id_, []).append((sequence, position))
    rows = tx.all(
        "select record, how from hidden where ws = :ws and record in :ids",
        ws=scope.ws,
        ids=list(left),
    )
    hidden = {row[0]: row[1] for row in rows}
    return {
        id_: _promise(record, left[id_], stood.get(id_, ()), hidden.get(id_), needles)
        for id_, record in reading.several(tx, scope, list(left), None).items()
    }


def _promise(
    record: Record,
    sources: Sequence[int],
    places: Sequence[tuple[int, int]],
    hidden: int | None,
    needles: Digests,
) -> Promise:
    name, version = derived_by(record.metadata) or ("", 0)
    until = None if record.retention_until is None else to_micros(record.retention_until)
    return Promise(
        record.id, 0, name, version, record.kind, record.role, record.thread, record.place, until,
        to_micros(record.created_at), hidden, tuple(places), tuple(sources), needles,
    )  # fmt: skip


def write(tx: Tx, ws: int, promises: Mapping[int, Promise], receipt: int) -> None:
    """Store the jobs of a forget."""
    tx.many(
        "insert into rebuild_job(ws, id, receipt, name, version, kind, role, thread, place, until, "
        "created_at, hidden, places, needles, attempts, calls) "
        "values (:ws, :id, :receipt, :name, :version, :kind, :role, :thread, :place, :until, "
        ":created_at, :hidden, :places, :needles, 0, 0)",
        [
            {
                "ws": ws,
                "id": one.id,
                "receipt": receipt,
                "name": encode(one.name),
                "version": one.version,
                "kind": one.kind,
                "role": encode(one.role),
                "thread": encode(one.thread or ""),
                "place": one.place,
                "until": one.until,
                "created_at": one.created_at,
                "hidden": one.hidden,
                "places": json.dumps(one.places),
                "needles": json.dumps(one.needles),
            }
            for one in promises.values()
        ],
    )
    tx.many(
        "insert into rebuild_source(ws, job, pos, source) values (:ws, :job, :pos, :source)",
        [
            {"ws": ws, "job": one.id, "pos": at, "source": source}
            for one in promises.values()
            for at, source in enumerate(one.sources)
        ],
    )


def threads_of(tx: Tx, ws: int, plan: Plan) -> list[str]:
    """Return the threads, as stored, of what matched; only where there are jobs that may be in them."""
    if not tx.one("select 1 from rebuild_job where ws = :ws limit 1", ws=ws):
        return []
    rows = tx.all(
        "select distinct thread from record where ws = :ws and id in :ids and thread <> ''",
        ws=ws,
        ids=[one.id for one in plan.matches],
    )
    return [row[0] for row in rows]


def follow(
    tx: Tx, ws: int, plan: Plan, anew: Mapping[int, int], threads: Collection[str], receipt: int
) -> None:
    """Take what a forget erased from the sources of all jobs, and drop those that have none left.

    What was made anew, or redacted, takes the old one's place. Of `threads`, those of which nothing
    is left get nothing back by the jobs of earlier forgets.
    """
    if not tx.one("select 1 from rebuild_job where ws = :ws limit 1", ws=ws):
        return
    if threads:
        _drop_threads(tx, ws, threads, receipt)
    tx.many(
        "update rebuild_source set source = :new where ws = :ws and source = :old",
        [{"ws": ws, "old": old, "new": new} for old, new in anew.items()],
    )
    tx.run(
        "delete from rebuild_source where ws = :ws and source in :ids "
        "and not exists (select 1 from rebuild_job j where j.ws = :ws and j.id = source)",
        ws=ws,
        ids=[one for one in plan.ids if one not in anew],
    )
    _drop_without_sources(tx, ws)


def _drop(tx: Tx, ws: int, ids: Sequence[int]) -> None:
    tx.run("delete from rebuild_job where ws = :ws and id in :ids", ws=ws, ids=list(ids))
    tx.run(
        "delete from rebuild_source where ws = :ws and (job in :ids or source in :ids)",
        ws=ws,
        ids=list(ids),
    )


def drop_named(tx: Tx, ws: int, selector: Selector) -> int | None:
    """Drop the jobs of results that are forgotten, by id or thread, before they are made anew.

    Not where that is narrowed: nobody can tell any more what they were. Returns the receipt of the
    newest of the forgets that erased them, None where there was no such job.
    """
    rows = tx.all(
        "select id, receipt from rebuild_job where ws = :ws and (id in :ids or thread = :thread)",
        ws=ws,
        ids=sorted({*_only_ids(selector), *selector.include}),
        thread=encode(_only_thread(selector) or "\0"),
    )
    named = [row for row in rows if row[0] not in selector.exclude]
    if not named:
        return None
    _drop(tx, ws, [row[0] for row in named])
    _drop_without_sources(tx, ws)
    return max(int(row[1]) for row in named)


def _only_ids(selector: Selector) -> Sequence[int]:
    alone = Selector(ids=selector.ids, include=selector.include, exclude=selector.exclude)
    return (selector.ids or ()) if selector == alone else ()


def _only_thread(selector: Selector) -> str | None:
    alone = Selector(thread=selector.thread, include=selector.include, exclude=selector.exclude)
    return selector.thread if selector == alone else None


def _drop_without_sources(tx: Tx, ws: int) -> None:
    """Drop the jobs that have no source left, and then those that were left for these."""
    while rows := tx.all(
        "select id from rebuild_job as j where j.ws = :ws and not exists "
        "(select 1 from rebuild_source s where s.ws = :ws and s.job = j.id)",
        ws=ws,
    ):
        _drop(tx, ws, [row[0] for row in rows])


def _drop_threads(tx: Tx, ws: int, threads: Collection[str], receipt: int) -> None:
    for thread in threads:
        rows = tx.all(
            "select id from rebuild_job as j where j.ws = :ws and j.thread = :thread "
            "and j.receipt <> :receipt and not exists "
            "(select 1 from record r where r.ws = :ws and r.thread = :thread)",
            ws=ws,
            thread=thread,
            receipt=receipt,
        )
        if rows:
            _drop(tx, ws, [row[0] for row in rows])


def listed(tx: Tx, ws: int) -> list[int]:
    """Return the ids of the jobs there are, ascending."""
    return [
        row[0] for row in tx.all("select id from rebuild_job where ws = :ws order by id", ws=ws)
    ]


def load(tx: Tx, ws: int, id_: int) -> Promise | None:
    """Return a job, None when it is done or dropped."""
    row = tx.one(f"select {_COLUMNS} from rebuild_job where ws = :ws and id = :id", ws=ws, id=id_)
    if row is None:
        return None
    rows = tx.all(
        "select source from rebuild_source where ws = :ws and job = :id order by pos", ws=ws, id=id_
    )
    places, needles = (tuple((a, b) for a, b in json.loads(one)) for one in row[11:13])
    return Promise(
        row[0], row[1], decode(row[2]), row[3], row[4], decode(row[5]), decode(row[6]) or None,
        row[7], row[8], row[9], row[10], places, tuple(one[0] for one in rows), needles,
        *row[13:],
    )  # fmt: skip


def sources_of(tx: Tx, scope: Scope, job: Promise, at: int) -> list[Record] | None:
    """Return the sources that may be used, in order; None while one is still to be waited for.

    That is one which is to be made anew itself, or is suppressed or quarantined: it may come back.
    None may be used for a result whose own time is over.
    """
    if job.until is not None and job.until <= at:
        return []
    rows = tx.all(
        "select id from rebuild_job where ws = :ws and id in :ids",
        ws=scope.ws,
        ids=list(job.sources),
    )
    found = reading.several(tx, scope, list(job.sources), None)
    if rows or any(one.status not in USABLE for one in found.values()):
        return None
    usable = reading.several(tx, scope, list(found), at)
    return [usable[one] for one in dict.fromkeys(job.sources) if one in usable]


def finish(
    tx: Tx,
    scope: Scope,
    job: Promise,
    maker: Derivation,
    text: str,
    sources: Sequence[Record],
    calls: int,
    at: int,
) -> Record:
    """Store what was made anew where the erased record stood, and drop the job; return the record."""
    ws, ids = scope.ws, [one.id for one in sources]
    draft = derivations.drafted(maker, text, sources, thread=job.thread, kind=job.kind)
    until = [one for one in (job.until, draft.retention_until) if one is not None]
    draft = replace(
        draft,
        role=job.role,
        place=job.place,
        created_at=from_micros(job.created_at),
        retention_until=min(map(to_micros, until), default=None),
    )
    named = derivations.framework_id(scope, maker.name, maker.version, job.kind, job.thread, ids)
    draft = derivations.with_name(tx, scope, draft, named)
    (made,), numbers = storing.store(tx, scope, [draft], at, again=True)
    sequences.attach_surviving(tx, ws, made.id, ids)
    audiences.narrow(tx, scope, [made.id], numbers.governed)
    exposure_rows.anew(tx, ws, [made.id], at)
    tx.run(
        "update tombstone set successor = :new where ws = :ws and id = :old",
        ws=ws,
        old=job.id,
        new=made.id,
    )
    tx.run(
        "update rebuild_source set source = :new where ws = :ws and source = :old",
        ws=ws,
        old=job.id,
        new=made.id,
    )
    _put_back(tx, ws, job, made.id)
    _drop(tx, ws, [job.id])
    _note(tx, ws, job, at, new=made.id, calls=calls)
    return made


def _put_back(tx: Tx, ws: int, job: Promise, new: int) -> None:
    """Let it stand in the lists of channels that are still there, and be hidden, as the old one."""
    tx.many(
        "insert into edge(ws, child, pos, parent) "
        "select ws, id, cast(:pos as bigint), cast(:parent as bigint) from sequence "
        "where ws = :ws and id = :child on conflict (ws, child, pos) do nothing",
        [{"ws": ws, "child": child, "pos": pos, "parent": new} for child, pos in job.places],
    )
    if job.hidden is not None:
        tx.run(
            "insert into hidden(ws, record, how) values (:ws, :new, :how)",
            ws=ws,
            new=new,
            how=job.hidden,
        )


def fail(tx: Tx, ws: int, job: Promise, error: str, calls: int, at: int, *, last: bool) -> bool:
    """Note a failed attempt; return whether the job is given up: at once where it is the `last`."""
    if not last and job.attempts + 1 < GIVES_UP:
        tx.run(
            "update rebuild_job set attempts = attempts + 1, calls = calls + :calls, error = :error "
            "where ws = :ws and id = :id",
            ws=ws,
            id=job.id,
            calls=calls,
            error=encode(error),
        )
        return False
    _drop(tx, ws, [job.id])
    _drop_without_sources(tx, ws)
    _note(tx, ws, job, at, error=error, calls=calls)
    return True


def _note(
    tx: Tx,
    ws: int,
    job: Promise,
    at: int,
    *,
    calls: int,
    new: int | None = None,
    error: str | None = None,
) -> None:
    body = {
        "receipt": job.receipt, "old": job.id, "new": new, "calls": job.calls + calls, "error": error,
    }  # fmt: skip
    ledger.append(tx, ws, "rebuild", body, at)
