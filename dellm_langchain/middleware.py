"""DeLLMMiddleware: one object by which an agent sees what is relevant, and forgets when asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from langchain.agents.middleware import ModelRequest, hook_config
from langgraph.runtime import Runtime

from dellm import Memory, estimated_tokens
from dellm.adapting import Classifier, check_flag

from .middleware_context import AsyncHandler, ContextMiddleware, Handler, Result
from .middleware_forget import ForgetMiddleware, Update, checked
from .middleware_tool import forget_tool

__all__ = ["ContextMiddleware", "DeLLMMiddleware", "ForgetMiddleware"]


class DeLLMMiddleware(ForgetMiddleware, ContextMiddleware):
    """The pair for `create_agent(middleware=[DeLLMMiddleware(memory)], checkpointer=...)`.

    It forgets before the model or any other middleware around it sees the request, and chooses the
    context after all other middleware has made of the prompt what it wants, at whatever place of
    the list it stands: see ForgetMiddleware and ContextMiddleware, which are the halves, for what
    they do and for the options. `context=False` or `forget=False` turns one of them off.

    `delete_tool=True` gives the model a tool by which it can propose a deletion that the user has
    asked for: it makes a plan, which the user is then asked about in the same way. It refuses where
    the user's own newest message does not ask for it, so that text in a document or a tool's result
    cannot (prompt injection; section VII-D of the paper).
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
        context: bool = True,
        forget: bool = True,
        delete_tool: bool = False,
        classifier: Classifier | None = None,
    ) -> None:
        ContextMiddleware.__init__(
            self,
            memory,
            workspace=workspace,
            k=k,
            last=last,
            threshold=threshold,
            by=by,
            budget=budget,
            count=count,
            scope=scope,
        )
        flags = {"context=": context, "forget=": forget, "delete_tool=": delete_tool}
        for name, value in flags.items():
            check_flag(value, name)
        self._classifier = checked(classifier)
        self._context, self._forget = context, forget
        self.tools = [forget_tool(self, classifier)] if delete_tool else []

    def for_workspace(self, name: str) -> Self:
        """Return this middleware for one workspace, whatever the runs' configs say."""
        twin = super().for_workspace(name)
        twin.tools = [forget_tool(twin, self._classifier)] if self.tools else []
        return twin

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: Any, runtime: Runtime[Any]) -> Update | None:
        """As ForgetMiddleware; without `forget`, nothing."""
        return super().before_agent(state, runtime) if self._forget else None

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Result:
        """As ContextMiddleware; without `context`, the request as it is."""
        return super().wrap_model_call(request, handler) if self._context else handler(request)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncHandler) -> Result:
        """As wrap_model_call; the memory is asked off the loop."""
        if self._context:
            return await super().awrap_model_call(request, handler)
        return await handler(request)
