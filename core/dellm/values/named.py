"""The value that a description itself names: "the helper phrase cinder soft", "my alias Iris".

In English a noun for a kind of thing stands right before its name (close apposition). So what follows
the last such noun is the value, unless it goes on about the noun ("the phrase that I told you"). Rules
of one language, made to miss rather than to take a word for a value.
"""

from __future__ import annotations

from typing import Final

_POINTING: Final = """
the a an my our your his her their its this that these those any all old new current former
earlier exact deleted retired previous prior last original temporary hidden entire whole
explicit saved stored
"""
_THINGS: Final = """
phrase password passphrase passcode pin code token key label alias name nickname codename
username handle number phone line email mail address location place point spot room street
project word title tag id account value minute time hour
"""
# With these a phrase goes on about the noun before, and names nothing.
_ONWARDS: Final = """
of for from to in on at by with without about as and or but that which who whom whose where
when while i you he she it we they is was are were be been being has had have did do does can
could should must will would i'd i've you've we've instead too also please now
"""
_MODIFIERS: Final = frozenset(_POINTING.split())
_KINDS: Final = frozenset(_THINGS.split())
_GOES_ON: Final = frozenset(_ONWARDS.split())
_PLAIN_ENDS: Final = " .,;:!?\"'“”‘’()"


def named_parts(description: str) -> tuple[str, ...]:
    """Return the value that a description names, as one or no text.

    It follows the last noun for a kind of thing ("the phrase cinder soft"), or has a digit and stands
    before that ("the 6:35 PM minute"). One word alone needs a digit or a capital letter.
    """
    words = description.split()
    kinds = [place for place, word in enumerate(words) if word.casefold() in _KINDS]
    if not kinds:
        return ()
    after, before = words[kinds[-1] + 1 :], _bare(words)[:-1]
    if not after and any(one.isdigit() for one in "".join(before)):
        after = before
    part = _part(after)
    return (part,) if part else ()


def without_pointing(description: str) -> str:
    """Return a description without the words before it that only point ("the exact", "my old")."""
    return " ".join(_bare(description.split()))


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
