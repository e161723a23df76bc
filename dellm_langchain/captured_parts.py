"""What is kept of each call and each tool run, and where in the tree of runs they are."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from .calls import Call
from .raw_inputs import RawInputs

if TYPE_CHECKING:
    from uuid import UUID


class Place(NamedTuple):
    """Where in the tree of runs a run is: what its calls inherit."""

    root: UUID
    steps: tuple[tuple[str, int | None], ...] = ()
    tasks: tuple[str, ...] = ()
    node: str = ""
    tools: tuple[UUID, ...] = ()
    runs: tuple[UUID, ...] = ()


class Reply(NamedTuple):
    """A message that a call generated: numbers for all of it and for its text, names it may have."""

    call: Call
    generated: int
    names: frozenset[str | None]
    text: int


@dataclass(slots=True)
class Kept:
    """A call that is kept, with the keys it is found by and the ids of its replies."""

    call: Call
    weight: int
    keys: tuple[Hashable, ...]
    agent: object
    replies: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Tool:
    """A run of a tool, with numbers for what it was given and what it returned."""

    tool_call_id: str | None
    name: str
    place: Place
    reads_state: bool
    input: int | None
    owner: Hashable = None
    outputs: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Run:
    """A run on a thread that nothing else started: what it was given, its saver once that is known."""

    thread_id: str
    inputs: RawInputs
    owner: Hashable = None
