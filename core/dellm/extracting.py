"""Finding facts in messages: what an extractor is given and gives back, and the messages it reads.

An extractor is a function of messages, of the facts that are known already and of the keys that are
lists; it may ask a model, so it is called outside of any transaction. Each fact's parents are then
exactly what was in that call, unless the extractor says that it is made from fewer of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from .arguments import (
    check_flag,
    check_kind,
    check_number,
    check_text,
    whole_numbers,
)
from .errors import DellmError, InvalidInput, ModelError
from .fact_reading import Fact
from .fact_writing import Claim
from .records import Record, from_micros, to_micros

LONGEST_KEY = 200  # characters of a key, or of a name


@dataclass(frozen=True, slots=True)
class Proposed:
    """A fact to be stated, or, with `closes`, that a value (None: whichever there is) holds no more.

    `valid_from` is by default when `said_in`, one of the messages, was created; with `closes` it is
    the moment at which the fact ended. `inferred`: the user did not say it in so many words.
    `sensitivity` names what makes it sensitive ("health"). `sources` are ids of what the extractor
    was given: those alone that this was made from, where it can be sure of that; a model's answer is
    made from all. `confidence` is in [0, 1]; times are datetimes or microseconds since 1970.
    """

    key: str = field(repr=False)
    value: str | None = field(repr=False)
    valid_from: datetime | int | None = None
    valid_to: datetime | int | None = None
    confidence: float = 1.0
    subject: str | None = field(default=None, repr=False)
    inferred: bool = False
    sensitivity: str | None = field(default=None, repr=False)
    closes: bool = False
    said_in: int | None = None
    sources: Sequence[int] | None = None


@runtime_checkable
class Extractor(Protocol):
    """What finds facts. Any function will do; a `name` tells its messages from those of others.

    With an attribute `provider`, the host of a model, it is kept what that was sent: see exposures.
    With an attribute `uses_known` that is False it is given no known facts, and what it finds does
    not depend on them.
    """

    def __call__(
        self, messages: Sequence[Record], known: Sequence[Fact], lists: Sequence[str], /
    ) -> Sequence[Proposed]:
        """Return what the messages say that is new, oldest first; `known` are facts that hold now."""
        ...


@dataclass(frozen=True, slots=True)
class Extracted:
    """What an extraction did: ids of the records stored, and counts.

    `stated` are in use, `waiting` wait for confirmation; `closed` are facts that ended. `refused`
    was forgotten before. `messages` were read in `calls` calls of the extractor.
    """

    stated: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()
    refused: int = 0
    messages: int = 0
    calls: int = 0


def name_of(extractor: Extractor) -> str:
    """Return the name by which it is kept which messages an extractor has been through."""
    named = getattr(extractor, "name", None)
    if not isinstance(named, str) or not named.strip():
        named = getattr(extractor, "__qualname__", type(extractor).__qualname__)
    return str(named)


def seen_by(extractor: Extractor) -> str | None:
    """Return "provider/model" of an extractor that asks a model; None where it names no provider."""
    provider = getattr(extractor, "provider", None)
    if not isinstance(provider, str) or not provider.strip():
        return None
    return f"{provider}/{name_of(extractor).removeprefix('openai:')}"


def ask(
    extractor: Extractor, messages: Sequence[Record], known: Sequence[Fact], lists: Sequence[str]
) -> list[Proposed]:
    """Return what an extractor finds. Raises ModelError for whatever goes wrong in it."""
    try:
        return list(extractor(messages, known, lists))
    except DellmError:
        raise
    except Exception as error:  # noqa: BLE001 - anybody's code; its message may quote what it was given
        kind = type(error).__name__
    raise ModelError(f"The extractor failed with {kind}.", remedy="Correct it, and extract again.")


# checking


def check_key(key: object) -> None:
    """Raise InvalidInput for a key that cannot be told from the value in a record's text."""
    _check_name(key, "key=")


def check_subject(subject: object) -> None:
    """Raise InvalidInput unless it is None or somebody's name."""
    if subject is not None:
        _check_name(subject, "subject=")


def _check_name(name: object, said: str) -> None:
    check_text(name, said)
    assert isinstance(name, str)  # noqa: S101 - as was checked
    if not name.strip() or name != name.strip() or len(name) > LONGEST_KEY:
        raise InvalidInput(f"{said} is blank, has spaces around it or over {LONGEST_KEY} letters.")
    if ":" in name or "\n" in name or "\r" in name:
        raise InvalidInput(f"{said} has a colon or the end of a line in it.")


def check_moment(moment: object, said: str) -> int:
    """Return microseconds since 1970; InvalidInput unless it is a time that a datetime can hold."""
    if isinstance(moment, datetime) or type(moment) is int:
        try:
            micros = to_micros(moment)
            from_micros(micros)
        except (OverflowError, ValueError):
            pass
        else:
            return micros
    raise InvalidInput(f"{said} is neither a datetime nor microseconds since 1970.")


def check(one: Proposed) -> None:
    """Raise InvalidInput for what could not be stated as it is."""
    check_kind(one, Proposed, "What is stated")
    check_key(one.key)
    check_subject(one.subject)
    check_flag(one.closes, "closes=")
    check_flag(one.inferred, "inferred=")
    if one.value is not None:
        check_text(one.value, "value=")
    if (one.value is None and not one.closes) or (one.value is not None and not one.value.strip()):
        raise InvalidInput("value= is blank.")
    check_number(one.confidence, "confidence=")
    if not 0 <= one.confidence <= 1:
        raise InvalidInput("confidence= is not between 0 and 1.")
    if one.sensitivity is not None:
        check_text(one.sensitivity, "sensitivity=")
        if not one.sensitivity.strip():
            raise InvalidInput("sensitivity= is blank.")
    if one.sources is not None:
        whole_numbers(one.sources, "sources=")
    if one.said_in is not None:
        whole_numbers([one.said_in], "said_in=")


def claim(
    one: Proposed,
    now: int,
    context: Sequence[int] = (),
    messages: Sequence[Record] = (),
    model: str | None = None,
) -> Claim:
    """Return what is to be stored of a proposal, made from `context`. Raises InvalidInput."""
    check(one)
    by_id = {record.id: record for record in messages}
    sources = tuple(context) if one.sources is None else tuple(dict.fromkeys(one.sources))
    if not set(sources) <= set(context):
        raise InvalidInput("sources= names what the extractor was not given.")
    said_in = one.said_in
    if said_in is None and len(here := [id_ for id_ in sources if id_ in by_id]) == 1:
        said_in = here[0]
    if said_in is not None and said_in not in sources:
        raise InvalidInput("said_in= is not one of the sources.")
    told = by_id.get(said_in or 0) or (messages[-1] if messages else None)
    since = now if told is None else to_micros(told.created_at)
    if one.valid_from is not None:
        since = check_moment(one.valid_from, "valid_from=")
    until = None if one.valid_to is None else check_moment(one.valid_to, "valid_to=")
    if until is not None and (until < since or one.closes):
        raise InvalidInput("valid_to= is before valid_from=, or said of what is closed.")
    return Claim(
        key=one.key,
        value=one.value,
        since=since,
        until=until,
        closes=one.closes,
        confidence=float(one.confidence),
        subject=one.subject,
        inferred=one.inferred,
        sensitivity=one.sensitivity,
        context=sources,
        said_in=said_in or 0 if by_id else 0,
        messages=frozenset(by_id),
        model=model,
    )
