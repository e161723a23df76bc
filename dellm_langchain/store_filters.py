"""The filters of a store's search: what a value must hold.

As `langgraph.store.memory` compares, but where that raises for a value that is no number (an item
without the field, a date), the item does not count, or texts are compared as texts, as the stock
store on SQLite does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from dellm import InvalidInput

from .store_values import value_of

LONGEST = 500  # characters of a text that a database is asked to look for

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_SAME: dict[str, Callable[[Any, Any], bool]] = {"$eq": operator.eq, "$ne": operator.ne}


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search asks of an item: by the JSON of its value.

    `says` tells whether a text counts, None where every one does. Every text that counts has one of
    each group of `holding` in it, so that a database can leave out most others.
    """

    says: Callable[[str], bool] | None = field(default=None, repr=False)
    holding: Sequence[Sequence[str]] = field(default=(), repr=False)

    @classmethod
    def of(cls, wanted: object) -> Filter:
        """Return what a filter of LangGraph's asks.

        Raises InvalidInput for what is no mapping by names, or has an operator that there is not.
        """
        if not wanted:
            return cls()
        if not isinstance(wanted, Mapping) or not all(isinstance(one, str) for one in wanted):
            raise InvalidInput("filter= is no mapping with names as keys.")
        tests = [(name, _test(one)) for name, one in wanted.items()]

        def says(text: str) -> bool:
            value = value_of(text) or {}
            for name, test in tests:  # noqa: SIM110 - asked of each item: all() takes twice as long
                if not test(value.get(name)):
                    return False
            return True

        return cls(says, [one for name in wanted for one in _groups(name, wanted[name])])


def _groups(name: str, wanted: Any) -> list[list[str]]:
    """Return of what one is in the JSON of every value that has what is asked for by a name."""
    key = _json(name)
    ways = [f"{key}:{one}" for one in _beginnings(wanted)] if key and len(key) < LONGEST else []
    if len(ways) < 2:
        return [ways] if ways else []
    # They differ in their last character. The rest is looked for first: mostly it is not there.
    return [[ways[0][:-1]], ways]


def _beginnings(wanted: Any) -> list[str]:
    """Return how the JSON of all that counts may begin; nothing where it may begin in any way."""
    if isinstance(wanted, Mapping) and _has_operators(wanted):
        if "$eq" in wanted:
            return _beginnings(wanted["$eq"])
        return [] if _ORDERS.keys().isdisjoint(wanted) else [""]
    if isinstance(wanted, Mapping | list | tuple):
        return ["{" if isinstance(wanted, Mapping) else "["]
    if isinstance(wanted, str):
        said = _json(wanted)
        return [said] if said is not None and len(said) < LONGEST else []
    # What equals these is not always written alike: 1 is 1.0 and True, and 1e16 has an exponent.
    plain = type(wanted) is int and wanted not in (0, 1) and abs(wanted) < 1 << 53
    return [f"{wanted}{end}" for end in ",}."] if plain else []


def _json(text: str) -> str | None:
    try:
        return orjson.dumps(text).decode()
    except TypeError:  # it has a lone surrogate, which no value of an item has
        return None


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
