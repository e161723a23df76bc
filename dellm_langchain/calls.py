"""What was seen of one model call and of one tool run: values, cheap to take and safe to keep."""

from __future__ import annotations

import marshal
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, overload

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from pydantic import BaseModel

if TYPE_CHECKING:
    from uuid import UUID

_id, _content = attrgetter("id"), attrgetter("content")
# What a node can put into a generated message; its id and name are compared apart.
_GENERATED = attrgetter("content", "additional_kwargs", "response_metadata")
_CALLS = attrgetter("tool_calls", "invalid_tool_calls")
_RESULT = attrgetter("content", "additional_kwargs", "artifact", "status")


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as one model call saw it.

    `message` is the very object of the prompt (for multimodal content a copy that LangChain makes
    for its callbacks), `id` and `content` are as they were at the call: a message changed in place
    since then differs from them. `constant`: a system message without id that an earlier run of
    the same node has sent as the same object at the same place, so that nothing of this run is in it.
    """

    message: BaseMessage = field(repr=False)
    id: str | None
    content: str | list[Any] = field(repr=False)
    constant: bool

    @property
    def text(self) -> str:
        """The content if it is a string, else the texts of its blocks joined by newlines."""
        return text_of(self.content)


class Prompt(Sequence[Seen]):
    """The messages of one prompt in order; `Seen` values are made only when they are asked for.

    `messages`, `ids` and `contents` are parallel tuples, for callers that walk long prompts.
    `constants` holds the positions of constant messages. `weight` is about how many bytes the
    prompt keeps alive, as if nothing else held its messages.
    """

    __slots__ = ("_contents", "_packed", "constants", "ids", "messages", "weight")

    def __init__(self, messages: Iterable[BaseMessage] = ()) -> None:
        self.messages = tuple(messages)
        self.ids: tuple[str | None, ...] = tuple(map(_id, self.messages))
        contents: tuple[Any, ...] = tuple(map(_content, self.messages))
        self._packed = b""
        try:
            held = sum(map(str.__sizeof__, contents))
        except TypeError:  # not all are strings; to ask first would cost as much again
            contents, held = self._copy(contents)
        self._contents: tuple[str | list[Any], ...] = contents
        self.constants: frozenset[int] = frozenset()
        self.weight = held + 1_000 * (1 + len(self.messages))

    def _copy(self, contents: tuple[Any, ...]) -> tuple[tuple[Any, ...], int]:
        """Copy content blocks, which can be changed in place; as bytes, since few are looked at."""
        try:
            self._packed = marshal.dumps(contents)
        except ValueError:  # a block with something that is not plain data
            contents = tuple(map(_copied, contents))
            return contents, sum(map(_size, contents))
        return (), len(self._packed)

    @property
    def contents(self) -> tuple[str | list[Any], ...]:
        """The contents of the messages as they were at the call."""
        packed = self._packed  # another thread may unpack it at the same time
        if packed:
            self._contents = marshal.loads(packed)  # noqa: S302 - bytes made by _copy
            self._packed = b""
        return self._contents

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, at: int) -> Seen: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Seen, ...]: ...
    def __getitem__(self, at: int | slice) -> Seen | tuple[Seen, ...]:
        if isinstance(at, slice):
            return tuple(self[one] for one in range(*at.indices(len(self))))
        at = range(len(self))[at]
        return Seen(self.messages[at], self.ids[at], self.contents[at], at in self.constants)

    def same(self, other: Prompt) -> bool:
        """Whether both prompts hold the same versions of the same messages in the same order."""
        if self.ids != other.ids or self.contents != other.contents:
            return False
        pairs = zip(self.messages, other.messages, self.ids, strict=True)
        return all(mine is its or name is not None for mine, its, name in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One model call.

    `tasks` are the ids of the LangGraph tasks it was made in, outermost first; `step` is the step
    of that thread's outermost graph, `node` the path of node names ("tools|model"), `tool_call_id`
    the call of the innermost tool run around it, `root` the run it belongs to. `steps`: thread and
    step of every thread it was made in, outermost first (a node can run a graph on another thread).
    `owner` is the memory and workspace of the saver it ran on, `moment` counts the calls of the process.
    `opaque`: what the model read is not known (a string prompt, a fault of ours, or dropped to
    bound memory): `prompt` then does not say all, and it may have read anything its task could.
    """

    run_id: UUID
    root: UUID
    steps: tuple[tuple[str, int | None], ...]
    tasks: tuple[str, ...]
    node: str
    prompt: Prompt
    opaque: bool
    tool_call_id: str | None
    lc_source: str | None
    owner: Hashable = None
    moment: int = 0

    @property
    def thread_id(self) -> str | None:
        """The thread it was made in, the innermost if there are several."""
        return self.steps[-1][0] if self.steps else None

    @property
    def step(self) -> int | None:
        """The step of the outermost graph of that thread, None if it is not known."""
        return self.steps[-1][1] if self.steps else None


@dataclass(frozen=True, slots=True, eq=False)
class ToolRun:
    """The runs of one tool call, taken together when it ran more than once.

    `reads_state`: its code can reach graph state, store or runtime, or nobody can tell. `calls` are
    the model calls inside it, those of agents and tools it started included.
    """

    tool_call_id: str
    name: str
    tasks: tuple[str, ...]
    reads_state: bool
    calls: tuple[Call, ...]
    inputs: frozenset[int | None]
    outputs: frozenset[int]
    runs: tuple[UUID, ...] = ()

    def asked(self, call: ToolCall) -> bool:
        """Whether the tool ran with just the arguments of this call, the injected ones left out.

        False when a person or middleware has edited them: they then come from elsewhere too.
        """
        args = fingerprint(call["args"])
        return args is not None and self.inputs == {args}

    def gave(self, message: ToolMessage) -> bool:
        """Whether the message's content and artifact are what the tool itself returned.

        False for the message of a failed run, and for one that middleware has rewritten.
        """
        return returned(message) in self.outputs


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(one) for one in value]
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return value


def _size(content: Any) -> int:
    if isinstance(content, dict):
        content = content.values()
    elif not isinstance(content, list):
        return sys.getsizeof(content)
    return 50 + sum(map(_size, content))


def text_of(content: str | list[Any]) -> str:
    """Return a message content as text: itself, or the texts of its blocks joined by newlines."""
    if isinstance(content, str):
        return content
    texts = (one if isinstance(one, str) else _block_text(one) for one in content)
    return "\n".join(text for text in texts if text)


def _block_text(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return ("dict", frozenset((key, _hashable(one)) for key, one in value.items()))
    if isinstance(value, list | tuple):
        return ("list", *map(_hashable, value))
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, BaseModel):
        return (type(value), _hashable(vars(value)))
    if type(value).__hash__ is None:
        return (type(value), id(value))
    return value


def fingerprint(value: Any) -> int | None:
    """Return a 64-bit number that equal values share within this process, None if there is none."""
    try:
        return hash(_hashable(value))
    except Exception:  # noqa: BLE001 - a foreign object, or one that holds itself: not comparable
        return None


def generated(message: BaseMessage) -> int | None:
    """Return the fingerprint of all that a model generated in a message, its id and name left out.

    A message and the sum of its streamed chunks have the same one. None if it can't be taken.
    """
    values = list(_GENERATED(message))
    if isinstance(message, AIMessage):
        values += _CALLS(message)
    return fingerprint(values)


def returned(message: ToolMessage) -> int | None:
    """Return the fingerprint of what a tool returned as this message, None if it can't be taken."""
    return fingerprint(_RESULT(message))


def messages_within(value: Any) -> list[BaseMessage]:
    """Return the message objects in a graph's input or a tool's output, containers searched.

    Nothing is found in a value that can't be read: it is then treated as not known.
    """
    try:
        return list(_within(value, 6))
    except Exception:  # noqa: BLE001 - a foreign container may raise anything
        return []


def _within(value: Any, depth: int) -> Iterator[BaseMessage]:
    if isinstance(value, BaseMessage):
        yield value
    elif depth:
        for one in _parts(value):
            yield from _within(one, depth - 1)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
        names = getattr(value, "__dataclass_fields__", None) or vars(value)
        return [getattr(value, name, None) for name in names]
    return ()
