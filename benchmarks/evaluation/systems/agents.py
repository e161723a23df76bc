"""LangChain agents: with a stock checkpointer, with deletion by meaning, and with our adapter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from dellm import Memory
from dellm.embedding import Embedder
from dellm.models import Model
from dellm.systems import BASELINE_INSTRUCTIONS
from dellm_langchain import DeLLMSaver
from dellm_langchain.middleware import DeLLMMiddleware

from . import Said, forget_request
from .chat import Chat

THREAD = "main"
CONFIG: Any = {"configurable": {"thread_id": THREAD}}
# Of the ablation: nothing leaks and as much is kept as with more records.
OURS: dict[str, Any] = {"k": 5, "threshold": 0.25, "last": 0, "by": "meaning"}


class Agent:
    """The whole thread in every prompt, kept by a stock checkpointer; a request deletes nothing."""

    name = "full history (LangChain)"

    def __init__(self, model: Model) -> None:
        self._graph = self._made(Chat(inner=model))

    def _made(self, chat: Chat) -> Any:
        return create_agent(
            chat, [], system_prompt=BASELINE_INSTRUCTIONS, checkpointer=InMemorySaver()
        )

    def tell(self, text: str) -> str:
        """Invoke the agent; the message and its reply stay in the thread."""
        self._graph.invoke({"messages": [HumanMessage(text)]}, CONFIG)
        return str(self._messages()[-1].text)

    def load(self, said: Sequence[Said]) -> None:
        """Add the messages to the thread by update_state, all at once."""
        made = [HumanMessage(s.text) if s.role == "user" else AIMessage(s.text) for s in said]
        self._graph.update_state(CONFIG, {"messages": made})

    def ask(self, question: str) -> str:
        """Invoke the agent; then take what that added out of the thread."""
        known = {one.id for one in self._messages()}
        answer = self.tell(question)
        self._remove([one for one in self._messages() if one.id not in known])
        return answer

    def forget(self, fact: str) -> int:
        """Say the request like any message: the model can only be asked to pretend."""
        self.tell(forget_request(fact))
        return 0

    def held(self) -> list[str]:
        """Return the texts of the thread's messages."""
        return [one.text for one in self._messages()]

    def close(self) -> None:
        """Free nothing: the checkpointer is in memory and goes with it."""

    def _messages(self) -> list[BaseMessage]:
        return list(self._graph.get_state(CONFIG).values.get("messages", []))

    def _remove(self, messages: Sequence[BaseMessage]) -> None:
        gone = [RemoveMessage(id=str(one.id)) for one in messages]
        if gone:
            self._graph.update_state(CONFIG, {"messages": gone})


class Semantic(Agent):
    """The same agent; every message whose cosine to the fact is `threshold` or more is removed.

    Removed by RemoveMessage, as LangGraph documents it; the request is not kept.
    """

    def __init__(self, model: Model, embedder: Embedder, threshold: float) -> None:
        super().__init__(model)
        self.name = f"semantic deletion ({threshold})"
        self._embedder, self._threshold = embedder, threshold

    def forget(self, fact: str) -> int:
        """Remove what is near the fact; return how many messages went."""
        messages = self._messages()
        if not messages:
            return 0
        rows = self._embedder.embed([fact, *(one.text for one in messages)])
        near = rows[1:] @ rows[0] >= self._threshold
        gone = [one for one, taken in zip(messages, near, strict=True) if taken]
        self._remove(gone)
        return len(gone)


class Ours(Agent):
    """The agent with DeLLMSaver and DeLLMMiddleware, which is asked in words and told yes."""

    name = "ours (LangChain)"

    def __init__(self, model: Model, embedder: Embedder) -> None:
        self._memory = Memory.open(":memory:", embedder=embedder)
        super().__init__(model)

    def _made(self, chat: Chat) -> Any:
        return create_agent(
            chat,
            [],
            middleware=[DeLLMMiddleware(self._memory, **OURS)],
            checkpointer=DeLLMSaver(self._memory),
        )

    def ask(self, question: str) -> str:
        """Invoke the agent; then forget by their ids the records that this made."""
        known = {one.id for one in self._memory.export()}
        answer = self.tell(question)
        new = [one.id for one in self._memory.export() if one.id not in known]
        self._memory.forget(ids=new, scrub=False)
        return answer

    def forget(self, fact: str) -> int:
        """Say the request, answer the question that the agent waits with by yes, count what went."""
        before = self.held()
        self._graph.invoke({"messages": [HumanMessage(forget_request(fact))]}, CONFIG)
        if any(task.interrupts for task in self._graph.get_state(CONFIG).tasks):
            self._graph.invoke(Command(resume=True), CONFIG)
        return (Counter(before) - Counter(self.held())).total()  # what confirms it stays

    def close(self) -> None:
        """Close the memory, which ends with it."""
        self._memory.close()
