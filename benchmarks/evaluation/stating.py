"""When a text states an answer: the one rule of the experiments that no model judges."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from .personas import specific, words

STATED = 0.5  # the share of an answer's telling words from which a text states it


def states(text: str, answer: str) -> bool:
    """Tell whether a text holds at least half of an answer's telling words (see `specific`).

    False for an answer without one.
    """
    return tells(frozenset(words(text)), specific(answer))


def tells(said: AbstractSet[str], wanted: AbstractSet[str]) -> bool:
    """Tell whether words that were said hold at least half of those wanted; never of none."""
    return bool(wanted) and len(wanted & said) >= STATED * len(wanted)
