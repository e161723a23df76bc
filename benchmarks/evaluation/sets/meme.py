"""MEME: episodes whose facts are changed and deleted, asked before and after.

Source: Jung et al. 2026 (arXiv:2605.12477), data meme-benchmark/MEME (CC BY 4.0): a JSON list of 100
episodes in each of meme_nofiller.json, meme_filler32k.json and meme_filler128k.json. An episode has
`sessions` ([{`timestamp`, `evidence_type`, `conversation`: [{`role`, `content`}]}]), and
`before_questions` and `after_questions` ({`position_after_session`, `questions`}). The page of the
paper has one episode in a shape of its own (sw_033.json, filler sessions as user turns only); that is
read, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dellm.errors import InvalidInput

from .reading import Row, counted, existing, json_of, rows_of, shape_of, texts, typed

OFFICIAL = 100
VARIANTS = ("nofiller", "filler32k", "filler128k")
TASKS = {
    "ER": "exact recall",
    "Agg": "aggregation",
    "Tr": "tracking",
    "Del": "deletion",
    "Cas": "cascade",
    "Abs": "absence",
}
_LONG = {
    "Exact": "ER",
    "Multi-hop": "Agg",
    "Multiple-update": "Tr",
    "Deletion": "Del",
    "Cascade-D": "Cas",
    "Cascade-U": "Abs",
}


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of role "user" or "assistant"."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    """One chat; `evidence` says what it is for, and is None for a filler. `place` counts from 0."""

    place: int
    timestamp: str | None
    evidence: str | None
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a task (a key of `TASKS`) with its gold answer and the values it is about."""

    task: str
    question: str
    answer: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Episode:
    """The sessions in order; `before` is asked after session `before_at`, `after` after `after_at`."""

    id: str
    domain: str
    sessions: tuple[Session, ...]
    before: tuple[Question, ...]
    before_at: int
    after: tuple[Question, ...]
    after_at: int

    @property
    def scored(self) -> tuple[Question, ...]:
        """The questions of `after` that count only where the one of `before` was right.

        They are those of deletion, cascade and absence.
        """
        return tuple(one for one in self.after if one.task in ("Del", "Cas", "Abs"))


def load(folder: Path, variant: str = "filler32k", official: int = OFFICIAL) -> tuple[Episode, ...]:
    """Return the episodes of meme_VARIANT.json in a folder, in order.

    Raises InvalidInput for another variant, if the file is missing or has another shape, or if
    the count of episodes is not `official`.
    """
    if variant not in VARIANTS:
        raise InvalidInput(f"MEME comes in these variants: {', '.join(VARIANTS)}.")
    made = rows_of(existing(folder, f"meme_{variant}.json"), _episode)
    counted("episodes", len(made), official)
    return made


def load_page(folder: Path, name: str = "sw_033.json") -> Episode:
    """Return the one episode that the page of the paper shows, from its own shape.

    Its filler sessions have the user's turns only. Raises InvalidInput if the file is missing or
    has another shape.
    """
    row = json_of(existing(folder, name))
    with shape_of(f"the page of MEME ({name})"):
        about = typed(row["episode"], dict)
        sessions = sorted(_page_sessions(row), key=lambda session: session.place)
        counted("sessions", len(sessions), typed(about["total_sessions"], int))
        return Episode(
            id=typed(about["tag"], str),
            domain=typed(about["domain"], str),
            sessions=tuple(sessions),
            before=_questions(row["before_questions"]),
            before_at=typed(about["probe_before_idx"], int),
            after=_questions(row["after_questions"]),
            after_at=typed(about["probe_after_idx"], int),
        )


def _page_sessions(row: Row) -> Iterator[Session]:
    for one in typed(row["evidence_sessions"], list):
        yield _session(typed(one["idx"], int), one)
    for one in typed(row["filler_sessions_user_turns"], list):
        turns = tuple(Turn("user", text) for text in texts(one["user"]))
        yield Session(typed(one["idx"], int), None, None, turns)


def _episode(row: Row) -> Episode:
    before, after = typed(row["before_questions"], dict), typed(row["after_questions"], dict)
    sessions = enumerate(typed(row["sessions"], list))
    return Episode(
        id=str(row["episode_id"]),
        domain=typed(row["domain"], str),
        sessions=tuple(_session(place, one) for place, one in sessions),
        before=_questions(before["questions"]),
        before_at=typed(before["position_after_session"], int),
        after=_questions(after["questions"]),
        after_at=typed(after["position_after_session"], int),
    )


def _session(place: int, row: dict[str, Any]) -> Session:
    turns = tuple(_turn(turn) for turn in typed(row["conversation"], list))
    return Session(place, row.get("timestamp"), row.get("evidence_type"), turns)


def _turn(turn: dict[str, Any]) -> Turn:
    if turn["role"] not in ("user", "assistant"):
        raise ValueError("role")
    return Turn(turn["role"], typed(turn["content"], str))


def _questions(rows: object) -> tuple[Question, ...]:
    return tuple(_question(row) for row in typed(rows, list))


def _question(row: dict[str, Any]) -> Question:
    answer = row["gold_answer"] if "gold_answer" in row else row["expected_answer"]
    return Question(
        task=_task(typed(row["task_type"], str)),
        question=typed(row["question"], str),
        answer=typed(answer, str),
        values=tuple(_values(typed(row.get("entity_values") or {}, dict))),
    )


def _task(name: str) -> str:
    if name in TASKS:
        return name
    return _LONG[name.partition(" (")[0]]  # "Cascade-D (1-hop)", "Deletion (before delete)"


def _values(by_entity: dict[str, Any]) -> Iterator[str]:
    for value in by_entity.values():
        yield from texts(value) if isinstance(value, list) else [str(value)]
