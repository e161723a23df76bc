"""What is remembered, for those whom it is about and those who answer for it: `memory.remembered`.

"Show what you remember about me, or about this project. Where is it from, who may read it, when does it
expire?" Each line has its answer; "why" is `memory.explain`, "correct this" `memory.correct`, "delete this
everywhere" `memory.forget`. After the ledger of the seed document on memory governance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString

from . import concerns, governed, portable, storing
from .arguments import check_text, check_whole, path_of
from .database import R_USABLE, Scope, Tx
from .encoding import decode, encode
from .engine import Engine
from .errors import InvalidInput
from .governed import Governed
from .portable import Brought, Exporter
from .records import Record
from .storing import COLUMNS

PAGE = 500
_COLUMNS = ", ".join(f"r.{name}" for name in COLUMNS.split(", "))
# Internal states of agents are no memory that a person could read.
_READ: LiteralString = f"{R_USABLE} and r.kind <> 'state'"


@dataclass(frozen=True, slots=True)
class Known:
    """A record that may be read, and how it is governed: where from, what for, until when."""

    record: Record
    governed: Governed = field(repr=False)

    def __str__(self) -> str:
        record = self.record
        source = f"; from {self.governed.source}" if self.governed.source else ""
        return f"{record.id} {record.role}: {record.text}  [{self.governed}{source}]"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: what is about somebody, of one thread, for one purpose; all if nothing."""

    subject: str | None = field(default=None, repr=False)
    thread: str | None = None
    purpose: str | None = None

    def check(self) -> None:
        """Raise InvalidInput for what is blank or no text."""
        for name in ("subject", "thread", "purpose"):
            value = getattr(self, name)
            if value is not None:
                check_text(value, f"{name}=")
                if not value.strip():
                    raise InvalidInput(f"{name}= is blank.")


class Remembered:
    """What a workspace remembers; call it for a page of it. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str, memory: Exporter) -> None:
        """Use Memory.remembered instead."""
        self._engine = engine
        self.workspace = workspace
        self._memory = memory

    def __call__(
        self,
        subject: str | None = None,
        *,
        thread: str | None = None,
        purpose: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Known]:
        """Return the first `limit` records above the id `after` that may be read, by id.

        `subject`: that are about somebody (as their writers said; case and outer space aside);
        `thread`, `purpose`: of one conversation, for one purpose. Costs what is returned, not what is
        stored. Raises InvalidInput.
        """
        asked = Asked(subject, thread, purpose)
        asked.check()
        for name, number in (("after=", after), ("limit=", limit)):
            check_whole(number, name)
            if number < 0:
                raise InvalidInput(f"{name} is zero or more.")
        self._complete(asked)
        with self._engine.reading(self.workspace) as (tx, scope):
            found = self._page(tx, scope, asked, after, limit)
            known = governed.of_records(tx, scope, found)
        self._engine.readers.tell(self.workspace, [one.id for one in found])
        return [Known(one, known[one.id]) for one in found]

    def each(
        self, subject: str | None = None, *, thread: str | None = None, purpose: str | None = None
    ) -> Iterator[Known]:
        """Yield all of them by id, in pages; no transaction stays open. Raises InvalidInput."""
        first = self(subject, thread=thread, purpose=purpose, limit=PAGE)  # it asks at once
        return self._rest(first, Asked(subject, thread, purpose))

    def _rest(self, page: list[Known], asked: Asked) -> Iterator[Known]:
        while page:
            yield from page
            last = page[-1].record.id
            page = self(
                asked.subject, thread=asked.thread, purpose=asked.purpose, after=last, limit=PAGE
            )

    def export(
        self,
        path: str | Path,
        subject: str | None = None,
        *,
        thread: str | None = None,
        purpose: str | None = None,
    ) -> int:
        """Write them to a file with what each was made from; return how many (GDPR article 20).

        JSON lines, the first of which says what they are. Raises InvalidInput, where the policy allows
        no export PolicyRefused.
        """
        target = path_of(path, "path")
        several = self.each(subject, thread=thread, purpose=purpose)
        return portable.write(self._memory, target, self._engine.origin, several)

    def bring_back(self, path: str | Path) -> Brought:
        """Store what an export holds and is not here; nothing that was forgotten comes back.

        A record of this database is known by its id, one of another by where it came from, so this is
        safe to repeat. What was made from a record that was forgotten is left out as well; guards and
        the policy apply as to every write. Raises InvalidInput for a file that is no export.
        """
        source = path_of(path, "path")
        with self._engine.reading(self.workspace) as (tx, scope):
            row = tx.one("select last_record from workspace where ws = :ws", ws=scope.ws)
        newest = 0 if row is None else int(row[0])
        return portable.read(self._memory, source, self._engine.origin, newest)

    def _complete(self, asked: Asked) -> None:
        """Have those records found, too, that were stored before whom they are about was kept."""
        if asked.subject is None:
            return
        with self._engine.reading(self.workspace) as (tx, scope):
            if not concerns.missing(tx, scope.ws):
                return
        with self._engine.writing(self.workspace) as (tx, scope):
            storing.lock(tx, scope.ws)
            concerns.complete(tx, scope)

    def _page(self, tx: Tx, scope: Scope, asked: Asked, after: int, limit: int) -> list[Record]:
        """Return a page; about somebody, by the key of the subject, else by id."""
        joined: LiteralString = (
            "from record r where r.ws = :ws and r.id > :after"
            if asked.subject is None
            else "from concerns c cross join record r where c.ws = :ws and c.key = :key "
            "and c.record > :after and r.ws = :ws and r.id = c.record"
        )
        key = 0 if asked.subject is None else concerns.key_of(scope, asked.subject)
        rows = tx.all(
            f"select {_COLUMNS} {joined} and {_READ} "
            "and (cast(:thread as text) is null or r.thread = :thread) "
            "and (cast(:purpose as text) is null or r.purpose = :purpose) "
            "order by r.id limit :limit",
            ws=scope.ws,
            after=after,
            at=self._engine.options.clock(),
            thread=None if asked.thread is None else encode(asked.thread),
            purpose=None if asked.purpose is None else encode(asked.purpose),
            limit=limit,
            **({} if asked.subject is None else {"key": key}),
        )
        return [Record.from_row(row, scope.name) for row in rows if _about(row, asked.subject)]


def _about(row: tuple[object, ...], subject: str | None) -> bool:
    """Tell whether a row is about a subject: its key may be that of another."""
    said = None if row[10] is None else decode(str(row[10]))
    return subject is None or (said is not None and _plain(said) == _plain(subject))


def _plain(subject: str) -> str:
    return " ".join(subject.split()).casefold()
