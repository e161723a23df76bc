"""Threads of messages outside of any graph: read in order, and added to, each in one transaction.

An adapter that keeps a chat history says what each message was made from; what was erased while a
run was under way, and what was made from it, is refused. Reached as `memory.conversations`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from . import discarding, hiding, storing
from .arguments import (
    check_flag,
    check_iterable,
    check_kind,
    check_whole,
    whole_numbers,
)
from .cells import Atom, Sources
from .checkpointing import Writing
from .database import Moved, Scope, Tx
from .desk import Standing
from .encoding import decode, encode, load_json
from .engine import Engine
from .reading import all_of_thread
from .records import Draft
from .run_writes import RunWrites
from .settling import Settling, bury
from .storing import fid_digest
from .thread_reads import NEVER, ThreadReads, check_name

WHOLE = "whole"  # metadata of a record that depends on all that was said before it
MANY = 64  # messages added at once for which the whole thread is looked through


@dataclass(slots=True, eq=False)
class Saying:
    """A message to add, with what it was made from.

    In the order of the prompt: the records `parents`, then other sayings of the same call, `after`.
    `whole`: also all that was said before it in the thread and in the call. `lookup`: a message of
    a prompt that is looked for by its id, in case it was erased, and never stored. `fresh`: its id
    was made for it just now, so it is not looked for. `inexact`: the
    parents may be more than what it was made from.
    Afterwards `id` is its record, None when it was refused.
    """

    draft: Draft = field(repr=False)
    parents: Sequence[int] = ()
    after: Sequence[Saying] = ()
    whole: bool = False
    inexact: bool = False
    lookup: bool = False
    fresh: bool = False
    id: int | None = None


class Conversations(ThreadReads):
    """The threads of messages of one workspace. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.conversations instead."""
        super().__init__(engine, workspace)
        self._runs = RunWrites(engine, workspace)
        self._endings: dict[str, _Ending] = {}

    def hide(self, thread: str, ids: Sequence[int] | None = None, *, archive: bool = False) -> None:
        """Let a thread no longer show messages of it, or any of them where `ids` is None.

        Nothing is forgotten by that: they and all that was made from them stay, and a forget finds
        them. What is dropped is in no later context or search; what is archived may be.
        """
        check_name(thread)
        ids = None if ids is None else whole_numbers(ids, "ids=")
        check_flag(archive, "archive=")
        with self._engine.writing(self.workspace) as (tx, scope):
            storing.lock(tx, scope.ws)
            theirs = hiding.of_thread(tx, scope, thread)
            meant = theirs if ids is None else [one for one in ids if one in theirs]
            hiding.hide(tx, scope.ws, meant, hiding.ARCHIVED if archive else hiding.DROPPED)

    def add(
        self,
        thread: str,
        said: Sequence[Saying],
        *,
        trusted: int = -1,
        ended: int | None = None,
        only: Sequence[int] | None = None,
        archive: bool = False,
    ) -> int:
        """Add messages to a thread, in one transaction; return the workspace's generation.

        One that is there already, whatever it says, is not stored again; one that was erased, or
        was made from what was erased or redacted, is refused. `trusted` is the generation in which
        the caller knew all the parents to be there. `ended`: when the thread had last been ended
        as the caller knew it; if it was ended since, all is refused. `only`: of the messages that
        are there, the thread shows these and drops all others. `archive`: what is added is archived
        at once (see `hide`). Raises InvalidInput, StorageError.
        """
        check_name(thread)
        check_iterable(said, "said=")
        for one in said:
            _check_saying(one)
        check_whole(trusted, "trusted=")
        check_flag(archive, "archive=")
        shown = None if only is None else whole_numbers(only, "only=")
        adding = _Adding(thread, said, trusted, ended, shown, archive)
        if (expected := self._runs.expecting()) is not None:
            with suppress(Moved):
                return self._added(adding, expected)
        return self._added(adding)

    def _added(self, adding: _Adding, expected: Standing | None = None) -> int:
        """Add messages; raises Moved, having written nothing, if the workspace is not as expected."""
        thread, said, ended = adding.thread, adding.said, adding.ended
        with self._runs.open(thread, adding.trusted, expected) as writing:
            tx, scope = writing.tx, writing.scope
            if ended is not None and ended != (discarding.ended_at(tx, scope, thread) or NEVER):
                _refuse(tx, scope, said, writing.desk.at)
                return writing.generation
            if adding.only is not None:
                hiding.show_only(tx, scope, thread, adding.only)
            making = _Making(_there(tx, scope, thread, said), self._before(writing, thread, said))
            atoms = {one: making.add(one) for one in said}
            Settling(writing.desk, writing).settle(atoms.values())
            for one, atom in atoms.items():
                one.id = atom.id
            if adding.archive:
                hiding.hide(tx, scope.ws, [one.id for one in said if one.id], hiding.ARCHIVED)
        self._note(writing, thread, making)
        return writing.generation

    def _before(self, writing: Writing, thread: str, said: Sequence[Saying]) -> Sequence[int]:
        if not any(one.whole for one in said):
            return ()
        known, desk = self._endings.get(thread), writing.desk
        if known and (known.generation, known.newest) == (desk.generation, desk.last_record):
            return known.before
        return _before(writing.tx, writing.scope, thread)

    def _note(self, writing: Writing, thread: str, making: _Making) -> None:
        """Keep how the thread ends now, where that is known; of the threads added to last."""
        since = [one.id for one in making.since if one.id is not None]
        told = len(since) == len(making.since) == len(set(since))
        self._endings.pop(thread, None)
        if making.whole and told:
            desk = writing.desk
            self._endings[thread] = _Ending(desk.generation, desk.last_record, tuple(since))
            while len(self._endings) > MANY:
                self._endings.pop(next(iter(self._endings)), None)

    def end(self, thread: str) -> None:
        """Refuse from now on what a run that is under way adds to the thread. Erases nothing."""
        check_name(thread)
        with self._engine.writing(self.workspace, durable=True) as (tx, scope):
            discarding.end(tx, scope, thread, self._engine.options.clock())


@dataclass(frozen=True, slots=True)
class _Adding:
    """What is to be added, as of Conversations.add."""

    thread: str
    said: Sequence[Saying]
    trusted: int
    ended: int | None
    only: Sequence[int] | None
    archive: bool


class _Making:
    """Makes atoms of the sayings of one write, in order.

    What depends on all that was said before is tied to the last one that does so as well, and to
    what was said since: through that one it depends on all the rest.
    """

    def __init__(self, there: Mapping[str, int], before: Sequence[int]) -> None:
        self._there, self.before = there, before
        self.since: list[Atom] = []
        self._named: dict[tuple[str | None, str | None], Atom] = {}
        self.atoms: dict[Saying, Atom] = {}
        self.whole = False  # whether one of them depends on all before it

    def add(self, one: Saying) -> Atom:
        """Return the atom of a saying; the same one for every saying of one name in its thread."""
        if one not in self.atoms:
            name = one.draft.framework_id
            key = (one.draft.thread, name)
            made = self._named.get(key) if name is not None else None
            made = made or self._made(one, self._there.get(name) if name is not None else None)
            self.atoms[one] = self._named[key] = made
            if not one.lookup:
                self.since.append(made)
        return self.atoms[one]

    def _made(self, one: Saying, known: int | None) -> Atom:
        if one.lookup:
            return Atom(one.draft, lookup=True)
        if known is not None:
            return Atom(known=known)
        after = [self.add(it) for it in one.after]
        if one.whole:
            return self._made_of_all(one, after)
        context = list(dict.fromkeys(after))
        made = Sources(known=one.parents, context=context, inexact=one.inexact)
        told = bool(one.parents or context or one.inexact)
        return Atom(one.draft, made=made if told else None, fresh=one.fresh)

    def _made_of_all(self, one: Saying, after: Sequence[Atom]) -> Atom:
        parents = list(dict.fromkeys([*self.before, *one.parents]))
        context = list(dict.fromkeys([*self.since, *after]))
        self.before, self.since, self.whole = (), [], True
        draft = replace(one.draft, metadata={**(one.draft.metadata or {}), WHOLE: True})
        made = Sources(known=parents, context=context, inexact=True)
        return Atom(draft, made=made, fresh=one.fresh)


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a thread ended when it was last added to here: what _before would return.

    It is so as long as the workspace has no newer record than `newest` and is of `generation`.
    """

    generation: int
    newest: int
    before: Sequence[int]


def _there(tx: Tx, scope: Scope, thread: str, said: Sequence[Saying]) -> dict[str, int]:
    """Return the records of the sayings that are stored already, by name; 0 for one not usable."""
    names = {one.draft.framework_id for one in said if not one.fresh} - {None}
    at = {"ws": scope.ws, "thread": encode(thread)}
    if len(names) < MANY:
        rows = [
            row
            for one in names
            for row in tx.all(
                "select fid, id, status = 0 and audience = 0 from record "
                "where ws = :ws and thread = :thread and fid = :fid order by version",
                fid=encode(one or ""),
                **at,
            )
        ]
    else:
        rows = tx.all(
            "select fid, id, status = 0 and audience = 0 from record "
            "where ws = :ws and thread = :thread and fid is not null order by version",
            **at,
        )
    return {decode(fid): id_ if usable else 0 for fid, id_, usable in rows}


def _before(tx: Tx, scope: Scope, thread: str) -> list[int]:
    """Return the last record of a thread that depends on all before it, and all records since."""
    rows = tx.all(
        "select id, metadata from record where ws = :ws and thread = :thread and status = 0 "
        "and audience = 0 order by place desc limit :most",
        ws=scope.ws,
        thread=encode(thread),
        most=MANY,
    )
    last = next((id_ for id_, said in rows if said and load_json(said).get(WHOLE)), 0)
    if not last:
        return all_of_thread(tx, scope.ws, thread)
    since = tx.all(
        # By key: a record's place may be that of an earlier one.
        "select id from record where ws = :ws and id >= :last and thread || '' = :thread "
        "and status = 0 and audience = 0 order by id",
        ws=scope.ws,
        last=last,
        thread=encode(thread),
    )
    return [row[0] for row in since]


def _refuse(tx: Tx, scope: Scope, said: Sequence[Saying], at: int) -> None:
    """Refuse the sayings, now and whenever they come again."""
    for one in said:
        one.id = None
        name = one.draft.framework_id
        if name is not None:
            bury(tx, scope.ws, fid_digest(scope, one.draft.thread or "", name, 1), at)


def _check_saying(one: Saying) -> None:
    check_kind(one, Saying, "A saying of said=")
    check_kind(one.draft, Draft, "The draft of a saying")
    whole_numbers(one.parents, "parents=")
