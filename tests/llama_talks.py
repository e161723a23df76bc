"""Conversations with LlamaIndex's engines and agents, each with a memory that is given to it.

The models and tools repeat every token they saw (llama_models), so taint can tell afterwards what
was made from what.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.agent.workflow import (
    AgentWorkflow,
    CodeActAgent,
    FunctionAgent,
    ReActAgent,
)
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.memory import BaseMemory
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from llama_models import (
    Refused,
    RepeatingCaller,
    RepeatingChat,
    RepeatingCoder,
    RepeatingCompletion,
    RepeatingReasoner,
    Step,
    WordEmbedding,
    fresh,
    repeated,
)

TOPICS = ("the cat and her garden", "a train to the sea", "bread and how it is baked", "old maps")
Model = RepeatingCompletion
Turn = Callable[[str], Awaitable[None]]


@dataclass
class Kit:
    """What a conversation is held with: memories by the name of their session, a model, documents."""

    memory_of: Callable[[str], BaseMemory]
    draw: random.Random = field(default_factory=lambda: random.Random(7))
    track: Callable[[Any], Any] = lambda index: index
    models: list[Model] = field(default_factory=list)
    contexts: list[tuple[Any, Context]] = field(default_factory=list)
    engines: list[BaseChatEngine] = field(default_factory=list)
    _index: VectorStoreIndex | None = None

    def model(self, kind: type[Model] = RepeatingChat, **options: Any) -> Any:
        made = kind(**options)
        self.models.append(made)
        return made

    @property
    def index(self) -> VectorStoreIndex:
        """Return an index of two documents on each topic."""
        if self._index is None:
            said = [f"{fresh('D')} is known of {topic}" for topic in TOPICS for _ in range(2)]
            nodes = [TextNode(text=one, id_=f"node-{at}") for at, one in enumerate(said)]
            self._index = self.track(VectorStoreIndex(nodes, embed_model=WordEmbedding()))
        return self._index

    def question(self) -> str:
        return f"{fresh('U')} tell me of {self.draw.choice(TOPICS)}"

    def heard(self) -> list[int]:
        """Return how many prompts each model was shown so far."""
        return [len(one.heard.prompts) for one in self.models]

    def heard_since(self, marks: Sequence[int]) -> set[str]:
        """Return the tokens that the models were shown since."""
        found: set[str] = set()
        for at, model in enumerate(self.models):
            found |= model.heard.since(marks[at] if at < len(marks) else 0)
        return found


# engines


def simple(kit: Kit, memory: BaseMemory, kind: type[Model] = RepeatingChat) -> BaseChatEngine:
    return SimpleChatEngine.from_defaults(
        llm=kit.model(kind), memory=memory, system_prompt="Be kind."
    )


def context(kit: Kit, memory: BaseMemory, kind: type[Model] = RepeatingChat) -> BaseChatEngine:
    found = kit.index.as_retriever(similarity_top_k=2)
    return ContextChatEngine.from_defaults(
        retriever=found, llm=kit.model(kind), memory=memory, system_prompt="Be kind."
    )


def condense_plus_context(
    kit: Kit, memory: BaseMemory, kind: type[Model] = RepeatingChat
) -> BaseChatEngine:
    found = kit.index.as_retriever(similarity_top_k=2)
    return CondensePlusContextChatEngine.from_defaults(
        retriever=found, llm=kit.model(kind), memory=memory, system_prompt="Be kind."
    )


def condense_question(
    kit: Kit, memory: BaseMemory, kind: type[Model] = RepeatingChat
) -> BaseChatEngine:
    model = kit.model(kind)
    found = kit.index.as_retriever(similarity_top_k=2)
    asked = RetrieverQueryEngine.from_args(found, llm=model)
    return CondenseQuestionChatEngine.from_defaults(query_engine=asked, llm=model, memory=memory)


ENGINES = {one.__name__: one for one in (simple, context, condense_plus_context, condense_question)}


async def chat(engine: BaseChatEngine, text: str, **more: Any) -> None:
    engine.chat(text, **more)


async def stream_chat(engine: BaseChatEngine, text: str, **more: Any) -> None:
    "".join(engine.stream_chat(text, **more).response_gen)


async def achat(engine: BaseChatEngine, text: str, **more: Any) -> None:
    await engine.achat(text, **more)


async def astream_chat(engine: BaseChatEngine, text: str, **more: Any) -> None:
    response = await engine.astream_chat(text, **more)
    async for _ in response.async_response_gen():
        continue


WAYS = {one.__name__: one for one in (chat, stream_chat, achat, astream_chat)}


# tools


def look(text: str) -> str:
    """Look something up."""
    return f"{fresh('T')} is what was seen of {repeated(text)}"


def weigh(text: str) -> str:
    """Weigh something."""
    return f"{fresh('T')} is the weight of {repeated(text)}"


def stumble(text: str) -> str:
    """Fail."""
    raise ValueError(f"{fresh('T')} stood in the way of {repeated(text)}")


def show(text: str) -> str:
    """Show something to the user as it is."""
    return f"{fresh('T')} is shown with {repeated(text)}"


def given_context(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Let a tool be given the workflow's context: a FunctionTool does not read quoted types."""
    tool.__annotations__["ctx"] = Context
    return tool


@given_context
async def note(ctx: Context, text: str) -> str:
    """Write into the state what the call says."""
    said = f"{fresh('T')} is noted with {repeated(text)}"
    async with ctx.store.edit_state() as held:
        held["state"] = {**held.get("state", {}), "noted": said}
    return said


TOOLS: dict[str, Any] = {
    "look": look,
    "weigh": weigh,
    "stumble": stumble,
    "note": note,
    "show": FunctionTool.from_defaults(show, return_direct=True),
}
PLANS: tuple[Sequence[Step], ...] = (
    (),
    (["look"],),
    (["look", "weigh"],),
    (["weigh"], ["look"]),
    (["look"], ["weigh"], ["look"]),
)


# agents: each returns what holds one turn


@dataclass
class Agents:
    """An agent or a workflow of them, and how its runs share a context and a memory.

    `shared`: "memory" (each run is given the memory, and a context of its own), "context" (one
    context for all), "json" (the context is written down and restored between the runs).
    """

    kit: Kit
    agent: Any
    memory: BaseMemory
    shared: str
    plans: Sequence[Sequence[Step]] = PLANS
    more: dict[str, Any] = field(default_factory=dict)
    context: Context | None = None

    def __post_init__(self) -> None:
        if self.shared != "memory":
            self._take(Context(self.agent))

    def _take(self, context: Context) -> None:
        self.context = context
        self.kit.contexts = [one for one in self.kit.contexts if one[0] is not self.agent]
        self.kit.contexts.append((self.agent, context))

    async def __call__(self, text: str) -> None:
        for name, model in self.models().items():
            steps = self.kit.draw.choice(self.plans)
            other = "first" if name == "second" else "second"
            model.then(*(_handed_to(other, step) for step in steps))
        given: dict[str, Any] = {"memory": self.memory, **self.more}
        if self.context is not None:
            given["ctx"] = self.context
        try:
            await self.agent.run(user_msg=text, **given)
        except Refused:
            return
        finally:
            if self.shared == "json" and self.context is not None:
                self._take(restored(self.agent, self.context))

    def models(self) -> dict[str, Any]:
        """Return the models by the names of their agents."""
        agents = getattr(self.agent, "agents", None) or {"": self.agent}
        return {name: one.llm for name, one in agents.items()}


def _handed_to(other: str, step: Step) -> Step:
    return (
        step
        if isinstance(step, str)
        else [one.replace("handoff", f"handoff:{other}") for one in step]
    )


def restored(agent: Any, held: Context) -> Context:
    """Return a context as it is after it was written down as JSON and read again."""
    return Context.from_dict(agent, json.loads(json.dumps(held.to_dict())))


def caller(kit: Kit, tools: Iterable[Any] = (), **options: Any) -> FunctionAgent:
    provider = options.pop("provider", False)
    options.setdefault("system_prompt", "Be kind.")
    tools = list(tools) or [TOOLS["look"], TOOLS["weigh"]]
    return FunctionAgent(tools=tools, llm=kit.model(RepeatingCaller, provider=provider), **options)


def function_agent(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    return Agents(kit, caller(kit), memory, shared)


def function_agent_at_once(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    return Agents(kit, caller(kit, streaming=False), memory, shared)


def function_agent_provider(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    return Agents(kit, caller(kit, provider=True), memory, shared)


def return_direct(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    plans = ((), (["show"],), (["look"], ["show"]))
    return Agents(kit, caller(kit, [TOOLS["look"], TOOLS["show"]]), memory, shared, plans)


def tool_error(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    plans = ((), (["stumble"],), (["look", "stumble"],), (["stumble"], ["look"]))
    return Agents(kit, caller(kit, [TOOLS["look"], TOOLS["stumble"]]), memory, shared, plans)


def initial_state(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    plans = ((), (["look"],), (["note"],), (["note", "look"],), ())
    state = {"mood": f"{fresh('S')} is how it began"}
    agent = caller(kit, [TOOLS["look"], TOOLS["note"]], initial_state=state)
    return Agents(kit, agent, memory, shared, plans)


def early_stop(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    agent = caller(kit, early_stopping_method="generate")
    return Agents(kit, agent, memory, shared, more={"max_iterations": 2})


def model_error(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    plans = ((), (["look"],), (["look"], "raise"), (["weigh"], ["look"], "raise"), ("raise",))
    return Agents(kit, caller(kit), memory, shared, plans)


def react_agent(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    plans = ((), (["look"],), (["weigh"], ["look"]), ("garbled", ["look"]), ("empty",))
    tools = [TOOLS["look"], TOOLS["weigh"]]
    agent = ReActAgent(tools=tools, llm=kit.model(RepeatingReasoner), system_prompt="Be kind.")
    return Agents(kit, agent, memory, shared, plans)


def react_agent_at_once(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    plans = ((), (["look"],), (["stumble"], ["look"]))
    tools = [TOOLS["look"], TOOLS["stumble"]]
    agent = ReActAgent(tools=tools, llm=kit.model(RepeatingReasoner), streaming=False)
    return Agents(kit, agent, memory, shared, plans)


async def execute(code: str) -> str:
    """Execute code."""
    return f"{fresh('T')} was printed by {repeated(code)}"


def code_act_agent(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    plans = ((), (["code"],), (["code"], ["code"]))
    agent = CodeActAgent(code_execute_fn=execute, tools=[look], llm=kit.model(RepeatingCoder))
    return Agents(kit, agent, memory, shared, plans)


def handoff(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    first = caller(kit, name="first", description="Begins.", can_handoff_to=["second"])
    second = caller(kit, name="second", description="Ends.", can_handoff_to=["first"])
    flow = AgentWorkflow(agents=[first, second], root_agent="first")
    plans = ((), (["look"],), (["handoff"], ["look"]), (["look"], ["handoff"]))
    return Agents(kit, flow, memory, shared, plans)


def handoff_with_state(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    tools = [TOOLS["look"], TOOLS["note"]]
    first = caller(kit, tools, name="first", description="Begins.", can_handoff_to=["second"])
    second = caller(kit, tools, name="second", description="Ends.", can_handoff_to=["first"])
    flow = AgentWorkflow(agents=[first, second], root_agent="first", initial_state={"mood": "calm"})
    plans = ((), (["look"],), (["note"], ["handoff"]), (["handoff"], ["note"]))
    return Agents(kit, flow, memory, shared, plans)


def engine_as_tool(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    """An agent one of whose tools talks with an engine that has a memory of its own."""
    inner = simple(kit, kit.memory_of("inner"))

    def consult(text: str) -> str:
        """Ask somebody who remembers."""
        return str(inner.chat(f"{fresh('U')} asks on behalf of {repeated(text)}"))

    plans = ((), (["consult"],), (["look"], ["consult"]), (["consult", "look"],))
    return Agents(kit, caller(kit, [look, consult]), memory, shared, plans)


def memory_in_tool(kit: Kit, memory: BaseMemory, shared: str) -> Turn:
    """An agent one of whose tools reads all of another session, and of its own."""
    other = kit.memory_of("other")
    other.put(ChatMessage(role="user", content=f"{fresh('U')} was said elsewhere"))

    def recall(text: str) -> str:
        """Read what was said."""
        read = [*other.get_all(), *memory.get_all()]
        return f"{fresh('T')} is recalled with {repeated(read)} for {repeated(text)}"

    plans = ((), (["recall"],), (["look"], ["recall"]))
    return Agents(kit, caller(kit, [look, recall]), memory, shared, plans)


AGENTS = {
    one.__name__: one
    for one in (
        function_agent,
        function_agent_at_once,
        function_agent_provider,
        return_direct,
        tool_error,
        initial_state,
        early_stop,
        model_error,
        react_agent,
        react_agent_at_once,
        code_act_agent,
        handoff,
        handoff_with_state,
        engine_as_tool,
        memory_in_tool,
    )
}
SHARED = ("memory", "context", "json")


# holding a conversation


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run to the end in a loop of its own, in a thread of its own: also where a loop runs."""
    done: list[Any] = []
    failed: list[BaseException] = []

    def within() -> None:
        try:
            done.append(asyncio.run(work))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=within)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


def engine_turn(
    kit: Kit, memory: BaseMemory, engine: str, way: str, kind: type[Model] = RepeatingChat
) -> Turn:
    made = ENGINES[engine](kit, memory, kind)
    kit.engines.append(made)
    return lambda text: WAYS[way](made, text)


def talk(kit: Kit, turn: Turn, turns: int) -> None:
    """Ask one question after the other."""

    async def all_turns() -> None:
        for _ in range(turns):
            await turn(kit.question())

    run(all_turns())


def talk_at_once(kit: Kit, turns: Sequence[Turn], rounds: int) -> None:
    """Ask several at once, again and again; sync ways each in a thread of its own."""

    async def all_turns() -> None:
        for _ in range(rounds):
            said = [kit.question() for _ in turns]
            await asyncio.gather(
                *(
                    asyncio.to_thread(asyncio.run, _held(one, text))
                    for one, text in zip(turns, said, strict=True)
                )
            )

    run(all_turns())


async def _held(turn: Turn, text: str) -> None:
    await turn(text)
