"""What a model call is given: the turn, and what was chosen of the past for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, is_
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from dellm import Chosen, InvalidInput, Record
from dellm.adapting import check_callable, check_choice, check_number

from .messages import text_of
from .middleware_run import Run
from .pairs import repaired

TURNS = 64  # turns whose choice is kept while they last
_ID = attrgetter("id")
_Key = tuple[str, str | None, str]  # workspace, thread, message
REPEATING = {"cached"}  # the kinds that say again what another record says
LABELS = {"tool": "result of a tool", "document": "document", "summary": "summary"}


@dataclass(frozen=True, slots=True)
class Given:
    """The messages of one model call, and what it must not be shown whoever adds it again.

    `older` are the messages of the state before the turn, `gone` the ids of erased ones.
    """

    messages: list[AnyMessage]
    older: Sequence[AnyMessage] = field(repr=False)
    gone: frozenset[str]

    def last(self, prompt: list[BaseMessage]) -> list[BaseMessage]:
        """Return the prompt as other middleware left it, less what was not chosen or is erased."""
        ours = {id(one) for one in self.messages}
        if all(id(one) in ours or one.id is None for one in prompt):
            return prompt
        chosen = {one.id for one in self.messages}
        hidden = self.gone.union(one.id for one in self.older if one.id) - chosen
        seen = [one for one in prompt if id(one) in ours or one.id not in hidden]
        return prompt if len(seen) == len(prompt) else paired(seen)


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is added to a prompt as a whole: places in the state, or a message made of a record."""

    places: tuple[int, ...] = ()
    message: AnyMessage | None = None
    record: int = 0


@dataclass(frozen=True, slots=True)
class _Turn:
    """What was found for a turn in a generation of the workspace; most relevant first."""

    generation: int
    found: tuple[Chosen, ...]
    made: dict[int, AnyMessage] = field(default_factory=dict)


@dataclass(slots=True)
class Choosing:
    """Chooses by the options of ContextMiddleware. Thread-safe."""

    k: int
    last: int
    threshold: float | None
    by: str | None
    budget: int | None
    count: Callable[[str], int]
    scope: str
    _turns: OrderedDict[_Key, _Turn] = field(default_factory=OrderedDict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Raise InvalidInput for options that make no sense."""
        check_choice(self.scope, ("thread", "workspace"), "scope=")
        for name in ("k", "last", "budget"):
            number = getattr(self, name)
            if name == "budget" and number is None:
                continue
            if type(number) is not int or number < 0:
                raise InvalidInput(f"{name}= is a whole number, zero or more.")
        if self.by is not None:
            check_choice(self.by, ("meaning", "keyword", "both"), "by=")
        if self.threshold is not None:
            check_number(self.threshold, "threshold=")
            if not -1 <= self.threshold <= 1:
                raise InvalidInput("threshold= is a cosine between -1 and 1.")
        check_callable(self.count, "count=")

    def given(self, run: Run, request: ModelRequest[Any]) -> Given | None:
        """Return what a call is given; None when the message it answers was erased."""
        state: list[AnyMessage] = request.state["messages"]
        start = turn_start(state)
        found = self._found(run, state[start:])
        units = list(self._affordable(self._units(run, found, state, start), state))
        chosen = _inside(state, start, units)
        gone = run.gone(chosen)
        if start < len(state) and id(state[start]) in gone:
            return None
        recalled = [(one.message, one.record) for one in units if one.message is not None]
        run.know(recalled, found.generation)
        merged = _merged(request.messages, state, [one for one in chosen if id(one) not in gone])
        head = _leading(merged)
        messages = [*merged[:head], *(one for one, _ in recalled), *merged[head:]]
        erased = frozenset(one.id for one in chosen if id(one) in gone and one.id)
        return Given(self._paired(run, messages), state[:start], erased)

    def _paired(self, run: Run, messages: list[AnyMessage]) -> list[AnyMessage]:
        """Return the messages without calls and results that are alone, known as what they were."""
        mended: list[Any] = paired(messages)
        same = {id(one) for one in messages}
        if copies := {one.id: one for one in mended if id(one) not in same}:
            originals = [one for one in messages if one.id in copies]
            generation = run.generation()
            records = run.records_of(originals)
            pairs = zip(originals, records, strict=True)
            run.know([(copies[one.id], record) for one, record in pairs if record], generation)
        return mended

    # what is relevant

    def _found(self, run: Run, turn: Sequence[AnyMessage]) -> _Turn:
        """Return what the memory finds for a turn: once, unless something is erased meanwhile."""
        generation = run.generation()
        query = text_of(turn[0].content) if turn else ""
        unasked = not self.k or not query.strip() or (self.scope == "thread" and not run.thread)
        if unasked or not turn:
            return _Turn(generation, ())
        key = (run.memory.id, run.thread, turn[0].id or str(id(turn[0])))
        with self._guard:
            known = self._turns.get(key)
        if known is not None and known.generation == generation:
            return known
        made = _Turn(generation, tuple(self._asked(run, query, turn)))
        self._keep(key, made)
        return made

    def _keep(self, key: _Key, made: _Turn) -> None:
        """Keep what was found for a turn, and nothing found before something was erased."""
        with self._guard:
            for other, turn in list(self._turns.items()):
                if other[0] == key[0] and turn.generation != made.generation:
                    del self._turns[other]
            self._turns[key] = made
            while len(self._turns) > TURNS:
                self._turns.popitem(last=False)

    def _asked(self, run: Run, query: str, turn: Sequence[AnyMessage]) -> list[Chosen]:
        # The turn itself may be stored already, and is the most relevant of all.
        known = [one for one in run.records_of(turn) if one]
        context = run.memory.context(
            query,
            thread=run.thread,
            k=self.k + len(turn),
            threshold=self.threshold,
            by=self.by,
            scope=self.scope,
            without=known,
        )
        names = {one.id for one in turn}
        found = [
            one
            for one in context.chosen
            if one.record.kind not in REPEATING
            and (one.record.thread != run.thread or one.record.framework_id not in names)
        ]
        return sorted(found, key=lambda one: -(one.score or 0.0))[: self.k]

    def _units(
        self, run: Run, found: _Turn, state: Sequence[AnyMessage], start: int
    ) -> Iterator[_Unit]:
        """Yield what may be added: the relevant, best first, then the newest."""
        here = [
            one.record
            for one in found.found
            if one.record.thread == run.thread and one.record.framework_id is not None
        ]
        places = _places(run, state[:start], here)
        for one in found.found:
            record = one.record
            if record.id in places:
                yield _Unit(group(state, places[record.id], start))
            elif record.text.strip():
                message = found.made.setdefault(record.id, recalled(record))
                yield _Unit(message=message, record=record.id)
        for at in range(start - 1, max(start - self.last, 0) - 1, -1):
            yield _Unit(group(state, at, start))

    def _affordable(self, units: Iterable[_Unit], state: Sequence[AnyMessage]) -> Iterator[_Unit]:
        """Yield what fits the budget; what does not fit is passed over."""
        left = self.budget
        taken: set[int] = set()
        for one in units:
            if left is not None:
                new = [text_of(state[at].content) for at in one.places if at not in taken]
                cost = sum(map(self.count, new))
                if one.message is not None:
                    cost += self.count(text_of(one.message.content))
                if cost > left:
                    continue
                left -= cost
            taken.update(one.places)
            yield one


def _places(run: Run, messages: Sequence[AnyMessage], records: Sequence[Record]) -> dict[int, int]:
    """Return where the messages of records stand, by record; as they are now, if they changed."""
    places = run.places(messages, [one.id for one in records])
    left = [one for one in records if one.id not in places]
    if left:
        ids = list(map(_ID, messages))
        found = {one.id: one.framework_id for one in left if one.framework_id in ids}
        places |= {id_: ids.index(name) for id_, name in found.items()}
    return places


def turn_start(messages: Sequence[BaseMessage]) -> int:
    """Return where the newest human message stands; 0 when there is none."""
    for at in range(len(messages) - 1, -1, -1):
        if isinstance(messages[at], HumanMessage):
            return at
    return 0


def group(messages: Sequence[BaseMessage], at: int, end: int) -> tuple[int, ...]:
    """Return the places of a message and of all that belongs to its tool calls, before `end`."""
    message = messages[at]
    if isinstance(message, ToolMessage):
        caller = next(
            (
                one
                for one in range(at - 1, -1, -1)
                if message.tool_call_id in call_ids(messages[one])
            ),
            None,
        )
        return () if caller is None else group(messages, caller, end)
    waiting = call_ids(message)
    places = [at]
    for place in range(at + 1, end if waiting else at):
        one = messages[place]
        if isinstance(one, HumanMessage) or not waiting:
            break
        if isinstance(one, ToolMessage) and one.tool_call_id in waiting:
            waiting.discard(one.tool_call_id)
            places.append(place)
    return tuple(places)


def call_ids(message: BaseMessage) -> set[str]:
    """Return the ids of a message's tool calls, those included whose arguments were no JSON."""
    if not isinstance(message, AIMessage):
        return set()
    return {one["id"] for one in (*message.tool_calls, *message.invalid_tool_calls) if one["id"]}


def recalled(record: Record) -> AnyMessage:
    """Return a record that the state does not hold as a message: its text, as who said it.

    What neither the user nor the assistant said is named as what it is, so that the model need not
    take a document for a wish of the user.
    """
    if record.kind == "message" and record.role == "user":
        return HumanMessage(record.text)
    if record.kind == "message" and record.role == "assistant":
        return AIMessage(record.text)
    label = LABELS.get(record.kind, record.kind)
    return HumanMessage(f"From memory, a {label}:\n{record.text}")


def paired(messages: Sequence[Any]) -> list[Any]:
    """Return messages without the calls that have no result among them, and the other way round."""
    answered = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
    alone = {call for one in messages for call in call_ids(one)} - answered
    if not alone and not answered:
        return list(messages)
    return repaired(messages, alone, True)


def _leading(messages: Sequence[AnyMessage]) -> int:
    """Return how many system messages a list begins with."""
    rest = (at for at, one in enumerate(messages) if not isinstance(one, SystemMessage))
    return next(rest, len(messages))


def _inside(state: Sequence[AnyMessage], start: int, units: Iterable[_Unit]) -> list[AnyMessage]:
    """Return the state's messages that a call is given: instructions, what was chosen, the turn."""
    places = {at for one in units for at in one.places}
    places.update(range(min(_leading(state), start)))
    return [*(state[at] for at in sorted(places)), *state[start:]]


def _merged(
    messages: Sequence[AnyMessage], state: Sequence[AnyMessage], chosen: list[AnyMessage]
) -> list[AnyMessage]:
    """Return the request's messages less those of the state that were not chosen.

    What other middleware has added stays, as do its versions of what was chosen.
    """
    if len(messages) == len(state) and all(map(is_, messages, state)):
        return chosen
    hidden = {one.id for one in state if one.id is not None} - {one.id for one in chosen}
    return [one for one in messages if one.id not in hidden]
