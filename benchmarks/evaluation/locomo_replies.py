"""LoCoMo with tracked contexts: how far a deletion should reach into replies.

Of the two people one is the user, and what the other says is taken for replies: each recorded with
the messages that were in its prompt, chosen as an assistant would choose them. The replies say
what the person said ("as said"), or also what the run's model answers from that context ("with the
model"), so that they can repeat what is forgotten. Half of the evidence of the questions stands in
replies. So a far reach loses evidence of other questions, and a short one leaves the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dellm import Memory
from dellm.embedding import Embedder
from dellm.models import Model
from dellm.plan import STRICT, Reach, depth, influence
from dellm.records import Record
from dellm.systems import asked as prompt

from .ablation import ALL, NONE
from .embedding_once import OnceEmbedded
from .evidence import Part, ratios
from .locomo import conversations, lost
from .locomo_held import THREAD, Deletion, Held, answers, asked, exchanged, said
from .results import Cell, Number, Report
from .running import Run
from .sets.locomo import Conversation

REACHES = (depth(0), depth(1), STRICT, influence(0.02), influence(0.1), influence(0.5))
EVERY = 3  # of the questions, one in so many is asked: a plan in a long history takes a while
GO_ON = "Go on."  # what a reply without a message before it answers
SMALL_REACHES = (depth(0), depth(1), STRICT, influence(0.5))


@dataclass(frozen=True, slots=True)
class Chat:
    """How the context of a reply is chosen: the `k` nearest above a cosine, and the `last` n."""

    name: str
    k: int
    last: int
    threshold: float = NONE


CHATS = (Chat("top 5", 5, 0), Chat("last 5", 0, 5), Chat("whole conversation", 0, ALL))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reach did for one question. Each is how many of how many.

    `taken`: of all records. `lost`: of the questions with other evidence, those that lose all of
    it. `told`: 1 of 1 where a reply that is left, and was made from the evidence, states the answer.
    """

    taken: Part
    lost: Part
    told: Part
    told_by_chance: Part


@dataclass(frozen=True, slots=True)
class Voice:
    """What replies say: what the person said, and what the `model` answers, if there is one."""

    chat: Chat
    model: Model | None


def replayed(
    memory: Memory, pair: tuple[Conversation, Conversation], run: Run, voice: Voice
) -> Held:
    """Put the first conversation in, the second person's turns as replies with tracked contexts."""
    conversation, other = pair
    records = list(_replayed(memory, conversation, voice))
    memory.index()
    questions = asked(conversation, run)
    return Held(
        memory=memory,
        embedder=run.embedder,
        conversation=conversation,
        questions=questions,
        wanted=answers(questions),
        foreign=exchanged(answers(questions), other),
        records=records,
        kinds=np.full(len(records), "turns"),
        made_of=np.eye(len(records), dtype=bool),
    )


def _replayed(memory: Memory, conversation: Conversation, voice: Voice) -> Iterator[Record]:
    waiting: list[Record] = []  # what the user said since the last reply: in any prompt
    for turn in conversation.turns:
        if turn.speaker == conversation.speakers[0]:
            waiting.append(memory.remember(said(turn), thread=THREAD))
            yield waiting[-1]
        else:
            yield _replied(memory, said(turn), waiting, voice)
            waiting = []


def _replied(memory: Memory, text: str, waiting: Sequence[Record], voice: Voice) -> Record:
    new = [one.id for one in waiting]
    query = "\n".join(one.text for one in waiting) or GO_ON
    chosen = memory.context(
        query,
        thread=THREAD,
        k=voice.chat.k,
        threshold=voice.chat.threshold,
        last=voice.chat.last,
        without=() if voice.chat.last else new,
    )
    if voice.model is not None:
        text = f"{text}\n{voice.model.complete(prompt(query, chosen.records))}"
    return memory.record(text, context=list(dict.fromkeys([*chosen.ids, *new])), thread=THREAD)


def outcomes(
    held: Held, reaches: Sequence[Reach], every: int = 1
) -> Iterator[tuple[Reach, Outcome]]:
    """Yield what every reach does for one question in so many; one plan for the same evidence."""
    known: dict[tuple[int, ...], dict[Reach, Sequence[int]]] = {}
    for row in range(0, len(held.questions), every):
        ids = tuple(held.ids_of(row))
        if ids not in known:
            known[ids] = {reach: planned(held, ids, reach) for reach in {*reaches, STRICT}}
        for reach in reaches:
            yield reach, outcome(held, row, known[ids][reach], known[ids][STRICT])


def planned(held: Held, ids: Sequence[int], reach: Reach) -> Sequence[int]:
    """Return what a reach takes."""
    return held.memory.plan(ids=ids, reach=reach, suspects=False).ids


def outcome(held: Held, row: int, gone: Sequence[int], every: Sequence[int]) -> Outcome:
    """Compare what goes with what was made from the evidence, and with the evidence of others."""
    done = held.mask(gone)
    replies = held.mask(every) & ~held.evidence[row]
    others = ~(held.evidence & held.evidence[row]).any(axis=1)
    left = replies & ~done
    known = float(held.answerable[row])
    return Outcome(
        taken=(int(done.sum()), len(held.records)),
        lost=lost(held, others, Deletion(done), "turns"),
        told=(float((held.stating[row] & left).any()), known),
        told_by_chance=(float((held.stating_foreign[row] & left).any()), known),
    )


def really(held: Held, reach: Reach) -> bool:
    """Forget the evidence of a question in the middle; tell whether just what was planned has gone."""
    ids = held.ids_of(len(held.questions) // 2)
    gone = set(planned(held, ids, reach))
    expected = {one.id: one.text for one in held.records if one.id not in gone}
    held.memory.forget(ids=ids, reach=reach, scrub=False)
    return {one.id: one.text for one in held.memory.export()} == expected


def run(run: Run) -> Report:
    """Measure every reach in every chat."""
    return report(run, conversations(run), OnceEmbedded(run.embedder))


def report(
    run: Run, pairs: Sequence[tuple[Conversation, Conversation]], embedder: Embedder
) -> Report:
    """Return the trade-off: for each context and reach what goes, what is lost, what still tells."""
    rows: list[dict[str, Cell | Number]] = []
    checks: list[bool] = []
    for voice in (Voice(chat, model) for model in (None, run.model) for chat in CHATS):
        found, right = measured(run, pairs, embedder, voice)
        rows += [row(voice, reach, each, run.seed) for reach, each in found.items()]
        checks += right
    return Report(
        name=run.named("locomo-replies"),
        title=f"LoCoMo with replies: how far a deletion reaches ({run.model.name})",
        rows=rows,
        settings=run.settings(
            dataset="LoCoMo", conversations=len(pairs), one_question_in=one_in(run)
        ),
        notes=notes(checks),
    )


def one_in(run: Run) -> int:
    """Return of how many questions one is asked."""
    return 1 if run.small else EVERY


def measured(
    run: Run,
    pairs: Sequence[tuple[Conversation, Conversation]],
    embedder: Embedder,
    voice: Voice,
) -> tuple[dict[Reach, list[list[Outcome]]], list[bool]]:
    """Return the outcomes of each reach, a list for each conversation; and the checks of them."""
    reaches = SMALL_REACHES if run.small else REACHES
    found: dict[Reach, list[list[Outcome]]] = {reach: [] for reach in reaches}
    checks = []
    for number, pair in enumerate(run.watch(pairs, f"LoCoMo, {voice.chat.name}")):
        with Memory.open(":memory:", embedder=embedder) as memory:
            held = replayed(memory, pair, run, voice)
            for several in found.values():
                several.append([])
            for reach, what in outcomes(held, reaches, one_in(run)):
                found[reach][-1].append(what)
            checks.append(really(held, reaches[number % len(reaches)]))
    return found, checks


def row(
    voice: Voice, reach: Reach, groups: Sequence[Sequence[Outcome]], seed: int
) -> dict[str, Cell | Number]:
    """Return the row of one reach; one group of outcomes for each conversation."""
    over = ratios(groups, seed)
    return {
        "context": voice.chat.name,
        "replies": "as said" if voice.model is None else f"with {voice.model.name}",
        "reach": str(reach),
        "records gone": over(lambda one: one.taken),
        "others lose all evidence": over(lambda one: one.lost),
        "a reply still tells": over(lambda one: one.told),
        "by chance": over(lambda one: one.told_by_chance),
    }


def notes(checks: Sequence[bool]) -> list[str]:
    """Return what a reader of the table must know."""
    return [
        "The turns that answer a question are deleted, by id. What the second person says is taken "
        "for replies, whose prompts held what the first said since the last one, and the 5 nearest "
        "earlier messages, or the last 5, or all. Gone: of all records. Lose: of the questions with "
        "other evidence, those that lose all of it. A reply still tells: one that is left, and is "
        "made from the evidence, however indirectly, holds at least half of the answer's telling "
        "words. By chance: the same for as many answers about another conversation. Replies as said "
        "were made by no model: what they tell again, the person knew.",
        f"Really forgetting left just what the plan leaves in {sum(checks)} of {len(checks)} cases. "
        "Intervals draw whole conversations; n is the number of questions.",
    ]
