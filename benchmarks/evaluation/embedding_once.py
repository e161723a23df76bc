"""An embedder that remembers, so that the same texts cost nothing in the next setting of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dellm.embedding import Embedder


class OnceEmbedded:
    """An embedder that embeds each text once; what it knows stays in this process."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._known: dict[str, NDArray[np.float32]] = {}
        self.name, self.threshold = inner.name, inner.threshold

    @property
    def dimensions(self) -> int | None:
        """Length of a vector; None while the inner embedder does not know it."""
        return self._inner.dimensions

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return one row per text, as the inner embedder makes it, float32."""
        if new := [one for one in dict.fromkeys(texts) if one not in self._known]:
            self._known.update(zip(new, self._inner.embed(new), strict=True))
        return np.stack([self._known[one] for one in texts])
