"""DeLLMRetriever: what is remembered is found as documents; a reply made of it goes with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from documents import CANARY, PLAIN, SECRET, Words
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

from dellm import InvalidInput, Memory
from dellm_langchain import DeLLMRetriever, track
from dellm_langchain.tracked_store import TrackedStoreRetriever

SAID = ("I live in Paris", "my cat is called Tom", "I drink tea in the morning", SECRET)


class TestDeLLMRetriever(RetrieversIntegrationTests):
    """LangChain's own tests, whole and unchanged, on both databases."""

    @pytest.fixture(autouse=True)
    def filled(self, memory: Memory) -> None:
        self.memory = memory
        for one in SAID:
            memory.remember(one)

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return DeLLMRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory, "threshold": -1.0}

    @property
    def retriever_query_example(self) -> str:
        return "where do I live"


class Stored(TrackedStoreRetriever):
    """The retriever of a tracked store, made with `k` as the tests make retrievers."""

    def __init__(self, k: int = 4, **options: Any) -> None:
        super().__init__(search_kwargs={"k": k}, **options)


class TestTrackedStore(RetrieversIntegrationTests):
    """The same tests on the retriever of a tracked vector store."""

    @pytest.fixture(autouse=True)
    def filled(self, memory: Memory) -> None:
        self.store = track(InMemoryVectorStore(Words()), memory)
        self.store.add_texts([*PLAIN, SECRET])

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return Stored

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": self.store}

    @property
    def retriever_query_example(self) -> str:
        return "the moon"


def found(retriever: BaseRetriever, query: str, **options: Any) -> list[str]:
    """Return the texts that are found; the same sync and async."""
    first = retriever.invoke(query, None, **options)
    later = asyncio.run(retriever.ainvoke(query, None, **options))
    assert first == later
    return [one.page_content for one in first]


def test_a_document_says_which_record_it_is(memory: Memory) -> None:
    record = memory.remember("I live in Paris", thread="t")
    tracked = track(InMemoryVectorStore(Words()), memory)
    tracked.add_texts(["Paris is a city"], [{"page": 3, "source": "atlas"}])
    retriever = DeLLMRetriever(memory=memory, threshold=-1.0)
    said, read = sorted(retriever.invoke("Paris"), key=lambda one: one.id or "")
    assert (said.id, said.page_content) == (str(record.id), record.text)
    score = said.metadata.pop("score")
    assert -1 <= score <= 1
    assert said.metadata == {
        "dellm_id": record.id,
        "thread": "t",
        "role": "user",
        "kind": "message",
        "created_at": record.created_at.isoformat(),
    }
    assert (read.metadata["page"], read.metadata["source"]) == (3, "atlas")
    assert read.metadata["kind"] == "document"


def test_the_best_come_first_and_each_option_can_be_said_at_the_call(memory: Memory) -> None:
    for at, one in enumerate(SAID):
        memory.remember(one, thread=f"t{at % 2}")
    retriever = DeLLMRetriever(memory=memory, thread="t1", threshold=-1.0, k=3)
    assert found(retriever, "my cat Tom")[0] == SAID[1]
    assert len(found(retriever, "my cat Tom")) == 3
    assert set(found(retriever, "my cat Tom", scope="thread")) == {SAID[1], SAID[3]}
    assert found(retriever, "tea", by="keyword") == [SAID[2]]
    assert found(retriever, "tea", threshold=0.99) == []
    assert found(retriever, "tea", k=0) == []


def test_what_is_forgotten_is_not_found(memory: Memory) -> None:
    for one in SAID:
        memory.remember(one)
    retriever = DeLLMRetriever(memory=memory, threshold=-1.0, k=9)
    assert SECRET in found(retriever, "the vault")
    memory.forget(SECRET)
    assert set(found(retriever, "the vault")) == set(SAID[:3])
    assert memory.scan(CANARY, files=False).clean


def test_each_call_is_in_the_workspace_that_its_config_names(memory: Memory) -> None:
    for name in ("ann", "bob"):
        memory.workspace(name).remember(f"I am {name}")
    retriever = DeLLMRetriever(memory=memory, workspace="user_id", threshold=-1.0)

    def of(name: str) -> Any:
        return {"configurable": {"user_id": name}}

    assert [one.page_content for one in retriever.invoke("who", of("ann"))] == ["I am ann"]
    batch = retriever.batch(["who", "who"], [of("ann"), of("bob")])
    assert [one[0].page_content for one in batch] == ["I am ann", "I am bob"]
    later = asyncio.run(retriever.ainvoke("who", of("bob")))
    assert [one.page_content for one in later] == ["I am bob"]
    assert found(retriever.for_workspace("ann"), "who") == ["I am ann"]
    with pytest.raises(InvalidInput):
        retriever.invoke("who")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: DeLLMRetriever(memory="a path"),
        lambda m: DeLLMRetriever(memory=m, depth=1),
        lambda m: DeLLMRetriever(memory=m, k="many"),
        lambda m: DeLLMRetriever(memory=m, k=-1),
        lambda m: DeLLMRetriever(memory=m, threshold="low"),
        lambda m: DeLLMRetriever(memory=m, workspace=7),
        lambda m: DeLLMRetriever(),
        lambda m: DeLLMRetriever(memory=m, by="smell").invoke("x"),
        lambda m: DeLLMRetriever(memory=m, scope="all").invoke("x"),
        lambda m: DeLLMRetriever(memory=m, scope="thread").invoke("x"),
        lambda m: DeLLMRetriever(memory=m).invoke("x", None, k=-1),
        lambda m: DeLLMRetriever(memory=m).invoke("x", None, depth=1),
    ],
)
def test_what_makes_no_sense_is_refused(memory: Memory, wrong: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidInput):
        wrong(memory)
