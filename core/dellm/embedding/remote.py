"""Embeddings from OpenAI or from any server that speaks its /v1/embeddings."""

from __future__ import annotations

import base64
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from dellm.embedding.vectors import checked_texts, encodable, unit_rows
from dellm.errors import EmbedderError, InvalidInput
from dellm.openai_endpoint import OpenAIEndpoint, Used

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from openai import OpenAI

TEXT_BYTES = 8_191
BATCH_BYTES = 250_000


class OpenAIEmbedder:
    """Vectors by an OpenAI-compatible endpoint; the texts leave this machine for `provider`.

    A text is sent up to its first 8,191 bytes of UTF-8 (8,191 characters of English, about 2,700 of
    Chinese): a byte-level tokenizer never makes more tokens than bytes, so that no text exceeds
    OpenAI's limit of 8,192 tokens. A request holds at most `batch` texts and 250,000 bytes. A blank
    text is never sent; its row is zeros. `timeout` is in seconds for each try, `retries` are made
    with growing pauses after 429, 5xx and connection faults. `dimensions` asks the model for
    shorter vectors, and is part of the name then. `threshold` is a cosine; 0.25 holds for
    text-embedding-3-small, other models need their own.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        batch: int = 256,
        text_bytes: int = TEXT_BYTES,
        timeout: float = 30.0,
        retries: int = 4,
        threshold: float = 0.25,
    ) -> None:
        if batch < 1 or text_bytes < 4 or (dimensions is not None and dimensions < 1):
            raise InvalidInput("batch and dimensions must be at least 1, text_bytes at least 4.")
        self.name = f"openai:{model}" if dimensions is None else f"openai:{model}@{dimensions}"
        self.threshold = threshold
        self._model = model
        self._asked_dimensions = dimensions
        self._dimensions = dimensions
        self._batch = batch
        self._text_bytes = text_bytes
        self._learning = threading.Lock()
        self._endpoint = OpenAIEndpoint(
            EmbedderError, base_url=base_url, api_key=api_key, timeout=timeout, retries=retries
        )

    @property
    def provider(self) -> str:
        """Host that gets to see the texts."""
        return self._endpoint.host

    @property
    def base_url(self) -> str:
        """Address of the endpoint."""
        return self._endpoint.base_url

    @property
    def used(self) -> Used:
        """The tokens that the endpoint counted since this object was made."""
        return self._endpoint.used

    @property
    def options(self) -> dict[str, Any]:
        """What decides on the vectors besides the texts: the model and the dimensions asked for."""
        asked = self._asked_dimensions
        return {"model": self._model} | ({} if asked is None else {"dimensions": asked})

    @property
    def dimensions(self) -> int | None:
        """Length of a vector; None until the first answer, unless it was asked for."""
        return self._dimensions

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Give one unit row per text: float32, shape (len(texts), dimensions); zeros for a blank.

        Raises EmbedderError if the endpoint can't be reached after the retries, refuses, or answers
        with a wrong count, other dimensions than before, or numbers that are not finite.
        """
        wanted = checked_texts(texts)
        sent = [place for place, text in enumerate(wanted) if text.strip()]
        found = [self._ask(batch) for batch in self._batches([wanted[place] for place in sent])]
        rows = np.zeros((len(wanted), self._width(needed=bool(wanted))), dtype=np.float32)
        if found:
            rows[sent] = np.concatenate(found)
        return rows

    def close(self) -> None:
        """Close the connections; a later text opens them again."""
        self._endpoint.close()

    def _width(self, *, needed: bool) -> int:
        if self._dimensions is None and needed:  # nothing but blanks so far: ask with any word
            self._ask(["dimensions"])
        return self._dimensions or 0

    def _batches(self, texts: list[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        room = BATCH_BYTES
        for text in texts:
            data = encodable(text).encode("utf-8")[: self._text_bytes]
            if batch and (len(batch) == self._batch or len(data) > room):
                yield batch
                batch, room = [], BATCH_BYTES
            batch.append(data.decode("utf-8", "ignore"))  # the cut may split the last character
            room -= len(data)
        if batch:
            yield batch

    def _ask(self, texts: list[str]) -> NDArray[np.float32]:
        answer = self._endpoint.ask(lambda client: self._request(client, texts))
        if [place for place, _ in answer] != list(range(len(texts))):
            raise EmbedderError(
                f"{self.provider} gave {len(answer)} vectors, or wrong indexes, for {len(texts)} texts."
            )
        if len({len(vector) for _, vector in answer}) != 1:
            raise EmbedderError(f"{self.provider} gave vectors of different lengths.")
        rows = unit_rows(np.stack([vector for _, vector in answer]), len(texts), None)
        if not rows.any(axis=1).all():
            raise EmbedderError(f"{self.provider} gave a vector of zeros for a text.")
        self._learn(rows.shape[1])
        return rows

    def _request(self, client: OpenAI, texts: list[str]) -> list[tuple[int, NDArray[np.float32]]]:
        answer = client.embeddings.create(input=texts, encoding_format="base64", **self.options)
        self._endpoint.count(answer.usage)
        found = [(item.index, _vector(item.embedding)) for item in answer.data]
        return sorted(found, key=lambda pair: pair[0])

    def _learn(self, width: int) -> None:
        with self._learning:
            if self._dimensions is None:
                self._dimensions = width
        if self._dimensions != width:
            raise EmbedderError(
                f"{self.provider} gave {width} dimensions where {self._dimensions} are expected."
            )


def _vector(embedding: object) -> NDArray[np.float32]:
    """Read base64 of little-endian float32, or a list, which a server may send all the same."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    with np.errstate(over="ignore"):  # too large for float32: not finite, which the caller refuses
        vector = np.array(embedding, dtype=np.float32)
    if vector.ndim != 1:
        raise ValueError("not a vector")
    return vector
