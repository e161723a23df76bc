"""`dellm adopt langgraph`: a stock saver's database, read into a memory that can forget.

Threads, branches, namespaces and pending writes keep their ids, so the graph goes on where it was.
Each checkpoint and each task's writes are a transaction of their own, in the order in which they
were made; what is there already is not written again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import RESUME

from dellm import InvalidInput, Memory
from dellm import Place as At

from .addresses import START, Address, thread_name
from .adopt_alike import Alike, aligned, held_by
from .adopt_inferring import LATER, AdoptedWriter, Read, Seen
from .adopt_kept import COUNTERS, Kept, KeptCheckpoints, Place
from .adopt_order import in_order, in_steps, inputs, is_conversation, is_merged, is_raw, moment
from .adopt_sources import Decoder, Entry, Stock, Write, open_stock
from .channels import channels_of
from .workspace import Workspace
from .writing import GIVEN, NULL_TASK

Tick = Callable[[int, int], None]


def adopt(
    source: str,
    memory: Memory,
    *,
    threads: Collection[str] = (),
    serde: SerializerProtocol | None = None,
    lossy: bool = False,
    schema: Any = None,
    untracked: Collection[str] = (),
    progress: Tick | None = None,
) -> dict[str, int]:
    """Read the database of a stock SqliteSaver or PostgresSaver into a memory's workspace.

    `source` is a file's path or a URL; it is opened read-only. `threads`: only these. `serde` is the
    application's own, if it has one; `lossy` takes objects whose class cannot be imported as plain
    data, as LangGraph does. `schema` and `untracked`: see DeLLMSaver. `progress(done, total)` counts
    checkpoints. It can be broken off and repeated at any time. Contexts are inferred, and records
    made from them say so in their metadata: {"inferred": true}. Returns the numbers of threads and
    checkpoints that were seen, and of the checkpoints and values that were written.
    Raises InvalidInput, StorageError, UnsupportedHere.
    """
    decoder = Decoder(serde, lossy=lossy)
    channels = channels_of(schema, None, untracked, None, None)
    workspace = Workspace(memory, serde or JsonPlusSerializer(), channels)
    counts = {"threads": 0, "checkpoints": 0, "written checkpoints": 0, "written values": 0}
    with open_stock(source, decoder) as stock:
        there = stock.threads()
        if unknown := set(threads) - there.keys():
            raise InvalidInput(f"The source does not have {len(unknown)} of the threads named.")
        chosen = {name: size for name, size in there.items() if not threads or name in threads}
        total = sum(chosen.values())
        for name in chosen:
            with stock.snapshot():
                adopting = Adopting(stock, workspace, name)
                for _ in adopting.run():
                    counts["checkpoints"] += 1
                    if progress is not None:
                        progress(counts["checkpoints"], max(total, counts["checkpoints"]))
            counts["threads"] += 1
            counts["written checkpoints"] += adopting.checkpoints
            counts["written values"] += adopting.values
            decoder.clear()
    return counts


class Adopting:
    """The adoption of one thread."""

    def __init__(self, stock: Stock, workspace: Workspace, thread: str) -> None:
        self._stock = stock
        self._workspace = workspace
        self._thread = thread
        self._name = thread_name(thread)
        self._alike = Alike(stock.decoder.serde)
        self._seen = Seen()
        self._homes: dict[int, Place] = {}
        self._kept = KeptCheckpoints(stock, workspace, thread, self._seen)
        self._entries: dict[Place, Entry] = {}
        self._children: dict[Place, list[Place]] = {}
        self._namespaces: list[str] = []
        self._complete: set[Place] = set()
        self._sources: dict[Place, str | None] = {}
        self.checkpoints = 0
        self.values = 0

    def run(self) -> Iterator[None]:
        """Adopt the thread; yield after each of its checkpoints."""
        order = list(in_order(self._stock.outline(self._thread)))
        for one in order:
            self._entries[one.ns, one.cid] = one
            if one.parent is not None:
                self._children.setdefault((one.ns, one.parent), []).append((one.ns, one.cid))
        self._namespaces = list(dict.fromkeys(one.ns for one in order))
        there = self._there(order)
        self._complete = {(one.ns, one.parent) for one in order[:there] if one.parent is not None}
        for at, one in enumerate(order):
            if at >= there:
                self._put(one)
                self.checkpoints += 1
            yield
        # What is pending: no checkpoint has come of it yet.
        for one in order:
            self._write(one)

    def _there(self, order: Sequence[Entry]) -> int:
        """Return how many of the checkpoints the memory has: they were stored in this order."""
        checkpoints = self._workspace.checkpoints
        if self._name not in checkpoints.threads():
            return 0
        for at in range(len(order), 0, -1):
            if checkpoints.exists(At(self._name, order[at - 1].ns, order[at - 1].cid)):
                return at
        return 0

    # checkpoints

    def _put(self, at: Entry) -> None:
        parent = self._parent(at)
        checkpoint, metadata = self._stock.load(self._thread, at)
        self._sources[at.ns, at.cid] = metadata.get("source")
        kept = Kept(
            checkpoint["channel_values"],
            checkpoint["channel_versions"],
            metadata,
            moment(checkpoint["ts"]),
        )
        new = self._align(kept, at, parent)
        read = self._read(parent)
        read.also = parent.ids if parent is not None else ()
        if is_merged(metadata, None if parent is None else parent.metadata):
            self._merge(read, kept, parent)
        config = self._config(at.ns, at.parent, metadata)
        writer = AdoptedWriter(
            self._workspace, Address.of(config), config, self._seen, read, kept.made_at
        )
        whole: Any = {**checkpoint, "channel_values": kept.values}
        said: Any = metadata
        writer.put(whole, said, new)
        self._kept.keep((at.ns, at.cid), kept)

    def _merge(self, read: Read, kept: Kept, parent: Kept | None) -> None:
        """Say what can be told of the steps between a checkpoint and its parent."""
        known = None if parent is None else parent.versions.get(START)
        before = {} if parent is None else parent.named
        given = inputs(kept.values, kept.versions, known)
        read.merged, read.inputs = True, [kept.values[name] for name in given]
        changed = (name for name, one in kept.named.items() if before.get(name, one) is not one)
        read.edited = frozenset(changed)
        kept.values = in_steps(kept.values, given)

    def _parent(self, at: Entry) -> Kept | None:
        """Return the checkpoint before, whose writes are stored by then; None if there is none."""
        if at.parent is None or (at.ns, at.parent) not in self._entries:
            return None
        self._write(self._entries[at.ns, at.parent])
        return self._kept.of(self._entries[at.ns, at.parent])

    def _align(self, kept: Kept, at: Entry, parent: Kept | None) -> dict[str, Any]:
        """Put the parent's objects in place of equal ones; return the versions that are new."""
        if parent is None:
            kept.name(kept.values.values())
            return dict(kept.versions)
        new = {}
        old = parent.values
        own = at if COUNTERS not in kept.metadata and kept.step is not None else None

        def same(message: BaseMessage) -> BaseMessage:
            return self._same(message, own, parent)

        for name, value in kept.values.items():
            known = name in old and parent.versions.get(name) == kept.versions.get(name)
            if known and self._alike.same(old[name], value):
                kept.values[name] = old[name]
                continue
            written = (one for one in parent.writes.get(name, ()) if not is_raw(one))
            before = [*held_by(old.get(name)), *written]
            if name in old and type(value) is not list:
                before.insert(0, old[name])
            kept.values[name] = aligned(value, before, same, self._alike)
            new[name] = kept.versions.get(name)
        kept.name(kept.values.values())
        return new

    def _same(self, message: BaseMessage, at: Entry | None, parent: Kept) -> BaseMessage:
        """Return the object of a message that has an id: the branch's own, where it is the same."""
        known = parent.named.get(message.id or "")
        if known is not None and self._alike.same(known, message):
            return known
        if at is None or not isinstance(message, AIMessage):
            return message
        home = self._homes.setdefault(id(message), (at.ns, at.parent or ""))
        if home[0] != at.ns or home[1] == at.parent or id(message) in self._seen.anew:
            return message
        # Another branch has it already, from elsewhere: here it has a context of its own.
        copy = message.model_copy()
        self._seen.anew[id(copy)] = copy
        parent.named[message.id or ""] = copy
        return copy

    def _read(self, parent: Kept | None) -> Read:
        """Return what a step that began at a checkpoint could read."""
        if parent is None:
            return Read(there=False)
        values = parent.values
        lists = [name for name, value in values.items() if is_conversation(value)]
        name = "messages" if "messages" in lists else max(lists, key=lambda one: len(values[one]), default="")  # fmt: skip
        if not name:
            return Read(values=values)
        kept_as_writes = parent.metadata.get(COUNTERS) or ()
        return Read(values[name], frozenset({*values, *kept_as_writes} - {name}), values)

    # what tasks wrote

    def _write(self, at: Entry) -> None:
        """Store what tasks wrote at a checkpoint, as far as it is not stored yet."""
        place = at.ns, at.cid
        if place in self._complete:
            return
        self._complete.add(place)
        rows = self._stock.written(self._thread, at)
        if not rows:
            return
        kept = self._kept.of(at)
        later = any(one.path.startswith(LATER) for one in rows)
        old = self._has_no_paths(place, rows)
        # What a user answered comes first: the task that asked read it.
        rows.sort(key=lambda one: one.channel != RESUME)
        for (task, path, channel), some in groupby(rows, key=_by_task):
            new = [one for one in some if (one.task, one.idx) not in kept.stored]
            if not new:
                continue
            if channel == RESUME:
                self._put_writes(at, kept, new, Read(), given=True)
                continue
            read = self._read(kept)
            read.merged = later
            read.also = [
                *kept.answered(task),
                *self._inside(at, task, path, later=later),
                *(kept.ids if later else ()),
            ]
            given = (not at.ns and self._given(kept, new)) if old else None
            self._put_writes(at, kept, new, read, given=given)

    def _put_writes(
        self, at: Entry, kept: Kept, rows: Sequence[Write], read: Read, *, given: bool | None
    ) -> None:
        own = None if COUNTERS in kept.metadata else Entry(at.ns, "", at.cid)
        indexed = []
        for one in rows:
            before = (
                kept.writes.get(RESUME, [])
                if one.channel == RESUME
                else _given_to(kept, one, given)
            )
            value = aligned(
                one.value, before, lambda found: self._same(found, own, kept), self._alike
            )
            indexed.append((one.idx, one.channel, value))
            kept.wrote(one.channel, value)
        config = self._config(at.ns, at.cid, kept.metadata)
        writer = AdoptedWriter(
            self._workspace, Address.of(config), config, self._seen, read, kept.made_at,
            given=given,
        )  # fmt: skip
        writer.put_writes(indexed, rows[0].task, rows[0].path)
        kept.stores(rows[0].task, writer.ids, answer=rows[0].channel == RESUME)
        self.values += len(rows)

    def _has_no_paths(self, place: Place, rows: Sequence[Write]) -> bool:
        """Whether the writes are from before a saver kept the tasks' paths."""
        if any(one.path for one in rows if one.task != NULL_TASK):
            return False
        return any(self._source(one) not in GIVEN for one in self._children.get(place, ()))

    def _source(self, place: Place) -> str | None:
        if place not in self._sources:
            _, metadata = self._stock.load(self._thread, self._entries[place])
            self._sources[place] = metadata.get("source")
        return self._sources[place]

    def _given(self, kept: Kept, rows: Sequence[Write]) -> bool:
        """Whether a task without a path only wrote what the run was given."""
        start = kept.values.get(START)
        inputs = list(start.values()) if isinstance(start, dict) else [start]
        return all(
            one.value is None or any(self._alike.alike(one.value, value) for value in inputs)
            for one in rows
        )

    def _inside(self, at: Entry, task: str, path: str, *, later: bool) -> Iterator[int]:
        """Yield the records that a task's own graphs had in the end."""
        node = path.rpartition(", ")[2]
        above = f"{at.ns}|" if at.ns else ""
        for ns in self._namespaces:
            if ns == at.ns or not ns.startswith(above):
                continue
            name, _, own = ns.removeprefix(above).partition("|")[0].partition(":")
            if own == task or (name == node and (later or not own)):
                yield from self._kept.records_in(ns)

    def _config(self, ns: str, cid: str | None, metadata: dict[str, Any]) -> Any:
        said: dict[str, Any] = {
            "thread_id": self._thread,
            "checkpoint_ns": ns,
            "checkpoint_id": cid,
        }
        if ns:
            said["checkpoint_map"] = metadata.get("parents") or {}
        return {"configurable": said}


def _by_task(write: Write) -> tuple[str, str, str]:
    return write.task, write.path, RESUME if write.channel == RESUME else ""


def _given_to(kept: Kept, write: Write, given: bool | None) -> list[Any]:
    """Return what a write of the input itself consists of."""
    start = kept.values.get(START)
    if type(start) is not dict or not (given or write.path.endswith(START)):
        return []
    found = start.get(write.channel)
    return [*held_by(found), found]
