"""DeLLM for LlamaIndex: memory that knows what every reply was made from, and can really forget.

Each name is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .documents import forget_document, plan_document
    from .handles import attach
    from .memory import DeLLMMemory
    from .retriever import DeLLMRetriever
    from .tracking import track

_HOME = {
    "DeLLMMemory": "memory",
    "DeLLMRetriever": "retriever",
    "attach": "handles",
    "forget_document": "documents",
    "plan_document": "documents",
    "track": "tracking",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'dellm_llamaindex' has no attribute {name!r}")
    found: object = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = found
    return found


__all__ = [
    "DeLLMMemory",
    "DeLLMRetriever",
    "attach",
    "forget_document",
    "plan_document",
    "track",
]
