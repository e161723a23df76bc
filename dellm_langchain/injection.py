"""Can a tool's code reach graph state, store or runtime? Told from the tool itself.

LangChain's callbacks leave injected arguments out, so the tool is looked up in the frame that calls
back, and its schema, signature and code are read. When that can't be told, the answer is yes.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId
from langchain_core.tools.base import get_all_basemodel_annotations
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

_REACHING_TYPES = (InjectedToolArg, ToolRuntime, Runtime, BaseStore)
# By these, code reaches the state, the store or the runtime of the graph it runs in.
_REACHING_NAMES = frozenset(
    {"get_config", "get_store", "get_runtime", "get_state", "aget_state", "ensure_config"}
    | {"var_child_runnable_config", "__pregel_read", "__pregel_runtime"}
)
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


def reads_state(tool: BaseTool | None) -> bool:
    """Whether the tool's code can reach graph state, store or runtime; True if it can't be told."""
    if tool is None:
        return True
    known = _answers.get(id(tool))
    if known is not None and known[0]() is tool:
        return known[1]
    answer = _examined(tool)
    if len(_answers) >= 1_024:
        _answers.clear()
    _answers[id(tool)] = (weakref.ref(tool), answer)
    return answer


_answers: dict[int, tuple[weakref.ref[BaseTool], bool]] = {}


def _examined(tool: BaseTool) -> bool:
    try:
        hints = list(_schema_hints(tool))
        for function in _functions(tool):
            named = get_type_hints(function, include_extras=True)
            if "runtime" in inspect.signature(function).parameters:
                return True
            hints += [hint for name, hint in named.items() if name != "return"]
            if _reaching_code(function):
                return True
    except Exception:  # noqa: BLE001 - whatever a foreign tool raises here, it can't be told
        return True
    return any(map(_reaches, hints))


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


def _reaching_code(function: Callable[..., Any]) -> bool:
    inner = inspect.unwrap(function)
    code = getattr(inner, "__code__", None)
    return code is None or any(not _REACHING_NAMES.isdisjoint(_names(one)) for one in _nested(code))


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _names(code: CodeType) -> set[str]:
    return {*code.co_names, *(one for one in code.co_consts if isinstance(one, str))}
