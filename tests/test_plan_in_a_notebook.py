"""In a notebook a plan is text too, as an assistant shows it, and is displayed by nobody but the user."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

CELL = """
from dellm import Memory

memory = Memory.open(":memory:", embedder=None)
fact = memory.remember("My locker code is 7719.")
said = str(memory.plan(ids=[fact.id]))
print(said)
"""


@pytest.mark.filterwarnings("ignore")  # the kernel is a process of its own, with its own rules
def test_a_plan_is_text_in_a_notebook(tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell(CELL)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=120, resources=where).execute()
    (printed,) = notebook.cells[0].outputs
    assert printed.output_type == "stream"
    assert "My locker code is 7719." in printed.text
