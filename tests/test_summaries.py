"""Summaries follow their messages: whatever is forgotten, the rest is summed up, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count, pairwise
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dellm import InvalidInput, Memory, ModelError, Record, Summary, reading
from dellm.engine import Engine

WORD = re.compile(r"canary\d+x")


class Copier:
    """The worst that a model can do: it repeats all that it is given, and may fail when told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str | None, list[str]]] = []
        self.failing: set[int] = set()  # numbers of calls, from 1 on

    def __call__(self, previous: str | None, texts: Sequence[str]) -> str:
        self.calls.append((previous, list(texts)))
        if len(self.calls) in self.failing:
            raise RuntimeError("canary0x was in the prompt")
        return " | ".join([*([previous] if previous else []), *texts])

    def since(self, call: Callable[[], object]) -> int:
        """Return how many calls something takes."""
        before = len(self.calls)
        call()
        return len(self.calls) - before


@pytest.fixture
def model(memory: Memory) -> Copier:
    made = Copier()
    memory.summaries.use(made)
    return made


def say(memory: Memory, *numbers: int, thread: str = "t") -> list[int]:
    return [memory.remember(f"canary{one}x", thread=thread).id for one in numbers]


def words(what: Summary | Record | str) -> list[int]:
    """Return the numbers of the canaries that a text holds, in order."""
    text = what if isinstance(what, str) else what.text
    return [int(one[6:-1]) for one in WORD.findall(text)]


def rolled(memory: Memory) -> Summary:
    return memory.summaries.rolling("t")


def grown(memory: Memory) -> Summary:
    return memory.summaries.tree("t", leaf=2, fan_out=2)


# rolling


def test_a_rolling_summary_is_continued_with_what_is_new(memory: Memory, model: Copier) -> None:
    first, second = say(memory, 1, 2)
    one = memory.summaries.rolling("t")
    assert one.text == "user: canary1x | user: canary2x"
    assert memory.context_of(one.ids[0]) == [first, second]
    assert [one.kind for one in one] == ["summary"]
    assert memory.summaries.rolling("t") == one
    assert len(model.calls) == 1

    third = say(memory, 3)
    two = memory.summaries.rolling("t")
    assert model.calls[1:] == [(one.text, ["user: canary3x"])]
    assert memory.context_of(two.ids[0]) == [first, second, *third, *one.ids]
    assert memory.summaries.current("t") == two
    assert memory.get(one.ids[0]).text == ""
    assert [one.text for one in memory.history("t")] == ["canary1x", "canary2x", "canary3x"]
    assert [one.record.id for one in memory.search("canary1x", by="keyword")] == [first, *two.ids]
    assert memory.verify().ok


def test_a_forget_makes_it_anew_from_the_messages_alone(memory: Memory, model: Copier) -> None:
    memory.summaries.use(model, chunk=3)
    for at in range(8):
        say(memory, at)
        memory.summaries.rolling("t")
    reply = memory.record("Hm.", context=memory.summaries.current("t").ids, thread="u")
    before = len(model.calls)
    receipt = memory.forget("canary4x")
    assert reply.id in receipt.ids
    assert (receipt.rebuild_calls, len(receipt.rebuilt)) == (3, 1)
    asked = model.calls[before:]
    assert [texts for _, texts in asked] == [
        [f"user: canary{at}x" for at in some] for some in ((0, 1, 2), (3, 5, 6), (7,))
    ]
    assert [words(previous or "") for previous, _ in asked] == [[], [0, 1, 2], [0, 1, 2, 3, 5, 6]]
    assert words(memory.summaries.current("t")) == [0, 1, 2, 3, 5, 6, 7]
    assert not memory.scan("canary4x").places
    assert memory.scan("canary5x").places

    say(memory, 8)
    assert model.since(lambda: memory.summaries.rolling("t")) == 1
    assert words(memory.summaries.current("t")) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert memory.verify().ok


def test_a_version_costs_as_many_rows_however_long_the_thread_is(
    memory: Memory, model: Copier, engine: Engine
) -> None:
    counts = []
    for at in range(40):
        say(memory, at)
        memory.summaries.rolling("t")
        with engine.reading("alex") as (tx, scope):
            counts.append(tx.all("select count(*) from edge where ws = :ws", ws=scope.ws)[0][0])
    assert {later - earlier for earlier, later in pairwise(counts[10:])} == {4}
    assert len(model.calls) == 40


@pytest.fixture
def engine(memory: Memory) -> Engine:
    return memory._engine


def test_what_does_not_fit_one_call_is_given_in_pieces(memory: Memory, model: Copier) -> None:
    say(memory, *range(10, 15))
    memory.remember("canary15x " * 10, thread="t")
    say(memory, 16)
    memory.summaries.use(model, budget=30, count=len)
    summary = memory.summaries.rolling("t")
    sizes = [len(texts) for _, texts in model.calls]
    assert sizes == [2, 2, 1, 1, 1]  # the sixth alone is longer than what fits
    assert words(summary)[:5] == [10, 11, 12, 13, 14]
    assert words(summary)[-1] == 16


def test_earlier_versions_are_kept_if_asked_and_go_with_a_forget(
    memory: Memory, model: Copier
) -> None:
    for at in range(3):
        say(memory, at)
        memory.summaries.rolling("t", keep=True)
    kept = memory.summaries.versions("t")
    assert [words(one) for one in kept] == [[0], [0, 1], [0, 1, 2]]
    assert model.since(lambda: memory.forget("canary1x")) == 1
    left = memory.summaries.versions("t")
    assert [words(one) for one in left] == [[0], [0, 2]]
    assert not memory.scan("canary1x").places
    say(memory, 3)
    memory.summaries.rolling("t", keep=True)
    assert [words(one) for one in memory.summaries.versions("t")] == [[0], [0, 2], [0, 2, 3]]
    # The version that stays was in the prompt of the newest, which is made anew without it.
    memory.forget("canary3x")
    assert model.calls[-1] == (None, ["user: canary0x", "user: canary2x"])
    assert [words(one) for one in memory.summaries.versions("t")] == [[0], [0, 2], [0, 2]]
    say(memory, 4)
    memory.summaries.rolling("t")
    assert [words(one) for one in memory.summaries.versions("t")] == [[0], [0, 2], [0, 2, 4]]
    assert memory.verify().ok


# trees


def test_a_tree_is_made_of_leaves_and_of_parts_of_parts(memory: Memory, model: Copier) -> None:
    ids = say(memory, *range(9))
    tree = grown(memory)
    assert [words(one) for one in tree] == [[*range(8)], [8]]
    assert len(model.calls) == 5 + 2 + 1
    below = memory.context_of(tree.ids[0])
    leaves = [one for part in below for one in memory.context_of(part)]
    assert [memory.context_of(one) for one in leaves] == [ids[at : at + 2] for at in range(0, 8, 2)]
    path = [one for one in memory.dependents([ids[2]]) if one != ids[2]]
    assert path == sorted([leaves[1], below[0], tree.ids[0]])
    assert model.since(lambda: grown(memory)) == 0


def test_appending_one_by_one_costs_a_call_and_a_few_on_average(
    memory: Memory, model: Copier
) -> None:
    for at in range(32):
        say(memory, at)
        grown(memory)
    # A leaf each time, and the inner parts once: 8 + 4 + 2 + 1 of them.
    assert len(model.calls) == 32 + 8 + 4 + 2 + 1
    assert words(memory.summaries.current("t", "tree")) == [*range(32)]


def test_forgetting_one_message_makes_its_path_anew(memory: Memory, model: Copier) -> None:
    say(memory, *range(16))
    grown(memory)
    before = len(model.calls)
    receipt = memory.forget("canary5x")
    assert receipt.rebuild_calls == len(model.calls) - before == 4
    assert words(memory.summaries.current("t", "tree")) == [one for one in range(16) if one != 5]
    assert "canary5x" not in str(model.calls[before:])
    # ... and all of a leaf: it is not there any more, what is above it is made anew.
    assert model.since(lambda: memory.forget("canary4x")) == 3
    assert memory.forget(ids=[1, 2, 3, 4]).rebuild_calls == 2
    assert words(memory.summaries.current("t", "tree")) == [*range(6, 16)]
    assert model.since(lambda: grown(memory)) == 0
    say(memory, 16, 17)
    assert model.since(lambda: grown(memory)) == 1
    assert words(memory.summaries.current("t", "tree")) == [*range(6, 18)]
    assert not memory.scan("canary5x").places
    assert memory.verify().ok


def test_a_tree_in_another_shape_is_made_anew(memory: Memory, model: Copier) -> None:
    say(memory, *range(9))
    grown(memory)
    tree = memory.summaries.tree("t", leaf=3, fan_out=4)
    assert [words(one) for one in tree] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert memory.summaries.current("t", "tree") == tree
    assert {one.kind for one in memory.export() if not one.text} == {"state"}


def test_several_summaries_of_a_thread_stand_side_by_side(memory: Memory, model: Copier) -> None:
    memory.summaries.use(lambda _, texts: f"{len(texts)} more", name="short")
    say(memory, 1, 2)
    assert memory.summaries.rolling("t", by="short").text == "2 more"
    assert words(memory.summaries.rolling("t")) == [1, 2]
    assert memory.summaries.current("t", by="short").text == "2 more"
    assert memory.summaries.current("t", "tree").text == ""
    assert memory.summaries.current("u").records == ()
    with pytest.raises(InvalidInput, match="No summariser"):
        memory.summaries.tree("t", by="nobody")
    with pytest.raises(InvalidInput, match="fan_out"):
        memory.summaries.tree("t", fan_out=1)
    with pytest.raises(InvalidInput, match="chunk"):
        memory.summaries.use(model, chunk=0)


# both


def now(memory: Memory, update: Callable[[Memory], Summary]) -> Summary:
    return memory.summaries.current("t", "rolling" if update is rolled else "tree")


FORMS = pytest.mark.parametrize("update", [rolled, grown])


@FORMS
def test_hidden_and_suppressed_messages_are_left_out(
    memory: Memory, model: Copier, update: Callable[[Memory], Summary]
) -> None:
    ids = say(memory, *range(6))
    memory.conversations.hide("t", ids[:1])
    memory.conversations.hide("t", ids[1:2], archive=True)
    assert words(update(memory)) == [1, 2, 3, 4, 5]
    receipt = memory.forget(ids=[ids[3]], mode="suppress")
    assert 3 not in words(now(memory, update))
    assert words(update(memory)) == [1, 2, 4, 5]
    assert not any("canary3x" in one.text for one in memory.export())
    memory.restore(receipt)
    assert sorted(words(update(memory))) == [1, 2, 3, 4, 5]
    # What is dropped from the thread after it was summed up stays in the summary until forgotten.
    memory.conversations.hide("t")
    assert model.since(lambda: update(memory)) == 0
    memory.forget("canary2x")
    assert sorted(words(update(memory))) == [1, 3, 4, 5]
    assert memory.verify().ok


@FORMS
def test_what_a_redaction_leaves_of_a_message_flows_in_again(
    memory: Memory, model: Copier, update: Callable[[Memory], Summary]
) -> None:
    say(memory, 1, 2)
    memory.remember("canary3x and canary4x", thread="t")
    update(memory)
    memory.forget("canary4x", mode="redact")
    assert words(now(memory, update)) == [1, 2, 3]
    assert model.since(lambda: update(memory)) == 0
    assert not memory.scan("canary4x").places


@FORMS
def test_where_the_model_fails_nothing_old_is_served_and_what_is_missing_comes_back(
    url: str, opened: Callable[..., Memory], update: Callable[[Memory], Summary]
) -> None:
    memory = opened(url)
    for failing in range(6):
        here, model = memory.workspace(f"w{failing}"), Copier()
        here.summaries.use(model, chunk=2)
        say(here, *range(8))
        update(here)
        model.failing = {len(model.calls) + failing}
        receipt = here.forget("canary3x")
        expected = [0, 1, 2, 4, 5, 6, 7]
        assert set(words(now(here, update))) <= set(expected)
        assert receipt.rebuild_calls == len(model.calls) - min(model.failing) + failing
        assert not here.scan("canary3x", files=False).places
        assert words(update(here)) == expected
        assert model.since(partial(update, here)) == 0
        assert here.verify().ok


@FORMS
def test_a_failure_while_it_is_brought_up_to_date_keeps_what_was_made(
    memory: Memory, model: Copier, update: Callable[[Memory], Summary]
) -> None:
    memory.summaries.use(model, chunk=2)
    say(memory, *range(8))
    model.failing = {3}
    with pytest.raises(ModelError) as caught:
        update(memory)
    assert "RuntimeError" in str(caught.value)
    assert "canary" not in repr((caught.value, caught.value.__cause__, caught.value.__context__))
    assert words(now(memory, update)) == [0, 1, 2, 3]
    assert words(update(memory)) == [*range(8)]
    assert len(model.calls) == (5 if update is rolled else 8)
    memory.summaries.use(lambda _previous, _texts: " ")
    say(memory, 8)
    with pytest.raises(ModelError, match="no text"):
        update(memory)
    assert words(now(memory, update)) == [*range(8)]


@FORMS
def test_a_process_without_the_function_erases_and_the_next_update_makes_it(
    url: str, opened: Callable[..., Memory], update: Callable[[Memory], Summary]
) -> None:
    memory, model = opened(url), Copier()
    memory.summaries.use(model)
    say(memory, *range(5))
    update(memory)
    other = opened(url) if url.startswith("postgres") else memory
    if other is memory:
        memory.close()
        other = opened(url)
    other.forget("canary2x")
    assert 2 not in words(now(other, update))
    other.summaries.use(model)
    assert words(update(other)) == [0, 1, 3, 4]


@FORMS
def test_a_forget_that_rebuilds_nothing_leaves_it_to_the_next_update(
    memory: Memory, model: Copier, update: Callable[[Memory], Summary]
) -> None:
    say(memory, *range(6))
    update(memory)
    assert model.since(lambda: memory.forget("canary1x", rebuild="never")) == 0
    assert 1 not in words(now(memory, update))
    assert words(update(memory)) == [0, 2, 3, 4, 5]
    memory.forget(ids=now(memory, update).ids)  # the summary itself, by name: nobody makes it then
    assert len(words(now(memory, update))) < 5
    assert words(update(memory)) == [0, 2, 3, 4, 5]


@pytest.mark.parametrize("form", ["rolling", "tree"])
def test_a_long_part_that_was_made_anew_is_continued(
    memory: Memory, model: Copier, form: str
) -> None:
    def update() -> Summary:
        if form == "tree":
            return memory.summaries.tree("t", leaf=24)
        return memory.summaries.rolling("t")

    say(memory, *range(20))
    update()
    assert memory.forget("canary7x").rebuild_calls == 1
    assert model.since(update) == 0
    say(memory, 20)
    assert model.since(update) == 1
    assert memory.forget("canary8x").rebuild_calls == 1
    assert words(memory.summaries.current("t", form)) == [*range(7), *range(9, 21)]
    assert model.since(update) == 0
    assert memory.verify().ok


@FORMS
def test_what_is_past_its_time_flows_out_again(
    url: str, opened: Callable[..., Memory], update: Callable[[Memory], Summary]
) -> None:
    time = 1_000
    memory = opened(url, clock=lambda: time)
    memory.summaries.use(Copier())
    say(memory, 1)
    memory.remember("canary2x", thread="t", retention_until=2_000, sensitivity="health")
    say(memory, 3)
    assert {one.sensitivity for one in update(memory)} >= {"health"}
    assert words(update(memory)) == [1, 2, 3]
    time = 3_000
    assert 2 not in words(now(memory, update))
    assert words(update(memory)) == [1, 3]
    memory.forget(thread="t")
    assert words(update(memory)) == []
    assert not memory.scan("canary3x").places


@FORMS
def test_it_is_known_who_was_sent_the_messages_also_where_nothing_came_of_it(
    memory: Memory, model: Copier, update: Callable[[Memory], Summary]
) -> None:
    memory.summaries.use(model, model="openai/gpt")
    ids = say(memory, 1, 2, 3)
    model.failing = {1}
    with pytest.raises(ModelError):
        update(memory)
    sent = [(one.record, one.host) for one in memory.exposures(ids)]
    assert sent[0] == (ids[0], "openai")
    update(memory)
    summed = now(memory, update).ids
    assert {one.record for one in memory.exposures()} >= {*ids, *summed}
    receipt = memory.forget(ids=ids[:1])
    assert [one.provider for one in receipt.providers] == ["openai"]


@FORMS
def test_another_model_that_makes_it_anew_is_known_and_so_is_one_that_fails(
    memory: Memory, model: Copier, update: Callable[[Memory], Summary]
) -> None:
    say(memory, *range(5))
    memory.summaries.use(model, model="openai/gpt")
    update(memory)
    memory.summaries.use(model, model="acme/large")
    memory.forget("canary1x")
    assert {one.model for one in now(memory, update) if 0 in words(one)} == {"acme/large"}
    memory.summaries.use(model, model="zeta/small")
    model.failing = set(range(len(model.calls) + 1, 100))
    memory.forget("canary0x")
    assert {one.host for one in memory.exposures()} >= {"openai", "acme", "zeta"}


@FORMS
def test_what_is_on_hold_is_not_emptied_by_the_next_version(
    memory: Memory, model: Copier, update: Callable[[Memory], Summary]
) -> None:
    say(memory, 1)
    (kept,) = update(memory)
    memory.holds.place(ids=[kept.id], basis="case 1", by="counsel")
    say(memory, 2)
    assert words(update(memory)) == [1, 2]
    assert memory.holds.waiting() == [kept.id]
    with memory._engine.reading(memory.id) as (tx, scope):
        held = reading.several(tx, scope, [kept.id], None)[kept.id]
    assert words(held) == [1]
    assert memory.verify().ok
    memory.holds.release(1)
    assert memory.get(kept.id).text == ""
    assert memory.verify().ok


def test_a_count_that_is_none_is_an_error_of_ours(memory: Memory) -> None:
    memory.summaries.use(lambda *_: "text", count=lambda text: text)
    say(memory, 1)
    with pytest.raises(InvalidInput):
        memory.summaries.rolling("t")
    assert words(memory.summaries.current("t")) == []


@FORMS
def test_callers_at_the_same_time_give_one_summary(
    url: str, opened: Callable[..., Memory], update: Callable[[Memory], Summary]
) -> None:
    memory, other = opened(url), opened(url)  # as two processes would have it
    for one in (memory, other):
        one.summaries.use(Copier())
    say(memory, *range(5))
    start = Barrier(4)

    def caller(number: int) -> None:
        start.wait(30)
        mine = (memory, other)[number % 2]
        for at in range(3):
            say(mine, 100 + 10 * number + at)
            update(mine)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(caller, range(4)))
    said = words(" ".join(one.text for one in memory.history("t")))
    assert words(update(memory)) == said
    assert len(said) == 5 + 12
    assert memory.verify().ok


@FORMS
def test_what_is_written_while_the_model_is_asked_is_neither_lost_nor_doubled(
    url: str, opened: Callable[..., Memory], update: Callable[[Memory], Summary]
) -> None:
    memory = opened(url)
    todo: list[Callable[[], object]] = []

    class Slow(Copier):
        def __call__(self, previous: str | None, texts: Sequence[str]) -> str:
            if todo:
                todo.pop()()
            return super().__call__(previous, texts)

    memory.summaries.use(Slow())
    say(memory, *range(5))
    todo.append(lambda: say(memory, 5))  # said meanwhile: flows into the next version
    assert words(update(memory)) == [*range(5)]
    assert words(update(memory)) == [*range(6)]
    say(memory, 6)
    todo.append(lambda: memory.forget("canary2x"))  # of what was in the summary before
    assert words(update(memory)) == [0, 1, 3, 4, 5, 6]
    say(memory, 7, 8)
    todo.append(lambda: memory.forget("canary8x"))  # of what is in the very prompt
    assert words(update(memory)) == [0, 1, 3, 4, 5, 6, 7]
    say(memory, 9)
    todo.append(lambda: update(memory))  # another one does the same, and is faster
    assert words(update(memory)) == [0, 1, 3, 4, 5, 6, 7, 9]
    for gone in (2, 8):
        assert not memory.scan(f"canary{gone}x").places
    assert memory.verify().ok


def test_a_message_is_in_one_leaf_though_another_caller_and_a_forget_come_between(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url)
    todo: list[Callable[[], object]] = []

    def copying(previous: str | None, texts: Sequence[str]) -> str:
        if todo:
            todo.pop()()
        return " ".join([*([previous] if previous else []), *texts])

    memory.summaries.use(copying)
    say(memory, *range(4))
    memory.summaries.tree("t", leaf=2)
    say(memory, 4)

    def meanwhile() -> None:  # the last leaf has room again, and another puts the message there
        memory.forget("canary3x")
        memory.summaries.tree("t", leaf=2)

    todo.append(meanwhile)
    summary = memory.summaries.tree("t", leaf=2)
    assert [words(one) for one in summary] == [[0, 1], [2, 4]]


def test_no_message_is_served_twice_where_a_part_above_cannot_be_made(
    memory: Memory, model: Copier
) -> None:
    say(memory, 1)
    memory.remember("canary2x and canary3x", thread="t")
    say(memory, 4, 5)
    assert len(grown(memory)) == 1
    memory.forget("canary3x", mode="redact", rebuild="never")
    model.failing = {len(model.calls) + 2}
    with pytest.raises(ModelError):
        grown(memory)
    assert words(memory.summaries.current("t", "tree")) == [1, 2, 4, 5]
    assert words(grown(memory)) == [1, 2, 4, 5]
    assert len(memory.summaries.current("t", "tree")) == 1


# against brute force


SAY = st.tuples(st.just("say"), st.integers(1, 4))
UPDATE = st.tuples(st.sampled_from(["rolled", "grown"]), st.just(0))
GO = st.tuples(st.sampled_from(["forget", "value", "fail"]), st.integers(0, 40))
STEPS = st.lists(st.one_of(SAY, SAY, UPDATE, UPDATE, GO), min_size=6, max_size=14)
UPDATES = {"rolled": rolled, "grown": grown}
PLACES = count(1)


class Talk:
    """A thread, and a brute-force list of what is alive and what was summed up of it."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.model = memory, Copier()
        memory.summaries.use(self.model, chunk=3)
        self.alive: dict[int, int] = {}
        self.gone: list[int] = []
        self.summed: dict[str, list[int]] = {"rolled": [], "grown": []}

    def step(self, what: str, number: int) -> None:
        if what == "say":
            fresh = range(len(self.alive) + len(self.gone), 100)[:number]
            self.alive |= dict(zip(fresh, say(self.memory, *fresh), strict=True))
        elif what in UPDATES:
            assert words(UPDATES[what](self.memory)) == [*self.alive]
            self.summed[what] = [*self.alive]
        elif self.alive:
            self.forget(what, [*self.alive][number % len(self.alive)], number % 3)
        self.check()

    def forget(self, what: str, word: int, failing: int) -> None:
        before = len(self.model.calls)
        if what == "fail":
            self.model.failing = {before + 1 + failing}
        expected = self.expected_calls(word)
        given = {"ids": [self.alive[word]]} if what == "forget" else {"what": f"canary{word}x"}
        receipt = self.memory.forget(**given, scrub=False)
        calls = len(self.model.calls) - before
        assert receipt.rebuild_calls == calls <= expected
        failed = self.model.failing & {*range(before, before + calls + 1)}
        self.model.failing = set()
        del self.alive[word]
        self.gone.append(word)
        for name, summed in self.summed.items():
            left = [one for one in summed if one != word]
            found = words(now(self.memory, UPDATES[name]))
            assert found == left or (failed and set(found) < set(left))
            self.summed[name] = found
        assert failed or calls == expected
        assert not any(f"canary{word}x" in str(one) for one in self.model.calls[before:])

    def expected_calls(self, word: int) -> int:
        """Return the calls that forgetting a message takes: those of all that holds its word."""
        calls = 0
        for one in self.memory.export():
            if one.kind == "summary" and word in words(one) and len(set(words(one))) > 1:
                rolling = one.id in self.memory.summaries.current("t").ids
                calls += -(-(len(words(one)) - 1) // 3) if rolling else 1
        return calls

    def check(self) -> None:
        ids = {id_: word for word, id_ in self.alive.items()}
        for name, summed in self.summed.items():
            assert words(now(self.memory, UPDATES[name])) == summed
        for one in self.memory.export():
            if one.kind == "summary":
                assert {*words(one)} == {ids[id_] for id_ in self.said(one.id)}
            assert not {*words(one)} & {*self.gone}

    def said(self, id_: int) -> set[int]:
        """Return the messages that flowed into a record, through all that was made of them."""
        above = self.memory.context_of(id_)
        if not above:
            return {id_} & {*self.alive.values()}
        return {one for parent in above for one in self.said(parent)}


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_is_said_summed_up_and_forgotten_the_rest_is_in_the_summary(
    memory: Memory, steps: list[tuple[str, int]]
) -> None:
    talk = Talk(memory.workspace(f"talk {next(PLACES)}"))
    for what, number in steps:
        talk.step(what, number)
    for name, update in UPDATES.items():
        assert words(update(talk.memory)) == [*talk.alive], name
    for word in talk.gone:
        assert not talk.memory.scan(f"canary{word}x", files=False).places
    assert talk.memory.verify().ok
