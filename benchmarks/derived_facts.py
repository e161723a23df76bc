"""What facts as of a day cost next to a bare indexed query: `python -m benchmarks.derived_facts`.

Ten facts of each of many people are stated through the product's own batch: some closed, some of
them lists. Then what held on a day is asked for, by `memory.facts(as_of=...)` and by one prepared
statement on a connection of the driver alone, in the same database, with the same answer: once from
the library's tables (the statement itself), once from one plain table as a program would keep it for
itself (no records, no provenance, no workspaces), with indexes on what is asked for.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

from dellm import Memory, Proposed
from dellm.fact_rows import digest

from .core.stores import Store, machine, stores
from .core.table import Found, say
from .core.timing import Row, timed, turns

ROWS = 1_000_000
EACH = 10  # facts of one person
BATCH = 10_000  # facts in one transaction
LIMIT = 2.0
ROUNDS = 15
SAMPLE = 500  # people that are asked for in turn
START = datetime(2020, 1, 1, tzinfo=UTC)
WORKSPACE = "people"
# Of each person: the key, how many values one after the other, or at once for a list.
KEYS = (("employer", 3), ("home", 2), ("dog_name", 2), ("phone", 2), ("diet", 1))
LISTS = ("dog_name",)
SAME, PLAIN = "the bare statement", "a bare query of a plain table"


def person(number: int) -> str:
    """Return a person's name."""
    return f"person {number}"


def told(number: int) -> Iterator[Proposed]:
    """Yield the facts of one person; the same ones each time."""
    chance = random.Random(number)
    for key, values in KEYS:
        for n in range(values):
            day = START + timedelta(days=chance.randrange(365) + 400 * n)
            yield Proposed(key, f"{key} {n} {chance.randrange(10**6)}", day, subject=person(number))


def fill(memory: Memory, rows: int) -> float:
    """State that many facts; return how many a second."""
    for key in LISTS:
        memory.facts.declare(key)
    facts = [one for number in range(rows // EACH) for one in told(number)]

    def state() -> None:
        for start in range(0, len(facts), BATCH):
            memory.facts.state_many(facts[start : start + BATCH])

    return len(facts) / timed(state)


# The peers. Each takes what is asked for and returns (key: value, from, until, confidence) rows.

_FIELDS = "r.text, f.since, f.until, f.confidence"
_SAME = (
    f"select f.record, {_FIELDS}, r.subject, r.kind from fact f "
    "join record r on r.ws = f.ws and r.id = f.record where f.ws = {ws} and f.shown = 1 "
    "and r.status = 0 and {asked} and f.since <= {day} and f.until{plus} > {day} "
    "order by f.since, f.record"
)
_PLAIN = (
    "select id, key, value, since, until, confidence, subject from plain where {asked} "
    "and since <= {day} and until > {day} order by since, id"
)
_TABLE = """
create table plain(
  id bigint primary key, subject text not null, key text not null, value text not null,
  since bigint not null, until bigint not null, confidence double precision not null
)
"""
_INDEXES = (
    "create index plain_subject on plain(subject, key, since)",
    "create index plain_about on plain(subject, until)",
    "create index plain_key on plain(key, until)",
    "create index plain_until on plain(until)",
)


Asked = tuple[Any, ...]


class Peer:
    """A connection of the driver's own, and the plain table beside the library's."""

    def __init__(self, store: Store, memory: Memory, url: str) -> None:
        self._postgres = store.name == "postgres"
        if self._postgres:
            import psycopg

            self._connection: Any = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        else:
            import apsw

            self._connection = apsw.Connection(url)
            self._connection.pragma("cache_size", -65_536)
        with memory._engine.reading(WORKSPACE) as (_, scope):
            self._scope = scope

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement with `?` for its values."""
        if self._postgres:
            cursor = self._connection.execute(sql.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []
        return list(self._connection.execute(sql, values))

    def copy(self) -> None:
        """Make the plain table of what is stated."""
        self.run(_TABLE)
        self.run(
            "insert into plain(id, subject, key, value, since, until, confidence) "
            "select f.record, r.subject, substr(r.text, 1, {at} - 1), substr(r.text, {at} + 2), "
            "f.since, f.until, f.confidence from fact f "
            "join record r on r.ws = f.ws and r.id = f.record".replace(
                "{at}", "strpos(r.text, ': ')" if self._postgres else "instr(r.text, ': ')"
            )
        )
        for one in _INDEXES:
            self.run(one)

    def same(self, key: str | None, subject: str | None, day: int) -> Asked:
        """Return what asks the library's own tables: the statement and its values."""
        found = [("f.name", digest(self._scope, "key", key))] if key else []
        found += [("f.subject", digest(self._scope, "subject", subject))] if subject else []
        plus = " + 0" if found else ""  # see fact_reading
        said = _SAME.replace("{ws}", str(self._scope.ws)).replace("{plus}", plus)
        return _asking(said, found, day)

    def plain(self, key: str | None, subject: str | None, day: int) -> Asked:
        """Return what asks the plain table."""
        found = [("key", f"{key} of {subject}")] if key and subject else []
        found += [("subject", subject)] if subject else []
        return _asking(_PLAIN, found, day)


def _asking(sql: str, found: Sequence[tuple[str, object]], day: int) -> Asked:
    asked = " and ".join(f"{name} = ?" for name, _ in found) or "1 = 1"
    said = sql.replace("{asked}", asked).replace("{day}", "?")
    return (said, *(value for _, value in found), day, day)


def measured(store: Store, rows: int, tell: Callable[[str], None] = say) -> Iterator[Row]:
    """Fill a database, and yield what is asked of it as rows of the table."""
    tell(f"{store.name}: stating {rows:,} facts")
    url = store.fresh()
    with Memory.open(url, embedder=None) as opened:
        memory = opened.workspace(WORKSPACE)
        rate = fill(memory, rows)
        yield Row(
            f"stating facts, {BATCH:,} at a time", store.name, "-", f"{rate:,.0f}/s", "-",
            round(rate), "facts/s",
        )  # fmt: skip
        peer = Peer(store, memory, url)
        try:
            peer.copy()
            yield from _compared(store.name, memory, peer, rows)
        finally:
            peer.close()
    store.drop(url)


def _compared(database: str, memory: Memory, peer: Peer, rows: int) -> Iterator[Row]:
    day = START + timedelta(days=700)
    micros = round((day - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000
    chance = random.Random(7)
    people = rows // EACH
    for name, key, whose, each in (
        ("one key of a person", "employer", True, 50),
        ("all of a person", None, True, 50),
        ("all of everybody", None, False, 1),
    ):
        subjects = [person(chance.randrange(people)) if whose else None for _ in range(SAMPLE)]
        found = memory.facts(day, key, subjects[0])
        for peers_name, say_how in ((SAME, peer.same), (PLAIN, peer.plain)):
            asked = [say_how(key, one, micros) for one in subjects]
            _alike(found, peer.run(*asked[0]))
            rounds = ROUNDS if len(found) < 50_000 else 5
            pair = turns(_ours(memory, day, key, subjects), _theirs(peer, asked), rounds, each=each)
            yield pair.row(
                f"facts as of a day: {name}", database, peers_name,
                LIMIT if peers_name == SAME else None, f"{len(found):,} facts of {rows:,}",
            )  # fmt: skip


def _ours(
    memory: Memory, day: datetime, key: str | None, subjects: Sequence[str | None]
) -> Callable[[], object]:
    """Return what asks of one person after the other through the library."""
    turn = cycle(subjects)
    return lambda: memory.facts(day, key, next(turn))


def _theirs(peer: Peer, asked: Sequence[Asked]) -> Callable[[], object]:
    turn = cycle(asked)
    return lambda: peer.run(*next(turn))


def _alike(ours: Sequence[Any], theirs: Sequence[tuple[Any, ...]]) -> None:
    """Make sure that equals are compared."""
    assert [one.id for one in ours] == [row[0] for row in theirs]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for, and print the table."""
    asked = _asked(arguments)
    with stores(asked.database) as opened:
        found = Found([machine(), *(store.version() for store in opened)], asked.json)
        for store in opened:
            for row in measured(store, asked.rows):
                found.add(row)
    found.show()


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.derived_facts", description=summary)
    parser.add_argument("--rows", type=int, default=ROWS, help="facts stated; default: 1000000")
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
