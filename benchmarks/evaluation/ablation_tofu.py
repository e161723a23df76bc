"""The ablation on TOFU: one long conversation, 440 facts told and asked for, 40 of them forgotten.

Each fact is told as the paper tells it, by its answer alone; then every question is asked and kept.
The facts to forget are told in the middle. A text states an answer if it holds at least half of the
answer's own words: those that stand neither in the question nor in a wrong answer. Facts without
such words are left out of the scores.

For readers that quote, or write: the replies of a model that repeats its context would hold all
that was said before, in prompts of any length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dellm import Memory
from dellm.records import Record

from .ablation import NONE, PAPER, WAYS, Chat, Talk, Way
from .canary import Canary
from .embedding_once import OnceEmbedded
from .personas import specific, words
from .results import Cell, Number, Report, mean, share
from .running import Run
from .sets import tofu
from .stating import tells

CHATS = (PAPER, replace(PAPER, k=10), replace(PAPER, threshold=NONE), replace(PAPER, last=2))
SMALL = (4, 16)  # facts to forget and to keep of a small run


def own_words(fact: tofu.Fact) -> frozenset[str]:
    """Return the words of an answer that its question and its wrong answers do not hold."""
    known = {word for text in (fact.question, *fact.perturbed) for word in words(text)}
    return frozenset(specific(fact.answer) - known)


@dataclass(slots=True)
class Told:
    """A conversation in which all facts were told and asked for."""

    talk: Talk
    forget: Sequence[tofu.Fact]
    retain: Sequence[tofu.Fact]
    replies: Mapping[int, frozenset[str]] = field(default_factory=dict)  # their words, by id
    held: int = 0  # records

    def seen(self) -> None:
        """Note what the memory holds now."""
        records: list[Record] = list(self.talk.memory.export())
        self.held = len(records)
        self.replies = {
            one.id: frozenset(words(one.text)) for one in records if one.role == "assistant"
        }

    def right(self, facts: Sequence[tofu.Fact], without: Sequence[int] = ()) -> Number:
        """Return the share of facts whose question is answered so that the answer is stated."""
        asked = [one for one in facts if own_words(one)]
        answers = [frozenset(words(self.talk.ask(one.question, without))) for one in asked]
        hits = [states(text, one) for text, one in zip(answers, asked, strict=True)]
        return share(sum(hits), len(hits))

    def left(self, gone: frozenset[int]) -> Number:
        """Return the share of the facts to forget that a reply which is left states."""
        asked = [one for one in self.forget if own_words(one)]
        texts = [text for id_, text in self.replies.items() if id_ not in gone]
        hits = [any(states(text, one) for text in texts) for one in asked]
        return share(sum(hits), len(hits))

    def row(self, way: Way, before: Number, seed: int) -> dict[str, Cell | Number]:
        """Return what a way to forget does: to all facts at once, and what each alone takes."""
        alone = [frozenset(self.talk.plan(way, one.answer).ids) for one in self.forget]
        gone = frozenset().union(*alone)
        passed = sorted(gone)
        return {
            **self.talk.chat.row(),
            **way.row(),
            "leaked: memory": self.left(gone),
            "leaked: answer": self.right(self.forget, passed),
            "retained before": before,
            "retained after": self.right(self.retain, passed),
            "taken by one": mean([len(one) for one in alone], seed),
            "taken by all, of all": share(len(gone), self.held),
        }


def states(text: frozenset[str], fact: tofu.Fact) -> bool:
    """Tell whether the words of a text hold at least half of a fact's own."""
    return tells(text, own_words(fact))


def told(talk: Talk, facts: tofu.Tofu, run: Run) -> Told:
    """Tell every fact, those to forget in the middle, and ask for each."""
    half = len(facts.retain) // 2
    order = [*facts.retain[:half], *facts.forget, *facts.retain[half:]]
    said = [*(one.answer for one in order), *(one.question for one in order)]
    for text in run.watch(said, "telling TOFU"):
        talk.say(text)
    made = Told(talk, facts.forget, facts.retain)
    made.seen()
    return made


def chosen(run: Run) -> tofu.Tofu:
    """Return the facts of this run."""
    facts = tofu.load(run.folder("tofu"))
    if run.small:
        return tofu.Tofu(facts.forget[: SMALL[0]], facts.retain[: SMALL[1]])
    return facts


def rows(run: Run, chat: Chat, facts: tofu.Tofu) -> list[dict[str, Cell | Number]]:
    """Return a row for every way to forget, in a conversation of these settings."""
    with Memory.open(":memory:", embedder=run.embedder) as memory:
        made = told(Talk(memory, run, chat), facts, run)
        before = made.right(facts.retain)
        return [made.row(way, before, run.seed) for way in run.watch(WAYS, "forgetting")]


def reports(run: Run) -> list[Report]:
    """Return the report, or none where there is no TOFU or the model repeats its context."""
    if not run.has("tofu") or isinstance(run.model, Canary):
        return []
    facts = chosen(run)
    once = replace(run, embedder=OnceEmbedded(run.embedder))
    return [
        Report(
            name=run.named("ablation-tofu"),
            title=f"Ablation on TOFU ({run.model.name})",
            rows=[row for chat in CHATS for row in rows(once, chat, facts)],
            settings=run.settings(dataset="TOFU, 40 facts to forget, 400 to keep"),
            notes=[
                "Leaked: of the facts to forget, those that a reply which is left, or the answer "
                "to their question, states. In the strict rows no reply that is left was made "
                "from any of them: what is counted there is chance, or was told with another fact.",
                "Taken by one: records that go when one of the facts is forgotten, itself included; "
                "by all: what the plans of each alone take together.",
            ],
        )
    ]
