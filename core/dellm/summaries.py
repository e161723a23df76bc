"""Summaries of threads that follow what they were made from. Reached as `memory.summaries`.

A rolling summary is one text that grows version by version; a tree is one of partial summaries, of
which a forget makes only a few anew. Either is made of records with parents, in no thread, so the
forget of a message takes what it flowed into along, and makes it anew from what stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import rolling, summary_tree
from .arguments import check_choice, check_flag, check_text, check_whole
from .context import estimated_tokens
from .engine import Engine
from .errors import InvalidInput
from .records import Record
from .storing import check_thread
from .summarising import OF_MESSAGES, OF_PARTS, Again, Pace, Summarise, Summariser, told
from .summary_rows import Moved, Shelf
from .summary_tree import Shape

FORMS = (rolling.FORM, summary_tree.FORM)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a summary of a thread consists of by now, in the order of the thread.

    One record for a rolling summary, none to a few for a tree: pass their ids as context of what is
    made from it. Nothing where nothing was summarised, or what was is forgotten.
    """

    thread: str
    records: tuple[Record, ...]

    @property
    def ids(self) -> list[int]:
        """The ids of the records, in order."""
        return [one.id for one in self.records]

    @property
    def text(self) -> str:
        """The texts of the records, a line break between them."""
        return "\n".join(one.text for one in self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)


class Summaries:
    """The summaries of one workspace's threads. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.summaries instead."""
        self._engine = engine
        self.workspace = workspace

    def use(
        self,
        summarise: Summarise,
        *,
        name: str = "default",
        chunk: int = 32,
        budget: int = 6_000,
        count: Callable[[str], int] = estimated_tokens,
        say: Callable[[Record], str] = told,
        model: str | None = None,
    ) -> None:
        """Register a function that summarises, for all workspaces of this open memory.

        `summarise(previous, texts)` returns the summary of the texts that continues `previous`, or
        of the texts alone where that is None. It is called outside of any transaction, with at most
        `chunk` texts of at most `budget` tokens as counted by `count`, besides `previous`.
        `say(record)` is what it is given of a message. `model`, "provider/name", is what makes it.
        A process in which no function of the name is registered cannot make a summary anew: there
        a forget only erases it, and the next update makes it. The last one of a name counts. Raises
        InvalidInput.
        """
        made = Summariser(name, summarise, Pace(chunk, budget, count), say, model)
        made.check()
        self._engine.rebuilders[f"{OF_MESSAGES}{name}"] = Again(made, of_parts=False)
        self._engine.rebuilders[f"{OF_PARTS}{name}"] = Again(made, of_parts=True)
        self._engine.summarisers[name] = made

    def rolling(self, thread: str, *, by: str = "default", keep: bool = False) -> Summary:
        """Bring the rolling summary of a thread up to date and return it.

        One call of the function for what is new, or more where that does not fit one; none where
        nothing is. Messages that were dropped from the thread before are left out. `keep`: the
        version that is replaced stays readable, see `versions`. Raises ModelError (what was
        summarised before is kept), StorageError, InvalidInput.
        """
        check_flag(keep, "keep=")
        shelf = self._shelf(thread, rolling.FORM, by)
        rolling.bring_up_to_date(shelf, self._summariser(by), keep=keep)
        return self._read(shelf)

    def tree(
        self, thread: str, *, by: str = "default", leaf: int = 16, fan_out: int = 8
    ) -> Summary:
        """Bring the tree of partial summaries of a thread up to date and return its roots.

        `leaf` is how many messages a leaf has at most, `fan_out` how many parts an inner part: a
        tree in another shape is made anew. Raises as `rolling`.
        """
        for number, name, least in ((leaf, "leaf=", 1), (fan_out, "fan_out=", 2)):
            check_whole(number, name)
            if number < least:
                raise InvalidInput(f"{name} is {least} or more.")
        shelf = self._shelf(thread, summary_tree.FORM, by)
        summary_tree.bring_up_to_date(shelf, self._summariser(by), Shape(leaf, fan_out))
        return self._read(shelf)

    def current(self, thread: str, form: str = "rolling", *, by: str = "default") -> Summary:
        """Return a summary as it was last brought up to date, less what was forgotten since.

        `form` is "rolling" or "tree". Asks no model, and needs no registered function. Raises
        InvalidInput.
        """
        check_choice(form, FORMS, "form=")
        return self._read(self._shelf(thread, form, by))

    def versions(self, thread: str, *, by: str = "default") -> list[Record]:
        """Return the versions of a rolling summary that were kept, oldest first, the newest last."""
        shelf = self._shelf(thread, rolling.FORM, by)
        found = self._records(shelf, lambda: rolling.versions(shelf))
        self._engine.readers.tell(self.workspace, [one.id for one in found])
        return found

    def _read(self, shelf: Shelf) -> Summary:
        found = self._records(shelf, lambda: _newest(shelf))
        self._engine.readers.tell(self.workspace, [one.id for one in found])
        return Summary(shelf.thread, tuple(found))

    def _records(self, shelf: Shelf, ids: Callable[[], list[int]]) -> list[Record]:
        while True:
            try:
                return shelf.records(ids())
            except Moved:  # between the two reads: what is there now is asked for again
                continue

    def _shelf(self, thread: str, form: str, by: str) -> Shelf:
        check_text(thread, "thread")
        check_thread(thread)
        check_text(by, "by=")
        return Shelf(self._engine, self.workspace, thread, form, by)

    def _summariser(self, name: str) -> Summariser:
        with self._engine.reading(self.workspace):  # a closed memory says that it is closed
            found = self._engine.summarisers.get(name)
        if found is None:
            raise InvalidInput(
                "No summariser of this name is registered in this process.",
                remedy="Call summaries.use(function, name=...) first.",
            )
        return found


def _newest(shelf: Shelf) -> list[int]:
    if shelf.form == summary_tree.FORM:
        return summary_tree.look(shelf).roots()
    with shelf.engine.reading(shelf.workspace) as (tx, scope):
        parts = shelf.parts(tx, scope)
    return [one.record for one in parts if one.name == rolling.NEWEST and one.usable]
