"""Rectification (GDPR article 16): a record is put right, and what was made from it goes or is made anew.

The old text is erased like anything forgotten; the new one stands in its place, under a new id, and what
can be rebuilt is rebuilt from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from . import provenance, reading, values
from .database import Scope, Tx
from .redacting import Version, draft_of, holding


def new_versions(
    tx: Tx,
    scope: Scope,
    matched: Collection[int],
    going: Collection[int],
    texts: Mapping[int, str],
    region: str,
) -> dict[int, Version]:
    """Return, by old id, the new version of each match that is put right.

    It was made from what the old one was made from, as far as that stays, and says nothing besides its
    text that only the old text said.
    """
    stored = reading.several(tx, scope, sorted(set(matched).intersection(texts)), None)
    versions: dict[int, Version] = {}
    for id_, record in stored.items():
        left = [one for one in provenance.context_of(tx, scope.ws, id_) if one not in going]
        holds = _only_before(record.text, texts[id_], region)
        versions[id_] = Version(draft_of(record, texts[id_], holds), left, record.status)
    return versions


def _only_before(old: str, new: str, region: str) -> Callable[[Any], bool]:
    """Return a test for a value: whether it holds the old text, or a value that only the old one had."""
    wrong = [one for one in values.telling(old, region=region) if not values.contains(one, new)]
    names = [word for word in old.split() if word[:1].isupper() and word not in new.split()]
    return holding([values.needle(one, region=region) for one in [old, *names]] + wrong, region)
