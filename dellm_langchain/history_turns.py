"""What the runs of this process have read of memory: which run gave its model which records.

A chat history is asked for messages in one place of a run and given new ones in another, with
nothing to tie the two but the run around both. Here the second finds what the first has read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.messages import BaseMessage

from .calls import fingerprint, text_of

Owner = tuple[int, str]  # the memory and the workspace


class Named(NamedTuple):
    """The record that a message with an id stands for, and a number that its content gives."""

    record: int
    content: int | None


def content_number(content: Any) -> int | None:
    """Return a number that equal contents share in this process, None if there is none.

    Of blocks only the texts and their count are told: LangChain shows callbacks others than it sends.
    """
    if type(content) is str:
        return hash(content)
    return fingerprint((text_of(content), len(content)))


@dataclass(slots=True, eq=False)
class Turn:
    """One reading of memory in a run: the messages given, and the records they stand for, by name.

    `generation` is that of the workspace then, `ended` when the thread had last been ended.
    `copies` are the copies made of the list that was given: what a run has put behind the messages
    in them is its own input.
    """

    owner: Owner
    thread: str | None
    generation: int
    ended: int
    messages: Sequence[BaseMessage] = field(repr=False)
    named: Mapping[str, Named] = field(repr=False)
    copies: list[Given] = field(default_factory=list, repr=False)

    def added(self) -> list[BaseMessage]:
        """Return what a run has put behind the messages it was given: its own input."""
        size = len(self.messages)
        return next((one[size:] for one in self.copies if len(one) > size), [])


class Given(list[BaseMessage]):
    """The messages that a history gave; its turn knows the copies made of it."""

    turn: Turn | None = None

    def copy(self) -> Given:
        """Return a shallow copy, which the turn keeps until its run stores something."""
        made = Given(self)
        if self.turn is not None:
            self.turn.copies.append(made)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class Turns:
    """The turns of the runs of this process by run, the oldest dropped first. Thread-safe."""

    def __init__(self, *, runs: int = 4_096, messages: int = 200_000) -> None:
        self._most_runs, self._most = runs, messages
        self._by_run: OrderedDict[UUID, list[Turn]] = OrderedDict()
        self._held = 0
        self._guard = threading.Lock()

    def note(self, runs: Iterable[UUID], turn: Turn) -> None:
        """Keep what was read in a run, and so in all runs around it."""
        with self._guard:
            for run in runs:
                self._by_run.setdefault(run, []).append(turn)
                self._by_run.move_to_end(run)
                self._held += len(turn.messages)
            while len(self._by_run) > 1 and self._too_much():
                _, dropped = self._by_run.popitem(last=False)
                self._held -= sum(len(one.messages) for one in dropped)

    def _too_much(self) -> bool:
        return len(self._by_run) > self._most_runs or self._held > self._most

    def read_in(self, runs: Sequence[UUID], owner: Owner) -> list[Turn]:
        """Return all that the outermost of the runs has read of the owner, and so any in it."""
        with self._guard:
            return (
                [one for one in self._by_run.get(runs[0], ()) if one.owner == owner] if runs else []
            )

    def around(
        self, runs: Sequence[UUID], owner: Owner, thread: str | None
    ) -> tuple[UUID | None, list[Turn]]:
        """Return the run that a write to the thread belongs to, and all it has read of the owner.

        That is the innermost one that put something behind what it was given, which is one of
        RunnableWithMessageHistory; else the outermost that has read the thread; else None.
        """
        with self._guard:
            found = [
                (run, [one for one in self._by_run.get(run, ()) if one.owner == owner])
                for run in runs
            ]
        there = [pair for pair in found if any(one.thread == thread for one in pair[1])]
        copied = [pair for pair in there if any(one.copies for one in pair[1])]
        return copied[-1] if copied else there[0] if there else (None, [])


turns = Turns()
