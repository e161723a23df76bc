"""The models that the names on the command line stand for."""

from __future__ import annotations

from dellm.embedding import Embedder, resolve
from dellm.errors import InvalidInput
from dellm.models import Model, SmolModel, resolve_model

from .canary import Canary

LOCAL_ANSWER = 48  # tokens that the small local model may answer with: it is slow


def chat_model(spec: str) -> Model:
    """Make a chat model: `canary`, or what `dellm.models.resolve_model` takes."""
    if spec == "local":
        return SmolModel(max_tokens=LOCAL_ANSWER)
    return Canary() if spec == "canary" else resolve_model(spec)


def embedder_of(spec: str) -> Embedder:
    """Make an embedder: `minilm`, or what `dellm.Memory.open` takes.

    Raises InvalidInput where it is none.
    """
    made = resolve("local" if spec == "minilm" else spec)
    if made is None:
        raise InvalidInput("The evaluation needs an embedder.")
    return made
