"""What the values in a workflow's Context were made from: `ctx.store`, key by key.

What a step or tool writes there is made from all that it has read; whoever reads it later, maybe in
another run or process, has read that as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, BaseWorkflowAgent
from llama_index.core.memory import BaseMemory
from pydantic import BaseModel
from workflows.context.state_store import InMemoryStateStore, StateStoreFacade

from .flows import Flow
from .scopes import Scope, guard, outside

Store = StateStoreFacade[Any]

# What agents keep about how they go on, and no text of anyone's.
FIXED = frozenset(
    {
        "agents",
        "can_handoff_to",
        "current_agent_name",
        "early_stopping_method",
        "formatted_input_with_state",
        "handoff_output_prompt",
        "max_iterations",
        "memory",
        "next_agent",
        "num_iterations",
        "num_tool_calls",
    }
)
# What agents write anew at each step.
PASSING = frozenset({"scratchpad", "current_reasoning", "current_tool_calls", "user_msg_str"})
_KEY = os.urandom(16)  # of this process


class Kept:
    """What the values of one store were made from, by their keys.

    `context` names the Context across its runs and its JSON. `turn` is the run that uses it, and
    `before` what a run had read that was written down while it ran.
    """

    def __init__(self, *, unknown: bool) -> None:
        self.context = uuid.uuid4().hex
        self.flows: dict[str, Flow] = {}
        self.turn: Scope | None = None
        self.before: Flow | None = None
        self.unknown = unknown  # what its values were made from was not kept with them
        self._prints: dict[str, bytes] = {}
        self._readers: dict[str, weakref.WeakSet[Scope]] = {}

    @property
    def running(self) -> bool:
        """Whether a run uses the store now."""
        return self.turn is not None and self.turn.open > 0

    def attach(self, scope: Scope) -> None:
        """Note which run uses the store."""
        turn = scope.turn
        if turn.context is not None:
            return
        with guard:
            turn.context, self.turn = self.context, turn
            if turn.resumed and self.before is not None:
                turn.begun.add(self.before)
                turn.resumed = False
            self.before = None

    def read(self, scope: Scope | None, values: Mapping[str, object]) -> None:
        """Note that values were read: by whom, and so what they were made from."""
        for key, value in values.items():
            if key in FIXED:
                continue
            self._look(key, value)
            if scope is not None:
                scope.note(self.flow(key))
                self._hand(scope, key)

    def _hand(self, scope: Scope, key: str) -> None:
        """Keep who has a value and may change it in place; agents themselves do not."""
        if scope.kind == "tool" or not isinstance(scope.turn.instance(), _AGENTS):
            with guard:
                self._readers.setdefault(key, weakref.WeakSet()).add(scope)

    def flow(self, key: str) -> Flow:
        """Return what a value was made from."""
        with guard:
            return self.flows[key].copy() if key in self.flows else Flow(unsure=self.unknown)

    def wrote(self, scope: Scope | None, key: str, value: object, *, part: bool = False) -> None:
        """Note that a value was written, or a part of it."""
        if key in FIXED or isinstance(value, BaseMemory):
            return
        flow = _made(scope, key, value)
        with guard:
            if part:
                self.flows.setdefault(key, Flow(unsure=self.unknown)).add(flow)
                self._prints.pop(key, None)
                self._readers.pop(key, None)
            else:
                self.flows[key] = flow
                self._print(key, value)

    def _look(self, key: str, value: object) -> None:
        """Find out whether a value was changed in place by one of those who had it."""
        if key in PASSING or not isinstance(value, (dict, list, set, BaseModel)):
            return
        with guard:
            known, now = self._prints.get(key), _print(value)
            readers = list(self._readers.get(key, ()))
            if readers and (now is None or known != now):
                flow = self.flows.setdefault(key, Flow(unsure=self.unknown))
                for one in readers:
                    flow.add(_made(one, key, value))
            self._readers.pop(key, None)
            self._print(key, value)

    def _print(self, key: str, value: object) -> None:
        found = _print(value)
        if found is None:
            self._prints.pop(key, None)
        else:
            self._prints[key] = found


_kept: weakref.WeakKeyDictionary[Store, Kept] = weakref.WeakKeyDictionary()


def kept(store: Store) -> Kept:
    """Return what is kept of a store."""
    with guard:
        if store not in _kept:
            # Another process may have written what is in a store that is not in memory.
            _kept[store] = Kept(unknown=not isinstance(store, InMemoryStateStore))
        return _kept[store]


def every_kept() -> list[tuple[Store, Kept]]:
    """Return the stores that are used, with what is kept of them."""
    with guard:
        return list(_kept.items())


def values_of(store: Store) -> Mapping[str, object]:
    """Return the live values of a store in this process's memory; of another store nothing."""
    record = store._memory_storage.load_sync() if isinstance(store, InMemoryStateStore) else None  # noqa: SLF001 - the values themselves, as get() gives them
    return items_of(record.data) if record is not None else {}


def items_of(state: object) -> Mapping[str, object]:
    """Return the values of a state by their keys."""
    held = getattr(state, "_data", None)
    if isinstance(held, dict):
        return dict(held)
    return dict(state) if isinstance(state, BaseModel) else {}


def _made(scope: Scope | None, key: str, value: object) -> Flow:
    """Return what a value that is written was made from."""
    if value is None or (isinstance(value, (str, list, dict, tuple, set)) and not value):
        return Flow()
    if scope is None:
        return outside().known()
    agent = scope.turn.instance()
    if key == "state" and scope.kind == "turn" and isinstance(agent, _AGENTS):
        return Flow() if value == agent.initial_state else scope.everything()
    flow = scope.everything()
    if scope.tool is not None:
        flow.outputs[scope.tool] = None  # what a tool writes down is as what it returns
    return flow


_AGENTS = (BaseWorkflowAgent, AgentWorkflow)


def _print(value: object) -> bytes | None:
    """Return what two values share that are the same; None where that cannot be told."""
    try:
        said = json.dumps(value, default=_dumped, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.blake2b(said.encode(errors="surrogatepass"), digest_size=16, key=_KEY).digest()


def _dumped(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    raise TypeError


def changed(before: Mapping[str, object], after: Mapping[str, object]) -> Iterable[str]:
    """Yield the keys whose values differ, or may: the same object may have been changed in place."""
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        plain = new is None or isinstance(new, (str, int, float, bool))
        if plain and type(old) is type(new) and old == new:
            continue
        prints = _print(old), _print(new)
        if old is new or prints[0] is None or prints[0] != prints[1]:
            yield key
