"""What a graph run was given that is no message object: text, pairs, dicts and other values.

A reducer makes messages of some of it inside the run. Where all steps are stored as one, nothing else
says that such a message, or a channel's value, was given and not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, convert_to_messages
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
        self._said: dict[str, list[Said]] = {}

    def anew(self) -> RawInputs:
        """Return the same, of which nothing has been taken yet."""
        found = RawInputs()
        found._inputs = self._inputs
        return found

    def holds(self, channel: str, value: object) -> bool:
        """Whether a channel was given just this value, or it as an item of a list."""
        parts = (*self._inputs.get(channel, ()), *self._inputs.get(ROOT, ()))
        return any(one is value or (type(value) is str and one == value) for one in parts)

    def take(self, channel: str, message: BaseMessage) -> bool:
        """Whether a message of a channel's value says what was given to it, and no other has yet."""
        if channel not in self._said:
            self._said[channel] = list(_said(self._inputs.get(channel, [])))
        said = Said(type(message), message.content)
        if said not in self._said[channel]:
            return False
        self._said[channel].remove(said)
        return True


def _channels(inputs: object) -> Mapping[str, Any]:
    if isinstance(inputs, Command):
        inputs = inputs.update
    if isinstance(inputs, Mapping):
        return {str(name): one for name, one in inputs.items()}
    return {} if inputs is None else {ROOT: inputs}


def _parts(value: object) -> list[object]:
    """Return a value or the items of a list, in a list of its own: the caller's list may change."""
    some = value if isinstance(value, list) else [value]
    return [one for one in some if not isinstance(one, BaseMessage)]


def _said(parts: list[object]) -> Iterator[Said]:
    for one in parts:
        made = _message(one) if isinstance(one, (str, tuple, list, dict)) else None
        if made is not None:
            yield Said(type(made), made.content)


def _message(part: Any) -> BaseMessage | None:
    """Return the message that a reducer makes of a part; None where it makes none."""
    try:
        [made] = convert_to_messages([part])
    except Exception:  # noqa: BLE001 - whatever it raises, no message was made of it
        return None
    return made
