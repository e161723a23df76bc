"""The log of what models were sent, empty before and after each test: import the fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from graphs import HEARD


@pytest.fixture(autouse=True)
def unheard() -> Iterator[None]:
    HEARD.clear()
    yield
    HEARD.clear()
