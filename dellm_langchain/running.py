"""Where code runs that keeps or reads a value through one of our adapters: whose memory, which task.

Read from the running config, so one adapter serves every run. What is made in a task of a graph
depends on what that task was told; what it has read is noted, so that what it makes depends on it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from dellm import Atom, Draft, InvalidInput, Memory, Sources

from .addresses import Address, thread_name
from .call_places import parsed
from .calls import Call
from .capture import captured
from .channels import Channels
from .early_values import Early, early_values
from .history_turns import turns
from .messages import draft_of
from .objects import Objects
from .origins import Origins
from .reads import THREAD, reads
from .saver import DeLLMSaver
from .state_sources import Scope, StateSources, read
from .state_values import StateValues
from .tasks import Task
from .tenants import memory_of
from .waiting import wait
from .workspace import Workspace
from .writing import DURABILITY

SERDE = JsonPlusSerializer()
UNTHREADED = "without a thread"  # where the messages of a graph that has none are kept
CHECKPOINTER, READ = "__pregel_checkpointer", "__pregel_read"


@dataclass(frozen=True, slots=True)
class Made:
    """What a value made now is made from, None for nothing that is known.

    `trusted` is the generation of the workspace of which the records in it are, or -1.
    """

    sources: Sources | None
    trusted: int = -1


@dataclass(frozen=True, slots=True)
class Here:
    """Where the calling code runs.

    `memory` is that of the run's workspace; `thread` the conversation's name, "" outside of any;
    `inside` whether this is a task of a graph; `kept` what a DeLLMSaver of the graph knows, None
    for any other.
    """

    memory: Memory
    config: RunnableConfig
    thread: str
    inside: bool
    kept: Workspace | None

    @property
    def owner(self) -> tuple[int, str]:
        """What tells this memory and workspace from any other."""
        return self.memory.identity, self.memory.id

    @contextmanager
    def making(self, call: Call | None = None) -> Iterator[Made]:
        """Give what a value made now was made from; store it before leaving.

        `call`: it is just what a model replied to this call. Until then no other write of the thread can change what is known of its objects.
        """
        if not self.inside:
            yield Made(self._only_read(given=call is None))
        elif self.kept is None:
            yield from self._of_state(None)
        else:
            yield from self._of_task(self.kept, call)

    def read(self, ids: Iterable[int]) -> None:
        """Note that the running code has read these records of the workspace."""
        places = [*self._places(), (THREAD, self.thread)]
        reads.note(self.owner, places, ids, captured.now())

    def _places(self) -> list[Hashable]:
        around = captured.around()
        named = parsed(str(self._said("checkpoint_ns") or ""))[0]
        return list(dict.fromkeys([*around.tasks, *named, *around.runs]))

    def _said(self, key: str) -> Any:
        return self.config.get("configurable", {}).get(key)

    def _of_task(self, kept: Workspace, call: Call | None) -> Iterator[Made]:
        address = Address.of(self.config)
        task = self._task(address)
        ended, placed = self._said(DURABILITY) == "exit", partial(kept.placed, task.place)
        if not ended:
            wait(placed)
        objects, lock = kept.objects(address.thread)
        with lock:
            if ended or not placed():  # what was said in this run is not stored yet
                yield from self._of_state(objects)
                return
            kept.refresh(objects)
            channels = kept.channels
            made = Origins(task, objects, kept.serde, channels.reads, frozenset(channels.rebuild))
            tool = captured.around().call
            sources = made.of_running(tool) if call is None else made.of_call(call)
            yield Made(sources, objects.generation)

    def _task(self, address: Address) -> Task:
        """Return the task that the code runs in; its checkpoint is that of the graph around it."""
        names, node = parsed(address.ns or "")
        return Task(
            thread=address.thread,
            thread_id=str(self._said("thread_id")),
            id=names[-1] if names else None,
            node=node.rpartition("|")[2] or None,
            place=address.outer({}),
            since=address.outer_since,
            given=False,
            owner=self.owner,
            root=address.root,
        )

    def _of_state(self, objects: Objects | None) -> Iterator[Made]:
        """Give all the graph's state says and the task was told, where no saver of ours knows it.

        Its messages and other values become records then, so that a forget of one finds what was
        made of it. `objects` are what a saver of ours knows of the thread.
        """
        tasks, _ = parsed(str(self._said("checkpoint_ns") or ""))
        calls = [call for task in tasks for call in captured.of_task(task)]
        given = captured.raw_inputs(str(self._said("thread_id")), self.owner).anew()
        scope, run = self._scope(), str(captured.around().runs[:1])
        values = self._values(objects)
        sources = StateSources(scope, self._draft, self._named, values, given, run)
        earlier = self.kept is None and len(tasks) == 1
        atoms = sources.atoms(_state(self._said(READ)), calls, earlier=earlier)
        yield Made(_sequenced(scope.whole([*atoms, *scope.read(*self._places())])))
        for number, atom in sources.noted:
            if self.thread and atom.id is not None:
                early_values.note(self.owner, self.thread, number, Early(atom.id, run))

    def _values(self, objects: Objects | None) -> StateValues:
        channels = Channels() if self.kept is None else self.kept.channels
        early = early_values.of(self.owner, self.thread)
        return StateValues(self.thread or UNTHREADED, self._serde, channels, objects, early)

    def _scope(self) -> Scope:
        """Return what may be in the state: with another saver, all that was read on the thread."""
        around = captured.around()
        if self.kept is not None:
            address = Address.of(self.config)
            places = (*around.runs[:1], *around.tasks)
            return Scope(self.owner, places, address.outer({}), address.outer_since)
        thread = ((THREAD, self.thread),) if self.thread else ()
        return Scope(self.owner, (*thread, *around.runs[:1]), thread=self.thread)

    def _draft(self, message: BaseMessage) -> Draft:
        return draft_of(message, self.thread or UNTHREADED, self._serde)

    def _named(self, draft: Draft, said: Sequence[str]) -> Draft:
        """Return what is no message of the thread, known by what it says."""
        return replace(draft, kind="state", framework_id=self.memory.items.digest(said))

    @property
    def _serde(self) -> Any:
        return SERDE if self.kept is None else self.kept.serde

    def _noted(self) -> list[Atom]:
        return read(self.owner, self._places())

    def _only_read(self, *, given: bool) -> Sources | None:
        """Return what the run has read; `given`: also the messages that histories gave to it."""
        noted = self._noted()
        if given:
            turn = turns.read_in(captured.around().runs, self.owner)
            records = dict.fromkeys(it.record for one in turn for it in one.named.values())
            noted += [Atom(known=one, unsure=True) for one in records]
        return Sources(also=tuple(noted), inexact=True) if noted else None


def here(memory: Memory, key: str | None) -> Here:
    """Return where the calling code runs; `key` names the configurable that names the workspace.

    Raises InvalidInput where that is asked for and the config does not say it, or where the graph's
    DeLLMSaver keeps another workspace of the same memory.
    """
    config = var_child_runnable_config.get() or RunnableConfig()
    said = config.get("configurable", {})
    memory = memory_of(memory, said, key, running=bool(said))
    thread = said.get("thread_id")
    inside = bool(parsed(str(said.get("checkpoint_ns") or ""))[0])
    saver = said.get(CHECKPOINTER) if inside and thread is not None else None
    kept = kept_by(saver, config, memory) if _keeps(saver, memory) else None
    name = "" if thread is None else thread_name(thread)
    return Here(memory, config, name, inside, kept)


def _sequenced(made: Sources) -> Sources:
    """Return sources with the known ones as a list, of which what is kept next has the most again."""
    known = [one.known for one in made.also if one.known is not None and one.draft is None]
    rest = [one for one in made.also if one.known is None or one.draft is not None]
    return replace(made, known=list(dict.fromkeys(known)), also=rest)


def kept_by(saver: object, config: RunnableConfig, memory: Memory) -> Workspace | None:
    """Return what a graph's DeLLMSaver knows of a workspace of a memory, None for any other saver.

    Raises InvalidInput where it keeps another memory or workspace.
    """
    if not isinstance(saver, DeLLMSaver):
        return None
    kept = saver.workspace_of(config)
    if kept.owner != (memory.identity, memory.id):
        raise InvalidInput(
            "This object and the graph's checkpointer keep different memories or workspaces.",
            remedy="Give both the same Memory and the same workspace=.",
        )
    return kept


def _keeps(saver: object, memory: Memory) -> bool:
    return isinstance(saver, DeLLMSaver) and saver.memory.identity == memory.identity


def _state(read: Any) -> dict[str, Any]:
    """Return a graph's state by channel, by the function with which LangGraph's tasks read it."""
    channels = next((one for one in getattr(read, "args", ()) if isinstance(one, Mapping)), {})
    try:
        found = dict(read(list(channels))) if channels else {}
    except Exception:  # noqa: BLE001 - a channel that is empty or foreign: the rest is asked one by one
        found = {name: _one(read, name) for name in channels}
    return {str(name): value for name, value in found.items()}


def _one(read: Any, name: str) -> Any:
    try:
        return read(name)
    except Exception:  # noqa: BLE001 - a channel without a value
        return None
