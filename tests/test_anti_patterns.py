"""The dangerous patterns of memory governance, by name: for each, that the product does not have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from raw_tables import connected, rows_of

from dellm import Assistant, Draft, InvalidInput, Memory, NotFound, PolicyRefused, RuleExtractor
from dellm.policy import DAY

Opened = Callable[..., Memory]
AT = 20_000 * DAY
CANARY = "zyxcanaryword"


class Clock:
    """A clock that the test sets, in microseconds UTC."""

    at = AT

    def __call__(self) -> int:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(url: str, opened: Opened, clock: Clock) -> Memory:
    return opened(url, clock=clock).workspace("alex")


class Promising:
    """A model that confirms every deletion, in words alone."""

    name, provider = "promising", "models.example"

    def complete(self, messages: Sequence[object], /) -> str:
        return "Done: I have forgotten it and deleted every copy."


def test_chat_history_as_memory(memory: Memory) -> None:
    """Source, memory and audit trail are told apart: each fact names its message, the trail no content."""
    told = memory.remember(f"My phone number is 415 555 0142, says {CANARY}", thread="t")
    memory.facts.extract(RuleExtractor(), thread="t")
    (fact,) = memory.facts(key="phone")
    assert CANARY not in fact.value
    assert memory.governed(fact.id).kind == "fact"
    assert memory.governed(fact.id).derived_from == (told.id,)
    memory.forget(ids=[told.id], scrub=False)
    assert memory.facts() == []
    assert CANARY not in str(memory.ledger()) + str(memory.receipts())


@pytest.mark.parametrize("by", ["meaning", "keyword", "both"])
def test_global_vector_index(memory: Memory, by: str) -> None:
    """No search ranks another workspace's records, however near they are."""
    other = memory.workspace("other")
    other.remember_many([Draft(f"Rome in spring {n}") for n in range(20)])
    mine = memory.remember("something else altogether")
    for one in (memory, other):
        one.index()
    found = memory.search("Rome in spring", by=by, limit=50, threshold=-1)
    assert {one.record.id for one in found} <= {mine.id}
    assert all("Rome" not in one.record.text for one in found)
    assert all("Rome" not in one.text for one in memory.context("Rome in spring", k=50).records)


def test_deletion_by_prompt(memory: Memory) -> None:
    """A model's word deletes nothing and a request mutates the stores, before anybody says so."""
    memory.remember(f"My phone number is 415 555 0142, {CANARY}", thread="main")
    memory.index()
    assistant = Assistant(memory, Promising(), k=3)
    said = assistant.send("Is my phone number still there?")
    assert "I have forgotten it" in said.text
    assert said.receipt is None
    assert memory.search(CANARY, by="keyword")
    with pytest.raises(PolicyRefused):
        memory.forget("415 555 0142", by="model")
    assistant.send("Forget my phone number.")
    done = assistant.send("yes")
    assert done.receipt is not None
    assert memory.scan("415 555 0142", files=False).clean
    assert memory.search(CANARY, by="keyword") == []
    assert memory.verify().ok


def test_summaries_without_source_ids(memory: Memory) -> None:
    """Everything derived names its sources, and goes with them."""
    told = memory.remember(f"{CANARY} said so", thread="t")
    memory.derivation("joined")(lambda sources: " ".join(one.text for one in sources))
    memory.summaries.use(lambda _, texts: " ".join(texts))
    made = [memory.derive("joined", sources=[told.id])]
    made += memory.summaries.rolling("t").records
    made += memory.summaries.tree("t").records
    for one in made:
        assert memory.governed(one.id).derived_from == (told.id,)
        assert memory.governed(one.id).retention == "derived_summary"
    with pytest.raises(InvalidInput):
        memory.derive("joined", sources=[])
    memory.forget(ids=[told.id], scrub=False)
    assert list(memory.export()) == []
    assert {memory.governed(one.id).status for one in made} == {"erased"}


def test_permanent_preferences(memory: Memory, clock: Clock) -> None:
    """A preference is visible, has an end, and at it goes out of use with what was made of it."""
    tea = memory.remember("I prefer tea", retention="user_preference", subject="Ada")
    reply = memory.record("Tea it is", context=[tea.id])
    known = memory.governed(tea.id)
    assert known.subjects == ("Ada",)
    assert known.retention_until is not None
    clock.at += 729 * DAY
    assert memory.get(tea.id).text == "I prefer tea"
    clock.at += DAY
    for id_ in (tea.id, reply.id):
        with pytest.raises(NotFound):
            memory.get(id_)
    assert memory.search("tea", by="keyword") == []


def test_raw_audit_traces_forever(memory: Memory, url: str, clock: Clock) -> None:
    """The trail holds no content and may be pruned; traces with content end, and a forget reaches them."""
    told = memory.remember(f"{CANARY} lives in Rome", thread="t")
    memory.audit.trace(minutes=10)
    memory.context("Rome", by="keyword")
    assert any(CANARY in one.text for one in memory.audit.traces())
    clock.at += 11 * 60 * 1_000_000
    assert memory.audit.traces() == []
    memory.audit.trace(minutes=10)
    memory.context("Rome", by="keyword")
    memory.forget(ids=[told.id], scrub=False)
    assert memory.audit.traces() == []
    with connected(url) as raw:
        assert not any(CANARY in repr(row) for row in rows_of(raw)["ledger"])
    clock.at += 100 * DAY
    assert memory.audit.prune(keep_days=30) > 0
    assert memory.verify().ok


def test_provider_abstraction_without_provider_retention(memory: Memory, clock: Clock) -> None:
    """What was sent where is known, with how long it may be kept there, and the receipt says so."""
    told = memory.remember("I live in Rome", thread="t")
    reply = memory.record("Rome is warm", context=[told.id], thread="t", model="openai/gpt-5")
    (known,) = memory.exposures.providers([told.id, reply.id])
    assert "openai" in str(known)
    plan = memory.plan(ids=[told.id])
    assert [one.to_json() for one in plan.providers] == [known.to_json()]
    receipt = memory.forget(plan, scrub=False)
    assert [one.to_json() for one in receipt.providers] == [known.to_json()]
    assert known.to_json()["until"] is not None
