"""Nodes of an index as records: each known again, forgotten by document, and never mistaken."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable

import pytest
from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    IndexNode,
    Node,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)

from dellm import Atom, Memory, NothingMatched, Sources
from dellm_llamaindex import documents
from dellm_llamaindex.documents import forget_document, plan_document, records_of
from dellm_llamaindex.memory import DeLLMMemory


def name(number: int) -> str:
    return str(uuid.UUID(int=number))


def node(text: str, number: int = 1, document: str = "doc", **more: object) -> TextNode:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    return TextNode(text=text, id_=name(number), relationships=source, **more)


def of_one(memory: Memory, one: BaseNode) -> int | None:
    return records_of(memory, [one])[one.node_id]


def test_a_node_is_one_record_however_often_it_is_found(memory: Memory) -> None:
    first = records_of(memory, [node("the cat is grey"), node("the dog is old", 2)])
    again = records_of(memory, [node("the dog is old", 2), node("the cat is grey")])
    assert again == first
    assert len(set(first.values())) == 2
    record = memory.get(first[name(1)] or 0)
    assert (record.kind, record.role, record.text) == ("document", "document", "the cat is grey")
    assert record.metadata == {"node_id": name(1), "ref_doc_id": "doc"}
    assert memory.verify().ok


def test_a_node_says_what_a_prompt_shows_of_it(memory: Memory) -> None:
    hidden = node("salary list", metadata={"author": "Ann", "size": 3})
    hidden.excluded_llm_metadata_keys = ["size"]
    record = memory.get(of_one(memory, hidden) or 0)
    assert record.text == "author: Ann\n\nsalary list"
    assert dict(record.metadata)["size"] == 3
    only = node("", 2, metadata={"title": "Minutes"})
    assert "Minutes" in memory.get(of_one(memory, only) or 0).text


def test_the_same_node_with_other_content_is_another_record_and_both_go_with_the_document(
    memory: Memory,
) -> None:
    old, new = of_one(memory, node("version one")), of_one(memory, node("version two"))
    assert old != new
    assert of_one(memory, node("version one")) == old
    other = of_one(memory, node("version one", 7, "another"))
    receipt = forget_document(memory, "doc")
    assert set(receipt.ids) == {old, new}
    assert memory.get(other or 0).text == "version one"


def test_metadata_that_has_no_json_form_or_means_something_to_us_is_left_out(
    memory: Memory,
) -> None:
    odd = node("text", metadata={"score": float("nan"), "at": {1, 2}, "rebuild": "x", "page": 4})
    odd.excluded_llm_metadata_keys = ["score", "at", "rebuild"]
    record = memory.get(of_one(memory, odd) or 0)
    assert set(record.metadata) == {"page", "node_id", "ref_doc_id"}


def test_forgetting_a_document_takes_its_replies_and_nothing_else(memory: Memory) -> None:
    cat, dog = of_one(memory, node("grey cat")), of_one(memory, node("old dog", 2, "other"))
    reply = memory.record("The cat is grey.", context=[cat or 0])
    kept = memory.record("The dog is old.", context=[dog or 0])
    assert plan_document(memory, "doc").ids == (cat, reply.id)
    forget_document(memory, "doc")
    assert {one.id for one in memory.export()} == {dog, kept.id}
    assert memory.scan("grey", files=False).clean
    with pytest.raises(NothingMatched):
        forget_document(memory, "nothing of the kind")


def test_what_was_erased_is_no_record_again_under_its_id_or_as_the_same_text(
    memory: Memory,
) -> None:
    cat = of_one(memory, node("grey cat"))
    memory.forget(ids=[cat or 0])
    assert of_one(memory, node("grey cat")) is None
    assert of_one(memory, node("grey  cat")) is None  # as its index may give it back
    assert of_one(memory, node("grey cat", 9)) is None
    assert of_one(memory, node("grey cat", 10, "another document")) is not None


def test_an_id_that_says_something_is_not_kept_once_its_record_is_gone(memory: Memory) -> None:
    one = TextNode(text="grey cat", id_="ann-medical-report")
    record = of_one(memory, one)
    memory.forget(ids=[record or 0])
    assert of_one(memory, one) is None
    assert memory.elsewhere.gone(documents.PLACE) == []
    assert memory.scan("medical", files=False).clean


def test_a_node_that_names_its_record_is_that_record_also_when_it_was_copied_or_pickled(
    memory: Memory,
) -> None:
    said = memory.remember("I like tea")
    owner = documents.owner_of(memory)
    one = documents.marked(TextNode(text="I like tea"), owner, said.id)
    assert one.get_content("llm") == "I like tea"
    assert of_one(memory, one) == said.id
    assert of_one(memory, one.model_copy()) == said.id
    assert of_one(memory, pickle.loads(pickle.dumps(one))) == said.id
    assert of_one(memory, TextNode.from_dict(one.to_dict())) == said.id
    assert of_one(memory, NodeWithScore(node=one).node) == said.id
    assert documents.unmarked(one) == TextNode(text="I like tea", id_=one.id_)
    assert len(list(memory.export())) == 1


def test_a_node_whose_text_was_changed_since_depends_on_its_record(memory: Memory) -> None:
    said = memory.remember("I like tea")
    one = documents.marked(TextNode(text="I like tea"), documents.owner_of(memory), said.id)
    one.text = "tea"
    cut = of_one(memory, one)
    assert cut in memory.dependents([said.id])
    stored = of_one(memory, TextNode(text="likes tea", metadata={documents.RECORD: said.id}))
    assert stored in memory.dependents([said.id])
    memory.forget(ids=[said.id])
    assert list(memory.export()) == []


def test_a_node_that_names_a_record_that_is_gone_is_not_usable(memory: Memory) -> None:
    gone = memory.remember("I like tea")
    memory.forget(ids=[gone.id])
    assert of_one(memory, TextNode(text="tea", metadata={documents.RECORD: gone.id})) is None
    assert of_one(memory, TextNode(text="tea", metadata={documents.RECORD: 999})) is None


def test_a_record_of_another_workspace_is_none_of_this_one(memory: Memory) -> None:
    other = memory.workspace("other")
    theirs = other.remember("I like tea")
    memory.remember("something else")
    one = documents.marked(TextNode(text="I like tea"), documents.owner_of(other), theirs.id)
    mine = of_one(memory, one)
    assert memory.get(mine or 0).text == "I like tea"
    assert memory.get(mine or 0).kind == "document"
    assert mine not in memory.dependents([1])


def test_what_a_node_was_made_from_goes_first(memory: Memory) -> None:
    said = memory.remember("my code is 4711")
    made = {name(1): Sources(also=(Atom(known=said.id),))}
    answer = records_of(memory, [node("the code: 4711")], made=made)[name(1)]
    assert answer in memory.dependents([said.id])


def test_pictures_and_references_are_records_of_their_own(memory: Memory) -> None:
    nodes: list[BaseNode] = [
        ImageNode(image="aGVsbG8=", id_=name(1)),
        ImageNode(image="d29ybGQ=", id_=name(2)),
        ImageNode(image_url="https://example.org/cat.png", text="a cat", id_=name(3)),
        IndexNode(text="the archive", index_id="archive", id_=name(4)),
        Node(id_=name(5)),
    ]
    found = records_of(memory, nodes)
    assert len(set(found.values())) == 5
    assert "cat.png" in memory.get(found[name(3)] or 0).text
    assert memory.get(found[name(4)] or 0).text == "the archive"


def test_what_a_tracked_index_left_out_is_no_record(memory: Memory) -> None:
    one = node("erased long ago")
    documents.left_out(one, documents.owner_of(memory))
    assert records_of(memory, [one]) == {}
    assert list(memory.export()) == []


def test_nothing_is_written_when_all_is_known(url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(url).workspace("alex")
    records_of(memory, [node("grey cat")])
    before = memory.checkpoints.generation()
    records_of(memory, [node("grey cat")])
    assert memory.checkpoints.generation() == before
    assert len(list(memory.export())) == 1


async def test_a_document_is_forgotten_in_a_loop_too(memory: Memory) -> None:
    ours = DeLLMMemory.from_defaults(memory, session_id="s")
    records_of(memory, [node("the office closes at six", document="office")])
    plan = await ours.aplan_document("office")
    assert plan == ours.plan_document("office")
    receipt = await ours.aforget_document("office")
    assert receipt.ids == tuple(plan.ids)
    assert list(memory.export()) == []
