"""Keep tool calls and their results in pairs when one of the two has been erased.

A provider refuses a list in which a call has no result or a result has no call. What is wrong
with a list is found in one pass; only messages that must change are copied.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

# How a content block says "call": Anthropic, LangChain's standard blocks, OpenAI's Responses.
_CALL_BLOCKS = frozenset(
    {
        "tool_use",
        "tool_call",
        "invalid_tool_call",
        "tool_call_chunk",
        "function_call",
        "custom_tool_call",
        "computer_call",
    }
)
# Thoughts that lead to the block after them: no provider takes them with nothing behind.
_THOUGHT_BLOCKS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
# What an assistant can say outside of its content.
_SPEECH = ("refusal", "audio", "function_call")

_FIELDS = attrgetter("__dict__")

Content = str | list[str | dict[Any, Any]]
Block = str | dict[Any, Any]


class _Unpaired(NamedTuple):
    """Per position in the list, the call ids to take out of the message that is there."""

    calls: dict[int, set[str]]
    results: dict[int, set[str]]


def repaired(
    messages: Sequence[BaseMessage], erased_calls: Container[str], affected: bool
) -> list[BaseMessage]:
    """Return the messages with the calls and results that lost their other half taken out.

    A call whose id is in `erased_calls` and that no message after it answers is taken out of its
    message, in every place a message keeps it; an assistant message that then neither says nor
    calls anything is left out. A call without a result whose id is not in `erased_calls` is
    pending and stays. With `affected`, a result that answers no call before it is left out.

    Messages that need no change are the very same objects, in the same order; a changed one is a
    copy with the same class and id. Where a list uses one call id several times, a result answers
    the latest call with it. Source: the pairing rules of OpenAI's Chat Completions and Responses
    and of Anthropic's Messages; calls without an id (OpenAI's old `function_call`) have no pairs.
    """
    if not (affected or erased_calls):
        return list(messages)
    unpaired = _unpaired(messages, erased_calls)
    if not (unpaired.calls or (affected and unpaired.results)):
        return list(messages)
    if not affected:
        unpaired.results.clear()
    return list(_mended(messages, unpaired))


def _unpaired(messages: Sequence[BaseMessage], erased_calls: Container[str]) -> _Unpaired:
    waiting: dict[str, int] = {}  # call id: position of the message that makes the call
    never_answered: list[tuple[str, int]] = []
    results: dict[int, set[str]] = {}
    # One attribute of a pydantic object costs as much as four keys of its dict.
    for position, fields in enumerate(map(_FIELDS, messages)):
        plain = type(fields["content"]) is str
        if "tool_calls" in fields:
            if plain and not (
                fields["tool_calls"] or fields["invalid_tool_calls"] or fields["additional_kwargs"]
            ):
                continue
            for call in _call_ids(fields):
                if waiting.setdefault(call, position) != position:
                    never_answered.append((call, waiting[call]))
                    waiting[call] = position
        elif not plain or "tool_call_id" in fields:
            for result in _result_ids(fields):
                if waiting.pop(result, None) is None:
                    results.setdefault(position, set()).add(result)
    never_answered.extend(waiting.items())
    return _Unpaired(_by_position(never_answered, erased_calls), results)


def _by_position(calls: list[tuple[str, int]], erased: Container[str]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for call, position in calls:
        if call in erased:
            found.setdefault(position, set()).add(call)
    return found


def _mended(messages: Sequence[BaseMessage], unpaired: _Unpaired) -> Iterator[BaseMessage]:
    for position, message in enumerate(messages):
        if position in unpaired.calls:
            rest = _without_calls(message, unpaired.calls[position])
        elif position in unpaired.results:
            rest = _without_results(message, unpaired.results[position])
        else:
            rest = message
        if rest is not None:
            yield rest


def _call_ids(fields: dict[str, Any]) -> Iterable[str]:
    """Return the ids of the calls that any provider would be sent for an assistant message."""
    calls, raw, content = fields["tool_calls"], fields["additional_kwargs"], fields["content"]
    if not (raw or fields["invalid_tool_calls"] or type(content) is not str):
        return [one for call in calls if (one := call.get("id"))]
    ids = [_id(call) for call in (*calls, *fields["invalid_tool_calls"])]
    ids += [_id(call) for call in _raw_calls(raw)]
    ids += [_id(block) for block in content if _is_call(block)]
    return dict.fromkeys(one for one in ids if one)


def _raw_calls(additional: dict[str, Any]) -> list[Any]:
    raw = additional.get("tool_calls")
    return raw if isinstance(raw, list) else []


def _result_ids(fields: dict[str, Any]) -> Iterable[str]:
    if "tool_call_id" in fields:
        return (fields["tool_call_id"],)
    return [one for block in fields["content"] if (one := _answered(block))]


def _id(call: Any) -> str | None:
    """Return the id a result has to name; the Responses API keeps it apart from the item's own."""
    found = (call.get("call_id") or call.get("id")) if isinstance(call, dict) else None
    return found if isinstance(found, str) else None


def _is_call(block: Block) -> bool:
    return isinstance(block, dict) and block.get("type") in _CALL_BLOCKS


def _answered(block: Block) -> str | None:
    """Return the call that an Anthropic `tool_result` block answers."""
    if isinstance(block, dict) and block.get("type") == "tool_result":
        found = block.get("tool_use_id")
        return found if isinstance(found, str) else None
    return None


def _without_calls(message: BaseMessage, gone: set[str]) -> BaseMessage | None:
    """Return a copy that no longer makes the calls `gone`, None if nothing is left of it."""
    fields = ("tool_calls", "invalid_tool_calls", "tool_call_chunks")
    update: dict[str, Any] = {
        name: rest
        for name in fields
        if (calls := getattr(message, name, None)) and (rest := _kept(calls, gone)) != calls
    }
    if (content := _spoken(message.content, gone)) is not message.content:
        update["content"] = content
    if (extra := _extra(message, gone)) != message.additional_kwargs:
        update["additional_kwargs"] = extra
    copy = message.model_copy(update=update)
    if _call_ids(_FIELDS(copy)):
        return copy
    if not isinstance(copy.content, str):
        copy.content = _without_last_thoughts(copy.content)
    return copy if _speaks(copy) else None


def _kept(calls: list[Any], gone: set[str]) -> list[Any]:
    return [call for call in calls if _id(call) not in gone]


def _spoken(content: Content, gone: set[str]) -> Content:
    """Return the content without the calls, and without the thoughts that led to them alone."""
    if isinstance(content, str):
        return content
    kept: list[Block] = []
    cut = False
    for block in content:
        if _is_call(block) and _id(block) in gone:
            cut = True
            continue
        if cut and not _is_call(block):
            kept = _without_last_thoughts(kept)
        cut = False
        kept.append(block)
    if cut:
        kept = _without_last_thoughts(kept)
    return kept if len(kept) < len(content) else content


def _without_last_thoughts(blocks: list[Block]) -> list[Block]:
    end = len(blocks)
    while end and _is_thought(blocks[end - 1]):
        end -= 1
    return blocks[:end]


def _is_thought(block: Block) -> bool:
    return isinstance(block, dict) and block.get("type") in _THOUGHT_BLOCKS


def _extra(message: BaseMessage, gone: set[str]) -> dict[str, Any]:
    """Return the provider's own fields without the calls: raw calls, and maps from a call's id."""
    extra: dict[str, Any] = {}
    for name, value in message.additional_kwargs.items():
        rest = value
        if name == "tool_calls" and value:
            rest = _kept(_raw_calls(message.additional_kwargs), gone)
        elif isinstance(value, dict) and not gone.isdisjoint(value):
            rest = {key: one for key, one in value.items() if key not in gone}
        # An empty list of calls is refused too.
        if rest or rest is value:
            extra[name] = rest
    if _repeats_a_call(message, extra.get("function_call"), gone):
        del extra["function_call"]
    return extra


def _repeats_a_call(message: BaseMessage, legacy: Any, gone: set[str]) -> bool:
    """Say whether a `function_call` field (no id; Gemini) is only there for calls in `gone`."""
    if not isinstance(legacy, dict) or not isinstance(message, AIMessage):
        return False
    same = [call for call in message.tool_calls if call["name"] == legacy.get("name")]
    return bool(same) and not _kept(same, gone)


def _speaks(message: BaseMessage) -> bool:
    if any(message.additional_kwargs.get(name) for name in _SPEECH):
        return True
    if isinstance(message.content, str):
        return bool(message.content.strip())
    return any(_says(block) for block in message.content)


def _says(block: Block) -> bool:
    if isinstance(block, str) or block.get("type") == "text":
        text = block if isinstance(block, str) else block.get("text")
        return bool(text and text.strip())
    return not _is_thought(block)


def _without_results(message: BaseMessage, gone: set[str]) -> BaseMessage | None:
    """Return None for a tool message, else a copy without the `tool_result` blocks `gone`."""
    if isinstance(message, ToolMessage):
        return None
    rest = [block for block in message.content if _answered(block) not in gone]
    return message.model_copy(update={"content": rest}) if rest else None
