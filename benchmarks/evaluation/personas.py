"""Persona Facts: people who do not exist, what they say of themselves, ask for, and can be asked.

The shape is that of the paper's section VI-C2 and appendix C: ten statements in the first person,
five requests that need some of them and name none, four questions, as the same person would put
them, of which one is about the fact that is to be forgotten. Beside each answer stands a wrong one
of the same kind, for ranking.

Run `python -m benchmarks.evaluation.personas` to check the data.

Licence: `data/personas.json` was written for this repository, each persona on its own and not from
templates, and is under the repository's licence (Apache-2.0). No line is from another data set, and
nobody in it is a real person.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from dellm.errors import InvalidInput

DATA = Path(__file__).parent / "data" / "personas.json"
PERSONAS = 100
STATEMENTS = 10
REQUESTS = 5
QUESTIONS = 4
ANSWER_WORDS = 5  # most words of an answer

_WORD = re.compile(r"[^\W_]+")
# Words an answer may share with anything: they tell nothing.
_EMPTY = frozenset(
    _WORD.findall("a an and as at by for from her his i in is it my of on or our s the to with")
)
_SELF = frozenset(_WORD.findall("i me mine my myself we us our ours ourselves"))

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a persona, the answer, the statement that holds it, and a wrong answer.

    `fact` is one of the persona's statements, verbatim. `forget` says that this is the fact which
    the user later asks to be forgotten; it holds for one question of a persona.
    """

    question: str
    answer: str
    fact: str
    perturbed: str
    forget: bool


@dataclass(frozen=True, slots=True)
class Persona:
    """One person: statements in the order they are told, requests, and questions."""

    id: str
    statements: tuple[str, ...]
    requests: tuple[str, ...]
    questions: tuple[Question, ...]

    @property
    def forget(self) -> Question:
        """The question whose fact is to be forgotten.

        Raises StopIteration if there is none, which `check` reports.
        """
        return next(one for one in self.questions if one.forget)

    @property
    def retain(self) -> tuple[Question, ...]:
        """The questions whose facts stay, in order."""
        return tuple(one for one in self.questions if not one.forget)


def load(path: Path = DATA) -> tuple[Persona, ...]:
    """Return the personas of a file, in its order, without judging them (see `check`).

    Raises InvalidInput if the file is not JSON of the expected keys and types.
    """
    try:
        rows = json.loads(path.read_text("utf-8"))
        return tuple(_persona(row) for row in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path.name} does not have the shape of personas") from error


def _persona(row: dict[str, Any]) -> Persona:
    return Persona(
        id=_typed(row["id"], str),
        statements=tuple(_typed(one, str) for one in _typed(row["statements"], list)),
        requests=tuple(_typed(one, str) for one in _typed(row["requests"], list)),
        questions=tuple(_question(one) for one in _typed(row["questions"], list)),
    )


def _question(row: dict[str, Any]) -> Question:
    return Question(
        question=_typed(row["question"], str),
        answer=_typed(row["answer"], str),
        fact=_typed(row["fact"], str),
        perturbed=_typed(row["perturbed"], str),
        forget=_typed(row["forget"], bool),
    )


def _typed(value: object, kind: type[Value]) -> Value:
    if not isinstance(value, kind):
        raise TypeError(kind.__name__)
    return value


@lru_cache(maxsize=4096)  # the check asks for every text many times
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in order, case-folded; one final s of longer words is left off.

    So a request about "dogs" names the answer "dog".
    """
    found = (one.casefold() for one in _WORD.findall(text))
    return tuple(one.removesuffix("s") if len(one) > 3 else one for one in found)


def specific(answer: str) -> set[str]:
    """Return the words of an answer that tell something, as `words` writes them."""
    return {one for one in words(answer) if one not in _EMPTY}


def check(personas: Sequence[Persona]) -> list[str]:
    """Return what is wrong with the whole set, one line each; nothing if it is as it says."""
    return [*_set_problems(personas), *(line for one in personas for line in _problems(one))]


def _set_problems(personas: Sequence[Persona]) -> Iterator[str]:
    if len(personas) != PERSONAS:
        yield f"{len(personas)} personas, not {PERSONAS}"
    texts = {
        "id": [one.id for one in personas],
        "statement": [text for one in personas for text in one.statements],
        "request": [text for one in personas for text in one.requests],
    }
    for kind, several in texts.items():
        for text in _repeated(several):
            yield f"{kind} more than once: {text}"
    places = Counter(at for one in personas for at, q in enumerate(one.questions) if q.forget)
    for place in range(QUESTIONS):
        if places[place] < len(personas) // (2 * QUESTIONS):
            yield f"question {place + 1} is to be forgotten in {places[place]} personas only"


def _repeated(texts: Iterable[str]) -> list[str]:
    counted = Counter(" ".join(words(text)) for text in texts)
    return [text for text, times in counted.items() if times > 1]


def _problems(persona: Persona) -> Iterator[str]:
    for kind, several, count in (
        ("statements", persona.statements, STATEMENTS),
        ("requests", persona.requests, REQUESTS),
        ("questions", persona.questions, QUESTIONS),
    ):
        if len(several) != count:
            yield f"{persona.id}: {len(several)} {kind}, not {count}"
    for text in (*persona.statements, *(one.question for one in persona.questions)):
        if not _SELF & set(_WORD.findall(text.casefold())):
            yield f"{persona.id}: not in the first person: {text}"
    forgets = sum(one.forget for one in persona.questions)
    if forgets != 1:
        yield f"{persona.id}: {forgets} questions to be forgotten, not 1"
    if _repeated(one.fact for one in persona.questions):
        yield f"{persona.id}: two questions about one fact"
    for at, question in enumerate(persona.questions, 1):
        for line in (*_answer_problems(persona, question), *_perturbed_problems(persona, question)):
            yield f"{persona.id} question {at}: {line}"


def _answer_problems(persona: Persona, question: Question) -> Iterator[str]:
    wanted = specific(question.answer)
    if not 1 <= len(question.answer.split()) <= ANSWER_WORDS or not wanted:
        yield f"the answer is not 1 to {ANSWER_WORDS} telling words"
    if question.fact not in persona.statements:
        yield "the fact is not a statement"
    if not _stands_in(question.answer, question.fact):
        yield "the answer does not stand in the fact"
    for text in persona.statements:
        if text != question.fact and (named := wanted & set(words(text))):
            yield f"another statement names {_listed(named)}"
    for text in persona.requests:
        if named := wanted & set(words(text)):
            yield f"a request names {_listed(named)}"
    for one in persona.questions:
        if named := wanted & set(words(one.question)):
            yield f"{'its own' if one == question else 'another'} question names {_listed(named)}"


def _perturbed_problems(persona: Persona, question: Question) -> Iterator[str]:
    wrong = specific(question.perturbed)
    if not 1 <= len(question.perturbed.split()) <= ANSWER_WORDS or not wrong:
        yield f"the wrong answer is not 1 to {ANSWER_WORDS} telling words"
    if question.perturbed.isdigit() != question.answer.isdigit():
        yield "one answer is a number, the other is not"
    said = [*persona.statements, *persona.requests, *(one.question for one in persona.questions)]
    if named := wrong & {word for text in said for word in words(text)}:
        yield f"the wrong answer is said: {_listed(named)}"


def _stands_in(answer: str, fact: str) -> bool:
    """Tell whether the words of an answer stand in a fact, in order and one after the other."""
    inner, outer = _WORD.findall(answer.casefold()), _WORD.findall(fact.casefold())
    return any(outer[at : at + len(inner)] == inner for at in range(len(outer)))


def _listed(named: set[str]) -> str:
    return ", ".join(sorted(named))


def main() -> int:
    """Print what is wrong with the data, or its counts; return 1 if anything is wrong."""
    personas = load()
    problems = check(personas)
    for line in problems:
        print(line)
    questions = sum(len(one.questions) for one in personas)
    print(f"{len(personas)} personas, {questions} questions, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
