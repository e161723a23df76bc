"""A LangChain message as the fields of a record, and back: equal, and a fresh object each time.

The record's own columns say most of a message: its role, its text, its id. Whatever else it holds
goes into the payload, whose first byte says how it was written:

- ``m`` and a letter for the class: the other fields, as msgpack, where msgpack keeps them exactly;
- ``o`` and a letter for the class: the other fields through the saver's serializer, because one of
  them is an object, a tuple, a lone surrogate, a message (in an artifact);
- ``u``: a class that is not LangChain's own, whole, through the saver's serializer;
- ``x``: one of the above, encrypted (or whatever else a serializer that is not the stock one does).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import langchain_core.messages as lc
import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from dellm import Draft

from . import shapes
from .shapes import typed, untyped

# What msgpack would change on the way (a tuple, a subclass, a date) is refused instead.
_EXACTLY = (
    ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
_EXTRA = "__pydantic_extra__"
_SPEAKERS = {"assistant": "assistant", "ai": "assistant", "system": "system", "tool": "tool"}

# The four slots of a pydantic object. Filling them is what validation does in the end; each
# recipe was validated when the message was first made, and a thread is read at every step.
_new = object.__new__
_unpack = ormsgpack.unpackb
_set_dict = BaseModel.__dict__["__dict__"].__set__
_set_names = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__

_Make = Callable[[str, str | None, bytes], BaseMessage]


class Fields(NamedTuple):
    """What a record keeps of a message.

    `kind` is "tool" for a tool's result, else "message"; `role` is user, assistant, system or
    tool; `text` is the content, or the texts of its blocks, one a line; `payload` is None when
    role, text and id say everything; `metadata` names the call that a tool's result answers.
    """

    kind: str
    role: str
    text: str
    framework_id: str | None
    payload: bytes | None
    metadata: dict[str, Any] | None


class Declared(set[str]):
    """The names of a class's fields, which all count as set: shared by every message of it.

    To copy them for each message took longer than all else. Nothing is ever added: a declared name
    is there, and an undeclared attribute is kept, and dumped, without its name. A copy is a plain
    set.
    """

    def add(self, name: str) -> None:
        """Add a name that is there already, and no other."""
        if name in self:
            super().add(name)

    def __copy__(self) -> set[str]:
        return set(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> set[str]:
        return set(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return set, (list(self),)

    copy = __copy__


class _Class:
    """One of LangChain's own message classes: its letter, and its fields when nothing is said."""

    __slots__ = ("cls", "containers", "defaults", "letter", "make", "names", "plain", "role")

    def __init__(self, letter: str, cls: type[BaseMessage]) -> None:
        self.cls = cls
        self.letter = letter.encode()
        fields = cls.model_fields
        values = {name: one.get_default(call_default_factory=True) for name, one in fields.items()}
        required = {name for name, one in fields.items() if one.is_required()}
        self.defaults = {k: v for k, v in values.items() if k not in required}
        self.plain = {k: None if k in required else v for k, v in values.items()}
        self.containers = {k: type(v) for k, v in values.items() if type(v) in {dict, list}}
        self.names = Declared(fields)
        self.role = _role_of(cls)
        self.make = _maker(self)


def _maker(known: _Class) -> _Make:
    """Return what makes a message of a class from its text, its id and its packed fields.

    It runs once for every message of a thread at every step, so it looks nothing up, and the two
    containers that every class has are written out.
    """
    cls, copied, named = known.cls, known.plain.copy, known.names
    twice = {"additional_kwargs", "response_metadata"}
    others = tuple(item for item in known.containers.items() if item[0] not in twice)

    def make(text: str, framework_id: str | None, fields: bytes) -> BaseMessage:
        state = copied()
        state["content"] = text
        state["id"] = framework_id
        state["additional_kwargs"] = {}
        state["response_metadata"] = {}
        for name, container in others:
            state[name] = container()
        if fields:
            state.update(_unpack(fields))
        made = _new(cls)
        _set_dict(made, state)
        _set_names(made, named)
        _set_extra(made, {})
        _set_private(made, None)
        return made

    return make


def _role_of(cls: type[BaseMessage]) -> str:
    """Return the role of a class's messages; "user" for one that says nothing (ChatMessage)."""
    for known, role in (
        (lc.AIMessage, "assistant"),
        (lc.SystemMessage, "system"),
        (lc.ToolMessage, "tool"),
        (lc.FunctionMessage, "tool"),
        (lc.RemoveMessage, "system"),
    ):
        if issubclass(cls, known):
            return role
    return "user"


_LETTERS: dict[str, type[BaseMessage]] = {
    "h": lc.HumanMessage,
    "a": lc.AIMessage,
    "s": lc.SystemMessage,
    "t": lc.ToolMessage,
    "f": lc.FunctionMessage,
    "c": lc.ChatMessage,
    "r": lc.RemoveMessage,
    "H": lc.HumanMessageChunk,
    "A": lc.AIMessageChunk,
    "S": lc.SystemMessageChunk,
    "T": lc.ToolMessageChunk,
    "F": lc.FunctionMessageChunk,
    "C": lc.ChatMessageChunk,
}
_KNOWN = {cls: _Class(letter, cls) for letter, cls in _LETTERS.items()}
_BY_LETTER = {ord(one.letter): one for one in _KNOWN.values()}
_BY_ROLE = {
    "user": _KNOWN[lc.HumanMessage],
    "assistant": _KNOWN[lc.AIMessage],
    "system": _KNOWN[lc.SystemMessage],
    "tool": _KNOWN[lc.ToolMessage],
}
# A tool's result is never plain: it names its call.
_PLAIN = frozenset(one for one in _BY_ROLE.values() if one.cls is not lc.ToolMessage)


def fields_of(message: BaseMessage, serde: SerializerProtocol) -> Fields:
    """Return what a record keeps of `message`.

    Raises what `serde` raises for an object it cannot write, as the stock saver would.
    """
    state = message.__dict__
    content, named = state.get("content"), state.get("id")
    text = content if type(content) is str else text_of(content)
    framework_id = str(named) if isinstance(named, str) else None
    known = _KNOWN.get(type(message))
    if known is None or state.keys() != known.names:
        return _unknown(message, text, framework_id, serde)
    extra = message.__pydantic_extra__
    if (
        known in _PLAIN
        and not extra
        and state == {**known.plain, "content": text, "id": framework_id}
    ):
        return Fields("message", known.role, text, framework_id, None, None)
    rest = _rest(message, known, framework_id)
    role = _SPEAKERS.get(rest.get("role", ""), known.role)
    kind = "tool" if known.role == "tool" else "message"
    payload = _closed(_written(known, rest, serde), serde)
    return Fields(kind, role, text, framework_id, payload, _answers(message))


def _rest(message: BaseMessage, known: _Class, framework_id: str | None) -> dict[str, Any]:
    """Return the fields that neither the record's columns nor the class's defaults say."""
    defaults = known.defaults
    rest = {
        name: value
        for name, value in message.__dict__.items()
        if name not in defaults
        or (value is not (usual := defaults[name]) and _differ(value, usual))
    }
    if isinstance(rest.get("content"), str):
        del rest["content"]
    if framework_id is not None:
        rest.pop("id", None)
    if message.__pydantic_extra__:
        rest[_EXTRA] = message.__pydantic_extra__
    return rest


def _differ(value: object, usual: object) -> bool:
    """Return whether a field is not at its default; an array in it is never compared."""
    return type(value) is not type(usual) or bool(value != usual)


def text_of(content: object) -> str:
    """Return the texts of a message's content blocks, one a line; "" when there are none."""
    if isinstance(content, str):
        return str(content)
    if isinstance(content, Mapping):
        return text_of([content.get("text"), content.get("content")])
    if isinstance(content, list):
        return "\n".join(text for text in map(text_of, content) if text)
    return ""


def _answers(message: BaseMessage) -> dict[str, Any] | None:
    if not isinstance(message, lc.ToolMessage):
        return None
    call = message.__dict__.get("tool_call_id")
    return {"tool_call_id": call} if isinstance(call, str) else None


def _unknown(
    message: BaseMessage, text: str, framework_id: str | None, serde: SerializerProtocol
) -> Fields:
    """Return the fields of a message whose class is not LangChain's own, or that lacks fields."""
    role = _role_of(type(message))
    kind = "tool" if role == "tool" else "message"
    payload = _closed(b"u" + typed(message, serde), serde)
    return Fields(kind, role, text, framework_id, payload, _answers(message))


def _written(known: _Class, rest: dict[str, Any], serde: SerializerProtocol) -> bytes:
    if _EXTRA not in rest:
        with contextlib.suppress(TypeError):  # which is what ormsgpack's own error is
            return b"m" + known.letter + ormsgpack.packb(rest, option=_EXACTLY)
    return b"o" + known.letter + _odd(rest, serde)


def _odd(rest: dict[str, Any], serde: SerializerProtocol) -> bytes:
    """Return fields that msgpack alone would change, with the messages in them as records are."""
    dumped = shapes.dump(rest, serde, tuples=True)
    inner = [list(fields_of(one, serde)[1:5]) for one in dumped.messages]
    return ormsgpack.packb([dumped.payload, shapes.dump(inner, serde).payload])


def _closed(payload: bytes, serde: SerializerProtocol) -> bytes:
    """Return `payload`, handed to a serializer that is not the stock one (it may encrypt)."""
    return payload if _stock(serde) else b"x" + typed(payload, serde)


def _stock(serde: SerializerProtocol) -> bool:
    return getattr(type(serde), "dumps_typed", None) is JsonPlusSerializer.dumps_typed


class Recipe:
    """What one message is made from: prepared once from a row, then made afresh at each read."""

    __slots__ = ("make",)

    make: Callable[[], BaseMessage]
    """Return a new message, equal to the one that was kept; no two share anything mutable.

    Every field counts as set, as after a round trip through the stock serializer. A class that is
    not LangChain's own comes back as that serializer brings it back: with its warning, and in
    strict mode as a dict.
    """

    def __init__(self, make: _Make, text: str, framework_id: str | None, fields: bytes) -> None:
        self.make = partial(make, text, framework_id, fields)


def recipe(
    role: str,
    text: str,
    framework_id: str | None,
    payload: bytes | None,
    serde: SerializerProtocol,
    metadata: Mapping[str, Any] | None = None,
) -> Recipe:
    """Return what makes the message of a record again; the arguments are the record's columns.

    Without a payload (a plain message, or a redacted one) role, text and id are all there is; a
    tool's result then takes its call from `metadata`, which is not looked at otherwise.
    """
    if payload is None:
        return _bare(_BY_ROLE.get(role, _BY_ROLE["user"]), text, framework_id, metadata or {})
    form = payload[:1]
    if form == b"m":
        return Recipe(_BY_LETTER[payload[1]].make, text, framework_id, payload[2:])
    if form == b"x":
        return recipe(role, text, framework_id, untyped(payload[1:], serde), serde, metadata)
    if form == b"u":
        return Recipe(_stranger(serde), text, framework_id, payload[1:])
    make = _odd_maker(_BY_LETTER[payload[1]], payload[2:], serde)
    return Recipe(make, text, framework_id, b"")


def _bare(
    known: _Class, text: str, framework_id: str | None, metadata: Mapping[str, Any]
) -> Recipe:
    fields = b""
    if known.cls is lc.ToolMessage:
        answers = {"tool_call_id": metadata.get("tool_call_id", "")}
        fields = ormsgpack.packb(answers, option=ormsgpack.OPT_REPLACE_SURROGATES)
    return Recipe(known.make, text, framework_id, fields)


def _odd_maker(known: _Class, data: bytes, serde: SerializerProtocol) -> _Make:
    """Return what makes a message whose other fields were written by `_odd`."""
    fields, kept = _unpack(data)
    rows = shapes.load(kept, serde, ())
    inner = [recipe(role, text, named, payload, serde) for role, text, named, payload in rows]

    def make(text: str, framework_id: str | None, _: bytes) -> BaseMessage:
        made = known.make(text, framework_id, b"")
        more = shapes.load(fields, serde, [one.make() for one in inner])
        _set_extra(made, more.pop(_EXTRA, {}))
        made.__dict__.update(more)
        return made

    return make


def _stranger(serde: SerializerProtocol) -> _Make:
    def make(text: str, _: str | None, fields: bytes) -> BaseMessage:
        made = untyped(fields, serde)
        if isinstance(made, BaseMessage) and type(made.content) is str:
            made.__dict__["content"] = text  # the stock serializer replaces lone surrogates
        return cast("BaseMessage", made)

    return make


def draft_of(message: BaseMessage, thread: str, serde: SerializerProtocol) -> Draft:
    """Return what a message is remembered as in a thread."""
    kept = fields_of(message, serde)
    return Draft(
        text=kept.text,
        role=kept.role,
        thread=thread,
        kind=kept.kind,
        framework_id=kept.framework_id,
        payload=kept.payload,
        metadata=kept.metadata,
        model=model_of(message),
    )


def model_of(message: BaseMessage) -> str | None:
    """Return "provider/model" of the model that a message says it is from, None where it says none.

    A provider that is not named is "unknown".
    """
    said = message.__dict__.get("response_metadata")
    if not said or not isinstance(message, lc.AIMessage) or not isinstance(said, dict):
        return None
    names = [said.get(one) for one in ("model_name", "model", "model_id")]
    name = next((one for one in names if isinstance(one, str) and one.strip()), None)
    provider = said.get("model_provider")
    known = isinstance(provider, str) and provider.strip() and "/" not in provider
    return None if name is None else f"{provider if known else 'unknown'}/{name}"
