"""The models of the demo and the notebook: those of dellm, as LlamaIndex takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM

from dellm import (
    Embedder,
    EmbedderError,
    ExtractiveReader,
    HashingEmbedder,
    Model,
    ModelError,
    WeightsError,
)

WORDS = 24  # tokens that the local model may answer with


class PromptOnly(CustomLLM):
    """A model of dellm as an LLM: it knows what its prompt says, and nothing else.

    It reads what the user stated and what was retrieved; more would only confuse a very small model.
    """

    inner: Any  # a dellm.Model

    @property
    def metadata(self) -> LLMMetadata:
        """What engines ask of a model: it chats, and calls no tools."""
        return LLMMetadata(model_name="dellm", is_chat_model=True, context_window=8_192)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **_kwargs: Any) -> ChatResponse:
        """Answer the last message by the others."""
        answer = self._ask(_lines(messages[:-1]), messages[-1].content or "")
        return ChatResponse(message=ChatMessage(role="assistant", content=answer))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **_kwargs: Any) -> ChatResponseGen:
        """Answer in words, one after the other."""
        answer = self._ask(_lines(messages[:-1]), messages[-1].content or "")

        def words() -> ChatResponseGen:
            said = ""
            for word in answer.split(" "):
                delta = f" {word}" if said else word
                said += delta
                yield ChatResponse(message=ChatMessage(role="assistant", content=said), delta=delta)

        return words()

    @llm_completion_callback()
    def complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002 - the interface's form
        **_kwargs: Any,
    ) -> CompletionResponse:
        """Answer the last line of a prompt by those before it."""
        lines = prompt.strip().splitlines() or [""]
        return CompletionResponse(text=self._ask(lines[:-1], lines[-1]))

    @llm_completion_callback()
    def stream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002 - the interface's form
        **kwargs: Any,
    ) -> CompletionResponseGen:
        """Answer as `complete`, in one piece."""
        answer = self.complete(prompt, **kwargs).text

        def whole() -> CompletionResponseGen:
            yield CompletionResponse(text=answer, delta=answer)

        return whole()

    def _ask(self, known: Sequence[str], question: str) -> str:
        memory = "\n".join(known)
        content = f"<memory>\n{memory}\n</memory>\n\n{question}" if memory.strip() else question
        answer: str = self.inner.complete([{"role": "user", "content": content}])
        return " ".join(answer.split())


def _lines(messages: Sequence[ChatMessage]) -> list[str]:
    """Return what the user stated in a prompt, and what was retrieved for it, a line each."""
    lines: list[str] = []
    for one in messages:
        said = one.content or ""
        if one.role == "system":
            lines += [line for line in said.splitlines()[1:] if not line.startswith("--")]
        elif one.role == "user" and not said.endswith("?"):
            lines.append(said)
    return lines


class Embedded(BaseEmbedding):
    """An embedder of dellm as LlamaIndex takes one."""

    inner: Any  # a dellm.Embedder

    def _get_text_embedding(self, text: str) -> list[float]:
        return [float(one) for one in self.inner.embed([text])[0]]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, query)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The models that the demo talks with, and one line on them."""

    llm: PromptOnly
    embedding: Embedded
    embedder: Embedder
    says: str


def choose(*, offline: bool) -> Chosen:
    """Return the best models in reach: SmolLM2 and MiniLM, else quoting and spelling."""
    model, says = _model(offline=offline)
    embedder = _embedder(offline=offline)
    return Chosen(PromptOnly(inner=model), Embedded(inner=embedder), embedder, says)


def _model(*, offline: bool) -> tuple[Model, str]:
    if not offline:
        from dellm import SmolModel

        try:
            return SmolModel(max_tokens=WORDS), "SmolLM2 in this process, a very small model."
        except (ModelError, WeightsError):
            pass  # its weights are not installed
    return ExtractiveReader(), "No language model: a reader quotes the best sentence of its prompt."


def _embedder(*, offline: bool) -> Embedder:
    if not offline:
        from dellm import MiniLMEmbedder

        try:
            return MiniLMEmbedder()
        except (EmbedderError, WeightsError):
            pass  # as above
    return HashingEmbedder()
