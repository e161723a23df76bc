"""What a deletion request is: its kind, its scope and what a matcher should look for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RequestKind(StrEnum):
    """What a message asks of the memory."""

    FORGET = "forget"
    """An instruction to delete."""
    OFFER = "offer"
    """Something said to be over ("that code is retired"): may be offered, is never executed."""
    NONE = "none"
    """Neither."""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to search for.

    ``kind`` is ``ids`` (numbers of records, in ``ids``), ``quote`` (``text`` stands in the record),
    ``value`` (an identifier in any spelling), ``description`` ("my phone number"), ``meaning`` (a
    statement, "I live in Paris"), ``last`` (the newest ``count`` exchanges, about ``text`` when
    that is set; 0 when the request gives a stretch of time and no number), ``thread`` or
    ``everything``. ``text`` is a part of the message as the user wrote it.
    """

    kind: str
    text: str = ""
    ids: tuple[int, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """What :func:`recognise` found in one message.

    ``scope`` is ``fact``, ``topic``, ``entity``, ``last``, ``all``, ``message_id``, ``quoted``,
    ``session``, ``partial``, ``vague``, or empty when ``kind`` is NONE. ``needs_question`` holds
    for vague and total requests: the caller must ask before anything is matched. ``rest`` is the
    message without the request and without what it names; for OFFER and NONE it is the message.
    ``keep`` lists what the user wants to stay. ``language`` is an ISO 639-1 code, empty for NONE.
    """

    kind: RequestKind
    scope: str = ""
    targets: tuple[Target, ...] = ()
    needs_question: bool = False
    rest: str = ""
    keep: tuple[str, ...] = ()
    language: str = ""
