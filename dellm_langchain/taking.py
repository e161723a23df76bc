"""Taking a graph's values apart into cells: messages, items of lists, and other state.

Made for one write. Every object becomes an atom once; afterwards `note` keeps which record holds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import RESUME, TASKS, _DeltaSnapshot
from langgraph.types import Overwrite, Send

from dellm import Atom, Cell, Draft, Fields, Literal, Many, Sources, Wrapped

from .addresses import START
from .early_values import early_values, number_of
from .handed import stored
from .history_turns import Named, content_number
from .item_lists import Beginning, State
from .messages import draft_of
from .objects import REFUSED, Objects
from .origins import Origins
from .shapes import Dumped, dump, typed

DELTA, OVERWRITE, REMOVE = "delta", "overwrite", "remove"
WRAPPERS = {_DeltaSnapshot: DELTA, Overwrite: OVERWRITE}
PLAIN = frozenset({type(None), bool, int, float})
# Python may use one object for two values of these types, so identity says nothing.
CONSTANT = frozenset({str, bytes, tuple, frozenset, complex})
STATE = "agent"  # the role of records that hold a graph's state


class Taking:
    """Takes the values of one write apart. `at` names the checkpoint at which tasks wrote them.

    Call `finish` when all were taken apart, unless `at_once`.
    """

    at_once = False

    def __init__(
        self,
        thread: str,
        objects: Objects,
        origins: Origins,
        serde: SerializerProtocol,
        *,
        literals: Mapping[str, frozenset[Any]],
        untracked: frozenset[str],
        at: tuple[str, str] | None,
        task: str | None = None,
    ) -> None:
        self._thread = thread
        self._objects = objects
        self._origins = origins
        self._given = origins.given
        self._serde = serde
        self._literals = literals
        self._untracked = untracked
        self._at = at
        self._task = task
        self._atoms = origins.atoms
        self._early = early_values.of(origins.owner, thread)
        self._sends: dict[int, Atom] = {}  # nothing in the same write was made of these
        self._held: list[tuple[Any, Atom]] = []
        self._channels: dict[Atom, str] = {}
        self._lists: list[tuple[list[Any], Many, Beginning]] = []
        self._untied: list[tuple[Atom, Any, tuple[bool, bool, bool, str]]] = []

    def cell(self, channel: str, value: Any) -> Cell:
        """Return the cell of a channel's value."""
        tracked = channel not in self._untracked
        self._origins.resume = channel == RESUME
        self._origins.channel = channel
        self._origins.input = channel == START
        self._origins.given = self._given and channel != TASKS
        if channel == START and type(value) is dict and all(map(is_channel, value)):
            cells = {name: self._input(name, one, tracked) for name, one in value.items()}
            self._lists.clear()  # an input is no channel's value, and its messages have no ids yet
            return Fields(cells)
        return self._value(channel, value, tracked)

    def _input(self, name: str, value: Any, tracked: bool) -> Cell:
        self._origins.channel = name
        return self._value(name, value, tracked)

    def _value(self, channel: str, value: Any, tracked: bool) -> Cell:
        kind = type(value)
        nobodys = kind is str and value in self._literals.get(channel, ())
        if kind in PLAIN or nobodys or (kind is dict and not value):
            return Literal({} if kind is dict else value)
        if isinstance(value, Enum) and value.value in self._literals.get(channel, ()):
            tracked = False
        if kind is list:
            return self._list(channel, value, tracked)
        if kind in WRAPPERS:
            return Wrapped(WRAPPERS[kind], self._value(channel, value.value, tracked))
        if isinstance(value, RemoveMessage):
            return Wrapped(REMOVE, Literal(value.id))
        return self.atom(value, tracked=tracked)

    def _list(self, channel: str, value: list[Any], tracked: bool) -> Cell:
        if all(type(one) in PLAIN for one in value):
            return Literal(list(value))
        known = self._objects.prefix(value)
        if not known.messages:
            known = known.cut(self._same(value, known))
        atoms = [self.atom(one, tracked=tracked) for one in value[len(known.ids) :]]
        many = Many(known.ids, atoms, kept=channel == TASKS)
        if channel != TASKS:
            self._lists.append((value, many, known))
        return many

    def _same(self, value: Sequence[Any], known: Beginning) -> int:
        """Return how many of the known items are what they were: one may be changed in place."""
        for at, one in enumerate(value[: len(known.ids)]):
            if isinstance(one, BaseMessage):
                if self._objects.find(one) != known.ids[at]:
                    return at
            elif type(one) is not str and self._state_of(one) != known.states.get(at):
                return at
        return len(known.ids)

    def _state_of(self, value: Any) -> State:
        draft, _ = self._draft(value)
        return draft.text, draft.payload

    def atom(self, value: Any, *, tracked: bool = True) -> Atom:
        """Return the atom of an object; the same one for the same object."""
        key: Any = id(value)
        if type(value) in CONSTANT:
            key = (key, self._origins.channel)
        atoms = self._sends if isinstance(value, Send) else self._atoms
        found = atoms.get(key)
        if found is None:
            if isinstance(value, BaseMessage) and not isinstance(value, RemoveMessage):
                found = self._message(value, tracked)
            else:
                found = self._state(value, tracked)
            atoms[key] = found
            self._held.append((value, found))
            self._channels[found] = self._origins.channel
            if self._origins.resume:
                self._origins.answers.append(found)
        return found

    def _message(self, message: BaseMessage, tracked: bool) -> Atom:
        known = self._objects.find(message)
        anew = known is not None and self._origins.replied_anew(message)
        if known is not None and not anew:
            unnamed = self._objects.unnamed(message)
            draft = draft_of(message, self._thread, self._serde) if unnamed else None
            found = Atom(draft, known=known)
        else:
            found = self._new_message(message, tracked, anew)
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            if call["id"]:
                self._origins.calls[call["id"]] = (found, call)
        return found

    def _new_message(self, message: BaseMessage, tracked: bool, anew: bool) -> Atom:
        draft = self._origins.marked(draft_of(message, self._thread, self._serde), message)
        raw = None
        if self._at is not None and not self._origins.is_made(message):
            raw = self._objects.raw(self._at, self._origins.channel, message)
        if raw is not None:
            return Atom(replace(draft, copy_of=raw), made=Sources(also=(Atom(known=raw),)))
        return self._tied(Atom(self._copied(draft), anew=anew), message, tracked)

    def _tied(self, atom: Atom, value: Any, tracked: bool) -> Atom:
        """Return the atom with its sources, or to be given them when every object is known."""
        if tracked and self.at_once:
            atom.made = self._source(atom, value)
        elif tracked:
            origins = self._origins
            self._untied.append(
                (atom, value, (origins.given, origins.resume, origins.input, origins.channel))
            )
        return atom

    def finish(self) -> None:
        """Give every atom its sources: by now all that this write holds can be found."""
        origins = self._origins
        for atom, value, where in self._untied:
            origins.given, origins.resume, origins.input, origins.channel = where
            atom.made = self._source(atom, value)
        self._origins.add_replies([atom for atom, *_ in self._untied])
        self._untied.clear()

    def _source(self, atom: Atom, value: Any) -> Sources | None:
        of_value = self._made if isinstance(value, BaseMessage) else self._origins.of_value
        made = of_value(value)
        return self._origins.of_given(atom) if made is None else made

    def _made(self, message: BaseMessage) -> Sources | None:
        source = self._objects.derived_from(message)
        if source is not None:
            return Sources(also=(Atom(known=source),))
        return self._origins.of_message(message)

    def _state(self, value: Any, tracked: bool) -> Atom:
        draft, messages = self._draft(value)
        state, channel, known = (draft.text, draft.payload), self._origins.channel, None
        if self._at is not None:
            known = self._objects.found(self._at, channel, value, state)
        if known is None and self._origins.resume and not self._given:
            known = self._objects.answer(value)
        if known is not None:
            return Atom(known=known)
        if type(value) not in CONSTANT:
            known = self._objects.item(value, (draft.text, draft.payload))
            if known is not None:
                return Atom(known=known)
        draft = self._copied(draft)
        refs = tuple(self.atom(one, tracked=tracked) for one in messages)
        # A removal names what it removes and says nothing more: it must not go, or that came back.
        tracked = tracked and not isinstance(value, RemoveMessage)
        return self._tied(Atom(draft, refs=refs), value, tracked)

    def _copied(self, draft: Draft) -> Draft:
        """Return a draft as a copy of the record that running code has made of the same, if it has."""
        if not self._early or draft.copy_of is not None:
            return draft
        state = draft.text, draft.payload
        early = self._early.get(number_of(self._origins.channel, state))
        return draft if early is None else replace(draft, copy_of=early.record)

    def _draft(self, value: Any) -> tuple[Draft, Sequence[BaseMessage]]:
        return state_draft(value, self._thread, self._serde)

    # afterwards

    def note(self, ns: str, cid: str) -> None:
        """Keep which records hold the objects that were written at a checkpoint."""
        for value, atom in self._held:
            id_ = atom.id or REFUSED
            if not isinstance(value, BaseMessage):
                draft = atom.draft or self._draft(value)[0]
                state = draft.text, draft.payload
                self._objects.wrote((ns, cid), self._channels[atom], value, id_, state)
            elif (
                atom.stored
                or id_ == REFUSED
                or atom.draft is not None
                or self._objects.find(value) is None
            ):
                named = atom.draft is not None and atom.draft.framework_id is not None
                self._objects.note(value, id_, self._task, named=named)
                if id_ != REFUSED and value.id is not None:
                    known = {value.id: Named(id_, content_number(value.content))}
                    stored.note(self._origins.owner, [value], known)
        for key, atom in self._origins.prompts.items():
            if atom.id:
                self._objects.prompts[key] = atom.id
        for name, (atom, call) in self._origins.calls.items():
            if atom.id:
                self._objects.calls[name] = (atom.id, call)

    def note_lists(self) -> None:
        """Keep the records of the lists that were taken apart: they are the values of channels now."""
        for value, many, beginning in self._lists:
            ids = [*many.known, *(one.id or REFUSED for one in many.atoms)]
            states = {
                at: (one.draft.text, one.draft.payload) if one.draft else self._state_of(value[at])
                for at, one in enumerate(many.atoms, len(many.known))
                if not isinstance(value[at], (BaseMessage, str))
            }
            self._objects.note_list(value, ids, beginning, states)


def state_draft(
    value: Any, thread: str, serde: SerializerProtocol
) -> tuple[Draft, Sequence[BaseMessage]]:
    """Return a value as a record, and the messages in it; a str needs no payload."""
    if type(value) is str:
        return Draft(value, role=STATE, thread=thread, kind="state"), ()
    if isinstance(value, RemoveMessage):
        dumped = Dumped(b"0" + typed(value, serde), [], [])
    else:
        dumped = dump(value, serde)
    text = "\n".join(dict.fromkeys(dumped.strings))
    draft = Draft(text, role=STATE, thread=thread, kind="state", payload=dumped.payload)
    return draft, dumped.messages


def is_channel(name: object) -> bool:
    """Whether a key of an input can be the name of a channel, which belongs to a schema."""
    return type(name) is str and name.isidentifier()
