"""What must hold of a graph's thread after something said in it was forgotten.

The model of the zoo repeats whatever it was shown, so a value was made from the secret exactly if
it holds the secret's word. That gives an oracle which knows nothing of the saver: every value with
the word goes, everything else is what it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphs import HEARD, WORD, Config, Graph, Saver, Specimen, Way
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, StateSnapshot

ABSENT = "<absent>"
_SERDE = JsonPlusSerializer(pickle_fallback=True)
_INTERNAL = {"__start__", "__input__", "__error__", "__interrupt__", "__resume__"}


def thread(name: str = "t") -> Config:
    return {"configurable": {"thread_id": name}}


def holds(value: Any, word: str = WORD) -> bool:
    """Return whether the word is anywhere in a value, however deep."""
    try:
        return word.encode() in _SERDE.dumps_typed(value)[1]
    except Exception:  # not all that a state shows can be stored: its repr says what it holds
        return word in repr(value)


@dataclass(frozen=True, slots=True)
class Taken:
    """A thread as it can be read: each state of its history, each checkpoint of every namespace."""

    states: Mapping[str, StateSnapshot]  # newest first
    tuples: Mapping[tuple[str, str], CheckpointTuple]

    def holds(self, word: str = WORD) -> bool:
        """Return whether the word is in any of it."""
        return any(holds(one, word) for one in (*self.states.values(), *self.tuples.values()))


def taken(saver: Saver, graph: Graph, config: Config) -> Taken:
    states = {place(one.config)[1]: one for one in graph.get_state_history(config)}
    tuples = {place(one.config): one for one in saver.list(config)}
    return Taken(states, tuples)


def place(config: Any) -> tuple[str, str]:
    """Return (namespace, checkpoint id)."""
    where = config["configurable"]
    return where.get("checkpoint_ns", ""), where["checkpoint_id"]


# where a word still is


def remains(
    saver: Saver, graph: Graph, config: Config, word: str = WORD, *, brief: bool = False
) -> list[str]:
    """Return every read of the thread that gives the word away; `brief`: lists of them only."""
    reads = _listed(saver, graph, config) if brief else _read(saver, graph, config)
    return [where for where, value in reads if holds(value, word)]


def _listed(saver: Saver, graph: Graph, config: Config) -> Iterator[tuple[str, Any]]:
    states, tuples = _lists(saver, graph, config)
    for state in states:
        yield f"history {state.config}", state
    for one in tuples:
        yield f"list {one.config}", one


def _lists(
    saver: Saver, graph: Graph, config: Config
) -> tuple[list[StateSnapshot], list[CheckpointTuple]]:
    # Lists, not generators: a stock saver holds its lock while it is being iterated.
    return list(graph.get_state_history(config)), list(saver.list(config))


def _read(saver: Saver, graph: Graph, config: Config) -> Iterator[tuple[str, Any]]:
    states, tuples = _lists(saver, graph, config)
    yield "head", graph.get_state(config, subgraphs=True)
    for state in states:
        yield f"history {state.config}", state
        yield f"state {state.config}", graph.get_state(state.config, subgraphs=True)
    for one in tuples:
        yield f"list {one.config}", one
        yield f"tuple {one.config}", saver.get_tuple(one.config)
        channels = sorted({"messages", *one.checkpoint["channel_versions"]})
        found = saver.get_delta_channel_history(config=one.config, channels=channels)
        yield f"delta history {one.config}", found


def heard_since(mark: int, word: str = WORD) -> list[int]:
    """Return the places of the prompts since `mark` in which the model was shown the word."""
    return [at for at, prompt in enumerate(HEARD[mark:], mark) if holds(prompt, word)]


# what must be left


def spared(messages: Sequence[Any], gone_calls: Iterable[str], word: str = WORD) -> list[Any]:
    """Return the messages that are left: without the word, and each call with its result.

    `gone_calls`: the ids of calls of which the call or the result went, anywhere in the thread.
    """
    gone, called, left = set(gone_calls), set(), []
    for one in messages:
        if holds(one, word):
            continue
        if isinstance(one, ToolMessage) and one.tool_call_id in gone - called:
            continue
        kept = _without_calls(one, gone)
        if kept is not None:
            left.append(kept)
            called |= {call["id"] for call in getattr(kept, "tool_calls", [])}
    return left


def _without_calls(message: Any, gone: set[str]) -> Any:
    """Return the message without calls that are gone; None when nothing is left of it."""
    if not any(call["id"] in gone for call in getattr(message, "tool_calls", [])):
        return message
    kept = [call for call in message.tool_calls if call["id"] not in gone]
    return message.model_copy(update={"tool_calls": kept}) if kept or message.content else None


def calls_gone(before: Taken, word: str = WORD) -> set[str]:
    gone: set[str] = set()
    for value in (*(one.values for one in before.states.values()), *before.tuples.values()):
        for message in _messages_of(value):
            if holds(message, word):
                gone |= {call["id"] for call in getattr(message, "tool_calls", [])}
                gone |= {message.tool_call_id} if isinstance(message, ToolMessage) else set()
    return gone


def _messages_of(value: Any) -> Iterator[BaseMessage]:
    if isinstance(value, BaseMessage):
        yield value
    elif isinstance(value, CheckpointTuple):
        yield from _messages_of(value.checkpoint["channel_values"])
        yield from _messages_of([one[2] for one in value.pending_writes or []])
    elif isinstance(value, Mapping):
        yield from _messages_of(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _messages_of(one)


class Oracle:
    """Says what of a thread, as it was read before the forget, must be read after it."""

    def __init__(self, specimen: Specimen, before: Taken, word: str = WORD) -> None:
        self.specimen = specimen
        self.before = before
        self.word = word
        self.gone = calls_gone(before, word)
        # Ids of checkpoints are in the order of time: what is older was made before the secret was.
        dirty = [id_ for (_, id_), one in before.tuples.items() if holds(one, word)]
        self.since = min(dirty, default="")

    def problems(self, after: Taken) -> list[str]:
        """Return everything in which a thread read after the forget is not what it must be."""
        found = [*_missing("state", self.before.states, after.states)]
        found += _missing("checkpoint", self.before.tuples, after.tuples)
        for id_ in self.before.states.keys() & after.states.keys():
            found += self._state(id_, self.before.states[id_], after.states[id_])
        for key in self.before.tuples.keys() & after.tuples.keys():
            found += self._tuple(key, self.before.tuples[key], after.tuples[key])
        return found

    def _loses(self, id_: str) -> frozenset[str]:
        """Return the channels of which a checkpoint may lose clean values too."""
        return self.specimen.loses if id_ >= self.since else frozenset()

    def _state(self, id_: str, old: StateSnapshot, new: StateSnapshot) -> Iterator[str]:
        where = f"state {id_} ({old.metadata and old.metadata.get('step')})"
        earlier = [_by_name(one.values) for one in self._ancestors(id_)]
        yield from self._values(
            where, _by_name(old.values), _by_name(new.values), earlier, self._loses(id_)
        )
        if old.parent_config != new.parent_config:
            yield f"{where}: another parent"
        if not holds(old.next) and not _inside(new.next, old.next):
            yield f"{where}: next was {old.next}, is {new.next}"

    def _ancestors(self, id_: str) -> Iterator[StateSnapshot]:
        """Yield the states before one, nearest first."""
        state = self.before.states.get(id_)
        while state is not None and state.parent_config is not None:
            state = self.before.states.get(place(state.parent_config)[1])
            if state is not None:
                yield state

    def _tuple(
        self, key: tuple[str, str], old: CheckpointTuple, new: CheckpointTuple
    ) -> Iterator[str]:
        where = f"checkpoint {key}"
        earlier = [one.checkpoint["channel_values"] for one in self._older(key)]
        if key[1] < self.since and not self.gone and old != new:
            yield f"{where}: differs, though it is older than the secret"
        was, now = old.checkpoint["channel_values"], new.checkpoint["channel_values"]
        yield from self._values(where, was, now, earlier, self._loses(key[1]))
        for name in ("v", "id", "ts", "channel_versions", "versions_seen", "updated_channels"):
            if old.checkpoint.get(name) != new.checkpoint.get(name):
                yield f"{where}: {name} differs"
        if old.parent_config != new.parent_config:
            yield f"{where}: another parent"
        if holds(new.metadata, self.word):
            yield f"STILL THERE {where}: metadata {new.metadata}"
        if not holds(old.metadata, self.word) and old.metadata != new.metadata:
            yield f"{where}: metadata differs: {old.metadata} {new.metadata}"
        yield from self._writes(where, old, new)

    def _older(self, key: tuple[str, str]) -> Iterator[CheckpointTuple]:
        one = self.before.tuples.get(key)
        while one is not None and one.parent_config is not None:
            one = self.before.tuples.get(place(one.parent_config))
            if one is not None:
                yield one

    def _writes(self, where: str, old: CheckpointTuple, new: CheckpointTuple) -> Iterator[str]:
        before, after = old.pending_writes or [], new.pending_writes or []
        clean = not holds(old.checkpoint, self.word) and not holds(before, self.word)
        if clean and not (self.gone or self.specimen.loses) and before != after:
            yield f"{where}: clean pending writes differ"
        order = [(task, channel) for task, channel, _ in before]
        if not _inside([(task, channel) for task, channel, _ in after], order):
            yield f"{where}: pending writes that were not there"
        for task, channel, value in after:
            same = [one for other, name, one in before if (other, name) == (task, channel)]
            if not any(self._fits(one, value) for one in same):
                yield f"{where}: pending write of {channel} was {same!r}, is {value!r}"

    def _fits(self, old: Any, new: Any) -> bool:
        """Return whether a pending value is what may be left of an older one."""
        if holds(new, self.word):
            return False
        if new == old or holds(old, self.word):
            return True
        return isinstance(old, list) and new == spared(old, self.gone, self.word)

    def _values(
        self,
        where: str,
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        earlier: Sequence[Mapping[str, Any]],
        loses: frozenset[str],
    ) -> Iterator[str]:
        for name in sorted(old.keys() | new.keys()):
            before = [one[name] for one in earlier if name in one]
            was, now = old.get(name, ABSENT), new.get(name, ABSENT)
            if isinstance(was, _DeltaSnapshot) and isinstance(now, _DeltaSnapshot):
                was, now = was.value, now.value
            wrong = self._wrong(name, was, now, before, loses=name in loses)
            if wrong:
                yield f"{wrong} {where}: {name} was {was!r}, is {now!r}"

    def _wrong(self, name: str, old: Any, new: Any, earlier: list[Any], *, loses: bool) -> str:
        if holds(new, self.word):
            return "STILL THERE"
        if _same(new, old):
            paired = not (self.gone and _is_messages(old))
            return "" if paired or new == spared(old, self.gone, self.word) else "UNPAIRED"
        if name in _INTERNAL or self._may_be(name, old, new, earlier, loses=loses):
            return ""
        return "LOST"

    def _may_be(self, name: str, old: Any, new: Any, earlier: list[Any], *, loses: bool) -> bool:
        """Return whether a value that changed is what it may have changed to."""
        if name == "__pregel_tasks":
            # A task is known by the place of its Send: only behind the last one is no gap needed.
            kept = all(b in (a, None) for a, b in zip(old, new, strict=False))
            return kept and len(new) <= len(old) and new[-1:] != [None]
        if isinstance(old, list) and isinstance(new, list):
            before = [one for one in earlier if one and not holds(one, self.word)] if loses else []
            return self._list(old, new, loses=loses) or any(_same(new, one) for one in before)
        if not (loses or holds(old, self.word)):
            return False
        clean = [one for one in earlier if not holds(one, self.word)]
        options = self.specimen.options.get("defaults", {})
        fallback = [ABSENT, *([options[name]] if name in options else [])]
        return any(
            _same(new, one) for one in ([*clean, *fallback] if loses else clean[:1] or fallback)
        )

    def _list(self, old: list[Any], new: list[Any], *, loses: bool) -> bool:
        """Return whether a list is another one without what holds the word.

        What was in it before the word came, and what the user said, is never lost.
        """
        left = spared(old, self.gone, self.word)
        if not loses:
            return bool(new == left)
        first = next((at for at, one in enumerate(old) if holds(one, self.word)), 0)
        kept = [at for at, one in enumerate(old) if at < first or isinstance(one, HumanMessage)]
        needed = spared([old[at] for at in kept], self.gone, self.word)
        return _inside(new, left) and _inside(needed, new)


def _missing(what: str, before: Mapping[Any, Any], after: Mapping[Any, Any]) -> list[str]:
    lost = [f"{what} {key} is gone" for key in before if key not in after]
    new = [f"{what} {key} is new" for key in after if key not in before]
    same = lost or new or list(before) == list(after)
    order = [] if same else [f"{what}s in another order"]
    return lost + new + order


def _by_name(values: Any) -> Mapping[str, Any]:
    """Return a state's values by channel; those of a functional graph are one value."""
    return values if isinstance(values, Mapping) else {"__previous__": values}


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, BaseMessage) for one in value)
    )


def _inside(part: Iterable[Any], whole: Iterable[Any]) -> bool:
    """Return whether a sequence is another with some left out."""
    rest = iter(whole)
    return all(any(one == other for other in rest) for one in part)


# going on


def go_on(saver: Saver, graph: Graph, config: Config, specimen: Specimen, way: Way) -> list[str]:
    """Resume the head, run every old checkpoint again and fork some; return what failed, and why."""
    states = list(graph.get_state_history(config))
    runs = [("resume", resumption(one), one.config) for one in states if one.next]
    if states and states[0].next:
        runs.insert(0, ("resume the head", resumption(states[0]), config))
    runs += [("fork", specimen.then(), one.config) for one in _some(states)]
    runs.append(("go on", specimen.then(), config))
    return [problem for run in runs for problem in _failure(*run, graph, way)]


def _failure(what: str, given: Any, config: Config, graph: Graph, way: Way) -> list[str]:
    try:
        way.run(graph, given, config)
    except Exception as error:  # whatever a graph may raise is what is looked for
        return [f"{what} {place_or_head(config)}: {error!r}"]
    return []


def place_or_head(config: Config) -> Any:
    return place(config) if "checkpoint_id" in config["configurable"] else "the head"


def resumption(state: StateSnapshot) -> Any:
    """Return what a waiting checkpoint is resumed with."""
    waiting = [one for task in state.tasks for one in task.interrupts]
    if not waiting:
        return None
    if isinstance(waiting[0].value, dict) and "action_requests" in waiting[0].value:
        return Command(
            resume={"decisions": [{"type": "approve"}] * len(waiting[0].value["action_requests"])}
        )
    return Command(resume="go on")


def _some(states: list[StateSnapshot]) -> list[StateSnapshot]:
    """Return the oldest, the newest and the middle of the states at which a run ended."""
    ends = [one for one in states if not one.next] or states
    return list({id(one): one for one in (ends[-1], ends[len(ends) // 2], ends[0])}.values())


# as if it had never been


def normal(value: Any) -> Any:
    """Return a value without what differs between two runs of the same: ids."""
    if isinstance(value, BaseMessage):
        said = value.model_dump(exclude={"id", "tool_call_id"})
        for call in said.get("tool_calls", []):
            call.pop("id")
        return said
    if isinstance(value, Mapping):
        return {key: normal(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [normal(one) for one in value]
    return value


def ends(specimen: Specimen, graph: Graph, config: Config, way: Way, *, secret: bool) -> list[str]:
    """Play the specimen's turns; return the checkpoint at which each ended, in order."""
    heads = []
    for turn in specimen.turns:
        if secret or not turn.secret:
            turn.do(graph, config, way)
            heads.append(place(graph.get_state(config).config)[1])
    return heads
