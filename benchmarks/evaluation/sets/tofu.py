"""TOFU in the set-up of the paper: two authors to forget (40 facts), twenty to keep (400 facts).

Source: Maini et al. 2024, "TOFU: A Task of Fictitious Unlearning for LLMs" (arXiv:2401.06121), data
locuslab/TOFU (MIT). The facts to keep are `retain_perturbed`, the first 20 authors: of the official
files it is the one of the paper's size. Both files carry a paraphrase and five wrong answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dellm.errors import InvalidInput

from .reading import Row, counted, existing, rows_of, texts, typed

FORGET = 40
RETAIN = 400
PER_AUTHOR = 20
WRONG_ANSWERS = 5
FORGET_AUTHOR = 198  # of the 200 authors, counted from 0: the first of forget01


@dataclass(frozen=True, slots=True)
class Fact:
    """One question about an author who does not exist, with the answer that is the fact.

    `perturbed` are five wrong answers in the words of `paraphrased_answer`. `author` counts from 0
    in the order of the whole set.
    """

    question: str
    answer: str
    paraphrased_question: str
    paraphrased_answer: str
    perturbed: tuple[str, ...]
    author: int


@dataclass(frozen=True, slots=True)
class Tofu:
    """The facts to forget and the facts to keep, each in the official order."""

    forget: tuple[Fact, ...]
    retain: tuple[Fact, ...]


def load(folder: Path) -> Tofu:
    """Return the paper's set-up from `forget01_perturbed` and `retain_perturbed` (.jsonl, .json).

    Raises InvalidInput if a file is missing or has another shape, if the counts are not 40 and
    400, or if a question stands in both.
    """
    forget = _facts(folder, "forget01_perturbed", FORGET, FORGET_AUTHOR)
    retain = _facts(folder, "retain_perturbed", RETAIN, 0)
    if shared := {one.question for one in forget} & {one.question for one in retain}:
        raise InvalidInput(f"{len(shared)} questions are both to forget and to keep.")
    return Tofu(forget, retain)


def _facts(folder: Path, name: str, official: int, author: int) -> tuple[Fact, ...]:
    rows = rows_of(existing(folder, f"{name}.jsonl", f"{name}.json"), _fact)
    counted(f"rows of {name}", len(rows), official)
    counted(f"different questions of {name}", len({one.question for one in rows}), official)
    return tuple(
        replace(one, author=author + place // PER_AUTHOR) for place, one in enumerate(rows)
    )


def _fact(row: Row) -> Fact:
    perturbed = texts(row["perturbed_answer"])
    counted("wrong answers in a row", len(perturbed), WRONG_ANSWERS)
    return Fact(
        question=typed(row["question"], str),
        answer=typed(row["answer"], str),
        paraphrased_question=typed(row["paraphrased_question"], str),
        paraphrased_answer=typed(row["paraphrased_answer"], str),
        perturbed=perturbed,
        author=0,
    )
