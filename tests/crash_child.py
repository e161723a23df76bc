"""A process that starts others which kill themselves in the middle of a verb.

It imports everything once and opens nothing; each order read from stdin is carried out by a forked
child, so that a crash costs a fork and not the start of an interpreter. Orders and answers are JSON
lines. An order is {"url", "verb", "how", "kill"}: the child does the verb and sends itself SIGKILL

- how="statement": just before its n-th statement (SQLite) or round trip to the server (PostgreSQL)
- how="write": in the middle of its n-th write to a file, of which half reaches it (SQLite)
- how="call": in its n-th call of a derivation's function

The answer is {"killed", "count", "failed"}: whether it died, else how many statements or writes there
were, and whether the verb raised.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import apsw
import numpy as np  # noqa: F401 - imported before the forks, as are the others
import pgvector.psycopg  # noqa: F401
import psycopg
import psycopg_pool  # noqa: F401

import dellm.embedding.hashing
import dellm.forget
import dellm.postgres
import dellm.sqlite  # noqa: F401
from dellm import Memory, Record


class Fuse:
    """Counts events once lit, and kills the process at the one it was set to."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0
        self.lit = False

    def burn(self) -> bool:
        """Count an event; return whether it is the last one."""
        if not self.lit or threading.current_thread() is not threading.main_thread():
            return False
        self.count += 1
        return self.count == self.at


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before_statements(fuse: Fuse, memory: Memory) -> None:
    """Kill before a statement of SQLite, or before a round trip to PostgreSQL."""
    connection = getattr(memory._engine.database, "_connection", None)
    if connection is not None:

        def trace(cursor: object, sql: str, bindings: object) -> bool:
            if fuse.burn():
                die()
            return True

        connection.exec_trace = trace
        return
    wait = psycopg.Connection.wait

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        if fuse.burn():
            die()
        return wait(self, *arguments, **options)

    psycopg.Connection.wait = counted


def within_writes(fuse: Fuse) -> apsw.VFS:
    """Make a file system, the default from now on, that dies in the middle of a write."""

    real = apsw.vfs_names()[0]

    class File(apsw.VFSFile):
        def __init__(self, filename: Any, flags: Any) -> None:
            super().__init__(real, filename, flags)

        def xWrite(self, data: bytes, offset: int) -> None:
            if fuse.burn():
                super().xWrite(data[: len(data) // 2], offset)
                die()
            super().xWrite(data, offset)

    class Files(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("dying", real, makedefault=True)

        def xOpen(self, name: Any, flags: Any) -> File:
            return File(name, flags)

    return Files()


VERBS: dict[str, Callable[[Memory], object]] = {
    "forget": lambda memory: memory.forget(thread="doomed", scrub=False),
    "redact": lambda memory: memory.forget("Kingsbury", mode="redact", scrub=False),
    "scrub": lambda memory: memory.scrub(),
    "put off": lambda memory: memory.forget("canaryqzxv", rebuild="later", scrub=False),
    "rebuild": lambda memory: memory.rebuild(),
    "rederive": lambda memory: memory.rederive("digest"),
}


def register(memory: Memory, fuse: Fuse | None) -> None:
    """Register a derivation that says all that its sources say, version 2 for "rederive"."""

    def joined(sources: Sequence[Record]) -> str:
        if fuse is not None and fuse.burn():
            die()
        return "said: " + " ".join(one.text for one in sources)

    memory.derivation("digest", version=2)(joined)


def carry_out(order: dict[str, Any]) -> int:
    """Do the verb; return how many events there were."""
    fuse = Fuse(order["kill"])
    _files = within_writes(fuse) if order["how"] == "write" else None
    memory = Memory.open(order["url"], embedder="hashing", scrub_below=0).workspace("alex")
    register(memory, fuse if order["how"] == "call" else None)
    if order["how"] == "statement":
        before_statements(fuse, memory)
    fuse.lit = True
    VERBS[order["verb"]](memory)
    return fuse.count


def main() -> None:
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.write(writing, str(carry_out(json.loads(line))).encode())
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)  # without closing anything: as if killed right after the commit
        os.close(writing)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as said:
            count = said.read()
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        answer = {"killed": killed, "count": int(count or 0), "failed": not killed and not count}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
