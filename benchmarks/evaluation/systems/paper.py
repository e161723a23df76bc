"""DeLLM as the paper has it: the library's Assistant with the top 5 over 0.25 and strict reach."""

from __future__ import annotations

from benchmarks.evaluation.shipped import THREAD, Remembering, Settings
from dellm.assistant import Assistant
from dellm.embedding import Embedder
from dellm.models import Model

from . import forget_request


class Paper(Remembering):
    """An Assistant on a memory of its own; it forgets when asked in words and told yes.

    A fixed conversation, and a probe, are put to the memory as the assistant would.
    """

    name = "DeLLM (paper)"

    def __init__(self, model: Model, embedder: Embedder) -> None:
        settings = Settings(self.name)
        super().__init__(model, embedder, settings)
        self._assistant = Assistant(self._memory, model, thread=THREAD, k=settings.k)

    def tell(self, text: str) -> str:
        """Send it to the assistant, which records it and its reply."""
        return self._assistant.send(text).text

    def forget(self, fact: str) -> int:
        """Send the request and, where a plan is shown, yes; return how many records went."""
        before = len(self.held())
        if self._assistant.send(forget_request(fact)).pending:
            self._assistant.confirm(True)
        return before - len(self.held())
