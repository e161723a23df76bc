"""Rows a, e, f and h: one large memory, opened, walked, planned in, forgotten in and cleaned."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from statistics import median

from dellm import Draft, Memory

from .bare import Bare
from .data import Blocks, Texts, unit_vectors
from .scale import Scale
from .stores import Store
from .timing import Row, clock, timed, turns

BATCH = 20_000
NEEDLE = "the heron stood in the shallow water at dawn"
_OPEN = """
import sys, time
import dellm
start = time.perf_counter()
memory = dellm.Memory.open(sys.argv[1], embedder=None)
record = memory.workspace("big").get(int(sys.argv[2]))
print(time.perf_counter() - start)
memory.close()
"""


@dataclass(frozen=True, slots=True)
class Built:
    """A memory full of blocks, with a connection of the peer's own to the same database."""

    url: str
    memory: Memory
    bare: Bare
    ws: int
    blocks: Blocks
    edges: int
    seconds: float

    def held(self, root: int, size: int) -> list[tuple[int, list[str]]]:
        """Return what the peer needs to know to delete a block."""
        return self.bare.terms(self.ws, list(range(root, root + size)))


def build(store: Store, url: str, records: int, closure: int, texts: Texts) -> Built:
    """Fill a fresh database; some blocks of `closure` have vectors, which go with them."""
    blocks = Blocks.of(records, closure)
    memory = Memory.open(url, embedder=None).workspace("big")
    spent = 0.0
    left = records
    while left:
        drafts = [Draft(text, thread="t") for text in texts.take(min(BATCH, left))]
        if left == records:
            drafts[BATCH // 2 if records > BATCH else records // 2] = Draft(NEEDLE, thread="t")
        spent += timed(lambda drafts=drafts: memory.remember_many(drafts))  # type: ignore[misc] # bound at once
        left -= len(drafts)
    bare = store.bare(url)
    ws = bare.ws("big")
    edges = bare.load_edges(ws, blocks.edges())
    for root in blocks.roots(closure)[:24]:
        bare.load_vectors(ws, list(range(root, root + closure)), unit_vectors(closure, root))
    return Built(url, memory, bare, ws, blocks, edges, spent)


def rows(store: Store, scale: Scale) -> Iterator[Row]:
    """Yield the rows of one database."""
    texts = Texts()
    with ExitStack() as left:
        big = _opened(left, store, scale.records, scale.closure, texts)
        yield from _opening(store, scale, big)
        yield from _closures(store, scale, big)
        yield _planning(store, scale, big)
        yield _forgetting(store, scale, big)
        yield _growth(
            store,
            scale,
            big,
            [_opened(left, store, scale.few, scale.closure, texts) for _ in range(2)],
        )
        yield _scrubbing(store, big)


def _opened(left: ExitStack, store: Store, records: int, closure: int, texts: Texts) -> Built:
    url = store.fresh()
    left.callback(store.drop, url)
    built = build(store, url, records, closure, texts)
    left.callback(built.memory.close)
    left.callback(built.bare.close)
    return built


def _opening(store: Store, scale: Scale, big: Built) -> Iterator[Row]:
    times = []
    for number in range(scale.rounds):
        asked = [sys.executable, "-c", _OPEN, big.url, str(number * 1_000 + 1)]
        times.append(
            float(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
        )
    yield Row(
        name=f"f open {scale.records:,} records, first get",
        database=store.name,
        peer="-",
        ours=clock(median(times)),
        theirs="-",
        value=round(median(times) * 1e3, 1),
        unit="ms",
        bound=50.0 if store.name == "sqlite" else None,
        note=f"fresh process; {big.edges:,} edges; database driver imported in the time",
    )


def _closures(store: Store, scale: Scale, big: Built) -> Iterator[Row]:
    for size, rounds in ((10, 100), (scale.closure, 20), (scale.records // 10, scale.rounds)):
        root = big.blocks.roots(size)[0]
        mine = big.memory.dependents([root])
        if len(mine) != size or mine != sorted(big.bare.dependents(big.ws, root)):
            raise AssertionError("the two answers differ")
        pair = turns(
            lambda root=root: big.memory.dependents([root]),  # type: ignore[misc] # bound at once
            lambda root=root: big.bare.dependents(big.ws, root),  # type: ignore[misc] # as above
            rounds,
        )
        name = f"e Dep of {size:,} in {scale.records:,}"
        yield pair.row(name, store.name, "bare recursive statement", 1.5, "never analysed")


def _planning(store: Store, scale: Scale, big: Built) -> Row:
    taken = [timed(lambda: big.memory.plan(quote=NEEDLE)) for _ in range(2)]
    plan = big.memory.plan(quote=NEEDLE)
    if not plan.matches:
        raise AssertionError("the quote was not found")
    return Row(
        name=f"h plan(quote) over {scale.records:,} records",
        database=store.name,
        peer="-",
        ours=clock(min(taken)),
        theirs="-",
        value=round(min(taken), 3),
        unit="s",
        note=f"Dep of {len(plan):,}; suspects looked for too",
    )


def _forgetting(store: Store, scale: Scale, big: Built) -> Row:
    size = scale.closure
    roots = iter(big.blocks.roots(size)[: 2 * (scale.rounds + 1)])
    mine = list(islice(roots, scale.rounds + 1))
    theirs = iter([big.held(root, size) for root in roots])
    going = iter(mine)
    pair = turns(
        lambda: big.memory.forget(ids=[next(going)], scrub=False),
        lambda: big.bare.delete(big.ws, next(theirs)),
        scale.rounds,
    )
    name = f"a forget {size:,} of {scale.records:,}"
    peer = "bare delete of such rows by key"
    return pair.row(name, store.name, peer, 3.0, "planning included, physical clean-up not")


def _growth(store: Store, scale: Scale, big: Built, few: list[Built]) -> Row:
    size = scale.closure
    late = iter(big.blocks.roots(size)[2 * (scale.rounds + 1) :])
    small = iter([(one, root) for one in few for root in one.blocks.roots(size)[1:5]])

    def forget_few() -> None:
        one, root = next(small)
        one.memory.forget(ids=[root], scrub=False)

    pair = turns(lambda: big.memory.forget(ids=[next(late)], scrub=False), forget_few, scale.rounds)
    name = f"a growth of forget to {scale.records:,}"
    return pair.row(name, store.name, f"the same in {scale.few:,} records", 1.5)


def _scrubbing(store: Store, big: Built) -> Row:
    before = big.bare.size()
    big.bare.close()
    taken = timed(big.memory.scrub)
    megabytes = before / 1e6
    return Row(
        name="h scrub",
        database=store.name,
        peer="-",
        ours=clock(taken),
        theirs="-",
        value=round(taken / megabytes * 1e3, 2),
        unit="ms/MB",
        note=f"{megabytes:,.0f} MB rewritten, then read",
    )
