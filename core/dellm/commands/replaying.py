"""Reading a conversation from a file into a memory: what was said, and what replies were made from."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from dellm.assistant import Assistant
from dellm.details import Details
from dellm.errors import ContextForgotten, InvalidInput
from dellm.memory import Memory
from dellm.models import Model
from dellm.systems import Reply

_KEPT = (
    "kind",
    "framework_id",
    "version",
    "metadata",
    "subject",
    "purpose",
    "sensitivity",
    "model",
)


@dataclass(frozen=True, slots=True)
class Line:
    """One message of the file. `context` holds names of earlier lines, None where it is not known."""

    name: int
    role: str
    text: str = field(repr=False)
    thread: str | None
    at: datetime | None
    context: tuple[int, ...] | None
    more: Details = field(repr=False)

    @property
    def details(self) -> Details:
        """What is stored beside role and text."""
        return {**self.more, "thread": self.thread, "created_at": self.at}


@dataclass(slots=True)
class Tally:
    """What a replay did, in messages; `refused` were erased before and are not brought back."""

    remembered: int = 0
    recorded: int = 0
    answered: int = 0
    forgets: int = 0
    refused: int = 0


def read_lines(path: Path) -> list[Line]:
    """Read JSON Lines, a JSON array, or an object with "messages"; InvalidInput for anything else.

    A line is named by its "id" where every line has one, else by its place, from 0.
    """
    messages = _parsed(path)
    named = all(type(one.get("id")) is int for one in messages)
    return [_line(place, one, named=named) for place, one in enumerate(messages)]


def _parsed(path: Path) -> list[Mapping[str, Any]]:
    try:
        text = path.read_text("utf-8")
        try:
            data = json.loads(text)
        except ValueError:
            data = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:  # neither, or not UTF-8
        data = None
    if isinstance(data, dict):
        data = data.get("messages", [data])
    if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
        raise InvalidInput("The file holds neither JSON Lines nor a JSON array of messages.")
    return data


def _line(place: int, message: Mapping[str, Any], *, named: bool) -> Line:
    role, thread = message.get("role", "user"), message.get("thread", "main")
    text = message.get("text", message.get("content"))
    if not all(isinstance(one, str) for one in (role, thread or "", text)):
        raise InvalidInput(f"Message {place} has no role, thread or text that is a string.")
    context = message.get("context")
    if context is not None and not (
        isinstance(context, list) and all(type(one) is int for one in context)
    ):
        raise InvalidInput(f"Message {place} has a context that is no list of numbers.")
    return Line(
        name=message["id"] if named else place,
        role=role,
        text=str(text),
        thread=thread,
        at=_time(place, message.get("at", message.get("created_at"))),
        context=None if context is None else tuple(context),
        more=_details(place, message),
    )


def _time(place: int, at: object) -> datetime | None:
    try:
        if isinstance(at, str):
            return datetime.fromisoformat(at)
        if isinstance(at, int | float):
            return datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        at = ""
    if at is None:
        return None
    raise InvalidInput(f"Message {place} has a time that is neither ISO 8601 nor seconds.")


def _details(place: int, message: Mapping[str, Any]) -> Details:
    details: Any = {name: message[name] for name in _KEPT if message.get(name) is not None}
    if (payload := message.get("payload")) is not None:
        try:
            details["payload"] = base64.b64decode(payload, validate=True)
        except (binascii.Error, TypeError, ValueError):
            problem = InvalidInput(f"Message {place} has a payload that is not base64.")
            raise problem from None
    return cast("Details", details)


class Replay:
    """Plays lines into a memory.

    A line with a context is recorded with it. One of the assistant's without is replaced by what
    the model answers now; without a model it is kept, with all that was said before in its thread
    as its context: rather too much than too little.
    """

    def __init__(self, memory: Memory, model: Callable[[], Model] | None, k: int = 5) -> None:
        self._memory = memory
        self._model = model
        self._k = k
        self._ids: dict[int, int] = {}
        self._assistants: dict[str, Assistant] = {}
        self._threads: dict[str | None, list[int]] = {}
        self.tally = Tally()

    def play(self, lines: Sequence[Line], step: Callable[[], None] = lambda: None) -> Tally:
        """Play the lines in order; `step` is called after each."""
        follows = _followers(lines)
        for line, following in zip(lines, follows, strict=True):
            try:
                self._play(line, following)
            except ContextForgotten:
                self.tally.refused += 1
            step()
        return self.tally

    def _play(self, line: Line, following: Line | None) -> None:
        if line.role == "user" and line.context is None:
            told = following is not None and following.context is not None
            if self._model is None or told:
                self._remember(line)
            else:
                self._send(line, following)
        elif line.role == "assistant" and line.context is None:
            if self._model is None:
                self._record(line, tuple(self._threads.get(line.thread, ())))
        elif line.context:
            self._record(line, tuple(map(self._id, line.context)))
        else:
            self._remember(line)

    def _id(self, name: int) -> int:
        if name not in self._ids:
            raise InvalidInput(f"A context names message {name}, which does not stand before it.")
        return self._ids[name]

    def _remember(self, line: Line) -> None:
        record = self._memory.remember(line.text, role=line.role, **line.details)
        self._note(line, record.id)
        self.tally.remembered += 1

    def _record(self, line: Line, context: tuple[int, ...]) -> None:
        record = self._memory.record(line.text, role=line.role, context=context, **line.details)
        self._note(line, record.id)
        self.tally.recorded += 1

    def _send(self, line: Line, following: Line | None) -> None:
        reply = self._assistant(line.thread or "main").send(line.text, at=line.at)
        self._count(reply)
        if reply.question is not None:
            self._note(line, reply.question)
        if reply.answer is not None and following is not None:
            self._note(following, reply.answer)

    def _count(self, reply: Reply) -> None:
        self.tally.forgets += reply.receipt is not None
        self.tally.answered += reply.answer is not None

    def _note(self, line: Line, id_: int) -> None:
        self._ids[line.name] = id_
        self._threads.setdefault(line.thread, []).append(id_)

    def _assistant(self, thread: str) -> Assistant:
        if thread not in self._assistants:
            model = self._model() if self._model else None
            if model is None:
                raise InvalidInput("There is no model to answer with.")
            self._assistants[thread] = Assistant(self._memory, model, thread=thread, k=self._k)
        return self._assistants[thread]


def _followers(lines: Sequence[Line]) -> list[Line | None]:
    """Return, for each line, the next one of its thread where that is the assistant's."""
    following: dict[str | None, Line] = {}
    found: list[Line | None] = []
    for line in reversed(lines):
        after = following.get(line.thread)
        found.append(after if after is not None and after.role == "assistant" else None)
        following[line.thread] = line
    return found[::-1]
