"""The order in which an adopted thread came about, as far as its checkpoints tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from langchain_core.messages import BaseMessage

from .addresses import START
from .adopt_sources import Entry


def in_order(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the checkpoints by their ids, which are ordered by time, and each after its parent."""
    listed = sorted(entries, key=lambda one: (one.cid, one.ns))
    places = {(one.ns, one.cid): one for one in listed}
    done: set[tuple[str, str]] = set()
    for entry in listed:
        chain: list[Entry] = []
        at: Entry | None = entry
        while at is not None and (at.ns, at.cid) not in done:
            done.add((at.ns, at.cid))
            chain.append(at)
            at = None if at.parent is None else places.get((at.ns, at.parent))
        yield from reversed(chain)


def moment(said: Any) -> datetime | None:
    """Return when a checkpoint was made; None when it does not say so in ISO 8601."""
    try:
        return datetime.fromisoformat(said)
    except (TypeError, ValueError):
        return None


def is_merged(metadata: Mapping[str, Any], parent: Mapping[str, Any] | None) -> bool:
    """Whether a checkpoint stands for more steps than one, the others not being stored.

    So it is with `durability="exit"`, and after the checkpoints before were deleted.
    """
    step = metadata.get("step")
    if not isinstance(step, int):
        return False
    if parent is None:
        return step > -1 and metadata.get("source") == "loop"
    before = parent.get("step")
    return isinstance(before, int) and step - before > 1


def is_conversation(value: Any) -> bool:
    """Whether a value is a list of messages."""
    return (
        type(value) is list and bool(value) and all(isinstance(one, BaseMessage) for one in value)
    )


def is_raw(value: Any) -> bool:
    """Whether a value is a message without an id."""
    return isinstance(value, BaseMessage) and value.id is None


def inputs(values: Mapping[str, Any], versions: Mapping[str, Any], known: Any) -> list[str]:
    """Return the channels that nothing but the input of a merged run wrote, by their versions.

    `known` is the version of the input before, or None.
    """
    given = versions.get(START)
    if given is None or given == known:
        return []
    # The step that takes the input in gives one version to it and to all channels it fills.
    first = number(given)
    return [
        name
        for name, value in values.items()
        if not name.startswith("__")
        and not is_conversation(value)
        and number(versions.get(name)) == first
    ]


def number(version: Any) -> int:
    """Return the number in a channel's version, 0 where there is none."""
    digits = str(version).partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def in_steps(values: Mapping[str, Any], given: list[str]) -> dict[str, Any]:
    """Return values in the order in which a merged run came to them: given, said, made of that."""
    order = [*given, *(name for name, value in values.items() if is_conversation(value)), *values]
    return {name: values[name] for name in dict.fromkeys(order)}
