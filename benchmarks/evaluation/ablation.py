"""The ablation that the paper leaves out: what each choice costs, and what it saves.

Each persona talks with a memory: ten statements, five requests, four questions, every reply kept
with exactly the records that were in its prompt. Then one statement is to go. How far the deletion
reaches, and how contexts were chosen before, is varied one at a time around the paper's settings (top
5, cosine over 0.25, strict), and reach in each of the chats, which gives the crosses.

The statement is named by its id, so that only provenance finds what was made from it; the ways that
name it by its words also take every record that holds it verbatim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dellm import Memory
from dellm.embedding import Embedder
from dellm.plan import STRICT, Plan, Reach, depth, influence
from dellm.records import Context
from dellm.systems import asked

from .embedding_once import OnceEmbedded
from .personas import Persona, Question, load
from .results import Cell, Number, Report, mean, share
from .running import Run
from .stating import states

ALL = 1_000_000  # last=: every record of the conversation
NONE = -1.0  # threshold=: every record is a candidate
SMALL = 3  # personas of the sample for CI
THREAD = "main"


@dataclass(frozen=True, slots=True)
class Chat:
    """How contexts are chosen (see `dellm.context.Choice`) and whether questions are kept.

    `kept`: the four questions are asked before the deletion too, as messages like any other.
    """

    k: int = 5
    threshold: float = 0.25
    last: int = 0
    by: str = "meaning"
    kept: bool = True

    def row(self) -> dict[str, Cell | Number]:
        """Return the settings as the first columns of a row."""
        return {
            "k": self.k,
            "threshold": "none" if self.threshold == NONE else f"{self.threshold:g}",
            "last": "all" if self.last == ALL else str(self.last),
            "by": self.by,
            "questions kept": "yes" if self.kept else "no",
        }


@dataclass(frozen=True, slots=True)
class Way:
    """A way to forget: how far it reaches, and whether the fact is named by its words."""

    reach: Reach
    by_words: bool = False

    def row(self) -> dict[str, Cell | Number]:
        """Return the way as columns of a row."""
        return {"named by": "words" if self.by_words else "id", "reach": str(self.reach)}


PAPER = Chat()
# Each a report of its own: how many records are taken for relevant, and what is taken besides.
GROUPS = {
    "size": (
        *(replace(PAPER, k=k) for k in (5, 1, 3, 10, 20)),
        *(replace(PAPER, threshold=least) for least in (0.3, 0.4)),
        *(replace(PAPER, threshold=NONE, k=k) for k in (1, 3, 5, 10, 20)),
    ),
    "recent": (
        PAPER,
        *(replace(PAPER, last=last) for last in (2, 5, ALL)),
        replace(PAPER, k=3, last=2),
        replace(PAPER, by="both"),
        replace(PAPER, kept=False),
    ),
}
SMALL_GROUPS = {
    "size": (PAPER, replace(PAPER, k=1)),
    "recent": (PAPER, replace(PAPER, last=ALL)),
}
TITLES = {
    "size": "how many records are taken for relevant",
    "recent": "what is taken besides",
}
INFLUENCES = (0.05, 0.1, 0.2, 0.4, 0.8)
WAYS = (
    *(Way(depth(hops)) for hops in (0, 1, 2)),
    Way(STRICT),
    *(Way(influence(least)) for least in INFLUENCES),
    Way(depth(0), by_words=True),
    Way(STRICT, by_words=True),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one way to forget did in one persona's chat. Shares are of 1."""

    leaked_kept: bool  # a record that is left states the forgotten answer
    leaked_answer: bool  # the answer to its question does
    before: float  # of the other questions: answered right before
    after: float  # and after
    taken: int  # records
    taken_share: float  # of all records
    needless: float  # of the records that say nothing of the fact: taken with it


@dataclass(slots=True)
class Talk:
    """One persona's conversation in a workspace of its own, through the library's own verbs."""

    memory: Memory
    run: Run
    chat: Chat
    ids: dict[str, int] = field(default_factory=dict)  # of the user's messages, by text

    def say(self, text: str) -> str:
        """Answer a message from the context chosen for it, and keep both."""
        context = self._context(text)
        question = self.memory.remember(text, thread=THREAD)
        said = self.run.model.complete(asked(text, context.records))
        self.memory.record(said, context=[*context.ids, question.id], thread=THREAD)
        self.ids[text] = question.id
        return said

    def ask(self, question: str, without: Sequence[int] = ()) -> str:
        """Answer a question as if `without` were not there; nothing of it is kept."""
        context = self._context(question, without)
        return self.run.model.complete(asked(question, context.records))

    def held(self) -> dict[int, str]:
        """Return the text of every record by id."""
        return {one.id: one.text for one in self.memory.export()}

    def plan(self, way: Way, fact: str) -> Plan:
        """Return what a way would take; nothing is changed."""
        if way.by_words:
            return self.memory.plan(quote=fact, reach=way.reach, suspects=False)
        return self.memory.plan(ids=[self.ids[fact]], reach=way.reach, suspects=False)

    def _context(self, text: str, without: Sequence[int] = ()) -> Context:
        return self.memory.context(
            text,
            thread=THREAD,
            k=self.chat.k,
            threshold=self.chat.threshold,
            last=self.chat.last,
            by=self.chat.by,
            without=without,
        )


def talked(memory: Memory, run: Run, chat: Chat, persona: Persona) -> Talk:
    """Have a persona say everything it says before the deletion."""
    talk = Talk(memory, run, chat)
    said = [*persona.statements, *persona.requests]
    if chat.kept:
        said += [one.question for one in persona.questions]
    for text in said:
        talk.say(text)
    return talk


def answered(talk: Talk, questions: Sequence[Question], without: Sequence[int] = ()) -> float:
    """Return the share of questions whose answer states what is right."""
    right = [states(talk.ask(one.question, without), one.answer) for one in questions]
    return sum(right) / len(right)


def outcome(talk: Talk, persona: Persona, way: Way, before: float) -> Outcome:
    """Return what a way would do, by its plan: the records it names are passed over from then on."""
    fact, held = persona.forget, talk.held()
    gone = set(talk.plan(way, fact.fact).ids)
    telling = {id_ for id_, text in held.items() if states(text, fact.answer)}
    others = held.keys() - telling
    left = sorted(gone)
    return Outcome(
        leaked_kept=bool(telling - gone),
        leaked_answer=states(talk.ask(fact.question, left), fact.answer),
        before=before,
        after=answered(talk, persona.retain, left),
        taken=len(gone),
        taken_share=len(gone) / len(held),
        needless=len(others & gone) / max(len(others), 1),
    )


@dataclass(frozen=True, slots=True)
class Check:
    """What really forgetting did, beside what was measured on the plan."""

    left: bool  # the same records are left
    said: bool  # the four answers are right or wrong as before


def really(talk: Talk, persona: Persona, way: Way) -> Check:
    """Forget by a way, and compare."""
    plan, held = talk.plan(way, persona.forget.fact), talk.held()
    expected = {id_: text for id_, text in held.items() if id_ not in plan.ids}
    right = verdicts(talk, persona, plan.ids)
    talk.memory.forget(plan, scrub=False)
    return Check(talk.held() == expected, verdicts(talk, persona) == right)


def verdicts(talk: Talk, persona: Persona, without: Sequence[int] = ()) -> list[bool]:
    """Return for every question of a persona whether the answer states what is right."""
    return [states(talk.ask(one.question, without), one.answer) for one in persona.questions]


@dataclass(slots=True)
class Measured:
    """The outcomes of every way in one chat, and the checks of it."""

    outcomes: dict[Way, list[Outcome]] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)

    def add(self, talk: Talk, persona: Persona, number: int) -> None:
        """Measure all ways for a persona, then really forget by one of them, each in its turn."""
        before = answered(talk, persona.retain)
        for way in WAYS:
            found = outcome(talk, persona, way, before)
            self.outcomes.setdefault(way, []).append(found)
        self.checks.append(really(talk, persona, WAYS[number % len(WAYS)]))


def measured(run: Run, chat: Chat, personas: Sequence[Persona], embedder: Embedder) -> Measured:
    """Return what every way does to every persona in a chat of these settings."""
    found = Measured()
    with Memory.open(":memory:", embedder=embedder) as memory:
        named = ", ".join(f"{name} {value}" for name, value in chat.row().items())
        for number, persona in enumerate(run.watch(personas, named)):
            talk = talked(memory.workspace(persona.id), run, chat, persona)
            found.add(talk, persona, number)
    return found


def numbers(outcomes: Sequence[Outcome], seed: int) -> dict[str, Cell | Number]:
    """Return the columns of one row; means are over personas."""
    kept = sum(one.leaked_kept for one in outcomes)
    answers = sum(one.leaked_answer for one in outcomes)
    return {
        "leaked: memory": share(kept, len(outcomes)),
        "leaked: answer": share(answers, len(outcomes)),
        "retained before": mean([one.before for one in outcomes], seed),
        "retained after": mean([one.after for one in outcomes], seed),
        "taken": mean([one.taken for one in outcomes], seed),
        "taken, of all": mean([one.taken_share for one in outcomes], seed),
        "taken needlessly": mean([one.needless for one in outcomes], seed),
    }


def rows(chat: Chat, found: Measured, seed: int) -> Iterator[dict[str, Cell | Number]]:
    """Yield a row for every way."""
    for way, outcomes in found.outcomes.items():
        yield {**chat.row(), **way.row(), **numbers(outcomes, seed)}


def run(run: Run) -> list[Report]:
    """Run the ablation with the run's model and embedder: on Persona Facts, on TOFU if it is there."""
    from . import ablation_tofu

    return [*on_personas(run), *ablation_tofu.reports(run)]


def on_personas(run: Run) -> list[Report]:
    """Run the ablation on Persona Facts."""
    personas = run.first(list(load()), SMALL)
    embedder = OnceEmbedded(run.embedder)
    groups = SMALL_GROUPS if run.small else GROUPS
    chats = dict.fromkeys(chat for group in groups.values() for chat in group)
    found = {chat: measured(run, chat, personas, embedder) for chat in chats}
    return [
        report(run, name, {chat: found[chat] for chat in group}) for name, group in groups.items()
    ]


def report(run: Run, name: str, found: Mapping[Chat, Measured]) -> Report:
    """Return the report of one group of chats."""
    checks = [one for each in found.values() for one in each.checks]
    return Report(
        name=run.named(f"ablation-{name}"),
        title=f"Ablation on Persona Facts, {TITLES[name]} ({run.model.name})",
        rows=[row for chat, each in found.items() for row in rows(chat, each, run.seed)],
        settings=run.settings(dataset="Persona Facts"),
        notes=notes(checks),
    )


def notes(checks: Sequence[Check]) -> list[str]:
    """Return what a reader of the table must know."""
    left, said = sum(one.left for one in checks), sum(one.said for one in checks)
    return [
        "Leaked: the share of personas where a record that is left, or the answer to the question "
        "about the forgotten fact, holds at least half of the answer's telling words. Retained: of "
        "the three other questions. Lower is better for leaked and taken, higher for retained.",
        "Taken: records that go with the fact, itself included; needlessly: of the records that "
        "hold nothing of the answer, the share that goes. last = all is the whole conversation in "
        "every prompt. Means are over personas, with bootstrap intervals.",
        "Rows were measured on plans, with what a plan names passed over. Really forgetting, once "
        f"in each chat of each persona, left the same records in {left} of {len(checks)} cases and "
        f"answered all four questions as rightly or wrongly in {said}: which of equally near "
        "records a context takes depends on how much depends on them, so it can change once they "
        "are gone.",
    ]
