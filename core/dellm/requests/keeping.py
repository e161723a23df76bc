"""What a deletion request says is to stay: "but keep John Smithson", "everything except X"."""

from __future__ import annotations

import re

from dellm.requests.english import object_end
from dellm.requests.reading import Sentence
from dellm.requests.remainder import Span
from dellm.requests.targets import trim

_KEEP = re.compile(
    r"(?:\A|[,;:.(]\s*|\s[-–—]\s|\b(?:but|and|though|however|yet)\s+)(?:(?:please|just|do|only|still|also|you can|you may|you should|i'd like you to|i want you to|be sure to|make sure to|you could|but)\s+)*"
    r"(?:(?:keep|leave|retain|save|preserve|hold on to|hang on to|remember)\b|(?:don'?t|do not|never) (?:delete|remove|touch|forget|erase|wipe|lose|drop)\b)"
    r"(?:\s+(?:only|just|all of|all))?\s+(?P<keep>[^;.!?\n]{1,200})"
)
_EXCEPT = re.compile(
    r"\b(?:except(?: for| that)?|apart from|other than|besides|excluding|aside from|save for|but not|, ?not|rather than|instead of)\s+(?P<keep>[^;.!?\n]{1,200})"
)
_FINE = re.compile(
    r"(?:,|;|\bbut|\band)\s+(?P<keep>(?:the|my|our|his|her|their|[a-z]+'s)\b[^,;.!?]{1,60}?) (?:is|are|can|should|may|must) (?:fine|ok|okay|stay|stays|remain|be kept|be left|good)\b|(?:,|;|\bbut|\band)\s+(?P<keep2>(?:the|my|our|his|her|their)\b[^,;.!?]{1,60}?) (?:stays?|remains?)\b"
)
_TRAIL = re.compile(
    r"(?: (?:though|please|alone|intact|as (?:it is|they are|is)|for now|untouched|in place|too|in memory|on file))+\Z"
)


def kept_parts(
    sentences: list[Sentence], requests: list[Span], message: str
) -> tuple[tuple[str, ...], list[Span]]:
    """Find the things to keep as written, and the spans of the clauses that say so.

    Read are the sentences that hold a request and those right beside them.
    """
    texts: list[str] = []
    spans: list[Span] = []
    for sentence in _beside(sentences, requests):
        requested = any(a < sentence.end and sentence.start < b for a, b in requests)
        for pattern in (_KEEP, _EXCEPT, _FINE) if requested else (_KEEP,):
            for found in pattern.finditer(sentence.plain):
                span = _object(sentence, found, message)
                text = message[span[0] : span[1]]
                if not text or any(a < span[1] and span[0] < b for a, b in requests + spans):
                    continue
                texts.append(text)
                spans.append((sentence.start + found.start(), span[1]))
    return tuple(dict.fromkeys(texts)), spans


def _object(sentence: Sentence, found: re.Match[str], message: str) -> Span:
    groups = found.groupdict()
    group = "keep" if groups["keep"] else "keep2"
    start = found.start(group)
    stop = min(object_end(sentence.plain, start), found.end(group))
    comma = sentence.plain.find(",", start, stop)
    stop = comma if comma > 0 else stop
    first, last = trim(message, sentence.start + start, sentence.start + stop)
    tail = _TRAIL.search(sentence.plain[first - sentence.start : last - sentence.start])
    return first, (first + tail.start() if tail else last)


def _beside(sentences: list[Sentence], requests: list[Span]) -> list[Sentence]:
    holds = [any(a < s.end and s.start < b for a, b in requests) for s in sentences]
    return [
        sentence
        for place, sentence in enumerate(sentences)
        if any(holds[max(0, place - 1) : place + 2])
    ]
