"""The residue audit: how many copies of a secret each system's own deletion leaves, and where.

Each system is told the same secret between messages that have nothing to do with it, by a model that
repeats its prompt; then it deletes, by each way that its documentation offers; then the secret is
looked for in what an application reads, in older versions, in every row of every table, in caches and
in the bytes of every file. Each talk has a number of its own, so that no copy is counted twice.
"""

from __future__ import annotations

import importlib.metadata
import random
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Self

from benchmarks.core.stores import Store, stores

from .residue_chats import CHATS
from .residue_contest import Contestant, Place, Subject, Talk, Verb, talk
from .residue_graphs import SAVERS, STORES, loads_extensions
from .residue_looking import Secret, in_files, in_server, postgres_rows, sqlite_rows
from .residue_ours import OURS
from .results import Cell, Number, Report, share
from .running import Run

CONTESTANTS = (*OURS, *SAVERS, *STORES, *CHATS)
SECRETS, SMALL_SECRETS = 5, 1


@dataclass(frozen=True, slots=True)
class Left:
    """How many copies there are, by tier; None where the system has no such tier.

    `live` and `history` count messages, items or states, `tables` rows, `cache` answers, `files` and
    `log` occurrences in the bytes of data files and of write-ahead logs or journals.
    """

    live: int
    history: int | None = None
    tables: int | None = None
    cache: int | None = None
    files: int | None = None
    log: int | None = None

    @property
    def anywhere(self) -> bool:
        """Whether any tier has a copy left."""
        return any(getattr(self, one.name) for one in fields(self))


@dataclass(frozen=True, slots=True)
class Trial:
    """One talk: the copies left, and how many of the other messages are still read as they were."""

    left: Left
    kept: int
    others: int


NOTHING = Verb("nothing deleted", "control", lambda *_: None)


def run(run: Run) -> Report:
    """Try every verb of every system, and none at all as the control; return the table."""
    count = run.limit or (SMALL_SECRETS if run.small else SECRETS)
    chosen = [one for one in CONTESTANTS if not (run.small and one.keeps == "postgres")]
    rows: list[dict[str, Cell | Number]] = []
    with Bench(run, postgres=not run.small) as bench:
        for one in run.watch(chosen, "residue"):
            for verb in (NOTHING, *one.verbs):
                times = 0 if verb.act is None else count
                rows.append(row(one, verb, [bench.tried(one, verb) for _ in range(times)]))
    title = "Copies of a secret left after each system's own deletion"
    said = run.settings(secrets=count, **versions(chosen))
    return Report("residue", title, rows, {**said, "model": "canary"}, notes())


class Bench:
    """Empty places to try systems in: a folder each, and a database where the system needs one."""

    def __init__(self, run: Run, *, postgres: bool) -> None:
        self._run, self._postgres = run, postgres
        self._draw = random.Random(run.seed)
        self._stack = ExitStack()
        self._servers: list[Store] = []

    def __enter__(self) -> Self:
        if self._postgres:
            self._servers = self._stack.enter_context(stores("postgres"))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tried(self, one: Contestant, verb: Verb) -> Trial:
        """Play a talk with a secret of its own, delete by the verb, and count."""
        with self._place(one) as place:
            return tried(one, verb, place, talk(self._draw))

    @contextmanager
    def _place(self, one: Contestant) -> Iterator[Place]:
        with tempfile.TemporaryDirectory(prefix="residue-") as folder, ExitStack() as stack:
            url = ""
            if one.keeps == "postgres":
                (server,) = self._servers
                url = server.fresh()
                stack.callback(server.drop, url)
            yield Place(Path(folder), url, self._run.embedder)


def tried(one: Contestant, verb: Verb, place: Place, said: Talk) -> Trial:
    """Play the talk in an empty place, delete, and count; what is in files once it is closed.

    Raises RuntimeError if the secret could not be read before the deletion: the count would be void.
    """
    if verb.act is None:
        raise RuntimeError(f"{one.name} has no way to delete {verb.scope}")
    with one.opened(place) as subject:
        subject.play(said)
        if not said.secret.among(subject.live()):
            raise RuntimeError(f"{one.name} did not show the secret before the deletion")
        were = _others(subject, said)
        verb.act(subject, said)
        read = _read(one, subject, said.secret)
        kept = _others(subject, said)
        log = in_files(place.folder, said.secret)[1]
    return Trial(replace(read, **_stored(one, place, said.secret, log)), kept, were)


def _others(subject: Subject, said: Talk) -> int:
    """Return how many of the messages that have nothing to do with the secret are read, alone."""
    found = subject.live()
    return sum(other in found for other in said.others)


def _read(one: Contestant, subject: Subject, secret: Secret) -> Left:
    """Count what the opened system gives out."""
    older, cached = subject.history(), subject.cached()
    return Left(
        live=secret.among(subject.live()),
        history=None if older is None else secret.among(older),
        cache=None if cached is None else secret.among(cached),
        tables=None if one.raw is None else secret.among(one.raw(subject)),
    )


def _stored(one: Contestant, place: Place, secret: Secret, log: int) -> dict[str, int]:
    """Count what a closed system has in its tables and files. `log` was in its journals before."""
    if one.keeps == "memory":
        return {}
    if one.keeps == "postgres":
        files, log = in_server(place.url, secret)
        return {"tables": postgres_rows(place.url, secret), "files": files, "log": log}
    rows, files = sqlite_rows(place.folder, secret), in_files(place.folder, secret)[0]
    return {"tables": rows, "files": files, "log": log}


def row(one: Contestant, verb: Verb, trials: Sequence[Trial]) -> dict[str, Cell | Number]:
    """Return the table's row: of each tier the copies (from–to where talks differ), and two shares."""
    made: dict[str, Cell | Number] = {
        "system": one.name,
        "deletion": verb.words,
        "of": verb.scope,
    }
    for tier in fields(Left):
        made[tier.name] = _shown([getattr(trial.left, tier.name) for trial in trials])
    leaking, others = (
        sum(trial.left.anywhere for trial in trials),
        sum(one.others for one in trials),
    )
    made["any copy left"] = share(leaking, len(trials))
    made["others kept"] = share(sum(trial.kept for trial in trials), others)
    made["n"] = len(trials)
    return made


def _shown(counts: Sequence[int | None]) -> Cell:
    known = [count for count in counts if count is not None]
    if not known:
        return "–"
    low, high = min(known), max(known)
    return low if low == high else f"{low}–{high}"


def versions(chosen: Sequence[Contestant]) -> dict[str, str]:
    """Return the versions of what is compared, and how the SQLite of Python was built."""
    names = sorted({name for one in chosen for name in one.distributions} - {"dellm"})
    with closing(sqlite3.connect(":memory:")) as database:
        ((secure,),) = database.execute("pragma secure_delete")
    library = f"{sqlite3.sqlite_version} (secure_delete {'on' if secure else 'off'} by default)"
    return {**{name: importlib.metadata.version(name) for name in names}, "sqlite3": library}


def notes() -> list[str]:
    """Return what a reader of the table must know."""
    return [
        "Each talk has a number of its own; counts are of one talk, from–to where talks differ. live: "
        "messages or items that hold the number; history: older states or versions that an "
        "application can read; tables: rows (objects, in memory); cache: cached answers, and in mem0 "
        "the newest messages that it puts in its next prompt; files: occurrences in the bytes of "
        "data files once the system is closed (PostgreSQL: after VACUUM and CHECKPOINT); log: in "
        "write-ahead logs and journals, before it is closed. –: no such tier, or no such verb.",
        "Deletion of one message names only the message that told the number. Of all that tell it: "
        "every message or item that holds it, found and deleted one by one by the caller, which is "
        "more than the documentation asks for. Ours is given the message or the number, no more.",
        "others kept: of two messages that have nothing to do with the number, one before and one "
        "after it, how many are still read.",
        "The SQLite of Python overwrites what it deletes where it is built so (see secure_delete "
        "below), as Debian does; upstream's default does not, which the rows with secure_delete off "
        "show. Nothing here is long enough (2 kB) for PostgreSQL to compress it.",
        "Our forget scrubs small SQLite files by itself. On PostgreSQL forget promises that no read "
        "and no row has the number (level erased), and scrub clears the files and the log.",
        "LlamaIndex's Memory deletes a message by its row's number, which it does not tell: the "
        "audit reads it from the table. ChatMemoryBuffer is kept in memory. mem0's model keeps each "
        "message, and the reply that repeats the number, as a memory. "
        + (
            "" if loads_extensions() else "SqliteStore is without vectors: no extension loads here."
        ),
    ]
