"""The provenance graph as text for Graphviz (DOT) and Mermaid: ids and roles, no content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import provenance
from .database import Tx

if TYPE_CHECKING:
    import rustworkx


@dataclass(frozen=True, slots=True)
class Drawing:
    """A graph to be drawn: the role of each record, and (parent, child) pairs between records."""

    roles: Mapping[int, str]
    edges: tuple[tuple[int, int], ...]

    def to_rustworkx(self) -> rustworkx.PyDiGraph[int, None]:
        """Return the graph for rustworkx: node payload = record id, no edge payload."""
        import rustworkx

        made: rustworkx.PyDiGraph[int, None] = rustworkx.PyDiGraph()
        at = dict(zip(self.roles, made.add_nodes_from(list(self.roles)), strict=True))
        made.add_edges_from([(at[parent], at[child], None) for parent, child in self.edges])
        return made

    def dot(self) -> str:
        """Return the graph in Graphviz's DOT language."""
        lines = ["digraph memory {", "  rankdir=LR;"]
        for id_, role in self.roles.items():
            shape = "box" if role == "user" else "ellipse"
            lines.append(f'  {id_} [label="{id_} {_quoted(role)}", shape={shape}];')
        lines += [f"  {parent} -> {child};" for parent, child in self.edges]
        return "\n".join([*lines, "}"])

    def mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        lines = ["flowchart LR"]
        for id_, role in self.roles.items():
            left, right = ("[", "]") if role == "user" else ("(", ")")
            lines.append(f'  m{id_}{left}"{id_} {_quoted(role)}"{right}')
        lines += [f"  m{parent} --> m{child}" for parent, child in self.edges]
        return "\n".join(lines)


def _quoted(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in " _-" else "_" for letter in name)


def draw(tx: Tx, ws: int, ids: Iterable[int]) -> Drawing:
    """Return the records and, for each, edges from what was in its context, sequences expanded."""
    wanted = sorted(set(ids))
    rows = tx.all(
        "select id, role from record where ws = :ws and id in :ids order by id", ws=ws, ids=wanted
    )
    roles = {row[0]: row[1] for row in rows}
    pairs = {
        (parent, child)
        for child in roles
        for parent in provenance.context_of(tx, ws, child)
        if parent in roles
    }
    return Drawing(roles, tuple(sorted(pairs)))
