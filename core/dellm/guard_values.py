"""What a forget with a guard is to guard: values asked for, and those that what it takes says itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

import regex

from . import reading, selectors, values
from .database import Scope, Tx
from .plan import Plan
from .records import Record
from .selectors import Clue

_WORD: Final = r"\p{Lu}(?:['’]\p{Lu})?[\p{L}\p{M}]*\p{Ll}[\p{L}\p{M}]*(?:['’\-]\p{Lu}?\p{Ll}+)*"
_NAME: Final = regex.compile(rf"(?<=[\p{{L}}\p{{N}},;:][’'\")]?\s){_WORD}(?:\s{_WORD})*")
_CAPITALISED: Final = """
i'm i’m i've i’ve i'd i’d i'll i’ll monday tuesday wednesday thursday friday saturday sunday
january february march april may june july august september october november december
english french german spanish mr mrs ms dr ok
"""
_NO_NAMES: Final = frozenset(_CAPITALISED.split())
MOST = 1_000  # matches whose own values are guarded


def values_of(tx: Tx, scope: Scope, plan: Plan, region: str) -> list[tuple[str, str]]:
    """Return what is to be guarded, each as "value" or "whole", before anything of the plan goes.

    That are the texts asked for and where they were found; phone numbers, addresses and the like of
    the matches, and the names in those that were not found by a text, but for what other records
    hold; and the matches' texts as a whole.
    """
    ids = [one.id for one in plan.matches]
    found = reading.several(tx, scope, ids[:MOST], None)
    said = dict.fromkeys(plan.selector.texts)
    for match in plan.matches:
        if match.id in found:
            said.update(dict.fromkeys(found[match.id].text[a:b] for a, b in match.spans))
    unasked = [] if said else list(found.values())
    clues = [*_own(found.values(), region), *_names(unasked, region)]
    own = _only_there(tx, scope, plan, clues)
    wholes = dict.fromkeys(one.text for one in found.values() if " " in one.text.strip())
    return [
        *(("value", one) for one in {**said, **dict.fromkeys(own)}),
        *(("whole", one) for one in wholes),
    ]


def _own(records: Iterable[Record], region: str) -> list[Clue]:
    found = dict.fromkeys(
        one for record in records for one in values.telling(record.text, region=region)
    )
    return [Clue("", one) for one in islice(found, MOST)]


def _names(records: Iterable[Record], region: str) -> list[Clue]:
    """Return clues for the names that texts hold: capitalised words that no sentence begins with."""
    found = dict.fromkeys(
        one.group()
        for record in records
        for one in _NAME.finditer(record.text[: values.READ])
        if one.group().casefold() not in _NO_NAMES
    )
    return [Clue("", values.needle(one, region=region)) for one in islice(found, MOST)]


def _only_there(tx: Tx, scope: Scope, plan: Plan, clues: Sequence[Clue]) -> list[str]:
    """Return the values that no record holds which stays: they are to be remembered further on."""
    going, left = set(plan.ids), list(clues)
    kept: set[Clue] = set()
    while left:
        # A record tells one of its clues only, so it is asked again without that.
        there = {clue for id_, clue in selectors.holding(tx, scope, left) if id_ not in going}
        if not there:
            break
        kept |= there
        left = [one for one in left if one not in kept]
    return [one.needle.original for one in left]
