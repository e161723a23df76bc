"""The filters of a store's search: what a value must hold.

As `langgraph.store.memory` compares, but where that raises for a value that is no number (an item
without the field, a date), the item does not count, or texts are compared as texts, as the stock
store on SQLite does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from dellm import InvalidInput

Holds = Callable[[Mapping[str, Any]], bool]

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_SAME: dict[str, Callable[[Any, Any], bool]] = {"$eq": operator.eq, "$ne": operator.ne}


def compiled(wanted: object) -> Holds | None:
    """Return the test that a filter stands for, None for no filter.

    Raises InvalidInput for what is no mapping by names, or has an operator that there is not.
    """
    if not wanted:
        return None
    if not isinstance(wanted, Mapping) or not all(isinstance(one, str) for one in wanted):
        raise InvalidInput("filter= is no mapping with names as keys.")
    tests = [(name, _test(one)) for name, one in wanted.items()]
    return lambda value: all(test(value.get(name)) for name, test in tests)


def _test(wanted: Any) -> Callable[[Any], bool]:
    if isinstance(wanted, Mapping):
        return _operators(wanted) if _has_operators(wanted) else _nested(wanted)
    if isinstance(wanted, list | tuple):
        return _listed(wanted)
    return lambda value: bool(value == wanted)


def _has_operators(wanted: Mapping[Any, Any]) -> bool:
    return any(isinstance(one, str) and one.startswith("$") for one in wanted)


def _operators(wanted: Mapping[str, Any]) -> Callable[[Any], bool]:
    tests = [_operator(name, bound) for name, bound in wanted.items()]
    return lambda value: all(test(value) for test in tests)


def _operator(name: str, bound: Any) -> Callable[[Any], bool]:
    if name in _SAME:
        same = _SAME[name]
        return lambda value: bool(same(value, bound))
    if name not in _ORDERS:
        raise InvalidInput("filter= has an operator that there is not.")
    order = _ORDERS[name]
    return lambda value: _ordered(order, value, bound)


def _ordered(order: Callable[[Any, Any], bool], value: Any, bound: Any) -> bool:
    try:
        return bool(order(float(value), float(bound)))
    except (TypeError, ValueError):
        return isinstance(value, str) and isinstance(bound, str) and bool(order(value, bound))


def _nested(wanted: Mapping[str, Any]) -> Callable[[Any], bool]:
    tests = [(name, _test(one)) for name, one in wanted.items()]
    return lambda value: (
        isinstance(value, Mapping) and all(test(value.get(name)) for name, test in tests)
    )


def _listed(wanted: list[Any] | tuple[Any, ...]) -> Callable[[Any], bool]:
    tests = [_test(one) for one in wanted]
    return lambda value: (
        isinstance(value, list | tuple)
        and len(value) == len(tests)
        and all(test(one) for test, one in zip(tests, value, strict=True))
    )
