"""Setting a session to a whole list: what stays, what goes out of it, and what is made of what."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage

import dellm
from dellm_llamaindex import DeLLMMemory
from dellm_llamaindex.tags import tag_of

Maker = Callable[..., DeLLMMemory]


@pytest.fixture
def ours(memory: dellm.Memory) -> Maker:
    def make(session: str = "main", **options: object) -> DeLLMMemory:
        options.setdefault("top_k", None)
        return DeLLMMemory.from_defaults(memory, session, **options)  # type: ignore[arg-type] # as above

    return make


@pytest.fixture(scope="module")
def one_core() -> Iterator[dellm.Memory]:
    with dellm.Memory.open(":memory:", embedder=None) as memory:
        yield memory


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def reply(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def talk(*texts: str) -> list[ChatMessage]:
    return [reply(text) if at % 2 else user(text) for at, text in enumerate(texts)]


def untagged(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    return [ChatMessage.model_validate(json.loads(one.model_dump_json())) for one in messages]


def records(messages: Sequence[ChatMessage]) -> list[int]:
    return [found.record if (found := tag_of(one)) else 0 for one in messages]


@pytest.mark.parametrize("way", [list, untagged])
def test_what_the_list_and_the_session_begin_with_alike_stays(ours: Maker, way: Maker) -> None:
    memory = ours()
    memory.put_messages(talk("one", "two", "three", "four"))
    before = memory.get_all()
    memory.set([*way(before), user("five")])
    after = memory.get_all()
    assert after == [*before, user("five")]
    assert records(after)[:4] == records(before)
    assert len(memory.core.history("main")) == 5
    memory.set(way(after))
    assert records(memory.get_all()) == records(after)


def test_what_is_not_in_the_list_is_dropped_and_what_was_made_of_it_still_goes_with_it(
    ours: Maker,
) -> None:
    memory = ours()
    memory.put_messages(talk("my cat is called Minka", "Minka is a fine name", "so she is"))
    one, two, three = records(memory.get_all())
    kept = memory.get_all()[2:]
    memory.set([*kept, reply("of whom do you speak")])
    assert [one.content for one in memory.get_all()] == ["so she is", "of whom do you speak"]
    assert memory.core.dependents([one]) == [one, two]  # as before
    receipt = memory.forget(ids=[one], scrub=False)
    assert {one, two} <= set(receipt.ids)
    again, _ = records(memory.get_all())
    assert memory.core.context_of(again) == [three]


def test_a_record_that_comes_again_later_is_a_new_one_made_from_the_old(ours: Maker) -> None:
    memory = ours()
    memory.put_messages(talk("one", "two", "three"))
    old = memory.get_all()
    were = records(old)
    memory.set(old[:1])
    memory.set(old)
    now = memory.get_all()
    assert now == old
    assert records(now)[0] == were[0]
    assert not set(records(now)[1:]) & set(were)
    for new, earlier in zip(records(now)[1:], were[1:], strict=True):
        assert memory.core.context_of(new) == [earlier]


def test_a_message_of_another_session_is_a_new_one_made_from_it(ours: Maker) -> None:
    first, second = ours("first"), ours("second")
    first.put(user("said in the first"))
    (there,) = first.get_all()
    (record,) = records([there])
    second.set([there, user("said in the second")])
    here = records(second.get_all())
    assert second.core.context_of(here[0]) == [record]
    first.forget(ids=[record], scrub=False)
    assert [one.content for one in second.get_all()] == ["said in the second"]


def test_what_nobody_saw_made_depends_on_all_of_the_list_before_it(ours: Maker) -> None:
    memory = ours()
    memory.put(user("said before"))
    (dropped,) = records(memory.get_all())
    memory.set(talk("one", "two", "three", "four"))
    one, two, three, four = records(memory.get_all())
    core = memory.core
    assert [core.context_of(id_) for id_ in (one, two, three, four)] == [
        [],
        [one],
        [],
        [one, two, three],
    ]
    assert core.dependents([dropped]) == [dropped]


def test_a_message_that_was_changed_is_another_one(ours: Maker) -> None:
    memory = ours()
    memory.put_messages(talk("one", "two", "three"))
    listed = memory.get_all()
    listed[1].content = "two and a half"
    memory.set(listed)
    assert [it.content for it in memory.get_all()] == ["one", "two and a half", "three"]
    assert records(memory.get_all())[0] == records(listed)[0]


def test_a_message_to_which_something_was_added_is_another_one(ours: Maker) -> None:
    memory = ours()
    memory.put_messages(talk("one", "two"))
    listed = memory.get_all()
    listed[0].additional_kwargs["name"] = "Ada"
    were = records(listed)
    memory.set(listed)
    assert memory.get_all() == listed
    assert not set(records(memory.get_all())) & set(were)


def test_a_message_twice_in_a_list_is_two_messages(ours: Maker) -> None:
    memory = ours()
    memory.set([user("again"), user("again")])
    assert [it.content for it in memory.get_all()] == ["again", "again"]
    one = memory.get_all()[0]
    memory.set([one, one, one])
    found = memory.get_all()
    assert [it.content for it in found] == ["again"] * 3
    assert len(set(records(found))) == 3


def test_what_was_dropped_is_given_in_no_way(ours: Maker) -> None:
    memory = ours()
    memory.put_messages(talk("a zebra lives in my garden", "a zebra is a fine guest"))
    memory.set([])
    for top_k, across in ((None, False), (5, False), (5, True)):
        for by in ("meaning", "keyword", "both"):
            for session in ("main", "other"):
                one = ours(session, top_k=top_k, across_sessions=across, by=by, threshold=-1.0)
                assert one.get("a zebra in the garden") == []
                assert one.get_all() == []


def test_a_reset_is_no_forgetting_and_a_forget_finds_what_it_dropped(ours: Maker) -> None:
    memory = ours()
    memory.put_messages(talk("my zebra", "your zebra"))
    memory.reset()
    assert memory.get() == memory.get_all() == []
    memory.put(user("a new begin"))
    assert [it.content for it in memory.get_all()] == ["a new begin"]
    assert memory.core.scan("zebra", files=False).places
    assert len(memory.plan("zebra")) == 2
    memory.forget(thread=memory.session_id, scrub=False)
    assert not memory.core.scan("zebra", files=False).places
    assert memory.get_all() == []


def test_later_changes_of_what_was_given_or_taken_change_nothing(ours: Maker) -> None:
    memory = ours()
    put = ChatMessage(role="user", content="as it was", additional_kwargs={"deep": {"a": [1]}})
    memory.put(put)
    memory.set([put, reply("and this")])
    put.content = "changed"
    put.additional_kwargs["deep"]["a"].append(2)
    for listed in (memory.get(), memory.get_all()):
        listed[0].content = "changed"
        listed[0].additional_kwargs["deep"]["a"].append(2)
        listed.clear()
    expected = ChatMessage(role="user", content="as it was", additional_kwargs={"deep": {"a": [1]}})
    assert memory.get_all()[0] == expected


def test_of_lists_that_are_set_at_once_one_holds_whole(ours: Maker) -> None:
    memory = ours()
    memory.put_messages(talk("one", "two"))
    start = memory.get_all()
    lists = [[*start[: at % 3], user(f"mine {at}"), reply(f"yours {at}")] for at in range(8)]
    threads = [threading.Thread(target=ours().set, args=(one,)) for one in lists]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert memory.get_all() in lists


def test_a_list_that_was_erased_in_part_leaves_out_what_was_made_of_that(ours: Maker) -> None:
    memory = ours()
    memory.put_messages(talk("my zebra is striped", "so is yours"))
    listed = memory.get_all()
    memory.forget(ids=records(listed)[:1], scrub=False)
    assert memory.get_all() == []
    memory.set([*listed, user("something else")])  # an old list cannot bring it back
    assert [it.content for it in memory.get_all()] == ["something else"]
    assert not memory.core.scan("zebra", files=False).places


def test_setting_and_resetting_work_in_a_loop_as_well(ours: Maker) -> None:
    import asyncio

    async def work() -> list[list[ChatMessage]]:
        memory = ours()
        await memory.aset(talk("one", "two"))
        first = await memory.aget_all()
        await memory.aset(first[:1])
        second = await memory.aget_all()
        await memory.areset()
        return [first, second, await memory.aget_all()]

    assert asyncio.run(work()) == [talk("one", "two"), talk("one"), []]


@pytest.mark.parametrize("wrong", [5, "text", [5], [user("a"), None]])
def test_what_is_no_list_of_messages_is_refused(ours: Maker, wrong: object) -> None:
    memory = ours()
    memory.put(user("kept"))
    for write in (memory.set, memory.put_messages):
        with pytest.raises(dellm.InvalidInput):
            write(wrong)  # type: ignore[arg-type] # is what is tried
    assert memory.get_all() == [user("kept")]


@settings(max_examples=40)
@given(drawn=st.data())
def test_any_lists_set_one_after_the_other_read_as_lists_and_lose_no_edge(
    one_core: dellm.Memory, drawn: st.DataObject
) -> None:
    memory = DeLLMMemory.from_defaults(one_core, top_k=None)
    holds: list[ChatMessage] = []
    edges: dict[int, list[int]] = {}
    for at in range(drawn.draw(st.integers(1, 5))):
        there = memory.get_all()
        taken = drawn.draw(st.lists(st.sampled_from(there), max_size=4)) if there else []
        start = there[: drawn.draw(st.integers(0, len(there)))]
        new = [user(f"said {at}"), reply(f"answered {at}")][: drawn.draw(st.integers(0, 2))]
        way = drawn.draw(st.sampled_from([list, untagged]))
        holds, were = way([*start, *taken, *new]), records(start)
        memory.set(holds)
        assert memory.get_all() == holds
        assert records(memory.get_all())[: len(start)] == were
        assert {id_: one_core.context_of(id_) for id_ in edges} == edges
        edges |= {it.id: one_core.context_of(it.id) for it in one_core.history(memory.session_id)}
    hidden = [it.id for it in one_core.history(memory.session_id)]
    for id_ in hidden[:1]:
        gone = set(memory.forget(ids=[id_], scrub=False).ids)
        assert not gone & set(records(memory.get_all()))
    assert one_core.verify().ok
