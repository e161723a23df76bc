"""The rest of a turn: what it says besides the request, without what the request names."""

from __future__ import annotations

import re

from dellm.requests.reading import Sentence, plain_copy
from dellm.requests.request import Target

Span = tuple[int, int]
"""``[start, end)`` in characters of the message."""

STATED = frozenset({"quote", "value", "description", "meaning"})
"""Kinds of targets whose text must not stay in the rest."""
_COURTESIES = """please thanks thank you thx hi hey hello ok okay and but so also now just actually then too well sorry oh no
yes wait on second thought thoughts everywhere from your the memory notes pls for me by way btw it that this more any
anymore longer completely forever again once all of to never mind hmm in my our shared records"""
_EMPTY_WORDS = frozenset(_COURTESIES.split())
_HANGS_ON = re.compile(
    r"\W*(?:because|since|as|so that|cause|or|going|until|in (?:later|future|any)|at (?:all|any)|if needed|and (?:un\w+|not|no longer))\b"
)
_EDGE = " \t\r\n,;:.-–—()"


def remainder(
    message: str, sentences: list[Sentence], spans: list[Span], targets: tuple[Target, ...]
) -> str:
    """``message`` without ``spans`` and without sentences that state a target's text.

    Linear in the length of the message: each target is searched for once.
    """
    pieces: list[str] = []
    place = 0
    for sentence in sentences:
        pieces.append(message[place : sentence.start])
        pieces.append(_without(message, sentence, spans))
        place = sentence.end
    pieces.append(message[place:])
    rest = "".join(pieces)
    for target in targets:
        if target.kind in STATED:
            rest = _without_text(rest, target.text)
    return rest.strip()


def _without(message: str, sentence: Sentence, spans: list[Span]) -> str:
    inside = sorted(
        (max(a, sentence.start), min(b, sentence.end))
        for a, b in spans
        if a < sentence.end and sentence.start < b
    )
    if not inside:
        return message[sentence.start : sentence.end]
    kept: list[str] = []
    place = sentence.start
    for start, end in [*inside, (sentence.end, sentence.end)]:
        piece = message[place : max(place, start)]
        if _says_something(piece):
            kept.append(piece.strip(_EDGE))
        place = max(place, end)
    return ". ".join(kept) + ("." if kept else "")


def _says_something(piece: str) -> bool:
    plain = plain_copy(piece)
    words = re.findall(r"\w[\w']*", plain)
    if _HANGS_ON.match(plain):
        return False
    return sum(word not in _EMPTY_WORDS for word in words) >= 2


def _without_text(rest: str, text: str) -> str:
    """Cut every sentence of ``rest`` that holds ``text`` (any case and spacing)."""
    words = text.split()
    if not words or not rest:
        return rest
    pattern = re.compile(r"\s+".join(re.escape(word) for word in words), re.IGNORECASE)
    kept: list[str] = []
    place = 0
    for found in pattern.finditer(rest):
        if found.start() < place:
            continue
        start = _sentence_start(rest, place, found.start())
        kept.append(rest[place:start])
        place = _sentence_end(rest, found.end())
    kept.append(rest[place:])
    cut = "".join(kept)
    return cut if not pattern.search(cut) else pattern.sub("", cut)


_END = re.compile(r"[.!?。！？\n]+(?:\s|\Z)|[。！？\n]")


def _sentence_start(rest: str, floor: int, place: int) -> int:
    window = max(floor, place - 1_500)
    ends = [found.end() for found in _END.finditer(rest, window, place)]
    return ends[-1] if ends else window


def _sentence_end(rest: str, place: int) -> int:
    found = _END.search(rest, place, place + 1_500)
    return found.end() if found else min(len(rest), place + 1_500)
