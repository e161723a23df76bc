"""DeLLMFactBlock: the facts of a conversation, each with what it was taken from.

Source of the interface and of the prompts: FactExtractionMemoryBlock of llama-index-core 0.14.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import ClassVar

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field, field_validator
from llama_index.core.memory.memory_blocks.fact import (
    DEFAULT_FACT_CONDENSE_PROMPT,
    DEFAULT_FACT_EXTRACT_PROMPT,
)
from llama_index.core.prompts import BasePromptTemplate

from dellm import Item

from .blocks import MakingBlock, Shelf, template_of

_FACT = re.compile(r"<fact>(.*?)</fact>", re.DOTALL)


class DeLLMFactBlock(MakingBlock):
    """Takes facts from the messages that a stock Memory flushes; a forget of a message takes its facts.

    In place of FactExtractionMemoryBlock: `DeLLMFactBlock(memory, llm=...)`, `memory` a dellm.Memory,
    a DeLLMMemory, or the path or URL of one. Each fact is a record of kind "fact" of its session,
    made from all the messages that were looked at with it and from the facts known by then: these
    were in the model's prompt. Facts are those of one session; they survive the process.

    With a DeLLMChatStore the messages are the records they are there. The rows of a stock
    SQLAlchemyChatStore, and messages that no block was given yet, are out of reach of a forget: use
    DeLLMChatStore. Resetting a Memory empties no block: `clear` does, and `forget` of the memory.
    """

    name: str = Field(default="ExtractedFacts", description="The name of the memory block.")
    max_facts: int = Field(default=50, description="Facts above which they are condensed.")
    fact_extraction_prompt_template: BasePromptTemplate = Field(
        default=DEFAULT_FACT_EXTRACT_PROMPT, description="The prompt with {{ existing_facts }}."
    )
    fact_condense_prompt_template: BasePromptTemplate = Field(
        default=DEFAULT_FACT_CONDENSE_PROMPT,
        description="The prompt with {{ existing_facts }} and {{ max_facts }}.",
    )

    _template = field_validator(
        "fact_extraction_prompt_template", "fact_condense_prompt_template", mode="before"
    )(template_of)

    kind: ClassVar[str] = "fact"

    def facts(self, session_id: str | None = None) -> list[str]:
        """Return the facts of a session, the oldest first."""
        return self._texts(session_id)

    def _shown(self, texts: Sequence[str]) -> str:
        return "\n".join(f"<fact>{one}</fact>" for one in texts)

    async def _make(self, thread: str, messages: list[ChatMessage], records: list[int]) -> bool:
        shelf = self._shelf(thread)
        known = await asyncio.to_thread(shelf.all)
        parents = [*records, *(one.record.id for one in known)]
        await self._told(parents)
        found = await self._ask(self.fact_extraction_prompt_template, messages, known)
        there = {one.record.text for one in known}
        fresh = [one for one in found if one not in there]
        if fresh and not await asyncio.to_thread(shelf.add, fresh, parents):
            return False
        if len(known) + len(fresh) > self.max_facts:
            await self._condense(shelf, messages, records)
        return True

    async def _condense(
        self, shelf: Shelf, messages: list[ChatMessage], records: list[int]
    ) -> None:
        """Replace the facts by fewer; a fact that stays word by word stays what it is."""
        known = await asyncio.to_thread(shelf.all)
        await self._told([*records, *(one.record.id for one in known)])
        found = await self._ask(self.fact_condense_prompt_template, messages, known)
        if len(known) <= self.max_facts or not found:
            return
        there = {one.record.text for one in known}
        fresh = [one for one in found if one not in there]
        parents = [*records, *(one.record.id for one in known)]
        # What is made anew is there before the old goes: nothing is lost where it is refused.
        if not fresh or await asyncio.to_thread(shelf.add, fresh, parents):
            old = [one for one in known if one.record.text not in found]
            await asyncio.to_thread(shelf.drop, old)

    async def _ask(
        self, template: BasePromptTemplate, messages: list[ChatMessage], known: Sequence[Item]
    ) -> list[str]:
        """Return the facts that the model finds, each once."""
        prompt = template.format_messages(
            existing_facts=self._shown([one.record.text for one in known]), max_facts=self.max_facts
        )
        reply = await self.llm.achat(messages=[*messages, *prompt])
        said = (one.strip() for one in _FACT.findall(reply.message.content or ""))
        return list(dict.fromkeys(one for one in said if one))
