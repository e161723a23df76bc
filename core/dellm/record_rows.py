"""Drafts as rows of the table of records, and as the records that they become."""

from __future__ import annotations

from datetime import datetime

from .encoding import dump_json, encode
from .records import Draft, Record, Status, from_micros, to_micros

INSERT = (
    "insert into record(ws, id, place, thread, kind, role, fid, version, text, payload, metadata, "
    "subject, purpose, sensitivity, retention_until, status, model, tokens, created_at, audience) values "
    "(:ws, :id, :place, :thread, :kind, :role, :fid, :version, :text, :payload, :metadata, "
    ":subject, :purpose, :sensitivity, :retention_until, :status, :model, :tokens, :created_at, "
    ":audience)"
)


def _encoded(text: str | None) -> str | None:
    return None if text is None else encode(text)


def row_of(
    ws: int, id_: int, draft: Draft, length: int, at: int, audience: int = 0
) -> tuple[object, ...]:
    """Return the values of INSERT, in its order."""
    until = draft.retention_until
    return (
        ws,
        id_,
        id_ if draft.place is None else draft.place,
        encode(draft.thread or ""),
        draft.kind,
        encode(draft.role),
        _encoded(draft.framework_id),
        draft.version,
        encode(draft.text),
        draft.payload,
        dump_json(draft.metadata),
        _encoded(draft.subject),
        _encoded(draft.purpose),
        _encoded(draft.sensitivity),
        None if until is None else to_micros(until),
        int(_status(draft)),
        _encoded(draft.model),
        length,
        at if draft.created_at is None else to_micros(draft.created_at),
        audience,
    )


def record_of(workspace: str, id_: int, draft: Draft, at: datetime) -> Record:
    """Return the record that a draft has become, created `at` unless it says else."""
    until, created = draft.retention_until, draft.created_at
    return Record.of(
        id_,
        workspace,
        draft.thread,
        draft.kind,
        draft.role,
        draft.text,
        at if created is None else from_micros(to_micros(created)),
        id_ if draft.place is None else draft.place,
        draft.framework_id,
        draft.version,
        draft.payload,
        dict(draft.metadata) if draft.metadata else {},
        draft.subject,
        draft.purpose,
        draft.sensitivity,
        None if until is None else from_micros(to_micros(until)),
        _status(draft),
        draft.model,
    )


def _status(draft: Draft) -> Status:
    return Status.QUARANTINED if draft.quarantined else Status.ACTIVE
