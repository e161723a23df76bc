"""Where code runs that keeps or reads a value through one of our adapters: whose memory, which task.

Read from the running config, so one adapter serves every run. What is made in a task of a graph
depends on what that task was told; what it has read is noted, so that what it makes depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from dellm import Atom, Draft, InvalidInput, Memory, Place, Sources

from .addresses import Address, thread_name
from .cache_replies import cached_replies
from .call_places import parsed
from .calls import Call, messages_within
from .capture import captured
from .messages import draft_of
from .origins import Origins
from .reads import THREAD, reads
from .saver import PAUSE, WAIT, DeLLMSaver
from .tasks import Task
from .workspace import Workspace
from .writing import DURABILITY

SERDE = JsonPlusSerializer()
UNTHREADED = "without a thread"  # where the messages of a graph that has none are kept
CHECKPOINTER, READ = "__pregel_checkpointer", "__pregel_read"
_SAID = (HumanMessage, SystemMessage)


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
            yield Made(self._only_read())
        elif self.kept is None:
            yield Made(self._of_state())
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
        if self._said(DURABILITY) == "exit" or not _settled(kept, task.place):
            yield Made(self._of_state())  # what was said in this run is not stored yet
            return
        objects, lock = kept.objects(address.thread)
        with lock:
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

    def _of_state(self) -> Sources:
        """Return all the graph's state says and the task was told, where no saver of ours knows it.

        Its messages become records then, so that a forget of one finds what was made of it.
        """
        held = [*_state(self._said(READ)), *self._told()]
        atoms: list[Atom] = []
        for one in {id(one): one for one in held}.values():
            # Nothing tells what a model or tool has read, so it is all that was said before; and a
            # prompt that says it for a human, without an id, was put together by the task.
            said = isinstance(one, _SAID) and not (one.type == "human" and one.id is None)
            read = None if said else Sources(context=tuple(atoms), inexact=True)
            made = cached_replies.tied(self.owner, one, read)
            atoms.append(Atom(cached_replies.marked(self.owner, one, self._draft(one)), made=made))
        return Sources(also=(*atoms, *self._noted()), inexact=True)

    def _told(self) -> Iterator[BaseMessage]:
        for task in parsed(str(self._said("checkpoint_ns") or ""))[0]:
            for call in captured.of_task(task):
                yield from call.prompt.messages

    def _draft(self, message: BaseMessage) -> Draft:
        """Return a message as a record of its thread; one without an id is known by what it says."""
        serde = SERDE if self.kept is None else self.kept.serde
        draft = draft_of(message, self.thread or UNTHREADED, serde)
        if draft.framework_id is not None:
            return draft
        name = self.memory.items.digest([draft.role, draft.text])
        return replace(draft, kind="state", framework_id=name)  # it is no message of the thread

    def _noted(self) -> list[Atom]:
        found = [one for place in self._places() for one in reads.of(self.owner, place)]
        return [Atom(known=one, unsure=True) for one in dict.fromkeys(found)]

    def _only_read(self) -> Sources | None:
        noted = self._noted()
        return Sources(also=tuple(noted), inexact=True) if noted else None


def here(memory: Memory, key: str | None) -> Here:
    """Return where the calling code runs; `key` names the configurable that names the workspace.

    Raises InvalidInput where that is asked for and the config does not say it, or where the graph's
    DeLLMSaver keeps another workspace of the same memory.
    """
    config = var_child_runnable_config.get() or RunnableConfig()
    said = config.get("configurable", {})
    if key is not None:
        memory = memory.workspace(_workspace(said.get(key), key, running=bool(said)))
    thread = said.get("thread_id")
    inside = bool(parsed(str(said.get("checkpoint_ns") or ""))[0])
    kept = _kept(said.get(CHECKPOINTER), config, memory) if inside and thread is not None else None
    name = "" if thread is None else thread_name(thread)
    return Here(memory, config, name, inside, kept)


def _workspace(name: object, key: str, *, running: bool) -> str:
    if isinstance(name, str) and name.strip():
        return name
    raise InvalidInput(
        f"The config names no workspace: {key!r} is no text in configurable."
        if running
        else "This call has no config that could name the workspace.",
        remedy=f"Pass configurable={{{key!r}: ...}}, or use for_workspace(id).",
    )


def _kept(saver: object, config: RunnableConfig, memory: Memory) -> Workspace | None:
    if not isinstance(saver, DeLLMSaver) or saver.memory.identity != memory.identity:
        return None
    kept = saver.workspace_of(config)
    if kept.memory.id != memory.id:
        raise InvalidInput(
            "This object and the graph's checkpointer keep different workspaces.",
            remedy="Give both the same Memory and the same workspace=.",
        )
    return kept


def _settled(kept: Workspace, place: Place | None) -> bool:
    """Wait until the checkpoint that the task has read is stored, but not for long."""
    end = time.monotonic() + WAIT
    while not kept.placed(place):
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE)
    return True


def _state(read: Any) -> list[BaseMessage]:
    """Return the messages in a graph's state, by the function with which LangGraph's tasks read it."""
    channels = next((one for one in getattr(read, "args", ()) if isinstance(one, Mapping)), {})
    try:
        found = read(list(channels)) if channels else None
    except Exception:  # noqa: BLE001 - a channel that is empty or foreign: the rest is asked one by one
        found = [_one(read, name) for name in channels]
    return messages_within(found)


def _one(read: Any, name: str) -> Any:
    try:
        return read(name)
    except Exception:  # noqa: BLE001 - a channel without a value
        return None
