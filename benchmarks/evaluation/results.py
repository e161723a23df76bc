"""What an experiment leaves behind: rows of numbers, each with its n and its 95 % interval.

A report is JSON (everything), a Markdown table (for people) and, where the experiment draws one, a
figure. It names the models, the seed, the data and the versions, so that a reader can run it again.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.requests import wilson

Cell = str | int | float | None
RESULTS = Path(__file__).parent.parent / "results"
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Number:
    """A share in [0, 1] or a mean, with its 95 % interval and the number of observations."""

    value: float | None
    low: float | None
    high: float | None
    n: int

    def __str__(self) -> str:
        if self.value is None:
            return "–"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def share(hits: int, total: int) -> Number:
    """Return hits / total with Wilson's interval; no value without observations."""
    if not total:
        return Number(None, None, None, 0)
    low, high = wilson(hits, total)
    return Number(hits / total, low, high, total)


def rate(found: Iterable[bool | None]) -> Number:
    """Return the share of True among what is not None."""
    counted = [one for one in found if one is not None]
    return share(sum(counted), len(counted))


def drawn(value: float, sample: Callable[[random.Random], float], n: int, seed: int) -> Number:
    """Return a value with the percentile interval of what `sample` draws, which `seed` repeats."""
    draw = random.Random(seed)
    found = sorted(sample(draw) for _ in range(RESAMPLES))
    return Number(value, found[int(RESAMPLES * 0.025)], found[int(RESAMPLES * 0.975) - 1], n)


def mean(values: Sequence[float], seed: int = 0) -> Number:
    """Return the mean with a percentile bootstrap interval, which `seed` makes repeatable."""
    if not values:
        return Number(None, None, None, 0)

    def sample(draw: random.Random) -> float:
        return statistics.fmean(draw.choices(values, k=len(values)))

    return drawn(statistics.fmean(values), sample, len(values), seed)


@dataclass(frozen=True, slots=True)
class Report:
    """One experiment: its `rows`, each a mapping of a column to a cell or a Number, in order.

    `settings` says how it was run (see `settings_of`), `notes` what a reader must know of it.
    """

    name: str
    title: str
    rows: list[dict[str, Cell | Number]]
    settings: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """Every column of any row, in the order of their first use."""
        return list(dict.fromkeys(column for row in self.rows for column in row))

    def table(self) -> str:
        """Return the rows as a Markdown table."""
        return table(self.columns, self.rows)

    def save(self, folder: Path = RESULTS) -> Path:
        """Write NAME.json and NAME.md to a folder, which is made; return the path of the JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", "utf-8")
        said = [f"# {self.title}", self.table(), *self.notes, _settings_line(self.settings)]
        path.with_suffix(".md").write_text("\n\n".join(said) + "\n", "utf-8")
        return path


def load(path: Path) -> Report:
    """Read a report that `Report.save` wrote."""
    kept = json.loads(path.read_text("utf-8"))
    kept["rows"] = [{column: _cell(cell) for column, cell in row.items()} for row in kept["rows"]]
    return Report(**kept)


def _cell(cell: Any) -> Cell | Number:
    return Number(**cell) if isinstance(cell, dict) else cell


def table(columns: Sequence[str], rows: Iterable[Mapping[str, Cell | Number]]) -> str:
    """Return a Markdown table; a missing cell is empty, a float has three places."""
    lines = [columns, ["---"] * len(columns)]
    lines += [[_shown(row.get(column)) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(cell: Cell | Number) -> str:
    if isinstance(cell, float):
        return f"{cell:.3f}"
    return "" if cell is None else str(cell).replace("|", "\\|")


def _settings_line(settings: Mapping[str, Any]) -> str:
    return "Run with " + ", ".join(f"{name} {value}" for name, value in settings.items()) + "."


def settings_of(**said: Any) -> dict[str, Any]:
    """Return what was said of a run and what is known of the machine: Python and our version."""
    versions = {"dellm": importlib.metadata.version("dellm"), "Python": platform.python_version()}
    return {**said, **versions}
