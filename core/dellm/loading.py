"""Loading what a package offers when it is first named: nobody waits for what he does not use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module


def lazily(
    package: str, home: Mapping[str, str], modules: Collection[str] = ()
) -> Callable[[str], object]:
    """Return the `__getattr__` of a module: `home` says in which module beside it each name is.

    `modules` are modules beside it that are names themselves. For any other name it raises
    AttributeError. Source: PEP 562.
    """
    inside = package if hasattr(sys.modules[package], "__path__") else package.rpartition(".")[0]

    def found(name: str) -> object:
        if name in modules:
            return import_module(f".{name}", inside)
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f".{home[name]}", inside), name)
        setattr(sys.modules[package], name, value)
        return value

    return found
