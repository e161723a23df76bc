"""The core's SQL as psycopg takes it: placeholders, lists, and many rows in one statement."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from .database import Row

# A step of a recursion looks its neighbours up by key. Without statistics the planner may think a
# small workspace as cheap to read whole, at every step; a lateral subquery leaves it no choice.
_STEP = re.compile(r"cross join (edge|sequence) (\w) where \2\.ws = :ws and \2\.(\w+) = (\w+)\.id")
_BY_KEY = r"cross join lateral (select * from \1 as n where n.ws = :ws and n.\3 = \4.id offset 0) \2 where true"
_LIST = re.compile(r"\bin :(\w+)")
_START = re.compile(r"\bsubstr\((\w+), 1, :(\w+)\)")  # whole numbers are sent as bigint
_NAME = re.compile(r"(?<!:):([a-z_]\w*)")
_PLAIN = re.compile(r"(insert into \w+\([\w, ]+\)) values \((:\w+(?:, :\w+)*)\)")


@lru_cache(maxsize=512)
def translate(statement: str) -> str:
    """Return a statement of the core with psycopg's placeholders, lists as arrays."""
    # A list the planner cannot see into counts as ten values: every key is looked up by its index.
    stepped = _STEP.sub(_BY_KEY, statement.replace("%", "%%"))
    stepped = _START.sub(r"left(\1, cast(:\2 as integer))", stepped.replace("instr(", "strpos("))
    listed = _LIST.sub(r"= any(array(select unnest(cast(%(\1)s as bigint[]))))", stepped)
    return _NAME.sub(r"%(\1)s", listed)


def bindings(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the values with each list of integers written as PostgreSQL writes an array.

    The driver looks at every element on its own, which takes twenty times as long.
    """
    return {
        name: _array(value) if isinstance(value, list) and _numbers(value) else value
        for name, value in values.items()
    }


def _numbers(values: list[object]) -> bool:
    return all(type(value) is int for value in values)


def _array(values: list[object]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


@lru_cache(maxsize=64)
def as_columns(statement: str) -> str | None:
    """Return a plain insert of one row of integers as an insert of columns, each an array."""
    found = _PLAIN.fullmatch(statement)
    if found is None:
        return None
    arrays = _NAME.sub(r"cast(%(\1)s as bigint[])", found[2])
    return f"{found[1]} select * from unnest({arrays})"


@lru_cache(maxsize=64)
def as_rows(statement: str, rows: int) -> str | None:
    """Return a plain insert of one row as an insert of some, whose values are numbered."""
    found = _PLAIN.fullmatch(statement)
    if found is None:
        return None
    each = [_NAME.sub(rf"%(\1_{at})s", found[2]) for at in range(rows)]
    return f"{found[1]} values ({'), ('.join(each)})"


def all_whole(rows: Sequence[Mapping[str, object]]) -> bool:
    """Tell whether every value of the rows is a whole number."""
    return all(type(value) is int for row in rows for value in row.values())


@lru_cache(maxsize=64)
def _names(statement: str) -> tuple[str, ...]:
    """Return the statement's parameters in the order in which they first appear."""
    return tuple(dict.fromkeys(_NAME.findall(statement)))


def by_name(statement: str, row: Mapping[str, object] | Row) -> Mapping[str, object]:
    """Return a row by the names of the statement's parameters, in whose order its values are."""
    if isinstance(row, tuple):
        return dict(zip(_names(statement), row, strict=True))
    return row
