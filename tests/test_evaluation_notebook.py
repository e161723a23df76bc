"""The notebook of the evaluation and its figures show what is saved, and say what is not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from benchmarks.evaluation import ablation, figures
from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.command import EXPERIMENTS
from benchmarks.evaluation.results import RESULTS, Number, Report, load, mean, share
from benchmarks.evaluation.running import Run
from dellm.embedding import HashingEmbedder
from dellm.models import ExtractiveReader

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "03_evaluation.ipynb"
MOST = 100_000  # bytes of a figure
PNG = b"\x89PNG\r\n"


def sources() -> list[str]:
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    return [str(one.source) for one in cells if one.cell_type == "code"]


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    monkeypatch.setattr("IPython.display.display", seen.append)
    return seen


@pytest.fixture
def names(displayed: list[Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the notebook's first cells define."""
    assert displayed == []
    monkeypatch.chdir(NOTEBOOK.parent)
    defined: dict[str, Any] = {}
    for source in sources()[:2]:
        exec(source, defined)
    return defined


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the reports of a small ablation."""
    out = tmp_path_factory.mktemp("results")
    for model in (Canary(), ExtractiveReader()):
        for report in ablation.run(Run(model, HashingEmbedder(), small=True, limit=1)):
            report.save(out)
    return out


def test_the_notebook_shows_every_experiment(names: dict[str, Any], displayed: list[Any]) -> None:
    for name in EXPERIMENTS:
        rows: list[dict[str, Any]] = [{"reach": "strict", "named by": "id"}]
        names["saved"][f"{name}-made-up"] = Report(f"{name}-made-up", f"All of {name}", rows, {})
    for source in sources()[2:]:
        if "show(" in source:
            exec(source.partition("draw(")[0], names)
    titles = "\n".join(one.data for one in displayed)
    assert [name for name in EXPERIMENTS if f"All of {name}**" not in titles] == []


def test_the_notebook_draws_every_figure() -> None:
    drawn = set(re.findall(r'draw\("([\w-]+)"\)', "\n".join(sources())))
    assert drawn == {one.name for one in figures.DRAWINGS}


def test_the_notebook_says_which_result_is_missing(
    names: dict[str, Any], displayed: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    names["saved"].clear()
    names["show"]("gatemem")
    assert "No result is saved here." in displayed[0].data
    assert "python -m benchmarks.evaluation gatemem" in displayed[0].data
    names["draw"]("ablation-tradeoff")
    assert "ablation-size-canary" in capsys.readouterr().out


def test_the_notebook_shows_what_is_saved(names: dict[str, Any], displayed: list[Any]) -> None:
    rows: list[dict[str, Any]] = [{"system": str(n), "right": share(n, 4)} for n in range(3)]
    names["saved"]["gatemem-made-up"] = Report("gatemem-made-up", "Made up", rows, {})
    names["show"]("gatemem-made", most=2)
    assert "| 0 | 0.000 [0.000, 0.490] |" in displayed[0].data
    assert "(2 of 3 rows; all: `gatemem-made-up.md`)" in displayed[0].data


def test_figures_are_drawn_from_saved_reports(folder: Path, tmp_path: Path) -> None:
    lines = figures.draw(folder, tmp_path)
    drawn = {path.stem for path in tmp_path.glob("*.png")}
    assert {"ablation-tradeoff", "ablation-settings"} <= drawn
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes().startswith(PNG)
        assert path.stat().st_size < MOST
    assert len(lines) == len(figures.DRAWINGS)


def test_a_figure_whose_reports_are_missing_is_named_and_not_drawn(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in folder.glob("ablation-recent-*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert figures.main(["--results", str(tmp_path)]) == 1
    assert "no ablation-size-canary, ablation-size-extractive" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize(
    ("cell", "at", "below", "above"),
    [
        (Number(0.5, 0.4, 0.75, 8), 50.0, 10.0, 25.0),
        (Number(0.0, 0.0, 0.3, 8), 0.0, 0.0, 30.0),
        (mean([1.0, 1.0]), 100.0, 0.0, 0.0),
    ],
)
def test_a_share_is_drawn_in_per_cent_with_its_interval(
    cell: Number, at: float, below: float, above: float
) -> None:
    assert figures.percent(cell) == pytest.approx(at)
    assert figures.reaches(cell) == pytest.approx((below, above))


def test_what_was_not_measured_is_no_point() -> None:
    nothing = figures.percent(share(0, 0))
    assert nothing != nothing
    assert figures.reaches(share(0, 0)) == (0.0, 0.0)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda one: one.stem)
def test_every_saved_number_stands_with_its_interval_and_says_how_it_was_made(path: Path) -> None:
    report = load(path)
    assert {"seed", "dellm", "Python"} <= set(report.settings)
    cells = [cell for row in report.rows for cell in row.values() if isinstance(cell, Number)]
    for cell in cells:
        if cell.value is not None:
            assert cell.n > 0
            assert cell.low is not None
            assert cell.high is not None
            assert cell.low - 1e-9 <= cell.value <= cell.high + 1e-9


def test_results_are_small() -> None:
    kept = [path for path in RESULTS.iterdir() if path.suffix in {".json", ".md", ".png", ".svg"}]
    assert kept
    assert max(path.stat().st_size for path in kept) < 200_000
