"""Row d: bytes on disk for each byte of text and vector."""

from __future__ import annotations

from collections.abc import Iterator

from dellm import Draft, Memory

from .context_rows import Given
from .data import WIDTH, Texts, unit_vectors
from .scale import Scale
from .stores import Store
from .timing import Row

CHARACTERS = 200


def rows(store: Store, scale: Scale) -> Iterator[Row]:
    """Yield the rows of one database."""
    url = store.fresh()
    empty = _size(store, url)
    texts = Texts().take(scale.stored, CHARACTERS - 7)
    drafts = [Draft(f"r{number} {text}", thread="t") for number, text in enumerate(texts)]
    characters = sum(len(draft.text) for draft in drafts)
    vectors = unit_vectors(scale.stored, 3)
    with Memory.open(url, embedder=Given(vectors, vectors)) as opened:
        memory = opened.workspace("disk")
        memory.remember_many(drafts)
        without = _size(store, url) - empty
        memory.index()
    total = _size(store, url) - empty
    store.drop(url)
    numbers = 4 * WIDTH * scale.stored
    note = "all tables and indexes, keyword index too"
    yield _row(store, scale, "d disk, with vector", total, characters + numbers, 1.6, note)
    yield _row(store, scale, "d disk, without vector", without, characters, None, note)


def _row(
    store: Store, scale: Scale, name: str, size: int, content: int, bound: float | None, note: str
) -> Row:
    return Row(
        name=name,
        database=store.name,
        peer="the bytes of the content itself",
        ours=f"{size / scale.stored:,.0f} B/record",
        theirs=f"{content / scale.stored:,.0f} B/record",
        value=round(size / content, 2),
        bound=bound,
        note=note,
    )


def _size(store: Store, url: str) -> int:
    """Return the bytes of a database, migrated at the first call."""
    with Memory.open(url, embedder=None):
        bare = store.bare(url)
        size = bare.size()
        bare.close()
    return size
