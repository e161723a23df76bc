"""What every embedder's input and output must look like, and the checks that hold them to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dellm.errors import EmbedderError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def checked_texts(texts: Sequence[object]) -> list[str]:
    """Return the texts as a list; InvalidInput for one bare string or for anything not a string."""
    if isinstance(texts, str):
        raise InvalidInput("embed takes a sequence of texts, not one text.")
    found = [text for text in texts if isinstance(text, str)]
    if len(found) != len(texts):
        raise InvalidInput(f"{len(texts) - len(found)} of the texts to embed are not strings.")
    return found


def encodable(text: str) -> str:
    """Return the text with each lone surrogate, which no encoding can carry, as a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def unit_rows(rows: Any, count: int, dimensions: int | None) -> NDArray[np.float32]:
    """Return the rows as float32 of unit length (zero rows stay), once their shape is right.

    Raises EmbedderError unless they are finite numbers of shape (count, dimensions); `dimensions`
    None accepts any length.
    """
    try:
        with np.errstate(over="ignore"):  # too large for float32: not finite, which is found below
            matrix = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError):
        raise EmbedderError("The embedder did not answer with rows of numbers.") from None
    if matrix.ndim != 2 or len(matrix) != count or dimensions not in {None, matrix.shape[1]}:
        wanted = f"({count}, {'any' if dimensions is None else dimensions})"
        raise EmbedderError(f"The embedder gave the shape {matrix.shape}, not {wanted}.")
    # The largest entry is divided out first: squares of very large or small numbers don't fit.
    with np.errstate(invalid="ignore"):
        peaks = np.abs(matrix).max(axis=1, keepdims=True, initial=0.0)
    if not np.isfinite(peaks).all():
        raise EmbedderError("The embedder answered with numbers that are not finite.")
    scaled = matrix / np.where(peaks > 0, peaks, np.float32(1))
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, np.where(lengths > 0, lengths, 1), dtype=np.float32)
