"""An agent that waits for a person in one process and goes on in another; importable by both.

Each process has numbers of its own for its tokens, from `start` on.
"""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from typing import Any

import llama_models
from llama_index.core.workflow import Context
from llama_index.core.workflow.events import HumanResponseEvent, InputRequiredEvent
from llama_models import Refused, fresh
from llama_talks import TOOLS, Kit, caller, given_context, run

import dellm
from dellm_llamaindex import DeLLMMemory


def pause(url: str, start: int, results: Any) -> None:
    """Run an agent until its tool waits for a person; send its context as JSON."""
    results.put(run(_paused(url, start)))


async def _paused(url: str, start: int) -> str:
    agent, memory, core = _asking(url, start)
    context = Context(agent)
    handler = agent.run(user_msg=f"{fresh('U')} may I?", memory=memory, ctx=context)
    async for event in handler.stream_events():
        if type(event).__name__ == "InputRequiredEvent":
            break
    written = json.dumps(context.to_dict())
    await handler.cancel_run()
    core.close()
    return written


def resume(url: str, start: int, written: str, results: Any) -> None:
    """Go on with the context in this process; send how often something was recorded too widely."""
    results.put(run(_resumed(url, start, written)))


async def _resumed(url: str, start: int, written: str) -> str:
    agent, _, core = _asking(url, start)
    agent.llm.then()
    context = Context.from_dict(agent, json.loads(written))
    handler = agent.run(ctx=context)
    handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler
    await agent.run(user_msg=f"{fresh('U')} and now?", ctx=context)
    core.close()
    return json.dumps(context.to_dict())


def _asking(url: str, start: int) -> tuple[Any, DeLLMMemory, dellm.Memory]:
    memory, core = _opened(url, start)

    @given_context
    async def ask(ctx: Context, text: str) -> str:
        """Ask a person."""
        response = await ctx.wait_for_event(
            HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="may I?")
        )
        return f"{fresh('T')} is what {response.response} means for {llama_models.repeated(text)}"

    kit = Kit(lambda _: memory)
    agent = caller(kit, [ask])
    agent.llm.then(["ask"])
    return agent, memory, core


def stop(url: str, start: int, ends: str, results: Any) -> None:
    """Run an agent that writes its state and then stops early or fails; send its context."""
    results.put(run(_stopped(url, start, ends)))


async def _stopped(url: str, start: int, ends: str) -> str:
    agent, memory, core = _noting(url, start)
    context = Context(agent)
    agent.llm.then(["note"], ["look"], "raise" if ends == "failed" else ["look"])
    most = 3 if ends == "early" else 9
    with suppress(Refused):
        await agent.run(
            user_msg=f"{fresh('U')} begin", memory=memory, ctx=context, max_iterations=most
        )
    core.close()
    return json.dumps(context.to_dict())


def go_on(url: str, start: int, written: str, results: Any) -> None:
    """Use the context for two more runs; send it."""
    results.put(run(_gone_on(url, start, written)))


async def _gone_on(url: str, start: int, written: str) -> str:
    agent, _, core = _noting(url, start)
    context = Context.from_dict(agent, json.loads(written))
    for _ in range(2):
        agent.llm.then()
        await agent.run(user_msg=f"{fresh('U')} go on", ctx=context)
    core.close()
    return json.dumps(context.to_dict())


def _noting(url: str, start: int) -> tuple[Any, DeLLMMemory, dellm.Memory]:
    memory, core = _opened(url, start)
    options = {"initial_state": {"mood": "calm"}, "early_stopping_method": "generate"}
    return caller(Kit(lambda _: memory), [TOOLS["look"], TOOLS["note"]], **options), memory, core


def _opened(url: str, start: int) -> tuple[DeLLMMemory, dellm.Memory]:
    llama_models.NUMBERS = itertools.count(start)
    llama_models.CALLS = itertools.count(start)
    core = dellm.Memory.open(url, embedder="hashing").workspace("alex")
    return DeLLMMemory.from_defaults(memory=core, session_id="main", top_k=None), core
