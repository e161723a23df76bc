"""Checkpoints: the verbs by which agent frameworks keep the states of their graphs here.

Framework-neutral: an adapter takes values apart into cells and puts them together again. Each verb
is one transaction. Reached as `memory.checkpoints`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from . import copying, discarding, restoring
from .arguments import (
    check_callable,
    check_iterable,
    check_kind,
    check_text,
    check_whole,
    texts,
    whole_numbers,
)
from .bodies import pack_id
from .cells import Place
from .checkpoint_drafts import Checkpoint, TaskWrite
from .checkpointing import Writing
from .desk import open_desk
from .engine import Engine
from .errors import InvalidInput
from .receipts import Receipt
from .restoring import Have, Loaded, Reading
from .run_writes import RunWrites
from .settling import successor, usable
from .storing import check_thread


@dataclass(frozen=True, slots=True)
class Written:
    """What a write left: the workspace's generation, and whether anything was refused.

    `inexact` counts the records it stored whose parents may be more than what they were made from.
    """

    generation: int
    refused: bool = False
    inexact: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """Records that are no more, each with the one that redaction put in its place, or 0."""

    generation: int
    gone: dict[int, int]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Checkpoints of one moment: the workspace's generation and newest ledger entry then."""

    generation: int
    head: int
    loaded: list[Loaded]


class Checkpoints:
    """The checkpoints of one workspace. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.checkpoints instead."""
        self._engine = engine
        self.workspace = workspace
        self._runs = RunWrites(engine, workspace)

    # writing

    def put(self, new: Checkpoint, trusted: int) -> Written:
        """Store a checkpoint; `trusted` is the generation of which the caller's record ids are.

        Raises InvalidInput, StorageError. A checkpoint of a deleted thread is refused.
        """
        check_kind(new, Checkpoint, "new=")
        check_whole(trusted, "trusted=")
        _check_place(new.place)
        with self._runs.open(new.place.thread, trusted) as writing:
            if discarding.is_late(writing, new.place, new.parent, new.body.metadata):
                return Written(writing.generation, refused=True)
            writing.put(new)
            return Written(writing.generation, new.body.tainted, writing.inexact)

    def put_writes(
        self, place: Place, task: str, path: str, new: Sequence[TaskWrite], trusted: int
    ) -> Written:
        """Store what a task wrote at a checkpoint. Raises InvalidInput, StorageError."""
        _check_place(place)
        check_text(task, "task=")
        check_text(path, "path=")
        check_iterable(new, "new=")
        for one in new:
            check_kind(one, TaskWrite, "A write of new=")
        check_whole(trusted, "trusted=")
        with self._runs.open(place.thread, trusted) as writing:
            if discarding.is_late_write(writing, place):
                return Written(writing.generation, refused=True)
            writing.put_writes(place, task, path, new)
            return Written(writing.generation, inexact=writing.inexact)

    # reading

    def get(self, thread: str, ns: str, cid: str | None, have: Have) -> Snapshot:
        """Return a checkpoint, or a line's newest; `have` are the records the caller still has."""
        _check_where(thread, ns, cid, have)
        with self._reading(have) as reading:
            key = reading.newest(thread, ns) if cid is None else pack_id(cid)
            found = None if key is None else reading.load(thread, ns, key)
            return Snapshot(reading.generation, reading.head, [found] if found else [])

    def page(
        self,
        thread: str | None,
        ns: str | None,
        have: Have,
        *,
        before: str | None = None,
        after: tuple[str, str, str] | None = None,
        limit: int = 20,
    ) -> Snapshot:
        """Return the next checkpoints, newest first in each line, after the one given.

        Raises InvalidInput for a negative limit, StorageError.
        """
        _check_where("" if thread is None else thread, "" if ns is None else ns, before, have)
        if after is not None and (type(after) is not tuple or len(after) != 3):
            raise InvalidInput("after= is no thread, namespace and id of a checkpoint.")
        _check_place(Place(*after or ("", "", "")))
        check_whole(limit, "limit=")
        if limit < 0:
            raise InvalidInput("limit= is negative.")
        with self._reading(have) as reading:
            found = [
                one
                for at in discarding.addresses(reading, thread, ns, before, after, limit)
                if (one := reading.load(at[0], at[1], at[2]))
            ]
            return Snapshot(reading.generation, reading.head, found)

    def ancestors(self, thread: str, ns: str, cid: str, have: Have) -> Iterator[Snapshot]:
        """Yield the parents of a checkpoint, nearest first, in one snapshot."""
        _check_where(thread, ns, cid, have)
        at: str | None = cid
        while at is not None:
            with self._reading(have) as reading:
                one = reading.load(thread, ns, pack_id(at))
                snapshot = Snapshot(reading.generation, reading.head, [one] if one else [])
            if one is not None and at != cid:
                yield snapshot
            at = None if one is None else one.parent

    @contextmanager
    def _reading(self, have: Have) -> Iterator[Reading]:
        engine = self._engine
        with engine.reading(self.workspace) as (tx, scope):
            yield restoring.open_reading(
                tx,
                scope,
                lambda generation: self._runs.names.open(tx, scope, generation),
                engine.options.clock(),
                self._runs.kept,
                self._runs.lists,
                have,
            )

    def generation(self) -> int:
        """Return the workspace's generation: it moves whenever something is erased or comes back."""
        with self._engine.reading(self.workspace) as (tx, scope):
            row = tx.one("select generation from workspace where ws = :ws", ws=scope.ws)
        return 0 if row is None else int(row[0])

    def exists(self, place: Place) -> bool:
        """Whether the checkpoint is stored."""
        _check_place(place)
        with self._reading(_nothing) as reading:
            line = reading.naming.find_line((place.thread, place.ns))
            return line is not None and reading.row(line, pack_id(place.cid)) is not None

    def standing(self, ids: Collection[int]) -> Standing:
        """Return which of the records are no more, and of which generation that is said."""
        ids = whole_numbers(ids, "ids=")
        with self._reading(_nothing) as reading:
            missing = set(ids) - usable(reading.tx, reading.scope.ws, ids)
            stands = {
                one: successor(reading.tx, reading.scope.ws, one) or 0 for one in sorted(missing)
            }
            return Standing(reading.generation, stands)

    def erased_calls(self, thread: str, calls: Collection[str]) -> set[str]:
        """Return those of a thread's tool calls whose result was erased, or may not be used now."""
        check_text(thread, "thread=")
        calls = texts(calls, "calls=")
        with self._engine.reading(self.workspace) as (tx, scope):
            at = self._engine.options.clock()
            return restoring.erased_calls(tx, scope, thread, calls, at)

    def threads(self) -> list[str]:
        """Return the threads that have a checkpoint, by name."""
        with self._reading(_nothing) as reading:
            return discarding.threads(reading)

    # discarding

    def delete_thread(self, thread: str) -> Receipt | None:
        """Delete a thread's checkpoints and writes, and erase its records; late writes are refused.

        What other threads made of them stays, tied to what survives. Returns the receipt, None
        when the thread held no record.
        """
        check_text(thread, "thread=")
        return self._discard(lambda work: discarding.delete_thread(work, thread), thread)

    def delete_runs(self, runs: Sequence[str]) -> None:
        """Delete the checkpoints of runs, and the records that nothing holds any more."""
        runs = texts(runs, "runs=")
        self._discard(lambda work: discarding.delete_runs(work, runs))

    def keep_newest(self, threads: Sequence[str]) -> None:
        """Delete all but the newest checkpoint of each line; messages stay as memory."""
        threads = texts(threads, "threads=")
        self._discard(lambda work: discarding.keep_newest(work, threads))

    def copy_thread(self, source: str, target: str) -> None:
        """Copy a thread's checkpoints, writes and records; a forget reaches both from then on."""
        check_text(source, "source=")
        check_text(target, "target=")
        check_thread(target)
        self._discard(lambda work: copying.copy_thread(work, source, target), target)

    def _discard(
        self, act: Callable[[discarding.Work], Receipt | None], thread: str = ""
    ) -> Receipt | None:
        engine = self._engine
        with engine.writing(self.workspace, durable=True) as (tx, scope):
            at = engine.options.clock()
            desk, generation = open_desk(tx, scope, at, thread, engine.tips, -1)
            naming = self._runs.names.open(tx, scope, generation)
            writing = Writing(tx, scope, naming, generation, desk, self._runs.kept)
            receipt = act(discarding.Work(writing, engine.database.out_of_reach(), engine.options))
        self._runs.kept.clear()
        return receipt


def _check_place(place: Place) -> None:
    check_kind(place, Place, "place=")
    for name in ("thread", "ns", "cid"):
        check_text(getattr(place, name), f"{name}=")


def _check_where(thread: str, ns: str, cid: str | None, have: Have) -> None:
    check_text(thread, "thread=")
    check_text(ns, "ns=")
    if cid is not None:
        check_text(cid, "cid=")
    check_callable(have, "have=")


def _nothing(_generation: int) -> Collection[int]:
    return ()
