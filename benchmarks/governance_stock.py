"""A sweep of what has expired, and questions about somebody, in a memory of many records.

The sweep's peer deletes the same rows directly (records, vectors, index terms, edges) on a connection of
its own, in one transaction, without asking what was made from them, without tombstones, residue, receipts
or an audit entry. A question's peer is the bare statement that finds the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import LiteralString

from dellm import Draft, Memory
from dellm.concerns import key_of

from .core.stores import Store
from .core.timing import Pair, Row, timed, turns

RECORDS = 1_000_000
EXPIRED = 10  # every tenth record has expired
PEOPLE = 1_000
AT_ONCE = 10_000
NOW = 1_900_000_000_000_000
SWEEP_LIMIT, ASK_LIMIT = 3.0, 1.5
ASKED = 100  # records of a page
STATEMENT: LiteralString = (
    "select r.id, r.place, r.thread, r.kind, r.role, r.fid, r.version, r.text, r.payload, r.metadata, "
    "r.subject, r.purpose, r.sensitivity, r.retention_until, r.status, r.model, r.created_at, "
    "g.created_by, g.basis, g.class, g.source from concerns c cross join record r "
    "left join governed g on g.ws = :ws and g.id = r.id "
    "where c.ws = :ws and c.key = :key and c.record > 0 and r.ws = :ws and r.id = c.record "
    "and r.status = 0 and (r.retention_until is null or r.retention_until > :at) "
    "order by r.id limit :limit"
)


def measured(store: Store, tell: Callable[[str], None], records: int) -> Iterator[Row]:
    """Yield the rows of the sweep and of the questions."""
    urls = [store.fresh(), store.fresh()]
    for url in urls:
        tell(f"filling {records:,} records ({store.name})")
        with _opened(url) as memory:
            _fill(memory.workspace("stock"), records)
    yield from _questions(store, tell, urls[0])
    yield _swept(store, tell, urls, records)
    for url in urls:
        store.drop(url)


def _opened(url: str) -> Memory:
    return Memory.open(url, embedder=None, scrub_below=0, clock=lambda: NOW)


def _fill(memory: Memory, records: int) -> None:
    for start in range(0, records, AT_ONCE):
        memory.remember_many(
            [_draft(number) for number in range(start, min(start + AT_ONCE, records))]
        )


def _draft(number: int) -> Draft:
    until = NOW - 1 if number % EXPIRED == 0 else NOW + 10**12
    return Draft(
        f"note {number} about parcel {number * 7} at gate {number % 97}",
        thread=f"thread {number % 5_000}",
        subject=f"person {number % PEOPLE}",
        retention_until=until,
    )


def _questions(store: Store, tell: Callable[[str], None], url: str) -> Iterator[Row]:
    with _opened(url) as memory:
        stock = memory.workspace("stock")
        tell(f"asking about somebody ({store.name})")
        with stock._engine.reading("stock") as (_, scope):
            key, ws = key_of(scope, "person 501"), scope.ws

        def bare() -> object:
            with stock._engine.reading("stock") as (tx, _):
                return tx.all(STATEMENT, ws=ws, key=key, at=NOW, limit=ASKED)

        pair = turns(lambda: stock.remembered("person 501", limit=ASKED), bare, 25)
        yield pair.row(
            f"remembered(subject), {ASKED} records", store.name, "the bare statement", ASK_LIMIT
        )
        one = stock.remembered("person 501", limit=1)[0].record.id
        got = turns(lambda: stock.governed(one), lambda: stock.get(one), 100)
        yield got.row("governed(id)", store.name, "get(id)", None)


def _swept(store: Store, tell: Callable[[str], None], urls: list[str], records: int) -> Row:
    tell(f"sweeping ({store.name})")
    with _opened(urls[0]) as memory:
        sweep = memory.workspace("stock").expiry.sweep
        ours = timed(lambda: sweep(scrub=False))
    bare = store.bare(urls[1])
    ws = bare.ws("stock")
    held = bare.terms(ws, list(range(1, records + 1, EXPIRED)))
    theirs = timed(lambda: bare.delete(ws, held))
    bare.close()
    name = f"sweep, {records // EXPIRED:,} expired of {records:,}"
    return Pair([ours], [theirs]).row(name, store.name, "the same rows deleted", SWEEP_LIMIT)
