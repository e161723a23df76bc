"""One workspace as a saver sees it: reading checkpoints, and the objects of its threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, cast

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.checkpoint.base import (
    Checkpoint,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import Loaded, Memory, Place, Snapshot, StoredWrite

from .addresses import OTHERS, START, Address, LoadedId
from .capture import captured
from .channels import Channels
from .giving import ABSENT, Giving, Reader, Shelf
from .handed import handed
from .objects import Objects, Threads

PAGE = 20  # checkpoints that a listing reads at a time
PLACED = 4_096  # checkpoints known to be stored


class Workspace:
    """A workspace's checkpoints for one saver. Thread-safe."""

    def __init__(self, memory: Memory, serde: SerializerProtocol, channels: Channels) -> None:
        self.memory = memory
        self.checkpoints = memory.checkpoints
        self.serde = serde
        self.channels = channels
        self.inexact = 0
        self._shelf = Shelf(serde)
        self._threads = Threads()
        self._placed: OrderedDict[Place, int] = OrderedDict()
        self._generation = -1
        self._under_way: dict[Place, int] = {}
        self._guard = threading.Lock()
        handed.ask(self)

    # what is known of a thread

    def objects(self, thread: str) -> tuple[Objects, threading.RLock]:
        """Return a thread's objects, and the lock under which they are used."""
        return self._threads.of(self.memory.id, thread)

    def known(self, message: BaseMessage) -> int | None:
        """Return the record of a message object in any thread, None where it is not known.

        Without the threads' locks, which who asks may hold one of: what is written just now may be
        missed, and what was erased is found.
        """
        for one in self._threads.every(self.memory.id):
            with suppress(IndexError):  # its list grows just now
                if (found := one.find(message)) is not None:
                    return found
        return None

    def refresh(self, objects: Objects) -> None:
        """Take note in a thread's objects of what was erased since they were used last."""
        if objects.generation == self._generation and self._generation >= 0:
            return
        ids = objects.ids()
        if not ids and not objects.redacted:
            objects.generation = self._generation
            return
        standing = self.checkpoints.standing(ids)
        objects.refresh(standing.generation, standing.gone)
        self._generation = standing.generation

    def learned(self, generation: int) -> None:
        """Take note of the workspace's generation, and let go of what is kept too long."""
        self._generation = generation
        self._threads.trim()

    def ready_for_writes(self, address: Address) -> bool:
        """Whether the addressed checkpoint is stored, and that of the graph around it."""
        return self.placed(address.place) and self.placed(address.outer({}))

    def ready_for(self, address: Address) -> bool:
        """Whether all that came before the next checkpoint is stored.

        That are the writes of its tasks, and where it is a subgraph's the checkpoint around it.
        """
        place = address.place
        return place not in self._under_way and (
            place is not None or self.placed(address.outer({}))
        )

    def placed(self, place: Place | None) -> bool:
        """Whether a checkpoint is stored; also where there is none to be stored."""
        if place is None or not place.cid or place in self._placed:
            return True
        if self.checkpoints.exists(place):
            self.note_placed(place)
            return True
        return False

    def placed_at(self, place: Place | None) -> int:
        """Return the moment at which a checkpoint was stored or read last, 0 if that is not known."""
        return 0 if place is None else self._placed.get(place, 0)

    @property
    def owner(self) -> tuple[int, str]:
        """What tells the calls of this memory and workspace from those of any other."""
        return self.memory.identity, self.memory.id

    @contextmanager
    def writing(self, place: Place | None) -> Iterator[None]:
        """Count a task's write at a checkpoint as under way."""
        if place is not None:
            with self._guard:
                self._under_way[place] = self._under_way.get(place, 0) + 1
        try:
            yield
        finally:
            if place is not None:
                with self._guard:
                    self._under_way[place] -= 1
                    if not self._under_way[place]:
                        del self._under_way[place]

    def note_placed(self, place: Place) -> None:
        """Keep that a checkpoint is stored, and read or written now."""
        with self._guard:
            self._placed[place] = captured.now()
            while len(self._placed) > PLACED:
                self._placed.popitem(last=False)

    # reading

    def get(self, address: Address) -> CheckpointTuple | None:
        """Return the addressed checkpoint, or the newest of its line."""
        cid = None if address.cid is None else str(address.cid)
        objects, lock = self.objects(address.thread)
        with lock:
            reader, snapshot = self._snapshot(address, cid, objects)
            if not snapshot.loaded:
                return None
            self.note_placed(snapshot.loaded[0].place)
            return self._tuple(reader, snapshot, snapshot.loaded[0], address, objects)

    def _snapshot(
        self, address: Address, cid: str | None, objects: Objects
    ) -> tuple[Reader, Snapshot]:
        """Return a checkpoint as of a generation that the thread's objects are of as well."""
        while True:
            reader = self._shelf.read()
            snapshot = self.checkpoints.get(address.thread, address.ns or "", cid, reader.have)
            if objects.generation != snapshot.generation:
                self.learned(snapshot.generation)
                self.refresh(objects)
            # -1: nothing there is taken on trust. Any other: something was erased just now.
            if objects.generation in {snapshot.generation, -1}:
                return reader, snapshot

    def walk(
        self, address: Address | None, before: str | None, wanted: Mapping[str, Any]
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread, or of all, newest first."""
        if address is not None and address.cid is not None and address.ns is not None:
            one = self.get(address)
            if one is not None and _matches(one, wanted):
                yield one
            return
        after: tuple[str, str, str] | None = None
        more = True
        while more:
            reader = self._shelf.read()
            snapshot = self.checkpoints.page(
                None if address is None else address.thread,
                None if address is None else address.ns,
                reader.have,
                before=before,
                after=after,
                limit=PAGE,
            )
            more = len(snapshot.loaded) == PAGE
            for loaded in snapshot.loaded:
                if self.checkpoints.generation() != snapshot.generation:
                    more = True  # something was erased since: what is left is read again
                    break
                place = loaded.place
                after = (place.thread, place.ns, place.cid)
                at = address or Address(place.thread, place.ns, None, {})
                if address is None or address.cid in {None, place.cid}:
                    found = self._tuple(reader, snapshot, loaded, at, None)
                    if _matches(found, wanted):
                        yield found

    def _tuple(
        self,
        reader: Reader,
        snapshot: Snapshot,
        loaded: Loaded,
        address: Address,
        objects: Objects | None,
    ) -> CheckpointTuple:
        answered: set[str] = set()  # calls whose results are yet to be applied
        giving = self._giving(reader, snapshot, loaded, objects, answered)
        writes = self._writes(loaded, giving)
        for write in writes:
            answered |= _answers(write[2])
        place = loaded.place
        return CheckpointTuple(
            address.config(place.ns, LoadedId(place.cid, snapshot.head, snapshot.generation)),
            self._checkpoint(snapshot, loaded, giving),
            self._metadata(loaded, giving),
            None if loaded.parent is None else address.config(place.ns, loaded.parent),
            writes,
        )

    def _giving(
        self,
        reader: Reader,
        snapshot: Snapshot,
        loaded: Loaded,
        objects: Objects | None,
        answered: Collection[str] = (),
    ) -> Giving:
        records = reader.take(loaded.records)
        # Nothing was ever erased in a workspace without a ledger entry.
        thread = loaded.place.thread
        erased = partial(self._erased_calls, thread, answered) if snapshot.head else None
        mended = partial(self._note_mended, thread, snapshot.generation)
        return Giving(loaded, records, self.serde, erased, objects, mended)

    def _erased_calls(
        self, thread: str, answered: Collection[str], calls: Sequence[str]
    ) -> set[str]:
        """Return the calls whose result was erased, less those that were answered all the same."""
        return self.checkpoints.erased_calls(thread, [one for one in calls if one not in answered])

    def _note_mended(self, thread: str, generation: int, message: BaseMessage, id_: int) -> None:
        """Keep what a mended message is a copy of: a run that began with it may store it."""
        objects, lock = self.objects(thread)
        with lock:
            objects.note_derived(message, id_)
            if objects.generation != generation:
                objects.generation = -1  # so that the record is looked up before it is used

    def _checkpoint(self, snapshot: Snapshot, loaded: Loaded, giving: Giving) -> Checkpoint:
        body = loaded.body
        given = {name: giving.value(cell) for name, cell in body.cells.items()}
        values = {name: value for name, value in given.items() if value is not ABSENT}
        if START in values:
            self.channels.fill_input(values[START], body.cells[START])
        lost = loaded.lost | (given.keys() - values.keys())
        self.channels.filled(values, lost, loaded.gone | lost)
        made: dict[str, Any] = dict(
            v=body.v,
            ts=body.ts,
            id=LoadedId(loaded.place.cid, snapshot.head, snapshot.generation),
            channel_values=values,
            channel_versions=dict(body.versions),
            versions_seen={node: dict(seen) for node, seen in body.seen.items()},
            updated_channels=None if body.updated is None else list(body.updated),
            **self._others(loaded, giving),
        )
        return cast("Checkpoint", made)

    def _others(self, loaded: Loaded, giving: Giving) -> Mapping[str, Any]:
        """Return the keys of other versions that the checkpoint had."""
        said = giving.value(loaded.body.settings) if loaded.body.settings else ABSENT
        more = said.get(OTHERS, {}) if isinstance(said, dict) else {}
        return {**loaded.body.others, **more}

    def _metadata(self, loaded: Loaded, giving: Giving) -> Any:
        found = dict(loaded.body.metadata)
        if loaded.body.settings:
            said = giving.value(loaded.body.settings)
            if said is not ABSENT:
                found.update(said)
        found.pop(OTHERS, None)
        return found

    def _writes(self, loaded: Loaded, giving: Giving) -> list[PendingWrite]:
        found: list[PendingWrite] = []
        for one in sorted(loaded.writes, key=lambda one: (one.path, one.task, one.at)):
            value = self._written(one, giving)
            if value is not ABSENT:
                found.append((one.task, one.channel, value))
        return found

    def _written(self, one: StoredWrite, giving: Giving) -> Any:
        value = giving.value(one.cell)
        # A list of which nothing is left is a write that never was; an empty one is kept.
        emptied = type(value) is list and not value and _held_something(one.cell)
        return ABSENT if emptied else value

    def delta_history(
        self, address: Address, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        """Return the writes of channels since their last stored value, oldest first, and it."""
        writes: dict[str, list[PendingWrite]] = {name: [] for name in channels}
        seeds: dict[str, Any] = {}
        answered: set[str] = set()  # calls whose results are in later writes
        left = set(channels)
        thread, ns = address.thread, address.ns or ""
        # Results that its tasks have written answer calls in what came before. Where nothing was ever
        # erased, which is generation 0, no call is without its result.
        clean = isinstance(address.cid, LoadedId) and address.cid.generation == 0
        start = None if clean else self.get(address)
        for write in (start.pending_writes or ()) if start is not None else ():
            answered |= _answers(write[2])
        cid = start.checkpoint["id"] if start is not None else address.cid
        reader = self._shelf.read()
        above = () if cid is None else self.checkpoints.ancestors(
            thread, ns, str(cid), reader.have
        )  # fmt: skip
        for snapshot in above:
            loaded = snapshot.loaded[0]
            giving = self._giving(reader, snapshot, loaded, None, answered)
            for write in reversed(self._writes(loaded, giving)):
                if write[1] in left:
                    writes[write[1]].append(write)
                    answered |= _answers(write[2])
            for name in sorted(left & loaded.body.cells.keys()):
                value = giving.value(loaded.body.cells[name])
                if value is not ABSENT:  # else its writes are read from the one before it
                    seeds[name] = value
                    left.discard(name)
            if not left:
                break
        return {
            name: DeltaChannelHistory(writes=list(reversed(found)), seed=seeds[name])
            if name in seeds
            else DeltaChannelHistory(writes=list(reversed(found)))
            for name, found in writes.items()
        }

    def delete_thread(self, thread: str) -> None:
        """Delete a thread, and forget what was known of its objects."""
        self.checkpoints.delete_thread(thread)
        with self._guard:
            self._placed.clear()


def _answers(value: Any) -> set[str]:
    listed = value if isinstance(value, list) else [value]
    return {one.tool_call_id for one in listed if isinstance(one, ToolMessage)}


def _held_something(cell: Any) -> bool:
    return isinstance(cell, list) and len(cell) > 1 and bool(cell[1])


def _matches(found: CheckpointTuple, wanted: Mapping[str, Any]) -> bool:
    absent = object()
    return all(found.metadata.get(key, absent) == value for key, value in wanted.items())
