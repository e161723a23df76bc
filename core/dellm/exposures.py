"""What was sent where: which models and embedders of others saw which records, reached as `memory.exposures`.

Nothing here holds content, and nothing is erased over there by it: a receipt names who may still
have what was erased here, and until when.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from . import disclosures, exposure_rows, storing
from .arguments import check_text, whole_numbers
from .database import Scope, Tx
from .disclosures import Disclosure, provider_of, split
from .embedding import Embedder
from .engine import Engine
from .errors import DellmError, InvalidInput
from .plan import in_process
from .records import from_micros


@dataclass(frozen=True, slots=True)
class Exposure:
    """That a record was sent to a model or embedder of someone else, or made by it.

    `host` and `model` are the two parts of the name that its replies are recorded with, or of the
    embedder's; `first` and `last` are when it was first and last sent.
    """

    record: int
    host: str
    model: str
    embeds: bool
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Queries:
    """How many queries an embedder was sent on one day (UTC). What they asked is kept nowhere."""

    host: str
    model: str
    count: int
    first: datetime
    last: datetime


class Exposures:
    """What outside models and embedders were sent of one workspace. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.exposures instead."""
        self._engine = engine
        self.workspace = workspace

    def __call__(self, ids: Iterable[int] | None = None) -> list[Exposure]:
        """Return the same as `of`."""
        return self.of(ids)

    def of(self, ids: Iterable[int] | None = None) -> list[Exposure]:
        """Return who was sent each of the records, or of all there are, by record and name.

        What a record was made from says nothing of it: only being in a prompt itself does, or being
        the reply. Where a reply outlives its sources (a relaxed reach), what it is tied to in their
        place counts as sent. Raises InvalidInput.
        """
        wanted = None if ids is None else sorted(set(whole_numbers(ids, "ids=")))
        with self._engine.reading(self.workspace) as (tx, scope):
            found = exposure_rows.of_records(tx, scope.ws, wanted)
        return [
            Exposure(id_, *split(name), embeds, from_micros(first), from_micros(last))
            for id_, seen in sorted(found.items())
            for (name, embeds), (first, last) in sorted(seen.items())
        ]

    def providers(self, ids: Iterable[int] | None = None) -> tuple[Disclosure, ...]:
        """Return the same by provider and model, with what the table of providers says of each."""
        wanted = None if ids is None else sorted(set(whole_numbers(ids, "ids=")))
        with self._engine.reading(self.workspace) as (tx, scope):
            found = exposure_rows.of_records(tx, scope.ws, wanted)
        return disclosures.disclosed(found, self._engine.options.providers)

    def queries(self) -> list[Queries]:
        """Return how many queries outside embedders were sent, by name and day."""
        with self._engine.reading(self.workspace) as (tx, scope):
            rows = exposure_rows.queries(tx, scope.ws)
        return [
            Queries(*split(name), count, from_micros(first), from_micros(last))
            for name, _, count, first, last in rows
        ]

    def note(self, records: Iterable[int], *, model: str) -> int:
        """Note that records were sent to a model whose reply was not stored; return how many.

        For calls that failed, were cancelled, or whose reply was thrown away. `model` is named as for
        Memory.record: "provider/name"; one named "local/..." is nobody else. Records that are not
        there any more are left out. Raises InvalidInput.
        """
        wanted = sorted(set(whole_numbers(records, "records=")))
        check_text(model, "model=")
        if not model.strip():
            raise InvalidInput("model= is blank.")
        if in_process(model) or not wanted:
            return 0
        with self._engine.writing(self.workspace) as (tx, scope):
            return _note(tx, scope, wanted, (model, False), self._engine.options.clock())


def _note(tx: Tx, scope: Scope, wanted: Collection[int], who: exposure_rows.Who, at: int) -> int:
    storing.lock(tx, scope.ws)
    return exposure_rows.note_living(tx, scope.ws, wanted, who, at)


def outsider(embedder: Embedder) -> exposure_rows.Who | None:
    """Return who is sent what an embedder embeds; None where it does not leave this process."""
    provider = provider_of(embedder)
    if provider == "local":
        return None
    return f"{provider}/{embedder.name.removeprefix('openai:')}", True


def note_query(engine: Engine, workspace: str, embedder: Embedder) -> None:
    """Count a query that is about to be sent to an embedder, if that is an outside one."""
    if (who := outsider(embedder)) is not None:
        count_query(engine, workspace, who[0])


def count_query(engine: Engine, workspace: str, model: str) -> None:
    """Count a query that is sent to an embedder, "provider/name"; nothing for "local/...".

    Not where the workspace was never written to.
    """
    if in_process(model) or not engine.scope(workspace).ws:
        return
    with engine.writing(workspace) as (tx, scope):
        storing.lock(tx, scope.ws)
        exposure_rows.asked(tx, scope.ws, (model, True), engine.options.clock())


def note_embedded(tx: Tx, scope: Scope, embedder: Embedder, ids: Collection[int], at: int) -> None:
    """Note records whose texts an embedder was sent; the workspace's row is locked."""
    who = outsider(embedder)
    if who is not None:
        _note(tx, scope, ids, who, at)


def note_refused(engine: Engine, workspace: str, embedder: Embedder, ids: Collection[int]) -> None:
    """Note records that were sent to an embedder which did not answer as it must."""
    who = outsider(embedder)
    if who is None:
        return
    # What went wrong with the embedder is what the caller is to be told.
    with suppress(DellmError), engine.writing(workspace) as (tx, scope):
        _note(tx, scope, ids, who, engine.options.clock())
