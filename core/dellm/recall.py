"""Recall: the verbs that read. Each is one snapshot, and changes no record.

`Memory` adds the verbs that write; both see one workspace only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Self

from . import (
    audiences,
    drawing,
    explaining,
    exposures,
    governing,
    indexing,
    ledger,
    policies,
    provenance,
    proving,
    reading,
    receipts,
    search,
    storing,
    tracing,
    values,
    verify,
)
from . import context as contexts
from . import scan as scanning
from .actor import Actor
from .arguments import check_callable, check_text, check_whole, whole_numbers
from .arguments import texts as checked_texts
from .database import Filter, Scope, Tx
from .embedding import embed
from .encoding import decode, encode
from .engine import Engine
from .errors import InvalidInput, PolicyRefused
from .policy import Policy
from .policy_values import By
from .proof import Proof
from .records import Chosen, Context, Record
from .selectors import Look

PAGE = 500  # records that an export reads at a time


class Recall:
    """What can be asked of one workspace of an open memory. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str) -> None:
        """Use Memory.open and Memory.workspace instead."""
        self._engine = engine
        self.id = workspace

    @property
    def url(self) -> str:
        """Where the memory is, as it was opened less any password; a file by its whole path."""
        return self._engine.url

    @property
    def root(self) -> Self:
        """This open memory's workspace "default": one object as long as any workspace is in use."""
        if not isinstance(self._engine.root, type(self)):
            self._engine.root = type(self)(self._engine.acting(None), "default")
        return self._engine.root

    @property
    def actor(self) -> Actor | None:
        """On whose behalf this memory reads and writes; None for nobody in particular."""
        return self._engine.actor

    @property
    def closed(self) -> bool:
        """Whether the memory was closed here."""
        return self._engine.closed

    def after_read(self, call: Callable[[str, Sequence[int]], object]) -> None:
        """Have a function called after every read of this open memory: the workspace, the records.

        That is what context, search, get, history and export return. For adapters that keep what
        running code was given. A bound method is held only as long as its object is used elsewhere;
        a failure is nobody's.
        """
        check_callable(call, "call")
        self._engine.readers.add(call)

    @property
    def origin(self) -> str:
        """Which database this is: one made at the same place later has another, a copy the same.

        Raises DatabaseClosed, StorageError.
        """
        return self._engine.origin

    @property
    def identity(self) -> int:
        """A number that all workspaces of this open memory share, and no other open memory has."""
        return self._engine.identity

    # context and search

    def context(
        self,
        query: str,
        *,
        thread: str | None = None,
        k: int = 5,
        threshold: float | None = None,
        last: int = 0,
        by: str | None = None,
        scope: str = "workspace",
        budget: int | None = None,
        count: Callable[[str], int] = contexts.estimated_tokens,
        without: Sequence[int] = (),
    ) -> Context:
        """Choose what goes into the prompt for a query; see context.Choice for each option.

        `by` defaults to "meaning", or "keyword" for a memory without an embedder. Missing vectors
        are made first. Raises EmbedderError, InvalidInput.
        """
        by = by or ("meaning" if self._engine.embedder else "keyword")
        left_out = frozenset(whole_numbers(without, "without="))
        choice = contexts.Choice(k, threshold, last, by, scope, budget, count, left_out)
        choice.check()
        storing.check_thread(thread)
        asked = self._query(query, vectors=by != "keyword" and k > 0)
        with self._engine.reading(self.id) as (tx, bound):
            found = contexts.choose(tx, bound, asked, thread, choice, self._now())
        self._engine.readers.tell(self.id, found.ids)
        tracing.note(self._engine, self.id, found)
        return found

    def _query(self, text: str, *, vectors: bool) -> contexts.Query:
        check_text(text, "query=")
        if not vectors:
            return contexts.Query(text, None, 0.0)
        indexing.ready(self._engine, self.id)
        embedder = indexing.needed(self._engine)
        exposures.note_query(self._engine, self.id, embedder)
        return contexts.Query(text, indexing.query_vector(self._engine, text), embedder.threshold)

    def search(
        self,
        query: str,
        *,
        by: str | None = None,
        limit: int = 10,
        thread: str | None = None,
        threshold: float | None = None,
    ) -> list[Chosen]:
        """Return the best records for a query, best first; `by` as in context."""
        by = by or ("meaning" if self._engine.embedder else "keyword")
        contexts.Choice(k=limit, by=by, threshold=threshold).check()
        storing.check_thread(thread)
        asked = self._query(query, vectors=by != "keyword")
        keep = Filter(at=self._now(), thread=None if thread is None else encode(thread))
        least = asked.threshold if threshold is None else threshold
        with self._engine.reading(self.id) as (tx, scope):
            rankings = []
            if asked.vector is not None:
                rankings.append(search.by_meaning(tx, scope.ws, asked.vector, limit, least, keep))
            if by != "meaning":
                rankings.append(search.by_keyword(tx, scope.ws, query, limit, keep))
            hits = rankings[0] if len(rankings) == 1 else search.fused(rankings, limit)
            found = reading.several(tx, scope, [id_ for id_, _ in hits], keep.at)
        self._engine.readers.tell(self.id, list(found))
        return [Chosen(found[id_], score, by) for id_, score in hits if id_ in found]

    def closeness(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return how close each text is to a query in meaning, as a cosine in [-1, 1].

        For parts of what is stored, which have no vector. An outside embedder is sent them; the
        query and they count as queries sent to it. Raises EmbedderError, InvalidInput.
        """
        check_text(query, "query=")
        several = checked_texts(texts, "texts=")
        with self._engine.reading(self.id):  # a closed memory says so
            embedder = indexing.needed(self._engine)
        exposures.note_query(self._engine, self.id, embedder)
        rows = embed(embedder, [query, *several])
        return [float(one) for one in rows[1:] @ rows[0]]

    # reading

    def get(self, id_: int) -> Record:
        """Return a record; NotFound when it is not there to be read."""
        check_whole(id_, "The id")
        with self._engine.reading(self.id) as (tx, scope):
            found = reading.get(tx, scope, id_, self._now())
        self._engine.readers.tell(self.id, [id_])
        return found

    def history(
        self, thread: str, *, last: int | None = None, before: int | None = None
    ) -> list[Record]:
        """Return the records of a thread in order, or its newest `last`; `before` a place."""
        check_text(thread, "thread=")
        for name, number in (("last=", last), ("before=", before)):
            if number is not None:
                check_whole(number, name)
        with self._engine.reading(self.id) as (tx, scope):
            found = reading.thread(tx, scope, thread, self._now(), last=last, before=before)
        self._engine.readers.tell(self.id, [one.id for one in found])
        return found

    def threads(self) -> dict[str, int]:
        """Return the threads by name, with the number of their records."""
        with self._engine.reading(self.id) as (tx, scope):
            return {decode(name): n for name, n in reading.threads(tx, scope, self._now())}

    def export(self, *, by: By | str | None = None) -> Iterator[Record]:
        """Yield every record that may be read and given out, by id; no transaction stays open.

        What the policy keeps in is left out. `by`: who asks, as for forget; "system" is the program
        itself, which looks through all of it. Raises PolicyRefused, which the audit chain then says,
        where the policy gives nothing out, or not to them.
        """
        asker = policies.asked(self._engine, by)
        with policies.refusals(self._engine, self.id, "export", asker):
            with self._engine.reading(self.id) as (tx, scope):
                policy = governing.current(tx, scope)
            policy.gives_out(asker).require()
        return self._given_out(policy, asker)

    def _given_out(self, policy: Policy, by: By) -> Iterator[Record]:
        last = 0
        while page := self._page(last):
            last = page[-1].id
            with self._engine.reading(self.id) as (tx, scope):
                kept = governing.kept_in(tx, scope, policy, page, by)
            found = [one for one in page if one.id not in kept]
            self._engine.readers.tell(self.id, [one.id for one in found])
            yield from found

    def _page(self, after: int) -> list[Record]:
        with self._engine.reading(self.id) as (tx, scope):
            return reading.page(tx, scope, after, PAGE, self._now())

    # provenance

    def dependents(self, ids: Sequence[int]) -> list[int]:
        """Return Dep(M): the living records of `ids` and all made from them, ascending."""
        ids = whole_numbers(ids, "ids=")
        with self._engine.reading(self.id) as (tx, scope):
            found = [one for one in provenance.dependents(tx, scope.ws, ids) if one > 0]
            return _for_asker(tx, scope, found)

    def context_of(self, id_: int) -> list[int]:
        """Return context(m): the ids that were in the record's prompt, in order."""
        check_whole(id_, "The id")
        with self._engine.reading(self.id) as (tx, scope):
            return _for_asker(tx, scope, provenance.context_of(tx, scope.ws, id_))

    def used_in(self, id_: int) -> list[int]:
        """Return the inverse of context: the replies that had the record in their prompt."""
        check_whole(id_, "The id")
        with self._engine.reading(self.id) as (tx, scope):
            return _for_asker(tx, scope, provenance.used_in(tx, scope.ws, id_))

    def explain(self, id_: int) -> explaining.Explanation:
        """Answer "why do you know this?" for a record; NotFound when it is not there."""
        check_whole(id_, "The id")
        with self._engine.reading(self.id) as (tx, scope):
            return explaining.explain(tx, scope, id_, self._now())

    def graph(self, ids: Sequence[int] | None = None) -> drawing.Drawing:
        """Return the provenance graph of the records given, or of all that may be read."""
        ids = None if ids is None else whole_numbers(ids, "ids=")
        with self._engine.reading(self.id) as (tx, scope):
            chosen = ids
            if chosen is None:
                chosen = reading.all_ids(tx, scope, self._now())
            return drawing.draw(tx, scope.ws, _for_asker(tx, scope, chosen))

    # proof

    def receipt(self, number: int) -> receipts.Receipt:
        """Return a receipt by number, with the level reached by now; NotFound."""
        check_whole(number, "The receipt's number")
        with self._engine.reading(self.id) as (tx, scope):
            return receipts.read(tx, scope.ws, scope.name, number)

    def receipts(self) -> list[receipts.Receipt]:
        """Return every receipt of the workspace, oldest first."""
        with self._engine.reading(self.id) as (tx, scope):
            return receipts.all_of(tx, scope.ws, scope.name)

    def proof(self, number: int, *, valid_days: int = 365) -> Proof:
        """Return what somebody without the database can check of a receipt; see proof.check_proof.

        What each store holds now of what was erased is counted anew; the files are only looked at by
        `scrub`. `valid_days`: for how long it says so. Raises NotFound, InvalidInput.
        """
        check_whole(number, "The receipt's number")
        check_whole(valid_days, "valid_days=")
        if not 1 <= valid_days <= 36_500:
            raise InvalidInput("valid_days= is between 1 and 36,500.")
        with self._engine.reading(self.id) as (tx, scope):
            return proving.prove(tx, scope, number, self._now(), valid_days)

    def ledger(self) -> list[ledger.LedgerEntry]:
        """Return the audit chain, oldest first; it holds no content."""
        with self._engine.reading(self.id) as (tx, scope):
            return ledger.entries(tx, scope.ws)

    def scan(self, value: str, *, files: bool = True) -> scanning.ScanReport:
        """Return every place that still holds a value, in any spelling: tables and, if asked, files.

        Tables are looked at inside this workspace; files, and the tables of the keyword index that
        every workspace shares, are the whole database's and only counted, and left out without
        `files`.
        """
        check_text(value, "value=")
        if self._engine.asking is not None and not self._engine.asking.overseer:
            raise PolicyRefused("A scan looks at what is for others as well.")
        try:
            return scanning.scan(self._engine, self.id, value, files=files)
        finally:
            values.let_go()

    def verify(self) -> verify.VerifyReport:
        """Check the audit chain and the consistency of what is stored."""
        with self._engine.reading(self.id) as (tx, scope):
            return verify.verify(tx, scope)

    def _now(self) -> int:
        return self._engine.options.clock()

    def _look(self) -> Look:
        return Look(self._engine.options.region, self._now())


def _for_asker(tx: Tx, scope: Scope, ids: Sequence[int]) -> list[int]:
    """Return those of the records that who asks may read, in their order."""
    may = audiences.asked_for(tx, scope, ids)
    return [one for one in ids if one in may]
