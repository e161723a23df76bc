"""A forget is safe to repeat, in whatever way it was asked, and returns the same receipt."""

from __future__ import annotations

import pytest

from dellm import NothingMatched


def test_a_plan_its_request_and_its_ids_all_lead_to_the_one_receipt(memory):
    home = memory.remember("I live in Paris", thread="t")
    memory.record("Noted: Paris.", context=[home.id], thread="t")
    plan = memory.plan("I live in Paris")
    receipt = memory.forget(plan)
    assert memory.forget(plan) == receipt
    assert memory.forget("I live in Paris") == receipt
    assert memory.forget(ids=[home.id]) == receipt
    assert memory.receipts() == [receipt]


def test_the_same_words_said_again_make_a_new_receipt(memory):
    memory.remember("I live in Paris", thread="t")
    first = memory.forget("I live in Paris")
    again = memory.remember("I live in Paris", thread="t")
    second = memory.forget("I live in Paris")
    assert second.number != first.number
    assert second.ids == (again.id,)


def test_what_was_never_forgotten_has_no_receipt(memory):
    memory.remember("I live in Paris", thread="t")
    memory.forget("I live in Paris")
    with pytest.raises(NothingMatched):
        memory.forget("I live in Oslo")
