"""Adopting the chat histories of another tool: each session becomes the thread of its name.

Each message is a transaction of its own and has an id that is the same at every run, so what is
there already is found, and what was erased is refused: an adoption can be broken off and repeated.

Nobody saw the prompts, so contexts are inferred: a reply depends on all that came before it in its
session, a tool's result on the message that called the tool; what a user gave depends on nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from .adopt_tables import Histories, Key, Row
from .errors import ContextForgotten, InvalidInput
from .memory import Memory
from .records import Draft, Record, Status

Tick = Callable[[int, int], None]
Outcome = Literal["known", "written", "refused", "broken"]
ERASED = 0  # stands for the record of a message that was refused
INFERRED = "inferred"  # metadata of a record whose context is a guess


@dataclass(frozen=True, slots=True)
class Told:
    """What a message says, and what it tells of where it came from.

    `given`: from outside, not made from what was said before. `calls` are the ids of the tool calls
    that it makes; `answers` is the one whose result it is. `archived`: its session no longer shows it.
    The draft has a framework id.
    """

    draft: Draft = field(repr=False)
    given: bool = False
    calls: Sequence[str] = ()
    answers: str | None = None
    made_at: datetime | int | None = None
    archived: bool = False


class Session:
    """The adoption of one session into a thread. `held`: its records by the framework's id."""

    def __init__(self, memory: Memory, thread: str) -> None:
        self.memory = memory
        self.thread = thread
        self.held: dict[str | None, Record] = {
            one.framework_id: one for one in memory.history(thread)
        }
        self._before: list[int] = []
        self._callers: dict[str, int] = {}
        self._archived: list[int] = []
        self._lost = False

    def take(self, told: Told | None) -> Outcome:
        """Store the next message, unless it is there, was erased, or is None; say which it was."""
        if told is None:
            return "broken"
        outcome, id_ = self._stored(told)
        self._lost = self._lost or id_ == ERASED
        self._before.append(id_)
        self._callers.update(dict.fromkeys(told.calls, id_))
        if told.archived and id_ != ERASED:
            self._archived.append(id_)
        return outcome

    def end(self) -> None:
        """Archive what was archived, when all of the session was taken."""
        if self._archived:
            self.memory.conversations.hide(self.thread, self._archived, archive=True)

    def _stored(self, told: Told) -> tuple[Outcome, int]:
        """Return what became of a message, and its record."""
        draft = told.draft
        if (held := self.held.get(draft.framework_id)) is not None:
            return "known", held.id
        parents = self._parents(told)
        if parents is None:
            return "refused", ERASED
        inferred = {} if told.given else {INFERRED: True}
        try:
            record = self.memory.record(
                draft.text,
                context=parents,
                role=draft.role,
                thread=draft.thread,
                kind=draft.kind,
                framework_id=draft.framework_id,
                payload=draft.payload,
                metadata={**(draft.metadata or {}), **inferred},
                created_at=told.made_at,
            )
        except ContextForgotten:
            return "refused", ERASED
        except InvalidInput:  # it cannot be kept as it is
            return "broken", ERASED
        # A suppressed record is there, and nothing may be made from it.
        return ("written", record.id) if record.status is Status.ACTIVE else ("refused", ERASED)

    def _parents(self, told: Told) -> Sequence[int] | None:
        """Return the records a message was made from; None where one of them was erased."""
        if told.given:
            return ()
        if told.answers is not None and told.answers in self._callers:
            caller = self._callers[told.answers]
            return None if caller == ERASED else (caller,)
        return None if self._lost else self._before


def adopt_messages(
    histories: Histories,
    memory: Memory,
    read: Callable[[Session], Callable[[Row], Told | None]],
    *,
    name: Callable[[Key], str | None],
    threads: Collection[str] = (),
    progress: Tick | None = None,
) -> dict[str, int | list[str]]:
    """Read the sessions of another tool into a workspace; only `threads`, if any are given.

    `read` gives, for each session, what tells of a row what is to be kept: None where it holds no
    message. `name` gives the thread of a session, None for one that has no name. Returns the numbers
    of threads and messages that were seen, of the messages that were written and of those that were
    refused (they were erased before, or made from what was), and the ids of their rows and of the
    rows that hold no message. Raises InvalidInput, StorageError.
    """
    kinds: Counter[Outcome] = Counter()
    rows: dict[Outcome, list[str]] = {"refused": [], "broken": []}
    names: set[str] = set()
    wanted = _wanted(histories, name, threads)
    total = sum(wanted.values())
    for session, ids in histories.sessions():
        if session not in wanted:
            continue
        thread = name(session)
        names.update(() if thread is None else (thread,))
        adopted = None if thread is None else Session(memory, thread)
        told = None if adopted is None else read(adopted)
        for row in histories.rows(ids):
            outcome: Outcome = "broken"
            if adopted is not None and told is not None:
                outcome = adopted.take(told(row))
            kinds[outcome] += 1
            if outcome in rows:
                rows[outcome].append(str(row.id))
            if progress is not None:
                progress(kinds.total(), total)
        if adopted is not None:
            adopted.end()
    return {
        "threads": len(names),
        "messages": kinds.total(),
        "written messages": kinds["written"],
        "refused messages": kinds["refused"],
        "refused rows": rows["refused"],
        "broken rows": rows["broken"],
    }


def _wanted(
    histories: Histories, name: Callable[[Key], str | None], threads: Collection[str]
) -> dict[Key, int]:
    """Return the sessions that are to be read, and how many messages each has."""
    sizes = histories.sizes()
    if not threads:
        return sizes
    chosen = {session: size for session, size in sizes.items() if name(session) in threads}
    if missing := len(set(threads)) - len(chosen):
        raise InvalidInput(f"The source does not have {missing} of the threads named.")
    return chosen
