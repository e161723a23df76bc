"""Making vectors: in batches, outside any write, when first needed or by memory.index().

All records up to `indexed_to` have their vector, so the work can stop at any point and go on later,
in any process. Quarantined ones have none until they are confirmed. A workspace's vectors belong to
one embedder.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import exposures
from .database import Scope, Tx, Vector
from .embedding import Embedder, embed
from .encoding import decode
from .engine import Engine
from .errors import EmbedderError

BATCH = 256  # records embedded between two commits
Progress = Callable[[int, int], None]


def needed(engine: Engine) -> Embedder:
    """Return the memory's embedder; EmbedderError when it was opened without one."""
    if engine.embedder is None:
        raise EmbedderError("This memory has no embedder, so it cannot search by meaning.")
    return engine.embedder


def query_vector(engine: Engine, text: str) -> Vector:
    """Return the unit vector of a query, float32 of shape (dimensions,)."""
    vector: Vector = embed(needed(engine), [text])[0]
    return vector


def index(engine: Engine, name: str, progress: Progress | None = None) -> int:
    """Give every record its vector; return how many were made.

    Changes the workspace to the memory's embedder first, if its vectors are another's: they are
    all dropped in one transaction, then made anew.
    """
    embedder = needed(engine)
    with engine.writing(name) as (tx, scope):
        _adopt(tx, scope.ws, embedder.name)
    done = 0
    while count := _batch(engine, name, embedder):
        done += count
        if progress:
            progress(done, done + _left(engine, name))
    return done


def ready(engine: Engine, name: str) -> None:
    """Make the vectors still missing; EmbedderError when the workspace's are another embedder's."""
    embedder = needed(engine)
    with engine.reading(name) as (tx, scope):
        row = tx.one(
            "select embedder, indexed_to < last_record from workspace where ws = :ws", ws=scope.ws
        )
    if row is None:
        return
    if row[0] not in {None, embedder.name}:
        raise EmbedderError(
            f"The workspace's vectors were made by {row[0]}, not by {embedder.name}.",
            remedy="Call index() to make them anew, or open the memory with the other embedder.",
        )
    if row[0] is None:
        index(engine, name)
        return
    # A full batch may not be the last; after any other there is no need to look, or to write.
    while row[1] and _batch(engine, name, embedder) == BATCH:
        continue


def at_hand(engine: Engine, name: str) -> bool:
    """Whether a search by meaning needs no more than a batch of new vectors, of the same embedder."""
    if engine.embedder is None:
        return False
    with engine.reading(name) as (tx, scope):
        row = tx.one(
            "select embedder, last_record - indexed_to from workspace where ws = :ws", ws=scope.ws
        )
    return row is not None and row[0] in {None, engine.embedder.name} and row[1] <= BATCH


def _adopt(tx: Tx, ws: int, embedder: str) -> None:
    # The row is locked before it is read: of two processes that begin to index at the same time, the
    # second must see that the first has begun, and not set `indexed_to` back under its vectors.
    row = tx.one("update workspace set version = version where ws = :ws returning embedder", ws=ws)
    if row is None or row[0] == embedder:
        return
    tx.run("delete from embedding where ws = :ws", ws=ws)
    tx.run(
        "update workspace set embedder = :embedder, dimensions = null, indexed_to = 0, "
        "generation = generation + 1 where ws = :ws",
        ws=ws,
        embedder=embedder,
    )


def _left(engine: Engine, name: str) -> int:
    with engine.reading(name) as (tx, scope):
        row = tx.one(
            "select count(*) from record where ws = :ws and kind <> 'state' "
            "and status <> 2 and id > "
            "(select indexed_to from workspace where ws = :ws)",
            ws=scope.ws,
        )
    return int(row[0]) if row else 0


def _batch(engine: Engine, name: str, embedder: Embedder) -> int:
    with engine.reading(name) as (tx, scope):
        rows = tx.all(
            "select id, text from record where ws = :ws and kind <> 'state' "
            "and status <> 2 and id > "
            "(select indexed_to from workspace where ws = :ws) order by id limit :limit",
            ws=scope.ws,
            limit=BATCH,
        )
    if not rows:
        return 0
    ids = [row[0] for row in rows]
    try:
        vectors = embed(embedder, [decode(row[1]) for row in rows])
        with engine.writing(name) as (tx, scope):
            done = _store(tx, scope, embedder.name, ids, vectors)
            exposures.note_embedded(tx, scope, embedder, ids, engine.options.clock())
    except EmbedderError:
        exposures.note_refused(engine, name, embedder, ids)
        raise
    return done


def _store(tx: Tx, scope: Scope, embedder: str, ids: list[int], vectors: Vector) -> int:
    """Store what still belongs: nothing of an erased record, nothing another process has done."""
    state = tx.one(
        "update workspace set version = version + 1 where ws = :ws "
        "returning embedder, dimensions, indexed_to",
        ws=scope.ws,
    )
    width = int(vectors.shape[1])
    if state is None or state[0] != embedder:
        raise EmbedderError("Another process changed the workspace's embedder meanwhile.")
    if state[1] not in {None, width}:
        raise EmbedderError(f"The embedder gave {width} numbers where {state[1]} were expected.")
    if state[2] >= ids[-1]:
        return len(ids)
    living = {
        row[0]
        for row in tx.all(
            "select id from record where ws = :ws and id in :ids and id > :done",
            ws=scope.ws,
            ids=ids,
            done=state[2],
        )
    }
    tx.many(
        # One that was confirmed meanwhile has its vector: see add.
        "insert into embedding(ws, id, data) values (:ws, :id, :data) "
        "on conflict (ws, id) do nothing",
        [
            {"ws": scope.ws, "id": id_, "data": np.ascontiguousarray(row, dtype="<f4")}
            for id_, row in zip(ids, vectors, strict=True)
            if id_ in living
        ],
    )
    tx.run(
        "update workspace set indexed_to = :upto, dimensions = :width where ws = :ws",
        ws=scope.ws,
        upto=ids[-1],
        width=width,
    )
    return len(ids)


def vector_for(engine: Engine, name: str, text: str) -> tuple[str, Vector] | None:
    """Return the name of the workspace's embedder and the vector of a text, None if it has none yet.

    Raises EmbedderError where the workspace's vectors are another embedder's.
    """
    with engine.reading(name) as (tx, scope):
        row = tx.one("select embedder from workspace where ws = :ws", ws=scope.ws)
    if row is None or row[0] is None:
        return None
    embedder = needed(engine)
    if row[0] != embedder.name:
        raise EmbedderError(f"The workspace's vectors were made by {row[0]}.")
    return embedder.name, query_vector(engine, text)


def add(tx: Tx, ws: int, id_: int, made: tuple[str, Vector] | None) -> bool:
    """Give one record of a locked workspace its vector; False where it has to be made anew."""
    row = tx.one("select embedder, dimensions from workspace where ws = :ws", ws=ws)
    embedder, width = (None, None) if row is None else row
    if made is None or embedder != made[0] or width not in {None, len(made[1])}:
        return embedder is None
    tx.run(
        "insert into embedding(ws, id, data) values (:ws, :id, :data) on conflict (ws, id) do nothing",
        ws=ws,
        id=id_,
        data=np.ascontiguousarray(made[1], dtype="<f4"),
    )
    tx.run("update workspace set dimensions = :width where ws = :ws", ws=ws, width=len(made[1]))
    return True
