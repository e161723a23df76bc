"""A memory of its own for a test of LlamaIndex, and sessions in it. Import the fixtures to use them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dellm import Memory
from dellm_llamaindex import DeLLMMemory

Opened = Callable[..., Memory]


@pytest.fixture
def core(sqlite_url: str, opened: Opened) -> Memory:
    return opened(sqlite_url).workspace("alex")


@pytest.fixture
def both(url: str, opened: Opened) -> Memory:
    return opened(url).workspace("alex")


@pytest.fixture
def memory(core: Memory) -> DeLLMMemory:
    return session(core, "main")


def session(core: Memory, name: str, top_k: int | None = None) -> DeLLMMemory:
    return DeLLMMemory.from_defaults(
        memory=core, session_id=name, top_k=top_k, token_limit=1_000_000
    )
