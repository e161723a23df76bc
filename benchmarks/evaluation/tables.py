"""The paper's Tables I to VI: what each system answers before and after something is forgotten.

Persona Facts (a persona tells ten statements, has one forgotten), TOFU (440 facts about authors who do
not exist, 40 forgotten one after another) and DMR, where its file is (before only). Table I is the
utility before, II the answers to what was forgotten, III those to the rest; IV to VI are the same by
ROUGE-L. Each system through its own adapter, see systems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dellm.models import SmolModel

from .embedding_once import OnceEmbedded
from .judging import Answered, judge_of
from .persona_replay import Replayed, replay
from .personas import Persona, load
from .results import Cell, Number, Report
from .running import Run
from .scoring import score
from .sets import dmr, tofu
from .systems import Make, Said, System
from .systems.every import every
from .talks import Talk, talks_of_dmr

SMALL = 2  # personas, DMR conversations, TOFU facts to forget
SMALL_RETAIN = 6
TABLES = {
    "before": "I, IV: utility before",
    "forget before": "II, V: forgotten, before",
    "forget after": "II, V: forgotten, after",
    "retain before": "III, VI: retained, before",
    "retain after": "III, VI: retained, after",
}
Answers = dict[str, list[Answered]]  # by the keys of TABLES
NOTES = (
    "Right: by the judge that the settings name; without a model, an answer with at least half of the "
    "words that only the gold answer has. After a deletion, lower is better for what was forgotten and "
    "higher for the rest. The distance to the best a deletion can do is that to no memory.",
    "Nearest to gold has no floor at zero: compare it with no memory. ROUGE-L recall says little where "
    "a short answer is right (the paper's appendix B): a model that repeats its context has it high.",
)


def run(run: Run) -> list[Report]:
    """Return the tables of every data set that is there; Persona Facts always are."""
    makers = every(run)
    personas = run.first(list(load()), SMALL)
    found = {name: told(run, make, personas, name) for name, make in makers.items()}
    made = [report(run, "pf", f"Persona Facts, {len(personas)} personas", found)]
    # The small local model cannot read 440 messages.
    if run.has("tofu") and not isinstance(run.model, SmolModel):
        made.append(_tofu(run, makers))
    if run.has("dmr"):
        talks = run.first(talks_of_dmr(list(dmr.load(run.folder("dmr")))[: dmr.PAPER]), SMALL)
        asked = {name: dialogues(run, make, talks, name) for name, make in makers.items()}
        made.append(report(run, "dmr", f"DMR, {len(talks)} conversations", asked))
    return made


def report(run: Run, data: str, title: str, found: Mapping[str, Answers], *notes: str) -> Report:
    """Return the report of one data set: a row for each table and system."""
    judge = judge_of(run)
    return Report(
        name=run.named(f"tables-{data}"),
        title=f"Tables I to VI, {title} ({run.model.name})",
        rows=list(_rows(run, found)),
        settings=run.settings(dataset=title, right_by=judge.name),
        notes=[*NOTES, *notes],
    )


def _rows(run: Run, found: Mapping[str, Answers]) -> Iterator[dict[str, Cell | Number]]:
    judge, once = judge_of(run), OnceEmbedded(run.embedder)
    for key, table in TABLES.items():
        for name, answers in found.items():
            if several := answers.get(key):
                scores = score(several, judge, once, run.seed)
                yield {"table": table, "system": name, "n": len(several), **scores.row()}


# Persona Facts


def told(run: Run, make: Make, personas: Sequence[Persona], name: str) -> Answers:
    """Have every persona talk with a system of its own, and forget one statement."""
    return of_personas([replay(make, one) for one in run.watch(personas, name)])


def of_personas(said: Sequence[Replayed]) -> Answers:
    """Return the answers of all personas by table."""
    return {
        "before": [one for s in said for one in (s.before.forget, *s.before.retain)],
        "forget before": [one.before.forget for one in said],
        "forget after": [one.after.forget for one in said],
        "retain before": [one for s in said for one in s.before.retain],
        "retain after": [one for s in said for one in s.after.retain],
    }


# TOFU


@dataclass(frozen=True, slots=True)
class Asking:
    """How TOFU is asked: by its questions, or by their paraphrases."""

    name: str
    paraphrased: bool

    def of(self, system: System, fact: tofu.Fact) -> Answered:
        """Ask a system for a fact."""
        question = fact.paraphrased_question if self.paraphrased else fact.question
        return Answered(question, fact.answer, fact.perturbed, system.ask(question))


PLAIN, PARAPHRASED = Asking("", paraphrased=False), Asking(", paraphrased", paraphrased=True)


def _tofu(run: Run, makers: Mapping[str, Make]) -> Report:
    facts = chosen(run)
    found: dict[str, Answers] = {}
    for name, make in makers.items():
        found |= remembered(run, make, facts, name)
    title = f"TOFU, {len(facts.forget)} facts to forget and {len(facts.retain)} to keep"
    return report(
        run,
        "tofu",
        title,
        found,
        "As in the paper the answers alone are stored, as messages of the user; what is forgotten is "
        "forgotten one after another, each named by its words. Facts of one author share words, so "
        "that a sibling that stays may hold half of a deleted answer's.",
    )


def chosen(run: Run) -> tofu.Tofu:
    """Return the facts of a run: all, or a small sample."""
    facts = tofu.load(run.folder("tofu"))
    if run.limit is None and not run.small:
        return facts
    forget = run.first(list(facts.forget), SMALL)
    retain = facts.retain[: SMALL_RETAIN if run.limit is None else 10 * run.limit]
    return tofu.Tofu(tuple(forget), retain)


def remembered(run: Run, make: Make, facts: tofu.Tofu, name: str) -> dict[str, Answers]:
    """Return what a system answers to the questions, and to their paraphrases."""
    system = make()
    try:
        system.load([Said("user", one.answer) for one in (*facts.retain, *facts.forget)])
        before = {how: _asked(run, system, facts, how, name) for how in (PLAIN, PARAPHRASED)}
        for fact in run.watch(facts.forget, f"{name}: forgetting"):
            system.forget(fact.answer)
        after = {how: _asked(run, system, facts, how, name) for how in (PLAIN, PARAPHRASED)}
    finally:
        system.close()
    return {
        f"{name}{how.name}": {
            "before": [*before[how][0], *before[how][1]],
            "forget before": before[how][0],
            "forget after": after[how][0],
            "retain before": before[how][1],
            "retain after": after[how][1],
        }
        for how in (PLAIN, PARAPHRASED)
    }


def _asked(
    run: Run, system: System, facts: tofu.Tofu, how: Asking, name: str
) -> tuple[list[Answered], list[Answered]]:
    forget = [how.of(system, one) for one in run.watch(facts.forget, f"{name}: forget")]
    return forget, [how.of(system, one) for one in run.watch(facts.retain, f"{name}: retain")]


# DMR


def dialogues(run: Run, make: Make, talks: Sequence[Talk], name: str) -> Answers:
    """Return what a system answers about conversations, each loaded into one of its own."""
    return {"before": [one for talk in run.watch(talks, name) for one in _dialogue(make, talk)]}


def _dialogue(make: Make, talk: Talk) -> Iterator[Answered]:
    system = make()
    try:
        system.load(talk.said)
        for one in talk.probes:
            yield Answered(one.question, one.answer, one.distractors, system.ask(one.question))
    finally:
        system.close()
