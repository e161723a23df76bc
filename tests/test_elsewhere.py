"""What other systems keep copies of: a document is one record, and its copies are found again."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from dellm import Atom, Draft, Foreign, InvalidInput, Memory, Receipt, Sources


def document(
    said: str, name: str | None = None, made: Sources | None = None, source: str = ""
) -> Foreign:
    draft = Draft(said, role="document", kind="document")
    return Foreign(name, Atom(draft, made=made), source)


def taken(memory: Memory, said: str, name: str | None = None, *, new: bool = False) -> int | None:
    return memory.elsewhere.take("docs", [document(said, name)], new=new)[0]


def test_a_document_is_one_record_however_often_it_comes(memory: Memory) -> None:
    first = taken(memory, "the sky is blue", "a")
    assert taken(memory, "the sky is blue", "a") == first
    assert taken(memory, "the sky is blue") == first
    assert taken(memory, "the sky is blue", "b") == first
    twice = memory.elsewhere.take("docs", [document("new", "c"), document("new", "d")])
    assert twice[0] == twice[1]
    assert [one.text for one in memory.export()] == ["the sky is blue", "new"]
    memory.forget(ids=[first or 0])
    assert memory.elsewhere.gone("docs") == ["a", "b"]
    assert memory.elsewhere.gone("other") == []
    assert memory.verify().ok


def test_two_sources_of_one_text_are_two_documents(memory: Memory) -> None:
    both = [document("the sky is blue", one, source=one) for one in ("a", "b")]
    first, second = memory.elsewhere.take("docs", both)
    assert first != second
    memory.forget(ids=[first or 0])
    assert memory.elsewhere.gone("docs") == ["a"]
    assert taken(memory, "the sky is blue", "b") == second


def test_an_erased_document_is_refused_under_every_id_and_its_copies_are_named(
    memory: Memory,
) -> None:
    first = taken(memory, "the sky is blue", "a")
    memory.forget(ids=[first or 0])
    assert taken(memory, "the sky is blue", "a") is None
    assert taken(memory, "the sky is blue", "z") is None
    assert taken(memory, "the sky is blue", "y", new=True) is None
    assert taken(memory, "the sky is blue") is None
    assert memory.elsewhere.gone("docs") == ["a", "y", "z"]
    memory.elsewhere.drop("docs", ["a", "y"])
    assert memory.elsewhere.gone("docs") == ["z"]
    assert memory.scan("blue", files=False).clean


def test_an_id_whose_content_was_erased_is_not_taken_for_another_content(memory: Memory) -> None:
    first = taken(memory, "the sky is blue", "a")
    memory.forget(ids=[first or 0])
    assert taken(memory, "the sky is  blue", "a") is None  # as a store may give it back
    new = taken(memory, "grass is green", "a", new=True)
    assert new is not None
    assert memory.elsewhere.gone("docs") == ["a"]  # until it is known to be there
    assert memory.elsewhere.put("docs", {"a": new}) == []
    assert memory.elsewhere.gone("docs") == []
    assert taken(memory, "grass is green", "a") == new
    memory.elsewhere.drop("docs", ["a"], gone=True)
    memory.forget(ids=[new])
    assert memory.elsewhere.gone("docs") == ["a"]
    memory.elsewhere.drop("docs", ["a"], gone=True)
    assert memory.elsewhere.places() == []


def test_a_copy_that_came_after_its_record_went_is_to_be_deleted(memory: Memory) -> None:
    first = taken(memory, "the sky is blue", "a")
    memory.forget(ids=[first or 0])
    memory.elsewhere.drop("docs", ["a"])
    assert memory.elsewhere.put("docs", {"a": first or 0}) == ["a"]
    assert memory.elsewhere.gone("docs") == ["a"]


def test_forgetting_everything_still_says_what_is_to_be_deleted_elsewhere(memory: Memory) -> None:
    for at in range(3):
        taken(memory, f"number {at}", f"n{at}")
    memory.forget(everything=True)
    assert memory.elsewhere.gone("docs") == ["n0", "n1", "n2"]
    assert memory.elsewhere.places() == ["docs"]
    assert memory.workspace("another").elsewhere.gone("docs") == []


def test_a_document_made_from_a_message_goes_with_it_and_a_late_one_is_refused(
    memory: Memory,
) -> None:
    paris = memory.remember("I live in Paris")
    made = [Sources(also=(Atom(known=paris.id),)) for _ in range(2)]
    first = memory.elsewhere.take("docs", [document("lives in Paris", "a", made=made[0])])
    assert first[0] in memory.dependents([paris.id])
    memory.forget(ids=[paris.id])
    assert memory.elsewhere.gone("docs") == ["a"]
    late = memory.elsewhere.take("docs", [document("home: Paris", "b", made=made[1])], new=True)
    assert late == [None]
    assert memory.scan("Paris", files=False).clean


def test_a_suppressed_document_is_not_given_but_its_copy_stays(memory: Memory) -> None:
    first = taken(memory, "the sky is blue", "a")
    receipt = memory.forget(ids=[first or 0], mode="suppress")
    assert taken(memory, "the sky is blue", "a") is None
    assert taken(memory, "the sky is blue", "b") is None
    assert memory.elsewhere.gone("docs") == []
    memory.restore(receipt)
    assert taken(memory, "the sky is blue", "a") == first


def test_of_a_redacted_document_the_old_copy_is_to_be_deleted(memory: Memory) -> None:
    taken(memory, "Sam pays with 9111 1111 1111 1110", "a")
    memory.forget("9111 1111 1111 1110", mode="redact")
    assert taken(memory, "Sam pays with 9111 1111 1111 1110", "a") is None
    assert taken(memory, "Sam pays with 9111 1111 1111 1110") is None
    assert memory.elsewhere.gone("docs") == ["a"]
    assert memory.scan("9111 1111 1111 1110", files=False).clean


def test_those_who_listen_are_told_of_every_forget_and_cannot_make_it_fail(memory: Memory) -> None:
    class Ear:
        def __init__(self) -> None:
            self.heard: list[Receipt] = []

        def hear(self, receipt: Receipt) -> None:
            self.heard.append(receipt)

    def broken(receipt: Receipt) -> None:
        raise RuntimeError

    ear, gone = Ear(), Ear()
    heard = gone.heard
    for one in (broken, gone.hear, ear.hear):
        memory.after_forget(one)
    del gone, one
    gc.collect()
    receipt = memory.forget(ids=[memory.remember("one").id])
    other = memory.workspace("another")
    second = other.forget(ids=[other.remember("two").id])
    assert [one.id for one in ear.heard] == [receipt.id, second.id]
    assert heard == []


def test_those_who_listen_are_told_what_every_read_returns(memory: Memory) -> None:
    told: list[tuple[str, list[int]]] = []
    memory.after_read(lambda workspace, ids: told.append((workspace, list(ids))))
    memory.after_read(lambda workspace, ids: 1 / 0)
    one = memory.remember("one word", thread="t")
    other = memory.workspace("another")
    two = other.remember("two words", thread="t")
    memory.get(one.id)
    memory.history("t")
    memory.search("word", by="keyword")
    memory.context("word", by="keyword")
    list(other.export())
    assert told == [*[("alex", [one.id])] * 4, ("another", [two.id])]


WRONG: dict[str, Callable[[Any], object]] = {
    "no document": lambda here: here.take("docs", [1]),
    "no draft": lambda here: here.take("docs", [Foreign("a", Atom(known=1))]),
    "a thread": lambda here: here.take("docs", [Foreign("a", Atom(Draft("x", thread="t")))]),
    "a number as id": lambda here: here.take("docs", [Foreign(1, document("x").atom)]),  # type: ignore[arg-type] # wrong
    "a number as place": lambda here: here.gone(1),
    "a list of records": lambda here: here.put("docs", ["a"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_refused(memory: Memory, name: str) -> None:
    with pytest.raises(InvalidInput):
        WRONG[name](memory.elsewhere)
