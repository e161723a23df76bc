"""Checking what a caller hands in, before any of it reaches a database driver.

The drivers differ in what they accept, and their own errors quote it; these name only the option.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import InvalidInput

MOST = (1 << 63) - 1  # the largest integer that both databases hold


def check_whole(value: object, name: str) -> None:
    """Raise InvalidInput unless `value` is an int (no bool) of at most 63 bits."""
    if type(value) is not int or not -MOST <= value <= MOST:
        raise InvalidInput(f"{name} is no whole number of at most 63 bits.")


def check_number(value: object, name: str) -> None:
    """Raise InvalidInput unless `value` is an int or float, and not NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise InvalidInput(f"{name} is no number.")


def check_text(value: object, name: str) -> None:
    """Raise InvalidInput unless `value` is a string."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is not a string.")


def check_flag(value: object, name: str) -> None:
    """Raise InvalidInput unless `value` is True or False; "no" is neither."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} is neither True nor False.")


def check_callable(value: object, name: str) -> None:
    """Raise InvalidInput unless `value` can be called."""
    if not callable(value):
        raise InvalidInput(f"{name} is no function.")


def check_iterable(value: object, name: str) -> None:
    """Raise InvalidInput unless `value` is a list or the like; a string is none."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name} is no list.")


def check_choice(value: object, names: Collection[str], name: str) -> None:
    """Raise InvalidInput unless `value` is one of the names."""
    if not isinstance(value, str) or value not in names:
        raise InvalidInput(f"{name} is one of {', '.join(sorted(names))}.")


def check_mapping(value: object, name: str) -> None:
    """Raise InvalidInput unless `value` is a mapping with strings as keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{name} is no mapping with strings as keys.")


def whole_numbers(values: Iterable[Any], name: str) -> list[int]:
    """Return the ids as a list; InvalidInput unless each is a whole number."""
    check_iterable(values, name)
    ids = list(values)
    # A chat hands in its whole history every turn: the common case is checked without a loop.
    if ids and (set(map(type, ids)) != {int} or max(ids) > MOST or min(ids) < -MOST):
        raise InvalidInput(f"An id of {name} is no whole number of at most 63 bits.")
    return ids


def texts(values: Iterable[Any], name: str) -> list[str]:
    """Return the strings as a list; InvalidInput unless each is one."""
    check_iterable(values, name)
    listed = list(values)
    if not all(isinstance(one, str) for one in listed):
        raise InvalidInput(f"Not everything in {name} is a string.")
    return listed


def path_of(value: object, name: str) -> Path:
    """Return `value` as a path of a file; raise InvalidInput where it is none."""
    if not isinstance(value, str | Path) or not str(value).strip() or "\0" in str(value):
        raise InvalidInput(f"{name} is no path.")
    return Path(value)


def check_corrected(value: object, ids: object) -> None:
    """Raise InvalidInput unless `value` gives new texts by id, of records that `ids` names."""
    if not isinstance(value, Mapping):
        raise InvalidInput("corrected= is no mapping.")
    texts: dict[Any, Any] = dict(value)
    for id_, text in texts.items():
        check_whole(id_, "An id in corrected=")
        check_text(text, "A text in corrected=")
        if not text.strip():
            raise InvalidInput("A text in corrected= is blank.")
    if texts and not (isinstance(ids, tuple) and set(texts) <= set(ids)):
        raise InvalidInput("corrected= goes with ids= that name its records.")


def check_kind(value: object, kind: type, name: str) -> None:
    """Raise InvalidInput unless `value` is a `kind`."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{name} is no {kind.__name__}.")
