"""What a peer can do: the statements the library's verbs come down to, and nothing around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Edges = Iterable[tuple[Sequence[int], Sequence[int], Sequence[int]]]

# A record's row as the library writes it, so that the peer writes the same bytes.
COLUMNS = (
    "ws, id, place, thread, kind, role, fid, version, text, payload, metadata, subject, purpose, "
    "sensitivity, retention_until, status, model, tokens, created_at"
)

DEP = (
    "with recursive dep(id) as ("
    " select cast({seed} as bigint)"
    " union"
    " select e.child from dep cross join edge e where e.ws = {ws} and e.parent = dep.id) "
    "select id from dep where id > 0"
)


@dataclass(frozen=True, slots=True)
class Written:
    """A record ready to be written: its row in the order of COLUMNS, and its distinct terms."""

    row: tuple[Any, ...]
    terms: list[str]


class Bare(Protocol):
    """One connection, used directly. Each method but the loaders is one transaction."""

    def close(self) -> None:
        """End the connection."""

    def ws(self, name: str) -> int:
        """Return the number of a workspace."""

    def load_edges(self, ws: int, edges: Edges) -> int:
        """Write edges in bulk; return how many."""

    def load_vectors(self, ws: int, ids: Sequence[int], rows: Any) -> None:
        """Write vectors in bulk; `rows` is float32 of shape (len(ids), dimensions)."""

    def terms(self, ws: int, ids: Sequence[int]) -> list[tuple[int, list[str]]]:
        """Return what the keyword index holds of the records."""

    def delete(self, ws: int, held: Sequence[tuple[int, list[str]]]) -> int:
        """Delete records, vectors, keyword rows and edges of (id, terms), durably; return the rows."""

    def insert(self, one: Written, parents: Sequence[int] = ()) -> None:
        """Insert one record with its keyword row, and edges to direct parents."""

    def insert_many(self, many: Sequence[Written]) -> None:
        """Insert records with their keyword rows."""

    def dependents(self, ws: int, seed: int) -> list[int]:
        """Return Dep({seed}) by the bare recursive statement."""

    def counts(self, ws: int) -> dict[str, int]:
        """Return the number of rows of each table a turn may write to."""

    def size(self) -> int:
        """Return the bytes on disk of all that is stored."""
