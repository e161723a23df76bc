"""The checkpoints that a process wrote or read last, so that their rows are not read again."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from .bodies import Body


@dataclass(slots=True)
class Known:
    """A checkpoint's row as this process last saw it, and of which generation that is."""

    line: int
    body: Body
    parent: bytes | None
    generation: int


class Kept:
    """The checkpoints a process wrote or read last. Thread-safe."""

    def __init__(self, most: int = 1_024) -> None:
        self._most = most
        self._rows: dict[tuple[int, bytes], Known] = {}
        self._refused: dict[tuple[int, str], None] = {}
        self._guard = threading.Lock()

    def get(self, line: int, cid: bytes) -> Known | None:
        """Return what is kept of a checkpoint, or None."""
        return self._rows.get((line, cid))

    def put(self, line: int, cid: bytes, known: Known) -> None:
        """Keep a committed checkpoint in the place of the oldest one."""
        with self._guard:
            self._rows.pop((line, cid), None)
            self._rows[line, cid] = known
            while len(self._rows) > self._most:
                self._rows.pop(next(iter(self._rows)))

    def refuse(self, line: int, cid: str) -> None:
        """Keep that something a task wrote at a checkpoint was refused: its run still has it."""
        with self._guard:
            self._refused[line, cid] = None
            while len(self._refused) > self._most:
                self._refused.pop(next(iter(self._refused)))

    def refused(self, line: int, cid: str) -> bool:
        """Whether something that a task of this process wrote at a checkpoint was refused."""
        return (line, cid) in self._refused

    def clear(self) -> None:
        """Forget the checkpoints."""
        with self._guard:
            self._rows.clear()
