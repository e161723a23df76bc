"""The paper's systems as the library ships them, for conversations that are loaded, not lived.

Texts are fixed and replies were not made here. A memory records each reply with the context that
would have been chosen for the message before it, and that message: what DeLLM would have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dellm import Memory
from dellm.embedding import Embedder
from dellm.errors import SelectorError
from dellm.models import Model
from dellm.plan import STRICT, Plan, Reach, depth
from dellm.records import Context
from dellm.systems import BASELINE_INSTRUCTIONS, NoMemory, asked

from .embedding_once import OnceEmbedded
from .running import Run
from .systems import Said, System, forget_request

THREAD = "main"
MEANINGS = (0.8, 0.4, 0.2, 0.1)


class Alone:
    """The paper's "LLM w/o memory": each question by itself."""

    name = "no memory"

    def __init__(self, model: Model) -> None:
        self._system = NoMemory(model)

    def tell(self, text: str) -> str:
        """Answer from the message alone."""
        return self._system.send(text).text

    def load(self, said: Sequence[Said]) -> None:
        """Keep nothing of it."""

    def ask(self, question: str) -> str:
        """Answer from the question alone."""
        return self.tell(question)

    def forget(self, fact: str) -> int:
        """Say the request to the model, which has nothing to forget."""
        self.tell(forget_request(fact))
        return 0

    def held(self) -> list[str]:
        """Return nothing."""
        return []

    def close(self) -> None:
        """Hold nothing to free."""


class Whole:
    """The paper's "LLM w/ memory": the whole conversation in every prompt."""

    name = "full history"

    def __init__(self, model: Model) -> None:
        self._model = model
        self._said: list[Said] = []

    def tell(self, text: str) -> str:
        """Answer from all that was said; both stay."""
        reply = self.ask(text)
        self._said += [Said("user", text), Said("assistant", reply)]
        return reply

    def load(self, said: Sequence[Said]) -> None:
        """Append the messages."""
        self._said += said

    def ask(self, question: str) -> str:
        """Answer from all that was said; nothing of it stays."""
        said = [*self._said, Said("user", question)]
        system = {"role": "system", "content": BASELINE_INSTRUCTIONS}
        return self._model.complete([system, *({"role": s.role, "content": s.text} for s in said)])

    def forget(self, fact: str) -> int:
        """Say the request to the model, like any message: it can only be asked to pretend."""
        self.tell(forget_request(fact))
        return 0

    def held(self) -> list[str]:
        """Return every message."""
        return [one.text for one in self._said]

    def close(self) -> None:
        """Free nothing: it holds texts only."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a memory chooses contexts and forgets: by a message's words, or by `meaning` at least."""

    name: str
    k: int = 5
    by: str | None = None
    reach: Reach = STRICT
    meaning: float | None = None


class Remembering:
    """DeLLM: contexts of the nearest records above the embedder's own threshold, and provenance."""

    def __init__(self, model: Model, embedder: Embedder, settings: Settings) -> None:
        self.name = settings.name
        self._model, self._settings = model, settings
        self._memory = Memory.open(":memory:", embedder=embedder)

    def tell(self, text: str) -> str:
        """Answer from the context chosen; both are recorded."""
        chosen = self._choose(text)
        question = self._memory.remember(text, thread=THREAD)
        reply = self._model.complete(asked(text, chosen.records))
        self._memory.record(reply, context=[*chosen.ids, question.id], thread=THREAD)
        return reply

    def load(self, said: Sequence[Said]) -> None:
        """Record the messages, a reply with what would have been its context.

        Where the reach follows no replies, that is the message before it: the rest is never asked.
        """
        context: list[int] = []
        for one in said:
            if one.role == "assistant":
                self._memory.record(one.text, context=context, thread=THREAD)
                continue
            seen = self._choose(one.text).ids if self._settings.reach == STRICT else ()
            context = [*seen, self._memory.remember(one.text, thread=THREAD).id]

    def ask(self, question: str) -> str:
        """Answer from the context chosen; nothing is recorded."""
        chosen = self._choose(question)
        return self._model.complete(asked(question, chosen.records))

    def forget(self, fact: str) -> int:
        """Erase the messages that hold the fact's words, or mean it, and what the reach takes."""
        plan = self._plan(fact)
        if plan.ids:
            self._memory.forget(plan, scrub=False)
        return len(plan.ids)

    def held(self) -> list[str]:
        """Return the text of every record."""
        return [one.text for one in self._memory.export()]

    def close(self) -> None:
        """Close the memory, which ends with it."""
        self._memory.close()

    def _plan(self, fact: str) -> Plan:
        reach, least = self._settings.reach, self._settings.meaning
        if least is None:
            return self._memory.plan(quote=fact, reach=reach, suspects=False)
        try:
            return self._memory.plan(meaning=fact, threshold=least, reach=reach, suspects=False)
        except SelectorError:  # every record that is left means it: a user must say so, we do
            return self._memory.plan(everything=True, reach=reach, suspects=False)

    def _choose(self, text: str) -> Context:
        k, by = self._settings.k, self._settings.by
        return self._memory.context(text, thread=THREAD, k=k, by=by)


def systems(run: Run, embedder: Embedder | None = None) -> dict[str, Callable[[], System]]:
    """Return how to make each system, by name: the paper's, ours, semantic deletion.

    Texts are embedded once for all of them.
    """
    once = embedder or OnceEmbedded(run.embedder)
    settings = (
        Settings("DeLLM (k=5, strict)"),
        Settings("DeLLM (k=10, meaning and words, strict)", k=10, by="both"),
        *(
            Settings(f"semantic deletion ({t})", reach=depth(0), meaning=t)
            for t in (MEANINGS[-2:] if run.small else MEANINGS)
        ),
    )
    return {
        Alone.name: partial(Alone, run.model),
        Whole.name: partial(Whole, run.model),
        **{one.name: partial(Remembering, run.model, once, one) for one in settings},
    }
