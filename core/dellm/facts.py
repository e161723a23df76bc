"""Facts: keys with values that hold from a day on, and until a day.

A fact is stated by records, each with the key and value as its text and made from the messages and
earlier facts that it was found in. Its dates follow from what is stated and in use: see fact_dates.

What is said again supports the fact it says: it is a record of its own, made from its own sources.
So when one of two independent statements is forgotten, the fact stands on the other, from the day
on which that was made; when all are, nothing shows that it ever held. A fact that was closed by what
is forgotten is open again, or closed by what is left: a date that outlived the statement it came from
would tell of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from . import exposure_rows, extracting, fact_reading, fact_rows, reading, storing
from .arguments import (
    check_callable,
    check_flag,
    check_iterable,
    check_text,
    check_whole,
    texts,
    whole_numbers,
)
from .database import Scope, Tx
from .errors import ContextForgotten, DellmError, InvalidInput, NotFound
from .exposures import Exposures
from .extracting import Extracted, Extractor, Proposed
from .fact_reading import Fact
from .fact_stand_ins import says_something
from .fact_writing import Claim, Said, Writer
from .plan import in_process
from .records import Context, Record, to_micros

if TYPE_CHECKING:
    from .engine import Engine
    from .receipts import Receipt

TRIES = 3  # how often what moved while an extractor read is read again
AT_ONCE = 20  # messages of one call of an extractor
KNOWN = 100  # known facts that an extractor is given: the newest


class Keeper(Protocol):
    """The memory whose facts these are."""

    id: str

    def confirm(self, id_: int) -> Record:
        """Let a record that waits be used."""

    def reject(self, id_: int) -> Receipt:
        """Forget a record that waits."""


class Facts:
    """The facts of one workspace; `memory.facts()` are those that hold now. Thread-safe."""

    def __init__(self, engine: Engine, memory: Keeper) -> None:
        """Use Memory.facts instead."""
        self._engine = engine
        self._memory = memory
        self.workspace = memory.id

    # reading

    def __call__(
        self,
        as_of: datetime | int | None = None,
        key: str | None = None,
        subject: str | None = None,
    ) -> list[Fact]:
        """Return the facts that hold at a moment (None: now), oldest first, of everybody or a subject.

        A naive datetime is UTC, a number microseconds since 1970. Raises InvalidInput.
        """
        now = self._now()
        moment = now if as_of is None else extracting.check_moment(as_of, "as_of=")
        if key is not None:
            extracting.check_key(key)
        extracting.check_subject(subject)
        with self._engine.reading(self.workspace) as (tx, scope):
            found = fact_reading.at(tx, scope, moment, key, subject, now)
        return self._told(found)

    def history(self, key: str, subject: str | None = None) -> list[Fact]:
        """Return every fact of a key that held at some time, oldest first; `subject` None: the user's.

        One whose valid_from and valid_to are the same was corrected at once. Raises InvalidInput.
        """
        extracting.check_key(key)
        extracting.check_subject(subject)
        with self._engine.reading(self.workspace) as (tx, scope):
            found = fact_reading.history(tx, scope, key, subject, self._now())
        return self._told(found)

    def previous(self, key: str, subject: str | None = None) -> Fact | None:
        """Return the fact of a key that ended last: "where did I work before?". None if none did."""
        now = self._now()
        ended = [
            one for one in self.history(key, subject) if one.since < one.until and one.until <= now
        ]
        return max(ended, key=lambda one: (one.until, one.since, one.id), default=None)

    def supports(self, id_: int) -> list[int]:
        """Return the records that state the fact of a record: to forget it by id, forget them all.

        Empty where the record states none. Raises InvalidInput.
        """
        check_whole(id_, "The id")
        with self._engine.reading(self.workspace) as (tx, scope):
            return fact_reading.supports(tx, scope.ws, id_)

    def keys(self) -> dict[str, bool]:
        """Return the keys that were declared, with whether they have many values at a time."""
        with self._engine.reading(self.workspace) as (tx, scope):
            return fact_rows.declared(tx, scope.ws)

    def _told(self, found: list[Fact]) -> list[Fact]:
        self._engine.readers.tell(self.workspace, [one.id for one in found])
        return found

    # stating

    def declare(self, key: str, *, many: bool = True) -> None:
        """Say that a key has many values at a time, or with `many=False` one, which is the default.

        The dates of what is stated already change accordingly. A declared name is part of the
        program, not of what is remembered: it is kept until it is declared otherwise, and no forget
        takes it. Raises InvalidInput.
        """
        extracting.check_key(key)
        check_flag(many, "many=")
        with self._engine.writing(self.workspace) as (tx, scope):
            storing.lock(tx, scope.ws)
            fact_rows.declare(tx, scope, key, many=many)

    def state(
        self,
        key: str,
        value: str,
        *,
        valid_from: datetime | int | None = None,
        valid_to: datetime | int | None = None,
        confidence: float = 1.0,
        context: Context | Sequence[int] = (),
        subject: str | None = None,
        inferred: bool = False,
        sensitivity: str | None = None,
    ) -> int:
        """State that a key has a value from a moment on (None: now); return the record.

        With one value at a time another one is closed by that; of a list the value is one more.
        What holds already is not stated again by the same sources: then the record is the one that
        is there. `context` is what it was found in. Inferred and sensitive, it waits for
        confirmation. Raises ContextForgotten, NotFound, InvalidInput, StorageError.
        """
        one = Proposed(key, value, valid_from, valid_to, confidence, subject, inferred, sensitivity)
        found = self._write([extracting.claim(one, self._now(), self._ids(context))]).records[0]
        assert found is not None  # noqa: S101 - only what was extracted is refused
        return found

    def state_many(
        self, facts: Sequence[Proposed], *, context: Context | Sequence[int] = ()
    ) -> list[int | None]:
        """State many facts, made from the same, in one transaction; return the record of each.

        One with `closes` ends a fact; None where there was none. Raises as `state`.
        """
        check_iterable(facts, "facts=")
        now, ids = self._now(), self._ids(context)
        claims = [extracting.claim(one, now, ids) for one in facts]
        return self._write(claims).records if claims else []

    def close(
        self,
        key: str,
        value: str | None = None,
        *,
        at: datetime | int | None = None,
        context: Context | Sequence[int] = (),
        subject: str | None = None,
    ) -> list[int]:
        """Say that a key has a value no longer from a moment on (None: now), or that it has none.

        Its history stays. Returns the facts that were closed, by their records; each value of a list
        counts. When the context that says so is forgotten, they are open again. Raises as `state`.
        """
        one = Proposed(key, value, at, subject=subject, closes=True)
        return self._write([extracting.claim(one, self._now(), self._ids(context))]).closed

    def _write(self, claims: Sequence[Claim]) -> Said:
        with self._engine.writing(self.workspace) as (tx, scope):
            storing.lock(tx, scope.ws)
            writer = Writer(tx, scope, self._now(), self._engine.tips)
            said = writer.write(claims)
        self._noted(writer)
        return said

    def _noted(self, writer: Writer) -> None:
        for tip in writer.noted:
            self._engine.tips.note(writer.scope.ws, "", tip)

    def _ids(self, context: Context | Sequence[int]) -> list[int]:
        if isinstance(context, Context):
            if context.workspace != self.workspace:
                raise InvalidInput("The context is of another workspace.")
            return context.ids
        return whole_numbers(context, "context=")

    # what waits

    def waiting(self) -> list[Fact]:
        """Return what was inferred, is sensitive, and waits for the user to confirm it, oldest first."""
        with self._engine.reading(self.workspace) as (tx, scope):
            found = fact_reading.waiting(tx, scope, self._now())
        return self._told(found)

    def confirm(self, id_: int) -> Fact:
        """Let a fact that waits hold from its day on; return it. Raises NotFound."""
        self._must_wait(id_)
        self._memory.confirm(id_)
        with self._engine.reading(self.workspace) as (tx, scope):
            found = fact_reading.several(tx, scope, [id_], self._now())
        if not found:
            raise NotFound(f"The fact with the id {id_} went meanwhile.")
        return found[0]

    def reject(self, id_: int) -> Receipt:
        """Forget a fact that waits, and do not extract it from its message again. Raises NotFound."""
        self._must_wait(id_)
        return self._memory.reject(id_)

    def _must_wait(self, id_: int) -> None:
        check_whole(id_, "The id")
        with self._engine.reading(self.workspace) as (tx, scope):
            waiting = {one.id for one in fact_reading.waiting(tx, scope, self._now())}
        if id_ not in waiting:
            raise NotFound(f"No fact with the id {id_} waits for confirmation.")

    # extracting

    def extract(
        self,
        extractor: Extractor,
        *,
        thread: str | None = None,
        records: Sequence[int] | None = None,
        again: bool = False,
        roles: Sequence[str] = ("user",),
    ) -> Extracted:
        """Have an extractor find facts in a thread's messages, or in records, and store them.

        It reads what it has not read yet, AT_ONCE messages at a time, each time with the facts that
        hold by then; each part is one transaction, so that what breaks off goes on at the next call.
        `again` reads everything; what was extracted before is not doubled, and what was forgotten
        does not come back. `roles` are whose messages count.
        Raises ModelError, ContextForgotten (what it read was forgotten meanwhile, again and again),
        NotFound, InvalidInput, StorageError.
        """
        check_callable(extractor, "extractor=")
        check_flag(again, "again=")
        if (thread is None) == (records is None):
            raise InvalidInput("Extracting needs either thread= or records=.")
        name = extracting.name_of(extractor)
        left = self._unread(thread, records, None if again else name, texts(roles, "roles="))
        done = [
            self._extract_some(extractor, left[start : start + AT_ONCE])
            for start in range(0, len(left), AT_ONCE)
        ]
        return Extracted(
            tuple(id_ for one in done for id_ in one.stated),
            tuple(id_ for one in done for id_ in one.waiting),
            tuple(id_ for one in done for id_ in one.closed),
            sum(one.refused for one in done),
            sum(one.messages for one in done),
            sum(one.calls for one in done),
        )

    def _unread(
        self,
        thread: str | None,
        records: Sequence[int] | None,
        extractor: str | None,
        roles: Sequence[str],
    ) -> list[int]:
        if thread is not None:
            check_text(thread, "thread=")
            with self._engine.reading(self.workspace) as (tx, scope):
                return fact_reading.unseen(tx, scope, thread, roles, extractor, self._now())
        ids = list(dict.fromkeys(whole_numbers(records or (), "records=")))
        with self._engine.reading(self.workspace) as (tx, scope):
            fact_reading.require(tx, scope, ids)
            seen = fact_reading.seen(tx, scope, ids, extractor)
        return [one for one in ids if one not in seen]

    def _extract_some(self, extractor: Extractor, ids: Sequence[int]) -> Extracted:
        calls = 0
        for left in reversed(range(TRIES)):
            messages, known, lists = self._given(extractor, ids)
            if not messages:
                break
            calls += 1
            try:
                found = extracting.ask(extractor, messages, known, lists)
                said = self._keep(found, messages, known, extractor)
            except ContextForgotten:
                self._sent(extractor, (*known, *messages))
                if not left:
                    raise
            except BaseException:  # it was sent, or may have been, and nothing else will say so
                self._sent(extractor, (*known, *messages))
                raise
            else:
                return Extracted(
                    tuple(said.new), tuple(said.waiting), tuple(said.closed), said.refused,
                    len(messages), calls,
                )  # fmt: skip
        return Extracted(calls=calls)

    def _given(
        self, extractor: Extractor, ids: Sequence[int]
    ) -> tuple[list[Record], list[Fact], list[str]]:
        """Return what an extractor is given: the messages that are there, known facts, list keys."""
        now = self._now()
        with self._engine.reading(self.workspace) as (tx, scope):
            found = reading.several(tx, scope, ids, now)
            lists = [key for key, many in fact_rows.declared(tx, scope.ws).items() if many]
            known = self._known(extractor, tx, scope, now)
        return [found[one] for one in ids if one in found], known, lists

    @staticmethod
    def _known(extractor: Extractor, tx: Tx, scope: Scope, now: int) -> list[Fact]:
        if getattr(extractor, "uses_known", True) is False:
            return []
        return fact_reading.newest(tx, scope, KNOWN, now)

    def _keep(
        self,
        found: Sequence[Proposed],
        messages: Sequence[Record],
        known: Sequence[Fact],
        extractor: Extractor,
    ) -> Said:
        """Store what was found, that the messages were read, and who was sent them."""
        context = [one.id for one in known] + [one.id for one in messages]
        now = max(to_micros(one.created_at) for one in messages)
        model = extracting.seen_by(extractor)
        stated = [extracting.claim(one, now, context, messages, model) for one in found]
        claims = [one for one in stated if says_something(one.value or one.key)]
        with self._engine.writing(self.workspace) as (tx, scope):
            storing.lock(tx, scope.ws)
            writer = Writer(tx, scope, self._now(), self._engine.tips)
            fact_reading.require(tx, scope, context)
            said = writer.write(claims)
            fact_rows.see(tx, scope.ws, [one.id for one in messages], extracting.name_of(extractor))
            if model is not None and not in_process(model):
                exposure_rows.note(tx, scope.ws, context, (model, False), self._now())
        self._noted(writer)
        return said

    def _sent(self, extractor: Extractor, given: Sequence[Fact | Record]) -> None:
        """Note what an extractor's model was sent although nothing came of it."""
        model = extracting.seen_by(extractor)
        if model is not None:
            with suppress(DellmError):
                Exposures(self._engine, self.workspace).note([one.id for one in given], model=model)

    def _now(self) -> int:
        return self._engine.options.clock()
