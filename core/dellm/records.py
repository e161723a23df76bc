"""The values that pass between the layers: records, contexts, edges. All frozen, none does I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NamedTuple, cast

from .encoding import decode, load_json

KINDS = frozenset(
    {"message", "tool", "document", "summary", "fact", "item", "cached", "state", "inferred"}
)
# The kinds that no search, context or history returns; they are found by id and by what they hold.
HIDDEN = frozenset({"state"})
# The metadata of a tool's result that names the call it answers.
ANSWERS = "tool_call_id"


class Status(IntEnum):
    """Whether a record may be used. Only ACTIVE records reach a context or a search."""

    ACTIVE = 0
    SUPPRESSED = 1
    QUARANTINED = 2
    HELD = 3
    ERASING = 4
    FAILED = 5


# A held record is kept, and is out of use as long as it is.
USABLE = (Status.ACTIVE,)


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
        return Record.of(
            row[0],
            workspace,
            decode(row[2]) or None,
            row[3],
            decode(row[4]),
            decode(row[7]),
            from_micros(row[16]),
            row[1],
            _decoded(row[5]),
            row[6],
            None if row[8] is None else bytes(row[8]),
            load_json(row[9]),
            _decoded(row[10]),
            _decoded(row[11]),
            _decoded(row[12]),
            None if row[13] is None else from_micros(row[13]),
            Status(row[14]),
            _decoded(row[15]),
        )

    @staticmethod
    def of(*values: Any) -> Record:
        """Build a record of all its fields, in their order.

        A frozen dataclass sets each field by a call of its own, which took most of the time of a
        bulk write and of reading a long history. So the fields are set on a twin that is not
        frozen, which then becomes a record: the two have the same slots.
        """
        made = _Unfrozen(*values)
        made.__class__ = Record  # type: ignore[assignment] # the same slots, as said above
        return cast("Record", made)


class _Unfrozen:
    """The fields of a record while they are being set."""

    __slots__ = tuple(one.name for one in fields(Record))

    def __init__(
        self,
        id_: int,
        workspace: str,
        thread: str | None,
        kind: str,
        role: str,
        text: str,
        created_at: datetime,
        place: int,
        framework_id: str | None,
        version: int,
        payload: bytes | None,
        metadata: Mapping[str, Any],
        subject: str | None,
        purpose: str | None,
        sensitivity: str | None,
        retention_until: datetime | None,
        status: Status,
        model: str | None,
    ) -> None:
        self.id = id_
        self.workspace = workspace
        self.thread = thread
        self.kind = kind
        self.role = role
        self.text = text
        self.created_at = created_at
        self.place = place
        self.framework_id = framework_id
        self.version = version
        self.payload = payload
        self.metadata = metadata
        self.subject = subject
        self.purpose = purpose
        self.sensitivity = sensitivity
        self.retention_until = retention_until
        self.status = status
        self.model = model


@dataclass(frozen=True, slots=True)
class Draft:
    """What a caller hands in to be remembered; `metadata` must have a JSON form.

    `copy_of` names a record of the same content; the two then go together. What is `quarantined` is
    out of every read, search and index until it is confirmed: see waiting_room. `retention` names a
    class of the policy, `created_by` and `basis` are words of governance, and `source` is what the
    caller calls the event that it came from; see governed. `audience` is one of actor.WORDS, None for
    the narrowest that is useful; a number is one that is there, which no caller from outside says.
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
    quarantined: bool = False
    retention: str | None = None
    created_by: str | None = None
    basis: str | None = None
    source: str | None = field(default=None, repr=False)
    audience: str | int | None = None


class Edge(NamedTuple):
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
