"""Whatever is added, found and forgotten in whatever order: what is erased is in no index any more."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import (
    StorageContext,
    SummaryIndex,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.indices.base import BaseIndex
from llama_indexes import TextStore, Words, index_of, sentences

from dellm import Memory, NothingMatched
from dellm_llamaindex.documents import forget_document
from dellm_llamaindex.tracking import track

Opened = Callable[..., Memory]


def token(number: int) -> str:
    return f"QZ{number:04}X"


class World:
    """An index, its memory, and what should be in it."""

    def __init__(self, kind: str, url: str, opened: Opened, folder: Path, seed: int) -> None:
        self.opened, self.url, self.folder, self.kind = opened, url, folder, kind
        self.draw = random.Random(seed)
        self.store = TextStore() if kind == "text" else None
        index: Any = SummaryIndex([]) if kind == "list" else index_of([], self.store)
        self.index = index
        self.memory = opened(url)
        self.tracked = self.begin()
        self.alive: dict[str, str] = {}  # token -> document
        self.found: set[str] = set()
        self.erased: set[str] = set()
        self.count = 0

    def begin(self) -> Any:
        return track(self.index, self.memory, name="pages", persist_dir=str(self.folder))

    def add(self) -> None:
        document = f"doc{self.count}"
        fresh = [token(self.count * 10 + at) for at in range(self.draw.randint(1, 4))]
        nodes = sentences(". ".join(f"the word {one} stands here" for one in fresh), document)
        self.count += 1
        self.tracked.insert_nodes(nodes)
        self.alive.update(dict.fromkeys(fresh, document))

    def find(self) -> None:
        asked = self.draw.choice([*self.alive, "nothing"])
        found = self.retrieved(f"the word {asked}", 3)
        self.found |= {one for one in self.alive if any(one in text for text in found)}

    def retrieved(self, text: str, k: int) -> list[str]:
        options = {} if self.kind == "list" else {"similarity_top_k": k}
        nodes = self.tracked.as_retriever(**options).retrieve(text)
        texts = [one.node.get_content() for one in nodes]
        assert not [one for one in self.erased for text in texts if one in text]
        assert all(one.metadata["dellm_record"] for one in nodes)
        return texts

    def forget(self, memory: Memory | None = None) -> None:
        if not self.alive:
            return
        gone = self.draw.choice([*self.alive])
        try:
            (memory or self.memory).forget(quote=gone)
        except NothingMatched:
            return
        del self.alive[gone]
        self.erased.add(gone)

    def forget_elsewhere(self) -> None:
        other = self.opened(self.url)
        self.forget(other)
        self.tracked.sync()

    def forget_document(self) -> None:
        if not self.alive:
            return
        document = self.draw.choice([*self.alive.values()])
        forget_document(self.memory, document)
        gone = {one for one, its in self.alive.items() if its == document}
        self.erased |= gone
        self.alive = {one: its for one, its in self.alive.items() if one not in gone}

    def restart(self) -> None:
        self.memory.close()
        self.memory = self.opened(self.url)
        if self.store is None:
            self.index.storage_context.persist(persist_dir=str(self.folder))
            storage = StorageContext.from_defaults(persist_dir=str(self.folder))
            self.index = load_index_from_storage(storage, embed_model=Words())
        else:
            self.index = VectorStoreIndex.from_vector_store(self.store, embed_model=Words())
        self.tracked = self.begin()

    def kept(self) -> str:
        context = self.index.storage_context
        said: list[Any] = [context.docstore.to_dict(), self.index.index_struct.to_dict()]
        said += [one.to_dict() for one in context.vector_stores.values() if hasattr(one, "data")]
        if self.store is not None:
            said += [one.to_dict() for one in self.store.client.values()]
        said += [one.read_text() for one in self.folder.glob("*.json")]
        return json.dumps(said, default=str)

    def check(self) -> None:
        kept = self.kept()
        assert not [one for one in self.erased if one in kept]
        assert not [one for one in self.alive if one not in kept]
        assert self.tracked.pending == []
        texts = "\n".join(self.retrieved("the word", 1_000))
        assert not [one for one in self.alive if one not in texts]


@pytest.mark.parametrize("kind", ["simple", "text", "list"])
@pytest.mark.parametrize("seed", range(3))
def test_an_index_holds_what_it_should_and_nothing_that_was_forgotten(
    kind: str, seed: int, url: str, opened: Opened, tmp_path: Path
) -> None:
    world = World(kind, url, opened, tmp_path / "files", seed)
    steps = [world.add] * 4 + [world.find] * 3 + [world.forget] * 3
    steps += [world.forget_document, world.forget_elsewhere, world.restart]
    for _ in range(30):
        world.draw.choice(steps)()
        world.check()
    assert world.erased
    assert world.memory.verify().ok


def test_an_index_may_be_searched_while_something_is_forgotten(memory: Memory) -> None:
    index: BaseIndex[Any] = index_of([])
    tracked = track(index, memory, name="pages")
    for at in range(40):
        tracked.insert_nodes(sentences(f"the word {token(at)} stands here", f"doc{at}"))
    failed: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        retriever = tracked.as_retriever(similarity_top_k=5)
        try:
            while not done.is_set():
                retriever.retrieve("the word")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=search) for _ in range(2)]
    for one in threads:
        one.start()
    for at in range(30):
        memory.forget(quote=token(at))
    done.set()
    for one in threads:
        one.join()
    assert failed == []
    assert tracked.pending == []
    assert len(tracked.as_retriever(similarity_top_k=99).retrieve("the word")) == 10
