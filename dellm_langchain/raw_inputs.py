"""What a graph run was given: messages, and text, pairs, dicts and other values.

A reducer makes messages of some of it inside the run. Where all steps are stored as one, nothing else
says that such a message, or a channel's value, was given and not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, convert_to_messages
from langgraph.checkpoint.serde.types import RESUME
from langgraph.types import Command

ROOT = "__root__"  # LangGraph's name for the one channel of a graph whose state is no mapping


class Said(NamedTuple):
    """What a message says of which kind, whatever its id."""

    kind: type[BaseMessage]
    content: Any


class RawInputs:
    """What a run was given, by channel. Each part is taken for one message, the first like it."""

    def __init__(self, inputs: object = None) -> None:
        self._inputs = {name: _parts(one) for name, one in _channels(inputs).items()}
        self._said: dict[str, list[tuple[Said, object]]] = {}
        self._known: dict[str, set[int | str]] = {}  # the keys of the parts
        self._taken: list[tuple[object, BaseMessage]] = []

    def anew(self) -> RawInputs:
        """Return the same, of which nothing has been taken yet."""
        found = RawInputs()
        found._inputs, found._known = self._inputs, self._known
        return found

    def holds(self, channel: str, value: object) -> bool:
        """Whether a channel was given just this value, or it as an item of a list."""
        key = _key(value)
        return any(key in self._keys(one) for one in (channel, ROOT))

    def _keys(self, channel: str) -> set[int | str]:
        if channel not in self._known:
            self._known[channel] = set(map(_key, self._inputs.get(channel, ())))
        return self._known[channel]

    def take(self, channel: str, message: BaseMessage) -> bool:
        """Whether a message of a channel's value says what was given to it, and no other has yet."""
        if channel not in self._said:
            self._said[channel] = list(_said(self._inputs.get(channel, [])))
        said = Said(type(message), message.content)
        found = next((one for one in self._said[channel] if one[0] == said), None)
        if found is None:
            return False
        self._said[channel].remove(found)
        self._taken.append((found[1], message))
        return True

    def made(self, message: BaseMessage) -> bool:
        """Whether a message was taken."""
        return any(one is message for _, one in self._taken)

    def left(self) -> Iterator[tuple[str, Any]]:
        """Yield the channel and the part of all that was not taken; a message is none that is taken."""
        taken = {id(part) for part, _ in self._taken}
        for channel, parts in self._inputs.items():
            yield from ((channel, one) for one in parts if id(one) not in taken)


def _channels(inputs: object) -> Mapping[str, Any]:
    if isinstance(inputs, Command):
        answer = {} if inputs.resume is None else {RESUME: inputs.resume}
        return {**_channels(inputs.update), **answer}
    if isinstance(inputs, Mapping):
        return {str(name): one for name, one in inputs.items()}
    return {} if inputs is None else {ROOT: inputs}


def _key(value: object) -> int | str:
    """Return by what a part is known: a text by itself, any other value as the object that it is."""
    return value if type(value) is str else id(value)


def _parts(value: object) -> list[object]:
    """Return a value or the items of a list, in a list of its own: the caller's list may change."""
    return list(value) if isinstance(value, list) else [value]


def _said(parts: list[object]) -> Iterator[tuple[Said, object]]:
    for one in parts:
        if (made := message_of(one)) is not None:
            yield Said(type(made), made.content), one


def message_of(part: Any) -> BaseMessage | None:
    """Return the message that a reducer makes of a part that is none; None where it makes none."""
    if not isinstance(part, (str, tuple, list, dict)):
        return None
    try:
        [made] = convert_to_messages([part])
    except Exception:  # noqa: BLE001 - whatever it raises, no message was made of it
        return None
    return made
