"""What an adapter hands in to be stored: a checkpoint, and what a task wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .bodies import Body
from .cells import Atom, Cell, Place


def _nothing() -> None:
    """Complete nothing."""


@dataclass(slots=True)
class Checkpoint:
    """A checkpoint to be stored. `body.cells` is made by the write.

    `unchanged` are channels whose value is the parent's as long as their version is; `cell` gives
    the value of any other channel that has one; `ready` is called when all were given, and completes
    their atoms. An erased value of the channels `rebuilt` was made anew by its reader, so nothing
    earlier takes its place. `settings` is what else came with the metadata.
    `since`: see Sources. `run`: the id of the run, where the metadata has one.
    """

    place: Place
    parent: str | None
    body: Body
    values: Sequence[str]
    unchanged: frozenset[str]
    cell: Callable[[str], Cell]
    rebuilt: frozenset[str] = frozenset()
    ready: Callable[[], None] = _nothing
    settings: Atom | None = None
    since: int | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class TaskWrite:
    """One write of a task: its index (negative ones replace what was there), channel and value."""

    index: int
    channel: str
    cell: Cell
