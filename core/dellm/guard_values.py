"""What a forget with a guard is to guard: values asked for, and those that what it takes says itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from . import reading, selectors, values
from .database import Scope, Tx
from .plan import Plan
from .planning import TELLING
from .records import Record
from .selectors import Clue

MOST = 1_000  # matches whose own values are guarded
READ = 10_000  # characters of each that are read for that


def values_of(tx: Tx, scope: Scope, plan: Plan, region: str) -> list[tuple[str, str]]:
    """Return what is to be guarded, each as "value" or "whole", before anything of the plan goes.

    That are the texts asked for and where they were found; phone numbers, addresses and the like of
    the matches, but for those that other records hold; and the matches' texts as a whole.
    """
    ids = [one.id for one in plan.matches]
    found = reading.several(tx, scope, ids[:MOST], None)
    said = dict.fromkeys(plan.selector.texts)
    for match in plan.matches:
        if match.id in found:
            said.update(dict.fromkeys(found[match.id].text[a:b] for a, b in match.spans))
    own = _only_there(tx, scope, plan, _own(found.values(), region))
    wholes = dict.fromkeys(one.text for one in found.values() if " " in one.text.strip())
    return [
        *(("value", one) for one in {**said, **dict.fromkeys(own)}),
        *(("whole", one) for one in wholes),
    ]


def _own(records: Iterable[Record], region: str) -> list[Clue]:
    clues: dict[values.Needle, Clue] = {}
    for record in records:
        text = record.text[:READ]
        for one in values.recognise(text, region=region, kinds=TELLING):
            needle = values.needle(text[one.start : one.end], region=region, kind=one.kind)
            clues.setdefault(needle, Clue("", needle))
    return list(islice(clues.values(), MOST))


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
