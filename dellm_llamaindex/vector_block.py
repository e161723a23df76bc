"""DeLLMVectorBlock: what was said earlier in a session and matters now, for the stock Memory.

Source of the interface: VectorMemoryBlock of llama-index-core 0.14.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field, field_validator
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate, RichPromptTemplate
from llama_index.core.schema import NodeWithScore

from dellm import Chosen

from . import scopes
from .blocks import DeLLMBlock, read, template_of
from .documents import marked
from .messages import text_of
from .retriever import node_of
from .tags import tag_of

SPARE = 8  # records looked at besides, for those that are no messages
MOST = 10_000


class DeLLMVectorBlock(DeLLMBlock):
    """Finds what was said earlier in a session by meaning; what was forgotten is not found.

    In place of VectorMemoryBlock: `DeLLMVectorBlock(memory)`, `memory` a dellm.Memory, a DeLLMMemory,
    or the path or URL of one; its embedder is used, and without one keywords count. What still stands
    in the prompt is not found again, nor is what was dropped from the session. Each search is of the
    session that it is made for, and of no other; only one made without a session, which a Memory never
    makes, is of the whole workspace.

    With a DeLLMChatStore the messages are the records they are there. The rows of a stock
    SQLAlchemyChatStore, and messages that no block was given yet, are out of reach of a forget: use
    DeLLMChatStore.
    """

    name: str = Field(default="RetrievedMessages", description="The name of the memory block.")
    similarity_top_k: int = Field(default=2, description="How many messages are found at most.")
    similarity_threshold: float | None = Field(
        default=None, description="Least cosine in [-1, 1]; None: the embedder's own."
    )
    by: Literal["meaning", "keyword", "both"] | None = Field(
        default=None, description="How it is looked for; None: by meaning, if there is an embedder."
    )
    retrieval_context_window: int = Field(
        default=5, description="How many of the last messages say what is looked for."
    )
    format_template: BasePromptTemplate = Field(
        default=RichPromptTemplate("{{ text }}"), description="The template with {{ text }}."
    )
    node_postprocessors: list[BaseNodePostprocessor] = Field(
        default_factory=list, description="What the messages found go through, as nodes."
    )

    _template = field_validator("format_template", mode="before")(template_of)

    async def _add(self, thread: str, messages: list[ChatMessage], records: list[int]) -> None:
        """Nothing is left to do: the messages are records, and what is a record can be found."""

    async def _aget(
        self, messages: list[ChatMessage] | None = None, session_id: str | None = None, **_: Any
    ) -> str:
        scope = scopes.current()
        asked = " ".join(text_of(one) for one in (messages or [])[-self.retrieval_context_window :])
        if not asked.strip():
            return ""
        chosen = await asyncio.to_thread(self._found, asked, messages or [], session_id)
        read(self.core, [one.record.id for one in chosen], scope)
        nodes = [self._node(one) for one in chosen]
        for one in self.node_postprocessors:
            nodes = await one.apostprocess_nodes(nodes, query_str=asked)
        said = "\n".join(
            f"<message role='{one.node.metadata.get('role')}'>{one.node.get_content()}</message>"
            for one in nodes
        )
        return self.format_template.format(text=said) if said else ""

    def _found(
        self, asked: str, messages: Sequence[ChatMessage], session_id: str | None
    ) -> list[Chosen]:
        """Return the messages that are relevant, the best first."""
        tags = [tag_of(one) for one in messages]
        without = [one.record for one in tags if one is not None and one.owner == self.owner]
        texts = {text_of(one) for one in messages}
        wanted = self.similarity_top_k + SPARE
        while True:
            chosen = self._chosen(asked, wanted, without, session_id)
            found = [
                one
                for one in chosen
                if one.record.kind in ("message", "tool") and one.record.text not in texts
            ]
            if len(found) >= self.similarity_top_k or len(chosen) < wanted or wanted >= MOST:
                break
            wanted = min(MOST, 4 * wanted)
        return found[: self.similarity_top_k]

    def _node(self, chosen: Chosen) -> NodeWithScore:
        node = marked(node_of(chosen.record), self.owner, chosen.record.id)
        return NodeWithScore(node=node, score=chosen.score)

    def _chosen(
        self, asked: str, wanted: int, without: Sequence[int], session_id: str | None
    ) -> list[Chosen]:
        found = self.core.context(
            asked,
            thread=session_id,
            k=wanted,
            threshold=self.similarity_threshold,
            by=self.by,
            scope="workspace" if session_id is None else "thread",
            without=without,
        )
        return sorted(found, key=lambda one: -(one.score or 0.0))
