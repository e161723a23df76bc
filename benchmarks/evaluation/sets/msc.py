"""MSC, sessions 1 to 4, with the fact that a turn discloses: the first 100 conversations of VALID.

Source: Xu, Szlam and Weston, ACL 2022 (2022.acl-long.356), released through ParlAI. The file is a
reduced one, a conversation a line: `id`, `personas_session1`, `sessions`: [{`session`, `turns`:
[{`s`: 0 or 1, `text`, `persona`: the fact, where the turn discloses one}], `time_back`}].
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.evaluation.personas import specific

from .reading import Row, counted, existing, rows_of, texts, typed

FILE = "msc_valid_sessions1-4_first100.jsonl"
CONVERSATIONS, TURNS, ANNOTATED, SESSIONS = 100, 5_105, 3_286, 4
SAME = 0.6  # share of the telling words of two facts, from which on they are one

_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class Turn:
    """What speaker 0 or 1 said, with the fact that it discloses of them, or None.

    `session` counts from 1, `place` from 0 through the whole conversation.
    """

    session: int
    place: int
    speaker: int
    text: str
    fact: str | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """Four sessions of two people; `personas` are what each was given to say in the first."""

    id: str
    turns: tuple[Turn, ...]
    personas: tuple[tuple[str, ...], ...]

    @property
    def disclosing(self) -> tuple[Turn, ...]:
        """The turns that disclose a fact, in order."""
        return tuple(turn for turn in self.turns if turn.fact is not None)

    def same_fact(self, turn: Turn) -> tuple[Turn, ...]:
        """Return every turn, this one included, that discloses a fact of this one again.

        Two facts of one speaker are the same where one sentence of each shares SAME of its telling
        words with the other (Jaccard; words as in `personas.words`). The rule is ours: the data do
        not say it. Empty for a turn that discloses nothing.
        """
        mine = list(_told(turn))
        return tuple(
            other
            for other in self.disclosing
            if other.speaker == turn.speaker
            and any(_alike(one, two) for one in mine for two in _told(other))
        )


def load(folder: Path, *, official: bool = True) -> tuple[Conversation, ...]:
    """Return the conversations of a folder, in order.

    Raises InvalidInput if the file is missing or has another shape, if two ids are one, or, where
    `official`, if there are not 100 conversations of 4 sessions with 5,105 turns, of which 3,286
    disclose a fact.
    """
    made = rows_of(existing(folder, FILE), _conversation)
    counted("different ids of conversations", len({one.id for one in made}), len(made))
    if official:
        turns = [turn for one in made for turn in one.turns]
        counted("conversations", len(made), CONVERSATIONS)
        counted("turns", len(turns), TURNS)
        counted("turns with a fact", sum(turn.fact is not None for turn in turns), ANNOTATED)
        sessions = {(one.id, turn.session) for one in made for turn in one.turns}
        counted("sessions", len(sessions), CONVERSATIONS * SESSIONS)
    return made


def _conversation(row: Row) -> Conversation:
    said = [
        (typed(session["session"], int), typed(turn, dict))
        for session in typed(row["sessions"], list)
        for turn in typed(session["turns"], list)
    ]
    return Conversation(
        id=typed(row["id"], str),
        turns=tuple(_turn(session, place, turn) for place, (session, turn) in enumerate(said)),
        personas=tuple(texts(one) for one in typed(row["personas_session1"], list)),
    )


def _turn(session: int, place: int, turn: dict[str, Any]) -> Turn:
    fact = turn.get("persona")
    return Turn(
        session=session,
        place=place,
        speaker=(0, 1).index(typed(turn["s"], int)),
        text=typed(turn["text"], str),
        fact=None if fact is None else typed(fact, str),
    )


def _told(turn: Turn) -> Iterator[frozenset[str]]:
    for sentence in _SENTENCE.split(turn.fact or ""):
        if told := frozenset(specific(sentence)):
            yield told


def _alike(one: frozenset[str], two: frozenset[str]) -> bool:
    return len(one & two) >= SAME * len(one | two)
