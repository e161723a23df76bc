"""Checking the options of our stores and caches when they are made, not in the middle of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import InvalidInput

MINUTE = 60  # seconds: items live for minutes, entries of caches for seconds
LONGEST = 1e11 * MINUTE  # seconds that a value may live: a database holds no later moment


def checked_key(workspace: object) -> str | None:
    """Return the key that names a workspace in `configurable`; InvalidInput for what is no name."""
    if workspace is None or (isinstance(workspace, str) and workspace.strip()):
        return workspace
    raise InvalidInput("workspace= is the name of a key of configurable, or None.")


def checked_serde(serde: Any) -> SerializerProtocol | None:
    """Return a serializer; InvalidInput for an object that is none."""
    if serde is None or isinstance(serde, SerializerProtocol):
        return serde
    raise InvalidInput("serde= has no dumps_typed and loads_typed.")


def checked_ttl(ttl: object) -> float | None:
    """Return how many seconds entries live; InvalidInput for what is no such number."""
    if ttl is None:
        return None
    if not _number(ttl) or not 0 < ttl <= LONGEST:
        raise InvalidInput("ttl= is a number of seconds above zero, or None.")
    return float(ttl)


def minutes(ttl: object) -> float | None:
    """Return a number of seconds, which may be over already, in minutes; None for no end."""
    if ttl is None:
        return None
    if not _number(ttl):
        raise InvalidInput("The ttl of an entry is no number of seconds.")
    return ttl / MINUTE


def checked_ttl_config(ttl: Any) -> Any:
    """Return the times to live of a store, as LangGraph's TTLConfig; raises InvalidInput."""
    if ttl is None:
        return None
    if not isinstance(ttl, Mapping):
        raise InvalidInput("ttl= of a store is a mapping, or None.")
    default = ttl.get("default_ttl")
    if default is not None and not _number(default):
        raise InvalidInput("default_ttl of ttl= is no number of minutes.")
    for name in ("refresh_on_read", "omit_expired"):
        if not isinstance(ttl.get(name, True), bool):
            raise InvalidInput(f"{name} of ttl= is neither True nor False.")
    if ttl.get("sweep_interval_minutes") is not None:
        checked_interval(ttl["sweep_interval_minutes"])
    return ttl


def checked_interval(every: object) -> float:
    """Return the minutes between two sweeps; InvalidInput for what is no number above zero."""
    if not _number(every) or not every > 0:
        raise InvalidInput("sweep_interval_minutes is no number of minutes above zero.")
    return float(every)


def _number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= LONGEST  # which NaN is not
