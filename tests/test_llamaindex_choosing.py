"""What DeLLMMemory gives for an input where relevance decides."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock

import dellm
from dellm_llamaindex import DeLLMMemory, sessions
from dellm_llamaindex.tags import tag_of

Maker = Callable[..., DeLLMMemory]


@pytest.fixture
def ours(memory: dellm.Memory) -> Maker:
    def make(session: str = "main", **options: Any) -> DeLLMMemory:
        options.setdefault("tokenizer_fn", str.split)
        return DeLLMMemory.from_defaults(memory, session, **options)

    return make


@pytest.fixture(scope="module")
def one_core() -> Iterator[dellm.Memory]:
    with dellm.Memory.open(":memory:", embedder="hashing") as memory:
        yield memory


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def reply(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def system(text: str) -> ChatMessage:
    return ChatMessage(role="system", content=text)


def called(text: str, *ids: str) -> ChatMessage:
    calls = [ToolCallBlock(tool_call_id=one, tool_name="look", tool_kwargs={}) for one in ids]
    return ChatMessage(role="assistant", blocks=[TextBlock(text=text), *calls])


def result(text: str, id_: str) -> ChatMessage:
    return ChatMessage(role="tool", content=text, additional_kwargs={"tool_call_id": id_})


def texts(messages: Sequence[ChatMessage]) -> list[str]:
    return [one.content or "" for one in messages]


PAST = [
    user("a zebra lives in my garden"),
    reply("a zebra in a garden is rare"),
    user("bread is baked with yeast"),
    reply("yeast makes the bread rise"),
    user("the train leaves at noon"),
    reply("noon it is for the train"),
]


def test_what_is_near_to_the_input_is_given_in_the_order_of_the_session(ours: Maker) -> None:
    memory = ours(threshold=0.4)
    memory.put_messages([system("be brief"), *PAST])
    found = memory.get("a zebra in my garden")
    assert texts(found) == ["be brief", *texts(PAST[:2])]
    assert memory.get("yeast makes bread") == [system("be brief"), *PAST[2:4]]


def test_a_reply_comes_with_the_question_before_it(ours: Maker) -> None:
    memory = ours(top_k=1)
    memory.put_messages([user("what do you say"), reply("a zebra in the garden"), *PAST[2:]])
    assert texts(memory.get("zebra garden")) == ["what do you say", "a zebra in the garden"]


def test_the_running_turn_is_given_and_what_was_answered_is_not(ours: Maker) -> None:
    memory = ours(top_k=0)
    memory.put_messages(PAST)
    assert memory.get("something else") == []
    assert memory.get() == PAST[4:]  # without an input the last user message stands for it
    assert memory.get("the train leaves at noon") == PAST[4:]
    memory.put(user("and now"))
    assert memory.get("something else") == [user("and now")]
    memory.put(called("I look", "c1"))
    assert texts(memory.get()) == ["and now", "I look"]
    memory.put(result("seen", "c1"))
    assert texts(memory.get("and now")) == ["and now", "I look", "seen"]


def test_without_an_input_the_last_user_message_is_what_is_asked(ours: Maker) -> None:
    memory = ours(threshold=0.4)
    asked = user("a zebra in my garden")
    memory.put_messages([*PAST, asked])
    assert memory.get() == memory.get(asked) == [*PAST[:2], asked]
    assert memory.get("") == [asked]


def test_the_newest_messages_are_given_besides(ours: Maker) -> None:
    memory = ours(last_n=3)
    memory.put_messages([*PAST, user("and the zebra in the garden?")])
    assert memory.get() == [*PAST[:2], *PAST[3:], user("and the zebra in the garden?")]


def test_all_system_messages_stay_wherever_they_stand(ours: Maker) -> None:
    def instructions(memory: DeLLMMemory) -> list[str]:
        given = memory.get("x")
        return texts([one for one in given if one.role.value in ("system", "developer")])

    memory = ours(top_k=0)
    many = PAST[::2] * 40
    memory.put_messages([system("first"), *many, system("second"), *many, reply("so it is")])
    assert instructions(memory) == ["first", "second"]
    memory.put(ChatMessage(role="developer", content="third"))
    assert instructions(memory) == ["first", "second", "third"]
    ours(top_k=0).put(system("fourth"))  # through another object
    assert instructions(memory) == ["first", "second", "third", "fourth"]
    memory.forget(quote="second", scrub=False)
    assert instructions(memory) == ["first", "third", "fourth"]
    memory.set([one for one in memory.get_all() if one.content != "first"])
    assert instructions(memory) == ["third", "fourth"]


def test_tool_calls_come_with_all_their_results_and_results_with_their_call(ours: Maker) -> None:
    group = [
        user("look twice, please"),
        called("looking", "c1", "c2"),
        result("a zebra stands in the garden", "c1"),
        result("nothing to be seen", "c2"),
    ]
    memory = ours(top_k=1)
    memory.put_messages([*group, reply("one thing"), *PAST[2:]])
    assert memory.get("zebra garden") == group
    assert memory.get("looking") == group


def test_what_a_forget_left_of_tool_calls_is_given_in_pairs(ours: Maker) -> None:
    memory = ours(threshold=-1.0)
    memory.put_messages(
        [
            user("look for the cat"),
            called("looking", "c1", "c2"),
            result("a zebra", "c1"),
            result("the cat", "c2"),
        ]
    )
    for one in memory.get_all():
        if one.content == "a zebra":
            memory.forget(ids=[_record(one)], reach=dellm.depth(0), scrub=False)
    left = [user("look for the cat"), called("looking", "c2"), result("the cat", "c2")]
    for found in (memory.get("zebra cat"), memory.get_all(), ours(top_k=None).get()):
        assert found == left


def _record(message: ChatMessage) -> int:
    found = tag_of(message)
    assert found is not None
    return found.record


def test_what_does_not_fit_is_passed_over_and_the_turn_stays(ours: Maker) -> None:
    memory = ours(token_limit=14)
    memory.put_messages([system("be brief"), *PAST, user("zebra in the garden")])
    # 4 tokens of the turn, 2 of the instruction: 8 are left, enough for either half of a pair
    assert texts(memory.get()) == ["be brief", "a zebra lives in my garden", "zebra in the garden"]
    assert texts(memory.get(initial_token_count=8)) == ["be brief", "zebra in the garden"]
    assert texts(memory.get(initial_token_count=10)) == ["zebra in the garden"]
    assert texts(memory.get(initial_token_count=14)) == ["zebra in the garden"]
    with pytest.raises(ValueError, match="Initial token count exceeds token limit"):
        memory.get(initial_token_count=15)


def test_the_arguments_of_tool_calls_count_as_well(ours: Maker) -> None:
    memory = ours(top_k=1, token_limit=12)
    long = ToolCallBlock(tool_call_id="c", tool_name="f", tool_kwargs={"a": "one two three four"})
    memory.put_messages(
        [
            user("a zebra"),
            ChatMessage(role="assistant", blocks=[TextBlock(text="looking at zebra"), long]),
            result("zebra there", "c"),
            reply("so it is"),
        ]
    )
    assert memory.get("looking at zebra", initial_token_count=4) == []
    assert len(memory.get("looking at zebra")) == 3


def test_other_sessions_are_asked_only_where_that_is_wanted(ours: Maker) -> None:
    ours("other").put_messages(PAST)
    assert ours().get("zebra garden") == []
    found = ours(across_sessions=True, top_k=2).get("zebra in the garden")
    assert texts(found) == [
        "From memory, said by the user in another conversation:\na zebra lives in my garden",
        "From memory, said by the assistant in another conversation:\na zebra in a garden is rare",
    ]
    assert {one.role.value for one in found} == {"user"}
    there = ours("other").get_all()
    assert [_record(one) for one in found] == [_record(one) for one in there[:2]]


def test_another_workspace_is_never_asked(ours: Maker, memory: dellm.Memory) -> None:
    kim = DeLLMMemory.from_defaults(memory, "main", workspace="kim", across_sessions=True)
    kim.put_messages(PAST)
    assert ours(across_sessions=True, threshold=-1.0).get("zebra in the garden") == []


def test_records_that_are_no_messages_say_what_they_are(ours: Maker, memory: dellm.Memory) -> None:
    for kind in ("document", "fact", "summary", "cached", "state"):
        memory.remember(f"a zebra in the garden, a {kind}", kind=kind, role=kind, thread="main")
    found = ours(threshold=-1.0, top_k=9).get("zebra in the garden")
    assert texts(found) == [
        f"From memory, {kind}:\na zebra in the garden, a {kind}"
        for kind in ("document", "fact", "summary")
    ]
    assert [one.role.value for one in found] == ["user"] * 3


def test_without_an_embedder_words_decide(sqlite_url: str, opened: Callable[..., Any]) -> None:
    memory = DeLLMMemory.from_defaults(opened(sqlite_url, embedder=None), "main")
    memory.put_messages(PAST)
    assert memory.get("zebra") == PAST[:2]
    assert memory.get("xylophone") == []


def test_what_was_erased_is_not_given_again(ours: Maker) -> None:
    memory = ours(threshold=-1.0, top_k=9)
    memory.put_messages(PAST)
    assert memory.get("zebra")
    memory.forget("zebra", scrub=False)
    assert not [one for one in texts(memory.get("zebra")) if "zebra" in one]
    assert not [one for one in texts(memory.get_all()) if "zebra" in one]


def test_each_message_that_is_given_is_known_as_its_record(ours: Maker) -> None:
    memory = ours()
    memory.put_messages([system("be brief"), *PAST, user("and the zebra in the garden?")])
    for one in memory.get():
        assert memory.core.get(_record(one)).text == one.content


def test_a_turn_reads_as_few_messages_of_a_long_session_as_of_a_short_one(
    ours: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    made = sessions.message_of

    def counted(stored: Any) -> ChatMessage:
        read.append(1)
        return made(stored)

    monkeypatch.setattr(sessions, "message_of", counted)
    counts: dict[int, list[int]] = {}
    for size in (60, 600):
        draw = random.Random(size)
        for top_k in (None, 5):
            memory = ours(f"session {size} {top_k}", top_k=top_k, token_limit=100)
            many = [user(f"word {draw.randint(0, 9999)} of {at}") for at in range(size)]
            memory.put_messages(many)
            memory.get("word")
            read.clear()
            memory.put(user("one more word"))
            memory.get("word")
            memory.put(reply("so be it"))
            counts.setdefault(size, []).append(len(read))
    assert counts[60] == counts[600]
    assert max(counts[600]) < 60


def test_a_long_session_without_any_user_message_is_read_as_well(ours: Maker) -> None:
    memory = ours()
    memory.put_messages([reply(f"said {at}") for at in range(100)])
    assert memory.get() == []
    assert memory.get("said 7") != []
    assert len(memory.get_all()) == 100


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": -1},
        {"last_n": -1},
        {"by": "magic"},
        {"threshold": float("nan")},
        {"session": "  "},
    ],
)
def test_settings_that_make_no_sense_are_refused(ours: Maker, options: dict[str, Any]) -> None:
    with pytest.raises(dellm.InvalidInput):
        ours(**options)


def test_what_others_say_forget_and_drop_is_seen_at_once(
    url: str, opened: Callable[..., Any]
) -> None:
    # Two open memories of one database know no more of each other than two processes do.
    mine, theirs = (
        DeLLMMemory.from_defaults(opened(url), "main", top_k=2, last_n=2) for _ in range(2)
    )
    mine.put_messages([system("be brief"), *PAST])
    assert texts(mine.get("zebra in my garden"))[:2] == ["be brief", "a zebra lives in my garden"]
    theirs.put_messages([*PAST * 10, system("be kind"), user("of the zebra")])
    assert texts(mine.get("x"))[:2] == ["be brief", "be kind"]
    assert texts(mine.get("x"))[-1] == "of the zebra"
    theirs.forget("be brief", scrub=False, reach=dellm.depth(0))
    theirs.forget("zebra", scrub=False)
    found = texts(mine.get("zebra in my garden"))
    assert found[0] == "be kind"
    assert not [one for one in found if "zebra" in one]
    theirs.reset()
    assert mine.get("bread") == mine.get_all() == []
    theirs.set([system("anew"), user("hello")])
    assert mine.get() == mine.get_all() == [system("anew"), user("hello")]


STEP = st.sampled_from(["system", "user", "reply", "tools", "garden"])


@settings(max_examples=60)
@given(
    steps=st.lists(STEP, max_size=25),
    limit=st.integers(1, 60),
    top_k=st.integers(0, 4),
    last_n=st.integers(0, 4),
    spent=st.integers(0, 10),
)
def test_whatever_is_chosen_fits_and_is_of_the_session_in_its_order(
    one_core: dellm.Memory, steps: list[str], limit: int, top_k: int, last_n: int, spent: int
) -> None:
    memory = DeLLMMemory.from_defaults(
        one_core,
        top_k=top_k,
        last_n=last_n,
        token_limit=limit + spent,
        tokenizer_fn=str.split,
        threshold=-1.0,
    )
    for at, step in enumerate(steps):
        memory.put_messages(_said(at, step))
    whole = memory.get_all()
    for asked in (None, "a zebra in the garden"):
        chosen = memory.get(asked, initial_token_count=spent)
        ids, all_ids = [_record(one) for one in chosen], [_record(one) for one in whole]
        heads = [one for one in chosen if one.role.value == "system"]
        assert chosen[: len(heads)] == heads
        assert ids[len(heads) :] == sorted(ids[len(heads) :])
        assert set(ids) <= set(all_ids)
        assert [whole[all_ids.index(id_)] for id_ in ids] == chosen
        if len(chosen) > 1 and chosen[-1].role.value != "tool":
            assert sum(len((one.content or "").split()) for one in chosen) <= limit
        if asked is None and whole:
            assert [one for one in whole if one.role.value == "user"][-1:] == [] or chosen


def _said(at: int, step: str) -> list[ChatMessage]:
    if step == "tools":
        return [user("look"), called("so", f"c{at}"), result(f"seen {at}", f"c{at}")]
    if step == "garden":
        return [user(f"a zebra in the garden {at}"), reply(f"of zebra and garden {at}")]
    return [{"system": system, "user": user, "reply": reply}[step](f"said at {at}")]
