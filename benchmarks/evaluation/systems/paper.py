"""DeLLM as the paper has it: the library's Assistant with the top 5 over 0.25 and strict reach."""

from __future__ import annotations

from collections.abc import Sequence

from dellm import Memory
from dellm.assistant import Assistant
from dellm.embedding import Embedder
from dellm.models import Model
from dellm.systems import asked

from . import Said, forget_request

THREAD = "main"
K = 5


class Paper:
    """An Assistant on a memory of its own; it forgets when asked in words and told yes."""

    name = "DeLLM (paper)"

    def __init__(self, model: Model, embedder: Embedder) -> None:
        self._memory = Memory.open(":memory:", embedder=embedder)
        self._model = model
        self._assistant = Assistant(self._memory, model, thread=THREAD, k=K)

    def tell(self, text: str) -> str:
        """Send it to the assistant, which records it and its reply."""
        return self._assistant.send(text).text

    def load(self, said: Sequence[Said]) -> None:
        """Record the messages, a reply with its question and what would have been its context."""
        context: list[int] = []
        for one in said:
            if one.role == "assistant":
                self._memory.record(one.text, context=context, thread=THREAD)
                continue
            seen = self._memory.context(one.text, thread=THREAD, k=K).ids
            context = [*seen, self._memory.remember(one.text, thread=THREAD).id]

    def ask(self, question: str) -> str:
        """Answer with the prompt that the assistant would send; nothing is recorded."""
        chosen = self._memory.context(question, thread=THREAD, k=K)
        return self._model.complete(asked(question, chosen.records))

    def forget(self, fact: str) -> int:
        """Send the request and, where a plan is shown, yes; return how many records went."""
        before = len(self.held())
        if self._assistant.send(forget_request(fact)).pending:
            self._assistant.confirm(True)
        return before - len(self.held())

    def held(self) -> list[str]:
        """Return the text of every record."""
        return [one.text for one in self._memory.export()]

    def close(self) -> None:
        """Close the memory, which ends with it."""
        self._memory.close()
