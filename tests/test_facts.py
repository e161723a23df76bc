"""Facts: their dates by what is stated, one value or many, and what a forget leaves of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_tables import connected, emptied, rows_of, statement

from dellm import ContextForgotten, Fact, InvalidInput, Memory, NotFound, Proposed, Status

DAY = 86_400_000_000


def day(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


def on(year: int, month: int, of_month: int) -> datetime:
    return datetime(year, month, of_month, tzinfo=UTC)


def shown(facts: list[Fact]) -> list[tuple[str, str]]:
    return [(one.key, one.value) for one in facts]


def spans(facts: list[Fact]) -> list[tuple[str, str | None, str | None]]:
    return [(one.value, f"{one.valid_from:%m-%d}", _short(one.valid_to)) for one in facts]


def _short(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%m-%d}"


# dates


def test_the_table_of_facts_with_dates_comes_out_as_it_was_told(memory: Memory) -> None:
    """Where AI memory lives: six rows, three keys, of which one is a list."""
    facts = memory.facts
    facts.declare("dog_name", many=True)
    for key, value, said in (
        ("employer", "Freightly", on(2026, 1, 5)),
        ("dog_name", "Biscuit", on(2026, 1, 5)),
        ("trip_destination", "Lisbon", on(2026, 1, 19)),
        ("employer", "Ledgerly", on(2026, 2, 2)),
        ("dog_name", "Comet", on(2026, 2, 12)),
        ("trip_destination", "Porto", on(2026, 3, 2)),
    ):
        facts.state(key, value, valid_from=said)
    assert {
        key: spans(facts.history(key)) for key in ("employer", "trip_destination", "dog_name")
    } == {
        "employer": [("Freightly", "01-05", "02-02"), ("Ledgerly", "02-02", None)],
        "trip_destination": [("Lisbon", "01-19", "03-02"), ("Porto", "03-02", None)],
        "dog_name": [("Biscuit", "01-05", None), ("Comet", "02-12", None)],
    }
    before = facts.previous("employer")
    assert before is not None
    assert before.value == "Freightly"
    assert facts.previous("dog_name") is None
    assert shown(facts(as_of=on(2026, 2, 1))) == [
        ("employer", "Freightly"),
        ("dog_name", "Biscuit"),
        ("trip_destination", "Lisbon"),
    ]
    assert shown(facts(key="employer")) == [("employer", "Ledgerly")]
    assert shown(facts(key="dog_name")) == [("dog_name", "Biscuit"), ("dog_name", "Comet")]
    assert shown(facts(as_of=on(2026, 1, 4))) == []
    assert shown(facts(as_of=on(2026, 2, 2), key="employer")) == [("employer", "Ledgerly")]


def test_a_correction_closes_and_a_forget_takes_the_closed_row_too(memory: Memory) -> None:
    said = memory.remember("My phone number is +1 415 555 0142.", thread="t")
    first = memory.facts.state("phone", "+1 415 555 0142", valid_from=day(1), context=[said.id])
    memory.facts.close("phone", at=day(3))
    assert spans(memory.facts.history("phone")) == [("+1 415 555 0142", "01-02", "01-04")]
    assert memory.facts() == []
    memory.facts.state("phone", "none", valid_from=day(5))
    receipt = memory.forget("+1 415 555 0142")
    assert set(receipt.ids) == {said.id, first}
    assert receipt.rows["fact"] == 1
    assert spans(memory.facts.history("phone")) == [("none", "01-06", None)]
    assert not memory.scan("+1 415 555 0142", files=False).places
    assert memory.verify().ok


def test_what_an_erased_fact_had_closed_is_open_again_or_closed_by_what_is_left(
    memory: Memory,
) -> None:
    facts = memory.facts
    two, three = memory.remember("moved to B"), memory.remember("moved to C")
    facts.state("city", "A", valid_from=day(1))
    facts.state("city", "B", valid_from=day(4), context=[two.id])
    facts.state("city", "C", valid_from=day(8), context=[three.id])
    memory.forget(ids=[two.id])
    assert spans(facts.history("city")) == [("A", "01-02", "01-09"), ("C", "01-09", None)]
    memory.forget(ids=[three.id])
    assert spans(facts.history("city")) == [("A", "01-02", None)]
    assert memory.verify().ok


def test_one_of_two_independent_statements_keeps_the_fact_and_its_own_day(memory: Memory) -> None:
    facts = memory.facts
    first, second = memory.remember("I live in Paris"), memory.remember("Paris is where I live")
    one = facts.state("city", "Paris", valid_from=day(1), context=[first.id])
    two = facts.state("city", " paris  ".strip(), valid_from=day(5), context=[second.id])
    assert one != two
    assert facts.state("city", "Paris", valid_from=day(7), context=[second.id]) == two
    assert [one.id for one in facts()] == [one]
    assert facts.supports(one) == facts.supports(two) == [one, two]
    assert facts.supports(first.id) == []
    facts.close("city", at=day(9))
    assert spans(facts.history("city")) == [("Paris", "01-02", "01-10")]
    memory.forget(ids=[first.id])
    assert spans(facts.history("city")) == [("paris", "01-06", "01-10")]
    memory.forget(ids=[second.id])
    assert facts.history("city") == []
    with connected(memory.url) as raw:
        assert statement(raw, "select count(*) from fact_end") == [(0,)]


def test_stating_what_holds_again_from_the_same_sources_writes_nothing(memory: Memory) -> None:
    said = memory.remember("I live in Paris")
    one = memory.facts.state("city", "Paris", context=[said.id])
    bare = memory.facts.state("country", "France")
    with connected(memory.url) as raw:
        before = rows_of(raw)["fact"]
        assert memory.facts.state("city", "Paris", context=[said.id]) == one
        assert memory.facts.state("Country", "FRANCE") == bare
        assert rows_of(raw)["fact"] == before


def test_a_closing_goes_with_what_says_so(memory: Memory) -> None:
    facts = memory.facts
    facts.declare("dog_name")
    for name in ("Biscuit", "Comet"):
        facts.state("dog_name", name, valid_from=day(1))
    died = memory.remember("Biscuit died last week.")
    closed = facts.close("dog_name", "biscuit", at=day(4), context=[died.id])
    assert [memory.get(one).text for one in closed] == ["dog_name: Biscuit"]
    assert facts.close("dog_name", "biscuit", at=day(4), context=[died.id]) == []
    assert shown(facts()) == [("dog_name", "Comet")]
    assert facts.close("dog_name", "Rex") == []
    memory.forget(ids=[died.id])
    assert shown(facts()) == [("dog_name", "Biscuit"), ("dog_name", "Comet")]
    assert len(facts.close("dog_name")) == 2
    assert facts() == []
    assert memory.verify().ok


def test_dates_may_be_said_of_the_past_and_of_an_end(memory: Memory) -> None:
    facts = memory.facts
    facts.state("employer", "Now Ltd", valid_from=day(20))
    facts.state("employer", "Then Ltd", valid_from=day(2), valid_to=day(9))
    assert spans(facts.history("employer")) == [
        ("Then Ltd", "01-03", "01-10"),
        ("Now Ltd", "01-21", None),
    ]
    facts.state("employer", "Never Ltd", valid_from=day(20))
    assert [one.value for one in facts.history("employer")] == ["Then Ltd", "Now Ltd", "Never Ltd"]
    corrected = facts.history("employer")[1]
    assert corrected.valid_from == corrected.valid_to
    assert [one.value for one in facts(as_of=day(20))] == ["Never Ltd"]
    previous = facts.previous("employer")
    assert previous is not None
    assert previous.value == "Then Ltd"  # what never held was no employer


def test_facts_of_others_are_apart_from_the_users(memory: Memory) -> None:
    facts = memory.facts
    facts.state("phone", "1", valid_from=day(1))
    facts.state("phone", "2", subject="Anna Maria", valid_from=day(2))
    assert [(one.subject, one.key, one.value) for one in facts(key="phone")] == [
        (None, "phone", "1"),
        ("Anna Maria", "phone", "2"),
    ]
    assert shown(facts(subject="anna maria")) == [("phone", "2")]
    assert shown(facts(key="phone", subject="Anna Maria")) == [("phone", "2")]
    assert shown(facts.history("phone", "Anna Maria")) == [("phone", "2")]
    assert memory.get(facts()[1].id).text == "phone of Anna Maria: 2"


def test_a_key_that_becomes_a_list_gets_the_dates_of_one_and_back(memory: Memory) -> None:
    facts = memory.facts
    for at, name in enumerate(("Biscuit", "Comet", "Rex")):
        facts.state("dog_name", name, valid_from=day(at))
    assert len(facts()) == 1
    facts.declare("dog_name")
    assert facts.keys() == {"dog_name": True}
    assert len(facts()) == 3
    facts.declare("dog_name", many=False)
    assert shown(facts()) == [("dog_name", "Rex")]


def test_what_cannot_be_a_fact_is_refused(memory: Memory) -> None:
    facts = memory.facts
    for wrong in (
        {"key": "a: b"},
        {"key": " a"},
        {"key": ""},
        {"key": "a" * 201},
        {"value": " "},
        {"confidence": 1.5},
        {"subject": ""},
        {"sensitivity": " "},
        {"valid_from": 1.5},
        {"valid_from": day(2), "valid_to": day(1)},
    ):
        with pytest.raises(InvalidInput):
            facts.state(**{"key": "k", "value": "v", **wrong})  # type: ignore[arg-type] # as said
    with pytest.raises(NotFound):
        facts.state("k", "v", context=[99])
    said = memory.remember("gone")
    memory.forget(ids=[said.id])
    with pytest.raises(ContextForgotten):
        facts.state("k", "v", context=[said.id])
    assert facts() == []


def test_a_fact_s_text_is_what_it_was_given_whatever_stands_in_it(memory: Memory) -> None:
    value = "a: b\x00\ud800\n of X: c"
    memory.facts.state("k of X", value, subject="X")
    one = memory.facts()[0]
    assert (one.key, one.value, one.subject) == ("k of X", value, "X")
    assert "b" not in repr(one)
    assert one.confidence == 1.0


def test_many_are_stated_in_one_transaction(memory: Memory) -> None:
    said = [memory.remember(f"message {n}") for n in range(12)]
    context = [one.id for one in said]
    made = memory.facts.state_many(
        [
            Proposed("a", "1", valid_from=day(1)),
            Proposed("a", "1", valid_from=day(1)),
            Proposed("a", "2", valid_from=day(3)),
            Proposed("a", None, valid_from=day(5), closes=True),
            Proposed("b", None, closes=True),
        ],
        context=context,
    )
    assert made[0] == made[1] != made[2]
    assert made[3:] == [made[2], None]
    assert spans(memory.facts.history("a")) == [("1", "01-02", "01-04"), ("2", "01-04", "01-06")]
    for id_ in (made[0], made[2]):
        assert id_ is not None
        assert memory.context_of(id_) == context
    memory.forget(ids=[said[3].id])
    with pytest.raises(ContextForgotten):
        memory.facts.state_many([Proposed("c", "1"), Proposed("c", "2")], context=context)
    assert memory.facts(key="c") == []
    assert memory.facts.history("a") == []
    assert memory.verify().ok


# out of use, and in use again


def test_a_fact_is_kept_no_longer_than_what_it_was_made_from(
    url: str, opened: Callable[..., Memory]
) -> None:
    now = [day(1)]
    memory = opened(url, clock=lambda: int(now[0].timestamp()) * 1_000_000).workspace("alex")
    said = [memory.remember("said", retention_until=until).id for until in (None, day(5), day(9))]
    made = memory.facts.state_many([Proposed("a", "1"), Proposed("b", "2")], context=said)
    memory.facts.state("c", "3", context=said[:1])
    assert {memory.get(one).retention_until for one in made if one} == {day(5)}
    now[0] = day(6)
    assert shown(memory.facts()) == [("c", "3")]
    assert [one.record.text for one in memory.search("1 2 3", by="keyword")] == ["c: 3"]


def test_an_inference_from_what_is_suppressed_cannot_be_confirmed(memory: Memory) -> None:
    said = memory.remember("I have to take my insulin.")
    held = memory.facts.state(
        "illness", "zyxdiabetes", inferred=True, sensitivity="health", context=[said.id]
    )
    receipt = memory.forget(ids=[said.id], mode="suppress")
    assert memory.facts.waiting() == []
    for refuses in (memory.facts.confirm, memory.facts.reject):
        with pytest.raises(NotFound):
            refuses(held)
    assert memory.facts.history("illness") == []
    memory.restore(receipt)
    assert [one.id for one in memory.facts.waiting()] == [held]
    assert memory.facts.confirm(held).value == "zyxdiabetes"
    assert memory.verify().ok


def test_suppressed_facts_close_nothing_and_come_back(memory: Memory) -> None:
    facts = memory.facts
    facts.state("city", "A", valid_from=day(1))
    second = facts.state("city", "B", valid_from=day(4))
    receipt = memory.forget(ids=[second], mode="suppress")
    assert spans(facts.history("city")) == [("A", "01-02", None)]
    memory.restore(receipt)
    assert spans(facts.history("city")) == [("A", "01-02", "01-05"), ("B", "01-05", None)]


def test_a_redacted_fact_says_what_is_left_or_is_none(memory: Memory) -> None:
    facts = memory.facts
    facts.state("address", "Rue Cler 7, Paris", valid_from=day(1))
    facts.state("city", "Paris", valid_from=day(2))
    memory.forget("Paris", mode="redact")
    assert [one.value for one in facts()] == ["Rue Cler 7, [redacted]"]
    assert facts()[0].valid_from == day(1)
    assert not memory.scan("Paris", files=False).places
    assert memory.verify().ok


def test_what_is_inferred_and_sensitive_waits_and_is_in_no_read(memory: Memory) -> None:
    facts = memory.facts
    said = memory.remember("I have to take my insulin.")
    open_ = facts.state("mood", "tired", inferred=True, context=[said.id])
    plain = facts.state("allergy", "nuts", sensitivity="health", context=[said.id])
    held = facts.state(
        "illness", "zyxdiabetes", inferred=True, sensitivity="health", context=[said.id]
    )
    assert {one.id for one in facts()} == {open_, plain}
    assert facts()[0].inferred
    assert memory.get(open_).kind == "inferred"
    assert facts.history("illness") == []
    assert memory.search("zyxdiabetes", by="keyword") == []
    assert all(one.id != held for one in memory.export())
    assert [(one.id, one.value, one.waiting, one.sensitivity) for one in facts.waiting()] == [
        (held, "zyxdiabetes", True, "health")
    ]
    with pytest.raises(NotFound):
        facts.confirm(plain)
    with pytest.raises(NotFound):
        facts.reject(open_)
    assert facts.confirm(held).value == "zyxdiabetes"
    assert shown(facts.history("illness")) == [("illness", "zyxdiabetes")]
    assert facts.waiting() == []
    assert memory.get(held).status == Status.ACTIVE
    other = facts.state("faith", "zyxnone", inferred=True, sensitivity="religion")
    assert facts.reject(other).ids == (other,)
    assert facts.waiting() == []
    assert not memory.scan("zyxnone", files=False).places
    assert memory.verify().ok


def test_a_prompt_gets_no_fact_that_is_over_nor_one_twice(memory: Memory) -> None:
    facts = memory.facts
    said = memory.remember("something else")
    facts.state("employer", "Freightly", valid_from=day(1))
    now = facts.state("employer", "Ledgerly", valid_from=day(2))
    facts.state("employer", "Ledgerly", valid_from=day(3), context=[said.id])
    for by in ("keyword", "meaning", "both"):
        assert memory.context("employer", by=by, k=5, threshold=0.01).ids == [now]
    assert len(memory.search("employer", by="keyword")) == 3
    memory.forget(ids=[now])
    assert [one.record.text for one in memory.context("employer", by="keyword")] == [
        "employer: Ledgerly"
    ]


def test_a_fact_that_is_redacted_on_entry_is_none_and_one_that_is_held_waits(
    url: str, opened: Callable[..., Memory]
) -> None:
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    memory = opened(url)
    memory.facts.state_many([Proposed("token", key), Proposed("city", "Paris")])
    assert shown(memory.facts()) == [("city", "Paris")]
    assert not memory.scan(key, files=False).places
    with connected(url) as raw:
        assert statement(raw, "select count(*) from fact") == [(1,)]
    memory.close()
    memory = opened(url, credentials="quarantine")
    held = memory.facts.state("token", key)
    assert memory.facts(key="token") == []
    assert [one.id for one in memory.facts.waiting()] == [held]
    assert memory.facts.confirm(held).value == key
    assert shown(memory.facts(key="token")) == [("token", key)]
    assert memory.verify().ok


# several at once


def test_threads_that_state_at_once_leave_one_open_row_for_a_single_key(
    memory: Memory, opened: Callable[..., Memory]
) -> None:
    """In two open memories of one database, as in two processes."""
    memory.facts.state("city", "start")
    other = opened(memory.url).workspace(memory.id)
    barrier = threading.Barrier(4)

    def state(name: str, mine: Memory) -> None:
        barrier.wait()
        for number in range(4):
            mine.facts.state("city", f"{name}{number}", valid_from=day(number))

    workers = [
        threading.Thread(target=state, args=(name, mine))
        for name, mine in zip("abcd", (memory, other) * 2, strict=True)
    ]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    with connected(memory.url) as raw:
        rows = statement(raw, f"select count(*) from fact where shown = 1 and until > {2**62}")
    assert rows == [(1,)]
    assert len(memory.facts(key="city")) == 1
    assert len(memory.facts.history("city")) == 17


def test_verifying_finds_facts_that_are_not_what_is_stated(memory: Memory) -> None:
    said = memory.remember("I live in B")
    facts = memory.facts
    facts.state("city", "A", valid_from=day(1))
    facts.state("city", "B", valid_from=day(2), context=[said.id])
    facts.close("city", at=day(5))
    facts.extract(lambda *_: [], records=[said.id])
    assert memory.verify().ok
    for damage, problem in (
        ("update fact set until = until + 1 where shown = 1", "2 fact(s) with other dates"),
        ("delete from fact", "1 end(s) of facts"),
        ("insert into fact select ws, 99, 1, 1, 1, 1, 1, 0, 1, 0 from workspace where name = 'alex'",
         "1 fact(s) stated by no record"),
        ("update fact_seen set record = 98", "1 mark(s) of extraction"),
    ):  # fmt: skip
        with connected(memory.url) as raw:
            statement(raw, damage)
        assert any(one.startswith(problem) for one in memory.verify().problems), problem


# canary


def test_no_path_of_a_fact_leaves_a_trace_of_it(
    memory: Memory, opened: Callable[..., Memory]
) -> None:
    """Key, value, subject and sensitivity all carry the canary; so do supports, ends and what waits."""
    canary = "canaryqzxv"
    said = memory.remember(f"My {canary} is {canary}", thread="t", subject=canary)
    facts = memory.facts
    for at, more in enumerate(
        (
            {"valid_from": day(1)},
            {"valid_from": day(3)},
            {"valid_from": day(2), "valid_to": day(8)},
            {"inferred": True},
            {"inferred": True, "sensitivity": f"about {canary}"},
        )
    ):
        facts.state(
            f"k{at} {canary}", f"v {canary}", subject=f"s {canary}", context=[said.id], **more
        )  # type: ignore[arg-type] # as said
        facts.state("plain", f"{canary}{at}", valid_from=day(at), context=[said.id])
    facts.close("plain", at=day(9), context=[said.id])
    reply = memory.record(f"noted {canary}", context=[one.id for one in facts()])
    memory.index()
    assert len(memory.scan(canary)) > 10  # the scan finds it where it is
    receipt = memory.forget(ids=[said.id], scrub=True)
    assert reply.id in receipt.ids
    report = memory.scan(canary)
    assert report.clean or report.not_looked_at, str(report)
    assert not report.places
    assert not report.files
    assert facts() == facts.waiting() == facts.history("plain") == []
    with connected(memory.url) as raw:
        rows = rows_of(raw)
    assert not rows["fact"] + rows["fact_end"] + rows["fact_seen"] + rows["fact_refused"]
    assert canary not in str(receipt) + str(memory.ledger())
    assert memory.verify().ok


# against a replay of every day


@dataclass
class Told:
    """A statement as the test knows it, with what is said to have ended it: (record, day)."""

    record: int
    key: str
    value: str
    day: int
    ends: list[tuple[int, int]] = field(default_factory=list)


LAST = 9


def replayed(told: list[Told], living: set[int], *, many: bool) -> list[tuple[Any, ...]]:
    """Live through the days one by one; return (value, first record, from, until) of each fact."""
    done: list[list[Any]] = []
    open_: list[list[Any]] = []

    def close(today: int) -> None:
        for one in list(open_):
            ends = {at for said in one[4] for by, at in said.ends if by in {0, *living}}
            if any(at <= today for at in ends):
                one[3] = today
                open_.remove(one)

    for today in range(LAST + 1):
        close(today)
        for said in sorted(told, key=lambda one: one.record):
            if said.day != today or said.record not in living:
                continue
            same = [one for one in open_ if one[0] == said.value]
            if same:
                same[0][4].append(said)
                continue
            if not many:
                for one in open_:
                    one[3] = today
                open_.clear()
            fact = [said.value, said.record, today, None, [said]]
            done.append(fact)
            open_.append(fact)
        # What was said to end the day on which it began never held.
        close(today)
    return [tuple(one[:4]) for one in done]


KEYS = ("city", "dog")
ACTS = st.one_of(
    st.tuples(
        st.just("state"),
        st.sampled_from(KEYS),
        st.sampled_from("ABC"),
        st.integers(0, LAST),
        st.integers(0, 3),
    ),
    st.tuples(
        st.just("close"),
        st.sampled_from(KEYS),
        st.sampled_from(("A", "B", None)),
        st.integers(0, LAST),
        st.integers(0, 3),
    ),
    st.tuples(st.just("forget"), st.integers(0, 3)),
    st.tuples(st.just("erase"), st.integers(0, 8)),
    st.tuples(st.just("suppress"), st.integers(0, 8)),
    st.tuples(st.just("restore"), st.integers(0, 2)),
)


class Replay:
    """One run: acts on a memory, and what the test keeps of them."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.told: list[Told] = []
        self.sources = [memory.remember(f"source {n}").id for n in range(4)]
        self.receipts: list[Any] = []
        memory.facts.declare("dog")

    def living(self) -> set[int]:
        return {one.id for one in self.memory.export()}

    def context(self, source: int) -> list[int]:
        return [self.sources[source]] if source else []

    def state(self, key: str, value: str, at: int, source: int) -> None:
        if source and self.sources[source] not in self.living():
            return
        id_ = self.memory.facts.state(key, value, valid_from=day(at), context=self.context(source))
        if all(one.record != id_ for one in self.told):
            self.told.append(Told(id_, key, value, at))

    def close(self, key: str, value: str | None, at: int, source: int) -> None:
        living = self.living()
        if source and self.sources[source] not in living:
            return
        self.memory.facts.close(key, value, at=day(at), context=self.context(source))
        fresh = self.living() - living
        if source and not fresh:
            return  # nothing to close, or it was said before
        closer = max(fresh) if source else 0
        facts = [one for one in self.facts(key, living) if one[2] <= at and value in {None, one[0]}]
        newest = {one[0] if key == "dog" else "": one for one in facts}
        for one in newest.values():
            for said in self.of(key, one, living):
                said.ends.append((closer, at))

    def of(self, key: str, fact: tuple[Any, ...], living: set[int]) -> list[Told]:
        """Return the statements of a fact: all of its value until it ended."""
        until = LAST + 1 if fact[3] is None else fact[3]
        same = [one for one in self.told if one.key == key and one.value == fact[0]]
        return [
            one
            for one in same
            if one.record in living and (one.record == fact[1] or fact[2] <= one.day < until)
        ]

    def facts(self, key: str, living: set[int]) -> list[tuple[Any, ...]]:
        told = [one for one in self.told if one.key == key]
        return replayed(told, living, many=key == "dog")

    def forget(self, source: int) -> None:
        if self.sources[source] in self.living():
            self.memory.forget(ids=[self.sources[source]], scrub=False)

    def pick(self, at: int) -> list[int]:
        living = self.living()
        ids = [one.record for one in self.told if one.record in living]
        return ids[at : at + 1]

    def erase(self, at: int) -> None:
        if ids := self.pick(at):
            self.memory.forget(ids=ids, scrub=False)

    def suppress(self, at: int) -> None:
        if ids := self.pick(at):
            self.receipts.append(self.memory.forget(ids=ids, mode="suppress", scrub=False))

    def restore(self, at: int) -> None:
        if at < len(self.receipts):
            self.memory.restore(self.receipts.pop(at))

    def check(self) -> None:
        living = self.living()
        for key in KEYS:
            wanted = self.facts(key, living)
            found = [
                (one.value, one.id, one.valid_from, one.valid_to)
                for one in self.memory.facts.history(key)
            ]
            assert found == [
                (value, id_, day(since), None if until is None else day(until))
                for value, id_, since, until in wanted
            ]
            for moment in range(LAST + 1):
                assert [one.id for one in self.memory.facts(day(moment), key)] == [
                    one[1]
                    for one in wanted
                    if one[2] <= moment and (one[3] is None or moment < one[3])
                ]


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(acts=st.lists(ACTS, min_size=4, max_size=14))
def test_facts_are_what_living_through_every_statement_left_gives(
    url: str, acts: list[tuple[Any, ...]]
) -> None:
    emptied(url)
    with Memory.open(url, embedder=None, clock=lambda: 1_800_000_000_000_000) as memory:
        replay = Replay(memory.workspace("alex"))
        for name, *arguments in acts:
            getattr(replay, name)(*arguments)
            replay.check()
        assert replay.memory.verify().ok
