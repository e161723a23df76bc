"""A tree of partial summaries: forgetting one message makes O(log n) of them anew.

A leaf is the summary of a few messages, an inner part that of a few parts below it. Each stands at
a fixed spot: the part at (level, index) is made of those at (level - 1, index · fan_out) and the
following, and exists once all of these are full. Its parents are exactly those, so a message taints
one path. What a forget leaves without a message is not there any more; its spot stays empty, and so
the others stay where they are. What could not be made anew is missing until the tree is brought up
to date: then whatever is not made of what it should be is made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from . import audiences, provenance, sequences, storing, summary_rows
from .database import Scope, Tx
from .errors import ContextForgotten, StorageError
from .records import USABLE, Record
from .rolling import TRIES
from .summarising import OF_MESSAGES, OF_PARTS, Summariser
from .summary_rows import Moved, Part, Shelf, Span, Stamp

FORM = "tree"


class Shape(NamedTuple):
    """At most so many messages in a leaf, and parts below an inner part."""

    leaf: int
    fan_out: int


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A place in the tree: leaves are at level 0."""

    level: int
    index: int

    def above(self, shape: Shape) -> Spot:
        """Return the spot that this one flows into."""
        return Spot(self.level + 1, self.index // shape.fan_out)

    def first_leaf(self, shape: Shape) -> int:
        """Return the index of the first leaf below."""
        return int(self.index * shape.fan_out**self.level)

    def end(self, shape: Shape) -> int:
        """Return the index after that of the last leaf below."""
        return int((self.index + 1) * shape.fan_out**self.level)


@dataclass(slots=True)
class Tree:
    """What there is of a tree, and the messages that it should be of.

    `made_of` is what the inner parts were made from, in order, and those leaves that may have to be
    made anew; `spans` tells of all leaves. `places` is where the messages of these stand, and those
    that are in no leaf, `new`; `living` are those that may be used.
    """

    shape: Shape
    stamp: Stamp
    parts: dict[Spot, Part] = field(default_factory=dict)
    made_of: dict[Spot, list[int]] = field(default_factory=dict)
    spans: dict[int, Span] = field(default_factory=dict)
    new: list[int] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    living: set[int] = field(default_factory=set)
    others: list[Part] = field(default_factory=list)  # of a tree in another shape

    @property
    def top(self) -> int:
        """The highest level at which there is a part, -1 for an empty tree."""
        return max((spot.level for spot in self.parts), default=-1)

    def roots(self) -> list[int]:
        """Return the records of the usable parts that are in no other usable part, in order."""
        there = {spot: one for spot, one in self.parts.items() if one.usable}
        within = {id_ for spot in there if spot.level for id_ in self.made_of[spot]}
        found = [spot for spot, one in there.items() if one.record not in within]
        found.sort(key=lambda spot: (spot.first_leaf(self.shape), -spot.level))
        return [there[spot].record for spot in found]

    def ancestors(self, spot: Spot) -> list[Spot]:
        """Return the spots above one at which there is a part."""
        found, at = list[Spot](), spot
        for _ in range(spot.level, self.top):
            at = at.above(self.shape)
            if at in self.parts:
                found.append(at)
        return found

    def below(self, spot: Spot) -> list[int]:
        """Return the records that an inner part should be made of, in order."""
        first = spot.index * self.shape.fan_out
        spots = (Spot(spot.level - 1, at) for at in range(first, first + self.shape.fan_out))
        there = (self.parts.get(one) for one in spots)
        return [one.record for one in there if one is not None and one.usable]

    def is_made_of(self, spot: Spot, sources: Sequence[int]) -> bool:
        """Whether there is a usable part at a spot that was made from just these."""
        part = self.parts.get(spot)
        return part is not None and part.usable and set(self.made_of[spot]) == set(sources)

    def slots(self) -> int:
        """Return how many leaves there have been: a new one comes after them."""
        return max((spot.end(self.shape) for spot in self.parts), default=0)

    def is_full(self, leaf: int) -> bool:
        """Whether no message is added at the end of a leaf any more."""
        covered = max((one.end(self.shape) for one in self.parts if one.level), default=0)
        if leaf < max(covered, self.slots() - 1):
            return True
        return leaf in self.spans and self.spans[leaf].messages >= self.shape.leaf

    def full_leaves(self) -> int:
        """Return how many leaves, from the first on, are full."""
        slots = self.slots()
        return slots if slots and self.is_full(slots - 1) else max(slots - 1, 0)

    # which messages belong into which leaf

    def touched(self) -> set[int]:
        """Return the leaves that may have to be made anew."""
        gaps = {at for gap in self._by_gap() for at in gap if at in self.spans}
        return gaps | {
            at
            for at, span in self.spans.items()
            if span.usable < span.messages or not self.parts[Spot(0, at)].usable
        }

    def wanted_leaves(self) -> dict[int, list[int]]:
        """Return the messages of each leaf that is not made of what it should be, by index."""
        wanted = {at: list(self.made_of[Spot(0, at)]) for at in sorted(self.touched())}
        for gap, messages in self._by_gap().items():
            self._fill(wanted, gap, messages)
        found = {}
        for at, ids in sorted(wanted.items()):
            left = self._in_order(self.living.intersection(ids))
            if left and not self.is_made_of(Spot(0, at), left):
                found[at] = left
        return found

    def _in_order(self, ids: Iterable[int]) -> list[int]:
        return sorted(ids, key=lambda one: (self.places[one], one))

    def _by_gap(self) -> dict[tuple[int, int], list[int]]:
        """Return the new messages by the leaves that they are between: indexes, -1 for none.

        One that stands among the messages of a leaf is between that and itself.
        """
        spans = sorted((one.low, one.high, at) for at, one in self.spans.items())
        found: dict[tuple[int, int], list[int]] = {}
        for id_ in self.new:
            place = self.places[id_]
            at = bisect_right(spans, place, key=itemgetter(0)) - 1
            before = spans[at][2] if at >= 0 else -1
            inside = at >= 0 and place <= spans[at][1]
            after = spans[at + 1][2] if at + 1 < len(spans) else -1
            found.setdefault((before, before if inside else after), []).append(id_)
        return found

    def _fill(
        self, wanted: dict[int, list[int]], gap: tuple[int, int], messages: Sequence[int]
    ) -> None:
        """Put messages into the leaves of a gap: the empty spots in it, else the leaf before it."""
        before, after = gap
        left = list(messages)
        if after < 0:
            if before >= 0 and not self.is_full(before):
                room = self.shape.leaf - len(wanted[before])
                wanted[before] += left[:room]
                left = left[room:]
            self._chunk(wanted, self.slots(), None, left)
        elif after - before > 1:
            self._chunk(wanted, before + 1, after - before - 1, left)
        else:
            wanted[before if before >= 0 else after] += left

    def _chunk(
        self, wanted: dict[int, list[int]], first: int, most: int | None, messages: Sequence[int]
    ) -> None:
        """Put messages into new leaves, the rest into the last where there may be only so many."""
        size = self.shape.leaf
        for at in range(0, len(messages), size):
            index = at // size if most is None else min(at // size, most - 1)
            wanted.setdefault(first + index, []).extend(messages[at : at + size])


def bring_up_to_date(shelf: Shelf, summariser: Summariser, shape: Shape) -> None:
    """Let all messages that the thread has now flow into the tree.

    Each part is stored as soon as it is made, so what a failure interrupts goes on from there.
    Raises ModelError, StorageError.
    """
    with summariser.lock(shelf.key):
        for _ in range(TRIES):
            try:
                _make(shelf, summariser, look(shelf, shape))
            except (Moved, ContextForgotten):
                continue
            return
    raise StorageError("The thread changed as often as it was summarised.")


def look(shelf: Shelf, shape: Shape | None = None) -> Tree:
    """Return the tree as it is, with the messages that it should be of.

    Without a shape it is what there is in that of its newest part, and nothing of the messages.
    """
    at = shelf.at
    with shelf.engine.reading(shelf.workspace) as (tx, scope):
        stamp = shelf.stamp(tx, scope)
        named = [(_from_name(one.name), one) for one in shelf.parts(tx, scope)]
        newest = max(named, key=lambda one: one[1].record, default=None)
        tree = Tree(shape or (newest[0][0] if newest else Shape(1, 2)), stamp)
        for (found, spot), part in named:
            if found == tree.shape:
                tree.parts[spot] = part
            else:
                tree.others.append(part)
        inner = [spot for spot in tree.parts if spot.level]
        _read_sources(tx, scope, tree, inner, at)
        if shape is not None:
            _read_leaves(tx, scope, tree, shelf.thread, at)
    return tree


def _read_sources(tx: Tx, scope: Scope, tree: Tree, wanted: Sequence[Spot], at: int) -> None:
    """Fill in what parts were made from."""
    spots = {tree.parts[spot].record: spot for spot in wanted}
    tree.made_of |= {spot: [] for spot in wanted}
    for part, source, place, usable in summary_rows.sources(tx, scope, list(spots), at):
        tree.made_of[spots[part]].append(source)
        if spots[part].level == 0:
            tree.places[source] = place
            if usable:
                tree.living.add(source)


def _read_leaves(tx: Tx, scope: Scope, tree: Tree, thread: str, at: int) -> None:
    """Fill in where the leaves' messages stand, which are in none, and what those affected are of.

    However long the thread is, only a row for each leaf and those messages are read.
    """
    indexes = {part.record: spot.index for spot, part in tree.parts.items() if spot.level == 0}
    leaves = list(indexes)
    tree.spans = {indexes[one.leaf]: one for one in summary_rows.spans(tx, scope, leaves, at)}
    there = summary_rows.unsummed(tx, scope, thread, leaves, at)
    tree.new = list(there)
    tree.places |= there
    tree.living |= there.keys()
    _read_sources(tx, scope, tree, [Spot(0, one) for one in sorted(tree.touched())], at)


def _make(shelf: Shelf, summariser: Summariser, tree: Tree) -> None:
    """Make what is missing, the leaves first; raises Moved, ContextForgotten, ModelError."""
    for at, ids in tree.wanted_leaves().items():
        _put(shelf, summariser, tree, Spot(0, at), ids)
    level = 1
    while (full := tree.full_leaves() // tree.shape.fan_out**level) > 0:
        for at in range(full):
            spot = Spot(level, at)
            ids = tree.below(spot)
            if ids and not tree.is_made_of(spot, ids):
                _put(shelf, summariser, tree, spot, ids)
        level += 1


def _put(
    shelf: Shelf, summariser: Summariser, tree: Tree, spot: Spot, sources: Sequence[int]
) -> None:
    """Make and store one part; what was made from an earlier one at its spot is dropped."""
    given = shelf.records(sources)
    texts = summariser.said(given)
    with shelf.sending(sources, summariser.model):
        made = _store(shelf, summariser, tree, spot, given, summariser.summed_up(texts))
    for one in tree.ancestors(spot):
        del tree.parts[one], tree.made_of[one]
    if spot.level == 0:
        tree.spans[spot.index] = Span(made.id, 0, 0, len(sources), len(sources))
    tree.others = []
    tree.parts[spot] = Part(_name(tree.shape, spot), made.id, made.status in USABLE)
    tree.made_of[spot] = list(sources)


def _store(
    shelf: Shelf,
    summariser: Summariser,
    tree: Tree,
    spot: Spot,
    given: Sequence[Record],
    text: str,
) -> Record:
    """Store a part in the place of what is at its spot, and drop what is above it."""
    asks = f"{OF_PARTS if spot.level else OF_MESSAGES}{summariser.name}"
    sources = [one.id for one in given]
    stale = [tree.parts[one] for one in tree.ancestors(spot)] + tree.others
    with shelf.engine.writing(shelf.workspace) as (tx, scope):
        shelf.expect(tx, scope, tree.stamp)
        provenance.require_usable(tx, scope.ws, sources)
        draft = summary_rows.draft(text, asks, summariser.model, given)
        (made,), numbers = storing.store(tx, scope, [draft], shelf.at)
        # As direct parents: as a sequence of their own they would be in the way of the chat's.
        sequences.attach_surviving(tx, scope.ws, made.id, sources)
        audiences.narrow(tx, scope, [made.id], numbers.governed)
        shelf.drop(tx, scope, stale)
        shelf.name(tx, scope, _name(tree.shape, spot), made.id)
        tree.stamp = shelf.stamp(tx, scope)
    return made


def _name(shape: Shape, spot: Spot) -> str:
    return ":".join(map(str, (*shape, spot.level, spot.index)))


def _from_name(name: str) -> tuple[Shape, Spot]:
    leaf, fan_out, level, index = map(int, name.split(":"))
    return Shape(leaf, fan_out), Spot(level, index)
