"""A turn of each engine of LlamaIndex with each memory, and how long it takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, LLMMetadata
from llama_index.core.chat_engine import CondensePlusContextChatEngine, SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.memory import Memory as StockMemory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

import dellm
from dellm_llamaindex import DeLLMMemory

from .core.stores import Store
from .core.timing import collected

ROUNDS, FEW = 15, 5  # the few where a turn with a stock memory takes seconds
LONG = 1_000
LIMIT = 200_000  # tokens: no memory leaves anything out because of it
NOTHING, WHOLE = "no memory", "DeLLMMemory(top_k=None)"
REPLY = "So it is, and so it stays."
Turn = Callable[[str], None]


class Nothing(BaseMemory):
    """A memory that knows only the message said last: what a turn costs without any."""

    said: list[Any] = []  # noqa: RUF012 - a pydantic field

    @classmethod
    def from_defaults(cls, **_kwargs: Any) -> Nothing:
        return cls()

    def get(self, input: str | None = None, **_kwargs: Any) -> list[ChatMessage]:  # noqa: A002, ARG002 - the interface's form
        return self.said[-1:]

    async def aget(self, input: str | None = None, **_kwargs: Any) -> list[ChatMessage]:  # noqa: A002, ARG002 - as above
        return self.said[-1:]

    def get_all(self) -> list[ChatMessage]:
        return self.said[-1:]

    def put(self, message: ChatMessage) -> None:
        self.said = [message]

    async def aput(self, message: ChatMessage) -> None:
        self.put(message)

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        self.said = messages[-1:]

    def set(self, messages: list[ChatMessage]) -> None:
        self.said = messages[-1:]

    def reset(self) -> None:
        self.said = []


class Same(BaseRetriever):
    """Finds the same two nodes whatever is asked."""

    def _retrieve(self, _query: QueryBundle) -> list[NodeWithScore]:
        nodes = [TextNode(id_=f"node {at}", text=f"What is said at {at}.") for at in range(2)]
        return [NodeWithScore(node=one, score=0.5) for one in nodes]


class Quick(MockLLM):
    """The mock, with room for every conversation that is measured."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(num_output=16, context_window=10 * LIMIT)


def simple(memory: BaseMemory) -> Turn:
    """Return a turn of SimpleChatEngine."""
    engine = SimpleChatEngine.from_defaults(llm=Quick(max_tokens=16), memory=memory)
    return lambda text: _done(engine.chat(text))


def condensed(memory: BaseMemory) -> Turn:
    """Return a turn of CondensePlusContextChatEngine."""
    engine = CondensePlusContextChatEngine.from_defaults(
        retriever=Same(), llm=Quick(max_tokens=16), memory=memory
    )
    return lambda text: _done(engine.chat(text))


def agent(memory: BaseMemory) -> Turn:
    """Return a turn of FunctionAgent."""
    made = FunctionAgent(tools=[], llm=MockFunctionCallingLLM(max_tokens=16), streaming=False)

    async def turn(text: str) -> None:
        await made.run(user_msg=text, memory=memory)

    return lambda text: asyncio.run(turn(text))


ENGINES: dict[str, Callable[[BaseMemory], Turn]] = {
    "SimpleChatEngine": simple,
    "CondensePlusContextChatEngine": condensed,
    "FunctionAgent": agent,
}


def _done(_answer: object) -> None:
    return None


def talk(size: int) -> list[ChatMessage]:
    """Return messages of about a dozen tokens, in pairs."""
    return [
        ChatMessage(
            role="assistant" if at % 2 else "user",
            content=f"On day {at} we spoke about the weather in town {at % 97}.",
        )
        for at in range(size)
    ]


@contextmanager
def memories(store: Store, size: int) -> Iterator[dict[str, BaseMemory]]:
    """Yield every memory with the same messages in it."""
    said = talk(size)
    with ExitStack() as stack:
        stock = StockMemory.from_defaults(session_id="s", token_limit=LIMIT)
        stock.set(said)
        made: dict[str, BaseMemory] = {
            NOTHING: Nothing(),
            "Memory": stock,
            "ChatMemoryBuffer": ChatMemoryBuffer.from_defaults(said, token_limit=LIMIT),
        }
        for name, k in (("DeLLMMemory", 5), (WHOLE, None)):
            url = store.fresh()
            stack.callback(store.drop, url)
            core = stack.enter_context(dellm.Memory.open(url, embedder="hashing"))
            mine = DeLLMMemory.from_defaults(core, "s", top_k=k, token_limit=LIMIT)
            mine.set(said)
            core.index()
            made[name] = mine
        yield made


def seconds(store: Store, engine: str, size: int, rounds: int | None = None) -> dict[str, float]:
    """Return the median seconds of a turn with each memory; they take turns."""
    rounds = rounds or (FEW if size > LONG else ROUNDS)
    with memories(store, size) as made:
        turns = {name: ENGINES[engine](memory) for name, memory in made.items()}
        _alike(made, size)
        taken: dict[str, list[float]] = {name: [] for name in turns}
        for number in range(rounds + 2):
            for name in _turned(list(turns), number):
                spent = _timed(turns[name], f"What was said in town {number}?")
                if number >= 2:  # what is made once is made by then
                    taken[name].append(spent)
    return {name: median(spent) for name, spent in taken.items()}


def _alike(made: dict[str, BaseMemory], size: int) -> None:
    """Raise unless all that keep messages keep the same."""
    wanted = talk(size)
    for name, memory in made.items():
        if name != NOTHING:
            found = memory.get_all()
            assert [one.content for one in found] == [one.content for one in wanted], name


def _turned(names: Sequence[str], by: int) -> Iterator[str]:
    for at in range(len(names)):
        yield names[(at + by) % len(names)]


def _timed(turn: Turn, text: str) -> float:
    with collected():
        start = time.perf_counter()
        turn(text)
        return time.perf_counter() - start
