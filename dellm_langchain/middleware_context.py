"""ContextMiddleware: each model call sees the turn it is in and what is relevant to it, no more.

What is left out of a prompt is no parent of its reply, so it makes a later forget take less; what
is in it is noted by the saver's capture as it was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage

from dellm import Memory, estimated_tokens

from .middleware_choosing import Choosing, Given
from .middleware_last import LastRequest
from .middleware_run import MemoryMiddleware

FORGOTTEN = "What you asked was forgotten, so there is nothing to answer."

Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
Result = ModelResponse[Any] | AIMessage


class ContextMiddleware(MemoryMiddleware):
    """Gives each model call of `create_agent` a context of its own; the graph's state stays.

    A call sees the system message and those that the state begins with, what the memory finds for the newest human message, and the turn
    from that message on. `k`: at most so many records, of a relevance above `threshold` (cosine in
    [-1, 1]; None: the embedder's own). `last`: the newest messages of the conversation, besides.
    `by`: "meaning", "keyword" or "both"; None is "meaning", or "keyword" without an embedder.
    `budget`: most tokens of what is added to the turn, as counted by `count`. `scope`: "thread", or
    "workspace" for the user's other threads as well; from there come texts, not attachments.

    A tool call and its results come together or not at all. What other middleware has put into the
    prompt stays, wherever it stands in the list; what the state holds of the past and was not
    chosen goes, and what was erased during the run goes too. `workspace` as for DeLLMSaver.

    Records are what a DeLLMSaver of the same memory wrote, and what else is in it; another
    checkpointer makes none, so that of its conversation only the `last` messages are found.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        workspace: str | None = None,
        k: int = 5,
        last: int = 0,
        threshold: float | None = None,
        by: str | None = None,
        budget: int | None = None,
        count: Callable[[str], int] = estimated_tokens,
        scope: str = "thread",
    ) -> None:
        MemoryMiddleware.__init__(self, memory, workspace)
        self._choosing = Choosing(
            k=k, last=last, threshold=threshold, by=by, budget=budget, count=count, scope=scope
        )

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Result:
        """Call the model with the chosen context. Raises InvalidInput, EmbedderError, StorageError."""
        given = self._given(request)
        if given is None:
            return AIMessage(FORGOTTEN)
        return handler(_with(request, given))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncHandler) -> Result:
        """As wrap_model_call; the memory is asked off the loop."""
        given = await asyncio.to_thread(self._given, request)
        if given is None:
            return AIMessage(FORGOTTEN)
        return await handler(_with(request, given))

    def _given(self, request: ModelRequest[Any]) -> Given | None:
        return self._choosing.given(self.run(), request)


def _with(request: ModelRequest[Any], given: Given) -> ModelRequest[Any]:
    return LastRequest.of(request.override(messages=given.messages), given.last)
