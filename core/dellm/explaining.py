"""Why do you know this? The sources of a record, each with the way it came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from . import governed, provenance, reading
from .database import Scope, Tx
from .governed import Governed
from .records import Edge, Record

MOST = 50  # sources that are listed; the rest are counted


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a record comes from.

    `context` is what was in its prompt, in order; `sources` are the records it ultimately rests
    on (nobody made them from anything), each with one shortest path of ids to the record. `hidden`
    counts the records of the prompt that may not be read now: suppressed, or expired. `governed` says
    who made it, what for and until when; without what was made of it.
    """

    record: Record
    context: tuple[Record, ...]
    sources: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    texts: Mapping[int, Record] = field(default_factory=dict, repr=False)
    hidden: int = 0
    governed: Governed | None = None

    def __str__(self) -> str:
        record = self.record
        lines = [f"{record.id} {record.role}: {record.text}"]
        if self.governed is not None and self.governed.limited:
            lines.append(f"  {self.governed}")
        if record.metadata.get("inferred"):
            lines.append("  adopted: nobody saw its prompt; what it was made from is inferred")
        if self.hidden:
            lines.append(f"  had in its prompt: {self.hidden} record(s) that may not be read now")
        elif not self.context:
            lines.append("  was not made from anything: it was said, or came in, as it is")
        lines += [f"  had in its prompt: {one.id} {one.role}: {one.text}" for one in self.context]
        for id_, path in list(self.sources.items())[:MOST]:
            if len(path) > 2:
                way = " → ".join(str(step) for step in path)
                lines.append(
                    f"  rests on: {id_} {self.texts[id_].role}: {self.texts[id_].text}  [{way}]"
                )
        if len(self.sources) > MOST:
            lines.append(f"  and on {len(self.sources) - MOST} more")
        return "\n".join(lines)


def explain(tx: Tx, scope: Scope, id_: int, at: int) -> Explanation:
    """Return where the record comes from; NotFound when it is not there to be read."""
    record = reading.get(tx, scope, id_, at)
    context = provenance.context_of(tx, scope.ws, id_)
    nodes = provenance.ancestors(tx, scope.ws, id_)
    edges = provenance.edges_into(tx, scope.ws, nodes)
    made = {edge.child for edge in edges if edge.position >= 0}
    roots = sorted(node for node in nodes if node > 0 and node not in made and node != id_)
    known = reading.several(tx, scope, [*context, *roots], at)
    paths = {root: _path(root, edges, id_) for root in roots[:MOST] if root in known}
    shown = tuple(known[one] for one in context if one in known)
    return Explanation(
        record,
        shown,
        {root: path for root, path in paths.items() if path},
        known,
        hidden=len(context) - len(shown),
        governed=governed.of_several(tx, scope, [id_]).get(id_),
    )


def _path(root: int, edges: list[Edge], target: int) -> tuple[int, ...]:
    before = provenance.shortest_paths([root], edges)
    return provenance.trace(before, target) if target in before else ()
