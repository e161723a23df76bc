"""`dellm adopt langchain`: stock chat message histories, read into a memory that can forget.

Tables of SQLChatMessageHistory (langchain-community: a number, a session, the message as JSON text)
and of PostgresChatMessageHistory (langchain-postgres: the session a UUID, the message JSONB, when it
was made). Nobody saw the prompts: how contexts are inferred is said at dellm.adopt_messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import datetime
from itertools import count

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    RemoveMessage,
    ToolMessage,
    messages_from_dict,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from dellm import Draft, InvalidInput, Memory
from dellm.adapting import adopt_messages, adopt_tables

from .addresses import thread_name
from .adopt_inferring import from_a_user
from .messages import draft_of

GIVERS = frozenset({"user", "human", "system", "developer"})  # roles of a ChatMessage
USUAL = "message_store"  # the name that SQLChatMessageHistory gives its table


def adopt(
    source: str,
    memory: Memory,
    *,
    threads: Collection[str] = (),
    table: str | None = None,
    session_column: str = "session_id",
    serde: SerializerProtocol | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, int | list[str]]:
    """Read a table of SQLChatMessageHistory or PostgresChatMessageHistory into a workspace.

    `source` is a SQLite file's path or a URL; it is opened read-only. `threads`: only these sessions.
    `table`, `session_column`: where the messages are; see open_histories. `serde`: what the history
    that will read them is given. `progress(done, total)` counts messages. It can be broken off and
    repeated at any time. A message without an id gets one made of the table's name, the row's id and
    a digest of what the row holds: a table that was emptied counts its rows from one again.

    Returns the numbers of threads and messages that were seen, of the messages that were written and
    of those that were refused (they were erased before, or made from what was), and the ids of
    their rows and of the rows that hold no message. Raises InvalidInput, StorageError, UnsupportedHere.
    """
    serde = serde or JsonPlusSerializer()
    layout = adopt_tables.Layout(session_column, "message", USUAL, made_at="created_at")
    with adopt_tables.open_histories(source, table, layout) as histories:

        def read(session: adopt_messages.Session) -> Reading:
            return Reading(session, histories.table, serde)

        return adopt_messages.adopt_messages(
            histories, memory, read, name=_name, threads=threads, progress=progress
        )


def _name(session: adopt_tables.Key) -> str | None:
    """Return the thread of a session; None for one that has no name."""
    try:
        return thread_name(session)
    except InvalidInput:
        return None


class Reading:
    """Tells of the rows of one session what is to be kept."""

    def __init__(
        self, session: adopt_messages.Session, table: str, serde: SerializerProtocol
    ) -> None:
        self._session = session
        self._table = table
        self._serde = serde
        self._named: set[str] = set()

    def __call__(self, row: adopt_tables.Row) -> adopt_messages.Told | None:
        """Return what is to be kept of a row; None where it holds no message."""
        message = message_of(row)
        if message is None:
            return None
        calls = message.tool_calls if isinstance(message, AIMessage) else ()
        return adopt_messages.Told(
            self._draft(message, row),
            given=given(message),
            calls=[one["id"] or "" for one in calls],
            answers=message.tool_call_id if isinstance(message, ToolMessage) else None,
            made_at=row.made_at if isinstance(row.made_at, datetime) else None,
        )

    def _draft(self, message: BaseMessage, row: adopt_tables.Row) -> Draft:
        """Return what a message is stored as, under an id that no other of the session has.

        What has an id of its own may be in several rows, and may have been changed since it was read.
        """
        own = message.id
        name = own if own and own not in self._named else self._name_of(row)
        self._named.add(name)
        for number in count(1):
            message.id = name if number == 1 else f"{name}.{number}"
            draft = draft_of(message, self._session.thread, self._serde)
            held = self._session.held.get(message.id)
            if held is None or (held.text, held.payload) == (draft.text, draft.payload):
                break
        return draft

    def _name_of(self, row: adopt_tables.Row) -> str:
        """Return an id for what a row holds: other rows and other contents have others.

        The digest is keyed, so that it says nothing of what was erased.
        """
        said = json.dumps(json.loads(_text(row)), sort_keys=True)
        return f"{self._table}:{row.id}:{self._session.memory.items.digest([said])[:32]}"


def given(message: BaseMessage) -> bool:
    """Whether a message came from outside, and was not made from those before it."""
    if isinstance(message, ChatMessage):
        return message.role in GIVERS
    return isinstance(message, RemoveMessage) or from_a_user(message)


def message_of(row: adopt_tables.Row) -> BaseMessage | None:
    """Return the message that a row holds; None where it holds none that can be read."""
    try:
        [message] = messages_from_dict([json.loads(_text(row))])
    except Exception:  # noqa: BLE001 - whatever is wrong with a row, the others are read
        return None
    return message


def _text(row: adopt_tables.Row) -> bytes:
    stored = row.message
    # A text that never was UTF-8 cannot be encoded.
    return stored.encode() if isinstance(stored, str) else stored or b""
