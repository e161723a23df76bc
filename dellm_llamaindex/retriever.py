"""DeLLMRetriever: what is remembered, as the nodes of a LlamaIndex retriever.

Source of the interface: llama_index.core.base.base_retriever of llama-index-core 0.14.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from dellm import Chosen, InvalidInput, Memory, Record
from dellm.adapting import Choice, check_choice, check_iterable

from . import scopes
from .documents import RECORD, marked
from .handles import Held
from .tags import owner_of

SPARE = 4  # records looked up besides, for those that only repeat the question
MOST = 10_000  # records looked at for those of some kinds
KINDS = ("message", "tool", "document", "summary", "fact", "item", "cached", "inferred")


class DeLLMRetriever(BaseRetriever):
    """Finds what is relevant in a Memory; a reply made of it then depends on just these records.

    Each node's id is "record:" and the number of its record, which its metadata name as
    `dellm_record`; they also say `thread`, `role`, `kind` and `created_at` (ISO 8601, UTC), those of
    a document the user's own metadata besides. A prompt shows none of them. The best come first,
    with their scores as of Chosen.

    `memory` is a dellm.Memory or a DeLLMMemory. `k`: at most so many. `threshold`: least cosine in
    [-1, 1], None for the embedder's own. `by`: "meaning", "keyword" or "both". `session_id`: only
    what was said in this session; without it the whole workspace is searched. `kinds`: only records
    of these kinds. What says just what is asked for is left out while an engine, a workflow or a
    tool runs: that is the question itself. Raises InvalidInput.
    """

    def __init__(
        self,
        memory: Any,
        *,
        k: int = 5,
        threshold: float | None = None,
        by: str | None = None,
        session_id: str | None = None,
        kinds: Collection[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._held = Held(memory_of(memory, "DeLLMRetriever"))
        Choice(k=k, threshold=threshold, by=by or "meaning").check()
        self.k, self.threshold, self.by, self.session_id = k, threshold, by, session_id
        if kinds is not None:
            check_iterable(kinds, "kinds=")
        for one in kinds or ():
            check_choice(one, KINDS, "kinds=")
        self.kinds = None if kinds is None else frozenset(kinds)

    @property
    def memory(self) -> Memory:
        """The open memory, which copies share; a pickled retriever opens it again."""
        return self._held.memory

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the records that are relevant to a query as nodes."""
        return self._found(query_bundle.query_str)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """As _retrieve, off the loop."""
        return await asyncio.to_thread(self._found, query_bundle.query_str)

    def _found(self, query: str) -> list[NodeWithScore]:
        inside = scopes.current() is not None
        asked = self.k + SPARE if inside and self.k else self.k
        while True:
            found = self._chosen(query, asked)
            kept = [one for one in found if not (inside and asks(one.record, query))]
            kept = [one for one in kept if self.kinds is None or one.record.kind in self.kinds]
            if len(kept) >= self.k or len(found) < asked or asked >= MOST:
                break
            asked = min(MOST, 4 * asked)
        owner = owner_of(self.memory)
        return [
            NodeWithScore(node=marked(node_of(one.record), owner, one.record.id), score=one.score)
            for one in kept[: self.k]
        ]

    def _chosen(self, query: str, wanted: int) -> list[Chosen]:
        """Return so many records, the best first."""
        found = self.memory.context(
            query,
            thread=self.session_id,
            k=wanted,
            threshold=self.threshold,
            by=self.by,
            scope="workspace" if self.session_id is None else "thread",
        )
        return sorted(found, key=lambda one: -(one.score or 0.0))


def memory_of(memory: Any, user: str) -> Memory:
    """Return the core's memory of what a user was given; InvalidInput where it has none."""
    core = getattr(memory, "core", memory)
    if not isinstance(core, Memory):
        raise InvalidInput(f"{user} takes a dellm.Memory or a DeLLMMemory.")
    return core


def asks(record: Record, query: str) -> bool:
    """Whether a record only says what is asked for."""
    return record.kind == "message" and record.text.strip() == query.strip()


def node_of(record: Record) -> TextNode:
    """Return a record as a node, of which a prompt shows the text alone."""
    own = dict(record.metadata) if record.kind == "document" else {}
    said = {
        **own,
        "thread": record.thread,
        "role": record.role,
        "kind": record.kind,
        "created_at": record.created_at.isoformat(),
    }
    said.pop(RECORD, None)
    hidden = list(said)
    return TextNode(
        id_=f"record:{record.id}",
        text=record.text,
        metadata=said,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
