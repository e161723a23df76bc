"""Tool calls and results stay in pairs, whatever was erased, and nothing else is touched."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_openai import ChatOpenAI
from pairing import calls_of, problems, results_of

from dellm_langchain.pairs import repaired

Style = Callable[[str, list[str], str], AIMessage]
ARGS = {"city": "Paris"}


def call(id_: str) -> dict[str, Any]:
    return {"name": "look_up", "args": dict(ARGS), "id": id_, "type": "tool_call"}


def plain(id_: str, calls: list[str], says: str) -> AIMessage:
    usage = UsageMetadata(input_tokens=3, output_tokens=2, total_tokens=5)
    return AIMessage(
        says,
        id=id_,
        tool_calls=[call(one) for one in calls],
        usage_metadata=usage,
        response_metadata={"finish_reason": "tool_calls"},
    )


def raw_openai(id_: str, calls: list[str], says: str) -> AIMessage:
    function = {"name": "look_up", "arguments": json.dumps(ARGS)}
    raw = [{"id": one, "type": "function", "function": function} for one in calls]
    return AIMessage(says, id=id_, additional_kwargs={"tool_calls": raw, "refusal": None})


def broken(id_: str, calls: list[str], says: str) -> AIMessage:
    invalid = [{**call(one), "args": "{", "error": "no JSON"} for one in calls[1:]]
    return AIMessage(
        says,
        id=id_,
        tool_calls=[call(calls[0])],
        invalid_tool_calls=invalid,
    )


def anthropic(id_: str, calls: list[str], says: str) -> AIMessage:
    content: list[Any] = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    content += [{"type": "text", "text": says}] if says else []
    content += [{"type": "tool_use", "id": one, "name": "look_up", "input": ARGS} for one in calls]
    return AIMessage(content, id=id_, tool_calls=[call(one) for one in calls])


def anthropic_by_hand(id_: str, calls: list[str], says: str) -> AIMessage:
    message = anthropic(id_, calls, says)
    message.tool_calls = []
    return message


def responses(id_: str, calls: list[str], says: str) -> AIMessage:
    content: list[Any] = [{"type": "text", "text": says, "id": f"msg_{id_}"}] if says else []
    for at, one in enumerate(calls):
        if at != 1:  # the first two calls come out of one thought
            content.append({"type": "reasoning", "id": f"rs_{one}", "summary": []})
        item = {"type": "function_call", "id": f"fc_{one}", "call_id": one, "name": "look_up"}
        content.append({**item, "arguments": json.dumps(ARGS)})
    return AIMessage(content, id=id_, tool_calls=[call(one) for one in calls])


def standard(id_: str, calls: list[str], says: str) -> AIMessage:
    blocks: list[Any] = [{"type": "reasoning", "reasoning": "hm"}]
    blocks += [{"type": "text", "text": says}] if says else []
    blocks += [call(one) for one in calls]
    return AIMessage(content_blocks=blocks, id=id_, response_metadata={"output_version": "v1"})


def streamed(id_: str, calls: list[str], says: str) -> AIMessage:
    chunks = [
        tool_call_chunk(name="look_up", args=json.dumps(ARGS), id=one, index=at)
        for at, one in enumerate(calls)
    ]
    return AIMessageChunk(
        content=says,
        id=id_,
        tool_call_chunks=chunks,
    )


STYLES: list[Style] = [
    plain,
    raw_openai,
    broken,
    anthropic,
    anthropic_by_hand,
    responses,
    standard,
    streamed,
]


@st.composite
def rounds(draw: st.DrawFn, name: str) -> list[BaseMessage]:
    """Draw a message with one to four parallel calls, and all results in any order."""
    calls = [f"call_{name}_{at}" for at in range(draw(st.integers(1, 4)))]
    style = draw(st.sampled_from(STYLES))
    asking = style(f"ai_{name}", calls, draw(st.sampled_from(["", "Let me see."])))
    order = draw(st.permutations(calls))
    if draw(st.booleans()):
        return [asking, *(ToolMessage("21", tool_call_id=one, id=f"t_{one}") for one in order)]
    blocks: list[Any] = [
        {"type": "tool_result", "tool_use_id": one, "content": "1"} for one in order
    ]
    return [asking, HumanMessage(blocks, id=f"results_{name}")]


@st.composite
def threads(draw: st.DrawFn) -> list[BaseMessage]:
    """Draw a valid thread; it may stop where some tools have yet to run."""
    messages: list[BaseMessage] = [SystemMessage("Be kind.", id="system")]
    for turn in range(draw(st.integers(0, 4))):
        messages.append(HumanMessage(f"question {turn}", id=f"human_{turn}"))
        for number in range(draw(st.integers(0, 3))):
            messages += draw(rounds(f"{turn}_{number}"))
        messages.append(AIMessage(f"answer {turn}", id=f"reply_{turn}"))
    if draw(st.booleans()):
        messages += draw(rounds("last"))
        if isinstance(messages[-1], ToolMessage):
            answered = len(results_in_a_row(messages))
            del messages[len(messages) - draw(st.integers(0, answered)) :]
    return messages


def results_in_a_row(messages: list[BaseMessage]) -> list[BaseMessage]:
    at = len(messages)
    while isinstance(messages[at - 1], ToolMessage):
        at -= 1
    return messages[at:]


@st.composite
def erasures(draw: st.DrawFn) -> tuple[list[BaseMessage], list[BaseMessage], set[str]]:
    """Draw a thread, what is left of it, and the calls whose message or result was erased."""
    thread = draw(threads())
    gone = draw(st.sets(st.integers(0, len(thread) - 1)))
    left = [message for at, message in enumerate(thread) if at not in gone]
    erased = {one for at in gone for one in (*calls_of(thread[at]), *results_of(thread[at])) if one}
    return thread, left, erased


def unanswered(left: list[BaseMessage], erased: set[str]) -> set[str]:
    answered = {one for message in left for one in results_of(message)}
    return {one for one in erased if one not in answered}


@given(threads())
def test_the_drawn_threads_are_valid(thread: list[BaseMessage]) -> None:
    assert problems(thread, paused=True) == []


@given(erasures())
def test_whatever_is_erased_the_rest_is_valid(
    case: tuple[list[BaseMessage], list[BaseMessage], set[str]],
) -> None:
    thread, left, erased = case
    after = repaired(left, erased, len(left) < len(thread))
    assert problems(after, paused=True) == []


@given(erasures())
def test_only_calls_and_results_without_their_other_half_are_taken_out(
    case: tuple[list[BaseMessage], list[BaseMessage], set[str]],
) -> None:
    thread, left, erased = case
    before = copy.deepcopy(left)
    after = {message.id: message for message in repaired(left, erased, len(left) < len(thread))}
    lost = unanswered(left, erased)
    asked = {one for message in left for one in calls_of(message)}
    for message in left:
        kept = [one for one in calls_of(message) if one not in lost]
        answers = [one for one in results_of(message) if one in asked]
        if kept == calls_of(message) and answers == results_of(message):
            assert after[message.id] is message
        elif message.id in after:
            assert calls_of(after[message.id]) == kept
            assert results_of(after[message.id]) == answers
            assert same_but_for_pairs(message, after[message.id])
        else:
            assert not kept
            assert not answers
            assert "Let me see." not in str(message.content)
    assert left == before


def same_but_for_pairs(one: BaseMessage, other: BaseMessage) -> bool:
    pairs = ("tool_calls", "invalid_tool_calls", "tool_call_chunks", "content", "additional_kwargs")
    fields = type(one).model_fields.keys() - set(pairs)
    same = all(getattr(one, name) == getattr(other, name) for name in fields)
    return type(one) is type(other) and one.text == other.text and same


@given(erasures())
def test_the_order_stays_and_a_second_repair_changes_nothing(
    case: tuple[list[BaseMessage], list[BaseMessage], set[str]],
) -> None:
    thread, left, erased = case
    affected = len(left) < len(thread)
    after = repaired(left, erased, affected)
    places = [next(at for at, one in enumerate(left) if one.id == each.id) for each in after]
    assert places == sorted(places)
    assert [id(one) for one in repaired(after, erased, affected)] == [id(one) for one in after]


@given(threads(), st.booleans())
def test_a_valid_thread_stays_the_same_objects(thread: list[BaseMessage], affected: bool) -> None:
    after = repaired(thread, {"call_of_another_thread"}, affected)
    assert [id(one) for one in after] == [id(one) for one in thread]


MODELS = {
    api: ChatOpenAI(model="gpt", api_key="none", use_responses_api=api)  # type: ignore[arg-type] # a str is taken
    for api in (False, True)
}


def sent(messages: list[BaseMessage], responses_api: bool) -> list[dict[str, Any]]:
    payload = MODELS[responses_api]._get_request_payload(messages)
    items: list[dict[str, Any]] = payload["input" if responses_api else "messages"]
    return items


@given(erasures())
def test_openai_is_sent_an_output_for_each_call_and_a_call_for_each_output(
    case: tuple[list[BaseMessage], list[BaseMessage], set[str]],
) -> None:
    thread, left, erased = case
    after = repaired(left, erased, len(left) < len(thread))
    if problems(after) or any(isinstance(one.content, list) for one in after if results_of(one)):
        return  # still waiting for its tools, or written for Anthropic only
    items = sent(after, responses_api=True)
    called = [one["call_id"] for one in items if one.get("type") == "function_call"]
    outputs = [one["call_id"] for one in items if one.get("type") == "function_call_output"]
    by_hand = {one.id for one in after if calls_of(one) and not getattr(one, "tool_calls", True)}
    if not by_hand:
        assert sorted(called) == sorted(outputs)
    after_thoughts = [
        items[at + 1] for at, one in enumerate(items) if one.get("type") == "reasoning"
    ]
    assert all("call_id" in one or one.get("role") == "assistant" for one in after_thoughts)
    assert not any(one.get("type") == "function_call_output" for one in after_thoughts)


REFUSED: dict[str, list[BaseMessage]] = {
    "no result": [plain("a", ["x"], ""), HumanMessage("?")],
    "one of two results": [plain("a", ["x", "y"], ""), ToolMessage("1", tool_call_id="x")],
    "result after a question": [
        plain("a", ["x"], ""),
        HumanMessage("?"),
        ToolMessage("1", tool_call_id="x"),
    ],
    "result of nothing": [HumanMessage("?"), ToolMessage("1", tool_call_id="x")],
    "result at the start": [ToolMessage("1", tool_call_id="x")],
    "result of another call": [
        plain("a", ["x"], ""),
        ToolMessage("1", tool_call_id="x"),
        ToolMessage("1", tool_call_id="y"),
    ],
    "two results": [
        plain("a", ["x"], ""),
        ToolMessage("1", tool_call_id="x"),
        ToolMessage("2", tool_call_id="x"),
    ],
    "an id used twice": [
        plain("a", ["x"], ""),
        ToolMessage("1", tool_call_id="x"),
        plain("b", ["x"], ""),
        ToolMessage("2", tool_call_id="x"),
    ],
    "a call in the content only": [anthropic_by_hand("a", ["x"], ""), HumanMessage("?")],
    "an invalid call": [
        broken("a", ["x", "y"], ""),
        ToolMessage("1", tool_call_id="x"),
        HumanMessage("?"),
    ],
    "a call without an id": [
        AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": None}]),
        HumanMessage("?"),
    ],
    "an empty list of calls": [AIMessage("Yes.", additional_kwargs={"tool_calls": []})],
    "a thought at the end": [AIMessage([{"type": "thinking", "thinking": "hm"}])],
    "nothing said": [AIMessage(" "), HumanMessage("?")],
    "a question before the results": [
        plain("a", ["x"], ""),
        HumanMessage(
            [{"type": "text", "text": "?"}, {"type": "tool_result", "tool_use_id": "x"}],
        ),
    ],
    "a result after a question in the same message": [
        plain("a", ["x", "y"], ""),
        HumanMessage(
            [{"type": "tool_result", "tool_use_id": "x"}, {"type": "text", "text": "?"}],
        ),
        ToolMessage("1", tool_call_id="y"),
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_validator_finds(name: str) -> None:
    assert problems(REFUSED[name]) != []


def test_the_validator_lets_only_the_last_message_wait_and_only_in_a_paused_graph() -> None:
    waiting = [plain("a", ["x", "y"], ""), ToolMessage("1", tool_call_id="y")]
    assert problems(waiting) != []
    assert problems(waiting, paused=True) == []
    assert problems([*waiting, HumanMessage("?")], paused=True) != []


@pytest.mark.parametrize("style", STYLES)
def test_the_erased_call_goes_from_every_place_and_the_others_stay(style: Style) -> None:
    asking = style("a", ["x", "y", "z"], "Let me see.")
    left = [asking, *(ToolMessage("1", tool_call_id=one) for one in "zx")]
    changed, *results = repaired(left, {"y"}, affected=True)
    assert calls_of(changed) == ["x", "z"]
    assert '"y"' not in changed.model_dump_json()
    assert results == left[1:]
    assert changed.id == "a"


@pytest.mark.parametrize("style", STYLES)
def test_what_was_said_stays_when_all_calls_go_without_an_empty_list_of_calls(style: Style) -> None:
    (changed,) = repaired([style("a", ["x", "y"], "Let me see.")], {"x", "y"}, affected=True)
    assert changed.text == "Let me see."
    assert calls_of(changed) == []
    assert problems([changed, HumanMessage("?")]) == []
    assert "tool_calls" not in changed.additional_kwargs


@pytest.mark.parametrize("style", STYLES)
def test_a_message_that_only_called_disappears_with_its_calls(style: Style) -> None:
    question = HumanMessage("?")
    assert repaired([question, style("a", ["x", "y"], "")], {"x", "y"}, affected=True) == [question]


@pytest.mark.parametrize("style", STYLES)
def test_a_call_that_waits_for_its_tool_is_left_alone(style: Style) -> None:
    left = [style("a", ["x", "y"], ""), ToolMessage("1", tool_call_id="x")]
    assert repaired(left, {"other"}, affected=True) == left
    assert calls_of(repaired([left[0]], {"x"}, affected=True)[0]) == ["y"]


def test_a_result_whose_call_is_gone_stays_where_nothing_was_erased() -> None:
    left = [HumanMessage("?"), ToolMessage("1", tool_call_id="x")]
    assert repaired(left, {"y"}, affected=False) == left
    assert repaired(left, {"y"}, affected=True) == left[:1]


def test_a_reused_id_belongs_to_the_latest_call_with_it() -> None:
    first, second = plain("a", ["x"], "One."), plain("b", ["x"], "Two.")
    left = [first, HumanMessage("?"), second, ToolMessage("2", tool_call_id="x")]
    after = repaired(left, {"x"}, affected=True)
    assert [calls_of(one) for one in after] == [[], [], ["x"], []]
    assert after[2] is second


def test_a_thought_goes_with_the_calls_it_led_to_and_stays_with_the_others() -> None:
    asking = responses("a", ["w", "x", "y"], "")  # one thought before w and x, one before y
    kinds = {
        gone: [block["type"] for block in repaired([asking], set(gone), affected=True)[0].content]  # type: ignore[index] # blocks are dicts
        for gone in ("w", "wx", "y")
    }
    thought, called = "reasoning", "function_call"
    assert kinds == {
        "w": [thought, called, thought, called],
        "wx": [thought, called],
        "y": [thought, called, called],
    }


def test_a_last_thought_goes_when_the_calls_after_it_are_named_outside_the_content() -> None:
    content: list[Any] = [{"type": "text", "text": "Yes."}, {"type": "thinking", "thinking": "hm"}]
    asking = AIMessage(content, id="a", tool_calls=[call("x")])
    assert repaired([asking], {"x"}, affected=True)[0].content == content[:1]


def test_what_providers_keep_by_call_id_goes_with_the_call() -> None:
    legacy = {"name": "look_up", "arguments": json.dumps(ARGS)}
    ids = {"__openai_function_call_ids__": {"x": "fc_x", "y": "fc_y"}}
    asking = AIMessage("One.", tool_calls=[call("x")], additional_kwargs={"function_call": legacy})
    assert repaired([asking], {"x"}, affected=True)[0].additional_kwargs == {}
    asking = AIMessage("", tool_calls=[call("x"), call("y")], additional_kwargs=ids)
    after = repaired([asking], {"x"}, affected=True)[0]
    assert after.additional_kwargs == {"__openai_function_call_ids__": {"y": "fc_y"}}
    assert asking.additional_kwargs == ids


def test_a_refusal_counts_as_something_said() -> None:
    asking = AIMessage("", tool_calls=[call("x")], additional_kwargs={"refusal": "No."})
    (after,) = repaired([asking], {"x"}, affected=True)
    assert after.additional_kwargs == {"refusal": "No."}
    assert calls_of(after) == []


@pytest.mark.parametrize("odd", [None, "x", 7, {"x": 1}, [None, "x", {"id": 7}]])
def test_odd_values_in_a_message_break_nothing(odd: Any) -> None:
    message = AIMessage("Yes.", additional_kwargs={"tool_calls": odd} if odd else {})
    blocks = HumanMessage(["text", {"type": "tool_result"}, {"kind": 1}])
    nameless = AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": None}])
    left = [message, blocks, nameless]
    assert [id(one) for one in repaired(left, {"x"}, affected=True)] == [id(one) for one in left]
