"""A ChatMessage as the fields of a record, and back: equal, and a fresh object each time.

The record's own columns say most of a message: its role and its text. Whatever else it holds goes
into the payload, as JSON (exact_json.py). A record that has no payload, because the message was
plain or because it was redacted, is a message of one text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from llama_index.core.base.llms.types import (
    ChatMessage,
    CitableBlock,
    CitationBlock,
    MessageRole,
    TextBlock,
)

from dellm import Draft, InvalidInput
from dellm.adapting import check_iterable

from . import exact_json
from .tags import answered_call

ANSWERS = "tool_call_id"  # in the metadata of a tool's result: the call it answers
_SPEAKERS = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
    MessageRole.USER: "user",
}
_PLAIN = {one.value: one for one in (MessageRole.USER, MessageRole.ASSISTANT, MessageRole.SYSTEM)}
_ROLES = {one.value: one for one in MessageRole}

# Filling the slots of a pydantic object is what validation does in the end; each message was
# validated when it was first made, and a session is read at every step.
_set = object.__setattr__
_SAID = frozenset({"role", "blocks"})
_TEXT = frozenset({"text"})


class Stored(Protocol):
    """What a message is made again from: a record, or what a thread is read as."""

    @property
    def role(self) -> str:
        """Return user, assistant, system or tool."""

    @property
    def text(self) -> str:
        """Return the text."""

    @property
    def payload(self) -> bytes | None:
        """Return what the text and the role do not say."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Return which call a tool's result answers."""


def checked(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Return messages as a list; InvalidInput where there is anything else among them."""
    check_iterable(messages, "messages=")
    found = list(messages)
    if not all(isinstance(one, ChatMessage) for one in found):
        raise InvalidInput("What is to be added are ChatMessages.")
    return found


def draft_of(message: ChatMessage, thread: str, framework_id: str | None = None) -> Draft:
    """Return what a message is remembered as in a thread; nothing in it is shared with it."""
    role = _SPEAKERS[message.role]
    call = answered_call(message)
    return Draft(
        text=text_of(message),
        role=role,
        thread=thread,
        kind="tool" if role == "tool" else "message",
        framework_id=framework_id,
        payload=_payload(message, role),
        metadata=None if call is None else {ANSWERS: call},
    )


def text_of(message: ChatMessage) -> str:
    """Return the texts of a message, one a line; also those that it cites."""
    return "\n".join(_texts(message.blocks))


def _texts(blocks: list[Any]) -> Iterator[str]:
    for one in blocks:
        if isinstance(one, TextBlock):
            yield one.text
        elif isinstance(one, CitableBlock):
            yield from _texts(list(one.content))
        elif isinstance(one, CitationBlock):
            yield from _texts([one.cited_content])


def _payload(message: ChatMessage, role: str) -> bytes | None:
    """Return what role and text do not say, None where they say all."""
    if type(message) is not ChatMessage:
        return exact_json.dump({"whole": message})
    said: dict[str, Any] = {}
    if message.role.value != role or role not in _PLAIN:
        said["role"] = message.role.value
    if not _is_plain(message.blocks):
        said["blocks"] = message.blocks
    if message.additional_kwargs:
        said["kwargs"] = message.additional_kwargs
    return exact_json.dump(said) if said else None


def _is_plain(blocks: list[Any]) -> bool:
    return len(blocks) == 1 and type(blocks[0]) is TextBlock


def message_of(stored: Stored) -> ChatMessage:
    """Return the message of a record; a new object, which nothing else refers to."""
    if stored.payload is None:
        return _plain(stored)
    said = exact_json.load(bytes(stored.payload))
    if "whole" in said:
        whole = said["whole"]
        return whole if isinstance(whole, ChatMessage) else _lost(whole)
    role = _ROLES[said.get("role", stored.role)]
    blocks = said["blocks"] if "blocks" in said else [_block(stored.text)]
    return _made(role, blocks, said.get("kwargs") or {})


def _plain(stored: Stored) -> ChatMessage:
    kwargs: dict[str, Any] = {}
    if stored.role == "tool":  # a redacted one: it still has to name its call
        kwargs[ANSWERS] = stored.metadata.get(ANSWERS, "")
    return _made(_ROLES.get(stored.role, MessageRole.USER), [_block(stored.text)], kwargs)


def _lost(fields: Mapping[str, Any]) -> ChatMessage:
    """Return a message of a class that is not there any more as a plain one."""
    role = _ROLES.get(str(fields.get("role")), MessageRole.USER)
    return _made(role, list(fields["blocks"]), dict(fields["additional_kwargs"]))


def _block(text: str) -> TextBlock:
    made = TextBlock.__new__(TextBlock)
    _fill(made, {"block_type": "text", "text": text}, _TEXT)
    return made


def _made(role: MessageRole, blocks: list[Any], kwargs: dict[str, Any]) -> ChatMessage:
    made = ChatMessage.__new__(ChatMessage)
    _fill(made, {"role": role, "additional_kwargs": kwargs, "blocks": blocks}, _SAID)
    return made


def _fill(made: Any, fields: dict[str, Any], names: frozenset[str]) -> None:
    _set(made, "__dict__", fields)
    _set(made, "__pydantic_fields_set__", set(names))
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
