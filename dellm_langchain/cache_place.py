"""Where a cached model call runs: in the workspace that its own config names, else in that of its run."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from dellm import Memory

from .call_configs import Configurable
from .call_places import parsed
from .running import Here, here


def place_of(memory: Memory, key: str | None, given: Sequence[Configurable]) -> Here | None:
    """Return where a call runs that was given these configurables; `key` as for `here`.

    None where it is not sure whose content its prompt holds: a batch for several workspaces, or a call
    for one workspace in a task of a graph that runs in another. Then nothing is to be cached.
    """
    ambient = var_child_runnable_config.get() or RunnableConfig()
    around = ambient.get("configurable", {})
    if key is None or not given or all(one.get(key) == around.get(key) for one in given):
        return here(memory, key)
    first = given[0]
    if any(one.get(key) != first.get(key) for one in given):
        return None
    if key not in around:
        return _within({**ambient, "configurable": {**around, key: first.get(key)}}, memory, key)
    if parsed(str(around.get("checkpoint_ns") or ""))[0]:
        return None
    return _within(RunnableConfig(configurable=dict(first)), memory, key)


def _within(config: RunnableConfig, memory: Memory, key: str) -> Here:
    token = var_child_runnable_config.set(config)
    try:
        return here(memory, key)
    finally:
        var_child_runnable_config.reset(token)
