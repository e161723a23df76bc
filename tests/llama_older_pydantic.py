"""What test_llamaindex_pydantic runs in a process of its own; prints what worked, in order."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from typing import Any

import pydantic
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.workflow import Context
from llama_models import fresh, own_tokens, tokens_in
from llama_talks import TOOLS, Kit, caller, engine_turn, restored, run, talk
from taint import measured

import dellm
from dellm_llamaindex import DeLLMMemory
from dellm_llamaindex.tags import tag_of


def written(memory: DeLLMMemory) -> None:
    """Write the handle down in every way and read it again."""
    memory.put(ChatMessage(role="user", content=f"{fresh('U')} hello"))
    for again in (
        DeLLMMemory.from_dict(json.loads(json.dumps(memory.to_dict()))),
        DeLLMMemory.from_string(memory.to_string()),
        pickle.loads(pickle.dumps(memory)),
        copy.deepcopy(memory),
        memory.model_copy(deep=True),
    ):
        assert again.get_all() == memory.get_all()
    assert len(memory.get_all()) == 1


def tagged(memory: DeLLMMemory) -> None:
    """See that a message's note stays where a message is copied, and is no part of it."""
    message = memory.get_all()[0]
    plain = ChatMessage(role="user", content=message.content)
    for one in (message, message.model_copy(), copy.deepcopy(message)):
        assert tag_of(one) is not None
        assert one == plain
        assert one.model_dump() == plain.model_dump()
    assert tag_of(pickle.loads(pickle.dumps(message))) is not None


async def _runs(agent: Any, memory: DeLLMMemory) -> Context:
    context = Context(agent)
    agent.llm.then(["look", "note"])
    await agent.run(user_msg=f"{fresh('U')} one", memory=memory, ctx=context)
    for text in ("two", "three"):
        context = restored(agent, context)
        agent.llm.then(["look"])
        await agent.run(user_msg=f"{fresh('U')} {text}", ctx=context)
    return context


def main(url: str) -> None:
    said = [pydantic.VERSION]
    core = dellm.Memory.open(url, embedder="hashing").workspace("alex")
    memory = DeLLMMemory.from_defaults(
        memory=core, session_id="main", top_k=None, token_limit=100_000
    )
    written(memory)
    said.append("written")
    tagged(memory)
    said.append("tagged")
    kit = Kit(lambda _: memory)
    agent = caller(kit, [TOOLS["look"], TOOLS["note"]], initial_state={"mood": "calm"})
    context = run(_runs(agent, memory))
    assert [one.role.value for one in memory.get_all()].count("user") == 4
    said.append("restored")
    talk(kit, engine_turn(kit, memory, "context", "astream_chat"), 2)
    found = measured(core)
    assert (found.missed, found.extra) == (set(), set())
    assert len(found.true) > 30
    said.append("exact")
    gone = own_tokens(core.get(2).text)
    memory.forget(ids=[2])
    left = [*memory.get_all(), json.dumps(context.to_dict())]
    assert not set(gone) & set(tokens_in(left))
    said.append("forgotten")
    core.close()
    print(*said)


if __name__ == "__main__":
    main(sys.argv[1])
