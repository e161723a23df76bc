"""In which order the atoms of one write are settled and stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from .cells import Atom, Sources

_Tied = TypeVar("_Tied")


def in_order(atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Yield the atoms and all they are made from or refer to, each after those."""
    seen: set[Atom] = set()
    stack: list[tuple[Atom, bool]] = [(one, False) for one in reversed(list(atoms))]
    while stack:
        atom, ready = stack.pop()
        if ready:
            yield atom
        elif atom not in seen:
            seen.add(atom)
            stack.append((atom, True))
            stack.extend((one, False) for one in reversed(_before(atom)) if one not in seen)


def _before(atom: Atom) -> list[Atom]:
    made: Sources | None = atom.made
    return [*(made.context if made else ()), *(made.also if made else ()), *atom.refs]


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
