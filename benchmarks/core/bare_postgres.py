"""PostgreSQL used directly through psycopg, as the owner: no role, no row level security."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from pgvector.psycopg import register_vector

from .bare import COLUMNS, DEP, Edges, Written

_INSERT = f"insert into record({COLUMNS}) values ({', '.join(['%s'] * 19)})"
_TERMS = (
    "insert into keyword(ws, id, part, terms) "
    "values (%s, %s, 0, array_to_tsvector(cast(%s as text[])))"
)
_EDGE = "insert into edge(ws, child, pos, parent) values (%s, %s, %s, %s)"
# As the library does it: without statistics a plain array makes the planner read the workspace.
_LISTED = "= any(array(select unnest(cast(%s as bigint[]))))"


class BarePostgres:
    """See Bare."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        register_vector(self._connection)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def ws(self, name: str) -> int:
        """Return the number of a workspace."""
        row = self._connection.execute("select ws from workspace where name = %s", (name,))
        return int(row.fetchone()[0])  # type: ignore[index] # the workspace is there

    def load_edges(self, ws: int, edges: Edges) -> int:
        """Write edges in bulk; return how many."""
        total = 0
        statement = "copy edge(ws, child, pos, parent) from stdin"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for children, places, parents in edges:
                lines = zip(children, places, parents, strict=True)
                copy.write("".join([f"{ws}\t{a}\t{b}\t{c}\n" for a, b, c in lines]))
                total += len(children)
        return total

    def load_vectors(self, ws: int, ids: Sequence[int], rows: Any) -> None:
        """Write vectors in bulk; `rows` is float32 of shape (len(ids), dimensions)."""
        statement = "copy embedding(ws, id, data) from stdin with (format binary)"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(["int8", "int8", "vector"])
            for id_, row in zip(ids, rows, strict=True):
                copy.write_row((ws, id_, row))

    def terms(self, ws: int, ids: Sequence[int]) -> list[tuple[int, list[str]]]:
        """Return what the keyword index holds of the records."""
        del ws  # a row of the index is deleted by its key here; nobody needs to name its terms
        return [(id_, []) for id_ in ids]

    def delete(self, ws: int, held: Sequence[tuple[int, list[str]]]) -> int:
        """Delete records, vectors, keyword rows and edges of (id, terms), durably; return the rows."""
        ids = [id_ for id_, _ in held]
        total = 0
        with self._connection.transaction():
            for table, key in (
                ("keyword", "id"),
                ("embedding", "id"),
                ("record", "id"),
                ("edge", "child"),
                ("edge", "parent"),
            ):
                total += self._connection.execute(
                    f"delete from {table} where ws = %s and {key} {_LISTED}", (ws, ids)
                ).rowcount
        return total

    def insert(self, one: Written, parents: Sequence[int] = ()) -> None:
        """Insert one record with its keyword row, and edges to direct parents."""
        ws, id_ = one.row[:2]
        edges = [(ws, id_, place, parent) for place, parent in enumerate(parents, 1)]
        with self._connection.transaction():
            self._connection.execute(_INSERT, one.row)
            self._connection.execute(_TERMS, (ws, id_, one.terms))
            if edges:
                self._connection.cursor().executemany(_EDGE, edges)

    def insert_many(self, many: Sequence[Written]) -> None:
        """Insert records with their keyword rows."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(_INSERT, [one.row for one in many])
            cursor.executemany(_TERMS, [(*one.row[:2], one.terms) for one in many])

    def dependents(self, ws: int, seed: int) -> list[int]:
        """Return Dep({seed}) by the bare recursive statement."""
        statement = DEP.format(seed="%(seed)s", ws="%(ws)s")
        rows = self._connection.execute(statement, {"seed": seed, "ws": ws}).fetchall()
        return [row[0] for row in rows]

    def nearest(self, ws: int, query: Any) -> list[int]:
        """Return the five nearest ids by cosine distance."""
        rows = self._connection.execute(
            "select id from embedding where ws = %s order by data <=> %s limit 5", (ws, query)
        ).fetchall()
        return [row[0] for row in rows]

    def counts(self, ws: int) -> dict[str, int]:
        """Return the number of rows of each table a turn may write to."""
        found = {}
        for table in ("record", "edge", "sequence", "keyword"):
            row = self._connection.execute(f"select count(*) from {table} where ws = %s", (ws,))
            found[table] = int(row.fetchone()[0])  # type: ignore[index] # count gives a row
        return found

    def size(self) -> int:
        """Return the bytes on disk of all that is stored."""
        row = self._connection.execute(
            "select sum(pg_total_relation_size(oid)) from pg_class "
            "where relkind = 'r' and relnamespace = cast('public' as regnamespace)"
        ).fetchone()
        return int(row[0])  # type: ignore[index] # sum gives a row
