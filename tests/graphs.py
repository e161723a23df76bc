"""A zoo of real LangGraph graphs, and a model that copies its whole prompt into its reply.

Whatever the model was shown, its reply says (and its metadata repeats), so that everything made
from a secret holds the secret's word, while no copy has the words in the order in which they were
said: a forget that only looks for the sentence finds none of them. A reply's own word is a digest
of its prompt, so two runs give equal replies where and only where their prompts were equal.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import operator
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.caches import InMemoryCache
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    merge_message_runs,
    trim_messages,
)
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, Overwrite, RetryPolicy, Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

Graph = Any  # a compiled graph of any state
Config = dict[str, Any]
Saver = BaseCheckpointSaver[Any]

WORD = "canaryqzxv"
STATEMENT = f"my door code is {WORD} dear"
HEARD: list[list[BaseMessage]] = []  # every prompt the model was given, in order

_TOKEN = re.compile(r"\w+")
_CALL = re.compile(r"call:(\w+)(?:\(([^)]*)\))?")


# the model


def words(*said: object) -> str:
    """Return every distinct word of what was said, in an order of its own."""
    found = {one for part in said for one in _TOKEN.findall(str(part))}
    # Backwards: "dear ... my" is never the sentence it was made from.
    return " ".join(sorted(found, reverse=True))


def told(messages: Sequence[BaseMessage]) -> str:
    """Return all words of a prompt: contents, and what the calls in it say."""
    return words(*(part for one in messages for part in (one.text, *calls_of(one))))


def calls_of(message: BaseMessage) -> list[str]:
    if not isinstance(message, AIMessage):
        return []
    return [f"{call['name']} {call['args']}" for call in message.tool_calls]


class Parrot(BaseChatModel):
    """Replies with every word of its prompt; calls a tool when the newest human says `call:name`.

    `call:name` calls with all words of the prompt as the query, `call:name(paris)` with just that.
    Where a tool must be called (structured output), the last one is.
    """

    provider: str | None = None  # set: replies carry an id of this kind, as some providers give

    @property
    def _llm_type(self) -> str:
        return "parrot"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any) -> Any:
        names = [convert_to_openai_tool(one)["function"]["name"] for one in tools]
        return self.bind(names=names, tool_choice=tool_choice)

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        HEARD.append(messages)
        heard = told(messages)
        own = hashlib.sha256(
            repr([(one.type, one.text, calls_of(one)) for one in messages]).encode()
        )
        calls = self._calls(messages, heard, kwargs)
        return AIMessage(
            content="" if calls else f"reply{own.hexdigest()[:8]} {heard}",
            tool_calls=calls,
            id=f"{self.provider}-{uuid.uuid4().hex}" if self.provider else None,
            response_metadata={"model_name": "parrot", "heard": heard},
            usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
        )

    def _calls(
        self, messages: list[BaseMessage], heard: str, kwargs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        names = kwargs.get("names") or []
        last = messages[-1] if messages else None
        wanted = _CALL.findall(last.text) if isinstance(last, HumanMessage) else []
        chosen = [(name, args or heard) for name, args in wanted if name in names]
        if not chosen and kwargs.get("tool_choice") and names:
            chosen = [(names[-1], heard)]
        return [
            {"name": name, "args": {"query": query}, "id": f"call_{uuid.uuid4().hex[:12]}"}
            for name, query in chosen
        ]

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages, kwargs))])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages, **kwargs)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in self._chunks(self._reply(messages, kwargs)):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks(self._reply(messages, kwargs)):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _chunks(self, reply: AIMessage) -> Iterator[ChatGenerationChunk]:
        parts = re.findall(r"\S+\s*", reply.text)
        for part in parts:
            yield ChatGenerationChunk(message=AIMessageChunk(content=part, id=reply.id))
        calls: list[Any] = [
            {"name": call["name"], "args": f'{{"query": "{call["args"]["query"]}"}}'}
            | {"id": call["id"], "index": index}
            for index, call in enumerate(reply.tool_calls)
        ]
        last = AIMessageChunk(
            content="",
            id=reply.id,
            tool_call_chunks=calls,
            response_metadata=reply.response_metadata,
            usage_metadata=reply.usage_metadata,
            chunk_position="last",
        )
        yield ChatGenerationChunk(message=last)


# how much of a conversation a node looks at


def everything(messages: list[AnyMessage]) -> list[AnyMessage]:
    return messages


def latest(messages: list[AnyMessage]) -> list[AnyMessage]:
    """Return the messages from the newest human one on."""
    places = [at for at, one in enumerate(messages) if isinstance(one, HumanMessage)]
    return messages[places[-1] :] if places else []


Look = Callable[[list[AnyMessage]], list[AnyMessage]]


class Window(AgentMiddleware):
    """An agent's model sees only part of the conversation."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=self.look(request.messages)))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(messages=self.look(request.messages)))


# tools


@tool
def lookup(query: str) -> str:
    """Look something up."""
    return f"found {words(query)}"


@tool
def weather(query: str) -> str:
    """Say the weather."""
    return f"sunny {words(query)}"


DIARY = {"open": True}  # closed: what was in it cannot be read a second time


@tool
def diary(query: str) -> str:
    """Read the diary: the secret comes in through the tool."""
    return f"{STATEMENT if DIARY['open'] else 'nothing'} says the diary on {words(query)}"


@tool
def recall(query: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Read the whole state behind the model's back."""
    return f"recalled {told(state['messages'])} on {words(query)}"


@tool
def peek(query: str, runtime: ToolRuntime) -> str:
    """Read the whole state through the runtime."""
    return f"peeked {told(runtime.state['messages'])} on {words(query)}"


@tool
def jot(query: str, runtime: ToolRuntime) -> Command[Any]:
    """Write into the state beside the messages."""
    result = ToolMessage(f"jotted {words(query)}", tool_call_id=runtime.tool_call_id)
    return Command(update={"messages": [result], "notes": [words(query)]})


@tool
def broken(query: str) -> str:
    """Fail, and say what with."""
    raise ValueError(words(query))


@tool
def expert(query: str) -> str:
    """Ask another agent, which uses a tool as well."""
    inner = create_agent(Parrot(), [lookup], system_prompt="You are an expert")
    said = inner.invoke({"messages": [HumanMessage(f"call:lookup {query}")]})
    return f"the expert says {words(said['messages'][-1].text)}"


# specimens


@dataclass(frozen=True, slots=True)
class Way:
    """How a graph is run: the method, and when its checkpoints are written."""

    method: str = "invoke"
    durability: str | None = None

    def run(self, graph: Graph, given: Any, config: Config) -> None:
        options: dict[str, Any] = {"durability": self.durability} if self.durability else {}
        if self.method in {"stream", "astream"}:
            options["stream_mode"] = ["values", "messages", "updates"]
        called = getattr(graph, self.method)(given, config, **options)
        if self.method == "stream":
            for _ in called:
                continue
        elif self.method == "ainvoke":
            asyncio.run(called)
        elif self.method == "astream":
            asyncio.run(_exhausted(called))

    def __str__(self) -> str:
        return "-".join(part for part in (self.method, self.durability) if part)


async def _exhausted(stream: AsyncIterator[Any]) -> None:
    async for _ in stream:
        continue


INVOKE = Way()


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing done with a graph; `secret` where it would not have been, had the secret not been."""

    do: Callable[[Graph, Config, Way], None]
    secret: bool = False


def give(make: Callable[[], Any], *, secret: bool = False) -> Turn:
    """Run the graph on what `make` returns, made anew each time: graphs put ids on messages."""
    return Turn(lambda graph, config, way: way.run(graph, make(), config), secret)


def say(text: str) -> Turn:
    return give(lambda: {"messages": [HumanMessage(text)]}, secret=WORD in text)


def answer(value: Any, *, secret: bool = False) -> Turn:
    return give(lambda: Command(resume=value), secret=secret)


@dataclass(frozen=True, slots=True)
class Specimen:
    """A graph and a conversation with it in which the secret is said.

    `lone`: turns are answered without looking at the others, so that after the forget the thread
    must be as if the secret's turns had never been. `loses`: channels whose clean values may go as
    well, because the saver cannot know that a node which could see the secret left it out.
    `options`: what DeLLMSaver is told.
    """

    name: str
    build: Callable[[Saver], Graph]
    turns: Sequence[Turn]
    lone: bool = False
    loses: frozenset[str] = frozenset()
    options: dict[str, Any] = field(default_factory=dict)
    then: Callable[[], Any] = lambda: {"messages": [HumanMessage("hello once more")]}
    replayed: bool = True  # old checkpoints may be run again as they are

    def play(self, graph: Graph, config: Config, way: Way = INVOKE, *, secret: bool = True) -> None:
        for turn in self.turns:
            if secret or not turn.secret:
                turn.do(graph, config, way)

    def __str__(self) -> str:
        return self.name


CLEAN = ("the apple is red", "a boat on the lake", "old clocks tick")
TALK = (say(CLEAN[0]), say(STATEMENT), say(CLEAN[1]))


# chats


def node(made: Callable[[Any, BaseMessage], Any], look: Look = everything) -> Any:
    """Return a node that asks the model, sync and async alike, and makes its update of the reply."""
    model = Parrot()

    def asked(state: Any) -> Any:
        return made(state, model.invoke(look(state["messages"])))

    async def awaited(state: Any) -> Any:
        return made(state, await model.ainvoke(look(state["messages"])))

    return RunnableLambda(asked, afunc=awaited)


class Noted(MessagesState):
    note: str


def chat(state: Any, *nodes: Any) -> StateGraph[Any]:
    """Return START -> each node in turn."""
    graph = StateGraph(state)
    for at, one in enumerate(nodes):
        graph.add_node(f"n{at}", one)
        graph.add_edge(f"n{at - 1}" if at else START, f"n{at}")
    return graph


def says(_: Any, reply: BaseMessage) -> Any:
    return {"messages": [reply]}


def bot(look: Look = everything, state: Any = MessagesState) -> Callable[[Saver], Graph]:
    return lambda saver: chat(state, node(says, look)).compile(checkpointer=saver)


def of_nodes(*nodes: Any, state: Any = MessagesState, **options: Any) -> Callable[[Saver], Graph]:
    return lambda saver: chat(state, *nodes).compile(checkpointer=saver, **options)


class Delta1(TypedDict):
    messages: Annotated[
        list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=1)
    ]


class Delta3(TypedDict):
    messages: Annotated[
        list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)
    ]


class Delta100(TypedDict):
    messages: Annotated[
        list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=100)
    ]


def without_id(_: Any, reply: BaseMessage) -> Any:
    return {"messages": [AIMessage(reply.text)]}


def as_tuple(_: Any, reply: BaseMessage) -> Any:
    return {"messages": [("ai", reply.text)]}


def mixed(state: Any, reply: BaseMessage) -> Any:
    """A node that adds what it read itself to what the model said."""
    reply.content = f"{reply.text} and {told(state['messages'])}"
    return {"messages": [reply]}


def replaced(state: Any, reply: BaseMessage) -> Any:
    """Rewrite the first message of the thread with what the model said."""
    first = state["messages"][0]
    return {"messages": [first.model_copy(update={"content": f"once {reply.text}"}), reply]}


def in_place(state: Any, reply: BaseMessage) -> Any:
    """Change a message of the state without writing it."""
    state["messages"][0].content = f"now {reply.text}"
    return {"messages": [reply]}


def hand_made(state: Any) -> Any:
    """Ask with a message made of the conversation's text; nothing in the prompt has an id."""
    text = "\n".join(one.text for one in state["messages"])
    return {"messages": [Parrot().invoke([HumanMessage(f"Go on:\n{text}")])]}


def as_string(state: Any) -> Any:
    return {"messages": [Parrot().invoke(f"Go on: {told(state['messages'])}")]}


def with_system(state: Any) -> Any:
    """A system prompt that is not the same each time: it tells what was said."""
    system = SystemMessage(f"What you know: {told(state['messages'])}")
    return {"messages": [Parrot().invoke([system, *latest(state["messages"])])]}


KIND = SystemMessage("Be kind")


def constant_system(state: Any) -> Any:
    return {"messages": [Parrot().invoke([KIND, *latest(state["messages"])])]}


def rebuilt_system(state: Any) -> Any:
    """The same system prompt, made anew each time, as most examples do."""
    return {"messages": [Parrot().invoke([SystemMessage("Be kind"), *latest(state["messages"])])]}


def merged(state: Any) -> Any:
    return {"messages": [Parrot().invoke(merge_message_runs(state["messages"]))]}


def trimmed(state: Any) -> Any:
    kept = trim_messages(state["messages"], max_tokens=3, token_counter=len, start_on="human")
    return {"messages": [Parrot().invoke(kept)]}


def chained(state: Any) -> Any:
    prompt = ChatPromptTemplate([("system", "Be brief"), ("human", "Go on: {text}")])
    chain = prompt | Parrot() | StrOutputParser()
    return {"messages": [AIMessage(chain.invoke({"text": told(state["messages"])}))]}


def two_calls(state: Any) -> Any:
    """One message of two replies, under the id of the first."""
    first = Parrot().invoke(latest(state["messages"]))
    second = Parrot().invoke(state["messages"])
    return {"messages": [AIMessage(f"{first.text} {second.text}", id=first.id)]}


def unasked(state: Any) -> Any:
    """Answer from the state while the model is asked something else."""
    reply = Parrot().invoke([HumanMessage("hi")])
    return {"messages": [reply, AIMessage(f"aside {told(state['messages'])}")]}


def cleared(_: Any, reply: BaseMessage) -> Any:
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage(reply.text)]}


def provided(look: Look) -> Any:
    model = Parrot(provider="msg")
    return lambda state: {"messages": [model.invoke(look(state["messages"]))]}


def cached(look: Look) -> Callable[[Saver], Graph]:
    model = Parrot(cache=InMemoryCache())
    return of_nodes(lambda state: {"messages": [model.invoke(look(state["messages"]))]})


def raw(shape: Callable[[str], Any]) -> list[Turn]:
    return [
        give(lambda text=text: {"messages": shape(text)}, secret=WORD in text)  # type: ignore[misc] # a default binds it now
        for text in (CLEAN[0], STATEMENT, CLEAN[1])
    ]


CHATS = [
    Specimen("bot", bot(), TALK),
    Specimen("bot, lone", bot(latest), TALK, lone=True),
    Specimen("two bots, lone", of_nodes(node(says, latest), node(says, latest)), TALK, lone=True),
    Specimen("reply without id", of_nodes(node(without_id)), TALK),
    Specimen("reply as tuple", of_nodes(node(as_tuple)), TALK),
    Specimen("reply with a provider's id", of_nodes(provided(latest)), TALK, lone=True),
    Specimen("reply and more", of_nodes(node(mixed, latest)), TALK),
    Specimen("first message replaced", of_nodes(node(replaced)), TALK),
    Specimen("message changed in place", of_nodes(node(in_place)), TALK),
    Specimen("prompt made by hand", of_nodes(hand_made), TALK),
    Specimen("prompt as string", of_nodes(as_string), TALK),
    Specimen("system prompt of what was said", of_nodes(with_system), TALK),
    Specimen("constant system prompt, lone", of_nodes(constant_system), TALK, lone=True),
    Specimen("rebuilt system prompt, lone", of_nodes(rebuilt_system), TALK, lone=True),
    Specimen("merged runs", of_nodes(merged), TALK),
    Specimen("trimmed", of_nodes(trimmed), (*TALK, say(CLEAN[2]))),
    Specimen("chain", of_nodes(chained), TALK),
    Specimen("two calls in one reply", of_nodes(two_calls), TALK),
    Specimen("aside", of_nodes(unasked), TALK, loses=frozenset({"messages"})),
    Specimen("history rewritten each time", of_nodes(node(cleared)), TALK),
    Specimen("cached reply", cached(latest), (say(CLEAN[0]), say(STATEMENT), say(STATEMENT))),
    Specimen("input as tuples", bot(), raw(lambda text: [("user", text)])),
    Specimen("input as dicts", bot(), raw(lambda text: [{"role": "user", "content": text}])),
    Specimen("input as string", bot(), raw(lambda text: text)),
    Specimen("input as one message", bot(), raw(HumanMessage)),
    Specimen("input as tuples, lone", bot(latest), raw(lambda text: [("user", text)]), lone=True),
    Specimen("input with an id", bot(latest), raw(lambda text: [HumanMessage(text, id=text[:5])]), lone=True),
    Specimen("content in blocks", bot(), raw(lambda text: [HumanMessage([{"type": "text", "text": text}])])),
    Specimen("delta 1", bot(everything, Delta1), TALK),
    Specimen("delta 3", bot(everything, Delta3), TALK),
    Specimen("delta 100", bot(everything, Delta100), TALK),
    Specimen("delta 1, lone", bot(latest, Delta1), TALK, lone=True),
    Specimen("delta 3, lone", bot(latest, Delta3), TALK, lone=True),
    Specimen("delta 100, lone", bot(latest, Delta100), TALK, lone=True),
    Specimen("stopped before the node", of_nodes(node(says), interrupt_before=["n0"]),
        (say(CLEAN[0]), give(lambda: None), say(STATEMENT), give(lambda: None, secret=True), say(CLEAN[1]))),
]  # fmt: skip


# agents


class Noting(AgentState[Any]):
    notes: Annotated[NotRequired[list[str]], operator.add]


class DeltaAgent(AgentState[Any]):
    messages: Annotated[  # type: ignore[misc] # the documented way to change the channel
        list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)
    ]


class Verdict(BaseModel):
    """The answer."""

    query: str


def agent(*tools: Any, look: Look = everything, middleware: Sequence[Any] = (), **options: Any) -> Callable[[Saver], Graph]:  # fmt: skip
    seen = [Window(look)] if look is not everything else []
    return lambda saver: create_agent(
        Parrot(), list(tools), middleware=[*middleware, *seen], checkpointer=saver, **options
    )


def asking(directive: str, secret: str = STATEMENT) -> tuple[Turn, ...]:
    """Return a talk in which each turn calls the tool, the secret's turn too."""
    return (say(f"{CLEAN[0]} {directive}"), say(f"{secret} {directive}"), say(f"{CLEAN[1]} {directive}"))  # fmt: skip


def tool_chat(saver: Saver) -> Graph:
    """A hand-made loop whose tool node turns errors into messages."""
    model = Parrot().bind_tools([broken])
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([broken], handle_tool_errors=True))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", lambda state: "tools" if state["messages"] and getattr(state["messages"][-1], "tool_calls", None) else END, ["tools", END])  # fmt: skip
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


APPROVED = {"decisions": [{"type": "approve"}]}
EDITED = {
    "decisions": [
        {"type": "edit", "edited_action": {"name": "lookup", "args": {"query": STATEMENT}}}
    ]
}
REJECTED = {"decisions": [{"type": "reject", "message": STATEMENT}]}


def watched(look: Look = everything) -> Callable[[Saver], Graph]:
    return agent(lookup, look=look, middleware=[HumanInTheLoopMiddleware({"lookup": True})])


def summarizing(saver: Saver) -> Graph:
    middleware = SummarizationMiddleware(Parrot(), trigger=("messages", 5), keep=("messages", 2))
    return create_agent(Parrot(), [lookup], middleware=[middleware], checkpointer=saver)


AGENTS = [
    Specimen("agent", agent(lookup), asking("call:lookup")),
    Specimen("agent, lone", agent(lookup, look=latest), asking("call:lookup"), lone=True),
    Specimen("agent with system prompt, lone",
        agent(lookup, look=latest, system_prompt="Be kind"), asking("call:lookup"), lone=True),
    Specimen("parallel calls", agent(lookup, weather), asking("call:lookup call:weather")),
    Specimen("parallel calls, lone",
        agent(lookup, weather, look=latest), asking("call:lookup call:weather(rome) call:lookup(oslo)"), lone=True),
    Specimen("secret from a tool", agent(diary, weather),
        (say(f"{CLEAN[0]} call:weather"), say("read call:diary"), say(CLEAN[1]))),
    Specimen("secret from one of two tools", agent(weather, diary, look=latest),
        (say(f"{CLEAN[0]} call:weather"), say("both call:weather(rome) call:diary(x) call:weather(oslo)"), say(CLEAN[1]))),
    Specimen("agent in a tool", agent(expert), asking("call:expert")),
    Specimen("agent in a tool, lone", agent(expert, look=latest), asking("call:expert"), lone=True),
    Specimen("structured", agent(lookup, response_format=ToolStrategy(Verdict)), asking("call:lookup"),
        loses=frozenset({"structured_response"})),
    Specimen("tool that commands", agent(jot, state_schema=Noting), asking("call:jot"),
        loses=frozenset({"notes"})),
    Specimen("tool that commands, lone", agent(jot, look=latest, state_schema=Noting), asking("call:jot"),
        loses=frozenset({"notes", "messages"})),
    Specimen("tool that reads the state", agent(recall, look=latest),
        (say(STATEMENT), say("now call:recall(paris)"), say(CLEAN[1]))),
    Specimen("tool that reads the runtime", agent(peek, look=latest),
        (say(STATEMENT), say("now call:peek(paris)"), say(CLEAN[1]))),
    Specimen("tool that fails", tool_chat, asking("call:broken")),
    Specimen("agent on a delta channel", agent(lookup, look=latest, state_schema=DeltaAgent), asking("call:lookup"), lone=True),
    Specimen("watched agent", watched(),
        (say("red call:lookup"), answer(APPROVED), say(f"{STATEMENT} call:lookup"), answer(APPROVED, secret=True), say(CLEAN[1]))),
    Specimen("watched agent, still waiting", watched(),
        (say("red call:lookup"), answer(APPROVED), say(f"{STATEMENT} call:lookup"))),
    Specimen("watched agent, secret in the edit", watched(), (say("red call:lookup"), answer(EDITED))),
    Specimen("watched agent, secret in the rejection", watched(), (say("red call:lookup"), answer(REJECTED))),
    Specimen("summarizing", summarizing,
        (say(CLEAN[0]), say(STATEMENT), say(CLEAN[1]), say(CLEAN[2]), say("and so on"), say("to the end"))),
]  # fmt: skip


# subgraphs


class Question(TypedDict, total=False):
    question: str
    reply: str


def compiled(graph: StateGraph[Any], saver: Any = None) -> Graph:
    return graph.compile(checkpointer=saver)


def nested(look: Look, depth: int, memory: Any = None) -> Callable[[Saver], Graph]:
    """Return a chat in a chat, `depth` times."""

    def build(saver: Saver) -> Graph:
        inner = chat(MessagesState, node(says, look), node(says, look))
        for _ in range(depth):
            inner = chat(MessagesState, compiled(inner, memory))
        return compiled(inner, saver)

    return build


def answering(state: Question) -> Any:
    return {"reply": Parrot().invoke(f"Answer {state.get('question', '')}").text}


def own_state(look: Look) -> Callable[[Saver], Graph]:
    """Return a node that calls a graph with a state of its own."""

    def build(saver: Saver) -> Graph:
        inner = compiled(chat(Question, answering))

        def ask(state: Any) -> Any:
            said = inner.invoke({"question": told(look(state["messages"]))})
            return {"messages": [AIMessage(said["reply"])]}

        return compiled(chat(MessagesState, ask), saver)

    return build


class Both(MessagesState):
    reply: str


def overlapping(saver: Saver) -> Graph:
    """A subgraph as a node that shares the messages and one string, and keeps a key for itself."""
    inner = StateGraph(Inner)
    inner.add_node(
        "think", lambda state: {"thought": Parrot().invoke(state["messages"]).text, "reply": "…"}
    )
    inner.add_node("speak", lambda state: {"reply": words(state["thought"])})
    inner.add_edge(START, "think")
    inner.add_edge("think", "speak")
    return compiled(chat(Both, inner.compile(), node(says)), saver)


class Inner(MessagesState):
    thought: str
    reply: str


def to_parent(saver: Saver) -> Graph:
    """A subgraph's node that writes into its parent and sends it on."""

    def leave(state: Any) -> Any:
        reply = Parrot().invoke(state["messages"])
        return Command(graph=Command.PARENT, update={"messages": [reply]}, goto="after")

    graph = StateGraph(MessagesState)
    graph.add_node("inner", chat(MessagesState, leave).compile(), destinations=("after",))
    graph.add_node("after", node(says))
    graph.add_edge(START, "inner")
    return compiled(graph, saver)


def asked_inside(saver: Saver) -> Graph:
    return compiled(chat(MessagesState, chat(MessagesState, asks).compile()), saver)


def asks(state: Any) -> Any:
    """Ask the user whether the reply may be given."""
    reply = Parrot().invoke(state["messages"])
    said = interrupt({"question": f"may I say {reply.text}"})
    return {"messages": [reply, HumanMessage(f"answered {words(said, reply.text)}")]}


def asks_twice(state: Any) -> Any:
    first = interrupt(f"first {told(state['messages'])}")
    second = interrupt(f"second {words(first)}")
    return {"messages": [AIMessage(f"{words(first)} then {words(second)}")]}


INTERRUPTED = (say(CLEAN[0]), answer("yes"), say(STATEMENT))
SUBGRAPHS = [
    Specimen("subgraph", nested(everything, 1), TALK),
    Specimen("subgraph, lone", nested(latest, 1), TALK, lone=True),
    Specimen("subgraph in a subgraph, lone", nested(latest, 2), TALK, lone=True),
    Specimen("subgraph with its own memory", nested(everything, 1, True), TALK),
    Specimen("subgraph with its own memory, lone", nested(latest, 1, True), TALK),
    Specimen("subgraph of its own state", own_state(everything), TALK),
    Specimen("subgraph of its own state, latest only", own_state(latest), TALK, loses=frozenset({"messages", "question", "reply"})),
    Specimen("subgraph with a key of its own", overlapping, TALK, loses=frozenset({"reply"})),
    Specimen("subgraph that commands its parent", to_parent, TALK),
    Specimen("interrupted", of_nodes(asks), (*INTERRUPTED, answer("no", secret=True), say(CLEAN[1]), answer("ok"))),
    Specimen("interrupted, still waiting", of_nodes(asks), INTERRUPTED),
    Specimen("interrupted, secret in the answer", of_nodes(asks),
        (say(CLEAN[0]), answer(STATEMENT), say(CLEAN[1]), answer("ok"))),
    Specimen("interrupted twice", of_nodes(asks_twice),
        (say(CLEAN[0]), answer(STATEMENT), answer("second"), say(CLEAN[1]), answer("ok"))),
    Specimen("interrupted twice, waiting for the second", of_nodes(asks_twice),
        (say(CLEAN[0]), answer(STATEMENT))),
    Specimen("interrupted in a subgraph", asked_inside, (*INTERRUPTED, answer("no", secret=True), say(CLEAN[1]), answer("ok"))),
    Specimen("interrupted in a subgraph, still waiting", asked_inside, INTERRUPTED),
]  # fmt: skip


# fan-out, routing, state that is not messages


class Fan(MessagesState):
    results: Annotated[list[str], operator.add]


def items(state: Any) -> list[Send]:
    """Send each part of the newest message on, with all of it beside."""
    text = state["messages"][-1].text if state["messages"] else ""
    return [Send("work", {"item": f"{part} of {words(text)}"}) for part in text.split(", ")]


def work(state: Any) -> Any:
    reply = Parrot().invoke([HumanMessage(f"work on {state['item']}")])
    return {"messages": [reply], "results": [reply.text]}


def each(state: Any) -> list[Send]:
    """Send each message that was said last on by itself."""
    said = reversed(state["messages"])
    return [
        Send("work", {"item": one}) for one in reversed(list(itertools.takewhile(_human, said)))
    ]


def _human(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage)


def work_on_message(state: Any) -> Any:
    return {"messages": [Parrot().invoke([state["item"]])]}


def fan(branch: Any = items, node: Any = work) -> Callable[[Saver], Graph]:
    def build(saver: Saver) -> Graph:
        graph = StateGraph(Fan)
        graph.add_node("work", node)
        graph.add_conditional_edges(START, branch, ["work"])
        return compiled(graph, saver)

    return build


def gather(state: Any) -> Any:
    return {
        "messages": [AIMessage(f"all {words(*state.get('results', []))}")],
        "results": Overwrite([]),
    }


def fan_in(saver: Saver) -> Graph:
    """Fan out by a command, collect, and empty the list again."""
    graph = StateGraph(Fan)
    graph.add_node("split", lambda state: Command(goto=items(state)), destinations=("work",))
    graph.add_node("work", work)
    graph.add_node("gather", gather, defer=True)
    graph.add_edge(START, "split")
    graph.add_edge("work", "gather")
    return compiled(graph, saver)


class Routed(MessagesState):
    route: Literal["deep", "shallow"]


def classify(state: Any) -> Any:
    reply = Parrot().invoke(latest(state["messages"]))
    return {"route": "deep" if WORD in reply.text else "shallow"}


def routed(saver: Saver) -> Graph:
    graph = StateGraph(Routed)
    graph.add_node("classify", classify)
    graph.add_node("deep", node(says))
    graph.add_node("shallow", node(says))
    graph.add_edge(START, "classify")
    graph.add_conditional_edges(
        "classify", lambda state: {"deep": "deep", "shallow": "shallow"}[state["route"]]
    )
    return compiled(graph, saver)


@dataclass
class Card:
    title: str
    by: list[str]


class Page(BaseModel):
    title: str
    seen: list[AnyMessage]


def merge(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return {**left, **right}


class Desk(MessagesState):
    summary: str
    profile: Annotated[dict[str, Any], merge]
    facts: dict[str, str]
    docs: Annotated[list[Document], operator.add]
    tags: Annotated[set[str], operator.or_]
    pair: tuple[str, AnyMessage]
    card: Card
    page: Page
    last: AnyMessage
    count: Annotated[int, operator.add]
    urgent: bool


def desk(state: Any) -> Any:
    """Write every kind of channel with what the model said of the newest turn."""
    reply = Parrot().invoke(latest(state["messages"]))
    key = words(reply.text)
    return {
        "messages": [reply],
        "summary": f"summary of {key}",
        "profile": {key: True, "last": key},
        "facts": {"fact": key},
        "docs": [Document(f"page {key}", metadata={"source": key})],
        "tags": {key},
        "pair": (key, reply),
        "card": Card(key, [key]),
        "page": Page(title=key, seen=[reply]),
        "last": reply,
        "count": 1,
        "urgent": WORD in key,
    }


def read_desk(state: Any) -> Any:
    """Read every channel and say so."""
    read = [value for key, value in state.items() if key != "messages"]
    return {"messages": [AIMessage(f"read {words(*read)}")]}


DESK = frozenset(Desk.__annotations__) - {"messages", "count", "urgent"}


class Twice(TypedDict):
    """The reply in a channel of its own, which comes before the messages it was made from."""

    last: AnyMessage
    messages: Annotated[list[AnyMessage], add_messages]


class Form(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = []
    topic: str
    notes: list[str] = []


def form(state: Form) -> Any:
    reply = Parrot().invoke([HumanMessage(f"about {state.topic}"), *latest(state.messages)])
    return {"messages": [reply], "notes": [*state.notes, reply.text]}


@dataclass
class Sheet:
    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)
    topic: str = ""


def sheet(state: Sheet) -> Any:
    reply = Parrot().invoke([HumanMessage(f"about {state.topic}"), *latest(state.messages)])
    return {"messages": [reply], "topic": words(reply.text)}


def on_topic(*topics: str) -> list[Turn]:
    return [
        give(
            lambda topic=topic: {"messages": [HumanMessage(f"go on {topic[:3]}")], "topic": topic},  # type: ignore[misc] # a default binds it now
            secret=WORD in topic,
        )
        for topic in topics
    ]


class Plain(TypedDict, total=False):
    """A state without any message."""

    said: str
    log: Annotated[list[str], operator.add]
    summary: str


def plain(state: Plain) -> Any:
    heard = Parrot().invoke(f"{state.get('summary', '')} {state.get('said', '')}").text
    return {"summary": words(heard), "log": [f"heard {words(heard)}"]}


def plainly(*texts: str) -> list[Turn]:
    return [give(lambda text=text: {"said": text}, secret=WORD in text) for text in texts]  # type: ignore[misc] # as above


FAILED: set[str] = set()


def flaky(state: Any) -> Any:
    """Ask the model and fail, the first time that a message is seen."""
    reply = Parrot().invoke(state["messages"])
    newest = state["messages"][-1].id if state["messages"] else ""
    if newest not in FAILED:
        FAILED.add(newest)
        raise ConnectionError(reply.text)
    return {"messages": [reply]}


def retrying(saver: Saver) -> Graph:
    graph = StateGraph(MessagesState)
    policy = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=2)
    graph.add_node("flaky", flaky, retry_policy=policy)
    graph.add_edge(START, "flaky")
    return compiled(graph, saver)


def failing(state: Any) -> Any:
    """Fail on the secret, and say it in the error."""
    reply = Parrot().invoke(latest(state["messages"]))
    if WORD in reply.text:
        raise ValueError(reply.text)
    return {"messages": [reply]}


def failed(graph: Graph, config: Config, way: Way) -> None:
    try:
        way.run(graph, {"messages": [HumanMessage(STATEMENT)]}, config)
    except ValueError:
        return
    raise AssertionError("the node did not fail")


def beside(state: Any) -> Any:
    return {"messages": [AIMessage(f"beside {told(latest(state['messages']))}")]}


def half_failing(saver: Saver) -> Graph:
    """Two nodes at once, one of which fails: what the other wrote stays pending."""
    graph = StateGraph(MessagesState)
    graph.add_node("failing", failing)
    graph.add_node("beside", beside)
    graph.add_edge(START, "failing")
    graph.add_edge(START, "beside")
    return compiled(graph, saver)


def commanding(saver: Saver) -> Graph:
    """Nodes that route by commands."""
    graph = StateGraph(MessagesState)
    graph.add_node("first", node(lambda _, reply: Command(update={"messages": [reply]}, goto="second"), latest), destinations=("second",))  # fmt: skip
    graph.add_node("second", node(says, latest))
    graph.add_edge(START, "first")
    return compiled(graph, saver)


@task
def ask(text: str) -> BaseMessage:
    return Parrot().invoke([HumanMessage(text)])


def functional(saver: Saver) -> Graph:
    """The functional API, which carries what was said in what it saves."""

    @entrypoint(checkpointer=saver)
    def flow(text: str, *, previous: list[str] | None = None) -> Any:
        reply = ask(f"{words(*(previous or []))} {text}").result()
        return entrypoint.final(value=reply.text, save=[*(previous or []), words(reply.text)])

    return flow


def functional_messages(saver: Saver) -> Graph:
    @entrypoint(checkpointer=saver)
    def flow(said: list[AnyMessage], *, previous: list[AnyMessage] | None = None) -> Any:
        messages = add_messages(previous or [], said)
        reply = Parrot().invoke(latest(messages))
        return entrypoint.final(value=reply, save=add_messages(messages, [reply]))

    return flow


def functional_interrupt(saver: Saver) -> Graph:
    @entrypoint(checkpointer=saver)
    def flow(text: str, *, previous: Any = None) -> Any:
        reply = ask(text).result()
        said = interrupt(f"may I {words(reply.text)}")
        return entrypoint.final(value=words(said), save=f"{words(reply.text)} {words(said)}")

    return flow


STATES = [
    Specimen("fan-out", fan(), (say("apple, boat, clock"), say(f"river, {STATEMENT}, hill"), say("sun, moon")),
        loses=frozenset({"messages", "results"})),
    Specimen("fan-out of messages", fan(each, work_on_message), [give(lambda t=t: {"messages": [HumanMessage(one) for one in t]})
        for t in (("apple", "boat"), ("river", STATEMENT, "hill"), ("sun",))]),
    Specimen("fan-out and in", fan_in, (say("apple, boat"), say(f"river, {STATEMENT}, hill"), say("sun, moon")),
        loses=frozenset({"messages", "results"})),
    Specimen("routing", routed, TALK, options={"schema": Routed}),
    Specimen("commands, lone", commanding, TALK, lone=True),
    Specimen("every kind of channel", of_nodes(desk, read_desk, state=Desk), TALK, loses=DESK,
        options={"defaults": {"summary": ""}}),
    Specimen("reply in two channels", of_nodes(node(lambda _, reply: {"last": reply, "messages": [reply]}, latest), state=Twice), TALK),
    Specimen("pydantic state", of_nodes(form, state=Form), on_topic(CLEAN[0], STATEMENT, CLEAN[1]),
        loses=frozenset({"messages", "topic", "notes"}), options={"schema": Form}, then=lambda: {"topic": "more"}),
    Specimen("pydantic state, secret first", of_nodes(form, state=Form), on_topic(STATEMENT, CLEAN[1]),
        loses=frozenset({"messages", "topic", "notes"}), options={"defaults": {"topic": ""}}, then=lambda: {"topic": "more"}),
    Specimen("dataclass state", of_nodes(sheet, state=Sheet), on_topic(CLEAN[0], STATEMENT, CLEAN[1]),
        loses=frozenset({"messages", "topic"})),
    Specimen("state without messages", of_nodes(plain, state=Plain), plainly(CLEAN[0], STATEMENT, CLEAN[1]),
        loses=frozenset({"summary", "log", "said"}), then=lambda: {"said": "more"}),
    Specimen("retried", retrying, TALK),
    Specimen("failed", of_nodes(failing), (say(CLEAN[0]), Turn(failed, secret=True), say(CLEAN[1])), replayed=False),
    Specimen("half failed", half_failing, (say(CLEAN[0]), Turn(failed, secret=True)), replayed=False),
    Specimen("functional", functional, [give(lambda t=t: t, secret=WORD in t) for t in (CLEAN[0], STATEMENT, CLEAN[1])],
        loses=frozenset({"__previous__"}), then=lambda: "more"),
    Specimen("functional with messages", functional_messages,
        [give(lambda t=t: [HumanMessage(t)], secret=WORD in t) for t in (CLEAN[0], STATEMENT, CLEAN[1])],
        loses=frozenset({"__previous__"}), then=lambda: [HumanMessage("more")]),
    Specimen("functional, interrupted", functional_interrupt,
        [give(lambda: CLEAN[0]), answer("yes"), give(lambda: STATEMENT, secret=True), answer("no", secret=True)],
        loses=frozenset({"__previous__", "__end__"}), then=lambda: "more"),
    Specimen("functional, still waiting", functional_interrupt,
        [give(lambda: CLEAN[0]), answer("yes"), give(lambda: STATEMENT, secret=True)],
        loses=frozenset({"__previous__"}), then=lambda: "more"),
]  # type: ignore[misc] # defaults bind loop variables  # fmt: skip


# branches and edits


def in_metadata(graph: Graph, config: Config, way: Way) -> None:
    given = {"messages": [HumanMessage("what is the title")]}
    way.run(graph, given, {**config, "metadata": {"title": STATEMENT, "shelf": 3}})


def in_configurable(graph: Graph, config: Config, way: Way) -> None:
    inner = {**config["configurable"], "nickname": STATEMENT}
    way.run(graph, {"messages": [HumanMessage("who am I")]}, {"configurable": inner})


def at(graph: Graph, config: Config, back: int) -> Config:
    """Return the config of the checkpoint at which the run `back` runs ago ended."""
    ends = [one for one in graph.get_state_history(config) if not one.next]
    return ends[back].config  # type: ignore[no-any-return]


def fork_with_secret(graph: Graph, config: Config, way: Way) -> None:
    way.run(graph, {"messages": [HumanMessage(STATEMENT)]}, at(graph, config, 1))


def back_to_main(graph: Graph, config: Config, way: Way) -> None:
    """Go on from the newest end that knows no secret."""
    ends = [one for one in graph.get_state_history(config) if not one.next]
    clean = next(one for one in ends if WORD not in repr(one.values) and len(one.values["messages"]) > 3)  # fmt: skip
    way.run(graph, {"messages": [HumanMessage(CLEAN[2])]}, clean.config)


def put_in(graph: Graph, config: Config, way: Way) -> None:
    graph.update_state(config, {"messages": [HumanMessage(STATEMENT)]}, as_node="n0")


def put_in_past(graph: Graph, config: Config, way: Way) -> None:
    new = graph.update_state(
        at(graph, config, 1), {"messages": [HumanMessage(STATEMENT)]}, "__start__"
    )
    way.run(graph, None, new)


def edited(graph: Graph, config: Config, way: Way) -> None:
    first = graph.get_state(config).values["messages"][0]
    graph.update_state(config, {"messages": [HumanMessage(STATEMENT, id=first.id)]}, as_node="n0")


def said_and_edited(graph: Graph, config: Config, way: Way) -> None:
    """Overwrite the secret with something else, as a user does who regrets it."""
    found = [one for one in graph.get_state(config).values["messages"] if one.text == STATEMENT]
    graph.update_state(config, {"messages": [HumanMessage("never mind", id=found[0].id)]}, "n0")


def removed(graph: Graph, config: Config, way: Way) -> None:
    """Do what the documentation says: remove the messages."""
    gone = [one for one in graph.get_state(config).values["messages"] if WORD in repr(one)]
    graph.update_state(config, {"messages": [RemoveMessage(one.id) for one in gone]}, as_node="n0")


def replayed(graph: Graph, config: Config, way: Way) -> None:
    """Run an old checkpoint again, just before its node ran."""
    waiting = [one for one in graph.get_state_history(config) if one.next == ("n0",)]
    way.run(graph, None, waiting[0].config)


BRANCHES = [
    Specimen("fork with the secret", bot(), (say(CLEAN[0]), say(CLEAN[1]), Turn(fork_with_secret, secret=True), Turn(back_to_main))),
    Specimen("fork away from the secret", bot(), (say(CLEAN[0]), say(CLEAN[1]), say(STATEMENT), Turn(back_to_main))),
    Specimen("secret put in", bot(), (say(CLEAN[0]), Turn(put_in, secret=True), say(CLEAN[1]))),
    Specimen("secret put in, lone", bot(latest), (say(CLEAN[0]), Turn(put_in, secret=True), say(CLEAN[1])), lone=True),
    Specimen("secret put into the past", bot(), (say(CLEAN[0]), say(CLEAN[1]), Turn(put_in_past, secret=True))),
    Specimen("secret edited in", bot(latest), (say(CLEAN[0]), Turn(edited, secret=True), say(CLEAN[1]))),
    Specimen("secret edited out", bot(latest), (say(CLEAN[0]), say(STATEMENT), Turn(said_and_edited), say(CLEAN[1]))),
    Specimen("secret removed", bot(), (*TALK, Turn(removed), say(CLEAN[2]))),
    Specimen("secret removed, delta 3", bot(everything, Delta3), (*TALK, Turn(removed), say(CLEAN[2]))),
    Specimen("replayed", bot(), (say(CLEAN[0]), say(STATEMENT), Turn(replayed, secret=True), say(CLEAN[1]))),
    Specimen("fork on a delta channel", bot(everything, Delta3),
        (say(CLEAN[0]), say(CLEAN[1]), Turn(fork_with_secret, secret=True), Turn(back_to_main))),
    Specimen("secret in the metadata", bot(latest), (say(CLEAN[0]), Turn(in_metadata, secret=True), say(CLEAN[1]))),
    Specimen("secret in the config", bot(latest), (say(CLEAN[0]), Turn(in_configurable, secret=True), say(CLEAN[1]))),
]  # fmt: skip

ZOO = [*CHATS, *AGENTS, *SUBGRAPHS, *STATES, *BRANCHES]
WAYS = [
    Way("stream"),
    Way("ainvoke"),
    Way("astream"),
    Way("invoke", "sync"),
    Way("invoke", "exit"),
    Way("ainvoke", "exit"),
]


def named(name: str) -> Specimen:
    """Return a specimen by name."""
    return next(one for one in ZOO if one.name == name)
