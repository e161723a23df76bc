"""Keyed windows of erased content, by which the files are later proved clean without the content.

A window is 16 bytes of an erased text, metadata, payload, subject or vector as it lies in the
files. What is kept of it is one 63-bit number under the workspace's key: 24 bits from the first
eight bytes by a multiplication, so that numpy can test every offset of a file, and 39 bits of an
HMAC of all sixteen. The numbers are deleted as soon as a scrub has found none of the windows.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .database import Scope, Tx, content_bytes

WINDOW = 16  # bytes
MOST = 1_024  # windows kept for one receipt
PER_RECORD = 3 + 4  # of the text its beginning, middle and end; one of each other part
TELLING = 6  # different bytes that a window must have: a run of spaces or zeros is everywhere
_LOW = 39
_FIRST = 24
_COARSE = 18  # bits that rule most offsets out, by a table which a processor's cache holds
_TOGETHER = 4 << 20  # bytes of short texts that are searched at once
_BETWEEN = b"\xff"  # no byte of UTF-8, so that no window reaches from one text into the next


@dataclass(frozen=True, slots=True)
class Probes:
    """The windows of a workspace that are still to be looked for."""

    factor: int
    key: bytes
    wanted: frozenset[int]
    _first: NDArray[np.uint64] = field(init=False, repr=False, compare=False)
    _coarse: NDArray[np.bool_] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first = np.array([probe >> _LOW for probe in self.wanted], np.uint64)
        table = np.zeros(1 << _COARSE, dtype=bool)
        table[_coarsely(first)] = True
        object.__setattr__(self, "_first", first)
        object.__setattr__(self, "_coarse", table)

    def in_chunk(self, chunk: bytes) -> set[int]:
        """Return the wanted windows that the bytes hold."""
        # Each window once: a phrase of every day stands in a chunk a thousand times.
        windows = {chunk[at : at + WINDOW] for at in self._likely(chunk)}
        return set(map(self._probe, windows)) & self.wanted

    def _likely(self, chunk: bytes) -> Iterator[int]:
        """Yield the offsets whose first eight bytes may begin a wanted window."""
        factor = np.uint64(self.factor)
        for shift in range(8):
            count = (len(chunk) - shift) // 8
            if count < 1:
                return
            words: NDArray[np.uint64] = np.frombuffer(chunk, "<u8", count, shift)
            first = (words * factor) >> np.uint64(64 - _FIRST)
            near = np.flatnonzero(self._coarse[_coarsely(first)])
            for at in near[np.isin(first[near], self._first)]:
                offset = int(at) * 8 + shift
                if offset + WINDOW <= len(chunk):
                    yield offset

    def _probe(self, window: bytes) -> int:
        return _probe(self.key, self.factor, window)


def _coarsely(first: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return first >> np.uint64(_FIRST - _COARSE)


def _probe(key: bytes, factor: int, window: bytes) -> int:
    first = int.from_bytes(window[:8], "little") * factor % (1 << 64) >> (64 - _FIRST)
    rest = int.from_bytes(hmac.digest(key, window, hashlib.sha256)[:8], "little")
    return first << _LOW | rest % (1 << _LOW)


def _keys(scope: Scope) -> tuple[bytes, int]:
    key = hmac.digest(scope.secret, b"residue", hashlib.sha256)
    return key, int.from_bytes(key[:8], "little") | 1


def note(tx: Tx, scope: Scope, receipt: int, ids: Sequence[int]) -> None:
    """Keep windows of the records that are about to be erased, spread evenly over them."""
    key, factor = _keys(scope)
    sample = list(ids[:: 1 + len(ids) * PER_RECORD // MOST])
    probes = {_probe(key, factor, window) for window in _windows(tx, scope.ws, sample)}
    tx.many(
        "insert into residue(ws, receipt, probe) values (:ws, :receipt, :probe)",
        [{"ws": scope.ws, "receipt": receipt, "probe": probe} for probe in sorted(probes)],
    )


def _windows(tx: Tx, ws: int, ids: list[int]) -> Iterator[bytes]:
    rows = tx.all(
        "select text, metadata, payload, subject from record where ws = :ws and id in :ids",
        ws=ws,
        ids=ids,
    )
    for row in rows:
        text, *others = content_bytes(*row)
        yield from _telling(text, 3)
        for other in others:
            yield from _telling(other, 1)
    for vector in tx.vectors(ws, ids):
        yield from _telling(vector.astype("<f4").tobytes(), 1)


def _telling(data: bytes, most: int) -> list[bytes]:
    """Return up to `most` windows of the data that would hardly stand anywhere by chance."""
    last = len(data) - WINDOW
    starts = dict.fromkeys((0, last // 2, last, last // 4, last // 2 + last // 4))
    windows = [data[at : at + WINDOW] for at in starts if last >= 0]
    return [window for window in windows if len(set(window)) >= TELLING][:most]


def pending(tx: Tx, scope: Scope) -> tuple[Probes, list[int]]:
    """Return what is still to be looked for, and the receipts it belongs to."""
    rows = tx.all("select receipt, probe from residue where ws = :ws", ws=scope.ws)
    key, factor = _keys(scope)
    wanted = frozenset(row[1] for row in rows)
    return Probes(factor, key, wanted), sorted({row[0] for row in rows})


def still_living(probes: Probes, found: Collection[int], texts: Iterable[bytes]) -> set[int]:
    """Return which of the found windows stand in texts that were not erased: no residue of theirs."""
    if not found:
        return set()
    narrowed = Probes(probes.factor, probes.key, frozenset(found))
    living: set[int] = set()
    for joined in _joined(texts):
        living |= narrowed.in_chunk(joined)
        if len(living) == len(narrowed.wanted):
            break
    return living


def _joined(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the texts several at a time, each ended by a byte that no window holds."""
    held = bytearray()
    for text in texts:
        held += text + _BETWEEN
        if len(held) >= _TOGETHER:
            yield bytes(held)
            held.clear()
    yield bytes(held)


def settle(tx: Tx, ws: int, receipts: Sequence[int]) -> None:
    """Delete the windows of receipts that were found clean."""
    tx.run(
        "delete from residue where ws = :ws and receipt in :receipts",
        ws=ws,
        receipts=list(receipts),
    )
