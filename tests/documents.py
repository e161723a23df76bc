"""A library to search: documents, vector stores of several tempers, and what an agent does with them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

DIMENSIONS = 64
CANARY = "canaryqzxv"  # as in graphs.WORD
SECRET = f"the vault of the bank opens with {CANARY}"
PLAIN = ("the moon rises over the lake", "apples grow on trees in autumn", "ships sail the sea")


class Words(Embeddings):
    """Texts with more words in common are nearer."""

    def embed_query(self, text: str) -> list[float]:
        found = [0.01] * DIMENSIONS
        for word in re.findall(r"\w+", text.lower()):
            found[sum(map(ord, word)) % DIMENSIONS] += 1.0
        length = math.sqrt(sum(one * one for one in found))
        return [one / length for one in found]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(one) for one in texts]


class Sulking(InMemoryVectorStore):
    """Does not delete while it sulks, and says so in one of the ways of vector stores."""

    def __init__(self, embedding: Embeddings, how: str = "raises") -> None:
        super().__init__(embedding)
        self.how: str | None = how

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> Any:
        if self.how == "raises":
            raise ConnectionError
        if self.how == "says no":
            return False
        if self.how is None:
            super().delete(ids)
        return None  # "is silent": it did nothing

    async def adelete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> Any:
        return self.delete(ids)


class Strict(InMemoryVectorStore):
    """Refuses a delete that names one id it does not have, as FAISS does."""

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> None:
        if any(one not in self.store for one in ids or ()):
            raise ValueError("some of the ids are not here")
        super().delete(ids)


class Blind(Strict):
    """As Strict, and it cannot tell which ids it has."""

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        raise NotImplementedError


class Later(InMemoryVectorStore):
    """Can only be reached in an event loop."""

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> None:
        raise NotImplementedError

    async def adelete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> None:
        InMemoryVectorStore.delete(self, ids)


def library(store: InMemoryVectorStore | None = None) -> InMemoryVectorStore:
    """Return a store with the plain documents and the secret one, by ids from "d0" on."""
    made = InMemoryVectorStore(Words()) if store is None else store
    made.add_documents(documents())
    return made


def documents() -> list[Document]:
    said = [*PLAIN, SECRET]
    return [
        Document(id=f"d{at}", page_content=text, metadata={"source": f"book {at}", "page": at})
        for at, text in enumerate(said)
    ]


def held(store: InMemoryVectorStore) -> set[str]:
    """Return the ids that a store has."""
    return set(store.store)


def texts(found: Sequence[Document]) -> list[str]:
    return [one.page_content for one in found]
