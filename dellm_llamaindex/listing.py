"""Setting a session to a whole list of messages: what stays, what goes out of it, what is new."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from pydantic import BaseModel

from . import origins
from .scopes import Scope
from .sessions import Session, Window
from .tags import digest_of, tag_of


def set_list(session: Session, messages: Sequence[ChatMessage], scope: Scope | None) -> None:
    """Let a session hold these messages, in one transaction.

    The longest beginning that the list and the session share stays as it is. All that follows in
    the session is dropped from it, which is not forgetting: what was made from it still depends on
    it. All that follows in the list is added, with what each message was made from: one that is a
    record is made from that; a reply or a tool's result that nobody saw made, from all before it.
    """
    here = session.window()
    same = _shared(here, messages)
    stays = here.records[:same]
    rest = list(messages[same:])
    if not rest and same == len(here.records):
        return
    said = origins.sayings(session.memory, rest, session.draft, scope=scope, before=stays)
    session.kept.add(session.name, said, only=stays)
    origins.settle(session.memory, said, scope=scope)


def _shared(here: Window, messages: Sequence[ChatMessage]) -> int:
    """Return how many messages at the beginning of a list say what those of the session say.

    What a message says counts, not the record it was: one object may stand in a list twice.
    """
    for at, (message, mine) in enumerate(zip(messages, here.messages, strict=False)):
        known = tag_of(mine)
        if known is None or known.digest != digest_of(message) or not _alike(message, mine):
            return at
    return min(len(messages), len(here.messages))


def _alike(one: ChatMessage, other: ChatMessage) -> bool:
    """Return whether a provider added the same to two messages; one may have been JSON meanwhile."""
    ours, theirs = one.additional_kwargs, other.additional_kwargs
    return ours == theirs or _written(ours) == _written(theirs)


def _written(kwargs: dict[str, Any]) -> str:
    return json.dumps(kwargs, default=_fields, skipkeys=True, sort_keys=True)


def _fields(value: object) -> object:
    return value.model_dump() if isinstance(value, BaseModel) else str(value)


def reset(session: Session) -> None:
    """Drop all of a session's messages from it; see Conversations.hide."""
    session.kept.hide(session.name)
