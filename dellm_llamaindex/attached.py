"""Pydantic objects of the framework that use an open memory: copies and JSON of them are handles.

What is written down is where the memory is, which workspace, and the object's settings; never what
is remembered, nor a password. See handles.py.
"""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import BaseModel, Field, PrivateAttr

from dellm import InvalidInput, Memory

from . import purging, taps
from .handles import Handle, Held, handle_of, open_once, opened
from .tags import Owner, owner_of


class Attached(BaseModel):
    """An object of the framework with a memory of its own; every copy of it shares that one.

    `memory` is a dellm.Memory, what has one as `core` (a DeLLMMemory), or the path or URL of one.
    """

    url: str = Field(description="Where the memory is, without a password.")
    workspace: str = Field(description="The workspace of the memory.")
    opened: str = Field(default="", description="Which open memory of which process it was.")

    _held: Held = PrivateAttr()

    def __init__(self, memory: Any = None, **data: Any) -> None:
        if memory is not None:
            data.update(handle_of(_core_of(memory, data.get("workspace")))._asdict())
        elif "url" not in data:
            raise InvalidInput(f"{type(self).__name__} takes a dellm.Memory, or a path or URL.")
        super().__init__(**data)

    def model_post_init(self, context: Any, /) -> None:
        """Find the memory that this means, or open it."""
        super().model_post_init(context)
        self._held = Held(opened(self._handle))
        taps.install()
        purging.watch(self._held.memory)

    @property
    def _handle(self) -> Handle:
        return Handle(self.url, self.workspace, self.opened)

    @property
    def core(self) -> Memory:
        """The open memory, in the workspace."""
        return self._held.of(self._handle)

    @property
    def owner(self) -> Owner:
        """The memory and the workspace as a key."""
        return owner_of(self.core)


def _core_of(memory: Any, workspace: str | None) -> Memory:
    if isinstance(memory, str):
        return open_once(memory, workspace)
    core = getattr(memory, "core", memory)
    if not isinstance(core, Memory):
        raise InvalidInput("memory= is neither a memory nor a path or URL.")
    return core if workspace is None else core.workspace(workspace)
