"""The seven steps of writing and the seven of reading, each walked in order, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from dellm import Draft, Memory, NotFound, Policy, Proposed, Record, Status, prompt
from dellm.policy import DAY

Opened = Callable[..., Memory]
AT = 20_000 * DAY
START = datetime.fromtimestamp(AT / 1_000_000, UTC)

POLICY = Policy.parse(
    """
[sensitivities.personal]
read = ["coach"]

[[rules]]
name = "moods"
when = { kind = "inferred", sensitivity = "personal" }
class = "operational_state"
purpose = "personalization"
basis = "consent"
"""
)


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
    return opened(url, clock=clock, policy=POLICY).workspace("alex")


class Moody:
    """An extractor that infers a mood, as a model would; it notes what it was given."""

    name = "moody"

    def __init__(self) -> None:
        self.given: list[str] = []

    def __call__(
        self, messages: Sequence[Record], known: Sequence[object], lists: Sequence[str]
    ) -> list[Proposed]:
        self.given += [one.text for one in messages]
        return [Proposed("mood", "anxious", inferred=True, sensitivity="personal")]


def test_the_write_path(memory: Memory, clock: Clock) -> None:
    coach = memory.acting(role="coach")
    told = coach.remember("I cannot sleep before interviews", thread="t")
    coach.index()
    # 1. A candidate is detected: the extractor reads the message, nothing is stored by that alone.
    moody = Moody()
    found = coach.facts.extract(moody, thread="t")
    assert moody.given == [told.text]
    # 4. It is inferred and sensitive, so that it waits: no index knows it, no fact holds.
    (id_,) = found.waiting
    assert found.stated == ()
    assert coach.facts() == []
    assert memory.governed(id_).status == "quarantined"
    assert not memory.governed(id_).artefacts.terms
    assert not memory.governed(id_).artefacts.vector
    # 2. and 3. It was classified before that: sensitivity and scope, purpose, class and basis.
    known = memory.governed(id_)
    assert (known.sensitivity, known.purpose) == ("personal", "personalization")
    assert (known.retention, known.basis) == ("operational_state", "consent")
    # 5. Once confirmed it is the canonical record.
    assert coach.facts.confirm(id_).value == "anxious"
    assert memory.governed(id_).status == "active"
    # 6. Its derivatives name it: vector, index terms, what is made from it.
    reply = coach.record("Breathe slowly.", context=[id_], thread="t")
    hangs = memory.governed(id_).artefacts
    assert hangs.vector
    assert hangs.terms
    assert hangs.records == (reply.id,)
    assert memory.governed(id_).derived_from == (told.id,)
    # 7. Its end is scheduled, and the sweep comes to it and to what was made from it.
    assert known.retention_until == START + timedelta(days=7)
    assert reply.retention_until == known.retention_until
    clock.at += 7 * DAY
    memory.expiry.sweep()
    assert {memory.governed(one).status for one in (id_, reply.id)} == {"erased"}
    assert coach.get(told.id) == told
    assert memory.verify().ok


def test_the_read_path(memory: Memory, clock: Clock, url: str, opened: Opened) -> None:
    fresh = memory.remember("Ada likes walks in Rome", thread="t")
    private = memory.remember("Ada is anxious in Rome", sensitivity="personal")
    (waits,) = memory.remember_many([Draft("Rome, maybe", quarantined=True)])
    expired = memory.remember("Rome last week", retention_until=clock.at + DAY)
    erased = memory.remember("Rome, forget it")
    memory.forget(ids=[erased.id], scrub=False)
    held = memory.remember("Rome, evidence")
    memory.holds.place(ids=[held.id], basis="case 7", by="counsel")
    elsewhere = memory.workspace("other").remember("Rome, of somebody else")
    clock.at += 2 * DAY
    memory.index()
    heard: list[tuple[str, list[int]]] = []
    memory.after_read(lambda workspace, ids: heard.append((workspace, list(ids))))
    # 1. The context of execution: who, where, in what role.
    support, coach = memory.acting(user="bob", role="support"), memory.acting(role="coach")
    assert support.actor is not None
    assert support.actor.role == "support"
    # 2. The policy says what that role may read.
    assert POLICY.closed_to("support")[1] == ("personal",)
    assert POLICY.closed_to("coach")[1] == ()
    # 3. and 4. Only that is asked for, less what waits, expired, went, is held or is elsewhere.
    for by in ("meaning", "keyword", "both"):
        seen = {one.record.id for one in support.search("Rome", by=by, limit=50, threshold=-1)}
        assert seen == {fresh.id}
        both = {one.record.id for one in coach.search("Rome", by=by, limit=50, threshold=-1)}
        assert both == {fresh.id, private.id}
    for id_ in (waits.id, expired.id, erased.id, held.id):
        with pytest.raises(NotFound):
            coach.get(id_)
    assert elsewhere.workspace == "other"
    # 5. What is left is ranked, and the limit counts no record that is not for the reader.
    best = support.search("Ada anxious Rome", by="keyword", limit=1)
    assert [one.record.id for one in best] == [fresh.id]
    # 6. It goes into the prompt with where each comes from at hand.
    context = support.context("Rome", by="keyword", k=5)
    assert context.ids == [fresh.id]
    assert fresh.text in str(prompt("Where to?", context.records))
    assert support.governed(context.ids[0]).created_by == "human"
    # 7. Which ids were used is known, and recorded with the reply; no content is.
    assert heard[-1] == ("alex", [fresh.id])
    reply = support.record("A walk, then.", context=context)
    assert support.context_of(reply.id) == [fresh.id]
    assert "Rome" not in str(memory.ledger())
    assert reply.status == Status.ACTIVE
    assert memory.verify().ok
