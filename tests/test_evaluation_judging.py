"""A right answer is told from a wrong one, and every score can fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from openai_server import OpenAIServer
from weights_at_hand import weights_folder

from benchmarks.evaluation.judging import (
    Answered,
    Judge,
    ModelJudge,
    WordJudge,
    judge_of,
    stems,
    telling_words,
    verdict,
)
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.scoring import Scores, nearest_gold, rouge_recall, score
from benchmarks.evaluation.sets import tofu
from dellm.embedding import HashingEmbedder, MiniLMEmbedder
from dellm.models import ExtractiveReader, OpenAIModel

DATA = Path(__file__).parents[1].parent / "shared" / "data"
AUTHOR = (
    "What is the full name of the author born in Kuwait City, Kuwait on 08/09/1956?",
    "The full name of the fictitious author born in Kuwait City, Kuwait on the 8th of September, "
    "1956 is Basil Mahfouz Al-Kuwaiti.",
)
ASKS_BACK = (
    "I’m missing the author’s name from the information provided. Could you share the author’s "
    "works or any other detail to identify them?"
)
DOG = ("What is my dog called?", "Your dog is called Rex.", ("Your dog is called Max.",))


def dog(answer: str) -> Answered:
    return Answered(*DOG, answer)


def test_rouge_gives_a_right_and_a_wrong_answer_the_same_score_as_the_paper_says() -> None:
    both = [rouge_recall(AUTHOR[1], said) for said in (ASKS_BACK, "Basil Mahfouz Al-Kuwaiti")]
    assert [round(one, 2) for one in both] == [0.17, 0.17]


def test_the_words_tell_the_two_answers_apart_that_rouge_does_not() -> None:
    items = [Answered(*AUTHOR, (), said) for said in (ASKS_BACK, "Basil Mahfouz Al-Kuwaiti")]
    assert [WordJudge().right(one) for one in items] == [False, True]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("CORRECT", True),
        ("wrong.", False),
        ("**Correct**", True),
        ("The verdict is: INCORRECT", False),
        ("It is not correct.", False),
        ("I can't tell.", None),
        ("CORRECT or WRONG", None),
        ("corrected", None),
    ],
)
def test_a_verdict_is_read_in_any_dress_and_never_guessed(said: str, meant: bool | None) -> None:
    assert verdict(said) is meant


def test_a_model_judges_over_http_by_question_reference_and_answer() -> None:
    def reply(messages: list[dict[str, str]]) -> str:
        asked = messages[-1]["content"]
        return "CORRECT" if asked.count("Rex") == 2 else "WRONG"

    with OpenAIServer(reply=reply) as server:
        model = OpenAIModel("gpt-4.1-nano", base_url=server.url, api_key="test")
        judge = ModelJudge(model)
        assert [judge.right(dog("It is Rex")), judge.right(dog("It is Max"))] == [True, False]
        model.close()
    asked = server.requests[0]["messages"][-1]["content"]
    assert DOG[0] in asked
    assert DOG[1] in asked
    assert "It is Rex" in asked


def test_a_judge_without_a_verdict_is_counted_and_makes_no_answer_wrong() -> None:
    replies = iter(["CORRECT", "Hard to say.", "WRONG", "CORRECT"])
    with OpenAIServer(reply=lambda _: next(replies)) as server:
        model = OpenAIModel("gpt-4.1-nano", base_url=server.url, api_key="test")
        found = score([dog("Rex")] * 4, ModelJudge(model))
        model.close()
    assert (found.right.value, found.right.n, found.no_verdict) == (2 / 3, 3, 1)
    assert found.row()["no verdict"] == 1


def test_telling_words_are_neither_in_the_question_nor_in_a_distractor() -> None:
    assert telling_words(dog("")) == {"rex"}


def test_where_a_distractor_has_all_words_those_that_the_question_lacks_tell() -> None:
    item = Answered("Is it so?", "Yes.", ("Yes and no.",), "Yes, it is.")
    assert telling_words(item) == {"yes"}
    assert WordJudge().right(item)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,200 books", "1200 book"),
        ("the 8th of May", "The 8 of may"),
        ("José's dogs", "Jose dog"),
        ("novels", "a novel"),
    ],
)
def test_numbers_names_and_plurals_are_the_same_word(one: str, other: str) -> None:
    assert stems(one) <= stems(other)


def test_numbers_that_differ_are_different_words() -> None:
    assert not stems("1200") & stems("120 12001")


@pytest.mark.parametrize("embedder", [None, HashingEmbedder()])
def test_an_answer_ranks_the_gold_first_only_if_it_is_nearer(
    embedder: HashingEmbedder | None,
) -> None:
    said = ["Your dog is Rex.", "Your dog is Max.", ""]
    assert nearest_gold([dog(one) for one in said], embedder) == [True, False, False]


def test_answers_without_distractors_are_not_ranked() -> None:
    found = score([Answered("Q?", "gold", (), "gold"), dog("Rex")], WordJudge())
    assert (found.nearest.n, found.right.n) == (1, 2)


def test_no_answers_have_no_scores() -> None:
    found = score([], WordJudge(), HashingEmbedder())
    assert found.right.value is found.rouge.value is found.nearest.value is None


def test_the_judge_is_the_model_where_one_is_named_else_the_words() -> None:
    reader, embedder = ExtractiveReader(), HashingEmbedder()
    assert isinstance(judge_of(Run(reader, embedder)), WordJudge)
    assert judge_of(Run(reader, embedder, judge=reader)).name == "judge extractive"


@pytest.mark.long
@pytest.mark.skipif(
    not (DATA / "tofu").is_dir(), reason="../shared/data/tofu is not there: no TOFU to score"
)
def test_on_tofu_the_words_find_what_was_told_and_nothing_of_what_was_deleted() -> None:
    facts = tofu.load(DATA / "tofu")
    embedder = MiniLMEmbedder(weights_folder("minilm"))
    asked = [*facts.forget, *facts.retain[::4]]
    told = [one.answer for one in (*facts.forget, *facts.retain)]
    near = embedder.embed([one.question for one in asked]) @ embedder.embed(told).T

    def scored(first: int) -> tuple[Scores, Scores]:
        items = []
        for fact, row in zip(asked, near, strict=True):
            best = [n for n in np.argsort(-row) if n >= first][:5]
            context = "\n".join(told[n] for n in best if row[n] > 0.25)
            items.append(Answered(fact.question, fact.answer, fact.perturbed, context))
        judge: Judge = WordJudge()
        return score(items[: tofu.FORGET], judge), score(items[tofu.FORGET :], judge)

    (before, kept), (after, still) = scored(0), scored(tofu.FORGET)

    assert (before.right.value or 0) >= 0.85
    assert after.right.value == 0
    assert (kept.right.value or 0) >= 0.75
    assert kept.right.value == still.right.value
