"""Deletions whose right extent is known: what is counted as found, lost, left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.evaluation import evidence, msc
from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.choosing import embedder_of
from benchmarks.evaluation.results import Number
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.sets.msc import Conversation, Turn
from dellm import Memory
from dellm.errors import InvalidInput

DATA = Path(__file__).parents[1].parent / "shared" / "data"
RUN = Run(Canary(), embedder_of("hashing"), small=True)


def turn(place: int, text: str, fact: str | None, speaker: int = 0) -> Turn:
    return Turn(session=1 + place // 2, place=place, speaker=speaker, text=text, fact=fact)


TALK = Conversation(
    "talk",
    (
        turn(0, "My two terriers bark all night.", "I have two terriers."),
        turn(1, "Mine is a quiet one.", None, speaker=1),
        turn(2, "I fed my two terriers.", "I have two terriers. I feed animals."),
        turn(3, "The harbour was cold.", "I swim in the harbour.", speaker=1),
        turn(4, "Trains are late again.", "I take trains."),
        turn(5, "My two terriers bark all night.", "I have two terriers."),
    ),
    ((), ()),
)


def test_a_ratio_is_of_sums_and_its_interval_draws_conversations() -> None:
    found = evidence.ratio([[(1, 4)], [(3, 4), (0, 0)]])
    assert (found.value, found.low, found.high, found.n) == (0.5, 0.25, 0.75, 2)


def test_without_a_hit_the_interval_is_wilsons() -> None:
    found = evidence.ratio([[(0, 10)] * 5, [(0, 10)] * 5])
    assert (found.value, found.low, found.n) == (0, 0, 10)
    assert found.high == pytest.approx(0.2775, abs=1e-3)
    assert evidence.ratio([[(0, 0)], []]) == Number(None, None, None, 0)


def test_half_of_the_telling_words_state_an_answer_and_an_answer_of_none_is_never_stated() -> None:
    assert evidence.states("They sailed on Tuesday.", "on a Tuesday in March")
    assert not evidence.states("They sailed.", "on a Tuesday in March")
    assert not evidence.states("It is so.", "it is")


def test_a_summary_has_whole_sentences_of_its_sources_within_its_size() -> None:
    texts = ["It rains. Ann sails boats.", "Boats sail."]
    assert evidence.summary(texts, 12) == "Boats sail."
    assert evidence.summary(texts, 100) == "It rains. Ann sails boats. Boats sail."
    assert evidence.summary([], 100) == ""
    assert evidence.summary(["It rains."], 1) == "It rains."


def test_a_fact_told_in_several_sessions_is_one_fact_and_others_are_none() -> None:
    (found,) = msc.facts(TALK, 0)
    assert (found.text, found.first.place) == ("I have two terriers.", 0)
    assert found.told == {0, 2, 5}
    assert msc.facts(TALK, 1) == []


def test_what_goes_is_compared_with_what_tells_the_fact() -> None:
    (fact,) = msc.facts(TALK, 0)
    with Memory.open(":memory:", embedder=RUN.embedder) as memory:
        told = msc.loaded(memory, TALK, 0)
        quoted = msc.outcome(told, fact, msc.quote(told, fact))
        wrong = msc.outcome(told, fact, [told.ids[2], told.ids[3]])
        every = msc.outcome(told, fact, [told.ids[at] for at in (0, 2, 5)])
    assert quoted == msc.Outcome((1, 2), (2, 2), (0, 3), still=True)
    assert wrong == msc.Outcome((1, 2), (1, 2), (1, 3), still=True)
    assert every == msc.Outcome((2, 2), (3, 3), (0, 3), still=False)
    assert every.complete
    assert not quoted.complete


def test_suspects_bring_up_the_other_mentions_and_really_forgetting_takes_what_was_ticked() -> None:
    (fact,) = msc.facts(TALK, 0)
    with Memory.open(":memory:", embedder=RUN.embedder) as memory:
        told = msc.loaded(memory, TALK, 0)
        assert {told.ids[at] for at in fact.told} <= set(msc.with_suspects(told, fact))
        assert msc.really(told, fact)
        assert told.ids[4] in {one.id for one in memory.export()}


def test_a_way_that_does_not_apply_is_no_outcome() -> None:
    (fact,) = msc.facts(TALK, 0)
    with Memory.open(":memory:", embedder=RUN.embedder) as memory:
        told = msc.loaded(memory, TALK, 0)
        assert msc.outcome(told, fact, msc.described(told, fact)) is None


def test_msc_small_gives_every_way_a_row_and_finds_more_with_suspects() -> None:
    if not (DATA / "msc").is_dir():
        pytest.skip("the data sets (../shared/data) are not here")
    report = msc.run(replace(RUN, data=DATA, limit=4))
    rows = {str(row["to be forgotten"]): row for row in report.rows}
    assert set(rows) == set(msc.WAYS)
    found = [
        rows[name]["other mentions found"]
        for name in ("first mention, quoted", "first mention, quoted, and suspects")
    ]
    values = [one.value for one in found if isinstance(one, Number)]
    assert values[0] is not None
    assert values[1] is not None
    assert values[0] < values[1]


def test_msc_without_its_data_says_so() -> None:
    with pytest.raises(InvalidInput, match="msc"):
        msc.run(RUN)
