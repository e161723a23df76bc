"""Where the framework's workflows read, write, save and restore their state: told to workflow_state.

Methods of llama-index-workflows 2.26 are wrapped, once per process. Where they are not what they
were, nothing is wrapped, and every run of a workflow depends on its whole session.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import wrapt
from workflows import Context
from workflows.context.context_types import SerializedContext
from workflows.context.pre_context import PreContext
from workflows.context.state_store import InMemoryStateStore, StateStoreFacade

from dellm import ContextForgotten

from . import purging
from .scopes import Scope, current
from .state_cleaning import cleaned_context, forgotten, noted, sweep, take_notes, whole
from .tags import Owner
from .workflow_state import Store, changed, every_kept, items_of, kept, values_of

_SEAMS: Mapping[type, tuple[str, ...]] = {
    StateStoreFacade: ("get", "set", "get_state", "set_state", "edit_state", "clear", "snapshot"),
    InMemoryStateStore: ("to_dict", "from_dict"),
    PreContext: ("__init__",),
    Context: ("to_dict", "_workflow_run"),
}
_Args = tuple[Any, ...]
_Named = dict[str, Any]


_restored: weakref.WeakSet[PreContext[Any]] = weakref.WeakSet()


class _Taps:
    """Whether the framework's methods are wrapped."""

    done = False


def install() -> None:
    """Wrap the methods, once. Called by taps.install."""
    if _Taps.done or not all(hasattr(one, name) for one, some in _SEAMS.items() for name in some):
        return
    for owner, name, wrapper in _WRAPPERS:
        wrapt.wrap_function_wrapper(owner, name, wrapper)
    purging.then(forgotten)
    purging.then(_clean_restored)
    _Taps.done = True


def attach(scope: Scope, context: object) -> None:
    """Note in which Context a turn runs."""
    if not isinstance(context, Context) or scope.turn.context is not None:
        return
    store = context.store
    if _Taps.done and isinstance(store, StateStoreFacade):
        kept(store).attach(scope)
    else:
        scope.turn.resumed = True  # nobody sees what it reads there
        scope.turn.context = ""


def ended(scope: Scope) -> None:
    """Clean the Context of a turn that ended of what was forgotten while it ran."""
    for store, held in _of(scope):
        sweep(store, held)


def _of(scope: Scope) -> list[Any]:
    return [(store, held) for store, held in every_kept() if held.turn is scope]


def _top(path: str) -> str:
    return path.split(".", maxsplit=1)[0]


async def _get(call: Callable[..., Any], store: Store, args: _Args, named: _Named) -> Any:
    found = await call(*args, **named)
    path = args[0] if args else named.get("path", "")
    live = values_of(store)
    kept(store).read(current(), {_top(path): live.get(_top(path), found)})
    return found


async def _get_state(call: Callable[..., Any], store: Store, args: _Args, named: _Named) -> Any:
    found = await call(*args, **named)
    kept(store).read(current(), items_of(found))
    return found


async def _set(call: Callable[..., Any], store: Store, args: _Args, named: _Named) -> None:
    await call(*args, **named)
    path, value = _arguments(*args, **named)
    kept(store).wrote(current(), _top(path), value, part="." in path)


def _arguments(path: str, value: Any) -> tuple[str, Any]:
    return path, value


async def _set_state(call: Callable[..., Any], store: Store, args: _Args, named: _Named) -> None:
    before = values_of(store)
    await call(*args, **named)
    state = args[0] if args else named.get("state")
    _wrote(store, before, values_of(store) or items_of(state))


@asynccontextmanager
async def _edit_state(
    call: Callable[..., Any], store: Store, args: _Args, named: _Named
) -> AsyncIterator[Any]:
    async with call(*args, **named) as state:
        before = values_of(store)
        kept(store).read(current(), before or items_of(state))
        yield state
        after = items_of(state)
    _wrote(store, before, after)


def _wrote(store: Store, before: Mapping[str, object], after: Mapping[str, object]) -> None:
    held, scope = kept(store), current()
    for key in changed(before, after):
        held.wrote(scope, key, after.get(key))


async def _clear(call: Callable[..., Any], store: Store, args: _Args, named: _Named) -> None:
    await call(*args, **named)
    kept(store).flows.clear()


async def _snapshot(call: Callable[..., Any], store: Store, args: _Args, named: _Named) -> Any:
    return noted(await call(*args, **named), kept(store))


def _to_dict(call: Callable[..., Any], store: Store, args: _Args, named: _Named) -> Any:
    return noted(call(*args, **named), kept(store))


def _from_dict(call: Callable[..., Any], _: Any, args: _Args, named: _Named) -> Any:
    def restore(serialized_state: dict[str, Any], serializer: Any) -> Any:
        payload = whole(cleaned_context({"state": serialized_state}))["state"]
        store = call(payload, serializer)
        take_notes(payload or {}, kept(store))
        return store

    return restore(*args, **named)


def _restore(call: Callable[..., Any], face: Any, args: _Args, named: _Named) -> None:
    """Let nothing that was erased back in with a Context's JSON."""

    def begin(
        workflow: Any, previous_context: dict[str, Any] | None = None, serializer: Any = None
    ) -> None:
        data = previous_context
        if isinstance(data, dict):
            data = whole(cleaned_context(data))
        call(workflow, data, serializer)

    begin(*args, **named)
    _restored.add(face)


def _run(call: Callable[..., Any], context: Any, args: _Args, named: _Named) -> Any:
    """Let nothing go on that was restored before a part of it was erased.

    Raises ContextForgotten for a run that was to be resumed.
    """
    face = context._face  # noqa: SLF001 - what is about to run is kept nowhere else
    if isinstance(face, PreContext):
        resumed = face.is_running
        _clean(face)
        if resumed and not face.is_running:
            raise ContextForgotten(
                "The run that this Context holds had read what is forgotten by now.",
                remedy="Begin another run.",
            )
    return call(*args, **named)


def _clean(face: PreContext[Any]) -> None:
    data = face.init_snapshot.model_dump()
    clean = whole(cleaned_context(data))
    if clean is not data:
        face._init_snapshot = SerializedContext.model_validate(clean)  # noqa: SLF001 - as above


def _clean_restored(_: Owner, __: set[int]) -> None:
    """Clean the Contexts that were restored and have not run yet."""
    for face in list(_restored):
        _clean(face)


def _save(call: Callable[..., Any], _: Any, args: _Args, named: _Named) -> Any:
    return cleaned_context(call(*args, **named))


_WRAPPERS: tuple[tuple[type, str, Any], ...] = (
    (StateStoreFacade, "get", _get),
    (StateStoreFacade, "get_state", _get_state),
    (StateStoreFacade, "set", _set),
    (StateStoreFacade, "set_state", _set_state),
    (StateStoreFacade, "edit_state", _edit_state),
    (StateStoreFacade, "clear", _clear),
    (StateStoreFacade, "snapshot", _snapshot),
    (InMemoryStateStore, "to_dict", _to_dict),
    (InMemoryStateStore, "from_dict", _from_dict),
    (PreContext, "__init__", _restore),
    (Context, "to_dict", _save),
    (Context, "_workflow_run", _run),
)
