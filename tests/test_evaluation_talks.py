"""Questions about finished conversations are made by a rule that holds what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.evaluation.personas import words
from benchmarks.evaluation.sets import dmr, longmemeval, msc
from benchmarks.evaluation.systems import Said
from benchmarks.evaluation.talks import (
    USER,
    Probe,
    talks_of_dmr,
    talks_of_longmemeval,
    talks_of_msc,
)
from dellm.errors import InvalidInput

DATA = Path(__file__).parents[1].parent / "shared" / "data" / "msc"


def conversation(*said: tuple[int, str, str | None], name: str = "c1") -> msc.Conversation:
    turns = (
        msc.Turn(1, place, speaker, text, fact) for place, (speaker, text, fact) in enumerate(said)
    )
    return msc.Conversation(name, tuple(turns), ())


def probes(*said: tuple[int, str, str | None]) -> tuple[Probe, ...]:
    other = conversation((1, "My cousin plays the tuba.", "My cousin plays the tuba."), name="c2")
    return next(
        (one.probes for one in talks_of_msc([conversation(*said), other]) if one.id == "c1"), ()
    )


BREWER = (1, "I work nights as a brewer.", "I work nights as a brewer.")


def test_the_last_telling_word_of_a_fact_is_asked_for() -> None:
    (made,) = probes((0, "Hello!", None), BREWER)
    assert made.question == 'What did I tell you here: "I work nights as a ___."?'
    assert (made.answer, made.told) == ("brewer", (BREWER[1],))
    assert made.distractors == ("tuba",)


def test_a_fact_of_the_assistant_is_not_asked_for() -> None:
    assert probes((0, BREWER[1], BREWER[2])) == ()


def test_an_answer_that_another_message_says_is_not_asked_for() -> None:
    assert probes(BREWER, (0, "A brewer, nice!", None)) == ()


def test_an_answer_that_the_message_itself_does_not_say_is_not_asked_for() -> None:
    assert probes((1, "I make beer at night.", BREWER[2])) == ()


def test_a_question_that_two_facts_fit_is_not_asked() -> None:
    baker = "I work nights as a baker."
    assert probes(BREWER, (1, baker, baker)) == ()


def test_a_question_that_names_too_little_is_not_asked() -> None:
    assert probes((1, "I am a brewer.", "I am a brewer.")) == ()


def test_a_fact_told_again_is_one_probe_with_all_of_its_messages() -> None:
    again = (1, "As I said, I work nights as a brewer!", "I work nights as a brewer.")
    (made,) = probes(BREWER, (0, "I see.", None), again)
    assert set(made.told) == {BREWER[1], again[1]}


def test_no_conversation_with_a_probe_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="No conversation"):
        talks_of_msc([conversation((0, "Hello!", None))])


def test_dmr_makes_the_one_who_asks_the_user() -> None:
    turns = (dmr.Turn(1, 0, "I sing."), dmr.Turn(1, 1, "I sail."))
    (made,) = talks_of_dmr([dmr.Dialogue(4, turns, "What do you sing?", "songs", ())])
    assert made.said == (Said("assistant", "I sing."), Said("user", "I sail."))
    assert [(one.question, one.answer, one.told) for one in made.probes] == [
        ("What do you sing?", "songs", ())
    ]


def test_longmemeval_dates_its_messages_and_sets_unanswerable_questions_apart() -> None:
    session = longmemeval.Session(
        "s",
        "May",
        (longmemeval.Turn("user", "I sail.", True), longmemeval.Turn("user", " ", False)),
    )
    (made,) = talks_of_longmemeval(
        [longmemeval.Question("q_abs", "multi-session", "When?", "never", "June", (session,), ())]
    )
    assert made.said == (Said("user", "[May] I sail."),)
    assert (made.probes[0].question, made.probes[0].kind) == ("[June] When?", "abstention")


def test_the_real_msc_gives_probes_that_only_their_own_messages_answer() -> None:
    if not DATA.is_dir():
        pytest.skip("../shared/data/msc is not here")
    conversations = msc.load(DATA)
    talks = talks_of_msc(conversations)
    assert sum(len(talk.probes) for talk in talks) > 150
    spoken = {one.id: one for one in conversations}
    for talk in talks:
        for probe in talk.probes:
            wanted = set(words(probe.answer))
            told = [one for one in spoken[talk.id].turns if one.text in probe.told]
            assert {one.speaker for one in told} == {USER}
            assert not wanted & set(words(probe.question))
            for said in talk.said:
                assert bool(wanted & set(words(said.text))) == (said.text in probe.told)
            for wrong in probe.distractors:
                assert not set(words(wrong)) & {w for s in talk.said for w in words(s.text)}
    assert talks == talks_of_msc(conversations)
    assert talks != talks_of_msc(conversations, seed=1)
