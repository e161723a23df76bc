"""After a forget: what is in workflows' Contexts that was made from what is erased goes as well.

In those of this process at once, or when their run ends; in what was written down as JSON when it
is read again, or by `cleaned_context`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from workflows.context.state_store import (
    DictState,
    InMemoryStateStore,
    StateRecord,
    create_cleared_state,
)

from dellm import DellmError

from .flows import ERASED
from .handles import Handle, attach, opened
from .purging import dead, mark
from .retriever import memory_of
from .state_records import gone, restored, written
from .tags import Owner
from .workflow_state import FIXED, Kept, Store, every_kept

NOTES = "dellm"  # the part of a state's JSON that says what its values were made from
# The parts of a Context's JSON that hold events under way, of this and earlier versions.
_UNDER_WAY: Mapping[str, Any] = {
    "workers": {},
    "deliveries": [],
    "streams": {},
    "collection_release_states": {},
    "is_running": False,
    "queues": {},
    "streaming_queue": "[]",
    "event_buffers": {},
    "in_progress": {},
    "accepted_events": [],
    "broker_log": [],
    "waiting_ids": [],
}


def forgotten(owner: Owner, records: set[int]) -> None:
    """Clean the Contexts of this process of what was made from erased records."""
    for store, held in every_kept():
        for flow in [*held.flows.values(), *([held.before] if held.before else [])]:
            mark(flow, owner, records)
            if flow.unsure and (owner in flow.records or not flow.records):
                flow.read(owner, [ERASED])  # nobody can tell that it was not made from these
        if not held.running:
            sweep(store, held)


def sweep(store: Store, held: Kept) -> None:
    """Take the values out of a store that were made from what is erased."""
    lost = _dead_keys(held)
    for key in lost:
        del held.flows[key]
    if not lost or not isinstance(store, InMemoryStateStore):
        return
    storage = store._memory_storage  # noqa: SLF001 - there is no way in that does not wait
    record = storage.load_sync()
    if record is None:
        return
    state = _without(record.data, lost, held)
    storage._record = StateRecord(  # noqa: SLF001 - as above
        data=state, state_type=type(state).__name__, state_module=type(state).__module__
    )


def _dead_keys(held: Kept) -> list[str]:
    return [key for key, flow in held.flows.items() if dead(flow)]


def _without(state: Any, keys: Iterable[str], held: Kept) -> Any:
    """Return a state without some values; what an agent begins with takes their place."""
    if not isinstance(state, DictState):
        return _with_defaults(state, keys)
    values = {key: value for key, value in state.items() if key not in set(keys)}
    agent = held.turn.instance() if held.turn is not None else None
    begins = getattr(agent, "initial_state", None)
    if begins and "state" not in values:
        values["state"] = copy.deepcopy(begins)
    return DictState(**values)


def _with_defaults(state: Any, keys: Iterable[str]) -> Any:
    fields, update = type(state).model_fields, {}
    for key in keys:
        if key not in fields or fields[key].is_required():
            return create_cleared_state(type(state))
        update[key] = fields[key].get_default(call_default_factory=True)
    return state.model_copy(update=update)


# what is written down


def noted(payload: dict[str, Any], held: Kept) -> dict[str, Any]:
    """Return a state's JSON with what its values were made from, less what is erased."""
    lost = set(_dead_keys(held))
    keys = {key: written(flow) for key, flow in held.flows.items() if key not in lost and flow}
    notes: dict[str, Any] = {"context": held.context, "keys": keys}
    if held.unknown:
        notes["unknown"] = True
    if held.turn is not None and not held.turn.finished:
        read = held.turn.everything()
        notes["run"] = {"gone": True} if dead(read) else written(read)
    return {**_stripped(payload, lost), NOTES: notes}


def _stripped(payload: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    """Return a state's JSON without some values; without all where they are in one piece."""
    if not keys:
        return payload
    data = payload.get("state_data")
    if not isinstance(data, dict) or not isinstance(data.get("_data"), dict):
        return {}
    values = {key: value for key, value in data["_data"].items() if key not in keys}
    return {**payload, "state_data": {**data, "_data": values}}


def cleaned_context(data: dict[str, Any], memory: Any = None) -> dict[str, Any]:
    """Return a Context's JSON, as `Context.to_dict` gave it, without what was made from erased records.

    Values in its store go, and so does a run that was under way if it had read what is erased: that
    can not be resumed. With `memory`, JSON that does not say what it was made from, because it was
    written without this package, loses all that may hold text. Contexts are cleaned by themselves
    when they are restored; this is for JSON that is kept. `memory` is a dellm.Memory or a
    DeLLMMemory. Raises InvalidInput, StorageError.
    """
    if memory is not None:
        attach(memory_of(memory, "cleaned_context()"))
    state = data.get("state")
    notes = state.get(NOTES) if isinstance(state, dict) else None
    if not isinstance(state, dict) or not isinstance(notes, dict):
        return data if memory is None else _bare(data)
    lost = {key for key, said in notes.get("keys", {}).items() if _gone(said)}
    if memory is not None and notes.get("unknown"):
        return _bare(data)
    if lost:
        kept = {key: said for key, said in notes["keys"].items() if key not in lost}
        notes = {**notes, "keys": kept}
        data = {**data, "state": {**_stripped(state, lost), NOTES: notes}}
    if (run := notes.get("run")) is not None and _gone(run):
        notes = {key: value for key, value in notes.items() if key != "run"}
        data = {**_without_run(data), "state": {**data["state"], NOTES: notes}}
    return data


def _bare(data: dict[str, Any]) -> dict[str, Any]:
    """Return a Context's JSON with nothing but how an agent goes on."""
    state = data.get("state")
    if not isinstance(state, dict) or not state:
        return _without_run(data)
    held = state.get("state_data")
    values = held.get("_data") if isinstance(held, dict) else None
    some = set(values) - FIXED if isinstance(values, dict) else {""}
    return {**_without_run(data), "state": _stripped(state, some)}


def whole(data: dict[str, Any]) -> dict[str, Any]:
    """Return a Context's JSON as the framework reads it: where a state went in one piece, without."""
    state = data.get("state")
    return {**data, "state": {}} if isinstance(state, dict) and set(state) == {NOTES} else data


def _without_run(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, **{key: value for key, value in _UNDER_WAY.items() if key in data}}


def _gone(said: Mapping[str, Any]) -> bool:
    """Whether a part of what a value was made from is no more; also where that cannot be told."""
    if said.get("gone"):
        return True
    for url, workspace, name, origin, generation, records in said.get("records", ()):
        memory = None
        with suppress(DellmError):  # a memory of a process that is no more
            memory = opened(Handle(url, workspace, name))
        if memory is not None:
            moved = bool(said.get("unsure")) and memory.checkpoints.generation() != generation
            if moved or gone(memory, origin, generation, records):
                return True
    return False


def take_notes(payload: Mapping[str, Any], held: Kept) -> None:
    """Take what a state's JSON says of its values."""
    notes = payload.get(NOTES)
    if not isinstance(notes, dict):
        held.unknown = bool(payload)
        return
    held.context = str(notes.get("context", held.context))
    held.unknown = bool(notes.get("unknown"))
    held.flows = {key: restored(said) for key, said in notes.get("keys", {}).items()}
    if notes.get("run") is not None:
        held.before = restored(notes["run"])
