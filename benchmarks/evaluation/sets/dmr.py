"""DMR (deep memory retrieval): MSC conversations of five sessions, with one question each.

Source: Packer et al. 2023, "MemGPT" (arXiv:2310.08560), data MemGPT/MSC-Self-Instruct (Apache-2.0),
file msc_self_instruct.jsonl: 500 rows. A row has the four earlier sessions in `previous_dialogs`
(turns with a text only: the speakers alternate and Speaker 1 begins), the fifth in `dialog`, and in
`self_instruct` the question that B asks and the answer that A, the agent, gives. A is Speaker 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .reading import Row, counted, existing, rows_of, texts, typed

OFFICIAL = 500
PAPER = 100  # the first so many conversations are those of the DeLLM paper
SPEAKERS = ("Speaker 1", "Speaker 2")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker said: `session` counts from 1, `speaker` is 0 (A, the agent) or 1 (B)."""

    session: int
    speaker: int
    text: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation of several sessions, and the question that B asks A after it.

    `number` counts the rows from 0. `personas` are the statements that each speaker was given.
    """

    number: int
    turns: tuple[Turn, ...]
    question: str
    answer: str
    personas: tuple[tuple[str, ...], ...]


def load(folder: Path, official: int = OFFICIAL) -> tuple[Dialogue, ...]:
    """Return the conversations of msc_self_instruct.jsonl (or .json) in a folder, in order.

    Raises InvalidInput if the file is missing, a row has another shape, or the count of rows is
    not `official`.
    """
    path = existing(folder, "msc_self_instruct.jsonl", "msc_self_instruct.json")
    made = tuple(Dialogue(number, *parts) for number, parts in enumerate(rows_of(path, _parts)))
    counted(f"rows of {path.name}", len(made), official)
    return made


def _parts(row: Row) -> tuple[tuple[Turn, ...], str, str, tuple[tuple[str, ...], ...]]:
    earlier = [typed(one, dict)["dialog"] for one in typed(row["previous_dialogs"], list)]
    asked = typed(row["self_instruct"], dict)
    turns = [
        _turn(session, place, turn)
        for session, dialog in enumerate([*earlier, row["dialog"]], 1)
        for place, turn in enumerate(typed(dialog, list))
    ]
    personas = tuple(texts(one) for one in typed(row["personas"], list))
    return tuple(turns), typed(asked["B"], str), typed(asked["A"], str), personas


def _turn(session: int, place: int, turn: Row) -> Turn:
    said_by = turn.get("id")
    speaker = place % 2 if said_by is None else SPEAKERS.index(said_by)
    return Turn(session, speaker, typed(turn["text"], str))
