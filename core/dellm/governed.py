"""The governed record: whose it is, where from, made by whom, what for, until when, and what hangs on it.

Most of it follows from the record itself and from the graph; what a writer or a rule of the policy
has said besides is in `governed_rows`. What was erased has a tombstone, which says no more than when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, LiteralString

from . import governed_rows, governing, provenance, reading
from .database import Row, Scope, Tx
from .encoding import decode, encode
from .errors import NotFound
from .governance import usual_creator
from .governed_rows import Said
from .policy import Policy
from .records import Record, Status, from_micros

ERASED = "erased"
FAMILY = "answer"  # of items: what answers keeps
_WITHOUT_CONTENT: LiteralString = (  # of storing.COLUMNS
    "id, place, thread, kind, role, fid, version, '', null, null, subject, purpose, sensitivity, "
    "retention_until, status, model, created_at"
)


@dataclass(frozen=True, slots=True)
class Artefacts:
    """What was made of a record, and goes with it.

    `records` are all that were made from it, directly or not, cached answers among them; `answers`
    those that are. `vector` and `terms`: whether it is in the two indexes. `elsewhere` counts the
    copies that other systems keep, by the name of each.
    """

    records: tuple[int, ...] = ()
    answers: tuple[int, ...] = ()
    vector: bool = False
    terms: bool = False
    elsewhere: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Governed:
    """What is known of a record besides what it says. Of an erased one only id, status and when.

    `status` is a name of Status in lower case, or "erased". `retention` is the name of its class;
    `derived_from` what was in its prompt. `source` is what its writer called the event it came from,
    else the id of the framework's object. `erased_at` and `receipt` are those of its forget.
    """

    id: int
    workspace: str
    status: str
    kind: str = ""
    role: str = ""
    thread: str | None = None
    created_at: datetime | None = None
    created_by: str | None = None
    subject: str | None = field(default=None, repr=False)
    source: str | None = field(default=None, repr=False)
    basis: str | None = None
    purpose: str | None = None
    sensitivity: str | None = None
    retention: str | None = None
    retention_until: datetime | None = None
    derived_from: tuple[int, ...] = ()
    artefacts: Artefacts = Artefacts()
    erased_at: datetime | None = None
    receipt: int | None = None

    def __str__(self) -> str:
        """Return who made it, what for, and until when, in one line without content of the record."""
        if self.status == ERASED:
            return f"erased {_day(self.erased_at)}, receipt {self.receipt}"
        said = [
            f"made by {self.created_by} on the basis of {self.basis}",
            f"for {self.purpose}" if self.purpose else "",
            self.sensitivity or "",
            f"class {self.retention}" if self.retention else "",
            f"kept until {_day(self.retention_until)}" if self.retention_until else "",
        ]
        return "; ".join(one for one in said if one)

    @property
    def limited(self) -> bool:
        """Whether anything limits it: a purpose, a sensitivity, a class or an end."""
        said = (self.purpose, self.sensitivity, self.retention, self.retention_until)
        return any(one is not None for one in said)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Whom it is about."""
        return () if self.subject is None else (self.subject,)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values; whom it is about and where from are content."""
        return {
            "id": self.id,
            "workspace": self.workspace,
            "status": self.status,
            "kind": self.kind,
            "role": self.role,
            "thread": self.thread,
            "created_at": _iso(self.created_at),
            "created_by": self.created_by,
            "subjects": list(self.subjects),
            "source": self.source,
            "basis": self.basis,
            "purpose": self.purpose,
            "sensitivity": self.sensitivity,
            "retention": self.retention,
            "until": _iso(self.retention_until),
            "derived_from": list(self.derived_from),
            "records": list(self.artefacts.records),
            "answers": list(self.artefacts.answers),
            "vector": self.artefacts.vector,
            "terms": self.artefacts.terms,
            "elsewhere": dict(self.artefacts.elsewhere),
            "erased_at": _iso(self.erased_at),
            "receipt": self.receipt,
        }


def _day(moment: datetime | None) -> str:
    return "" if moment is None else moment.date().isoformat()


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def of(tx: Tx, scope: Scope, id_: int) -> Governed:
    """Return what is known of a record, whatever its status; NotFound for an id that never was."""
    record = reading.several(tx, scope, [id_], None, asked=True).get(id_)
    if record is None:
        return _buried(tx, scope, id_)
    made_from = tuple(provenance.context_of(tx, scope.ws, id_))
    found = of_records(tx, scope, [record])[id_]
    return replace(found, derived_from=made_from, artefacts=_artefacts(tx, scope.ws, id_))


def of_several(tx: Tx, scope: Scope, ids: Sequence[int]) -> dict[int, Governed]:
    """Return what is known of records, but for what they were made from and what was made of them."""
    rows = tx.all(
        f"select {_WITHOUT_CONTENT} from record where ws = :ws and id in :ids",
        ws=scope.ws,
        ids=list(ids),
    )
    return of_records(tx, scope, [Record.from_row(row, scope.name) for row in rows])


def of_records(tx: Tx, scope: Scope, records: Sequence[Record]) -> dict[int, Governed]:
    """Return the same of records that were read already."""
    if not records:
        return {}
    said = governed_rows.of(tx, scope.ws, [one.id for one in records])
    policy = governing.current(tx, scope)
    return {
        one.id: Governed(**_described(policy, one, said.get(one.id, Said()))) for one in records
    }


def _described(policy: Policy, record: Record, said: Said) -> dict[str, Any]:
    """Return what a record says of itself, as fields of Governed, completed by the policy."""
    plain: dict[str, Any] = {
        "id": record.id,
        "workspace": record.workspace,
        "status": Status(record.status).name.lower(),
        "kind": record.kind,
        "role": record.role,
        "thread": record.thread,
        "created_at": record.created_at,
        "subject": record.subject,
        "source": said.source or record.framework_id,
        "purpose": record.purpose,
        "sensitivity": record.sensitivity,
        "retention_until": record.retention_until,
        "created_by": said.created_by or usual_creator(record.kind, record.role),
    }
    kept = policy.class_of(Governed(**plain, retention=said.retention))
    usual = None if kept is None else kept.name
    return {**plain, "basis": said.basis or policy.basis, "retention": said.retention or usual}


def _buried(tx: Tx, scope: Scope, id_: int) -> Governed:
    row = tx.one(
        "select erased_at, receipt from tombstone where ws = :ws and id = :id",
        ws=scope.ws,
        id=id_,
    )
    if row is None:
        raise NotFound(f"No record ever had the id {id_}.")
    return Governed(id_, scope.name, ERASED, erased_at=from_micros(row[0]), receipt=int(row[1]))


def _artefacts(tx: Tx, ws: int, id_: int) -> Artefacts:
    made = [one for one in provenance.dependents(tx, ws, [id_]) if one > 0 and one != id_]
    return Artefacts(
        tuple(made),
        _answers(tx, ws, made),
        bool(tx.vectors(ws, [id_])),
        tx.indexed(ws, [id_]) > 0,
        tuple((decode(row[0]), row[1]) for row in _copies(tx, ws, id_)),
    )


def _answers(tx: Tx, ws: int, ids: Sequence[int]) -> tuple[int, ...]:
    rows = tx.all(
        "select record from item where ws = :ws and record in :ids and family = :family "
        "order by record",
        ws=ws,
        ids=list(ids),
        family=encode(FAMILY),
    )
    return tuple(row[0] for row in rows)


def _copies(tx: Tx, ws: int, id_: int) -> list[Row]:
    return tx.all(
        "select place, count(*) from elsewhere where ws = :ws and record = :id and name <> '' "
        "group by place order by place",
        ws=ws,
        id=id_,
    )
