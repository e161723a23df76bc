"""The conversation every saver is measured with: START -> bot, a mock model that answers at once.

Also the way to time a saver alone. Inside a graph its calls run on other threads, and most of their
wall time is waiting for the interpreter lock. So `Deferred` lets the graph run, keeps the calls it
would have made, and makes them when the graph is done, in one thread. The calls hold the run's own
objects, not copies: what a saver recognises inside a graph it recognises here, too.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from pydantic import PrivateAttr
from typing_extensions import TypedDict

from .core.data import Texts

CHARACTERS = 200
MESSAGES = "messages"  # the channel


class DeltaState(TypedDict):
    """The state of a graph whose author changed it to store only what each step adds."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


class Mock(BaseChatModel):
    """A model that says the texts one after the other, from the start again after the last."""

    texts: list[str]
    _said: Iterator[int] = PrivateAttr(default_factory=itertools.count)

    @property
    def _llm_type(self) -> str:
        return "mock"

    def _generate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
        text = self.texts[next(self._said) % len(self.texts)]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    async def _agenerate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
        return self._generate()


@cache
def texts(count: int, seed: int) -> tuple[str, ...]:
    """Return English-like texts of exactly 200 characters, the same for the same seed."""
    long = Texts(seed).take(count, CHARACTERS + 60)
    return tuple(text[:CHARACTERS].ljust(CHARACTERS, ".") for text in long)


def graph(saver: BaseCheckpointSaver[Any], replies: Sequence[str], *, delta: bool = False) -> Any:
    """Return the compiled graph; it can be run with invoke and with ainvoke."""
    model = Mock(texts=list(replies))

    def bot(state: Any) -> Any:
        return {MESSAGES: [model.invoke(state[MESSAGES])]}

    async def abot(state: Any) -> Any:
        return {MESSAGES: [await model.ainvoke(state[MESSAGES])]}

    builder: Any = StateGraph(DeltaState if delta else MessagesState)
    builder.add_node("bot", RunnableLambda(bot, abot))
    builder.add_edge(START, "bot")
    return builder.compile(checkpointer=saver)


def said(text: str) -> dict[str, list[BaseMessage]]:
    """Return the input of a turn, as users write it: the message has no id."""
    return {MESSAGES: [HumanMessage(text)]}


def config(thread: str = "chat") -> RunnableConfig:
    """Return the config of a turn."""
    return {"configurable": {"thread_id": thread}}


@dataclass(frozen=True, slots=True)
class Calls:
    """What the calls of one turn took: seconds of all put and all put_writes, and how many."""

    put: float
    put_writes: float
    puts: int
    writes: int

    @property
    def seconds(self) -> float:
        """Return the seconds of all of them."""
        return self.put + self.put_writes


class Deferred(BaseCheckpointSaver[Any]):
    """Reads from the saver at once, and keeps what is to be written until `replay`."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver
        self._kept: list[tuple[bool, tuple[Any, ...]]] = []
        self._guard = threading.Lock()

    def get_tuple(self, config: Any) -> Any:
        """Read from the saver."""
        return self._saver.get_tuple(config)

    def get_delta_channel_history(self, *, config: Any, channels: Sequence[str]) -> Any:
        """Read from the saver."""
        return self._saver.get_delta_channel_history(config=config, channels=channels)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Count as the saver counts."""
        return self._saver.get_next_version(current, channel)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Keep the call."""
        self._keep(True, config, checkpoint, metadata, new_versions)
        place = config["configurable"]
        return {
            "configurable": {
                "thread_id": place["thread_id"],
                "checkpoint_ns": place.get("checkpoint_ns", ""),
                "checkpoint_id": checkpoint["id"],
            }
        }

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        """Keep the call."""
        self._keep(False, config, writes, task_id, task_path)

    def _keep(self, is_put: bool, *arguments: Any) -> None:
        with self._guard:
            self._kept.append((is_put, arguments))

    def replay(self) -> Calls:
        """Make the calls that were kept, in their order; return what they took."""
        kept, self._kept = self._kept, []
        taken = {True: 0.0, False: 0.0}
        for is_put, arguments in kept:
            call = self._saver.put if is_put else self._saver.put_writes
            start = time.perf_counter()
            call(*arguments)
            taken[is_put] += time.perf_counter() - start
        puts = sum(is_put for is_put, _ in kept)
        return Calls(taken[True], taken[False], puts, len(kept) - puts)
