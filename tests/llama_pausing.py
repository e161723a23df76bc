"""An agent that waits for a person in one process and goes on in another; importable by both.

Each process has numbers of its own for its tokens, from `start` on.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import llama_models
from llama_index.core.workflow import Context
from llama_index.core.workflow.events import HumanResponseEvent, InputRequiredEvent
from llama_models import fresh
from llama_talks import Kit, caller, given_context, run

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
    llama_models.NUMBERS = itertools.count(start)
    llama_models.CALLS = itertools.count(start)
    core = dellm.Memory.open(url, embedder="hashing").workspace("alex")
    memory = DeLLMMemory.from_defaults(memory=core, session_id="main", top_k=None)

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
