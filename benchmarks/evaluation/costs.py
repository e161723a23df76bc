"""What a run with paid models costs: prices, and the bill that is made of them and of tallies."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dellm.errors import InvalidInput

from .kept_answers import MESSAGE, Tally
from .results import Cell, Number, table

PRICES = Path(__file__).parent / "data" / "prices.toml"
_MILLION = 1_000_000
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens in and out; `reasoning`: hidden tokens of each reply, a guess."""

    input: float
    output: float
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of models by name, and the day of which they are."""

    models: Mapping[str, Price]
    dated: str

    def of(self, name: str) -> Price | None:
        """Return the price of a model such as `openai:gpt-4.1-nano`, of any snapshot; None: unknown."""
        model = name.partition(":")[2].partition("@")[0]
        return self.models.get(model) or self.models.get(_SNAPSHOT.sub("", model))


def prices(path: Path | None = None) -> Prices:
    """Read the price table, and a file of the same form whose models come before the table's.

    Raises InvalidInput if that file is not of this form.
    """
    ours = _read(PRICES)
    if path is None:
        return ours
    theirs = _read(path)
    return Prices({**ours.models, **theirs.models}, f"{ours.dated}, {path.name}: {theirs.dated}")


def _read(path: Path) -> Prices:
    try:
        said = tomllib.loads(path.read_text("utf-8"))
        models = {name: _price(one) for name, one in said["models"].items()}
        return Prices(models, str(said.get("dated", "no date")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{path} is no price table; it needs [models.NAME] with input and output, in dollars "
            "for a million tokens."
        ) from error


def _price(said: Mapping[str, Any]) -> Price:
    price = Price(float(said["input"]), float(said["output"]), int(said.get("reasoning", 0)))
    if min(price.input, price.output, price.reasoning) < 0:
        raise ValueError("a price is negative")
    return price


@dataclass(frozen=True, slots=True)
class Bill:
    """What the tallies of a run's models come to."""

    tallies: Sequence[Tally]
    prices: Prices

    @property
    def asked(self) -> int:
        """Requests that were answered."""
        return sum(one.asked for one in self.tallies)

    @property
    def kept(self) -> int:
        """Answers and vectors that were taken from the file."""
        return sum(one.kept for one in self.tallies)

    def output(self, tally: Tally) -> int:
        """Return the tokens out of a model, hidden ones included."""
        price = self.prices.of(tally.name)
        hidden = price.reasoning if price and not tally.counted else 0
        return tally.output + tally.asked * hidden

    def dollars(self, tally: Tally) -> float | None:
        """Return what a model costs; None if its price is unknown and it is asked anything."""
        price = self.prices.of(tally.name)
        if price is None:
            return None if tally.asked else 0.0
        return (tally.input * price.input + self.output(tally) * price.output) / _MILLION

    def total(self) -> str:
        """Return what all models cost together, in words."""
        each = {one.name: self.dollars(one) for one in self.tallies}
        known = sum(one for tally in self.tallies if (one := self.dollars(tally)) is not None)
        unknown = " and ".join(dict.fromkeys(name for name, one in each.items() if one is None))
        if not unknown:
            return _money(known)
        return f"{_money(known)} and what {unknown} costs, whose price is unknown (--prices FILE)"

    def table(self) -> str:
        """Return a row for each model as a Markdown table."""
        rows = [self._row(one) for one in self.tallies]
        return table(list(rows[0]), rows) if rows else ""

    def _row(self, tally: Tally) -> dict[str, Cell | Number]:
        dollars = self.dollars(tally)
        return {
            "model": tally.name,
            "for": tally.role,
            "requests": tally.asked,
            "kept or repeated": tally.kept,
            "tokens in": tally.input,
            "tokens out": self.output(tally),
            "cost": "unknown" if dollars is None else _money(dollars),
        }

    def spent(self) -> str:
        """Return in one sentence what a run asked, took from the file, and about what it cost."""
        given = sum(one.input for one in self.tallies)
        made = sum(map(self.output, self.tallies))
        return (
            f"Asked {self.asked} requests ({given} tokens in, {made} out), took {self.kept} answers "
            f"and vectors that were kept, spent about {self.total()}."
        )

    def caveats(self, host: str) -> list[str]:
        """Return what a reader of an estimate must know."""
        said = [
            f"Tokens are characters / 4, and {MESSAGE} more a chat message. Prices are of "
            f"{self.prices.dated}, for api.openai.com; --prices FILE takes others.",
        ]
        if host != "api.openai.com":
            said.append(f"The endpoint is {host}, which may charge something else, or nothing.")
        if any((price := self.prices.of(one.name)) and price.reasoning for one in self.tallies):
            said.append("Hidden reasoning is in tokens out by the guess of the price table.")
        return said


def _money(dollars: float) -> str:
    return "under $0.0001" if 0 < dollars < 0.0001 else f"${dollars:.4f}"
