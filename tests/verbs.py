"""Every public verb of Memory and its checkpoints, called where others share the database.

`CALLS` must name them all: a test compares it with the class, so that a verb which nobody has
tried against another workspace's content cannot be added unnoticed.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lines import loaded, nothing, run, said, state

from dellm import (
    Answers,
    Atom,
    Audit,
    Checkpoints,
    Conversations,
    DellmError,
    Draft,
    Elsewhere,
    Expiry,
    Exposures,
    Fact,
    Facts,
    Foreign,
    Guards,
    Holds,
    Items,
    Keep,
    Many,
    Memory,
    Place,
    Policies,
    Policy,
    Proposed,
    Receipt,
    Record,
    Remembered,
    Saying,
    Sources,
    Summaries,
    depth,
    influence,
)

THREADS = ("a", "ab", "a%", "a_b", "a/b", "%", "t")
WAYS = ("meaning", "keyword", "both")
NAMESPACES = ("", "a%", "%")
NOT_OF_A_WORKSPACE = {
    *("open", "close", "workspace", "id", "identity", "origin", "url", "root", "closed"),
    *("acting", "actor"),
    *("rebuilder", "derivation", "regenerator", "after_forget", "after_read"),
    *("items.embedder", "summaries.use", "expiry.every"),
}
# The verbs of `memory.checkpoints` are named "checkpoints.get" and so on, as those of `memory.items`.
GROUPS = {
    *(
        "answers",
        "audit",
        "checkpoints",
        "conversations",
        "elsewhere",
        "exposures",
        "facts",
        "guards",
        "holds",
        "expiry",
        "remembered",
        "policies",
        "items",
        "summaries",
    ),
}


def public_verbs() -> set[str]:
    """Return the names of the verbs that reach a workspace."""
    own = {name for name in dir(Memory) if not name.startswith("_")}
    grouped = {f"checkpoints.{name}" for name in dir(Checkpoints) if not name.startswith("_")}
    grouped |= {f"answers.{name}" for name in dir(Answers) if not name.startswith("_")}
    grouped |= {f"audit.{name}" for name in dir(Audit) if not name.startswith("_")}
    grouped |= {f"expiry.{name}" for name in dir(Expiry) if not name.startswith("_")}
    grouped |= {f"remembered.{name}" for name in dir(Remembered) if not name.startswith("_")}
    grouped |= {f"items.{name}" for name in dir(Items) if not name.startswith("_")}
    grouped |= {f"elsewhere.{name}" for name in dir(Elsewhere) if not name.startswith("_")}
    grouped |= {f"facts.{name}" for name in dir(Facts) if not name.startswith("_")}
    grouped |= {f"exposures.{name}" for name in dir(Exposures) if not name.startswith("_")}
    grouped |= {f"policies.{name}" for name in dir(Policies) if not name.startswith("_")}
    grouped |= {f"holds.{name}" for name in dir(Holds) if not name.startswith("_")}
    grouped |= {f"guards.{name}" for name in dir(Guards) if not name.startswith("_")}
    grouped |= {f"conversations.{name}" for name in dir(Conversations) if not name.startswith("_")}
    grouped |= {f"summaries.{name}" for name in dir(Summaries) if not name.startswith("_")}
    return (own | grouped) - GROUPS - NOT_OF_A_WORKSPACE


def attempted(call: Callable[[], object]) -> object:
    """Return what the call returns, or what its error says."""
    try:
        return call()
    except DellmError as error:
        return [str(error), repr(error.__cause__), repr(error.__context__)]


def exported(memory: Memory) -> object:
    with tempfile.TemporaryDirectory() as folder:
        count = memory.remembered.export(f"{folder}/export")
        return [count, Path(f"{folder}/export").read_text()]


def brought(memory: Memory) -> object:
    with tempfile.TemporaryDirectory() as folder:
        memory.remembered.export(f"{folder}/export")
        return str(memory.remembered.bring_back(f"{folder}/export"))


def each(call: Callable[[Any], object], arguments: Iterable[Any]) -> list[object]:
    return [attempted(lambda one=one: call(one)) for one in arguments]


def threads_of(memory: Memory) -> list[str]:
    return [*memory.checkpoints.threads(), *THREADS]


def put(memory: Memory, thread: str, parent: str | None) -> object:
    """Store a checkpoint that names whatever ids others may have."""
    there = Sources(place=Place(thread, "", "c0001"))
    one = run(memory, thread, name="v", parent=parent)
    one.put(x=Many(list(IDS), [said("one", thread, "f1", there)]), y=state("two", thread, there))
    return [one.refused, loaded(memory, None, thread)]


IDS = range(-9, 25)


def made_of(id_: int) -> Atom:
    draft = Draft("made", role="item", kind="state")
    return Atom(draft, made=Sources(also=(Atom(known=id_),)))


def document(said: str, name: str | None = "zanzibar", *, of: int | None = None) -> Foreign:
    draft = Draft(said, role="document", kind="document")
    made = None if of is None else Sources(also=(Atom(known=of),))
    return Foreign(name, Atom(draft, made=made))


def said_of(memory: Memory, parent: int) -> object:
    one = Saying(Draft("said", thread="a%", framework_id=f"of {parent}"), parents=[parent])
    return memory.conversations.add("a%", [one]), one.id is None


def summed(memory: Memory) -> Summaries:
    """Return the summaries of a memory, with a summariser that repeats all it is given."""
    memory.summaries.use(lambda previous, texts: "\n".join([previous or "", *texts]))
    return memory.summaries


def found_in(
    messages: Sequence[Record], known: Sequence[Fact], lists: Sequence[str]
) -> list[Proposed]:
    """An extractor that repeats all it is given, once for each message."""
    told = [one.text for one in messages] + [f"{one.key} {one.value}" for one in known]
    return [
        Proposed("told", " ".join([*told, *lists]), said_in=one.id, closes=n % 2 == 1)
        for one in messages
        for n in range(2)
    ]


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
    "closeness": lambda m, _: m.closeness("zanzibar", ["a text"]),
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
    "proof": lambda m, _: each(m.proof, range(9)),
    "restore_check": lambda m, _: attempted(m.restore_check),
    "governed": lambda m, _: each(m.governed, IDS),
    "policies.current": lambda m, _: m.policies.current(),
    "remembered.each": lambda m, _: [
        list(m.remembered.each("zanzibar")),
        [list(m.remembered.each(thread=one)) for one in THREADS],
        m.remembered(),
    ],
    "receipts": lambda m, _: [m.receipts(), m.guards(), m.holds(released=True)],
    "holds.waiting": lambda m, _: m.holds.waiting(),
    "ledger": lambda m, _: m.ledger(),
    "scan": lambda m, _: m.scan("zanzibar", files=False),
    "verify": lambda m, _: m.verify(),
    "waiting": lambda m, _: m.waiting(),
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
    "items.get": lambda m, _: m.items.get("store", [((), "zanzibar"), (("a%",), "zanzibar")]),
    "items.search": lambda m, _: [
        m.items.search("store", space, near=near, limit=99)
        for space in ((), ("a",), ("a%",), ("t",))
        for near in (None, np.ones(2, np.float32))
    ],
    "items.spaces": lambda m, _: m.items.spaces("store"),
    "conversations.read": lambda m, _: [
        m.conversations.read(thread, last=9, among=among)
        for thread in THREADS
        for among in ("shown", "archived", "kept", "all")
    ],
    "conversations.after": lambda m, _: [
        each(lambda one, at=thread: m.conversations.after(at, one, 9), IDS) for thread in THREADS
    ],
    "conversations.some": lambda m, _: [
        m.conversations.some(thread, list(IDS)) for thread in THREADS
    ],
    "conversations.preceding": lambda m, _: [
        m.conversations.preceding(thread, list(IDS), "user") for thread in THREADS
    ],
    "conversations.spoken_by": lambda m, _: [
        m.conversations.spoken_by(thread, role) for thread in THREADS for role in ("user", "system")
    ],
    "elsewhere.gone": lambda m, _: m.elsewhere.gone("docs"),
    "elsewhere.same": lambda m, _: m.elsewhere.same("docs", {"zanzibar": "zanzibar"}),
    "elsewhere.noted": lambda m, _: m.elsewhere.noted("docs", ["zanzibar"]),
    "elsewhere.places": lambda m, _: m.elsewhere.places(),
    "exposures.of": lambda m, _: [m.exposures(), m.exposures(list(IDS)), m.exposures.of([1])],
    "exposures.providers": lambda m, _: m.exposures.providers(list(IDS)),
    "exposures.queries": lambda m, _: m.exposures.queries(),
    "checkpoints.threads": lambda m, _: m.checkpoints.threads(),
    "checkpoints.get": lambda m, _: [
        m.checkpoints.get(thread, ns, cid, nothing)
        for thread in threads_of(m)
        for ns in NAMESPACES
        for cid in (None, "c0001", "c0002")
    ],
    "checkpoints.page": lambda m, _: [
        m.checkpoints.page(thread, ns, nothing, before=before, after=after, limit=99)
        for thread in (None, *THREADS)
        for ns in (None, *NAMESPACES)
        for before, after in ((None, None), ("c0003", None), (None, ("a%", "", "c0002")))
    ],
    "checkpoints.ancestors": lambda m, _: [
        list(m.checkpoints.ancestors(thread, ns, "c0002", nothing))
        for thread in THREADS
        for ns in NAMESPACES
    ],
    "checkpoints.exists": lambda m, _: [
        m.checkpoints.exists(Place(thread, ns, cid))
        for thread in THREADS
        for ns in NAMESPACES
        for cid in ("c0001", "nothing")
    ],
    "facts.history": lambda m, _: (
        [m.facts(), m.facts(9**15)]
        + [
            m.facts.history(key, about)
            for key in ("zanzibar", "told")
            for about in (None, "zanzibar")
        ]
    ),
    "facts.previous": lambda m, _: [m.facts.previous(key) for key in ("zanzibar", "told")],
    "facts.supports": lambda m, _: each(m.facts.supports, IDS),
    "facts.keys": lambda m, _: m.facts.keys(),
    "facts.waiting": lambda m, _: m.facts.waiting(),
    "checkpoints.generation": lambda m, _: m.checkpoints.generation(),
    "checkpoints.standing": lambda m, _: m.checkpoints.standing(IDS),
    "summaries.current": lambda m, _: [
        m.summaries.current(thread, form) for thread in THREADS for form in ("rolling", "tree")
    ],
    "summaries.versions": lambda m, _: [m.summaries.versions(thread) for thread in THREADS],
    "checkpoints.erased_calls": lambda m, _: m.checkpoints.erased_calls("t", ["call 1", "call 2"]),
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
    "derive": lambda m, _: [
        m.derivation("zanzibar")(lambda sources: " ".join(one.text for one in sources)),
        *each(lambda ids: m.derive("zanzibar", sources=ids, thread="a%"), ([1], [9], [99], [-1])),
    ],
    "rebuild": lambda m, _: m.rebuild(),
    "rederive": lambda m, _: [
        m.derivation("zanzibar", version=2)(lambda sources: sources[0].text),
        m.rederive("zanzibar"),
    ],
    "index": lambda m, _: m.index(),
    "confirm": lambda m, _: each(m.confirm, (1, m.waiting()[0].id if m.waiting() else 2, 99)),
    "reject": lambda m, _: [
        m.remember_many([Draft("waits", quarantined=True)]),
        each(m.reject, (1, m.waiting()[0].id, 99)),
    ],
    "checkpoints.put": lambda m, _: [
        attempted(lambda thread=thread, parent=parent: put(m, thread, parent))
        for thread in ("a%", "new")
        for parent in (None, "c0001")
    ],
    "checkpoints.put_writes": lambda m, _: [
        run(m, thread).write(
            (0, "zanzibar", state("written", thread)), (1, "x", Many(list(IDS))), cid="c0001"
        )
        for thread in ("a%", "newer")
    ],
    "facts.declare": lambda m, _: each(m.facts.declare, ("zanzibar", "told")),
    "facts.state": lambda m, _: each(
        lambda one: m.facts.state("zanzibar", "new", context=[one]), (1, 9, 99)
    ),
    "facts.state_many": lambda m, _: each(
        lambda one: m.facts.state_many([Proposed("told", "it")], context=[one]), (1, 9, 99)
    ),
    "facts.close": lambda m, _: each(
        lambda one: m.facts.close("zanzibar", context=[one]), (1, 9, 99)
    ),
    "facts.extract": lambda m, _: [
        attempted(lambda: m.facts.extract(found_in, records=[1, 9, 99])),
        *[m.facts.extract(found_in, thread=one, again=True) for one in THREADS],
    ],
    "facts.confirm": lambda m, _: each(m.facts.confirm, IDS),
    "facts.reject": lambda m, _: each(m.facts.reject, IDS),
    "items.digest": lambda m, _: m.items.digest(["zanzibar"]),
    "conversations.add": lambda m, _: [
        attempted(lambda one=one: said_of(m, one)) for one in (1, 9, 99)
    ],
    "conversations.end": lambda m, _: m.conversations.end("a%"),
    "conversations.hide": lambda m, _: [
        m.conversations.hide("a%", list(IDS), archive=True),
        m.conversations.hide("a_b"),
        m.conversations.add("t", [], only=[1, 2]),
    ],
    "elsewhere.take": lambda m, _: [
        m.elsewhere.take("docs", [document(f"said {of}", name, of=of)], noted=noted)
        for of in (None, 1, 9, 99)
        for name, noted in (("zanzibar", True), (None, False), ("other", True))
    ],
    "elsewhere.put": lambda m, _: each(
        lambda one: m.elsewhere.put("docs", {"zanzibar": one, "more": one}), IDS
    ),
    "elsewhere.drop": lambda m, _: m.elsewhere.drop("docs", ["zanzibar", "more"]),
    "answers.keep": lambda m, _: each(lambda one: m.answers.keep("zanzibar?", one), IDS),
    "answers.find": lambda m, _: [
        attempted(
            lambda by=by, thread=thread, scope=scope: m.answers.find(
                "zanzibar", by=by, thread=thread, scope=scope, threshold=-1, same_context=False
            )
        )
        for by in ("exact", "meaning", "both")
        for thread, scope in ((None, None), ("a%", None), ("t", None), (None, "shared"))
    ],
    "answers.sweep": lambda m, _: m.answers.sweep(),
    "answers.clear": lambda m, _: [m.answers.clear("a"), m.answers.clear()],
    "audit.prune": lambda m, _: m.audit.prune(1),
    "audit.trace": lambda m, _: [m.audit.trace(1), each(m.context, THREADS)],
    "audit.traces": lambda m, _: m.audit.traces(),
    "audit.end_trace": lambda m, _: m.audit.end_trace(),
    "policies.require": lambda m, _: [
        attempted(lambda one=one: m.policies.require("forget", one)) for one in ("tool", "human")
    ],
    "policies.set": lambda m, _: [
        m.policies.set(Policy.parse("[[rules]]\nname = 'zanzibar'\npurpose = 'zanzibar'")),
        m.policies.set(None),
    ],
    "holds.place": lambda m, _: [
        attempted(lambda one=one: m.holds.place(basis="case 1", by="counsel", **one))
        for one in (
            *({"ids": [id_]} for id_ in IDS),
            *({"thread": name} for name in THREADS),
            {"subject": "zanzibar"},
            {"everything": True},
        )
    ],
    "holds.release": lambda m, _: [
        m.forget(ids=[m.remember("zanzibar held").id])
        if m.holds.place(everything=True, basis="case 1", by="counsel")
        else None,
        each(m.holds.release, range(-1, 60)),
    ],
    "expiry.due": lambda m, _: m.expiry.due(),
    "expiry.next": lambda m, _: m.expiry.next(),
    "expiry.sweep": lambda m, _: m.expiry.sweep(),
    "guards.add": lambda m, _: m.guards.add("a guarded heron"),
    "remembered.export": lambda m, _: exported(m),
    "remembered.bring_back": lambda m, _: brought(m),
    "guards.lift": lambda m, foreign: each(m.guards.lift, (foreign, 1, 99)),
    "guards.always": lambda m, _: m.guards.always(),
    "exposures.note": lambda m, _: m.exposures.note(list(IDS), model="zanzibar/m"),
    "items.put": lambda m, _: each(
        lambda one: m.items.put("store", [Keep(("a%",), "zanzibar", made_of(one))]), (1, 9, 99)
    ),
    "items.tie": lambda m, _: m.items.tie(list(IDS), [1, 9, 99]),
    "summaries.rolling": lambda m, _: [summed(m).rolling(one, keep=True) for one in THREADS],
    "summaries.tree": lambda m, _: [summed(m).tree(one, leaf=1, fan_out=2) for one in THREADS],
    "items.sweep": lambda m, _: m.items.sweep("store"),
    "items.clear": lambda m, _: m.items.clear("store", ("a",)),
    "checkpoints.copy_thread": lambda m, _: m.checkpoints.copy_thread("a%", "copy"),
    "checkpoints.keep_newest": lambda m, _: m.checkpoints.keep_newest(list(THREADS)),
    "checkpoints.delete_runs": lambda m, _: m.checkpoints.delete_runs(["first", "second", "%"]),
    "restore": lambda m, foreign: [
        attempted(lambda: m.restore(foreign)),
        m.restore(m.forget(ids=[1], mode="suppress")),
    ],
    "correct": lambda m, _: each(lambda one: m.correct(one, "zanzibar corrected"), IDS),
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
    "checkpoints.delete_thread": lambda m, _: each(m.checkpoints.delete_thread, threads_of(m)),
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
