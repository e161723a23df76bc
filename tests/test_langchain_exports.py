"""Everything is importable from the package, and nothing is loaded before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dellm_langchain


@pytest.mark.parametrize("name", dellm_langchain.__all__)
def test_each_public_name_is_there_and_documented(name: str) -> None:
    found = getattr(dellm_langchain, name)
    assert found.__doc__
    assert found.__module__.startswith("dellm_langchain.")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Nothing"):
        dellm_langchain.Nothing  # noqa: B018 - it is asked for


def test_a_graph_that_keeps_only_checkpoints_loads_no_agent() -> None:
    said = "import sys, dellm_langchain; print([one for one in sys.modules if 'agents' in one])"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
