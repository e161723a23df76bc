"""What the messages of a prompt stand for: records, replies seen before, constants, or unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from llama_index.core.agent.workflow.prompts import DEFAULT_EARLY_STOPPING_PROMPT
from llama_index.core.base.llms.types import ChatMessage

from .flows import Flow, Output
from .notes import noted
from .replies import outputs_of
from .scopes import Scope, guard, outside
from .tags import call_ids, digest_of, tag_of

_SAID = frozenset({"assistant", "tool", "function"})
_EARLY = re.compile(
    re.escape(DEFAULT_EARLY_STOPPING_PROMPT).replace(re.escape("{max_iterations}"), r"\d+")
)


def flow_of(message: ChatMessage, scope: Scope | None) -> Flow:
    """Return what a message of a prompt was made from; more than that where it cannot be told.

    Outside of any scope what is unknown is unsure.
    """
    return flow_of_all([message], scope)


def flow_of_all(messages: Iterable[ChatMessage], scope: Scope | None) -> Flow:
    """Return what a prompt was made from, in its order."""
    return prompted(messages, scope).made


def prompted(messages: Iterable[ChatMessage], scope: Scope | None) -> Output:
    """Return a reply to a prompt that has not been said yet."""
    flow, unknown = Flow(), list[ChatMessage]()
    for message in messages:
        if not _known(flow, message, scope):
            unknown.append(message)
    if unknown:
        flow.add(everything(scope))
    found: dict[Output, None] = {}
    for message in unknown if scope is not None else ():
        if message.role.value in _SAID and scope is not None:
            output = _found(message, scope)
            output.made.outputs.update(found)  # those before it were a part of its prompt
            found[output] = None
    flow.outputs.update(found)
    return Output(flow, guessed=bool(unknown) and not known_to_be_all(scope))


def known_to_be_all(scope: Scope | None) -> bool:
    """Whether what a scope has read is just what its prompts hold: in the framework's own engines."""
    instance = scope.turn.instance() if scope is not None else None
    return instance is not None and type(instance).__module__.startswith("llama_index.")


def _found(message: ChatMessage, scope: Scope) -> Output:
    """Return a reply or result that stands in a prompt, and that nobody has seen made.

    A run that goes on where another stopped, or that failed, stores it only later.
    """
    output = Output(scope.everything(), digest_of(message), tuple(call_ids(message)))
    with guard:
        scope.turn.replies.append(output)
    return output


def everything(scope: Scope | None) -> Flow:
    """Return all that what is said at a place may be made from."""
    return scope.everything() if scope is not None else outside().everything()


def _known(flow: Flow, message: ChatMessage, scope: Scope | None) -> bool:
    """Add what a message stands for; say whether that is all."""
    digest, tag = digest_of(message), tag_of(message)
    if tag is not None:
        flow.records.setdefault(tag.owner, {})[tag.record] = None
        return tag.digest == digest
    outputs = outputs_of(message, digest, scope)
    if outputs:
        flow.outputs.update(dict.fromkeys(outputs))
        return noted(message) is None or outputs[0].digest == digest
    if scope is None:
        return False
    said = scope.turn.said.get(digest, {})
    for owner, record in said:
        flow.read(owner, [record])
    return bool(said) or constant(message, digest, scope)


def constant(message: ChatMessage, digest: bytes, scope: Scope) -> bool:
    """Whether a message is one that an engine or agent always sends: it is made from nothing."""
    instance = scope.turn.instance()
    prefixes = getattr(instance, "_prefix_messages", None) or ()
    if any(digest_of(one) == digest for one in prefixes if isinstance(one, ChatMessage)):
        return True
    if message.role.value not in {"system", "developer"}:
        return False
    text = message.content or ""
    return text in set(_system_prompts(instance)) or _EARLY.fullmatch(text) is not None


def _system_prompts(instance: object) -> Iterator[object]:
    agents = getattr(instance, "agents", None)
    for one in [instance, *(agents.values() if isinstance(agents, dict) else ())]:
        yield getattr(one, "system_prompt", None)
        yield getattr(one, "_system_prompt", None)
