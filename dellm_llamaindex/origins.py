"""What the messages that are put into a memory were made from."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from llama_index.core.base.llms.types import ChatMessage

from dellm import Draft, Memory, Saying

from .scopes import Scope
from .tags import Owner, tag

Drawn = Callable[[ChatMessage, str], Draft]  # of a message and the framework id of its record


def write(
    memory: Memory,
    thread: str,
    messages: Sequence[ChatMessage],
    draft: Drawn,
    *,
    scope: Scope | None,
) -> list[int | None]:
    """Store messages at the end of a thread, each with what it was made from.

    Returns the record of each; None for one that was made from what is erased: it is not stored.
    The caller's messages are tagged with their records. `scope` is where the call is made from:
    scopes.current(), taken before the work is handed to another thread.
    Raises InvalidInput, StorageError.
    """
    if not messages:
        return []
    said = sayings(memory, thread, messages, draft, scope=scope)
    memory.conversations.add(thread, said)
    return settle(memory, messages, said, scope=scope)


def sayings(
    memory: Memory,
    thread: str,
    messages: Sequence[ChatMessage],
    draft: Drawn,
    *,
    scope: Scope | None,
    before: Sequence[int] | None = None,
) -> list[Saying]:
    """Return what conversations.add is to be given for messages, one for each, in their order.

    `before` are the records of the list that they are the rest of, where a whole list was set: a
    reply or result that nobody has seen made then depends on those and on the messages before it
    in `messages`. Without it such a message depends on all of its thread.
    Call `settle` when they are stored.
    """
    _ = memory, thread, scope
    made: list[Saying] = []
    for message in messages:
        one = Saying(draft(message, uuid.uuid4().hex), fresh=True)
        if message.role.value in ("assistant", "tool", "function"):
            one.inexact = True
            if before is None:
                one.whole = True
            else:
                one.parents, one.after = list(before), list(made)
        made.append(one)
    return made


def settle(
    memory: Memory,
    messages: Sequence[ChatMessage],
    said: Sequence[Saying],
    *,
    scope: Scope | None,
) -> list[int | None]:
    """Note which records the messages became, on the messages and in the scope; return them."""
    owner: Owner = (memory.identity, memory.id)
    _ = scope
    for message, one in zip(messages, said, strict=True):
        if one.id is not None:
            tag(message, owner, one.id)
    return [one.id for one in said]
