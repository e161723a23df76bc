"""SQLite used directly through apsw, with the library's own pragmas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from dellm.terms import distinct

from .bare import COLUMNS, DEP, Edges, Written

_SHIFT = 32  # how the library numbers the rows of its keyword index
_INSERT = f"insert into record({COLUMNS}) values ({', '.join('?' * 19)})"
_TERMS = "insert into keyword(rowid, terms) values (?, ?)"
_DROP = "insert into keyword(keyword, rowid, terms) values ('delete', ?, ?)"
_EDGE = "insert into edge(ws, child, pos, parent) values (?, ?, ?, ?)"
_LISTED = "in (select value from json_each(?))"


class BareSqlite:
    """See Bare."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection = connection = apsw.Connection(path)
        connection.set_busy_timeout(30_000)
        for name, value in (("secure_delete", 1), ("synchronous", 1), ("cache_size", -65_536)):
            connection.pragma(name, value)
        connection.pragma("temp_store", 2)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def ws(self, name: str) -> int:
        """Return the number of a workspace."""
        found = self._connection.execute("select ws from workspace where name = ?", (name,))
        return int(found.get)

    def load_edges(self, ws: int, edges: Edges) -> int:
        """Write edges in bulk; return how many."""
        before = self._connection.total_changes()
        self._connection.execute("begin immediate")
        for children, places, parents in edges:
            rows = zip([ws] * len(children), children, places, parents, strict=True)
            self._connection.executemany(_EDGE, rows)
        self._connection.execute("commit")
        return self._connection.total_changes() - before

    def load_vectors(self, ws: int, ids: Sequence[int], rows: Any) -> None:
        """Write vectors in bulk; `rows` is float32 of shape (len(ids), dimensions)."""
        self._connection.execute("begin immediate")
        self._connection.executemany(
            "insert into embedding(ws, id, data) values (?, ?, ?)",
            [(ws, id_, row.tobytes()) for id_, row in zip(ids, rows, strict=True)],
        )
        self._connection.execute("commit")

    def terms(self, ws: int, ids: Sequence[int]) -> list[tuple[int, list[str]]]:
        """Return what the keyword index holds of the records."""
        rows = self._connection.execute(
            f"select id, text from record where ws = ? and id {_LISTED}", (ws, json.dumps(ids))
        )
        return [(id_, distinct(text)) for id_, text in rows]

    def delete(self, ws: int, held: Sequence[tuple[int, list[str]]]) -> int:
        """Delete records, vectors, keyword rows and edges of (id, terms), durably; return the rows."""
        connection = self._connection
        ids = json.dumps([id_ for id_, _ in held])
        before = connection.total_changes()
        connection.pragma("synchronous", 2)
        connection.execute("begin immediate")
        connection.executemany(_DROP, [(ws << _SHIFT | id_, " ".join(one)) for id_, one in held])
        for table, key in (
            ("embedding", "id"),
            ("record", "id"),
            ("edge", "child"),
            ("edge", "parent"),
        ):
            connection.execute(f"delete from {table} where ws = ? and {key} {_LISTED}", (ws, ids))
        connection.execute("commit")
        connection.pragma("synchronous", 1)
        return connection.total_changes() - before

    def insert(self, one: Written, parents: Sequence[int] = ()) -> None:
        """Insert one record with its keyword row, and edges to direct parents."""
        connection = self._connection
        ws, id_ = one.row[:2]
        connection.execute("begin immediate")
        connection.execute(_INSERT, one.row)
        connection.execute(_TERMS, (ws << _SHIFT | id_, " ".join(one.terms)))
        connection.executemany(
            _EDGE, [(ws, id_, place, parent) for place, parent in enumerate(parents, 1)]
        )
        connection.execute("commit")

    def insert_many(self, many: Sequence[Written]) -> None:
        """Insert records with their keyword rows."""
        connection = self._connection
        connection.execute("begin immediate")
        connection.executemany(_INSERT, [one.row for one in many])
        connection.executemany(
            _TERMS, [(one.row[0] << _SHIFT | one.row[1], " ".join(one.terms)) for one in many]
        )
        connection.execute("commit")

    def dependents(self, ws: int, seed: int) -> list[int]:
        """Return Dep({seed}) by the bare recursive statement."""
        statement = DEP.format(seed=":seed", ws=":ws")
        rows = self._connection.execute(statement, {"seed": seed, "ws": ws}).fetchall()
        return [row[0] for row in rows]

    def counts(self, ws: int) -> dict[str, int]:
        """Return the number of rows of each table a turn may write to."""
        return {
            table: int(
                self._connection.execute(f"select count(*) from {table} where ws = ?", (ws,)).get
            )
            for table in ("record", "edge", "sequence")
        }

    def size(self) -> int:
        """Return the bytes on disk of all that is stored."""
        self._connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        return Path(self._path).stat().st_size
