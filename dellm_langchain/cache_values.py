"""What caches keep, as the text and the payload of a record, and back: equal, fresh objects each time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import ormsgpack
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    Generation,
    GenerationChunk,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import InvalidInput

from . import shapes
from .calls import text_of
from .messages import fields_of, recipe

_KINDS: dict[str, type[Generation]] = {
    "g": Generation,
    "c": ChatGeneration,
    "G": GenerationChunk,
    "C": ChatGenerationChunk,
}
_LETTERS = {cls: letter for letter, cls in _KINDS.items()}


def dump(value: object, serde: SerializerProtocol) -> tuple[str, bytes]:
    """Return a value with messages anywhere in it: all that it says, one string a line, and its bytes.

    Raises what `serde` raises for an object it cannot write.
    """
    dumped = shapes.dump(value, serde, tuples=True)
    rows = [list(fields_of(one, serde)[1:5]) for one in dumped.messages]
    payload = ormsgpack.packb([dumped.payload, shapes.dump(rows, serde).payload])
    said = [*dumped.strings, *(part for one in dumped.messages for part in spoken(one))]
    return "\n".join(dict.fromkeys(one for one in said if one)), payload


def load(payload: bytes, serde: SerializerProtocol) -> Any:
    """Return the value that `dump` was given."""
    value, kept = ormsgpack.unpackb(payload)
    rows = shapes.load(kept, serde, ())
    messages = [recipe(role, text, named, held, serde).make() for role, text, named, held in rows]
    return shapes.load(value, serde, messages)


def spoken(message: BaseMessage) -> Iterator[str]:
    """Yield what a message says: its text, and the arguments of its calls."""
    yield text_of(message.content)
    for call in message.tool_calls if isinstance(message, AIMessage) else ():
        yield from shapes.strings_in(call["args"])


def dump_generations(
    generations: Sequence[Generation], serde: SerializerProtocol
) -> tuple[str, bytes]:
    """Return generations as text and bytes; the text is what they say, without what is about it.

    Raises InvalidInput for what is no list of generations.
    """
    if not isinstance(generations, list | tuple) or not all(
        isinstance(one, Generation) for one in generations
    ):
        raise InvalidInput("What a cache is to keep is no list of generations.")
    _, payload = dump([_taken(one) for one in generations], serde)
    said = (part for one in generations for part in _said(one))
    return "\n".join(dict.fromkeys(one for one in said if one)), payload


def load_generations(payload: bytes, serde: SerializerProtocol) -> list[Generation]:
    """Return the generations that `dump_generations` was given."""
    return [_made(one) for one in load(payload, serde)]


def dump_writes(
    writes: Sequence[tuple[str, Any]], own: Iterable[str], serde: SerializerProtocol
) -> tuple[str, bytes]:
    """Return what a node wrote, (channel, value) each, as text and bytes; `own` are ids to renew."""
    text, payload = dump([value for _, value in writes], serde)
    return text, ormsgpack.packb([[channel for channel, _ in writes], sorted(own), payload])


def load_writes(
    payload: bytes, serde: SerializerProtocol
) -> tuple[list[tuple[str, Any]], list[str]]:
    """Return what a node wrote, and the ids to renew."""
    channels, own, values = ormsgpack.unpackb(payload)
    return list(zip(channels, load(values, serde), strict=True)), own


def _said(generation: Generation) -> Iterator[str]:
    yield generation.text
    if isinstance(generation, ChatGeneration):
        yield from spoken(generation.message)


def _taken(generation: Generation) -> object:
    """Return the fields of one of LangChain's own classes; any other is left to the serializer."""
    letter = _LETTERS.get(type(generation))
    if letter is None:
        return generation
    # The text of a chat's generation is no plain string, though equal to one.
    return [letter, {**generation.__dict__, "text": str(generation.text)}]


def _made(taken: Any) -> Generation:
    """Return a generation of its fields; they were checked when it was first made."""
    if isinstance(taken, Generation):
        return taken
    letter, fields = taken
    return _KINDS[letter].model_construct(**fields)
