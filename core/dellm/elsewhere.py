"""What other systems keep copies of: the documents of a user's own vector stores.

A document is a record of kind "document", and the other system's id of its copy is kept beside it,
longer than the record itself: once a forget has taken the record, that id says what is still to be
deleted over there. Reached as `memory.elsewhere`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .arguments import (
    check_flag,
    check_iterable,
    check_kind,
    check_mapping,
    check_text,
    check_whole,
    texts,
    whole_numbers,
)
from .cells import Atom
from .database import R_USABLE, Scope, Tx
from .encoding import decode, encode
from .engine import Engine
from .errors import InvalidInput
from .records import Draft
from .run_writes import RunWrites
from .settling import Settling
from .storing import call_digest, said


@dataclass(frozen=True, slots=True)
class Foreign:
    """A document that another system holds: its id there, if it has one, and what it says.

    The draft of `atom` has no thread and no framework id: a document is known again by its text and
    its `source`, the file or page it is a part of.
    """

    name: str | None = field(repr=False)
    atom: Atom
    source: str = field(default="", repr=False)


class Elsewhere:
    """The copies that other systems keep of a workspace's records. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.elsewhere instead."""
        self._engine = engine
        self.workspace = workspace
        self._runs = RunWrites(engine, workspace)

    def take(
        self,
        place: str,
        documents: Sequence[Foreign],
        *,
        new: bool = False,
        noted: bool = True,
        own: bool = False,
        thread: str = "",
        trusted: int = -1,
    ) -> list[int | None]:
        """Return the record of each document, None for one that was erased or may not be used.

        One that has no record yet gets one, in one transaction for all; nothing is written when all
        have. `new`: they are about to be put there, so that an id may come with another content
        than it had. `noted`: their ids there are kept, so that the copies can be deleted; else it is
        only kept that they are there. `own`: the place has documents of other workspaces too; only
        those noted for this one are returned, and nothing is written. `thread`
        is where they were made, `trusted` the generation of which the record ids are that they
        were made from. Raises InvalidInput, CredentialRefused,
        StorageError.
        """
        _check(place, documents)
        check_flag(new, "new=")
        check_flag(noted, "noted=")
        check_flag(own, "own=")
        check_text(thread, "thread=")
        check_whole(trusted, "trusted=")
        if not documents:
            return []
        _screen(self._engine, documents)
        with self._engine.reading(self.workspace) as (tx, scope):
            identified = bool(scope.secret)  # it has none before the first write
            if identified:
                _identify(scope, documents)
            look = _Look(tx, scope, encode(place), self._engine.options.clock())
            found = look.up(documents, new=new)
            if not noted and not own:
                look.mark(found)
        if own:
            found.keep_noted(documents)
        missing = [
            at
            for at, one in enumerate(documents)
            if at not in found.records or ((one.name or not noted) and at not in found.noted)
        ]
        if missing:
            some = [documents[at] for at in missing]
            if not identified:
                with self._engine.writing(self.workspace) as (_, scope):
                    _identify(scope, some)
            taken = self._store(place, some, new=new, noted=noted, thread=thread, trusted=trusted)
            found.records.update(zip(missing, taken, strict=True))
        return [found.records[at] for at in range(len(documents))]

    def _store(
        self,
        place: str,
        documents: Sequence[Foreign],
        *,
        new: bool,
        noted: bool,
        thread: str,
        trusted: int,
    ) -> list[int | None]:
        with self._runs.open(thread, trusted) as writing:
            tx, scope = writing.tx, writing.scope
            look = _Look(tx, scope, encode(place), writing.desk.at)
            found = look.up(documents, new=new)
            known = found.records
            fresh = [one for at, one in enumerate(documents) if at not in known]
            said = [encode(_draft(one).text) for one in fresh]
            Settling(writing.desk, writing).settle([one.atom for one in fresh])
            same = _unchanged(tx, scope.ws, [one.atom.id for one in fresh], said)
            taken = [
                known.get(at, one.atom.id if one.atom.id in same else None)
                for at, one in enumerate(documents)
            ]
            if not noted:
                look.mark(found)
                here = [("", one) for at, one in enumerate(taken) if one and at not in found.noted]
                _note(tx, scope.ws, place, here)
            else:
                held = {at: id_ or found.unusable.get(at, 0) for at, id_ in enumerate(taken)}
                named = [(one.name, held[at]) for at, one in enumerate(documents) if one.name]
                _note(tx, scope.ws, place, named)
        return taken

    def put(self, place: str, records: Mapping[str, int]) -> list[str]:
        """Note that the copies with these ids there are of these records now, and of no others.

        Called when they are there. Returns the ids whose record was forgotten meanwhile.
        """
        check_text(place, "place=")
        check_mapping(records, "records=")
        whole_numbers(records.values(), "records=")
        names = texts(records, "records=")
        with self._engine.writing(self.workspace) as (tx, scope):
            _drop(tx, scope.ws, place, names)
            _note(tx, scope.ws, place, records.items())
            ids = sorted(set(records.values()))
            rows = tx.all(
                "select id from record where ws = :ws and id in :ids", ws=scope.ws, ids=ids
            )
        there = {row[0] for row in rows}
        return [name for name, id_ in records.items() if id_ not in there]

    def gone(self, place: str) -> list[str]:
        """Return the ids there of the copies whose record was erased: they are to be deleted."""
        check_text(place, "place=")
        with self._engine.reading(self.workspace) as (tx, scope):
            rows = tx.all(
                "select distinct e.name from elsewhere e left join record r "
                "on r.ws = :ws and r.id = e.record "
                "where e.ws = :ws and e.place = :place and r.id is null and e.name <> '' "
                "order by e.name",
                ws=scope.ws,
                place=encode(place),
            )
        return [decode(row[0]) for row in rows]

    def same(self, place: str, texts: Mapping[str, str]) -> set[str]:
        """Return the ids of `texts`, what is there by id, where it still says what was erased.

        Those of which it cannot be told are among them.
        """
        check_text(place, "place=")
        check_mapping(texts, "texts=")
        for one in [*texts, *texts.values()]:
            check_text(one, "One of texts=")
        found: set[str] = set()
        with self._engine.reading(self.workspace) as (tx, scope):
            for name, text in texts.items():
                rows = tx.all(
                    "select t.call_digest from elsewhere e "
                    "left join record r on r.ws = :ws and r.id = e.record "
                    "left join tombstone t on t.ws = :ws and t.id = e.record "
                    "where e.ws = :ws and e.place = :place and e.name = :name and r.id is null",
                    ws=scope.ws,
                    place=encode(place),
                    name=encode(name),
                )
                digest = call_digest(scope, "", said(text))
                if any(row[0] is None or bytes(row[0]) == digest for row in rows):
                    found.add(name)
        return found

    def noted(self, place: str, names: Sequence[str]) -> list[str]:
        """Return those of the ids there that are noted for a record of this workspace."""
        check_text(place, "place=")
        listed = texts(names, "names=")
        with self._engine.reading(self.workspace) as (tx, scope):
            found = _Look(tx, scope, encode(place), 0).noted({encode(one) for one in listed})
        return [one for one in listed if encode(one) in found]

    def places(self) -> list[str]:
        """Return the names of the other systems of which something is noted, sorted."""
        with self._engine.reading(self.workspace) as (tx, scope):
            rows = tx.all("select distinct place from elsewhere where ws = :ws", ws=scope.ws)
        return sorted(decode(row[0]) for row in rows)

    def drop(self, place: str, names: Sequence[str], *, gone: bool = False) -> None:
        """Note that the copies with these ids are there no longer; `gone`: those of what was erased."""
        check_text(place, "place=")
        check_flag(gone, "gone=")
        listed = texts(names, "names=")
        with self._engine.writing(self.workspace) as (tx, scope):
            _drop(tx, scope.ws, place, listed, only_gone=gone)


@dataclass(slots=True)
class _Found:
    """The records of documents by their position, None where they may not be used.

    `unusable` are those that are there nevertheless, `noted` the positions whose ids are noted.
    """

    records: dict[int, int | None] = field(default_factory=dict)
    unusable: dict[int, int] = field(default_factory=dict)
    noted: set[int] = field(default_factory=set)

    def take(self, at: int, record: int, _text: str | None, usable: bool) -> None:
        """Note the record that a document is."""
        self.records[at] = record if usable else None
        if not usable:
            self.unusable[at] = record

    def keep_noted(self, documents: Sequence[Foreign]) -> None:
        """Make all but what is noted by its id unusable; what has no id goes by what it says."""
        for at, one in enumerate(documents):
            if at not in self.noted and (one.name or at not in self.records):
                self.records[at] = None
            self.noted.add(at)


class _Look:
    """Looks documents up in one transaction."""

    def __init__(self, tx: Tx, scope: Scope, place: str, at: int) -> None:
        self._tx, self._ws, self._place, self._at = tx, scope.ws, place, at

    def up(self, documents: Sequence[Foreign], *, new: bool) -> _Found:
        """Return what is known of the documents without writing anything.

        A copy whose id is that of something erased is taken for that, unless it is `new`.
        """
        found = _Found()
        named = self._named({encode(one.name) for one in documents if one.name})
        unknown: dict[int, str] = {}
        for at, one in enumerate(documents):
            draft, rows = _draft(one), named.get(encode(one.name or ""), [])
            text, living = encode(draft.text), [row for row in rows if row[1] is not None]
            same = [row for row in living if row[1] == text]
            if same:
                found.take(at, *same[-1])
                found.noted.add(at)
            elif len(living) < len(rows) and not new:
                found.records[at] = None
                found.noted.add(at)
            else:
                unknown[at] = encode(draft.framework_id or "")
        fids = self._fids(set(unknown.values()))
        for at, fid in unknown.items():
            held = fids.get(fid)
            if held is not None and held[1] == encode(_draft(documents[at]).text):
                found.take(at, *held)
        return found

    def mark(self, found: _Found) -> None:
        """Take those for noted of which anything is noted at this place, and what may not be used."""
        ids = sorted({one for one in found.records.values() if one})
        rows = self._tx.all(
            "select distinct record from elsewhere "
            "where ws = :ws and place = :place and record in :ids",
            ws=self._ws,
            place=self._place,
            ids=ids,
        )
        there = {None, *(row[0] for row in rows)}
        found.noted |= {at for at, one in found.records.items() if one in there}

    def noted(self, names: set[str]) -> set[str]:
        """Return those of the encoded ids that are noted."""
        return {one for one, rows in self._named(names).items() if rows}

    def _named(self, names: set[str]) -> dict[str, list[tuple[int, str | None, bool]]]:
        """Return record, text (None: it is gone) and usability by the id there, oldest first."""
        found: dict[str, list[tuple[int, str | None, bool]]] = {}
        for one in names:
            rows = self._tx.all(
                f"select e.record, r.text, {R_USABLE} from elsewhere e left join record r "
                "on r.ws = :ws and r.id = e.record "
                "where e.ws = :ws and e.place = :place and e.name = :name order by e.record",
                ws=self._ws,
                place=self._place,
                name=one,
                at=self._at,
            )
            found[one] = [(record, text, bool(usable)) for record, text, usable in rows]
        return found

    def _fids(self, fids: set[str]) -> dict[str, tuple[int, str, bool]]:
        """Return record, text and usability of each document's newest version by framework id."""
        found: dict[str, tuple[int, str, bool]] = {}
        for one in fids:
            row = self._tx.one(
                f"select r.id, r.text, {R_USABLE} from record r where r.ws = :ws "
                "and r.thread = '' and r.fid = :fid order by r.version desc limit 1",
                ws=self._ws,
                fid=one,
                at=self._at,
            )
            if row is not None:
                found[one] = (row[0], row[1], bool(row[2]))
        return found


def _draft(one: Foreign) -> Draft:
    assert one.atom.draft is not None  # noqa: S101 - as was checked
    return one.atom.draft


def _check(place: str, documents: Sequence[Foreign]) -> None:
    check_text(place, "place=")
    check_iterable(documents, "documents=")
    for one in documents:
        check_kind(one, Foreign, "One of documents=")
        if one.name is not None:
            check_text(one.name, "The id of a document")
        check_kind(one.atom, Atom, "atom=")
        draft = one.atom.draft
        if draft is None or draft.thread is not None:
            raise InvalidInput("A document has a draft, and that no thread.")
        check_text(one.source, "The source of a document")


def _screen(engine: Engine, documents: Sequence[Foreign]) -> None:
    """Let documents be compared with what of them was stored: see Entering."""
    screened = engine.entering.screened([_draft(one) for one in documents])
    for one, draft in zip(documents, screened, strict=True):
        one.atom.draft = draft


def _identify(scope: Scope, documents: Sequence[Foreign]) -> None:
    """Give each document's draft the keyed digest of its source and text as its framework id."""
    for one in documents:
        draft = _draft(one)
        said = f"document:{len(one.source)}:{one.source}{draft.text}".encode(
            "utf-8", "surrogatepass"
        )
        named = hmac.digest(scope.secret, said, hashlib.sha256).hex()
        one.atom.draft = replace(draft, framework_id=named)


def _unchanged(tx: Tx, ws: int, ids: Sequence[int | None], said: Sequence[str]) -> set[int]:
    """Return the records that hold just what was to be stored: not what a redaction left."""
    texts_of = {id_: text for id_, text in zip(ids, said, strict=True) if id_}
    rows = tx.all(
        "select id, text from record where ws = :ws and id in :ids", ws=ws, ids=sorted(texts_of)
    )
    return {id_ for id_, text in rows if texts_of[id_] == text}


def _note(tx: Tx, ws: int, place: str, named: Iterable[tuple[str | None, int]]) -> None:
    tx.many(
        "insert into elsewhere(ws, place, name, record) values (:ws, :place, :name, :record) "
        "on conflict (ws, place, name, record) do nothing",
        [
            {"ws": ws, "place": encode(place), "name": encode(name or ""), "record": record}
            for name, record in named
        ],
    )


def _drop(tx: Tx, ws: int, place: str, names: Iterable[str], *, only_gone: bool = False) -> None:
    tx.many(
        "delete from elsewhere where ws = :ws and place = :place and name = :name "
        "and (:living = 1 or not exists "
        "(select 1 from record r where r.ws = :ws and r.id = elsewhere.record))",
        [
            {"ws": ws, "place": encode(place), "name": encode(one), "living": 0 if only_gone else 1}
            for one in names
        ],
    )
