"""`dellm adopt langchain`: stock chat message histories, read into a memory that can forget.

Each session becomes the thread of its name. Each message is a transaction of its own and gets an id
that is the same at every run, so what is there already is found, and what was erased is refused.

Nobody saw the prompts, so contexts are inferred: a reply depends on all that came before it in its
session, a tool's result on the message that called the tool; what a user gave depends on nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import count
from typing import Literal

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

from dellm import ContextForgotten, Draft, InvalidInput, Memory, Status

from .addresses import thread_name
from .adopt_histories_sources import Histories, Key, Row, open_histories
from .adopt_inferring import INFERRED, from_a_user
from .messages import draft_of

Tick = Callable[[int, int], None]
Outcome = Literal["known", "written", "refused", "broken"]
GIVERS = frozenset({"user", "human", "system", "developer"})  # roles of a ChatMessage
ERASED = 0  # stands for the record of a message that was refused


def adopt(
    source: str,
    memory: Memory,
    *,
    threads: Collection[str] = (),
    table: str | None = None,
    session_column: str = "session_id",
    serde: SerializerProtocol | None = None,
    progress: Tick | None = None,
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
    kinds: Counter[Outcome] = Counter()
    rows: dict[Outcome, list[str]] = {"refused": [], "broken": []}
    names: set[str] = set()
    serde = serde or JsonPlusSerializer()
    with open_histories(source, table, session_column) as histories:
        wanted = _wanted(histories, threads)
        total = sum(wanted.values())
        for session, ids in histories.sessions():
            if session not in wanted:
                continue
            name = _name(session)
            if name is not None:
                names.add(name)
            adopted = None if name is None else Session(memory, name, histories.table, serde)
            for row in histories.rows(ids):
                outcome: Outcome = "broken" if adopted is None else adopted.take(row)
                kinds[outcome] += 1
                if outcome in rows:
                    rows[outcome].append(str(row.id))
                if progress is not None:
                    progress(kinds.total(), total)
    return {
        "threads": len(names),
        "messages": kinds.total(),
        "written messages": kinds["written"],
        "refused messages": kinds["refused"],
        "refused rows": rows["refused"],
        "broken rows": rows["broken"],
    }


def _wanted(histories: Histories, threads: Collection[str]) -> dict[Key, int]:
    """Return the sessions that are to be read, and how many messages each has."""
    sizes = histories.sizes()
    if not threads:
        return sizes
    chosen = {session: size for session, size in sizes.items() if _name(session) in threads}
    if missing := len(set(threads)) - len(chosen):
        raise InvalidInput(f"The source does not have {missing} of the threads named.")
    return chosen


def _name(session: Key) -> str | None:
    """Return the thread of a session; None for one that has no name."""
    try:
        return thread_name(session)
    except InvalidInput:
        return None


class Session:
    """The adoption of one session of a history into the thread of its name."""

    def __init__(self, memory: Memory, thread: str, table: str, serde: SerializerProtocol) -> None:
        self._memory = memory
        self._thread = thread
        self._table = table
        self._serde = serde
        self._held = {one.framework_id: one for one in memory.history(thread)}
        self._named: set[str] = set()
        self._before: list[int] = []
        self._callers: dict[str, int] = {}
        self._lost = False

    def take(self, row: Row) -> Outcome:
        """Store a message, unless it is there, was erased, or cannot be read; say which it was."""
        message = message_of(row)
        if message is None:
            return "broken"
        outcome, id_ = self._stored(message, self._draft(message, row), row)
        self._lost = self._lost or id_ == ERASED
        self._before.append(id_)
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            self._callers[call["id"] or ""] = id_
        return outcome

    def _draft(self, message: BaseMessage, row: Row) -> Draft:
        """Return what a message is stored as, under an id that no other of the session has.

        What has an id of its own may be in several rows, and may have been changed since it was read.
        """
        own = message.id
        name = own if own and own not in self._named else self._name_of(row)
        self._named.add(name)
        for number in count(1):
            message.id = name if number == 1 else f"{name}.{number}"
            draft = draft_of(message, self._thread, self._serde)
            held = self._held.get(message.id)
            if held is None or (held.text, held.payload) == (draft.text, draft.payload):
                break
        return draft

    def _name_of(self, row: Row) -> str:
        """Return an id for what a row holds: other rows and other contents have others.

        The digest is keyed, so that it says nothing of what was erased.
        """
        said = json.dumps(json.loads(_text(row)), sort_keys=True)
        return f"{self._table}:{row.id}:{self._memory.items.digest([said])[:32]}"

    def _stored(self, message: BaseMessage, draft: Draft, row: Row) -> tuple[Outcome, int]:
        """Return what became of a message, and its record."""
        if (held := self._held.get(draft.framework_id)) is not None:
            return "known", held.id
        parents = self._parents(message)
        if parents is None:
            return "refused", ERASED
        inferred = {} if given(message) else {INFERRED: True}
        try:
            record = self._memory.record(
                draft.text,
                context=parents,
                role=draft.role,
                thread=draft.thread,
                kind=draft.kind,
                framework_id=draft.framework_id,
                payload=draft.payload,
                metadata={**(draft.metadata or {}), **inferred},
                created_at=row.made_at,
            )
        except ContextForgotten:
            return "refused", ERASED
        except InvalidInput:  # it cannot be kept as it is
            return "broken", ERASED
        # A suppressed record is there, and nothing may be made from it.
        return ("written", record.id) if record.status is Status.ACTIVE else ("refused", ERASED)

    def _parents(self, message: BaseMessage) -> Sequence[int] | None:
        """Return the records a message was made from; None where one of them was erased."""
        if given(message):
            return ()
        if isinstance(message, ToolMessage) and message.tool_call_id in self._callers:
            caller = self._callers[message.tool_call_id]
            return None if caller == ERASED else (caller,)
        return None if self._lost else self._before


def given(message: BaseMessage) -> bool:
    """Whether a message came from outside, and was not made from those before it."""
    if isinstance(message, ChatMessage):
        return message.role in GIVERS
    return isinstance(message, RemoveMessage) or from_a_user(message)


def message_of(row: Row) -> BaseMessage | None:
    """Return the message that a row holds; None where it holds none that can be read."""
    try:
        [message] = messages_from_dict([json.loads(_text(row))])
    except Exception:  # noqa: BLE001 - whatever is wrong with a row, the others are read
        return None
    return message


def _text(row: Row) -> bytes:
    stored = row.message
    # A text that never was UTF-8 cannot be encoded.
    return stored.encode() if isinstance(stored, str) else stored or b""
