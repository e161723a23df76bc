"""A memory in a SQLite file, for what the two databases do not differ in: import the fixture."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dellm import Memory


@pytest.fixture
def lite(sqlite_url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(sqlite_url).workspace("alex")
