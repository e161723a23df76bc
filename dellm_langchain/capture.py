"""Exact prompts of model calls and tool runs, observed by a callback handler that attaches itself.

Importing this module registers one handler for every LangChain run of the process. It keeps what
LangGraph's saver needs to say what a written value depends on: which messages each model call read,
joined with the task that made it through the task ids in `langgraph_checkpoint_ns`. It changes
nothing in a run. A call that belongs to neither a graph task nor a thread is kept only once
something needs it, such as a chat history: see `Captured.everywhere`.
"""

# ruff: noqa: ARG002 - LangChain passes these arguments whether they are needed or not

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.tracers.context import register_configure_hook

from .call_batches import note_ended, note_started
from .calls import Call, Prompt, Seen, ToolRun
from .captured import Captured

if TYPE_CHECKING:
    from uuid import UUID

    from langchain_core.outputs import LLMResult

__all__ = ["Call", "Captured", "Prompt", "Seen", "ToolRun", "captured"]


class _Handler(BaseCallbackHandler):
    """Hands what LangChain calls back about to a `Captured`."""

    run_inline = True  # in async runs too: the prompt is read before the model is called
    raise_error = True  # a call we failed to note must not pass for one that never was
    ignore_retriever = True
    ignore_retry = True
    ignore_custom_event = True

    def __init__(self, into: Captured) -> None:
        self._into = into

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        self._into.chain_started(run_id, parent_run_id, metadata or {}, inputs)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        self._into.ended(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self._into.ended(run_id)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        # LangChain calls once for each prompt of a batch.
        note_started(run_id, more.get("batch_size"))
        prompt = messages[0] if len(messages) == 1 else [one for some in messages for one in some]
        self._into.call_started(run_id, parent_run_id, metadata or {}, prompt)

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        self._into.call_started(run_id, parent_run_id, metadata or {}, None)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        found = (getattr(one, "message", None) for batch in response.generations for one in batch)
        self._into.call_ended(run_id, (one for one in found if isinstance(one, BaseMessage)))
        note_ended(run_id)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        note_ended(run_id)

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        name = (serialized or {}).get("name") or ""
        call, inputs = more.get("tool_call_id"), more.get("inputs")
        self._into.tool_started(run_id, parent_run_id, metadata or {}, call, name, inputs)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        self._into.tool_ended(run_id, output)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self._into.ended(run_id)


captured = Captured()
_handler = _Handler(captured)
_attached: ContextVar[Any] = ContextVar("dellm_capture", default=_handler)
register_configure_hook(_attached, inheritable=True)
