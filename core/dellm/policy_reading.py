"""Reading a policy from a table such as TOML gives: every key, type and name is checked.

A mistake is told with the line on which it stands in the text, see policy_lines.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import resources
from typing import Any

from .errors import PolicyError
from .governance import BASES, CREATORS, WRITES
from .policy_lines import Path, line_of
from .records import KINDS

MOST = 1 << 18  # characters of a policy's text
_DAYS = 36_500  # a lifetime above a hundred years is a mistake
CONFIRM = ("sensitive", "always")
SAID = ("class", "purpose", "sensitivity", "basis")
_TOP = (
    *("memory", "allowed", "purpose_required", "confirm", "export", "cross_project", "basis"),
    *("classes", "sensitivities", "rules"),
)
_CLASS = (
    *("days", "lifetime", "kinds", "write", "read", "export", "erase", "sensitivity"),
    "records",
)
_SENSITIVITY = ("write", "read", "export")
_WHEN = ("kind", "role", "thread", "purpose", "sensitivity", "created_by", "subject")
_RULE = ("name", "when", "days", "write", *SAID)


class _Wrong(Exception):
    """A mistake, and where in the table it is."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(what)
        self.path = path
        self.what = what


def parsed(text: str) -> dict[str, Any]:
    """Return the fields of a Policy that a TOML text describes; PolicyError names the line."""
    if not isinstance(text, str) or len(text) > MOST:
        raise PolicyError(f"A policy is a text of at most {MOST} characters.")
    try:
        table = tomllib.loads(f"{text}\n")  # its messages name no line at the end of a text
    except tomllib.TOMLDecodeError as error:
        problem = PolicyError(f"The policy is no TOML: {error}.")
    except RecursionError:
        problem = PolicyError("The policy is no TOML: it is nested too deeply.")
    else:
        return _fields(table, lambda path: line_of(text, path))
    raise problem


def described(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a Policy that a table describes; PolicyError names the key."""
    if not isinstance(table, Mapping):
        raise PolicyError("A policy is a table.")
    return _fields(table, lambda _: None)


def _fields(table: Mapping[str, Any], line: Callable[[Path], int | None]) -> dict[str, Any]:
    try:
        return _read(table, shipped_tables())
    except _Wrong as wrong:
        at = line(wrong.path)
        where = f"line {at}: " if at is not None else ""
        problem = PolicyError(f"Policy, {where}{_named(wrong.path)} {wrong.what}.", line=at)
    raise problem


def _named(path: Path) -> str:
    """Return a path as people write it: rules[2].when.kind."""
    said = "".join(f"[{one + 1}]" if isinstance(one, int) else f".{one}" for one in path)
    return said.removeprefix(".") or "it"


@cache
def shipped_tables() -> dict[str, Any]:
    """Return the classes and sensitivities that ship, as tables."""
    text = resources.files(__package__).joinpath("data/policy.toml").read_text("utf-8")
    return tomllib.loads(text)


def _read(table: Mapping[str, Any], shipped: Mapping[str, Any]) -> dict[str, Any]:
    _keys(table, (), _TOP)
    classes = {**shipped["classes"], **_tables(table, ("classes",))}
    kinds = {**shipped["sensitivities"], **_tables(table, ("sensitivities",))}
    made = {name: _sensitivity(name, one) for name, one in kinds.items()}
    kept = {name: _class(name, one, made) for name, one in classes.items()}
    _no_kind_twice(table, kept)
    return {
        "memory": _flag(table, (), "memory", default=True),
        "allowed": _names(table, (), "allowed", kept, "class"),
        "purpose": _flag(table, (), "purpose_required", default=False),
        "confirm": _choice(table, (), "confirm", CONFIRM) or "sensitive",
        "export": _roles(table, (), "export"),
        "cross_project": _flag(table, (), "cross_project", default=False),
        "basis": _choice(table, (), "basis", BASES) or "legitimate use",
        "classes": tuple(kept.values()),
        "sensitivities": tuple(made.values()),
        "rules": _rules(table, kept, made),
    }


def _no_kind_twice(table: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
    """Raise for a kind of records that two classes claim: which one counts would be by accident."""
    owner: dict[str, str] = {}
    for name, one in kept.items():
        for kind in one.kinds:
            other = owner.setdefault(kind, name)
            if other != name:
                at = name if name in table.get("classes", ()) else other
                raise _Wrong(("classes", at, "kinds"), f"has {kind}, as class {other} has")


def _class(name: str, table: Any, sensitivities: Collection[str]) -> Any:
    from .policy_values import Class

    at: Path = ("classes", name)
    _keys(_table(table, at), at, _CLASS)
    lifetime = _choice(table, at, "lifetime", ("sources",))
    return Class(
        _name(name, at),
        days=_days(table, at),
        with_sources=lifetime is not None,
        kinds=_names(table, at, "kinds", KINDS, "kind") or (),
        write=_choice(table, at, "write", WRITES) or "allow",
        roles=_roles(table, at, "read"),
        export=_flag(table, at, "export", default=True),
        erase=_roles(table, at, "erase"),
        sensitivity=_choice(table, at, "sensitivity", sensitivities),
        records=_flag(table, at, "records", default=True),
    )


def _sensitivity(name: str, table: Any) -> Any:
    from .policy_values import Sensitivity

    at: Path = ("sensitivities", name)
    _keys(_table(table, at), at, _SENSITIVITY)
    return Sensitivity(
        _name(name, at),
        write=_choice(table, at, "write", WRITES) or "allow",
        roles=_roles(table, at, "read"),
        export=_flag(table, at, "export", default=True),
    )


def _rules(
    table: Mapping[str, Any], classes: Collection[str], sensitivities: Collection[str]
) -> tuple[Any, ...]:
    rules = table.get("rules", [])
    if not isinstance(rules, list):
        raise _Wrong(("rules",), "is no list of tables; write [[rules]]")
    made = []
    seen: set[str] = set()
    for number, one in enumerate(rules):
        rule = _rule(one, ("rules", number), number, classes, sensitivities)
        if rule.name in seen:
            raise _Wrong(("rules", number, "name"), "is that of another rule")
        seen.add(rule.name)
        made.append(rule)
    return tuple(made)


def _rule(
    table: Any,
    at: Path,
    number: int,
    classes: Collection[str],
    sensitivities: Collection[str],
) -> Any:
    from .policy_values import Rule

    _keys(_table(table, at), at, _RULE)
    says = {
        "class": _choice(table, at, "class", classes),
        "purpose": _text(table, at, "purpose"),
        "sensitivity": _choice(table, at, "sensitivity", sensitivities),
        "basis": _choice(table, at, "basis", BASES),
    }
    rule = Rule(
        _text(table, at, "name") or str(number + 1),
        says={key: value for key, value in says.items() if value is not None},
        days=_days(table, at),
        write=_choice(table, at, "write", WRITES),
        **_when(table, (*at, "when")),
    )
    if not rule.says and rule.days is None and rule.write is None:
        raise _Wrong(at, "says nothing: give it class, days, write, or what records are to say")
    return rule


def _when(table: Mapping[str, Any], at: Path) -> dict[str, Any]:
    when = _table(table.get("when", {}), at)
    _keys(when, at, _WHEN)
    return {
        "kind": _names(when, at, "kind", KINDS, "kind") or (),
        "created_by": _names(when, at, "created_by", CREATORS, "creator") or (),
        "subject": None if "subject" not in when else _flag(when, at, "subject", default=False),
        **{
            key: _texts(when, at, key) or () for key in ("role", "thread", "purpose", "sensitivity")
        },
    }


# single values


def _keys(table: Mapping[str, Any], at: Path, known: Collection[str]) -> None:
    for key in table:
        if key not in known:
            raise _Wrong((*at, key), f"is none of {', '.join(sorted(known))}")


def _table(table: Any, at: Path) -> Mapping[str, Any]:
    if not isinstance(table, Mapping):
        raise _Wrong(at, "is no table")
    return table


def _tables(table: Mapping[str, Any], at: Path) -> Mapping[str, Any]:
    return _table(table.get(str(at[-1]), {}), at)


def _name(name: str, at: Path) -> str:
    if not name.strip():
        raise _Wrong(at, "has a blank name")
    return name


def _flag(table: Mapping[str, Any], at: Path, key: str, *, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise _Wrong((*at, key), "is neither true nor false")
    return value


def _text(table: Mapping[str, Any], at: Path, key: str) -> str | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise _Wrong((*at, key), "is no text")
    return value


def _choice(table: Mapping[str, Any], at: Path, key: str, names: Collection[str]) -> str | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or value not in names):
        raise _Wrong((*at, key), f"is none of {', '.join(sorted(names))}")
    return value


def _texts(table: Mapping[str, Any], at: Path, key: str) -> tuple[str, ...] | None:
    """Return one text or a list of them as a tuple, None where there is none."""
    value = table.get(key)
    if value is None:
        return None
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        raise _Wrong((*at, key), "is neither a text nor a list of texts")
    return tuple(listed)


def _names(
    table: Mapping[str, Any], at: Path, key: str, known: Collection[str], what: str
) -> tuple[str, ...] | None:
    found = _texts(table, at, key)
    for one in found or ():
        if one not in known:
            raise _Wrong((*at, key), f"has a {what} that is none of {', '.join(sorted(known))}")
    return found


def _roles(table: Mapping[str, Any], at: Path, key: str) -> tuple[str, ...] | None:
    """Return the roles, None for "everybody", () for "nobody"."""
    value = table.get(key)
    if value in ("everybody", "nobody"):
        return None if value == "everybody" else ()
    return _texts(table, at, key)


def _days(table: Mapping[str, Any], at: Path) -> int | None:
    value = table.get("days")
    if value is not None and (type(value) is not int or not 1 <= value <= _DAYS):
        raise _Wrong((*at, "days"), f"is no whole number of days from 1 to {_DAYS}")
    return value
