"""Which model call the code running now is about: LangChain tells a cache only the prompt's text.

A cache is asked right after the calls of a batch have started, in the same context, and given the
replies before they end. Once they have ended, a cache that is asked there is asked by hand.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING

from langchain_core.load import dumps
from langchain_core.messages import BaseMessage

from .call_configs import note_config

if TYPE_CHECKING:
    from uuid import UUID

    from .calls import Call

MOST = 65_536  # calls that have not ended, as far as we were told
_running: OrderedDict[UUID, None] = OrderedDict()
_guard = Lock()
_batch: ContextVar[tuple[UUID, ...]] = ContextVar("dellm_calls_started", default=())


def note_started(run_id: UUID, size: object) -> None:
    """Keep that a call of a batch of `size` has started here."""
    most = size if isinstance(size, int) and size > 0 else 1
    _batch.set((*_batch.get(), run_id)[-most:])
    with _guard:
        _running[run_id] = None
        while len(_running) > MOST:
            _running.popitem(last=False)
    note_config()


def note_ended(run_id: UUID) -> None:
    """Keep that a call has ended, wherever it did."""
    with _guard:
        _running.pop(run_id, None)


def is_running(run_id: UUID) -> bool:
    """Whether a call has started and not ended yet."""
    return run_id in _running


def started() -> tuple[UUID, ...]:
    """Return the calls of the batch that started last in this context and have not ended yet."""
    return tuple(filter(is_running, _batch.get()))


def with_prompt(prompt: str, calls: Iterable[Call | None]) -> Call | None:
    """Return the call that a cache is asked about by the text of its prompt, None if none is known.

    Of a single call that is not looked at: to write a long prompt as text takes a while.
    """
    known: Sequence[Call] = [one for one in calls if one is not None]
    if len(known) == 1:
        return known[0]
    return next((one for one in known if _as_text(one.prompt.messages) == prompt), None)


def _as_text(messages: Iterable[BaseMessage]) -> str:
    """Return messages as BaseChatModel gives them to a cache (langchain_core.language_models)."""
    return dumps(
        [one if one.id is None else one.model_copy(update={"id": None}) for one in messages]
    )
