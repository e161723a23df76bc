"""Knowing the same value again in another checkpoint of an adopted thread.

A stored checkpoint repeats what its parent had, as bytes; here equal values become one object, so
that they are one record. Equal values that stand side by side stay two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Overwrite

from dellm import Loaded, Stored

from .giving import LISTED, LITERAL, NAMED, PLACED, TUPLED, WRAPPED

Same = Callable[[BaseMessage], BaseMessage]
_PLAIN = frozenset({type(None), bool, int, float, str, bytes, set, frozenset})


class Alike:
    """Compares values as they are stored: by their bytes."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde

    def same(self, one: Any, other: Any) -> bool:
        """Whether two values are stored alike."""
        if one is other:
            return True
        if type(one) is not type(other):
            return False
        if type(one) in _PLAIN or isinstance(one, BaseMessage):
            return bool(one == other)
        if type(one) is list:
            return len(one) == len(other) and all(map(self.same, one, other))
        return self._bytes(one) == self._bytes(other)

    def alike(self, one: Any, other: Any) -> bool:
        """Whether two values are the same but for the ids of messages."""
        if isinstance(one, BaseMessage) and isinstance(other, BaseMessage):
            return type(one) is type(other) and one.content == other.content
        if type(one) is list and type(other) is list:
            return len(one) == len(other) and all(map(self.alike, one, other))
        return self.same(one, other)

    def _bytes(self, value: Any) -> tuple[str, bytes]:
        return self._serde.dumps_typed(value)


def held_by(value: Any) -> Sequence[Any]:
    """Return what a value holds that may be a record of its own: items of lists, and messages."""
    if type(value) is list:
        return value
    if isinstance(value, (_DeltaSnapshot, Overwrite)):
        return held_by(value.value)
    if type(value) is dict:
        return [item for one in value.values() for item in held_by(one)]
    return [value] if isinstance(value, BaseMessage) else []


def aligned(value: Any, before: Sequence[Any], same: Same, alike: Alike) -> Any:
    """Return an equal value made of objects that were there before, as far as there are.

    `same` gives the object of a message with an id.
    """
    if isinstance(value, (_DeltaSnapshot, Overwrite)):
        return type(value)(aligned(value.value, before, same, alike))
    if type(value) is list:
        return _items(value, before, same, alike)
    if isinstance(value, BaseMessage) and value.id:
        return same(value)
    # The newest is what made it.
    return next((one for one in reversed(before) if alike.same(one, value)), value)


def _items(items: list[Any], before: Sequence[Any], same: Same, alike: Alike) -> list[Any]:
    """Return a list's items, each of those before taken at most once and in order."""
    found: list[Any] = []
    rest = [one for one in before if not (isinstance(one, BaseMessage) and one.id)]
    for item in items:
        if isinstance(item, BaseMessage) and item.id:
            found.append(same(item))
            continue
        at = next((at for at, one in enumerate(rest) if alike.same(one, item)), None)
        found.append(item if at is None else rest[at])
        if at is not None:
            del rest[: at + 1]
    return found


def pairs(value: Any, cell: Stored, loaded: Loaded) -> Iterator[tuple[Any, int]]:
    """Yield the objects of a value with the records that hold them, where nothing is missing."""
    if isinstance(cell, int):
        if cell > 0:
            yield value, cell
        elif cell < 0:
            yield from _zipped(value, loaded.lists.get(cell, ()))
        return
    kind, what = cell[0], cell[1]
    if kind == WRAPPED:
        yield from pairs(getattr(value, "value", None), cell[2], loaded)
    elif kind == NAMED:
        for name in what.keys() & (value.keys() if type(value) is dict else ()):
            yield from pairs(value[name], what[name], loaded)
    elif kind in {LISTED, TUPLED, PLACED}:
        yield from _zipped(value, loaded.lists.get(what, ()) if isinstance(what, int) else what)
    else:
        assert kind == LITERAL  # noqa: S101 - there is no other


def _zipped(value: Any, ids: Iterable[int | None]) -> Iterator[tuple[Any, int]]:
    listed = list(ids)
    if isinstance(value, (list, tuple)) and len(value) == len(listed):
        yield from ((one, id_) for one, id_ in zip(value, listed, strict=True) if id_)
