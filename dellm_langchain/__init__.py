"""DeLLM for LangChain and LangGraph: what an agent remembers, and can really forget.

Each name is loaded when it is first asked for: a graph that only keeps checkpoints waits for no
agent, retriever or cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dellm.adapting import lazily

from .saver import DeLLMSaver

if TYPE_CHECKING:
    from .cache import DeLLMCache
    from .chains import with_memory
    from .history import DeLLMChatMessageHistory
    from .middleware import ContextMiddleware, DeLLMMiddleware, ForgetMiddleware
    from .node_cache import DeLLMNodeCache
    from .retriever import DeLLMRetriever
    from .store import DeLLMStore
    from .summarizer import DeLLMSummarizer
    from .tracking import DeLLMCallbackHandler, track

_HOME = {
    "ContextMiddleware": "middleware",
    "DeLLMCache": "cache",
    "DeLLMCallbackHandler": "tracking",
    "DeLLMChatMessageHistory": "history",
    "DeLLMMiddleware": "middleware",
    "DeLLMNodeCache": "node_cache",
    "DeLLMRetriever": "retriever",
    "DeLLMStore": "store",
    "DeLLMSummarizer": "summarizer",
    "ForgetMiddleware": "middleware",
    "track": "tracking",
    "with_memory": "chains",
}


__getattr__ = lazily(__name__, _HOME)


__all__ = [
    "ContextMiddleware",
    "DeLLMCache",
    "DeLLMCallbackHandler",
    "DeLLMChatMessageHistory",
    "DeLLMMiddleware",
    "DeLLMNodeCache",
    "DeLLMRetriever",
    "DeLLMSaver",
    "DeLLMStore",
    "DeLLMSummarizer",
    "ForgetMiddleware",
    "track",
    "with_memory",
]
