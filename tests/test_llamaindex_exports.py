"""Everything is importable from the package, and nothing is loaded before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dellm_llamaindex


@pytest.mark.parametrize("name", dellm_llamaindex.__all__)
def test_each_public_name_is_there_and_documented(name: str) -> None:
    found = getattr(dellm_llamaindex, name)
    assert found.__doc__
    assert found.__module__.startswith("dellm_llamaindex.")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Nothing"):
        dellm_llamaindex.Nothing  # noqa: B018 - it is asked for


def test_the_package_itself_loads_nothing_of_the_framework() -> None:
    said = (
        "import sys, dellm_llamaindex; print([one for one in sys.modules if 'llama_index' in one])"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
