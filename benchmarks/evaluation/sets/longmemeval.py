"""LongMemEval: questions about one's own chats with an assistant, and the sessions they are about.

Source: Wu et al., ICLR 2025 (arXiv:2410.10813), data xiaowu0162/longmemeval (MIT): a JSON list of
500 in each of three files, oracle (only the sessions with evidence), S and M (among others).
Questions whose id ends in `_abs` have no answer in the sessions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dellm.errors import InvalidInput

from .reading import Row, counted, existing, grouped, rows_of, texts, typed

FILES = {
    "oracle": ("longmemeval_oracle.json",),
    "s": ("longmemeval_s_cleaned.json", "longmemeval_s.json", "longmemeval_s"),
    "m": ("longmemeval_m_cleaned.json", "longmemeval_m.json", "longmemeval_m"),
}
TYPES = {
    "single-session-user": 70,
    "single-session-assistant": 56,
    "single-session-preference": 30,
    "multi-session": 133,
    "temporal-reasoning": 133,
    "knowledge-update": 78,
}


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of role "user" or "assistant"; `evidence` says that it holds (part of) the answer."""

    role: str
    text: str
    evidence: bool


@dataclass(frozen=True, slots=True)
class Session:
    """One chat, with its id and its date as the file writes them."""

    id: str
    date: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the user asks at `date`, with its sessions in the order of the file.

    `evidence` are the ids of the sessions that hold the answer. `answer` is a text also where the
    file has a number.
    """

    id: str
    type: str
    question: str
    answer: str
    date: str
    sessions: tuple[Session, ...]
    evidence: tuple[str, ...]

    @property
    def abstention(self) -> bool:
        """Whether the right answer is that it was never said."""
        return self.id.endswith("_abs")


def load(folder: Path, size: str = "oracle", *, official: bool = True) -> tuple[Question, ...]:
    """Return the questions of the file of a size ("oracle", "s", "m") in a folder, in order.

    Raises InvalidInput for another size, if the file is missing or has another shape, if a
    question names a session that is not there, or, where `official`, if there are not as many of
    each type as `TYPES` says.
    """
    if size not in FILES:
        raise InvalidInput(f"LongMemEval comes in these sizes: {', '.join(FILES)}.")
    made = rows_of(existing(folder, *FILES[size]), _question)
    counted("different ids of questions", len({one.id for one in made}), len(made))
    if official:
        counted("questions", len(made), sum(TYPES.values()))
        found = Counter(one.type for one in made)
        for name, count in TYPES.items():
            counted(f"questions of type {name}", found[name], count)
    return made


def by_type(questions: tuple[Question, ...]) -> dict[str, tuple[Question, ...]]:
    """Return the questions of each type."""
    return grouped((one.type, one) for one in questions)


def _question(row: Row) -> Question:
    kind, answer = typed(row["question_type"], str), row["answer"]
    if kind not in TYPES or not isinstance(answer, str | int | float):
        raise TypeError("question")
    sessions = tuple(
        _session(*parts)
        for parts in zip(
            texts(row["haystack_session_ids"]),
            texts(row["haystack_dates"]),
            typed(row["haystack_sessions"], list),
            strict=True,
        )
    )
    evidence = texts(row["answer_session_ids"])
    counted(
        "sessions with the answer",
        len({s.id for s in sessions} & set(evidence)),
        len(set(evidence)),
    )
    return Question(
        id=typed(row["question_id"], str),
        type=kind,
        question=typed(row["question"], str),
        answer=str(answer),
        date=typed(row["question_date"], str),
        sessions=sessions,
        evidence=evidence,
    )


def _session(name: str, date: str, said: list[dict[str, Any]]) -> Session:
    return Session(name, date, tuple(_turn(turn) for turn in typed(said, list)))


def _turn(turn: dict[str, Any]) -> Turn:
    if turn["role"] not in ("user", "assistant"):
        raise ValueError("role")
    return Turn(turn["role"], typed(turn["content"], str), bool(turn.get("has_answer", False)))
