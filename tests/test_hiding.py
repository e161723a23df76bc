"""A thread may drop or archive messages: that is not forgetting, and a forget finds them all."""

from __future__ import annotations

from collections.abc import Sequence

from raw_tables import connected, statement

from dellm import Draft, Memory, Saying


def say(memory: Memory, *texts: str, parents: Sequence[int] = (), role: str = "user") -> list[int]:
    said = [Saying(Draft(text, thread="t", role=role), parents=parents) for text in texts]
    memory.conversations.add("t", said)
    return [one.id or 0 for one in said]


def shown(memory: Memory, among: str = "shown") -> list[int]:
    return [one.id for one in memory.conversations.read("t", among=among).messages]


def test_a_hidden_message_is_in_no_read_of_its_thread_but_those_that_ask_for_it(
    memory: Memory,
) -> None:
    one, two, three = say(memory, "one", "two", "three")
    memory.conversations.hide("t", [one])
    memory.conversations.hide("t", [two], archive=True)
    assert shown(memory) == [three]
    assert shown(memory, "archived") == [two]
    assert shown(memory, "kept") == [two, three]
    assert shown(memory, "all") == [one, two, three]
    assert memory.conversations.some("t", [one, two, three])[0].id == three
    assert [it.id for it in memory.conversations.spoken_by("t", "user")] == [three]
    assert [it.id for it in memory.conversations.after("t", one, 9)] == [three]
    (four,) = say(memory, "four")
    assert memory.conversations.preceding("t", [two, three, four], "user") == {four: three}


def test_only_its_own_messages_can_be_hidden_through_a_thread(memory: Memory) -> None:
    (one,) = say(memory, "one")
    memory.conversations.hide("u", [one])
    memory.conversations.hide("u")
    assert shown(memory) == [one]
    memory.conversations.hide("t")
    memory.conversations.add("u", [], only=[one])
    assert shown(memory) == []


def test_what_was_dropped_is_in_no_context_and_what_was_archived_may_be(memory: Memory) -> None:
    one, two = say(memory, "a zebra in the garden", "another zebra in the garden")
    memory.conversations.hide("t", [one])
    memory.conversations.hide("t", [two], archive=True)
    for by in ("meaning", "keyword", "both"):
        context = memory.context("zebra in the garden", by=by, threshold=-1)
        assert context.ids == [two]
        found = memory.search("zebra in the garden", by=by, threshold=-1)
        assert [it.record.id for it in found] == [two]
    assert memory.context("x", thread="t", k=0, last=5, by="keyword").ids == [two]


def test_a_forget_finds_what_is_hidden_and_all_that_was_made_of_it(memory: Memory) -> None:
    (one,) = say(memory, "a zebra in the garden")
    (made,) = say(memory, "noted", parents=[one], role="assistant")
    memory.conversations.hide("t", [one])
    plan = memory.plan(meaning="a zebra in the garden", threshold=0.5)
    assert {one, made} <= set(plan.ids)
    assert set(memory.forget(plan, scrub=False).ids) == {one, made}
    assert memory.verify().ok
    with connected(memory.url) as connection:
        assert statement(connection, "select * from hidden") == []


def test_what_stands_in_for_a_hidden_message_is_hidden_too(memory: Memory) -> None:
    one, _ = say(memory, "my number is 212-867-5309, call me", "other")
    memory.conversations.hide("t", [one])
    memory.forget("212-867-5309", mode="redact", scrub=False)
    texts = [it.text for it in memory.conversations.read("t").messages]
    assert texts == ["other"]
    texts = [it.text for it in memory.conversations.read("t", among="all").messages]
    assert texts == ["my number is [redacted], call me", "other"]
    assert memory.verify().ok


def test_a_thread_can_be_set_in_one_transaction(memory: Memory) -> None:
    one, two, three = say(memory, "one", "two", "three")
    memory.conversations.hide("t", [two])
    said = [Saying(Draft("four", thread="t"))]
    memory.conversations.add("t", said, only=[one, two])
    assert shown(memory) == [one, two, said[0].id]
    assert shown(memory, "all") == [one, two, three, said[0].id]


def test_a_thread_is_read_in_pages_also_past_a_redacted_message(memory: Memory) -> None:
    ids = say(memory, "one", "call 212-867-5309", "three", "four")
    memory.forget("212-867-5309", mode="redact", scrub=False)
    newest = memory.conversations.read("t", last=3).messages
    assert [one.text for one in newest] == ["call [redacted]", "three", "four"]
    before = memory.conversations.read("t", last=3, before=newest[0].id)
    assert [one.id for one in before.messages] == ids[:1]
    after = memory.conversations.after("t", newest[0].id, 1)
    assert [one.text for one in after] == ["three"]
