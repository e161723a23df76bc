"""Split a text into sentences that join back to it."""

from __future__ import annotations

from typing import Final

import regex

# Plain list on purpose: a missed abbreviation costs one split too many, never a lost character.
_ABBREVIATED: Final = """
mr mrs ms mx dr prof rev hon st sr jr gen col capt lt sgt vs cf approx ca fig figs no nos
vol pp p ed eds al inc ltd co corp dept univ tel ext jan feb mar apr jun jul aug sep sept
oct nov dec mon tue wed thu fri sat sun e.g i.e z.b d.h u.a bzw usw str nr sra srta mme
mlle av ave blvd rd
"""
ABBREVIATIONS: Final = frozenset(_ABBREVIATED.split())
_END: Final = regex.compile(
    r"(?P<cjk>[。！？｡︒]+[」』）”’\"')\]]*\s*)"
    r"|(?P<stop>(?:[.!?‼⁇⁈⁉؟۔।…]+)[\"'”’»)\]]*(?P<gap>\s+|\Z))"
    r"|(?P<line>[^\S\n]*\n\s*)"
)
_LAST_WORD: Final = regex.compile(r"[^\s(\[\"'“‘]+$")
_LIST_ITEM: Final = regex.compile(r"\s*(?:[-*•–—+>#|]|\(?[0-9a-zA-Z]{1,3}[.)])(?:\s|$)")


def sentences(text: str) -> list[str]:
    """Split `text` into sentences; ''.join(sentences(text)) == text, white space stays at the end.

    Abbreviations, initials, numbered items, decimals, addresses and ellipses inside a sentence don't
    end it; ideographic full stops and line breaks do, except where a line is merely wrapped.
    """
    pieces = []
    start = 0
    for mark in _END.finditer(text):
        if mark.end() > start and _ends(text, start, mark):
            pieces.append(text[start : mark.end()])
            start = mark.end()
    if start < len(text):
        pieces.append(text[start:])
    return pieces


def _ends(text: str, start: int, mark: regex.Match[str]) -> bool:
    if mark["cjk"] is not None:
        return True
    following = text[mark.end() : mark.end() + 12]
    if mark["line"] is not None:
        return _breaks(text, mark, following)
    if not following:
        return True
    if "\n" in mark["gap"] and (mark["gap"].count("\n") > 1 or not following[0].islower()):
        return True
    if following[0].islower():
        return False
    return not mark["stop"].startswith(".") or not _abbreviated(text, start, mark.start())


def _breaks(text: str, mark: regex.Match[str], following: str) -> bool:
    """Whether a line break ends the sentence, or only wraps the line."""
    if mark["line"].count("\n") > 1 or not following or _LIST_ITEM.match(following):
        return True
    wrapped = following[0].islower() or text[mark.start() - 1 : mark.start()] == ","
    return not wrapped


def _abbreviated(text: str, start: int, stop: int) -> bool:
    """Whether the full stop at text[stop] belongs to an abbreviation, initial or item number."""
    found = _LAST_WORD.search(text, max(start, stop - 24), stop)
    if found is None:
        return False
    shown: str = found[0]
    word = shown.lower()
    if word in ABBREVIATIONS:
        return True
    if len(word) == 1 and word.isalpha():
        return shown.isupper() and shown != "I"
    return word.isdecimal() and not text[start : found.start()].strip()
