"""Which config a model was called with: LangChain tells neither a cache nor a handler of all of it.

A model takes the config as an argument and runs nothing in it, so what is ambient may be another
run's. It is looked up in the frames of the model's own methods; where those are not there any more,
in an asynchronous call, as they were when the call had started. Source: BaseChatModel and BaseLLM of
langchain-core 1.8.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import FrameType
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables.config import ensure_config

FRAMES = (
    40  # looked at between a cache and the method that a model was called by; mostly there are 4
)
BETWEEN = 3  # frames of other code, such as of a decorator, between two methods of one model
_CALLED = frozenset({"generate", "agenerate"})  # what all ways to call a model come to

Configurable = Mapping[str, Any]

_started: ContextVar[tuple[int, tuple[Configurable, ...]] | None] = ContextVar(
    "dellm_call_config", default=None
)


def note_config() -> None:
    """Keep what the model call that starts here was given, for its tasks."""
    methods = list(_methods())
    if methods:
        _started.set((id(methods[0].f_locals["self"]), _given(methods)))


def given_configs() -> tuple[Configurable, ...]:
    """Return the configurables of the model call that the calling code is in.

    Several only for a batch of a model of texts; none where it was given none, or there is no call:
    then it runs as the code around it does.
    """
    methods = list(_methods())
    if not methods:
        return ()
    if any(one.f_code.co_name in _CALLED for one in methods):
        return _given(methods)
    noted = _started.get()
    return noted[1] if noted is not None and noted[0] == id(methods[0].f_locals["self"]) else ()


def _methods() -> Iterator[FrameType]:
    """Yield the frames of the innermost model's methods, the innermost first."""
    frame, model, others = inspect.currentframe(), None, 0
    for _ in range(FRAMES):
        frame = None if frame is None else frame.f_back
        if frame is None:
            return
        here = _self(frame)
        if here is not None and model in (None, here):
            model, others = here, 0
            yield frame
        elif model is not None:
            others += 1
            if others > BETWEEN:
                return


def _self(frame: FrameType) -> object | None:
    if frame.f_code.co_varnames[:1] != ("self",):
        return None
    found = frame.f_locals.get("self")
    return found if isinstance(found, BaseLanguageModel) else None


def _given(methods: list[FrameType]) -> tuple[Configurable, ...]:
    for frame in methods:
        if "config" in frame.f_code.co_varnames:
            said = frame.f_locals.get("config")
            each = said if isinstance(said, list) else [said]
            return tuple(_kept(ensure_config(one).get("configurable", {})) for one in each)
    return ()


def _kept(configurable: Configurable) -> Configurable:
    """Return what a caller says, without the objects of a graph that runs."""
    return {key: one for key, one in configurable.items() if not key.startswith("__")}
