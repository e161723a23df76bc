"""DeLLM for LlamaIndex: memory that knows what every reply was made from, and can really forget.

Each name is loaded when it is first asked for.
"""

from __future__ import annotations

_HOME: dict[str, str] = {}


def __getattr__(name: str) -> object:
    raise AttributeError(f"module 'dellm_llamaindex' has no attribute {name!r}")
