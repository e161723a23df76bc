"""Setting a session to a whole list of messages: what stays, what goes out of it, what is new."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage

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
    same = _shared(here, messages, session)
    stays = here.records[:same]
    rest = list(messages[same:])
    if not rest and same == len(here.records):
        return
    said = origins.sayings(session.memory, rest, session.draft, scope=scope, before=stays)
    session.kept.add(session.name, said, only=stays)
    origins.settle(session.memory, said, scope=scope)


def _shared(here: Window, messages: Sequence[ChatMessage], session: Session) -> int:
    """Return how many messages at the beginning of a list are those of the session."""
    for at, (message, mine, record) in enumerate(
        zip(messages, here.messages, here.records, strict=False)
    ):
        said, stored = tag_of(message), tag_of(mine)
        digest = digest_of(message)
        known = said is not None and said.owner == session.owner and said.digest == digest
        if known and said is not None and said.record != record:
            return at
        if stored is None or stored.digest != digest:
            return at
    return min(len(messages), len(here.messages))


def reset(session: Session) -> None:
    """Drop all of a session's messages from it; see Conversations.hide."""
    session.kept.hide(session.name)
