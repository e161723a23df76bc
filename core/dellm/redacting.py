"""Redaction: a record lives on without the matched span or clause, as a new version of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from . import contents, provenance, reading, values
from .database import Scope, Tx
from .errors import InvalidInput
from .plan import Plan
from .records import Draft, Record, Status

UNITS = ("span", "clause")
MARKER = "[redacted]"


@dataclass(frozen=True, slots=True)
class _Extent:
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Version:
    """What takes the place of a redacted record, with the context and the status that it keeps."""

    draft: Draft
    context: Sequence[int]
    status: Status


def new_versions(tx: Tx, scope: Scope, plan: Plan, unit: str, region: str) -> dict[int, Version]:
    """Return, by old id, the new version of each match; `region` as in Memory.open.

    A match that was itself made from another match is derived content and gets no new version; nor
    does one of which nothing meaningful is left, or that still holds the value in an encoding.
    """
    if unit not in UNITS:
        raise InvalidInput(f"unit= is one of {', '.join(UNITS)}.")
    stored = reading.several(tx, scope, [match.id for match in plan.matches], None)
    going = set(plan.ids)
    versions: dict[int, Version] = {}
    for match in plan.matches:
        context = provenance.context_of(tx, scope.ws, match.id)
        if going.intersection(context):
            continue
        record = stored[match.id]
        gone = _needles(record.text, match.spans, region)
        holds = holding(gone, region)
        text = _without(record.text, _everywhere(record.text, match.spans, gone, region), unit)
        if text is not None and not holds(text.replace(MARKER, " ")):
            versions[match.id] = Version(draft_of(record, text, holds), context, record.status)
    return versions


def _needles(text: str, spans: Iterable[tuple[int, int]], region: str) -> list[values.Needle]:
    said = dict.fromkeys(text[start:end] for start, end in spans)
    return [values.needle(one, region=region) for one in said]


def _everywhere(
    text: str, spans: Iterable[tuple[int, int]], gone: Iterable[values.Needle], region: str
) -> list[_Extent]:
    """Return the spans, and every other place where the text says the same in any spelling.

    A description matches where the value is named as its owner's; it goes wherever it stands.
    """
    again = [one for needle in gone for one in values.find(needle, text, region=region)]
    return [_Extent(*span) for span in {*spans, *((one.start, one.end) for one in again)}]


def _without(text: str, extents: Sequence[_Extent], unit: str) -> str | None:
    if unit == "clause":
        return values.redact_clause(text, extents)
    kept = values.redact(text, extents, marker=MARKER)
    return kept if any(letter.isalnum() for letter in kept.replace(MARKER, "")) else None


def holding(gone: Iterable[values.Needle], region: str) -> Callable[[Any], bool]:
    """Return a test for a JSON value: whether it holds, in any spelling, one of the values."""
    tests = [values.quick(needle, region=region) for needle in gone]

    def holds(value: Any) -> bool:
        return any(test(inner) for test in tests for inner in contents.inside(value))

    return holds


def draft_of(record: Record, text: str, holds: Callable[[Any], bool]) -> Draft:
    """Return a new version: same place, role and governance, less what holds what was taken.

    Nor has it the payload, which is the framework's object with the old text.
    """
    return Draft(
        text=text,
        role=record.role,
        thread=record.thread,
        kind=record.kind,
        framework_id=record.framework_id,
        version=record.version + 1,
        metadata={key: value for key, value in record.metadata.items() if not holds({key: value})},
        subject=None if holds(record.subject) else record.subject,
        purpose=None if holds(record.purpose) else record.purpose,
        sensitivity=None if holds(record.sensitivity) else record.sensitivity,
        retention_until=record.retention_until,
        created_at=record.created_at,
        model=record.model,
        place=record.place,
    )
