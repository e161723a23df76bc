"""What was made from forgotten and other sources is made anew from the others, else it goes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from threading import Barrier, BrokenBarrierError

import pytest

from dellm import (
    Assistant,
    InvalidInput,
    Made,
    Memory,
    Plan,
    PlanChanged,
    Record,
    depth,
    ledger,
    receipts,
)
from dellm.models import ExtractiveReader

SECRET = "My door code is canaryqzxv."
TEA = "I like tea."
OSLO = "I live in Oslo."


def joined(record: Record, sources: Sequence[Record]) -> str:
    """Return what a summarizer would: all that its sources say."""
    assert "canaryqzxv" not in "".join(one.text for one in sources)
    return "said: " + " ".join(one.text for one in sources)


def summary(memory: Memory, text: str, context: Sequence[int], **details: object) -> Record:
    details.setdefault("metadata", {"rebuild": "sum", "n": 1})
    return memory.record(text, context=context, kind="summary", thread="t", **details)  # type: ignore[arg-type] # any detail


@pytest.fixture
def three(memory: Memory) -> Memory:
    """Return a memory of three messages, 1 to 3, the second a secret, with a rebuilder."""
    memory.rebuilder("sum", joined)
    for text in (TEA, SECRET, OSLO):
        memory.remember(text, thread="t")
    return memory


def test_a_summary_is_rebuilt_from_the_sources_that_stay(three: Memory) -> None:
    old = summary(
        three, "said: canaryqzxv tea Oslo", [1, 2, 3], framework_id="s", payload=b"as it was"
    )
    later = three.remember("And so on.", thread="t")
    plan = three.plan("canaryqzxv")
    assert [(one.id, one.trace) for one in plan.rebuilds] == [(old.id, (2, old.id))]
    assert "1 of them to be rebuilt" in str(plan)
    assert "then rebuilt from what stays" in str(plan)
    assert plan.explain(old.id).endswith("to be rebuilt")

    receipt = three.forget(plan)
    new = three.get(receipt.rebuilt[old.id])
    assert (receipt.ids, receipt.not_rebuilt) == ((2, 4), 0)
    assert new.text == f"said: {TEA} {OSLO}"
    assert three.context_of(new.id) == [1, 3]
    kept = ("thread", "kind", "role", "place", "framework_id", "payload", "metadata", "created_at")
    assert [getattr(new, name) for name in kept] == [getattr(old, name) for name in kept]
    assert new.version == 2
    assert [one.id for one in three.history("t")] == [1, 3, new.id, later.id]
    assert not three.scan("canaryqzxv").places
    assert three.search("tea", by="keyword")[0].record.id in {1, new.id}
    assert three.verify().ok


def test_a_rebuilt_summary_is_forgotten_and_rebuilt_like_any_other(three: Memory) -> None:
    old = summary(three, "said: all", [1, 2, 3])
    new = three.forget("canaryqzxv").rebuilt[old.id]
    receipt = three.forget(ids=[3])
    assert three.get(receipt.rebuilt[new]).text == f"said: {TEA}"
    last = three.forget(ids=[1])
    assert (dict(last.rebuilt), last.not_rebuilt) == ({}, 0)
    assert list(three.export()) == []


def test_what_was_made_from_the_old_version_goes(three: Memory) -> None:
    old = summary(three, "said: all", [1, 2, 3])
    reply = three.record("Your code is canaryqzxv!", context=[old.id])
    other = three.record("Tea, then.", context=[1])
    receipt = three.forget("door code")
    assert receipt.ids == (2, old.id, reply.id)
    assert [one.id for one in three.export()] == [1, 3, other.id, receipt.rebuilt[old.id]]


def test_a_summary_of_summaries_is_rebuilt_after_them(three: Memory) -> None:
    first = summary(three, "said: one", [1, 2])
    second = summary(three, "said: two", [first.id, 3])
    third = summary(three, "said: three", [second.id])
    receipt = three.forget("canaryqzxv")
    one, two, last = (three.get(receipt.rebuilt[old.id]) for old in (first, second, third))
    assert one.text == f"said: {TEA}"
    assert two.text == f"said: {one.text} {OSLO}"
    assert last.text == f"said: {two.text}"
    assert three.context_of(two.id) == [one.id, 3]
    assert three.context_of(last.id) == [two.id]
    # ... and stay tied: all of it follows the source of the first.
    assert three.forget(ids=[3]).ids == (3, two.id, last.id)


def refused(_: Record, __: Sequence[Record]) -> str | None:
    return None


def failing(_: Record, sources: Sequence[Record]) -> str:
    raise RuntimeError(sources[0].text)


FAILURES: list[Callable[[Record, Sequence[Record]], object]] = [
    refused,
    failing,
    lambda _record, _sources: " \n",
    lambda _record, _sources: 7,
    lambda record, _sources: record.text,
    lambda _record, _sources: "The code: CANARYQZXV",
]


@pytest.mark.parametrize("make", FAILURES, ids=range(len(FAILURES)))
def test_a_summary_that_cannot_be_rebuilt_goes(
    make: Callable[[Record, Sequence[Record]], str | None], three: Memory
) -> None:
    three.rebuilder("sum", make)
    old = summary(three, "said: canaryqzxv", [1, 2, 3])
    above = summary(three, "said: of the summary", [old.id])
    receipt = three.forget("canaryqzxv")
    assert (receipt.ids, dict(receipt.rebuilt), receipt.not_rebuilt) == (
        (2, old.id, above.id), {}, 2,
    )  # fmt: skip
    assert "could not be rebuilt: 2" in str(receipt)
    assert "canaryqzxv" not in json.dumps(receipt.to_json())
    assert [one.id for one in three.export()] == [1, 3]


def test_one_that_fails_leaves_the_others_to_be_rebuilt(three: Memory) -> None:
    three.rebuilder("none", refused)
    lost = summary(three, "said: one", [1, 2], metadata={"rebuild": "none"})
    kept = summary(three, "said: two", [lost.id, 3])
    receipt = three.forget("canaryqzxv")
    assert three.get(receipt.rebuilt[kept.id]).text == f"said: {OSLO}"
    assert three.context_of(receipt.rebuilt[kept.id]) == [3]
    assert receipt.not_rebuilt == 1


def test_a_new_text_with_a_number_of_the_erased_message_is_not_stored(memory: Memory) -> None:
    memory.rebuilder("sum", lambda _record, _sources: "Ring 212 867 5309 at six.")
    memory.remember("My phone is +1 (212) 867-5309.", thread="t")
    memory.remember(TEA, thread="t")
    old = summary(memory, "said: a phone", [1, 2])
    assert memory.forget(ids=[1]).not_rebuilt == 1
    # Where a source that stays says it too, it may come from there.
    memory.remember("Sam's is 212-867-5309.", thread="t")
    memory.remember("My phone is +1 (212) 867-5309.", thread="t")
    again = summary(memory, "said: a phone", [4, 5])
    assert memory.forget(ids=[5]).rebuilt == {again.id: 7}
    assert old.id not in {one.id for one in memory.export()}


def test_a_payload_or_metadata_with_the_value_does_not_come_along(three: Memory) -> None:
    tagged = summary(three, "said: a", [1, 2], metadata={"rebuild": "sum", "of": "canaryqzxv"})
    packed = summary(three, "said: b", [1, 2], payload=b'{"x": "canaryqzxv"}')
    receipt = three.forget("canaryqzxv")
    assert (set(receipt.rebuilt), receipt.not_rebuilt) == ({tagged.id}, 1)
    assert three.get(receipt.rebuilt[tagged.id]).metadata == {"rebuild": "sum"}
    assert packed.id in receipt.ids
    assert not three.scan("canaryqzxv").places


def test_a_summary_that_says_the_value_itself_is_rebuilt_where_it_has_it_from_a_source(
    three: Memory,
) -> None:
    old = summary(three, "said: canaryqzxv and tea", [1, 2])
    above = summary(three, "of that: canaryqzxv", [old.id, 3])
    made_up = summary(three, "said: canaryqzxv, out of nowhere", [1, 3])
    plan = three.plan("canaryqzxv")
    assert [(one.id, one.trace) for one in plan.rebuilds] == [
        (old.id, (2, old.id)), (above.id, (old.id, above.id)),
    ]  # fmt: skip
    receipt = three.forget(Plan.from_json(plan.to_json()))
    assert set(receipt.rebuilt) == {old.id, above.id}
    assert made_up.id in receipt.ids
    assert three.get(receipt.rebuilt[above.id]).text == f"said: said: {TEA} {OSLO}"


def test_a_summary_that_is_named_goes_though_what_it_was_made_from_goes_too(three: Memory) -> None:
    old = summary(three, "said: canaryqzxv and tea", [1, 2])
    assert three.plan(ids=[2, old.id]).rebuilds == ()
    assert three.plan("canaryqzxv", include=[old.id]).rebuilds == ()
    assert three.plan(thread="t").rebuilds == ()
    assert [one.id for one in three.plan("canaryqzxv", thread="t").rebuilds] == [old.id]


@pytest.mark.parametrize("answers", [("yes",), ("all except 3", "yes"), ("only 2 and 4",)], ids=str)
def test_an_assistant_has_it_rebuilt_whatever_it_was_asked_for_and_told(
    three: Memory, answers: Sequence[str]
) -> None:
    old = summary(three, "said: canaryqzxv and tea", [1, 2])
    chat = Assistant(three, ExtractiveReader(), thread="t")
    assert chat.send('Forget canaryqzxv. Also forget "Oslo".').pending
    for answer in answers:
        chat.send(answer)
    assert [one.text for one in three.history("t") if one.kind == "summary"] == [f"said: {TEA}"]
    assert old.id not in [one.id for one in three.history("t")]


def test_nothing_is_rebuilt_without_a_source_or_a_function(three: Memory) -> None:
    alone = summary(three, "said: a code", [2])
    nobody = summary(three, "said: a", [1, 2], metadata={"rebuild": "another"})
    plain = summary(three, "said: a", [1, 2], metadata=None)
    plan = three.plan(ids=[2])
    assert plan.rebuilds == ()
    assert "rebuilt" not in str(plan)
    receipt = three.forget(plan)
    assert receipt.ids == (2, alone.id, nobody.id, plain.id)
    assert (dict(receipt.rebuilt), receipt.not_rebuilt) == ({}, 0)
    assert "rebuilt" not in str(receipt)


def test_a_match_and_its_copies_are_not_rebuilt(three: Memory) -> None:
    old = summary(three, "said: canaryqzxv", [1, 2])
    copy = three.remember(
        "said: canaryqzxv", thread="u", copy_of=old.id, metadata={"rebuild": "sum"}
    )
    receipt = three.forget(ids=[old.id])
    assert (receipt.ids, dict(receipt.rebuilt)) == ((old.id, copy.id), {})


def test_copies_of_a_summary_are_rebuilt_alike_and_stay_copies(three: Memory) -> None:
    asked: list[int] = []

    def counted(record: Record, sources: Sequence[Record]) -> str:
        asked.append(record.id)
        return joined(record, sources)

    three.rebuilder("sum", counted)
    old = summary(three, "said: all", [1, 2])
    copy = three.remember("said: all", thread="u", copy_of=old.id, metadata={"rebuild": "sum"})
    receipt = three.forget(ids=[2])
    texts = [three.get(receipt.rebuilt[one]).text for one in (old.id, copy.id)]
    assert (texts, asked) == ([f"said: {TEA}"] * 2, [old.id])
    assert three.forget(ids=[receipt.rebuilt[copy.id]]).ids == tuple(receipt.rebuilt.values())


def test_suppressing_rebuilds_nothing_and_what_is_suppressed_is_not_rebuilt(three: Memory) -> None:
    old = summary(three, "said: all", [1, 2, 3])
    plan = three.plan(ids=[3], mode="suppress")
    assert plan.rebuilds == ()
    receipt = three.forget(plan)
    assert (receipt.ids, dict(receipt.rebuilt)) == ((3, old.id), {})
    assert dict(three.forget("canaryqzxv").rebuilt) == {}
    assert three.restore(receipt) == [3]


def test_a_suppressed_or_expired_source_is_no_source(opened: Callable[..., Memory]) -> None:
    clock = [1_000_000]
    memory = opened(":memory:", embedder=None, clock=lambda: clock[0])
    memory.rebuilder("sum", joined)
    memory.remember(TEA, retention_until=2_000_000)
    memory.remember(SECRET)
    memory.remember(OSLO)
    old = summary(memory, "said: all", [1, 2, 3])
    clock[0] = 3_000_000
    receipt = memory.forget(ids=[2])
    assert memory.get(receipt.rebuilt[old.id]).text == f"said: {OSLO}"


def test_redaction_rebuilds_from_all_sources_less_what_was_taken_out(three: Memory) -> None:
    old = summary(three, "said: all", [1, 2, 3])
    receipt = three.forget("canaryqzxv", mode="redact")
    (left,) = receipt.redacted.values()
    rest = SECRET.replace("canaryqzxv", "[redacted]")
    assert three.get(left).text == rest
    assert three.get(receipt.rebuilt[old.id]).text == f"said: {TEA} {rest} {OSLO}"
    assert three.context_of(receipt.rebuilt[old.id]) == [1, left, 3]


def test_what_a_relaxed_reach_spares_is_tied_to_the_new_version(three: Memory) -> None:
    old = summary(three, "said: all", [1, 2, 3])
    reply = three.record("Very well.", context=[old.id])
    receipt = three.forget(ids=[2], reach=depth(1))
    new = receipt.rebuilt[old.id]
    assert three.context_of(reply.id) == [new]
    assert three.dependents([1]) == [1, reply.id, new]


def test_a_plan_kept_at_rest_rebuilds_what_it_says(three: Memory) -> None:
    old = summary(three, "said: all", [1, 2, 3])
    said = json.loads(json.dumps(three.plan("canaryqzxv").to_json()))
    assert said["rebuilt"] == [{"id": old.id, "trace": [2, old.id]}]
    plan = Plan.from_json(said)
    assert [one.id for one in plan.rebuilds] == [old.id]
    receipt = three.forget(plan)
    assert three.get(receipt.rebuilt[old.id]).text == f"said: {TEA} {OSLO}"
    assert three.forget(plan) == receipt
    said["rebuilt"] = [{"id": 99}]
    with pytest.raises(InvalidInput):
        Plan.from_json(said)


def test_a_plan_made_where_no_function_was_registered_rebuilds_nothing(
    opened: Callable[..., Memory], sqlite_url: str
) -> None:
    with opened(sqlite_url, embedder=None) as other:
        other.remember(TEA)
        other.remember(SECRET)
        summary(other, "said: all", [1, 2])
        plan = other.plan(ids=[2])
    memory = opened(sqlite_url, embedder=None)
    memory.rebuilder("sum", joined)
    receipt = memory.forget(plan)
    assert (receipt.ids, dict(receipt.rebuilt), receipt.not_rebuilt) == ((2, 3), {}, 0)


def test_the_function_runs_outside_of_any_transaction_and_the_memory_may_move(
    three: Memory,
) -> None:
    old = summary(three, "said: all", [1, 2, 3])
    asked: list[int] = []

    def moving(record: Record, sources: Sequence[Record]) -> str:
        asked.append(len(sources))
        if len(asked) == 1:
            three.remember(SECRET, thread="t")
        return joined(record, sources)

    three.rebuilder("sum", moving)
    receipt = three.forget("canaryqzxv")
    # What was said meanwhile is erased as well, and the text was made again.
    assert (receipt.ids, asked) == ((2, old.id, 5), [2, 2])
    assert three.get(receipt.rebuilt[old.id]).text == f"said: {TEA} {OSLO}"


def test_two_forgets_at_once_leave_a_summary_of_what_neither_takes(three: Memory) -> None:
    old = summary(three, "said: all", [1, 2, 3])
    both = Barrier(2, timeout=20)

    def together(record: Record, sources: Sequence[Record]) -> str:
        if record.id == old.id and len(sources) == 2:
            with suppress(BrokenBarrierError):
                both.wait()
                both.abort()
        return "said: " + " ".join(one.text for one in sources)

    three.rebuilder("sum", together)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: three.forget(ids=[one]), (2, 3)))
    assert [one.text for one in three.export()] == [TEA, f"said: {TEA}"]
    assert three.verify().ok


def test_a_memory_that_never_rests_loses_the_summary_but_not_the_forget(three: Memory) -> None:
    summary(three, "said: all", [1, 2, 3])
    three.rebuilder("sum", lambda _record, _sources: three.remember(SECRET).thread or "said: tea")
    receipt = three.forget("canaryqzxv")
    assert (dict(receipt.rebuilt), receipt.not_rebuilt) == ({}, 1)
    assert not three.scan("canaryqzxv").places


def test_a_source_that_is_forgotten_meanwhile_is_in_no_new_version(three: Memory) -> None:
    old = summary(three, "said: all", [1, 2, 3])
    plan = three.plan("canaryqzxv")
    nested = [True]

    def forgetful(record: Record, sources: Sequence[Record]) -> str:
        if nested.pop():
            nested.append(False)
            three.forget(ids=[3])
        nested.append(False)
        return joined(record, sources)

    three.rebuilder("sum", forgetful)
    with pytest.raises(PlanChanged):
        three.forget(plan)
    three.forget("canaryqzxv")
    assert [one.text for one in three.export()] in ([TEA, f"said: {TEA}"], [TEA])
    assert old.id not in {one.id for one in three.export()}


def test_a_transaction_that_fails_leaves_all_as_it_was(
    three: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = summary(three, "said: all", [1, 2, 3])
    before = list(three.export())
    with monkeypatch.context() as broken:
        broken.setattr(ledger, "append", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            three.forget("canaryqzxv")
    assert list(three.export()) == before
    assert three.get(three.forget("canaryqzxv").rebuilt[old.id]).text == f"said: {TEA} {OSLO}"


def test_all_workspaces_of_one_open_memory_share_the_functions(memory: Memory) -> None:
    memory.workspace("ann").rebuilder("sum", joined)
    bob = memory.workspace("bob")
    for text in (TEA, SECRET):
        bob.remember(text)
    old = summary(bob, "said: all", [1, 2])
    assert bob.get(bob.forget(ids=[2]).rebuilt[old.id]).text == f"said: {TEA}"


@pytest.mark.parametrize(
    ("name", "make"), [("", joined), (" ", joined), (None, joined), ("sum", "joined")]
)
def test_a_function_needs_a_name_and_a_function(
    name: str, make: Callable[[Record, Sequence[Record]], str], opened: Callable[..., Memory]
) -> None:
    with pytest.raises(InvalidInput):
        opened(":memory:", embedder=None).rebuilder(name, make)


# random graphs


def own(number: int) -> str:
    """Return a word that only the record with this number is given."""
    return "w" + "".join("abcdefghij"[int(digit)] for digit in f"{number:04}")


def grown(memory: Memory, chance: Random) -> None:
    """Fill a memory with messages, replies and summaries that repeat all they were made from."""
    for number in range(1, 26):
        earlier = range(1, number)
        parents = chance.sample(earlier, min(len(earlier), chance.choice((0, 0, 1, 2, 4))))
        if earlier and chance.random() < 0.1:
            old = memory.get(chance.choice(earlier))
            memory.remember(old.text, copy_of=old.id, metadata=dict(old.metadata))
            continue
        asks = chance.choice(({}, {"rebuild": "sum"}, {"rebuild": "sum"}, {"rebuild": "never"}))
        words = [own(number), *(memory.get(one).text for one in parents)]
        memory.record(" ".join(words), context=parents, metadata=asks)


@pytest.mark.parametrize("seed", range(60))
def test_in_any_graph_nothing_of_the_forgotten_is_left_and_all_else_is(
    seed: int, opened: Callable[..., Memory]
) -> None:
    chance = Random(seed)
    memory = opened(":memory:", embedder=None)
    grown(memory, chance)
    memory.rebuilder("never", refused)
    memory.rebuilder(
        "sum",
        lambda _, some: None if chance.random() < 0.2 else " ".join(one.text for one in some),
    )
    before = stored(memory)
    for _ in range(3):
        seeds = chance.sample(sorted(before), min(len(before), 2))
        if not seeds:
            return
        going = set(memory.dependents(seeds))
        plan = memory.plan(ids=seeds)
        receipt = memory.forget(plan)
        after, new = stored(memory), set(receipt.rebuilt.values())
        assert set(receipt.ids) == going
        assert after.keys() == (before.keys() - going) | new
        left = before.keys() - going
        assert {id_: after[id_] for id_ in left} == {id_: before[id_] for id_ in left}
        lost = {own(id_) for id_ in going}
        assert not any(lost.intersection(record.text.split()) for record, _ in after.values())
        for id_ in new:
            record, context = after[id_]
            said = {word for one in context for word in after[one][0].text.split()}
            assert not context or said == set(record.text.split())
        assert set(receipt.rebuilt) <= {one.id for one in plan.rebuilds} <= going - set(seeds)
        assert receipt.not_rebuilt == len(plan.rebuilds) - len(new)
        assert memory.verify().ok
        before = after


def stored(memory: Memory) -> dict[int, tuple[Record, list[int]]]:
    """Return every record with its context, by id."""
    return {one.id: (one, memory.context_of(one.id)) for one in memory.export()}


# the model calls that it took


def test_a_receipt_counts_the_model_calls_of_all_that_was_tried(three: Memory) -> None:
    three.rebuilder("many", lambda _record, sources: Made(f"said: {sources[0].text}", calls=3))
    three.rebuilder("nothing", lambda _record, _sources: Made(None, calls=5))
    three.rebuilder("failing", failing)
    for name in ("sum", "many", "nothing", "failing"):
        summary(three, f"said: {name}", [1, 2], metadata={"rebuild": name})
    summary(three, "said: alone", [2], metadata={"rebuild": "many"})
    receipt = three.forget(ids=[2])
    assert (receipt.rebuild_calls, len(receipt.rebuilt), receipt.not_rebuilt) == (10, 2, 2)
    assert "model calls to rebuild: 10" in str(receipt)
    assert receipt.to_json()["rebuild_calls"] == 10
    assert "said" not in repr(Made("said"))
    assert three.forget(ids=[3]).rebuild_calls == 0


def test_calls_whose_texts_the_memory_moved_away_from_are_counted_too(three: Memory) -> None:
    summary(three, "said: all", [1, 2, 3])
    three.rebuilder("sum", lambda _record, _sources: three.remember(SECRET).thread or "said: tea")
    assert three.forget("canaryqzxv").rebuild_calls == 3


@pytest.mark.parametrize("made", [Made(" "), Made(7), Made("said: tea", -1), Made("said: x", None)])  # type: ignore[arg-type] # what no checker allows
def test_a_count_that_is_none_is_one_call(made: Made, three: Memory) -> None:
    three.rebuilder("sum", lambda _record, _sources: made)
    summary(three, "said: all", [1, 2, 3])
    receipt = three.forget("canaryqzxv")
    assert receipt.rebuild_calls == 1
    assert len(receipt.rebuilt) == (made.calls != 1)
    assert not three.scan("canaryqzxv").places


def test_an_entry_from_before_calls_were_counted_reads_as_none() -> None:
    body: dict[str, object] = {"reach": "strict", "relaxed": False, "ids": [], "matched": 0}
    body |= {"redacted": {}, "spared": 0, "held": [], "exposures": {}, "rows": {}}
    body |= {"out_of_reach": [], "digest": ""}
    entry = ledger.LedgerEntry(1, 0, "erase", body, "", "")
    assert receipts.from_entry(entry, "alex", set()).rebuild_calls == 0
