"""What adopted values were made from: inferred from the checkpoints, as nobody saw the prompts.

A reply depends on the messages of the checkpoint that its task read, in order, and on all else
there; what a user gave depends on nothing. Where a run stored only its last checkpoint, the order
inside is all there is: each message depends on those before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from dellm import Atom, Cell, Draft, Many, Sources

from .addresses import START, Address
from .messages import draft_of
from .objects import REFUSED, Objects
from .origins import Origins
from .shapes import typed
from .taking import Taking
from .tasks import Task
from .workspace import Workspace
from .writing import Writer

LATER = "~~"  # how the path of a write begins that was made in a later step than its checkpoint's
INFERRED = "inferred"


@dataclass(slots=True)
class Seen:
    """What is known of one thread while it is adopted.

    `records`: which record holds a value that is no message, by the value's identity. `raw`: the
    messages without an id that were put in or written at a checkpoint. `anew`: copies of messages
    that another branch got with the same id.
    """

    records: dict[int, tuple[Any, int]] = field(default_factory=dict)
    raw: dict[tuple[str, str], list[tuple[BaseMessage, int]]] = field(default_factory=dict)
    anew: dict[int, BaseMessage] = field(default_factory=dict)

    def note(self, value: Any, id_: int) -> None:
        """Keep which record holds a value; what Python may keep only once names nothing."""
        if isinstance(value, (str, bytes, tuple, frozenset)) and len(value) < 2:
            return
        self.records[id(value)] = (value, id_)

    def find(self, value: Any) -> int | None:
        """Return the record that holds this very object, REFUSED, or None."""
        known = self.records.get(id(value))
        return known[1] if known is not None and known[0] is value else None


@dataclass(slots=True)
class Read:
    """What a step could read: the messages of its checkpoint, that one's other channels, and more.

    `values` are all of the checkpoint's. `also` are records from elsewhere: of a task's own graphs,
    or of what other tasks wrote. `merged`: several steps were stored as one, to which `inputs` were
    given and in which the messages `edited`, by their ids, were rewritten. `there`: the checkpoint is
    in the source.
    """

    prompt: Sequence[BaseMessage] = ()
    rest: frozenset[str] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    also: Sequence[int] = ()
    merged: bool = False
    inputs: Sequence[Any] = ()
    edited: frozenset[str] = frozenset()
    there: bool = True

    def gave(self, value: object) -> bool:
        """Whether a value, or an item of a list, was given to the steps."""
        return _within(value, self.inputs)

    def holds(self, value: object) -> bool:
        """Whether a value, or an item of a list, is of the checkpoint itself."""
        return _within(value, self.values.values())


def _within(value: object, values: Iterable[Any]) -> bool:
    return any(
        value is one or (type(one) is list and any(value is item for item in one)) for one in values
    )


class Inferred(Origins):
    """Gives each value of a task the sources it may have had; asks nothing that was captured."""

    def __init__(
        self,
        task: Task,
        objects: Objects,
        serde: Any,
        reads: Mapping[str, frozenset[str]],
        read: Read,
    ) -> None:
        super().__init__(task, objects, serde, reads)
        self.read = read
        self._prompted: tuple[Sequence[int], Sequence[Atom]] | None = None
        self.inferred: set[Sources] = set()

    def of_message(self, message: BaseMessage) -> Sources | None:
        """Return what a message was made from; None when it was given from outside."""
        read = self.read
        if read.holds(message):
            return self.of_rest()  # of which nothing is known any more
        edited = message.id in read.edited
        if self.given or (read.merged and not edited and from_a_user(message)):
            return None
        known, looked_up = self._context()
        # What cannot be looked up is found, or missed, with all that its checkpoint holds.
        unknown = any(one.draft is None and one.known is None for one in looked_up)
        return self._inferred(
            Sources(
                known=known,
                context=(*looked_up, *self._before()),
                also=self._also(),
                place=self._task.place if read.there else None,
                channels=None if unknown else read.rest,
            )
        )

    def of_value(self, value: object) -> Sources | None:
        """Return what any other value was made from."""
        if self.read.holds(value):
            return self.of_rest()
        return None if self.read.gave(value) else super().of_value(value)

    def replied_anew(self, message: BaseMessage) -> bool:  # noqa: ARG002 - see Seen.anew instead
        """Whether a known message is another reply; here that is known before."""
        return False

    def of_rest(self, *, inexact: bool = False) -> Sources:
        """Return the sources of a value that is no message."""
        before = self._before() if self.read.merged else ()
        return self._inferred(
            Sources(
                also=(*self._also(), *before),
                place=self._task.place if self.read.there else None,
                inexact=inexact,
            )
        )

    def _inferred(self, sources: Sources) -> Sources:
        self.inferred.add(sources)
        return sources

    def _also(self) -> tuple[Atom, ...]:
        return tuple(Atom(known=one) for one in self.read.also)

    def _before(self) -> tuple[Atom, ...]:
        """Return what came before in the same write: a node may return all that an agent of it said.

        Results of tools that were called side by side know nothing of each other.
        """
        if self.read.merged:
            return tuple(self.atoms.values())
        drafts = ((atom, atom.draft) for atom in self.atoms.values())
        return tuple(
            atom for atom, draft in drafts if draft is not None and draft.kind == "message"
        )

    def _context(self) -> tuple[Sequence[int], Sequence[Atom]]:
        """Return the records of the messages that were read: those known, then the others."""
        if self._prompted is None:
            prompt = self.read.prompt
            known = self._objects.prefix(prompt).ids
            rest = [self._looked_up(one) for one in prompt[len(known) :]]
            self._prompted = known, rest
        return self._prompted

    def _looked_up(self, message: BaseMessage) -> Atom:
        known = self._objects.find(message)
        if known is not None:
            return Atom(known=known)
        if message.id is None:
            return Atom(lookup=True)
        return Atom(draft_of(message, self._task.thread, self._serde), lookup=True)


def from_a_user(message: BaseMessage) -> bool:
    """Whether a message is of a kind that users and programmers give; middleware marks its own."""
    made = isinstance(message, (HumanMessage, SystemMessage))
    return made and "lc_source" not in message.additional_kwargs


class AdoptedTaking(Taking):
    """Takes adopted values apart; every record says when it was made, and whether that is inferred."""

    at_once = True

    def __init__(
        self, origins: Inferred, seen: Seen, moment: datetime | None, *args: Any, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._inferred = origins
        self._seen = seen
        self._moment = moment
        self._hides = False
        self._hidden: set[Atom] = set()

    def cell(self, channel: str, value: Any) -> Cell:
        """See Taking."""
        # What is put in or written gets its ids, and its place in a list, in the next checkpoint.
        self._hides = self._task is not None or (channel == START and type(value) is dict)
        return super().cell(channel, value)

    def atom(self, value: Any, *, tracked: bool = True) -> Atom:
        """See Taking."""
        new = id(value) not in self._atoms
        found = super().atom(value, tracked=tracked)
        if new and found.draft is not None and found.known is None:
            guessed = found.made is not None and found.made in self._inferred.inferred
            found.draft = dated(found.draft, self._moment, inferred=guessed)
        return found

    @property
    def ids(self) -> list[int]:
        """The records that were written or found, in order."""
        return [atom.id for _, atom in self._held if atom.id]

    def _list(self, channel: str, value: list[Any], tracked: bool) -> Cell:
        if self._inferred.read.merged and value and isinstance(value[0], BaseMessage):
            # What is known already counts as having come before, so every message is looked at.
            # One that was rewritten in its place may be made of any other.
            edited = self._inferred.read.edited
            for one in sorted(value, key=lambda one: getattr(one, "id", None) in edited):
                self.atom(one, tracked=tracked)
            return Many([], [self.atom(one, tracked=tracked) for one in value])
        return super()._list(channel, value, tracked)

    def _new_message(self, message: BaseMessage, tracked: bool, anew: bool) -> Atom:
        twin = self._twin(message)
        if twin is None:
            made = super()._new_message(message, tracked, anew or id(message) in self._seen.anew)
        else:
            draft = draft_of(message, self._thread, self._serde)
            made = Atom(replace(draft, copy_of=twin), made=Sources(also=(Atom(known=twin),)))
        if self._hides and message.id is None and made.draft is not None:
            # As a message it would stand in the thread twice.
            payload = b"0" + typed(message, self._serde)
            made.draft = replace(made.draft, kind="state", payload=payload, metadata=None)
            self._hidden.add(made)
        return made

    def _twin(self, message: BaseMessage) -> int | None:
        """Return the record of what the message was before it had got its id."""
        if self._at is None:
            return None
        for other, id_ in self._seen.raw.get(self._at, ()):
            if type(other) is type(message) and other.content == message.content and id_:
                return id_
        return None

    def _state(self, value: Any, tracked: bool) -> Atom:
        known = self._seen.find(value)
        return Atom(known=known) if known is not None else super()._state(value, tracked)

    def note(self, ns: str, cid: str) -> None:
        """See Taking."""
        super().note(ns, cid)
        for value, atom in self._held:
            id_ = atom.id or REFUSED
            if not isinstance(value, BaseMessage):
                self._seen.note(value, id_)
            elif atom in self._hidden and id_:
                self._seen.raw.setdefault((ns, cid), []).append((value, id_))


def dated(draft: Draft, at: datetime | None, *, inferred: bool) -> Draft:
    """Return a draft as it is adopted."""
    metadata = {**(draft.metadata or {}), INFERRED: True} if inferred else draft.metadata
    return replace(draft, created_at=at, metadata=metadata)


class AdoptedWriter(Writer):
    """Writes one checkpoint, or what one task wrote, as of when it was made.

    `given` overrules whether the values came from outside; None leaves it to be seen from the path.
    """

    def __init__(
        self,
        workspace: Workspace,
        address: Address,
        config: Any,
        seen: Seen,
        read: Read,
        moment: datetime | None,
        *,
        given: bool | None = None,
    ) -> None:
        super().__init__(workspace, address, config)
        self._seen = seen
        self._read = read
        self._moment = moment
        self._given = given
        self._made: AdoptedTaking | None = None

    @property
    def ids(self) -> list[int]:
        """The records that hold what was written, in order."""
        return [] if self._made is None else self._made.ids

    def _task(self, task_id: str, path: str) -> Task:
        made = super()._task(task_id, path)
        if self._given is not None:
            made.given, made.place = self._given, self._address.place
        return made

    def _step(self, metadata: Mapping[str, Any]) -> Task:
        made = super()._step(metadata)
        if made.place is None:
            made.place = self._address.outer(metadata.get("parents") or {})
        return made

    def _taking(self, objects: Objects, task: Task, at: Any) -> Taking:
        workspace = self._workspace
        channels = workspace.channels
        read = self._read
        if task.place != self._address.place:  # it read the graph around its own
            read = Read(merged=read.merged, inputs=read.inputs)
        origins = Inferred(task, objects, workspace.serde, channels.reads, read)
        self._made = AdoptedTaking(
            origins, self._seen, self._moment,
            self._address.thread, objects, origins, workspace.serde,
            literals=channels.literals, untracked=channels.untracked,
            at=None if at is None else (at.ns, at.cid), task=task.id,
        )  # fmt: skip
        return self._made

    def _settings(self, objects: Objects, settings: Mapping[str, Any]) -> Atom | None:
        found = super()._settings(objects, settings)
        if found is not None and found.draft is not None:
            found.draft = dated(found.draft, self._moment, inferred=False)
        return found
