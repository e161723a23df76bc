"""LoCoMo: the evidence of a question is deleted, where what was made from it is known.

A model has written observations and session summaries of these conversations, and the data name the
turns that each was made from. All of it is put in our memory with these sources. Then the turns that
answer a question are deleted by id. What is left of them? And what do the questions lose whose
evidence is elsewhere?

What each way takes is measured on its plan, for every question; some plans are really executed in
each conversation, and compared. See `locomo_replies` for replies with tracked contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dellm import Memory
from dellm.embedding import Embedder
from dellm.plan import Plan, depth

from .embedding_once import OnceEmbedded
from .evidence import Part, ratios
from .locomo_held import Deletion, Held, Mask, loaded, places, remade, sources
from .personas import words
from .results import Cell, Number, Report
from .running import Run
from .sets import locomo
from .sets.locomo import Conversation
from .stating import tells

SMALL = 1  # conversations of the sample for CI
THRESHOLDS = (0.8, 0.6, 0.4, 0.2, 0.1)
REALLY = 5  # deletions that are really executed in each conversation
UNTOUCHED = "only the summaries, made anew of all turns"

# ways to delete the evidence of a question


Way = Callable[[Held, int], Deletion]


def nothing(held: Held, _row: int) -> Deletion:
    """Delete nothing."""
    return Deletion(np.zeros(len(held.records), bool))


def turns_only(held: Held, row: int) -> Deletion:
    """Delete the turns alone, as a memory does that does not know what it made from them."""
    return Deletion(held.mask(held.memory.plan(ids=held.ids_of(row), reach=depth(0)).ids))


def erased(held: Held, row: int) -> Deletion:
    """Delete all that was made from them, too."""
    return Deletion(held.mask(held.memory.plan(ids=held.ids_of(row), suspects=False).ids))


def rebuilt(held: Held, row: int) -> Deletion:
    """Do that, and make anew what can be made from the turns that stay."""
    return _made_anew(held, held.memory.plan(ids=held.ids_of(row), suspects=False))


def with_suspects(held: Held, row: int) -> Deletion:
    """Do that for what tells the answer again, too, as far as plans suspect it: a user ticks it.

    The suspects of what was ticked are looked at in turn, until none of them tells the answer.
    """
    taken = set(held.ids_of(row))
    while True:
        plan = held.memory.plan(ids=sorted(taken))
        telling = {
            one.id for one in plan.suspects if held.stating[row, held.column[one.id]]
        } - taken
        if not telling:
            return _made_anew(held, plan)
        taken |= telling


def _made_anew(held: Held, plan: Plan) -> Deletion:
    gone = held.mask(plan.ids)
    new = [held.column[one.id] for one in plan.rebuilds]
    return Deletion(gone, {at: remade(sources(held, at, gone)) for at in new})


def alike(threshold: float) -> Way:
    """Return semantic deletion: all records within a cosine of a turn of the evidence."""

    def way(held: Held, row: int) -> Deletion:
        wanted = held.vectors[held.evidence[row]]
        near = (held.vectors @ wanted.T >= threshold).any(axis=1)
        return Deletion(near | held.evidence[row])

    return way


def ways() -> dict[str, Way]:
    """Return every way by its name."""
    return {
        "nothing": nothing,
        "turns only": turns_only,
        "provenance, erased": erased,
        "provenance, rebuilt": rebuilt,
        "provenance and suspects, rebuilt": with_suspects,
        **{f"meaning, cosine from {one:g}": alike(one) for one in THRESHOLDS},
    }


# what a deletion did


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one way did for one question. Each is how many of how many.

    `taken`: of all records. `left`: of the derived records made from the evidence, those that stay
    as they are. `told`: 1 of 1 where a derived record that was made from the evidence, or a text in
    its place, states the answer; `anywhere`: where any record does; both with `chance`: where it
    states the answer to a question about another conversation. `turns`, `observations`, `summaries`:
    of the questions with other evidence that had such a record made from it, those that have none
    now. `summed`: of those whose summary was made from the deleted evidence as well, whose summary
    states their answer.
    """

    taken: Part
    left: Part
    told: Part
    told_by_chance: Part
    anywhere: Part
    anywhere_by_chance: Part
    turns: Part
    observations: Part
    summaries: Part
    summed: Part


def outcome(held: Held, row: int, done: Deletion) -> Outcome:
    """Compare what a deletion did with what is known of the sources."""
    derived = held.made_from[row] & (held.kinds != "turns")
    others = ~(held.evidence & held.evidence[row]).any(axis=1)
    known = float(held.answerable[row])

    def stated(stating: Mask, wanted: frozenset[str], among: Mask) -> Part:
        new = any(tells(words_of(text), wanted) for text in done.remade.values())
        return float(new or bool((stating[row] & among & ~done.gone).any())), known

    own, other = (held.stating, held.wanted[row]), (held.stating_foreign, held.foreign[row])
    everything = np.ones(len(held.records), bool)
    return Outcome(
        taken=(int(done.gone.sum()), len(held.records)),
        left=(int((derived & ~done.gone).sum()), int(derived.sum())),
        told=stated(*own, derived),
        told_by_chance=stated(*other, derived),
        anywhere=stated(*own, everything),
        anywhere_by_chance=stated(*other, everything),
        turns=lost(held, others, done, "turns"),
        observations=lost(held, others, done, "observations"),
        summaries=lost(held, others, done, "summaries"),
        summed=summed(held, row, others, done),
    )


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, each once."""
    return frozenset(words(text))


def lost(held: Held, others: Mask, done: Deletion, kind: str) -> Part:
    """Return how many questions lose every record of a kind that was made from their evidence."""
    gone = done.gone.copy()
    gone[list(done.remade)] = False
    had = held.made_from[others] & (held.kinds == kind)
    left = (had & ~gone).any(axis=1)
    return int((had.any(axis=1) & ~left).sum()), int(had.any(axis=1).sum())


def summed(held: Held, row: int, others: Mask, done: Deletion) -> Part:
    """Return for how many of the other questions a shared summary states the answer."""
    shared = held.made_from & held.made_from[row] & (held.kinds == "summaries")
    touched = places(others & shared.any(axis=1) & held.answerable)
    new = {at: words_of(text) for at, text in done.remade.items()}
    hits = 0
    for one in touched:
        kept = bool((held.stating[one] & shared[one] & ~done.gone).any())
        hits += kept or any(tells(new[at], held.wanted[one]) for at in new if shared[one, at])
    return hits, len(touched)


def control(held: Held, row: int) -> Deletion:
    """Return the summaries made anew of all their turns: what the change of summariser does alone."""
    found = held.made_from[row] & (held.kinds == "summaries")
    none = np.zeros(len(held.records), bool)
    return Deletion(found, {at: remade(sources(held, at, none)) for at in places(found)})


# really forgetting


@dataclass(slots=True)
class Checks:
    """How often really deleting did what was measured, of how many times."""

    done: int = 0
    right: int = 0
    near: int = 0
    near_right: int = 0

    def really(self, held: Held) -> None:
        """Forget the evidence of some questions, one after the other, and compare with the plans."""
        step = max(len(held.questions) // REALLY, 1)
        for row in range(0, len(held.questions), step)[:REALLY]:
            self._nearness(held, row)
        before = Deletion(np.zeros(len(held.records), bool))
        for row in range(0, len(held.questions), step)[:REALLY]:
            if before.gone[held.evidence[row]].any():
                continue  # it went with another question's
            before = self._forgotten(held, row, before)

    def _forgotten(self, held: Held, row: int, before: Deletion) -> Deletion:
        ids = held.ids_of(row)
        done = rebuilt(held, row) if not before.gone.any() else None
        gone = before.gone | held.evidence[row]
        touched = places(held.made_from[row] & (held.kinds != "turns"))
        new = {at: sources(held, at, gone) for at in touched}
        texts = {at: text for at, text in before.remade.items() if at not in new}
        texts.update({at: remade(some) for at, some in new.items() if some})
        gone = gone | held.made_from[row]
        held.memory.forget(ids=ids, scrub=False)
        left = sorted(one.text for one in held.memory.export())
        kept = [one.text for one, away in zip(held.records, gone, strict=True) if not away]
        same = done is None or (bool((done.gone == gone).all()) and dict(done.remade) == texts)
        self.done += 1
        self.right += same and left == sorted([*kept, *texts.values()])
        return Deletion(gone, texts)

    def _nearness(self, held: Held, row: int) -> None:
        turn = held.records[places(held.evidence[row])[0]]
        near = held.vectors @ held.vectors[held.column[turn.id]] >= THRESHOLDS[2]
        plan = held.memory.plan(
            meaning=turn.text, threshold=THRESHOLDS[2], reach=depth(0), suspects=False
        )
        self.near += 1
        self.near_right += bool((held.mask(plan.ids) == near).all())


# the report


def run(run: Run) -> Report:
    """Measure deletion with known sources on every conversation."""
    return known_sources(run, conversations(run), OnceEmbedded(run.embedder))


def conversations(run: Run) -> list[tuple[Conversation, Conversation]]:
    """Return the conversations to run, each with another one, whose answers are chance here."""
    every = list(locomo.load(run.folder("locomo")))
    chosen = run.first(every, SMALL)
    return [(one, every[at + 1 - len(every)]) for at, one in enumerate(chosen)]


def known_sources(
    run: Run, pairs: Sequence[tuple[Conversation, Conversation]], embedder: Embedder
) -> Report:
    """Return the report of the derived texts of the data; beside each conversation stands another."""
    every = {**ways(), UNTOUCHED: control}
    found: dict[str, list[list[Outcome]]] = {name: [] for name in every}
    checks = Checks()
    with Memory.open(":memory:", embedder=embedder) as memory:
        for one, other in run.watch(pairs, "LoCoMo, known sources"):
            held = loaded(memory.workspace(one.id), one, other, run, embedder)
            for name, way in every.items():
                rows = range(len(held.questions))
                found[name].append([outcome(held, row, way(held, row)) for row in rows])
            checks.really(held)
    return Report(
        name="locomo",
        title="LoCoMo: the evidence of a question is deleted",
        rows=[row_of(name, several, run.seed) for name, several in found.items()],
        settings=run.settings(dataset="LoCoMo", conversations=len(pairs)),
        notes=notes(checks),
    )


def row_of(name: str, groups: Sequence[Sequence[Outcome]], seed: int) -> dict[str, Cell | Number]:
    """Return the row of one way; one group of outcomes for each conversation."""
    over = ratios(groups, seed)
    return {
        "deleted": name,
        "records gone": over(lambda one: one.taken),
        "made from it, left": over(lambda one: one.left),
        "these state the answer": over(lambda one: one.told),
        "these, by chance": over(lambda one: one.told_by_chance),
        "any record does": over(lambda one: one.anywhere),
        "any, by chance": over(lambda one: one.anywhere_by_chance),
        "lost: turns": over(lambda one: one.turns),
        "lost: observations": over(lambda one: one.observations),
        "lost: summaries": over(lambda one: one.summaries),
        "shared summary tells": over(lambda one: one.summed),
    }


def notes(checks: Checks) -> list[str]:
    """Return what a reader of the table must know."""
    return [
        "The turns that answer a question are deleted, by id. Made from it, left: of the "
        "observations and summaries made from them, those that stay as they were. These state the "
        "answer: the share of questions with one of those, or a text made anew in its place, that "
        "holds at least half of the answer's telling words. Any record: the same for all that is "
        "left, turns too. By chance: the same for as many answers to questions about another "
        "conversation. Questions without an answer (adversarial) count for neither.",
        "Lost: of the questions with other evidence, those that lose every turn, observation or "
        "summary made from it. Shared summary: of those whose summary was made from the deleted "
        "turns as well, those whose answer it still states. Summaries are made anew of the sentences "
        "of the turns that stay; the last row does that with all turns there. Suspects: the records "
        "that a plan shows as likely to say the same, of which the user ticks those that do. The "
        "data name one turn where several say the same: that is what a new summary tells again.",
        f"Really forgetting left what was measured in {checks.right} of {checks.done} cases, texts "
        "made anew included. Deletion by meaning was computed from the vectors; our memory's own "
        f"selection by meaning took the same records in {checks.near_right} of {checks.near} cases "
        "where it was asked. Intervals draw whole conversations; n is the number of questions.",
    ]
