"""The run that a middleware is called in: whose memory, which thread, and the saver's knowledge.

Everything is read from the running config, so one middleware object serves every run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.config import get_config

from dellm import InvalidInput, Memory, NotFound, Place, Record

from .addresses import thread_name
from .call_places import parsed
from .messages import draft_of, recipe
from .objects import REFUSED, Objects
from .options import checked_key
from .running import CHECKPOINTER, kept_by
from .tenants import Tenanted, memory_of
from .waiting import wait
from .workspace import Workspace
from .writing import DURABILITY

RESUMING = "__pregel_resuming"  # where LangGraph tells a task that its run goes on after a pause
NOTICE = "dellm-"  # how the ids begin of what we say ourselves


@dataclass(frozen=True, slots=True)
class Run:
    """Where a middleware runs.

    `memory` is that of the run's workspace, `thread` the conversation's name (None outside of any),
    `saver` the checkpointer the graph has, whatever it is, and `kept` what a DeLLMSaver knows of
    the workspace; None for any other saver.
    """

    config: RunnableConfig
    memory: Memory
    thread: str | None
    saver: BaseCheckpointSaver[Any] | None
    kept: Workspace | None

    @property
    def place(self) -> Place | None:
        """The checkpoint that the running task has read, None without a saver."""
        said = self.config.get("configurable", {})
        ns = str(said.get("checkpoint_ns", "")).rpartition("|")[0]
        cid = (said.get("checkpoint_map") or {}).get(ns)
        if cid is None or self.thread is None:
            return None
        return Place(self.thread, ns, str(cid))

    @property
    def task(self) -> str:
        """The id of the running task."""
        ns = str(self.config.get("configurable", {}).get("checkpoint_ns", ""))
        return ns.rpartition("|")[2].rpartition(":")[2]

    @property
    def inside_tool(self) -> bool:
        """Whether the graph around the running task runs inside the tools of another agent."""
        ns = str(self.config.get("configurable", {}).get("checkpoint_ns", ""))
        return "tools" in parsed(ns.rpartition("|")[0])[1].split("|")

    @property
    def at(self) -> RunnableConfig:
        """The config that addresses the checkpoint that the running task has read."""
        said = self.config.get("configurable", {})
        mine = {key: one for key, one in said.items() if not key.startswith("__pregel")}
        place = self.place
        ns, cid = ("", None) if place is None else (place.ns, place.cid)
        mine.pop("checkpoint_map", None)
        return {"configurable": {**mine, "checkpoint_ns": ns, "checkpoint_id": cid}}

    def settled(self) -> None:
        """Wait until what was said before the running task is stored, but not for long.

        A run that stores its checkpoints at its end only (durability "exit") is not waited for.
        """
        kept, place = self.kept, self.place
        if kept is None or self.config["configurable"].get(DURABILITY) == "exit":
            return
        wait(partial(kept.placed, place))

    def records_of(self, messages: Iterable[BaseMessage]) -> list[int | None]:
        """Return the records of message objects, as of now; REFUSED where erased, None if unknown."""
        if self.kept is None or self.thread is None:
            return [None for _ in messages]
        objects, lock = self.kept.objects(self.thread)
        with lock:
            self._refresh(self.kept, objects)
            return [objects.find(one) for one in messages]

    def places(self, messages: Sequence[BaseMessage], ids: Iterable[int]) -> dict[int, int]:
        """Return where records stand among messages, by record, as far as that is quickly found.

        The records of a conversation ascend unless it was edited.
        """
        if self.kept is None or self.thread is None:
            return {}
        objects, lock = self.kept.objects(self.thread)
        found: dict[int, int] = {}
        with lock:
            for id_ in ids:
                at = bisect_left(messages, id_, key=lambda one: objects.find(one) or 0)
                if at < len(messages) and objects.find(messages[at]) == id_:
                    found[id_] = at
        return found

    def _refresh(self, kept: Workspace, objects: Objects) -> None:
        generation = kept.checkpoints.generation()
        if objects.generation != generation:
            kept.learned(generation)
            kept.refresh(objects)

    def gone(self, messages: Iterable[BaseMessage]) -> set[int]:
        """Return the identities of the message objects whose records were erased or refused."""
        listed = list(messages)
        pairs = zip(listed, self.records_of(listed), strict=True)
        return {id(one) for one, record in pairs if record == REFUSED}

    def generation(self) -> int:
        """Return the workspace's generation: it moves whenever something is erased."""
        return self.memory.checkpoints.generation()

    def know(self, messages: Iterable[tuple[BaseMessage, int]], generation: int) -> None:
        """Tell the saver which records hold message objects, as was found in a generation."""
        if self.kept is None or self.thread is None:
            return
        objects, lock = self.kept.objects(self.thread)
        with lock:
            for message, id_ in messages:
                objects.note(message, id_)
            if objects.generation != generation:
                objects.generation = -1  # so that they are looked up before they are used

    def remembered(self, messages: Iterable[BaseMessage]) -> list[int]:
        """Store messages that are made of nothing kept, for the saver to know them; return the ids."""
        if self.kept is None or self.thread is None:
            return []
        listed, generation = list(messages), self.generation()
        drafts = [draft_of(one, self.thread, self.kept.serde) for one in listed]
        made = [one.id for one in self.memory.remember_many(drafts)]
        self.know(zip(listed, made, strict=True), generation)
        return made

    def rebuilt(self, old: BaseMessage, id_: int) -> AnyMessage | None:
        """Return what takes the place of a message whose record was made anew as `id_`, if it does."""
        if self.kept is None:
            return None
        generation = self.generation()
        try:
            new = self.message_of(self.memory.get(id_), old.id)
        except NotFound:  # somebody has just had the rest of it forgotten, too
            return None
        self.know([(new, id_)], generation)
        return new

    def message_of(self, one: Record, name: str | None) -> AnyMessage:
        """Return the message that a record keeps, under an id of LangChain's."""
        serde = JsonPlusSerializer() if self.kept is None else self.kept.serde
        made = recipe(one.role, one.text, name, one.payload, serde, one.metadata).make()
        return cast("AnyMessage", made)

    def ids_before(self) -> set[str | None]:
        """Return the ids of the messages that the conversation held before this run was given any.

        To be asked in a run that is no resumed one. Without a checkpointer there are none.
        """
        if self.saver is None or self.thread is None:
            return set()
        self.settled()
        began = self.saver.get_tuple(self._at("", newest=False))
        if began is None:  # nothing of this run is stored yet
            return _ids_of(self.saver.get_tuple(self._at("", newest=True)))
        while began is not None and began.metadata.get("source") == "loop":
            began = self._before(began)
        if began is not None and began.metadata.get("source") != "input":
            began = self._before(began)  # the messages were put in by hand
        return _ids_of(began)

    def _before(self, found: CheckpointTuple) -> CheckpointTuple | None:
        if self.saver is None or found.parent_config is None:
            return None
        return self.saver.get_tuple(found.parent_config)

    def ids_above(self) -> set[str | None]:
        """Return the ids of the messages in the graph that the running agent is a node of, if it is.

        None are known where that graph's checkpoint is not stored yet, or where the agent keeps its
        own state from turn to turn.
        """
        ns = "" if self.place is None else self.place.ns
        if self.saver is None or ":" not in ns.rpartition("|")[2]:
            return set()
        return _ids_of(self.saver.get_tuple(self._at(ns.rpartition("|")[0], newest=False)))

    def _at(self, ns: str, *, newest: bool) -> RunnableConfig:
        """Return the config of a checkpoint of a graph around this task: the one it is at, or the newest."""
        said = self.config.get("configurable", {})
        mine = {key: one for key, one in said.items() if not key.startswith("__pregel")}
        places = mine.pop("checkpoint_map", None) or {}
        cid = None if newest else places.get(ns)
        return {"configurable": {**mine, "checkpoint_ns": ns, "checkpoint_id": cid}}

    def said(self, text: str, **metadata: Any) -> AIMessage:
        """Return a message of the assistant that no model made; the text holds no content."""
        message = AIMessage(text, id=f"{NOTICE}{uuid4()}", response_metadata=metadata)
        self.remembered([message])
        return message


def _ids_of(found: CheckpointTuple | None) -> set[str | None]:
    messages = found.checkpoint["channel_values"].get("messages") if found else None
    listed = messages if isinstance(messages, list) else []
    return {one.id for one in listed if isinstance(one, BaseMessage)}


def resuming() -> bool:
    """Whether the running task may have begun before, and paused."""
    return bool(get_config().get("configurable", {}).get(RESUMING))


def run_of(memory: Memory, key: str | None) -> Run:
    """Return the run that the calling code is in; `key` as of DeLLMSaver's `workspace`.

    Raises InvalidInput where the config names no workspace, or the saver keeps another memory.
    """
    config = get_config()
    said = config.get("configurable", {})
    memory = memory_of(memory, said, key)
    thread = thread_name(said["thread_id"]) if said.get("thread_id") is not None else None
    saver = said.get(CHECKPOINTER)
    found = saver if isinstance(saver, BaseCheckpointSaver) else None
    return Run(config, memory, thread, found, kept_by(found, config, memory))


class MemoryMiddleware(Tenanted, AgentMiddleware[Any, Any, Any]):
    """What the middlewares of a memory share: whose memory it is, told by each run's config."""

    def __init__(self, memory: Memory, workspace: str | None) -> None:
        """Take the memory, and the key of `configurable` that names the workspace, if any."""
        super().__init__()
        if not isinstance(memory, Memory):
            raise InvalidInput(f"{type(self).__name__} takes a dellm.Memory.")
        self.memory = memory
        self.tools = []
        self._key = checked_key(workspace)

    def run(self) -> Run:
        """Return the run that the calling code is in; see run_of."""
        return run_of(self.memory, self._key)
