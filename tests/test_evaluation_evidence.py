"""Deletions whose right extent is known: what is counted as found, lost, left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.evaluation import evidence, locomo, locomo_held, locomo_replies, msc
from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.choosing import chat_model, embedder_of
from benchmarks.evaluation.results import Number
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.sets import locomo as locomo_set
from benchmarks.evaluation.sets.msc import Conversation, Turn
from benchmarks.evaluation.stating import states
from dellm import Memory
from dellm.errors import InvalidInput
from dellm.plan import STRICT, Reach, depth

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
    assert states("They sailed on Tuesday.", "on a Tuesday in March")
    assert not states("They sailed.", "on a Tuesday in March")
    assert not states("It is so.", "it is")


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


def test_a_user_who_ticks_the_right_suspects_loses_nothing_else() -> None:
    (fact,) = msc.facts(TALK, 0)
    telling = {0, 2, 5}
    with Memory.open(":memory:", embedder=RUN.embedder) as memory:
        told = msc.loaded(memory, TALK, 0)
        once, again = msc.right_suspects(told, fact), msc.ticked_in_turn(told, fact)
    assert {told.ids[0]} < set(once) <= set(again) <= {told.ids[at] for at in telling}


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
        for name in ("first mention, quoted", "first mention, and all suspects")
    ]
    values = [one.value for one in found if isinstance(one, Number)]
    assert values[0] is not None
    assert values[1] is not None
    assert values[0] < values[1]


def test_msc_without_its_data_says_so() -> None:
    with pytest.raises(InvalidInput, match="msc"):
        msc.run(RUN)


SAID = [
    ("D1:1", "Ann", "I bought a yellow kayak."),
    ("D1:2", "Ben", "A boat, how nice."),
    ("D1:3", "Ann", "My dentist is called Osmund."),
    ("D2:1", "Ann", "The lift is broken."),
    ("D2:2", "Ben", "I moved to Tromso."),
]


def asks(question: str, answer: str, *turns: str, category: int = 4) -> locomo_set.Question:
    return locomo_set.Question(question, answer, category, turns, named=True, unknown=0)


BOATS = locomo_set.Conversation(
    id="boats",
    speakers=("Ann", "Ben"),
    turns=tuple(
        locomo_set.Turn(id_, int(id_[1]), who, text, caption=None) for id_, who, text in SAID
    ),
    times={1: "", 2: ""},
    observations=(
        locomo_set.Derived("Ann owns a yellow kayak.", 1, "Ann", ("D1:1",)),
        locomo_set.Derived("Osmund looks after Ann.", 1, "Ann", ("D1:3",)),
    ),
    summaries=(
        locomo_set.Derived("A yellow kayak, and Osmund.", 1, None, ("D1:1", "D1:2", "D1:3")),
        locomo_set.Derived("Ben moved to Tromso.", 2, None, ("D2:1", "D2:2")),
    ),
    questions=(
        asks("What did Ann buy?", "a yellow kayak", "D1:1"),
        asks("Who is the dentist?", "Osmund", "D1:3"),
        asks("Where does Ben live?", "Tromso", "D2:2"),
        asks("What car has Ann?", "a lorry", "D1:1", category=5),
        asks("What is not known?", "nothing", category=5),
    ),
)
SHED = replace(
    BOATS, id="shed", questions=(asks("What is in the shed?", "seventeen rakes", "D1:1"),)
)
FULL = replace(RUN, small=False)


@pytest.fixture
def boats() -> Iterator[locomo_held.Held]:
    with Memory.open(":memory:", embedder=RUN.embedder) as memory:
        yield locomo_held.loaded(memory, BOATS, SHED, FULL, RUN.embedder)


def test_what_was_made_from_evidence_is_known_by_its_sources(boats: locomo_held.Held) -> None:
    assert [one.question for one in boats.questions] == [q.question for q in BOATS.questions[:4]]
    assert [locomo_held.places(row) for row in boats.made_from] == [
        [0, 5, 7],
        [2, 6, 7],
        [4, 8],
        [0, 5, 7],
    ]
    assert [locomo_held.places(row) for row in boats.stating] == [[0, 5, 7], [2, 6, 7], [4, 8], []]
    assert not boats.stating_foreign.any()


def test_deleting_turns_alone_leaves_what_was_made_from_them(boats: locomo_held.Held) -> None:
    found = locomo.outcome(boats, 0, locomo.turns_only(boats, 0))
    assert (found.taken, found.left) == ((1, 9), (2, 2))
    assert (found.told, found.anywhere, found.told_by_chance) == ((1, 1), (1, 1), (0, 1))
    assert (found.turns, found.observations, found.summaries) == ((0, 2), (0, 1), (0, 2))


def test_provenance_leaves_nothing_made_from_the_evidence(boats: locomo_held.Held) -> None:
    found = locomo.outcome(boats, 0, locomo.erased(boats, 0))
    assert (found.taken, found.left, found.told, found.anywhere) == ((3, 9), (0, 2), (0, 1), (0, 1))
    assert (found.turns, found.observations, found.summaries) == ((0, 2), (0, 1), (1, 2))
    assert found.summed == (0, 1)


def test_what_is_made_anew_states_what_stays_and_not_what_went(boats: locomo_held.Held) -> None:
    done = locomo.rebuilt(boats, 0)
    found = locomo.outcome(boats, 0, done)
    assert list(done.remade) == [7]
    assert "boat, how nice" in done.remade[7]
    assert (found.left, found.told, found.summaries, found.summed) == (
        (0, 2),
        (0, 1),
        (0, 2),
        (1, 1),
    )


def test_a_user_who_ticks_suspects_also_loses_the_turn_that_tells_it_again() -> None:
    again = locomo_set.Turn("D2:3", 2, "Ann", "I bought a yellow kayak, a yellow kayak!", None)
    talk = replace(BOATS, turns=(*BOATS.turns, again))
    with Memory.open(":memory:", embedder=RUN.embedder) as memory:
        held = locomo_held.loaded(memory, talk, SHED, FULL, RUN.embedder)
        plain = locomo.outcome(held, 0, locomo.rebuilt(held, 0))
        ticked = locomo.outcome(held, 0, locomo.with_suspects(held, 0))
    assert [plain.anywhere, ticked.anywhere] == [(1, 1), (0, 1)]
    assert [plain.turns, ticked.turns] == [(0, 2), (0, 2)]


def test_a_question_without_an_answer_is_counted_for_no_answer(boats: locomo_held.Held) -> None:
    found = locomo.outcome(boats, 3, locomo.turns_only(boats, 3))
    assert (found.told, found.anywhere) == ((0, 0), (0, 0))
    assert found.left == (2, 2)


def test_deletion_by_meaning_takes_all_where_all_counts_as_near(boats: locomo_held.Held) -> None:
    found = locomo.outcome(boats, 0, locomo.alike(-1)(boats, 0))
    assert (found.taken, found.turns, found.observations) == ((9, 9), (2, 2), (1, 1))


def test_really_forgetting_on_known_sources_agrees_with_the_plans(boats: locomo_held.Held) -> None:
    checks = locomo.Checks()
    checks.really(boats)
    assert (checks.done, checks.right) == (3, 3)  # the fourth goes with the first
    assert (checks.near, checks.near_right) == (4, 4)
    left = [one.text for one in boats.memory.export()]
    assert not any(word in text for text in left for word in ("yellow", "Osmund", "Tromso"))


def test_a_wrong_expectation_of_a_real_deletion_is_seen(boats: locomo_held.Held) -> None:
    boats.memory.remember("Zebras graze.")
    checks = locomo.Checks()
    checks.really(boats)
    assert checks.right == 0


@pytest.mark.parametrize(("reach", "gone"), [(depth(0), 1), (depth(1), 2), (STRICT, 3)])
def test_a_reach_takes_replies_by_what_was_in_their_prompts(reach: Reach, gone: int) -> None:
    voice = locomo_replies.Voice(locomo_replies.Chat("last 3", 0, 3), None)
    with Memory.open(":memory:", embedder=RUN.embedder) as memory:
        held = locomo_replies.replayed(memory, (BOATS, SHED), FULL, voice)
        found = [one for at, one in locomo_replies.outcomes(held, [reach]) if at == reach]
    lose = float(gone == 3)  # the reply that answers where Ben lives
    assert (found[0].taken, found[0].lost, found[0].told) == ((gone, 5), (lose, 2), (0, 1))


def test_a_reply_that_repeats_its_prompt_tells_unless_all_made_from_it_goes() -> None:
    voice = locomo_replies.Voice(locomo_replies.CHATS[-1], Canary())
    with Memory.open(":memory:", embedder=RUN.embedder) as memory:
        held = locomo_replies.replayed(memory, (BOATS, SHED), FULL, voice)
        found = [one for _, one in locomo_replies.outcomes(held, [depth(0), STRICT])]
        assert [found[0].told, found[1].told] == [(1, 1), (0, 1)]
        assert [found[0].told_by_chance, found[1].lost] == [(0, 1), (1, 2)]
        assert locomo_replies.really(held, STRICT)


def test_locomo_small_leaves_nothing_made_from_the_evidence_but_other_ways_do() -> None:
    if not (DATA / "locomo").is_dir():
        pytest.skip("the data sets (../shared/data) are not here")
    run = replace(RUN, model=chat_model("extractive"), data=DATA)
    sources, replies = locomo.run(run), locomo_replies.run(run)
    left = {str(row["deleted"]): row["made from it, left"] for row in sources.rows}
    assert isinstance(left["turns only"], Number)
    assert isinstance(left["provenance, erased"], Number)
    assert (left["turns only"].value, left["provenance, erased"].value) == (1, 0)
    strict = [row["a reply still tells"] for row in replies.rows if row["reach"] == "strict"]
    assert len(strict) == 6
    assert [one.value for one in strict if isinstance(one, Number)] == [0] * 6
    for report in (sources, replies):
        (said,) = [note for note in report.notes if note.startswith("Really")]
        done, of = said.partition(" cases")[0].split()[-3::2]
        assert done == of
