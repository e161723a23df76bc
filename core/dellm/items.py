"""Values kept by name: the items of long-term stores and the entries of caches.

Each value is a record of kind "state" with its parents, so a forget that reaches it takes the item
along, whatever its name is. A value that is replaced or deleted leaves its record empty: what was
made from it stays tied to what it was made from. Reached as `memory.items`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, LiteralString

from . import audiences, exposure_rows, exposures, governing, item_rows, reading
from .arguments import (
    check_callable,
    check_flag,
    check_iterable,
    check_kind,
    check_number,
    check_text,
    check_whole,
    texts,
    whole_numbers,
)
from .cells import Atom, Sources
from .checkpoints import Written
from .database import Vector
from .desk import Desk
from .embedding import Embedder
from .encoding import decode, encode
from .engine import Engine
from .errors import InvalidInput
from .item_search import MOST, Finder, Item, Space, Wanted, Where, between, labels, stored
from .item_vectors import ItemVectors
from .plan import in_process
from .records import HIDDEN, Draft, Record
from .run_writes import RunWrites
from .settling import Settling

MINUTE = 60_000_000  # microseconds
LONGEST = 1e11  # minutes: 190 thousand years, the end of which a database still holds

Name = tuple[Space, str]


@dataclass(frozen=True, slots=True)
class Keep:
    """A value to keep under a name, or with `atom` None one to delete.

    `ttl` is how many minutes it lives after it was last written, or read with refresh. `vectors`
    are one float32 vector of shape (dimensions,) for each indexed field, made by `embedder`,
    "provider/model": None for one that nobody else runs.
    """

    space: Space
    name: str = field(repr=False)
    atom: Atom | None = None
    ttl: float | None = None
    vectors: Sequence[Vector] = field(default=(), repr=False)
    embedder: str | None = None


class Items:
    """The named values of one workspace, by family ("store", "llm", "node"). Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.items instead."""
        self._engine = engine
        self.workspace = workspace
        self._runs = RunWrites(engine, workspace)
        self._vectors = ItemVectors()

    @property
    def embedder(self) -> Embedder | None:
        """What the memory embeds with; its vectors may also be those of items."""
        return self._engine.embedder

    # writing

    def put(
        self, family: str, keeps: Sequence[Keep], *, thread: str = "", trusted: int = -1
    ) -> Written:
        """Keep or delete values, in one transaction; the last of one name counts.

        `thread` is where they were made, `trusted` the generation of which the record ids are that
        their atoms are made from. A value made from what was erased meanwhile is refused: then what
        was kept under its name stays. Raises InvalidInput, StorageError.
        """
        _check(family, thread)
        check_iterable(keeps, "keeps=")
        for one in keeps:
            _check_keep(one)
        check_whole(trusted, "trusted=")
        last = {(one.space, one.name): one for one in keeps}
        # A write of items is one of a run, as that of a checkpoint is.
        with self._runs.open(thread, trusted) as writing:
            settling = Settling(writing.desk, writing)
            atoms = [one.atom for one in last.values() if one.atom is not None]
            _refuse_others(writing.desk, family, list(last))
            said = {one: one.draft for one in atoms}
            settling.settle(atoms)
            _keep_all(writing.desk, family, [_as_stored(one, said) for one in last.values()])
            refused = any(one.id is None for one in atoms)
            return Written(writing.generation, refused, settling.inexact)

    def tie(self, records: Sequence[int], parents: Sequence[int | None]) -> list[int]:
        """Let values, given by their records, depend on more records, in one transaction.

        They stay as they were kept, in records that depend on those before: these are returned.
        Where one of `parents` is not there (None: it was refused) the values are deleted. A record
        that is no value's any more is left alone. Raises InvalidInput.
        """
        check_iterable(parents, "parents=")
        known = whole_numbers([0 if one is None else one for one in parents], "parents=")
        records = whole_numbers(records, "records=")
        with self._runs.open("", -1) as writing:
            tx, ws, desk = writing.tx, writing.desk.scope.ws, writing.desk
            named = {row[3]: row for row in item_rows.standing(tx, ws, records)}
            found = reading.several(tx, writing.desk.scope, list(named), writing.desk.at)
            again = {id_: _made_of_more(one, known) for id_, one in found.items()}
            Settling(writing.desk, writing).settle(again.values())
            for id_, atom in again.items():
                if atom.id is None:
                    item_rows.delete(tx, ws, decode(named[id_][0]), [named[id_][1:4]], desk.at)
                else:
                    findable = found[id_].kind not in HIDDEN
                    item_rows.move(
                        tx, ws, id_, atom.id, desk.at, findable=findable, holds=desk.holds
                    )
            return [one.id for one in again.values() if one.id is not None]

    def sweep(self, family: str) -> int:
        """Delete the values whose time is over; return how many."""
        _check(family)
        at = self._engine.options.clock()
        return self._remove(family, "expires_at <= :at", at=at)

    def clear(self, family: str, prefix: Space = ()) -> int:
        """Delete the values in a space and in those below it; return how many."""
        _check(family)
        low, high = between(prefix)
        return self._remove(family, "space between :low and :high", low=low, high=high)

    def _remove(self, family: str, which: LiteralString, **values: object) -> int:
        with self._engine.writing(self.workspace) as (tx, scope):
            rows = tx.all(
                "select space, name, record from item "
                f"where ws = :ws and family = :family and {which} and not exists "
                "(select 1 from hold_wait q where q.ws = :ws and q.id = item.record)",
                ws=scope.ws,
                family=encode(family),
                **values,
            )
            mine = audiences.asked_for(tx, scope, [row[2] for row in rows])
            rows = [row for row in rows if row[2] in mine]
            item_rows.delete(tx, scope.ws, family, rows, self._engine.options.clock())
        return len(rows)

    # reading

    def get(
        self, family: str, names: Sequence[Name], *, refresh: bool = False
    ) -> list[Item | None]:
        """Return the values under the names, None for each that is not there.

        `refresh` lets those that have a time to live begin it anew. Raises InvalidInput.
        """
        _check(family)
        check_iterable(names, "names=")
        check_flag(refresh, "refresh=")
        wanted = list(names)
        for one in wanted:
            _check_name(one)
        at = self._engine.options.clock()
        with self._engine.reading(self.workspace) as (tx, scope):
            finder = Finder(tx, scope, family, (), at)
            found = [finder.named(*one, last=one is wanted[-1]) for one in wanted]
        if refresh:
            self._refresh(family, [one for one in found if one is not None])
        return found

    def search(
        self,
        family: str,
        prefix: Space = (),
        *,
        near: Vector | None = None,
        embedder: str | None = None,
        where: Where | None = None,
        holding: Sequence[Sequence[str]] = (),
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[Item]:
        """Return the values in a space and below it, the newest first.

        With `near`, float32 of shape (dimensions,): the nearest first, then those without vectors.
        `embedder` is who made it, as in Keep: a query that an outside one was sent is counted.
        `where` says of a record's text whether it counts; it must not call the memory. It is only
        asked of texts that hold one text of each group of `holding`: that the database looks at, which
        is faster. Raises InvalidInput.
        """
        _check(family)
        check_flag(refresh, "refresh=")
        for one, name in ((limit, "limit="), (offset, "offset=")):
            check_whole(one, name)
            if one < 0:
                raise InvalidInput(f"{name} is negative.")
        if embedder is not None:
            check_text(embedder, "embedder=")
        if where is not None:
            check_callable(where, "where=")
        if near is not None and embedder is not None:
            exposures.count_query(self._engine, self.workspace, embedder)
        wanted = Wanted(min(offset + limit, MOST), where, _groups(holding))
        taken = self._found(family, prefix, near, wanted)[min(offset, MOST) :]
        if refresh:
            self._refresh(family, taken)
        return taken

    def _found(self, family: str, prefix: Space, near: Vector | None, wanted: Wanted) -> list[Item]:
        at = self._engine.options.clock()
        if near is None:
            with self._engine.reading(self.workspace) as (tx, scope):
                first = Finder(tx, scope, family, prefix, at).first(wanted)
            if first is not None:
                return first
        with self._engine.reading(self.workspace) as (tx, scope):
            finder = Finder(tx, scope, family, prefix, at)
            every = finder.newest(wanted)
            if near is not None:
                every = finder.nearest(self._vectors, near, wanted)
            return list(islice(every, wanted.need))

    def spaces(self, family: str) -> dict[Space, int]:
        """Return the spaces that hold a value, sorted, each with the record of one of its values."""
        _check(family)
        with self._engine.reading(self.workspace) as (tx, scope):
            rows = tx.all(
                _SPACES,
                ws=scope.ws,
                family=encode(family),
                at=self._engine.options.clock(),
            )
        return dict(sorted((labels(space), record) for space, record in rows if record is not None))

    def digest(self, parts: Sequence[str]) -> str:
        """Return a digest under the workspace's key: a name that says nothing of what it names.

        The workspace is created where it was not yet: before, it has no key.
        """
        said = [one.encode("utf-8", "surrogatepass") for one in texts(parts, "parts=")]
        with self._engine.reading(self.workspace) as (_, scope):
            secret = scope.secret
        if not secret:
            with self._engine.writing(self.workspace) as (_, scope):
                secret = scope.secret
        framed = b"".join(len(one).to_bytes(8, "big") + one for one in said)
        return hmac.digest(secret, b"item:" + framed, hashlib.sha256).hex()

    def _refresh(self, family: str, items: Collection[Item]) -> None:
        living = [one for one in items if one.ttl is not None]
        if not living:
            return
        at = self._engine.options.clock()
        with self._engine.writing(self.workspace) as (tx, scope):
            tx.many(
                "update item set expires_at = :until where ws = :ws and family = :family "
                "and space = :space and name = :name and record = :record",
                [
                    {
                        "ws": scope.ws,
                        "family": encode(family),
                        "space": stored(one.space),
                        "name": encode(one.name),
                        "record": one.record.id,
                        "until": at + int((one.ttl or 0) * MINUTE),
                    }
                    for one in living
                ],
            )


def _refuse_others(desk: Desk, family: str, names: Sequence[Name]) -> None:
    """Raise InvalidInput where a name has a value that is not for who writes: it stays."""
    if not desk.governed & governing.AUDIENCES:
        return
    for space, name in names:
        row = desk.tx.one(
            "select r.audience = 0 from item i join record r on r.ws = :ws and r.id = i.record "
            "where i.ws = :ws and i.family = :family and i.space = :space and i.name = :name",
            ws=desk.scope.ws,
            family=encode(family),
            space=stored(space),
            name=encode(name),
        )
        if row is not None and not row[0]:
            raise InvalidInput(
                "A value of this name is kept for another audience.",
                remedy="Use a namespace of its own for what is not for everybody.",
            )


# One step for each space, however many items it holds.
_SPACES = (
    "with recursive one(space) as (select min(space) from item where ws = :ws and family = :family "
    "union all select (select min(i.space) from item i where i.ws = :ws and i.family = :family "
    "and i.space > one.space) from one where one.space is not null) "
    "select space, (select i.record from item i "
    "join record r on r.ws = :ws and r.id = i.record and r.status = 0 and r.audience = 0 where i.ws = :ws "
    "and i.family = :family and i.space = one.space "
    "and (i.expires_at is null or i.expires_at > :at) limit 1) from one where space is not null"
)


def _made_of_more(old: Record, parents: Sequence[int]) -> Atom:
    """Return an atom that holds what a record does, made of that and of more records."""
    draft = Draft(
        old.text, role=old.role, kind=old.kind, payload=old.payload, metadata=dict(old.metadata)
    )
    also = [Atom(known=one) for one in dict.fromkeys((old.id, *parents))]
    return Atom(draft, made=Sources(also=also, inexact=True))


def _check(family: str, thread: str = "") -> None:
    check_text(family, "family=")
    check_text(thread, "thread=")


def _check_keep(one: Keep) -> None:
    check_kind(one, Keep, "One of keeps=")
    stored(one.space)
    check_text(one.name, "A name")
    if one.atom is not None:
        check_kind(one.atom, Atom, "atom=")
    if one.embedder is not None:
        check_text(one.embedder, "embedder=")
    if one.ttl is not None:
        check_number(one.ttl, "ttl=")
        if abs(one.ttl) > LONGEST:
            raise InvalidInput(f"ttl= is more than {LONGEST:.0e} minutes.")


def _check_name(one: Name) -> None:
    if type(one) is not tuple or len(one) != 2:
        raise InvalidInput("One of names= is no space and name.")
    check_text(one[1], "A name")


def _groups(holding: Sequence[Sequence[str]]) -> list[list[str]]:
    check_iterable(holding, "holding=")
    found = [texts(one, "A group of holding=") for one in holding]
    if not all(found):
        raise InvalidInput("A group of holding= is empty.")
    return found


def _keep_all(desk: Desk, family: str, keeps: Collection[Keep]) -> None:
    """Put values in the place of those before, or delete these; what was refused changes nothing."""
    given = [one for one in keeps if one.atom is None or one.atom.id is not None]
    rows = [_row(desk, family, one) for one in given]
    item_rows.make_way(desk.tx, desk.scope.ws, rows, desk.at, desk.holds)
    kept = [(one, row) for one, row in zip(given, rows, strict=True) if one.atom is not None]
    item_rows.drop(desk.tx, [row for row in rows if not row["record"]])
    item_rows.keep(desk.tx, [row for _, row in kept])
    ItemVectors.add(desk.tx, desk.scope.ws, [(row["record"], one.vectors) for one, row in kept])
    for one, row in kept:
        if one.vectors and one.embedder is not None and not in_process(one.embedder):
            who = (one.embedder, True)
            exposure_rows.note(desk.tx, desk.scope.ws, [row["record"]], who, desk.at)


def _as_stored(one: Keep, said: Mapping[Atom, Draft | None]) -> Keep:
    """Return a value without its vectors if not all of it was stored: they are made of all of it."""
    if one.vectors and one.atom is not None and one.atom.draft is not said[one.atom]:
        return replace(one, vectors=())
    return one


def _row(desk: Desk, family: str, one: Keep) -> dict[str, Any]:
    """Return what is kept under a name; record 0 for nothing."""
    return {
        "ws": desk.scope.ws,
        "family": encode(family),
        "space": stored(one.space),
        "name": encode(one.name),
        "record": 0 if one.atom is None else one.atom.id,
        "ttl": one.ttl,
        "until": None if one.ttl is None else desk.at + int(one.ttl * MINUTE),
        "at": desk.at,
    }
