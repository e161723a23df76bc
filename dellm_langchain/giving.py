"""Putting a graph's values together again from what is stored: fresh objects at every read."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Overwrite

from dellm import Held, Loaded, Stored

from .messages import Recipe, recipe
from .objects import Objects
from .pairs import repaired
from .shapes import GONE, load
from .taking import DELTA, REMOVE

ABSENT = object()
LITERAL, LISTED, TUPLED, PLACED, WRAPPED, NAMED = range(6)  # see dellm's cells
MOST = 50_000  # records whose recipes are kept


Made = dict[int, "Held | Recipe"]


class Shelf:
    """What one workspace's records are made from, in one generation. Thread-safe."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        self._made: Made = {}
        self._generation = -1
        self._guard = threading.Lock()

    def read(self) -> Reader:
        """Return what one read goes by."""
        return Reader(self)

    def of(self, generation: int) -> Made:
        """Return what is kept of this generation; whoever has it keeps it, whatever others read."""
        with self._guard:
            if generation != self._generation or len(self._made) > MOST:
                self._made = {}
                self._generation = generation
            return self._made

    def take(self, kept: Made, records: Mapping[int, Held]) -> Made:
        """Return what was kept when the read began, and what it brought; keep what lasts."""
        made = {id_: self._prepared(one) for id_, one in records.items()}
        if all(one.lasting for one in records.values()):
            kept.update(made)
            return kept
        kept.update({id_: made[id_] for id_, one in records.items() if one.lasting})
        return {**kept, **made}

    def _prepared(self, one: Held) -> Held | Recipe:
        if one.kind == "state":
            return one
        return recipe(one.role, one.text, one.framework_id, one.payload, self._serde, one.metadata)


class Reader:
    """The records one read has already: those that were kept when its snapshot was taken."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._kept: Made = {}

    def have(self, generation: int) -> Made:
        """Return the records that need not be read."""
        self._kept = self._shelf.of(generation)
        return self._kept

    def take(self, records: Mapping[int, Held]) -> Made:
        """Return all records by id, those read just now included."""
        return self._shelf.take(self._kept, records)


class Giving:
    """Puts the values of one checkpoint together. `erased` tells which tool calls lost their result.

    `mended` is told of each copy of a message that had to lose a call, and the record it is of.
    """

    def __init__(
        self,
        loaded: Loaded,
        records: Mapping[int, Held | Recipe],
        serde: SerializerProtocol,
        erased: Callable[[Sequence[str]], set[str]] | None,
        objects: Objects | None,
        mended: Callable[[BaseMessage, int], None],
    ) -> None:
        self._loaded = loaded
        self._records = records
        self._serde = serde
        self._erased = erased
        self._objects = objects
        self._mended = mended
        self._messages: dict[int, BaseMessage] = {}

    def value(self, cell: Stored) -> Any:
        """Return the value of a cell, or ABSENT when nothing of it is left."""
        if isinstance(cell, int):
            return self._list(cell) if cell < 0 else self._one(cell)
        kind, what = cell[0], cell[1]
        if kind == LITERAL:
            return what.copy() if isinstance(what, (list, dict)) else what
        if kind == WRAPPED:
            return self._wrapped(what, cell[2])
        if kind == NAMED:
            inner = {name: self.value(one) for name, one in what.items()}
            return {name: one for name, one in inner.items() if one is not ABSENT}
        if isinstance(what, int):
            values = self._list(what, kept=kind == PLACED)
            while kind == PLACED and values and values[-1] is None:
                values.pop()  # a gap behind which nothing stands keeps nothing in its place
        else:
            values = self._several(what, kept=kind == PLACED, part=True)
        return tuple(values) if kind == TUPLED else values

    def _wrapped(self, label: str, cell: Stored) -> Any:
        inner = self.value(cell)
        if label == REMOVE:
            return RemoveMessage(id=inner)
        if inner is ABSENT:
            return ABSENT
        return _DeltaSnapshot(inner) if label == DELTA else Overwrite(inner)

    def _one(self, id_: int) -> Any:
        held = self._records.get(self._loaded.stands.get(id_, id_))
        if held is None:
            return ABSENT
        if isinstance(held, Recipe):
            return self._message(id_, held)
        if held.payload is None:
            return held.text
        refs = [self._ref(one) for one in held.metadata.get("refs", ())]
        value = load(held.payload, self._serde, refs)
        return ABSENT if value is GONE else value

    def _message(self, id_: int, made: Recipe) -> BaseMessage:
        """Return a record's message, the same object wherever this checkpoint holds it."""
        if id_ not in self._messages:
            self._messages[id_] = made.make()
        return self._messages[id_]

    def _ref(self, id_: int) -> BaseMessage | None:
        found = self._one(id_) if id_ else ABSENT
        return found if isinstance(found, BaseMessage) else None

    def _list(self, sequence: int, *, kept: bool = False) -> list[Any]:
        ids = self._loaded.lists.get(sequence, [])
        affected = sequence in self._loaded.affected
        return self._several(ids, kept=kept, affected=affected, note=not kept)

    def _several(
        self,
        ids: Sequence[int | None],
        *,
        kept: bool,
        affected: bool = False,
        note: bool = False,
        part: bool = False,
    ) -> list[Any]:
        """Return the values of records. A `part` of a list may hold results without their calls."""
        records, stands = self._records, self._loaded.stands
        if not affected and not kept and (quick := _all_messages(records, ids)) is not None:
            if note and self._objects is not None and quick:
                self._objects.note_list(quick, list(ids))  # type: ignore[arg-type] # none is None
            if self._erased is None:
                return quick
            return self._paired(quick, ids, affected=False)
        values: list[Any] = []
        states: dict[int, tuple[str, bytes | None]] = {}
        living: list[int] = []
        for id_ in ids:
            held = records.get(stands.get(id_, id_) if stands else id_) if id_ else None
            if isinstance(held, Recipe):
                values.append(held.make())
                living.append(id_ or 0)
            elif held is not None and (value := self._one(id_ or 0)) is not ABSENT:
                states[len(values)] = held.text, held.payload
                values.append(value)
                living.append(id_ or 0)
            elif kept:
                values.append(None)
                living.append(0)
        if note and self._objects is not None and values:
            self._objects.note_list(values, living, states=states)
        affected = not part and (affected or len(values) < len(ids))
        if affected or self._erased is not None:
            return self._paired(values, living, affected=affected)
        return values

    def _paired(self, values: list[Any], ids: Sequence[int | None], *, affected: bool) -> list[Any]:
        """Return a list of messages without the calls and results that an erasure left alone."""
        if not all(isinstance(one, BaseMessage) for one in values):
            return values
        open_calls = unanswered(values)
        erased = self._erased(open_calls) if open_calls and self._erased is not None else set()
        if not erased and not affected:
            return values
        mended = repaired(values, erased, affected)
        by_id = {one.id: id_ for one, id_ in zip(values, ids, strict=True)}
        same = {id(one) for one in values}
        for one in mended:
            if id(one) not in same and (source := by_id.get(one.id)):
                self._mended(one, source)
        return mended


def _all_messages(
    records: Mapping[int, Held | Recipe], ids: Sequence[int | None]
) -> list[Any] | None:
    """Return fresh messages of the records, None unless every one is there and is a message."""
    # None of what is made is garbage, so the collector would look through all of it for nothing.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return [records[one].make() for one in ids]  # type: ignore[index, union-attr] # see below
    except (KeyError, AttributeError):  # one is gone, or is no message
        return None
    finally:
        if collecting:
            gc.enable()


def unanswered(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the ids of tool calls that have no result in the list."""
    asked: dict[str, None] = {}
    for one in messages:
        if isinstance(one, AIMessage):
            asked.update((call["id"], None) for call in one.tool_calls if call["id"])
        elif isinstance(one, ToolMessage):
            asked.pop(one.tool_call_id, None)
    return list(asked)
