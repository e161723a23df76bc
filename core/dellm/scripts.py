"""Whether two names in different scripts are the same name: a guess, by their letters in Latin."""

from __future__ import annotations

from typing import Final

import regex

_VOWELS: Final = regex.compile(r"[aeiouyw'`ʿʾ\W_]+")
# Letters between which romanisations of one name choose: Kim/Gim, Pyotr/Bjotr, Cohen/Kohen.
_GROUPS: Final = {
    letter: group[0] for group in ("kgcqxj", "bpvf", "dt", "szh", "lr") for letter in group
}
_FOREIGN: Final = regex.compile(
    r"[^\P{L}\p{Latin}][\p{L}\p{M}]*(?:[ ·・\-][^\P{L}\p{Latin}][\p{L}\p{M}]*)*"
)
_LATIN: Final = regex.compile(r"[\p{Latin}\p{M} .'’\-]+")
_CAPITALISED: Final = regex.compile(
    r"(?=\p{Latin})\p{Lu}[\p{Latin}\p{M}’\-]*(?: (?=\p{Latin})\p{Lu}[\p{Latin}\p{M}’\-]*)*"
)
SHORTEST = 3  # letters of a skeleton that say enough
SAME_READING = 0.8  # share of letters two readings have in common, in order


def named_in(name: str, text: str) -> tuple[int, int] | None:
    """Return where a text holds a name in another script, in characters, or None.

    One of the two is in Latin letters. Compares the romanised words (anyascii): nearly the same letters, or the same consonants. Names
    of one short word are too little to go by. A guess: show it before anything is taken.
    """
    wanted = _reading(name)
    runs = _FOREIGN if _LATIN.fullmatch(name) else _CAPITALISED
    if len(wanted) < SHORTEST + 1 or not (runs is _FOREIGN or _FOREIGN.fullmatch(name)):
        return None
    for found in runs.finditer(text):
        for start, end in _stretches(found, len(name.split())):
            if _same(wanted, _reading(text[start:end])):
                return start, end
    return None


def _stretches(found: regex.Match[str], count: int) -> list[tuple[int, int]]:
    """Return the whole run, and each `count` words of it in a row."""
    whole = [found.span()]
    words = [(one.start(), one.end()) for one in regex.finditer(r"[^\s·・\-]+", found[0])]
    rows = zip(words, words[count - 1 :], strict=False)
    return whole + [(found.start() + a[0], found.start() + b[1]) for a, b in rows]


def _reading(name: str) -> str:
    from anyascii import anyascii

    return "".join(filter(str.isalpha, anyascii(name).lower()))


def _same(one: str, other: str) -> bool:
    from difflib import SequenceMatcher

    if not other:
        return False
    if SequenceMatcher(None, one, other, autojunk=False).ratio() >= SAME_READING:
        return True
    bones = _bones(one)
    return len(bones) >= SHORTEST and bones == _bones(other)


def _bones(reading: str) -> str:
    grouped = "".join(_GROUPS.get(letter, letter) for letter in _VOWELS.sub("", reading))
    bones: str = regex.sub(r"(.)\1+", r"\1", grouped)
    return bones
