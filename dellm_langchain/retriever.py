"""DeLLMRetriever: what is remembered, as the documents of a LangChain retriever.

Source of the interface: langchain_core.retrievers of langchain-core 1.8, `BaseRetriever`.
"""

# ruff: noqa: ARG002 - LangChain passes these arguments whether they are needed or not

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context
from langchain_core.runnables.utils import coro_with_context
from pydantic import ValidationError, field_validator

from dellm import Chosen, InvalidInput, Memory, Record

from .addresses import thread_name
from .running import Here, here
from .tracked_reads import shown

ID = "dellm_id"  # the metadata of a document that names its record
SPARE = 4  # records looked up besides, for those that only repeat the question


class Placed(BaseRetriever):
    """A retriever whose code is told the config it is run with, by whomever it is called."""

    def invoke(
        self,
        input: str,  # noqa: A002 - the interface's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the documents for a query; see BaseRetriever.invoke."""
        with set_config_context(ensure_config(config)) as context:
            return context.run(super().invoke, input, config, **kwargs)

    async def ainvoke(
        self,
        input: str,  # noqa: A002 - the interface's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """As invoke."""
        with set_config_context(ensure_config(config)) as context:
            return await coro_with_context(super().ainvoke(input, config, **kwargs), context)


class DeLLMRetriever(Placed):
    """Finds what is relevant in a Memory; a reply made of it then depends on just these records.

    Each Document's `id` is that of its record as text. Its metadata say `dellm_id` (the same as a
    number), `thread`, `role`, `kind`, `created_at` (ISO 8601, UTC) and `score`, the best first;
    those of a document the user's own metadata as well.

    `k`: at most so many; `invoke(query, k=n)` overrides it, as it does each of the following.
    `threshold`: least cosine in [-1, 1], None for the embedder's own. `by`: "meaning", "keyword" or
    "both". `scope`: the whole "workspace", or only the "thread", which is the run's where none is
    given. `workspace` names the key of `configurable` that says in whose workspace a run is;
    without it that is the one of `memory`. In a graph, messages that say just what is asked for are
    left out: that is the question itself.
    """

    memory: Any
    thread: Any = None
    k: int = 4
    threshold: float | None = None
    by: str | None = None
    scope: str = "workspace"
    workspace: str | None = None

    def __init__(self, **options: Any) -> None:
        known = set(type(self).model_fields)
        if unknown := sorted(set(options) - known):
            raise InvalidInput(f"DeLLMRetriever has no {unknown[0]}=.")
        try:
            super().__init__(**options)
        except ValidationError as error:
            wrong = error.errors(include_input=False, include_context=False)[0]["loc"]
            raise InvalidInput(f"{wrong[0]}= of DeLLMRetriever is of a wrong type.") from None
        if self.k < 0:
            raise InvalidInput("k= of DeLLMRetriever is negative.")
        if self.by not in (None, "meaning", "keyword", "both"):
            raise InvalidInput('by= is "meaning", "keyword", "both" or None.')
        if self.scope not in ("workspace", "thread"):
            raise InvalidInput('scope= is "workspace" or "thread".')

    @field_validator("memory")
    @classmethod
    def _check_memory(cls, memory: Any) -> Memory:
        if not isinstance(memory, Memory):
            raise InvalidInput("DeLLMRetriever takes a dellm.Memory.")
        return memory

    def for_workspace(self, name: str) -> DeLLMRetriever:
        """Return this retriever for one workspace, whatever the config says."""
        return self.model_copy(update={"memory": self.memory.workspace(name), "workspace": None})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        """Return the records that are relevant to a query as documents."""
        return self._found(query, options)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        """As _get_relevant_documents."""
        return await asyncio.to_thread(self._found, query, options)

    def _found(self, query: str, options: dict[str, Any]) -> list[Document]:
        where = here(self.memory, self.workspace)
        wanted = options.pop("k", self.k)
        chosen = self._chosen(where, query, wanted, options)
        if where.inside:
            chosen = [one for one in chosen if not _asks(one.record, query)]
        chosen = chosen[:wanted]
        where.read(one.record.id for one in chosen)
        shown.note_records(
            where.memory, [one.record for one in chosen if not _asks(one.record, query)]
        )
        return [document_of(one) for one in chosen]

    def _chosen(
        self, where: Here, query: str, wanted: int, options: dict[str, Any]
    ) -> Sequence[Chosen]:
        """Return more than is wanted, the best first."""
        thread = where.thread or None if self.thread is None else thread_name(self.thread)
        said = {"threshold": self.threshold, "by": self.by, "scope": self.scope, **options}
        if not set(said) <= {"threshold", "by", "scope"}:
            raise InvalidInput("A DeLLMRetriever takes k=, threshold=, by= and scope=.")
        spare = SPARE if where.inside and wanted else 0
        found = where.memory.context(query, thread=thread, k=wanted + spare, **said)
        return sorted(found, key=lambda one: -(one.score or 0.0))


def _asks(record: Record, query: str) -> bool:
    """Whether a record only says what is asked for."""
    return record.kind == "message" and record.text.strip() == query.strip()


def document_of(one: Chosen) -> Document:
    """Return a record as a Document."""
    record = one.record
    own = dict(record.metadata) if record.kind == "document" else {}
    said = {
        ID: record.id,
        "thread": record.thread,
        "role": record.role,
        "kind": record.kind,
        "created_at": record.created_at.isoformat(),
        "score": one.score,
    }
    return Document(id=str(record.id), page_content=record.text, metadata={**own, **said})
