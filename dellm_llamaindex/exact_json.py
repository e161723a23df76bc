"""JSON that keeps what plain JSON would change: the classes of objects, bytes, tuples, enums, URLs.

A JSON object that stands for something else has the key "!", which says what. Reading one back runs
no validation and imports no module but LlamaIndex's own: an object of a class that this process has
not loaded comes back as the mapping of its fields.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from importlib import import_module
from io import IOBase, TextIOBase
from numbers import Integral, Real
from pathlib import Path
from typing import Any
from uuid import UUID

from llama_index.core.base.llms import types
from pydantic import AnyUrl, BaseModel

from dellm import InvalidInput

_MARK = "!"
_HOME = types.__name__  # classes of this module are named without it
_PLAIN = (str, int, float, bool, type(None))

# What is written as a text: its class, and how it is read again.
_TEXTS: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "url": (AnyUrl, AnyUrl),
    "path": (Path, Path),
    "datetime": (datetime, datetime.fromisoformat),
    "date": (date, date.fromisoformat),
    "uuid": (UUID, UUID),
    "decimal": (Decimal, Decimal),
}
# Numbers of other classes, such as NumPy's, are kept as what they say.
_NUMBERS: dict[type, Callable[[Any], Any]] = {bool: bool, Integral: int, Real: float}
_LISTS: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}


def dump(value: Any) -> bytes:
    """Return a value as ASCII JSON. What has no form here is kept as its `str`.

    Raises InvalidInput for what holds itself, or is nested too deeply.
    """
    return _written(value, separators=(",", ":")).encode("ascii")


def sorted_text(value: Any) -> str:
    """Return what `dump` writes as a text that is the same for equal values. Raises InvalidInput."""
    return _written(value, sort_keys=True)


def _written(value: Any, **options: Any) -> str:
    try:
        return json.dumps(plain(value), ensure_ascii=True, **options)
    except RecursionError:
        deep = InvalidInput("The message is nested too deeply to be kept.")
    raise deep


def load(data: bytes) -> Any:
    """Return the value that `dump` was given; nothing in it is shared with another one."""
    return unplain(json.loads(data))


def plain(value: Any) -> Any:
    """Return a value as what JSON can say."""
    if type(value) in _PLAIN:
        return value
    if type(value) is list:
        return [plain(one) for one in value]
    if isinstance(value, BaseModel):
        return _model(value)
    if isinstance(value, Enum):
        return {_MARK: "enum", "is": _name(type(value)), "of": plain(value.value)}
    if isinstance(value, Mapping):
        return _mapping(value)
    return _other(value)


def _mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    if all(type(key) is str for key in value) and _MARK not in value:
        return {key: plain(one) for key, one in value.items()}
    return {_MARK: "map", "of": [[plain(key), plain(one)] for key, one in value.items()]}


def _model(value: BaseModel) -> dict[str, Any]:
    declared = type(value).model_fields
    said = value.__dict__
    made: dict[str, Any] = {_MARK: _name(type(value))}
    made |= {f"{name}": plain(said[name]) for name in declared if name in said}
    if value.__pydantic_extra__:
        made["+"] = plain(value.__pydantic_extra__)
    return made


def _other(value: Any) -> Any:
    for name, kind in _LISTS.items():
        if isinstance(value, kind):
            return {_MARK: name, "of": [plain(one) for one in value]}
    if isinstance(value, TextIOBase):
        return _read(value)
    if isinstance(value, bytes | bytearray | memoryview | IOBase):
        return {_MARK: "bytes", "of": base64.b64encode(_bytes(value)).decode("ascii")}
    for name, (kind, _) in _TEXTS.items():
        if isinstance(value, kind):
            return {_MARK: name, "of": str(value)}
    kind = next((one for one in _NUMBERS if isinstance(value, one)), None)
    return str(value) if kind is None else _NUMBERS[kind](value)


def _bytes(value: Any) -> bytes:
    return bytes(_read(value) if isinstance(value, IOBase) else value)


def _read(stream: Any) -> Any:
    """Return what a stream holds, which is left where it was."""
    at = stream.tell()
    stream.seek(0)
    found = stream.read()
    stream.seek(at)
    return found


def _name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == _HOME else f"{cls.__module__}:{cls.__qualname__}"


def unplain(value: Any) -> Any:
    """Return what `plain` made JSON of."""
    if type(value) is list:
        return [unplain(one) for one in value]
    if type(value) is not dict:
        return value
    kind = value.get(_MARK)
    if kind is None:
        return {key: unplain(one) for key, one in value.items()}
    return _marked(kind, value)


def _marked(kind: str, value: dict[str, Any]) -> Any:
    if kind == "map":
        return {_hashable(unplain(key)): unplain(one) for key, one in value["of"]}
    if kind in _LISTS:
        return _LISTS[kind](unplain(one) for one in value["of"])
    if kind == "bytes":
        return base64.b64decode(value["of"])
    if kind in _TEXTS:
        return _TEXTS[kind][1](value["of"])
    if kind == "enum":
        found = _class(value["is"])
        said = unplain(value["of"])
        return found(said) if found is not None and issubclass(found, Enum) else said
    return _remade(kind, value)


def _hashable(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def _remade(name: str, value: dict[str, Any]) -> Any:
    """Return an object with the fields it had; they were validated when it was first made."""
    fields = {key: unplain(one) for key, one in value.items() if key not in {_MARK, "+"}}
    more = unplain(value["+"]) if "+" in value else {}
    found = _class(name)
    if found is None or not issubclass(found, BaseModel):
        return fields | more
    made = found.model_construct(_fields_set=set(fields))
    made.__dict__.update(fields)
    if more:
        object.__setattr__(made, "__pydantic_extra__", more)
    return made


def _class(name: str) -> type | None:
    """Return a class that is loaded already, or is LlamaIndex's own."""
    place, _, path = name.rpartition(":")
    place = place or _HOME
    module: Any = sys.modules.get(place)
    if module is None and place.startswith("llama_index."):
        try:
            module = import_module(place)
        except ImportError:
            return None
    for one in path.split("."):
        module = getattr(module, one, None)
    return module if isinstance(module, type) else None
