"""LoCoMo: ten long conversations, questions with the turns that answer them, derived texts.

Source: Maharana et al., ACL 2024, github snap-research/locomo, data/locomo10.json (CC BY-NC 4.0: for
benchmarks only). Its ids of turns are "D<session>:<turn>". In some fields several stand in one string
("D8:6; D9:17"), one has a colon too many ("D:11:26"), one is only "D", and two questions
name a turn that is not there: `Question.evidence` holds the turns that are there, `unknown` counts the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .reading import counted, existing, json_of, shape_of, typed

FILE = "locomo10.json"
OFFICIAL = {
    "conversations": 10,
    "sessions": 272,
    "turns": 5_882,
    "questions": 1_986,
    "questions that name evidence": 1_982,
    "observations": 2_541,
    "summaries": 272,
}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

_ID = re.compile(r"D:?(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")
_OBSERVATION = re.compile(r"session_(\d+)_observation")
_SUMMARY = re.compile(r"session_(\d+)_summary")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one of the two people said; `caption` describes the picture that was sent, or is None."""

    id: str
    session: int
    speaker: str
    text: str
    caption: str | None


@dataclass(frozen=True, slots=True)
class Derived:
    """A text that a model made of turns: an observation of a speaker, or a session's summary.

    `sources` are the ids of its turns that are there: of a summary, all of its session. `speaker`
    is None for a summary.
    """

    text: str
    session: int
    speaker: str | None
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the ids of the turns that answer it, in their order, each once.

    `answer` is a text in every case (the file has numbers, too); of a question of category 5 it is
    the wrong answer that the question asks for, `adversarial`. `named` says that the file names
    evidence at all, `unknown` how many of the named turns are not there.
    """

    question: str
    answer: str
    category: int
    evidence: tuple[str, ...]
    named: bool
    unknown: int

    @property
    def adversarial(self) -> bool:
        """Whether the question has no answer in the conversation."""
        return self.category == 5


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation; `times` has the date and time of each session, as the file writes them."""

    id: str
    speakers: tuple[str, str]
    turns: tuple[Turn, ...]
    times: dict[int, str]
    observations: tuple[Derived, ...]
    summaries: tuple[Derived, ...]
    questions: tuple[Question, ...]


def load(folder: Path, *, official: bool = True) -> tuple[Conversation, ...]:
    """Return the conversations of locomo10.json in a folder, in order.

    Raises InvalidInput if the file is missing or has another shape, if two turns of a conversation
    have one id, or, where `official`, if a count is not that of `OFFICIAL`.
    """
    rows = json_of(existing(folder, FILE))
    with shape_of(f"LoCoMo ({FILE})"):
        made = tuple(_conversation(typed(row, dict)) for row in typed(rows, list))
    for name, found in counts(made).items():
        if official:
            counted(name, found, OFFICIAL[name])
    return made


def counts(conversations: Iterable[Conversation]) -> dict[str, int]:
    """Return how many there are of each kind that `OFFICIAL` counts."""
    every = list(conversations)
    return {
        "conversations": len(every),
        "sessions": sum(len({turn.session for turn in one.turns}) for one in every),
        "turns": sum(len(one.turns) for one in every),
        "questions": sum(len(one.questions) for one in every),
        "questions that name evidence": sum(q.named for one in every for q in one.questions),
        "observations": sum(len(one.observations) for one in every),
        "summaries": sum(len(one.summaries) for one in every),
    }


def ids(written: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of turns in the texts of a field, in order, each once, as the turns have them."""
    found = (_ID.finditer(text) for text in written)
    return tuple(dict.fromkeys(f"D{int(one[1])}:{int(one[2])}" for some in found for one in some))


def _conversation(row: dict[str, Any]) -> Conversation:
    talk = typed(row["conversation"], dict)
    turns = tuple(_turns(talk))
    known = {turn.id for turn in turns}
    counted("different ids of turns in a conversation", len(known), len(turns))
    return Conversation(
        id=typed(row["sample_id"], str),
        speakers=(typed(talk["speaker_a"], str), typed(talk["speaker_b"], str)),
        turns=turns,
        times={n: typed(talk[f"session_{n}_date_time"], str) for n, _ in _parts(talk, _SESSION)},
        observations=tuple(_observations(typed(row["observation"], dict), known)),
        summaries=tuple(_summaries(typed(row["session_summary"], dict), turns)),
        questions=tuple(_question(one, known) for one in typed(row["qa"], list)),
    )


def _parts(mapping: dict[str, Any], key: re.Pattern[str]) -> list[tuple[int, Any]]:
    """Return the values whose key names a session, in the order of the sessions."""
    found = ((key.fullmatch(name), value) for name, value in mapping.items())
    return sorted(((int(at[1]), value) for at, value in found if at), key=lambda part: part[0])


def _turns(talk: dict[str, Any]) -> Iterator[Turn]:
    for session, said in _parts(talk, _SESSION):
        for turn in typed(said, list):
            caption = turn.get("blip_caption")
            (name,) = ids([typed(turn["dia_id"], str)])
            yield Turn(
                id=name,
                session=session,
                speaker=typed(turn["speaker"], str),
                text=typed(turn["text"], str),
                caption=None if caption is None else typed(caption, str),
            )


def _only(row: dict[str, Any], key: re.Pattern[str]) -> list[tuple[int, Any]]:
    """Return the same; raise KeyError if a key names no session."""
    found = _parts(row, key)
    if len(found) != len(row):
        raise KeyError(key.pattern)
    return found


def _observations(row: dict[str, Any], known: set[str]) -> Iterator[Derived]:
    for session, by_speaker in _only(row, _OBSERVATION):
        for speaker, several in typed(by_speaker, dict).items():
            for text, named in several:
                sources = ids(named if isinstance(named, list) else [typed(named, str)])
                there = tuple(one for one in sources if one in known)
                yield Derived(typed(text, str), session, speaker, there)


def _summaries(row: dict[str, Any], turns: tuple[Turn, ...]) -> Iterator[Derived]:
    for session, text in _only(row, _SUMMARY):
        sources = tuple(turn.id for turn in turns if turn.session == session)
        yield Derived(typed(text, str), session, None, sources)


def _question(row: dict[str, Any], known: set[str]) -> Question:
    category = typed(row["category"], int)
    answer = row["adversarial_answer"] if category == 5 else row["answer"]
    if category not in CATEGORIES or not isinstance(answer, str | int | float):
        raise TypeError("question")
    written = typed(row.get("evidence", []), list)
    evidence = ids(written)
    there = tuple(one for one in evidence if one in known)
    return Question(
        question=typed(row["question"], str),
        answer=str(answer),
        category=category,
        evidence=there,
        named=bool(written),
        unknown=len(evidence) - len(there),
    )
