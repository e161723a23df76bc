"""A policy as a table of plain values, as TOML and JSON have them: what Policy.of reads again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .policy import Policy
    from .policy_values import Class, Rule, Sensitivity


def table_of(policy: Policy) -> dict[str, Any]:
    """Return the table of a policy; what says nothing is left out."""
    table = {
        "memory": policy.memory,
        "purpose_required": policy.purpose,
        "confirm": policy.confirm,
        "export": _roles(policy.export),
        "cross_project": policy.cross_project,
        "basis": policy.basis,
        "classes": {one.name: _class(one) for one in policy.classes},
        "sensitivities": {one.name: _sensitivity(one) for one in policy.sensitivities},
        "rules": [_rule(one) for one in policy.rules],
    }
    return table if policy.allowed is None else {**table, "allowed": list(policy.allowed)}


def _class(one: Class) -> dict[str, Any]:
    return _said(
        {
            "days": one.days,
            "lifetime": "sources" if one.with_sources else None,
            "kinds": list(one.kinds) or None,
            "write": one.write,
            "read": _roles(one.roles),
            "export": one.export,
            "erase": _roles(one.erase),
            "sensitivity": one.sensitivity,
            "records": one.records,
        }
    )


def _sensitivity(one: Sensitivity) -> dict[str, Any]:
    return {"write": one.write, "read": _roles(one.roles), "export": one.export}


def _rule(one: Rule) -> dict[str, Any]:
    named = ("kind", "role", "thread", "purpose", "sensitivity", "created_by")
    when = {name: list(getattr(one, name)) or None for name in named}
    return _said(
        {
            "name": one.name,
            "when": _said({**when, "subject": one.subject}),
            "days": one.days,
            "write": one.write,
            **one.says,
        }
    )


def _roles(roles: tuple[str, ...] | None) -> str | list[str]:
    if roles is None:
        return "everybody"
    return list(roles) or "nobody"


def _said(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}
