"""How much is measured: the sizes the bounds speak of, or a fiftieth for a smoke run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of the data sets, and how many turns each comparison takes."""

    records: int = 1_000_000
    few: int = 10_000  # the small memory that forgetting in the large one is compared with
    closure: int = 1_000
    vectors: int = 100_000
    stored: int = 20_000  # records of the row on disk space
    turns: int = 10_000  # of the chat
    bulk: int = 50_000
    calls: int = 200  # single calls per turn of the comparison
    rounds: int = 7
    whole: bool = True


FULL = Scale()
SMOKE = Scale(
    records=20_000,
    few=2_000,
    closure=100,
    vectors=2_000,
    stored=400,
    turns=200,
    bulk=1_000,
    calls=20,
    rounds=3,
    whole=False,
)
