"""Numbers for the names that checkpoints repeat: threads with their namespaces, channels and nodes.

Read once per process and kept. What a transaction added is kept only once it is committed, and
lines are dropped whenever the workspace's generation moved: a deleted thread has no line.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from .database import Scope, Tx
from .encoding import decode, encode

Line = tuple[str, str]  # thread, namespace
MOST_LINES = 4_096


class Names:
    """The names of one workspace that this process knows. Thread-safe."""

    def __init__(self) -> None:
        self._labels: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._lines: dict[Line, int] = {}
        self._generation = -1
        self._guard = threading.Lock()

    def open(self, tx: Tx, scope: Scope, generation: int) -> Naming:
        """Return the names as a transaction of this generation may use them."""
        with self._guard:
            if generation != self._generation or len(self._lines) > MOST_LINES:
                self._lines.clear()
                self._generation = generation
        return Naming(tx, scope, self)

    def learn(self, labels: Iterable[tuple[int, str]]) -> None:
        """Keep labels that are in the database."""
        with self._guard:
            for id_, name in labels:
                self._labels[name] = id_
                self._names[id_] = name

    def learn_line(self, line: Line, id_: int, generation: int) -> None:
        """Keep a line that is in the database, unless the generation moved since."""
        with self._guard:
            if generation == self._generation:
                self._lines[line] = id_

    def label(self, name: str) -> int | None:
        """Return the number of a name, if it is known."""
        return self._labels.get(name)

    def name(self, id_: int) -> str | None:
        """Return the name of a number, if it is known."""
        return self._names.get(id_)

    def line(self, line: Line) -> int | None:
        """Return the number of a line, if it is known."""
        return self._lines.get(line)

    @property
    def generation(self) -> int:
        """Of which generation the lines are."""
        return self._generation


class Naming:
    """Names inside one transaction; call `commit` after it was committed."""

    def __init__(self, tx: Tx, scope: Scope, names: Names) -> None:
        self._tx = tx
        self._ws = scope.ws
        self._names = names
        self._generation = names.generation
        self._labels: dict[str, int] = {}
        self._lines: dict[Line, int] = {}
        self._read = False

    def commit(self) -> None:
        """Keep what this transaction found or added."""
        self._names.learn((id_, name) for name, id_ in self._labels.items())
        for line, id_ in self._lines.items():
            self._names.learn_line(line, id_, self._generation)

    def label(self, name: str) -> int:
        """Return the number of a name, adding it if need be."""
        known = self._names.label(name)
        if known is None:
            known = self._labels.get(name)
        if known is None:
            self._load()
            known = self._labels.get(name)
        return self._add_label(name) if known is None else known

    def name(self, id_: int) -> str:
        """Return the name of a number."""
        known = self._names.name(id_)
        if known is None:
            self._load()
            known = next((name for name, one in self._labels.items() if one == id_), None)
        return "" if known is None else known

    def _load(self) -> None:
        if not self._read:
            rows = self._tx.all("select name, id from label where ws = :ws", ws=self._ws)
            self._labels.update({decode(name): id_ for name, id_ in rows})
            self._names.learn((id_, decode(name)) for name, id_ in rows)
            self._read = True

    def _add_label(self, name: str) -> int:
        row = self._tx.one(
            "insert into label(ws, id, name) values "
            "(:ws, (select coalesce(max(id), 0) + 1 from label where ws = :ws), :name) returning id",
            ws=self._ws,
            name=encode(name),
        )
        self._labels[name] = int(row[0]) if row else 0
        return self._labels[name]

    def find_line(self, line: Line) -> int | None:
        """Return the number of a thread's namespace, or None when nothing was ever put there."""
        known = self._names.line(line) or self._lines.get(line)
        if known is None:
            row = self._tx.one(
                "select id from line where ws = :ws and thread = :thread and ns = :ns",
                ws=self._ws,
                thread=encode(line[0]),
                ns=encode(line[1]),
            )
            known = None if row is None else int(row[0])
            if known is not None:
                self._lines[line] = known
        return known

    def line(self, line: Line, fresh: int) -> int:
        """Return the number of a thread's namespace; `fresh` if it has to be added."""
        known = self.find_line(line)
        if known is None:
            self._tx.later(
                "insert into line(ws, id, thread, ns) values (:ws, :id, :thread, :ns)",
                ws=self._ws,
                id=fresh,
                thread=encode(line[0]),
                ns=encode(line[1]),
            )
            known = self._lines[line] = fresh
        return known

    def lines(self, thread: str) -> list[tuple[int, str]]:
        """Return (number, namespace) of every line of a thread."""
        rows = self._tx.all(
            "select id, ns from line where ws = :ws and thread = :thread order by ns",
            ws=self._ws,
            thread=encode(thread),
        )
        return [(row[0], decode(row[1])) for row in rows]
