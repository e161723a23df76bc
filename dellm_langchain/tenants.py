"""Whose a call is: the workspace that its config names under a key, and objects bound to one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

from dellm import InvalidInput, Memory


def workspace_named(
    said: Mapping[str, Any], key: str, *, running: bool = True, bound: bool = True
) -> str:
    """Return the workspace that a config's `configurable` names; InvalidInput where it names none.

    What the error says: `running`, whether there is a config; `bound`, whether the object could be
    bound to a workspace.
    """
    found = said.get(key)
    if isinstance(found, str) and found.strip():
        return found
    instead = ", or use for_workspace(id)" if bound else ""
    raise InvalidInput(
        f"The config names no workspace: {key!r} is no text in configurable."
        if running
        else "This call has no config that could name the workspace.",
        remedy=f"Pass configurable={{{key!r}: ...}}{instead}.",
    )


def memory_of(
    memory: Memory,
    said: Mapping[str, Any],
    key: str | None,
    *,
    running: bool = True,
    bound: bool = True,
) -> Memory:
    """Return the memory of the workspace that a config names, or the one given without a `key`."""
    if key is None:
        return memory
    return memory.workspace(workspace_named(said, key, running=running, bound=bound))


class Tenanted:
    """An object that serves many workspaces: `_key` names the configurable that says which.

    None: all is in the workspace of `memory`.
    """

    memory: Memory
    _key: str | None

    def for_workspace(self, name: str) -> Self:
        """Return this object for one workspace: for the calls that no config tells theirs."""
        twin = copy.copy(self)
        twin.memory = self.memory.workspace(name)
        twin._key = None  # noqa: SLF001 - a copy of this very object
        return twin
