"""The values that a description itself names: "the helper phrase cinder soft", "my alias Iris".

In English a noun for a kind of thing stands right before its name (close apposition). So what follows
such a noun is the value, unless it goes on about the noun ("the phrase that I told you"). Rules
of one language, made to miss rather than to take a word for a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import regex

_POINTING: Final = """
the a an my our your his her their its this that these those any all old new current former
earlier exact deleted retired previous prior last original temporary hidden entire whole
explicit saved stored
"""
_THINGS: Final = """
phrase password passphrase passcode pin code token key label alias name nickname codename
username handle number phone line email mail address location place point spot room street
project word title tag id account value minute time hour extension ext suite unit apartment flat
note
"""
_PLACES: Final = frozenset(["location", "place", "point", "spot", "room", "address"])
_INSIDE: Final = frozenset(
    ["at", "in", "on", "under", "behind", "beside", "inside", "above", "below", "near", "by"]
)
# A number of these says nothing by itself: it is named together with its noun.
_COUNTED: Final = frozenset(["room", "extension", "ext", "suite", "unit", "apartment", "flat"])
# With these a phrase goes on about the noun before, and names nothing.
_ONWARDS: Final = """
of for from to in on at by with without about as and or but that which who whom whose where
when while i you he she it we they is was are were be been being has had have did do does can
could should must will would i'd i've you've we've instead too also please now under behind
beside inside above below near saying says said regarding after before
"""
_MODIFIERS: Final = frozenset(_POINTING.split())
_KINDS: Final = frozenset(_THINGS.split())
_GOES_ON: Final = frozenset(_ONWARDS.split())
_PLAIN_ENDS: Final = " .,;:!?\"'“”‘’()"
# A time that is named, not one at which something is: "the minute 6:25 AM", not "lunch at 3:00 PM".
_CLOCK: Final = regex.compile(
    r"(?i)(?<!\b(?:at|by|after|before|from|until|till|around|about|since|to|than)\s)"
    r"(?<![\w:.])(?:[01]?\d|2[0-3]):[0-5]\d(?:\s?[ap]\.?m\b)?(?![\w:])"
)
_THERE: Final = regex.compile(
    r"(?i)\s+(?:at|in|on|under|behind|by|near)\s+(?:the\s+)?(?P<place>.+)"
)
_LEAST_PLACE: Final = 3  # words, for a place to be told from "at home"


def named_parts(description: str) -> tuple[str, ...]:
    """Return the values that a description names, in order.

    One follows a noun for a kind of thing ("the phrase cinder soft"), or has a digit and stands
    before that ("the 6:35 PM minute"); or is a clock time, with the place after it. One word alone
    needs a digit or a capital letter; a place, three words.
    """
    timed = list(_timed(description))
    found = [part for one in _joined(description) if (part := _named(one.split()))]
    several = [one for one in found if not any(time in one for time in timed)]
    return tuple(dict.fromkeys((*several, *timed)))


def without_pointing(description: str) -> str:
    """Return a description without the words before it that only point ("the exact", "my old")."""
    return " ".join(_bare(description.split()))


def _joined(description: str) -> list[str]:
    """Return what "and" joins, where each part has a noun of its own for a kind of thing."""
    parts = regex.split(r"\s+(?:and|or|plus)\s+", description)
    whole = all(_KINDS.intersection(one.casefold().split()) for one in parts)
    return parts if whole else [description]


def _named(words: list[str]) -> str:
    kinds = [place for place, word in enumerate(words) if word.casefold() in _KINDS]
    if not kinds:
        return ""
    kind, after, before = words[kinds[-1]].casefold(), words[kinds[-1] + 1 :], _bare(words)[:-1]
    if not after and any(one.isdigit() for one in "".join(before)):
        after = before
    part = _part(after)
    if not part and kind in _PLACES:
        return _place(after)
    return f"{kind} {part}" if kind in _COUNTED and after is not before and part else part


def _timed(description: str) -> Iterator[str]:
    for found in _CLOCK.finditer(description):
        yield found.group()
        if there := _THERE.match(description, found.end()):
            place = there["place"].strip(_PLAIN_ENDS)
            if len(place.split()) >= _LEAST_PLACE:
                yield place


def _place(words: list[str]) -> str:
    """Return where something is ("under the gray planter"), for "the location under the gray planter"."""
    if not words or words[0].casefold() not in _INSIDE:
        return ""
    told = _bare(words[1:])
    return " ".join(told).strip(_PLAIN_ENDS) if len(told) >= _LEAST_PLACE else ""


def _bare(words: list[str]) -> list[str]:
    first = next(
        (place for place, word in enumerate(words) if word.casefold() not in _MODIFIERS), len(words)
    )
    return words[first:]


def _part(words: list[str]) -> str:
    if not words or words[0].casefold() in _GOES_ON:
        return ""
    text = " ".join(words).strip(_PLAIN_ENDS)
    telling = len(words) > 1 or any(one.isdigit() or one.isupper() for one in text)
    return text if telling else ""
