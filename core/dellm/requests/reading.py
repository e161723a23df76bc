"""Cut a message into sentences, with everything that isn't the user's own voice masked out.

Matching works on a *plain* copy of the text: lower case, straight quotes, half-width letters, one
character for each character of the message, so that a span of the copy is a span of the message.
Quotations, code, pasted blocks and reported speech are overwritten with :data:`MASK`.

Only the first 8,000 and the last 1,000 characters of a message are read, and of these at most 80
sentences of at most 1,500 characters; so the work is bounded for a text of any size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

HEAD = 8_000
TAIL = 1_000
SENTENCES = 80
SENTENCE_LENGTH = 1_500

MASK = "\ue000"
_STRAIGHT = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "`": "`", "\u00a0": " ", "\u3000": " ", MASK: " ", "\t": " "}
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence: ``[start, end)`` in characters of the message, and its plain, masked copy."""

    start: int
    end: int
    plain: str
    question: bool


def plain_copy(text: str) -> str:
    """Lower case and fold character by character; the result is as long as ``text``."""
    return "".join(_fold(char) for char in text.translate(_STRAIGHT))


def _fold(char: str) -> str:
    code = ord(char)
    if 0xFF01 <= code <= 0xFF5E:
        char = chr(code - 0xFEE0)
    elif (code < 32 and char != "\n") or 0x200B <= code <= 0x200F or code in {0xFEFF, 0xAD}:
        return " "
    lower = char.lower()
    return lower if len(lower) == 1 else char


_QUOTED = re.compile(
    r"""```.{0,8000}?(?:```|\Z)                     # fenced code, closed or not
      | `[^`\n]{1,300}`
      | <([a-z_][\w-]{0,30})[^<>\n]{0,80}>.{0,3000}?</\1>
      | "[^"]{1,3000}"
      | “[^”]{1,3000}”
      | „[^“”"]{1,3000}[“”"]
      | «[^»]{1,3000}»
      | 「[^」]{1,3000}」 | 『[^』]{1,3000}』
      | (?<![\w'])'(?=[^\s'])[^'\n]{1,400}(?:'(?=\w)[^'\n]{1,200}){0,8}'(?!\w)
    """,
    re.VERBOSE | re.DOTALL,
)
_FOREIGN_LINE = re.compile(
    r"""^[ ]{0,8}(?:>[^\n]*
      | \W{0,2}(?:assistant|system|tool|function|bot|ai|user|human|document|page|web[ ]?page|article
        |e-?mail|subject|lyrics|title|output|result|console|log|snippet|excerpt|transcript|comment
        |review|tweet|headline|quote|caption|slogan|song|note[ ]to[ ]self|instructions?|prompt|example|observation|retrieved)
        (?:[ ]\w{1,20}){0,2}\W{0,2}:[^\n]*)$""",
    re.VERBOSE | re.MULTILINE,
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|no|nr|vs|etc|eg|ie|jr|sr|sra|approx|inc|ltd|art)"
    r"|\be\.g|\bi\.e|\bz\.b|(?:^|\s)\w)\.$"
)
_BREAK = re.compile(rf"[.!?…]+[)\"']?(?=\s|$)|[。！？]|\n+|{MASK}(?=\n)")
_TASK = (
    r"(?:summari[sz]e|translate|proof-?read|rewrite|rephrase|paraphrase|analy[sz]e|explain|classify"
    r"|review|respond\ to|reply\ to|draft|write|compose|interpret|spell|pronounce|parse|convert"
    r"|extract|repeat|sing|edit|improve|polish|shorten|correct|generate|create|tldr|tl;dr"
    r"|what(?:'s|\ is|\ does|\ do)|how\ (?:do|would|can|could|should)\ (?:you|i|we|one)\ say"
    r"|how\ to\ say|is\ (?:this|it)|does\ this"
    r"|here(?:'s|\ is|\ are)\ [\w'\ ]{1,60}(?=:)"
    r"|(?:i|we)(?:'ve|\ have|\ just)?\ (?:got|received|found|read|saw|wrote|have)\ [\w'\ ]{1,60}(?=:)"
    r"|(?:see|consider|look\ at|read|check|given|this\ is)\ [\w'\ ]{1,60}(?=:))"
)
_FRAME = re.compile(
    rf"\W*(?:(?:please|can\ you|could\ you|hey|hi|ok|help\ me|i\ need\ you\ to|now),?\s+){{0,3}}{_TASK}(?!\w)",
    re.VERBOSE,
)
_REPORT = re.compile(
    r"(?<!\bi )\b(?:says?|said|saying|reads?|wrote|writes|texted|told (?:me|him|her|us|them)|yelled"
    r"|asked (?:me|him|her|us|them)|replied|shouted|goes|called|titled|sings?|states?)\s*(?::|to me:)|\b(?<!\bi )(?:said|says|wrote|texted|told (?:me|him|her|us)|replied|shouted),"
)


def read(message: str) -> list[Sentence]:
    """Sentences of the part of ``message`` that is looked at; payload of a task is masked."""
    if len(message) <= HEAD + TAIL:
        return _read_part(message, 0)[:SENTENCES]
    head = _read_part(message[:HEAD], 0)[: SENTENCES // 2]
    if head and any(_opens_payload(s.plain, last=False) for s in head):
        return head
    return head + _read_part(message[-TAIL:], len(message) - TAIL)[1:][-SENTENCES // 2 :]


def mask(plain: str) -> str:
    """Overwrite quotations, code and lines of other speakers, keeping the length."""
    if (whole := _around_others(plain)) is not None:
        start, end = whole
        plain = plain[:start] + MASK * (end - start) + plain[end:]
    for pattern in (_QUOTED, _FOREIGN_LINE):
        plain = pattern.sub(lambda found: MASK * len(found.group()), plain)
    return plain


def _around_others(plain: str) -> tuple[int, int] | None:
    """Return where a quotation stands that holds quotations itself, as in "In "Alma" it rains".

    Its second mark opens another one: it follows a space or a mark, and a word follows it. Then it
    ends with the last mark there is. Read in pairs, it would be what stands between the inner ones.
    """
    first = plain.find('"')
    second = plain.find('"', first + 1)
    last = plain.rfind('"')
    if not 0 <= first < second < last:
        return None
    before, after = plain[second - 1], plain[second + 1]
    opens = (before.isspace() or before == '"') and not after.isspace() and after != '"'
    return (first, last + 1) if opens else None


def _read_part(text: str, offset: int) -> list[Sentence]:
    plain = mask(plain_copy(text))
    sentences: list[Sentence] = []
    for start, end in _spans(plain):
        part = plain[start:end]
        if part.strip(" \n\r" + MASK):
            sentence = Sentence(offset + start, offset + end, _own_voice(part), _asks(part))
            sentences.append(sentence)
            if _opens_payload(part, last=plain[end : end + 1] == "\n"):
                break
            if _FRAME.match(part) and re.search(r"\babove\b", part):
                sentences.clear()
    return sentences


def _asks(part: str) -> bool:
    return part.rstrip(" )\"'" + MASK).endswith(("?", "？", "؟"))


def _spans(plain: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    for found in _BREAK.finditer(plain):
        if found.group() == "." and _ABBREVIATION.search(
            plain, max(start, found.end() - 8), found.end()
        ):
            continue
        spans.extend(_pieces(start, found.end()))
        start = found.end()
    spans.extend(_pieces(start, len(plain)))
    return [(a + _indent(plain[a:b]), b) for a, b in spans]


def _indent(part: str) -> int:
    return len(part) - len(part.lstrip())


def _pieces(start: int, end: int) -> list[tuple[int, int]]:
    cuts = [*range(start, end, SENTENCE_LENGTH), end]
    return list(pairwise(cuts))


def _own_voice(part: str) -> str:
    """Mask what is reported ("she said: ...") or handed over as material ("translate: ...")."""
    frame = _FRAME.match(part)
    if frame:
        return MASK * len(part)
    report = _REPORT.search(part)
    if report:
        return part[: report.end()] + MASK * (len(part) - report.end())
    return part


def _opens_payload(part: str, *, last: bool) -> bool:
    """Tell whether everything after this sentence is material for a task.

    ``last`` says that the sentence ends its line.
    """
    if not _FRAME.match(part):
        return False
    handed_over = re.search(r":|\b(?:following|below)\b", part)
    return bool(handed_over) or (last and bool(re.search(r"\bthis\b", part)))
