"""Find a needle in a text: exact spans of the original, never half a value, never a look-alike.

What counts as the value, and what does not:

- A word is bounded by anything but letters, digits, marks and "_" between them. Han, kana, Hangul,
  Thai, Lao, Khmer and Myanmar are written without spaces, so there a value may stand anywhere, but
  a value of one such character must stand alone.
- A hyphenated compound is another word: "John" is not in "John-Paul" nor "engineering" in
  "engineering-platform". A capitalised word next to a lower-case part is still itself
  ("Paris-based", "ex-Paris"), and an en or em dash separates.
- "'s" and elisions ("l'", "d'") don't belong to the word; other apostrophes do ("O'Neil").
- A part of a longer value (phone, card, IBAN, address, code with digits) takes the whole of it along
  when it has at least four letters or digits; otherwise it isn't found there. Digits must be the
  first or last group of the longer value: 0142 is in (415) 555-0142, but 4417 is neither in 1644170
  nor in 4417.50, and a year is not in a date.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import regex

from dellm.values.kinds import Found, values
from dellm.values.needle import digits
from dellm.values.normal import Folded, plain
from dellm.values.patterns import Candidate, Finder, finder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dellm.values.needle import Needle

_UNSPACED: Final = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u3005\u30fc]"
)
_WORDISH: Final = regex.compile(r"\w")
_MARK: Final = regex.compile(r"\p{M}")
_ELISION: Final = regex.compile(
    r"(?<!\w)(?:[ldcjmnst]|qu|jusqu|lorsqu|puisqu|dell|all|nell|sull|dall|un|quell)'$"
)
_POSSESSIVE: Final = regex.compile(r"'(?:s|d|ll|re|ve|m)?(?!\w)")
_MASK: Final = regex.compile(r"[*•●x]{2,}[ \-.]?(?:[*•●x]{2,}[ \-.]?)*$")
_AMOUNT: Final = regex.compile(r"[0-9]+(?:[,.'][0-9]{3})*[.,]?[0-9]*")
_EXTENSION: Final = regex.compile(r"\s*;?(?:ext|x)")
_LEAST: Final = 4
_REACH: Final = 48


@dataclass(frozen=True, slots=True)
class Span:
    """An occurrence: text[start:end] in characters of the original text.

    `exact` is False when the spelling leaves a doubt (day and month could be swapped, an accent or
    a letter of another script differs). `widened` says that the needle is only a part of this value.
    """

    start: int
    end: int
    kind: str
    exact: bool
    widened: bool


def find(needle: Needle, text: str, *, region: str = "US") -> list[Span]:
    """Return every occurrence of `needle` in `text`, in order and without overlaps; never raises.

    `region` reads phone numbers and dates of the text that don't name their country. Linear in the
    length of the text.
    """
    compiled = finder(needle, region)
    folded = Folded(text)
    if not compiled.probe(folded.plain):
        return []
    return _disjoint(list(_occurrences(needle, compiled, folded, region)))


def contains(needle: Needle, text: str, *, region: str = "US") -> bool:
    """Whether `find` would return anything; about a microsecond for a short text without it."""
    return quick(needle, region=region)(text)


def quick(needle: Needle, *, region: str = "US") -> Callable[[str], bool]:
    """Return `contains` for one needle as a closure, for loops over many texts."""
    compiled = finder(needle, region)
    probe = compiled.probe

    def check(text: str) -> bool:
        if not probe(plain(text)):
            return False
        return any(True for _ in _occurrences(needle, compiled, Folded(text), region))

    return check


def _occurrences(needle: Needle, compiled: Finder, folded: Folded, region: str) -> Iterator[Span]:
    for candidate in compiled.candidates(folded):
        settled = _settle(needle, candidate, folded, region)
        if settled is not None:
            start, end = folded.original(settled.start, settled.end)
            yield Span(start, end, needle.kind, settled.exact, settled.widened)


def _disjoint(spans: list[Span]) -> list[Span]:
    spans.sort(key=lambda span: (span.start, -span.end))
    kept: list[Span] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
        elif span.end > kept[-1].end:
            last = kept.pop()
            kept.append(Span(last.start, span.end, last.kind, exact=False, widened=True))
    return kept


def _settle(needle: Needle, candidate: Candidate, folded: Folded, region: str) -> Candidate | None:
    """Return the candidate itself, the longer value it takes along, or None when it is something else."""
    form, start, end = folded.plain, candidate.start, candidate.end
    if folded.cuts(start, end) or (end < len(form) and _MARK.match(form[end])):
        return None
    if needle.kind in {"email", "url", "date"}:
        return candidate
    holder = _holder(folded, start, end, region)
    if holder is not None:
        return _widened(needle, candidate, holder, form)
    if needle.kind == "text" and not _is_word(folded, start, end):
        return None
    if needle.kind in {"number", "code"} and (
        _joined(form, start - 1, start) or _joined(form, end - 1, end)
    ):
        return None
    return _with_mask(needle, candidate, form)


def _with_mask(needle: Needle, candidate: Candidate, form: str) -> Candidate:
    """Take along the stars of "**** 4242"."""
    if needle.kind != "number":
        return candidate
    mask = _MASK.search(form, max(0, candidate.start - 24), candidate.start)
    return Candidate(mask.start(), candidate.end, candidate.exact, True) if mask else candidate


def _holder(folded: Folded, start: int, end: int, region: str) -> Found | None:
    """Return the longer value that plain[start:end] is a part of, if any."""
    form = folded.plain
    if not _touched(form, start, end):
        return None
    low, high = _stretch(form, start, end)
    for value in values(folded, low, high, region):
        overlaps = value.start < end and start < value.end
        if overlaps and (value.start < start or end < value.end):
            return value
    return None


def _touched(form: str, start: int, end: int) -> bool:
    """Whether something that could continue a value stands next to plain[start:end]."""
    if any(character.isdecimal() for character in form[start:end]):
        return True
    left, right = (
        form[max(0, start - 2) : start].rsplit(None, 1),
        form[end : end + 2].split(None, 1),
    )
    before = left[-1] if left and not form[start - 1].isspace() else ""
    after = right[0] if right and not form[end].isspace() else ""
    return len(before.strip("\"'([")) > 1 or len(after.strip("\"'!?,;)]")) > 1


def _stretch(form: str, start: int, end: int) -> tuple[int, int]:
    """Enough of the text around a candidate to see the value that it may belong to."""
    low, high = max(0, start - _REACH), min(len(form), end + _REACH)
    while low > 0 and start - low < 256 and not form[low - 1].isspace():
        low -= 1
    while high < len(form) and high - end < 256 and not form[high].isspace():
        high += 1
    return low, high


def _widened(needle: Needle, candidate: Candidate, holder: Found, form: str) -> Candidate | None:
    start, end = candidate.start, candidate.end
    size = sum(map(str.isalnum, form[start:end]))
    low, high = min(start, holder.start), max(end, holder.end)
    if size == sum(map(str.isalnum, form[low:high])):
        return candidate
    if size < _LEAST or not _belongs(needle, holder, start, end, form):
        return None
    return Candidate(low, high, candidate.exact, True)


def _belongs(needle: Needle, holder: Found, start: int, end: int, form: str) -> bool:
    """Whether a needle that is a part of `holder` identifies it."""
    whole = form[holder.start : holder.end]
    if holder.kind == "email":
        local = holder.start + whole.find("@")
        return start <= holder.start + 1 and (end == local or form[end : end + 1] == "+")
    if holder.kind in {"date", "ip", "money"} or _AMOUNT.fullmatch(whole):
        return holder.kind == "money" and digits(whole) == digits(form[start:end])
    if _joined(form, start - 1, start) or _joined(form, end - 1, end):
        return needle.kind in {"phone", "card"} and holder.kind in {"phone", "code", "url"}
    last = end == holder.end or _EXTENSION.match(form, end, holder.end) is not None
    if needle.kind in {"text", "code"}:
        return holder.kind in {"code", "url", "iban"} or (holder.kind == "phone" and last)
    return holder.kind == "url" or start <= _first(form, holder.start) or last


def _first(form: str, start: int) -> int:
    while start < len(form) and not form[start].isalnum():
        start += 1
    return start


def _joined(form: str, left: int, right: int) -> bool:
    """Whether form[left] and form[right] are inside one word."""
    if left < 0 or right >= len(form):
        return False
    if not (_WORDISH.match(form[left]) and _WORDISH.match(form[right])):
        return False
    if _UNSPACED.match(form[left]) or _UNSPACED.match(form[right]):
        return bool(_MARK.match(form[right]))
    return not _lone_underscore(form, left, right)


def _lone_underscore(form: str, left: int, right: int) -> bool:
    """Whether the join is an underscore that sets off a word (_Paris_) rather than links two."""
    if form[left] == "_":
        return not form[: left + 1].rstrip("_")[-1:].isalnum()
    if form[right] == "_":
        return not form[right:].lstrip("_")[:1].isalnum()
    return False


def _is_word(folded: Folded, start: int, end: int) -> bool:
    form = folded.plain
    if _joined(form, start - 1, start) or _joined(form, end - 1, end):
        return False
    if form[end : end + 2] == "++" or (end - start == 1 and form[end : end + 1] in {"+", "#"}):
        return False
    if end - start == 1 and _UNSPACED.match(form[start]):
        return not _WORDISH.match(form[start - 1 : start]) and not _WORDISH.match(
            form[end : end + 1]
        )
    return _ends_left(folded, start) and _ends_right(folded, end)


def _ends_left(folded: Folded, start: int) -> bool:
    form = folded.plain
    if start < 2 or form[start - 1] not in "'-.@" or not _WORDISH.match(form[start - 2]):
        return True
    joiner = form[start - 1]
    if joiner == "'":
        return _ELISION.search(form, max(0, start - 10), start) is not None
    if joiner == "-":
        return _separates(folded, start - 1) or (
            _upper(folded, start) and not _upper(folded, _word_start(form, start - 2))
        )
    if joiner == ".":
        return _upper(folded, start) and not _upper(folded, start - 2)
    return False


def _ends_right(folded: Folded, end: int) -> bool:
    form = folded.plain
    if end + 1 >= len(form) or form[end] not in "'-.@" or not _WORDISH.match(form[end + 1]):
        return True
    joiner = form[end]
    if joiner == "'":
        return _POSSESSIVE.match(form, end) is not None
    if joiner == "-":
        last = _word_start(form, end - 1)
        return _separates(folded, end) or (_upper(folded, last) and not _upper(folded, end + 1))
    if joiner == ".":
        return _upper(folded, end + 1) and not _upper(folded, end - 1)
    return False


def _word_start(form: str, at: int) -> int:
    while at > 0 and _WORDISH.match(form[at - 1]):
        at -= 1
    return at


def _upper(folded: Folded, at: int) -> bool:
    start, _ = folded.original(at, at + 1)
    return folded.text[start].isupper()


def _separates(folded: Folded, at: int) -> bool:
    """Whether the dash at plain[at] is an en dash, em dash or longer, which joins no words."""
    start, _ = folded.original(at, at + 1)
    return folded.text[start] in "‒–—―"
