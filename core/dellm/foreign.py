"""What adapters share that keep track of another system's documents: plain metadata, and deleting by id."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from .errors import UnsupportedHere

IN_A_ROW = 3  # single deletes that fail before the rest is left for later
T = TypeVar("T")

Deleting = Callable[[list[str]], Awaitable[object]]
Present = Callable[[list[str]], Awaitable[Collection[str] | None]]


def plain(metadata: Mapping[str, Any], reserved: Collection[str]) -> dict[str, Any]:
    """Return the part of a document's metadata that has a JSON form, less the reserved names."""
    return {
        key: value
        for key, value in metadata.items()
        if isinstance(key, str) and key not in reserved and _has_json(value)
    }


def _has_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def says_nothing(name: str) -> bool:
    """Whether an id is of no meaning, so that it may be kept when its record is gone: a UUID."""
    try:
        uuid.UUID(name)
    except ValueError:
        return False
    return True


async def deleted(names: list[str], delete: Deleting, present: Present) -> list[str]:
    """Delete from another system by id; return the ids of what may still be there.

    `delete` returns False, or raises anything, when it failed; `present` returns which of the ids
    are there, None where that cannot be told: then what was said of the delete has to do.
    """
    done = await _done(delete, names)
    there = await present(names)
    left = names if there is None else [one for one in names if one in there]
    if not left or (done and there is None):
        return []
    return left if done else await _one_by_one(left, delete)


async def _one_by_one(names: Sequence[str], delete: Deleting) -> list[str]:
    """Delete one after the other: some stores refuse all for one id that is not there."""
    left: list[str] = []
    failed = 0
    for at, one in enumerate(names):
        if failed == IN_A_ROW:
            return [*left, *names[at:]]
        done = await _done(delete, [one])
        failed = 0 if done else failed + 1
        if not done:
            left.append(one)
    return left


async def _done(delete: Deleting, names: list[str]) -> bool:
    try:
        return await delete(names) is not False
    except Exception:  # noqa: BLE001 - another system's failure, of whatever kind: it is tried again
        return False


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits. Raises UnsupportedHere for one that does."""
    try:
        work.send(None)
    except StopIteration as end:
        found: T = end.value
        return found
    work.close()
    raise UnsupportedHere("A call that was to return at once waits.")
