"""Which record a message object is: a note on the object that nobody else sees.

A ChatMessage has no id (llama-index-core 0.14). The note stays when the message is handed on,
copied or pickled, and is no part of its fields: equality, JSON and what providers are sent are as
without it. Where a message is taken apart and made anew the note is lost, and its content tells.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock

from dellm import Memory

Owner = tuple[int, str]  # a memory and a workspace of it: see owner_of

_NOTE = "_dellm"
_KEY = os.urandom(16)  # of this process: a digest means nothing outside of it


_numbers: dict[tuple[str, str], int] = {}  # of databases: that of the memory opened first


def owner_of(memory: Memory) -> Owner:
    """Return what stands for a workspace in this process, however often its database is open.

    A database that is made anew at the same place is another one.
    """
    if memory.url == ":memory:":
        return memory.identity, memory.id
    return _numbers.setdefault((memory.url, memory.origin), memory.identity), memory.id


def place_of(owner: Owner) -> tuple[str, str] | None:
    """Return the URL and the origin of a database, closed or open; None of one in memory."""
    return next((place for place, number in list(_numbers.items()) if number == owner[0]), None)


@dataclass(frozen=True, slots=True)
class Tag:
    """The record that a message was, and what the message said then."""

    owner: Owner
    record: int
    digest: bytes


def tag(message: ChatMessage, owner: Owner, record: int, digest: bytes | None = None) -> None:
    """Note on a message which record it is; `digest` is that of the message, where it is known."""
    note = Tag(owner, record, digest_of(message) if digest is None else digest)
    object.__setattr__(message, _NOTE, note)


def tag_of(message: ChatMessage) -> Tag | None:
    """Return the note on a message; what it says now may differ from what it said then."""
    found = message.__dict__.get(_NOTE)
    return found if isinstance(found, Tag) else None


def untag(message: ChatMessage) -> None:
    """Take the note off a message."""
    message.__dict__.pop(_NOTE, None)


def digest_of(message: ChatMessage) -> bytes:
    """Return 16 bytes that two messages share when a reader could not tell one from the other.

    Of the role, the content blocks, and the tool calls and results they name; keyed by a number of
    this process, so that it says nothing elsewhere.
    """
    said = [message.role.value, *(_block(one) for one in message.blocks), *_tied(message)]
    text = json.dumps(said, default=str, ensure_ascii=False)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16, key=_KEY).digest()


def _block(block: object) -> object:
    dump = getattr(block, "model_dump", None)
    text = getattr(block, "text", None)
    if isinstance(text, str) and getattr(block, "block_type", "") == "text":
        return text
    return dump(exclude_none=True) if dump is not None else repr(block)


def _tied(message: ChatMessage) -> Iterator[object]:
    said = message.additional_kwargs
    for name in ("tool_calls", "tool_call_id"):
        if said.get(name):
            yield [name, call_ids(message) if name == "tool_calls" else said[name]]


def call_ids(message: ChatMessage) -> list[str]:
    """Return the ids of the tool calls in a message: its blocks', and its provider's own form."""
    found = [str(one.tool_call_id) for one in message.blocks if isinstance(one, ToolCallBlock)]
    for one in message.additional_kwargs.get("tool_calls") or ():
        name = one.get("id") if isinstance(one, dict) else getattr(one, "id", None)
        if name is None and not isinstance(one, dict):
            name = getattr(one, "tool_id", None)
        if name is not None and str(name) not in found:
            found.append(str(name))
    return found


def answered_call(message: ChatMessage) -> str | None:
    """Return the id of the tool call that a message is the result of, None when it is none."""
    found = message.additional_kwargs.get("tool_call_id")
    return str(found) if found is not None and message.role.value in ("tool", "function") else None
