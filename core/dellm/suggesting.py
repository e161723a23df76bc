"""What a request describes without saying it: suggested beside a plan, never taken unasked.

"The Maple House desk number" is a phone number where Maple House is spoken of, "the note about asking
for Rosa" a clause with most of these words. Either may be something else, so it is shown among the
suspects of a plan, and goes only where the user takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import regex

from . import values
from .errors import SelectorError
from .memory import Memory
from .plan import Plan, Suspect
from .previews import Selection
from .records import Record
from .requests import Request
from .terms import distinct

WHY = "may be what the request describes"
MOST = 100  # records that are looked through for a description
SHARE = 0.75  # of the telling words of a description that a clause must hold
LEAST = 2  # telling words
_NAMES: Final = regex.compile(r"[\p{Lu}][\p{L}'’]+(?:\s+[\p{Lu}][\p{L}'’]+)*")
_KINDS: Final = {
    "phone": regex.compile(r"(?i)\b(?:number|line|phone|mobile|callback|contact|fax|desk)\b"),
    "email address": regex.compile(r"(?i)\b(?:e-?mail|contact|mailbox)\b"),
    "address": regex.compile(r"(?i)\b(?:address|street)\b"),
    "code": regex.compile(r"(?i)\b(?:code|pin|password|passcode|token|key)\b"),
}
_SAYS_LITTLE: Final = """
about note notes wording instruction instructions detail details old that this the and for with
from memory says saying said who which not there any all
"""
_WORDLESS: Final = frozenset(_SAYS_LITTLE.split())
_ENDINGS: Final = regex.compile(r"(?:ing|ed|es|s|e)$")
_SENTENCE_START: Final = regex.compile(r"(?i)^(?:the|my|our|a|an|any|all)\b")


def suggested(memory: Memory, request: Request) -> tuple[Selection, ...]:
    """Return selectors of what the descriptions of a request may mean, each a value or a quote.

    Nothing is said of how sure they are: show what they match, and ask. Of what the user wants to
    keep none is suggested.
    """
    found: list[Selection] = []
    named = [one.text for one in request.targets if one.kind in {"value", "quote"}]
    for target in request.targets:
        if target.kind in {"description", "meaning"}:
            ways = _of(memory, target.text, [one for one in named if one in target.text])
            found += [one for one in ways if one not in found]
    return tuple(one for one in found if not _kept(one, request.keep))


def with_suggestions(memory: Memory, plan: Plan, ways: Iterable[Selection]) -> Plan:
    """Return a plan that lists what the selectors match among its suspects; it takes no more."""
    entries = dict(plan.entries)
    new: dict[int, Suspect] = {}
    there = {*plan.ids, *(one.id for one in plan.suspects)}
    for way in ways:
        try:
            also = memory.plan(suspects=False, **way)
        except SelectorError:  # it matches all there is
            continue
        for match in also.matches:
            if match.id not in there:
                new.setdefault(match.id, Suspect(match.id, WHY))
                entries.setdefault(match.id, also.entries[match.id])
    if not new:
        return plan
    return replace(plan, suspects=(*plan.suspects, *new.values()), entries=entries)


def _of(memory: Memory, text: str, named: Sequence[str]) -> Iterator[Selection]:
    """Yield what a description may mean; of one that names its value, only the name before that."""
    if named or values.named_parts(text):
        bearer = values.without_pointing(text.partition(named[0])[0]) if named else ""
        if " " in bearer and _NAMES.fullmatch(bearer.strip()):
            yield Selection(value=bearer.strip())
        return
    names = [one.group() for one in _NAMES.finditer(text) if " " in one.group()]
    for name in names:
        for value in _values_of(memory, name, text):
            yield Selection(value=value)
        yield Selection(value=name)
    for clause in _clauses(memory, text):
        yield Selection(quote=clause)


def _values_of(memory: Memory, name: str, text: str) -> list[str]:
    """Return the values of the kind a description names that stand by a name in some record."""
    said: dict[str, None] = {}
    for kind in [kind for kind, words in _KINDS.items() if words.search(text)]:
        try:
            plan = memory.plan(description=f"{name}'s {kind}", suspects=False)
        except SelectorError:
            continue
        for match in plan.matches:
            record = memory.get(match.id)
            said.update(dict.fromkeys(record.text[a:b] for a, b in match.spans))
    return list(said)


def _clauses(memory: Memory, text: str) -> list[str]:
    """Return the clauses of records that hold most of the telling words of a description."""
    wanted = _stems(_SENTENCE_START.sub("", text))
    if len(wanted) < LEAST:
        return []
    found: dict[str, None] = {}
    for record in _candidates(memory, text):
        for clause in values.clauses(record.text):
            held = wanted.intersection(_stems(clause))
            if len(held) >= LEAST and len(held) >= SHARE * len(wanted):
                found.setdefault(clause.strip())
    return list(found)


def _candidates(memory: Memory, text: str) -> Sequence[Record]:
    hits = memory.search(text, by="keyword", limit=MOST)
    return [one.record for one in hits]


def _stems(text: str) -> frozenset[str]:
    words = [one for one in distinct(text) if one not in _WORDLESS and len(one) > 2]
    return frozenset(_ENDINGS.sub("", one) for one in words)


def _kept(way: Selection, keep: Sequence[str]) -> bool:
    said = str(way.get("value") or way.get("quote")).casefold()
    return any(said in one or one in said for one in map(str.casefold, keep))
