"""Answers kept to be given again: by the same question, or by one that means the same.

An entry is an item of family "answer". Its record holds the question, and in its payload the
question's vector; the answer is not copied, but read from the reply that the entry is made from. So
one forget reaches all of it: the question by what it says, the rest as what was made from the reply.
A hit is a new record, made from the present context, the reply and the entry.
Reached as `memory.answers`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from . import (
    audiences,
    exposures,
    governing,
    guarding,
    indexing,
    provenance,
    reading,
    sequences,
    storing,
)
from .arguments import check_choice, check_flag, check_number, check_text, whole_numbers
from .cells import Atom, Sources
from .database import R_USABLE, Scope, Tx, Vector
from .encoding import decode, encode, load_json
from .engine import Engine
from .errors import ContextForgotten, InvalidInput
from .item_rows import ALL_KNOWN, CACHED
from .item_search import stored
from .items import Items, Keep
from .records import Context, Draft, Record
from .sequences import Tip

FAMILY = "answer"
SAME = 0.9  # cosine from which two questions count as one, unless something else is said
WAYS = ("exact", "meaning", "both")
_SPARE = " \t?!.,;:…¿¡？！。"  # around a question these say nothing


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a search for an answer goes by."""

    question: str
    context: Sequence[int]
    thread: str | None
    same_context: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    """What is kept of an answer: its record, the question, the reply's record, and the vector."""

    id: int
    question: str
    reply: int
    vector: Vector | None = None


class Answers:
    """The cached answers of one workspace. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.answers instead."""
        self._engine = engine
        self.workspace = workspace
        self._items = Items(engine, workspace)

    def keep(
        self,
        question: str | Record,
        reply: Record | int,
        *,
        scope: str | None = None,
        ttl: float | None = None,
    ) -> int | None:
        """Keep a reply as the answer to a question, in the place of an earlier one; return its entry.

        `scope` is who may be given it, such as a user's name: by default only the reply's thread. The
        name itself is not stored. `ttl` is how many minutes it lives. The entry's id is that of a
        record. Where the memory has an embedder, the question is found by its meaning as well.
        A question that may not be stored as it is, since it holds a credential or what a guard keeps
        out, is not kept, nor sent to the embedder: None.
        Raises NotFound, ContextForgotten (the reply went meanwhile), CredentialRefused,
        EmbedderError, InvalidInput.
        """
        known = [self._record(question).id] if isinstance(question, Record) else []
        asked = question.text if isinstance(question, Record) else question
        _check_question(asked)
        source = self._record(reply)
        if not self._may_be_stored(asked):
            return None
        draft = Draft(
            asked,
            role=CACHED,
            kind="state",
            payload=self._packed(asked),
            metadata={"refs": [source.id], "embedder": self._space(), ALL_KNOWN: True},
        )
        atom = Atom(draft, made=Sources(known=[source.id, *known]))
        space = self._scope(source.thread if scope is None else scope, shared=scope is not None)
        name = self._items.digest([_normal(asked)])
        self._items.put(FAMILY, [Keep(space, name, atom, ttl)])
        if atom.id is None:
            if self._engine.embedder is not None:  # it was sent there all the same
                exposures.note_query(self._engine, self.workspace, self._engine.embedder)
            raise ContextForgotten("The reply that was to be kept went meanwhile.")
        self._note(atom.id)
        return atom.id if self._is_whole(atom.id, asked, Keep(space, name)) else None

    def find(
        self,
        question: str,
        *,
        context: Context | Sequence[int] = (),
        thread: str | None = None,
        scope: str | None = None,
        threshold: float | None = None,
        by: str | None = None,
        same_context: bool = True,
    ) -> Record | None:
        """Return the answer as a new record of the thread, None where there is none.

        `by` is "exact" (the question, whatever its case, spaces and closing marks), "meaning" (its
        cosine in [-1, 1] to a kept question is at least `threshold`, by default 0.9) or "both", the
        default where the memory has an embedder. `context` is what would be in the prompt now; the
        new record is made from it, the kept reply and the entry. With `same_context` an answer only
        counts that was made from just those records, the questions themselves aside; without it, it
        may be an answer of before something changed. `scope` is as for keep, by default `thread`.
        Raises ContextForgotten (of `context`), NotFound, EmbedderError, InvalidInput.
        """
        _check_question(question)
        by = by or ("both" if self._engine.embedder is not None else "exact")
        check_choice(by, WAYS, "by=")
        check_flag(same_context, "same_context=")
        least = SAME if threshold is None else threshold
        check_number(least, "threshold=")
        if isinstance(context, Context) and thread is None:
            thread = context.thread
        storing.check_thread(thread)
        asked = _Asked(question, _ids(context, self.workspace), thread, same_context)
        if not self._engine.scope(self.workspace).ws:
            return None
        space = self._scope(thread if scope is None else scope, shared=scope is not None)
        for item in self._candidates(question, space, by, least):
            if (found := self._given(item, asked)) is not None:
                return found
        return None

    def sweep(self) -> int:
        """Delete the entries whose time is over; return how many."""
        return self._items.sweep(FAMILY)

    def clear(self, scope: str | None = None) -> int:
        """Delete all entries, or those of a scope; return how many. The replies stay."""
        return self._items.clear(FAMILY, () if scope is None else self._scope(scope, shared=True))

    # finding

    def _candidates(
        self, question: str, space: tuple[str, ...], by: str, least: float
    ) -> Iterator[_Entry]:
        """Yield the entries that may answer, the one of the same question first, then the nearest."""
        normal = _normal(question)
        if by != "meaning":
            (found,) = self._items.get(FAMILY, [(space, self._items.digest([normal]))])
            if found is not None and _normal(found.text) == normal:
                yield _Entry(found.id, found.text, found.record.metadata["refs"][0])
        if by == "exact":
            return
        indexing.needed(self._engine)
        with self._engine.reading(self.workspace) as (tx, scope):
            same = _comparable(tx, scope, space, self._space(), self._engine.options.clock())
        if not same:
            return
        vector = self._vector(question)
        vectors = np.stack([one.vector for one in same if one.vector is not None])
        scores = vectors @ vector
        for at in np.argsort(-scores, kind="stable"):
            if scores[at] < least:
                return
            yield same[at]

    def _given(self, item: _Entry, asked: _Asked) -> Record | None:
        """Store and return the hit on an entry; None where the entry holds no longer, or not here."""
        engine, thread = self._engine, asked.thread or ""
        with engine.writing(self.workspace) as (tx, scope):
            storing.lock(tx, scope.ws)
            at = engine.options.clock()
            reply = _reply(tx, scope, item, at)
            if reply is None or (
                asked.same_context and not _alike(tx, scope, reply, item.question, asked, at)
            ):
                return None
            draft = _given_again(reply, asked.thread)
            made, numbers = storing.store(tx, scope, [draft], at, again=True)
            ids = list(dict.fromkeys([*asked.context, reply.id, item.id]))
            tip: Tip | None = sequences.attach_context(
                tx, scope, made[0].id, ids, thread, numbers.sequence, engine.tips
            )
            if numbers.governed & governing.AUDIENCES:
                audiences.require_readable(tx, scope, ids)
                audiences.narrow(tx, scope, [made[0].id], numbers.governed)
            given = governing.settled(tx, scope, made[0], numbers.governed)
        if tip is not None:
            engine.tips.note(scope.ws, thread, tip)
        return given

    # what entries hold

    def _may_be_stored(self, question: str) -> bool:
        draft = Draft(question, role=CACHED)
        with self._engine.reading(self.workspace) as (tx, scope):
            row = tx.one("select guards from workspace where ws = :ws", ws=scope.ws)
            screened = scope.entering.screened([draft])
            at, number = self._engine.options.clock(), row[0] if row else 0
            return guarding.screened(tx, scope, screened, number, at) == [draft]

    def _is_whole(self, entry: int, question: str, without: Keep) -> bool:
        """Whether an entry holds its question as it is; delete one of which a guard took some."""
        with self._engine.reading(self.workspace) as (tx, scope):
            found = reading.several(tx, scope, [entry], None).get(entry)
        whole = found is None or found.text == question
        if not whole:  # its vector and its name were made of all of it
            self._items.put(FAMILY, [without])
        return whole

    def _record(self, reply: Record | int) -> Record:
        if isinstance(reply, Record):
            if reply.workspace != self.workspace:
                raise InvalidInput("The record is of another workspace.")
            reply = reply.id
        (id_,) = whole_numbers([reply], "reply=")
        with self._engine.reading(self.workspace) as (tx, scope):
            return reading.get(tx, scope, id_, self._engine.options.clock())

    def _scope(self, name: str | None, *, shared: bool) -> tuple[str, ...]:
        """Return the space of a scope: a digest, since its name may be a person's."""
        if name is not None:
            check_text(name, "scope=")
        whose = audiences.label(self._engine.actor)
        said = ["scope" if shared else "thread", name or ""]
        return (self._items.digest([*said, whose] if whose else said),)

    def _space(self) -> str | None:
        return None if self._engine.embedder is None else self._engine.embedder.name

    def _vector(self, question: str) -> Vector:
        embedder = indexing.needed(self._engine)
        exposures.note_query(self._engine, self.workspace, embedder)
        return indexing.query_vector(self._engine, question)

    def _packed(self, question: str) -> bytes | None:
        """Return the vector of a question as float32, little-endian; None without an embedder."""
        if self._engine.embedder is None:
            return None
        vector = indexing.query_vector(self._engine, question)
        return np.ascontiguousarray(vector, "<f4").tobytes()

    def _note(self, entry: int) -> None:
        """Note that the question was sent to the embedder, where that is somebody else's."""
        embedder = self._engine.embedder
        if embedder is None or exposures.outsider(embedder) is None:
            return
        with self._engine.writing(self.workspace) as (tx, scope):
            storing.lock(tx, scope.ws)
            at = self._engine.options.clock()
            exposures.note_embedded(tx, scope, embedder, [entry], at)


def _given_again(reply: Record, thread: str | None) -> Draft:
    """Return what a hit says: what the reply does, governed as that is."""
    return Draft(
        reply.text,
        role=reply.role,
        thread=thread,
        metadata={"answer_of": reply.id},
        subject=reply.subject,
        purpose=reply.purpose,
        sensitivity=reply.sensitivity,
        retention_until=reply.retention_until,
    )


def _check_question(question: str) -> None:
    check_text(question, "question=")
    if not question.strip():
        raise InvalidInput("The question is blank.")


def _ids(context: Context | Sequence[int], workspace: str) -> list[int]:
    if not isinstance(context, Context):
        return whole_numbers(context, "context=")
    if context.workspace != workspace:
        raise InvalidInput("The context is of another workspace.")
    return context.ids


def _normal(question: str) -> str:
    """Return a question without what it may be asked again without: case, spaces, closing marks."""
    folded = unicodedata.normalize("NFKC", question).casefold()
    return " ".join(folded.split()).strip(_SPARE) or folded


def _comparable(
    tx: Tx, scope: Scope, space: tuple[str, ...], embedder: str | None, at: int
) -> list[_Entry]:
    """Return the entries of a scope whose vectors are the embedder's.

    One whose question was redacted since has none.
    """
    rows = tx.all(
        "select r.id, r.text, r.metadata, r.payload from item i "
        "join record r on r.ws = :ws and r.id = i.record "
        "where i.ws = :ws and i.family = :family and i.space = :space "
        f"and (i.expires_at is null or i.expires_at > :at) and {R_USABLE} "
        "and r.payload is not null order by r.id desc",
        ws=scope.ws,
        family=encode(FAMILY),
        space=stored(space),
        at=at,
    )
    found = [(row, load_json(row[2])) for row in rows]
    return [
        _Entry(row[0], decode(row[1]), said["refs"][0], np.frombuffer(bytes(row[3]), "<f4"))
        for row, said in found
        if said.get("embedder") == embedder
    ]


def _reply(tx: Tx, scope: Scope, item: _Entry, at: int) -> Record | None:
    """Return the reply of an entry, if both are still there and its thread has not dropped it."""
    id_ = item.reply
    still = tx.one(
        "select 1 from item where ws = :ws and record = :record "
        "and (expires_at is null or expires_at > :at) and not exists "
        "(select 1 from hidden where ws = :ws and record = :reply and how = 1)",
        ws=scope.ws,
        record=item.id,
        at=at,
        reply=id_,
    )
    found = reading.several(tx, scope, [item.id, id_], at)
    return found.get(id_) if still is not None and item.id in found else None


def _alike(tx: Tx, scope: Scope, reply: Record, question: str, asked: _Asked, at: int) -> bool:
    """Whether a reply was made from just what is in the prompt now, both questions left out."""
    before = provenance.context_of(tx, scope.ws, reply.id)
    apart = {_normal(question), _normal(asked.question)}
    differing = set(before) ^ set(asked.context)
    found = reading.several(tx, scope, sorted(differing), at)
    return all(id_ in found and _normal(found[id_].text) in apart for id_ in differing)
