"""What the messages that are put into a memory were made from: their parents, as records.

What a user says is made from nothing, unless a tool or another engine has said it for them. A reply
is made from its prompt, a tool's result from its call and all that the tool has read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import BaseNode

from dellm import Draft, Memory, Saying, Sources

from . import purging
from .documents import records_of
from .flows import ERASED, Flow, Output
from .prompts import everything, known_to_be_all
from .replies import outputs_of, told
from .scopes import Scope, current, guard, outside, took
from .tags import Owner, answered_call, call_ids, digest_of, owner_of, tag, tag_of

Drawn = Callable[[ChatMessage, str], Draft]  # of a message and the framework id of its record
_ASKING = frozenset({"system", "user", "developer"})


@dataclass(slots=True, eq=False)
class Put(Saying):
    """A message to store, and the replies or results that it is.

    Without a message it stands in for a reply that is stored later, or ties the two to each other.
    """

    message: ChatMessage | None = field(default=None, repr=False)
    outputs: list[Output] = field(default_factory=list)
    listed: bool = False  # it is of a list that was set, and not said now


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
    return settle(memory, said, scope=scope)


def sayings(
    memory: Memory,
    messages: Sequence[ChatMessage],
    draft: Drawn,
    *,
    scope: Scope | None,
    before: Sequence[int] | None = None,
) -> list[Put]:
    """Return what conversations.add is to be given for messages, all of it, in their order.

    `before` are the records of the list that they are the rest of, where a whole list was set: a
    reply or result that nobody has seen made then depends on those and on the messages before it
    in `messages`. Without it such a message depends on all of its thread.
    Call `settle` when they are stored.
    """
    purging.watch(memory)
    scope = scope or current()
    making = _Making(memory, scope, before)
    for one in messages:
        making.put(one, draft(one, uuid.uuid4().hex))
    return making.made


def settle(memory: Memory, said: Sequence[Put], *, scope: Scope | None) -> list[int | None]:
    """Note which records the messages became, on the messages and in the scope.

    Returns the record of each message, None for one that was refused.
    """
    scope = scope or current()
    owner = owner_of(memory)
    for one in said:
        if one.message is not None:
            _settle(one, one.message, owner, scope)
        elif one.id is not None:
            for output in one.outputs:
                output.standins[owner] = one.id
    return [one.id for one in said if one.message is not None]


def _settle(one: Put, message: ChatMessage, owner: Owner, scope: Scope | None) -> None:
    asking = message.role.value == "user" and not one.listed
    if asking and scope is None:
        outside().asked()
    if one.id is not None:
        tag(message, owner, one.id)
        for output in one.outputs:
            _stored(output, owner, one.id)
        if scope is not None:
            _noted(scope, message, owner, one.id, asking=asking)


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
        self._owner = owner_of(memory)
        self._outer = scope.outer() if scope is not None else set()
        self.made: list[Put] = []
        self.by_output: dict[Output, Put] = {}
        self._given: list[Put] = []  # what tools gave, where it is told from no question

    def put(self, message: ChatMessage, draft: Draft) -> None:
        """Add the saying of a message, with its parents."""
        one = Put(draft, fresh=True, message=message, listed=self._before is not None)
        flow = self._flow(one, message)
        if flow is not None:
            self._fill(one, flow)
        elif self._before is None:
            one.whole = one.inexact = True
        else:
            one.after = [it for it in self.made if it.message is not None]
            one.parents, one.inexact = list(self._before), True
        self._after_call(one, message)
        one.after = list(dict.fromkeys([*one.after, *self._given]))
        if self._is_given(message):
            one.inexact = True
            self._given.append(one)
        models = [output.model for output in one.outputs if output.model]
        if models:
            one.draft = replace(draft, model=models[0])
        self.made.append(one)
        for output in one.outputs:
            self.by_output.setdefault(output, one)
        self._tie(one, message)

    def _after_call(self, one: Put, message: ChatMessage) -> None:
        """Let a result depend on the message before it that made the call."""
        call = answered_call(message)
        for before in reversed(self.made) if call is not None else ():
            if before.message is not None and call in call_ids(before.message):
                one.after = list(dict.fromkeys([*one.after, before]))
                return

    def _flow(self, one: Put, message: ChatMessage) -> Flow | None:
        """Return what a message was made from, None where nothing is known of it."""
        digest, known = digest_of(message), tag_of(message)
        # What another memory knows of a message says nothing of the records here.
        if known is not None and known.owner == self._owner:
            flow = Flow()
            flow.read(known.owner, [known.record])
            if known.digest != digest:
                flow.add(everything(self._scope))
            return flow
        if message.role.value in _ASKING:
            return self._asked(message)
        one.outputs = outputs_of(message, digest, self._scope)
        if not one.outputs:
            heard = self._scope is not None and self._scope.turn.replies
            one.inexact = not heard or not known_to_be_all(self._scope)
            return self._unseen()
        one.inexact = any(output.guessed for output in one.outputs)
        with guard:
            return self._of_outputs(one.outputs)

    def _of_outputs(self, outputs: Iterable[Output]) -> Flow:
        """Return what replies were made from; one that is stored is said again."""
        flow = Flow()
        for output in outputs:
            if output in self.by_output or self._owner in output.stored:
                flow.outputs[output] = None
            else:
                flow.add(output.made)
        return flow

    def _asked(self, message: ChatMessage) -> Flow:
        """Return what a question was made from: it may be a tool that asks, or repeat a reply."""
        scope = self._scope
        if scope is None:
            return Flow(outputs=dict.fromkeys(told(message.content, None)))
        within = scope.kind == "tool" or self._is_given(message)
        flow = scope.everything() if within else scope.begun.copy()
        flow.outputs.update(dict.fromkeys(told(message.content, scope)))
        return flow

    def _is_given(self, message: ChatMessage) -> bool:
        """Whether an agent stores what a tool gave as if a user had said it, after its call."""
        asked = self._before is None and self._scope is not None and message.role.value == "user"
        return asked and any(it.message and it.outputs for it in self.made)

    def _unseen(self) -> Flow | None:
        """Return what a message may be made from that nobody has seen made."""
        if self._before is not None:
            return None
        return everything(self._scope)

    def _fill(self, one: Put, flow: Flow) -> None:
        """Give a saying its parents."""
        found = _Parents(self._owner, self.by_output, self._stand_in)
        with guard:
            found.take(flow)
        known = self._nodes(found.nodes.values(), found.rewritten)
        one.parents = list(dict.fromkeys([*found.records, *known]))
        one.after = list(found.after)
        if found.unsure:
            one.whole = one.inexact = True

    def _stand_in(self, output: Output) -> Put | None:
        """Return what stands for a reply that is not stored yet; None where nobody will store it."""
        if output not in self._outer:
            return None
        one = Put(_tie(), outputs=[output])
        self._fill(one, output.made)
        one.whole = False
        self.by_output[output] = one
        self.made.append(one)
        return one

    def _tie(self, one: Put, message: ChatMessage) -> None:
        """Let what was made from a reply before it was stored go with it, now that it is."""
        if message.role.value in _ASKING:
            return
        outputs: Iterable[Output] = one.outputs
        if not one.outputs and self._scope is not None:
            outputs = list(self._scope.turn.replies)
        for output in outputs:
            if self._owner in output.standins:
                stands = output.standins[self._owner]
                self.made.append(Put(_tie(copy_of=stands), after=[one]))

    def _nodes(self, nodes: Iterable[BaseNode], rewritten: set[int]) -> list[int]:
        """Return the records of nodes; those that were rewritten are made from all the others."""
        there = list(nodes)
        found = self._found([one for one in there if id(one) not in rewritten], ())
        return found + self._found([one for one in there if id(one) in rewritten], found)

    def _found(self, nodes: Iterable[BaseNode], made: Sequence[int]) -> list[int]:
        waiting, found = list(nodes), list[int]()
        sources = Sources(known=made) if made else None
        while waiting:  # of nodes with one id, one at a time
            some = {one.node_id: one for one in reversed(waiting)}
            of = {name: sources for name in some if sources is not None}
            ids = records_of(self._memory, some.values(), made=of)
            found += [ids[name] or ERASED for name in some if name in ids]
            waiting = [one for one in waiting if some[one.node_id] is not one]
        return found


def _tie(copy_of: int | None = None) -> Draft:
    """Return a record that says nothing: others are tied to each other by it."""
    return Draft("", role="assistant", kind="state", copy_of=copy_of)


class _Parents:
    """What a flow comes to in one workspace."""

    def __init__(
        self, owner: Owner, batch: dict[Output, Put], stand_in: Callable[[Output], Put | None]
    ) -> None:
        self._owner, self._batch, self._stand_in = owner, batch, stand_in
        self.records: dict[int, None] = {}
        self.after: dict[Put, None] = {}
        self.nodes: dict[int, BaseNode] = {}
        self.rewritten: set[int] = set()
        self.unsure = False
        self._seen: set[Output] = set()

    def take(self, flow: Flow) -> None:
        """Add a flow, and what those of its outputs were made from that are no records here."""
        waiting = [flow]
        while waiting:
            one = waiting.pop()
            self.records.update(one.records.get(self._owner, {}))
            self.nodes.update((id(node), node) for node in one.nodes.values())
            self.rewritten |= one.rewritten
            self.unsure = self.unsure or one.unsure
            waiting.extend(self._unstored(one.outputs))

    def _unstored(self, outputs: Iterable[Output]) -> Iterator[Flow]:
        for output in outputs:
            if output in self._seen:
                continue
            self._seen.add(output)
            if self._owner in output.stored:
                self.records[output.stored[self._owner]] = None
            elif self._owner in output.standins:
                self.records[output.standins[self._owner]] = None
            elif output in self._batch or self._stand_in(output) is not None:
                self.after[self._batch[output]] = None
            else:
                yield output.made
