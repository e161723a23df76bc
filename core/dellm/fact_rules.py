"""Finding facts by rules: a small grammar of plain English statements, the same answer every time.

For tests, and where no model may be asked. It reads what a user says of himself in so many words, in
these forms only: where he lives, where and as what he works, where he travels; what somebody or
something of his is called; his phone number, mail address and birthday; what his favourite something
is; what he is allergic to or diagnosed with; and that one of these is over. Questions, and sentences
that ask to forget something, state nothing. What it does not know it leaves out.

A word for something sensitive in another sentence about the user is proposed as inferred, so that it
waits for the user to confirm it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from . import values
from .extracting import Proposed
from .fact_reading import Fact
from .records import Record

_UNTIL = (
    r"(?=\s*(?:$|[,;!?()\n]|\.(?:\s|$)|\s(?:and|but|because|since|so|now|which|who|where|when)\b))"
)
_SAID = rf"(?P<value>\S(?:[^,;!?()\n]*?\S)?){_UNTIL}"
_CALLED = r"(?P<value>[A-Z][\w'’-]*(?:\s[A-Z][\w'’-]*)*)(?!\w)"  # a name, as it is written
_NAME = f"{_CALLED}{_UNTIL}"  # the same, and nothing after it
_AM = r"(?: am|['’]m)"
_OWN = (
    r"dog|cat|horse|rabbit|bird|hamster|wife|husband|partner|boyfriend|girlfriend|son|daughter|"
    r"sister|brother|mother|father|mom|mum|dad|boss|manager|doctor|dentist|company|boat|car"
)
_DONE = r"(?:no longer|do(?:n['’]t| not)|am not|['’]m not)"

# (key, pattern, what makes it sensitive); %s in a key is what `of` matched.
_STATED: tuple[tuple[str, str, str | None], ...] = (
    ("name", rf"\bmy name is {_NAME}", None),
    ("name", rf"\b(?:please )?call me {_NAME}", None),
    ("home", rf"\bI (?:now |currently )?live in {_SAID}", None),
    ("home", rf"\bI(?: have|['’]ve)?(?: just| recently)? moved to {_SAID}", None),
    ("employer", rf"\bI (?:now |currently )?work (?:at|for) {_SAID}", None),
    (
        "employer",
        rf"\bI(?: have|['’]ve)?(?: just)? (?:joined|started(?: working)? at) {_CALLED}",
        None,
    ),
    ("job", rf"\bI (?:now |currently )?work as (?:an? )?{_SAID}", None),
    ("trip_destination", rf"\bI{_AM} (?:going|travelling|traveling|flying) to {_CALLED}", None),
    ("%s_name", rf"\bmy (?P<of>{_OWN}) is (?:called|named) {_SAID}", None),
    ("%s_name", rf"\bmy (?P<of>{_OWN})['’]s name is {_SAID}", None),
    ("%s_name", rf"\bmy (?P<of>{_OWN}) is {_NAME}", None),
    ("%s_name", rf"\bI have an? (?P<of>{_OWN}) (?:called|named) {_SAID}", None),
    ("birthday", rf"\bmy birthday is (?:on )?{_SAID}", None),
    ("favourite_%s", rf"\bmy favou?rite (?P<of>\w+) is {_SAID}", None),
    ("allergy", rf"\bI{_AM} allergic to {_SAID}", "health"),
    ("diagnosis", rf"\bI (?:was|have been) diagnosed with {_SAID}", "health"),
)
_OVER: tuple[tuple[str, str], ...] = (
    ("home", rf"\bI {_DONE} live in {_SAID}"),
    ("employer", rf"\bI {_DONE} work (?:at|for) {_SAID}"),
    ("employer", rf"\bI(?: have|['’]ve)?(?: just)? (?:left|quit|resigned from) {_CALLED}"),
    ("%s_name", rf"\bmy (?P<of>dog|cat|horse|rabbit|bird|hamster) {_CALLED} (?:has )?died"),
)
_RECOGNISED = (
    (
        "phone",
        "phone",
        r"\bmy (?:\w+ )?(?:phone|mobile|cell|telephone)\b|\bmy number\b|\bcall me (?:at|on)\b",
    ),
    ("email", "email", r"\bmy (?:\w+ )?e-?mail\b|\bmail me at\b|\bwrite (?:to )?me at\b"),
)
# Words by which a sentence may tell something sensitive of whoever says it.
SENSITIVE: dict[str, tuple[str, ...]] = {
    "health": (
        *("insulin", "diabetes", "diabetic", "asthma", "cancer", "chemotherapy", "chemo", "hiv"),
        *("depression", "depressed", "antidepressants", "therapist", "pregnant", "epilepsy"),
        *("migraine", "migraines", "rehab", "dialysis", "bipolar", "adhd", "autism", "psychiatrist"),
    ),
    "religion": (
        *("church", "mosque", "synagogue", "temple", "mass", "bible", "quran", "torah", "ramadan"),
        *("catholic", "protestant", "muslim", "jewish", "hindu", "buddhist", "atheist", "rabbi"),
    ),
    "sexuality": ("gay", "lesbian", "bisexual", "transgender", "queer", "asexual"),
    "politics": (
        *("republican", "democrat", "socialist", "communist", "conservative", "union"),
        *("protest", "voted"),
    ),
    "finance": ("salary", "debt", "debts", "bankrupt", "bankruptcy", "mortgage", "foreclosure"),
    "crime": ("arrested", "convicted", "parole", "probation", "jail", "prison"),
    "origin": ("refugee", "asylum", "undocumented", "immigrant"),
}  # fmt: skip
_SENSITIVE = {word: label for label, words in SENSITIVE.items() for word in words}
_ABOUT_ME = re.compile(r"\b(?:I|my|me|mine|I['’]m|I['’]ve)\b", re.IGNORECASE)
_ASKS = re.compile(
    r"^\W*(?:(?:please|can you|could you|would you|kindly|now)\W+)*"
    r"(?:forget|delete|erase|remove|unlearn|stop|don['’]t|do not)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern whose own words match in any case, and its names only as they are written."""
    start, name, end = pattern.partition(_CALLED)
    return re.compile(f"(?i:{start}{f'(?-i:{name})' if name else ''}{end})")


_STATEMENTS = [(key, _compiled(pattern), label) for key, pattern, label in _STATED]
_ENDINGS = [(key, _compiled(pattern)) for key, pattern in _OVER]
_MARKED = [(key, kind, re.compile(pattern, re.IGNORECASE)) for key, kind, pattern in _RECOGNISED]


class RuleExtractor:
    """The grammar above as an extractor; `region` is whose phone numbers need no country code.

    Every fact is made from the one message that says it, whatever else it was given.
    """

    name = "rules:1"
    uses_known = False

    def __init__(self, region: str = "US") -> None:
        self._region = region

    def __call__(
        self, messages: Sequence[Record], known: Sequence[Fact], lists: Sequence[str], /
    ) -> list[Proposed]:
        """Return what the users among those who speak say of themselves, in the order of saying."""
        del known, lists
        return [one for record in messages if record.role == "user" for one in self._facts(record)]

    def _facts(self, record: Record) -> Iterator[Proposed]:
        for sentence in values.sentences(record.text):
            said = sentence.strip()
            if not said or said.endswith("?") or _ASKS.search(said):
                continue
            found = list(self._explicit(said, record.id)) or list(_inferred(said, record.id))
            yield from found

    def _explicit(self, said: str, id_: int) -> Iterator[Proposed]:
        seen: set[tuple[str, str]] = set()
        for key, value in _matches(said, _ENDINGS):
            seen.add((key, value))
            yield Proposed(key, value, closes=True, said_in=id_, sources=[id_])
        for key, pattern, label in _STATEMENTS:
            for name, value in _matches(said, [(key, pattern)]):
                if (name, value) not in seen:
                    seen.add((name, value))
                    yield Proposed(name, value, sensitivity=label, said_in=id_, sources=[id_])
        for key, kind, mark in _MARKED:
            if mark.search(said):
                for one in values.recognise(said, region=self._region, kinds=frozenset({kind})):
                    yield Proposed(key, said[one.start : one.end], said_in=id_, sources=[id_])


def _matches(
    said: str, patterns: Sequence[tuple[str, re.Pattern[str]]]
) -> Iterator[tuple[str, str]]:
    for key, pattern in patterns:
        for found in pattern.finditer(said):
            of = found["of"].lower().replace("favorite", "favourite") if "%s" in key else ""
            value = found["value"].strip().rstrip(".").strip()
            if value:
                yield key.replace("%s", of), value


def _inferred(said: str, id_: int) -> Iterator[Proposed]:
    if not _ABOUT_ME.search(said):
        return
    for word in dict.fromkeys(one.casefold() for one in _WORD.findall(said)):
        if (label := _SENSITIVE.get(word)) is not None:
            yield Proposed(
                label, word, confidence=0.5, inferred=True, sensitivity=label, said_in=id_,
                sources=[id_],
            )  # fmt: skip
