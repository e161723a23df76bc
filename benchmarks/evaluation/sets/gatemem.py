"""GateMem: long conversations of many people with one shared memory, and questions put to it.

Source: Ren et al. 2026, "GateMem" (arXiv:2606.18829), data github rzhub/GateMem `bench/data` (MIT;
on Hugging Face CC BY 4.0): DOMAIN_episodes.jsonl and DOMAIN_checkpoints.jsonl, plain or gzipped, and
leaderboard.json. What belongs to a checkpoint's `hidden` may be used for scoring only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dellm.errors import InvalidInput

from .reading import Row, counted, existing, grouped, json_of, rows_of, shape_of, texts, typed

# Episodes, turns and checkpoints of each domain.
OFFICIAL = {
    "medical": (21, 4_294, 579),
    "office": (17, 4_100, 547),
    "education": (30, 6_748, 540),
    "household": (23, 5_151, 552),
}
AGENT = "agent"  # the role of the turns that the assistant itself said
KINDS = {"utility": "utility", "privacy": "access", "safety": "forgetting"}
ACTIONS = frozenset({"answer", "answer_redacted", "refuse", "no_memory"})


@dataclass(frozen=True, slots=True)
class Turn:
    """What one person, or the assistant, says; `role` is theirs in the episode ("nurse")."""

    id: str
    speaker: str
    role: str
    text: str

    @property
    def by_agent(self) -> bool:
        """Whether the assistant said it."""
        return self.role == AGENT


@dataclass(frozen=True, slots=True)
class Hidden:
    """What only the scoring may see of a checkpoint.

    `kind` is utility, access or forgetting; `action` one of ACTIONS. `include` are the official
    patterns that a right answer holds, `targets` the strings that must not come back, and `attack`
    the way they are asked for, empty where there is none.
    """

    kind: str
    action: str
    include: tuple[str, ...]
    targets: tuple[str, ...]
    attack: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A question put after the turn with index `after` (from 0); it leaves nothing behind."""

    id: str
    after: int
    role: str
    question: str
    hidden: Hidden


@dataclass(frozen=True, slots=True)
class Episode:
    """One conversation in the order it was held, and its checkpoints in the order they are due."""

    id: str
    domain: str
    turns: tuple[Turn, ...]
    checkpoints: tuple[Checkpoint, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """A row of the leaderboard: utility, access violations and failures to forget, in per cent."""

    method: str
    backbone: str
    domain: str
    utility: float
    access: float
    forgetting: float
    score: float


def load(folder: Path) -> tuple[Episode, ...]:
    """Return the episodes of every domain whose files are there, domain by domain.

    Raises InvalidInput if there is none, or one has other counts or another shape than the official.
    """
    there = [one for one in OFFICIAL if list(folder.glob(f"{one}_episodes.jsonl*"))]
    if not there:
        raise InvalidInput(f"{folder.name}/ holds no episodes of GateMem.")
    return tuple(episode for domain in there for episode in _domain(folder, domain))


def _domain(folder: Path, domain: str) -> list[Episode]:
    episodes = rows_of(_file(folder, f"{domain}_episodes"), _episode)
    checkpoints = rows_of(_file(folder, f"{domain}_checkpoints"), _checkpoint)
    official = OFFICIAL[domain]
    counted(f"episodes of {domain}", len(episodes), official[0])
    counted(f"turns of {domain}", sum(len(one.turns) for one in episodes), official[1])
    counted(f"checkpoints of {domain}", len(checkpoints), official[2])
    of_episode = grouped((episode, (turn, one)) for episode, turn, one in checkpoints)
    return [_joined(one, of_episode.get(one.id, ())) for one in episodes]


def _file(folder: Path, name: str) -> Path:
    return existing(folder, f"{name}.jsonl", f"{name}.jsonl.gz")


def _joined(episode: Episode, asked: tuple[tuple[str, Checkpoint], ...]) -> Episode:
    """Return an episode with its checkpoints, each at the place of the turn it names."""
    places = {turn.id: place for place, turn in enumerate(episode.turns)}
    with shape_of("checkpoints that follow a turn of their episode"):
        placed = [
            Checkpoint(one.id, places[turn], one.role, one.question, one.hidden)
            for turn, one in asked
        ]
    placed.sort(key=lambda one: one.after)
    return Episode(episode.id, episode.domain, episode.turns, tuple(placed))


def _episode(row: Row) -> Episode:
    turns = tuple(_turn(typed(one, dict)) for one in typed(row["turns"], list))
    return Episode(typed(row["episode_id"], str), typed(row["domain"], str), turns, ())


def _turn(row: Row) -> Turn:
    speaker = typed(row["speaker"], dict)
    return Turn(
        id=typed(row["turn_id"], str),
        speaker=typed(speaker["principal_id"], str),
        role=typed(speaker["role"], str),
        text=typed(row["text"], str),
    )


def _checkpoint(row: Row) -> tuple[str, str, Checkpoint]:
    """Return the episode, the turn that it follows, and the checkpoint without its place."""
    spec: dict[str, Any] = typed(row["judge_spec"], dict)
    action = typed(row["expected_action"], str)
    if action not in ACTIONS:
        raise ValueError("action")
    hidden = Hidden(
        kind=KINDS[typed(row["query_type"], str)],
        action=action,
        include=texts(spec.get("include") or []),
        targets=texts(row.get("leak_targets") or []),
        attack=typed(row.get("attack_type") or "", str),
    )
    role = typed(typed(row["asker"], dict)["role"], str)
    made = Checkpoint(
        typed(row["checkpoint_id"], str), 0, role, typed(row["query_text"], str), hidden
    )
    return typed(row["episode_id"], str), typed(row["as_of_turn_id"], str), made


def leaderboard(folder: Path) -> tuple[Published, ...]:
    """Return the published rows; raise InvalidInput if the file is missing or has another shape."""
    rows = json_of(existing(folder, "leaderboard.json"))
    with shape_of("the leaderboard of GateMem"):
        return tuple(_published(typed(row, dict)) for row in typed(rows, list))


def _published(row: Row) -> Published:
    numbers = [float(row[name]) for name in ("u", "a", "f", "mgs")]
    names = [typed(row[name], str) for name in ("method", "backbone", "domain")]
    return Published(names[0], names[1], names[2].casefold(), *numbers)
