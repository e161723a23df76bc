"""A conversation of LoCoMo in our memory, with what was made from its turns.

Everything is counted on masks: one bool for each record, in the order in which they were put in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dellm import Memory
from dellm.embedding import Embedder
from dellm.records import Draft, Record

from .evidence import summary
from .personas import specific, words
from .running import Run
from .sets import locomo
from .sets.locomo import Conversation, Question
from .stating import tells

THREAD = "main"
REMADE = "extract"  # the rebuilder's name
LENGTH = 650  # characters of a summary that is made anew, the mean of the data's own
SMALL_QUESTIONS = 8
KINDS = ("turns", "observations", "summaries")

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a way does: which records go (bool, one for each record), and new texts in their place."""

    gone: Mask
    remade: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Held:
    """A conversation in a memory. Arrays have one column for each record, in the order put in.

    `kinds` says for each whether it is a turn, observation or summary. `questions` are those whose
    evidence is there. `wanted` are the telling words of their answers, none where nobody can see
    whether a text states it; `foreign` as many of answers about another conversation.
    """

    memory: Memory
    embedder: Embedder
    conversation: Conversation
    questions: Sequence[Question]
    wanted: Sequence[frozenset[str]]
    foreign: Sequence[frozenset[str]]
    records: Sequence[Record]
    kinds: NDArray[np.str_]
    made_of: Mask  # (records, records): row made from column; every turn of itself

    @cached_property
    def column(self) -> dict[int, int]:
        """The column of each record id."""
        return {one.id: at for at, one in enumerate(self.records)}

    @cached_property
    def turns(self) -> dict[str, int]:
        """The column of each turn by its id in the data."""
        return {one.id: at for at, one in enumerate(self.conversation.turns)}

    @cached_property
    def evidence(self) -> Mask:
        """(questions, records): which turns answer a question."""
        made = np.zeros((len(self.questions), len(self.records)), bool)
        for row, one in enumerate(self.questions):
            made[row, [self.turns[turn] for turn in one.evidence]] = True
        return made

    @cached_property
    def made_from(self) -> Mask:
        """(questions, records): which records were made from a question's evidence, or are it."""
        return (self.evidence.astype(np.int32) @ self.made_of.T.astype(np.int32)) > 0

    @cached_property
    def stating(self) -> Mask:
        """(questions, records): which records state its answer."""
        return self._stating(self.wanted)

    @cached_property
    def stating_foreign(self) -> Mask:
        """(questions, records): which records state, by chance, the answer in its place."""
        return self._stating(self.foreign)

    def _stating(self, wanted: Sequence[frozenset[str]]) -> Mask:
        said = [frozenset(words(one.text)) for one in self.records]
        return np.array([[tells(text, some) for text in said] for some in wanted], bool)

    @cached_property
    def answerable(self) -> Mask:
        """(questions,): whether a text can be seen to state its answer."""
        return np.array([bool(one) for one in self.wanted], bool)

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(records, dimensions): what each means, of length 1."""
        made = self.embedder.embed([one.text for one in self.records])
        unit: NDArray[np.float32] = made / np.linalg.norm(made, axis=1, keepdims=True)
        return unit

    def ids_of(self, row: int) -> list[int]:
        """Return the ids of a question's evidence."""
        return [self.records[at].id for at in places(self.evidence[row])]

    def mask(self, ids: Sequence[int]) -> Mask:
        """Return the columns of ids as a mask."""
        made = np.zeros(len(self.records), bool)
        made[[self.column[one] for one in ids]] = True
        return made


def places(mask: Mask) -> list[int]:
    """Return where a mask is true."""
    return [int(at) for at in np.flatnonzero(mask)]


def answers(questions: Sequence[Question]) -> list[frozenset[str]]:
    """Return the telling words of each answer; none of an adversarial question, which has no answer."""
    return [
        frozenset() if one.adversarial else frozenset(specific(one.answer)) for one in questions
    ]


def exchanged(wanted: Sequence[frozenset[str]], other: Conversation) -> list[frozenset[str]]:
    """Return as many answers about another conversation, none where there is none to exchange."""
    pool = [one for one in answers(other.questions) if one]
    return [pool[at % len(pool)] if one else one for at, one in enumerate(wanted)]


def remade(texts: Sequence[str]) -> str:
    """Return a summary of texts, made of their own sentences."""
    return summary(texts, LENGTH)


def sources(held: Held, at: int, without: Mask) -> list[str]:
    """Return the texts that a derived record is made from, without some records."""
    return [held.records[one].text for one in places(held.made_of[at] & ~without)]


def loaded(
    memory: Memory, conversation: Conversation, other: Conversation, run: Run, embedder: Embedder
) -> Held:
    """Put a conversation in: turns, then observations and summaries with the turns they are made from.

    `other` is the conversation whose answers are looked for by chance.
    """
    memory.rebuilder(REMADE, lambda _record, found: remade([one.text for one in found]))
    turns = memory.remember_many([Draft(said(turn), thread=THREAD) for turn in conversation.turns])
    at = {turn.id: place for place, turn in enumerate(conversation.turns)}
    derived = [*conversation.observations, *conversation.summaries]
    made = [
        memory.record(
            one.text,
            context=[turns[at[source]].id for source in one.sources],
            kind="summary",
            metadata={"rebuild": REMADE},
        )
        for one in derived
    ]
    memory.index()
    made_of = np.zeros((len(turns) + len(made),) * 2, bool)
    np.fill_diagonal(made_of[: len(turns), : len(turns)], val=True)
    for place, one in enumerate(derived, len(turns)):
        made_of[place, [at[source] for source in one.sources]] = True
    questions = asked(conversation, run)
    counts = (len(turns), len(conversation.observations), len(conversation.summaries))
    return Held(
        memory=memory,
        embedder=embedder,
        conversation=conversation,
        questions=questions,
        wanted=answers(questions),
        foreign=exchanged(answers(questions), other),
        records=[*turns, *made],
        kinds=np.repeat(KINDS, counts),
        made_of=made_of,
    )


def said(turn: locomo.Turn) -> str:
    """Return a turn as it is remembered: who said what, and what the picture shows."""
    shown = f" [picture: {turn.caption}]" if turn.caption else ""
    return f"{turn.speaker}: {turn.text}{shown}"


def asked(conversation: Conversation, run: Run) -> list[Question]:
    """Return the questions whose evidence is there: all, or as many as a small run takes."""
    found = [one for one in conversation.questions if one.evidence]
    return found[:: max(len(found) // SMALL_QUESTIONS, 1)] if run.small else found
