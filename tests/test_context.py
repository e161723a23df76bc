"""What goes into a prompt: the right records, in order, with a reason, within the budget."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from test_search import Axes

from dellm import Memory, context
from dellm.errors import InvalidInput
from dellm.records import Draft


@pytest.fixture
def alex(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=Axes()).workspace("alex")


def test_the_top_k_above_the_threshold_come_in_the_order_they_were_said(alex: Memory) -> None:
    alex.remember_many([Draft(text) for text in ("a:3 b:4", "b:1", "a:1", "a:4 b:3", "a:1 b:9")])
    chosen = alex.context("a:1", k=2)
    assert chosen.ids == [3, 4]  # the two best, oldest first
    assert [round(one.score, 2) for one in chosen] == [1.0, 0.8]
    assert alex.context("a:1", k=9).ids == [1, 3, 4]  # cosine above 0.2 only
    assert alex.context("a:1", k=9, threshold=0.7).ids == [3, 4]
    assert alex.context("a:1", k=9, threshold=-1.0).ids == [1, 2, 3, 4, 5]
    assert alex.context("a:1", k=0).ids == []
    assert alex.context("h:1", k=9).ids == []


def test_each_record_says_why_it_is_there(alex: Memory) -> None:
    alex.remember_many([Draft("a:1 paris", thread="t"), Draft("b:1", thread="t")])
    chosen = alex.context("a:1", thread="t", k=1, last=1)
    assert [(one.record.id, one.score is None) for one in chosen] == [(1, False), (2, True)]
    assert chosen.chosen[0].why == "meaning: cosine 1.000"
    assert chosen.chosen[1].why == "recent: 1 from the end of the thread"
    assert alex.context("paris", by="keyword").chosen[0].why.startswith("keyword: bm25 ")
    assert alex.context("a:1 paris", by="both").chosen[0].why.startswith("meaning and keyword")


def test_the_last_n_are_the_thread_s_own_and_are_not_taken_twice(alex: Memory) -> None:
    for number in range(6):
        alex.remember("a:1", thread="t" if number % 2 == 0 else "u")
    chosen = alex.context("a:1", thread="t", k=2, last=2)
    assert len(chosen.ids) == len(set(chosen.ids)) == 4
    assert [one.record.id for one in chosen if one.score is None] == [3, 5]
    assert alex.context("a:1", thread="t", k=0, last=99).ids == [1, 3, 5]
    assert alex.context("a:1", thread=None, k=0, last=2).ids == []
    assert alex.context("a:1", thread="new", k=0, last=2).ids == []


def test_what_is_to_be_left_out_does_not_use_up_the_last_n(alex: Memory) -> None:
    ids = [alex.remember("a:1", thread="t").id for _ in range(5)]
    assert alex.context("a:1", thread="t", k=0, last=2, without=ids[-2:]).ids == ids[1:3]
    assert alex.context("a:1", thread="t", k=9, last=2, without=ids[:2]).ids == ids[2:]


def test_a_scope_of_one_thread_keeps_others_out(alex: Memory) -> None:
    alex.remember("a:1", thread="t")
    alex.remember("a:1", thread="u")
    assert alex.context("a:1", thread="t", scope="thread").ids == [1]
    assert alex.context("a:1", thread="t").ids == [1, 2]
    with pytest.raises(InvalidInput):
        alex.context("a:1", scope="thread")


def test_the_budget_keeps_the_most_relevant_and_passes_over_what_does_not_fit(alex: Memory) -> None:
    alex.remember_many([Draft("a:3 b:4 " + "x " * 40), Draft("a:1"), Draft("a:4 b:3 y")])
    size = {1: 88, 2: 3, 3: 9}
    count = len
    assert [count(one.text) for one in alex.export()] == list(size.values())
    assert alex.context("a:1", budget=1_000, count=count).ids == [1, 2, 3]
    assert alex.context("a:1", budget=20, count=count).ids == [2, 3]
    assert alex.context("a:1", budget=91, count=count).ids == [2, 3]
    assert alex.context("a:1", budget=100, count=count).ids == [1, 2, 3]
    assert alex.context("a:1", budget=3, count=count).ids == [2]
    assert alex.context("a:1", budget=0, count=count).ids == []
    assert context.estimated_tokens("x" * 9) == 3


def test_relevant_records_use_the_budget_before_recent_ones(alex: Memory) -> None:
    alex.remember("a:1")
    for _ in range(3):
        alex.remember("b:1", thread="t")
    chosen = alex.context("a:1", thread="t", k=1, last=3, budget=2, count=lambda text: 1)
    assert chosen.ids == [1, 4]  # and of the recent ones the newest


def test_among_near_equals_originals_come_before_replies(alex: Memory) -> None:
    source = alex.remember("c:1")
    reply = alex.record("a:1", context=[source.id])
    original = alex.remember("a:1")
    assert alex.context("a:1", k=1).ids == [original.id]
    assert alex.context("a:1", k=2).ids == [reply.id, original.id]
    close = alex.remember("a:100 b:10")  # cosine .995, within 0.02 of the best
    assert alex.context("a:1", k=2).ids == [original.id, close.id]


def test_among_near_equal_originals_the_one_with_fewer_dependents_is_taken(alex: Memory) -> None:
    first, second, third = (alex.remember("a:1") for _ in range(3))
    alex.record("d:1", context=[first.id])
    reply = alex.record("d:1", context=[third.id])
    alex.record("d:1", context=[reply.id])
    assert alex.context("a:1", k=1).ids == [second.id]
    assert alex.context("a:1", k=2).ids == [first.id, second.id]


def test_a_clearly_better_record_is_taken_whatever_depends_on_it(alex: Memory) -> None:
    best = alex.remember("a:1")
    for _ in range(5):
        alex.record("d:1", context=[best.id])
    alex.remember("a:4 b:3")
    assert alex.context("a:1", k=1).ids == [best.id]


def test_the_same_question_gives_the_same_context_each_time(memory: Memory) -> None:
    memory.remember_many([Draft("the same words each time", thread="t") for _ in range(20)])
    first = memory.context("same words", thread="t", k=5, last=3, by="both")
    for _ in range(3):
        again = memory.context("same words", thread="t", k=5, last=3, by="both")
        assert again == first
        assert [one.why for one in again] == [one.why for one in first]


def test_without_an_embedder_a_context_goes_by_keyword(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=None).workspace("alex")
    memory.remember("I live in Paris")
    memory.remember("I like tea")
    chosen = memory.context("what to do in paris")
    assert chosen.ids == [1]
    assert chosen.chosen[0].why.startswith("keyword")


def test_a_context_is_what_the_reply_is_recorded_with(alex: Memory) -> None:
    alex.remember("a:1", thread="t")
    alex.remember("a:1 b:1", thread="t")
    chosen = alex.context("a:1", thread="t")
    reply = alex.record("reply", context=chosen)
    assert alex.context_of(reply.id) == chosen.ids
    assert reply.thread == "t"
    with pytest.raises(InvalidInput):
        alex.workspace("kim").record("reply", context=chosen)


def test_a_context_of_a_workspace_with_an_odd_name_can_be_recorded(memory: Memory) -> None:
    odd = memory.workspace("x\x00\ud800")
    odd.remember("kingsbury")
    chosen = odd.context("kingsbury", by="keyword")
    assert odd.context_of(odd.record("reply", context=chosen).id) == chosen.ids


def test_the_prompt_is_the_paper_s(alex: Memory) -> None:
    said = alex.remember("I live in Paris")
    reply = alex.record("Noted.", context=[said.id])
    assert context.prompt("Plan my evening", [said, reply]) == (
        "Here are past conversations between you and the user:\n"
        "user: I live in Paris\n"
        "assistant: Noted.\n"
        "\n"
        "Reply to the user's query based on past conversation:\n"
        "Plan my evening"
    )
    assert context.prompt("Hello", []) == (
        "Reply to the user's query based on past conversation:\nHello"
    )
