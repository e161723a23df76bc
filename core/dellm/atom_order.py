"""In which order the atoms of one write are settled and stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from .cells import Atom, Sources

_Tied = TypeVar("_Tied")


def in_order(atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Yield the atoms and all they are made from or refer to, each after those.

    Of those beside an atom it cannot be told, so they come where they come, at the end at last.
    """
    seen: set[Atom] = set()
    beside: list[Atom] = []
    left = list(atoms)
    while left:
        stack = [(one, False) for one in reversed(left)]
        while stack:
            atom, ready = stack.pop()
            if ready:
                yield atom
            elif atom not in seen:
                seen.add(atom)
                beside += atom.made.beside if atom.made else ()
                stack.append((atom, True))
                stack.extend((one, False) for one in reversed(_before(atom)) if one not in seen)
        left = [one for one in beside if one not in seen]
        beside.clear()


def _before(atom: Atom) -> list[Atom]:
    made: Sources | None = atom.made
    return [*(made.context if made else ()), *(made.also if made else ()), *atom.refs]


class Above:
    """Which atoms of a write others are made from for sure, directly or not.

    `order` is as in_order gives it; a twin holds the same object as the atom it stands for.
    """

    def __init__(self, order: Sequence[Atom], twins: Mapping[Atom, Atom]) -> None:
        self._twins = twins
        self._place = {atom: place for place, atom in enumerate(order)}
        self._above: list[int] = []  # of each atom the places of those above it, as bits
        if any(one.made is not None and one.made.beside for one in order):
            for atom in order:
                self._above.append(self._bits(twins.get(atom, atom)))

    def _bits(self, atom: Atom) -> int:
        bits = 0
        for one in _before(atom):
            place = self._place.get(self._twins.get(one, one))
            if place is not None and place < len(self._above):
                bits |= self._above[place] | 1 << place
        return bits

    def not_made_of(self, atom: Atom, others: Iterable[Atom]) -> list[Atom]:
        """Return those of the others that are not made of an atom, which may be made of them."""
        mine = self._place.get(self._twins.get(atom, atom))
        if mine is None:
            return list(others)
        return [one for one in others if one is not atom and not self._reaches(one, mine)]

    def _reaches(self, other: Atom, mine: int) -> bool:
        place = self._place.get(self._twins.get(other, other))
        return place is not None and bool(self._above[place] >> mine & 1)


def batches(new: Sequence[tuple[Atom, _Tied]]) -> Iterator[Sequence[tuple[Atom, _Tied]]]:
    """Split the atoms so that every one that refers to others comes in a later batch than they."""
    batch: list[tuple[Atom, _Tied]] = []
    inside: set[Atom] = set()
    for one in new:
        if any(ref in inside for ref in one[0].refs):
            yield batch
            batch, inside = [], set()
        batch.append(one)
        inside.add(one[0])
    if batch:
        yield batch
