"""A tool by which a model may propose what its user has asked to be forgotten.

A tool call can be the work of a text that the model has read (prompt injection; section VII-D of
the paper), so nothing that the model says decides what goes: the plan is made from the user's own
newest message, and only where that asks for it and the model's words are the user's. The user is
then asked as always.
"""

from __future__ import annotations

from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.types import Command

from dellm import RequestKind, recognise
from dellm.requests import Classifier

from .messages import text_of
from .middleware_choosing import turn_start
from .middleware_forget import EVERYTHING, IDS, PENDING, pending
from .middleware_run import MemoryMiddleware

NAME = "forget_memory"
REFUSED = (
    "Refused: the user's newest message does not ask for this. Only the user can have something "
    "forgotten; do not try again."
)
PLANNED = "A plan was made; nothing is forgotten yet. The user will be asked to confirm it."
NOTHING = "Nothing is remembered that matches, so there is nothing to forget."


def forget_tool(middleware: MemoryMiddleware, classifier: Classifier | None = None) -> BaseTool:
    """Return the tool "forget_memory" for the memory of a middleware, which asks the user."""

    @tool(NAME)
    def forget_memory(what: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        """Propose to forget what the user has just asked to be forgotten, in the user's words."""
        messages = runtime.state["messages"]
        start = turn_start(messages)
        said = text_of(messages[start].content) if messages else ""
        request = recognise(said, model=classifier)
        update: dict[str, Any] = {}
        text = REFUSED
        if request.kind is not RequestKind.NONE and _words(what) <= _words(said) != set():
            run = middleware.run()
            own = [one for one in run.records_of(messages[start:]) if one]
            waiting = pending(run, [request], own)
            found = waiting[0] in {IDS, EVERYTHING}
            text = PLANNED if found else NOTHING
            update = {PENDING: waiting} if found else {}
        result = ToolMessage(text, tool_call_id=runtime.tool_call_id, name=NAME)
        return Command(update={**update, "messages": [result]})

    return forget_memory


def _words(text: str) -> set[str]:
    return {one.strip(".,;:!?\"'()") for one in text.casefold().split()} - {""}
