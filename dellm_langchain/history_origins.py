"""What the messages of a thread were made from, where no graph says so: told by the captured calls.

A reply depends on the messages of its prompt. What a prompt holds besides (a text that a chain made
itself) may be made of all that its run has read, so then the reply depends on all of that.
"""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import Draft, Saying

from .addresses import thread_name
from .cache_replies import cached_replies
from .calls import Call, text_of
from .capture import captured
from .handed import handed
from .history_turns import Named, Owner, Turn, content_number
from .messages import draft_of

OURS = re.compile(r"dellm-(\d{1,18})", re.ASCII)  # ids given to records whose message had none
_WORD = re.compile(r"\w{4,}|\d+")


def name_of(record: int) -> str:
    """Return the id of the message of a record that has none of a framework."""
    return f"dellm-{record}"


@dataclass(slots=True)
class First:
    """When a system message was sent first: by which run, which could have made it of what.

    `newest` is the newest record that the run had read, `own` are those of its own input.
    """

    root: UUID
    newest: int
    own: frozenset[int] = frozenset()

    def of(self, record: int) -> bool:
        """Say whether the message can have been made of a record: one that was there before it."""
        return record <= self.newest or record in self.own


class Constants:
    """System messages by workspace and text, as each was sent first. Bounded."""

    def __init__(self, most: int = 1_024) -> None:
        self._most = most
        self._first: OrderedDict[tuple[Owner, int], First] = OrderedDict()

    def first(self, owner: Owner, text: str, root: UUID, newest: int) -> First:
        """Return when a text was sent first, which may be now, by `root`."""
        key = (owner, hash(text))
        found = self._first.setdefault(key, First(root, newest))
        self._first.move_to_end(key)
        if len(self._first) > self._most:
            self._first.popitem(last=False)
        return found


constants = Constants()


class Origins:
    """Gives each message of one write to a thread its parents.

    `run` is the run that the write is part of and `read` what it has read, the thread's first;
    `noted` are records it has read otherwise. `known` are the messages of the thread by id, `calls`
    the records that made its tool calls. `everything` returns the texts of the thread by record.
    `replies` are the calls of messages, by their objects, that are known without looking. `quoted`
    returns the records read lately that a text repeats. `within` is the run whose calls may have
    made what nobody has seen made.
    """

    def __init__(
        self,
        thread: str,
        serde: SerializerProtocol,
        owner: Owner,
        run: UUID | None,
        read: Sequence[Turn],
        known: Mapping[str, Named],
        calls: Mapping[str, int],
        everything: Callable[[], Mapping[int, str]],
        noted: Sequence[int] = (),
        replies: Mapping[int, Call] = MappingProxyType({}),
        quoted: Callable[[str], Sequence[int]] | None = None,
        within: UUID | None = None,
    ) -> None:
        self._thread, self._serde, self._owner = thread, serde, owner
        self._run, self._read = run, read
        self._known, self._calls, self._everything = known, calls, everything
        self._noted, self._replies, self._quoted = noted, replies, quoted
        self._within = within
        self._new: list[Saying] = []
        self._by_object: dict[int, Saying] = {}
        self._by_name: dict[str, Saying] = {}
        self._by_content: dict[tuple[str, int | None], Saying] = {}
        self._made: dict[str, Saying] = {}  # what made each tool call
        self._looked: dict[tuple[str, str], Saying] = {}
        self._firsts: list[First] = []
        self.sure = True  # whether all parents are known to have been there in the generation read

    def named(self, name: str | None) -> Named | None:
        """Return the record that an id stands for in what was read, or in the thread."""
        if name is None:
            return None
        for one in self._read:
            if name in one.named:
                return one.named[name]
        return self._known.get(name)

    def sayings(self, messages: Sequence[BaseMessage]) -> list[Saying]:
        """Return what is to be added for messages: without those that were read, with their ids."""
        own = next((found for one in self._read if (found := one.added())), [])
        listed = _completed(messages, own, lambda name: self.named(name) is not None)
        # The objects that a prompt holds may be others than those that are given back.
        twins = {id(one): [it for it in own if it is not one and _same(it, one)] for one in listed}
        for message in listed:
            fresh = message.id is None
            if message.id is None:
                message.id = str(uuid.uuid4())
            if self.named(message.id) is None and OURS.fullmatch(message.id) is None:
                self._add(message)
                self._new[-1].fresh = fresh
                for twin in twins[id(message)]:
                    twin.id = message.id
                    self._by_object[id(twin)] = self._new[-1]
        return self._new

    def _add(self, message: BaseMessage) -> None:
        draft = draft_of(message, self._thread, self._serde)
        one = Saying(cached_replies.marked(self._owner, message, draft))
        self._tie(one, message)
        if (copied := handed.anywhere(self._owner, message)) is not None:
            one.parents = [*one.parents, copied]
            one.after = [it for it in one.after if it.draft.framework_id != message.id]
            self.sure = False
        if self._quoted is not None:
            one.parents = list(dict.fromkeys([*one.parents, *self._quoted(str(message.text))]))
        self._new.append(one)
        self._by_object[id(message)] = one
        self._by_name[message.id or ""] = one
        self._by_content[message.type, content_number(message.content)] = one
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            self._made[call["id"] or ""] = one

    def stored(self) -> None:
        """Take note of the records that the write gave the messages."""
        own = frozenset(one.id for one in self._new if one.id and one.draft.role != "assistant")
        for first in self._firsts:
            first.own = own

    # parents

    def _tie(self, one: Saying, message: BaseMessage) -> None:
        """Say what a message was made from; what people and programs say comes from outside."""
        if isinstance(message, ToolMessage):
            self._tie_result(one, message)
        elif isinstance(message, AIMessage):
            call = self._call_of(message)
            if call is None:
                self._tie_to_all(one)
            else:
                self._tie_to_prompts(one, [call])
            given = cached_replies.given(self._owner, message, call)
            one.parents = [*one.parents, *given]
        elif isinstance(message, FunctionMessage) or _speaks_for_model(message):
            self._tie_to_all(one)

    def _call_of(self, message: AIMessage) -> Call | None:
        found = self._replies.get(id(message)) or captured.of_reply(message)
        if found is None and self._run is not None and not message.tool_calls:
            found = captured.said_in(str(message.text), self._run)
        return found

    def _tie_result(self, one: Saying, message: ToolMessage) -> None:
        call = message.tool_call_id
        if call in self._made:
            one.after = [self._made[call]]
        elif call in self._calls:
            one.parents = [self._calls[call]]
        else:
            self._tie_to_all(one)
            return
        run = captured.tool(call)
        if run is not None and run.calls:
            self._tie_to_prompts(one, run.calls)

    def _tie_to_prompts(self, one: Saying, calls: Iterable[Call]) -> None:
        parents: dict[int, None] = dict.fromkeys(one.parents)
        after: dict[Saying, None] = dict.fromkeys(one.after)
        unknown: list[tuple[BaseMessage, Call]] = []
        opaque = False
        for call in calls:
            opaque = opaque or call.opaque
            for at, message in enumerate(call.prompt.messages):
                if at in call.prompt.constants:
                    continue
                found = self._in_prompt(call, at)
                if isinstance(found, int):
                    parents[found] = None
                    continue
                if found is not None:
                    after[found] = None
                if found is None or self._not_told(found):
                    unknown.append((message, call))
                    if self._quoted is not None:
                        parents |= dict.fromkeys(self._quoted(text_of(call.prompt.contents[at])))
            after.update(dict.fromkeys(self._replied(call)))
        one.parents, one.after = list(parents), list(after)
        if opaque:
            self._tie_to_all(one)
        elif unknown:
            self._tie_unknown(one, unknown)

    def _not_told(self, found: int | Saying) -> bool:
        """Whether a message of a prompt is looked up here without knowing that it was ever here."""
        return isinstance(found, Saying) and found is self._looked.get(
            (self._thread, found.draft.framework_id or "")
        )

    def _replied(self, call: Call) -> list[Saying]:
        """Return the replies of a call in a graph, as they are to be looked up in its thread."""
        thread = self._thread_of(call)
        if thread is None:
            return []
        return [
            self._look(Draft("", role="assistant", thread=thread, framework_id=name))
            for name in captured.replies_of(call)
        ]

    def _thread_of(self, call: Call) -> str | None:
        """Return the thread of a graph that keeps its messages in this workspace, else None."""
        ours = call.owner == self._owner and call.thread_id is not None
        return thread_name(call.thread_id) if ours else None

    def _in_prompt(self, call: Call, at: int) -> int | Saying | None:
        """Return the record or the new message that a prompt's message is; None: it is neither.

        One with an id that is not known here is looked up in the write, in case it was erased.
        """
        message, content = call.prompt.messages[at], call.prompt.contents[at]
        number = content_number(content)
        name = call.prompt.ids[at] or message.id
        new = self._by_object.get(id(message)) or self._by_name.get(name or "")
        if new is None and name is None:
            new = self._by_content.get((message.type, number))
        if new is not None:
            return new
        found = self.named(name)
        if found is not None and found.content == number:
            return found.record
        if name is None:
            return None
        if (ours := OURS.fullmatch(name)) is not None and found is None:
            self.sure = False
            return int(ours[1])
        if (copied := handed.anywhere(self._owner, message)) is not None:
            self.sure = False
            return copied
        thread = self._thread_of(call) or self._thread
        return self._look(draft_of(message.model_copy(update={"id": name}), thread, self._serde))

    def _look(self, draft: Draft) -> Saying:
        self.sure = False
        key = (draft.thread or "", draft.framework_id or "")
        return self._looked.setdefault(key, Saying(draft, lookup=True))

    def _tie_unknown(self, one: Saying, unknown: Sequence[tuple[BaseMessage, Call]]) -> None:
        """Tie a message to all that the unknown parts of its prompt may have been made of.

        A system message that another run has sent, word for word, was not made of what came later;
        and of what was there before only if a word of that is in it.
        """
        tied, hand = set(one.parents), set(self._at_hand())
        firsts = {text_of(it.content): self._first(it, call, hand) for it, call in unknown}
        new = [it for it in self._new if it not in set(one.after)]
        if not new and hand <= tied and (hand or self._run is not None):
            return
        fixed = {text: first for text, first in firsts.items() if first is not None}
        if len(fixed) < len(firsts):
            self._tie_to_all(one)
            return
        texts = self._texts()
        shared = [
            id_
            for text, first in fixed.items()
            for id_ in texts
            if id_ not in tied and first.of(id_) and _share(text, texts[id_])
        ]
        shared += [id_ for id_ in self._noted if id_ not in tied]
        one.parents = [*one.parents, *dict.fromkeys(shared)]
        one.inexact = one.inexact or bool(shared)

    def _first(self, message: BaseMessage, call: Call, hand: Collection[int]) -> First | None:
        """Return when a system message was sent first; None if now, or if it is none."""
        if not isinstance(message, SystemMessage) or message.id is not None:
            return None
        text = text_of(message.content)
        first = constants.first(self._owner, text, call.root, max(hand, default=0))
        if first.root != call.root:
            return first
        self._firsts.append(first)
        return None

    def _tie_to_all(self, one: Saying) -> None:
        """Tie a message to all that its run has read, and to all that comes before it."""
        one.inexact = True
        one.whole = self._run is None
        hand: Iterable[int] = self._noted
        if not one.whole:
            hand = self._at_hand()
            one.after = list(dict.fromkeys([*one.after, *self._new]))
        one.parents = list(dict.fromkeys([*one.parents, *hand]))
        self._tie_to_calls(one)

    def _tie_to_calls(self, one: Saying) -> None:
        """Tie a message to what the models were sent, and said, in the run that it was made in."""
        parents, after = dict.fromkeys(one.parents), dict.fromkeys(one.after)
        for call in () if self._within is None else captured.of_run(self._within):
            for at in range(len(call.prompt)):
                found = None if at in call.prompt.constants else self._in_prompt(call, at)
                if isinstance(found, int):
                    parents[found] = None
                elif found is not None and found is not one:
                    after[found] = None
            after.update(dict.fromkeys(self._replied(call)))
        one.parents, one.after = list(parents), list(after)

    def _at_hand(self) -> Iterator[int]:
        """Yield the records that a prompt's unknown part may be made of."""
        yield from self._noted
        for turn in self._read:
            yield from (one.record for one in turn.named.values())
        if self._run is None:
            yield from (one.record for one in self._known.values())

    def _texts(self) -> Mapping[int, str]:
        if self._run is None:
            return self._everything()
        return {
            turn.named[one.id].record: str(one.text)
            for turn in self._read
            for one in turn.messages
            if one.id is not None and one.id in turn.named
        }


def _completed(
    messages: Sequence[BaseMessage], own: Sequence[BaseMessage], known: Callable[[str], bool]
) -> list[BaseMessage]:
    """Return the messages with those of the run's own input that were cut off.

    RunnableWithMessageHistory leaves out as many as the history has by now; when it grew during the
    run, those are new ones.
    """
    found = list(messages)
    missing = [one for one in own if not any(_same(one, other) for other in found)]
    start = next(
        (at for at, one in enumerate(found) if one.id is None or not known(one.id)), len(found)
    )
    return [*found[:start], *missing, *found[start:]]


def _same(one: BaseMessage, other: BaseMessage) -> bool:
    if one is other:
        return True
    if one.id is not None and other.id is not None:
        return one.id == other.id
    return one.type == other.type and bool(one.content == other.content)


def _speaks_for_model(message: BaseMessage) -> bool:
    return isinstance(message, ChatMessage) and message.role in {"assistant", "ai"}


def _share(one: str, other: str) -> bool:
    return not set(_WORD.findall(one.lower())).isdisjoint(_WORD.findall(other.lower()))
