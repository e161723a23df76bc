"""Retention: what has expired is forgotten, not hidden. Reached as `memory.expiry`.

A record is out of every read from the moment it expires; the sweep then forgets it like anything else:
with all that was made from it, what can be rebuilt rebuilt, a receipt, and never what a hold keeps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from . import governing, provenance
from .arguments import check_callable, check_number, check_whole
from .engine import Engine
from .errors import DellmError, InvalidInput, NothingMatched
from .plan import STRICT, Reach
from .records import from_micros

if TYPE_CHECKING:
    from .receipts import Receipt

AT_ONCE = 1_000  # expired records that one forget takes
# All of Dep but what has a basis and a class of its own, and what was made of such records alone.
EXPIRY = Reach("expiry")
Progress = Callable[[int, int], object]


class Forgetter(Protocol):
    """What a sweep forgets with: a memory."""

    def forget(self, *, ids: list[int], reach: Reach, scrub: bool, guard: bool, by: str) -> Receipt:
        """As Memory.forget."""

    def scrub(self) -> object:
        """As Memory.scrub."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did: how many records had expired, how many went in all, by which receipts.

    `kept` counts the expired ones that are still there, since a hold keeps them.
    """

    expired: int
    gone: int
    kept: int
    receipts: tuple[int, ...]

    def __str__(self) -> str:
        said = f"{self.expired} expired record(s), {self.gone} gone with what was made from them"
        held = f", {self.kept} kept by a hold" if self.kept else ""
        return f"{said}, in {len(self.receipts)} forget(s){held}"


class Expiry:
    """What of a workspace expires, and the sweep that forgets it. Thread- and process-safe."""

    def __init__(self, engine: Engine, workspace: str, memory: Forgetter) -> None:
        """Use Memory.expiry instead."""
        self._engine = engine
        self.workspace = workspace
        self._memory = memory

    def due(self) -> int:
        """Return how many records have expired and are still stored."""
        with self._engine.reading(self.workspace) as (tx, scope):
            row = tx.one(
                "select count(*) from record where ws = :ws and retention_until is not null "
                "and retention_until <= :at",
                ws=scope.ws,
                at=self._engine.options.clock(),
            )
        return 0 if row is None else int(row[0])

    def next(self) -> datetime | None:
        """Return when the next record expires that has not yet; None where none does."""
        with self._engine.reading(self.workspace) as (tx, scope):
            row = tx.one(
                "select min(retention_until) from record where ws = :ws "
                "and retention_until is not null and retention_until > :at",
                ws=scope.ws,
                at=self._engine.options.clock(),
            )
        return None if row is None or row[0] is None else from_micros(row[0])

    def sweep(
        self, *, most: int | None = None, scrub: bool = True, progress: Progress | None = None
    ) -> Swept:
        """Forget what has expired, or the `most` that expired first; return what was done.

        Each thousand or so is one forget with a receipt, so it may be broken off anywhere and goes on
        where it was; several processes may sweep at once. No guard is set: what has expired may be
        said again. `scrub`: clean the files up at the end, where anything went. `progress(done,
        total)` is called after each. Raises StorageError, InvalidInput.
        """
        if most is not None:
            check_whole(most, "most=")
        if progress is not None:
            check_callable(progress, "progress=")
        if not isinstance(scrub, bool):
            raise InvalidInput("scrub= is True or False.")
        left = self.due() if most is None else min(self.due(), max(most, 0))
        swept = _Sweep(self._engine, self.workspace, self._memory, left)
        while swept.step():
            if progress is not None:
                progress(swept.looked_at, left)
        if scrub and swept.receipts:
            with suppress(DellmError):  # it is forgotten; the receipts say what was not proved yet
                self._memory.scrub()
        return swept.done()

    def every(self, seconds: float) -> Callable[[], None]:
        """Sweep now and every so often in a thread of its own; return what stops it.

        It ends with the memory or the process. A sweep that fails is tried again at the next time.
        Raises InvalidInput for less than a second.
        """
        check_number(seconds, "seconds")
        if seconds < 1:
            raise InvalidInput("seconds is one at least.")
        stop = threading.Event()

        def run() -> None:
            while not self._engine.closed:
                with suppress(DellmError):
                    self.sweep()
                if stop.wait(seconds):
                    return

        threading.Thread(target=run, name="dellm-sweep", daemon=True).start()
        return stop.set


class _Sweep:
    """One pass over what has expired, in the order in which it did."""

    def __init__(self, engine: Engine, workspace: str, memory: Forgetter, left: int) -> None:
        self._engine, self._workspace, self._memory = engine, workspace, memory
        self._left = left
        self._after = (-(1 << 62), 0)
        self.looked_at = self.kept = 0
        self.receipts: dict[int, int] = {}

    def step(self) -> bool:
        """Forget the next expired records; tell whether there were any."""
        rows = self._next() if self._left > 0 else []
        if not rows:
            return False
        self._after = (rows[-1][0], rows[-1][1])
        self._left -= len(rows)
        self.looked_at += len(rows)
        ids = [id_ for _, id_ in rows]
        self._forget(self._origins(ids))
        self._forget(self._still_there(ids))
        self.kept += len(self._still_there(ids))
        return True

    def _forget(self, ids: list[int]) -> None:
        if ids:
            with suppress(NothingMatched):  # another sweep was faster, or all are held
                reach = self._reach(ids)
                receipt = self._memory.forget(
                    ids=ids, reach=reach, scrub=False, guard=False, by="system"
                )
                self.receipts.setdefault(receipt.number, len(receipt))

    def _reach(self, ids: list[int]) -> Reach:
        """Return how far the end of records reaches: not to what is kept on a basis of its own."""
        with self._engine.reading(self._workspace) as (tx, scope):
            nodes = provenance.dependents(tx, scope.ws, ids)
            edges = provenance.edges_from(tx, scope.ws, nodes)
            own = governing.on_their_own(tx, scope.ws, ids, nodes, edges)
        return EXPIRY if own else STRICT

    def _origins(self, ids: list[int]) -> list[int]:
        """Return the records that were made from none of the others.

        Those others end because a source does: they go as its dependents, so that what can be made
        anew from the sources that stay is.
        """
        with self._engine.reading(self._workspace) as (tx, scope):
            reached = provenance.dependents(tx, scope.ws, ids)
            edges = provenance.edges_from(tx, scope.ws, reached)
        made = {edge.child for edge in edges}
        return [one for one in ids if one not in made]

    def done(self) -> Swept:
        """Return what was done."""
        gone = sum(self.receipts.values())
        return Swept(self.looked_at, gone, self.kept, tuple(self.receipts))

    def _next(self) -> list[tuple[int, int]]:
        with self._engine.reading(self._workspace) as (tx, scope):
            rows = tx.all(
                "select retention_until, id from record where ws = :ws "
                "and retention_until is not null and retention_until <= :now "
                "and (retention_until > :at or (retention_until = :at and id > :id)) "
                "order by retention_until, id limit :most",
                ws=scope.ws,
                now=self._engine.options.clock(),
                at=self._after[0],
                id=self._after[1],
                most=min(AT_ONCE, self._left),
            )
        return [(row[0], row[1]) for row in rows]

    def _still_there(self, ids: list[int]) -> list[int]:
        with self._engine.reading(self._workspace) as (tx, scope):
            rows = tx.all(
                "select id from record where ws = :ws and id in :ids order by id",
                ws=scope.ws,
                ids=ids,
            )
        return [row[0] for row in rows]
