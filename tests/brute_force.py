"""The memory as plain dicts and sets: slow, obviously right, and without a line of the core.

A workspace is a dict of what was said, a dict of contexts and a set of copies. Dep is found by
looking at every record until nothing is added; forgetting is deleting from the dicts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Said:
    """One record: what a reader would see of it, and whether it is in use."""

    id: int
    text: str
    thread: str | None
    role: str
    mood: str
    place: int
    version: int = 1
    active: bool = True
    model: str | None = None


@dataclass
class Model:
    """One workspace."""

    records: dict[int, Said] = field(default_factory=dict)
    context: dict[int, list[int]] = field(default_factory=dict)
    copies: set[frozenset[int]] = field(default_factory=set)
    erased: dict[int, int] = field(default_factory=dict)  # id -> receipt
    last: int = 0

    # writing

    def add(
        self,
        text: str,
        thread: str | None,
        role: str,
        mood: str,
        context: Sequence[int] = (),
        copy_of: int | None = None,
        model: str | None = None,
    ) -> Said:
        self.last += 1
        said = Said(self.last, text, thread, role, mood, place=self.last, model=model)
        self.records[said.id] = said
        self.context[said.id] = list(context)
        if copy_of is not None:
            self.copies.add(frozenset({said.id, copy_of}))
        return said

    def usable(self, ids: Iterable[int]) -> bool:
        return all(one in self.records and self.records[one].active for one in ids)

    # asking

    def active(self) -> list[Said]:
        return [self.records[id_] for id_ in sorted(self.records) if self.records[id_].active]

    def thread(self, name: str | None) -> list[Said]:
        found = [one for one in self.active() if one.thread == name]
        return sorted(found, key=lambda one: (one.place, one.id))

    def matching(self, accepts: Callable[[Said], bool]) -> list[int]:
        return [id_ for id_ in sorted(self.records) if accepts(self.records[id_])]

    def hops(self, seeds: Collection[int]) -> dict[int, int]:
        """Return Dep(seeds) with the least number of replies to each; a copy is no further away."""
        found = {one: 0 for one in seeds if one in self.records}
        moved = True
        while moved:
            moved = False
            for child in self.records:
                ways = [found[one] + 1 for one in self.context[child] if one in found]
                ways += [
                    found[one]
                    for pair in self.copies
                    if child in pair
                    for one in pair
                    if one in found
                ]
                if ways and min(ways) < found.get(child, min(ways) + 1):
                    found[child] = min(ways)
                    moved = True
        return found

    def dep(self, seeds: Collection[int]) -> list[int]:
        return sorted(self.hops(seeds))

    def within(self, seeds: Collection[int], depth: int | None) -> list[int]:
        return sorted(
            one for one, hops in self.hops(seeds).items() if depth is None or hops <= depth
        )

    def used_in(self, id_: int) -> list[int]:
        return sorted(child for child, parents in self.context.items() if id_ in parents)

    def exposures(self, going: Collection[int]) -> dict[str, int]:
        """Return how many replies of each model are among `going` or had one of them in their prompt."""
        counts: dict[str, int] = {}
        for id_, said in self.records.items():
            if said.model and (id_ in going or set(self.context[id_]) & set(going)):
                counts[said.model] = counts.get(said.model, 0) + 1
        return counts

    # forgetting

    def sources(self, id_: int, going: Collection[int]) -> set[int]:
        """Return what survives of a context, and of the contexts and copies of what goes of it."""
        found, seen, nodes = set(), {id_}, [id_]
        while nodes:
            node = nodes.pop()
            beside = [one for pair in self.copies if node in pair for one in pair - {node}]
            for one in (*self.context[node], *beside):
                if one not in going:
                    found.add(one)
                elif one not in seen:
                    seen.add(one)
                    nodes.append(one)
        return found - {id_} - {one for pair in self.copies if id_ in pair for one in pair}

    def erase(self, ids: Collection[int], receipt: int) -> None:
        left = {
            child: sorted(self.sources(child, ids).difference(parents))
            for child, parents in self.context.items()
            if child not in ids and set(parents).intersection(ids)
        }
        for one in ids:
            del self.records[one], self.context[one]
            self.erased[one] = receipt
        self.context = {
            child: [one for one in parents if one not in ids] + left.get(child, [])
            for child, parents in self.context.items()
        }
        self.copies = {pair for pair in self.copies if not pair & set(ids)}

    def suppress(self, ids: Collection[int]) -> None:
        for one in ids:
            self.records[one] = replace(self.records[one], active=False)

    def restore(self, ids: Collection[int]) -> list[int]:
        back = [one for one in sorted(ids) if one in self.records and not self.records[one].active]
        for one in back:
            self.records[one] = replace(self.records[one], active=True)
        return back

    def redact(self, word: str, marker: str, receipt: int) -> dict[int, int]:
        """Take the word out of what holds it; what was made from that goes. Return new id by old."""
        matched = self.matching(lambda said: word in said.text.split())
        going = set(self.dep(matched))
        kept = [one for one in matched if not going & set(self.context[one])]
        old = {one: (self.records[one], self.context[one]) for one in kept}
        pairs = [pair for pair in self.copies if pair <= set(kept)]
        self.erase(going, receipt)
        made: dict[int, int] = {}
        for one, (said, context) in old.items():
            self.last += 1
            made[one] = self.last
            text = " ".join(marker if piece == word else piece for piece in said.text.split())
            self.records[self.last] = replace(
                said, id=self.last, text=text, version=said.version + 1
            )
            self.context[self.last] = context
        self.copies |= {frozenset(made[one] for one in pair) for pair in pairs}
        return made
