"""For each kind of needle: where its spellings may stand in a plain text.

Each finder yields candidates only; `spans` decides whether a candidate is the value itself, a part
of a longer one, or something else. Every pattern is linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import regex

from dellm.values import dates
from dellm.values.kinds import IP, sentence_end, values
from dellm.values.needle import WORD, Needle, digits, read_ip, url_key
from dellm.values.normal import Folded, plain, strict
from dellm.values.sentences import ABBREVIATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PHONE_GAP: Final = r"[ \t().\-/\u00b7]{0,4}"
_NARROW_GAP: Final = r"[ .\-]{0,2}"
_CODE_GAP: Final = r"[ \-._/:#+=~@]{0,2}"
_FOREIGN: Final = regex.compile(r"(?:\+|(?<![0-9])00)[0-9]{1,3}[ \t().\-/]{1,3}$")
_EXTENSION: Final = r"(?:\s{0,2}(?:;?ext\.?=?|extension|durchwahl|x|#)\s?[0-9]{1,6})?(?![0-9])"
_LATIN: Final = regex.compile(r"\p{Latin}")
_NOT_LATIN: Final = regex.compile(r"(?=\p{L})\P{Latin}")
_EMAIL_AT: Final = r"(?:@|%40|\s{0,2}[\[({<]\s?at\s?[\])}>]\s{0,2}|\s{1,2}at\s{1,2})"
_EMAIL_DOT: Final = r"(?:\.|\s{0,2}[\[({<]\s?dot\s?[\])}>]\s{0,2}|\s{1,2}dot\s{1,2})"


@dataclass(frozen=True, slots=True)
class Candidate:
    """plain[start:end] may be the value; `widened` when it already covers more than the needle."""

    start: int
    end: int
    exact: bool = True
    widened: bool = False


@dataclass(frozen=True, slots=True)
class Finder:
    """A compiled needle: `probe` is a cheap necessary condition on a plain text."""

    probe: Callable[[str], object]
    candidates: Callable[[Folded], Iterator[Candidate]]


@lru_cache(maxsize=4096)
def finder(needle: Needle, region: str) -> Finder:
    """Return the finder of `needle`, compiled once."""
    if needle.kind in {"text", "code"} and _is_bic(needle.original.strip()):
        return _bic(needle)
    return _FINDERS[needle.kind](needle, region)


def let_go() -> None:
    """Let go of all needles and of what was made from them, also in what Python keeps of patterns.

    Values that a user has had forgotten are not to stay in the process.
    """
    finder.cache_clear()
    dates.readings.cache_clear()
    re.purge()
    regex.purge()


def _by_pattern(key: str, pattern: str) -> Finder:
    compiled = regex.compile(pattern)

    def candidates(folded: Folded) -> Iterator[Candidate]:
        for found in compiled.finditer(folded.plain):
            yield Candidate(found.start(), found.end())

    return Finder(_probe(key), candidates)


def _probe(key: str) -> Callable[[str], object]:
    """Look for the last four letters or digits of `key`, nearly side by side."""
    tail = [regex.escape(character) for character in key if character.isalnum()][-4:]
    compiled = re.compile(r"[^0-9a-z]{0,4}".join(tail))
    return compiled.search


def _spaced(characters: str, gap: str) -> str:
    return gap.join(map(regex.escape, characters))


def _card(needle: Needle) -> str:
    return rf"(?<![0-9]){_spaced(needle.key, _NARROW_GAP)}(?![0-9])"


def _iban(needle: Needle) -> str:
    return rf"(?<![a-z0-9]){_spaced(needle.key, _NARROW_GAP)}(?![a-z0-9])"


def _ip_address(needle: Needle) -> Finder:
    parts = needle.key.split(".")
    last = re.compile(rf"\.0{{0,2}}{parts[-1]}(?![0-9])" if len(parts) == 4 else ":")

    def candidates(folded: Folded) -> Iterator[Candidate]:
        for found in IP.finditer(folded.plain):
            if read_ip(found[0]) == needle.key:
                yield Candidate(found.start(), found.end())

    return Finder(last.search, candidates)


def _number(needle: Needle) -> str:
    whole, _, cents = needle.key.partition(".")
    shown = whole.lstrip("0")
    body = _grouped(shown if len(shown) >= 3 else whole, plain(needle.original))
    padding = "0{0,8}" if len(shown) >= 3 else ""
    fraction = rf"[.,]{cents}" if cents else r"(?:[.,]00(?![0-9]))?"
    return rf"(?<![0-9]){padding}{body}{fraction}(?![0-9])"


def _grouped(number: str, original: str) -> str:
    """Digits with the separators they may be written with: thousands, the needle's own, any if long."""
    own = {len(digits(original[: gap.start()])) for gap in regex.finditer(r"[^0-9]+", original)}
    lead = len(digits(original)) - len(number)
    parts = [number[:1]]
    for at in range(1, len(number)):
        if len(number) >= 6 or at + lead in own:
            parts.append(r"[ .,'\-/_]?")
        elif (len(number) - at) % 3 == 0:
            parts.append(r"[ .,']?")
        parts.append(number[at])
    return "".join(parts)


def _token(needle: Needle) -> Finder:
    compiled = regex.compile(_code(needle))
    size = sum(map(str.isalnum, needle.key))

    def candidates(folded: Folded) -> Iterator[Candidate]:
        for found in compiled.finditer(folded.plain):
            start, end = _with_signs(needle, folded.plain, *found.span())
            yield Candidate(start, end, widened=sum(map(str.isalnum, found[0])) > size)

    return Finder(_probe(needle.key), candidates)


def _with_signs(needle: Needle, form: str, start: int, end: int) -> tuple[int, int]:
    """Take along the signs that the needle itself begins or ends with ("P@ssw0rd!")."""
    own = regex.fullmatch(r"([\W_]*)(.*?)([\W_]*)", plain(needle.original).strip(), regex.DOTALL)
    before, after = (own[1], own[3]) if own else ("", "")
    if before and form.startswith(before, max(0, start - len(before)), start):
        start -= len(before)
    return start, end + len(after) if after and form.startswith(after, end) else end


def _code(needle: Needle) -> str:
    key = needle.key
    pieces = regex.findall(r"[^\W_]|[\W_]+", key)
    size = sum(piece.isalnum() for piece in pieces)
    free = r"[\-._ ]?" if size >= 12 else r"[\-._]?" if size >= 8 else ""
    parts: list[str] = []
    for before, piece in zip(["", *pieces], pieces, strict=False):
        if not piece.isalnum():
            # The sign itself ("pa$$w0rd1"), or how codes are otherwise grouped.
            parts.append(f"(?:{regex.escape(piece)}|{_CODE_GAP})" if before else "")
            continue
        if before.isalnum():
            turn = before.isdecimal() != piece.isdecimal()
            parts.append(r"[\-._ ]?" if turn else free)
        parts.append(regex.escape(piece))
    # A short hash is the beginning of the long one.
    hashlike = regex.fullmatch("[0-9a-f]{7,31}", key)
    rest = f"(?:[0-9a-f]{{{32 - len(key)},}})?" if hashlike else ""
    return rf"(?<![^\W_]){''.join(parts)}{rest}(?![^\W_])"


def _is_bic(value: str) -> bool:
    from stdnum import bic

    return len(value) in {8, 11} and value.isupper() and bool(bic.is_valid(value))


def _bic(needle: Needle) -> Finder:
    """8 and 11 characters name the same bank; only capitals count, so that words aren't taken."""
    bank = needle.key[:8]
    compiled = regex.compile(rf"(?<!\w){bank}(?:[a-z0-9]{{3}})?(?!\w)")

    def candidates(folded: Folded) -> Iterator[Candidate]:
        for found in compiled.finditer(folded.plain):
            start, end = folded.original(found.start(), found.end())
            same = found[0] == needle.key
            branch = found[0][8:] or "xxx", needle.key[8:] or "xxx"
            if same or _is_bic(folded.text[start:end]):
                yield Candidate(found.start(), found.end(), branch[0] == branch[1], not same)

    return Finder(lambda form: bank in form, candidates)


def _phone(needle: Needle) -> Finder:
    code, national = _split_phone(needle.key)
    international = regex.match(r"\s*(?:tel:)?\s*(?:\+|00|011)", plain(needle.original)) is not None
    prefix = ""
    if code:
        start = rf"(?:(?:\+|00|011)[ \-.(]{{0,2}})?{_spaced(code, '')}{_PHONE_GAP}"
        prefix = rf"(?:{start})?(?:\(?0\)?[ ./\-]{{0,2}})?"
    guard = r"(?<![0-9+])" if code else r"(?<![+])"
    body = regex.compile(rf"[(]{{0,2}}{guard}{prefix}{_spaced(national, _PHONE_GAP)}(?![0-9])")
    extension = regex.compile(_EXTENSION)

    def candidates(folded: Folded) -> Iterator[Candidate]:
        form = folded.plain
        for found in body.finditer(form):
            start, end, exact = found.start(), found.end(), True
            foreign = _FOREIGN.search(form, max(0, start - 9), start)
            if foreign and code and foreign[0].strip("+0 ().-/\t") != code:
                if international:
                    continue
                start, exact = foreign.start(), False
            while form[start] == "(" and form.count("(", start, end) > form.count(")", start, end):
                start += 1
            tail = extension.match(form, end)
            wider = tail.end() if tail else end
            yield Candidate(start, wider, exact, wider > end)

    return Finder(_probe(national), candidates)


def _split_phone(key: str) -> tuple[str, str]:
    """Country code and national digits; no code when the key is a local number."""
    import phonenumbers

    if len(key) <= 7:
        return "", key
    try:
        number = phonenumbers.parse(f"+{key}", None)
    except phonenumbers.NumberParseException:
        return "", key
    if not phonenumbers.is_possible_number(number):
        return "", key
    return str(number.country_code), key[len(str(number.country_code)) :]


def _email(needle: Needle) -> Finder:
    local, _, domain = needle.key.rpartition("@")
    host = regex.escape(domain).replace(r"\.", _EMAIL_DOT)
    name = regex.escape(local).replace(r"\.", _EMAIL_DOT).replace(r"\+", r"(?:\+|%2b)")
    compiled = regex.compile(
        rf"(?<![\w+\-])(?<!\w\.)(?:\"{name}\"|{name}){_EMAIL_AT}{host}(?![\w\-])"
    )
    piece = max(WORD.findall(needle.key), key=len)

    def candidates(folded: Folded) -> Iterator[Candidate]:
        form = folded.plain
        for found in compiled.finditer(form):
            end = found.end()
            longer = regex.match(r"(?:\.[\w\-]+)+", form[end : end + 64])
            if longer and sentence_end(folded, found.start(), end + longer.end()) != end:
                continue
            yield Candidate(found.start(), end)

    site = max(WORD.findall(domain), key=len)
    return Finder(lambda form: piece in form and site in form, candidates)


def _date(needle: Needle, region: str) -> Finder:
    wanted = dates.readings(plain(needle.original).strip(), region) or (needle.key,)
    # Every spelling of the year ends in its last two digits.
    years = tuple({day[2:4] for day in wanted})

    def candidates(folded: Folded) -> Iterator[Candidate]:
        for date in dates.written(folded.plain, region=region):
            shared = set(wanted) & set(date.readings)
            if shared:
                sure = len(date.readings) == 1 and date.readings[0] == needle.key
                yield Candidate(date.start, date.end, sure)

    return Finder(lambda form: any(year in form for year in years), candidates)


def _url(needle: Needle, region: str) -> Finder:
    host = regex.split("[/?#]", needle.key, maxsplit=1)[0]
    compiled = regex.compile(regex.escape(host))

    def candidates(folded: Folded) -> Iterator[Candidate]:
        done = 0
        for found in compiled.finditer(folded.plain):
            if found.start() < done:
                continue
            for value in values(folded, *_around(folded.plain, found.start(), found.end()), region):
                how = _address(needle.key, value.kind, value.key)
                if value.start <= found.start() < value.end and how:
                    done = value.end
                    yield Candidate(value.start, value.end, widened=how == "part")

    return Finder(lambda form: host in form, candidates)


def _address(key: str, kind: str, other: str) -> str | None:
    """How the address `key` lies in another value: "same", "part" of it, or None."""
    if kind not in {"url", "email"}:
        return None
    if kind == "url" and other == key:
        return "same"
    if (
        kind == "url"
        and other.startswith(key)
        and other[len(key) : len(key) + 1] in {"/", "?", "#", ":"}
    ):
        return "part"
    host = url_key(other.rpartition("@")[2]).split("/")[0].split(":")[0]
    if regex.search("[/?#]", key):
        return None
    return "part" if host == key or host.endswith(f".{key}") else None


def _around(form: str, start: int, end: int, reach: int = 200) -> tuple[int, int]:
    """Return the stretch without white space around form[start:end], at most `reach` to each side."""
    low, high = start, end
    while low > 0 and start - low < reach and not form[low - 1].isspace():
        low -= 1
    while high < len(form) and high - end < reach and not form[high].isspace():
        high += 1
    return low, high


def _text(needle: Needle) -> Finder:
    form = plain(needle.original).strip()
    pieces = WORD.findall(form)
    if not pieces:
        compiled = regex.compile(regex.escape(needle.key))
        probe = needle.key
    else:
        compiled = regex.compile(_phrase(form))
        probe = max(pieces, key=len)
    wanted = WORD.findall(strict(needle.original))

    def candidates(folded: Folded) -> Iterator[Candidate]:
        for found in compiled.finditer(folded.plain):
            start, end = folded.original(found.start(), found.end())
            same = WORD.findall(strict(folded.text[start:end])) == wanted
            if same or not _other_word(needle.original, folded.text, start, end):
                yield Candidate(*_with_signs(needle, folded.plain, *found.span()), same)

    return Finder(lambda text: probe in text, candidates)


def _other_word(wanted: str, text: str, start: int, end: int) -> bool:
    """Whether text[start:end] is a real word of another script that only looks like `wanted`.

    Letters of both scripts in one word are a disguise. A word wholly in the other script is one too,
    unless the text around it has letters of that script which look like nothing in the first.
    """
    shown = text[start:end]
    around = text[max(0, start - 200) : start] + text[end : end + 200]
    if _LATIN.search(shown):
        mixed = _NOT_LATIN.search(shown) or _LATIN.search(wanted)
        return not mixed and _LATIN.search(around) is not None
    own = _NOT_LATIN.findall(around) if _LATIN.search(wanted) else []
    return any(not plain(letter).isascii() for letter in own)


def _phrase(form: str) -> str:
    """Words in order, with any white space and punctuation between them, inside one sentence."""
    parts: list[str] = []
    previous = None
    for word in WORD.finditer(form):
        if previous is not None:
            between = form[previous.end() : word.start()]
            short = len(previous[0]) == 1 or previous[0] in ABBREVIATIONS
            ends_sentence = short or regex.search(r"[.!?;:]", between)
            parts.append(r"[\W_]{1,8}" if ends_sentence else r"(?:[^\w.!?]|_|[.!?](?!\s)){1,8}")
        parts.append(regex.escape(word[0]))
        previous = word
    symbols = regex.search(r"(?<=\w)[\p{Sm}#\p{So}]+$", form)  # C++, F#; not a smiley after a space
    return "".join(parts) + (regex.escape(symbols[0]) if symbols else "")


_FINDERS: Final[dict[str, Callable[[Needle, str], Finder]]] = {
    "phone": lambda needle, _region: _phone(needle),
    "email": lambda needle, _region: _email(needle),
    "date": _date,
    "url": _url,
    "text": lambda needle, _region: _text(needle),
    "ip": lambda needle, _region: _ip_address(needle),
    "card": lambda needle, _region: _by_pattern(needle.key, _card(needle)),
    "iban": lambda needle, _region: _by_pattern(needle.key, _iban(needle)),
    "number": lambda needle, _region: _by_pattern(needle.key, _number(needle)),
    "code": lambda needle, _region: _token(needle),
}
