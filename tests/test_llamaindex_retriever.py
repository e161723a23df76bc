"""DeLLMRetriever: records as nodes, and what is made of them depends on them."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, QueryBundle, TextNode

from dellm import InvalidInput, Memory
from dellm_llamaindex.documents import records_of
from dellm_llamaindex.retriever import DeLLMRetriever


@pytest.fixture
def told(memory: Memory) -> Memory:
    memory.remember("The cat sleeps on the red sofa.", thread="a")
    memory.remember("Biscuits need butter and sugar.", thread="b")
    memory.remember("The cat eats fish.", thread="b")
    return memory


def test_records_come_as_nodes_the_best_first(told: Memory) -> None:
    found = DeLLMRetriever(told, k=2, threshold=0.0).retrieve("cat sofa")
    assert [one.text for one in found] == ["The cat sleeps on the red sofa.", "The cat eats fish."]
    first = found[0]
    assert first.node.node_id == "record:1"
    assert first.metadata["dellm_record"] == 1
    assert (first.metadata["thread"], first.metadata["role"]) == ("a", "user")
    assert 1 >= (first.score or 0) >= (found[1].score or 0) >= -1
    assert first.get_content(MetadataMode.LLM) == first.text


async def test_both_ways_to_call_it_find_the_same(told: Memory) -> None:
    retriever = DeLLMRetriever(told, k=3, threshold=-1.0)
    assert isinstance(retriever, BaseRetriever)
    waited = await retriever.aretrieve(QueryBundle("cat"))
    called = await asyncio.to_thread(retriever.retrieve, "cat")
    assert waited == called
    assert len(called) == 3


def test_a_session_kinds_and_a_threshold_narrow_what_is_found(told: Memory) -> None:
    document = records_of(told, [TextNode(text="A cat is a mammal.", id_="x")])["x"]
    one = DeLLMRetriever(told, threshold=-1.0, session_id="b").retrieve("cat")
    assert {each.metadata["thread"] for each in one} == {"b"}
    two = DeLLMRetriever(told, k=1, threshold=-1.0, kinds={"document"}).retrieve("butter")
    assert [each.metadata["dellm_record"] for each in two] == [document]
    assert two[0].metadata["node_id"] == "x"
    assert DeLLMRetriever(told, threshold=1.0).retrieve("dog") == []
    assert DeLLMRetriever(told, k=0).retrieve("cat") == []
    words = DeLLMRetriever(told, by="keyword").retrieve("butter")
    assert [each.text for each in words] == ["Biscuits need butter and sugar."]


def test_the_nodes_found_are_the_records_themselves(told: Memory) -> None:
    found = [one.node for one in DeLLMRetriever(told, threshold=-1.0).retrieve("cat")]
    known = records_of(told, found)
    assert sorted(known.values()) == [1, 2, 3]
    assert len(list(told.export())) == 3


def test_what_is_forgotten_is_not_found(told: Memory) -> None:
    retriever = DeLLMRetriever(told, threshold=-1.0)
    told.forget(quote="red sofa")
    assert all("sofa" not in one.text for one in retriever.retrieve("red sofa"))
    assert DeLLMRetriever(told.workspace("other"), threshold=-1.0).retrieve("cat") == []


def test_a_query_engine_answers_from_records(told: Memory) -> None:
    engine = RetrieverQueryEngine.from_args(DeLLMRetriever(told, k=1), llm=MockLLM())
    reply = engine.query("Where does the cat sleep?")
    assert [one.metadata["dellm_record"] for one in reply.source_nodes] == [1]
    assert "dellm_record" not in str(reply)
    assert "red sofa" in str(reply)


@pytest.mark.parametrize(
    "wrong",
    [{"k": -1}, {"by": "luck"}, {"threshold": "high"}, {"kinds": ["nonsense"]}, {"kinds": 5}],
)
def test_a_wrong_option_is_refused(told: Memory, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        DeLLMRetriever(told, **wrong)
    with pytest.raises(InvalidInput):
        DeLLMRetriever("memory.db")


def test_copies_share_the_memory_and_hold_nothing_of_it(memory: Memory) -> None:
    memory.remember("My cat is called Heliotrope", role="user", thread="s")
    retriever = DeLLMRetriever(memory, k=1, threshold=0.0)
    data = pickle.dumps(retriever)
    assert b"Heliotrope" not in data
    for one in (copy.copy(retriever), copy.deepcopy(retriever), pickle.loads(data)):
        assert one.memory is not None
        [found] = one.retrieve("What is my cat called?")
        assert found.text == "My cat is called Heliotrope"
