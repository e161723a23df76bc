"""The forward pass of a BERT encoder in numpy: inference only, float32, no torch.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers" (2019); names of the tensors
as in the published checkpoints. Shapes below: B texts, T tokens, H = hidden size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Tensors = Mapping[str, Floats]

_BLOCK = 1 << 14  # numbers that stay in the processor's cache through a chain of operations


@dataclass(frozen=True, slots=True)
class Linear:
    """y = x W' + b, with W of shape (out, in)."""

    weight: Floats
    bias: Floats

    @classmethod
    def read(cls, tensors: Tensors, *names: str) -> Linear:
        """Read one layer, or several of equal input stacked into one."""
        weight = np.concatenate([tensors[f"{name}.weight"] for name in names])
        return cls(weight, np.concatenate([tensors[f"{name}.bias"] for name in names]))

    def __call__(self, x: Floats) -> Floats:
        """Map the last axis from `in` to `out` numbers."""
        rows = x.reshape(-1, x.shape[-1])  # one large product is faster than one for each text
        out: Floats = rows @ self.weight.T
        out += self.bias
        return out.reshape(*x.shape[:-1], -1)


@dataclass(frozen=True, slots=True)
class Norm:
    """Layer normalisation over the last axis."""

    scale: Floats
    shift: Floats
    epsilon: float

    @classmethod
    def read(cls, tensors: Tensors, name: str, epsilon: float) -> Norm:
        """Read one layer."""
        return cls(tensors[f"{name}.weight"], tensors[f"{name}.bias"], epsilon)

    def __call__(self, x: Floats) -> Floats:
        """Bring the last axis to mean 0 and variance 1, then scale and shift it."""
        centred: Floats = x - x.mean(axis=-1, keepdims=True)
        spread = np.square(centred).mean(axis=-1, keepdims=True)
        centred /= np.sqrt(spread + np.float32(self.epsilon))
        centred *= self.scale
        centred += self.shift
        return centred


@dataclass(frozen=True, slots=True)
class Layer:
    """One transformer layer: self-attention, then the feed-forward part, each added and normed."""

    heads: int
    attention_in: Linear
    attention_out: Linear
    attention_norm: Norm
    widen: Linear
    narrow: Linear
    norm: Norm

    @classmethod
    def read(cls, tensors: Tensors, prefix: str, heads: int, epsilon: float) -> Layer:
        """Read one layer; query, key and value become one matrix of shape (3H, H)."""
        self_attention = f"{prefix}.attention.self"
        parts = [f"{self_attention}.{part}" for part in ("query", "key", "value")]
        return cls(
            heads,
            Linear.read(tensors, *parts),
            Linear.read(tensors, f"{prefix}.attention.output.dense"),
            Norm.read(tensors, f"{prefix}.attention.output.LayerNorm", epsilon),
            Linear.read(tensors, f"{prefix}.intermediate.dense"),
            Linear.read(tensors, f"{prefix}.output.dense"),
            Norm.read(tensors, f"{prefix}.output.LayerNorm", epsilon),
        )

    def __call__(self, x: Floats, mask: Floats) -> Floats:
        """Transform (B, T, H); `mask` is (B, 1, 1, T), 0 for a token and very low for padding."""
        x = self.attention_norm(x + self.attention_out(self._attend(x, mask)))
        return self.norm(x + self.narrow(gelu(self.widen(x))))

    def _attend(self, x: Floats, mask: Floats) -> Floats:
        texts, tokens, hidden = x.shape
        split = self.attention_in(x).reshape(texts, tokens, 3, self.heads, hidden // self.heads)
        query, key, value = split.transpose(2, 0, 3, 1, 4)  # each (B, heads, T, H / heads)
        scores = query @ key.swapaxes(-1, -2)
        scores *= np.float32((hidden // self.heads) ** -0.5)
        scores += mask
        mixed: Floats = softmax(scores) @ value
        return mixed.transpose(0, 2, 1, 3).reshape(texts, tokens, hidden)


@dataclass(frozen=True, slots=True)
class BertEncoder:
    """Token ids to one vector a token."""

    words: Floats
    positions: Floats
    norm: Norm
    layers: tuple[Layer, ...]

    @classmethod
    def read(cls, tensors: Tensors, *, layers: int, heads: int, epsilon: float) -> BertEncoder:
        """Read the weights of a checkpoint (`*.weight` and `*.bias`, float32) by their names."""
        # All tokens are of type 0, so that its embedding can be added to the positions for good.
        types = tensors["embeddings.token_type_embeddings.weight"]
        return cls(
            tensors["embeddings.word_embeddings.weight"],
            tensors["embeddings.position_embeddings.weight"] + types[0],
            Norm.read(tensors, "embeddings.LayerNorm", epsilon),
            tuple(
                Layer.read(tensors, f"encoder.layer.{number}", heads, epsilon)
                for number in range(layers)
            ),
        )

    def __call__(self, ids: NDArray[np.int64], real: NDArray[np.bool_]) -> Floats:
        """Return float32 of shape (B, T, H) for ids and for what is no padding, both (B, T)."""
        x = self.norm(self.words[ids] + self.positions[: ids.shape[1]])
        mask = np.where(real, np.float32(0), np.float32(-1e9))[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return x


def mean_pool(x: Floats, real: NDArray[np.bool_]) -> Floats:
    """Return the mean over the real tokens of each text: (B, T, H) and (B, T) give (B, H)."""
    kept = real[:, :, None].astype(np.float32)
    pooled: Floats = (x * kept).sum(axis=1) / kept.sum(axis=1)
    return pooled


def softmax(scores: Floats) -> Floats:
    """Return the softmax over the last axis, computed in place."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def gelu(x: Floats) -> Floats:
    """Return x * Phi(x), the exact form with erf that BERT was trained with."""
    out = np.empty_like(x)
    flat, result = x.reshape(-1), out.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        half = erf(block * np.float32(0.5**0.5))
        half += 1
        half *= block
        np.multiply(half, np.float32(0.5), out=result[start : start + _BLOCK])
    return out


def erf(x: Floats) -> Floats:
    """Return the error function, to 1e-6 absolute in float32.

    Abramowitz and Stegun, Handbook of Mathematical Functions (1964), formula 7.1.26, whose own
    error is below 1.5e-7; the rest is float32.
    """
    size = np.abs(x)
    t = 1 / (1 + np.float32(0.3275911) * size)
    poly = np.full_like(t, 1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0):
        poly *= t
        poly += np.float32(coefficient)
    np.multiply(size, size, out=size)
    poly *= np.exp(-size)
    return np.copysign(1 - poly, x)
