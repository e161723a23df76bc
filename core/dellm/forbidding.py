"""What no new text may say: the values that a forget takes, as far as nothing that stays says them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import reading, values
from .database import Scope, Tx
from .plan import Plan
from .records import Record
from .redacting import Version

MOST = 20  # erased matches whose own phone numbers, mail addresses and the like are looked for


def needles(
    plan: Plan, records: Mapping[int, Record], kept: Sequence[str], region: str
) -> list[values.Needle]:
    """Return what no new text may hold: what was asked for, and the matches' own values.

    A value that surviving sources hold too may come from them.
    """
    if plan.selector.renewed:  # nothing is to be forgotten
        return []
    living = [one for one in plan.matches if one.id in records]
    said = {*plan.selector.texts}
    said.update(records[one.id].text[low:high] for one in living for low, high in one.spans)
    found = [values.needle(one, region=region) for one in sorted(said) if one.strip()]
    own = [
        value
        for one in living[:MOST]
        for value in values.telling(records[one.id].text, region=region)
    ]
    return found + [one for one in own if not any(values.contains(one, text) for text in kept)]


def forbidden(
    tx: Tx,
    scope: Scope,
    plan: Plan,
    left: Mapping[int, Sequence[int]],
    shortened: Mapping[int, Version],
    region: str,
) -> Sequence[values.Needle]:
    """Return what texts that are made later of the sources in `left` must not say.

    `shortened` are the new versions of matches of which something is left.
    """
    matched = [one.id for at, one in enumerate(plan.matches) if one.spans or at < MOST]
    known = reading.several(tx, scope, matched, None)
    sources = {one for some in left.values() for one in some if one not in left}
    found = reading.several(tx, scope, sorted(sources.difference(shortened)), None)
    texts = [one.text for one in found.values()]
    texts += [shortened[one].draft.text for one in sorted(sources.intersection(shortened))]
    return needles(plan, known, texts, region)
