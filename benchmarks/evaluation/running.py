"""What every experiment is given: models, data, a seed, and how much of it to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dellm.embedding import Embedder
from dellm.errors import InvalidInput
from dellm.models import Model

from .results import settings_of

Item = TypeVar("Item")


class MissingData(InvalidInput):
    """The folder with the data holds no set for the experiment."""

    remedy = "Give the folder that holds the data sets by --data DIR."


@dataclass(frozen=True, slots=True)
class Run:
    """The settings of one run.

    `data` is the folder that holds `tofu/`, `gatemem/` and the others, or None. `small` asks for the
    sample that runs in CI, `limit` for the first that many personas, episodes or cases. `judge` is
    the model that judges answers, or None for the scores that need no model. `watch(items, name)`
    passes items on and shows how far the run is.
    """

    model: Model
    embedder: Embedder
    judge: Model | None = None
    data: Path | None = None
    seed: int = 0
    small: bool = False
    limit: int | None = None
    watch: Callable[[Iterable[Any], str], Iterator[Any]] = lambda items, _: iter(items)

    def has(self, name: str) -> bool:
        """Tell whether the folder of a data set is there."""
        return self.data is not None and (self.data / name).is_dir()

    def folder(self, name: str) -> Path:
        """Return the folder of a data set; raise MissingData if it is not there."""
        if self.data is None or not self.has(name):
            raise MissingData(f"The data folder (--data DIR) holds no {name}/.")
        return self.data / name

    def first(self, items: list[Item], small: int) -> list[Item]:
        """Return the items to run: all, the first `limit`, or the first `small` of a small run."""
        count = self.limit if self.limit is not None else (small if self.small else len(items))
        return items[:count]

    def named(self, name: str) -> str:
        """Return the name of a report of which there is one for each model."""
        return f"{name}-{self.model.name.replace(':', '-')}"

    def settings(self, **more: Any) -> dict[str, Any]:
        """Return what a report says of this run."""
        return settings_of(
            model=self.model.name,
            embedder=self.embedder.name,
            judge=self.judge.name if self.judge else "none",
            seed=self.seed,
            small=self.small,
            limit=self.limit,
            **more,
        )
