"""DeLLM for LangChain and LangGraph: what an agent remembers, and can really forget.

Each name is loaded when it is first asked for: a graph that only keeps checkpoints waits for no
agent, retriever or cache.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'dellm_langchain' has no attribute {name!r}")
    found: object = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = found
    return found


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
