"""Taking a stretch out of a framework's stored object without changing its form.

A message's payload holds its tool calls; without them the results of these would stand alone, and
providers refuse that. So what is to go is overwritten byte for byte: JSON stays JSON, and msgpack,
which says how long each text is, stays msgpack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# msgpack says the length of a text of 32 to 255 bytes in one more byte, which may read as a letter.
_LENGTH: Final = re.compile("([\udcc4\udcd9])[\x00-\x7f]")
_MASK: Final = b"*"


def readable(payload: bytes) -> str:
    """Return the payload as text; what is no UTF-8 is in U+DC80 to U+DCFF, one for each byte."""
    return _LENGTH.sub(r"\1\1", payload.decode("utf-8", "surrogateescape"))


def masked(payload: bytes, text: str, spans: Iterable[tuple[int, int]]) -> bytes | None:
    """Return the payload with those stretches of its `readable` text overwritten.

    None where one of them holds what is not ASCII, for it cannot be told where that ends.
    """
    data = bytearray(payload)
    for start, end in spans:
        if not text[start:end].isascii():
            return None
        first = len(text[:start].encode("utf-8", "surrogateescape"))
        data[first : first + end - start] = _MASK * (end - start)
    return bytes(data)
