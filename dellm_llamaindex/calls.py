"""Calls of models under way: what each was given, until it has answered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse

from .flows import Output
from .notes import note
from .prompts import everything, known_to_be_all, prompted
from .replies import leftovers, whose
from .scopes import Scope, current, guard, scopes
from .tags import call_ids, digest_of

MOST = 1_024  # calls that have not answered


@dataclass(slots=True, eq=False)
class Call:
    """A call of a model, what it was given, and the reply that it makes."""

    given: tuple[int, ...]  # the identities of the messages
    output: Output
    scope: Scope | None
    heard: bool = False


class Calls:
    """The calls that have not answered yet, by their spans. Thread-safe."""

    def __init__(self) -> None:
        self._by_span: OrderedDict[str, list[Call]] = OrderedDict()

    def chat(
        self, span: str | None, messages: Sequence[ChatMessage], model: str | None = None
    ) -> None:
        """Note that a model, "provider/model", was sent messages."""
        scope = scopes.at(span) or current()
        output = prompted(messages, scope)
        output.model = model
        self._begin(span, _given(messages), output, scope)

    def complete(self, span: str | None, prompt: str, model: str | None = None) -> None:
        """Note that a model was sent a text: made from whatever its scope has read."""
        if self._outer(span) is None:  # else the messages that the text was made from are known
            scope = scopes.at(span) or current()
            output = Output(everything(scope), guessed=not known_to_be_all(scope), model=model)
            self._begin(span, (hash(prompt),), output, scope)

    def _begin(
        self, span: str | None, given: tuple[int, ...], output: Output, scope: Scope | None
    ) -> None:
        outer = self._outer(span)
        if outer is not None:
            with guard:
                outer.output.made.add(output.made)
            return
        with guard:
            self._by_span.setdefault(span or "", []).append(Call(given, output, scope))
            while len(self._by_span) > MOST:
                self._by_span.popitem(last=False)

    def _outer(self, span: str | None) -> Call | None:
        """Return the call that one with this span is a part of: a model may ask another one."""
        scope = scopes.at(span)
        for around in scopes.around(span):
            if scopes.at(around) is not scope:
                return None
            with guard:
                found = self._by_span.get(around)
                if found and around != span:
                    return found[-1]
        return None

    def said(self, span: str | None, messages: Sequence[ChatMessage], part: ChatResponse) -> None:
        """Note a part of a reply that is streamed: its message is the one that may be stored."""
        call = self._find(span, _given(messages))
        if call is not None:
            note(part.message, call.output)
            _hear(call)

    def ended(
        self, span: str | None, messages: Sequence[ChatMessage], reply: ChatResponse | None
    ) -> None:
        """Note that a model has answered."""
        call = self._find(span, _given(messages), last=True)
        if call is not None and reply is not None:
            output, message = call.output, reply.message
            output.digest, output.calls = digest_of(message), tuple(call_ids(message))
            note(message, output)
            _hear(call)
            _keep(call)

    def completed(self, span: str | None, prompt: str, reply: CompletionResponse | None) -> None:
        """Note that a model has completed a text."""
        call = self._find(span, (hash(prompt),), last=True)
        if call is not None and reply is not None:
            call.output.digest = digest_of(ChatMessage(role="assistant", content=reply.text))
            _hear(call)
            _keep(call)

    def _find(self, span: str | None, given: tuple[int, ...], *, last: bool = False) -> Call | None:
        """Return the call of a span; of several the one that was given the same."""
        with guard:
            calls = self._by_span.get(span or "", [])
            found = calls[0] if len(calls) == 1 else None
            found = found or next((one for one in calls if one.given == given), None)
            if found is not None and last:
                calls.remove(found)
                if not calls:
                    del self._by_span[span or ""]
            return found

    def under_way(self) -> list[Output]:
        """Return the replies that are being made."""
        with guard:
            return [one.output for some in self._by_span.values() for one in some]


calls = Calls()


def _given(messages: Sequence[ChatMessage]) -> tuple[int, ...]:
    return tuple(id(one) for one in messages)


def _hear(call: Call) -> None:
    if not call.heard and call.scope is not None:
        call.heard = True
        call.scope.hear(call.output)


def _keep(call: Call) -> None:
    leftovers.add(whose(call.scope), call.output)
