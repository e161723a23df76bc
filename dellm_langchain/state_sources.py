"""What the messages in a graph's state were made from, where no saver of ours has stored them yet.

That is so with another saver, with none, and where all steps of a run are stored as one. A reply is
made of its prompt, a tool's result of what came before it and what the tool has read. Whatever else
was not given to the run may be made of all that came before it and all that was read by then.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from dellm import Atom, Draft, Place, Sources

from .cache_replies import cached_replies
from .calls import Call, fingerprint, messages_within
from .capture import captured
from .early_values import number_of
from .handed import handed
from .origins import ANSWERS
from .raw_inputs import RawInputs, message_of
from .reads import reads
from .state_values import StateValues, Value
from .tracked_reads import shown

Named = tuple[str, BaseMessage]  # a message and the channel that it stands in
_SAID = (HumanMessage, SystemMessage)
_Key = tuple[str | None, Hashable]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a value of a run may have been made from besides messages.

    `places` are runs, tasks and threads whose reads may be in the state; `place` is the checkpoint
    with which the run began, of which a saver of ours knows all, and `since` as in `Sources`;
    `thread` the name of the thread, "" for none.
    """

    owner: tuple[int, str]
    places: tuple[Hashable, ...]
    place: Place | None = None
    since: int | None = None
    thread: str = ""

    def summed(self, made: Sources) -> Sources:
        """Return the sources of a summary: what it was made of may be in the state no more.

        A checkpoint that is not there stands for all that is known of a thread.
        """
        if made.place is not None or not self.thread:
            return made
        return replace(made, place=Place(self.thread, "", ""))

    def read(self, *more: Hashable, before: int | None = None) -> list[Atom]:
        """Return what was read by then, in `more` places as well."""
        return read(self.owner, (*self.places, *more), before)

    def rest(self, context: Iterable[Atom], *more: Hashable, before: int | None) -> Sources:
        """Return the sources of what cannot be told more exactly."""
        return replace(self.whole([]), context=[*context], also=self.read(*more, before=before))

    def whole(self, also: Sequence[Atom]) -> Sources:
        """Return these atoms, and what the run began with, as sources."""
        return Sources(
            also=also, place=self.place, since=self.since, heard=ANSWERS, inexact=True
        )  # fmt: skip


def read(owner: Hashable, places: Iterable[Hashable], before: int | None = None) -> list[Atom]:
    """Return the records that were read in these places, each once."""
    found = [one for at in places for one in reads.of(owner, at, before=before)]
    return [Atom(known=one, unsure=True) for one in dict.fromkeys(found)]


class StateSources:
    """Makes atoms of a state and of prompts, in order; made for one value.

    `draft` makes a message a record, and `named` gives a draft that is none an id made of texts that
    tell it from others. `values` takes other values apart. `given` is what the run, named by `run`, was
    given. Afterwards `noted` holds the atoms of what is known by a number.
    """

    def __init__(
        self,
        scope: Scope,
        draft: Callable[[BaseMessage], Draft],
        named: Callable[[Draft, Sequence[str]], Draft],
        values: StateValues,
        given: RawInputs,
        run: str,
    ) -> None:
        self._scope, self._to_draft, self._named = scope, draft, named
        self._values, self._given, self._run = values, given, run
        self._outside: list[Atom] = []  # what the run was given that is not in the state
        self._atoms: dict[_Key, Atom] = {}
        self._by: dict[_Key, int] = {}  # the moment of a call that had the message in its prompt
        self.noted: list[tuple[int, Atom]] = []

    def atoms(self, state: Mapping[str, Any], told: Sequence[Call], *, earlier: bool) -> list[Atom]:
        """Return the atoms of a state, of what calls under way were told, of what the run was given.

        `earlier`: the state may have messages of earlier runs that no saver of ours has stored.
        """
        messages = [(name, one) for name, value in state.items() for one in messages_within(value)]
        said = list(_said(messages, self._given, earlier=earlier))
        values = {one.number: one for one in self._values.of(state)}
        self._left({_key(one) for _, one in messages}, values)
        self._say(messages, said, told)
        rest = self._scope.summed(self._scope.rest(self._context(), before=None))
        held = ((one, self._given.holds(one.channel, one.value)) for one in values.values())
        kept = [self._value(one, None if new else rest) for one, new in held]
        return [*self._context(), *kept]

    def _context(self) -> list[Atom]:
        return [*self._outside, *self._atoms.values()]

    def _left(self, there: Container[_Key], values: Mapping[int, Value]) -> None:
        """Make atoms of what the run was given and is not in the state: others may be made of it."""
        same = {(one.channel, id(one.value)) for one in values.values()}
        for channel, part in self._given.left():
            if (channel, id(part)) in same:
                continue
            if isinstance(part, BaseMessage):
                if _key(part) not in there:
                    self._outside.append(self._message(channel, part))
                continue
            new = [one for one in self._values.of({channel: [part]}) if one.number not in values]
            said = None if isinstance(part, str) else message_of(part)
            if new and said is not None:  # which of both the channel makes of it is not known
                self._outside.append(self._message(channel, said))
                self.noted.append((new[0].number, self._outside[-1]))
            else:
                self._outside += [self._value(one, None) for one in new]

    def _message(self, channel: str, message: BaseMessage) -> Atom:
        """Return the atom of a message that the run was given and that is not in the state."""
        draft = self._to_draft(message)
        if message.id is not None:
            return self._tied(message, draft, None)
        number = number_of(channel, (draft.text, draft.payload))
        if (record := self._values.noted(number, self._run)) is not None:
            return Atom(known=record, unsure=True)
        atom = self._tied(message, self._unnamed(message, [self._run]), None)
        self.noted.append((number, atom))
        return atom

    def _given_in(self, channel: str, message: BaseMessage) -> Atom:
        """Return the atom of a message of the state that came from outside."""
        draft = self._draft(message)
        if not self._given.made(message):
            return self._tied(message, draft, None)
        number = number_of(channel, (draft.text, draft.payload))
        record = self._values.noted(number, self._run)
        atom = self._tied(message, replace(draft, copy_of=record), None)
        self.noted.append((number, atom))
        return atom

    def _say(self, state: Sequence[Named], said: Sequence[bool], told: Sequence[Call]) -> None:
        """Make atoms of the messages of a state; `said` tells which came from outside."""
        replies = {id(one): _reply(one) for _, one in state}
        for call in (*(one for one in replies.values() if one is not None), *told):
            for key in map(_key, call.prompt.messages):
                self._by[key] = min(self._by.get(key, call.moment), call.moment)
        for (channel, message), outside in zip(state, said, strict=True):
            if (key := _key(message)) in self._atoms:
                continue
            if outside:
                self._atoms[key] = self._given_in(channel, message)
            else:
                made = self._made(message, replies[id(message)])
                self._atoms[key] = self._tied(message, self._draft(message), made)
        for call in told:
            self._tell(call)

    def _value(self, one: Value, made: Sources | None) -> Atom:
        """Return the atom of a value; what this run was given is another one than an earlier run was."""
        record, early = one.known, one.early
        if record is None and early is not None and (made is not None or early.run == self._run):
            record = early.record
        if record is not None:
            return Atom(known=record, unsure=True)
        text, payload = one.state
        said = [one.channel, text, (payload or b"").hex(), self._run]
        draft = self._named(replace(one.draft, payload=None), said)
        atom = Atom(draft, made=shown.tied(self._scope.owner, text, made))
        self.noted.append((one.number, atom))
        return atom

    def _draft(self, message: BaseMessage) -> Draft:
        """Return a message as a record of its thread; one without an id is known by what it says."""
        return self._unnamed(message, []) if message.id is None else self._to_draft(message)

    def _unnamed(self, message: BaseMessage, more: Sequence[str]) -> Draft:
        """Return what is no message of the thread, known by what it says and by `more`."""
        draft = self._to_draft(message)
        return self._named(draft, [draft.role, draft.text, *more])

    def _tell(self, call: Call) -> None:
        """Add what a prompt has that is not in the state: somebody put it together."""
        for at, message in enumerate(call.prompt.messages):
            if (key := _key(message)) in self._atoms:
                continue
            made = None
            if at not in call.prompt.constants and not captured.given(message):
                made = self._made(message, _reply(message), before=call.moment)
            draft = self._draft(message) if made is None else self._told(message, made)
            self._atoms[key] = self._tied(message, draft, made)

    def _told(self, message: BaseMessage, made: Sources) -> Draft:
        """Return a message of a prompt; one rewritten for it is no message of the thread."""
        anew = message.id is None or any(message.id == name for name, _ in self._atoms)
        if anew or isinstance(message, _SAID):
            return self._unnamed(message, [str(one.known) for one in made.also])
        return self._draft(message)

    def _tied(self, message: BaseMessage, draft: Draft, made: Sources | None) -> Atom:
        owner = self._scope.owner
        if made is None or isinstance(message, _SAID):
            made = shown.tied(owner, draft.text, made)
        made = cached_replies.tied(owner, message, made)
        if (record := handed.of(owner, message)) is not None:
            more = made or Sources()
            made = replace(more, also=(*more.also, Atom(known=record, unsure=True)))
        return Atom(cached_replies.marked(owner, message, draft), made=made)

    def _made(self, message: BaseMessage, reply: Call | None, before: int | None = None) -> Sources:
        context = self._context()
        if reply is not None:
            return self._of_reply(reply, context)
        run = captured.tool(message.tool_call_id) if isinstance(message, ToolMessage) else None
        told = run is not None and not run.reads_state
        if told and isinstance(message, ToolMessage) and run is not None and run.gave(message):
            noted = read(self._scope.owner, run.runs)
            return Sources(context=context, also=noted, inexact=True)
        places = () if run is None else (*run.runs, *run.tasks)
        rest = self._scope.rest(context, *places, before=self._by.get(_key(message), before))
        return self._scope.summed(rest) if message.additional_kwargs.get("lc_source") else rest

    def _of_reply(self, call: Call, context: list[Atom]) -> Sources:
        """Return a reply's prompt; what was read as well, if that holds what nobody knows of."""
        told = not call.opaque and all(
            at in call.prompt.constants or _key(one) in self._atoms
            for at, one in enumerate(call.prompt.messages)
        )
        if told:
            return Sources(context=context, inexact=True)
        return self._scope.rest(context, *call.tasks, call.root, before=call.moment)


def _key(message: BaseMessage) -> _Key:
    content = message.content
    said = content if type(content) is str else fingerprint(content)
    return message.id, (message.type, id(message) if said is None else said)


def _reply(message: BaseMessage) -> Call | None:
    return captured.of_reply(message) if isinstance(message, AIMessage) else None


def _said(state: Sequence[Named], given: RawInputs, *, earlier: bool) -> Iterator[bool]:
    """Tell of each message whether it came from outside.

    What stands before all that this run was given came in an earlier one, which is taken for given
    if a human or the system said it; not a summary, which LangChain puts there and marks.
    """
    known = [captured.given(one) or given.take(name, one) for name, one in reversed(state)]
    known.reverse()
    first = known.index(True) if True in known else len(known)
    for at, (_, message) in enumerate(state):
        before = earlier and at < first and not message.additional_kwargs.get("lc_source")
        yield known[at] or (before and isinstance(message, _SAID))
