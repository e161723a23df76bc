"""Where a record keeps content besides its text, and how stored bytes are read for a search.

Used by the selectors (what carries the value?) and by the scan (what still holds it?), so that
both look into the same places.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

DEPTH = 4  # encodings inside encodings that are opened
# msgpack's strings and bytes of 32 and more: a byte for the kind, then the length.
_LENGTHS = re.compile(rb"[\xd9\xc4].|[\xda\xc5]..|[\xdb\xc6]....", re.DOTALL)
INFLATED = 64 << 20  # bytes a compressed value may grow to while it is read


def strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, keys included, and numbers as they are written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def inside(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, each followed by what it holds inside an encoding."""
    for one in strings(value):
        yield one
        yield from text_readings(one)


def readings(data: bytes, depth: int = DEPTH) -> Iterator[str]:
    """Yield every text that `data` can be read as: UTF-8, UTF-16, JSON, compressed, base64."""
    if not data or depth < 1:
        return
    text = data.decode("utf-8", "ignore")
    yield text
    yield from _packed(data)
    if b"\x00" in data:
        yield data.decode("utf-16-le", "ignore")
        yield data[1:].decode("utf-16-le", "ignore")
    yield from text_readings(text, depth)
    if (inflated := _inflated(data)) is not None:
        yield from readings(inflated, depth - 1)


def _packed(data: bytes) -> Iterator[str]:
    """Yield a binary format's strings apart from each other: what is no text becomes a line's end.

    Lengths in front of a string (msgpack's) may read as a letter of it, so they are taken out too.
    """
    apart = data.decode("utf-8", "replace")
    if "\ufffd" not in apart:
        return
    yield apart.replace("\ufffd", "\n")
    if _LENGTHS.search(data):
        yield _LENGTHS.sub(b"\n", data).decode("utf-8", "replace").replace("\ufffd", "\n")


def text_readings(text: str, depth: int = DEPTH) -> Iterator[str]:
    """Yield what a text holds inside an encoding: the strings of its JSON, the text of its base64."""
    if depth < 1:
        return
    start = text[:64].lstrip()
    if start[:1] in {"{", "[", '"'}:
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        for inner in strings(found):
            yield inner
            if inner is not text:
                yield from text_readings(inner, depth - 1)
    if (plain := _unbased(text)) is not None:
        yield from readings(plain, depth - 1)


def _inflated(data: bytes) -> bytes | None:
    try:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data) if len(data) < INFLATED else None
        if data[:1] == b"\x78":
            return zlib.decompressobj().decompress(data, INFLATED)
    except (OSError, EOFError, zlib.error):
        return None
    return None


def _unbased(text: str) -> bytes | None:
    compact = text.strip()
    if len(compact) < 16 or len(compact) % 4 or not compact.isascii() or " " in compact:
        return None
    try:
        return base64.b64decode(compact, validate=True)
    except (binascii.Error, ValueError):
        return None
