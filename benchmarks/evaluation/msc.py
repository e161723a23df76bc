"""MSC: whether every mention is found of a fact that was told more than once and is to be forgotten.

Four sessions of two people, each turn with the fact that it discloses. Each speaker is the user in
turn. Whatever the user says to have a fact forgotten, the right answer is known: the turns that
disclose it. What a way would take is measured on its plan; every plan can be really executed, which
is done for one fact of each conversation.

Nothing was made from a turn here, so that nothing is found by provenance: this is about words and
meaning alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dellm import Memory, about, wishes
from dellm.errors import SelectorError
from dellm.plan import Plan
from dellm.records import Draft
from dellm.requests import recognise

from .ablation import NONE
from .embedding_once import OnceEmbedded
from .evidence import Part, average, ratios, sentences
from .personas import specific
from .results import Cell, Number, Report, share
from .running import Run
from .sets import msc
from .sets.msc import Conversation, Turn

SMALL = 8  # conversations of the sample for CI
THREAD = "main"
SHOWN = 10  # records that a question for the fact brings up
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact in one sentence, the turn that tells it first, and all turns that tell it, by place."""

    text: str
    first: Turn
    told: frozenset[int]


@dataclass(frozen=True, slots=True)
class Told:
    """A conversation in a memory; `ids` are the records of its turns, by place."""

    memory: Memory
    ids: Sequence[int]

    def plan_of_all(self, ids: Sequence[int]) -> Plan:
        """Return the plan for records that were ticked."""
        return self.memory.plan(ids=ids, suspects=False)


Way = Callable[[Told, Fact], "Sequence[int] | None"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a way takes for one fact; None in its place where the way does not apply.

    `others` of the mentions besides the first, of so many; `right` of all that goes, and
    `unrelated` of all turns that do not tell the fact. `still` says that the ten records nearest to
    the fact hold one that tells it, once the others are gone.
    """

    others: Part
    right: Part
    unrelated: Part
    still: bool

    @property
    def complete(self) -> bool:
        """Whether every mention goes."""
        return self.others[0] == self.others[1]


def facts(conversation: Conversation, speaker: int) -> list[Fact]:
    """Return the facts that a speaker tells in more than one session, each sentence once."""
    made: list[Fact] = []
    for turn in conversation.disclosing:
        for text in sentences(turn.fact or "") if turn.speaker == speaker else ():
            found = conversation.same_fact(replace(turn, fact=text))
            told = frozenset(one.place for one in found)
            known = any(told <= one.told for one in made)
            if len({one.session for one in found}) > 1 and not known:
                made.append(Fact(text, min(found, key=lambda one: one.place), told))
    return made


def quote(told: Told, fact: Fact) -> Sequence[int]:
    """Take what holds the words of the first mention."""
    return told.memory.plan(quote=fact.first.text, suspects=False).ids


def with_suspects(told: Told, fact: Fact) -> Sequence[int]:
    """Take that, and all that its plan suspects of saying the same."""
    plan = told.memory.plan(quote=fact.first.text)
    return sorted({*plan.ids, *(one.id for one in plan.suspects)})


def right_suspects(told: Told, fact: Fact, rounds: int = 1) -> Sequence[int]:
    """Take the first mention, and of the suspects those that tell the fact, as a user would tick them.

    With more `rounds` the suspects of what was ticked are looked at in turn.
    """
    telling = {told.ids[place] for place in fact.told}
    taken = {told.ids[fact.first.place]}
    for _ in range(rounds):
        plan = told.memory.plan(ids=sorted(taken))
        found = {one.id for one in plan.suspects} & telling
        if found <= taken:
            break
        taken |= found
    return sorted(taken)


def ticked_in_turn(told: Told, fact: Fact) -> Sequence[int]:
    """Take those, and the right ones among their own suspects, until there is none."""
    return right_suspects(told, fact, rounds=len(fact.told))


def nothing(_told: Told, _fact: Fact) -> Sequence[int]:
    """Take nothing."""
    return ()


def keyword(told: Told, fact: Fact) -> Sequence[int]:
    """Take what holds every telling word of the fact."""
    said = " ".join(sorted(specific(fact.text)))
    return told.memory.plan(keyword=said, suspects=False).ids


def described(told: Told, fact: Fact) -> Sequence[int] | None:
    """Take what a description finds; it has to name a kind of value, which few facts do."""
    try:
        return told.memory.plan(description=fact.text, suspects=False).ids
    except SelectorError:
        return None


def phrase(told: Told, fact: Fact) -> Sequence[int]:
    """Take what the fact, as a phrase, is about; a clause counts as its record."""
    found = about.meant(told.memory, fact.text)
    return sorted({*found.ids, *(id_ for id_, _ in found.clauses)})


def request(told: Told, fact: Fact) -> Sequence[int]:
    """Take what the chat would, asked to forget the fact; nothing where it sees no request."""
    said = recognise(f"Please forget that {fact.text}")
    wish = wishes.wish_of(told.memory, said, THREAD)
    plan = wishes.plan_of(told.memory, wish)
    return plan.ids if plan else ()


def meaning(threshold: float) -> Way:
    """Return the way that takes all within a cosine of the fact: semantic deletion."""

    def way(told: Told, fact: Fact) -> Sequence[int]:
        return told.memory.plan(meaning=fact.text, threshold=threshold, suspects=False).ids

    return way


WAYS: dict[str, Way] = {
    "nothing": nothing,
    "first mention, quoted": quote,
    "first mention, and the suspects that tell it": right_suspects,
    "first mention, and the same in turn": ticked_in_turn,
    "first mention, and all suspects": with_suspects,
    "fact, every word": keyword,
    "fact as a description": described,
    "fact as a phrase": phrase,
    "fact in a request": request,
    **{f"fact by meaning, cosine over {one:g}": meaning(one) for one in THRESHOLDS},
}


def run(run: Run) -> Report:
    """Measure every way on every fact that is told in several sessions."""
    conversations = run.first(list(msc.load(run.folder("msc"))), SMALL)
    found: dict[str, list[list[Outcome]]] = {name: [] for name in WAYS}
    counts: dict[str, int] = dict.fromkeys(WAYS, 0)
    kept: list[bool] = []
    with Memory.open(":memory:", embedder=OnceEmbedded(run.embedder)) as memory:
        for one in run.watch(conversations, "MSC"):
            outcomes, checks = measured(memory, one)
            kept += checks
            for name, several in outcomes.items():
                found[name].append([each for each in several if each is not None])
                counts[name] += len(several)
    return Report(
        name="msc",
        title="MSC: a fact that was told in several sessions is forgotten",
        rows=[row(name, several, counts[name], run.seed) for name, several in found.items()],
        settings=run.settings(dataset="MSC", conversations=len(conversations)),
        notes=notes(kept),
    )


def measured(
    memory: Memory, conversation: Conversation
) -> tuple[dict[str, list[Outcome | None]], list[bool]]:
    """Return what each way does to the facts of both speakers, and whether really forgetting agrees."""
    outcomes: dict[str, list[Outcome | None]] = {name: [] for name in WAYS}
    checks = []
    for speaker in (0, 1):
        if wanted := facts(conversation, speaker):
            told = loaded(memory.workspace(f"{conversation.id}-{speaker}"), conversation, speaker)
            for fact in wanted:
                for name, way in WAYS.items():
                    outcomes[name].append(outcome(told, fact, way(told, fact)))
            checks.append(really(told, wanted[-1]))
    return outcomes, checks


def loaded(memory: Memory, conversation: Conversation, user: int) -> Told:
    """Put a conversation in, with one speaker as the user."""
    drafts = [
        Draft(turn.text, role="user" if turn.speaker == user else "assistant", thread=THREAD)
        for turn in conversation.turns
    ]
    made = memory.remember_many(drafts)
    memory.index()
    return Told(memory, [one.id for one in made])


def outcome(told: Told, fact: Fact, gone: Sequence[int] | None) -> Outcome | None:
    """Compare what goes with what tells the fact."""
    if gone is None:
        return None
    telling = {told.ids[place] for place in fact.told}
    others, taken = telling - {told.ids[fact.first.place]}, set(gone)
    near = told.memory.context(fact.text, k=SHOWN, threshold=NONE, without=sorted(taken))
    return Outcome(
        others=(len(others & taken), len(others)),
        right=(len(telling & taken), len(taken)),
        unrelated=(len(taken - telling), len(told.ids) - len(telling)),
        still=bool(telling & set(near.ids)),
    )


def really(told: Told, fact: Fact) -> bool:
    """Forget a fact with the suspects; tell whether what the plan names has gone, and nothing else."""
    before = {one.id: one.text for one in told.memory.export()}
    plan = told.plan_of_all(with_suspects(told, fact))
    told.memory.forget(plan, scrub=False)
    expected = {id_: text for id_, text in before.items() if id_ not in plan.ids}
    return {one.id: one.text for one in told.memory.export()} == expected


def row(
    name: str, groups: Sequence[Sequence[Outcome]], asked: int, seed: int
) -> dict[str, Cell | Number]:
    """Return the row of one way; one group of outcomes for each conversation."""
    every = [one for group in groups for one in group]
    over = ratios(groups, seed)
    return {
        "to be forgotten": name,
        "applies": share(len(every), asked),
        "other mentions found": over(lambda one: one.others),
        "every mention found": average(
            [[float(one.complete) for one in group] for group in groups], seed
        ),
        "precision": over(lambda one: one.right),
        "unrelated turns lost": over(lambda one: one.unrelated),
        "top 10 still tell it": average(
            [[float(one.still) for one in group] for group in groups], seed
        ),
    }


def notes(kept: Sequence[bool]) -> list[str]:
    """Return what a reader of the table must know."""
    return [
        "A fact is a sentence that the data say a turn discloses, told by one speaker in two or more "
        "of four sessions. Which sentences are one fact is our rule (Jaccard of their telling words "
        "at least 0.6), which is strict: of the turns that count as unrelated here some tell the fact "
        "in other words, so precision is a lower bound. In some turns the fact is only understood "
        "from the turn before.",
        "Found: of the mentions besides the first, the share that goes. Precision: of what goes, the "
        "share that tells the fact. Unrelated turns lost: of all turns that do not. Top 10: whether "
        "the ten records nearest to the fact hold one that tells it after the others are gone. "
        "Suspects are shown to the user, who ticks those that are meant; in turn: then those that what "
        "was ticked brings up. All suspects is what ticking them blindly does.",
        f"Really forgetting one fact per conversation and speaker, suspects ticked, left exactly the "
        f"records that its plan does not name in {sum(kept)} of {len(kept)} cases. Intervals draw "
        "whole conversations.",
    ]
