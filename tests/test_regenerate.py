"""Replies made from what goes are asked again without it; the rest of the conversation stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from dellm import InvalidInput, Memory, Plan, Record

CODE = "My door code is canaryqzxv."
TEA = "I like tea."


def echoed(_: Record, context: Sequence[Record]) -> str:
    """Return what the worst model would: all that it was sent."""
    assert "canaryqzxv" not in "".join(one.text for one in context)
    return "you said: " + " | ".join(one.text for one in context)


def turn(memory: Memory, said: str, *before: int, answer: str = "") -> tuple[Record, Record]:
    """Store a question and its reply, made from earlier records and the question."""
    question = memory.remember(said, thread="t")
    context = [*before, question.id]
    texts = [memory.get(one).text for one in context]
    reply = answer or "you said: " + " | ".join(texts)
    return question, memory.record(reply, context=context, thread="t", model="x/gpt")


@pytest.fixture
def three(memory: Memory) -> Memory:
    """Return a memory of three turns, 1 to 6: the second tells a secret, the third uses all before."""
    memory.regenerator(echoed)
    turn(memory, TEA)
    turn(memory, CODE)
    turn(memory, "What do you know of me?", 1, 2, 3, 4)
    return memory


def test_a_reply_is_asked_again_and_its_exchange_stays(three: Memory) -> None:
    old = three.get(6)
    plan = three.plan("canaryqzxv", on_dependents="regenerate")
    assert (plan.ids, [one.id for one in plan.regenerates]) == ((3, 4, 6), [6])
    receipt = three.forget(plan)
    new = three.get(receipt.regenerated[6])
    assert new.text == f"you said: {TEA} | you said: {TEA} | What do you know of me?"
    assert [one.id for one in three.history("t")] == [1, 2, 5, new.id]
    assert three.context_of(new.id) == [1, 2, 5]
    assert (new.place, new.version, new.model, new.role) == (old.place, 2, "x/gpt", "assistant")
    assert (receipt.not_regenerated, receipt.regenerate_calls, len(receipt.rebuilt)) == (0, 1, 0)
    assert not three.scan("canaryqzxv").places
    assert three.verify().ok
    assert three.receipt(receipt.number) == receipt
    assert "canaryqzxv" not in json.dumps(receipt.to_json())
