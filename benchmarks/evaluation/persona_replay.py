"""A persona talks with a system: it tells everything, is asked, has one statement forgotten, is asked.

Statements and requests are told, so that their replies are part of the conversation. The questions
are probes: nothing of them stays, so that those asked before cannot answer those asked after.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .judging import Answered
from .personas import Persona, Question
from .systems import Make, System


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers to a persona's questions: about the fact that is to go, and about the others."""

    forget: Answered
    retain: tuple[Answered, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a system answered before and after it was asked to forget a persona's statement.

    `held` is how many messages it held before, `gone` how many of them it holds no longer, `left`
    the texts of all that it holds after, with what the request itself added.
    """

    before: Asked
    after: Asked
    held: int
    gone: int
    left: tuple[str, ...]


def replay(make: Make, persona: Persona) -> Replayed:
    """Have a persona talk with a system of its own, which is closed afterwards."""
    system = make()
    try:
        for text in (*persona.statements, *persona.requests):
            system.tell(text)
        before, held = asked(system, persona), system.held()
        system.forget(persona.forget.fact)
        left = system.held()
        gone = (Counter(held) - Counter(left)).total()
        return Replayed(before, asked(system, persona), len(held), gone, tuple(left))
    finally:
        system.close()


def asked(system: System, persona: Persona) -> Asked:
    """Ask a system a persona's questions; nothing of them stays."""
    return Asked(
        forget=answered(system, persona.forget),
        retain=tuple(answered(system, one) for one in persona.retain),
    )


def answered(system: System, question: Question) -> Answered:
    """Ask one question; its wrong answer is the distractor."""
    return Answered(
        question=question.question,
        gold=question.answer,
        distractors=(question.perturbed,),
        answer=system.ask(question.question),
    )
