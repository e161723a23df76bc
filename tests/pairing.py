"""A validator of the rules by which OpenAI and Anthropic accept tool calls and their results.

Written from what the two publish: OpenAI's guide to function calling and the reference of Chat
Completions and Responses; Anthropic's pages on handling tool calls, on extended thinking and the
reference of the Messages API. It reads LangChain messages as the two integrations send them, and
knows nothing of the code it is used to test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

CALLS = ("tool_use", "tool_call", "invalid_tool_call", "function_call", "custom_tool_call")
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")


def problems(messages: Sequence[BaseMessage], *, paused: bool = False) -> list[str]:
    """Return what a provider would refuse in a list of messages: positions, ids and the rule.

    A `paused` list is the state of a graph that has yet to run its tools: the calls of its last
    assistant message may still wait for results. No content of a message is repeated.
    """
    return [
        *_unpaired(messages, paused),
        *_used_twice(messages),
        *(one for at, message in enumerate(messages) for one in _badly_formed(at, message)),
        *_empty(messages),
    ]


def calls_of(message: BaseMessage) -> list[str | None]:
    """Return the ids of the calls of an assistant message, wherever they are kept, each once."""
    if not isinstance(message, AIMessage):
        return []
    ids = [call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)]
    ids += [call.get("id") for call in message.additional_kwargs.get("tool_calls", ())]
    ids += [block.get("call_id") or block.get("id") for block in _blocks(message, *CALLS)]
    return list(dict.fromkeys(ids))


def results_of(message: BaseMessage) -> list[str]:
    """Return the ids of the calls a message answers: a tool message, or `tool_result` blocks."""
    if isinstance(message, ToolMessage):
        return [message.tool_call_id]
    if isinstance(message, HumanMessage):
        return [block["tool_use_id"] for block in _blocks(message, "tool_result")]
    return []


def _blocks(message: BaseMessage, *types: str) -> list[dict[str, Any]]:
    if isinstance(message.content, str):
        return []
    return [one for one in message.content if isinstance(one, dict) and one.get("type") in types]


def _unpaired(messages: Sequence[BaseMessage], paused: bool) -> Iterator[str]:
    """OpenAI: an assistant message with calls is followed by a tool message for each of them.

    Anthropic: each `tool_use` has its one `tool_result` in the next message, and the other way
    round. Nothing may stand between.
    """
    at = 0
    while at < len(messages):
        calls, answers, end = calls_of(messages[at]), [], at + 1
        if not calls and results_of(messages[at]):
            end = at  # results with no call before them
        while end < len(messages) and (results := results_of(messages[end])):
            answers += [(end, one) for one in results]
            end += 1
            if _asks_too(messages[end - 1]):
                break
        waits = paused and end == len(messages)
        yield from _mismatched(at, calls, answers, waits)
        at = end


def _asks_too(message: BaseMessage) -> bool:
    """Say whether a user message goes on after its results, so that no more results can follow."""
    blocks = _blocks(message, "tool_result")
    return isinstance(message, HumanMessage) and len(blocks) < len(message.content)


def _mismatched(
    at: int, calls: list[str | None], answers: list[tuple[int, str]], waits: bool
) -> Iterator[str]:
    answered = [one for _, one in answers]
    for position, one in answers:
        if one not in calls:
            yield f"message {position}: result {one} answers no call of the message before"
    for call in calls:
        if call is None:
            yield f"message {at}: a call has no id"
        elif answered.count(call) > 1:
            yield f"message {at}: call {call} has {answered.count(call)} results"
        elif call not in answered and not waits:
            yield f"message {at}: call {call} has no result right after it"


def _used_twice(messages: Sequence[BaseMessage]) -> Iterator[str]:
    """Anthropic: the ids of `tool_use` blocks are unique in a request."""
    seen: dict[str | None, int] = {}
    for at, message in enumerate(messages):
        for call in calls_of(message):
            if seen.setdefault(call, at) != at and call is not None:
                yield f"message {at}: call id {call} was used by message {seen[call]}"


def _badly_formed(at: int, message: BaseMessage) -> Iterator[str]:
    """Check one message by itself.

    OpenAI: a list of calls may be absent but not empty; a reasoning item comes with the item that
    followed it. Anthropic: an assistant message does not end in a thought; in the message that
    answers calls, the results come first.
    """
    if message.additional_kwargs.get("tool_calls", True) in ([], None):
        yield f"message {at}: an empty list of calls"
    content = [] if isinstance(message.content, str) else message.content
    speaks_last = isinstance(message, AIMessage) and not calls_of(message)
    if speaks_last and content[-1:] and content[-1] in _blocks(message, *THOUGHTS):
        yield f"message {at}: a thought with nothing after it"
    if isinstance(message, HumanMessage):
        results = _blocks(message, "tool_result")
        if content[: len(results)] != results:
            yield f"message {at}: something stands before the results"


def _empty(messages: Sequence[BaseMessage]) -> Iterator[str]:
    """OpenAI: content is required unless there are calls; Anthropic: it has no blank text.

    Only the last assistant message may be empty.
    """
    for at, message in enumerate(messages[:-1]):
        if isinstance(message, AIMessage) and not calls_of(message) and not _says(message):
            yield f"message {at}: an assistant message without content and without calls"


def _says(message: AIMessage) -> bool:
    if any(message.additional_kwargs.get(name) for name in ("refusal", "audio", "function_call")):
        return True
    if isinstance(message.content, str):
        return bool(message.content.strip())
    texts = [one if isinstance(one, str) else one.get("text", "text") for one in message.content]
    return any(text.strip() for text in texts)
