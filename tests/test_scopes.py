"""Inside a workspace a record is for an audience, and every read is made by an actor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.systems.chat import Chat
from dellm import ContextForgotten, DellmError, InvalidInput, Memory, NotFound
from dellm_langchain import DeLLMSaver
from dellm_langchain.middleware import DeLLMMiddleware

WORD = "canaryqzxv"


def texts(memory: Memory) -> set[str]:
    return {one.text for one in memory.export()}


def reads(memory: Memory, word: str) -> list[str]:
    """Return the reads of a memory in which a word stands."""
    found: dict[str, Callable[[], object]] = {
        "export": lambda: [one.text for one in memory.export()],
        "context": lambda: [one.text for one in memory.context(word, k=9, threshold=-1.0).records],
        "meaning": lambda: [one.record.text for one in memory.search(word, threshold=-1.0)],
        "keyword": lambda: [one.record.text for one in memory.search(word, by="keyword")],
        "history": lambda: [one.text for one in memory.history("t")],
        "facts": lambda: [one.value for one in memory.facts()],
        "remembered": lambda: [str(one) for one in memory.remembered()],
        "plan": lambda: str(memory.plan(word)) if memory.plan(word) else "",
        "answers": lambda: str(memory.answers.find(f"where is {word}")),
    }
    return [name for name, read in found.items() if word in str(read())]


@pytest.fixture
def filled(memory: Memory) -> Memory:
    """A memory in which ann said something in a private channel, and all know something else."""
    ann = memory.acting(user="ann", channel="dm-ann")
    said = ann.remember(f"my safe is in {WORD}", thread="t")
    ann.record(f"noted {WORD}", context=[said.id], thread="t")
    memory.remember("the office is green", thread="t")
    memory.index()
    return memory


def test_what_was_said_in_a_channel_is_read_there_and_nowhere_else(filled: Memory) -> None:
    inside = filled.acting(user="ann", channel="dm-ann")
    assert {"export", "context", "meaning", "keyword", "history", "remembered", "plan"} <= set(
        reads(inside, WORD)
    )
    for other in (
        filled,
        filled.acting(user="ann", channel="team"),
        filled.acting(user="bob", channel="dm-bob"),
        filled.acting(user="bob"),
        filled.acting(project="p", role="admin"),
    ):
        assert [one for one in reads(other, WORD) if one != "plan"] == []
        assert "the office is green" in texts(other)
    assert "export" in reads(filled.acting(overseer=True), WORD)


def test_the_owners_plan_and_scan_reach_everything(filled: Memory) -> None:
    assert filled.plan(WORD).ids == (1, 2)
    assert not filled.scan(WORD, files=False).clean
    bob = filled.acting(user="bob")
    assert not bob.plan(WORD).ids
    filled.forget(WORD)
    assert filled.scan(WORD, files=False).clean


def test_a_preference_of_one_is_no_rule_for_all(memory: Memory) -> None:
    ann = memory.acting(user="ann", project="p")
    ann.remember("I like short answers", audience="user")
    ann.remember("we deploy on Fridays", audience="project")
    assert texts(memory.acting(user="ann", channel="x")) == {"I like short answers"}
    assert texts(memory.acting(user="bob", project="p")) == {"we deploy on Fridays"}
    assert texts(memory) == set()


def test_what_is_made_of_private_things_is_no_less_private(memory: Memory) -> None:
    ann = memory.acting(user="ann")
    mine = ann.remember("ann's note", audience="user")
    everybody = memory.remember("common note")
    made = ann.record("made of both", context=[mine.id, everybody.id], audience="global")
    assert "made of both" not in texts(memory)
    assert "made of both" in texts(ann)
    with pytest.raises((NotFound, ContextForgotten)):
        memory.acting(user="bob").record("stolen", context=[mine.id])
    with pytest.raises(NotFound):
        memory.acting(user="bob").get(made.id)
    assert memory.verify().ok


def test_a_forget_by_one_takes_what_was_made_of_it_whoever_has_it(memory: Memory) -> None:
    ann = memory.acting(user="ann")
    said = ann.remember("the code is 4711", audience="global")
    bob = memory.acting(user="bob")
    bob.record("bob's copy 4711", context=[said.id], audience="user")
    bob.remember("bob's own 4711", audience="user")
    receipt = ann.forget("4711")
    assert receipt.ids == (1, 2)
    assert texts(bob) == {"bob's own 4711"}


def test_facts_of_one_say_nothing_to_others(memory: Memory) -> None:
    from dellm import RuleExtractor

    ann = memory.acting(user="ann", channel="dm-ann")
    ann.remember("I live in Paris", thread="a")
    ann.facts.extract(RuleExtractor(), thread="a")
    bob = memory.acting(user="bob", channel="dm-bob")
    bob.remember("I live in Oslo", thread="b")
    bob.facts.extract(RuleExtractor(), thread="b")
    assert [one.value for one in ann.facts(key="home")] == ["Paris"]
    assert [one.value for one in bob.facts(key="home")] == ["Oslo"]
    assert memory.facts(key="home") == []
    assert memory.verify().ok


def test_a_blank_name_is_refused(memory: Memory) -> None:
    for name in ("user", "channel", "project", "organisation", "role"):
        with pytest.raises(InvalidInput):
            memory.acting(**{name: " "})  # type: ignore[arg-type] # names of options
    with pytest.raises(DellmError):
        memory.acting(user="ann").remember("x", audience="everyone")


def _agent(memory: Memory) -> Any:
    return create_agent(
        Chat(inner=Canary()),
        [],
        middleware=[DeLLMMiddleware(memory, k=5, last=0, threshold=-1.0, scope="workspace")],
        checkpointer=DeLLMSaver(memory),
    )


def test_no_prompt_in_a_group_holds_what_was_said_in_private(memory: Memory) -> None:
    """The model repeats all that it is sent; the control is the same without scopes."""
    for scoped in (True, False):
        own = memory.workspace(f"scoped {scoped}")
        private = own.acting(user="ann", channel="dm") if scoped else own
        private.remember(f"ann's salary is {WORD}", thread="dm")
        group = own.acting(user="ann", channel="team") if scoped else own
        config: Any = {"configurable": {"thread_id": "team"}}
        said = _agent(group).invoke({"messages": [HumanMessage("what is ann's salary?")]}, config)
        assert (WORD in str(said["messages"][-1].text)) is not scoped


def constraints(actor: dict[str, str | None]) -> set[tuple[str, str]]:
    """Return what an actor is: who is in no channel is alone."""
    found = {(name, value) for name, value in actor.items() if value is not None}
    alone = actor["user"] is not None and actor["channel"] is None
    return found | ({("channel", "")} if alone else set())


NAMES = st.sampled_from([None, "a", "b"])
ACTORS = st.fixed_dictionaries({"user": NAMES, "channel": NAMES, "project": NAMES})


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(ACTORS, st.lists(st.integers(0, 9), max_size=2)), max_size=8), ACTORS)
def test_what_is_read_is_what_may_be_read(
    said: list[tuple[dict[str, str | None], list[int]]], reader: dict[str, str | None]
) -> None:
    """Against brute force: an audience is a set of constraints, that of what is made is their union."""
    with Memory.open(":memory:", embedder="hashing") as memory:
        known: dict[int, set[tuple[str, str]]] = {}
        for actor, sources in said:
            acting = memory.acting(**actor) if any(actor.values()) else memory
            mine = constraints(actor)
            context = sorted({1 + one for one in sources if one < len(known)})
            if not all(known[one] <= mine for one in context):
                continue
            narrowest = next((n for n in ("channel", "user", "project") if actor[n]), None)
            own = {one for one in mine if one[0] == narrowest}
            if narrowest == "user":  # to one alone, in no channel
                own = {one for one in mine if one[0] in {"user", "channel"}}
            made = acting.record(f"note {len(known) + 1}", context=context)
            known[made.id] = own.union(*(known[one] for one in context))
        acting = memory.acting(**reader) if any(reader.values()) else memory
        mine = constraints(reader)
        expected = {id_ for id_, wanted in known.items() if wanted <= mine}
        assert {one.id for one in acting.export()} == expected
        found = acting.search("note", limit=99, threshold=-1.0)
        assert {one.record.id for one in found} == expected
        assert memory.verify().ok
