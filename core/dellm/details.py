"""What a caller may say of a record, as keyword arguments of the verbs that store one."""

from __future__ import annotations

from typing import Any, TypedDict


class Details(TypedDict, total=False):
    """What may be said of a record besides its text; see Draft."""

    thread: str | None
    kind: str
    framework_id: str | None
    version: int
    payload: bytes | None
    metadata: dict[str, Any] | None
    subject: str | None
    purpose: str | None
    sensitivity: str | None
    retention_until: Any
    created_at: Any
    model: str | None
    copy_of: int | None
    retention: str | None
    created_by: str | None
    basis: str | None
    source: str | None
    audience: str | None
