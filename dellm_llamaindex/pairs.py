"""Keep tool calls and their results in pairs when one of the two is not there any more.

A provider refuses a list in which a call has no result or a result has no call. The messages are
those that a session was just read as: nobody else has them, so they are changed in place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)

from .tags import answered_call, call_ids


def unanswered(messages: Sequence[ChatMessage]) -> dict[str, int]:
    """Return the calls that no later message of the list answers, with the places of the calls.

    A call id that is used again is answered by what follows its last use.
    """
    asked: dict[str, int] = {}
    for at, one in enumerate(messages):
        for call in call_ids(one):
            asked[call] = at
        answer = answered_call(one)
        if answer is not None:
            asked.pop(answer, None)
    return asked


def alone(messages: Sequence[ChatMessage]) -> list[int]:
    """Return the places of the results whose call is not in the list before them."""
    asked: set[str] = set()
    found = []
    for at, one in enumerate(messages):
        asked.update(call_ids(one))
        answer = answered_call(one)
        if answer is not None and answer not in asked:
            found.append(at)
    return found


def pending(messages: Sequence[ChatMessage]) -> int:
    """Return where the calls that still wait for results may be: the last message but for results."""
    for at in range(len(messages) - 1, -1, -1):
        if answered_call(messages[at]) is None:
            return at
    return -1


def repaired(
    messages: Sequence[ChatMessage], erased: Collection[str] = (), *, outside: Collection[int] = ()
) -> list[ChatMessage]:
    """Return the messages without the calls and results that are alone; those that stay, changed.

    Calls of the last message that are not in `erased` may still wait for their results, and stay.
    `outside` are places of results whose calls are known to stand before the list. A message of
    which nothing is left but thoughts is left out.
    """
    gone: dict[int, set[str]] = {}
    last = pending(messages)
    for call, at in unanswered(messages).items():
        if at != last or call in erased:
            gone.setdefault(at, set()).add(call)
    drop = set(alone(messages)) - set(outside)
    if not gone and not drop:
        return list(messages)
    return list(_without(messages, gone, drop))


def _without(
    messages: Sequence[ChatMessage], gone: dict[int, set[str]], drop: set[int]
) -> Iterator[ChatMessage]:
    for at, one in enumerate(messages):
        if at in drop:
            continue
        if at not in gone or _uncalled(one, gone[at]):
            yield one


def _uncalled(message: ChatMessage, gone: set[str]) -> bool:
    """Take calls out of a message; return whether it still says or calls anything."""
    message.blocks = [
        one
        for one in message.blocks
        if not (isinstance(one, ToolCallBlock) and str(one.tool_call_id) in gone)
    ]
    calls = message.additional_kwargs.get("tool_calls")
    if calls:
        left = [one for one in calls if _id(one) not in gone]
        message.additional_kwargs.pop("tool_calls")
        if left:
            message.additional_kwargs["tool_calls"] = left
    return bool(call_ids(message)) or any(map(_says, message.blocks))


def _id(call: Any) -> str:
    if isinstance(call, dict):
        return str(call.get("id"))
    return str(getattr(call, "id", None) or getattr(call, "tool_id", None))


def _says(block: Any) -> bool:
    if isinstance(block, TextBlock):
        return bool(block.text.strip())
    return not isinstance(block, ThinkingBlock)


def caller_of(messages: Sequence[ChatMessage], start: int, *, complete: bool = True) -> int | None:
    """Return `start`, or the place of the call where a tool's result stands there.

    None where that is before the list, which is not `complete`.
    """
    at = start
    while 0 < at < len(messages) and answered_call(messages[at]) is not None:
        at -= 1
    alone_there = at < len(messages) and answered_call(messages[at]) is not None
    return None if alone_there and not complete else at


def opens_wrongly(message: ChatMessage) -> bool:
    """Return whether a list must not begin with this message: an answer, to nothing in it."""
    return message.role in (MessageRole.TOOL, MessageRole.ASSISTANT)
