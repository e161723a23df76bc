"""Values that are described instead of named: "the desk number of Maple House"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import regex

from dellm.errors import SelectorError
from dellm.values.kinds import recognise
from dellm.values.needle import needle
from dellm.values.normal import plain
from dellm.values.sentences import sentences
from dellm.values.spans import Span, find

# The last words of a description name its kind; the longest entry that fits wins.
_KIND_WORDS: Final = {
    "phone": "phone telephone mobile cell cellphone landline fax callback hotline voicemail "
    "phone-number extension-number phone-line desk-number contact-number cell-number mobile-number "
    "fax-number callback-number backup-number home-number work-number office-number desk-line",
    "email": "email e-mail mail mailbox email-address e-mail-address mail-address",
    "card": "card card-number credit-card debit-card credit-card-number debit-card-number pan",
    "iban": "iban bank-account bank-account-number account-iban",
    "date": "birthday birthdate dob date birth-date date-of-birth anniversary deadline due-date",
    "url": "url link website site homepage web-page webpage web-address",
    "ip": "ip ip-address",
    "address": "address home-address street-address postal-address work-address mailing-address",
    "code": "code pin password passcode passphrase token key secret keypad-code access-code plate "
    "coupon voucher id identifier sku vin order-number ticket-number license-number licence-number "
    "confirmation-number serial-number badge-number tracking-number license-plate api-key",
    "number": "number account-number ssn social-security-number amount salary balance room-number "
    "room case-number passport-number policy-number",
    "name": "name full-name first-name last-name surname maiden-name nickname",
}
_KINDS: Final = {
    words.replace("-", " "): kind for kind, row in _KIND_WORDS.items() for words in row.split()
} | {"e-mail": "email", "e-mail address": "email"}
_PHRASE: Final = r"[\p{L}][\p{L}\-]*(?:\s+[\p{L}][\p{L}\-]*){0,3}?"
_OWNER: Final = r"[\p{L}0-9@][\p{L}0-9'’.@_&\- ]{0,60}?"
_ARTICLE: Final = (
    r"(?:(?:the|a|an|this|that|any|all|old|new|current|former|deleted|whole|entire)\s+)*"
)
_OF: Final = regex.compile(
    rf"(?i){_ARTICLE}(?P<what>{_PHRASE})\s+(?:of|for|belonging\s+to|at)\s+(?:the\s+)?(?P<who>{_OWNER})"
)
_MINE: Final = regex.compile(rf"(?i)(?:my|our|mine)\s+{_ARTICLE}(?P<what>{_PHRASE})")
_GENITIVE: Final = regex.compile(
    rf"(?i)(?:the\s+)?(?P<who>{_OWNER})(?:['’]s|(?<=s)['’])\s+{_ARTICLE}(?P<what>{_PHRASE})"
)
_COMPOUND: Final = regex.compile(
    rf"(?i:{_ARTICLE})(?P<who>[\p{{Lu}}][\w'’]*(?:\s+[\p{{Lu}}][\w'’]*){{0,3}})\s+(?P<what>{_PHRASE})"
)
_STREET: Final = regex.compile(
    r"(?<!\w)[0-9]{1,5}[a-zA-Z]?,?\s+(?:[\p{Lu}][\w'’.\-]*\s+){1,4}"
    r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Way|Court|Ct|Place|Pl|Square|Sq|Terrace|Close|Row|Parkway|Pkwy|Crescent)\b\.?"
    r"(?:,?\s+(?:Apt|Apartment|Unit|Suite|Flat|#)\.?\s*\w+)?(?:,\s+[\p{Lu}][\w'’\- ]{1,30}(?:,?\s+[A-Z]{2})?(?:\s+[0-9]{4,5}(?:-[0-9]{4})?)?)?"
    r"|(?<!\w)(?:[\p{Lu}]\p{L}*(?:straße|strasse|str\.|weg|platz|allee|gasse|laan|straat)|(?:[Rr]ue|[Aa]venue|[Vv]ia|[Cc]alle|[Rr]ua)(?:\s+(?:de|la|du|des|del|do|da)){0,2}\s+[\p{Lu}]\p{L}+)\s+[0-9]{1,4}[a-z]?"
    r"|(?<!\w)[0-9]{1,4}(?:\s?bis)?,?\s+(?:rue|avenue|boulevard|place)(?:\s+(?:de|la|du|des)){0,2}\s+[\p{Lu}][\p{L}\-]+"
)
_NAMED: Final = regex.compile(
    r"(?i:\b(?:name\s+is|named|called|name:|i'm|i\s+am))\s+(?P<value>[\p{Lu}\p{Lo}][\w'’\-]*(?:\s+[\p{Lu}][\w'’\-]*){0,3})"
)
_SECRET: Final = regex.compile(
    r"(?i:\b(?:code|pin|password|passcode|passphrase|token|key|secret)\b)[^\n\"“'.]{0,30}?(?:\s|^)[\"“'](?P<value>[^\"”'\n]{3,60})[\"”']"
)
_FIRST_PERSON: Final = regex.compile(r"(?i)\b(?:my|mine|i|i'm|me|our|we|us)\b")
_ACCEPTED: Final = {
    "number": ("number", "code", "phone", "money"),
    "code": ("code", "number"),
    "card": ("card",),
    "iban": ("iban", "number"),
}
_NEAR: Final = 160


@dataclass(frozen=True, slots=True)
class Described:
    """A value described by its owner and kind: `entity` is None for the speaker ("my").

    `kind` is a kind of Found, or "address" or "name"; `words` are the words of the description that
    say more than the kind ("desk", "home").
    """

    entity: str | None
    kind: str
    words: tuple[str, ...]


def described(description: str) -> Described | None:
    """Read a description such as "Sam's phone number", or None when it isn't one."""
    form = " ".join(description.strip(" .!?\"'“”").split())
    for pattern in (_MINE, _GENITIVE, _OF, _COMPOUND):
        found = pattern.fullmatch(form)
        kind = _kind(found["what"]) if found else None
        if found and kind:
            return _described(found, kind)
    return None


def _described(found: regex.Match[str], kind: tuple[str, str]) -> Described:
    name, used = kind
    entity = found.groupdict().get("who")
    words = tuple(word for word in found["what"].casefold().split() if word not in used.split())
    if used.split()[0] not in _KINDS and len(used.split()) > 1:
        words = (*words, used.split()[0])
    return Described(entity.strip() if entity else None, name, words)


def _kind(what: str) -> tuple[str, str] | None:
    """(kind, the words that say so) by the longest ending that names one."""
    words = what.casefold().split()
    for start in range(len(words)):
        ending = " ".join(words[start:])
        kind = _KINDS.get(ending) or _KINDS.get(ending.removesuffix("s"))
        if kind:
            return kind, ending
    return None


def value_matches_description(wanted: Described, text: str, *, region: str = "US") -> list[Span]:
    """Return the values in `text` that `wanted` describes: of its kind, near a mention of its owner.

    Near means in the same sentence, or else in the next or previous one within 160 characters. An
    owner is matched as a whole word in any case; the speaker ("my") by a first-person word or by a
    word of the description. A guess by nature: spans come with exact=False.
    """
    values = _values(wanted.kind, text, region)
    if not values:
        return []
    mentions = _mentions(wanted, text, region)
    bounds = _bounds(text)
    same = [
        value
        for value in values
        if any(_sentence(bounds, value[0]) == _sentence(bounds, at) for at in mentions)
    ]
    near = same or [
        value
        for value in values
        if any(
            abs(_sentence(bounds, value[0]) - _sentence(bounds, at)) == 1
            and abs(value[0] - at) <= _NEAR
            for at in mentions
        )
    ]
    return [Span(start, end, wanted.kind, exact=False, widened=False) for start, end in near]


def _mentions(wanted: Described, text: str, region: str) -> list[int]:
    if wanted.entity is not None:
        try:
            return [
                span.start for span in find(needle(wanted.entity, kind="text"), text, region=region)
            ]
        except SelectorError:
            return []
    form = plain(text) if len(plain(text)) == len(text) else text
    return [match.start() for match in _FIRST_PERSON.finditer(form)] + [
        match.start()
        for word in wanted.words
        for match in regex.finditer(rf"\b{regex.escape(word)}\b", form)
    ]


def _values(kind: str, text: str, region: str) -> list[tuple[int, int]]:
    if kind == "address":
        return [match.span() for match in _STREET.finditer(text)]
    if kind == "name":
        return [match.span("value") for match in _NAMED.finditer(text)]
    kinds = _ACCEPTED.get(kind, (kind,))
    found = [
        (value.start, value.end) for value in recognise(text, region=region) if value.kind in kinds
    ]
    if kind == "code":
        found += [match.span("value") for match in _SECRET.finditer(text)]
    return sorted(set(found))


def _bounds(text: str) -> list[int]:
    ends, at = [], 0
    for sentence in sentences(text):
        at += len(sentence)
        ends.append(at)
    return ends


def _sentence(ends: list[int], at: int) -> int:
    from bisect import bisect_right

    return bisect_right(ends, at)
