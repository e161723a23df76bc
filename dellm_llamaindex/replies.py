"""Which model's reply or tool's result a message is: known by its object, its call, or its content."""

from __future__ import annotations

from collections import OrderedDict

from llama_index.core.base.llms.types import ChatMessage

from .flows import Output
from .notes import noted
from .scopes import Scope, guard
from .tags import answered_call, digest_of

MOST = 2_048  # outputs of earlier turns that are known again


class Leftovers:
    """Replies and results of earlier turns that were not stored: a later run may find them.

    A workflow that stopped early or failed leaves them in its context. They are known by their
    content, and by whose run it was. Thread-safe.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[int | str, bytes], dict[Output, None]] = OrderedDict()

    def add(self, whose: int | str, output: Output) -> None:
        """Keep an output of a run."""
        with guard:
            self._held.setdefault((whose, output.digest), {})[output] = None
            self._held.move_to_end((whose, output.digest))
            while len(self._held) > MOST:
                self._held.popitem(last=False)

    def find(self, whose: int | str, digest: bytes) -> list[Output]:
        """Return the outputs of earlier runs that say this and were never stored."""
        with guard:
            found = self._held.get((whose, digest), {})
            return [one for one in found if not one.stored]

    def all(self) -> list[Output]:
        """Return all that are kept."""
        with guard:
            return [one for some in self._held.values() for one in some]


leftovers = Leftovers()


def whose(scope: Scope | None) -> int | str:
    """Return what stands for the Context that a scope is in, else for its engine; 0 for no scope."""
    if scope is None:
        return 0
    return scope.turn.context or id(scope.turn.instance())


def outputs_of(message: ChatMessage, digest: bytes, scope: Scope | None) -> list[Output]:
    """Return the outputs that a message may be, all that fit; none where it is not known."""
    output = noted(message)
    if output is not None:
        return [output]
    if scope is None:
        return []
    call = answered_call(message) or message.additional_kwargs.get("tool_call_id")
    for turn in scope.around():
        found = _results(turn, str(call), digest) if call is not None else []
        found = found or [one for one in reversed(turn.replies) if one.digest == digest]
        if found:
            return found
    return leftovers.find(whose(scope), digest)


def _results(turn: Scope, call: str, digest: bytes) -> list[Output]:
    found = turn.results.get(call, [])
    return [one for one in found if one.digest == digest] or found


def told(text: str | None, scope: Scope | None) -> list[Output]:
    """Return the replies of this turn that said just this; in no scope those not stored yet."""
    if not text:
        return []
    digest = digest_of(ChatMessage(role="assistant", content=text))
    if scope is None:
        return leftovers.find(whose(None), digest)
    return [one for turn in scope.around() for one in turn.replies if one.digest == digest]
