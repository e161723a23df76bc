"""The two worked examples of the paper: Dep(1) = {1, 2, 4, 8} in both."""

from __future__ import annotations

import pytest

from dellm import Memory

FIGURE_3 = {2: [1], 4: [1, 3], 6: [5], 8: [1, 7]}
FIGURE_4 = {2: [1], 4: [1, 2, 3], 6: [5], 8: [3, 4, 5, 6, 7]}
TEXTS = {
    1: "I live in Paris",
    2: "Got it. You're in Paris",
    3: "Suggest an evening walk",
    4: "Along the Seine, past the bookstalls",
    5: "Tell me a joke",
    6: "A byte walks into a bar",
    7: "What should I wear today?",
    8: "A raincoat, it pours by the river",
}


def replay(memory: Memory, contexts: dict[int, list[int]]) -> None:
    for id_, text in TEXTS.items():
        if id_ % 2:
            made = memory.remember(text, thread="chat")
        else:
            made = memory.record(text, context=contexts[id_], thread="chat")
        assert made.id == id_


@pytest.mark.parametrize("contexts", [FIGURE_3, FIGURE_4], ids=["figure-3", "figure-4"])
def test_everything_made_from_message_1_is_reached(memory, contexts):
    replay(memory, contexts)
    assert memory.dependents([1]) == [1, 2, 4, 8]
    assert {id_: memory.context_of(id_) for id_ in contexts} == contexts


def test_context_and_its_inverse_agree(memory):
    replay(memory, FIGURE_3)
    assert memory.used_in(1) == [2, 4, 8]
    assert memory.used_in(8) == []


@pytest.mark.parametrize("contexts", [FIGURE_3, FIGURE_4], ids=["figure-3", "figure-4"])
def test_forgetting_message_1_keeps_the_other_four(memory, contexts):
    replay(memory, contexts)
    receipt = memory.forget("I live in Paris")
    assert receipt.ids == (1, 2, 4, 8)
    assert [record.id for record in memory.history("chat")] == [3, 5, 6, 7]
    assert memory.context_of(6) == [5]
    assert memory.verify().ok


def test_the_plan_shows_one_shortest_path_to_each_dependent(memory):
    replay(memory, FIGURE_4)
    plan = memory.plan(ids=[1])
    assert {one.id: one.trace for one in plan.dependents} == {2: (1, 2), 4: (1, 4), 8: (1, 4, 8)}
    assert plan.explain(8) == "made from 1 → 4 → 8"
