"""What goes into a prompt where relevance decides: instructions, what means most, the running turn.

Records of the session are given as the messages they were, tool calls together with all their
results, and a reply together with the user's message before it: what was asked is an ancestor of
what was answered, so it makes no later forget take more. Other records are given as messages that
say what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from dellm import Held, Record

from .messages import message_of, text_of
from .pairs import caller_of
from .sessions import AHEAD, Session, Window
from .tags import answered_call, call_ids, tag
from .trimming import Counter, start_of

_SYSTEM = (MessageRole.SYSTEM, MessageRole.DEVELOPER)
REPEATING = {"cached"}  # the kinds that say again what another record says
LABELS = {
    "user": "said by the user in another conversation",
    "assistant": "said by the assistant in another conversation",
    "system": "an instruction of another conversation",
    "tool": "result of a tool",
    "document": "document",
    "summary": "summary",
    "fact": "fact",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much of what is chosen; as the settings of DeLLMMemory. `room` is in tokens."""

    top_k: int
    last_n: int
    threshold: float | None
    by: str | None
    across: bool
    room: int


@dataclass(slots=True)
class _Unit:
    """What is added to a prompt as a whole: messages of the session, or one made of a record."""

    ids: list[int]
    messages: list[ChatMessage]
    label: bool = False


@dataclass(slots=True)
class _Prompt:
    """What was taken so far, and how many tokens are left."""

    counter: Counter
    left: int
    ids: dict[int, None] = field(default_factory=dict)
    labelled: list[tuple[int, ChatMessage]] = field(default_factory=list)

    def take(self, unit: _Unit) -> bool:
        """Take a unit if it fits; what was taken before costs nothing."""
        new = [
            (id_, one)
            for id_, one in zip(unit.ids, unit.messages, strict=True)
            if id_ not in self.ids
        ]
        messages, ids = [one for _, one in new], [id_ for id_, _ in new]
        cost = self.counter.joined(messages) if unit.label else _cost(self.counter, messages, ids)
        if cost > self.left:
            return False
        self.left -= cost
        if unit.label:
            self.labelled += new
        else:
            self.ids.update(dict.fromkeys(ids))
        return True


def _cost(counter: Counter, messages: Sequence[ChatMessage], records: Sequence[int]) -> int:
    return sum(counter.each(messages, records)) + sum(map(counter.calls, messages))


def chosen(
    session: Session, query: str | None, wanted: Wanted, counter: Counter
) -> list[ChatMessage]:
    """Return the messages for a prompt, each tagged, in the order of the session."""
    window, start = _turn(session, query, wanted.last_n)
    asked = query if query is not None else _asked(window)
    turn = _within(window, start, counter, wanted.room)
    prompt = _Prompt(counter, wanted.room - _cost(counter, turn.messages, turn.records))
    prompt.ids.update(dict.fromkeys(turn.records))
    for one in _systems(session, window):
        prompt.take(_Unit([one.id], [message_of(one)]))
    for unit in _relevant(session, asked, wanted, prompt):
        prompt.take(unit)
    for unit in _recent(session, window, start, wanted.last_n):
        if not prompt.take(unit):
            break
    return _assembled(session, window, prompt)


# the running turn


def _turn(session: Session, query: str | None, last_n: int) -> tuple[Window, int]:
    """Return the session's end, and where in it the running turn begins; that may be its very end."""
    last = last_n + AHEAD
    while True:
        window = session.window(last)
        start = _last_user(window.messages)
        if window.complete or (start is not None and start >= last_n):
            break
        last *= 4
    if start is None:
        return window, len(window.messages)
    answered = _is_answered(window.messages[start:])
    same = query is None or query == text_of(window.messages[start])
    return window, start if same or not answered else len(window.messages)


def _last_user(messages: Sequence[ChatMessage]) -> int | None:
    at = len(messages) - 1
    while at >= 0 and messages[at].role != MessageRole.USER:
        at -= 1
    return at if at >= 0 else None


def _is_answered(turn: Sequence[ChatMessage]) -> bool:
    last = next(one for one in reversed(turn) if one.role not in _SYSTEM)
    return last.role == MessageRole.ASSISTANT and not call_ids(last)


def _asked(window: Window) -> str:
    at = _last_user(window.messages)
    return "" if at is None else text_of(window.messages[at])


def _within(window: Window, start: int, counter: Counter, room: int) -> Window:
    """Return as much of the turn's end as there is room for, its last message in any case.

    Where that is a tool's result, its call comes with it: without, nobody could be given it.
    """
    found = Window((), window.generation, complete=True)
    messages, records = window.messages[start:], window.records[start:]
    cut = caller_of(messages, start_of(messages, records, counter, room) or 0) or 0
    found.messages, found.records = messages[cut:], records[cut:]
    return found


# what was said before it


def _systems(session: Session, window: Window) -> list[Held]:
    """Return the system messages of the session."""
    known = session.known
    known.at(window.generation)
    gap = not window.complete and (not window.records or known.upto < window.records[0])
    if gap:
        return _note(session, window, session.kept.spoken_by(session.name, "system"))
    new = [
        record
        for record, one in zip(window.records, window.messages, strict=True)
        if one.role in _SYSTEM
    ]
    ids = list(dict.fromkeys([*known.systems, *new]))
    return _note(session, window, session.kept.some(session.name, ids) if ids else [])


def _note(session: Session, window: Window, systems: list[Held]) -> list[Held]:
    known = session.known
    with known.guard:
        if known.generation == window.generation:
            known.systems = dict.fromkeys(one.id for one in systems)
            known.upto = max(known.upto, *window.records, 0)
    return systems


def _relevant(session: Session, query: str, wanted: Wanted, prompt: _Prompt) -> list[_Unit]:
    """Return what means most for the query, best first."""
    if not wanted.top_k or not query.strip():
        return []
    context = session.memory.context(
        query,
        thread=session.name,
        k=wanted.top_k,
        threshold=wanted.threshold,
        by=wanted.by,
        scope="workspace" if wanted.across else "thread",
        without=list(prompt.ids),
    )
    units: list[_Unit] = []
    for one in sorted(context.chosen, key=lambda one: -(one.score or 0.0)):
        record = one.record
        if record.kind in REPEATING or not record.text.strip():
            continue
        if record.thread == session.name and record.kind in ("message", "tool"):
            units += _group(session, record)
        else:
            units.append(_Unit([record.id], [_labelled(session, record)], label=True))
    _asked_first(session, units)
    return units


def _recent(session: Session, window: Window, start: int, last_n: int) -> Iterator[_Unit]:
    """Yield the newest messages before the turn, the newest first."""
    for at in range(start - 1, max(start - last_n, 0) - 1, -1):
        message, record = window.messages[at], window.records[at]
        if answered_call(message) is None and not call_ids(message):
            yield _Unit([record], [message])
        else:
            yield from _tools(session, message, record)


def _group(session: Session, record: Record) -> list[_Unit]:
    """Return a record of the session with the calls and results that belong to it."""
    message = message_of(record)
    if answered_call(message) is None and not call_ids(message):
        return [_Unit([record.id], [message])]
    return list(_tools(session, message, record.id))


def _asked_first(session: Session, units: Sequence[_Unit]) -> None:
    """Put before what was said to a user the message of the user that is the nearest before it."""
    said = [one for one in units if not one.label and one.messages[0].role != MessageRole.USER]
    firsts = [one.ids[0] for one in said]
    found = session.kept.preceding(session.name, firsts, "user") if firsts else {}
    asked = session.kept.some(session.name, list(set(found.values()))) if found else []
    questions = {one.id: one for one in asked}
    for unit, first in zip(said, firsts, strict=True):
        question = questions.get(found.get(first, 0))
        if question is not None:
            unit.ids.insert(0, question.id)
            unit.messages.insert(0, message_of(question))


def _tools(session: Session, message: ChatMessage, record: int) -> Iterator[_Unit]:
    """Yield the message that makes tool calls with their results; nothing if it is gone."""
    ids, messages = [record], [message]
    if answered_call(message) is not None:
        caller = session.caller(message, record)
        if caller is None:
            return
        ids, messages = [caller.id], [message_of(caller)]
    waiting = set(call_ids(messages[0]))
    before = ids[0]
    while waiting:
        following = session.kept.after(session.name, before, AHEAD)
        for one in following:
            result = message_of(one)
            answer = answered_call(result)
            if answer in waiting:
                waiting.discard(answer)
                ids.append(one.id)
                messages.append(result)
        if len(following) < AHEAD or following[-1].role == "user":
            break
        before = following[-1].id
    yield _Unit(ids, messages)


def _labelled(session: Session, record: Record) -> ChatMessage:
    """Return a record that is no message of this session as one that says what it is.

    What neither the user nor the assistant said here is named as what it is, so that the model need
    not take a document for a wish of the user.
    """
    label = LABELS.get(record.role if record.kind == "message" else record.kind, record.kind)
    made = ChatMessage(content=f"From memory, {label}:\n{record.text}")
    tag(made, session.owner, record.id)
    return made


# the prompt


def _assembled(session: Session, window: Window, prompt: _Prompt) -> list[ChatMessage]:
    """Return what was taken, as it is now: system messages, what is of elsewhere, the session's."""
    here = set(window.records)
    if prompt.ids.keys() <= here:
        found = Window((), window.generation, complete=True)
        pairs = [
            (one, record)
            for one, record in zip(window.messages, window.records, strict=True)
            if record in prompt.ids
        ]
        found.messages, found.records = [one for one, _ in pairs], [record for _, record in pairs]
    else:
        held = session.kept.some(session.name, list(prompt.ids))
        found = Window(held, window.generation, complete=True)
    session.mend(found)
    session.tagged(found)
    head = [one for one in found.messages if one.role in _SYSTEM]
    rest = [one for one in found.messages if one.role not in _SYSTEM]
    elsewhere = [one for _, one in sorted(prompt.labelled, key=lambda it: it[0])]
    return [*head, *elsewhere, *rest]
