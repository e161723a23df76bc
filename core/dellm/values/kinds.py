"""Recognise the values that a text holds: addresses, numbers, dates, codes."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import regex

from dellm.values import dates, needle
from dellm.values.normal import Folded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

FOUND_KINDS: Final = (
    "email", "url", "iban", "card", "ip", "date", "code", "phone", "money", "number",
)  # fmt: skip
# Those by which a text is known to hold what another one said: hardly two of them are alike.
TELLING: Final = frozenset({"phone", "email", "card", "iban", "url", "code", "ip"})
READ: Final = 10_000  # characters in which they are looked for
_TOP_LEVEL_WORDS: Final = """
com org net edu gov mil int info biz name pro app dev cloud online site shop store tech
blog xyz wiki test example internal local localhost museum travel
"""
_TOP_LEVEL: Final = frozenset(_TOP_LEVEL_WORDS.split())
_LOCAL: Final = r"(?:\"[\w.+\-]{1,64}\"|[\w+][\w.%+\-']{0,63})"
_LABELS: Final = r"(?:\w(?:[\w\-]{0,61}\w)?\.){1,8}[^\W\d_]{2,24}"
_EMAIL: Final = regex.compile(rf"(?<![\w.+\-]){_LOCAL}(?:@|%40){_LABELS}(?![\w\-])")
_AT: Final = r"\s{0,2}[\[({<]\s?at\s?[\])}>]\s{0,2}"
_DOT: Final = r"(?:\s{0,2}[\[({<]\s?dot\s?[\])}>]\s{0,2}|\s{1,2}dot\s{1,2})"
_SPELLED: Final = regex.compile(
    rf"(?<![\w.+\-])[\w][\w.+\-]{{0,63}}(?:"
    rf"{_AT}[\w\-]{{1,63}}(?:(?:{_DOT}|\.)[\w\-]{{2,63}}){{1,4}}"
    rf"|@[\w\-]{{1,63}}(?:{_DOT}[\w\-]{{2,63}}){{1,4}}"
    rf"|\s{{1,2}}at\s{{1,2}}[\w\-]{{1,63}}(?:{_DOT}[\w\-]{{2,63}}){{1,4}})(?![\w\-])"
)
_URL: Final = regex.compile(
    r"(?<![\w@.+\-])(?:[a-z][a-z0-9+.\-]{1,15}://|www\.)[^\s<>\"`{}|\\^\x00]+"
    rf"|(?<![\w@.+\-/])(?:{_LABELS})(?::[0-9]{{1,5}})?(?:[/?#][^\s<>\"`{{}}|\\^\x00]*)?(?![\w@\-])"
)
_IBAN: Final = regex.compile(r"(?<![a-z0-9])[a-z]{2}[0-9]{2}(?:[ -]?[a-z0-9]){11,30}(?![a-z0-9])")
_CARD: Final = regex.compile(
    r"(?<![\w+.\-])[1-9][0-9](?:[ .\-]{0,2}[0-9]){11,17}(?![\w]|[.\-][0-9])"
)
IP: Final = regex.compile(
    r"(?<![\w.])(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\.?\w)|(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:]))"
)
_TOKEN: Final = regex.compile(r"\w+(?:(?:[.\-]|(?<=[0-9])[#:/=+~@])\w+)*")
_QUANTITY: Final = regex.compile(r"[0-9]+(?:[.,][0-9]+)?[a-z]{1,3}|[0-9]+(?:st|nd|rd|th)")
_GROUP: Final = r"[ \u00b7./\-()]{1,4}"
_PHONE: Final = regex.compile(
    rf"(?<![\w+])(?:\+|00\s?)?[(]?[0-9]{{1,13}}(?:{_GROUP}[0-9]{{1,8}}){{0,6}}(?![0-9])"
    r"(?:\s{0,2}(?:;?ext\.?=?|extension|x)\s?[0-9]{1,6}(?![0-9]))?"
)
_MONEY: Final = regex.compile(
    r"(?<!\w)(?:[$€£¥₹]|(?:usd|eur|gbp|chf)\s)\s?[0-9](?:[0-9,.']*[0-9])?(?:\s?(?:k|m|bn)\b)?"
    r"|(?<![\w.])[0-9](?:[0-9,.']*[0-9])?\s?(?:[€£¥₹]|(?:usd|eur|gbp|chf)\b)"
)
_NUMBER: Final = regex.compile(
    r"(?<![\w])(?:[0-9]{3,4}(?: [0-9]{3,4}){2,}|[0-9]+(?:[.,'\-/][0-9]+)*)(?!\w)"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A value in a text: text[start:end], in characters of the original; `key` as in Needle."""

    kind: str
    key: str
    start: int
    end: int


def recognise(
    text: str, *, region: str = "US", kinds: Collection[str] | None = None
) -> list[Found]:
    """Return every value of a known kind in `text`, in order and without overlaps.

    `kinds` narrows the answer to some of FOUND_KINDS; a value that reads as two kinds counts as the
    first of them in that order. `region` reads phone numbers and dates. It never raises on any text.
    """
    folded = Folded(text)
    found = []
    for value in values(folded, 0, len(folded.plain), region):
        wanted = kinds is None or value.kind in kinds
        if wanted and not folded.cuts(value.start, value.end):
            start, end = folded.original(value.start, value.end)
            found.append(Found(value.kind, value.key, start, end))
    return found


def telling(text: str, *, region: str = "US") -> list[needle.Needle]:
    """Return needles for the values by which a text that repeats one is known: see TELLING.

    Of the first READ characters.
    """
    return [
        needle.needle(text[one.start : one.end], region=region, kind=one.kind)
        for one in recognise(text[:READ], region=region, kinds=TELLING)
    ]


def values(folded: Folded, low: int, high: int, region: str) -> list[Found]:
    """Like `recognise` for plain[low:high], with offsets in the plain form."""
    taken: list[Found] = []
    for read in _RECOGNISERS:
        fresh = list(read(folded, low, high, region))
        if fresh:
            taken = _add(taken, fresh)
    return taken


def _add(taken: list[Found], fresh: list[Found]) -> list[Found]:
    """Merge two ordered lists; what overlaps something already taken is left out."""
    starts = [value.start for value in taken]
    merged = list(taken)
    last = 0
    for value in fresh:
        place = bisect_left(starts, value.end)
        if value.start >= last and (place == 0 or taken[place - 1].end <= value.start):
            merged.append(value)
            last = value.end
    return sorted(merged, key=lambda value: value.start)


def _emails(folded: Folded, low: int, high: int, _region: str) -> Iterator[Found]:
    form = folded.plain
    if form.find("@", low, high) >= 0 or form.find("%40", low, high) >= 0:
        for found in _EMAIL.finditer(form, low, high):
            end = sentence_end(folded, found.start(), found.end())
            key = needle.read_email(form[found.start() : end])
            if key:
                yield Found("email", key, found.start(), end)
    if any(form.find(sign, low, high) >= 0 for sign in ("dot", "at]", "at)")):
        for found in _SPELLED.finditer(form, low, high):
            key = needle.read_email(found[0])
            if key:
                yield Found("email", key, found.start(), found.end())


def sentence_end(folded: Folded, start: int, end: int) -> int:
    """Cut a dotted name where a new sentence was glued to it ("acme.io.Please")."""
    stop = folded.plain.rfind(".", start, end)
    if stop <= start or not (
        folded.plain[start:stop].count(".") or "@" in folded.plain[start:stop]
    ):
        return end
    before, after = (folded.text[folded.original(at, at + 1)[0]] for at in (stop - 1, stop + 1))
    name = folded.plain[start:stop]
    return stop if after.isupper() and not before.isupper() and "." in name else end


def _urls(folded: Folded, low: int, high: int, _region: str) -> Iterator[Found]:
    if folded.plain.find(".", low, high) < 0 and folded.plain.find("://", low, high) < 0:
        return
    for found in _URL.finditer(folded.plain, low, high):
        end = found.start() + len(needle.without_tail(found[0]))
        if "/" not in found[0]:
            end = sentence_end(folded, found.start(), end)
        form = folded.plain[found.start() : end]
        if "://" in form or form.startswith("www.") or _is_site(form):
            yield Found("url", needle.url_key(form), found.start(), end)


def _is_site(form: str) -> bool:
    host = regex.split("[/?#:]", form, maxsplit=1)[0]
    ending = host.rpartition(".")[2]
    if host == form and ending in needle.FILE_ENDINGS:
        return False
    return ending in _TOP_LEVEL or len(ending) == 2


def _ibans(folded: Folded, low: int, high: int, _region: str) -> Iterator[Found]:
    for found in _IBAN.finditer(folded.plain, low, high):
        for end in _ends_of_groups(found[0]):
            key = needle.read_iban(found[0][:end])
            if key:
                yield Found("iban", key, found.start(), found.start() + end)
                break


def _ends_of_groups(form: str) -> list[int]:
    cuts = [match.start() for match in regex.finditer(r"[ -]", form)]
    return [len(form), *reversed(cuts)]


def _cards(folded: Folded, low: int, high: int, _region: str) -> Iterator[Found]:
    for found in _CARD.finditer(folded.plain, low, high):
        key = needle.read_card(found[0])
        if key:
            yield Found("card", key, found.start(), found.end())


def _ips(folded: Folded, low: int, high: int, _region: str) -> Iterator[Found]:
    for found in IP.finditer(folded.plain, low, high):
        key = needle.read_ip(found[0])
        if key and len(found[0]) > 4:
            yield Found("ip", key, found.start(), found.end())


def _dates(folded: Folded, low: int, high: int, region: str) -> Iterator[Found]:
    for date in dates.written(folded.plain, region=region, low=low, high=high):
        yield Found("date", date.readings[0], date.start, date.end)


def _codes(folded: Folded, low: int, high: int, _region: str) -> Iterator[Found]:
    for found in _TOKEN.finditer(folded.plain, low, high):
        token = found[0].strip("_")
        start = found.start() + found[0].index(token) if token else 0
        if (
            sum(map(str.isalnum, token)) >= 4
            and not _QUANTITY.fullmatch(token)
            and needle.read_code(token)
        ):
            yield Found("code", token, start, start + len(token))


def _phones(folded: Folded, low: int, high: int, region: str) -> Iterator[Found]:
    for found in _PHONE.finditer(folded.plain, low, high):
        size = sum(map(str.isdecimal, found[0]))
        if 7 <= size <= 21:
            yield from _dialled(found[0], found.start(), region)


def _dialled(form: str, at: int, region: str) -> Iterator[Found]:
    """Yield the longest phone in a chain of digit groups, then what follows it."""
    groups = list(regex.finditer(r"[0-9]+", form))
    for first in range(len(groups)):
        start = _opening(form, groups[first].start())
        for last in range(len(groups) - 1, first - 1, -1):
            end = groups[last].end()
            key = needle.read_phone(form[start:end], region)
            if key:
                yield Found("phone", key, at + start, at + end)
                yield from _dialled(form[end:], at + end, region)
                return


def _opening(form: str, start: int) -> int:
    """Take along the "+" and the "(" before the first group, unless the "(" is never closed."""
    while start and form[start - 1] in "(+":
        start -= 1
    while form[start] == "(" and form.count("(", start) > form.count(")", start):
        start += 1
    return start


def _money(folded: Folded, low: int, high: int, _region: str) -> Iterator[Found]:
    for found in _MONEY.finditer(folded.plain, low, high):
        yield Found("money", regex.sub(r"\s", "", found[0]), found.start(), found.end())


def _numbers(folded: Folded, low: int, high: int, _region: str) -> Iterator[Found]:
    for found in _NUMBER.finditer(folded.plain, low, high):
        key = needle.read_number(found[0])
        if key and sum(map(str.isdecimal, key)) >= 4:
            yield Found("number", key, found.start(), found.end())


_RECOGNISERS: Final[tuple[Callable[[Folded, int, int, str], Iterator[Found]], ...]] = (
    _emails, _urls, _ibans, _cards, _ips, _dates, _codes, _phones, _money, _numbers,
)  # fmt: skip
