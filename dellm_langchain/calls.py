"""What was seen of one model call and of one tool run: values, cheap to take and safe to keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any, overload

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel

if TYPE_CHECKING:
    from uuid import UUID

# What a node can put into a generated message; its id and name are compared apart.
_GENERATED = ("content", "additional_kwargs", "response_metadata")
_CALLS = ("tool_calls", "invalid_tool_calls")


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
    `constants` holds the positions of constant messages.
    """

    __slots__ = ("constants", "contents", "ids", "messages")

    def __init__(self, messages: Iterable[BaseMessage] = ()) -> None:
        self.messages = tuple(messages)
        self.ids: tuple[str | None, ...] = tuple([one.id for one in self.messages])
        contents: list[Any] = [one.content for one in self.messages]
        if not set(map(type, contents)) <= {str}:
            contents = [one if type(one) is str else copied(one) for one in contents]
        self.contents: tuple[str | list[Any], ...] = tuple(contents)
        self.constants: frozenset[int] = frozenset()

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

    def weight(self) -> int:
        """Return about how many bytes the prompt keeps alive, as if nothing else held its messages."""
        return 1_000 * (1 + len(self.messages)) + sum(map(_size, self.contents))

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
    of the outermost graph, `node` the path of node names ("tools|model"), `tool_call_id` the call
    of the innermost tool run around it, `root` the run it belongs to. `opaque`: what the model
    read is not known (a string prompt, a fault of ours, or dropped to bound memory): `prompt` then
    does not say all, and the call may have read anything its task could.
    """

    run_id: UUID
    root: UUID
    thread_id: str | None
    tasks: tuple[str, ...]
    step: int | None
    node: str
    prompt: Prompt
    opaque: bool
    tool_call_id: str | None
    lc_source: str | None


@dataclass(frozen=True, slots=True, eq=False)
class ToolRun:
    """The runs of one tool call, taken together when it ran more than once.

    `reads_state`: its code can reach graph state, store or runtime, or nobody can tell. `calls` are
    the model calls inside it, those of agents and tools it started included.
    """

    tool_call_id: str
    name: str
    thread_id: str | None
    tasks: tuple[str, ...]
    reads_state: bool
    calls: tuple[Call, ...]
    outputs: frozenset[int]

    def gave(self, message: ToolMessage) -> bool:
        """Whether the message's content is what the tool itself returned.

        False for the message of a failed run, and for one that middleware has rewritten.
        """
        return fingerprint(message.content) in self.outputs


def copied(value: Any) -> Any:
    """Return the lists and dicts of a content copied, their leaves shared."""
    if isinstance(value, list):
        return [copied(one) for one in value]
    if isinstance(value, dict):
        return {key: copied(one) for key, one in value.items()}
    return value


def _size(content: Any) -> int:
    if isinstance(content, str):
        return len(content)
    if isinstance(content, dict):
        content = content.values()
    elif not isinstance(content, list):
        return 50
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
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def fingerprint(value: Any) -> int:
    """Return a 64-bit number that equal JSON-like values share within this process."""
    return hash(_hashable(value))


def generated(message: BaseMessage) -> int:
    """Return the fingerprint of all that a model generated in a message, its id and name left out.

    A message and the sum of its streamed chunks have the same one.
    """
    values = [getattr(message, name) for name in _GENERATED]
    if isinstance(message, AIMessage):
        values += [[_plain(one) for one in getattr(message, name)] for name in _CALLS]
    return fingerprint(values)


def _plain(call: Any) -> Any:
    """Leave out the `type` of a tool call: not every way of making one sets it."""
    return {key: value for key, value in call.items() if key != "type"}


def messages_within(value: Any, depth: int = 6) -> Iterator[BaseMessage]:
    """Yield the message objects in a graph's input or a tool's output, containers searched."""
    if isinstance(value, BaseMessage):
        yield value
    elif depth:
        for one in _parts(value):
            yield from messages_within(one, depth - 1)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
        names = getattr(value, "__dataclass_fields__", None) or vars(value)
        return [getattr(value, name, None) for name in names]
    return ()
