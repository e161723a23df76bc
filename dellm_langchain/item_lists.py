"""Lists of objects that are known to be in records, and how a changed object is noticed.

Comparing is done a list at a time, by identity first: it happens at every step of a graph.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import compress, count, repeat
from operator import attrgetter, is_
from typing import Any

from langchain_core.messages import BaseMessage

_WITNESSES = ("name", "tool_calls", "additional_kwargs", "response_metadata", "artifact", "status")
NEWEST = 32  # messages at the end of a list that are looked at in every part, not only content
_CONTENT = attrgetter("content")
_FIELDS = attrgetter("__dict__")
State = tuple[str, bytes | None]  # a record's text and payload


def copied(value: Any) -> Any:
    """Return a copy that does not change with the value."""
    return deepcopy(value) if isinstance(value, (dict, list)) else value


def witness(message: BaseMessage) -> tuple[Any, ...]:
    """Return a copy of what would change if the message were changed in place."""
    return tuple(map(copied, map(message.__dict__.get, _WITNESSES)))


def attested(message: BaseMessage, was: tuple[Any, ...]) -> bool:
    """Whether a message is still as it was witnessed."""
    return tuple(map(message.__dict__.get, _WITNESSES)) == was


def contents_of(messages: Iterable[BaseMessage]) -> list[Any]:
    """Return what messages say, in order."""
    return list(map(_CONTENT, messages))


def common(some: Sequence[Any], others: Sequence[Any]) -> int:
    """Return how many things both begin with that are the same or equal."""
    most = min(len(some), len(others))
    if some[:most] == others[:most]:
        return most
    pairs = enumerate(zip(some, others, strict=False))
    return next((at for at, (one, other) in pairs if one is not other and one != other), most)


@dataclass(slots=True)
class Known:
    """A message object that a record holds."""

    ref: weakref.ref[BaseMessage]
    id: int
    named: bool  # whether the record has the message's id
    content: Any
    rest: tuple[Any, ...]
    maker: str | None = None

    def same(self, message: BaseMessage) -> bool:
        """Whether it is this object, unchanged."""
        if self.ref() is not message:
            return False
        content = message.content
        if content is not self.content and (type(content) is str or content != self.content):
            return False
        return attested(message, self.rest)


@dataclass(slots=True)
class Value:
    """A value that a channel was given, its record, and what that holds."""

    value: Any
    id: int
    state: State


@dataclass(slots=True)
class ItemList:
    """The objects of a list in order, their contents as they were, and their records."""

    objects: list[Any]
    contents: list[Any]
    ids: list[int]
    odd: dict[int, Any]  # contents that are no strings, as they were
    messages: bool
    states: dict[int, State]  # what records hold of items that are neither messages nor strings
    members: set[int] | None = None  # the identities of the objects, once one is looked for
    newest: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    def shared(self, objects: Sequence[Any], contents: Sequence[Any] | None = None) -> int:
        """Return how many objects both lists begin with, unchanged.

        `contents` are those that the messages are taken to have, now or when they were sent.
        """
        most = min(len(objects), len(self.objects))
        if not most:
            return 0
        if objects[0] is not self.objects[0]:
            return self._equal(objects, most, contents)
        if not all(map(is_, objects, self.objects)):
            pairs = enumerate(zip(objects, self.objects, strict=False))
            most = next((at for at, (one, other) in pairs if one is not other), most)
        return self._unchanged(most, contents) if self.messages else most

    def _equal(self, objects: Sequence[Any], most: int, contents: Sequence[Any] | None) -> int:
        """Return how many messages of other objects are equal in every part, their ids included."""
        first, known = objects[0], self.objects[0]
        if not self.messages or type(first) is not type(known) or first.id != known.id:
            return 0
        try:
            mine, its = (list(map(_FIELDS, some[:most])) for some in (objects, self.objects))
        except AttributeError:  # not all of them are messages
            return 0
        if mine != its:
            pairs = enumerate(zip(mine, its, strict=True))
            most = next((at for at, (one, other) in pairs if one != other), most)
        nameless = (at for at, one in enumerate(mine[:most]) if one.get("id") is None)
        return self._unchanged(next(nameless, most), contents)

    def _unchanged(self, most: int, contents: Sequence[Any] | None) -> int:
        """Return how many of the first objects have the content that their records have."""
        contents = contents_of(self.objects[:most]) if contents is None else contents[:most]
        most = common(contents, self.contents)
        changed = (at for at, was in self.odd.items() if at < most and contents[at] != was)
        other = (
            at
            for at, was in self.newest.items()
            if at < most and not attested(self.objects[at], was)
        )
        return min([most, *changed, *other])

    def grow(self, objects: Sequence[Any], ids: Sequence[int], states: Mapping[int, State]) -> None:
        """Become the list that this one is the beginning of; of that nothing is looked at again.

        In place, since what is kept of it would be copied at every step. The beginning may be other
        objects that are equal in every part.
        """
        start = len(self.objects)
        new = objects[start:]
        if start and objects[0] is not self.objects[0]:
            self.members = None
        kinds = set(map(type, new))
        self.messages = self.messages and all(issubclass(one, BaseMessage) for one in kinds)
        self.objects, self.ids = list(objects), list(ids)
        self.states.update(states)
        if self.members is not None:
            self.members.update(map(id, new))
        self.contents += contents_of(new) if self.messages else []
        if not set(map(type, self.contents[start:])) <= {str}:
            pairs = enumerate(self.contents[start:], start)
            self.odd.update((at, copied(one)) for at, one in pairs if type(one) is not str)
        ends = range(max(0, len(objects) - NEWEST), len(objects)) if self.messages else ()
        kept = self.newest
        self.newest = {at: kept[at] if at in kept else witness(objects[at]) for at in ends}

    def position(self, item: Any) -> int | None:
        """Return where an object stands; None if it does not."""
        if self.members is None:
            self.members = set(map(id, self.objects))
        if id(item) not in self.members:
            return None
        return next(compress(count(), map(is_, self.objects, repeat(item))), None)

    def unchanged(self, message: BaseMessage) -> int | None:
        """Return where a message stands, unchanged; None if it does not."""
        at = self.position(message)
        if at is None:
            return None
        was = self.odd.get(at, self.contents[at])
        same = message.content is was or (type(was) is not str and message.content == was)
        if at in self.newest and not attested(message, self.newest[at]):
            return None
        return at if same else None


@dataclass(frozen=True, slots=True)
class Beginning:
    """The known beginning of a list: its records, and whether they are messages.

    `whole` is the list that is kept and that it is all of, if there is one.
    """

    ids: list[int]
    messages: bool
    states: Mapping[int, State]
    whole: ItemList | None = None

    def cut(self, length: int) -> Beginning:
        """Return no more than so much of it."""
        return self if length >= len(self.ids) else replace(self, ids=self.ids[:length], whole=None)


NOTHING = Beginning([], True, {})


def listed(objects: Sequence[Any], ids: Sequence[int], states: Mapping[int, State]) -> ItemList:
    """Return a list as it is now."""
    made = ItemList([], [], [], {}, True, {})
    made.grow(objects, ids, states)
    return made
