"""Where code runs: which turn of an engine or workflow, and which call of a tool in it.

The framework keeps the span that code runs in across threads and tasks. The nearest span around it
of a chat engine or a workflow is its turn; a workflow's call of a tool is a scope inside of that.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
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
        self.instance = _weakly(instance)
        self.context: str | None = None  # of a workflow: which Context it runs in
        self.resumed = False  # it goes on where another run stopped, and what that read is unknown
        self.reads = Flow()
        self.begun = parent.everything() if parent is not None and kind == "turn" else Flow()
        self.replies: list[Output] = []
        self.results: dict[str, list[Output]] = {}  # of tools, by the id of the call
        self.said: dict[bytes, dict[tuple[Owner, int], None]] = {}
        self.unknown: dict[bytes, None] = {}  # messages handed to an engine: nobody knows whence
        self.asked = Output(Flow())
        self.tool: Output | None = None
        self.open = 0  # spans in it that have not ended
        self.finished = False  # it ended, and with a result
        if kind == "tool":
            self.tool = Output(self.reads, answers=call)

    @property
    def turn(self) -> Scope:
        """The turn that this is, or is in."""
        return self if self.kind == "turn" or self.parent is None else self.parent.turn

    def around(self) -> Iterator[Scope]:
        """Yield this turn and those it is in, innermost first."""
        scope: Scope | None = self.turn
        while scope is not None:
            yield scope
            scope = scope.parent.turn if scope.parent is not None else None

    def outer(self) -> set[Output]:
        """Return the replies and results that code here may depend on, but other code stores."""
        scope = self if self.kind == "tool" else self.parent
        with guard:
            turns = list(scope.around()) if scope is not None else []
            replies = {one for turn in turns for one in turn.replies}
            return replies | {
                one for turn in turns for some in turn.results.values() for one in some
            }

    def note(self, flow: Flow) -> None:
        """Add what was read here: all that is around it has read it as well."""
        with guard:
            self.reads.add(flow)
            if self.parent is not None:
                self.parent.note(flow)

    def know(self, digest: bytes, owner: Owner, record: int) -> None:
        """Note that a message which says this is a record, as far as this turn is concerned."""
        with guard:
            self.turn.said.setdefault(digest, {})[owner, record] = None

    def hear(self, output: Output) -> None:
        """Add a model's reply."""
        with guard:
            self.turn.replies.append(output)
            self.note(Flow(outputs={output: None}))

    def result(self, output: Output, call: str) -> None:
        """Add the result of a tool that was called in this turn."""
        with guard:
            self.results.setdefault(call, []).append(output)
            self.note(Flow(outputs={output: None}))

    def everything(self) -> Flow:
        """Return all that was read or heard here so far, and what the user says in this turn."""
        with guard:
            found = self.begun.copy()
            found.add(self.reads)
            if self.kind == "turn":
                found.outputs[self.asked] = None
            lost = any(one not in self.said for one in self.unknown)
            found.unsure = found.unsure or lost or self.turn.resumed
            return found


def _weakly(instance: object) -> Callable[[], object]:
    try:
        return weakref.ref(instance) if instance is not None else lambda: None
    except TypeError:  # a class with slots
        return lambda: instance


class Scopes:
    """The scopes by the ids of their spans: those used last, and those not ended. Thread-safe."""

    def __init__(self, most: int = 8_192) -> None:
        self._most = most
        self._by_span: OrderedDict[str, tuple[Scope | None, str | None]] = OrderedDict()
        self._open: dict[str, Scope] = {}
        self.tools: set[Scope] = set()  # those that run now

    def enter(self, span: str, parent: str | None, scope: Scope | None) -> None:
        """Note in which scope a span is; None: in none."""
        with guard:
            self._by_span[span] = (scope, parent)
            if scope is not None:
                scope.open += 1
                self._open[scope.key] = scope
                if scope.key == span and scope.kind == "tool":
                    self.tools.add(scope)
            while len(self._by_span) > self._most:
                self._by_span.popitem(last=False)

    def leave(self, span: str) -> Scope | None:
        """Note that a span ended; return the scope that it was in."""
        with guard:
            scope = self.at(span)
            if scope is not None:
                scope.open -= 1
                if scope.open <= 0:
                    self._open.pop(scope.key, None)
                if scope.key == span:
                    self.tools.discard(scope)
            return scope

    def at(self, span: str | None) -> Scope | None:
        """Return the scope that a span is in."""
        if span is None:
            return None
        with guard:
            found = self._by_span.get(span)
            return found[0] if found is not None else self._open.get(span)

    def around(self, span: str | None) -> Iterator[str]:
        """Yield a span and those around it that are known, innermost first."""
        while span is not None:
            yield span
            with guard:
                span = self._by_span.get(span, (None, None))[1]

    def all(self) -> list[Scope]:
        """Return the scopes that are held, the oldest first."""
        with guard:
            held = (scope for scope, _ in self._by_span.values() if scope is not None)
            return list(dict.fromkeys([*held, *self._open.values()]))


scopes = Scopes()


def current() -> Scope | None:
    """Return the scope that the calling code runs in, in whatever thread or task."""
    return scopes.at(active_span_id.get())


class Outside:
    """What code outside of any scope has read, in one thread or task, since the last but one question."""

    def __init__(self) -> None:
        self._before, self._now = Flow(), Flow()

    def read(self, flow: Flow) -> None:
        """Add what was read."""
        with guard:
            self._now.add(flow)

    def asked(self) -> None:
        """Note that the user has said something."""
        with guard:
            self._before, self._now = self._now, Flow()

    def known(self) -> Flow:
        """Return what was read."""
        with guard:
            found = self._before.copy()
            found.add(self._now)
            return found

    def everything(self) -> Flow:
        """Return what was read, and that this need not be all."""
        found = self.known()
        found.unsure = True
        return found

    def forget(self, owner: Owner, records: set[int]) -> None:
        """Drop records: nobody can tell when what is said here next was made."""
        with guard:
            for flow in (self._before, self._now):
                for one in records & flow.records.get(owner, {}).keys():
                    del flow.records[owner][one]


_outside: ContextVar[Outside | None] = ContextVar("dellm_outside", default=None)
_all_outside: weakref.WeakSet[Outside] = weakref.WeakSet()


def outside() -> Outside:
    """Return what is kept for code that runs in no scope, for this thread or task."""
    found = _outside.get()
    if found is None:
        found = Outside()
        _outside.set(found)
        with guard:
            _all_outside.add(found)
    return found


def every_outside() -> list[Outside]:
    """Return what is kept for code that runs in no scope, of all threads and tasks."""
    with guard:
        return list(_all_outside)


def read(owner: Owner, records: Iterable[int], scope: Scope | None = None) -> None:
    """Note that the running scope was given records."""
    flow = Flow()
    flow.read(owner, records)
    took(flow, scope)


def given(messages: Sequence[ChatMessage], scope: Scope | None = None) -> None:
    """Note that the running scope was given messages, which are tagged: what memory.get() returns."""
    scope = scope or current()
    flow = Flow()
    for message in messages:
        tag = tag_of(message)
        if tag is not None:
            flow.records.setdefault(tag.owner, {})[tag.record] = None
            if scope is not None:
                scope.know(tag.digest, tag.owner, tag.record)
    took(flow, scope)


def took(flow: Flow, scope: Scope | None = None) -> None:
    """Note that the running scope has read what a flow holds."""
    scope = scope or current()
    if scope is not None:
        scope.note(flow)
        return
    outside().read(flow)
    with guard:
        for tool in scopes.tools:  # one of them may have begun the thread that reads
            tool.note(flow)
