"""Whether a user says something anew, of their own accord: small rules that rather miss than guess.

"My sister is Nia" and "please remember that I live in Paris" are new statements. A question, a
request to forget, a quotation, an acknowledgement, what somebody else said or what was said before
are none.
"""

from __future__ import annotations

import re
from typing import Final

from . import requests

_ASKS: Final = re.compile(
    r"\W*(?:was|were|is|are|am|did|do|does|had|have|has|can|could|would|will|should|who|whom|whose"
    r"|what|which|where|when|why|how|wasn't|isn't|didn't|don't you|so (?:was|is|did))\b",
    re.IGNORECASE,
)
# "note" and "store" are as often nouns ("the deleted note"): only an order tells.
_TELLS: Final = re.compile(
    r"(?:^\W*(?:(?:ok|okay|hi|hey|well|oh|and|so|also|now|yes|no|please|just|kindly|can you|could you|would you)\b"
    r"[\s,.:!]*)*|\b(?:please|to|must|should|can you|could you|would you|and|then)\s+(?:also\s+|just\s+|please\s+)?)"
    r"(?:remember|note|save|store)\b|\b(?:remember|note) (?:that|this)\b"
    r"|\b(?:keep in mind|bear in mind|for the record|fyi|just so you know|let me tell you|correction)\b"
    r"|^\W*(?:please )?(?:don't|do not) forget",
    re.IGNORECASE,
)
_OWN: Final = re.compile(
    r"\b(?:my|mine|our|ours|i|i'm|im|i've|i'll|we|we're|we've|me|us)\b", re.IGNORECASE
)
_VERB: Final = re.compile(
    r"\b(?:is|are|'s|'m|'re|am|lives?|live|works?|work|moved|married|bought|got|have|has|had a|named"
    r"|called|prefer|like|love|hate|want|use|changed|started|met|speak|drive|take|need|was born"
    r"|adopted|joined|study|studied|own)\b|i'm|we're|i've|we've|:",
    re.IGNORECASE,
)
_NOT_ANEW: Final = re.compile(
    r"\b(?:told you|you (?:said|know|knew|mentioned|remember|called|wrote|have|had)|i (?:said|mentioned"
    r"|told|asked|meant|thought|wrote|wonder|forgot|deleted|removed)|earlier|before|again about|used to"
    r"|no longer|not|never|isn't|wasn't|don't know|if|whether|maybe|perhaps|possibly|supposedly"
    r"|according to|says?|said|wrote|asked|delet\w*|eras\w*|remov\w*|purg\w*|wip(?:e|ed|ing)|stop|without"
    r"|instead of|forgotten|forgot|forgetting|(?<!years )(?<!year )(?<!-)old|former(?:ly)?|previous(?:ly)?"
    r"|retired|unavailable|still remember|do you|right\?|or something)\b",
    re.IGNORECASE,
)
_CUT: Final = re.compile(r"[.!?…]+[\"'”’)]*\s+|\n+|[。！？]+")
_QUOTES: Final = (('"', '"'), ("“", "”"), ("«", "»"), ("„", "“"), ("`", "`"))


def restates(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] is part of a new statement of the user, who says `text`."""
    if requests.recognise(text).kind is not requests.RequestKind.NONE:
        return False
    low, sentence = _sentence(text, start)
    if low + len(sentence) < end or _quoted(text, start, end):
        return False
    return _declares(sentence.strip().replace("’", "'"))


def _declares(sentence: str) -> bool:
    if sentence.rstrip("\"' )").endswith("?") or _ASKS.match(sentence) or sentence[:1] == ">":
        return False
    told = _TELLS.search(sentence)
    rest = f"{sentence[: told.start()]} {sentence[told.end() :]}" if told else sentence
    if _NOT_ANEW.search(rest):
        return False
    return told is not None or bool(_OWN.search(sentence) and _VERB.search(sentence))


def _sentence(text: str, at: int) -> tuple[int, str]:
    """Return where the sentence at a position begins, and the sentence; in doubt the shorter one."""
    cuts = [0, *(one.end() for one in _CUT.finditer(text)), len(text)]
    low = max(one for one in cuts if one <= at)
    return low, text[low : min(one for one in cuts if one > at)]


def _quoted(text: str, start: int, end: int) -> bool:
    """Whether a stretch stands between quotation marks, with more of a sentence than itself."""
    for opening, closing in _QUOTES:
        before, after = text[:start].rfind(opening), text.find(closing, end)
        inside = before >= 0 and after >= 0 and closing not in text[before + 1 : start]
        around = text[before + 1 : start] + text[end : max(after, end)]
        if inside and not around.strip(" .,!"):
            continue
        if inside and (opening != closing or text[: before + 1].count(opening) % 2):
            return True
    return False
