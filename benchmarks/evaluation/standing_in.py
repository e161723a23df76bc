"""What stands in for paid models while a run is tried out to see how much it would ask.

Requests are the same in number if the real model, too, answers different messages differently; where
it gives one answer to several, later requests repeat and the run asks less.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from dellm import weights
from dellm.embedding import Embedder, HashingEmbedder, MiniLMEmbedder
from dellm.errors import InvalidInput
from dellm.models import ExtractiveReader, Model, checked_messages

REPLY = 60  # tokens of a reply, assumed
WIDTH = 1536  # numbers of a vector of text-embedding-3-small
_PADDING = " and that is all there is to say of it"


class StandIn:
    """Quotes its context, as the extractive reader does, at the length of a model's reply.

    Equal messages get equal replies, others another one: each ends with a digest of its messages.
    """

    provider = "local"

    def __init__(self, paid: Model) -> None:
        self.name = paid.name
        self._reader = ExtractiveReader()

    def complete(self, messages: Sequence[Mapping[str, str]], /) -> str:
        """Answer; raise InvalidInput for messages without content."""
        sent = checked_messages(messages)
        mark = f" [{hashlib.sha256(json.dumps(sent).encode()).hexdigest()[:8]}]"
        room = REPLY * 4 - len(mark)
        return (self._quote(sent) + _PADDING * (room // len(_PADDING) + 1))[:room] + mark

    def _quote(self, messages: list[dict[str, str]]) -> str:
        try:
            return self._reader.complete(messages)
        except InvalidInput:  # nobody of role user speaks
            return messages[-1]["content"]


class StandInJudge:
    """Says that every answer is right: one word, as a judge is asked for."""

    provider = "local"

    def __init__(self, paid: Model) -> None:
        self.name = paid.name

    def complete(self, messages: Sequence[Mapping[str, str]], /) -> str:
        """Return the verdict; raise InvalidInput for messages without content."""
        checked_messages(messages)
        return "CORRECT"


class StandInEmbedder:
    """Vectors of MiniLM where it is installed, else by spelling, as long as those it stands in for.

    Which records a context takes depends on them, and so does how long prompts are. Vectors by
    spelling find fewer related texts, so that with them an estimate is rather low.
    """

    provider = "local"

    def __init__(self, paid: Embedder, width: int | None) -> None:
        self.name, self.threshold = paid.name, paid.threshold
        self._inner: Embedder = MiniLMEmbedder() if by_meaning() else HashingEmbedder()
        self.dimensions = max(width or paid.dimensions or WIDTH, self._inner.dimensions or 0)

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return one unit row per text: zeros beyond the numbers that the inner embedder gives."""
        made = self._inner.embed(texts)
        return np.pad(made, ((0, 0), (0, self.dimensions - made.shape[1])))


def by_meaning() -> bool:
    """Tell whether an embedder that knows meaning is installed to stand in for a paid one."""
    libraries = ("tokenizers", "safetensors")
    return all(map(find_spec, libraries)) and weights.locate("minilm") is not None
