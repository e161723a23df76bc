"""Any value as bytes, with the messages inside taken out; and back.

Wherever a message stands in a value, a short marker string is written in its place, and whatever
holds a message (a dataclass, a pydantic model, a Send) is written beside the value as one *box*:
its class and its fields. So the serializer only sees plain lists, dicts and strings there, and
what holds no message goes to it as it is. Boxes are written inner before outer, which keeps what
the serializer sees no deeper than the value itself.

Format: ``0`` or ``1`` (are there markers?), the serializer's type, NUL, its bytes. With markers
the bytes are ``[value, form, module, name, fields, form, module, name, fields, ...]``.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import InvalidInput

from .boxes import Allowed, Box, built, opened, stored_text

# U+FDD1 is no character of any text; a string that does begin like this is escaped.
MARK = "\ufdd1dellm:"
_SURROGATE = re.compile("[\ud800-\udfff]")
# Deeper than any serializer goes; past it a value holds itself.
_DEEPEST = 100_000
_ATOMS = frozenset({int, float, bool, type(None)})


class _Gone:
    """The one value that stands for a bare message that was erased."""

    def __repr__(self) -> str:
        return "GONE"


GONE = _Gone()


class Dumped(NamedTuple):
    """A value as bytes; the messages that stood in it, in order; the strings of what is left."""

    payload: bytes
    messages: list[BaseMessage]
    strings: list[str]


class Opened(NamedTuple):
    """A value taken apart: what is in it, and how the changed parts make it again."""

    parts: Sequence[Any]
    close: Callable[[list[Any]], Any]


def typed(value: object, serde: SerializerProtocol) -> bytes:
    """Return what `serde` makes of `value`, type and bytes in one."""
    kind, data = serde.dumps_typed(value)
    return kind.encode() + b"\0" + data


def untyped(data: bytes, serde: SerializerProtocol) -> Any:
    """Return the value that `typed` was given."""
    kind, _, body = data.partition(b"\0")
    return serde.loads_typed((kind.decode(), body))


def messages_in(value: object) -> bool:
    """Return whether any message stands anywhere in `value`."""
    return _look(value, None)


def strings_in(value: object) -> list[str]:
    """Return every string that can be read in `value`, messages left out."""
    strings: list[str] = []
    _look(value, strings)
    return strings


def _look(value: object, strings: list[str] | None) -> bool:
    """Return whether a message stands in `value`; collect the strings unless None is given."""
    found, todo, seen = False, [value], set[int]()
    while todo:
        one = todo.pop()
        if type(one) is str:
            if strings is not None:
                strings.append(one)
        elif type(one) in _ATOMS:
            continue
        elif isinstance(one, BaseMessage):
            if strings is None:
                return True
            found = True
        elif id(one) not in seen:
            seen.add(id(one))
            parts = _within(one)
            if parts is not None:
                todo.extend(reversed(parts))
            elif strings is not None:
                strings.extend(stored_text(one))
    return found


def _within(value: object) -> Sequence[Any] | None:
    """Return everything that stands directly in `value`, keys included; None when it is a leaf."""
    if isinstance(value, dict):
        return [part for item in value.items() for part in item]
    if isinstance(value, (list, tuple)):
        return value
    box = opened(value)
    return None if box is None else box.parts


def dump(value: object, serde: SerializerProtocol, *, tuples: bool = False) -> Dumped:
    """Return `value` as bytes without the messages in it.

    A tuple comes back as a list, as from the stock serializer, unless `tuples` are to be kept.

    Raises what `serde` raises for an object it cannot write, as the stock saver would, and
    InvalidInput for a value with messages that holds itself.
    """
    strings: list[str] = []
    if not _look(value, strings) and not (tuples or any(map(_unusual, strings))):
        return Dumped(b"0" + typed(value, serde), [], strings)
    writer = _Writer(tuples)
    try:
        root = rebuilt(value, writer.open)
    except InvalidInput:
        typed(value, serde)  # the stock serializer has an error of its own for this
        raise
    if root is value:
        return Dumped(b"0" + typed(value, serde), [], strings)
    return Dumped(b"1" + typed([root, *writer.boxes], serde), writer.messages, strings)


def load(payload: bytes, serde: SerializerProtocol, messages: Sequence[BaseMessage | None]) -> Any:
    """Return the value that `dump` was given, with `messages` in their places again.

    None stands for an erased message: it is left out of a list, dict, set or tuple, is None as a
    field of an object, and GONE as the value itself. Classes are imported under the serializer's
    own rule; one it blocks comes back as the dict of its fields, as from the stock serializer.
    """
    value = untyped(payload[1:], serde)
    if payload[:1] == b"0":
        return value
    root, *flat = value
    reader = _Reader(messages, serde)
    for form, module, name, fields in zip(*[iter(flat)] * 4, strict=True):
        reader.add(form, module, name, fields)
    return rebuilt(root, reader.open)


def rebuilt(root: object, take_apart: Callable[[Any], Any]) -> Any:
    """Return `root` with every part replaced, innermost first, at any depth.

    `take_apart` gives an Opened, or what stands in the place of a part that has no parts.
    Raises InvalidInput when the value is deeper than any serializer goes: it holds itself.
    """
    frames: list[tuple[Iterator[Any], list[Any], Callable[[list[Any]], Any]]]
    frames = [(iter((root,)), [], lambda done: done[0])]
    while True:
        parts, done, close = frames[-1]
        for part in parts:
            step = take_apart(part)
            if type(step) is Opened:
                frames.append((iter(step.parts), [], step.close))
                break
            done.append(step)
        else:
            frames.pop()
            if not frames:
                return close(done)
            frames[-1][1].append(close(done))
        if len(frames) > _DEEPEST:
            raise InvalidInput("A value of the state holds itself.")


class _Writer:
    """Takes values apart for `dump`: collects the messages, and a box for what holds one."""

    def __init__(self, tuples: bool) -> None:
        self.tuples = tuples
        self.messages: list[BaseMessage] = []
        self.boxes: list[Any] = []

    def open(self, value: Any) -> Any:
        """Return what stands for `value`, or its parts."""
        if isinstance(value, str):
            return _escaped(value)
        if type(value) in _ATOMS:
            return value
        if isinstance(value, BaseMessage):
            self.messages.append(value)
            return f"{MARK}m{len(self.messages) - 1}"
        return self._parts(value) or value

    def _parts(self, value: Any) -> Opened | None:
        if isinstance(value, dict):
            return Opened(list(value.values()), lambda done: _same_dict(value, done))
        if type(value) is tuple and self.tuples:
            return Opened(value, lambda done: self._box("tuple", tuple, done))
        if isinstance(value, list) or type(value) is tuple:
            kind = tuple if type(value) is tuple else list
            return Opened(value, lambda done: value if _all_same(value, done) else kind(done))
        box = opened(value)
        return box and Opened(box.parts, lambda done: self._boxed(value, box, done))

    def _boxed(self, value: Any, box: Box, done: list[Any]) -> Any:
        if _all_same(box.parts, done):
            return value
        return self._box(box.form, type(value), box.fields(done))

    def _box(self, form: str, cls: type, fields: Any) -> str:
        self.boxes += [form, cls.__module__, cls.__name__, fields]
        return f"{MARK}b{len(self.boxes) // 4 - 1}"


class _Reader:
    """Takes values apart for `load`: puts messages and objects in the places of their markers."""

    def __init__(self, messages: Sequence[BaseMessage | None], serde: SerializerProtocol) -> None:
        self.messages = messages
        self.objects: list[Any] = []
        self.allowed = Allowed(serde)

    def open(self, value: Any) -> Any:
        """Return what `value` stands for, or its parts."""
        if type(value) is str:
            return self._meant(value) if value.startswith(MARK) else value
        if type(value) in {list, tuple}:
            kind = type(value)
            return Opened(value, lambda done: kind(one for one in done if one is not GONE))
        if type(value) is dict:
            return Opened(list(value.values()), lambda done: self._dict(value, done))
        return value

    def add(self, form: str, module: str, name: str, fields: Any) -> None:
        """Make the object of the next box; the boxes inside it came before."""
        if type(fields) is dict:
            done = {k: self._field(v) for k, v in fields.items()}
            made = built(form, module, name, done, self.allowed)
        elif form in {"one", "tuple"}:
            made = built(form, module, name, rebuilt(fields, self.open), self.allowed)
        else:
            made = built(form, module, name, [self._field(v) for v in fields], self.allowed)
        self.objects.append(made)

    def _field(self, value: Any) -> Any:
        done = rebuilt(value, self.open)
        return None if done is GONE else done

    def _dict(self, value: dict[Any, Any], done: list[Any]) -> dict[Any, Any]:
        pairs = zip(value, done, strict=True)
        return {self._key(key): one for key, one in pairs if one is not GONE}

    def _key(self, key: Any) -> Any:
        return self._meant(key) if type(key) is str and key.startswith(MARK) else key

    def _meant(self, marker: str) -> Any:
        kind, rest = marker[len(MARK)], marker[len(MARK) + 1 :]
        if kind == "m":
            message = self.messages[int(rest)]
            return GONE if message is None else message
        return self.objects[int(rest)] if kind == "b" else json.loads(rest)


def _unusual(text: str) -> bool:
    """Return whether `text` cannot stand for itself: it looks like a marker, or is no Unicode."""
    if text.isascii():
        return False
    return text.startswith(MARK) or _SURROGATE.search(text) is not None


def _escaped(text: str) -> str:
    return f"{MARK}s{json.dumps(text)}" if type(text) is str and _unusual(text) else text


def _all_same(old: Iterable[Any], new: Iterable[Any]) -> bool:
    """Return whether every part is still the same object."""
    return all(map(operator.is_, old, new))


def _same_dict(old: dict[Any, Any], done: list[Any]) -> dict[Any, Any]:
    keys = [_escaped(key) if isinstance(key, str) else key for key in old]
    if _all_same(old, keys) and _all_same(old.values(), done):
        return old
    return dict(zip(keys, done, strict=True))
