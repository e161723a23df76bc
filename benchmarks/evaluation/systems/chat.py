"""Our models as LangChain knows chat models."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

ROLES = {"human": "user", "ai": "assistant"}


class Chat(BaseChatModel):
    """One of our models as a LangChain chat model; it takes no tools."""

    inner: Any

    @property
    def _llm_type(self) -> str:
        return str(self.inner.name)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the interface's form
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as above
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> ChatResult:
        sent = [{"role": ROLES.get(one.type, "system"), "content": one.text} for one in messages]
        reply = AIMessage(self.inner.complete(sent))
        return ChatResult(generations=[ChatGeneration(message=reply)])
