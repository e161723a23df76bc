"""Values kept by name: the items of long-term stores and the entries of caches.

Each value is a record of kind "state" with its parents, so a forget that reaches it takes the item
along, whatever its name is. A value that is replaced or deleted leaves its record empty: what was
made from it stays tied to what it was made from. Reached as `memory.items`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from . import item_rows, reading
from .arguments import (
    check_callable,
    check_flag,
    check_iterable,
    check_kind,
    check_number,
    check_text,
    check_whole,
    texts,
)
from .cells import Atom
from .checkpoints import Checkpoints, Written
from .database import Row, Scope, Tx, Vector
from .embedding import Embedder
from .encoding import decode, encode
from .engine import Engine
from .errors import InvalidInput
from .item_vectors import ItemVectors
from .records import Record
from .settling import Desk, Settling

MINUTE = 60_000_000  # microseconds
PAGE = 256  # items looked at before more are read

Space = tuple[str, ...]
Name = tuple[Space, str]
Where = Callable[["Item"], bool]


@dataclass(frozen=True, slots=True)
class Keep:
    """A value to keep under a name, or with `atom` None one to delete.

    `ttl` is how many minutes it lives after it was last written, or read with refresh. `vectors`
    are one float32 vector of shape (dimensions,) for each indexed field.
    """

    space: Space
    name: str = field(repr=False)
    atom: Atom | None = None
    ttl: float | None = None
    vectors: Sequence[Vector] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Item:
    """A value that is kept, with the record that holds it; times in microseconds since 1970.

    `score` is the cosine in [-1, 1] of the best of its vectors, None without a query or vectors.
    """

    space: Space
    name: str = field(repr=False)
    record: Record
    created_at: int
    updated_at: int
    ttl: float | None = None
    score: float | None = None


class Items:
    """The named values of one workspace, by family ("store", "llm", "node"). Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.items instead."""
        self._engine = engine
        self.workspace = workspace
        self._checkpoints = Checkpoints(engine, workspace)
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
        with self._checkpoints._writing(thread, trusted) as writing:  # noqa: SLF001
            settling = Settling(writing.desk, writing)
            atoms = [one.atom for one in last.values() if one.atom is not None]
            settling.settle(atoms)
            for one in last.values():
                _keep(writing.desk, family, one)
            refused = any(one.id is None for one in atoms)
            return Written(writing.generation, refused, settling.inexact)

    def sweep(self, family: str) -> int:
        """Delete the values whose time is over; return how many."""
        _check(family)
        with self._engine.writing(self.workspace) as (tx, scope):
            rows = tx.all(
                "select space, name, record from item where ws = :ws and family = :family "
                "and expires_at <= :at",
                ws=scope.ws,
                family=encode(family),
                at=self._engine.options.clock(),
            )
            item_rows.delete(tx, scope.ws, family, rows)
        return len(rows)

    def clear(self, family: str, prefix: Space = ()) -> int:
        """Delete the values in a space and in those below it; return how many."""
        _check(family)
        low, high, exact = _range(prefix)
        with self._engine.writing(self.workspace) as (tx, scope):
            rows = tx.all(
                "select space, name, record from item where ws = :ws and family = :family "
                "and (space = :exact or (space >= :low and space < :high))",
                ws=scope.ws,
                family=encode(family),
                exact=exact,
                low=low,
                high=high,
            )
            item_rows.delete(tx, scope.ws, family, rows)
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
        wanted = [_name(one) for one in names]
        with self._engine.reading(self.workspace) as (tx, scope):
            found = [self._one(tx, scope, family, space, name) for space, name in wanted]
        self._refresh(family, [one for one in found if one is not None] if refresh else ())
        return found

    def search(
        self,
        family: str,
        prefix: Space = (),
        *,
        near: Vector | None = None,
        where: Where | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[Item]:
        """Return the values in a space and below it, the newest first.

        With `near`, float32 of shape (dimensions,): the nearest first, then those without vectors.
        `where` says which count; it must not call the memory. Raises InvalidInput.
        """
        _check(family)
        check_flag(refresh, "refresh=")
        for one, name in ((limit, "limit="), (offset, "offset=")):
            check_whole(one, name)
            if one < 0:
                raise InvalidInput(f"{name} is negative.")
        if where is not None:
            check_callable(where, "where=")
        with self._engine.reading(self.workspace) as (tx, scope):
            found = self._found(tx, scope, family, prefix, near)
            taken = _taken(found, where, offset, limit)
        self._refresh(family, taken if refresh else ())
        return taken

    def spaces(self, family: str) -> list[Space]:
        """Return the spaces that hold a value, sorted."""
        _check(family)
        with self._engine.reading(self.workspace) as (tx, scope):
            rows = tx.all(
                "select distinct i.space from item i join record r on r.ws = :ws "
                "and r.id = i.record and r.status in (0, 3) where i.ws = :ws "
                "and i.family = :family and (i.expires_at is null or i.expires_at > :at)",
                ws=scope.ws,
                family=encode(family),
                at=self._engine.options.clock(),
            )
        return sorted(_labels(row[0]) for row in rows)

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

    def _one(self, tx: Tx, scope: Scope, family: str, space: str, name: str) -> Item | None:
        row = tx.one(
            f"select {_COLUMNS} from item where ws = :ws and family = :family "
            "and space = :space and name = :name and (expires_at is null or expires_at > :at)",
            ws=scope.ws,
            family=encode(family),
            space=space,
            name=encode(name),
            at=self._engine.options.clock(),
        )
        return next(iter(self._items(tx, scope, [row])), None) if row else None

    def _items(self, tx: Tx, scope: Scope, rows: Sequence[Row]) -> Iterator[Item]:
        ids = [row[2] for row in rows]
        held = reading.several(tx, scope, ids, self._engine.options.clock())
        for space, name, record, ttl, created, updated in rows:
            if record in held:
                labels = _labels(space)
                yield Item(labels, decode(name), held[record], created, updated, ttl)

    def _found(
        self, tx: Tx, scope: Scope, family: str, prefix: Space, query: Vector | None
    ) -> Iterator[Item]:
        if query is None:
            yield from self._newest(tx, scope, family, prefix)
            return
        rows = {row[2]: row for row in self._rows(tx, scope, family, prefix)}
        scores = self._vectors.scores(tx, scope.ws, query, list(rows))
        order = sorted(rows, key=lambda one: (-scores.get(one, -2.0), -rows[one][5], one))
        for start in range(0, len(order), PAGE):
            page = [rows[one] for one in order[start : start + PAGE]]
            for item in self._items(tx, scope, page):
                yield _scored(item, scores.get(item.record.id))

    def _newest(self, tx: Tx, scope: Scope, family: str, prefix: Space) -> Iterator[Item]:
        start = 0
        while page := self._rows(tx, scope, family, prefix, PAGE, start):
            yield from self._items(tx, scope, page)
            start += PAGE

    def _rows(
        self, tx: Tx, scope: Scope, family: str, prefix: Space, limit: int = 1 << 62, start: int = 0
    ) -> list[Row]:
        low, high, exact = _range(prefix)
        return tx.all(
            f"select {_COLUMNS} from item where ws = :ws and family = :family "
            "and (space = :exact or (space >= :low and space < :high)) "
            "and (expires_at is null or expires_at > :at) "
            "order by updated_at desc, record desc limit :limit offset :start",
            ws=scope.ws,
            family=encode(family),
            exact=exact,
            low=low,
            high=high,
            at=self._engine.options.clock(),
            limit=limit,
            start=start,
        )

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
                        "space": _space(one.space),
                        "name": encode(one.name),
                        "record": one.record.id,
                        "until": at + int((one.ttl or 0) * MINUTE),
                    }
                    for one in living
                ],
            )


_COLUMNS = "space, name, record, ttl, created_at, updated_at"


def _check(family: str, thread: str = "") -> None:
    check_text(family, "family=")
    check_text(thread, "thread=")


def _check_keep(one: object) -> None:
    check_kind(one, Keep, "One of keeps=")
    assert isinstance(one, Keep)  # noqa: S101 - as was checked
    _space(one.space)
    check_text(one.name, "A name")
    if one.atom is not None:
        check_kind(one.atom, Atom, "atom=")
    if one.ttl is not None:
        check_number(one.ttl, "ttl=")


def _name(one: Name) -> tuple[str, str]:
    """Return a space and a name as `_one` takes them."""
    if type(one) is not tuple or len(one) != 2:
        raise InvalidInput("One of names= is no space and name.")
    check_text(one[1], "A name")
    return _space(one[0]), one[1]


def _space(space: Space) -> str:
    """Return a space as it is stored: JSON, so that no label can pass for two."""
    return json.dumps(texts(space, "A space"), ensure_ascii=True, separators=(",", ":"))


def _labels(stored: str) -> Space:
    return tuple(json.loads(stored))


def _range(prefix: Space) -> tuple[str, str, str]:
    """Return between what all spaces below a prefix lie, and the prefix's own."""
    exact = _space(prefix)
    if not prefix:
        return "[", "\\", exact  # the character after "["
    return f"{exact[:-1]},", f"{exact[:-1]}-", exact  # the character after ","


def _keep(desk: Desk, family: str, one: Keep) -> None:
    """Put a value in the place of the one before, or delete that."""
    if one.atom is not None and one.atom.id is None:
        return
    key = {"ws": desk.scope.ws, "family": encode(family), "space": _space(one.space)}
    old = desk.tx.one(
        "select space, name, record from item "
        "where ws = :ws and family = :family and space = :space and name = :name",
        name=encode(one.name),
        **key,
    )
    if one.atom is None:
        item_rows.delete(desk.tx, desk.scope.ws, family, [old] if old else [])
        return
    if old is not None and old[2] != one.atom.id:
        item_rows.empty(desk.tx, desk.scope.ws, [old[2]])
    desk.tx.run(
        "insert into item(ws, family, space, name, record, ttl, expires_at, created_at, updated_at) "
        "values (:ws, :family, :space, :name, :record, :ttl, :until, :at, :at) "
        "on conflict (ws, family, space, name) do update set record = excluded.record, "
        "ttl = excluded.ttl, expires_at = excluded.expires_at, updated_at = excluded.updated_at",
        name=encode(one.name),
        record=one.atom.id,
        ttl=one.ttl,
        until=None if one.ttl is None else desk.at + int(one.ttl * MINUTE),
        at=desk.at,
        **key,
    )
    ItemVectors.add(desk.tx, desk.scope.ws, one.atom.id or 0, one.vectors)


def _taken(found: Iterator[Item], where: Where | None, offset: int, limit: int) -> list[Item]:
    taken: list[Item] = []
    for one in found:
        if len(taken) >= offset + limit:
            break
        if where is None or where(one):
            taken.append(one)
    return taken[offset : offset + limit]


def _scored(item: Item, score: float | None) -> Item:
    return Item(
        item.space, item.name, item.record, item.created_at, item.updated_at, item.ttl, score
    )
