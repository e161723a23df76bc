"""Which texts were made from which messages: how a summary is known again among what a task wrote.

A summarizer hands back a bare string, and what called it puts that into a message of its own making.
So each text is kept with the messages that it was made from, until the message comes to be stored.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage

from dellm import Draft

from .calls import Call

# What SummarizationMiddleware puts in front of a summary (langchain.agents.middleware.summarization).
LEAD = "Here is a summary of the conversation to date:\n\n"
SUMMARIES = {"lc_source": "summarization"}
REBUILD = "rebuild"  # see dellm's Memory.rebuilder
MOST = 1_024  # texts that are kept


class MadeText(NamedTuple):
    """What a text was made from, as the prompt of a call, who makes it anew, and by which model."""

    call: Call
    rebuild: str
    model: str | None = None

    def marked(self, draft: Draft) -> Draft:
        """Return the draft of the message with the text as that of a summary to be rebuilt."""
        said = {**(draft.metadata or {}), REBUILD: self.rebuild}
        return replace(draft, kind="summary", metadata=said, model=self.model or draft.model)


class MadeTexts:
    """The texts made last in this process, the oldest dropped first; safe in threads.

    A text that was dropped is one of which nothing is known, as of any other.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._made: OrderedDict[str, list[MadeText]] = OrderedDict()
        self._guard = threading.Lock()

    def note(self, text: str, made: MadeText) -> None:
        """Keep what a text was made from."""
        with self._guard:
            self._made.setdefault(text, []).append(made)
            self._made[text] = self._made[text][-self._most // 8 :]
            self._made.move_to_end(text)
            while len(self._made) > self._most:
                self._made.popitem(last=False)

    def of(
        self, message: BaseMessage, *, owner: Hashable, thread_id: str, task_id: str | None
    ) -> MadeText | None:
        """Return what a message's text was made from, where it says that and nothing more.

        None where that is not known, also where two made the same of different messages.
        """
        if not self._made or not _says_only_its_text(message):
            return None
        text = str(message.content).removeprefix(LEAD)
        with self._guard:
            made = [
                one
                for one in self._made.get(text, ())
                if one.call.owner == owner
                and one.call.thread_id == thread_id
                and (task_id is None or task_id in one.call.tasks)
            ]
        alike = all(one.call.prompt.same(made[-1].call.prompt) for one in made)
        return made[-1] if made and alike else None


def _says_only_its_text(message: BaseMessage) -> bool:
    """Whether all that a message says is its content, so that all of it can be made anew."""
    return (
        type(message) is HumanMessage
        and type(message.content) is str
        and message.name is None
        and not message.response_metadata
        and message.additional_kwargs in ({}, SUMMARIES)
    )


made_texts = MadeTexts()
