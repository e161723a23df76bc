"""Where code runs: which turn of an engine or workflow, and which call of a tool in it.

The framework keeps the span that code runs in across threads and tasks. The nearest span around it
of a chat engine or a workflow is its turn; a workflow's call of a tool is a scope inside of that.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Literal

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.instrumentation.span import active_span_id

from .flows import Flow, Output
from .tags import Owner, tag_of

Kind = Literal["turn", "tool"]

guard = threading.RLock()  # over every flow of a scope: they grow in several threads


class Scope:
    """A turn of an engine or workflow, or a call of a tool in one, and what it has read so far.

    It holds ids, keyed digests, and nodes that have no record yet. `asked` stands for what the user
    says in a turn: some engines store that after the model has answered.
    """

    def __init__(
        self,
        key: str,
        parent: Scope | None = None,
        kind: Kind = "turn",
        instance: object = None,
        call: str | None = None,
    ) -> None:
        self.key, self.parent, self.kind = key, parent, kind
        self.instance = weakref.ref(instance) if instance is not None else lambda: None
        self.ctx: weakref.ref[object] | None = None
        self.reads = Flow()
        self.begun = Flow()  # what there was around it when it began
        self.replies: list[Output] = []
        self.results: dict[str, list[Output]] = {}  # of tools, by the id of the call
        self.said: dict[bytes, dict[tuple[Owner, int], None]] = {}
        self.asked = Output(Flow())
        self.tool: Output | None = None
        if kind == "tool":
            self.tool = Output(self.reads, answers=call)

    @property
    def turn(self) -> Scope:
        """The turn that this is, or is in."""
        return self if self.kind == "turn" or self.parent is None else self.parent.turn

    def note(self, flow: Flow) -> None:
        """Add what was read here: all that is around it has read it as well."""
        with guard:
            self.reads.add(flow)
            if self.parent is not None:
                self.parent.note(flow)

    def know(self, digest: bytes, owner: Owner, record: int) -> None:
        """Note that a message which says this is a record, as far as this scope is concerned."""
        with guard:
            self.said.setdefault(digest, {})[owner, record] = None

    def hear(self, output: Output) -> None:
        """Add a model's reply."""
        with guard:
            self.replies.append(output)
            self.note(Flow(outputs={output: None}))

    def everything(self) -> Flow:
        """Return all that was read or heard here so far, and what the user says in this turn."""
        with guard:
            found = self.begun.copy()
            found.add(self.reads)
            if self.kind == "turn":
                found.outputs[self.asked] = None
            return found


class Scopes:
    """The scopes by the ids of their spans, those used last. Thread-safe."""

    def __init__(self, most: int = 8_192) -> None:
        self._most = most
        self._by_span: OrderedDict[str, tuple[Scope | None, str | None]] = OrderedDict()

    def enter(self, span: str, parent: str | None, scope: Scope | None) -> None:
        """Note in which scope a span is; None: in none."""
        with guard:
            self._by_span[span] = (scope, parent)
            while len(self._by_span) > self._most:
                self._by_span.popitem(last=False)

    def at(self, span: str | None) -> Scope | None:
        """Return the scope that a span is in."""
        with guard:
            return self._by_span.get(span, (None, None))[0] if span is not None else None

    def around(self, span: str | None) -> Iterable[str]:
        """Yield a span and those around it that are known, innermost first."""
        while span is not None:
            yield span
            with guard:
                span = self._by_span.get(span, (None, None))[1]

    def all(self) -> list[Scope]:
        """Return the scopes that are held."""
        with guard:
            return list({scope: None for scope, _ in self._by_span.values() if scope})


scopes = Scopes()


def current() -> Scope | None:
    """Return the scope that the calling code runs in, in whatever thread or task."""
    return scopes.at(active_span_id.get())


def read(owner: Owner, records: Iterable[int], scope: Scope | None = None) -> None:
    """Note that the running scope was given records."""
    scope = scope or current()
    if scope is not None:
        flow = Flow()
        flow.read(owner, records)
        scope.note(flow)


def given(messages: Sequence[ChatMessage], scope: Scope | None = None) -> None:
    """Note that the running scope was given messages, which are tagged: what memory.get() returns."""
    scope = scope or current()
    if scope is None:
        return
    flow = Flow()
    for message in messages:
        tag = tag_of(message)
        if tag is not None:
            flow.records.setdefault(tag.owner, {})[tag.record] = None
            scope.know(tag.digest, tag.owner, tag.record)
    scope.note(flow)
