"""A flow written down beside the state of a workflow: record ids, and of which memory they are.

It is a part of a Context's JSON, so it holds no content and no password.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from dellm import DellmError, Memory

from .documents import records_of
from .flows import ERASED, Flow, Output
from .handles import Handle, handle_of, opened
from .purging import memory_of, watch
from .scopes import guard
from .tags import Owner, owner_of, place_of

UNKNOWN = -1  # a generation: whether the records are there has to be looked up


class Flat:
    """What a flow comes to without its outputs and nodes: records by workspace."""

    def __init__(self, flow: Flow) -> None:
        self.records: dict[Owner, dict[int, None]] = {}
        self.unsure = False
        self._seen: set[Output] = set()
        nodes = []
        with guard:
            waiting = [flow]
            while waiting:
                one = waiting.pop()
                nodes += list(one.nodes.values())
                self.unsure = self.unsure or one.unsure
                for owner, records in one.records.items():
                    self.records.setdefault(owner, {}).update(records)
                waiting += self._made(one.outputs)
        for owner in self.records if nodes else ():
            memory = memory_of(owner)
            found = records_of(memory, nodes).values() if memory is not None else ()
            self.records[owner].update(dict.fromkeys(one or ERASED for one in found))
        self.unsure = self.unsure or bool(nodes and not self.records)

    def _made(self, outputs: Iterable[Output]) -> Iterable[Flow]:
        for output in outputs:
            if output not in self._seen:
                self._seen.add(output)
                for owner, record in output.stored.items():
                    self.records.setdefault(owner, {})[record] = None
                yield output.made


def written(flow: Flow) -> dict[str, Any]:
    """Return a flow as plain JSON values."""
    flat = Flat(flow)
    said: list[list[Any]] = []
    for owner, records in flat.records.items():
        memory = memory_of(owner)
        place = place_of(owner)
        if memory is None and place is None:
            flat.unsure = True
        elif memory is None and place is not None:  # it was closed before this is written
            said.append([place[0], owner[1], "", place[1], UNKNOWN, sorted(records)])
        elif memory is not None and records:
            generation = memory.checkpoints.generation()
            said.append([*handle_of(memory), memory.origin, generation, sorted(records)])
    return {"records": said, **({"unsure": True} if flat.unsure else {})}


def restored(said: Mapping[str, Any]) -> Flow:
    """Return a flow that was written down, with what is gone by now marked as erased."""
    flow = Flow(unsure=bool(said.get("unsure")))
    for url, workspace, name, origin, generation, records in said.get("records", ()):
        memory = None
        with suppress(DellmError):  # it was in the memory of a process that is no more
            memory = opened(Handle(url, workspace, name))
        if memory is None:
            flow.unsure = True
            continue
        watch(memory)
        owner = owner_of(memory)
        if gone(memory, origin, generation, records):
            flow.read(owner, [ERASED])
        if memory.origin == origin:
            flow.read(owner, records)
    return flow


def gone(memory: Memory, origin: str, generation: int, records: Sequence[int]) -> bool:
    """Whether one of the records is no more, which all were there in a generation of a database."""
    if ERASED in records or memory.origin != origin:
        return True
    if memory.checkpoints.generation() == generation:
        return False
    return bool(memory.checkpoints.standing(list(records)).gone)
