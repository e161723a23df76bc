"""What the messages that are put into a memory were made from: their parents, as records.

What a user says is made from nothing, unless a tool or another engine has said it for them. A reply
is made from its prompt, a tool's result from its call and all that the tool has read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import BaseNode

from dellm import Draft, Memory, Saying

from .documents import records_of
from .flows import Flow, Output
from .prompts import everything
from .replies import outputs_of, told
from .scopes import Scope, current, guard, outside, took
from .tags import Owner, digest_of, tag, tag_of

Drawn = Callable[[ChatMessage, str], Draft]  # of a message and the framework id of its record
ERASED = 0  # a parent that nobody has: what is made from it is refused
_ASKING = frozenset({"system", "user", "developer"})


@dataclass(slots=True, eq=False)
class Put(Saying):
    """A message to store, and the replies or results that it is."""

    outputs: list[Output] = field(default_factory=list)


def write(
    memory: Memory,
    thread: str,
    messages: Sequence[ChatMessage],
    draft: Drawn,
    *,
    scope: Scope | None,
) -> list[int | None]:
    """Store messages at the end of a thread, each with what it was made from.

    Returns the record of each; None for one that was made from what is erased: it is not stored.
    The caller's messages are tagged with their records. `scope` is where the call is made from:
    scopes.current(), taken before the work is handed to another thread.
    Raises InvalidInput, StorageError.
    """
    if not messages:
        return []
    said = sayings(memory, messages, draft, scope=scope)
    memory.conversations.add(thread, said)
    return settle(memory, messages, said, scope=scope)


def sayings(
    memory: Memory,
    messages: Sequence[ChatMessage],
    draft: Drawn,
    *,
    scope: Scope | None,
    before: Sequence[int] | None = None,
) -> list[Put]:
    """Return what conversations.add is to be given for messages, one for each, in their order.

    `before` are the records of the list that they are the rest of, where a whole list was set: a
    reply or result that nobody has seen made then depends on those and on the messages before it
    in `messages`. Without it such a message depends on all of its thread.
    Call `settle` when they are stored.
    """
    scope = scope or current()
    making = _Making(memory, scope, before)
    return [making.put(one, draft(one, uuid.uuid4().hex)) for one in messages]


def settle(
    memory: Memory,
    messages: Sequence[ChatMessage],
    said: Sequence[Saying],
    *,
    scope: Scope | None,
) -> list[int | None]:
    """Note which records the messages became, on the messages and in the scope; return them."""
    scope = scope or current()
    owner: Owner = (memory.identity, memory.id)
    for message, one in zip(messages, said, strict=True):
        asking = message.role.value == "user"
        if asking and scope is None:
            outside().asked()
        if one.id is None:
            continue
        tag(message, owner, one.id)
        for output in one.outputs if isinstance(one, Put) else ():
            _stored(output, owner, one.id)
        if scope is not None:
            _noted(scope, message, owner, one.id, asking=asking)
    return [one.id for one in said]


def _stored(output: Output, owner: Owner, record: int) -> None:
    with guard:
        output.stored.setdefault(owner, record)
        output.made.records.pop(owner, None)  # the record says it from now on


def _noted(scope: Scope, message: ChatMessage, owner: Owner, record: int, *, asking: bool) -> None:
    """Let the scope know again what was stored; what the user says is part of what it has read."""
    scope.know(digest_of(message), owner, record)
    if asking:
        with guard:
            scope.turn.asked.stored.setdefault(owner, record)
        took(Flow(records={owner: {record: None}}), scope)


class _Making:
    """Makes the sayings of one write, in order."""

    def __init__(self, memory: Memory, scope: Scope | None, before: Sequence[int] | None) -> None:
        self._memory, self._scope, self._before = memory, scope, before
        self._owner: Owner = (memory.identity, memory.id)
        self._made: list[Put] = []
        self._by_output: dict[Output, Put] = {}

    def put(self, message: ChatMessage, draft: Draft) -> Put:
        """Return the saying of a message, with its parents."""
        one = Put(draft, fresh=True)
        flow = self._flow(one, message)
        if flow is not None:
            self._fill(one, flow)
        elif self._before is None:
            one.whole = one.inexact = True
        else:
            one.parents, one.after, one.inexact = list(self._before), list(self._made), True
        self._made.append(one)
        self._by_output.update(dict.fromkeys(one.outputs, one))
        return one

    def _flow(self, one: Put, message: ChatMessage) -> Flow | None:
        """Return what a message was made from, None where nothing is known of it."""
        digest, known = digest_of(message), tag_of(message)
        if known is not None:
            flow = Flow()
            flow.read(known.owner, [known.record])
            if known.digest != digest:
                flow.add(everything(self._scope))
            return flow
        if message.role.value in _ASKING:
            return self._asked(message)
        one.outputs = outputs_of(message, digest, self._scope)
        if not one.outputs:
            one.inexact = True
            return self._unseen()
        with guard:
            flow = Flow()
            for output in one.outputs:
                flow.add(output.made)
                if self._owner in output.stored:
                    flow.read(self._owner, [output.stored[self._owner]])
            return flow

    def _asked(self, message: ChatMessage) -> Flow:
        """Return what a question was made from: it may be a tool that asks, or repeat a reply."""
        scope = self._scope
        if scope is None:
            return Flow()
        flow = scope.turn.begun.copy() if scope.turn.parent is not None else Flow()
        flow.outputs.update(dict.fromkeys(told(message.content, scope)))
        return flow

    def _unseen(self) -> Flow | None:
        """Return what a message may be made from that nobody has seen made."""
        if self._before is not None:
            return None
        if self._scope is None:
            return outside().everything()
        return self._scope.everything()

    def _fill(self, one: Put, flow: Flow) -> None:
        """Give a saying its parents."""
        found = _Parents(self._owner, self._by_output)
        with guard:
            found.take(flow)
        known = self._nodes(found.nodes.values())
        one.parents = list(dict.fromkeys([*found.records, *known]))
        one.after = list(found.after)
        if found.unsure:
            one.whole = one.inexact = True

    def _nodes(self, nodes: Iterable[BaseNode]) -> list[int]:
        waiting, found = list(nodes), list[int]()
        while waiting:  # of nodes with one id, one at a time
            some = {one.node_id: one for one in reversed(waiting)}
            ids = records_of(self._memory, some.values())
            found += [ids[name] or ERASED for name in some if name in ids]
            waiting = [one for one in waiting if some[one.node_id] is not one]
        return found


class _Parents:
    """What a flow comes to in one workspace."""

    def __init__(self, owner: Owner, batch: dict[Output, Put]) -> None:
        self._owner, self._batch = owner, batch
        self.records: dict[int, None] = {}
        self.after: dict[Put, None] = {}
        self.nodes: dict[int, BaseNode] = {}
        self.unsure = False
        self._seen: set[Output] = set()

    def take(self, flow: Flow) -> None:
        """Add a flow, and what those of its outputs were made from that are no records here."""
        waiting = [flow]
        while waiting:
            one = waiting.pop()
            self.records.update(one.records.get(self._owner, {}))
            self.nodes.update((id(node), node) for node in one.nodes.values())
            self.unsure = self.unsure or one.unsure
            waiting.extend(self._unstored(one.outputs))

    def _unstored(self, outputs: Iterable[Output]) -> Iterable[Flow]:
        for output in outputs:
            if output in self._seen:
                continue
            self._seen.add(output)
            if output in self._batch:
                self.after[self._batch[output]] = None
            elif self._owner in output.stored:
                self.records[output.stored[self._owner]] = None
            else:
                yield output.made
