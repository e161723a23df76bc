"""A tool by which a model may propose what its user has asked to be forgotten.

A tool call can be the work of a text that the model has read (prompt injection; section VII-D of
the paper), so nothing that the model says decides what goes: the plan is made from the user's own
newest message, and only where that asks for it and the model's words are the user's. The user is
then asked as always.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.types import Command

from dellm import PolicyRefused, RequestKind, recognise
from dellm.adapting import Classifier, Target

from .messages import text_of
from .middleware_choosing import turn_start
from .middleware_forget import asked_before
from .middleware_run import MemoryMiddleware, Run, resuming
from .middleware_settling import Outcome, Settling, wished, wished_before

NAME = "forget_memory"
REFUSED = (
    "Refused: the user's newest message does not ask for this. Only the user can have something "
    "forgotten; do not try again."
)


def forget_tool(middleware: MemoryMiddleware, classifier: Classifier | None = None) -> BaseTool:
    """Return the tool "forget_memory" for the memory of a middleware, which asks the user."""

    @tool(NAME)
    def forget_memory(what: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        """Propose to forget what the user has just asked to be forgotten, in the user's words."""
        outcome = _proposed(middleware.run(), runtime.state["messages"], what, classifier)
        said = ToolMessage(outcome.text, tool_call_id=runtime.tool_call_id, name=NAME)
        return Command(update={"messages": [said]})

    return forget_memory


def _proposed(run: Run, messages: list[Any], what: str, classifier: Classifier | None) -> Outcome:
    if run.inside_tool:
        return _refused(run, "tool")  # what an agent inside a tool is told comes from a model
    question = asked_before(run) if resuming() else None
    if question is not None:
        asked = Settling(run, messages, *wished_before(question))
        return asked.settled(question["plan"])
    start = turn_start(messages)
    said = text_of(messages[start].content) if messages else ""
    request = recognise(said, model=classifier)
    if request.kind is RequestKind.NONE or not set() != _words(what) <= _words(said):
        return _refused(run, "model")
    if request.kind is RequestKind.OFFER and what.strip() in said:
        # What is said to be over was no request to forget it: the model names what of it.
        named = Target("value", what.strip())
        request = replace(request, targets=(*request.targets, named))
    run.settled()
    own = [one for one in run.records_of(messages[start:]) if one]
    return Settling(run, messages, *wished(run, [request], own)).settled(None)


def _refused(run: Run, by: str) -> Outcome:
    """Refuse what nobody asks but a tool or a model; the audit chain says so."""
    with suppress(PolicyRefused):
        run.memory.policies.require("forget", by)
    return Outcome(REFUSED)


def _words(text: str) -> set[str]:
    return {one.strip(".,;:!?\"'()") for one in text.casefold().split()} - {""}
