"""Every public verb of Memory, called in a workspace that others share the database with.

`CALLS` must name them all: a test compares it with the class, so that a verb which nobody has
tried against another workspace's content cannot be added unnoticed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dellm import DellmError, Draft, Memory, Receipt, depth, influence

THREADS = ("a", "ab", "a%", "a_b", "a/b", "%", "t")
WAYS = ("meaning", "keyword", "both")
NOT_OF_A_WORKSPACE = {"open", "close", "workspace", "id"}


def attempted(call: Callable[[], object]) -> object:
    """Return what the call returns, or what its error says."""
    try:
        return call()
    except DellmError as error:
        return [str(error), repr(error.__cause__), repr(error.__context__)]


def each(call: Callable[[Any], object], arguments: Iterable[Any]) -> list[object]:
    return [attempted(lambda one=one: call(one)) for one in arguments]


IDS = range(-9, 12)
READING: dict[str, Callable[[Memory, Receipt], object]] = {
    "context": lambda m, _: [
        m.context("zanzibar", thread=thread, by=by, k=9, last=9, threshold=-1, scope=scope)
        for thread in THREADS
        for by in WAYS
        for scope in ("workspace", "thread")
    ],
    "search": lambda m, _: [
        m.search("zanzibar", by=by, thread=thread, limit=50, threshold=-1)
        for thread in (None, *THREADS)
        for by in WAYS
    ],
    "get": lambda m, _: each(m.get, IDS),
    "history": lambda m, _: each(m.history, THREADS),
    "threads": lambda m, _: m.threads(),
    "export": lambda m, _: list(m.export()),
    "dependents": lambda m, _: each(lambda one: m.dependents([one]), IDS),
    "context_of": lambda m, _: each(m.context_of, IDS),
    "used_in": lambda m, _: each(m.used_in, IDS),
    "explain": lambda m, _: each(m.explain, IDS),
    "graph": lambda m, _: [m.graph(), m.graph(list(IDS)), m.graph().dot()],
    "receipt": lambda m, _: each(m.receipt, range(9)),
    "receipts": lambda m, _: m.receipts(),
    "ledger": lambda m, _: m.ledger(),
    "scan": lambda m, _: m.scan("zanzibar", files=False),
    "verify": lambda m, _: m.verify(),
    "plan": lambda m, _: [
        attempted(lambda selection=selection: [m.plan(**selection), str(m.plan(**selection))])
        for selection in (
            {"ids": list(IDS)},
            {"what": "zanzibar"},
            {"value": "zanzibar"},
            {"keyword": "zanzibar"},
            {"meaning": "zanzibar"},
            {"description": "my phone number"},
            {"what": "zanzibar", "aliases": True},
            {"where": {"role": "user"}},
            {"where": lambda record: "zanzibar" in record.text and record.id == 1},
            {"thread": "a%"},
            {"everything": True},
            {"ids": [1], "reach": depth(1)},
            {"ids": [1], "reach": influence(0.1)},
            {"what": "zanzibar", "include": list(IDS), "mode": "redact"},
        )
    ],
}
WRITING: dict[str, Callable[[Memory, Receipt], object]] = {
    "remember": lambda m, _: each(
        lambda other: m.remember("said", thread="a%", copy_of=other), (None, 1, 9, 99)
    ),
    "remember_many": lambda m, _: m.remember_many(
        [Draft("one", framework_id="f", thread="t"), Draft("two")]
    ),
    "remember_parts": lambda m, _: m.remember_parts("First sentence. Second sentence."),
    "record": lambda m, _: [
        *each(lambda ids: m.record("reply", context=ids, thread="t"), ([1], [9], [99], [-1])),
        m.record("long", context=[one.id for one in m.export()] * 2, thread="t"),
        m.record("longer", context=[one.id for one in m.export()] * 3, thread="t"),
    ],
    "index": lambda m, _: m.index(),
    "restore": lambda m, foreign: [
        attempted(lambda: m.restore(foreign)),
        m.restore(m.forget(ids=[1], mode="suppress")),
    ],
    "forget": lambda m, _: [
        attempted(lambda selection=selection: m.forget(**selection))
        for selection in (
            {"what": "sentence", "mode": "redact"},
            {"ids": list(IDS), "reach": depth(0)},
            {"what": "zanzibar"},
            {"ids": [8], "reach": influence(0.5)},
            {"thread": "a%"},
            {"keyword": "zanzibar"},
            {"everything": True},
        )
    ],
    "scrub": lambda m, _: m.scrub(),
}
ONLY_ON_POSTGRES = {"bind_login"}
CALLS = READING | WRITING


def strings(value: object) -> Iterator[str]:
    """Yield every string in a result, also what its repr leaves out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from strings(key)
            yield from strings(inner)
    elif dataclasses.is_dataclass(value):
        yield str(value)
        for one in dataclasses.fields(value):
            yield from strings(getattr(value, one.name))
    elif isinstance(value, Iterable):
        for inner in value:
            yield from strings(inner)
    else:
        yield str(value)
