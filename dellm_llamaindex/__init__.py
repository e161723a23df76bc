"""DeLLM for LlamaIndex: memory that knows what every reply was made from, and can really forget.

Each name is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dellm.adapting import lazily

if TYPE_CHECKING:
    from .chat_store import DeLLMChatStore
    from .confirming import ForgetQuestion, confirm_forget
    from .documents import forget_document, plan_document
    from .fact_block import DeLLMFactBlock
    from .forgetting import ForgetDialog, ForgettingChatEngine
    from .handles import attach
    from .memory import DeLLMMemory
    from .retriever import DeLLMRetriever
    from .state_cleaning import cleaned_context
    from .summary_block import DeLLMSummaryBlock
    from .tracking import track
    from .vector_block import DeLLMVectorBlock

_HOME = {
    "DeLLMChatStore": "chat_store",
    "DeLLMFactBlock": "fact_block",
    "DeLLMMemory": "memory",
    "DeLLMRetriever": "retriever",
    "DeLLMSummaryBlock": "summary_block",
    "DeLLMVectorBlock": "vector_block",
    "ForgetDialog": "forgetting",
    "ForgetQuestion": "confirming",
    "ForgettingChatEngine": "forgetting",
    "attach": "handles",
    "cleaned_context": "state_cleaning",
    "confirm_forget": "confirming",
    "forget_document": "documents",
    "plan_document": "documents",
    "track": "tracking",
}


__getattr__ = lazily(__name__, _HOME)


__all__ = [
    "DeLLMChatStore",
    "DeLLMFactBlock",
    "DeLLMMemory",
    "DeLLMRetriever",
    "DeLLMSummaryBlock",
    "DeLLMVectorBlock",
    "ForgetDialog",
    "ForgetQuestion",
    "ForgettingChatEngine",
    "attach",
    "cleaned_context",
    "confirm_forget",
    "forget_document",
    "plan_document",
    "track",
]
