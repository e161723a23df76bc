"""Statements that one name stands for another."""

from __future__ import annotations

from functools import cache
from typing import Final

import regex

_NAME: Final = (
    r"(?:\"[^\"\n]{2,40}\"|“[^”\n]{2,40}”|‘[^’\n]{2,40}’|'[^'\n]{2,40}'|«[^»\n]{2,40}»"
    r"|[@#]?[\p{Lu}\p{Lo}](?:[\w@+\-]|\.(?=\w))*(?:(?<=\b\p{Lu})\.)?(?:['’][\p{L}]{2,})?"
    r"(?:[ ](?:(?:de|da|del|van|von|der|of|al|bin|the|and|&)[ ]){0,2}[\p{Lu}\p{Lo}0-9](?:[\w\-]|\.(?=\w))*(?:(?<=\b\p{Lu})\.)?(?:['’][\p{L}]{2,})?){0,4}"
    r"|[@#]\w[\w.\-]+|\w*[0-9][\w\-]*[\w]|\w+[_@][\w.\-]*\w)"
)
_KNOWN: Final = (
    r"(?:also|better|otherwise|formerly|previously|once|sometimes|now)\s+(?:known|referred\s+to|called|written)\s+as"
    r"|known\s+(?:(?:internally|publicly|online|locally)\s+)?as|also\s+called|a\.?\s?k\.?\s?a\.?|alias|née|nee|nicknamed"
    r"|code-?named|goes\s+by(?:\s+the\s+(?:name|nickname|alias)(?:\s+of)?)?|is\s+an?\s+alias\s+(?:of|for)"
    r"|is\s+(?:another|an\s+old|a\s+new)\s+name\s+for|(?:is\s+)?under\s+(?:the\s+)?alias|is\s+(?:nick|code)named"
)
_FORMS: Final = (
    r"(?P<x>NAME)\s*[,(–—-]?\s*(?i:(?:who\s+|which\s+)?(?:is\s+)?(?:KNOWN))\s*:?\s*(?P<y>NAME)",
    r"(?P<y>NAME)\s+(?i:is\s+(?:short|shorthand|an?\s+abbreviation|an?\s+acronym|slang)\s+(?:for|of))\s+(?P<x>NAME)",
    r"(?P<y>NAME),?\s+(?i:stands\s+for)\s+(?P<x>NAME)",
    r"(?i:\b(?:we|i|they|people|friends|everyone|colleagues)\s+(?:all\s+|just\s+|usually\s+|often\s+)?call(?:ed)?)\s+(?P<x>NAME)\s+(?P<y>\"[^\"\n]{2,40}\"|“[^”\n]{2,40}”|'[^'\n]{2,40}'|NAME)",
    r"(?i:\bcode-?\s?name|\bnickname|\balias)\s+(?i:is\s+)?(?P<y>NAME)\s+(?i:for|of)\s+(?P<x>NAME)",
    r"(?P<x>NAME)(?:'s|’s)\s+(?i:(?:code-?\s?name|nickname|alias|pseudonym|handle|maiden\s+name|stage\s+name|pen\s+name))\s+(?i:is|was)\s+(?P<y>NAME)",
    r"(?i:\b(?:code-?\s?name|nickname|alias|pseudonym)\s+(?:of|for))\s+(?P<x>NAME)\s+(?i:is|was)\s+(?P<y>NAME)",
    r"(?P<x>NAME),?\s+or\s+(?P<y>NAME)\s+for\s+short",
    r"(?P<x>NAME),?\s+(?i:for\s+short)\s+(?P<y>NAME)",
)
# Every form has one of these; most texts have none.
_CUE: Final = regex.compile(
    r"(?i)\b(?:a\.?\s?k\.?\s?a|alias|as|call(?:ed)?|code-?\s?named?|nick-?named?|goes\s+by|n[ée]e|short|stands"
    r"|another\s+name|(?:old|new)\s+name|abbreviation|acronym|slang|pseudonym|handle|(?:maiden|stage|pen)\s+name)\b"
)


@cache
def _compiled() -> tuple[regex.Pattern[str], ...]:
    return tuple(
        regex.compile(form.replace("NAME", _NAME).replace("KNOWN", _KNOWN)) for form in _FORMS
    )


# A name before the cue may start with its role, and a sentence with a word that only looks like one.
_ROLE: Final = regex.compile(
    r"^(?:(?:The|A|An|Our|My|Your|His|Her|Their|This|That|And|But|So|Note|Customer|Client|User|Patient|"
    r"Employee|Engineer|Vendor|Student|Contractor|Reviewer|Colleague|Friend)\s+)+(?=\S)"
)
_COMMON_WORDS: Final = """
i you he she it they we this that these those who which what the a an my our your his her
their office home work team project customer client user patient company city name
everyone someone people today tomorrow yesterday monday tuesday wednesday thursday friday
saturday sunday here there yes no ok okay
"""
_TOO_COMMON: Final = frozenset(_COMMON_WORDS.split())


def aliases(text: str) -> list[tuple[str, str]]:
    """Return (name, other name) for each alias statement in `text`, in order, without repeats.

    Conservative: only with an explicit word for it ("also known as", "short for", "goes by",
    "codename ... for"), and only between names (capitalised, quoted, in a script without case,
    handles, codes). A false alias would delete what nobody asked for.
    """
    if not _CUE.search(text):
        return []
    found = []
    for form in _compiled():
        for match in form.finditer(text):
            pair = _clean(match["x"]), _clean(match["y"])
            if all(map(_is_name, pair)) and pair[0].casefold() != pair[1].casefold():
                found.append((match.start(), pair))
    return list(dict.fromkeys(pair for _, pair in sorted(found)))


def _clean(name: str) -> str:
    bare: str = _ROLE.sub("", name.strip("\"'“”‘’«»"))
    return bare.strip(" .,-")


def _is_name(name: str) -> bool:
    lettered = any(map(str.isalpha, name))
    return lettered and len(name) >= 2 and name.casefold() not in _TOO_COMMON
