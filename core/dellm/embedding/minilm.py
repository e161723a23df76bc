"""all-MiniLM-L6-v2 on this machine: tokenizers for the words, numpy for the model."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dellm import weights
from dellm.embedding.bert import BertEncoder, mean_pool
from dellm.embedding.vectors import checked_texts, encodable, unit_rows
from dellm.errors import EmbedderError, WeightsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEXT_TOKENS = 256
_TEXT_CHARACTERS = 100_000  # far more than 256 tokens; keeps the tokenizer's time bounded
_BATCH_TOKENS = 1024
_SPECIAL_TOKENS = 2  # [CLS] and [SEP] stand around every text

Tokenize = Callable[[str], list[int]]


class MiniLMEmbedder:
    """Sentence vectors by all-MiniLM-L6-v2: 384 dimensions, English, no network, no torch.

    A text is read up to 256 tokens (about 1,000 characters of English); what follows has no
    influence. Vectors are the mean over a text's tokens, of unit length. Reimers and Gurevych,
    "Sentence-BERT" (2019). `folder` holds `model.safetensors` and `tokenizer.json`; without it the
    files are those of `dellm models install minilm`. Their sha256 is checked when they are loaded,
    at the first text. Raises WeightsError if they are missing, EmbedderError if the extra `local`
    is not installed.
    """

    name = "local:all-MiniLM-L6-v2"
    provider = "local"
    dimensions = 384
    threshold = 0.25

    def __init__(self, folder: str | Path | None = None) -> None:
        for library in ("tokenizers", "safetensors"):
            if importlib.util.find_spec(library) is None:
                raise EmbedderError(
                    f"The local embedder needs the package {library}.",
                    remedy="Install the extra: pip install 'dellm[local]'.",
                )
        found = weights.locate("minilm") if folder is None else Path(folder)
        if found is None:
            raise WeightsError("The weights of minilm are not installed.")
        self._folder = found
        self._loading = threading.Lock()
        self._loaded: tuple[Tokenize, BertEncoder] | None = None

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Give one unit row per text: float32, shape (len(texts), 384).

        A row is zeros where the tokenizer finds nothing to read: a blank text, control characters.
        """
        wanted = checked_texts(texts)
        rows = np.zeros((len(wanted), self.dimensions), dtype=np.float32)
        if not wanted:
            return rows
        tokenize, encoder = self._load()
        ids = [tokenize(encodable(text.strip()[:_TEXT_CHARACTERS])) for text in wanted]
        for batch in _batches([len(tokens) for tokens in ids]):
            rows[batch] = _encode(encoder, [ids[place] for place in batch])
        return unit_rows(rows, len(wanted), self.dimensions)

    def _load(self) -> tuple[Tokenize, BertEncoder]:
        with self._loading:
            if self._loaded is None:
                self._loaded = _read(weights.verify("minilm", self._folder))
            return self._loaded


def _read(folder: Path) -> tuple[Tokenize, BertEncoder]:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()  # the file asks for 128 tokens, always; here a batch decides
    tokenizer.enable_truncation(TEXT_TOKENS)
    tensors = load_file(folder / "model.safetensors")

    def tokenize(text: str) -> list[int]:
        # One by one: a batch would start threads, which break a later fork of the process.
        return list(tokenizer.encode(text).ids)

    return tokenize, BertEncoder.read(tensors, layers=6, heads=12, epsilon=1e-12)


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Yield the places of the texts with something in them, alike in length, a batch at a time."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    order = [place for place in order if lengths[place] > _SPECIAL_TOKENS]
    edges = [0]
    for number, place in enumerate(order):
        if (number + 1 - edges[-1]) * lengths[place] > _BATCH_TOKENS and number > edges[-1]:
            edges.append(number)
    yield from (order[start:end] for start, end in pairwise([*edges, len(order)]) if start < end)


def _encode(encoder: BertEncoder, texts: list[list[int]]) -> NDArray[np.float32]:
    lengths = np.array([len(tokens) for tokens in texts])
    real = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(real.shape, dtype=np.int64)
    ids[real] = np.concatenate(texts)
    return mean_pool(encoder(ids, real), real)
