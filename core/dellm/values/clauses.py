"""Take a value out of a text: only its characters, or the clause that holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import regex

from dellm.values.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable


class Extent(Protocol):
    """Anything with a start and an end in characters, such as a Span or a Found."""

    @property
    def start(self) -> int:
        """First character."""

    @property
    def end(self) -> int:
        """One past the last character."""


_PRONOUN: Final = (
    r"(?:i|i'm|i've|i'd|i'll|we|you|he|she|it|they|there|this|that|my|your|his|her|its|our|their)"
)
_VERB: Final = (
    r"(?:am|is|are|was|were|be|been|has|have|had|do|does|did|will|would|can|could|may|might|must|"
    r"should|shall|isn't|aren't|wasn't|weren't|hasn't|haven't|doesn't|don't|didn't|won't|can't|"
    r"[a-z]{2,}(?:s|ed)|bought|made|went|got|gave|took|came|saw|kept|left|lost|met|paid|read|said|"
    r"sold|sent|spent|told|won|wrote|ate|ran|drove|live|work|like|love|prefer|want|need|use|own|"
    r"play|speak|know|think|hate|eat|drink|study|drive|take)"
)
_NOT_VERB: Final = r"(?:this|his|its|us|yes|always|sometimes|perhaps|as|was|is|has|does)"
# A conjunction only parts clauses when a subject or a verb follows; "Italian and Mandarin" is one.
_CUT: Final = regex.compile(
    r"(?P<hard>\s*(?:;|\s[–—]\s|\s-\s)\s*)"
    rf"|(?P<join>,?\s+(?:and|but|or|so|yet|while|whereas|because|although|though|since)\s+(?:(?:also|then|now|still|currently)\s+)?)(?=(?i:{_PRONOUN})\b|{_VERB}\b|(?:the\s+|a\s+)?[\w'’\-]+(?:\s+[\w'’\-]+)?\s+{_VERB}\b)"
    rf"|(?P<comma>,\s+)(?=(?i:{_PRONOUN})\b|who\b|which\b|where\b)",
)
_SUBJECT: Final = regex.compile(
    rf"\s*(?P<subject>(?:[\w'’@.+\-]+\s+){{1,4}}?)(?:(?:currently|also|now|still|usually)\s+)?(?={_VERB}\b)"
)
_BARE_VERB: Final = regex.compile(rf"{_VERB}\b")
_TIDY: Final = ((regex.compile(r"[ \t]{2,}"), " "), (regex.compile(r"[ \t]+([,.;:!?)\]])"), r"\1"))
_TERMINAL: Final = regex.compile(r"[.!?。！？…]+[\"'”’)\]]*\s*$|\s+$")
_MEANING: Final = regex.compile(r"[^\W_]{2,}.*[^\W_]{2,}|[^\W_]*\p{Lo}{2,}", regex.DOTALL)
_FILLER: Final = regex.compile(
    r"(?i)^(?:ok(?:ay)?|yes|no|well|thanks?|thank you|hi|hello|hey|sure|please|also)?\W*$"
)


def redact(text: str, spans: Iterable[Extent], *, marker: str = "[redacted]") -> str:
    """Return `text` with each span replaced by `marker`; nothing else changes but spaces at the seam.

    Spans that touch or have only white space between them become one marker. With an empty marker
    the double space left behind goes too.
    """
    pieces: list[str] = []
    at = 0
    for start, end in _merged(text, spans):
        pieces += [text[at:start], marker]
        at = end
        if not marker and (not text[:start].strip(" \t") or text[start - 1].isspace()):
            at += len(text[at:]) - len(text[at:].lstrip(" \t"))
    rest = "".join([*pieces, text[at:]])
    return rest if marker or at == 0 else _tidy(rest)


def _merged(text: str, spans: Iterable[Extent]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((span.start, span.end) for span in spans):
        if merged and (start <= merged[-1][1] or not text[merged[-1][1] : start].strip()):
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _tidy(text: str) -> str:
    for pattern, instead in _TIDY:
        text = pattern.sub(instead, text)
    return text.rstrip(" \t")


def redact_clause(text: str, spans: Iterable[Extent]) -> str | None:
    """Return `text` without the clauses that hold a span, or None when nothing meaningful is left.

    A clause goes whole, what remains is a readable sentence: a conjunction left in front goes, the
    first letter is raised, and a verb that shared the lost clause's subject gets it back, unless the
    subject itself is part of a span. English conjunctions; other languages lose the whole sentence.
    """
    gone = _merged(text, spans)
    if not gone:
        return text
    kept: list[str] = []
    at = 0
    for sentence in sentences(text):
        inside = [
            (start - at, end - at) for start, end in gone if start < at + len(sentence) and at < end
        ]
        kept.append(_without(sentence, inside) if inside else sentence)
        at += len(sentence)
    rest = "".join(kept).strip()
    meaningful = [piece for piece in sentences(rest) if not _FILLER.match(piece)]
    return rest if meaningful and _MEANING.search(rest) else None


def clauses(text: str) -> list[str]:
    """Return the clauses of a text as `redact_clause` parts it, in order, as they stand in it.

    The first of a sentence without its subject, where the next one shares that: to take out what
    this returns leaves the subject to the other.
    """
    found = []
    for sentence in sentences(text):
        tail = _TERMINAL.search(sentence)
        body = sentence[: tail.start()] if tail else sentence
        spans = _clauses(body)
        if len(spans) > 1 and _BARE_VERB.match(body, spans[1][0]):
            subject = _SUBJECT.match(body)
            spans[0] = (subject.end() if subject else 0, spans[0][1])
        found += [body[start:end].strip() for start, end in spans]
    return [one for one in found if one]


def _without(sentence: str, gone: list[tuple[int, int]]) -> str:
    """Return the sentence without the clauses that overlap `gone`, or an empty string."""
    tail = _TERMINAL.search(sentence)
    body = sentence[: tail.start()] if tail else sentence
    clauses = _clauses(body)
    lost = [any(s < end and start < e for s, e in gone) for start, end in clauses]
    if all(lost):
        return ""
    pieces: list[str] = []
    last = -1
    for place, (_, end) in enumerate(clauses):
        if lost[place]:
            continue
        if last < 0:
            pieces.append(_opened(body, clauses, place, gone))
        elif last == place - 1:
            pieces.append(body[clauses[last][1] : end])
        else:
            pieces.append(_rejoined(body, clauses[place], clauses[place - 1][1]))
        last = place
    return "".join(pieces) + (tail[0] if tail else "")


def _clauses(body: str) -> list[tuple[int, int]]:
    clauses, start = [], 0
    for cut in _CUT.finditer(body):
        if body[start : cut.start()].strip():
            clauses.append((start, cut.start()))
            start = cut.end()
    return [*clauses, (start, len(body))]


def _opened(
    body: str, clauses: list[tuple[int, int]], place: int, gone: list[tuple[int, int]]
) -> str:
    """Make a clause the first of its sentence."""
    start, end = clauses[place]
    clause = body[start:end].strip()
    if place == 0:
        return body[start:end]
    subject = _SUBJECT.match(body)
    if (
        subject
        and _BARE_VERB.match(clause)
        and not any(s < subject.end("subject") for s, _ in gone)
    ):
        return f"{subject['subject'].strip()} {clause}"
    return clause[:1].upper() + clause[1:]


def _rejoined(body: str, clause: tuple[int, int], previous_end: int) -> str:
    start, end = clause
    joint = body[previous_end:start]
    return (joint if joint.strip() else " ") + body[start:end]
