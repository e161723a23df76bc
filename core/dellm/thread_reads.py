"""Reading threads of messages outside of any graph, in order; each read is one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import LiteralString

from . import discarding, hiding
from .arguments import check_text, check_whole, whole_numbers
from .database import USABLE, Scope, Tx
from .encoding import encode
from .engine import Engine
from .restoring import Held, held
from .storing import check_thread

NEVER = 0  # a thread that was never ended
_COLUMNS = "id, kind, role, text, fid, payload, metadata, retention_until"
# Said only where it is asked: with an "or" the index would be read from the end of the thread on.
_BEFORE = (
    "and place < coalesce((select b.place from record b where b.ws = :ws and b.id = :before), "
    "cast(:before as bigint))"
)
_SPOKEN = f"kind in ('message', 'tool') and {USABLE}"


@dataclass(frozen=True, slots=True)
class Said:
    """The messages of a thread, oldest first, as of one moment.

    `generation` is the workspace's then; `ended` when the thread was last ended, in microseconds
    since 1970 (NEVER: it was not). `complete`: there is none before the first of them.
    """

    messages: list[Held] = field(repr=False)
    generation: int
    ended: int
    complete: bool = True


class ThreadReads:
    """The threads of messages of one workspace, as they are read. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        self._engine = engine
        self.workspace = workspace

    def read(
        self,
        thread: str,
        *,
        last: int | None = None,
        before: int | None = None,
        among: str = "shown",
    ) -> Said:
        """Return the messages of a thread, or its newest `last`; only those before a record's id.

        `among`: those the thread shows, the "archived" ones, "kept" (both), or "all": what was
        dropped as well. Raises InvalidInput, StorageError.
        """
        check_name(thread)
        for name, number in (("last=", last), ("before=", before)):
            if number is not None:
                check_whole(number, name)
        most = (1 << 62) if last is None else max(last, 0)
        with self._engine.reading(self.workspace) as (tx, scope):
            rows = tx.all(
                f"select {_COLUMNS} from record where ws = :ws and thread = :thread and {_SPOKEN} "
                f"and {hiding.among(among)} {'' if before is None else _BEFORE} "
                "order by place desc, id desc limit :most",
                ws=scope.ws,
                thread=encode(thread),
                at=self._engine.options.clock(),
                most=most,
                **({} if before is None else {"before": before}),
            )
            rows.reverse()
            generation, ended = _standing(tx, scope, thread)
            return Said(held(rows), generation, ended, len(rows) < most)

    def after(self, thread: str, record: int, most: int) -> list[Held]:
        """Return up to `most` of a thread's messages that come next after a record."""
        check_name(thread)
        check_whole(record, "record=")
        check_whole(most, "most=")
        return self._held(
            thread,
            "and place > (select a.place from record a where a.ws = :ws and a.id = :record) "
            "order by place, id limit :most",
            record=record,
            most=max(most, 0),
        )

    def some(self, thread: str, ids: Sequence[int]) -> list[Held]:
        """Return those of a thread's messages, in its order, of which the ids are given."""
        check_name(thread)
        ids = whole_numbers(ids, "ids=")
        return self._held(thread, "and id in :ids order by place, id", ids=ids)

    def preceding(self, thread: str, ids: Sequence[int], role: str) -> dict[int, int]:
        """Return for messages of a thread the nearest one of a role before each, where there is one."""
        check_name(thread)
        ids = whole_numbers(ids, "ids=")
        check_text(role, "role=")
        with self._engine.reading(self.workspace) as (tx, scope):
            rows = tx.all(
                "select m.id, (select record.id from record where ws = :ws and thread = :thread "
                f"and role = :role and place < m.place and {_SPOKEN} "
                f"and {hiding.AMONG['shown']} order by place desc limit 1) "
                "from record m where m.ws = :ws and m.id in :ids and m.thread || '' = :thread",
                ws=scope.ws,
                thread=encode(thread),
                role=encode(role),
                ids=ids,
                at=self._engine.options.clock(),
            )
            return {row[0]: row[1] for row in rows if row[1] is not None}

    def spoken_by(self, thread: str, role: str) -> list[Held]:
        """Return the messages of one role in a thread, oldest first."""
        check_name(thread)
        check_text(role, "role=")
        return self._held(thread, "and role = :role order by place, id", role=encode(role))

    def _held(self, thread: str, rest: LiteralString, **values: object) -> list[Held]:
        with self._engine.reading(self.workspace) as (tx, scope):
            rows = tx.all(
                f"select {_COLUMNS} from record where ws = :ws and thread = :thread and {_SPOKEN} "
                f"and {hiding.AMONG['shown']} {rest}",
                ws=scope.ws,
                thread=encode(thread),
                at=self._engine.options.clock(),
                **values,
            )
            return held(rows)


def _standing(tx: Tx, scope: Scope, thread: str) -> tuple[int, int]:
    """Return the workspace's generation, and when the thread was last ended."""
    row = tx.one("select generation from workspace where ws = :ws", ws=scope.ws)
    if row is None:
        return 0, NEVER
    return int(row[0]), discarding.ended_at(tx, scope, thread) or NEVER


def check_name(thread: str) -> None:
    """Raise InvalidInput unless this can be a thread's name."""
    check_text(thread, "thread=")
    check_thread(thread)
