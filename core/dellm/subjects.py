"""What a phrase such as "phone 415-555-0123" or "everything about Frank the engineer" is about.

Pure: reads a phrase, or a text for what it refers back to; looks at no memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import regex

from . import values

_FRAME: Final = regex.compile(
    r"(?i)^\W*(?:please\s+)?(?:(?:all|everything|anything|whatever|all\s+records?|any\s+records?)"
    r"(?:\s+(?:you\s+(?:know|have)|we\s+have|stored|on\s+file))?"
    r"\s+(?:about|on|of|for|regarding|concerning|related\s+to))\s+"
)
_BESIDE: Final = regex.compile(r"\((?:with|without|in|any|all|and|or|incl)[^()]*\)")
_OTHERWISE: Final = regex.compile(
    r"(?i)\s+/\s+|\s*\|\s*|\s*[,(]?\s*\b(?:a\.?k\.?a\.?|alias|also\s+known\s+as|also\s+written|or)\b\s*"
)
_CASELESS: Final = r"[^\P{L}\p{Latin}][\p{L}\p{M}\p{N}]*"
_NAME: Final = regex.compile(
    rf"{_CASELESS}(?:[ ·・]{_CASELESS})*"
    r"|(?<![\w@])(?=\p{Latin})\p{Lu}[\p{Latin}\p{M}\p{N}’'\-]*(?: (?=\p{Latin})\p{Lu}[\p{Latin}\p{M}\p{N}’'\-]*)*"
)
_ROLE_AND_NAME: Final = regex.compile(rf"(?:the\s+)?(?:\p{{Ll}}+\s+)?(?:{_NAME.pattern})")
_GENITIVE: Final = regex.compile(r"(?:['’]s|(?<=s)['’])$")
# Names of things that no kind of value covers: handles, paths, words joined by "_", codes in capitals.
_MARKED: Final = regex.compile(
    r"(?<![\w@])@[\w.\-]*\w\p{So}*|(?<![\w:/.])/\w+(?:[/.\-]\w+)+|(?<![\w@.])[^\W_]+(?:_[^\W_]+)+(?![\w@])"
    r"|(?<![\w\-])\p{Lu}{2,}(?:-[\p{Lu}\p{Nd}]+)+(?![\w\-])|(?<![\w\-])\p{Lu}{5,}(?![\w\-])"
    r"|(?<![\w.\-:])[0-9]{3,}(?![\w\-:]|\.\w)"
)
TIME: Final = regex.compile(
    r"(?i)(?<![\w:.])(?P<hour>[01]?[0-9]|2[0-3])(?:[:.](?P<minute>[0-5][0-9]))?\s?"
    r"(?P<half>[ap])\.?m\b\.?|(?<![\w:.])(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])(?![\w:])"
)
_KIND: Final = regex.compile(r"\p{Ll}+(?:_\p{Ll}+)+")
_YEAR: Final = regex.compile(r"(?:19|20)[0-9]{2}")
_WORD: Final = regex.compile(r"[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}_.@+/'\-]*[\p{L}\p{M}\p{N}])?")
_SAY_NOTHING: Final = (
    "a an the of for to in on at by with from and or is are was were be been has have had do does "
    "did my your his her their our its it this that record records data info information status "
    "details entry everything about all any"
)
_EMPTY_WORDS: Final = frozenset(_SAY_NOTHING.split())
_BACK: Final = regex.compile(
    r"(?i)^\W*(?:(?:the|this|that|and)\s+)*(?:very\s+)?(?:same|equivalent|identical)\s+(?P<noun>[\p{L}\-]+)"
    r"|^\W*(?:aka|a\.k\.a\.|alias|also\s+(?:known|written|spelled|listed|called))\b"
)
_RENAMED: Final = regex.compile(
    r"(?i)\b(?:refer(?:s|red)?\s+to|call(?:s|ed)?|label(?:s|led|ed)?|spell(?:s|ed)?|list(?:s|ed)?|writ(?:e|es|ten)"
    r"|name(?:s|d)?|know(?:s|n)?|record(?:s|ed)?)\s+(?:it|him|her|them|(?:the|this|that)\s+(?:same\s+)?\p{Ll}+)\s+(?:as\s+|by\s+)?\S"
    r"|\b(?:us(?:e|es|ed|ing))\s+(?:the|an?)\s+(?:\w+\s+)?(?:spelling|name|form|alias|abbreviation|nickname|codename)\b"
    r"|\b(?:spell(?:s|ed)?|use[sd]?|label(?:s|led)?|call(?:s|ed)?)\s+(?:the\s+)?same\b"
)
SHORT = 4  # digits: a plain number of so few stands for many things


@dataclass(frozen=True, slots=True)
class Subject:
    """What a phrase is about.

    `values` name it exactly, in any spelling; `numbers` are short plain numbers, which need another
    word of the phrase beside them; `names` are proper names, `others` says that they are names of
    one thing; `words` is what else the phrase says, in lower case; `times` are minutes of the day.
    `whole` says that everything about the named is meant, `part` that it is something of theirs.
    """

    values: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    times: tuple[int, ...] = ()
    whole: bool = False
    part: bool = False
    others: bool = False


def read(phrase: str, *, region: str = "US") -> Subject:
    """Read a phrase; one without any word gives an empty Subject."""
    bare = _FRAME.sub("", phrase)
    told = _BESIDE.sub(" ", bare)
    spans = _marked(told, region)
    marks = tuple(dict.fromkeys(told[start:end] for start, end in spans))
    rest = _masked(told, spans)
    times = tuple(dict.fromkeys(minutes(one) for one in TIME.finditer(rest)))
    rest = TIME.sub(" ", rest)
    parts = [part for part in _OTHERWISE.split(rest) if part.strip()]
    names = tuple(dict.fromkeys(name for part in parts for name in _names(part)))
    exact = _certain(tuple(one for one in marks if not _is_short(one)))
    short = tuple(one for one in marks if _is_short(one))
    return Subject(
        values=exact + tuple(one for one in short if any(one in code for code in exact)),
        numbers=tuple(one for one in short if not any(one in code for code in exact)),
        names=tuple(_GENITIVE.sub("", name) for name in names),
        words=words(_otherwise_blank(rest)),
        times=times,
        whole=bare != phrase or bool(_ROLE_AND_NAME.fullmatch(told.strip())),
        part=any(_GENITIVE.search(name) for name in names),
        others=len(parts) > 1 or len(names) > len(parts),
    )


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text that say something, in lower case, each once; "a-b" is one."""
    found = (_GENITIVE.sub("", one).lower() for one in _WORD.findall(text.replace("’", "'")))
    return tuple(dict.fromkeys(word for word in found if word not in _EMPTY_WORDS))


def akin(one: str, other: str) -> bool:
    """Whether two lower-case words are forms of one: "prescription" and "prescribed"."""
    if one == other:
        return True
    if not (one.isalpha() and other.isalpha()):
        return False
    shorter = min(len(one), len(other))
    shared = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    return shared >= 4 and (shorter - shared <= 2 or shared >= 6)


def minutes(found: regex.Match[str]) -> int:
    """Return the minute of the day, 0 to 1439, that a match of TIME says."""
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return hour * 60 + int(found["minute"] or 0)


def refers_back(text: str) -> bool:
    """Whether a text says of what stands before it that it is the same, or gives it another name."""
    return bool(_BACK.match(text) or _RENAMED.search(text))


def noun_of(text: str) -> str | None:
    """Return the noun by which a text refers back ("The same customer ..."), if it says one."""
    found = _BACK.match(text)
    return found["noun"].lower() if found and found["noun"] else None


def _marked(text: str, region: str) -> list[tuple[int, int]]:
    known = values.recognise(text, region=region)
    spans = [
        (one.start, one.end) for one in known if not _YEAR.fullmatch(text[one.start : one.end])
    ]
    for found in _MARKED.finditer(text):
        inside = any(start < found.end() and found.start() < end for start, end in spans)
        if not inside and not _YEAR.fullmatch(found[0]):
            spans.append(found.span())
    return sorted(_with_sign(text, span) for span in spans)


def _with_sign(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    return (start - 1, end) if start and text[start - 1] in "#@" else span


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    kept, at = [], 0
    for start, end in spans:
        kept += [text[at:start], " "]
        at = max(at, end)
    return "".join([*kept, text[at:]])


def _names(part: str) -> list[str]:
    return [found[0] for found in _NAME.finditer(part) if len(found[0]) > 1]


def _otherwise_blank(text: str) -> str:
    blanked: str = _OTHERWISE.sub(" ", text)
    return blanked


def _certain(marks: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out "case_id" beside "12345": beside a value with a digit it says what kind that is."""
    if any(map(str.isdigit, "".join(marks))):
        return tuple(one for one in marks if any(map(str.isdigit, one)) or not _KIND.fullmatch(one))
    return marks


def _is_short(mark: str) -> bool:
    return mark.isdecimal() and len(mark) <= SHORT
