"""The older pydantic that LlamaIndex still allows: the same few things, in a process with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__)
OLDER = "2.12.5"


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the older pydantic; the test is skipped where it cannot be fetched."""
    folder = tmp_path_factory.mktemp("pydantic")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", f"pydantic=={OLDER}"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        pytest.skip(f"pydantic {OLDER} cannot be installed: {done.stderr.strip()[-200:]}")
    return folder


@pytest.mark.long
def test_memories_tags_contexts_and_an_agent_work_with_the_older_pydantic(
    older: Path, tmp_path: Path
) -> None:
    paths = [str(older), str(HERE.parent), str(HERE.parents[1]), str(HERE.parents[1] / "core")]
    child = HERE.parent / "llama_older_pydantic.py"
    done = subprocess.run(
        [sys.executable, str(child), str(tmp_path / "memory.db")],
        env={"PYTHONPATH": ":".join(paths), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == [OLDER, "written", "tagged", "restored", "exact", "forgotten"]
