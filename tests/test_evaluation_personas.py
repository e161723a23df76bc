"""The personas of the evaluation hold what they promise, and a broken one is reported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.evaluation.personas import (
    DATA,
    Persona,
    Question,
    check,
    load,
    main,
    specific,
    words,
)
from dellm.errors import InvalidInput

ROOT = Path(__file__).parents[1]
PERSONAS = load()
AT = 17  # the persona that is broken


def with_question(persona: Persona, place: int, **changes: str | bool) -> Persona:
    questions = list(persona.questions)
    questions[place] = replace(questions[place], **changes)
    return replace(persona, questions=tuple(questions))


def with_statement(persona: Persona, place: int, text: str) -> Persona:
    statements = list(persona.statements)
    statements[place] = text
    return replace(persona, statements=tuple(statements))


def told_of_no_question(persona: Persona) -> int:
    facts = {one.fact for one in persona.questions}
    return next(at for at, text in enumerate(persona.statements) if text not in facts)


def asked(persona: Persona, request: str) -> Persona:
    return replace(persona, requests=(request, *persona.requests[1:]))


def first(persona: Persona) -> Question:
    return persona.questions[0]


BREAKS: dict[str, tuple[Callable[[Persona], Persona], str]] = {
    "a statement too few": (
        lambda one: replace(
            one,
            statements=tuple(
                text for at, text in enumerate(one.statements) if at != told_of_no_question(one)
            ),
        ),
        "9 statements, not 10",
    ),
    "a request too few": (
        lambda one: replace(one, requests=one.requests[1:]),
        "4 requests, not 5",
    ),
    "a question too many": (
        lambda one: replace(one, questions=(*one.questions, one.retain[0])),
        "5 questions, not 4",
    ),
    "a statement about somebody else": (
        lambda one: with_statement(one, told_of_no_question(one), "The moon is up."),
        "not in the first person: The moon is up.",
    ),
    "a question about somebody else": (
        lambda one: with_question(one, 2, question="What is the moon?"),
        "not in the first person: What is the moon?",
    ),
    "nothing to forget": (
        lambda one: replace(one, questions=tuple(replace(q, forget=False) for q in one.questions)),
        "0 questions to be forgotten, not 1",
    ),
    "two facts to forget": (
        lambda one: replace(
            one, questions=tuple(replace(q, forget=at < 2) for at, q in enumerate(one.questions))
        ),
        "2 questions to be forgotten, not 1",
    ),
    "two questions about one fact": (
        lambda one: with_question(one, 1, fact=first(one).fact, answer=first(one).answer),
        "two questions about one fact",
    ),
    "a long answer": (
        lambda one: with_question(one, 0, answer=first(one).fact + " and so it goes, you know"),
        "question 1: the answer is not 1 to 5 telling words",
    ),
    "an answer that tells nothing": (
        lambda one: with_question(one, 0, answer="my"),
        "question 1: the answer is not 1 to 5 telling words",
    ),
    "a fact that is not told": (
        lambda one: with_question(one, 0, fact=first(one).fact + " Truly."),
        "question 1: the fact is not a statement",
    ),
    "an answer from elsewhere": (
        lambda one: with_question(one, 0, answer="xylophone"),
        "question 1: the answer does not stand in the fact",
    ),
    "an answer told twice": (
        lambda one: with_statement(
            one, told_of_no_question(one), f"I say it again: {first(one).answer.upper()}!"
        ),
        "question 1: another statement names",
    ),
    "a request that gives an answer away": (
        lambda one: asked(one, f"What about {first(one).answer.title()}?"),
        "question 1: a request names",
    ),
    "a question that answers itself": (
        lambda one: with_question(one, 0, question=f"Is it {first(one).answer}?"),
        "question 1: its own question names",
    ),
    "a question that answers another": (
        lambda one: with_question(one, 1, question=f"Is it {first(one).answer}?"),
        "question 1: another question names",
    ),
    "a wrong answer that is right": (
        lambda one: with_question(one, 0, perturbed=first(one).answer),
        "question 1: the wrong answer is said",
    ),
    "a wrong answer that is told of": (
        lambda one: asked(one, f"Why not {first(one).perturbed}?"),
        "question 1: the wrong answer is said",
    ),
    "no wrong answer": (
        lambda one: with_question(one, 0, perturbed=""),
        "question 1: the wrong answer is not 1 to 5 telling words",
    ),
    "a wrong answer of another kind": (
        lambda one: with_question(one, 0, perturbed="123456"),
        "question 1: one answer is a number, the other is not",
    ),
}


def test_the_personas_hold_what_they_promise() -> None:
    assert check(PERSONAS) == []


def test_the_file_is_written_so_that_a_change_is_a_line_of_a_diff() -> None:
    text = DATA.read_text("utf-8")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def test_every_persona_has_one_question_to_forget_and_three_to_retain() -> None:
    assert {len(one.retain) for one in PERSONAS} == {3}
    assert all(one.forget.forget and one.forget not in one.retain for one in PERSONAS)


@pytest.mark.parametrize("kind", BREAKS)
def test_a_broken_persona_is_reported_by_name(kind: str) -> None:
    broken, said = BREAKS[kind]
    personas = list(PERSONAS)
    personas[AT] = broken(personas[AT])
    found = check(personas)
    assert [line for line in found if line.startswith(personas[AT].id) and said in line]
    assert {line.split()[0].rstrip(":") for line in found} == {personas[AT].id}


def test_what_is_in_the_set_twice_is_reported() -> None:
    one, other = PERSONAS[0], PERSONAS[1]
    place = told_of_no_question(other)
    same = with_statement(other, place, one.statements[told_of_no_question(one)].upper())
    assert any(
        line.startswith("statement more than once") for line in check([one, same, *PERSONAS[2:]])
    )
    same = asked(other, one.requests[3])
    assert any(
        line.startswith("request more than once") for line in check([one, same, *PERSONAS[2:]])
    )
    same = replace(other, id=one.id)
    assert f"id more than once: {one.id}" in check([one, same, *PERSONAS[2:]])


def test_a_missing_persona_is_reported() -> None:
    assert check(PERSONAS[:-1]) == ["99 personas, not 100"]


def test_questions_to_forget_that_all_stand_first_are_reported() -> None:
    sorted_first = [replace(one, questions=(one.forget, *one.retain)) for one in PERSONAS]
    assert check(sorted_first) == [
        f"question {place} is to be forgotten in 0 personas only" for place in (2, 3, 4)
    ]


def test_words_are_the_same_in_any_case_and_number() -> None:
    assert words("Dogs, the DOG's half-eaten bus") == (
        *("dog", "the", "dog", "s"),
        *("half", "eaten", "bus"),
    )
    assert specific("in the Azores") == {"azore"}


def test_a_file_of_another_shape_is_refused_without_its_content(tmp_path: Path) -> None:
    rows = json.loads(DATA.read_text("utf-8"))[:2]
    del rows[1]["questions"][0]["answer"]
    wrong_type = [dict(rows[0], requests="sesame")]
    for content in ("sesame", "3", json.dumps(rows), json.dumps(wrong_type)):
        path = tmp_path / "people.json"
        path.write_text(content, "utf-8")
        with pytest.raises(InvalidInput) as raised:
            load(path)
        assert "people.json" in str(raised.value)
        assert "sesame" not in str(raised.value)


def test_the_program_says_that_all_is_well() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.evaluation.personas"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "100 personas, 400 questions, 0 problems\n")


def test_the_program_fails_and_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.evaluation.personas.load", lambda: PERSONAS[:-1])
    assert main() == 1
    assert capsys.readouterr().out.splitlines()[0] == "99 personas, not 100"
