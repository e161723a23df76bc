"""Random histories of saying, holding, forgetting and releasing, against a model of plain sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dellm import Memory, NotFound

THREADS = ("t", "u")
SUBJECTS = ("Ann", "Bob", None)
number = st.integers(0, 30)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(THREADS), st.sampled_from(SUBJECTS)),
        st.tuples(st.just("reply"), st.sampled_from(THREADS), st.lists(number, max_size=3)),
        st.tuples(st.just("hold"), st.sampled_from(("ids", "subject", "thread", "all")), number),
        st.tuples(st.just("forget"), number, st.booleans()),
        st.tuples(st.just("release"), number, st.none()),
    ),
    min_size=6,
    max_size=24,
)


@dataclass
class Model:
    """What there is to be: records with their parents, holds that are open, what waits."""

    about: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    parents: dict[int, set[int]] = field(default_factory=dict)
    holds: dict[int, tuple[str, object, int]] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    newest: int = 0

    def covers(self, hold: int, id_: int) -> bool:
        kind, target, _ = self.holds[hold]
        thread, subject = self.about[id_]
        return {
            "ids": id_ == target,
            "subject": subject is not None and subject == target,
            "thread": thread == target,
            "all": True,
        }[kind]

    def protected(self, id_: int) -> bool:
        return any(self.covers(one, id_) for one in self.holds)

    def readable(self) -> set[int]:
        return {
            id_
            for id_ in self.about
            if id_ not in self.waiting
            and not any(self.covers(n, id_) and id_ <= one[2] for n, one in self.holds.items())
        }

    def forget(self, ids: set[int]) -> None:
        going = set(ids)
        while more := {one for one, above in self.parents.items() if above & going} - going:
            going |= more
        held = {one for one in going if self.protected(one)}
        self.waiting |= held
        going -= held
        for id_ in self.parents.keys() - going:
            self.parents[id_] = self._survivors(id_, going) - {id_}
        for id_ in going:
            del self.about[id_], self.parents[id_]

    def _survivors(self, id_: int, going: set[int]) -> set[int]:
        """Return what is left of a context, with the sources of what goes in the place of that."""
        found: set[int] = set()
        open_ = list(self.parents[id_])
        while open_:
            one = open_.pop()
            if one in going:
                open_ += self.parents[one]
            else:
                found.add(one)
        return found


def pick(ids: set[int], at: int) -> int | None:
    return sorted(ids)[at % len(ids)] if ids else None


def step(memory: Memory, model: Model, what: str, first: object, second: object) -> None:
    if what == "say":
        made = memory.remember("something", thread=str(first), subject=second)  # type: ignore[arg-type]
        model.about[made.id], model.parents[made.id] = (str(first), made.subject), set()
    elif what == "reply":
        there = model.readable()
        context = {one for at in second if (one := pick(there, at))}  # type: ignore[attr-defined]
        made = memory.record("a reply", context=sorted(context), thread=str(first))
        model.about[made.id], model.parents[made.id] = (str(first), made.subject), context
    elif what == "hold":
        place(memory, model, str(first), int(second))  # type: ignore[call-overload]
    elif what == "forget" and (id_ := pick(set(model.about), int(first))):  # type: ignore[call-overload]
        plan = memory.plan(ids=[id_])
        memory.forget(plan if second else None, **({} if second else {"ids": [id_]}))
        model.forget({id_})
    elif what == "release" and (hold := pick(set(model.holds), int(first))):  # type: ignore[call-overload]
        memory.holds.release(hold)
        del model.holds[hold]
        done = {one for one in model.waiting if not model.protected(one)}
        model.waiting -= done
        model.forget(done)


def place(memory: Memory, model: Model, kind: str, at: int) -> None:
    target: object = {
        "ids": pick(set(model.about), at),
        "subject": SUBJECTS[at % 2],
        "thread": THREADS[at % 2],
        "all": True,
    }[kind]
    if target is None:
        return
    name = "everything" if kind == "all" else kind
    given = {name: [target] if kind == "ids" else target}
    made = memory.holds.place(basis="case 1", by="counsel", **given)  # type: ignore[arg-type]
    model.holds[made.number] = (kind, target, max(model.about, default=0))


def check(memory: Memory, model: Model) -> None:
    assert {one.id for one in memory.export()} == model.readable()
    assert set(memory.holds.waiting()) == model.waiting
    assert [one.number for one in memory.holds()] == sorted(model.holds)
    with memory._engine.reading(memory.id) as (tx, scope):
        rows = tx.all("select id from record where ws = :ws", ws=scope.ws)
    assert {row[0] for row in rows} == set(model.about)
    for id_ in model.about.keys() - model.readable():
        with pytest.raises(NotFound):
            memory.get(id_)
    assert list(memory.verify().problems) == []


def test_random_histories_agree_with_plain_sets(url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(url, embedder=None, scrub_below=0)
    turns = iter(range(10_000))

    @settings(
        max_examples=150 if "postgres" not in url else 50,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(steps)
    def run(several: list[tuple[str, object, object]]) -> None:
        alex, model = memory.workspace(f"w{next(turns)}"), Model()
        for what, first, second in several:
            step(alex, model, what, first, second)
        check(alex, model)
        for hold in sorted(model.holds):
            step(alex, model, "release", 0, hold)
            check(alex, model)
        assert model.waiting == set()

    run()
