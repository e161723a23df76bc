"""The values that pass between the layers: records, contexts, edges. All frozen, none does I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

from .encoding import decode, load_json

KINDS = frozenset(
    {"message", "tool", "document", "summary", "fact", "item", "cached", "state", "inferred"}
)


class Status(IntEnum):
    """Whether a record may be used. Only ACTIVE records reach a context or a search."""

    ACTIVE = 0
    SUPPRESSED = 1
    QUARANTINED = 2
    HELD = 3
    ERASING = 4
    FAILED = 5


# A held record is kept from erasure, not from use.
USABLE = (Status.ACTIVE, Status.HELD)


def from_micros(micros: int) -> datetime:
    """Return the aware UTC time of `micros` microseconds since 1970."""
    seconds, rest = divmod(micros, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)


def to_micros(moment: datetime | int) -> int:
    """Return microseconds since 1970; a naive time is taken as UTC."""
    if isinstance(moment, int):
        return moment
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _decoded(stored: str | None) -> str | None:
    return None if stored is None else decode(stored)


@dataclass(frozen=True, slots=True)
class Record:
    """One atom of memory. `id` is sequential in its workspace: the paper's *i*.

    `place` orders a thread (the id, unless the record is a new version of an older one);
    `framework_id` and `version` name the framework's object; `payload` is that object, exactly.
    """

    id: int
    workspace: str
    thread: str | None
    kind: str
    role: str
    text: str = field(repr=False)
    created_at: datetime
    place: int
    framework_id: str | None = None
    version: int = 1
    payload: bytes | None = field(default=None, repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    subject: str | None = field(default=None, repr=False)
    purpose: str | None = None
    sensitivity: str | None = None
    retention_until: datetime | None = None
    status: Status = Status.ACTIVE
    model: str | None = None

    @classmethod
    def from_row(cls, row: Sequence[Any], workspace: str) -> Record:
        """Build the record from the columns of RECORD_COLUMNS."""
        return cls(
            id=row[0],
            workspace=workspace,
            place=row[1],
            thread=decode(row[2]) or None,
            kind=row[3],
            role=decode(row[4]),
            framework_id=_decoded(row[5]),
            version=row[6],
            text=decode(row[7]),
            payload=None if row[8] is None else bytes(row[8]),
            metadata=load_json(row[9]),
            subject=_decoded(row[10]),
            purpose=_decoded(row[11]),
            sensitivity=_decoded(row[12]),
            retention_until=None if row[13] is None else from_micros(row[13]),
            status=Status(row[14]),
            model=_decoded(row[15]),
            created_at=from_micros(row[16]),
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """What a caller hands in to be remembered; `metadata` must have a JSON form.

    `copy_of` names a record of the same content; the two then go together.
    """

    text: str = field(repr=False)
    role: str = "user"
    thread: str | None = None
    kind: str = "message"
    framework_id: str | None = None
    version: int = 1
    payload: bytes | None = field(default=None, repr=False)
    metadata: Mapping[str, Any] | None = field(default=None, repr=False)
    subject: str | None = field(default=None, repr=False)
    purpose: str | None = None
    sensitivity: str | None = None
    retention_until: datetime | int | None = None
    created_at: datetime | int | None = None
    model: str | None = None
    place: int | None = None
    copy_of: int | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A parent → child edge of G. Negative ids are sequences, positive ones records.

    `position` is 0 for a base or a context sequence, above 0 for appended records and direct
    parents, below 0 for prefix records of a sequence and for copies of a record.
    """

    parent: int
    child: int
    position: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """A record chosen for a context, with its score and the reason it was chosen.

    `score` is the cosine in [-1, 1] for "meaning", bm25 (0 and up) for "keyword", the fused rank
    score for "both", and None for records taken because they are recent.
    """

    record: Record
    score: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Context:
    """An ordered choice of records that goes into one prompt; what a reply is recorded with."""

    query: str = field(repr=False)
    chosen: tuple[Chosen, ...]
    workspace: str
    thread: str | None = None

    @property
    def ids(self) -> list[int]:
        """The ids of the records, in prompt order."""
        return [one.record.id for one in self.chosen]

    @property
    def records(self) -> list[Record]:
        """The records, in prompt order."""
        return [one.record for one in self.chosen]

    def __len__(self) -> int:
        return len(self.chosen)

    def __iter__(self) -> Iterator[Chosen]:
        return iter(self.chosen)
