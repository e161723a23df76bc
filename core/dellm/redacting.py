"""Redaction: a record lives on without the matched span or clause, as a new version of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def new_versions(tx: Tx, scope: Scope, plan: Plan, unit: str) -> dict[int, Version]:
    """Return, by old id, the new version of each match.

    A match that was itself made from another match is derived content and gets no new version; nor
    does one of which nothing meaningful is left.
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
        if (text := _without(record.text, match.spans, unit)) is not None:
            draft = _draft(record, text, match.spans)
            versions[match.id] = Version(draft, context, record.status)
    return versions


def _without(text: str, spans: Sequence[tuple[int, int]], unit: str) -> str | None:
    extents = [_Extent(*span) for span in spans]
    if unit == "clause":
        return values.redact_clause(text, extents)
    kept = values.redact(text, extents, marker=MARKER)
    return kept if any(letter.isalnum() for letter in kept.replace(MARKER, "")) else None


def _draft(record: Record, text: str, spans: Sequence[tuple[int, int]]) -> Draft:
    """Return the new version: same place, role and governance; no payload, which held the old text."""
    return Draft(
        text=text,
        role=record.role,
        thread=record.thread,
        kind=record.kind,
        framework_id=record.framework_id,
        version=record.version + 1,
        metadata=_clean(record.metadata, [record.text[start:end] for start, end in spans]),
        subject=record.subject,
        purpose=record.purpose,
        sensitivity=record.sensitivity,
        retention_until=record.retention_until,
        created_at=record.created_at,
        model=record.model,
        place=record.place,
    )


def _clean(metadata: Mapping[str, Any], gone: Sequence[str]) -> dict[str, Any]:
    """Return the metadata without the entries that hold what was redacted."""
    needles = [values.quick(values.needle(text)) for text in gone]
    return {
        key: value
        for key, value in metadata.items()
        if not any(holds(inner) for holds in needles for inner in contents.strings({key: value}))
    }
