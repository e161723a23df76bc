"""Atoms become records: each is found, refused, or stored together with its parents.

An atom is refused when what it holds was erased, or when anything it was made from was: a late
write of a running agent brings nothing back (invariant I4). Everything happens in the caller's
write transaction, after the workspace's row was locked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from . import audiences, governing, guarding, sequences, storing
from .atom_order import Above, batches, in_order
from .cells import Atom, Place
from .database import Tx
from .desk import Desk
from .encoding import encode
from .records import Draft


@dataclass(frozen=True, slots=True)
class Made:
    """What is in a checkpoint: records and sequences, and whether its reader saw erased content."""

    nodes: Sequence[int]
    tainted: bool


class Places(Protocol):
    """Where the settling looks up what a task read."""

    def read(
        self,
        place: Place,
        channels: frozenset[str] | None,
        since: int | None,
        heard: frozenset[str],
    ) -> Made:
        """Return what the checkpoint at `place` holds; of all that is known when it is not there."""


class Settling:
    """The atoms of one write, each settled once. `known` are the bare ids that its values hold."""

    def __init__(self, desk: Desk, places: Places) -> None:
        self._desk = desk
        self._places = places
        self._dead: set[Atom] = set()
        self._gone: dict[int, int | None] = {}  # bare ids that are no more, and who stands in
        self._replaced: set[Atom] = set()  # what it held was redacted; another stands in
        self._changed: set[Atom] = set()  # looked up, and found with another content
        self._fresh: dict[tuple[str, str], list[Atom]] = {}  # objects that this write stores first
        self._twins: dict[Atom, Atom] = {}  # atoms that hold the same object as another one does
        self._above = Above((), {})
        self.inexact = 0  # atoms stored whose parents may be more than what they were made from
        self.refused = False  # whether an atom of the values themselves was refused

    def settle(self, atoms: Iterable[Atom]) -> None:
        """Give every atom its record's id, or None where it was refused."""
        listed = list(atoms)
        order = [one for one in in_order(listed) if one.id is None]
        self._screen(order)
        self._check_sources(order)
        self._check_known([one for one in order if one.known is not None])
        for one in order:
            if one.fresh or one.known is not None or one.draft is None:
                continue
            if one.draft.framework_id is not None:
                self._find(one, one.draft)
        for one in order if self._twins else ():
            one.refs = [self._twins.get(ref, ref) for ref in one.refs]
        self._above = Above(order, self._twins)
        self._store(self._tied(order))
        self._fresh.clear()
        self._twins.clear()
        self.refused = self.refused or any(one in self._dead for one in listed)

    def _screen(self, atoms: Sequence[Atom]) -> None:
        """Let what is stored, or looked up by what it says, be as it may be stored."""
        said = [(one, one.draft) for one in atoms if one.draft is not None and not one.known]
        for _, draft in said:
            storing.check(draft)
        desk = self._desk
        screened = desk.scope.entering.screened([draft for _, draft in said])
        screened = guarding.screened(desk.tx, desk.scope, screened, desk.guards, desk.at)
        for (one, _), draft in zip(said, screened, strict=True):
            one.draft = draft

    def _tied(self, order: Sequence[Atom]) -> list[tuple[Atom, _Parents]]:
        """Return the atoms to store with what they are tied to; the others are refused."""
        new: list[tuple[Atom, _Parents]] = []
        ready: set[Atom] = set()
        dead = len(self._dead)
        for one in order:
            if (twin := self._twins.get(one)) is not None:
                (self._dead if twin in self._dead else ready).add(one)
                continue
            if one.id is not None or one in self._dead or one.lookup or one.draft is None:
                continue
            parents = self._parents(one, ready)
            if parents is None:
                self._refuse(one)
            else:
                ready.add(one)
                new.append((one, parents))
        # What may be made of what comes after it is not to stay when that is refused.
        late = len(self._dead) > dead and any(one.made and one.made.beside for one, _ in new)
        return self._tied(order) if late else new

    def _check_sources(self, atoms: Sequence[Atom]) -> None:
        for one in atoms:
            if one.made is not None:
                self.check(one.made.known)
            if one.draft is not None and one.draft.copy_of is not None:
                self.check([one.draft.copy_of], unsure=True)

    def check(self, ids: Sequence[int], *, unsure: bool = False) -> None:
        """Find out which of the ids are no more, and what stands in their place.

        `unsure`: even if what the writer knows is to be trusted.
        """
        # 0 stands for something that must not be stored.
        if not ids or (self._desk.trusted and 0 not in ids and not unsure):
            return
        tx, ws = self._desk.tx, self._desk.scope.ws
        for one in set(ids) - usable(tx, ws, ids):
            self._gone[one] = successor(tx, ws, one)

    def living(self, ids: Sequence[int]) -> Sequence[int]:
        """Return the ids that were checked, less what is gone."""
        return [one for one in self.placed(ids) if one is not None] if self._gone else ids

    def placed(self, ids: Sequence[int]) -> Sequence[int | None]:
        """Return the ids that were checked, None in the place of what is gone."""
        if not self._gone:
            return ids
        found = [self._gone.get(one, one) for one in ids]
        self.refused = self.refused or None in found
        return found

    def _check_known(self, atoms: Sequence[Atom]) -> None:
        self.check([one.known for one in atoms if one.known and not one.unsure])
        self.check([one.known for one in atoms if one.known and one.unsure], unsure=True)
        for one in atoms:
            one.id = self._gone.get(one.known, one.known) if one.known else None
            if one.id is None:
                self._dead.add(one)
            elif one.id != one.known:
                self._replaced.add(one)
            elif one.draft is not None and one.draft.framework_id is not None:
                self._name(one.id, one.draft)

    def _name(self, id_: int, draft: Draft) -> None:
        """Give a record the id that its framework's object had not got when it was stored."""
        self._desk.tx.later(
            "update record set fid = :fid where ws = :ws and id = :id and fid is null "
            "and not exists (select 1 from record where ws = :ws and thread = :thread "
            "and fid = :fid and version = 1)",
            ws=self._desk.scope.ws,
            id=id_,
            fid=encode(draft.framework_id or ""),
            thread=encode(draft.thread or ""),
        )

    def _find(self, atom: Atom, draft: Draft) -> None:
        """Look the framework's object up: the record that holds it, a new version, or erased."""
        tx, ws, thread = self._desk.tx, self._desk.scope.ws, draft.thread or ""
        rows = tx.all(
            "select id, version, text, payload, status from record "
            "where ws = :ws and thread = :thread and fid = :fid order by version desc",
            ws=ws,
            thread=encode(thread),
            fid=encode(draft.framework_id or ""),
        )
        text = encode(draft.text)
        for id_, _, held, payload, status in rows:
            if (
                not atom.anew
                and held == text
                and (None if payload is None else bytes(payload)) == draft.payload
            ):
                if status == 0:
                    atom.id = id_
                else:
                    self._dead.add(atom)
                return
        newest = rows[0][1] if rows else 0
        erased = self._erased(draft, newest + 1)
        if erased is not None:
            atom.id = successor(tx, ws, erased)
            (self._dead if atom.id is None else self._replaced).add(atom)
        elif rows and atom.lookup:
            atom.id = rows[0][0]
            self._changed.add(atom)
        else:
            self._join(atom, draft, newest)

    def _join(self, atom: Atom, draft: Draft, newest: int) -> None:
        """Tell whether another atom of this write holds the object too, as it is or otherwise."""
        same = self._fresh.setdefault((draft.thread or "", draft.framework_id or ""), [])
        held = [one.draft and (one.draft.text, one.draft.payload) for one in same]
        if not atom.anew and (draft.text, draft.payload) in held:
            self._twins[atom] = same[held.index((draft.text, draft.payload))]
        elif atom.lookup and same:
            self._twins[atom] = same[-1]
            self._changed.add(atom)
        elif not atom.lookup:
            if newest or same:
                atom.draft = replace(draft, version=newest + len(same) + 1)
            same.append(atom)

    def _erased(self, draft: Draft, upto: int) -> int | None:
        """Return the record as which a version of the object was erased, 0 if it was refused."""
        if not self._desk.generation:
            return None
        tx, scope = self._desk.tx, self._desk.scope
        for version in range(1, upto + 1):
            digest = storing.fid_digest(
                scope, draft.thread or "", draft.framework_id or "", version
            )
            row = tx.one(
                "select id from tombstone where ws = :ws and fid_digest = :digest "
                "union all select 0 from ended where ws = :ws and digest = :digest",
                ws=scope.ws,
                digest=digest,
            )
            if row is not None:
                return int(row[0])
        return None

    def _parents(self, atom: Atom, ready: set[Atom]) -> _Parents | None:
        """Return what the atom's record is to be tied to; None when part of it was erased."""
        made = atom.made
        if self._gone and self._copies_gone(atom):
            return None
        if made is None:
            return _Parents()
        if self._gone and not self._gone.keys().isdisjoint(made.known):
            return None
        found = _Parents(known=made.known, inexact=made.inexact)
        unknown = False
        beside = self._above.not_made_of(atom, made.beside)
        for into, some in (
            (found.context, made.context),
            (found.others, made.also),
            (found.others, beside),
        ):
            for one in some:
                if one in self._dead or one in self._replaced:
                    return None
                into.append(one)
                known = one.id is not None or one in ready
                unknown = unknown or not known or one in self._changed
        if made.place is not None and (unknown or not made.only_if_unknown):
            read = self._places.read(made.place, made.channels, made.since, made.heard)
            if read.tainted:
                return None
            found.nodes.extend(read.nodes)
            found.inexact = found.inexact or unknown
        return found

    def _copies_gone(self, atom: Atom) -> bool:
        """Whether an atom says the same as an erased record; one that never was is an error later."""
        copied = None if atom.draft is None else atom.draft.copy_of
        return copied in self._gone and copied is not None and copied <= self._desk.last_record

    def _refuse(self, atom: Atom) -> None:
        """Refuse the atom, and its framework's object for good."""
        self._dead.add(atom)
        if atom.draft is not None and atom.draft.framework_id is not None:
            draft, scope = atom.draft, self._desk.scope
            bury(
                self._desk.tx,
                scope.ws,
                storing.fid_digest(scope, draft.thread or "", draft.framework_id or "", 1),
                self._desk.at,
            )

    def _store(self, new: Sequence[tuple[Atom, _Parents]]) -> None:
        if not new:
            return
        desk = self._desk
        # What only refers to others says to whom, so those come first: see batches.
        for some in batches(new):
            drafts = [self._draft(one, parents) for one, parents in some]
            # What was erased of them was looked for in _find.
            desk.governed |= storing.store_after(
                desk.tx,
                desk.scope,
                drafts,
                desk.at,
                desk.last_record,
                desk.policy,
                desk.governed,
            )
            for one, _ in some:
                desk.last_record += 1
                one.id = desk.last_record
                one.stored = True
        for one, twin in self._twins.items():
            one.id = twin.id
        for one, parents in new:
            self._attach(one, parents)
        if desk.governed & governing.ENDS:
            ids = [one.id for one, _ in new if one.id is not None]
            copies = any(one.draft is not None and one.draft.copy_of for one, _ in new)
            bound = governing.together if copies else governing.bounded
            bound(desk.tx, desk.scope.ws, ids)
        if desk.governed & governing.AUDIENCES:
            ids = [one.id for one, _ in new if one.id is not None]
            audiences.narrow(desk.tx, desk.scope, ids, desk.governed)

    def _draft(self, atom: Atom, parents: _Parents) -> Draft:
        draft = atom.draft
        assert draft is not None  # noqa: S101 - only atoms with a draft are stored
        extra: dict[str, object] = {}
        if atom.refs:
            extra["refs"] = [one.id or 0 for one in atom.refs]
        if parents.inexact:
            extra["inexact"] = True
            self.inexact += 1
        return replace(draft, metadata={**(draft.metadata or {}), **extra}) if extra else draft

    def _attach(self, atom: Atom, parents: _Parents) -> None:
        desk, child = self._desk, atom.id
        if child is None:
            return
        added = [one.id for one in parents.context if one.id is not None]
        context = [*parents.known, *added]
        tip = sequences.attach_context(
            desk.tx,
            desk.scope,
            child,
            context,
            desk.thread,
            desk.take(),
            desk.tips,
            desk.generation,
        )
        if tip is not None:
            desk.noted.append(tip)
        direct = {one.id for one in parents.others if one.id is not None}
        nodes = list(dict.fromkeys([*sorted(direct), *parents.nodes]))
        sequences.attach_surviving(
            desk.tx, desk.scope.ws, child, [one for one in nodes if one != child], len(context)
        )


@dataclass(slots=True)
class _Parents:
    """Atoms of the prompt and besides, and nodes of the graph that a task read as a whole."""

    known: Sequence[int] = ()
    context: list[Atom] = field(default_factory=list)
    others: list[Atom] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    inexact: bool = False


def usable(tx: Tx, ws: int, ids: Iterable[int]) -> set[int]:
    """Return those of the records that may be used."""
    listed = sorted(set(ids))
    if not listed:
        return set()
    rows = tx.all(
        "select id from record where ws = :ws and id in :ids and status = 0 and audience = 0",
        ws=ws,
        ids=listed,
    )
    return {row[0] for row in rows}


def successor(tx: Tx, ws: int, id_: int) -> int | None:
    """Return the usable record that stands in an erased one's place after redactions, or None."""
    at: int | None = id_
    while at:
        row = tx.one("select successor from tombstone where ws = :ws and id = :id", ws=ws, id=at)
        at = None if row is None or row[0] is None else int(row[0])
        if at is not None and usable(tx, ws, [at]):
            return at
    return None


def bury(tx: Tx, ws: int, digest: bytes, at: int) -> None:
    """Keep a keyed digest, so that what it stands for is refused from now on."""
    tx.later(
        "insert into ended(ws, digest, at) values (:ws, :digest, :at) "
        "on conflict (ws, digest) do nothing",
        ws=ws,
        digest=digest,
        at=at,
    )
