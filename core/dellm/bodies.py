"""The row of a checkpoint: names, numbers and references as short JSON; ids of frameworks as bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from .cells import Stored, Version, refers
from .encoding import decode, encode
from .records import from_micros, to_micros

_UUID, _TEXT = b"\x01", b"\x02"
SOURCES = ("input", "loop", "update", "fork")
Label = Callable[[str], int]
Name = Callable[[int], str]
compact = json.JSONEncoder(
    separators=(",", ":")
).encode  # kept: making one takes as long as using it


@lru_cache(maxsize=1_024)
def pack_id(text: str) -> bytes:
    """Return a framework's id as bytes: 17 for a UUID in its usual form, in the order of its text."""
    if len(text) == 36:
        try:
            packed = bytes.fromhex(text.replace("-", ""))
        except ValueError:
            packed = b""
        # Read back, so that what is no UUID, or is not written as one is, keeps its own form.
        if len(packed) == 16 and _dashed(packed) == text:
            return _UUID + packed
    return _TEXT + encode(text).encode()


def unpack_id(data: bytes) -> str:
    """Return the id that `pack_id` was given."""
    if data[:1] == _UUID:
        return _dashed(bytes(data[1:]))
    return decode(bytes(data[1:]).decode())


def _dashed(packed: bytes) -> str:
    text = packed.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@dataclass(slots=True)
class Body:
    """What a checkpoint says besides its place.

    `cells` has the channels that hold a value; `versions` all of them. `metadata` holds numbers
    and the framework's own words only: `settings` is the record of what else came with it, 0 for
    none. `tainted` marks a checkpoint of a run that still had erased content in its memory.
    """

    v: int
    ts: str
    versions: Mapping[str, Version]
    cells: dict[str, Stored]
    seen: Mapping[str, Mapping[str, Version]]
    updated: Sequence[str] | None
    metadata: Mapping[str, Any]
    settings: int = 0
    tainted: bool = False
    others: Mapping[str, Any] = field(default_factory=dict)

    def refers(self) -> Iterator[int]:
        """Yield every record and sequence that the checkpoint refers to."""
        for cell in self.cells.values():
            yield from refers(cell)
        if self.settings:
            yield self.settings


def dump_body(body: Body, label: Label) -> str:
    """Return the body as JSON; `label` gives the number of a name."""
    channels: list[list[Any]] = [
        [label(name), version, body.cells[name]] if name in body.cells else [label(name), version]
        for name, version in body.versions.items()
    ]
    # A value without a version: frameworks of other versions, and tests, write such checkpoints.
    channels += [
        [label(name), None, cell] for name, cell in body.cells.items() if name not in body.versions
    ]
    seen = [
        [label(node), [[label(name), version] for name, version in versions.items()]]
        for node, versions in body.seen.items()
    ]
    updated = None if body.updated is None else [label(name) for name in body.updated]
    metadata = dict(body.metadata)
    source = metadata.pop("source", None)
    if source in SOURCES:
        source = SOURCES.index(source)
    said = _packed_metadata(metadata)
    parts: list[Any] = [body.v, _packed_time(body.ts), channels, seen, updated, source, said]
    parts += [body.settings, int(body.tainted), body.others]
    while parts and not parts[-1]:
        parts.pop()
    return compact(parts)


def _packed_metadata(metadata: dict[str, Any]) -> dict[str, Any] | list[Any]:
    """Return a list of the step alone where a graph that has none around it says only that."""
    if list(metadata) == ["step", "parents"] and metadata["parents"] == {}:
        return [metadata["step"]]
    return metadata


def _metadata(packed: dict[str, Any] | list[Any] | None) -> dict[str, Any]:
    if isinstance(packed, list):
        return {"step": packed[0], "parents": {}}
    return dict(packed or {})


def _packed_time(text: str) -> str | int:
    """Return an ISO time in UTC as microseconds; any other text as it is."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    micros = to_micros(moment)
    return micros if _time(micros) == text else text


def _time(packed: str | int | None) -> str:
    if isinstance(packed, int):
        return from_micros(packed).isoformat()
    return packed or ""


def load_body(stored: str, name: Name) -> Body:
    """Return the body that `dump_body` was given."""
    parts = json.loads(stored)
    parts += [None] * (10 - len(parts))
    v, ts, channels, seen, updated, source, metadata, settings, tainted, others = parts
    said = _metadata(metadata)
    if source is not None:
        said = {"source": SOURCES[source] if isinstance(source, int) else source, **said}
    return Body(
        v or 0,
        _time(ts),
        {name(one[0]): one[1] for one in channels or () if one[1] is not None},
        {name(one[0]): one[2] for one in channels or () if len(one) == 3},
        {name(node): {name(at): version for at, version in known} for node, known in seen or ()},
        None if updated is None else [name(one) for one in updated],
        said,
        settings or 0,
        bool(tainted),
        others or {},
    )
