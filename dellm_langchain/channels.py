"""What a user may say of a graph's channels: literals, defaults, what a node reads."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin
from typing import get_type_hints as hints

from dellm import InvalidInput

Rebuild = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Channels:
    """Options of a saver, by channel; see DeLLMSaver."""

    literals: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    untracked: frozenset[str] = frozenset()
    reads: Mapping[str, frozenset[str]] = field(default_factory=dict)
    rebuild: Mapping[str, Rebuild] = field(default_factory=dict)

    def fill_input(self, values: Any, cell: Any) -> None:
        """Give what was erased of a graph's input what is declared for its channel."""
        if isinstance(values, dict) and isinstance(cell, list) and isinstance(cell[1], dict):
            for name in cell[1].keys() - values.keys() & self.defaults.keys():
                values[name] = copy.deepcopy(self.defaults[name])

    def filled(self, values: dict[str, Any], lost: Collection[str], gone: Collection[str]) -> None:
        """Give erased channels what is declared for them.

        `lost` are those with nothing left; `gone` also those that read as an earlier value.
        """
        for name in sorted(lost):
            if name in self.defaults:
                values[name] = copy.deepcopy(self.defaults[name])
        for name in sorted(gone):
            if name in self.rebuild:
                rest = {one: value for one, value in values.items() if one not in gone}
                values[name] = self.rebuild[name](rest)


def channels_of(
    schema: Any,
    defaults: Mapping[str, Any] | None,
    untracked: Collection[str],
    reads: Mapping[str, Collection[str]] | None,
    rebuild: Mapping[str, Rebuild] | None,
) -> Channels:
    """Return the options as one value. Raises InvalidInput."""
    if isinstance(untracked, str) or any(isinstance(one, str) for one in (reads or {}).values()):
        raise InvalidInput("untracked= and the values of reads= are collections of channels.")
    if any(not callable(one) for one in (rebuild or {}).values()):
        raise InvalidInput("The values of rebuild= are functions.")
    return Channels(
        dict(_literals(schema)),
        {**dict(_defaults(schema)), **(defaults or {})},
        frozenset(untracked),
        {node: frozenset(channels) for node, channels in (reads or {}).items()},
        dict(rebuild or {}),
    )


def _literals(schema: Any) -> Iterator[tuple[str, frozenset[Any]]]:
    if schema is None:
        return
    try:
        found = hints(schema, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidInput("schema= is no class whose annotations can be read.") from error
    for name, hint in found.items():
        values = frozenset(_constants(hint))
        if values:
            yield name, values


def _constants(hint: Any) -> Iterator[Any]:
    """Yield the strings that a type itself names."""
    origin = get_origin(hint)
    if origin is Literal:
        yield from (one for one in get_args(hint) if type(one) is str)
    elif origin in {Annotated, NotRequired, Required}:
        yield from _constants(get_args(hint)[0])
    elif origin in {Union, UnionType}:
        for one in get_args(hint):
            yield from _constants(one)
    elif isinstance(hint, type) and issubclass(hint, Enum):
        yield from (one.value for one in hint if type(one.value) is str)


def _defaults(schema: Any) -> Iterator[tuple[str, Any]]:
    if schema is None:
        return
    fields = getattr(schema, "model_fields", None)
    if fields is not None:  # pydantic
        for name, one in fields.items():
            if not one.is_required():
                yield name, one.get_default(call_default_factory=True)
    elif dataclasses.is_dataclass(schema):
        for one in dataclasses.fields(schema):
            if one.default is not dataclasses.MISSING:
                yield one.name, one.default
            elif one.default_factory is not dataclasses.MISSING:
                yield one.name, one.default_factory()
