"""How each of the compared systems is made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks.evaluation.embedding_once import OnceEmbedded
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.shipped import Alone

from . import Make
from .agents import Agent, Ours, Semantic
from .paper import Paper


def every(run: Run, thresholds: Sequence[float] = ()) -> dict[str, Make]:
    """Return how to make each system, by name; texts are embedded once for all of them."""
    once = OnceEmbedded(run.embedder)
    return {
        Alone.name: partial(Alone, run.model),
        Agent.name: partial(Agent, run.model),
        **{f"semantic deletion ({t})": partial(Semantic, run.model, once, t) for t in thresholds},
        Paper.name: partial(Paper, run.model, once),
        Ours.name: partial(Ours, run.model, once),
    }
