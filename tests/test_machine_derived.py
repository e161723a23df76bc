"""Random histories of derived memory, with a model that copies all it is given and often fails.

Each message holds a word of its own. Whatever is derived is a copy of its inputs, so an edge that
was missed, or a text that is served after its source went, shows as a word that should be gone.
Both databases; what must hold is checked after every step:

- no read and no table holds a word of what was erased (I1), in any derived text;
- each word of a record stands in it because a record above it in G said so (I3);
- nothing outside of what a receipt names was changed or lost (I2);
- a failing model leaves nothing half made, and nothing erased is served meanwhile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from raw_tables import connected, emptied, is_postgres, rows_of
from unique_words import word_for

from dellm import DerivationError, Memory, ModelError, Proposed, Receipt, Record

pytestmark = [pytest.mark.long, pytest.mark.own_database]

WORD = re.compile(r"cnry[a-z]{4}")
THREADS = ("one", "two")
picks = st.integers(0, 1_000)
threads = st.sampled_from(THREADS)


class Model:
    """Copies the words of all that it is given; fails at the calls it is told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.failing = 0  # calls from now on until one fails; 0 for none

    def __call__(self, *texts: str) -> str:
        self.calls += 1
        if self.failing:
            self.failing -= 1
            if not self.failing:
                raise RuntimeError("the model is away")
        return "said " + " ".join(dict.fromkeys(WORD.findall(" ".join(texts))))


class Facts:
    """An extractor: a value of each word of the messages, and of what it knows."""

    name = "copying"

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(
        self, messages: Sequence[Record], known: Sequence[Any], lists: Sequence[str], /
    ) -> list[Proposed]:
        said = self.model(*(one.text for one in messages), *(one.value for one in known))
        return [Proposed("status", said), Proposed("list", WORD.findall(said)[0])]


class Derived(RuleBasedStateMachine):
    """Two open memories of one workspace, and the words that live and that are gone."""

    open_: Callable[[], Memory]
    url: str

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.handles = [self.opened(), self.opened()]
        self.written = 0
        self.said: dict[int, str] = {}  # what users said and is not erased, by record
        self.gone: set[str] = set()
        self.guarded: set[str] = set()
        self.cached: list[tuple[str, str]] = []  # questions of the answer cache, and their threads
        self.seen: dict[int, str] = {}
        self.database = connected(self.url)
        self.tables = self.database.__enter__()

    def teardown(self) -> None:
        assert self.handles[0].verify().ok
        for handle in self.handles:
            handle.close()
        self.database.__exit__(None, None, None)

    def opened(self) -> Memory:
        memory = self.open_()
        memory.summaries.use(lambda before, texts: self.model(before or "", *texts), chunk=3)
        memory.derivation("digest")(lambda sources: self.model(*(one.text for one in sources)))
        memory.regenerator(lambda _, context: self.model(*(one.text for one in context)))
        memory.facts.declare("list")
        return memory

    def at(self, pick: int) -> Memory:
        return self.handles[pick % 2]

    @contextmanager
    def failing(self, after: int) -> Iterator[None]:
        self.model.failing = after
        try:
            yield
        except (ModelError, DerivationError) as error:
            if not after or WORD.search(f"{error}{error.__cause__!r}{error.__context__!r}"):
                raise
        finally:
            self.model.failing = 0

    # what is said, and what is made of it

    @initialize()
    def start(self) -> None:
        for thread in THREADS:
            for _ in range(3):
                self.say(0, thread)

    @rule(pick=picks, thread=threads)
    def say(self, pick: int, thread: str) -> None:
        self.written += 1
        text = f"my thing is {word_for(self.written)}"
        made = self.at(pick).remember(text, thread=thread)
        self.said[made.id] = text

    @rule(pick=picks, thread=threads, chosen=st.lists(picks, min_size=1, max_size=4))
    def reply(self, pick: int, thread: str, chosen: list[int]) -> None:
        memory = self.at(pick)
        context = self.usable(memory, chosen)
        memory.record(
            self.model(*(memory.get(one).text for one in context)),
            context=self.in_prompt(context),
            thread=thread,
            model="elsewhere/model-x",
        )

    def in_prompt(self, context: list[int]) -> list[int]:
        """Return what a reply says that it was made from."""
        return context

    @staticmethod
    def usable(memory: Memory, chosen: Sequence[int]) -> list[int]:
        ids = [one.id for one in memory.export() if one.kind != "state"]
        assume(ids)
        return list(dict.fromkeys(ids[one % len(ids)] for one in chosen))

    @rule(pick=picks, chosen=st.lists(picks, min_size=1, max_size=4), after=st.integers(0, 1))
    def derive(self, pick: int, chosen: list[int], after: int) -> None:
        memory = self.at(pick)
        with self.failing(after):
            memory.derive("digest", sources=self.usable(memory, chosen))

    @rule(pick=picks, thread=threads, tree=st.booleans(), after=st.integers(0, 3))
    def summarise(self, pick: int, thread: str, tree: bool, after: int) -> None:
        summaries = self.at(pick).summaries
        with self.failing(after):
            found = summaries.tree(thread, leaf=2, fan_out=2) if tree else summaries.rolling(thread)
            self.assert_complete(thread, found.text)

    def assert_complete(self, thread: str, text: str) -> None:
        there = {
            word
            for one in self.handles[0].history(thread)
            if one.id in self.said
            for word in WORD.findall(one.text)
        }
        assert there <= set(WORD.findall(text))

    @rule(pick=picks, thread=threads, again=st.booleans(), after=st.integers(0, 1))
    def extract(self, pick: int, thread: str, again: bool, after: int) -> None:
        with self.failing(after):
            self.at(pick).facts.extract(Facts(self.model), thread=thread, again=again)

    @rule(pick=picks, which=picks, thread=threads)
    def keep_answer(self, pick: int, which: int, thread: str) -> None:
        memory = self.at(pick)
        replies = [one for one in memory.history(thread) if one.role == "assistant"]
        assume(replies)
        asked = f"what is number {len(self.cached)}"
        memory.answers.keep(asked, replies[which % len(replies)])
        self.cached.append((asked, thread))

    @precondition(lambda self: self.cached)
    @rule(pick=picks, which=picks, by=st.sampled_from(("exact", "both")))
    def find_answer(self, pick: int, which: int, by: str) -> None:
        asked, thread = self.cached[which % len(self.cached)]
        memory = self.at(pick)
        context = [one.id for one in memory.history(thread, last=1)]
        memory.answers.find(asked, thread=thread, by=by, context=context, same_context=False)

    # forgetting

    @precondition(lambda self: self.said)
    @rule(
        pick=picks,
        which=picks,
        by_value=st.booleans(),
        rebuild=st.sampled_from(("now", "now", "later", "never")),
        replies=st.sampled_from(("erase", "regenerate")),
        guard=st.booleans(),
        after=st.integers(0, 4),
    )
    def forget(
        self,
        pick: int,
        which: int,
        by_value: bool,
        rebuild: str,
        replies: str,
        guard: bool,
        after: int,
    ) -> None:
        id_ = sorted(self.said)[which % len(self.said)]
        word = WORD.findall(self.said[id_])[0]
        selection: dict[str, Any] = {"value": word} if by_value else {"ids": [id_]}
        with self.failing(after):
            receipt = self.at(pick).forget(
                **selection, rebuild=rebuild, on_dependents=replies, guard=guard, scrub=False
            )
        self.settle(receipt, id_, word)
        if guard and by_value:
            self.guarded.add(word)

    def settle(self, receipt: Receipt, id_: int, word: str) -> None:
        assert id_ in receipt.ids
        assert set(receipt.ids).isdisjoint(self.said.keys() - {id_}), "another message went as well"
        assert not WORD.search(f"{receipt}{receipt.to_json()}")
        self.gone.add(word)
        del self.said[id_]
        for one in receipt.ids:
            self.seen.pop(one, None)

    @rule(pick=picks, after=st.integers(0, 2))
    def rebuild(self, pick: int, after: int) -> None:
        with self.failing(after):
            self.at(pick).rebuild()

    @precondition(lambda self: self.guarded)
    @rule(pick=picks, which=picks, thread=threads)
    def come_back(self, pick: int, which: int, thread: str) -> None:
        """A tool, or a document, says again what is guarded."""
        word = sorted(self.guarded)[which % len(self.guarded)]
        made = self.at(pick).remember(
            f"it was {word} then", role="tool", kind="tool", thread=thread
        )
        assert word not in made.text

    @rule(pick=picks)
    def reopen(self, pick: int) -> None:
        self.handles[pick % 2].close()
        self.handles[pick % 2] = self.opened()

    # what must hold after every step

    @invariant()
    def nothing_erased_is_read_or_stored(self) -> None:
        for table, rows in rows_of(self.tables).items():
            assert self.gone.isdisjoint(WORD.findall(repr(rows))), table
        for memory in self.handles:
            read = [one.text for one in memory.export()]
            read += [one.value for one in memory.facts()]
            read += [memory.summaries.current(one).text for one in THREADS]
            read += [memory.summaries.current(one, "tree").text for one in THREADS]
            assert self.gone.isdisjoint(WORD.findall(" ".join(read)))

    @invariant()
    def nothing_else_was_changed_or_lost(self) -> None:
        there = {one.id: one.text for one in self.handles[0].export()}
        assert self.said.items() <= there.items()
        # A summary that a newer one replaced stays as a node without a text.
        kept = {id_: text for id_, text in self.seen.items() if there.get(id_)}
        assert kept.items() <= there.items(), "a record says something else than before"
        self.seen = there

    @invariant()
    def every_word_has_its_source(self) -> None:
        memory = self.handles[1]
        above: dict[int, set[int]] = {}
        for one in memory.export():
            parents = memory.context_of(one.id)
            above[one.id] = {one.id, *parents}.union(*(above.get(at, set()) for at in parents))
            told = {word for at in above[one.id] for word in WORD.findall(self.said.get(at, ""))}
            assert set(WORD.findall(one.text)) <= told, one.kind


def run(
    url: str, machine: type[Derived], examples: int, steps: int, *, shrink: bool = True
) -> None:
    class Bound(machine):  # type: ignore[misc, valid-type] # made for one database
        @staticmethod
        def open_() -> Memory:
            return Memory.open(url, embedder="hashing", scrub_below=0)

        def __init__(self) -> None:
            emptied(url)
            super().__init__()

    Bound.url = url
    run_state_machine_as_test(
        Bound,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize="CI" in os.environ,
            phases=tuple(Phase) if shrink else (Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_derived_memory_follows_its_sources_through_random_histories(url: str) -> None:
    run(url, Derived, 6 if is_postgres(url) else 30, 30)


class Forgetful(Derived):
    """Does not say of one record that it was in the prompt."""

    def in_prompt(self, context: list[int]) -> list[int]:
        return context[1:]


def test_a_source_that_was_not_recorded_is_noticed(sqlite_url: str) -> None:
    with pytest.raises(AssertionError):
        run(sqlite_url, Forgetful, 20, 30, shrink=False)
