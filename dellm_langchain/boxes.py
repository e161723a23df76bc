"""The objects that can hold messages: what is in one, and how it is made again.

Which objects these are, in which order they are told apart, and how each is made again follows
the stock serializer (langgraph.checkpoint.serde.jsonplus), so that a value comes back as it would
from there. One thing is better: a pydantic model gets its messages themselves, not their dumps,
so tool calls in a ``list[BaseMessage]`` are kept.
"""

from __future__ import annotations

import dataclasses
import importlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from ipaddress import _IPAddressBase
from pathlib import PurePath
from re import Pattern
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V1, JsonPlusSerializer
from langgraph.checkpoint.serde.types import SendProtocol, _DeltaSnapshot
from langgraph.store.base import Item
from pydantic import BaseModel

_log = logging.getLogger(__name__)
_LEAVES = (bytes, bytearray, date, time, Decimal, UUID, PurePath, Pattern, Enum, type)


class Box(NamedTuple):
    """An object taken apart.

    `form` says how it is made again: "one" from the list of its parts, "pos" from positional
    arguments, "kw" from keywords, "v1" and "v2" as a pydantic model, "delta" as a snapshot of a
    DeltaChannel. `fields` gives the arguments, when some parts were replaced.
    """

    form: str
    parts: list[Any]
    fields: Callable[[list[Any]], Any] = list


def opened(value: Any) -> Box | None:
    """Return `value` taken apart, or None when no message can stand in it."""
    if isinstance(value, type):
        return None
    if isinstance(value, (set, frozenset, deque)):
        return Box("one", list(value))
    if isinstance(value, _DeltaSnapshot):
        return Box("delta", [value.value])
    for method, take_apart in _DUCKS.items():
        if callable(getattr(value, method, None)):
            return take_apart(value)
    return None if isinstance(value, _LEAVES) else _plain_object(value)


def _plain_object(value: Any) -> Box | None:
    if hasattr(value, "node") and isinstance(value, SendProtocol):  # which alone is slow to ask
        timeout = getattr(value, "timeout", None)
        return Box("pos", [value.node, value.arg] + [timeout] * (timeout is not None))
    if dataclasses.is_dataclass(value):
        names = [one.name for one in dataclasses.fields(value)]
        return _keywords("kw", {name: getattr(value, name, None) for name in names})
    if isinstance(value, Item):
        return _keywords("kw", {name: getattr(value, name) for name in value.__slots__})
    return None


def _keywords(form: str, fields: Any) -> Box | None:
    if not isinstance(fields, dict):
        return None
    names = list(fields)
    return Box(form, list(fields.values()), lambda done: dict(zip(names, done, strict=True)))


def _model(value: Any) -> Box | None:
    """Return a pydantic model taken apart into its raw fields.

    The arguments are the model's own dump, as the stock serializer keeps it, except for the
    fields that hold messages: they are kept as they are.
    """
    if not isinstance(value, BaseModel):
        return _keywords("v2", value.model_dump())
    kept = {k: v for k, v in value.__dict__.items() if k in type(value).model_fields}
    raw = {**kept, **(value.__pydantic_extra__ or {})}

    def fields(done: list[Any]) -> dict[str, Any]:
        changed = {
            k: new for (k, old), new in zip(raw.items(), done, strict=True) if new is not old
        }
        dumped: Any = value.model_dump()
        if not isinstance(dumped, dict):  # a root model: its dump is the bare root
            return changed
        for name, new in changed.items():
            key = name if name in dumped else _alias(value, name)
            if key in dumped:  # a field left out of dumps is left out here too
                dumped[key] = new
        return dumped

    return Box("v2", list(raw.values()), fields)


def _alias(value: BaseModel, name: str) -> str | None:
    field = type(value).model_fields.get(name)
    return None if field is None else field.serialization_alias


# The methods by which the stock serializer tells these objects, in its order.
_DUCKS: dict[str, Callable[[Any], Box | None]] = {
    "model_dump": _model,
    "get_secret_value": lambda _: None,
    "dict": lambda value: _keywords("v1", value.dict()),
    "_asdict": lambda value: _keywords("kw", value._asdict()),
}


def built(form: str, module: str, name: str, fields: Any, allowed: Allowed) -> Any:
    """Return the object again; its bare `fields` where the stock serializer would give them.

    That is when its class is blocked, is not there any more, or refuses the fields.
    """
    if form == "delta":
        return _DeltaSnapshot(fields[0])
    if form == "tuple":
        return tuple(fields)
    if not allowed(module, name):
        return fields
    try:
        return _made(form, getattr(importlib.import_module(module), name), fields)
    except Exception as error:  # noqa: BLE001 # a constructor of the user's may raise anything
        if form not in {"v1", "v2"}:
            _log.warning("Could not make %s.%s again (%s).", module, name, type(error).__name__)
        return fields


def _made(form: str, cls: Any, fields: Any) -> Any:
    if form == "one":
        return cls(fields)
    if form == "pos":
        node, arg, *timeout = fields
        return cls(node, arg, timeout=timeout[0]) if timeout else cls(node, arg)
    if form == "kw":
        return cls(**fields)
    try:
        return cls(**fields)
    except Exception:  # noqa: BLE001 # as the stock serializer: a refused model is made unchecked
        return cls.model_construct(**fields) if form == "v2" else cls.construct(**fields)


class _Heard(threading.local):
    blocked = False


_heard = _Heard()


def _listen(event: SerdeEvent) -> None:
    if event["kind"] == "msgpack_blocked":
        _heard.blocked = True


register_serde_event_listener(_listen)


class Allowed:
    """Whether a serializer lets a class be imported; asking warns just as its loading would.

    The serializer is asked by its own means: it is given a model of the class to load whose
    fields are a number, which no class is ever called with, and tells its listeners if it blocks.
    """

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        self._answers: dict[tuple[str, str], bool] = {}

    def __call__(self, module: str, name: str) -> bool:
        """Return whether `name` of `module` may be imported and called."""
        key = (module, name)
        if key not in self._answers:
            self._answers[key] = self._ask(module, name)
        return self._answers[key]

    def _ask(self, module: str, name: str) -> bool:
        question = ormsgpack.packb(
            ormsgpack.Ext(EXT_PYDANTIC_V1, ormsgpack.packb([module, name, 0]))
        )
        _heard.blocked = False
        try:
            self._serde.loads_typed(("msgpack", question))
        except Exception:  # noqa: BLE001 # a serializer without msgpack has no rule: the stock one's
            JsonPlusSerializer().loads_typed(("msgpack", question))
        return not _heard.blocked


def stored_text(value: Any) -> list[str]:
    """Return the strings that a reader could see in what is stored of a leaf."""
    for kinds, shown in _SHOWN:
        if isinstance(value, kinds):
            return shown(value)
    if callable(secret := getattr(value, "get_secret_value", None)):
        return stored_text(secret())
    if getattr(getattr(value, "dtype", None), "kind", "") in {"U", "S"}:
        return [text for one in value.ravel().tolist() for text in stored_text(one)]
    return []


_SHOWN: list[tuple[tuple[type, ...], Callable[[Any], list[str]]]] = [
    ((bytes, bytearray), lambda value: _decoded(bytes(value))),
    ((date, datetime, time), lambda value: [value.isoformat()]),
    ((Enum,), lambda value: stored_text(value.value)),
    ((str, PurePath, UUID, Decimal, ZoneInfo, _IPAddressBase), lambda value: [str(value)]),
    ((Pattern,), lambda value: stored_text(value.pattern)),
    ((BaseException,), lambda value: [repr(value)]),
]


def _decoded(data: bytes) -> list[str]:
    try:
        return [data.decode()]
    except UnicodeDecodeError:
        return []
