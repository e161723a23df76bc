"""An export that another memory, or this one, can take in again: JSON lines with provenance.

A record keeps its id and the ids of what it was made from. Taken in again, it is known by where it came
from: in its own database by its id, in another by a framework id made of origin, workspace and id. So
nothing comes in twice, and what was forgotten meanwhile stays out, with what was made from it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from .errors import ContextForgotten, CredentialRefused, InvalidInput, NotFound, PolicyRefused
from .records import Record

if TYPE_CHECKING:
    from .governed import Governed
    from .policies import Policies
    from .remembered import Known

FORMAT = "dellm-export/1"
# What can be stored by itself; the rest is made of these, or is an agent's own.
TAKEN = frozenset({"message", "tool", "document", "summary"})
_SAID = ("role", "thread", "kind", "subject", "purpose", "sensitivity", "model")
_TIMES = ("created_at", "retention_until")


class Exporter(Protocol):
    """What exports are made of and taken in by: a memory."""

    id: str

    @property
    def policies(self) -> Policies:
        """As Memory.policies."""

    def context_of(self, id_: int) -> list[int]:
        """As Memory.context_of."""

    def governed(self, id_: int) -> Governed:
        """As Memory.governed."""

    def record(self, text: str, **details: Any) -> Record:
        """As Memory.record."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What came of an import, in records: new ones, those that were here, those that may not come back.

    `forgotten` are those that were erased here, or made from such; `refused` those that the policy or
    a check refused; `left_out` those of a kind that is made of others.
    """

    new: int = 0
    here: int = 0
    forgotten: int = 0
    refused: int = 0
    left_out: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{getattr(self, one.name)} {one.name}" for one in fields(self))


def write(memory: Exporter, path: Path, origin: str, several: Iterable[Known]) -> int:
    """Write the records that the policy lets out to a file, made anew; return how many."""
    memory.policies.require("export")
    policy = memory.policies.current()
    count = 0
    with _written(path) as stream:
        head = {"format": FORMAT, "origin": origin, "workspace": memory.id}
        stream.write(json.dumps(head) + "\n")
        for one in (known for known in several if policy.may_export(known.governed)):
            line = record_json(one.record)
            line["context"] = memory.context_of(one.record.id)
            line["governed"] = one.governed.to_json()
            stream.write(json.dumps(line) + "\n")
            count += 1
    return count


@contextmanager
def _written(path: Path) -> Iterator[IO[str]]:
    try:
        stream = path.open("w", encoding="ascii")
    except OSError as error:
        raise InvalidInput(f"The file can't be written ({type(error).__name__}).") from None
    with stream:
        yield stream


def record_json(record: Record) -> dict[str, Any]:
    """Return every field of a record as JSON values: times in ISO 8601, the payload in base64."""
    return {one.name: _plain(getattr(record, one.name)) for one in fields(record)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.name.lower() if isinstance(value, Enum) else value


def read(memory: Exporter, path: Path, origin: str, newest: int) -> Brought:
    """Store what a file holds; raise InvalidInput, storing nothing, for one that is no export.

    `newest` is the last id that the workspace has given: what has a higher one is new.
    """
    head, lines = _checked(path)
    own = head["origin"] == origin and head["workspace"] == memory.id
    source = f"{head['origin']}/{head['workspace']}"
    counts = dict.fromkeys((one.name for one in fields(Brought)), 0)
    known: dict[int, int] = {}
    for line in lines:
        outcome, id_ = _taken(memory, line, known, None if own else source)
        counts["here" if outcome == "new" and id_ is not None and id_ <= newest else outcome] += 1
        if id_ is not None:
            known[line["id"]] = id_
    return Brought(**counts)


def _taken(
    memory: Exporter, line: Mapping[str, Any], known: Mapping[int, int], source: str | None
) -> tuple[str, int | None]:
    """Take one record in; return what came of it, and the id by which it is known here."""
    if source is None:
        return _of_this_database(memory, line)
    if line["kind"] not in TAKEN:
        return "left_out", None
    if any(one not in known for one in line["context"]):
        return "forgotten", None
    try:
        made = memory.record(
            line["text"],
            context=[known[one] for one in line["context"]],
            framework_id=f"export:{source}/{line['id']}",
            **_details(line),
        )
    except ContextForgotten:
        return "forgotten", None
    except (CredentialRefused, PolicyRefused):
        return "refused", None
    return ("new" if made.text == line["text"] else "refused"), made.id


def _of_this_database(memory: Exporter, line: Mapping[str, Any]) -> tuple[str, int | None]:
    """Tell what became of a record of this workspace: ids are given once."""
    try:
        status = memory.governed(line["id"]).status
    except NotFound:  # of a time that a restored backup knows nothing of
        return "refused", None
    return ("forgotten", None) if status == "erased" else ("here", line["id"])


def _details(line: Mapping[str, Any]) -> dict[str, Any]:
    details = {name: line[name] for name in _SAID if line[name] is not None}
    times = {name: datetime.fromisoformat(line[name]) for name in _TIMES if line[name]}
    payload = None if line["payload"] is None else base64.b64decode(line["payload"], validate=True)
    return {
        **details,
        **times,
        "metadata": line["metadata"],
        "payload": payload,
        "created_by": "import",
    }


def _checked(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the head and the records of an export, all of them looked at before any is stored."""
    problem = InvalidInput("The file is no export of this library, or is damaged.")
    try:
        with path.open(encoding="ascii") as stream:
            lines = list(_objects(stream))
        head, records = lines[0], lines[1:]
        if head["format"] != FORMAT or not all(map(_well_formed, records)):
            raise problem
        _ = [_details(one) for one in records], head["origin"], head["workspace"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise problem from None
    return head, records


def _objects(stream: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in stream:
        found = json.loads(line)
        if not isinstance(found, dict):
            raise TypeError
        yield found


def _well_formed(line: Mapping[str, Any]) -> bool:
    ids = [line["id"], *line["context"]]
    return isinstance(line["text"], str) and all(type(one) is int and one > 0 for one in ids)
