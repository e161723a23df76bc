"""An episode of GateMem, turn by turn, through an agent on our memory.

What is said in GateMem is fixed, the agent's own turns too. So a turn goes in as it was said, with its
speaker in the metadata, the agent's as replies recorded with what our memory chooses for the turn
before (top 5) and that turn itself, which is what they would have been made from. A deletion is carried
out when it is asked for. A checkpoint is asked through the same choice of context, and nothing of it is
stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dellm import Memory
from dellm.embedding import Embedder
from dellm.errors import NothingMatched, SelectorError
from dellm.previews import Selection
from dellm.records import Record
from dellm.requests import Request, RequestKind, recognise
from dellm.suggesting import suggested
from dellm.wishes import named_in, wish_of

from .gatemem_labels import Due
from .sets.gatemem import Checkpoint, Episode, Turn

THREAD = "shared"
DEPTHS = (5, 10, 20)  # how many records a context may hold


@dataclass(frozen=True, slots=True)
class Variant:
    """How an agent deletes.

    `by` says what tells it of a deletion: "nothing"; "labels", the targets that a turn names, off
    the hidden labels; "all labels", the described ones too, as a user would pick them from a
    preview; "recogniser", our own, whose plan is confirmed but for what is only guessed by words or
    meaning. `offers`: what is said to be over is forgotten, too; `anyway`: the values that a request
    names are guarded although no record holds them (any more); `suggested`: the user takes what is
    suggested for a description, too. `mode` and `unit` as in Memory.forget; `credentials` as in
    Memory.open.
    """

    by: str
    guard: bool = False
    mode: str = "erase"
    unit: str = "span"
    credentials: str = "allow"
    offers: bool = False
    anyway: bool = False
    suggested: bool = False

    @property
    def name(self) -> str:
        """What tells it, in words for a table."""
        more = (("offers", self.offers), ("suggestions", self.suggested))
        return " and ".join([self.by, *(name for name, taken in more if taken)])

    @property
    def way(self) -> str:
        """How it deletes, in words for a table."""
        if self.by == "nothing":
            return "–"
        return "erase" if self.mode == "erase" else f"redact the {self.unit}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What stood there when a checkpoint was asked.

    `contexts` are the texts chosen for its question, by how many were asked for; `chosen` the
    records of the first of them; `stored` the texts of every record there is.
    """

    checkpoint: Checkpoint
    contexts: dict[int, list[str]]
    chosen: list[Record]
    stored: list[str]


@dataclass(slots=True)
class Counts:
    """What an agent did in one episode: forgets, records taken or redacted, turns that lifted a guard."""

    forgets: int = 0
    records: int = 0
    lifted: int = 0


@dataclass(slots=True)
class Agent:
    """An agent with one memory for all who speak to it; `due` are the labels, by turn."""

    memory: Memory
    variant: Variant
    due: dict[int, Due]
    counts: Counts = field(default_factory=Counts)

    def hear(self, place: int, turn: Turn, before: str) -> None:
        """Take in the turn with an index; `before` is the text of the one before it."""
        if turn.by_agent:
            self._reply(turn, before)
        elif self.variant.by == "recogniser":
            self._heed(turn)
        else:
            self._say(turn, turn.text)
        if place in self.due:
            self._delete(self.due[place])

    def asked(self, checkpoint: Checkpoint) -> Asked:
        """Return what a question finds; nothing is stored by that."""
        found = {
            k: self.memory.context(checkpoint.question, k=k, thread=THREAD).records for k in DEPTHS
        }
        contexts = {k: [one.text for one in records] for k, records in found.items()}
        stored = [one.text for one in self.memory.export()]
        return Asked(checkpoint, contexts, found[DEPTHS[0]], stored)

    def _say(self, turn: Turn, text: str) -> Record:
        who = {"speaker": turn.speaker, "role": turn.role}
        guarded = self._guarded()
        said = self.memory.remember(text, thread=THREAD, metadata=who)
        self.counts.lifted += self._guarded() < guarded
        return said

    def _guarded(self) -> int:
        """Return how many digests keep something out."""
        return sum(one.digests for one in self.memory.guards()) if self.variant.guard else 0

    def _reply(self, turn: Turn, before: str) -> None:
        chosen = self.memory.context(before, k=DEPTHS[0], thread=THREAD).ids if before else []
        last = self.memory.history(THREAD, last=1)
        ids = dict.fromkeys([*chosen, *(one.id for one in last)])
        self.memory.record(turn.text, context=list(ids), thread=THREAD)

    def _delete(self, due: Due) -> None:
        if self.variant.by in {"labels", "all labels"}:
            self._forget([Selection(value=one) for one in due.named])
            self._guard(due.named)
        if self.variant.by == "all labels":
            self._forget([Selection(value=one) for one in due.described])

    def _heed(self, turn: Turn) -> None:
        """Do as dellm.Assistant does with a message: a request is carried out, its rest stored."""
        request = recognise(turn.text)
        if request.kind is RequestKind.FORGET:
            self._carry_out(request)
            if request.rest.strip():
                self._say(turn, request.rest)
            return
        said = self._say(turn, turn.text)
        if request.kind is RequestKind.OFFER and self.variant.offers:
            self._carry_out(request, said.id)

    def _carry_out(self, request: Request, *said: int) -> None:
        wish = wish_of(self.memory, request, THREAD, apart=said)
        if wish.total:
            return
        also = suggested(self.memory, request) if self.variant.suggested else ()
        ways = [one for one in wish.selections if not _guesses(one)]
        self._forget([*ways, *(one for one in also if one not in ways)], wish.kept)
        self._guard(named_in(request))

    def _guard(self, named: Sequence[str]) -> None:
        if self.variant.anyway and named:
            self.memory.guards.add(named)

    def _forget(self, ways: Sequence[Selection], kept: Sequence[int] = ()) -> None:
        variant = self.variant
        for way in ways:
            try:
                chosen: Selection = {**way, "exclude": kept}
                plan = self.memory.plan(mode=variant.mode, suspects=False, **chosen)
                receipt = self.memory.forget(
                    plan, guard=variant.guard, unit=variant.unit, scrub=False
                )
            except (NothingMatched, SelectorError):  # nothing holds it, or all there is does
                continue
            self.counts.forgets += 1
            self.counts.records += len(receipt.ids)


def _guesses(way: Selection) -> bool:
    return "meaning" in way or "keyword" in way


def replay(
    episode: Episode, variant: Variant, due: dict[int, Due], embedder: Embedder
) -> Iterator[Asked | Counts]:
    """Yield what each checkpoint finds, in the order they are due, and at the end the counts."""
    with Memory.open(":memory:", embedder=embedder, credentials=variant.credentials) as memory:
        agent = Agent(memory, variant, due)
        waiting = list(episode.checkpoints)
        before = ""
        for place, turn in enumerate(episode.turns):
            agent.hear(place, turn, before)
            before = turn.text
            while waiting and waiting[0].after == place:
                yield agent.asked(waiting.pop(0))
        yield agent.counts
