"""What a graph hands its saver, written to a workspace with what it was made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.types import TASKS

import dellm
from dellm import Atom, Body, Cell, Draft, Place, TaskWrite, Written

from .addresses import OTHERS, START, Address
from .early_values import early_values
from .objects import REFUSED, Objects
from .origins import Origins
from .shapes import dump
from .taking import PLAIN, Taking
from .tasks import Task
from .workspace import Workspace

NULL_TASK = "00000000-0000-0000-0000-000000000000"
DURABILITY = "__pregel_durability"
GIVEN = frozenset({"input", "update", "fork"})
# Metadata that holds numbers and ids of the framework; the rest is a record of its own.
NUMBERS = frozenset({"source", "step", "parents", "counters_since_delta_snapshot", "run_id"})
KEYS = frozenset(
    {"v", "id", "ts", "channel_values", "channel_versions", "versions_seen", "updated_channels"}
)


class Writer:
    """Writes to one line of one workspace, on behalf of one call of the saver."""

    def __init__(self, workspace: Workspace, address: Address, config: RunnableConfig) -> None:
        self._workspace = workspace
        self._address = address
        self._config = config
        self._ns = address.ns or ""

    def put(
        self, checkpoint: Checkpoint, metadata: CheckpointMetadata, new: ChannelVersions
    ) -> None:
        """Store a checkpoint."""
        workspace, address = self._workspace, self._address
        objects, lock = workspace.objects(address.thread)
        with lock:
            workspace.refresh(objects)
            said = get_serializable_checkpoint_metadata(self._config, metadata)
            numbers, settings = _split(said)
            others = {key: value for key, value in checkpoint.items() if key not in KEYS}
            if not _says_nothing(others):  # keys of other versions, with what may be anyone's text
                settings[OTHERS], others = others, {}
            taking = self._taking(objects, self._step(numbers), address.place)
            values = checkpoint["channel_values"]
            place = Place(address.thread, self._ns, checkpoint["id"])
            named = self._settings(objects, settings)
            written = workspace.checkpoints.put(
                dellm.Checkpoint(
                    place=place,
                    parent=None if address.cid in {None, checkpoint["id"]} else str(address.cid),
                    body=_body(checkpoint, numbers, others),
                    values=sorted(values, key=lambda name: name == TASKS),
                    unchanged=frozenset(values.keys() - new.keys()),
                    cell=lambda name: taking.cell(name, values[name]),
                    rebuilt=frozenset(workspace.channels.rebuild),
                    ready=taking.finish,
                    settings=named,
                    since=address.since,
                    run=None if (run := said.get("run_id")) is None else str(run),
                ),
                objects.generation,
            )
            # The task whose write this is may be heard of later; what was put in, at its first step.
            for cid in (str(address.cid), *([checkpoint["id"]] if START in values else ())):
                taking.note(self._ns, cid)
            taking.note_lists()
            if not self._ns and self._said(DURABILITY) == "exit":
                early_values.stored(workspace.owner, address.thread)
            if named is not None:
                objects.settings.append((settings, named.id or REFUSED))
            self._done(objects, written, place)

    def put_writes(
        self, writes: Sequence[tuple[int, str, Any]], task_id: str, task_path: str
    ) -> None:
        """Store what a task wrote: (index, channel, value) each."""
        workspace, address = self._workspace, self._address
        place = address.place or Place(address.thread, self._ns, "")
        objects, lock = workspace.objects(address.thread)
        with lock:
            workspace.refresh(objects)
            taking = self._taking(objects, self._task(task_id, task_path), place)
            cells = _cells(taking, writes)
            written = workspace.checkpoints.put_writes(
                place,
                task_id,
                task_path,
                [TaskWrite(one[0], one[1], it) for one, it in zip(writes, cells, strict=True)],
                objects.generation,
            )
            taking.note(self._ns, place.cid)
            self._done(objects, written, None)

    @contextmanager
    def taken(
        self, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Iterator[tuple[list[Cell], int]]:
        """Give what a task wrote, (channel, value) each, as put_writes has stored it or will.

        With it comes the generation of which the records in it are. Nothing else is stored in the
        thread before the end.
        """
        workspace, address = self._workspace, self._address
        objects, lock = workspace.objects(address.thread)
        with lock:
            workspace.refresh(objects)
            taking = self._taking(objects, self._task(task_id, task_path), address.place)
            cells = _cells(taking, [(at, *one) for at, one in enumerate(writes)])
            yield cells, objects.generation

    def _done(self, objects: Objects, written: Written, place: Place | None) -> None:
        workspace, generation = self._workspace, written.generation
        if place is not None:
            workspace.note_placed(place)
        workspace.inexact += written.inexact
        if objects.generation not in {generation, -1}:
            workspace.learned(generation)
            workspace.refresh(objects)
        elif objects.generation == -1 and not objects.redacted:
            objects.generation = generation
        workspace.learned(generation)

    # whose values these are

    def _step(self, metadata: Mapping[str, Any]) -> Task:
        """Return the step that made a checkpoint's values, where no task is named."""
        address, source = self._address, metadata.get("source")
        outer = address.outer(metadata.get("parents") or {}) if source == "input" else None
        return Task(
            thread=address.thread,
            thread_id=str(self._config["configurable"]["thread_id"]),
            id=None,
            node=None,
            place=address.place if outer is None else outer,
            since=address.since if outer is None else address.outer_since,
            given=source in GIVEN and outer is None,
            step=metadata.get("step"),
            owner=self._workspace.owner,
            after=self._workspace.placed_at(address.place),
            ended=source == "loop" and self._said(DURABILITY) == "exit",
            around=self._around(outer),
            root=address.root,
        )

    def _task(self, task_id: str, path: str) -> Task:
        """Return the task that wrote; one without a path writes what came from outside."""
        address = self._address
        node = path.rpartition(", ")[2] if path else None
        # update_state names the task whose place it takes by such a path.
        updated = path.startswith("~__interrupt__")
        outside = task_id == NULL_TASK or not path or node == START or updated
        outer = address.outer({}) if outside and not updated and task_id != NULL_TASK else None
        return Task(
            thread=address.thread,
            thread_id=str(self._config["configurable"]["thread_id"]),
            id=task_id,
            node=node,
            place=address.place if outer is None else outer,
            since=address.since if outer is None else address.outer_since,
            given=outside and outer is None,
            owner=self._workspace.owner,
            around=self._around(outer),
            root=address.root,
        )

    def _around(self, outer: Place | None) -> tuple[str, Place] | None:
        """Return the task of the graph around this one whose input is written, and its checkpoint."""
        if outer is None:
            return None
        return self._ns.rpartition("|")[2].partition(":")[2], outer

    def _said(self, key: str) -> Any:
        return self._config["configurable"].get(key)

    def _taking(self, objects: Objects, task: Task, at: Place | None) -> Taking:
        workspace = self._workspace
        channels = workspace.channels
        return Taking(
            self._address.thread,
            objects,
            Origins(task, objects, workspace.serde, channels.reads, frozenset(channels.rebuild)),
            workspace.serde,
            literals=channels.literals,
            untracked=channels.untracked,
            at=None if at is None else (at.ns, at.cid),
            task=task.id,
        )

    def _settings(self, objects: Objects, settings: Mapping[str, Any]) -> Atom | None:
        """Return the record of what came with the metadata; the same one while that is the same."""
        if not settings:
            return None
        for known, id_ in objects.settings:
            if known == settings:
                return Atom(known=id_)
        payload, _, strings = dump(dict(settings), self._workspace.serde)
        text = "\n".join(dict.fromkeys(strings))
        return Atom(
            Draft(text, role="metadata", thread=self._address.thread, kind="state", payload=payload)
        )


def _cells(taking: Taking, writes: Sequence[tuple[int, str, Any]]) -> list[Cell]:
    """Return the cells of what a task wrote: (index, channel, value) each."""
    # Messages first: what else the task wrote may be joined to the calls they make.
    order = sorted(writes, key=lambda one: one[1] == TASKS)
    cells = {id(one): taking.cell(one[1], one[2]) for one in order}
    taking.finish()
    return [cells[id(one)] for one in writes]


def _split(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the numbers of a checkpoint's metadata, and what else the caller's config said."""
    numbers = {
        key: _as_json(value)
        for key, value in metadata.items()
        if key in NUMBERS or type(value) in PLAIN
    }
    return numbers, {key: value for key, value in metadata.items() if key not in numbers}


def _as_json(value: Any) -> Any:
    """Return a value as it will be read: JSON has no tuples."""
    if isinstance(value, dict):
        return {key: _as_json(one) for key, one in value.items()}
    return [_as_json(one) for one in value] if isinstance(value, (list, tuple)) else value


def _says_nothing(others: Mapping[str, Any]) -> bool:
    return all(type(one) in PLAIN or one in ([], {}) for one in others.values())


def _body(checkpoint: Checkpoint, metadata: Mapping[str, Any], others: Mapping[str, Any]) -> Body:
    updated = checkpoint.get("updated_channels")
    return Body(
        v=checkpoint["v"],
        ts=checkpoint["ts"] or "",
        versions=dict(checkpoint["channel_versions"]),
        cells={},
        seen={node: dict(seen) for node, seen in checkpoint["versions_seen"].items()},
        updated=None if updated is None else list(updated),
        metadata=metadata,
        others=others,
    )
