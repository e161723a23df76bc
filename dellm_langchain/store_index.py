"""What of an item is embedded, and by what; as LangGraph's stores do it.

Source of the paths and of what may be given as `embed`: langgraph.store.base, `IndexConfig`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, PutOp, ensure_embeddings, get_text_at_path
from numpy.typing import NDArray

from dellm import Embedder, InvalidInput

Vector = NDArray[np.float32]
_EMBEDS = re.compile(r"_?Embeddings?(Lambda)?$")
# LangChain's classes for embedders that run in the process that calls them.
_IN_PROCESS = frozenset(
    {
        *("HuggingFaceEmbeddings", "HuggingFaceBgeEmbeddings", "SentenceTransformerEmbeddings"),
        *("LlamaCppEmbeddings", "FastEmbedEmbeddings", "GPT4AllEmbeddings"),
        *("FakeEmbeddings", "DeterministicFakeEmbedding"),
    }
)


class MemoryEmbeddings(Embeddings):
    """The embedder of a memory, as LangChain calls one."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text. Raises EmbedderError."""
        from dellm.adapting import embed

        rows: list[list[float]] = embed(self.embedder, texts).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """As embed_documents, for one text."""
        return self.embed_documents([text])[0]


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of one batch, float32 of shape (dimensions,), by the text they were made of."""

    texts: Mapping[str, Vector] = field(default_factory=dict, repr=False)
    queries: Mapping[str, Vector] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Index:
    """Which fields of an item are embedded, unless its put says otherwise, and by what.

    `dims`: how many numbers a vector has, None where it is as many as the embedder gives.
    """

    embeddings: Embeddings
    fields: Sequence[str] = ("$",)
    dims: int | None = None

    @classmethod
    def of(cls, config: IndexConfig | None, embedder: Embedder | None) -> Index | None:
        """Return the index that was asked for, else one by the memory's embedder, else None.

        Raises InvalidInput for a config without `embed`, or whose fields or dims make no sense.
        """
        if config is None:
            return None if embedder is None else cls(MemoryEmbeddings(embedder))
        if not isinstance(config, Mapping) or config.get("embed") is None:
            raise InvalidInput("index= is no mapping that says what to embed with.")
        fields, dims = config.get("fields") or ["$"], config.get("dims")
        if not _are_texts(fields):
            raise InvalidInput("The fields of index= are no list of paths.")
        if dims is not None and (type(dims) is not int or dims < 1):
            raise InvalidInput("The dims of index= are no whole number above zero.")
        embed: Any = config["embed"]
        if not isinstance(embed, str | Embeddings) and not callable(embed):
            raise InvalidInput("The embed of index= is nothing that embeds.")
        return cls(ensure_embeddings(embed), tuple(fields), dims)

    @property
    def seen_by(self) -> str:
        """Who is sent what is embedded, "provider/model": "local/..." where it stays in this process.

        The provider is that of a memory's embedder, else what LangChain's class for it is called.
        """
        asked: Any = self.embeddings
        kind = type(asked).__name__
        if isinstance(asked, MemoryEmbeddings):
            said = getattr(asked.embedder, "provider", None)  # as for the core's own vectors
            return f"{said or 'unknown'}/{asked.embedder.name.removeprefix('openai:')}"
        names = [getattr(asked, one, None) for one in ("model", "model_name", "model_id")]
        name = next((one for one in names if isinstance(one, str) and one.strip()), kind)
        provider = "local" if kind in _IN_PROCESS else _EMBEDS.sub("", kind).lower()
        return f"{provider or 'unknown'}/{name}"

    def texts(self, op: PutOp) -> list[str]:
        """Return what of an item is embedded, one text for each vector; nothing of a deletion."""
        if op.value is None or op.index is False:
            return []
        paths: Any = self.fields if op.index is None else op.index
        if not _are_texts(paths):
            raise InvalidInput("index= of a put is neither False nor a list of paths.")
        return [text for path in paths for text in get_text_at_path(op.value, path)]

    def embed(self, texts: Iterable[str], queries: Iterable[str]) -> Vectors:
        """Embed the texts of a batch, and the queries of its searches. Raises InvalidInput."""
        wanted, asked = list(dict.fromkeys(texts)), list(dict.fromkeys(queries))
        rows = self.embeddings.embed_documents(wanted) if wanted else []
        return self._paired(wanted, rows, asked, [self.embeddings.embed_query(q) for q in asked])

    async def aembed(self, texts: Iterable[str], queries: Iterable[str]) -> Vectors:
        """As embed, by the asynchronous methods."""
        wanted, asked = list(dict.fromkeys(texts)), list(dict.fromkeys(queries))
        rows = await self.embeddings.aembed_documents(wanted) if wanted else []
        found = await asyncio.gather(*(self.embeddings.aembed_query(q) for q in asked))
        return self._paired(wanted, rows, asked, found)

    def _paired(
        self, texts: list[str], rows: Sequence[Any], queries: list[str], found: Sequence[Any]
    ) -> Vectors:
        if len(rows) != len(texts):
            raise InvalidInput(
                "The embeddings gave another number of vectors than there are texts."
            )
        return Vectors(
            dict(zip(texts, map(self._vector, rows), strict=True)),
            dict(zip(queries, map(self._vector, found), strict=True)),
        )

    def _vector(self, row: Any) -> Vector:
        try:
            made: Vector = np.asarray(row, np.float32)
        except (TypeError, ValueError):
            made = np.empty(0, np.float32)
        if made.ndim != 1 or (self.dims is not None and len(made) != self.dims):
            raise InvalidInput("The embeddings gave a vector of other dims than index= says.")
        return made


def _are_texts(values: object) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(one, str) for one in values)
