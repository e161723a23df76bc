"""The records of messages that a stock Memory has flushed to its blocks.

Those of a DeLLMChatStore are tagged with their records. Those of another chat store are no records
yet: they become some, known again by what they say. Nobody knows any more what a reply among them
was made from: it depends on all that was said before it in its session.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from dellm import Memory, NotFound, Saying

from . import exact_json
from .messages import draft_of, message_of
from .tags import Owner, digest_of, owner_of, tag, tag_of

GIVERS = frozenset({MessageRole.USER, MessageRole.SYSTEM, MessageRole.DEVELOPER})
SESSION = "session_id"  # what a stock Memory notes in the messages that it flushes
NO_SESSION = "default"  # the thread of what is put into a block by itself
_NAME = "flushed:"  # how the framework ids of such messages begin

# A Memory gives its blocks the same messages at once: only one of them is to store each.
_storing = threading.Lock()


def session_of(messages: Sequence[ChatMessage]) -> str | None:
    """Return the session that a stock Memory has noted in messages."""
    for one in messages:
        if isinstance(named := one.additional_kwargs.get(SESSION), str) and named.strip():
            return named
    return None


def take(
    memory: Memory, thread: str, messages: Sequence[ChatMessage]
) -> list[tuple[ChatMessage, int]]:
    """Return messages with their records; without those that were erased, or made from what was.

    Each message is tagged with its record. Raises InvalidInput, StorageError.
    """
    owner = owner_of(memory)
    with _storing:
        unknown = [one for one in messages if _known(one, owner) is None]
        if unknown:
            _store(memory, owner, thread, unknown)
    known = ((one, _known(one, owner)) for one in messages)
    return [(one, id_) for one, id_ in known if id_ is not None and _is_there(memory, id_)]


def again(memory: Memory, records: Sequence[int]) -> list[tuple[ChatMessage, int]]:
    """Return the messages of records, each with its record; without those that are gone."""
    found: list[tuple[ChatMessage, int]] = []
    for id_ in records:
        with suppress(NotFound):
            message = message_of(memory.get(id_))
            tag(message, owner_of(memory), id_)
            found.append((message, id_))
    return found


def _known(message: ChatMessage, owner: Owner) -> int | None:
    """Return the record that a message is, unless it says something else by now."""
    found = tag_of(message)
    same = found is not None and found.owner == owner and found.digest == digest_of(message)
    return found.record if found is not None and same else None


def _is_there(memory: Memory, id_: int) -> bool:
    try:
        memory.get(id_)
    except NotFound:
        return False
    return True


def _store(memory: Memory, owner: Owner, thread: str, messages: Sequence[ChatMessage]) -> None:
    held = memory.conversations.read(thread, among="all").messages
    names = _Names(memory, (one.framework_id for one in held))
    said = [_saying(one, owner, thread, names) for one in messages]
    memory.conversations.add(thread, said)
    for message, one in zip(messages, said, strict=True):
        if one.id is not None:
            tag(message, owner, one.id)


def _saying(message: ChatMessage, owner: Owner, thread: str, names: _Names) -> Saying:
    given, found = message.role in GIVERS, tag_of(message)
    before = [found.record] if found is not None and found.owner == owner else []
    plain = _without_session(message)
    draft = draft_of(plain, thread, names.of(plain, again=given and not before))
    return Saying(draft, parents=before, whole=not given, inexact=not given or bool(before))


def _without_session(message: ChatMessage) -> ChatMessage:
    rest = {key: one for key, one in message.additional_kwargs.items() if key != SESSION}
    return message.model_copy(update={"additional_kwargs": rest})


class _Names:
    """Names messages by what they say; a reply that was given twice may come from something else."""

    def __init__(self, memory: Memory, held: Iterable[str | None]) -> None:
        self._memory = memory
        self._last: dict[str, int] = {}
        for one in held:
            name, _, number = (one or "").rpartition(":")
            if name.startswith(_NAME) and number.isdecimal():
                self._last[name] = max(int(number), self._last.get(name, 0))

    def of(self, message: ChatMessage, *, again: bool) -> str:
        """Return the name of a message; `again`: it is the same however often it was said.

        The digest is keyed, so that it says nothing of what was erased.
        """
        said = exact_json.sorted_text(message)
        name = f"{_NAME}{self._memory.items.digest([said])[:32]}"
        if again:
            return f"{name}:1"
        self._last[name] = self._last.get(name, 0) + 1
        return f"{name}:{self._last[name]}"
