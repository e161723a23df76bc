"""DeLLMSummarizer: summaries that follow their sources, for LangChain's SummarizationMiddleware."""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Sequence
from contextvars import Context
from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AnyMessage, BaseMessage, get_buffer_string
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.constants import TAG_NOSTREAM

from dellm import InvalidInput, Memory, Record
from dellm.adapting import check_text

from .call_places import owner, parsed, with_ambient
from .calls import Call, Prompt
from .capture import captured
from .made_texts import LEAD, MadeText, made_texts
from .messages import model_of, recipe
from .options import checked_key, checked_serde
from .tenants import Tenanted, workspace_named

_SOURCE = "summarization"  # as the stock middleware names its own calls
# In front of what is summarized, where the user gives no prompt: what stock says, in fewer words.
PROMPT = """Below is the beginning of a conversation. It will be replaced by what you answer, so keep \
everything that matters for going on: what the user wants, facts, decisions with their reasons, \
what was done and made, what is left to do. Answer with the summary alone.

<messages>
{messages}
</messages>"""


class DeLLMSummarizer(Tenanted, Runnable[list[AnyMessage], str]):
    """Summarizes messages so that each summary is a record made from exactly these messages.

    For `SummarizationMiddleware(model, summarizer=DeLLMSummarizer(model, memory))` in an agent with
    a DeLLMSaver of the same memory. When one of the messages is forgotten, the summary is written
    anew from the others by the same model, before the forget is carried out; if that fails it is
    erased. In a process where no DeLLMSummarizer of this `name` was made, it is erased too.

    `model` is a chat model, its name for init_chat_model, or any runnable from a prompt to a
    message or text (`model.with_retry()`). `prompt` holds {messages}. `workspace` is the key of
    `configurable` that says in whose workspace a run is, as for the saver. `serde` is the saver's,
    where that is not the stock one.
    """

    def __init__(
        self,
        model: str | Runnable[LanguageModelInput, Any],
        memory: Memory,
        *,
        workspace: str | None = None,
        prompt: str = PROMPT,
        name: str = "default",
        serde: SerializerProtocol | None = None,
    ) -> None:
        if not isinstance(memory, Memory):
            raise InvalidInput("DeLLMSummarizer takes a dellm.Memory.")
        check_text(prompt, "prompt=")
        check_text(name, "name=")
        if "{messages}" not in prompt:
            raise InvalidInput("The prompt of a summarizer does not hold {messages}.")
        self.name = "DeLLMSummarizer"
        self.memory = memory
        self._model = _model(model)
        self._key = checked_key(workspace)
        self._prompt = prompt
        self._serde = checked_serde(serde) or JsonPlusSerializer()
        self._rebuild = f"summary:{name}"
        memory.rebuilder(self._rebuild, self._anew)

    def invoke(
        self,
        input: list[AnyMessage],  # noqa: A002 - the interface's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> str:
        """Return the summary of messages. Raises InvalidInput, and what the model raises."""
        config = ensure_config(config)
        call = self._call(input, config)
        return self._noted(self._model.invoke(self._asked(input), config, **kwargs), call)

    async def ainvoke(
        self,
        input: list[AnyMessage],  # noqa: A002 - the interface's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> str:
        """As invoke."""
        config = ensure_config(config)
        call = self._call(input, config)
        return self._noted(await self._model.ainvoke(self._asked(input), config, **kwargs), call)

    def _asked(self, messages: Sequence[BaseMessage]) -> str:
        said = get_buffer_string(messages, format="xml")
        return self._prompt.replace("{messages}", said)

    def _noted(self, reply: Any, call: Call) -> str:
        text = _text(reply)
        model = model_of(reply) if isinstance(reply, BaseMessage) else None
        made_texts.note(text, MadeText(call, self._rebuild, model))
        return text

    def _call(self, messages: Sequence[BaseMessage], config: RunnableConfig) -> Call:
        """Return what is noted of a summary: the messages it is made from, and where."""
        metadata, thread = with_ambient(config.get("metadata") or {})
        tasks, node = parsed(metadata.get("langgraph_checkpoint_ns") or "")
        run_id = uuid.uuid4()
        return Call(
            run_id=run_id,
            root=run_id,
            steps=() if thread is None else ((str(thread), None),),
            tasks=tuple(tasks),
            node=node,
            prompt=Prompt(messages),
            opaque=False,
            tool_call_id=None,
            lc_source=_SOURCE,
            owner=self._owner(config),
            moment=captured.now(),
        )

    def _owner(self, config: RunnableConfig) -> Hashable:
        """Return whose the summary is: the memory, and the workspace that the run's saver writes to."""
        named = self.memory.identity, self._workspace(config)
        running = owner()
        same_memory = isinstance(running, tuple) and running[0] == named[0]
        return running if same_memory and self._key is None else named

    def _workspace(self, config: RunnableConfig) -> str:
        if self._key is None:
            return self.memory.id
        return workspace_named(config.get("configurable", {}), self._key)

    # making it anew

    def _anew(self, record: Record, sources: Sequence[Record]) -> str | None:
        """Return the new text of a summary's record; None where it may hold more than its sources."""
        if record.metadata.get("inexact"):
            return None
        messages = [self._message(one) for one in sources if one.kind != "state"]
        if not messages:
            return None
        # In a context of its own: the reply belongs to no run that a forget may be asked for in.
        config = RunnableConfig(tags=[TAG_NOSTREAM], metadata={"lc_source": _SOURCE})
        text = _text(Context().run(self._model.invoke, self._asked(messages), config))
        lead = LEAD if record.text.startswith(LEAD) else ""
        return lead + text if text else None

    def _message(self, record: Record) -> BaseMessage:
        return recipe(
            record.role,
            record.text,
            record.framework_id,
            record.payload,
            self._serde,
            record.metadata,
        ).make()


def _model(model: str | Runnable[LanguageModelInput, Any]) -> Runnable[LanguageModelInput, Any]:
    if isinstance(model, str):
        from langchain.chat_models import init_chat_model

        return init_chat_model(model)
    if not isinstance(model, Runnable):
        raise InvalidInput("The model of a summarizer is neither a name nor a runnable.")
    return model


def _text(reply: Any) -> str:
    return str(reply.text if isinstance(reply, BaseMessage) else reply).strip()
