"""Which record holds which Python object: how a list of messages is known again without looking.

A graph hands its saver the same message objects at every step. A list whose beginning are the very
objects of a list seen before has the same records there, so only what was added is looked at. An
object changed in place is noticed by its content, and counts as unknown.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langgraph.checkpoint.serde.types import RESUME

from .item_lists import (
    NOTHING,
    Beginning,
    ItemList,
    Known,
    State,
    Value,
    copied,
    listed,
    witness,
)

LISTS = 4  # lists kept for each thread
NAMED = 512  # tool calls and system prompts kept for each thread
PLACES = 64  # checkpoints whose written values are known by identity
REFUSED = 0  # in the place of a record's id: the object must not be stored


@dataclass(slots=True)
class Objects:
    """The objects of one thread. `generation`: that of the workspace in which all ids were there."""

    generation: int = -1
    _known: dict[int, Known] = field(default_factory=dict)
    _lists: list[ItemList] = field(default_factory=list)
    _written: OrderedDict[tuple[str, str], dict[tuple[str, int], Value]] = field(
        default_factory=OrderedDict
    )
    # the message that made each tool call, and the call as it was made
    calls: dict[str, tuple[int, ToolCall]] = field(default_factory=dict)
    settings: deque[tuple[Any, int]] = field(default_factory=lambda: deque(maxlen=8))
    # what a node's calls said at a place of their prompts in a message without id
    prompts: dict[tuple[str, int, str], int] = field(default_factory=dict)
    redacted: bool = False
    derived: dict[int, Known] = field(default_factory=dict)

    # messages

    def find(self, message: BaseMessage) -> int | None:
        """Return the record of a message object, REFUSED, or None when it is not known as it is."""
        known = self._known.get(id(message))
        if known is not None and known.ref() is message:
            return known.id if known.same(message) else None
        for held in reversed(self._lists):
            if held.messages and (at := held.unchanged(message)) is not None:
                return held.ids[at]
        return None

    def whole(self, message: BaseMessage) -> BaseMessage:
        """Return the known message that has this one's id and says all that it does, else itself."""
        if message.id is None or self.find(message) is not None:
            return message
        for one in (one for held in reversed(self._lists) for one in reversed(held.objects)):
            if isinstance(one, BaseMessage) and one.id == message.id and message.text in one.text:
                return one
        return message

    def maker(self, message: BaseMessage) -> str | None:
        """Return the task that wrote a known message."""
        known = self._known.get(id(message))
        return known.maker if known is not None and known.ref() is message else None

    def unnamed(self, message: BaseMessage) -> bool:
        """Whether the message has got an id since its record was stored without one."""
        known = self._known.get(id(message))
        return known is not None and not known.named and message.id is not None

    def note(
        self, message: BaseMessage, id_: int, maker: str | None = None, *, named: bool = True
    ) -> None:
        """Keep that a record holds a message object; `named`: that it has the message's id."""
        content = message.content if type(message.content) is str else copied(message.content)
        key = id(message)
        ref = weakref.ref(message, lambda _: self._known.pop(key, None))
        self._known[key] = Known(ref, id_, named, content, witness(message), maker)

    def note_derived(self, message: BaseMessage, id_: int) -> None:
        """Keep that a message object is a repaired copy of a record, which no record holds yet."""
        key = id(message)
        ref = weakref.ref(message, lambda _: self.derived.pop(key, None))
        self.derived[key] = Known(ref, id_, True, copied(message.content), witness(message))

    def caller(self, call_id: str) -> tuple[int, ToolCall] | None:
        """Return the record of the message that made a tool call, and the call."""
        if call_id not in self.calls:
            for held in reversed(self._lists):
                for one, id_ in zip(reversed(held.objects), reversed(held.ids), strict=True):
                    for call in one.tool_calls if isinstance(one, AIMessage) else ():
                        if call["id"] == call_id:
                            self.calls[call_id] = (id_, call)
                            return self.calls[call_id]
        return self.calls.get(call_id)

    def derived_from(self, message: BaseMessage) -> int | None:
        """Return the record that a repaired copy was made from, or None."""
        known = self.derived.get(id(message))
        return known.id if known is not None and known.same(message) else None

    # lists

    def prefix(self, objects: Sequence[Any], contents: list[Any] | None = None) -> Beginning:
        """Return the longest beginning of a list that is known.

        `contents` are what its messages said when they were sent; None: what they say now.
        """
        best, most = None, 0
        for held in reversed(self._lists):
            shared = held.shared(objects, contents)
            if shared > most:
                best, most = held, shared
            if shared and shared == len(held.objects):
                break  # what came before it is shorter, or another list
        if best is None:
            return NOTHING
        if objects[0] is not best.objects[0]:
            # These may have been read after what was refused here was restored.
            most = best.ids.index(REFUSED, 0, most) if REFUSED in best.ids[:most] else most
            return Beginning(best.ids[:most], best.messages, best.states)
        whole = best if most == len(best.objects) else None
        return Beginning(best.ids[:most], best.messages, best.states, whole)

    def note_list(
        self,
        objects: Sequence[Any],
        ids: Sequence[int],
        beginning: Beginning = NOTHING,
        states: Mapping[int, State] = MappingProxyType({}),
    ) -> None:
        """Keep the records of a list; it takes the place of the list that it extends.

        `states` says, by position, what the records of items hold that are no messages.
        """
        extended = beginning.whole
        made = extended or listed(objects, ids, states)
        if extended is not None:
            extended.grow(objects, ids, states)
        self._lists = [one for one in self._lists if one is not extended][-LISTS + 1 :]
        self._lists.append(made)

    def trim(self) -> None:
        """Drop the oldest calls and prompts that are kept by name."""
        for kept in (self.calls, self.prompts):
            while len(kept) > NAMED:
                del kept[next(iter(kept))]  # type: ignore[arg-type] # a key of its own

    def weight(self) -> int:
        """Return how many objects are kept alive."""
        return sum(len(one.objects) for one in self._lists)

    def item(self, value: object, state: State) -> int | None:
        """Return the record of a list's item that is this object and holds what it did."""
        for held in reversed(self._lists):
            at = held.position(value)
            if at is not None and held.states.get(at) == state:
                return held.ids[at]
        return None

    # other values, known only where they were written

    def answer(self, value: object) -> int | None:
        """Return the record of an answer to an interrupt as it came in, in any graph of the thread."""
        for values in reversed(self._written.values()):
            known = values.get((RESUME, id(value)))
            if known is not None and known.value is value and known.id != REFUSED:
                return known.id
        return None

    def found(self, at: tuple[str, str], channel: str, value: object, state: State) -> int | None:
        """Return the record of a value that a channel was given at a checkpoint.

        Python may use one object for two equal strings, so it must be the same channel; and an
        object may have been changed since, so it must still say the same.
        """
        known = self._written.get(at, {}).get((channel, id(value)))
        if known is None or known.value is not value or known.state != state:
            return None
        return known.id

    def wrote(
        self, at: tuple[str, str], channel: str, value: object, id_: int, state: State
    ) -> None:
        """Keep the record of a value that a channel was given at a checkpoint."""
        self._written.setdefault(at, {})[channel, id(value)] = Value(value, id_, state)
        self._written.move_to_end(at)
        while len(self._written) > PLACES:
            self._written.popitem(last=False)

    def raw(self, at: tuple[str, str], channel: str, message: BaseMessage) -> int | None:
        """Return the record of what a message was made of: a str, pair or dict with its content."""
        for (name, _), known in self._written.get(at, {}).items():
            if name == channel and known.id and _content_of(known.value) == message.content:
                return known.id
        nameless = (one for one in self._known.values() if not one.named and one.id)
        return next((one.id for one in nameless if _was(one.ref(), message)), None)

    # forgetting

    def ids(self) -> set[int]:
        """Return every record that is named here."""
        found = {one.id for one in self._known.values()}
        for held in self._lists:
            found.update(held.ids)
        for values in self._written.values():
            found.update(one.id for one in values.values())
        found.update(id_ for id_, _ in self.calls.values())
        found.update(id_ for _, id_ in self.settings)
        found.update(self.prompts.values())
        found.update(one.id for one in self.derived.values())
        return found - {REFUSED}

    def refresh(self, generation: int, gone: Mapping[int, int]) -> None:
        """Take note of the records that are no more, as of a generation of the workspace.

        A redacted record keeps its number, but then nothing here can be taken on trust: what
        stands in its place is looked up at each write.
        """
        lost = {one for one, successor in gone.items() if not successor}
        for known in self._known.values():
            known.id = REFUSED if known.id in lost else known.id
        for held in self._lists:
            if not lost.isdisjoint(held.ids):
                held.ids = [REFUSED if one in lost else one for one in held.ids]
        for values in self._written.values():
            for one in values.values():
                one.id = REFUSED if one.id in lost else one.id
        self.calls = {name: one for name, one in self.calls.items() if one[0] not in lost}
        self.prompts = {key: id_ for key, id_ in self.prompts.items() if id_ not in lost}
        for at, (value, id_) in enumerate(self.settings):
            self.settings[at] = (value, REFUSED if id_ in lost else id_)
        self.redacted = self.redacted or len(lost) < len(gone)
        self.generation = -1 if self.redacted else generation


def _was(other: BaseMessage | None, message: BaseMessage) -> bool:
    """Whether another message, without an id, says what a message says."""
    if other is None or other is message or other.id is not None:
        return False
    return bool(other.content == message.content)


def _content_of(value: object) -> object:
    """Return the content of what LangGraph turns into a message, None of anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return value[1]
    return value.get("content") if isinstance(value, dict) else None


class Threads:
    """The objects of the threads used last, by workspace and thread. Thread-safe."""

    def __init__(self, most: int = 256, weight: int = 100_000) -> None:
        self._most, self._weight = most, weight
        self._threads: OrderedDict[tuple[str, str], tuple[Objects, threading.RLock]] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, workspace: str, thread: str) -> tuple[Objects, threading.RLock]:
        """Return a thread's objects, and the lock under which they are used."""
        with self._guard:
            found = self._threads.setdefault((workspace, thread), (Objects(), threading.RLock()))
            self._threads.move_to_end((workspace, thread))
            if len(self._threads) > self._most:
                self._threads.popitem(last=False)
            return found

    def every(self, workspace: str) -> list[Objects]:
        """Return the objects of all threads of a workspace that are kept."""
        with self._guard:
            return [one for (name, _), (one, _) in self._threads.items() if name == workspace]

    def trim(self) -> None:
        """Drop the threads used least while more objects are kept alive than is allowed."""
        with self._guard:
            total = sum(one.weight() for one, _ in self._threads.values())
            while total > self._weight and len(self._threads) > 1:
                _, (oldest, _) = self._threads.popitem(last=False)
                total -= oldest.weight()
