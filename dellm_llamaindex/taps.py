"""Handlers on the framework's root dispatcher: what models were asked and said, and where.

Events and spans of llama-index-instrumentation 0.6. What a handler raises is swallowed over there:
a prompt that was not taken in leaves a reply that nobody has seen made, which depends on everything
read around it.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterable
from typing import Any

from llama_index.core.agent.workflow.workflow_events import ToolCall, ToolCallResult
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatInProgressEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Workflow
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from . import state_taps
from .calls import calls
from .documents import note_of
from .flows import Flow
from .model_names import model_of
from .replies import leftovers, whose
from .scopes import Scope, current, guard, scopes, took
from .tags import digest_of, tag_of

_TURNS = (BaseChatEngine, Workflow)
_once = threading.Lock()


class Spans(BaseSpanHandler[BaseSpan]):
    """Notes for every span which scope it is in."""

    def span_enter(  # type: ignore[override] # called by name, with what is not used here as well
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        parent_id: str | None = None,
        **_: Any,
    ) -> None:
        """Find the scope of a span that begins."""
        around = scopes.at(parent_id)
        if around is not None:
            for one in bound_args.arguments.values():
                state_taps.attach(around, one)
        scope = _scope(id_, bound_args, instance, around)
        scopes.enter(id_, parent_id, scope)
        if scope is not None:
            if id_ == scope.key and isinstance(instance, BaseChatEngine):
                _take_history(scope, bound_args.arguments.get("chat_history") or ())
            _take_nodes(scope, bound_args.arguments.get("nodes"))

    def span_exit(  # type: ignore[override] # as above
        self, id_: str, result: Any | None = None, **_: Any
    ) -> None:
        """Take the result of a tool."""
        scope = scopes.at(id_)
        if scope is not None and scope.key == id_:
            scope.finished = result is not None
            if isinstance(result, ToolCallResult):
                _take_result(scope, result)
        self._left(id_)

    def span_drop(self, id_: str, **_: Any) -> None:  # type: ignore[override] # as above
        """Note that a span ended with an error."""
        self._left(id_)

    def _left(self, id_: str) -> None:
        scope = scopes.leave(id_)
        if scope is not None and scope.key == id_ and scope.context:
            state_taps.ended(scope)

    def _no_span(self, *args: Any, **kwargs: Any) -> None:
        """Make no span: they are kept in scopes, and what would call this is overridden above."""

    new_span = prepare_to_exit_span = prepare_to_drop_span = _no_span


def _scope(
    id_: str, bound: inspect.BoundArguments, instance: object, around: Scope | None
) -> Scope | None:
    """Return the scope of a span: that around it, or a new one."""
    if isinstance(instance, _TURNS):
        if around is not None and around.kind == "turn" and around.instance() is instance:
            return around
        return _turn(id_, bound, instance, around)
    if around is None:
        return Scope(id_, None, "turn", instance) if isinstance(instance, BaseQueryEngine) else None
    call = next((one for one in bound.arguments.values() if isinstance(one, ToolCall)), None)
    return around if call is None or around.kind == "tool" else _tool(id_, call, around)


def _turn(id_: str, bound: inspect.BoundArguments, instance: object, around: Scope | None) -> Scope:
    made = Scope(id_, around, "turn", instance)
    if isinstance(instance, Workflow) and bound.arguments.get("start_event") is None:
        made.resumed = True
    return made


def _tool(id_: str, call: ToolCall, turn: Scope) -> Scope:
    made = Scope(id_, turn, "tool", turn.instance(), call.tool_id)
    with guard:
        asked = [one for one in turn.replies if call.tool_id in one.calls]
        if asked:
            made.reads.outputs[asked[-1]] = None
        else:  # the id was made up by the agent, or the call by a run before
            made.reads.add(turn.everything())
    return made


def _take_result(scope: Scope, result: ToolCallResult) -> None:
    if scope.tool is not None and scope.parent is not None:
        said = ChatMessage(
            role="tool",
            blocks=result.tool_output.blocks,
            additional_kwargs={"tool_call_id": result.tool_id},
        )
        scope.tool.digest = digest_of(said)
        scope.parent.result(scope.tool, result.tool_id)
        leftovers.add(whose(scope), scope.tool)


def _take_history(scope: Scope, history: Iterable[object]) -> None:
    """Take in messages that a caller gave to an engine: it may not ask the memory for them."""
    flow = Flow()
    for message in history:
        if not isinstance(message, ChatMessage):
            continue
        tag = tag_of(message)
        if tag is None or tag.digest != digest_of(message):
            with guard:
                scope.unknown[digest_of(message)] = None
        if tag is not None:
            flow.read(tag.owner, [tag.record])
    scope.note(flow)


def _take_nodes(scope: Scope | None, nodes: object, *, found: bool = False) -> None:
    """Take in nodes that were found, or that are handed to a part of the framework."""
    flow = Flow()
    there = {id(one) for one in scope.reads.nodes.values()} if scope is not None else set()
    for one in nodes if isinstance(nodes, list) else ():
        if not isinstance(one, NodeWithScore):
            return
        if scope is None:
            # Nobody knows whose turn it is, so only what is a record of somebody's is noted.
            if (known := note_of(one.node)) is not None and known.record:
                flow.read(known.owner, [known.record])
            continue
        held, key = one.node, one.node.node_id
        if not found and id(held) not in there and note_of(held) is None:
            flow.rewritten.add(id(held))
        while key in flow.nodes and flow.nodes[key] is not held:
            key += "+"
        flow.nodes[key] = held
    took(flow, scope)


class Events(BaseEventHandler):
    """Takes in what models were sent and said, and what was retrieved."""

    def handle(self, event: Any, **_: Any) -> None:
        """Take an event in."""
        if isinstance(event, LLMChatInProgressEvent):
            calls.said(event.span_id, event.messages, event.response)
        elif isinstance(event, LLMChatStartEvent):
            calls.chat(event.span_id, event.messages, model_of(event.model_dict))
        elif isinstance(event, LLMChatEndEvent):
            calls.ended(event.span_id, event.messages, event.response)
        elif isinstance(event, LLMCompletionStartEvent):
            calls.complete(event.span_id, event.prompt, model_of(event.model_dict))
        elif isinstance(event, LLMCompletionEndEvent):
            calls.completed(event.span_id, event.prompt, event.response)
        elif isinstance(event, RetrievalEndEvent):
            _take_nodes(scopes.at(event.span_id) or current(), event.nodes, found=True)


def install() -> None:
    """Begin to listen, once per process. Called when memory.py is imported."""
    with _once:
        if not any(isinstance(one, Spans) for one in root_dispatcher.span_handlers):
            root_dispatcher.add_span_handler(Spans())
            root_dispatcher.add_event_handler(Events())
            state_taps.install()
