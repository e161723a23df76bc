"""The ablation measures what it says: leaks, what stays, what is taken, and what is taken needlessly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.evaluation import ablation, ablation_tofu
from benchmarks.evaluation.ablation import ALL, PAPER, THREAD, Chat, Check, OnceEmbedded, Talk, Way
from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.personas import Persona, load
from benchmarks.evaluation.results import Number, Report
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.sets import tofu
from dellm import Memory
from dellm.embedding import HashingEmbedder
from dellm.models import ExtractiveReader
from dellm.plan import STRICT, depth, influence

DATA = Path(__file__).parents[2] / "shared" / "data" / "tofu"


def a_run() -> Run:
    return Run(model=Canary(), embedder=HashingEmbedder(), small=True)


@pytest.fixture(scope="module")
def small() -> list[Report]:
    return ablation.run(a_run())


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", embedder=HashingEmbedder()) as opened:
        yield opened


@pytest.fixture
def persona() -> Persona:
    return load()[0]


def numbers(reports: list[Report], column: str, way: Way, **chat: object) -> list[float]:
    wanted = {**way.row(), **chat}
    cells = [
        row[column]
        for report in reports
        for row in report.rows
        if all(row[name] == value for name, value in wanted.items())
    ]
    assert cells
    return [one.value for one in cells if isinstance(one, Number) and one.value is not None]


@pytest.mark.parametrize(
    ("text", "answer", "stated"),
    [
        ("I take warfarin, so I watch my greens.", "warfarin", True),
        ("You take WARFARIN.", "warfarin", True),
        ("You take metformin.", "warfarin", False),
        ("We have two cats.", "two donkeys", True),  # half of the telling words
        ("We have cats.", "two donkeys", False),
        ("It is on the shelf.", "on the hill", False),  # "on" and "the" tell nothing
    ],
)
def test_a_text_states_an_answer_if_it_holds_half_of_its_telling_words(
    text: str, answer: str, stated: bool
) -> None:
    assert ablation.states(text, answer) is stated


def test_every_way_is_measured_in_every_chat(small: list[Report]) -> None:
    assert [one.name for one in small] == ["ablation-size-canary", "ablation-recent-canary"]
    chats = sum(map(len, ablation.SMALL_GROUPS.values()))
    rows = [row for one in small for row in one.rows]
    assert len(rows) == chats * len(ablation.WAYS)
    counts = {cell.n for row in rows for cell in row.values() if isinstance(cell, Number)}
    assert counts == {ablation.SMALL}


def test_where_only_the_fact_itself_goes_the_worst_leaker_leaks_it(small: list[Report]) -> None:
    assert max(numbers(small, "leaked: memory", Way(depth(0)))) == 1
    assert numbers(small, "leaked: answer", Way(depth(0)), last="all") == [1.0]
    assert set(numbers(small, "taken", Way(depth(0)))) == {1.0}


def test_where_all_that_was_made_from_it_goes_not_even_the_worst_leaker_leaks_it(
    small: list[Report],
) -> None:
    for column in ("leaked: memory", "leaked: answer"):
        assert set(numbers(small, column, Way(STRICT))) == {0.0}
        assert set(numbers(small, column, Way(STRICT, by_words=True))) == {0.0}


def test_reach_takes_more_with_every_hop_and_less_with_every_bound(small: list[Report]) -> None:
    for last in ("0", "all"):
        for ways in (
            [Way(depth(0)), Way(depth(1)), Way(depth(2)), Way(STRICT)],
            [Way(influence(0.8)), Way(influence(0.2)), Way(influence(0.05)), Way(STRICT)],
        ):
            taken = [numbers(small, "taken", way, last=last, k=5)[0] for way in ways]
            assert taken == sorted(taken)


def test_with_the_whole_conversation_in_each_prompt_all_after_the_fact_goes(
    memory: Memory, persona: Persona
) -> None:
    talk = ablation.talked(memory, a_run(), Chat(last=ALL), persona)
    fact = talk.ids[persona.forget.fact]
    replies = [one.id for one in memory.export() if one.role == "assistant" and one.id > fact]
    assert talk.plan(Way(STRICT), persona.forget.fact).ids == (fact, *replies)


def test_an_outcome_counts_what_goes_though_it_says_nothing_of_the_fact(
    memory: Memory, persona: Persona
) -> None:
    fact = persona.forget.fact
    talk = Talk(memory, a_run(), PAPER)
    talk.ids[fact] = memory.remember(fact, thread=THREAD).id
    memory.record("Noted.", context=[talk.ids[fact]], thread=THREAD)
    memory.remember("It rains.", thread=THREAD)
    found = ablation.outcome(talk, persona, Way(STRICT), before=0.5)
    assert (found.taken, found.needless) == (2, 0.5)  # "Noted." of "Noted." and "It rains."
    assert found.taken_share == pytest.approx(2 / 3)
    assert not found.leaked_kept
    assert found.before == 0.5
    kept = ablation.outcome(talk, persona, Way(depth(0)), before=0.5)
    assert (kept.taken, kept.needless) == (1, 0.0)


def test_a_copy_that_a_relaxed_reach_leaves_is_a_leak(memory: Memory, persona: Persona) -> None:
    fact = persona.forget.fact
    talk = Talk(memory, a_run(), Chat(last=ALL))
    talk.ids[fact] = memory.remember(fact, thread=THREAD).id
    memory.record(f"You said: {fact}", context=[talk.ids[fact]], thread=THREAD)
    found = ablation.outcome(talk, persona, Way(depth(0)), before=1.0)
    assert found.leaked_kept
    assert found.leaked_answer
    assert not ablation.outcome(talk, persona, Way(depth(0), by_words=True), 1.0).leaked_kept


def test_questions_asked_to_measure_leave_nothing(memory: Memory, persona: Persona) -> None:
    talk = ablation.talked(memory, a_run(), PAPER, persona)
    held = talk.held()
    ablation.outcome(talk, persona, Way(STRICT), before=1.0)
    assert talk.held() == held


def test_forgetting_does_what_the_plan_said(memory: Memory, persona: Persona) -> None:
    talk = ablation.talked(memory, a_run(), PAPER, persona)
    held = len(talk.held())
    assert ablation.really(talk, persona, Way(STRICT)) == Check(left=True, said=True)
    assert len(talk.held()) < held


def a_fact(answer: str, question: str = "Where?", wrong: str = "In Oslo.") -> tofu.Fact:
    return tofu.Fact(question, answer, question, answer, (wrong,) * 5, author=0)


@pytest.mark.parametrize(
    ("fact", "own"),
    [
        (a_fact("She lives in Bergen.", "Where does she live?", "She lives in Oslo."), {"bergen"}),
        (a_fact("Yes, in May 1958.", "When was she born?", "Yes, in June 1961."), {"may", "1958"}),
        (a_fact("In Oslo."), set()),
    ],
)
def test_the_own_words_of_a_fact_stand_in_no_question_and_no_wrong_answer(
    fact: tofu.Fact, own: set[str]
) -> None:
    assert ablation_tofu.own_words(fact) == own


def test_without_tofu_or_with_a_model_that_repeats_all_there_is_no_report_of_it(
    tmp_path: Path,
) -> None:
    assert ablation_tofu.reports(a_run()) == []
    (tmp_path / "tofu").mkdir()
    assert ablation_tofu.reports(replace(a_run(), data=tmp_path)) == []


@pytest.mark.skipif(not DATA.is_dir(), reason="the data set TOFU is not at ../shared/data")
def test_on_tofu_a_strict_forget_leaves_no_reply_that_states_a_fact_and_depth_0_does() -> None:
    run = Run(ExtractiveReader(), HashingEmbedder(), data=DATA.parent, small=True)
    rows = [
        row
        for row in ablation_tofu.rows(run, PAPER, ablation_tofu.chosen(run))
        if row["last"] == "0"
    ]
    leaked = {(row["named by"], row["reach"]): row["leaked: memory"] for row in rows}
    strict, alone = leaked["id", "strict"], leaked["id", "depth(0)"]
    assert isinstance(strict, Number)
    assert isinstance(alone, Number)
    assert (strict.value, strict.n) == (0.0, ablation_tofu.SMALL[0])
    assert alone.value


def test_each_text_is_embedded_once() -> None:
    class Counting(HashingEmbedder):
        asked = 0

        def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
            Counting.asked += len(texts)
            return super().embed(texts)

    once = OnceEmbedded(Counting())
    first = once.embed(["a sea", "a lake", "a sea"])
    assert (once.embed(["a lake", "a sea"]) == first[[1, 0]]).all()
    assert Counting.asked == 2
