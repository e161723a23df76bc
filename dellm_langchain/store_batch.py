"""One batch of a store's operations, sorted by what they do.

Reads see what stood before the batch; of several puts of one key the last counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp

from dellm import InvalidInput

Space = tuple[str, ...]
_STR = {str}


@dataclass(slots=True)
class Batch:
    """The operations of one batch by their position; the puts by namespace and key."""

    size: int = 0
    gets: dict[int, GetOp] = field(default_factory=dict, repr=False)
    searches: dict[int, SearchOp] = field(default_factory=dict, repr=False)
    lists: dict[int, ListNamespacesOp] = field(default_factory=dict, repr=False)
    puts: dict[tuple[Space, str], PutOp] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, ops: Iterable[Op]) -> Batch:
        """Sort operations. Raises InvalidInput for one of another kind."""
        made = cls()
        for at, op in enumerate(ops):
            made._add(at, op)
            made.size = at + 1
        return made

    def _add(self, at: int, op: object) -> None:
        if isinstance(op, GetOp):
            space = _space(op.namespace)
            self.gets[at] = op if space is op.namespace else op._replace(namespace=space)
        elif isinstance(op, SearchOp):
            self.searches[at] = op._replace(namespace_prefix=_space(op.namespace_prefix))
        elif isinstance(op, ListNamespacesOp):
            self.lists[at] = op
        elif isinstance(op, PutOp):
            space = _space(op.namespace)
            self.puts[space, _key(op.key)] = op._replace(namespace=space)
        else:
            raise InvalidInput("An operation is none that a store has.")

    def queries(self) -> list[str]:
        """Return what is searched for by meaning."""
        return [op.query for op in self.searches.values() if op.query]


@dataclass(frozen=True, slots=True)
class Listing:
    """The namespaces that an operation asks for, and the records of items that tell of them."""

    spaces: list[Space]
    records: list[int]

    @classmethod
    def of(cls, op: ListNamespacesOp, held: Mapping[Space, int]) -> Listing:
        """Choose from the namespaces that hold an item, each with the record of one; sorted."""
        named = {"limit": op.limit, "offset": op.offset, "max_depth": op.max_depth}
        for name, number in named.items():
            if number is None and name == "max_depth":
                continue
            if type(number) is not int or number < 0:
                raise InvalidInput(f"{name}= is no whole number, zero or more.")
        conditions = op.match_conditions or ()
        found = [one for one in held if all(_matches(it, one) for it in conditions)]
        cut: dict[Space, int] = {}
        for one in found:
            cut.setdefault(one[: op.max_depth], held[one])
        spaces = sorted(cut)[op.offset : op.offset + op.limit]
        return cls(spaces, [cut[one] for one in spaces])


def _matches(condition: MatchCondition, space: Space) -> bool:
    """Whether a namespace begins or ends with a path, in which "*" is any one label."""
    path = tuple(condition.path)
    if condition.match_type not in {"prefix", "suffix"}:
        raise InvalidInput("A namespace is matched by prefix or by suffix.")
    if len(path) > len(space):
        return False
    end = (
        space[: len(path)] if condition.match_type == "prefix" else space[len(space) - len(path) :]
    )
    return all(wanted in ("*", label) for wanted, label in zip(path, end, strict=True))


def _space(namespace: object) -> Space:
    """Return a namespace as a tuple: adapters also hand in lists."""
    if type(namespace) is tuple and set(map(type, namespace)) <= _STR:
        return namespace
    if not isinstance(namespace, list | tuple) or not all(
        isinstance(one, str) for one in namespace
    ):
        raise InvalidInput("A namespace is no tuple of strings.")
    return tuple(namespace)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise InvalidInput("The key of an item is no string.")
    return key
