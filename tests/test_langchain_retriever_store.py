"""A tracked vector store or retriever: it does what it did, and what is forgotten is gone from it."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest
from documents import (
    CANARY,
    PLAIN,
    SECRET,
    Blind,
    Later,
    Strict,
    Sulking,
    Words,
    documents,
    held,
    library,
    texts,
)
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from one_file import lite

from dellm import InvalidInput, Memory
from dellm_langchain import track
from dellm_langchain.tracked_finding import Finding
from dellm_langchain.tracked_store import TrackedVectorStore

__all__ = ["lite"]

QUERY = "what opens the vault of the bank"
VECTOR = Words().embed_query(QUERY)

# Every way to find something: the call, sync and async.
FINDING: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "similarity": (
        lambda s: s.similarity_search(QUERY, k=4),
        lambda s: s.asimilarity_search(QUERY, k=4),
    ),
    "score": (
        lambda s: s.similarity_search_with_score(QUERY, k=4),
        lambda s: s.asimilarity_search_with_score(QUERY, k=4),
    ),
    "vector": (
        lambda s: s.similarity_search_by_vector(VECTOR, k=4),
        lambda s: s.asimilarity_search_by_vector(VECTOR, k=4),
    ),
    "mmr": (
        lambda s: s.max_marginal_relevance_search(QUERY, k=4, fetch_k=4),
        lambda s: s.amax_marginal_relevance_search(QUERY, k=4, fetch_k=4),
    ),
    "mmr vector": (
        lambda s: s.max_marginal_relevance_search_by_vector(VECTOR, k=4, fetch_k=4),
        # The store has no async method of its own for it, and the stock one runs this.
        lambda s: asyncio.to_thread(s.max_marginal_relevance_search_by_vector, VECTOR, 4, 4),
    ),
    "search": (
        lambda s: s.search(QUERY, "similarity", k=4),
        lambda s: s.asearch(QUERY, "similarity", k=4),
    ),
    "ids": (
        lambda s: s.get_by_ids(["d0", "d1", "d2", "d3"]),
        lambda s: s.aget_by_ids(["d0", "d1", "d2", "d3"]),
    ),
    "a method of its own": (
        lambda s: s.similarity_search_with_score_by_vector(VECTOR, k=4),
        lambda s: asyncio.to_thread(s.similarity_search_with_score_by_vector, VECTOR, 4),
    ),
    "retriever": (
        lambda s: s.as_retriever(search_kwargs={"k": 4}).invoke(QUERY),
        lambda s: s.as_retriever(search_kwargs={"k": 4}).ainvoke(QUERY),
    ),
    "mmr retriever": (
        lambda s: s.as_retriever(search_type="mmr", search_kwargs={"k": 4}).invoke(QUERY),
        lambda s: s.as_retriever(search_type="mmr", search_kwargs={"k": 4}).ainvoke(QUERY),
    ),
}


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


def plain(found: Any) -> Any:
    """Return what was found without the ids of records."""
    if isinstance(found, list):
        return [plain(one) for one in found]
    if isinstance(found, tuple):
        return tuple(plain(one) for one in found)
    if isinstance(found, Document):
        rest = {key: one for key, one in found.metadata.items() if key != "dellm_id"}
        return Document(id=found.id, page_content=found.page_content, metadata=rest)
    return found


def listed(found: Any) -> list[Document]:
    return [one[0] if isinstance(one, tuple) else one for one in found]


def records(memory: Memory) -> list[str]:
    return [one.text for one in memory.export() if one.kind == "document"]


@pytest.mark.parametrize("way", FINDING)
def test_it_finds_what_the_store_finds_and_nothing_that_is_forgotten(
    lite: Memory, way: str
) -> None:
    sync, later = FINDING[way]
    store = library(Sulking(Words()))  # so that only the filter keeps it back
    tracked = track(store, lite, name="library")
    for found in (sync(tracked), asyncio.run(later(tracked))):
        assert plain(found) == sync(store)
        named = {one.metadata["dellm_id"]: one.page_content for one in listed(found)}
        assert {id_: lite.get(id_).text for id_ in named} == named
    assert sorted(records(lite)) == sorted([*PLAIN, SECRET])
    lite.forget(SECRET)
    expected = [one for one in sync(store) if listed([one])[0].page_content != SECRET]
    assert plain(sync(tracked)) == expected
    assert plain(asyncio.run(later(tracked))) == expected
    assert len(expected) == 3
    assert lite.scan(CANARY, files=False).clean


def test_a_document_that_is_forgotten_is_deleted_from_the_store_at_once(memory: Memory) -> None:
    tracked = track(InMemoryVectorStore(Words()), memory)
    assert tracked.add_documents(documents()) == ["d0", "d1", "d2", "d3"]
    (secret,) = [one for one in memory.export() if one.text == SECRET]
    assert secret.metadata == {"source": "book 3", "page": 3, "dellm_document": "d3"}
    memory.forget(ids=[secret.id])
    assert held(tracked.store) == {"d0", "d1", "d2"}
    assert tracked.pending == []
    assert memory.verify().ok


def test_the_chunks_of_a_source_are_forgotten_together(memory: Memory) -> None:
    tracked = track(InMemoryVectorStore(Words()), memory)
    both = [{"source": "a.pdf", "page": 1}, {"source": "a.pdf", "page": 2}, {"source": "b.pdf"}]
    ids = tracked.add_texts(["one", "two", "two"], both)
    memory.forget(where={"source": "a.pdf"})
    assert held(tracked.store) == {ids[2]}
    assert texts(tracked.similarity_search("two")) == ["two"]


@pytest.mark.parametrize("way", ["documents", "texts", "adocuments", "atexts", "from texts"])
def test_however_a_text_is_added_it_is_a_record_first_and_not_added_again_once_forgotten(
    lite: Memory, way: str
) -> None:
    stock = InMemoryVectorStore(Words())
    tracked = track(stock, lite, name="all")

    def add(said: list[str]) -> Any:
        found = [Document(page_content=one, metadata={"source": "x"}) for one in said]
        metas = [{"source": "x"} for _ in said]
        if way == "documents":
            return tracked.add_documents(found)
        if way == "adocuments":
            return asyncio.run(tracked.aadd_documents(found))
        if way == "texts":
            return tracked.add_texts(iter(said), metas)
        if way == "atexts":
            return asyncio.run(tracked.aadd_texts(said, metas))
        made = type(tracked).from_texts(
            said, Words(), metas, store=InMemoryVectorStore, memory=lite, tracking={"name": "new"}
        )
        stock.store.update(made.store.store)
        made.store.store = stock.store
        kept.append(made)
        return list(stock.store)

    kept: list[Any] = []
    ids = add([SECRET, PLAIN[0]])
    assert sorted(records(lite)) == sorted([SECRET, PLAIN[0]])
    assert held(stock) == set(ids)
    lite.forget(SECRET)
    assert [one["text"] for one in stock.store.values()] == [PLAIN[0]]
    again = add([PLAIN[1], SECRET])
    assert len(again) == 2 or way == "from texts"
    assert sorted(one["text"] for one in stock.store.values()) == sorted([PLAIN[0], PLAIN[1]])
    assert lite.scan(CANARY, files=False).clean


def test_the_same_text_under_two_ids_is_one_record_and_goes_under_both(memory: Memory) -> None:
    tracked = track(InMemoryVectorStore(Words()), memory)
    tracked.add_texts([SECRET], ids=["a"])
    tracked.add_texts([SECRET, PLAIN[0]], ids=["b", "c"])
    assert records(memory) == [SECRET, PLAIN[0]]
    memory.forget(SECRET)
    assert held(tracked.store) == {"c"}


def test_an_id_that_was_given_new_content_is_not_deleted_with_the_old(memory: Memory) -> None:
    tracked = track(InMemoryVectorStore(Words()), memory)
    tracked.add_texts([SECRET], ids=["a"])
    tracked.add_texts([PLAIN[0]], ids=["a"])
    memory.forget(SECRET)
    assert texts(tracked.get_by_ids(["a"])) == [PLAIN[0]]
    tracked.add_texts([PLAIN[1]], ids=["a"])
    memory.forget(PLAIN[1])
    assert held(tracked.store) == set()
    tracked.add_texts([PLAIN[2]], ids=["a"])
    assert texts(tracked.similarity_search("ships")) == [PLAIN[2]]


@pytest.mark.parametrize("how", ["raises", "says no", "is silent"])
def test_a_delete_that_fails_is_pending_said_and_tried_again(
    lite: Memory, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = library(Sulking(Words(), how))
    tracked = track(store, lite, name="library")
    tracked.similarity_search(QUERY, k=4)
    with caplog.at_level(logging.WARNING, "dellm.langchain"):
        lite.forget(SECRET)
    assert tracked.pending == ["d3"]
    assert "d3" in held(store)
    assert [one.levelname for one in caplog.records] == ["WARNING"]
    assert CANARY not in caplog.text
    assert "d3" not in caplog.text
    assert SECRET not in texts(tracked.similarity_search(QUERY, k=4))
    assert tracked.sync() == 1
    assert asyncio.run(tracked.a_sync()) == 1
    store.how = None
    assert texts(tracked.similarity_search(QUERY, k=4)) != []
    assert tracked.pending == []
    assert held(store) == {"d0", "d1", "d2"}
    assert tracked.sync() == 0


@pytest.mark.parametrize("kind", [Strict, Blind])
def test_one_id_that_is_not_there_does_not_keep_the_others(
    lite: Memory, kind: type[InMemoryVectorStore]
) -> None:
    store = library(kind(Words()))
    tracked = track(store, lite, name="library")
    tracked.similarity_search(QUERY, k=4)
    del store.store["d0"]
    lite.forget(everything=True)
    assert held(store) == set()
    assert tracked.pending == ([] if kind is Strict else ["d0"])


def test_a_store_for_event_loops_alone_is_cleaned_there(memory: Memory) -> None:
    store = library(Later(Words()))
    tracked = track(store, memory, name="library")
    tracked.similarity_search(QUERY, k=4)
    memory.forget(SECRET)
    assert tracked.pending == ["d3"]
    found = asyncio.run(tracked.asimilarity_search(QUERY, k=4))
    assert SECRET not in texts(found)
    assert held(store) == {"d0", "d1", "d2"}
    assert tracked.pending == []


def test_what_another_process_forgot_is_deleted_at_the_next_use(
    url: str, opened: Callable[..., Memory]
) -> None:
    store, first = library(), opened(url, embedder=None)
    tracked = track(store, first, name="library")
    tracked.similarity_search(QUERY, k=4)
    del tracked
    gc.collect()
    other = opened(url, embedder=None)
    other.forget(SECRET)
    assert "d3" in held(store)
    again = track(store, other, name="library")
    assert again.pending == ["d3"]
    assert SECRET not in texts(again.similarity_search(QUERY, k=4))
    assert held(store) == {"d0", "d1", "d2"}


def test_a_store_that_is_filled_anew_behind_our_back_is_cleaned_again(memory: Memory) -> None:
    first = track(library(), memory, name="library")
    first.similarity_search(QUERY, k=4)
    memory.forget(SECRET)
    del first
    gc.collect()
    store = library()  # as at the start of a program that keeps its vectors in memory
    again = track(store, memory, name="library")
    assert SECRET not in texts(again.similarity_search(QUERY, k=4))
    assert again.pending == ["d3"]
    again.similarity_search(QUERY, k=4)
    assert held(store) == {"d0", "d1", "d2"}
    assert again.pending == []


def test_the_name_of_a_document_is_in_no_file_once_it_is_deleted(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(sqlite_url, embedder=None)
    tracked = track(InMemoryVectorStore(Words()), memory)
    tracked.add_texts([PLAIN[0]], [{"source": "b"}], ids=[CANARY])
    assert memory.scan(CANARY).places
    assert memory.forget(where={"source": "b"}).level == "scrubbed"
    assert memory.scan(CANARY).clean


def test_what_is_forgotten_while_it_is_added_is_deleted_again(memory: Memory) -> None:
    class Slow(InMemoryVectorStore):
        def add_texts(self, *said: Any, **options: Any) -> list[str]:
            memory.forget(SECRET)
            return super().add_texts(*said, **options)

    tracked = track(Slow(Words()), memory)
    tracked.add_texts([SECRET, PLAIN[0]], ids=["a", "b"])
    assert held(tracked.store) == {"b"}
    assert tracked.pending == []


def test_a_store_that_gives_ids_of_its_own_is_cleaned_by_those(memory: Memory) -> None:
    class Own(InMemoryVectorStore):
        def add_documents(self, documents: list[Document], **_: Any) -> list[str]:
            return super().add_documents([Document(one.page_content) for one in documents])

    tracked = track(Own(Words()), memory)
    ids = tracked.add_texts([SECRET, PLAIN[0]])
    assert set(ids) == held(tracked.store)
    memory.forget(SECRET)
    assert held(tracked.store) == {ids[1]}


def test_deleting_from_the_store_forgets_nothing(memory: Memory) -> None:
    tracked = track(InMemoryVectorStore(Words()), memory)
    tracked.add_texts([*PLAIN], ids=["a", "b", "c"])
    tracked.delete(["a"])
    asyncio.run(tracked.adelete(["b"]))
    assert held(tracked.store) == {"c"}
    assert len(records(memory)) == 3
    memory.forget(everything=True)
    assert tracked.pending == []


def test_a_suppressed_document_is_hidden_and_comes_back(memory: Memory) -> None:
    store = library()
    tracked = track(store, memory, name="library")
    tracked.similarity_search(QUERY, k=4)
    receipt = memory.forget(SECRET, mode="suppress")
    assert SECRET not in texts(tracked.similarity_search(QUERY, k=4))
    assert len(held(store)) == 4
    memory.restore(receipt)
    assert texts(tracked.similarity_search(QUERY, k=1)) == [SECRET]


@pytest.mark.parametrize("asked", [1, 2, 3])
def test_what_is_forgotten_takes_nobodys_place(lite: Memory, asked: int) -> None:
    store = Sulking(Words())
    store.add_texts([SECRET, f"{SECRET} ", f"{SECRET}  ", f"{SECRET}   ", *PLAIN])
    tracked = track(store, lite, name="library")
    tracked.similarity_search(QUERY, k=4)
    lite.forget(SECRET)
    assert len(tracked.pending) == 4
    found = texts(tracked.similarity_search(QUERY, k=asked))
    assert len(found) == asked
    assert set(found) <= set(PLAIN)
    assert texts(asyncio.run(tracked.asimilarity_search(QUERY, k=asked))) == found
    assert len(tracked.max_marginal_relevance_search(QUERY, k=asked)) == asked
    assert len(tracked.similarity_search(QUERY, k=9)) == 3


def test_filters_and_what_only_the_store_has_are_passed_through(memory: Memory) -> None:
    tracked = track(library(), memory, name="library")
    only = tracked.similarity_search(QUERY, filter=lambda one: one.metadata["page"] == 1)
    assert texts(only) == [PLAIN[1]]
    assert isinstance(tracked.embeddings, Words)
    assert tracked.store is not tracked
    assert set(tracked.store.store) == {"d0", "d1", "d2", "d3"}
    found = tracked.similarity_search(QUERY, k=1)
    tracked.add_documents(found)  # as it was given: with the id of its record
    assert "dellm_id" not in tracked.store.store["d3"]["metadata"]
    with pytest.raises(AttributeError):
        _ = tracked.nothing_of_this_name


# the user's own retriever


class Shelf(BaseRetriever):
    """Finds all documents, the secret first; they have no ids."""

    found: list[str]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, cut: bool = False
    ) -> list[Document]:
        said = [one[:9] for one in self.found] if cut else self.found
        score = {"score": len(query), "source": "shelf"}
        return [Document(page_content=one, metadata=score) for one in said]


def test_what_any_retriever_finds_is_a_record_and_not_found_once_forgotten(memory: Memory) -> None:
    tracked = track(Shelf(found=[SECRET, *PLAIN]), memory)
    first = tracked.invoke(QUERY)
    assert texts(first) == [SECRET, *PLAIN]
    assert [one.metadata["score"] for one in first] == [len(QUERY)] * 4
    again = asyncio.run(tracked.ainvoke("another"))
    assert [one.metadata["dellm_id"] for one in again] == [
        one.metadata["dellm_id"] for one in first
    ]
    assert [len(one) for one in texts(tracked.invoke(QUERY, cut=True))] == [9] * 4
    memory.forget(SECRET)
    assert texts(tracked.invoke(QUERY)) == [*PLAIN]
    assert texts(asyncio.run(tracked.ainvoke(QUERY))) == [*PLAIN]
    assert tracked.batch([QUERY, QUERY])[1] == tracked.invoke(QUERY)
    assert memory.scan(CANARY, files=False).clean


def test_the_retriever_of_a_vector_store_deletes_from_it(memory: Memory) -> None:
    store = library()
    tracked = track(store.as_retriever(search_type="mmr", search_kwargs={"k": 2}), memory)
    assert len(tracked.invoke(QUERY)) == 2
    memory.forget(SECRET)
    assert held(store) == {"d0", "d1", "d2"}
    assert texts(tracked.invoke(QUERY))[0] in PLAIN


def test_a_document_that_was_cut_from_another_goes_with_it(memory: Memory) -> None:
    class Cut(BaseRetriever):
        inner: BaseRetriever

        def _get_relevant_documents(
            self, query: str, *, run_manager: CallbackManagerForRetrieverRun
        ) -> list[Document]:
            found = self.inner.invoke(query)
            return [
                one.model_copy(update={"page_content": one.page_content[-10:], "id": None})
                for one in found
            ]

    whole = track(library(), memory, name="library")
    cut = track(Cut(inner=whole.as_retriever()), memory)
    assert CANARY in texts(cut.invoke(QUERY))
    memory.forget(SECRET)
    assert CANARY not in texts(cut.invoke(QUERY))
    assert memory.scan(CANARY, files=False).clean
    assert len(records(memory)) == 6


# workspaces


def test_each_run_is_in_the_workspace_that_its_config_names(memory: Memory) -> None:
    def of(name: str) -> Any:
        return {"configurable": {"user_id": name}}

    store = library()
    tracked = track(store, memory, workspace="user_id", name="library", shared=True)
    retriever = tracked.as_retriever(search_kwargs={"k": 4})
    for name in ("ann", "bob"):
        assert len(retriever.invoke(QUERY, of(name))) == 4
        assert len(asyncio.run(retriever.ainvoke(QUERY, of(name)))) == 4
    assert records(memory) == []
    memory.workspace("ann").forget(SECRET)
    assert SECRET not in texts(retriever.invoke(QUERY, of("ann")))
    assert SECRET in texts(retriever.invoke(QUERY, of("bob")))
    with pytest.raises(InvalidInput):
        retriever.invoke(QUERY)
    with pytest.raises(InvalidInput):
        _ = tracked.pending
    bob = tracked.for_workspace("bob")
    (own,) = bob.add_texts(["only of bob"])
    memory.workspace("bob").forget("only of bob")
    assert own not in held(store)
    assert len(held(store)) == 4
    any_ = track(Shelf(found=[SECRET]), memory, workspace="user_id")
    for name in ("ann", "bob"):
        assert texts(any_.for_workspace(name).invoke(QUERY)) == [SECRET]
    memory.workspace("ann").forget(SECRET)
    assert any_.invoke(QUERY, of("ann")) == []
    assert texts(any_.invoke(QUERY, of("bob"))) == [SECRET]


def test_each_workspace_finds_and_deletes_only_what_was_added_in_it(memory: Memory) -> None:
    store = library()
    tracked = track(store, memory, workspace="user_id", name="all")
    ann, bob = tracked.for_workspace("ann"), tracked.for_workspace("bob")
    ann.add_texts([f"ann has a vault with {CANARY}", "the sun"], ids=["a", "s"])
    bob.add_texts(["bob has a vault", "the sun"], ids=["b", "t"])
    assert set(texts(bob.similarity_search(QUERY, k=4))) == {"bob has a vault", "the sun"}
    later = asyncio.run(ann.as_retriever().ainvoke(QUERY))
    assert {one.id for one in later} == {"a", "s"}
    assert bob.get_by_ids(["a", "b", "d0"])[0].id == "b"
    assert memory.workspace("bob").scan(CANARY, files=False).clean
    ann.delete(["a", "b", "d0"])
    asyncio.run(bob.adelete(["s"]))
    assert held(store) == {"d0", "d1", "d2", "d3", "s", "t", "b"}
    memory.workspace("ann").forget("the sun")
    assert held(store) == {"d0", "d1", "d2", "d3", "t", "b"}
    assert texts(bob.similarity_search("the sun", k=1)) == ["the sun"]


def test_an_id_that_two_workspaces_use_is_of_the_one_that_used_it_last(memory: Memory) -> None:
    store = InMemoryVectorStore(Words())
    tracked = track(store, memory, workspace="user_id")
    ann, bob = tracked.for_workspace("ann"), tracked.for_workspace("bob")
    ann.add_texts([SECRET], ids=["same"])
    bob.add_texts(["the vault of bob"], ids=["same"])
    assert ann.similarity_search(QUERY) == []
    memory.workspace("ann").forget(SECRET)
    assert texts(bob.similarity_search(QUERY)) == ["the vault of bob"]


@pytest.mark.parametrize("later", [False, True])
def test_what_took_a_forgotten_documents_id_past_us_stays(memory: Memory, later: bool) -> None:
    store = Sulking(Words()) if later else InMemoryVectorStore(Words())
    tracked = track(store, memory)
    tracked.add_texts([SECRET, SECRET], ids=["x", "y"])
    store.add_texts(["apples grow on trees"], ids=["x"])
    memory.forget(SECRET)
    if isinstance(store, Sulking):
        assert held(store) == {"x", "y"}
        store.how = None
        assert asyncio.run(tracked.a_sync()) == 0
    assert held(store) == {"x"}
    assert tracked.pending == []
    assert texts(tracked.similarity_search("apples")) == ["apples grow on trees"]


def test_what_an_id_says_can_be_forgotten_by_it(memory: Memory) -> None:
    store = InMemoryVectorStore(Words())
    tracked = track(store, memory)
    tracked.add_documents([Document("a clean text", id=f"letter of {CANARY}"), *documents()[:2]])
    memory.forget(CANARY)
    assert held(store) == {"d0", "d1"}
    assert tracked.pending == []
    assert memory.elsewhere.gone("InMemoryVectorStore") == []


def left_of(memory: Memory, number: int) -> list[str]:
    said = memory.receipt(number).out_of_reach
    return [one for one in said if "copies in vector stores" in one or "were found" in one]


def test_a_receipt_counts_the_copies_that_are_left(memory: Memory) -> None:
    store = Sulking(Words())
    tracked = track(store, memory)
    tracked.add_texts([SECRET, SECRET, PLAIN[0]])
    receipt = memory.forget(SECRET)
    assert receipt.level == "erased"
    assert left_of(memory, receipt.number) == [
        "2 copies in vector stores, still to be deleted there"
    ]
    assert CANARY not in str(receipt)
    store.how = None
    assert tracked.sync() == 0
    assert left_of(memory, receipt.number) == []
    memory.scrub()
    assert memory.receipt(receipt.number).level == "scrubbed"


def test_a_receipt_counts_what_is_left_where_nobody_tracks_it_any_more(memory: Memory) -> None:
    store = InMemoryVectorStore(Words())
    tracked = track(store, memory)
    tracked.add_texts([SECRET])
    del tracked
    gc.collect()
    receipt = memory.forget(SECRET)
    assert receipt.level == "erased"
    assert left_of(memory, receipt.number) == [
        "1 copies in vector stores, still to be deleted there"
    ]
    assert track(store, memory).similarity_search(QUERY) == []
    assert (held(store), left_of(memory, receipt.number)) == (set(), [])


def test_a_receipt_counts_what_a_retriever_still_has(memory: Memory) -> None:
    tracked = track(Shelf(found=[SECRET, PLAIN[0]]), memory)
    for _ in range(2):
        assert len(tracked.invoke(QUERY)) == 2
    receipt = memory.forget(SECRET)
    assert receipt.level == "erased"
    said = ["1 documents where they were found, which are not returned any more"]
    assert left_of(memory, receipt.number) == said
    assert texts(tracked.invoke(QUERY)) == [PLAIN[0]]
    assert memory.elsewhere.gone("Shelf") == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: track(library(), "memory"),
        lambda m: track("a store", m),
        lambda m: track(library(), m, name=" "),
        lambda m: track(library(), m, source=1),
        lambda m: track(library(), m, name=""),
        lambda m: track(library(), m, name=7),
        lambda m: track(library(), m, shared="no"),
        lambda m: track(library(), m, given=1),
        lambda m: track(library(), m, workspace=7),
        lambda m: track(library(), m, noted=False),
        lambda m: track(Shelf(found=[]), m, depth=1),
        lambda m: track(library(), m).add_texts(["a"], ids=["x", "y"]),
        lambda m: track(library(), m).add_texts(["a", "b"], [{}]),
        lambda m: track(library(), m).add_texts(["a"], ids=[5]),
        lambda m: track(library(), m).add_texts([5]),
        lambda m: track(library(), m, workspace="user_id").for_workspace("ann").delete(),
        lambda m: track(track(library(), m), m),
        lambda m: track(track(Shelf(found=[]), m), m),
        lambda m: [track(one, m) for one in (library(), library())],
        lambda m: type(track(library(), m)).from_texts(["a"], Words(), memory=m),
    ],
)
def test_what_makes_no_sense_is_refused(lite: Memory, wrong: Callable[[Any], object]) -> None:
    kept: list[object] = []
    with pytest.raises(InvalidInput):
        kept.append(wrong(lite))


def test_every_method_of_a_vector_store_is_answered_by_the_users_own() -> None:
    own = {name for kind in (TrackedVectorStore, Finding) for name in vars(kind)}
    public = {name for name in vars(VectorStore) if not name.startswith("_")}
    # These end in from_texts, which makes the store.
    assert public - own == {"from_documents", "afrom_documents", "afrom_texts"}
