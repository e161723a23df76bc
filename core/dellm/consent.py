"""Reading what a user answers to "shall I forget these?": yes, no, or a choice of numbers.

Whatever is not clearly one of these is neither: the caller then forgets nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

MOST = 10_000  # numbers that one range may stand for


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_SAYS_YES = _words("yes ja oui sí si sì sim tak ano")
_YES = _SAYS_YES | _words("y yep yeah yup sure ok okay confirm confirmed affirmative")
_GO = ("do it", "go ahead", "please do", "do so", "all of them", "forget them", "delete them")
_YES_MORE = _YES | _words(
    "please do it that this them all of everything go ahead so thanks thank you i am i'm forget "
    "delete erase remove the now bitte"
)
_NO = _words("no n nope nah cancel stop abort nein non não nee nej nie ne")
_NOT = (
    "don't",
    "do not",
    "never mind",
    "nevermind",
    "leave it",
    "keep it",
    "keep them",
    "not now",
    "please don't",
    "please do not",
)
_NO_MORE = _NO | _words(
    "please do don't not now it that them this thanks thank you keep leave all never mind nevermind "
    "forget delete erase remove anything nothing i'm sorry wait everything as is"
)
_NUMBER = r"(?:(?:message|record|number)\s*)?[#[(]?\d{1,12}[])]?"
_LIST = rf"(?P<ids>{_NUMBER}(?:\s*(?:,\s*and|,|and|&|\+|to|-|–|\s)\s*{_NUMBER})*)"
_AGREED = r"(?:yes|ok|okay|sure|all|everything|all of them)"
_CHOICES = (
    ("except", rf"(?:{_AGREED}[\s,]*)?(?:but\s+not|but|except(?:\s+for)?|without|not)\s+{_LIST}"),
    ("also", rf"{_AGREED}[\s,]*(?:(?:and|also|plus|including|with)\s+){{1,2}}{_LIST}"),
    (
        "only",
        rf"(?:{_AGREED}[\s,]*)?(?:(?:just|only|take|forget|delete)\s+){{0,2}}{_LIST}(?:\s+only)?",
    ),
    ("only", rf"no[\s,]+(?:just|only)\s+{_LIST}"),
)


class Kind(StrEnum):
    """What an answer says: all of it, none, some of it, or something else altogether."""

    YES = "yes"
    NO = "no"
    ONLY = "only"
    EXCEPT = "except"
    ALSO = "also"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; `ids` for ONLY, EXCEPT and ALSO. `explicit`: it begins with a yes in so many words."""

    kind: Kind
    ids: tuple[int, ...] = ()
    explicit: bool = False


def read(text: str) -> Answer:
    """Return what the text answers; OTHER for anything that is more than an answer."""
    said = " ".join(text.casefold().replace("’", "'").split()).strip(" .!,;:")
    for name, pattern in _CHOICES:
        if found := re.fullmatch(pattern, said):
            return Answer(Kind(name), _numbers(found["ids"]))
    words = re.findall(r"[^\s,.;:!]+", said)
    if not words or len(words) > 8 or said.endswith("?"):
        return Answer(Kind.OTHER)
    if words[0] in _YES and _YES_MORE.union(_YES).issuperset(words):
        return Answer(
            Kind.YES, explicit=words[0] in {"yes", "ja", "oui", "sí", "sim", "tak", "ano"}
        )
    if said.startswith(_GO) and _YES_MORE.issuperset(words):
        return Answer(Kind.YES)
    if (words[0] in _NO or said.startswith(_NOT)) and _NO_MORE.issuperset(words):
        return Answer(Kind.NO)
    return Answer(Kind.OTHER)


def _numbers(listed: str) -> tuple[int, ...]:
    """Return the numbers of a list such as "3, 5 and 8-10", in order, each once."""
    numbers: list[int] = []
    for joiner, digits in re.findall(r"\s*(to|-|–)?[^\d–-]*?(\d+)", listed):
        last = int(digits)
        if joiner and numbers and 0 < last - numbers[-1] <= MOST:
            numbers.extend(range(numbers[-1] + 1, last + 1))
        else:
            numbers.append(last)
    return tuple(dict.fromkeys(numbers))
