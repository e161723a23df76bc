"""How any text is stored: one reversible escape, the same in both databases.

PostgreSQL refuses U+0000 and both databases refuse lone surrogates, yet models and tools produce
both. They are written with the noncharacter U+FDD0 in front of four hexadecimal digits, and a
U+FDD0 of the text itself is written the same way, so that ``decode(encode(s)) == s`` for every
Python string. Everything above the two database modules sees only decoded text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .errors import InvalidInput

ESCAPE = "\ufdd0"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff\ufdd0]")
_ESCAPED = re.compile("\ufdd0([0-9a-f]{4})")


def encode(text: str) -> str:
    """Return `text` in the form both databases accept; the same string when it needs no escape."""
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub(lambda found: f"{ESCAPE}{ord(found[0]):04x}", text)


def decode(stored: str) -> str:
    """Return the text that `encode` was given."""
    if stored.isascii() or ESCAPE not in stored:
        return stored
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), stored)


def dump_json(value: Mapping[str, Any] | None) -> str | None:
    """Return `value` as ASCII JSON (so NUL and lone surrogates pass), or None for nothing.

    Raises InvalidInput when something in it has no JSON form.
    """
    if not value:
        return None
    try:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        problem = InvalidInput("The metadata holds a value that has no JSON form.")
    raise problem


def load_json(stored: str | None) -> dict[str, Any]:
    """Return the mapping that `dump_json` was given."""
    return {} if stored is None else dict(json.loads(stored))
