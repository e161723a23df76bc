"""The selectors of `plan` and `forget` on the command line, and how far and how they go."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from dellm import plan as plans
from dellm.errors import InvalidInput
from dellm.memory import Memory
from dellm.plan import Plan, Reach
from dellm.previews import Selection

MOST_IDS = 100_000  # that one range may stand for


@dataclass(frozen=True, slots=True)
class Selecting:
    """What is to go. Several selectors narrow each other."""

    what: Annotated[
        str | None,
        typer.Argument(help="An exact quote, or a value in any spelling; - reads it from stdin."),
    ] = None
    ids: Annotated[str | None, typer.Option(help="Record ids, such as 3,5-8.")] = None
    quote: Annotated[str | None, typer.Option(help="An exact quote.")] = None
    value: Annotated[str | None, typer.Option(help="A value, in any spelling.")] = None
    keyword: Annotated[str | None, typer.Option(help="Words that are all in the record.")] = None
    meaning: Annotated[str | None, typer.Option(help="What the record means.")] = None
    description: Annotated[
        str | None, typer.Option(help='A described value, such as "Sam\'s phone number".')
    ] = None
    where: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE of an attribute or metadata; repeatable.")
    ] = None
    thread: Annotated[str | None, typer.Option(help="Only in this thread, or all of it.")] = None
    everything: Annotated[bool, typer.Option("--everything", help="All of the workspace.")] = False
    threshold: Annotated[
        float | None, typer.Option(help="Least cosine for --meaning, in [-1, 1].")
    ] = None
    aliases: Annotated[
        bool, typer.Option("--aliases", help="Other names that the records state, too.")
    ] = False
    include: Annotated[str | None, typer.Option(help="Ids to take besides.")] = None
    exclude: Annotated[str | None, typer.Option(help="Ids not to match.")] = None
    mode: Annotated[str, typer.Option(help="erase, suppress (undoable) or redact.")] = "erase"
    reach: Annotated[
        str, typer.Option(help="How far: strict, depth:N replies, or influence:SHARE.")
    ] = "strict"

    regenerate: Annotated[
        bool, typer.Option("--regenerate", help="Ask a model again for the replies that would go.")
    ] = False

    def plan(self, memory: Memory) -> Plan:
        """Return the plan. Raises SelectorError, InvalidInput, EmbedderError."""
        reach = reach_of(self.reach)
        return memory.plan(
            given(self.what),
            mode=self.mode,
            reach=reach,
            on_dependents="regenerate" if self.regenerate else "erase",
            **self._selection(),
        )

    def _selection(self) -> Selection:
        texts = ("quote", "value", "keyword", "meaning", "description", "thread", "threshold")
        chosen: dict[str, Any] = {name: getattr(self, name) for name in texts}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        for name in ("ids", "include", "exclude"):
            if (listed := getattr(self, name)) is not None:
                chosen[name] = numbers(listed)
        for name in ("everything", "aliases"):
            if getattr(self, name):
                chosen[name] = True
        if self.where:
            chosen["where"] = dict(map(_pair, self.where))
        return cast("Selection", chosen)

    @property
    def named(self) -> bool:
        """Whether any selector was given."""
        return self.what is not None or bool(self._selection())


def reach_of(text: str) -> Reach:
    """Read "strict", "depth:2" or "influence:0.3"; InvalidInput for anything else."""
    kind, _, limit = text.partition(":")
    try:
        if kind == "depth":
            return plans.depth(int(limit))
        if kind == "influence":
            return plans.influence(float(limit))
    except ValueError:
        kind = ""
    if text == "strict":
        return plans.STRICT
    raise InvalidInput("--reach is strict, depth:N or influence:SHARE.")


def numbers(text: str) -> list[int]:
    """Read ids such as "3, 5-8"; InvalidInput for anything else."""
    found: list[int] = []
    try:
        for part in filter(None, text.replace(" ", ",").split(",")):
            first, _, last = part.partition("-")
            start, end = int(first), int(last or first)
            if not 0 <= end - start <= MOST_IDS:
                raise InvalidInput("A range of ids goes from the smaller to the larger.")
            found.extend(range(start, end + 1))
    except ValueError:
        found = []
    if not found:
        raise InvalidInput("Ids are numbers, such as 3,5-8.")
    return found


def given(text: str | None) -> str | None:
    """Return the argument, or what stdin holds where it is a dash."""
    return sys.stdin.read().rstrip("\n") if text == "-" else text


def read_plan(path: Path) -> Plan:
    """Return the plan kept in a file, or on stdin for a dash; InvalidInput where there is none."""
    try:
        data = json.loads(sys.stdin.read() if str(path) == "-" else path.read_text("utf-8"))
    except ValueError:  # no JSON, or no text at all
        data = None
    if not isinstance(data, dict):
        raise InvalidInput("The file does not hold the JSON of a plan.")
    return Plan.from_json(data)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InvalidInput("--where is NAME=VALUE.")
    return name, value
