"""From text to vectors: what an embedder is, and the three that come with the library.

| spec | class | needs |
|---|---|---|
| `"local"` | `MiniLMEmbedder` | the extra `local` and `dellm models install minilm` |
| `"openai:MODEL"` | `OpenAIEmbedder` | the extra `openai`, a key or any compatible `OPENAI_BASE_URL` |
| `"hashing"` | `HashingEmbedder` | nothing; knows spelling, not meaning: for tests and demos only |

No embedder keeps a text or a vector of one: there is nothing in them to forget.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dellm import weights
from dellm.errors import EmbedderError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dellm.embedding.hashing import HashingEmbedder
    from dellm.embedding.minilm import MiniLMEmbedder
    from dellm.embedding.remote import OpenAIEmbedder

__all__ = [
    "Embedder",
    "HashingEmbedder",
    "MiniLMEmbedder",
    "OpenAIEmbedder",
    "embed",
    "resolve",
]

# numpy takes a quarter of a second to import: the classes are loaded when they are first named.
_HOMES = {
    "HashingEmbedder": "dellm.embedding.hashing",
    "MiniLMEmbedder": "dellm.embedding.minilm",
    "OpenAIEmbedder": "dellm.embedding.remote",
}
_ACCEPTED = '"local", "openai:MODEL", "hashing" (tests only), "auto", None, or an Embedder object'


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@runtime_checkable
class Embedder(Protocol):
    """Anything that turns texts into vectors. Must be usable from several threads at once.

    `name` identifies the vector space and is stored with every vector: two embedders with one name
    must give comparable vectors. `dimensions` is the length of a vector, None until it is known.
    `threshold` is the cosine, in [-1, 1], from which two texts count as related in this space.
    """

    @property
    def name(self) -> str:
        """Identity of the vector space, such as `"openai:text-embedding-3-small"`."""
        ...

    @property
    def dimensions(self) -> int | None:
        """Length of a vector; None until the first answer of a remote model."""
        ...

    @property
    def threshold(self) -> float:
        """Cosine in [-1, 1] from which two texts count as related."""
        ...

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Give one row per text, in order: float32, shape (len(texts), dimensions).

        Each row has unit length, so that a dot product is a cosine; a text with nothing in it is a
        row of zeros. Raises EmbedderError.
        """
        ...


def embed(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed with any embedder and hold it to its contract.

    Returns float32 of shape (len(texts), dimensions) with rows of unit length or of zeros. Raises
    InvalidInput if `texts` is not a sequence of strings, and EmbedderError if the embedder fails or
    answers with another shape, with numbers that are not finite, or not with numbers at all.
    """
    from dellm.embedding.vectors import checked_texts, unit_rows

    wanted = checked_texts(texts)
    if not wanted:
        return unit_rows([[0.0] * (embedder.dimensions or 0)], 1, None)[:0]
    fault = ""
    try:
        return unit_rows(embedder.embed(wanted), len(wanted), embedder.dimensions)
    except EmbedderError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code: any fault, and its message may quote
        fault = type(error).__name__
    raise EmbedderError(f"The embedder {embedder.name} failed with {fault}.")


def resolve(spec: str | Embedder | None) -> Embedder | None:
    """Make an embedder of what the user passed.

    `"local"`, `"openai:MODEL"` (MODEL may hold colons), `"hashing"` (tests and demos only), an
    object (returned as it is), None (no search by meaning), or `"auto"`: local where the extra
    `local` and the weights are installed, else None. Raises InvalidInput for anything else,
    WeightsError for `"local"` without weights, EmbedderError where the extra is not installed.
    """
    if spec is None:
        return None
    if isinstance(spec, str):
        return _from_text(spec)
    if isinstance(spec, Embedder):
        return spec
    raise InvalidInput(f"{type(spec).__name__} is not an embedder. Accepted: {_ACCEPTED}.")


def _from_text(spec: str) -> Embedder | None:
    if spec == "auto":
        spec = "local" if _local_is_ready() else ""
        if not spec:
            return None
    if spec == "local":
        from dellm.embedding.minilm import MiniLMEmbedder

        return MiniLMEmbedder()
    if spec == "hashing":
        from dellm.embedding.hashing import HashingEmbedder

        return HashingEmbedder()
    service, _, model = spec.partition(":")
    if service == "openai" and model.strip():
        from dellm.embedding.remote import OpenAIEmbedder

        return OpenAIEmbedder(model.strip())
    raise InvalidInput(f"Unknown embedder. Accepted: {_ACCEPTED}.")


def _local_is_ready() -> bool:
    libraries = ("tokenizers", "safetensors")
    return all(map(importlib.util.find_spec, libraries)) and weights.locate("minilm") is not None
