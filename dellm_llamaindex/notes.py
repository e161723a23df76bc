"""A note on a message object that says which model's reply it is: nobody else sees it.

It stays when the message is handed on or copied within this process; pickled or taken apart, the
message loses it, and its content tells.
"""

from __future__ import annotations

from llama_index.core.base.llms.types import ChatMessage

from .flows import Output

_NOTE = "_dellm_reply"


class _Held:
    """An output, held so that copies of a message share it and pickles of it leave it out."""

    __slots__ = ("output",)

    def __init__(self, output: Output) -> None:
        self.output = output

    def __copy__(self) -> _Held:
        return self

    def __deepcopy__(self, memo: object) -> _Held:
        return self

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


def note(message: ChatMessage, output: Output) -> None:
    """Note on a message that it is a model's reply, or a part of one that is still streamed."""
    object.__setattr__(message, _NOTE, _Held(output))


def noted(message: ChatMessage) -> Output | None:
    """Return the reply that a message was noted to be."""
    found = message.__dict__.get(_NOTE)
    return found.output if isinstance(found, _Held) else None
