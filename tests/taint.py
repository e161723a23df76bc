"""What truly was made from what, told by the tokens that records carry, and what was recorded.

Knows nothing of how an adapter finds out: a record depends on another exactly if it carries a token
that the other said first. See llama_models for the tokens.
"""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llama_models import own_tokens, tokens_in
from raw_tables import connected, is_postgres, rows_of

from dellm import Memory, Record

Pair = tuple[int, int]  # a record, and one made from it


@dataclass
class Found:
    """The pairs that are true, those of them that were not recorded, and those that are not true.

    `homeless` are tokens that are carried by records although no record said them first.
    """

    true: set[Pair] = field(default_factory=set)
    missed: set[Pair] = field(default_factory=set)
    extra: set[Pair] = field(default_factory=set)
    homeless: set[str] = field(default_factory=set)


def carried_by(record: Record) -> set[str]:
    """Return the tokens anywhere in a record."""
    said = (record.text, record.payload or b"", dict(record.metadata))
    return {token for one in said for token in tokens_in(one)}


def said_first_by(records: Iterable[Record]) -> dict[str, int]:
    """Return the record that said each token first: the oldest that says it as its own."""
    owners: dict[str, int] = {}
    for one in sorted(records, key=lambda record: record.id):
        for token in own_tokens(f"{one.text} {(one.payload or b'').decode(errors='replace')}"):
            owners.setdefault(token, one.id)
    return owners


def compared(
    carried: Mapping[int, set[str]],
    owners: Mapping[str, int],
    dependents: Callable[[int], Iterable[int]],
) -> Found:
    """Compare what the tokens say with the dependents that were recorded."""
    found = Found()
    for id_, tokens in carried.items():
        found.homeless |= {one for one in tokens if one not in owners}
        found.true |= {(owners[one], id_) for one in tokens if one in owners}
    found.true -= {(id_, id_) for id_ in carried}
    known = {(id_, made) for id_ in carried for made in dependents(id_) if made in carried}
    known -= {(id_, id_) for id_ in carried}
    told = set(owners.values())  # of a record that says no token first nobody can tell
    found.missed = found.true - known
    found.extra = {pair for pair in known - found.true if pair[0] in told}
    return found


def measured(memory: Memory) -> Found:
    """Compare all records of a workspace."""
    records = [
        one for one in memory.export() if one.text or one.payload
    ]  # else it only ties others
    carried = {one.id: carried_by(one) for one in records}
    return compared(carried, said_first_by(records), lambda id_: memory.dependents([id_]))


def told(memory: Memory, pairs: Iterable[Pair], *, most: int = 8) -> list[str]:
    """Return some of the pairs in words, for a person to read."""
    records = {one.id: one for one in memory.export()}

    def named(id_: int) -> str:
        one = records[id_]
        return f"{id_} {one.kind}/{one.role}@{one.thread} {one.text[:40]!r}"

    return [f"{named(made)} <- {named(of)}" for of, made in sorted(pairs)[:most]]


def closure(memory: Memory, id_: int) -> set[int]:
    """Return Dep({id_}) from the contexts of all records, by a walk of our own."""
    made: dict[int, set[int]] = {}
    for one in memory.export():
        for parent in memory.context_of(one.id):
            made.setdefault(parent, set()).add(one.id)
    seen, todo = {id_}, [id_]
    while todo:
        more = made.get(todo.pop(), set()) - seen
        seen |= more
        todo += more
    return seen


# where tokens still are


def in_tables(url: str, tokens: Iterable[str]) -> list[str]:
    """Return the tables that hold one of the tokens, read with a plain driver."""
    wanted = set(tokens)
    with connected(url) as connection:
        held = {
            name: wanted & set(tokens_in(repr(rows))) for name, rows in rows_of(connection).items()
        }
    return [f"table {name}: {sorted(there)[:3]}" for name, there in held.items() if there]


def in_files(url: str, tokens: Iterable[str]) -> list[str]:
    """Return the files of a SQLite database that hold one of the tokens."""
    if is_postgres(url):
        return []
    wanted = set(tokens)
    found = []
    for path in Path(url).parent.glob(Path(url).name + "*"):
        there = wanted & set(tokens_in(path.read_bytes().decode("latin-1")))
        found += [f"file {path.name}: {sorted(there)[:3]}"] if there else []
    return found


_LEAVES = (types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType)


def in_process(package: str, tokens: Iterable[str], *, spared: Sequence[object] = ()) -> list[str]:
    """Return where the state of a package's modules holds one of the tokens.

    All that can be reached from the modules' globals is looked at, but for functions, classes and
    modules themselves, and what is `spared`: what the test holds itself.
    """
    wanted = set(tokens)
    modules = [one for name, one in sorted(sys.modules.items()) if _of(package, name)]
    left: list[tuple[object, str]] = [
        (value, f"{module.__name__}.{name}")
        for module in modules
        for name, value in vars(module).items()
        if not name.startswith("__")
    ]
    seen = {id(one) for one in spared}
    found = []
    while left:
        value, where = left.pop()
        if id(value) in seen or isinstance(value, (*_LEAVES, type)):
            continue
        seen.add(id(value))
        if isinstance(value, (str, bytes)):
            there = wanted & set(tokens_in(value))
            found += [f"{where}: {sorted(there)[:3]}"] if there else []
            continue
        left += [(one, f"{where}>{type(value).__name__}") for one in gc.get_referents(value)]
    return found


def _of(package: str, name: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def holds(value: Any, tokens: Iterable[str]) -> set[str]:
    """Return those of the tokens that a value holds."""
    return set(tokens) & set(tokens_in(value))
