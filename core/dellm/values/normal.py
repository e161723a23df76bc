"""Plain form of a text: one spelling for what readers take to be the same characters.

`plain(text)` replaces each character on its own, so that two texts can be compared and a position
in the plain form leads back to the original. Case, compatibility forms (full-width, ligatures,
mathematical letters), digits of every script, accents, invisible characters, kinds of dash, quote
and space, and letters that look Latin all fall together. ASCII is only lowercased, which keeps the
common case as fast as `str.lower`.
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_right
from functools import cache
from itertools import accumulate
from typing import Final

import regex

_SIGNS: Final = (
    dict.fromkeys("‘’‚‛′＇ʼʹˈ´", "'")
    | dict.fromkeys("“”„‟″«»＂〝〞〟", '"')
    | dict.fromkeys("−⁃˗➖", "-")
)
# Latin, Greek, Cyrillic, Hebrew and Arabic read the same without these; in other scripts a mark
# is a vowel and makes another word, so it stays.
_DROPPED_MARKS: Final = regex.compile(
    r"[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff"
    r"\u20d0-\u20ff\ufe20-\ufe2f]"
)
_INVISIBLE: Final = regex.compile(
    r"[\p{Cf}\p{Variation_Selector}\u034f\u115f\u1160\u3164\uffa0\u17b4\u17b5]"
)
# Scripts whose letters are meant to be mistaken for Latin ones. Others (Hangul, kana, Arabic) have
# look-alikes in the Unicode list too, but a stroke that looks like "l" is not a spelling of it.
_LOOK_ALIKE_SCRIPTS: Final = regex.compile(
    r"[\p{Latin}\p{Greek}\p{Cyrillic}\p{Armenian}\p{Cherokee}\p{Coptic}\p{Lisu}\p{Deseret}]"
)


class _Folds(dict[int, str]):
    """Code point to its plain form, filled as characters are met."""

    def __missing__(self, point: int) -> str:
        folded = self[point] = _fold(chr(point))
        return folded


class _StrictFolds(dict[int, str]):
    """Like `_Folds`, but accents and look-alikes stay what they are."""

    def __missing__(self, point: int) -> str:
        folded = self[point] = _unify(chr(point))
        return folded


def plain(text: str) -> str:
    """Return the plain form of `text`; the same text always gives the same form, and it never raises."""
    return text.lower() if text.isascii() else text.translate(_FOLDS)


def strict(text: str) -> str:
    """Return `text` in NFD without case, kinds of dash, quote and space, or invisible characters.

    Two values whose strict forms agree are the same value in other typography; those that agree
    only in `plain` differ in an accent or in a letter of another script.
    """
    return text.lower() if text.isascii() else text.translate(_STRICT_FOLDS)


def _unify(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if _INVISIBLE.match(character):
        return ""
    category = unicodedata.category(character)
    if category in {"Pd", "Zs"}:
        return "-" if category == "Pd" else " "
    if category == "Nd":
        return str(unicodedata.decimal(character))
    composed = unicodedata.normalize("NFKC", character).casefold()
    return unicodedata.normalize("NFKD", composed)


def _fold(character: str) -> str:
    unified: str = _DROPPED_MARKS.sub("", _unify(character))
    return "".join(
        letter if letter.isascii() or not letter.isalpha() else _look_alike(letter)
        for letter in unified
    )


@cache
def _look_alike(letter: str) -> str:
    """Return the Latin letters that `letter` is drawn like, else the letter itself.

    Source: the Unicode confusables list, as shipped by confusable-homoglyphs. The answer depends on
    the casefolded letter only, so upper and lower case stay equal.
    """
    if not _LOOK_ALIKE_SCRIPTS.match(letter):
        return letter
    from confusable_homoglyphs.confusables import confusables_data

    longest = 2 if regex.match(r"\p{Latin}", letter) else 1
    for form in (letter, letter.upper()):
        for entry in confusables_data.get(form, ()):
            drawn: str = _DROPPED_MARKS.sub("", unicodedata.normalize("NFKD", entry["c"])).lower()
            if drawn.isascii() and drawn.isalpha() and len(drawn) <= longest:
                return drawn
    return letter


_FOLDS: Final = _Folds()
_STRICT_FOLDS: Final = _StrictFolds()
_TRAILING: Final = regex.compile(r"[\p{M}\u200d\ufe00-\ufe0f]")


class Folded:
    """A text with its plain form and the way back from the one to the other.

    Offsets count characters. Building it costs one pass; the way back is only computed when asked.
    """

    __slots__ = ("_ends", "plain", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = plain(text)
        self._ends: array[int] | None = None

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original that plain[start:end] stands for, marks included.

        A character that lies only partly in the span is covered whole.
        """
        if self.text.isascii():
            return start, end
        first, stop = self._index(start), self._index(end - 1) + 1
        while stop < len(self.text) and _TRAILING.match(self.text[stop]):
            stop += 1
        return first, stop

    def cuts(self, start: int, end: int) -> bool:
        """Whether plain[start:end] begins or ends inside one character of the original."""
        if self.text.isascii():
            return False
        return (start > 0 and self._index(start - 1) == self._index(start)) or (
            end < len(self.plain) and self._index(end - 1) == self._index(end)
        )

    def _index(self, position: int) -> int:
        """Index in the original of the character that plain[position] came from."""
        if self._ends is None:
            self._ends = _ends(self.text)
        return bisect_right(self._ends, position) if self._ends else position


def _ends(text: str) -> array[int]:
    """Where each character's plain form ends; empty when every character has exactly one."""
    widths = {character: len(_FOLDS[ord(character)]) for character in set(text)}
    if all(width == 1 for width in widths.values()):
        return array("q")
    return array("q", accumulate(widths[character] for character in text))
