"""What a message in a prompt stands for: a record, a reply seen before, a constant, or unknown."""

from __future__ import annotations

from llama_index.core.base.llms.types import ChatMessage

from .flows import Flow
from .notes import noted
from .scopes import Scope
from .tags import digest_of, tag_of


def flow_of(message: ChatMessage, scope: Scope | None) -> Flow:
    """Return what a message of a prompt was made from; more than that where it cannot be told.

    Outside of any scope what is unknown is unsure.
    """
    digest, tag, flow = digest_of(message), tag_of(message), Flow()
    if tag is not None and tag.digest == digest:
        flow.read(tag.owner, [tag.record])
        return flow
    output = noted(message)
    if output is not None:
        flow.outputs[output] = None
        return flow
    if scope is not None:
        return scope.everything()
    flow.unsure = True
    return flow
