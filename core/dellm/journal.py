"""The tombstone journal: which records are gone, in a file apart from the database and its backups.

A backup brings erased records back. The journal knows them by id and a keyed digest of what never
changes about them, and holds no content. Each forget is written to it and synced before it commits,
and marked as done afterwards, so a crash at any instant loses none; see restore_check for its use.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from .arguments import path_of
from .errors import InvalidInput, StorageError, UnsupportedHere

START = "dellm-journal/1"
_BRING_BACK = "Bring the whole file back from where it is kept, then try again."


@dataclass(slots=True)
class Noted:
    """A forget as the journal has it: its entry of the audit chain, its mode, ids and digests.

    `state`: "meant" before its commit, "done" after it, "void" if it was rolled back, "undone" for a
    suppression that was lifted. `again` are the entries of checks that found all of it gone: where one
    of those is in the chain, the forget need not be.
    """

    seq: int
    digest: str
    mode: str
    ids: Mapping[int, str]
    state: str = "meant"
    again: list[tuple[int, str]] = field(default_factory=list)

    @property
    def entries(self) -> list[tuple[int, str]]:
        """The entries of the chain (number and digest) each of which shows that it was carried out."""
        return [(self.seq, self.digest), *self.again]


@dataclass(slots=True)
class _Waiting(threading.local):
    """What this thread marks once its transaction is committed."""

    marks: list[dict[str, Any]] = field(default_factory=list)


class Journal:
    """An append-only file of JSON lines, each bound to the one before it. Thread- and process-safe."""

    def __init__(self, path: Path) -> None:
        """Use it at a path, whose folder must be there; the file is made at the first write."""
        self.path = path
        self._guard = threading.Lock()
        self._waiting = _Waiting()
        self._found: dict[str, list[Noted]] = {}
        self._read_to = 0
        self._sum = ""

    def meant(self, workspace: str, noted: Noted) -> None:
        """Write a forget down, before its commit; raises StorageError, so that it is not committed."""
        line = {
            "kind": "meant",
            "workspace": workspace,
            "seq": noted.seq,
            "digest": noted.digest,
            "mode": noted.mode,
            "ids": {str(id_): digest for id_, digest in noted.ids.items()},
        }
        self._append([line], durable=True)
        self._waiting.marks.append(_mark("done", workspace, noted))

    def lifted(self, workspace: str, noted: Noted) -> None:
        """Have a suppression marked as undone once this thread's transaction is committed."""
        self._waiting.marks.append(_mark("undone", workspace, noted))

    def settle(self, *, committed: bool) -> None:
        """Write what this thread waited to mark, if it is committed; else leave it to be looked up."""
        marks, self._waiting.marks = self._waiting.marks, []
        if committed and marks:
            self._append(marks, durable=False)

    def mark(self, state: str, workspace: str, several: Iterable[Noted]) -> None:
        """Say what became of forgets."""
        self._append([_mark(state, workspace, one) for one in several], durable=True)

    def checked(self, workspace: str, several: Iterable[Noted], entry: tuple[int, str]) -> None:
        """Say that forgets were found to be gone when an entry of the chain was written."""
        by = {"by": list(entry)}
        self._append([_mark("again", workspace, one) | by for one in several], durable=True)

    def read(self) -> dict[str, list[Noted]]:
        """Return the forgets of each workspace, in order; only what is new is read from the file.

        Raises StorageError for a file that was damaged other than by a write that broke off.
        """
        with self._opened() as file:
            size = file.seek(0, os.SEEK_END)
            if size < self._read_to:
                raise StorageError("The journal is shorter than it was.", remedy=_BRING_BACK)
            file.seek(self._read_to)
            for raw in file:
                if not raw.endswith(b"\n"):
                    break  # its write broke off, so what it announced was not committed
                self._take(raw)
                self._read_to += len(raw)
        return self._found

    def _take(self, raw: bytes) -> None:
        line = _parsed(raw)
        said = None if line is None else line.pop("sum", None)
        first = self._read_to == 0
        if line is None or said != _sum(self._sum, line) or first != (line.get("kind") == START):
            raise StorageError(
                f"The journal is damaged at byte {self._read_to}.", remedy=_BRING_BACK
            )
        self._sum = str(said)
        if not first:
            _note(self._found, line)

    def _append(self, lines: list[dict[str, Any]], *, durable: bool) -> None:
        with self._opened() as file:
            sum_, end = _tail(file)
            file.seek(end)
            file.truncate()
            if not end:
                lines = [{"kind": START}, *lines]
            for line in lines:
                sum_ = _sum(sum_, line)
                file.write(json.dumps({**line, "sum": sum_}, sort_keys=True).encode() + b"\n")
            file.flush()
            if durable:
                os.fsync(file.fileno())

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """Open the file, alone among all processes."""
        try:
            with self._guard, self.path.open("a+b") as file, _locked(file):
                file.seek(0)
                yield file
        except OSError as error:
            code = type(error).__name__
            raise StorageError(f"The journal can't be read or written ({code}).") from None


def journal_at(path: str | Path | None) -> Journal | None:
    """Return the journal at a path, None for none; InvalidInput where no file can be there."""
    if path is None:
        return None
    found = path_of(path, "journal=").absolute()
    if found.is_dir() or not found.parent.is_dir():
        raise InvalidInput("journal= is a folder, or in a folder that is not there.")
    return Journal(found)


def _mark(kind: str, workspace: str, noted: Noted) -> dict[str, Any]:
    return {"kind": kind, "workspace": workspace, "seq": noted.seq, "digest": noted.digest}


def _note(found: dict[str, list[Noted]], line: Mapping[str, Any]) -> None:
    noted, kind = found.setdefault(line["workspace"], []), line["kind"]
    if kind == "meant":
        ids = {int(id_): digest for id_, digest in line["ids"].items()}
        noted.append(Noted(line["seq"], line["digest"], line["mode"], ids))
        return
    for one in reversed(noted):  # marks come soon after what they mark
        if (one.seq, one.digest) == (line["seq"], line["digest"]):
            if kind == "again":
                one.again.append((line["by"][0], line["by"][1]))
            else:
                one.state = kind
            return


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _tail(file: IO[bytes]) -> tuple[str, int]:
    """Return the last whole line's sum and where it ends; ("", 0) of an empty file."""
    size = file.seek(0, os.SEEK_END)
    step, raw = 4096, b""
    while size:
        start = max(0, size - step)
        file.seek(start)
        raw = file.read(size - start)
        whole = raw.rfind(b"\n") + 1
        before = raw.rfind(b"\n", 0, max(whole - 1, 0))
        if (whole and before >= 0) or not start:
            line = _parsed(raw[before + 1 : whole]) if whole else {}
            if line is None:
                raise StorageError("The journal's last line is damaged.")
            return str(line.get("sum", "")), start + whole
        step *= 4
    return "", 0


def _sum(before: str, line: Mapping[str, Any]) -> str:
    said = before + json.dumps(line, sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:
        raise UnsupportedHere("The journal needs file locks, which this platform lacks.") from None
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
