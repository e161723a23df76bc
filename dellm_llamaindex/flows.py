"""What something was made from: records, and what is not a record yet.

A flow holds ids and references only; the text of a retrieved node is in it until the node has a
record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from llama_index.core.schema import BaseNode

from .tags import Owner

ERASED = 0  # a record that nobody has: what is made from it is refused


@dataclass(slots=True, eq=False)
class Flow:
    """What was read so far, in order. `unsure`: what else was read cannot be told.

    `rewritten` are the identities of nodes that nobody has found: made from those that were found.
    """

    records: dict[Owner, dict[int, None]] = field(default_factory=dict)
    nodes: dict[str, BaseNode] = field(default_factory=dict, repr=False)
    outputs: dict[Output, None] = field(default_factory=dict)
    rewritten: set[int] = field(default_factory=set)
    unsure: bool = False

    def read(self, owner: Owner, records: Iterable[int]) -> None:
        """Add records of one workspace."""
        self.records.setdefault(owner, {}).update(dict.fromkeys(records))

    def add(self, other: Flow) -> None:
        """Add all that another flow holds."""
        for owner, records in other.records.items():
            self.records.setdefault(owner, {}).update(records)
        self.nodes.update(other.nodes)
        self.outputs.update(other.outputs)
        self.rewritten |= other.rewritten
        self.unsure = self.unsure or other.unsure

    def copy(self) -> Flow:
        """Return a flow of its own with the same."""
        made = Flow()
        made.add(self)
        return made

    def __bool__(self) -> bool:
        return bool(self.unsure or self.nodes or self.outputs or any(self.records.values()))


@dataclass(slots=True, eq=False)
class Output:
    """A model's reply or a tool's result seen in a run: what it was made from, and what it became.

    `digest` is that of the message (tags.digest_of), or of a text where there was no message.
    `calls` are the ids of the tool calls that a reply makes; `answers` is the one that a result
    answers. `stored` are the records it became, by workspace. `standins` are records without any
    content that stand for it there, where something made from it was stored before it was.
    `guessed`: it may be made from less than `made` says. `model` is who made a reply, "provider/model".
    """

    made: Flow
    digest: bytes = b""
    calls: tuple[str, ...] = ()
    answers: str | None = None
    stored: dict[Owner, int] = field(default_factory=dict)
    standins: dict[Owner, int] = field(default_factory=dict)
    guessed: bool = False
    model: str | None = None
