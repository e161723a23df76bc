"""What to forget: ids, quote, value, keywords, meaning, description, predicate, thread, everything.

Several selectors narrow each other. An empty, blank or all-matching one is an error, never
"everything"; one that guesses (meaning, description, aliases) always needs a look at its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from . import contents, search, values
from .arguments import (
    check_choice,
    check_corrected,
    check_flag,
    check_mapping,
    check_number,
    check_text,
    whole_numbers,
)
from .database import ASKED, Filter, Scope, Tx, Vector
from .encoding import decode, encode, load_json
from .errors import InvalidInput, SelectorError
from .records import Record, Status, to_micros
from .storing import COLUMNS
from .terms import distinct

Where = Mapping[str, Any] | Callable[[Record], bool]
ATTRIBUTES = frozenset(
    {"role", "kind", "thread", "subject", "purpose", "sensitivity", "model", "framework_id"}
)


@dataclass(frozen=True, slots=True)
class Match:
    """A record that a selector hits: why, and where in its text (characters, end excluded)."""

    id: int
    reason: str
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """What the user wants gone. `what` is a quote or a value; see Memory.plan for the others."""

    what: str | None = field(default=None, repr=False)
    ids: tuple[int, ...] | None = None
    quote: str | None = field(default=None, repr=False)
    value: str | None = field(default=None, repr=False)
    keyword: str | None = field(default=None, repr=False)
    meaning: str | None = field(default=None, repr=False)
    description: str | None = field(default=None, repr=False)
    where: Where | None = field(default=None, repr=False)
    thread: str | None = None
    everything: bool = False
    threshold: float | None = None
    aliases: bool = False
    include: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    vector: Vector | None = field(default=None, repr=False, compare=False)
    matched: tuple[Match, ...] | None = None  # of a plan made before: its matches, by id
    named: tuple[int, ...] = ()  # those of `matched` that were not found by what they say
    corrected: Mapping[int, str] = field(default_factory=dict, repr=False)  # new texts, by id
    renewed: bool = False  # the matches are made anew themselves, as if a source of theirs went

    @property
    def guesses(self) -> bool:
        """Whether the selector may hit more or less than was meant."""
        return self.meaning is not None or self.description is not None or self.aliases

    @property
    def narrowed(self) -> bool:
        """Whether a record may hold every text asked for and still be no match."""
        others = (self.ids, self.keyword, self.meaning, self.description, self.where, self.thread)
        return len(self.texts) > 1 or any(one is not None for one in others)

    @property
    def texts(self) -> tuple[str, ...]:
        """The quotes and values looked for in texts."""
        return tuple(one for one in (self.what, self.quote, self.value) if one is not None)

    def by_content(self, id_: int) -> bool:
        """Whether a match was found by what it says, not by its id."""
        if self.matched is not None:
            return id_ not in self.named
        said = (*self.texts, self.keyword, self.meaning, self.description)
        return any(said) and self.ids is None and not self.include

    def check(self) -> None:
        """Raise SelectorError, InvalidInput for a selector that says nothing or contradicts itself."""
        if self.matched is not None:
            self._check_matched(self.matched)
            return
        if self.named:
            raise InvalidInput("named= says of matched= what was named by id.")
        self._check_types()
        check_corrected(self.corrected, self.ids)
        parts = (*self.texts, self.keyword, self.meaning, self.description)
        if any(part is not None and not part.strip() for part in parts):
            raise SelectorError("The selector is blank.")
        if self.keyword is not None and not distinct(self.keyword):
            raise SelectorError("The keywords hold no word.")
        named = any(part is not None for part in parts) or self.ids or self.thread is not None
        narrowed = self.where is not None and (callable(self.where) or bool(self.where))
        if self.everything and (named or narrowed or self.include):
            raise SelectorError("everything=True takes no other selector.")
        if not (named or narrowed or self.everything or self.include):
            raise SelectorError("The selector is empty.")
        if self.threshold is not None and not -1 <= self.threshold <= 1:
            raise InvalidInput("threshold= is a cosine between -1 and 1.")
        if self.thread is not None and not self.thread.strip():
            raise SelectorError("The thread's name is blank.")

    def _check_matched(self, matched: object) -> None:
        whole_numbers(self.named, "named=")
        if not isinstance(matched, tuple) or not all(isinstance(one, Match) for one in matched):
            raise InvalidInput("matched= holds what is no match of a plan.")

    def _check_types(self) -> None:
        check_flag(self.everything, "everything=")
        check_flag(self.aliases, "aliases=")
        for part in (*self.texts, self.keyword, self.meaning, self.description, self.thread):
            if part is not None:
                check_text(part, "A quote, value, keyword, meaning, description or thread")
        if self.threshold is not None:
            check_number(self.threshold, "threshold=")
        if self.where is not None and not callable(self.where):
            check_mapping(self.where, "where=")


@dataclass(frozen=True, slots=True)
class Clue:
    """A value to look for, and what to say of a record that holds it."""

    why: str
    needle: values.Needle


@dataclass(frozen=True, slots=True)
class Look:
    """What a search for matches needs besides the selector: the phone region and the time."""

    region: str
    at: int


@dataclass(frozen=True, slots=True)
class Carrier:
    """A stored record as the selectors see it: its text, and every other string it carries."""

    record: Record

    @property
    def others(self) -> Iterator[str]:
        """What the text holds in an encoding, and the strings of the metadata, subject and payload."""
        yield from contents.text_readings(self.record.text)
        if self.record.metadata:
            yield from contents.inside(self.record.metadata)
        if self.record.subject:
            yield self.record.subject
        if self.record.payload:
            yield from contents.readings(self.record.payload)


def find(tx: Tx, scope: Scope, selector: Selector, look: Look) -> list[Match]:
    """Return the matches by id; suppressed and expired records are found too.

    Raises SelectorError when a guess or a predicate takes every record of the workspace.
    """
    selector.check()
    if selector.matched is not None:
        return _still_there(tx, scope, selector.matched)
    found = {match.id: match for match in _selected(tx, scope, selector, look)}
    _refuse_all(tx, scope, selector, found)
    for id_ in _living(tx, scope, selector.include):
        found.setdefault(id_, Match(id_, "ticked by the user"))
    return [found[id_] for id_ in sorted(found) if id_ not in selector.exclude]


def _still_there(tx: Tx, scope: Scope, matched: Sequence[Match]) -> list[Match]:
    living = set(_living(tx, scope, [one.id for one in matched]))
    return [one for one in matched if one.id in living]


def _living(tx: Tx, scope: Scope, ids: Sequence[int]) -> list[int]:
    if not ids:
        return []
    rows = tx.all(
        f"select id from record where ws = :ws and id in :ids and {ASKED} order by id",
        ws=scope.ws,
        ids=sorted(set(ids)),
    )
    return [row[0] for row in rows]


def _refuse_all(tx: Tx, scope: Scope, selector: Selector, found: Mapping[int, Match]) -> None:
    weak = selector.guesses or selector.where is not None or selector.keyword is not None
    if selector.everything or not weak or len(found) < 2:
        return
    row = tx.one(f"select count(*) from record where ws = :ws and {ASKED}", ws=scope.ws)
    if row is not None and row[0] == len(found):
        raise SelectorError(f"The selector matches all {row[0]} records of the workspace.")


def _selected(tx: Tx, scope: Scope, selector: Selector, look: Look) -> Iterator[Match]:
    if selector.include and selector == Selector(
        include=selector.include, exclude=selector.exclude
    ):
        return
    reasons = _candidates(tx, scope, selector, look)
    tests = _tests(selector, look)
    if reasons is not None and not tests and selector.thread is None:
        for id_ in _living(tx, scope, list(reasons)):
            yield Match(id_, reasons[id_])
        return
    for carrier in carriers(tx, scope, selector.thread, reasons):
        first = None if reasons is None else reasons[carrier.record.id]
        if (match := _tested(carrier, tests, first, selector)) is not None:
            yield match


def _candidates(tx: Tx, scope: Scope, selector: Selector, look: Look) -> dict[int, str] | None:
    """Return {id: reason} of what the indexed selectors leave, or None when none narrows."""
    found: list[dict[int, str]] = []
    for text in selector.texts:
        needle = values.needle(text, region=look.region)
        held = [id_ for id_, _ in holding(tx, scope, [Clue("", needle)], selector.thread)]
        found.append(dict.fromkeys(held, ""))
    if selector.ids:
        found.append(dict.fromkeys(selector.ids, "named by id"))
    if selector.keyword is not None:
        words = distinct(selector.keyword)
        holders = search.with_all_terms(tx, scope.ws, words) | _hidden(tx, scope.ws, words)
        found.append(dict.fromkeys(holders, "holds the keywords"))
    if selector.meaning is not None:
        found.append(_alike(tx, scope, selector, look))
    if not found:
        return None
    common = set(found[0]).intersection(*found[1:])
    return {id_: ", ".join(one[id_] for one in found if one[id_]) for id_ in common}


def _hidden(tx: Tx, ws: int, words: Sequence[str]) -> set[int]:
    """Return the records that hold every word but are not in the keyword index."""
    rows = tx.stream(
        "select id, text from record where ws = :ws and (kind = 'state' or status = 2)", ws=ws
    )
    return {id_ for id_, text in rows if set(words) <= set(distinct(decode(text)))}


def _alike(tx: Tx, scope: Scope, selector: Selector, look: Look) -> dict[int, str]:
    if selector.vector is None or selector.threshold is None:
        raise SelectorError("Search by meaning needs an embedder.")
    hits = search.by_meaning(
        tx, scope.ws, selector.vector, 1 << 31, selector.threshold, Filter(look.at, dropped=True)
    )
    return {id_: f"means the same (cosine {score:.2f})" for id_, score in hits}


Test = Callable[[Carrier], Match | None]


def _tests(selector: Selector, look: Look) -> list[Test]:
    tests = [_value_test(text, look) for text in selector.texts]
    if selector.description is not None:
        tests.append(_description_test(selector.description, look))
    if selector.where is not None:
        tests.append(_where_test(selector.where))
    return tests


def _tested(
    carrier: Carrier, tests: Iterable[Test], first: str | None, selector: Selector
) -> Match | None:
    reasons = [first] if first else []
    spans: list[tuple[int, int]] = []
    for test in tests:
        match = test(carrier)
        if match is None:
            return None
        reasons.append(match.reason)
        spans.extend(match.spans)
    if selector.everything:
        reasons.append("everything goes")
    elif selector.thread is not None and not reasons:
        reasons.append("in the thread")
    return Match(carrier.record.id, ", ".join(reasons), tuple(sorted(set(spans))))


def _value_test(text: str, look: Look) -> Test:
    needle = values.needle(text, region=look.region)
    quick = values.quick(needle)
    name = "the words" if needle.kind == "text" else f"the {needle.kind}"

    def test(carrier: Carrier) -> Match | None:
        id_, body = carrier.record.id, carrier.record.text
        if quick(body):
            spans = values.find(needle, body, region=look.region)
            wide = ", as part of a longer value" if any(one.widened for one in spans) else ""
            unsure = "" if all(one.exact for one in spans) else ", in one of two readings"
            where = tuple((one.start, one.end) for one in spans)
            return Match(id_, f"holds {name}{wide}{unsure}", where)
        if any(quick(other) for other in carrier.others):
            return Match(id_, f"holds {name} beside its text")
        return None

    return test


def _description_test(description: str, look: Look) -> Test:
    wanted = values.described(description)
    if wanted is None:
        raise SelectorError(
            "The description names no kind of value.",
            remedy='Say whose and what ("the desk number of Maple House"), or use meaning=.',
        )

    def test(carrier: Carrier) -> Match | None:
        spans = values.value_matches_description(wanted, carrier.record.text, region=look.region)
        if not spans:
            return None
        whose = "of the one it names" if wanted.entity else "of the user"
        where = tuple((one.start, one.end) for one in spans)
        return Match(carrier.record.id, f"holds a {wanted.kind} {whose}", where)

    return test


def _where_test(where: Where) -> Test:
    if callable(where):
        accepts = where
    else:
        wanted = dict(where)

        def accepts(record: Record) -> bool:
            return all(_agrees(record, name, value) for name, value in wanted.items())

    def test(carrier: Carrier) -> Match | None:
        if not accepts(carrier.record):
            return None
        return Match(carrier.record.id, "meets the predicate")

    return test


def _agrees(record: Record, name: str, value: Any) -> bool:
    if name in {"before", "after"}:
        at = to_micros(record.created_at)
        bound = to_micros(value) if isinstance(value, int | datetime) else None
        if bound is None:
            raise InvalidInput(f"{name}= is a time.")
        return at < bound if name == "before" else at >= bound
    if name == "status":
        if isinstance(value, str):
            check_choice(value.upper(), Status.__members__, "status=")
            value = Status[value.upper()]
        return bool(record.status == value)
    if name in ATTRIBUTES:
        return bool(getattr(record, name) == value)
    return name in record.metadata and bool(record.metadata[name] == value)


def carriers(
    tx: Tx, scope: Scope, thread: str | None, ids: Iterable[int] | None = None
) -> Iterator[Carrier]:
    """Yield the workspace's stored records, of one thread or of the given ids if asked."""
    if ids is not None:
        rows: Iterable[tuple[Any, ...]] = tx.all(
            f"select {COLUMNS} from record where ws = :ws and id in :ids and {ASKED} "
            "and (cast(:thread as text) is null or thread = :thread) order by id",
            ws=scope.ws,
            ids=sorted(ids),
            thread=None if thread is None else encode(thread),
        )
    elif thread is not None:
        rows = tx.stream(
            f"select {COLUMNS} from record where ws = :ws and thread = :thread and {ASKED}",
            ws=scope.ws,
            thread=encode(thread),
        )
    else:
        rows = tx.stream(f"select {COLUMNS} from record where ws = :ws and {ASKED}", ws=scope.ws)
    yield from (Carrier(Record.from_row(row, scope.name)) for row in rows)


def holding(
    tx: Tx, scope: Scope, clues: Sequence[Clue], thread: str | None = None
) -> Iterator[tuple[int, Clue]]:
    """Yield (id, the first clue it holds) of stored records, without building the records."""
    tests = [(clue, values.quick(clue.needle)) for clue in clues]
    if not tests:
        return
    for id_, text, metadata, subject, payload in tx.stream(
        f"select id, text, metadata, subject, payload from record where ws = :ws and {ASKED} "
        "and (cast(:thread as text) is null or thread = :thread)",
        ws=scope.ws,
        thread=None if thread is None else encode(thread),
    ):
        plain = decode(text)
        places = [plain, *contents.text_readings(plain)]
        if metadata or subject or payload:
            places += _beside(metadata, subject, payload)
        for clue, holds in tests:
            if any(map(holds, places)):
                yield id_, clue
                break


def _beside(metadata: str | None, subject: str | None, payload: bytes | None) -> list[str]:
    found = list(contents.inside(load_json(metadata)))
    if subject:
        found.append(decode(subject))
    if payload:
        found.extend(contents.readings(bytes(payload)))
    return found
