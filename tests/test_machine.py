"""Random histories against plain dicts, on both databases: invariants I1, I2, I4, I5, I6 and I7.

Every record holds a word of its own, so that what was erased is recognised wherever it turns up.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from brute_force import Model, Said
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from raw_tables import connected, emptied, is_postgres, of_workspace, record_rows, rows_of
from unique_words import word_for

import dellm
from dellm import ContextForgotten, Memory, NotFound, NothingMatched, Plan, Receipt, SelectorError

pytestmark = [pytest.mark.long, pytest.mark.own_database]

NAMES = ("a", "ab", "a%", "a_b", "a/b")
THREADS = ("a", "a%", "a", None)
WORDS = ("paris", "falcon", "walk", "melon")
MOODS = ("calm", "wild")
ROLES = ("user", "assistant", "system")
UNIQUE = re.compile(r"cnry[a-z]+")
MARKER = "[redacted]"

picks = st.integers(0, 1_000)
# Most of it happens in one workspace, so that its graph gets dense.
names = st.sampled_from(("a", "a", "a", "a", "a%", *NAMES))


class Histories(RuleBasedStateMachine):
    """Five workspaces of one database, two open memories on it, and the dicts beside them."""

    open_: Callable[[], Memory]
    url: str

    def __init__(self) -> None:
        super().__init__()
        self.handles = [self.open_(), self.open_()]
        self.models = {name: Model() for name in NAMES}
        self.written = 0
        self.seen: list[tuple[str, list[int]]] = []  # contexts of replies that were written
        self.asked: dict[str, dict[str, int]] = {name: {} for name in NAMES}
        self.suppressions: dict[tuple[str, int], Receipt] = {}  # those that stand
        self.versions: dict[str, dict[int, int]] = {name: {} for name in NAMES}
        self.touched: set[str] = set()
        self.database = connected(self.url)
        self.tables = self.database.__enter__()
        self.before = rows_of(self.tables)

    def teardown(self) -> None:
        self.touched = set(NAMES)
        for name in NAMES:
            self.check_graph(name)
            assert self.handles[1].workspace(name).verify().ok
        for handle in self.handles:
            handle.close()
        self.database.__exit__(None, None, None)

    def at(self, name: str, pick: int) -> Memory:
        self.touched.add(name)
        return self.handles[pick % 2].workspace(name)

    def text(self, words: list[str]) -> str:
        self.written += 1
        return " ".join([word_for(self.written), *words, "end"])

    # writing

    @initialize()
    def start(self) -> None:
        for name in NAMES[:2]:
            for word in WORDS[:2]:
                self.said(name, 0, [word], None, "system", "calm")

    def said(
        self, name: str, pick: int, words: list[str], thread: str | None, role: str, mood: str
    ) -> None:
        text = self.text(words)
        made = self.at(name, pick).remember(text, thread=thread, role=role, metadata={"mood": mood})
        assert made.id == self.models[name].add(text, thread, role, mood).id

    @rule(
        name=names,
        pick=picks,
        words=st.lists(st.sampled_from(WORDS), unique=True, max_size=2),
        thread=st.sampled_from(THREADS),
        role=st.sampled_from(ROLES),
        mood=st.sampled_from(MOODS),
    )
    def remember(
        self, name: str, pick: int, words: list[str], thread: str | None, role: str, mood: str
    ) -> None:
        self.said(name, pick, words, thread, role, mood)

    @rule(
        name=names,
        pick=picks,
        thread=st.sampled_from(THREADS),
        shape=st.sampled_from(("full", "full", "window", "picks", "prefix", "shorter", "again")),
        chosen=st.lists(picks, min_size=1, max_size=12),
        words=st.lists(st.sampled_from(WORDS), unique=True, max_size=1),
    )
    def record(
        self,
        name: str,
        pick: int,
        thread: str | None,
        shape: str,
        chosen: list[int],
        words: list[str],
    ) -> None:
        ids = self.shaped(name, thread, shape, chosen)
        model = self.models[name]
        assume(model.usable(ids))
        quoted = [UNIQUE.findall(model.records[one].text)[:1] for one in ids[:1]]
        self.replied(name, pick, ids, thread, [*words, *(one for found in quoted for one in found)])

    def shaped(self, name: str, thread: str | None, shape: str, chosen: list[int]) -> list[int]:
        """Return a context as agents send them."""
        model = self.models[name]
        listed = [one.id for one in model.thread(thread)]
        everything = [one.id for one in model.active()]
        assume(everything)
        if shape == "full":
            return [*everything[: chosen[0] % 3], *listed]
        if shape == "window":
            return listed[-1 - chosen[0] % 12 :]
        if shape == "prefix":
            return [everything[0], *listed[-1 - chosen[0] % 12 :]]
        if shape in {"shorter", "again"}:
            old = [ids for where, ids in self.seen if where == name]
            assume(old)
            ids = old[chosen[0] % len(old)]
            return ids if shape == "again" else ids[: 1 + chosen[-1] % max(len(ids), 1)]
        return [everything[one % len(everything)] for one in chosen]

    def replied(
        self, name: str, pick: int, ids: list[int], thread: str | None, words: list[str]
    ) -> None:
        text = self.text(words)
        made = self.at(name, pick).record(
            text, context=ids, thread=thread, metadata={"mood": "calm"}, model="model-x"
        )
        assert (
            made.id
            == self.models[name].add(text, thread, "assistant", "calm", ids, model="model-x").id
        )
        self.seen.append((name, ids))

    @rule(name=names, pick=picks, which=picks, thread=st.sampled_from(THREADS))
    def copy(self, name: str, pick: int, which: int, thread: str | None) -> None:
        model = self.models[name]
        assume(model.active())
        original = model.active()[which % len(model.active())]
        made = self.at(name, pick).remember(
            original.text,
            thread=thread,
            role=original.role,
            metadata={"mood": original.mood},
            copy_of=original.id,
        )
        added = model.add(original.text, thread, original.role, original.mood, copy_of=original.id)
        assert made.id == added.id

    @rule(
        name=names,
        pick=picks,
        thread=st.sampled_from(THREADS[:2]),
        query=st.sampled_from(WORDS),
        by=st.sampled_from(("meaning", "keyword", "both")),
        k=st.integers(0, 4),
        last=st.integers(0, 4),
    )
    def context(
        self, name: str, pick: int, thread: str, query: str, by: str, k: int, last: int
    ) -> None:
        model = self.models[name]
        found = self.at(name, pick).context(query, thread=thread, k=k, last=last, by=by)
        assert len(set(found.ids)) == len(found) <= k + last
        assert model.usable(found.ids)
        assert [one.text for one in found.records] == [model.records[i].text for i in found.ids]
        recent = [one.id for one in model.thread(thread)][-last:] if last else []
        assert set(recent) <= set(found.ids)
        self.replied(name, pick, found.ids, thread, [])

    def stale(self) -> list[tuple[str, list[int]]]:
        return [(name, ids) for name, ids in self.seen if not self.models[name].usable(ids)]

    @precondition(lambda self: self.stale())
    @rule(which=picks, pick=picks)
    def late_writer(self, which: int, pick: int) -> None:
        """An agent that was thinking while a part of its prompt was forgotten."""
        stale = self.stale()
        name, ids = stale[which % len(stale)]
        with pytest.raises(ContextForgotten) as refused:
            self.at(name, pick).record(self.text(["late"]), context=ids)
        self.assert_silent(str(refused.value))

    # forgetting

    @rule(
        name=names,
        pick=picks,
        which=st.lists(picks, min_size=1, max_size=3),
        kind=st.sampled_from(
            ("ids", "quote", "value", "keyword", "own word", "where", "predicate", "thread")
        ),
        word=st.sampled_from(WORDS),
        thread=st.sampled_from(THREADS[:2]),
        role=st.sampled_from(ROLES),
        mood=st.sampled_from(MOODS),
        mode=st.sampled_from(("erase", "erase", "suppress")),
        depth=st.sampled_from((None, None, 0, 1, 2)),
        way=st.sampled_from(("direct", "plan", "json")),
    )
    def forget(
        self,
        name: str,
        pick: int,
        which: list[int],
        kind: str,
        word: str,
        thread: str,
        role: str,
        mood: str,
        mode: str,
        depth: int | None,
        way: str,
    ) -> None:
        model = self.models[name]
        own = word_for(1 + which[0] % max(self.written, 1))
        selections: dict[str, tuple[dict[str, Any], Callable[[Said], bool]]] = {
            "ids": self.by_ids(model, which),
            "quote": ({"quote": word}, lambda one: word in one.text.split()),
            "value": ({"value": word}, lambda one: word in one.text.split()),
            "keyword": ({"keyword": word}, lambda one: word in one.text.split()),
            "own word": ({"quote": own}, lambda one: own in one.text.split()),
            "where": (
                {"where": {"role": role, "mood": mood}},
                lambda one: one.role == role and one.mood == mood,
            ),
            "predicate": (
                {"where": lambda one: one.metadata["mood"] == mood and one.role == role},
                lambda one: one.role == role and one.mood == mood,
            ),
            "thread": ({"thread": thread}, lambda one: one.thread == thread),
        }
        selection, accepts = selections[kind]
        self.forgotten(name, pick, selection, accepts, mode, depth, way)

    @staticmethod
    def by_ids(model: Model, which: list[int]) -> tuple[dict[str, Any], Callable[[Said], bool]]:
        ids = [1 + one % max(model.last, 1) for one in which]
        return {"ids": ids}, lambda one: one.id in ids

    @rule(name=names, pick=picks, way=st.sampled_from(("direct", "plan")))
    def everything(self, name: str, pick: int, way: str) -> None:
        assume(len(self.models[name].records) > 6)
        self.forgotten(name, pick, {"everything": True}, lambda _: True, "erase", None, way)

    def forgotten(
        self,
        name: str,
        pick: int,
        selection: dict[str, Any],
        accepts: Callable[[Said], bool],
        mode: str,
        depth: int | None,
        way: str,
    ) -> None:
        memory, model = self.at(name, pick), self.models[name]
        reach = dellm.STRICT if depth is None else dellm.depth(depth)
        options = {"mode": mode, "reach": reach, **selection}
        matched = model.matching(accepts)
        if self.is_refused(selection, matched, model):
            with pytest.raises(SelectorError):
                memory.forget(**options)
            return
        if not matched:
            self.nothing_left(name, memory, options, mode)
            return
        going = model.within(matched, depth)
        plan = memory.plan(**options, suspects=pick % 3 == 0)
        assert [one.id for one in plan.matches] == matched
        assert list(plan.ids) == going
        assert [one.id for one in plan.spared] == sorted(set(model.dep(matched)) - set(going))
        assert plan.exposures == model.exposures(going)
        for one in plan.dependents:
            self.assert_is_a_path(model, one.trace, set(matched), one.id)
        self.assert_silent(json.dumps(plan.to_json()), repr(plan))
        if way == "direct":
            receipt = memory.forget(**options)
        else:
            receipt = memory.forget(
                plan if way == "plan" else Plan.from_json(json.loads(json.dumps(plan.to_json())))
            )
        self.settle(name, receipt, going, mode)
        assert memory.forget(plan).number == receipt.number
        # A plan kept at rest holds ids only, and a predicate cannot be told from another.
        known = way != "json" and not callable(selection.get("where"))
        if known or "ids" in selection or mode == "suppress":
            assert memory.forget(**options).number == receipt.number
        if known:
            self.asked[name][_request(options)] = receipt.number

    @staticmethod
    def is_refused(selection: dict[str, Any], matched: list[int], model: Model) -> bool:
        weak = "where" in selection or "keyword" in selection
        return weak and len(matched) > 1 and len(matched) == len(model.records)

    def nothing_left(self, name: str, memory: Memory, options: dict[str, Any], mode: str) -> None:
        """A forget that matches nothing: the receipt of the time it did, or an error."""
        erased = self.models[name].erased
        numbers = [erased[one] for one in options.get("ids", ()) if one in erased]
        earlier = max(numbers, default=None) or self.asked[name].get(_request(options))
        if earlier is not None and mode == "erase":
            assert memory.forget(**options).number == earlier
        elif earlier is None:
            with pytest.raises(NothingMatched) as refused:
                memory.forget(**options)
            self.assert_silent(str(refused.value))

    def settle(self, name: str, receipt: Receipt, going: list[int], mode: str) -> None:
        model = self.models[name]
        assert receipt.mode == mode
        assert list(receipt.ids) == going
        self.assert_silent(str(receipt), json.dumps(receipt.to_json()))
        if mode == "suppress":
            assert receipt.level == "suppressed"
            model.suppress(going)
            self.suppressions[name, receipt.number] = receipt
        else:
            assert receipt.level == "erased"
            model.erase(going, receipt.number)

    def assert_is_a_path(
        self, model: Model, trace: tuple[int, ...], matched: set[int], end: int
    ) -> None:
        assert trace[0] in matched
        assert trace[-1] == end
        for parent, child in itertools.pairwise(trace):
            assert parent in model.context[child] or frozenset({parent, child}) in model.copies

    @rule(name=names, pick=picks, word=st.sampled_from(WORDS))
    def redact(self, name: str, pick: int, word: str) -> None:
        memory, model = self.at(name, pick), self.models[name]
        matched = model.matching(lambda one: word in one.text.split())
        if not matched:
            return
        number = len(memory.ledger()) + 1
        going = model.dep(matched)
        made = model.redact(word, MARKER, number)
        receipt = memory.forget(quote=word, mode="redact")
        assert (receipt.number, list(receipt.ids)) == (number, going)
        assert receipt.redacted == made
        self.versions[name] |= made
        self.assert_silent(str(receipt), json.dumps(receipt.to_json()))

    @precondition(lambda self: self.suppressions)
    @rule(which=picks, pick=picks)
    def restore(self, which: int, pick: int) -> None:
        key = sorted(self.suppressions)[which % len(self.suppressions)]
        receipt, name = self.suppressions.pop(key), key[0]
        held = self.with_versions(
            name,
            {id_ for (at, _), one in self.suppressions.items() if at == name for id_ in one.ids},
        )
        ids = self.with_versions(name, set(receipt.ids)) - held
        assert self.at(name, pick).restore(receipt) == self.models[name].restore(ids)

    def with_versions(self, name: str, ids: set[int]) -> set[int]:
        found = set(ids)
        for old, new in sorted(self.versions[name].items()):
            found |= {new} if old in found else set()
        return found

    # the rest

    @rule(name=names, pick=picks)
    def index(self, name: str, pick: int) -> None:
        memory = self.at(name, pick)
        memory.index()
        assert memory.index() == 0

    @rule(pick=picks)
    def reopen(self, pick: int) -> None:
        self.handles[pick % 2].close()
        self.handles[pick % 2] = self.open_()

    @rule(name=names, pick=picks)
    def scrub(self, name: str, pick: int) -> None:
        """On SQLite, where it takes no time: afterwards the bytes of the files say nothing either."""
        assume(not is_postgres(self.url))
        memory = self.at(name, pick)
        assert memory.scrub().clean
        assert {one.level for one in memory.receipts()} <= {"scrubbed", "suppressed"}
        stored: set[str] = set()
        for path in Path(self.url).parent.glob("memory.db*"):
            stored |= set(UNIQUE.findall(path.read_bytes().decode("latin-1")))
        whole = {word[:8] for word in stored if len(word) >= 8}
        assert whole <= self.living()

    # what must hold after every step

    @invariant()
    def only_what_was_meant_has_changed(self) -> None:
        after = rows_of(self.tables)
        for name in NAMES:
            if name not in self.touched:
                assert of_workspace(after, name) == of_workspace(self.before, name)
        old, new = record_rows(self.before), record_rows(after)
        for key in old.keys() & new.keys():
            assert old[key] == new[key]
        self.assert_nothing_erased_is_stored(after)
        self.before = after
        for name in sorted(self.touched):
            self.check(name)
        self.touched = set()

    def living(self) -> set[str]:
        return {
            word
            for model in self.models.values()
            for one in model.records.values()
            for word in UNIQUE.findall(one.text)
        }

    def assert_nothing_erased_is_stored(self, rows: dict[str, Any]) -> None:
        living = self.living()
        for table, listed in rows.items():
            stored = set(UNIQUE.findall(repr(listed)))
            assert stored <= (living if table in {"record", "keyword"} else set()), table

    def check(self, name: str) -> None:
        model, memory = self.models[name], self.handles[0].workspace(name)
        active = model.active()
        assert [(one.id, one.text) for one in memory.export()] == [
            (one.id, one.text) for one in active
        ]
        threads = {one.thread for one in active if one.thread is not None}
        assert memory.threads() == {one: len(model.thread(one)) for one in threads}
        for thread in threads:
            listed = [(one.id, one.place, one.version) for one in memory.history(thread)]
            assert listed == [(one.id, one.place, one.version) for one in model.thread(thread)]
        for gone in sorted(model.erased)[-2:]:
            with pytest.raises(NotFound):
                memory.get(gone)
        self.check_search(memory, active)
        if active:
            self.check_node(memory, model, active[-1].id)
            self.check_node(memory, model, active[len(active) // 2].id)
        assert memory.verify().ok

    def check_search(self, memory: Memory, active: list[Said]) -> None:
        word = word_for(max(self.written - 3, 1))
        expected = {one.id for one in active if word in one.text.split()}
        assert {one.record.id for one in memory.search(word, by="keyword", limit=99)} == expected

    @staticmethod
    def check_node(memory: Memory, model: Model, id_: int) -> None:
        assert memory.dependents([id_]) == model.dep([id_])
        assert memory.context_of(id_) == model.context[id_]
        assert memory.used_in(id_) == model.used_in(id_)

    def check_graph(self, name: str) -> None:
        model, memory = self.models[name], self.handles[0].workspace(name)
        for id_ in model.records:
            self.check_node(memory, model, id_)
        usable = {one.id for one in model.active()}
        pairs = {(parent, one) for one in usable for parent in model.context[one]}
        drawn = memory.graph()
        assert set(drawn.roles) == usable
        assert set(drawn.edges) == {pair for pair in pairs if pair[0] in usable}

    @staticmethod
    def assert_silent(*said: str) -> None:
        for one in said:
            assert not UNIQUE.search(one)
            assert not re.search("|".join(WORDS), one)


def _request(options: dict[str, Any]) -> str:
    return repr(sorted((name, str(value)) for name, value in options.items()))


@pytest.mark.parametrize("steps", [30])
def test_random_histories_agree_with_plain_dicts(url: str, steps: int) -> None:
    class Bound(Histories):
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
            max_examples=6 if is_postgres(url) else 30,
            stateful_step_count=steps,
            deadline=None,
            derandomize="CI" in os.environ,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
