"""What a workflow's Context holds was made from something, and goes with it: live, and as JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.workflow import (
    Context,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from llama_models import Refused, RepeatingCaller, Step, fresh, own_tokens, repeated, tokens_in
from llama_sessions import both, core, memory, session
from llama_talks import given_context, look
from pydantic import BaseModel

from dellm import ContextForgotten, Memory
from dellm_llamaindex import DeLLMMemory, cleaned_context, state_taps
from dellm_llamaindex.state_cleaning import NOTES

__all__ = ["both", "core", "memory"]


# tools


@given_context
async def note(ctx: Context, text: str) -> str:
    """Write into the state what the call says."""
    async with ctx.store.edit_state() as held:
        held["state"] = {**held.get("state", {}), "noted": f"noted {repeated(text)}"}
    return "done"


@given_context
async def note_in_place(ctx: Context, text: str) -> str:
    """Write into the state without telling anyone."""
    state = await ctx.store.get("state")
    state["noted"] = f"noted {repeated(text)}"
    return "done"


@given_context
async def note_beside(ctx: Context, text: str) -> str:
    """Write under a key of one's own, a part of a value."""
    await ctx.store.set("noted", {})
    await ctx.store.set("noted.deep", f"noted {repeated(text)}")
    return "done"


@given_context
async def tell(ctx: Context, text: str) -> str:
    """Return what was noted beside."""
    return f"told {await ctx.store.get('noted.deep')}"


@given_context
async def ask(ctx: Context, text: str) -> str:
    """Ask a person."""
    answer = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent())
    return f"was told {answer.response} of {repeated(text)}"


def agent(tools: Sequence[Any], *steps: Step, **options: Any) -> FunctionAgent:
    model = RepeatingCaller()
    model.then(*steps)
    return FunctionAgent(tools=list(tools), llm=model, **options)


def question() -> str:
    return f"{fresh('U')} is a secret"


# runs that leave something in their Context


async def finished(memory: DeLLMMemory) -> tuple[Any, Context]:
    made = agent([note], ["note"], initial_state={"mood": "calm"})
    context = Context(made)
    await made.run(user_msg=question(), memory=memory, ctx=context)
    return made, context


async def paused(memory: DeLLMMemory) -> tuple[Any, Context]:
    made = agent([ask], ["ask"])
    context = Context(made)
    handler = made.run(user_msg=question(), memory=memory, ctx=context)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            break
    return made, context


async def failed(memory: DeLLMMemory) -> tuple[Any, Context]:
    made = agent([look], ["look"], "raise")
    context = Context(made)
    with pytest.raises(Refused):
        await made.run(user_msg=question(), memory=memory, ctx=context)
    return made, context


async def stopped_early(memory: DeLLMMemory) -> tuple[Any, Context]:
    made = agent([look], ["look"], ["look"], early_stopping_method="generate")
    context = Context(made)
    await made.run(user_msg=question(), memory=memory, ctx=context, max_iterations=2)
    return made, context


RUNS = {one.__name__: one for one in (finished, paused, failed, stopped_early)}


def secret_of(core: Memory) -> str:
    return own_tokens(core.history("main")[0].text)[0]


@pytest.mark.parametrize("run", RUNS)
async def test_a_context_holds_nothing_of_what_was_forgotten(both: Memory, run: str) -> None:
    _, context = await RUNS[run](session(both, "main"))
    assert secret_of(both) in json.dumps(context.to_dict())
    both.forget(ids=[1])
    assert not tokens_in(json.dumps(context.to_dict()))


@pytest.mark.parametrize("run", RUNS)
async def test_a_context_that_is_not_cleaned_holds_it(
    core: Memory, memory: DeLLMMemory, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dellm_llamaindex.purging._then", [])
    monkeypatch.setattr(state_taps, "cleaned_context", lambda data: data)
    monkeypatch.setattr(state_taps, "noted", lambda payload, held: payload)
    _, context = await RUNS[run](memory)
    secret = secret_of(core)
    core.forget(ids=[1])
    assert secret in json.dumps(context.to_dict())


@pytest.mark.parametrize("run", RUNS)
async def test_a_context_written_down_before_a_forget_brings_nothing_back(
    both: Memory, run: str
) -> None:
    made, context = await RUNS[run](session(both, "main"))
    written = json.dumps(context.to_dict())
    secret = secret_of(both)
    both.forget(ids=[1])
    assert secret in written
    assert not tokens_in(json.dumps(cleaned_context(json.loads(written))))
    restored = Context.from_dict(made, json.loads(written))
    assert not tokens_in(json.dumps(restored.to_dict()))
    made.llm.then()
    shown = len(made.llm.heard.prompts)
    await asyncio.wait_for(made.run(user_msg="go on", ctx=restored), 60)
    assert secret not in made.llm.heard.since(shown)


@pytest.mark.parametrize("run", RUNS)
async def test_a_context_restored_before_a_forget_and_run_after_it_brings_nothing_back(
    core: Memory, memory: DeLLMMemory, run: str
) -> None:
    made, context = await RUNS[run](memory)
    restored = Context.from_dict(made, json.loads(json.dumps(context.to_dict())))
    secret = secret_of(core)
    core.forget(ids=[1])
    made.llm.then()
    shown = len(made.llm.heard.prompts)
    await asyncio.wait_for(made.run(user_msg="go on", ctx=restored), 60)
    assert secret not in made.llm.heard.since(shown)


async def test_a_run_restored_before_another_process_forgot_what_it_had_read_is_not_resumed(
    core: Memory, memory: DeLLMMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, context = await paused(memory)
    restored = Context.from_dict(made, json.loads(json.dumps(context.to_dict())))
    monkeypatch.setattr("dellm_llamaindex.purging._then", [])  # as where nobody tells this one
    core.forget(ids=[1])
    with pytest.raises(ContextForgotten):
        made.run(ctx=restored)


async def test_what_an_agent_began_with_takes_the_place_of_a_state_that_goes(
    core: Memory, memory: DeLLMMemory
) -> None:
    _, context = await finished(memory)
    core.forget(ids=[1])
    assert await context.store.get("state") == {"mood": "calm"}


async def test_a_state_made_from_other_records_stays_as_it_is(
    core: Memory, memory: DeLLMMemory
) -> None:
    session(core, "other").put(ChatMessage(role="user", content="elsewhere"))
    _, context = await finished(memory)
    before = context.to_dict()
    core.forget(ids=[1])
    assert context.to_dict()["state"]["state_data"] == before["state"]["state_data"]
    assert (await context.store.get("state"))["noted"]


async def test_a_paused_run_that_read_other_records_can_be_resumed_after_a_forget(
    core: Memory, memory: DeLLMMemory
) -> None:
    session(core, "other").put(ChatMessage(role="user", content="elsewhere"))
    made, context = await paused(memory)
    core.forget(ids=[1])
    restored = Context.from_dict(made, json.loads(json.dumps(context.to_dict())))
    made.llm.then()
    handler = made.run(ctx=restored)
    handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler
    assert [one.role for one in core.history("main")] == ["user", "assistant", "tool", "assistant"]


async def test_what_a_run_writes_late_of_what_was_forgotten_meanwhile_is_cleaned_when_it_ends(
    core: Memory, memory: DeLLMMemory
) -> None:
    @given_context
    async def note_late(ctx: Context, text: str) -> str:
        """Write after a forget."""
        core.forget(ids=[1])
        await ctx.store.set("state", {"noted": repeated(text)})
        return "done"

    made = agent([note_late], ["note_late"], initial_state={"mood": "calm"})
    context = Context(made)
    await made.run(user_msg=question(), memory=memory, ctx=context)
    assert await context.store.get("state") == {"mood": "calm"}
    assert not core.history("main")


async def test_what_a_tool_writes_late_of_what_it_had_read_is_cleaned_when_the_run_ends(
    core: Memory, memory: DeLLMMemory
) -> None:
    other = session(core, "other")
    other.put(ChatMessage(role="user", content=question()))

    @given_context
    async def copy_late(ctx: Context, text: str) -> str:
        """Read, then write after a forget."""
        said = other.get_all()[0].content
        core.forget(ids=[1])
        await ctx.store.set("state", {"noted": said})
        return "done"

    made = agent([copy_late], ["copy_late"], initial_state={"mood": "calm"})
    context = Context(made)
    await made.run(user_msg="copy it", memory=memory, ctx=context)
    assert await context.store.get("state") == {"mood": "calm"}
    assert [one.role for one in core.history("main")] == ["user", "assistant"]


# what the state was made from


async def state_in_a_later_run(core: Memory, tool: Any, name: str) -> set[int]:
    """Return what a reply depends on that was shown only the state, after a tool has written it."""
    made = agent([tool], [name], initial_state={"mood": "calm"})
    context = Context(made)
    await made.run(user_msg=question(), memory=session(core, "main"), ctx=context)
    written = json.loads(json.dumps(context.to_dict()))
    other = Context.from_dict(made, written)
    await other.store.set("memory", session(core, "fresh"))
    made.llm.then()
    await made.run(user_msg="go on", ctx=other)
    return set(core.dependents([1])) & {one.id for one in core.history("fresh")}


@pytest.mark.parametrize("tool", [note, note_in_place])
async def test_a_reply_shown_a_state_depends_on_what_a_tool_wrote_there_was_made_from(
    core: Memory, tool: Any
) -> None:
    assert await state_in_a_later_run(core, tool, tool.__name__)


async def test_a_reply_shown_what_the_agent_began_with_depends_on_its_prompt_only(
    core: Memory,
) -> None:
    assert not await state_in_a_later_run(core, look, "look")


async def test_a_tool_that_reads_what_another_wrote_depends_on_what_that_was_made_from(
    core: Memory, memory: DeLLMMemory
) -> None:
    made = agent([note_beside, tell], ["note_beside"])
    context = Context(made)
    await made.run(user_msg=question(), memory=memory, ctx=context)
    await context.store.set("memory", session(core, "fresh"))
    made.llm.then(["tell"])
    await made.run(user_msg="go on", ctx=context)
    told = next(one for one in core.history("fresh") if one.role == "tool")
    assert secret_of(core) in tokens_in(told.text)
    assert told.id in core.dependents([1])
    core.forget(ids=[1])
    assert not tokens_in(json.dumps(context.to_dict()))


async def test_what_is_written_from_outside_is_made_from_what_was_read_there(
    core: Memory, memory: DeLLMMemory
) -> None:
    memory.put(ChatMessage(role="user", content=question()))
    secret = secret_of(core)
    made = agent([look])
    context = Context(made)
    await context.store.set("plan", memory.get_all()[0].content)
    assert secret in json.dumps(context.to_dict())
    core.forget(ids=[1])
    assert secret not in json.dumps(context.to_dict())


class Plan(BaseModel):
    """A state with a type."""

    goal: str = "none"
    steps: int = 0


class Planning(Workflow):
    """Keeps what the user wants in a typed state."""

    memory: DeLLMMemory

    @step
    async def plan(self, ctx: Context[Plan], ev: StartEvent) -> StopEvent:
        self.memory.put(ChatMessage(role="user", content=ev.text))
        async with ctx.store.edit_state() as plan:
            plan.goal = self.memory.get_all()[0].content or ""
        return StopEvent(result=None)


async def test_a_typed_state_is_set_back_to_its_default(core: Memory, memory: DeLLMMemory) -> None:
    flow = Planning()
    flow.memory = memory
    context: Context[Any] = Context(flow)
    await flow.run(text=question(), ctx=context)
    written = json.dumps(context.to_dict())
    assert tokens_in(written)
    core.forget(ids=[1])
    assert (await context.store.get_state()).goal == "none"
    assert not tokens_in(json.dumps(context.to_dict()))
    restored: Context[Any] = Context.from_dict(flow, json.loads(written))
    assert (await restored.store.get_state()).goal == "none"


# what is written down


async def test_the_notes_in_a_contexts_json_hold_ids_and_no_content(
    core: Memory, memory: DeLLMMemory
) -> None:
    _, context = await finished(memory)
    notes = context.to_dict()["state"][NOTES]
    assert notes["keys"]["state"]["records"][0][-1] == [1, 2, 3]
    assert not tokens_in(json.dumps(notes))


async def test_json_that_does_not_say_what_it_was_made_from_keeps_no_text_when_it_is_cleaned(
    core: Memory, memory: DeLLMMemory
) -> None:
    made, context = await paused(memory)
    written = context.to_dict()
    del written["state"][NOTES]
    clean = cleaned_context(written, core)
    assert not tokens_in(json.dumps(clean))
    assert Context.from_dict(made, clean).to_dict()
    assert cleaned_context({}, core) == {}


async def test_where_the_state_cannot_be_followed_a_run_depends_on_its_whole_session(
    core: Memory, memory: DeLLMMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_taps._Taps, "done", False)
    memory.put(ChatMessage(role="user", content="before"))
    made = agent([note], ["note"], initial_state={"mood": "calm"})
    await made.run(user_msg=question(), memory=memory)
    reply = core.history("main")[-1]
    assert set(core.dependents([1])) >= {reply.id}
