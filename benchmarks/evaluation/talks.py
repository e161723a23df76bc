"""Conversations that are over, and questions about them: what DMR, LongMemEval and MSC have in common.

Each system is given a whole conversation, is asked the questions, and, where it is known which
messages say the answer, is told to forget those and is asked again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dellm.errors import InvalidInput

from .personas import specific, words
from .sets import dmr, longmemeval, msc
from .systems import Said

DISTRACTORS = 5
USER = 1  # the speaker of MSC and DMR who is the user; the other, who begins, is the assistant
ROLES = ("assistant", "user")
ASKED = 'What did I tell you here: "{}"?'

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about a conversation, its answer, and wrong ones of the same kind (or none).

    `kind` groups the probes of a report. `told` are the messages of the user that say the answer,
    verbatim; empty where the data do not say which.
    """

    question: str
    answer: str
    kind: str
    distractors: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation, oldest message first, and what is asked about it afterwards."""

    id: str
    said: tuple[Said, ...]
    probes: tuple[Probe, ...]


def talks_of_dmr(dialogues: Sequence[dmr.Dialogue]) -> list[Talk]:
    """Return the conversations of DMR with their one question each, as B, the user, asks it."""
    return [
        Talk(
            id=str(one.number),
            said=tuple(Said(ROLES[turn.speaker], turn.text) for turn in one.turns),
            probes=(Probe(one.question, one.answer, "DMR"),),
        )
        for one in dialogues
    ]


def talks_of_longmemeval(questions: Sequence[longmemeval.Question]) -> list[Talk]:
    """Return each question of LongMemEval with all its sessions as one conversation.

    What is asked says its date, and each message the date of its session, as the paper's readers
    are told. Questions without an answer are their own kind.
    """
    return [
        Talk(
            id=one.id,
            said=tuple(
                Said(turn.role, f"[{session.date}] {turn.text}")
                for session in one.sessions
                for turn in session.turns
                if turn.text.strip()
            ),
            probes=(
                Probe(
                    f"[{one.date}] {one.question}",
                    one.answer,
                    "abstention" if one.abstention else one.type,
                ),
            ),
        )
        for one in questions
    ]


def talks_of_msc(
    conversations: Sequence[msc.Conversation], most: int = 3, seed: int = 0
) -> list[Talk]:
    """Return the conversations of MSC with up to `most` probes each, made by rule. Not DMR.

    A probe is a sentence of a fact that the user disclosed, with its last telling word left out;
    that word is the answer. It is taken where the word stands in the message and in no message that
    does not disclose the same fact, where two more words of four letters tell which sentence it
    is, and where no other fact of the user has all of those. So an answer that is right after all
    messages of the fact are gone was guessed, or was kept. The wrong answers are those of probes of
    other conversations. `seed` draws the probes and the wrong answers.

    Raises InvalidInput if no conversation has a probe.
    """
    draw = random.Random(seed)
    made = []
    for one in conversations:
        found = list(_clozes(one))
        draw.shuffle(found)
        said = tuple(Said(ROLES[turn.speaker], turn.text) for turn in one.turns)
        made.append(Talk(one.id, said, tuple(_apart(found, most))))
    pool = sorted({probe.answer for talk in made for probe in talk.probes})
    if not pool:
        raise InvalidInput("No conversation has a fact that can be asked for.")
    return [_with_distractors(talk, pool, draw) for talk in made if talk.probes]


def _apart(found: list[Probe], most: int) -> list[Probe]:
    """Return the first probes of which no two share a message: one is forgotten after another."""
    taken: list[Probe] = []
    for probe in found:
        if len(taken) < most and all(set(probe.told).isdisjoint(one.told) for one in taken):
            taken.append(probe)
    return taken


def _with_distractors(talk: Talk, pool: Sequence[str], draw: random.Random) -> Talk:
    spoken = {word for one in talk.said for word in words(one.text)}
    others = [answer for answer in pool if spoken.isdisjoint(words(answer))]
    return replace(
        talk,
        probes=tuple(
            replace(probe, distractors=tuple(draw.sample(others, min(DISTRACTORS, len(others)))))
            for probe in talk.probes
        ),
    )


def _clozes(conversation: msc.Conversation) -> Iterator[Probe]:
    every = [
        (turn, sentence)
        for turn in conversation.disclosing
        if turn.speaker == USER
        for sentence in _SENTENCE.split(turn.fact or "")
    ]
    for turn, sentence in every:
        cut = _cut(sentence)
        if cut is None:
            continue
        shown, answer, rest = cut
        wanted = set(words(answer))
        told = [one for one in conversation.same_fact(turn) if wanted <= set(words(one.text))]
        if turn in told and _is_the_only(conversation, told, wanted, rest, [s for _, s in every]):
            yield Probe(
                question=ASKED.format(shown),
                answer=answer,
                kind="MSC",
                told=tuple(dict.fromkeys(one.text for one in told)),
            )


def _cut(sentence: str) -> tuple[str, str, set[str]] | None:
    """Leave the last telling word out; return what is shown, the word, and the telling rest."""
    found = [at for at in _WORD.finditer(sentence) if len(at[0]) > 2 and specific(at[0])]
    if not found:
        return None
    last = found[-1]
    shown = f"{sentence[: last.start()]}___{sentence[last.end() :]}"
    if set(words(last[0])) & set(words(ASKED.format(shown))):
        return None
    rest = {word for word in specific(shown) if len(word) > 3}
    return (shown, last[0], rest) if len(rest) > 1 else None


def _is_the_only(
    conversation: msc.Conversation,
    told: Sequence[msc.Turn],
    wanted: set[str],
    rest: set[str],
    sentences: Sequence[str],
) -> bool:
    """Tell whether only these turns say the answer, and only it can be what is left out."""
    elsewhere = (turn for turn in conversation.turns if turn not in told)
    if any(wanted & set(words(turn.text)) for turn in elsewhere):
        return False
    return all(wanted <= set(words(one)) for one in sentences if rest <= set(words(one)))
