"""The checkpoints of an adopted thread that were read last: their values, as one object each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.types import RESUME

from dellm import Loaded

from .addresses import START, thread_name
from .adopt_alike import held_by, pairs
from .adopt_inferring import Seen
from .adopt_order import is_conversation, moment
from .adopt_sources import Entry, Stock
from .objects import REFUSED
from .workspace import Workspace
from .writing import NULL_TASK

KEPT = 64  # checkpoints of a thread whose values are kept
COUNTERS = "counters_since_delta_snapshot"
Place = tuple[str, str]


@dataclass(slots=True)
class Kept:
    """A checkpoint of the source: its values, and what tasks wrote there, by channel.

    `stored`: the task and index of the writes that the memory has already. `ids`: their records.
    `answers`: those of what a user answered, with the task that had asked.
    `named`: the messages that it or its writes hold, by id.
    """

    values: dict[str, Any]
    versions: dict[str, Any]
    metadata: dict[str, Any]
    made_at: datetime | None
    writes: dict[str, list[Any]] = field(default_factory=dict)
    stored: set[tuple[str, int]] = field(default_factory=set)
    ids: list[int] = field(default_factory=list)
    answers: list[tuple[str, int]] = field(default_factory=list)
    named: dict[str, BaseMessage] = field(default_factory=dict)

    @property
    def step(self) -> int | None:
        """The step of the run."""
        return self.metadata.get("step")

    def wrote(self, channel: str, value: Any) -> None:
        """Take note of what a task wrote to a channel."""
        self.writes.setdefault(channel, []).extend([*held_by(value), value])
        self.name([value])

    def stores(self, task: str, ids: Iterable[int], *, answer: bool) -> None:
        """Take note of the records of what a task wrote; `answer`: of what a user answered it."""
        found = list(ids)
        self.ids += found
        self.answers += [(task, one) for one in found] if answer else []

    def answered(self, task: str) -> list[int]:
        """Return the records of what a task was answered, or all tasks."""
        return [one for asked, one in self.answers if asked in {task, NULL_TASK}]

    def name(self, values: Iterable[Any]) -> None:
        """Take note of the messages in values."""
        for value in values:
            for one in held_by(value):
                if isinstance(one, BaseMessage) and one.id:
                    self.named[one.id] = one


class KeptCheckpoints:
    """The checkpoints of one thread of a source, the last ones at hand."""

    def __init__(self, stock: Stock, workspace: Workspace, thread: str, seen: Seen) -> None:
        self._stock = stock
        self._workspace = workspace
        self._thread = thread
        self._name = thread_name(thread)
        self._seen = seen
        self._kept: OrderedDict[Place, Kept] = OrderedDict()

    def keep(self, place: Place, kept: Kept) -> None:
        """Keep a checkpoint in the place of the one used least."""
        self._kept[place] = kept
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def of(self, at: Entry) -> Kept:
        """Return a checkpoint that the memory has, from the source if it is not at hand."""
        found = self._kept.get((at.ns, at.cid))
        if found is None:
            found = self._again(at)
            self.keep((at.ns, at.cid), found)
        self._kept.move_to_end((at.ns, at.cid))
        return found

    def records_in(self, ns: str) -> Iterator[int]:
        """Yield the records that a namespace's newest checkpoint in the memory holds."""
        loaded = self._loaded(ns, None)
        for one in loaded.records.values() if loaded is not None else ():
            if one.role != "metadata":
                yield one.id

    def _loaded(self, ns: str, cid: str | None) -> Loaded | None:
        found = self._workspace.checkpoints.get(self._name, ns, cid, lambda _: ())
        return found.loaded[0] if found.loaded else None

    def _again(self, at: Entry) -> Kept:
        """Read a checkpoint from the source, and from the memory which records hold its values."""
        checkpoint, metadata = self._stock.load(self._thread, at)
        values = checkpoint["channel_values"]
        made_at = moment(checkpoint["ts"])
        kept = Kept(values, checkpoint["channel_versions"], metadata, made_at)
        kept.name(values.values())
        loaded = self._loaded(at.ns, at.cid)
        if loaded is not None:
            self._note_values(at, values, loaded)
            self._note_writes(at, kept, loaded)
        return kept

    def _note_values(self, at: Entry, values: dict[str, Any], loaded: Loaded) -> None:
        objects, lock = self._workspace.objects(self._name)
        for name in (values.keys() & loaded.body.cells.keys()) - loaded.gone:
            value, cell = values[name], loaded.body.cells[name]
            self._note(at, pairs(value, cell, loaded), raw=name == START and type(value) is dict)
            ids = loaded.lists.get(cell, ()) if isinstance(cell, int) else ()
            if is_conversation(value) and len(ids) == len(value):
                with lock:
                    objects.note_list(value, [one or REFUSED for one in ids])

    def _note_writes(self, at: Entry, kept: Kept, loaded: Loaded) -> None:
        stored = {(one.task, one.at): one.cell for one in loaded.writes}
        kept.stored = set(stored)
        for one in self._stock.written(self._thread, at) if stored else ():
            if (one.task, one.idx) in stored:
                found = list(pairs(one.value, stored[one.task, one.idx], loaded))
                self._note(at, found, raw=True, channel=one.channel)
                kept.wrote(one.channel, one.value)
                ids = (id_ for _, id_ in found)
                kept.stores(one.task, ids, answer=one.channel == RESUME)

    def _note(
        self, at: Entry, found: Iterable[tuple[Any, int]], *, raw: bool, channel: str = ""
    ) -> None:
        """Take note of which records hold which objects of a checkpoint that is stored."""
        objects, lock = self._workspace.objects(self._name)
        with lock:
            for value, id_ in found:
                if not isinstance(value, BaseMessage):
                    self._seen.note(value, id_)
                    objects.wrote((at.ns, at.cid), channel, value, id_, ("", None))
                    continue
                if objects.find(value) is None:
                    objects.note(value, id_, named=value.id is not None)
                if raw and value.id is None:
                    self._seen.raw.setdefault((at.ns, at.cid), []).append((value, id_))
