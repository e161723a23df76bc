"""Physical clean-up, proved by reading the files: from "erased" to "scrubbed" (invariant I9).

Resumable: what is still to be proved lies in the `residue` table until a pass over the files has
found none of it. Safe to repeat, and to interrupt anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import ledger, receipts, residue
from .engine import Engine
from .errors import UnsupportedHere

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """What a scrub did. `clean` only when the files were read and hold no erased window.

    `receipts` are those proved clean; `found` counts windows still there; `obstacle` says what
    stood in the way (a reader, a lock, a missing right).
    """

    clean: bool
    steps: tuple[str, ...]
    receipts: tuple[int, ...] = ()
    found: int = 0
    obstacle: str = ""
    out_of_reach: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        state = "clean: no erased content in any file" if self.clean else "not clean yet"
        lines = [state, *(f"done: {step}" for step in self.steps)]
        if self.obstacle:
            lines.append(f"obstacle: {self.obstacle}")
        if self.found:
            lines.append(f"{self.found} window(s) of erased content are still in the files")
        return "\n".join([*lines, *(f"out of reach: {one}" for one in self.out_of_reach)])

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {
            "clean": self.clean,
            "steps": list(self.steps),
            "receipts": list(self.receipts),
            "found": self.found,
            "obstacle": self.obstacle,
            "out_of_reach": list(self.out_of_reach),
        }


def scrub(engine: Engine, name: str, progress: Progress | None = None) -> ScrubReport:
    """Clean the database up and prove it for every forget of the workspace not yet proved."""
    cleaned = engine.database.clean(progress)
    reach = engine.database.out_of_reach()
    if not cleaned.complete:
        return ScrubReport(False, cleaned.steps, obstacle=cleaned.obstacle, out_of_reach=reach)
    with engine.reading(name) as (tx, scope):
        probes, unproved = residue.pending(tx, scope)
        unproved = sorted({*unproved, *receipts.unproved(tx, scope.ws)})
    try:
        found = _left_in_files(engine, probes)
    except UnsupportedHere as error:
        return ScrubReport(False, cleaned.steps, obstacle=error.what, out_of_reach=reach)
    if progress:
        progress("files read")
    steps = (*cleaned.steps, "files read")
    if found:
        return ScrubReport(
            False, steps, found=len(found), obstacle=cleaned.obstacle, out_of_reach=reach
        )
    if unproved:
        _settle(engine, name, unproved)
    return ScrubReport(True, steps, receipts=tuple(unproved), out_of_reach=reach)


def _left_in_files(engine: Engine, probes: residue.Probes) -> set[int]:
    if not probes.wanted:
        return set()
    found: set[int] = set()
    for _, chunk in engine.database.file_chunks(residue.WINDOW - 1):
        found |= probes.in_chunk(chunk)
    if not found:
        return found
    return found - residue.still_living(probes, found, engine.database.living_bytes())


def _settle(engine: Engine, name: str, proved: list[int]) -> None:
    with engine.writing(name, durable=True) as (tx, scope):
        tx.run("update workspace set version = version + 1 where ws = :ws", ws=scope.ws)
        done = receipts.scrubbed(tx, scope.ws, min(proved, default=0))
        still = [one for one in proved if one not in done]
        residue.settle(tx, scope.ws, proved)
        if still:
            ledger.append(tx, scope.ws, "scrub", {"receipts": still}, engine.options.clock())
