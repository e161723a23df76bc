"""Messages that their thread no longer shows: dropped from it, or archived.

Hiding is not forgetting. The record stays, with all that was made from it, so that a later forget
finds what it has to; no read of the thread gives it any more, and one that was dropped is found by
no search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import LiteralString

from .arguments import check_choice
from .database import Scope, Tx
from .encoding import encode

DROPPED, ARCHIVED = 1, 2
# Which messages of a thread are meant, by name.
AMONG: Mapping[str, LiteralString] = {
    "shown": "not exists (select 1 from hidden h where h.ws = :ws and h.record = record.id)",
    "archived": "exists (select 1 from hidden h where h.ws = :ws and h.record = record.id and h.how = 2)",
    "kept": "not exists (select 1 from hidden h where h.ws = :ws and h.record = record.id and h.how = 1)",
    "all": "1 = 1",
}


def among(name: str) -> LiteralString:
    """Return the condition on a record that is meant; InvalidInput for another name."""
    check_choice(name, AMONG, "among=")
    return AMONG[name]


def hide(tx: Tx, ws: int, records: Iterable[int], how: int) -> None:
    """Hide messages; one that is hidden already is hidden as said now."""
    tx.many(
        "insert into hidden(ws, record, how) "
        "select ws, id, :how from record where ws = :ws and id = :record "
        "on conflict (ws, record) do update set how = excluded.how",
        [{"ws": ws, "record": one, "how": how} for one in dict.fromkeys(records)],
    )


def show(tx: Tx, scope: Scope, thread: str, records: Sequence[int]) -> None:
    """Let a thread show messages of it again."""
    tx.run(
        "delete from hidden where ws = :ws and record in "
        "(select id from record where ws = :ws and id in :ids and thread = :thread)",
        ws=scope.ws,
        ids=list(records),
        thread=encode(thread),
    )


def of_thread(tx: Tx, scope: Scope, thread: str) -> set[int]:
    """Return the messages of a thread that are not dropped from it."""
    rows = tx.all(
        "select id from record where ws = :ws and thread = :thread and kind in ('message', 'tool') "
        f"and audience = 0 and {AMONG['kept']}",
        ws=scope.ws,
        thread=encode(thread),
    )
    return {row[0] for row in rows}


def show_only(tx: Tx, scope: Scope, thread: str, records: Sequence[int]) -> None:
    """Let a thread show only these of its messages: all others are dropped from it."""
    hide(tx, scope.ws, of_thread(tx, scope, thread).difference(records), DROPPED)
    show(tx, scope, thread, records)


def settle(tx: Tx, ws: int, erased: Sequence[int], versions: Mapping[int, int]) -> None:
    """Let go of erased records; what stands in the place of one is hidden as that was."""
    tx.many(
        "insert into hidden(ws, record, how) "
        "select ws, :new, how from hidden where ws = :ws and record = :old",
        [{"ws": ws, "old": old, "new": new} for old, new in versions.items()],
    )
    tx.run("delete from hidden where ws = :ws and record in :ids", ws=ws, ids=list(erased))
