"""Can a tool's code reach graph state or store? Told from the tool itself.

LangChain's callbacks leave injected arguments out, so the tool is looked up in the frame that calls
back, and its schema, signature and code are read. When that can't be told, the answer is yes.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator
from dis import get_instructions
from functools import reduce
from operator import or_
from types import CodeType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId
from langchain_core.tools.base import get_all_basemodel_annotations
from langgraph.prebuilt import InjectedStore, ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

_REACHING_TYPES = (InjectedToolArg, ToolRuntime, Runtime, BaseStore)
_STORES = (BaseStore, InjectedStore)
_RUNTIMES = (ToolRuntime, Runtime)
# By these, code reaches the state or the runtime of the graph it runs in.
_REACHING_NAMES = frozenset(
    {"get_config", "get_runtime", "get_state", "aget_state", "ensure_config"}
    | {"var_child_runnable_config", "__pregel_read", "__pregel_runtime"}
)
# What a runtime has that says nothing of the state.
_HARMLESS = frozenset({"store", "context", "tool_call_id", "stream_writer"})
_FRAMES = 16  # between a tool's run() and our callback there are 3 to 5


def calling_tool() -> BaseTool | None:
    """Return the tool whose run() or arun() is calling back, None if there is no such frame."""
    frame = inspect.currentframe()
    for _ in range(_FRAMES):
        frame = frame.f_back if frame else None
        if frame is not None and frame.f_code.co_name in {"run", "arun"}:
            owner = frame.f_locals.get("self")
            if isinstance(owner, BaseTool):
                return owner
    return None


class _Reach(NamedTuple):
    state: bool
    store: bool = False

    def __or__(self, other: _Reach) -> _Reach:
        return _Reach(self.state or other.state, self.store or other.store)


_ANYTHING = _Reach(state=True)
_NOTHING = _Reach(state=False)


def reads_state(tool: BaseTool | None, *, store_tells: bool = False) -> bool:
    """Whether the tool's code can read what nobody notes; True if it can't be told.

    That is graph state and runtime, and the store unless `store_tells` what is read from it.
    """
    reach = _ANYTHING if tool is None else _reach(tool)
    return reach.state or (reach.store and not store_tells)


def _reach(tool: BaseTool) -> _Reach:
    known = _answers.get(id(tool))
    if known is not None and known[0]() is tool:
        return known[1]
    answer = _examined(tool)
    if len(_answers) >= 1_024:
        _answers.clear()
    _answers[id(tool)] = (weakref.ref(tool), answer)
    return answer


_answers: dict[int, tuple[weakref.ref[BaseTool], _Reach]] = {}


def _examined(tool: BaseTool) -> _Reach:
    try:
        functions = _functions(tool)
        found = [_of_function(one) for one in functions]
        told = any(_runtimes(one) for one in functions)
        found += [
            _of_hint(one) for one in _schema_hints(tool) if not (told and _is(one, _RUNTIMES))
        ]
    except Exception:  # noqa: BLE001 - whatever a foreign tool raises here, it can't be told
        return _ANYTHING
    return reduce(or_, found, _NOTHING)


def _of_function(function: Callable[..., Any]) -> _Reach:
    named = get_type_hints(function, include_extras=True)
    runtimes = _runtimes(function)
    found = [_of_runtime(function, name) for name in runtimes]
    found += [_of_hint(hint) for name, hint in named.items() if name not in {"return", *runtimes}]
    return reduce(or_, found, _of_code(function))


def _runtimes(function: Callable[..., Any]) -> list[str]:
    """Return the parameters that are given a runtime, by their type or by the name."""
    named = get_type_hints(function, include_extras=True)
    given = inspect.signature(function).parameters
    return [name for name in given if name == "runtime" or _is(named.get(name), _RUNTIMES)]


def _of_runtime(function: Callable[..., Any], name: str) -> _Reach:
    """Tell from the code what is taken of a runtime; anything, unless each use takes an attribute."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or name in code.co_cellvars:
        return _ANYTHING
    steps = list(get_instructions(code))
    store = False
    for at, step in enumerate(steps):
        if name not in (step.argval if isinstance(step.argval, tuple) else (step.argval,)):
            continue
        after = steps[at + 1] if at + 1 < len(steps) else None
        taken = after is not None and after.opname in {"LOAD_ATTR", "LOAD_METHOD"}
        if not taken or after is None or step.argval != name or after.argval not in _HARMLESS:
            return _ANYTHING
        store = store or after.argval == "store"
    return _Reach(state=False, store=store)


def _of_hint(hint: Any) -> _Reach:
    if _is(hint, _STORES):
        return _Reach(state=False, store=True)
    return _Reach(_reaches(hint))


def _is(hint: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a type hint is one of the kinds, or is annotated as one; a union is none."""
    if get_origin(hint) is Annotated:
        return any(_is(one, kinds) for one in get_args(hint))
    bare = get_origin(hint) or hint
    return isinstance(hint, kinds) or (isinstance(bare, type) and issubclass(bare, kinds))


def _schema_hints(tool: BaseTool) -> Iterator[Any]:
    schema = tool.get_input_schema()
    if isinstance(schema, type):
        yield from get_all_basemodel_annotations(schema).values()


def _functions(tool: BaseTool) -> list[Callable[..., Any]]:
    own = [getattr(tool, name, None) for name in ("func", "coroutine")]
    given = [one for one in own if callable(one)]
    return given or [type(tool)._run, type(tool)._arun]  # noqa: SLF001 - what a tool class implements


def _reaches(hint: Any) -> bool:
    """Whether a type hint asks for something of the graph; the id of the tool call is not."""
    if get_origin(hint) is Annotated:
        return any(map(_reaches, get_args(hint)))
    if hint is InjectedToolCallId or isinstance(hint, InjectedToolCallId):
        return False
    if hint is RunnableConfig:
        return True
    bare = get_origin(hint) or hint
    if isinstance(bare, type) and issubclass(bare, _REACHING_TYPES):
        return True
    return isinstance(hint, InjectedToolArg) or any(map(_reaches, get_args(hint)))


def _of_code(function: Callable[..., Any]) -> _Reach:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return _ANYTHING
    names = {name for one in _nested(code) for name in _names(one)}
    return _Reach(not _REACHING_NAMES.isdisjoint(names), "get_store" in names)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _names(code: CodeType) -> set[str]:
    return {*code.co_names, *(one for one in code.co_consts if isinstance(one, str))}
