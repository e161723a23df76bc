"""DeLLMSummaryBlock: a summary of what a conversation was, which follows its sources."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextvars import Context
from typing import Any, ClassVar

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field

from dellm import InvalidInput, Item, Record

from .blocks import MakingBlock, Shelf
from .messages import message_of, text_of

NAME = "summary"  # there is one in a session
AT_ONCE = 40_000  # characters of messages that are given to the model at a time when it begins anew
PROMPT = """Below is a part of a conversation, and a summary of what came before it. Answer with one \
summary of all of it, which will take the place of both. Keep what matters for going on: who the user \
is and what they want, facts, decisions with their reasons, what was done and made, what is left to \
do. Answer with the summary alone.

<summary>
{summary}
</summary>

<messages>
{messages}
</messages>"""


class DeLLMSummaryBlock(MakingBlock):
    """Keeps one summary of what a stock Memory has flushed, made from exactly these messages.

    `DeLLMSummaryBlock(memory, llm=...)`, `memory` a dellm.Memory, a DeLLMMemory, or the path or URL of
    one. The summary is a record of kind "summary" of its session. When one of its messages is
    forgotten, it is written anew from the others by the same model, before the forget is carried out;
    if that fails it is erased. In a process where no block of this name was made, it is erased too.
    `prompt` holds {summary} and {messages}.

    With a DeLLMChatStore the messages are the records they are there. The rows of a stock
    SQLAlchemyChatStore, and messages that no block was given yet, are out of reach of a forget: use
    DeLLMChatStore. Resetting a Memory empties no block: `clear` does, and `forget` of the memory.
    """

    name: str = Field(default="Summary", description="The name of the memory block.")
    prompt: str = Field(default=PROMPT, description="The prompt, with {summary} and {messages}.")

    kind: ClassVar[str] = "summary"

    def model_post_init(self, context: Any, /) -> None:
        """Say who writes the summaries anew."""
        super().model_post_init(context)
        if "{summary}" not in self.prompt or "{messages}" not in self.prompt:
            raise InvalidInput("The prompt of a summary holds no {summary}, or no {messages}.")
        self.core.rebuilder(self._rebuild, self._anew)

    @property
    def _rebuild(self) -> str:
        return f"llama_index.summary:{self.name}"

    def summary(self, session_id: str | None = None) -> str:
        """Return the summary of a session; an empty text where there is none."""
        return self._shown(self._texts(session_id))

    def _shown(self, texts: Sequence[str]) -> str:
        return "".join(texts)

    async def _make(self, thread: str, messages: list[ChatMessage], records: list[int]) -> bool:
        shelf = self._shelf(thread)
        known = await asyncio.to_thread(shelf.all)
        before = self._shown([one.record.text for one in known])
        await self._told([*records, *(one.record.id for one in known)])
        reply = await self.llm.achat([self._asked(before, messages)])
        text = (reply.message.content or "").strip()
        return not text or await asyncio.to_thread(self._keep, shelf, text, known, records)

    def _keep(self, shelf: Shelf, text: str, known: Sequence[Item], records: Sequence[int]) -> bool:
        """Keep a summary, made from all that the one before it was made from, it, and the records."""
        ids = [one.record.id for one in known]
        earlier = [parent for id_ in ids for parent in self.core.context_of(id_)]
        parents = list(dict.fromkeys([*earlier, *ids, *records]))
        return shelf.add([text], parents, name=NAME, metadata={"rebuild": self._rebuild})

    def _asked(self, before: str, messages: Sequence[ChatMessage]) -> ChatMessage:
        said = "\n".join(f"{one.role.value}: {text_of(one)}" for one in messages)
        filled = self.prompt.replace("{summary}", before).replace("{messages}", said)
        return ChatMessage(filled, role="user")

    # making it anew

    def _anew(self, _: Record, sources: Sequence[Record]) -> str | None:
        """Return a summary of the messages that stay, None where there are none."""
        messages = [message_of(one) for one in sources if one.kind in ("message", "tool")]
        text = ""
        for some in _portions(messages):
            # In a context of its own: the reply is none of a turn that a forget is asked for in.
            reply = Context().run(self.llm.chat, [self._asked(text, some)])
            text = (reply.message.content or "").strip()
        return text or None


def _portions(messages: Sequence[ChatMessage]) -> Iterator[list[ChatMessage]]:
    """Yield messages in order, as many at a time as a model may be given."""
    portion: list[ChatMessage] = []
    size = 0
    for one in messages:
        length = len(text_of(one))
        if portion and size + length > AT_ONCE:
            yield portion
            portion, size = [], 0
        portion.append(one)
        size += length
    if portion:
        yield portion
