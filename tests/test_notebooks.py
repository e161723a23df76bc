"""The notebooks run as they stand, and what is kept of their output is small and names no machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
MOST = 100_000  # bytes of a notebook with its outputs


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # the kernel is a process of its own, with its own rules
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_notebook_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    # Without weights a reader takes the model's place; what is shown was made with the local model.
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path / "no weights"))
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, resources=where).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_notebook_is_kept_small_and_executed(path: Path) -> None:
    assert path.stat().st_size < MOST
    text = path.read_text("utf-8")
    assert str(Path.home()) not in text
    assert "/tmp/" not in text
    cells: list[Any] = nbformat.read(path, as_version=4).cells
    code = [one for one in cells if one.cell_type == "code"]
    assert all(one.execution_count for one in code)
    assert not [out for one in code for out in one.outputs if out.output_type == "error"]
