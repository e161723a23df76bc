"""How GateMem is scored without a judge: the official matching rule, and the cleaned targets.

The official scorer (bench/eval/metrics.py of GateMem, its `pattern_hits`) looks for a pattern with
signs of a regular expression as one, for plain words between word boundaries, for anything else as
it stands; always without regard to case, and to spacing but in expressions. An answer is scored so,
by all of its official targets. Contexts and stores are scored by cleaned ones: `cleaned` says what
is left out, and why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from .sets.gatemem import Checkpoint, Episode

SEAM = " ¶ "  # between the texts of several records: no pattern reaches over it
LEAST = 4  # characters of a cleaned target
_SIGNS = frozenset("\\[](){}|?+*")
_PLAIN = re.compile(r"[a-z0-9][a-z0-9\s_\-/.:]*[a-z0-9]", re.IGNORECASE)
_WORDLESS = frozenset({"yes", "no"})


@lru_cache(maxsize=20_000)
def _compiled(pattern: str) -> tuple[re.Pattern[str], bool] | None:
    """Return the expression for an official pattern, and whether spacing counts; None for a blank."""
    if not pattern:
        return None
    if not _SIGNS.isdisjoint(pattern):
        try:
            return re.compile(pattern, re.IGNORECASE), True
        except re.error:
            pass  # it is no expression: looked for as it stands, as the official scorer does
    plain = " ".join(pattern.split())
    if not plain:
        return None
    bounded = _PLAIN.fullmatch(plain) is not None
    inner = re.escape(plain)
    return re.compile(rf"(?<!\w){inner}(?!\w)" if bounded else inner, re.IGNORECASE), False


def hits(text: str, pattern: str) -> bool:
    """Whether the official rule finds a pattern in a text."""
    made = _compiled(pattern)
    if made is None:
        return False
    expression, as_spaced = made
    return expression.search(text if as_spaced else " ".join(text.split())) is not None


def any_hit(text: str, patterns: Iterable[str]) -> bool:
    """Whether the official rule finds one of the patterns."""
    return any(hits(text, one) for one in patterns)


def all_hit(text: str, patterns: Iterable[str]) -> bool:
    """Whether the official rule finds each of the patterns."""
    return all(hits(text, one) for one in patterns)


def as_one(texts: Iterable[str]) -> str:
    """Return several texts as one to be scored; no pattern matches across two of them."""
    return SEAM.join(" ".join(text.split()) for text in texts)


def cleaned(checkpoint: Checkpoint, episode: Episode) -> tuple[str, ...]:
    """Return the targets of a checkpoint by which contexts and stores can be scored.

    Left out are yes and no; what has under four characters; expressions; a part of another target
    of the same checkpoint; and what a utility checkpoint at or after it requires, which is to be
    remembered at that time.
    """
    targets = checkpoint.hidden.targets
    needed = [
        pattern
        for one in episode.checkpoints
        if one.hidden.kind == "utility" and one.after >= checkpoint.after
        for pattern in one.hidden.include
    ]
    return tuple(
        one
        for one in dict.fromkeys(targets)
        if len(one.strip()) >= LEAST
        and one.casefold() not in _WORDLESS
        and "\\" not in one
        and not _is_part(one, targets)
        and not _is_needed(one, needed)
    )


def _is_part(target: str, of: Iterable[str]) -> bool:
    folded = target.casefold()
    return any(folded in one.casefold() and len(one) > len(target) for one in of)


def _is_needed(target: str, patterns: Iterable[str]) -> bool:
    return any(hits(target, one) or hits(one, target) for one in patterns)
