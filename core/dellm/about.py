"""What a phrase is about, in one memory: the records and the clauses that a developer would name.

Exact where the phrase names a value, in any spelling; by names, in any script, where it names
someone; else by words and meaning. It guesses: the plans are for a look before they are executed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import regex

from . import scripts, subjects, values
from .errors import EmbedderError, SelectorError
from .memory import Memory
from .plan import Plan
from .records import Record
from .subjects import Subject, akin, words

AS_GOOD = 0.9  # share of the best score from which a record is meant as well
OF_THEIRS = 0.75  # the same where a name says whose it is already
MOST_ALIKE = 200  # records whose closeness in meaning is looked at
LEXICAL = 0.5  # weight of the words beside the meaning
_EMAIL_TAG = regex.compile(r"(?P<name>[^+@\s]+)(?:\+[^@\s]*)?@(?P<host>\S+)")


@dataclass(frozen=True, slots=True)
class Meant:
    """What a phrase means: whole records by `ids`, and `clauses`, (id, the clause's text) each."""

    ids: tuple[int, ...] = ()
    clauses: tuple[tuple[int, str], ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        """Whether anything is meant."""
        return bool(self.ids or self.clauses)


def meant(memory: Memory, phrase: str, *, thread: str | None = None, region: str = "US") -> Meant:
    """Return what a phrase is about in a memory, or in one thread of it; nothing is changed.

    "phone 415-555-0123", "everything about Frank the engineer", "user's city of residence". Of a
    record that states two things, only the clause meant is named, unless it is about the named one
    altogether. Records that refer back to one meant ("the same customer, written Li Na") go along.
    Raises SelectorError for a phrase without a word, and as search by meaning does.
    """
    subject = subjects.read(phrase, region=region)
    if not (subject.words or subject.values or subject.numbers or subject.times):
        raise SelectorError("The phrase holds no word.")
    records = memory.history(thread) if thread is not None else list(memory.export(by="system"))
    return _Finder(memory, phrase, subject, records, region).meant()


def plans(
    memory: Memory, phrase: str, *, mode: str = "erase", thread: str | None = None
) -> list[Plan]:
    """Return the plans for what a phrase is about: one for whole records, one for each clause.

    `mode` is that of the whole records; clauses are redacted: execute each with
    `memory.forget(plan, unit="clause")`. Empty where nothing is meant.
    """
    found = meant(memory, phrase, thread=thread)
    whole = [memory.plan(ids=found.ids, mode=mode)] if found.ids else []
    return whole + [
        memory.plan(quote=clause, ids=[id_], mode="redact") for id_, clause in found.clauses
    ]


class _Finder:
    """Looks for one phrase among the records of a memory."""

    def __init__(
        self, memory: Memory, phrase: str, subject: Subject, records: list[Record], region: str
    ) -> None:
        self._memory = memory
        self._phrase = phrase
        self._subject = subject
        self._records = records
        self._region = region
        self._words = {record.id: words(record.text) for record in records}
        self._rarity = {word: self._rarity_of(word) for word in subject.words}

    def meant(self) -> Meant:
        subject = self._subject
        if named := self._exact(widened=False) or self._exact(widened=True):
            return Meant(self._along(named))
        if subject.numbers and (numbered := self._beside_words(subject.numbers)):
            return Meant(self._along(numbered))
        if subject.names and (called := self._called()):
            if subject.whole or subject.others:
                return Meant(self._along(self._theirs(called) if subject.part else called))
            return self._in_part(self._theirs(called))
        return self._in_part(self._ranked(self._records, AS_GOOD))

    # by value

    def _exact(self, *, widened: bool) -> list[Record]:
        """Return the holders of a value or a time; `widened`: also as a part of a longer value.

        That only counts where no record holds the very value: "db01" is not "db01-replica".
        """
        return [
            one
            for one in self._records
            if any(self._holds(value, one.text, widened) for value in self._subject.values)
            or any(
                subjects.minutes(time) in self._subject.times
                for time in subjects.TIME.finditer(one.text)
            )
        ]

    def _holds(self, value: str, text: str, widened: bool = False) -> bool:
        spans = values.find(values.needle(value, region=self._region), text, region=self._region)
        if any(widened or not one.widened for one in spans):
            return True
        asked = _EMAIL_TAG.fullmatch(value)
        return asked is not None and any(
            _mailbox(text[one.start : one.end]) == _mailbox(value)
            for one in values.recognise(text, region=self._region, kinds={"email"})
        )

    def _beside_words(self, numbers: Sequence[str]) -> list[Record]:
        """Return the holders of a short number with most of the phrase's other words beside it."""
        holders = [
            one for one in self._records if any(self._holds(number, one.text) for number in numbers)
        ]
        return self._with_most(holders)

    def _with_most(self, records: list[Record]) -> list[Record]:
        shares = {one.id: self._share(self._words[one.id], self._own_words()) for one in records}
        best = max(shares.values(), default=0.0)
        return [one for one in records if shares[one.id] >= AS_GOOD * best]

    # by name

    def _called(self) -> list[Record]:
        names = {*self._subject.names, *self._aliases()}
        return [
            one
            for one in self._records
            if any(_named(name, one.text, self._region) for name in names)
        ]

    def _aliases(self) -> set[str]:
        """Return the other names that a record states for a name of the phrase."""
        return {
            other
            for record in self._records
            for pair in values.aliases(record.text)
            for name, other in (pair, pair[::-1])
            if any(_named(one, name, self._region) for one in self._subject.names)
        }

    def _theirs(self, called: list[Record]) -> list[Record]:
        """Of the records that name someone, return those about what else the phrase says."""
        own = self._own_words()
        said = [one for one in called if self._share(self._words[one.id], own) > 0]
        if 0 < len(said) < len(called):
            return self._with_most(said)
        return self._ranked(called, OF_THEIRS) if len(called) > 1 and own else called

    def _own_words(self) -> tuple[str, ...]:
        """Return the words of the phrase that are no part of a name."""
        inside = {word for name in self._subject.names for word in words(name)}
        return tuple(word for word in self._subject.words if word not in inside)

    # by words and meaning

    def _ranked(self, records: list[Record], least: float) -> list[Record]:
        """Return the best record and those nearly as good."""
        scores = dict(zip([one.id for one in records], self._scores(records), strict=True))
        best = max(scores.values(), default=0.0)
        return [one for one in records if best > 0 and scores[one.id] >= least * best]

    def _scores(self, records: list[Record]) -> list[float]:
        lexical = [self._share(self._words[one.id], self._subject.words) for one in records]
        close = self._close()
        if close is None:
            return lexical
        return [
            LEXICAL * said + (1 - LEXICAL) * max(close.get(one.id, 0.0), 0.0)
            for one, said in zip(records, lexical, strict=True)
        ]

    def _close(self) -> dict[int, float] | None:
        """Return how close in meaning the closest records are; None without search by meaning."""
        try:
            hits = self._memory.search(self._phrase, by="meaning", limit=MOST_ALIKE, threshold=-1.0)
        except EmbedderError:
            return None
        return {hit.record.id: hit.score or 0.0 for hit in hits}

    def _closeness(self, texts: Sequence[str]) -> list[float]:
        try:
            return self._memory.closeness(self._phrase, texts)
        except EmbedderError:
            return [0.0] * len(texts)  # no search by meaning here: the words decide

    def _share(self, said: Sequence[str], wanted: Iterable[str]) -> float:
        """Return the share of the wanted words, by how rare they are, that a text says."""
        weights = {word: self._rarity[word] for word in wanted}
        total = sum(weights.values())
        held = sum(
            weight for word, weight in weights.items() if any(akin(word, one) for one in said)
        )
        return held / total if total else 0.0

    def _rarity_of(self, word: str) -> float:
        holders = sum(any(akin(word, one) for one in said) for said in self._words.values())
        return math.log(1 + len(self._records) / max(holders, 1))

    # clauses

    def _in_part(self, records: list[Record]) -> Meant:
        ids: list[int] = []
        clauses: list[tuple[int, str]] = []
        for record in records:
            part = self._clause(record.text)
            if part is None:
                ids.append(record.id)
            else:
                clauses.append((record.id, part))
        named = bool(self._subject.names)
        whole = [one for one in records if one.id in ids]
        return Meant(self._along(whole) if named else tuple(ids), tuple(clauses))

    def _clause(self, text: str) -> str | None:
        """Return the clause that the phrase is about; None where it is all of the text."""
        parts = values.clauses(text)
        if len(parts) < 2:
            return None
        first = words(text)[:1]  # the subject, which every clause is about
        own = [word for word in self._subject.words if not any(akin(word, one) for one in first)]
        lexical = [self._share(words(part), own) for part in parts]
        close = self._closeness(parts)
        scores = [one + other for one, other in zip(lexical, close, strict=True)]
        return parts[scores.index(max(scores))]

    # what refers back

    def _along(self, found: list[Record]) -> tuple[int, ...]:
        """Return the ids of the records and of those that refer back to them, or they to."""
        ids = {one.id for one in found}
        back = [subjects.refers_back(one.text) for one in self._records]
        for place, record in enumerate(self._records):
            if back[place] and (before := self._referent(place)) is not None:
                linked = {record.id, before.id}
                if ids & linked:
                    ids |= linked
        for place in range(1, len(self._records)):
            if back[place] and back[place - 1] and self._records[place - 1].id in ids:
                ids.add(self._records[place].id)
        return tuple(sorted(ids))

    def _referent(self, place: int) -> Record | None:
        """Return the record that one refers back to: with its noun, else the one before it."""
        record = self._records[place]
        before = [one for one in self._records[:place] if one.thread == record.thread]
        noun = subjects.noun_of(record.text)
        nouns = [
            one
            for one in before[-3:]
            if noun and any(akin(noun, word) for word in self._words[one.id])
        ]
        if nouns:
            return nouns[-1]
        return before[-1] if before else None


def _named(name: str, text: str, region: str) -> bool:
    """Whether a text names someone: as a name ("Frank", not "frank"), or so in another script."""
    try:
        spans = values.find(values.needle(name, region=region, kind="text"), text, region=region)
    except SelectorError:
        return False
    if any(not text[one.start].islower() for one in spans):
        return True
    return scripts.named_in(name, text) is not None


def _mailbox(address: str) -> str:
    """Return an address without the tag after "+", which the same person reads."""
    found = _EMAIL_TAG.fullmatch(address.strip('"<>').lower())
    return f"{found['name']}@{found['host']}" if found else address.lower()
