"""What a second pair of eyes found by using the verbs together, in ways each was not tested for."""

from __future__ import annotations

from dellm import Memory


def test_a_record_that_two_suppressions_took_comes_back_when_both_are_undone(
    memory: Memory,
) -> None:
    memory.remember("I like tea", thread="t")  # 1
    memory.remember("I like rum", thread="t")  # 2
    memory.record("tea and rum", context=[1, 2], thread="t")  # 3, of which both speak
    tea = memory.forget(ids=[1], mode="suppress")
    rum = memory.forget(ids=[2], mode="suppress")
    assert memory.restore(rum) == [2]
    assert [one.id for one in memory.history("t")] == [2]
    assert memory.restore(tea) == [1, 3]
    assert [one.id for one in memory.history("t")] == [1, 2, 3]
