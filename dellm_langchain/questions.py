"""Questions of ours that a task pauses with: ids and counts, and so nothing that must be forgotten.

A saver ties what a task pauses with to all that the task has read, and refuses it where some of
that was erased in the same run. A question must be there all the same, or nobody could see it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.types import Interrupt

from dellm import Place

from .shapes import dump
from .taking import STATE
from .workspace import Workspace


class Question(dict[str, Any]):
    """The value of an interrupt that holds no text of anyone."""


def is_question(channel: str, value: Any) -> bool:
    """Whether a task's write is one of its pauses, and all that it asks is questions of ours."""
    if channel != INTERRUPT or not isinstance(value, (tuple, list)) or not value:
        return False
    return all(isinstance(one, Interrupt) and isinstance(one.value, Question) for one in value)


def keep_questions(
    workspace: Workspace, place: Place | None, writes: Iterable[tuple[str, Any]]
) -> None:
    """Store the questions among a task's writes, made from nothing, before these are stored."""
    for channel, value in writes:
        if place is not None and is_question(channel, value):
            _keep(workspace, place, value)


def _keep(workspace: Workspace, place: Place, value: Any) -> None:
    dumped, generation = dump(value, workspace.serde), workspace.checkpoints.generation()
    text = "\n".join(dict.fromkeys(dumped.strings))
    record = workspace.memory.remember(
        text, role=STATE, thread=place.thread, kind="state", payload=dumped.payload
    )
    objects, lock = workspace.objects(place.thread)
    with lock:
        state = (text, dumped.payload)
        objects.wrote((place.ns, place.cid), INTERRUPT, value, record.id, state)
        if objects.generation != generation:
            objects.generation = -1  # so that it is looked up before it is used
