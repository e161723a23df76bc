"""A user's own index, store or retriever: what is forgotten is deleted there and never found."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import re
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import (
    Document,
    DocumentSummaryIndex,
    PropertyGraphIndex,
    SimpleKeywordTableIndex,
    StorageContext,
    SummaryIndex,
    TreeIndex,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.graph_stores.types import EntityNode, Relation
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.property_graph import VectorContextRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever
from llama_index.core.schema import (
    BaseNode,
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    TextNode,
    TransformComponent,
)
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_indexes import TextStore, Words, chunk, index_of, sentences

from dellm import ContextForgotten, InvalidInput, Memory, NothingMatched, UnsupportedHere
from dellm_llamaindex.documents import forget_document, note_of, plan_document, records_of
from dellm_llamaindex.memory import DeLLMMemory
from dellm_llamaindex.tracking import track

Opened = Callable[..., Memory]


def texts(found: list[NodeWithScore]) -> list[str]:
    return [one.node.get_content() for one in found]


def all_of(index: BaseIndex[Any]) -> str:
    """Return all that an index keeps, as its files would have it."""
    context = index.storage_context
    said = [context.docstore.to_dict(), index.index_struct.to_dict()]
    said += [one.to_dict() for one in context.vector_stores.values() if hasattr(one, "data")]
    return json.dumps(said, default=str)


@pytest.fixture
def index() -> VectorStoreIndex:
    return index_of([chunk("the grey cat sleeps"), chunk("the old dog barks", "other")])


class Repeating(MockLLM):
    """Repeats its whole prompt."""

    @llm_chat_callback()
    def chat(self, messages: Any, **_: Any) -> ChatResponse:
        said = " / ".join(one.content or "" for one in messages)
        return ChatResponse(message=ChatMessage(role="assistant", content=said))


def record(found: list[NodeWithScore], text: str) -> int:
    return next(one.metadata["dellm_record"] for one in found if text in one.text)


def test_what_an_index_finds_is_a_record_and_the_index_stays_what_it_is(
    memory: Memory, index: VectorStoreIndex
) -> None:
    tracked = track(index, memory)
    assert isinstance(tracked, VectorStoreIndex)
    assert tracked.docstore is index.docstore
    found = tracked.as_retriever(similarity_top_k=2).retrieve("cat")
    assert sorted(one.text for one in memory.export()) == [
        "the grey cat sleeps",
        "the old dog barks",
    ]
    assert {one.metadata["dellm_record"] for one in found} == {1, 2}
    assert [one.score for one in found] == sorted((one.score or 0 for one in found), reverse=True)
    assert "dellm_record" not in all_of(index)
    untracked = index.as_retriever(similarity_top_k=2).retrieve("cat")
    assert texts(untracked) == texts(found)
    assert tracked.as_retriever(similarity_top_k=2).retrieve("cat") == found


def test_forgetting_deletes_the_node_everywhere_in_the_index_and_nothing_else(
    memory: Memory, index: VectorStoreIndex
) -> None:
    tracked = track(index, memory)
    found = tracked.as_retriever(similarity_top_k=2).retrieve("cat")
    kept = next(one for one in found if "dog" in one.text)
    memory.forget(ids=[record(found, "cat")])
    assert texts(index.as_retriever(similarity_top_k=2).retrieve("cat")) == ["the old dog barks"]
    assert "grey" not in all_of(index)
    assert tracked.pending == []
    again = tracked.as_retriever(similarity_top_k=2).retrieve("cat")
    assert again[0].metadata == kept.metadata
    assert memory.verify().ok
    assert memory.elsewhere.places() == [f"VectorStoreIndex {index.index_id}"]


def test_forgetting_a_document_takes_what_was_never_found_as_well(memory: Memory) -> None:
    text = "My name is Ann Example of Paris. I was born in May in Rome. I like green tea very much."
    index = index_of([*sentences(text, "ann"), chunk("the old dog barks", "dog")])
    tracked = track(index, memory)
    found = tracked.as_retriever(similarity_top_k=1).retrieve("Ann")
    assert len(list(memory.export())) == 1
    reply = memory.record("Ann!", context=[found[0].metadata["dellm_record"]])
    plan = plan_document(memory, "ann")
    assert reply.id in plan.ids
    assert len(plan.ids) > 2
    receipt = forget_document(memory, "ann")
    assert index.docstore.get_ref_doc_info("ann") is None
    assert all(word not in all_of(index) for word in ("Ann", "Rome", "green", '"ann"'))
    assert texts(index.as_retriever(similarity_top_k=9).retrieve("Ann")) == ["the old dog barks"]
    assert forget_document(memory, "ann") == receipt
    with pytest.raises(NothingMatched):
        forget_document(memory, "nothing of the kind")


def test_the_neighbours_of_a_node_say_nothing_of_it_any_more(memory: Memory) -> None:
    text = "My name is Ann Example of Paris. I was born in May in Rome. I like green tea very much."
    nodes = sentences(text, "ann")
    assert len(nodes) > 1
    index = index_of(nodes)
    tracked = track(index, memory, everything=True)
    assert len(list(memory.export())) == len(nodes)
    memory.forget(quote="Paris")
    gone = nodes[0]
    assert gone.node_id not in all_of(index)
    assert gone.hash not in all_of(index)
    left = tracked.as_retriever(similarity_top_k=9).retrieve("tea")
    assert len(left) == len(nodes) - 1
    assert next(one for one in left if "Rome" in one.text or "tea" in one.text)


def test_a_whole_document_that_a_pipeline_keeps_goes_with_a_part_of_it(memory: Memory) -> None:
    text = "My name is Ann Example of Paris. I was born in May in Rome. I like green tea very much."
    index = index_of(sentences(text, "ann"))
    index.docstore.add_documents([Document(text=text, id_="ann")])
    track_ = track(index, memory, everything=False)
    forgotten = track_.as_retriever(similarity_top_k=1).retrieve("Paris")
    memory.forget(ids=[forgotten[0].metadata["dellm_record"]])
    assert "Paris" not in all_of(index)


@pytest.mark.parametrize("keeps_texts", [False, True])
@pytest.mark.parametrize("larger_ones_are_indexed", [False, True])
def test_the_larger_nodes_that_a_node_was_cut_from_go_with_it(
    memory: Memory, larger_ones_are_indexed: bool, keeps_texts: bool
) -> None:
    whole, half, other = (
        chunk("Ann of Paris. Tea. Rome."),
        chunk("Ann of Paris. Tea."),
        chunk("Rome."),
    )
    leaves = [chunk("Ann of Paris."), chunk("Tea.")]
    for inner, outer in ((half, whole), (other, whole), (leaves[0], half), (leaves[1], half)):
        inner.relationships[NodeRelationship.PARENT] = outer.as_related_node_info()
        inside = outer.relationships.setdefault(NodeRelationship.CHILD, [])
        assert isinstance(inside, list)
        inside.append(inner.as_related_node_info())
    nodes = [whole, half, other, *leaves]
    indexed = nodes if larger_ones_are_indexed else [*leaves, other]
    index = index_of(indexed, TextStore() if keeps_texts else None)
    index.docstore.add_documents(nodes)
    tracked = track(index, memory)
    merging = AutoMergingRetriever(
        tracked.as_retriever(similarity_top_k=9), index.storage_context, simple_ratio_thresh=0.4
    )
    assert any("Paris" in one for one in texts(merging.retrieve("tea")))
    found = tracked.as_retriever(similarity_top_k=9).retrieve("Paris")
    memory.forget(ids=[record(found, "Ann of Paris.")])
    assert "Paris" not in all_of(index)
    assert sorted(texts(merging.retrieve("tea"))) == ["Rome.", "Tea."]
    assert tracked.pending == []


@pytest.mark.parametrize("how", ["insert", "insert_nodes", "ainsert", "ainsert_nodes", "refresh"])
async def test_what_is_added_is_a_record_at_once_and_erased_content_is_not_added_again(
    memory: Memory, index: VectorStoreIndex, how: str
) -> None:
    tracked = track(index, memory)

    async def add(text: str, document: str) -> None:
        if how == "insert":
            tracked.insert(Document(text=text, id_=document))
        elif how == "insert_nodes":
            tracked.insert_nodes([chunk(text, document)])
        elif how == "ainsert":
            await tracked.ainsert(Document(text=text, id_=document))
        elif how == "ainsert_nodes":
            await tracked.ainsert_nodes([chunk(text, document)])
        else:
            tracked.refresh_ref_docs([Document(text=text, id_=document)])

    await add("a red parrot talks", "parrot")
    await add("a blue whale sings", "whale")
    assert sorted(one.text for one in memory.export()) == [
        "a blue whale sings",
        "a red parrot talks",
    ]
    memory.forget(quote="red parrot")
    assert "parrot talks" not in all_of(index)
    await add("a red parrot talks", "parrot")
    assert "parrot talks" not in all_of(index)
    found = await tracked.as_retriever(similarity_top_k=9).aretrieve("parrot")
    assert sorted(texts(found)) == [
        "a blue whale sings",
        "the grey cat sleeps",
        "the old dog barks",
    ]
    assert tracked.pending == []


def test_a_found_node_that_is_added_to_another_index_goes_with_its_record(
    memory: Memory, index: VectorStoreIndex
) -> None:
    first = track(index, memory)
    found = first.as_retriever().retrieve("cat")
    second = index_of([])
    other = track(second, memory)
    other.insert_nodes([one.node for one in found])
    assert "dellm_record" not in all_of(second)
    memory.forget(ids=[record(found, "cat")])
    assert "grey" not in all_of(index)
    assert "grey" not in all_of(second)


def test_deleting_from_the_index_is_no_forgetting(memory: Memory, index: VectorStoreIndex) -> None:
    tracked = track(index, memory)
    found = tracked.as_retriever(similarity_top_k=2).retrieve("cat")
    tracked.delete_nodes([found[0].node_id], delete_from_docstore=True)
    assert memory.get(found[0].metadata["dellm_record"]).text == found[0].text
    memory.forget(ids=[found[0].metadata["dellm_record"]])
    assert tracked.pending == []


def summaries_of(nodes: list[Any]) -> DocumentSummaryIndex:
    llm = MockLLM()
    return DocumentSummaryIndex(
        nodes, llm=llm, embed_model=Words(), response_synthesizer=TreeSummarize(llm=llm)
    )


@pytest.mark.parametrize("make", [SummaryIndex, summaries_of, SimpleKeywordTableIndex])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_other_kinds_of_index_lose_what_is_forgotten(
    memory: Memory, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llama_index.core import Settings

    monkeypatch.setattr(Settings, "_embed_model", Words())
    monkeypatch.setattr(Settings, "_llm", MockLLM())
    nodes = [chunk("the grey cat sleeps", "cat"), chunk("the grey mouse runs", "mouse")]
    nodes.append(chunk("a second page of it", "cat"))
    index = make(nodes)
    tracked = track(index, memory)
    options = {"similarity_top_k": 5} if make is summaries_of else {}
    retriever = tracked.as_retriever(**options)
    found = retriever.retrieve("grey")
    assert len(found) >= 2
    memory.forget(ids=[record(found, "cat sleeps")])
    assert tracked.pending == []
    assert "cat sleeps" not in all_of(index)
    left = texts(tracked.as_retriever(**options).retrieve("grey"))
    assert "the grey mouse runs" in left
    assert all("cat sleeps" not in one for one in left)
    forget_document(memory, "mouse")
    assert "mouse" not in all_of(index)


def test_a_summary_that_held_it_is_not_kept_for_the_rest_of_its_document(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    index = summaries_of([chunk("the grey cat sleeps", "cat"), chunk("a second page", "cat")])
    tracked = track(index, memory)
    found = tracked.as_retriever().retrieve("grey")
    assert len(found) == 2
    with caplog.at_level(logging.WARNING, logger="dellm.llamaindex"):
        memory.forget(ids=[record(found, "cat sleeps")])
    assert "1 nodes are not found any more" in caplog.text
    assert "grey" not in caplog.text
    assert tracked.as_retriever().retrieve("grey") == []
    assert index.docstore.get_document(found[1].node_id) is not None
    assert "grey cat" not in all_of(index)
    tracked.insert_nodes([index.docstore.get_node(found[1].node_id)])
    assert texts(tracked.as_retriever().retrieve("page")) == ["a second page"]


def test_an_index_that_cannot_delete_keeps_it_noted_and_does_not_give_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from llama_index.core import Settings

    monkeypatch.setattr(Settings, "_llm", MockLLM())
    index = TreeIndex([chunk("the grey cat sleeps"), chunk("the old dog barks", "other")])
    tracked = track(index, memory)
    found = tracked.as_retriever(retriever_mode="all_leaf").retrieve("cat")
    assert len(found) == 2
    receipt = memory.forget(ids=[record(found, "cat")])
    assert len(tracked.pending) == 1
    assert tracked.sync() == 1
    assert memory.receipts()[-1].level == "erased"
    assert any("still to be deleted" in one for one in memory.receipts()[-1].out_of_reach)
    assert receipt.ids
    left = tracked.as_retriever(retriever_mode="all_leaf").retrieve("cat")
    assert texts(left) == ["the old dog barks"]
    assert "could not be deleted" in caplog.text
    assert "grey" not in caplog.text


class Shouting(MockLLM):
    """Sums up a prompt by the words in it that are in capitals."""

    @llm_chat_callback()
    def chat(self, messages: Any, **_: Any) -> ChatResponse:
        said = " ".join(
            re.findall(r"\b[A-Z]{4,6}\b", " ".join(one.content or "" for one in messages))
        )
        return ChatResponse(message=ChatMessage(role="assistant", content=said))

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True)


@pytest.mark.parametrize("found_before", [True, False])
def test_what_a_tree_sums_up_goes_with_what_it_was_made_from(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, found_before: bool
) -> None:
    from llama_index.core import Settings

    monkeypatch.setattr(Settings, "_llm", Shouting())
    words = ("ALPHA", "BETA", "GAMMA", "DELTA")
    index = TreeIndex([chunk(f"{one} is here", f"of {one}") for one in words], num_children=2)
    roots = track(index, memory).as_retriever(retriever_mode="root")
    if found_before:
        assert any("ALPHA" in one for one in texts(roots.retrieve("what?")))
        assert len(list(memory.export())) == 6
    receipt = forget_document(memory, "of ALPHA")
    assert len(receipt.ids) == (2 if found_before else 1)
    [left] = texts(roots.retrieve("what?"))
    assert "GAMMA DELTA" in left
    assert memory.scan("ALPHA", files=False).clean


class Facts(TransformComponent):
    """States of each node that its first word is its last one."""

    def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> Sequence[BaseNode]:
        for one in nodes:
            words = one.get_content().split()
            ends = [EntityNode(name=words[0]), EntityNode(name=words[-1])]
            one.metadata["nodes"] = ends
            one.metadata["relations"] = [
                Relation(label="IS", source_id=ends[0].id, target_id=ends[1].id)
            ]
        return nodes


@pytest.mark.parametrize("found_before", [True, False])
def test_facts_of_a_graph_go_with_the_node_that_states_them(
    memory: Memory, found_before: bool
) -> None:
    graph = PropertyGraphIndex(
        [chunk("ALPHA was here", "one"), chunk("BETA was there", "two")],
        llm=MockLLM(),
        embed_model=Words(),
        kg_extractors=[Facts()],
        use_async=False,
    )
    found = VectorContextRetriever(
        graph.property_graph_store,
        vector_store=graph.vector_store,
        embed_model=Words(),
        include_text=False,
    )
    facts = track(graph, memory).as_retriever(sub_retrievers=[found])
    if found_before:
        assert sorted(texts(facts.retrieve("ALPHA"))) == [
            "ALPHA -> IS -> here",
            "BETA -> IS -> there",
        ]
    [node] = graph.property_graph_store.get_llama_nodes(
        [one.id for one in graph.property_graph_store.get(properties={"ref_doc_id": "one"})]
    )
    ids = records_of(memory, [node], place=facts._shelf.name)
    memory.forget(ids=[id_ for id_ in ids.values() if id_])
    assert texts(facts.retrieve("ALPHA")) == ["BETA -> IS -> there"]
    assert memory.scan("ALPHA", files=False).clean


def store_with(*nodes: TextNode, **options: Any) -> TextStore:
    store = TextStore(**options)
    embed = Words()
    for one in nodes:
        one.embedding = embed.get_text_embedding(one.get_content())
    store.add(nodes)
    return store


def ask(store: Any, text: str, k: int = 2) -> list[str]:
    query = VectorStoreQuery(Words().get_query_embedding(text), similarity_top_k=k)
    return [one.get_content() for one in store.query(query).nodes]


@pytest.mark.parametrize("lists", [True, False])
def test_a_store_that_is_away_is_tried_again(memory: Memory, lists: bool) -> None:
    nodes = [chunk(f"grey cat number {at}", f"cat {at}") for at in range(4)]
    store = store_with(*nodes, lists=lists)
    tracked = track(store, memory)
    assert len(ask(tracked, "grey cat", 4)) == 4
    store.broken = True
    memory.forget(quote="number 1")
    memory.forget(quote="number 2")
    assert len(tracked.pending) == 2
    assert len(store.client) == 4
    assert sorted(ask(tracked, "grey cat", 2)) == ["grey cat number 0", "grey cat number 3"]
    store.broken = False
    assert sorted(ask(tracked, "grey cat", 4)) == ["grey cat number 0", "grey cat number 3"]
    assert tracked.pending == []
    assert {one.get_content() for one in store.client.values()} == {
        "grey cat number 0",
        "grey cat number 3",
    }


def test_a_store_that_refuses_all_for_one_id_that_is_not_there_is_asked_one_by_one(
    memory: Memory,
) -> None:
    nodes = [chunk(f"grey cat number {at}", "cats") for at in range(3)]
    store = store_with(*nodes, lists=False)
    tracked = track(store, memory)
    ask(tracked, "grey cat", 3)
    names = sorted(one.node_id for one in nodes)
    del store.client[names[0]]
    forget_document(memory, "cats")
    assert store.client == {}
    assert len(tracked.pending) == 1  # of which it cannot be told whether it is there
    assert ask(tracked, "grey cat", 3) == []


def test_what_was_put_there_under_the_id_of_something_forgotten_stays(memory: Memory) -> None:
    node = chunk("the grey cat sleeps")
    store = store_with(node)
    tracked = track(store, memory)
    ask(tracked, "cat")
    store.broken = True
    memory.forget(quote="grey cat")
    store.broken = False
    store.client[node.node_id] = chunk("a new text under the old id", name=node.node_id)
    assert tracked.sync() == 0
    assert [one.get_content() for one in store.client.values()] == ["a new text under the old id"]


def test_a_store_under_an_index_records_what_the_index_adds(memory: Memory) -> None:
    store = TextStore()
    tracked = track(store, memory)
    index = VectorStoreIndex.from_vector_store(tracked, embed_model=Words())
    index.insert(Document(text="the grey cat sleeps", id_="cat"))
    assert [one.text for one in memory.export()] == ["the grey cat sleeps"]
    found = index.as_retriever().retrieve("cat")
    assert found[0].metadata["dellm_record"] == 1
    assert records_of(memory, [found[0].node]) == {found[0].node_id: 1}
    forget_document(memory, "cat")
    assert store.client == {}
    assert index.as_retriever().retrieve("cat") == []
    index.insert(Document(text="the grey cat sleeps", id_="cat"))
    assert store.client == {}


def test_a_store_without_texts_deletes_what_its_index_found(memory: Memory) -> None:
    store = SimpleVectorStore()
    index = index_of([chunk("the grey cat sleeps"), chunk("the old dog barks", "other")], store)
    tracked = track(store, memory)
    over = VectorStoreIndex(
        index_struct=index.index_struct,
        embed_model=Words(),
        storage_context=StorageContext.from_defaults(
            vector_store=tracked,
            docstore=index.docstore,
            index_store=index.storage_context.index_store,
        ),
    )
    found = over.as_retriever(similarity_top_k=2).retrieve("cat")
    known = records_of(memory, [one.node for one in found])  # as the memory of a chat does
    assert len(known) == len(found) == 2
    gone = next(one.node_id for one in found if "cat" in one.text)
    memory.forget(ids=[known[gone] or 0])
    assert gone not in store.data.embedding_dict
    assert len(store.data.embedding_dict) == 1
    assert texts(over.as_retriever(similarity_top_k=2).retrieve("cat")) == ["the old dog barks"]
    with pytest.raises(ContextForgotten):
        over.insert_nodes([chunk("the grey cat sleeps")])
    assert len(store.data.embedding_dict) == 1


async def test_an_async_store_is_reached_through_its_own_methods(memory: Memory) -> None:
    store = store_with(chunk("the grey cat sleeps"), chunk("the old dog barks", "other"))
    index = VectorStoreIndex.from_vector_store(store, embed_model=Words())
    tracked = track(index, memory, name="pages")
    found = await tracked.as_retriever(similarity_top_k=2).aretrieve("cat")
    store.broken = True
    memory.forget(ids=[record(found, "cat")])
    store.broken = False
    store.calls.clear()
    left = await tracked.as_retriever(similarity_top_k=2).aretrieve("cat")
    assert texts(left) == ["the old dog barks"]
    assert store.calls[0] == "adelete_nodes"
    assert await tracked.a_sync() == 0
    assert len(store.client) == 1


class Fixed(BaseRetriever):
    """Finds the same whatever is asked, from where nothing can be deleted."""

    def __init__(self, *nodes: TextNode) -> None:
        self.nodes = nodes
        self.depth = 3
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=one.model_copy(), score=1.0) for one in self.nodes]


def test_a_retriever_of_any_kind_gives_nothing_of_what_is_forgotten(memory: Memory) -> None:
    tracked = track(Fixed(chunk("the grey cat sleeps"), chunk("the old dog barks")), memory)
    assert tracked.depth == 3
    found = tracked.retrieve("cat")
    assert len(found) == 2
    memory.forget(ids=[record(found, "cat")])
    assert texts(tracked.retrieve("cat")) == ["the old dog barks"]
    assert len(tracked.pending) == tracked.sync() == 1
    assert memory.receipts()[-1].level == "erased"


def test_the_retriever_of_an_index_deletes_from_the_index(
    memory: Memory, index: VectorStoreIndex
) -> None:
    tracked = track(index.as_retriever(similarity_top_k=2), memory)
    found = tracked.retrieve("cat")
    memory.forget(ids=[record(found, "cat")])
    assert "grey" not in all_of(index)
    assert texts(tracked.retrieve("cat")) == ["the old dog barks"]


def test_what_a_tracked_retriever_leaves_out_is_marked_for_those_who_saw_it(
    memory: Memory,
) -> None:
    node = chunk("the grey cat sleeps")
    inner = Fixed(node)
    seen: list[Any] = []
    shown = inner._retrieve
    inner._retrieve = lambda bundle: seen.extend(shown(bundle)) or seen[-1:]  # type: ignore[method-assign]
    tracked = track(inner, memory)
    tracked.retrieve("cat")
    memory.forget(quote="grey cat")
    seen.clear()
    assert tracked.retrieve("cat") == []
    assert note_of(seen[0].node) is not None
    assert records_of(memory, [seen[0].node]) == {}


def test_retrievers_inside_of_others_and_nodes_that_stand_for_objects(
    memory: Memory, index: VectorStoreIndex
) -> None:
    tracked = track(index, memory).as_retriever(similarity_top_k=2)
    fused = track(
        QueryFusionRetriever([tracked], llm=MockLLM(), num_queries=1, similarity_top_k=2),
        memory,
        name="fused",
    )
    found = fused.retrieve("cat")
    assert {one.metadata["dellm_record"] for one in found} == {1, 2}
    pointer = track(Fixed(IndexNode(text="see", index_id="i", obj=tracked)), memory, name="pointer")
    assert {one.metadata["dellm_record"] for one in pointer.retrieve("cat")} == {1, 2}
    memory.forget(ids=[record(found, "cat")])
    assert texts(fused.retrieve("cat")) == ["the old dog barks"]
    assert len(list(memory.export())) == 1


def test_files_are_written_again_and_else_named_out_of_reach(
    memory: Memory, index: VectorStoreIndex, tmp_path: Path
) -> None:
    folder = tmp_path / "index"
    index.storage_context.persist(persist_dir=str(folder))
    tracked = track(index, memory, persist_dir=str(folder))
    found = tracked.as_retriever(similarity_top_k=2).retrieve("cat")
    gone = next(one.node_id for one in found if "cat" in one.text)
    memory.forget(ids=[record(found, "cat")])
    said = b"".join(one.read_bytes() for one in folder.iterdir())
    assert b"grey" not in said
    assert gone.encode() not in said
    assert b"old dog" in said
    assert tracked.pending == tracked.out_of_reach == []
    assert track(index, memory).out_of_reach != []


def test_files_that_cannot_be_written_stay_pending_until_they_can(
    memory: Memory, index: VectorStoreIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    index.storage_context.persist(persist_dir=str(folder))
    tracked = track(index, memory, persist_dir=str(folder))
    found = tracked.as_retriever(similarity_top_k=2).retrieve("cat")

    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(index.docstore, "persist", full)
        memory.forget(ids=[record(found, "cat")])
        assert len(tracked.pending) == 1
        assert str(folder / "docstore.json") in tracked.out_of_reach
        assert texts(tracked.as_retriever().retrieve("cat")) == ["the old dog barks"]
    assert tracked.sync() == 0
    assert "grey" not in (folder / "docstore.json").read_text()


def test_old_files_that_are_loaded_again_give_nothing_of_it(
    url: str, opened: Opened, index: VectorStoreIndex, tmp_path: Path
) -> None:
    memory = opened(url)
    index.storage_context.persist(persist_dir=str(tmp_path))
    found = track(index, memory).as_retriever(similarity_top_k=2).retrieve("cat")
    memory.forget(ids=[record(found, "cat")])
    storage = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded: Any = load_index_from_storage(storage, embed_model=Words())
    assert "grey" in all_of(loaded)
    later = track(loaded, opened(url))
    assert texts(later.as_retriever(similarity_top_k=2).retrieve("cat")) == ["the old dog barks"]
    later.as_retriever().retrieve("cat")
    assert "grey" not in all_of(loaded)
    assert later.pending == []


def test_what_another_process_forgets_is_deleted_at_the_next_use(
    url: str, opened: Opened, index: VectorStoreIndex
) -> None:
    here, there = opened(url), opened(url)
    tracked = track(index, here)
    found = tracked.as_retriever(similarity_top_k=2).retrieve("cat")
    there.forget(ids=[record(found, "cat")])
    assert "grey" in all_of(index)
    assert texts(tracked.as_retriever(similarity_top_k=2).retrieve("cat")) == ["the old dog barks"]
    assert "grey" not in all_of(index)


def test_a_workspace_forgets_only_what_is_its_own(memory: Memory, index: VectorStoreIndex) -> None:
    other = memory.workspace("other")
    mine, theirs = track(index, memory), track(index, other)
    mine.as_retriever(similarity_top_k=2).retrieve("cat")
    found = theirs.as_retriever(similarity_top_k=2).retrieve("cat")
    other.forget(ids=[record(found, "cat")])
    assert memory.get(1).text == "the grey cat sleeps" or memory.get(2)
    assert len(list(memory.export())) == 2


def test_two_sources_of_one_name_are_refused_and_so_is_what_cannot_be_tracked(
    memory: Memory, index: VectorStoreIndex
) -> None:
    tracked = track(index, memory, name="pages")
    with pytest.raises(InvalidInput, match="name"):
        track(index_of([]), memory, name="pages")
    assert track(index, memory, name="pages").docstore is tracked.docstore
    for wrong in (tracked, tracked.as_retriever(), track(TextStore(), memory), "index", None):
        with pytest.raises(InvalidInput):
            track(wrong, memory)
    with pytest.raises(InvalidInput):
        track(index, "memory.db")
    with pytest.raises(InvalidInput):
        track(index, memory, name=" ")
    with pytest.raises(InvalidInput):
        track(TextStore(), memory, name="files", persist_dir="index")


def test_a_suppressed_node_is_not_found_and_comes_back(
    memory: Memory, index: VectorStoreIndex
) -> None:
    tracked = track(index, memory)
    found = tracked.as_retriever(similarity_top_k=2).retrieve("cat")
    receipt = memory.forget(ids=[record(found, "cat")], mode="suppress")
    assert texts(tracked.as_retriever(similarity_top_k=2).retrieve("cat")) == ["the old dog barks"]
    memory.restore(receipt)
    assert len(tracked.as_retriever(similarity_top_k=2).retrieve("cat")) == 2


class Noting(Workflow):
    """Keeps what the user says in an index, as a tool of an agent does."""

    def __init__(self, memory: DeLLMMemory, index: Any) -> None:
        super().__init__(timeout=30)
        self.memory, self.index = memory, index

    @step
    async def keep(self, ev: StartEvent) -> StopEvent:
        await self.memory.aput(ChatMessage(role="user", content=ev.input))
        said = (await self.memory.aget_all())[-1].content or ""
        await self.index.ainsert(Document(text=f"noted: {said}", id_=str(ev.name)))
        return StopEvent()


@pytest.mark.parametrize("given", [False, True])
async def test_what_a_run_adds_was_made_from_what_it_has_read(memory: Memory, given: bool) -> None:
    index = index_of([])
    tracked = track(index, memory, given=given)
    session = DeLLMMemory.from_defaults(memory, "s", top_k=None)
    await Noting(session, tracked).run(input="my code is 4711", name="a")
    await Noting(session, tracked).run(input="bread needs flour", name="b")
    said = next(one.id for one in memory.history("s") if "4711" in one.text)
    memory.forget(ids=[said])
    kept = all_of(index)
    assert ("4711" in kept) is given
    assert "flour" in kept or not given
    tracked.insert(Document(text="from outside of any run", id_="c"))
    assert "from outside" in all_of(index)


async def test_what_a_run_made_of_what_was_erased_meanwhile_is_not_added(memory: Memory) -> None:
    index = index_of([])
    tracked = track(index, memory)
    session = DeLLMMemory.from_defaults(memory, "s", top_k=None)

    class Late(Workflow):
        @step
        async def keep(self, ev: StartEvent) -> StopEvent:
            await session.aput(ChatMessage(role="user", content="my code is 4711"))
            said = (await session.aget_all())[-1].content
            memory.forget(quote="4711")
            await tracked.ainsert(Document(text=f"noted: {said}"))
            return StopEvent()

    await Late(timeout=30).run()
    assert "4711" not in all_of(index)
    assert tracked.pending == []


def test_a_chat_over_a_tracked_index_forgets_the_reply_with_the_document(
    memory: Memory, index: VectorStoreIndex
) -> None:
    tracked = track(index, memory)
    session = DeLLMMemory.from_defaults(memory, "s", top_k=None)
    engine = ContextChatEngine.from_defaults(
        tracked.as_retriever(similarity_top_k=1), llm=Repeating(), memory=session
    )
    assert "grey cat" in str(engine.chat("What does the cat do?"))
    assert "old dog" in str(engine.chat("And the old dog?"))
    forget_document(memory, "doc")
    assert memory.scan("grey cat", files=False).clean
    assert "grey" not in all_of(index)
    left = [one.content or "" for one in engine.chat_history]
    assert left[0] == "What does the cat do?"
    assert all("grey" not in one for one in left)
    forget_document(memory, "other")
    assert [one.content for one in engine.chat_history] == [
        "What does the cat do?",
        "And the old dog?",
    ]
    assert memory.verify().ok


def test_a_window_around_a_sentence_is_forgotten_with_what_it_shows(memory: Memory) -> None:
    text = "Ann lives in Paris. She likes tea. Her code is 4711. It rains today. Bread needs flour."
    parser = SentenceWindowNodeParser(window_size=1, sentence_splitter=lambda one: one.split("  "))
    nodes = parser.get_nodes_from_documents([Document(text=text.replace(". ", ".  "), id_="ann")])
    assert len(nodes) == 5
    index = index_of(nodes)
    tracked = track(index, memory, everything=True)
    session = DeLLMMemory.from_defaults(memory, "s", top_k=None)
    engine = ContextChatEngine.from_defaults(
        tracked.as_retriever(similarity_top_k=1),
        llm=Repeating(),
        memory=session,
        node_postprocessors=[MetadataReplacementPostProcessor("window")],
    )
    assert "4711" in str(engine.chat("She likes tea"))
    memory.forget(quote="4711")
    assert "4711" not in all_of(index)
    assert memory.scan("4711", files=False).clean
    assert [one.content for one in engine.chat_history] == ["She likes tea"]
    left = texts(tracked.as_retriever(similarity_top_k=9).retrieve("bread"))
    assert sorted(one.strip() for one in left) == ["Ann lives in Paris.", "Bread needs flour."]


def test_what_a_retriever_hands_out_again_as_the_same_object_may_come_back(memory: Memory) -> None:
    node = chunk("the grey cat sleeps")
    inner = Fixed(node, chunk("the old dog barks"))
    inner._retrieve = lambda _: [NodeWithScore(node=one) for one in inner.nodes]  # type: ignore[method-assign]
    tracked = track(inner, memory)
    found = tracked.retrieve("cat")
    receipt = memory.forget(ids=[record(found, "cat")], mode="suppress")
    assert texts(tracked.retrieve("cat")) == ["the old dog barks"]
    memory.restore(receipt)
    assert len(tracked.retrieve("cat")) == 2


def test_two_objects_over_one_store_outside_have_one_name(memory: Memory) -> None:
    store = store_with(chunk("the grey cat sleeps"), chunk("the old dog barks", "other"))
    one, two = (VectorStoreIndex.from_vector_store(store, embed_model=Words()) for _ in range(2))
    first, second = track(one, memory), track(two, memory)
    found = first.as_retriever(similarity_top_k=2).retrieve("cat")
    memory.forget(ids=[record(found, "cat")])
    assert texts(second.as_retriever(similarity_top_k=2).retrieve("cat")) == ["the old dog barks"]
    assert len(store.client) == 1
    assert first.pending == second.pending == []


def test_what_was_forgotten_before_the_index_was_tracked_is_deleted_as_well(
    memory: Memory, index: VectorStoreIndex
) -> None:
    found = index.as_retriever(similarity_top_k=2).retrieve("cat")
    known = records_of(memory, [one.node for one in found])  # as the memory of a chat does
    elsewhere = records_of(memory, [chunk("a page of another index", "page")])
    gone = next(one.node_id for one in found if "cat" in one.text)
    memory.forget(ids=[known[gone] or 0, *(one or 0 for one in elsewhere.values())])
    assert "grey" in all_of(index)
    assert any("2 copies" in one for one in memory.receipts()[-1].out_of_reach)
    tracked = track(index, memory)
    assert tracked.sync() == 0
    assert "grey" not in all_of(index)
    assert memory.elsewhere.gone("llama_index") == list(elsewhere)
    assert texts(tracked.as_retriever(similarity_top_k=2).retrieve("cat")) == ["the old dog barks"]


def test_indexes_that_share_a_document_store_lose_it_together(
    memory: Memory, tmp_path: Path
) -> None:
    nodes = [chunk("the grey cat sleeps", "cat"), chunk("the old dog barks", "dog")]
    storage = StorageContext.from_defaults()
    vectors = VectorStoreIndex(nodes, embed_model=Words(), storage_context=storage)
    listed, third = (SummaryIndex(nodes, storage_context=storage) for _ in range(2))
    first, second = track(vectors, memory), track(listed, memory)
    found = first.as_retriever(similarity_top_k=2).retrieve("cat")
    memory.forget(ids=[record(found, "cat")])
    assert texts(second.as_retriever().retrieve("cat")) == ["the old dog barks"]
    assert "grey" not in all_of(vectors)
    assert first.pending == second.pending == []
    storage.persist(persist_dir=str(tmp_path))
    again = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded: Any = load_index_from_storage(again, index_id=third.index_id)
    assert texts(loaded.as_retriever().retrieve("cat")) == ["the old dog barks"]


def test_a_node_without_an_id_of_ours_is_a_node_like_any_other(memory: Memory) -> None:
    assert uuid.UUID(chunk("x").node_id)
    tracked = track(index_of([TextNode(text="grey cat", id_="page 1")]), memory)
    found = tracked.as_retriever().retrieve("cat")
    memory.forget(ids=[record(found, "cat")])
    assert tracked.as_retriever().retrieve("cat") == []
    assert memory.elsewhere.places() == []


def test_what_is_tracked_is_not_copied_where_no_forget_would_reach_it(
    memory: Memory, index: VectorStoreIndex
) -> None:
    tracked, store = track(index, memory), track(TextStore(), memory)
    for one in (tracked, tracked.as_retriever(), store):
        for call in (copy.deepcopy, pickle.dumps):
            with pytest.raises(UnsupportedHere, match="copied"):
                call(one)
    found = copy.copy(tracked.as_retriever(similarity_top_k=2)).retrieve("cat")
    again = copy.copy(tracked).as_retriever(similarity_top_k=2).retrieve("cat")
    assert texts(found) == texts(again)
    assert copy.copy(store).store is store.store
