"""What a forget leaves of an agent's state beside its messages, while the agent is running.

A run holds its channels in the process, so what is erased from the checkpoint meanwhile would be in
what it returns, and in what its later nodes read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.channels import BinaryOperatorAggregate, LastValue
from langgraph.types import Overwrite

from .middleware_run import Run

MESSAGES = "messages"
READ = "__pregel_read"  # where LangGraph gives a task its graph's channels


def stored(run: Run) -> dict[str, Any]:
    """Return the values of the running graph's channels as they are stored, but for the messages.

    Only a DeLLMSaver changes what it has stored, so there are none of another.
    """
    if run.kept is None or run.saver is None:
        return {}
    found = run.saver.get_tuple(run.at)
    values = {} if found is None else found.checkpoint["channel_values"]
    return {name: one for name, one in values.items() if name != MESSAGES}


def update_of(run: Run, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the update that makes the running graph's channels what they are stored as.

    What is left of a value takes its place: None, or what a reducer begins with, where that is
    nothing. A channel of another class than LangGraph's for state is left alone.
    """
    channels = _channels(run)
    changed = [name for name in before if _packed(run, before, name) != _packed(run, after, name)]
    update: dict[str, Any] = {}
    for name in changed:
        channel = channels.get(name)
        if isinstance(channel, BinaryOperatorAggregate):
            update[name] = Overwrite(after[name] if name in after else channel.typ())
        elif isinstance(channel, LastValue):
            update[name] = after.get(name)
    return update


def _packed(run: Run, values: Mapping[str, Any], name: str) -> object:
    """Return what two values can be compared by, whatever they are."""
    return (
        None if run.kept is None or name not in values else run.kept.serde.dumps_typed(values[name])
    )


def _channels(run: Run) -> Mapping[str, Any]:
    read = run.config.get("configurable", {}).get(READ)
    found = [one for one in getattr(read, "args", ()) if isinstance(one, Mapping)]
    return next((one for one in found if MESSAGES in one), {})
