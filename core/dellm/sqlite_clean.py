"""Physical clean-up of a SQLite file, and reading it back (DESIGN decision 15).

Order matters: the keyword index is rewritten, the write-ahead log emptied, the file rebuilt from its
living rows, and the log emptied again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from .database import Cleaned

CHUNK = 4 << 20
PATIENCE_MS = 2_000  # a reader that holds on longer is reported, not waited for
READER = "another connection has a read transaction open; clean-up completes after it ends"


def clean(connection: apsw.Connection, progress: Callable[[str], None] | None) -> Cleaned:
    """Compact, checkpoint, rebuild, checkpoint; see Database.clean. Leaves a short busy time-out."""
    steps: list[str] = []
    connection.set_busy_timeout(PATIENCE_MS)
    try:
        for step, what in _STEPS:
            step(connection)
            steps.append(what)
            if progress:
                progress(what)
    except apsw.BusyError:
        return Cleaned(tuple(steps), complete=False, obstacle=READER)
    return Cleaned(tuple(steps), complete=True)


def _compact_terms(connection: apsw.Connection) -> None:
    """Rewrite the keyword index into one new segment.

    FTS5 keeps whole terms as page separators in its own index table, which secure-delete does not
    touch; and ``optimize`` does nothing when there is only one segment already, hence the row that
    makes a second one.
    """
    connection.execute("begin immediate")
    try:
        connection.execute("insert into keyword(rowid, terms) values (0, 'a')")
        connection.execute("insert into keyword(keyword) values ('optimize')")
        connection.execute("insert into keyword(keyword, rowid, terms) values ('delete', 0, 'a')")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _empty_log(connection: apsw.Connection) -> None:
    """Empty the write-ahead log; raise BusyError when a reader of another process prevents it."""
    row = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
    if row and row[0]:
        raise apsw.BusyError


def _rebuild(connection: apsw.Connection) -> None:
    connection.execute("vacuum")


_STEPS = (
    (_compact_terms, "keyword index compacted"),
    (_empty_log, "write-ahead log emptied"),
    (_rebuild, "file rebuilt from living rows"),
    (_empty_log, "write-ahead log emptied again"),
)


def file_chunks(file: str, overlap: int) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of the file and its logs; nothing for a database in memory ("")."""
    if not file:
        return
    main = Path(file)
    for path in (main, *(main.with_name(main.name + end) for end in ("-wal", "-journal"))):
        if path.exists():
            yield from _chunks(path, overlap)


def _chunks(path: Path, overlap: int) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as opened:
        tail = b""
        while block := opened.read(CHUNK):
            yield path.name, tail + block
            tail = block[-overlap:] if overlap else b""
