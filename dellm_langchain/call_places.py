"""Where a call is made: its tasks, steps and saver, read from what LangChain says of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import var_child_runnable_config

from .calls import fingerprint

Meta = Mapping[str, Any]


class Around(NamedTuple):
    """What the code running now is in: tasks, runs of chains and tools, outermost first.

    `call` is the tool call of the innermost tool run.
    """

    tasks: tuple[str, ...] = ()
    runs: tuple[UUID, ...] = ()
    call: str | None = None


def saying(message: BaseMessage) -> Hashable:
    """Return what tells whether a message that was given has been rewritten in its place since."""
    fields = message.__dict__
    others = tuple(
        fingerprint(fields[name])
        for name in ("tool_calls", "additional_kwargs")
        if fields.get(name)
    )
    content = message.content
    return (content if type(content) is str else fingerprint(content)), others


def parsed(ns: str) -> tuple[list[str], str]:
    """Split "tools:<id>|1|model:<id>" into the task ids and the path of node names."""
    parts = [part.partition(":") for part in ns.split("|")]
    return [id_ for _, _, id_ in parts if id_], "|".join(name for name, _, id_ in parts if id_)


def stepped(
    steps: tuple[tuple[str, int | None], ...], thread: object, step: int | None
) -> tuple[tuple[str, int | None], ...]:
    """Add the thread a run is on; of each thread the step of its outermost graph counts."""
    if thread is None:
        return steps
    for at, (name, known) in enumerate(steps):
        if name == str(thread):
            return steps if known is not None else (*steps[:at], (name, step), *steps[at + 1 :])
    return (*steps, (str(thread), step))


def running() -> UUID | None:
    """Return the run that the code running now belongs to, None outside of any."""
    callbacks = (var_child_runnable_config.get() or {}).get("callbacks")
    return getattr(callbacks, "parent_run_id", None)


def owner() -> Hashable:
    """Return whose saver the graph around a call runs on, None where it is no saver of ours."""
    around = (var_child_runnable_config.get() or {}).get("configurable") or {}
    named = getattr(around.get("__pregel_checkpointer"), "owner_of", None)
    return named(around) if callable(named) else None


def store_tells() -> bool:
    """Whether the store of the graph around a call notes what is read from it."""
    around = (var_child_runnable_config.get() or {}).get("configurable") or {}
    store = getattr(around.get("__pregel_runtime"), "store", None)
    return store is not None and getattr(store, "notes_reads", False) is True


def with_ambient(metadata: Meta) -> tuple[Meta, object]:
    """Return a call's metadata and thread, completed from the config it runs in.

    Metadata lacks what a call was told not to inherit, and names the thread of the outermost graph
    even when a node runs a graph on another thread.
    """
    around = (var_child_runnable_config.get() or {}).get("configurable") or {}
    thread = around.get("thread_id")
    if "langgraph_checkpoint_ns" in metadata:
        return metadata, thread
    found = {"langgraph_checkpoint_ns": around.get("checkpoint_ns"), "thread_id": thread}
    return {**{key: one for key, one in found.items() if one}, **metadata}, thread
