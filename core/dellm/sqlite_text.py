"""The core's SQL as SQLite takes it: lists are bound one by one where they are short, else as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_LIST = re.compile(r"\bin :(\w+)")
FEW = 8  # values of a list that are bound one by one


@lru_cache(maxsize=512)
def _translate(sql: str, few: tuple[tuple[str, int], ...]) -> str:
    """Return the statement with its lists written out; `few` names the short ones and their length."""
    lengths = dict(few)

    def listed(found: re.Match[str]) -> str:
        name = found[1]
        if name not in lengths:
            return f"in (select value from json_each(:{name}))"
        return f"in ({', '.join(f':{name}_{at}' for at in range(lengths[name]))})"

    return _LIST.sub(listed, sql)


def prepared(sql: str, values: Mapping[str, object]) -> tuple[str, dict[str, Any]]:
    """Return the statement and its bindings; a short list is bound one by one.

    Unpacking JSON takes longer than the whole closure of a single record.
    """
    bound: dict[str, Any] = {}
    few: tuple[tuple[str, int], ...] = ()
    for name, value in values.items():
        if not isinstance(value, list):
            bound[name] = value
        elif 0 < len(value) <= FEW:
            few = (*few, (name, len(value)))
            bound.update((f"{name}_{at}", one) for at, one in enumerate(value))
        else:
            bound[name] = json.dumps(value)
    return _translate(sql, few), bound
