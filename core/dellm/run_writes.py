"""Opening what a run writes: checkpoints, kept values, messages and documents, each in one transaction.

Whatever a run stores goes through `Writing`, whose atoms are settled against what was erased; and
what a commit teaches about names, lists and checkpoints is noted only after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .checkpointing import Writing
from .desk import Standing, open_desk
from .engine import Engine
from .keeping import Kept
from .naming import Names
from .restoring import Lists


class RunWrites:
    """Opens the writes of one workspace, and keeps what is known of it between two. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        self._engine = engine
        self._workspace = workspace
        self.names = Names()
        self.kept = Kept()
        self.lists = Lists()

    def expecting(self) -> Standing | None:
        """Return how the last write of this open memory left the workspace, to one who asks."""
        return self._engine.standing.pop(self._workspace, None)

    @contextmanager
    def open(
        self, thread: str, trusted: int, expected: Standing | None = None
    ) -> Iterator[Writing]:
        """Open a write of a thread; `trusted` is the generation of which the caller's ids are.

        `expected`: see open_desk; then Moved may be raised, and nothing is written.
        """
        engine = self._engine
        with engine.writing(self._workspace) as (tx, scope):
            at = engine.options.clock()
            desk, generation = open_desk(tx, scope, at, thread, engine.tips, trusted, expected)
            naming = self.names.open(tx, scope, generation)
            writing = Writing(tx, scope, naming, generation, desk, self.kept)
            yield writing
        engine.standing[self._workspace] = desk.standing
        naming.commit()
        for tip in desk.noted:
            engine.tips.note(scope.ws, thread, tip)
        for line, cid, known in writing.done:
            self.kept.put(line, cid, known)
        for tip in desk.noted:
            self.lists.note(generation, tip.marks[-1][1], tip.ids)
