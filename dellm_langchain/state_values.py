"""What a graph's channels hold besides messages, taken apart as a saver takes it.

Where no saver of ours has stored it yet, what running code keeps is made from records of its own;
the saver's later record of the same value is a copy of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import TASKS

from dellm import Draft

from .addresses import START
from .channels import Channels
from .early_values import Early, number_of
from .item_lists import State
from .objects import Objects
from .shapes import strings_in
from .taking import PLAIN, STATE, is_channel, state_draft


class Value(NamedTuple):
    """A channel's value, or an item of its list, as a saver's record of it.

    `known` is the record of it that a saver has, and `early` one that running code has made.
    """

    channel: str
    value: Any
    draft: Draft
    known: int | None
    early: Early | None

    @property
    def state(self) -> State:
        """What a saver's record of it holds."""
        return self.draft.text, self.draft.payload

    @property
    def number(self) -> int:
        """What it is known by."""
        return number_of(self.channel, self.state)


class StateValues:
    """Takes values apart; `objects` are what a saver knows of the thread, None for another saver's."""

    def __init__(
        self,
        thread: str,
        serde: SerializerProtocol,
        channels: Channels,
        objects: Objects | None,
        early: Mapping[int, Early],
    ) -> None:
        self._thread, self._serde = thread, serde
        self._channels, self._objects, self._early = channels, objects, early

    def of(self, state: Mapping[str, Any]) -> Iterator[Value]:
        """Yield what a saver would make records of, messages left out."""
        for name, value in state.items():
            if name == START and type(value) is dict and all(map(is_channel, value)):
                yield from self.of(value)
            elif name != TASKS and name not in self._channels.untracked:
                yield from self._listed(name, value)

    def noted(self, number: int, run: str) -> int | None:
        """Return the record that running code has made in a run of what is known by a number."""
        early = self._early.get(number)
        return early.record if early is not None and early.run == run else None

    def _listed(self, channel: str, value: Any) -> Iterator[Value]:
        items = value if type(value) is list else [value]
        known = self._known(items) if type(value) is list else ()
        for at, one in enumerate(items):
            if not isinstance(one, BaseMessage) and self._says(channel, one):
                yield self._made(channel, one, known[at] if at < len(known) else None)

    def _made(self, channel: str, value: Any, known: int | None) -> Value:
        found = Value(channel, value, self._draft(value), known, None)
        return found._replace(early=self._early.get(found.number))

    def _draft(self, value: Any) -> Draft:
        try:
            return state_draft(value, self._thread, self._serde)[0]
        except Exception:  # noqa: BLE001 - what another saver, or none, need not write
            text = "\n".join(dict.fromkeys(strings_in(value)))
            return Draft(text, role=STATE, thread=self._thread, kind="state")

    def _known(self, items: Sequence[Any]) -> Sequence[int]:
        return () if self._objects is None else self._objects.prefix(items).ids

    def _says(self, channel: str, value: Any) -> bool:
        """Whether it is somebody's text; see taking."""
        literals = self._channels.literals.get(channel, ())
        if type(value) in PLAIN or (type(value) is dict and not value):
            return False
        if isinstance(value, Enum):
            return value.value not in literals
        return not (type(value) is str and value in literals)
