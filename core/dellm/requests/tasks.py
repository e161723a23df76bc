"""Tell what is worked on (files, lists, calendars, text, things) from what is remembered."""

from __future__ import annotations

import re

from dellm.requests.phrases import (
    FILE_NAME,
    PERSONAL_HEADS,
    TASK_MODIFIERS,
    TASK_NOUNS,
    TASK_PLACE,
)

_TODO = re.compile(r"\bto[ -]?dos?\b")
_RELATIVE = re.compile(r"\b(?:that|which|who) (?:said|says|tells?|told|mentions?|reads?)\b")
_BEHIND_HEAD = re.compile(
    r"\s(?:from|in|on|off|of|at|to|for|with|about|that|which|where|when|before|after|until|under|inside|by|called|named|older|than|if|as|i|we|you|he|she)\b"
)
_BARE_CODE = frozenset({"code", "the", "this", "that", "all", "some"})
PRECISE = re.compile(r"[^\s@]+@[^\s@]+\.\w|\d[\d\s().+-]{5,}\d")


def is_organised(thing: str) -> bool:
    """Tell whether a word of the text belongs to an organiser or a product ("calendar", "git")."""
    words = re.findall(r"[\w-]+", thing)
    return any(word in TASK_MODIFIERS for word in words)


def is_informative(thing: str) -> bool:
    """Tell whether a head word of the object names information (a number, an address, ...)."""
    return any(word in PERSONAL_HEADS for word in re.findall(r"[\w-]+", thing))


def is_task(thing: str) -> bool:
    """Tell whether the head of the object, or the place it is to be taken from, is a task."""
    if FILE_NAME.search(thing) or is_task_place(thing):
        return True
    if PRECISE.search(thing):
        return False
    if "history" in thing and is_organised(thing):
        return True
    words = _phrase_words(re.split(r",\s*|\s+and\s+", thing, maxsplit=1)[0])
    return bool(words) and _is_task_phrase(words)


def _phrase_words(part: str) -> list[str]:
    return re.findall(r"[a-z][\w'-]*", _BEHIND_HEAD.split(_TODO.sub("todo", part))[0])


def _is_task_phrase(words: list[str]) -> bool:
    head = words[-1]
    if words[0] in {"my", "our"} and (head == "email" or words[-2:] == ["job", "title"]):
        return False
    if head == "code" and not set(words) - _BARE_CODE:
        return True
    if head in PERSONAL_HEADS:
        return False
    return is_organised(" ".join(words[:-1])) or _is_task_noun(head)


def _is_task_noun(word: str) -> bool:
    return word in TASK_NOUNS or _singular(word) in TASK_NOUNS


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses")):
        return word[:-2]
    return word.removesuffix("s")


def is_task_place(thing: str) -> bool:
    """Tell whether a prepositional phrase of the text leads to a task ("... from my calendar")."""
    thing = _RELATIVE.split(_TODO.sub("todo", thing))[0]
    for found in TASK_PLACE.finditer(thing):
        words = re.findall(r"[\w-]+", found.group())
        if words[-1] in PERSONAL_HEADS and not FILE_NAME.search(" " + found[1]):
            continue
        if (
            FILE_NAME.search(" " + found[1])
            or (words[0] == "on" and is_organised(words[1]))
            or any(map(_is_task_noun, words[1:]))
        ):
            return True
    return False
