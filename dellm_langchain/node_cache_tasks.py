"""Which task of a graph a node cache is asked about, and what that task wrote was made from.

LangGraph gives a cache keys and values, and nothing of the run. So the loop that asks is looked up
in the frames that call, before its tasks run; a value is known again by its being the task's own list
of writes. Source: langgraph.pregel._loop of langgraph 1.2, `match_cached_writes` and `put_writes`.
"""

from __future__ import annotations

import inspect
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._config import patch_configurable
from langgraph.cache.base import FullKey
from langgraph.pregel._algo import task_path_str
from langgraph.pregel._loop import PregelLoop

from dellm import Atom, Cell, Fields, Many, Memory, Sources, Wrapped

from .addresses import Address
from .calls import messages_within
from .running import Here, Made, here
from .waiting import PAUSE
from .writing import DURABILITY, Writer

FRAMES = 8  # between the loop and a cache there are 1 to 3
PATIENCE = 0.5  # seconds that a cache waits for the saver to store what a task wrote
Writes = Sequence[tuple[str, Any]]


@dataclass(slots=True)
class TaskSeen:
    """A task of a running graph: its own config, that of the checkpoint it reads, and its input."""

    id: str
    path: str
    config: RunnableConfig = field(repr=False)
    checkpoint: RunnableConfig = field(repr=False)
    given: frozenset[str] = field(repr=False)  # the ids of the messages in its input

    @property
    def exits(self) -> bool:
        """Whether what the run does is stored only at its end."""
        return self.config.get("configurable", {}).get(DURABILITY) == "exit"

    def here(self, memory: Memory, key: str | None) -> Here:
        """Return where the task runs."""
        token = var_child_runnable_config.set(self.config)
        try:
            return here(memory, key)
        finally:
            var_child_runnable_config.reset(token)

    @contextmanager
    def made(self, at: Here, writes: Writes) -> Iterator[Made]:
        """Give what an entry that holds what the task wrote is made from: just that, or all it read."""
        if at.kept is None:
            with at.making() as made:
                yield made
            return
        end = time.monotonic() + PATIENCE
        while True:
            address = Address.of(self.checkpoint)
            with Writer(at.kept, address, self.checkpoint).taken(writes, self.id, self.path) as got:
                cells, generation = got
                atoms = list(_atoms(cells))
                if all(one.known is not None for one in atoms) or time.monotonic() > end:
                    yield Made(Sources(also=tuple(atoms)), generation)
                    return
            time.sleep(PAUSE)


def _atoms(cells: Iterable[Cell]) -> Iterator[Atom]:
    for cell in cells:
        if isinstance(cell, Atom):
            yield cell
        elif isinstance(cell, Many):
            yield from (Atom(known=one) for one in cell.known)
            yield from cell.atoms
        elif isinstance(cell, Wrapped):
            yield from _atoms([cell.cell])
        elif isinstance(cell, Fields):
            yield from _atoms(cell.cells.values())


def asking() -> PregelLoop | None:
    """Return the loop of the graph that the calling code was called by, None where there is none."""
    frame = inspect.currentframe()
    for _ in range(FRAMES):
        frame = None if frame is None else frame.f_back
        found = None if frame is None else frame.f_locals.get("self")
        if isinstance(found, PregelLoop):
            return found
    return None


def tasks_of(loop: PregelLoop) -> Iterator[tuple[FullKey, Any]]:
    """Yield the keys and the tasks of a loop that a cache is asked for."""
    for task in loop.tasks.values():
        if task.cache_key is not None:
            yield (task.cache_key.ns, task.cache_key.key), task


def seen(loop: PregelLoop, task: Any) -> TaskSeen:
    """Return a task of a loop as it will be needed when it has written."""
    named = {"checkpoint_ns": loop.config["configurable"].get("checkpoint_ns", "")}
    named["checkpoint_id"] = loop.checkpoint["id"]
    given = (one.id for one in messages_within(task.input))
    return TaskSeen(
        id=task.id,
        path=task_path_str(task.path),
        config=task.config,
        checkpoint=patch_configurable(loop.checkpoint_config, named),
        given=frozenset(one for one in given if one is not None),
    )


class TasksSeen:
    """The tasks that are under way, by the list that each of them writes to. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._seen: dict[int, tuple[weakref.ref[deque[Any]], TaskSeen]] = {}

    def note(self, writes: deque[Any], task: TaskSeen) -> None:
        """Keep a task as long as its list of writes is there."""
        key = id(writes)
        ref = weakref.ref(writes, lambda _: self._seen.pop(key, None))
        with self._guard:
            self._seen[key] = (ref, task)

    def of(self, writes: object) -> TaskSeen | None:
        """Return the task whose own list of writes this is."""
        found = self._seen.get(id(writes))
        return found[1] if found is not None and found[0]() is writes else None
