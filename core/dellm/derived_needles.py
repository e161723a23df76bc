"""What a text that is made later must not say: keyed digests of the values that a forget took.

They are kept with the job only, and go with it. A value is found in another spelling where that is a
number, address or the like that a text can be searched for, else in its own words.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Iterator

from . import values
from .database import Scope
from .errors import SelectorError
from .values.needle import words
from .values.normal import plain

Digests = tuple[
    tuple[int, str], ...
]  # how many words a value has, 0 for a form shared by spellings


def digests(scope: Scope, needles: Iterable[values.Needle]) -> Digests:
    """Return what is kept of the values."""
    found: set[tuple[int, str]] = set()
    for one in needles:
        found.add((0, _digest(scope, one.kind, one.key)))
        if said := words(plain(one.original)):
            found.add((len(said), _digest(scope, "words", " ".join(said))))
    return tuple(sorted(found))


def carries(scope: Scope, text: str, kept: Collection[tuple[int, str]], region: str) -> bool:
    """Whether a text says one of the values; `region` as in Memory.open."""
    known = set(kept)
    return bool(known) and any(one in known for one in _said(scope, text, known, region))


def _said(
    scope: Scope, text: str, known: Collection[tuple[int, str]], region: str
) -> Iterator[tuple[int, str]]:
    listed = words(plain(text))
    for size in sorted({size for size, _ in known if size}):
        for at in range(len(listed) - size + 1):
            yield size, _digest(scope, "words", " ".join(listed[at : at + size]))
    for one in values.recognise(text, region=region):
        try:
            found = values.needle(text[one.start : one.end], region=region, kind=one.kind)
        except SelectorError:
            continue
        yield 0, _digest(scope, found.kind, found.key)


def _digest(scope: Scope, kind: str, key: str) -> str:
    said = f"derived:{kind}:{key}".encode("utf-8", "surrogatepass")
    return hmac.digest(scope.secret, said, hashlib.sha256)[:12].hex()
