"""Rows b: remember and record, one call or many, next to inserting the same rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle
from statistics import median

from dellm import Draft, Memory
from dellm.terms import terms

from .bare import Bare, Written
from .data import Texts
from .scale import Scale
from .stores import Store
from .timing import Row, turns

ELSEWHERE = 1_000  # number of a workspace only the peer writes to
PEER = "bare insert, same tables and pragmas"


class Writer:
    """The peer's side: the same texts as rows of a workspace of its own."""

    def __init__(self, bare: Bare) -> None:
        self._bare = bare
        self._last = 0

    def rows(self, texts: list[str]) -> list[Written]:
        """Return the texts as rows ready to be written, under fresh ids."""
        made = []
        for text in texts:
            self._last += 1
            split = terms(text)
            row = (ELSEWHERE, self._last, self._last, "t", "message", "user", None, 1, text)
            nothing = (None,) * 6
            made.append(
                Written(
                    (*row, *nothing, 0, None, len(split), time.time_ns() // 1000),
                    list(dict.fromkeys(split)),
                )
            )
        return made

    def insert(self, one: Written, parents: list[int]) -> None:
        """Insert one row."""
        self._bare.insert(one, parents)


def rows(store: Store, scale: Scale) -> Iterator[Row]:
    """Yield the rows of one database."""
    url = store.fresh()
    texts = Texts()
    with Memory.open(url, embedder=None) as opened:
        memory = opened.workspace("write")
        memory.remember_many([Draft(text, thread="t") for text in texts.take(scale.few)])
        bare = store.bare(url)
        writer = Writer(bare)
        bare.insert_many(writer.rows(texts.take(scale.few)))
        yield from _single(store, scale, memory, writer, texts)
        yield _bulk(store, scale, memory, bare, writer, texts)
        bare.close()
    store.drop(url)


def _single(
    store: Store, scale: Scale, memory: Memory, writer: Writer, texts: Texts
) -> Iterator[Row]:
    many = scale.calls * (scale.rounds + 1)
    parents = [1, 2, 3, 4, 5]
    for name, context in (("b remember, one call", []), ("b record, five parents", parents)):
        ours = iter(texts.take(many))
        theirs = iter(writer.rows(texts.take(many)))

        def remember(texts: Iterator[str] = ours, context: list[int] = context) -> None:
            if context:
                memory.record(next(texts), thread="t", context=context)
            else:
                memory.remember(next(texts), thread="t")

        def insert(rows: Iterator[Written] = theirs, context: list[int] = context) -> None:
            writer.insert(next(rows), context)

        pair = turns(remember, insert, scale.rounds, each=scale.calls)
        yield pair.row(name, store.name, PEER, 2.0, "one transaction a call")


def _bulk(
    store: Store, scale: Scale, memory: Memory, bare: Bare, writer: Writer, texts: Texts
) -> Row:
    rounds = scale.rounds + 1
    drafts = cycle([[Draft(t, thread="t") for t in texts.take(scale.bulk)] for _ in range(rounds)])
    written = cycle([writer.rows(texts.take(scale.bulk)) for _ in range(rounds)])
    pair = turns(
        lambda: memory.remember_many(next(drafts)),
        lambda: bare.insert_many(next(written)),
        scale.rounds,
    )
    rate, base = (scale.bulk / median(side) for side in (pair.ours, pair.theirs))
    return Row(
        name=f"b remember_many of {scale.bulk:,}",
        database=store.name,
        peer=PEER,
        ours=f"{rate:,.0f} records/s",
        theirs=f"{base:,.0f} records/s",
        value=round(rate),
        unit="records/s",
        bound=50_000 if store.name == "sqlite" else None,
        at_least=True,
        note=f"{pair.ratio:.2f} times the peer's time",
    )
