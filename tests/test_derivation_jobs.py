"""What a forget puts off is made anew later, once, in any process, after any crash, or never."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier

import pytest
from lines import run, values
from raw_tables import connected, rows_of

from dellm import Atom, Made, Many, Memory, NotFound, NothingMatched, Rebuilt, Record, depth

SECRET = "My door code is canaryqzxv."
TEA = "I like tea."
OSLO = "I live in Oslo."


def joined(sources: Sequence[Record]) -> str:
    """Return what the worst summarizer would: all that its sources say."""
    assert "canaryqzxv" not in "".join(one.text for one in sources)
    return "said: " + " ".join(one.text for one in sources)


def leaking(sources: Sequence[Record]) -> str:
    return "said: " + " ".join(one.text for one in sources)


@pytest.fixture
def three(memory: Memory) -> Memory:
    """Return a memory of three messages, 1 to 3, the second a secret, with a derivation."""
    memory.derivation("digest")(leaking)
    for text in (TEA, SECRET, OSLO):
        memory.remember(text, thread="t")
    return memory


def test_what_is_put_off_is_in_no_read_and_is_made_anew_later(three: Memory, url: str) -> None:
    old = three.derive("digest", sources=[1, 2, 3], thread="t")
    after = three.remember("And so on.", thread="t")
    receipt = three.forget("canaryqzxv", rebuild="later")
    assert (receipt.ids, dict(receipt.rebuilt), receipt.not_rebuilt, receipt.pending) == (
        (2, old.id), {}, 0, 1,
    )  # fmt: skip
    assert "still to be made anew: 1" in str(receipt)
    assert [one.id for one in three.history("t")] == [1, 3, after.id]
    assert not three.scan("canaryqzxv").places
    with connected(url) as raw:
        jobs = rows_of(raw)["rebuild_job"]
    assert len(jobs) == 1
    assert not any(word in repr(jobs) for word in ("tea", "Oslo", "said"))
    assert three.verify().ok

    seen: list[tuple[int, int]] = []
    done = three.rebuild(progress=lambda at, of: seen.append((at, of)))
    new = three.get(done.made[old.id])
    assert done == Rebuilt({old.id: new.id}, calls=1)
    assert seen == [(1, 1)]
    assert new.text == f"said: {TEA} {OSLO}"
    kept = ("thread", "kind", "role", "place", "metadata", "created_at", "model")
    assert [getattr(new, name) for name in kept] == [getattr(old, name) for name in kept]
    assert [one.id for one in three.history("t")] == [1, 3, new.id, after.id]
    assert three.context_of(new.id) == [1, 3]
    assert three.derive("digest", sources=[1, 3], thread="t") == new
    now = three.receipt(receipt.number)
    assert (dict(now.rebuilt), now.not_rebuilt, now.pending, now.rebuild_calls) == (
        {old.id: new.id}, 0, 0, 1,
    )  # fmt: skip
    assert three.receipts()[-1] == now
    assert three.rebuild() == Rebuilt()
    assert three.verify().ok
    assert three.forget(ids=[1]).ids == (1, new.id)


def test_what_has_no_function_here_is_left_to_a_process_that_has(
    url: str, opened: Callable[..., Memory]
) -> None:
    first = opened(url).workspace("alex")
    first.derivation("digest")(joined)
    first.derivation("top")(joined)
    for text in (TEA, "canaryqzxv", OSLO):
        first.remember(text)
    low = first.derivation("digest")(leaking) and first.derive("digest", sources=[1, 2])
    first.derivation("top")(leaking)
    high = first.derive("top", sources=[low.id, 3])
    other = opened(url).workspace("alex")
    other.derivation("top")(joined)
    receipt = other.forget(ids=[2])
    # What is made from what waits waits too, though its function is here.
    assert (receipt.pending, receipt.not_rebuilt, dict(receipt.rebuilt)) == (2, 0, {})
    assert other.rebuild() == Rebuilt(pending=2)
    first.derivation("digest")(joined)
    done = first.rebuild()
    assert first.get(done.made[low.id]).text == f"said: {TEA}"
    assert first.get(done.made[high.id]).text == f"said: said: {TEA} {OSLO}"
    assert first.context_of(done.made[high.id]) == [done.made[low.id], 3]
    assert other.receipt(receipt.number).rebuilt == done.made


def test_no_older_function_makes_anew_what_a_newer_one_made(
    url: str, opened: Callable[..., Memory]
) -> None:
    new, old = opened(url).workspace("alex"), opened(url).workspace("alex")
    new.derivation("digest", version=2)(leaking)
    old.derivation("digest", version=1)(leaking)
    for text in (TEA, SECRET):
        new.remember(text)
    made = new.derive("digest", sources=[1, 2])
    assert old.forget(ids=[2]).pending == 1
    assert old.rebuild().pending == 1
    assert new.get(new.rebuild().made[made.id]).metadata["version"] == 2


def test_results_of_results_are_made_in_order_and_what_else_used_them_goes(three: Memory) -> None:
    left = three.derive("digest", sources=[1, 2])
    right = three.derive("digest", sources=[2, 3])
    top = three.derive("digest", sources=[left.id, right.id, 1])
    alone = three.derive("digest", sources=[2])
    above = three.derive("digest", sources=[alone.id])
    reply = three.record("Your code is canaryqzxv.", context=[top.id])
    receipt = three.forget("canaryqzxv", rebuild="later")
    assert receipt.pending == 3
    assert {alone.id, above.id, reply.id} <= set(receipt.ids)
    done = three.rebuild()
    texts = {old: three.get(new).text for old, new in done.made.items()}
    assert texts == {
        left.id: f"said: {TEA}",
        right.id: f"said: {OSLO}",
        top.id: f"said: said: {TEA} said: {OSLO} {TEA}",
    }
    assert done.calls == 3


def test_a_later_forget_changes_what_is_still_to_be_made(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2, 3], thread="t")
    top = three.derive("digest", sources=[old.id, 1], thread="t")
    first = three.forget("canaryqzxv", rebuild="later")
    second = three.forget(ids=[3], rebuild="later")
    assert (first.pending, second.pending) == (2, 0)
    assert three.verify().ok
    done = three.rebuild()
    assert three.get(done.made[old.id]).text == f"said: {TEA}"
    assert three.context_of(done.made[top.id]) == [done.made[old.id], 1]
    assert three.receipt(first.number).rebuilt == done.made


def test_a_later_forget_of_all_that_is_left_leaves_nothing_to_be_made(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2])
    three.derive("digest", sources=[old.id])
    first = three.forget("canaryqzxv", rebuild="later")
    three.forget(ids=[1])
    assert three.rebuild() == Rebuilt()
    now = three.receipt(first.number)
    assert (now.pending, now.not_rebuilt, dict(now.rebuilt)) == (0, 2, {})
    assert three.verify().ok


def test_a_source_that_is_made_anew_meanwhile_takes_its_place_in_what_waits(three: Memory) -> None:
    low = three.derive("digest", sources=[1, 3])
    top = three.derive("digest", sources=[low.id, 2])
    three.forget("canaryqzxv", rebuild="later")
    new = three.forget(ids=[3]).rebuilt[low.id]
    done = three.rebuild()
    assert three.context_of(done.made[top.id]) == [new]
    assert three.get(done.made[top.id]).text == f"said: said: {TEA}"


def test_a_thread_that_is_forgotten_gets_nothing_back(three: Memory) -> None:
    three.remember("Of the profile.", thread="p")
    three.derive("digest", sources=[1, 2], thread="p")
    other = three.derive("digest", sources=[1, 2], thread="q")
    first = three.forget("canaryqzxv", rebuild="later")
    assert first.pending == 2
    three.forget(thread="p")
    assert set(three.rebuild().made) == {other.id}
    assert three.history("p") == []
    assert three.receipt(first.number).not_rebuilt == 1


def test_what_waits_for_a_suppressed_source_is_made_when_it_is_back(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2, 3])
    three.forget("canaryqzxv", rebuild="later")
    away = three.forget(ids=[1], mode="suppress")
    assert three.rebuild() == Rebuilt(pending=1)
    three.restore(away)
    assert three.get(three.rebuild().made[old.id]).text == f"said: {TEA} {OSLO}"


def test_one_that_is_suppressed_itself_is_not_made_anew(three: Memory) -> None:
    made = three.derive("digest", sources=[1, 2])
    away = three.forget(ids=[made.id], mode="suppress")
    receipt = three.forget("canaryqzxv", rebuild="later")
    assert (receipt.pending, set(receipt.ids)) == (0, {2, made.id})
    assert three.restore(away) == []
    assert three.rebuild() == Rebuilt()


def failing(sources: Sequence[Record]) -> str:
    raise LookupError(sources[0].text)


@pytest.mark.parametrize(
    ("make", "code", "calls"),
    [
        (failing, "LookupError", 3),
        (lambda _: None, "no text", 3),
        (lambda _: Made("  ", calls=2), "no text", 6),
    ],
    ids=["fails", "none", "blank"],
)
def test_what_fails_is_tried_again_and_then_given_up(
    make: Callable[[Sequence[Record]], str], code: str, calls: int, three: Memory, url: str
) -> None:
    low = three.derive("digest", sources=[1, 2])
    three.derivation("top")(leaking)
    top = three.derive("top", sources=[low.id, 3])
    three.derive("top", sources=[low.id])
    receipt = three.forget("canaryqzxv", rebuild="later")
    three.derivation("digest")(make)
    for attempt in (1, 2):
        done = three.rebuild()
        assert (done.failed, done.given_up, done.pending, dict(done.made)) == (1, 0, 3, {})
        with connected(url) as raw:
            jobs = [row for row in rows_of(raw)["rebuild_job"] if row[1] == low.id]
        assert (jobs[0][-3], jobs[0][-1]) == (attempt, code)
    last = three.rebuild()
    # What was to be made of it and of nothing else goes too.
    assert (last.failed, last.given_up, last.pending) == (1, 1, 0)
    assert three.get(last.made[top.id]).text == f"said: {OSLO}"
    now = three.receipt(receipt.number)
    assert (now.pending, now.not_rebuilt, now.rebuild_calls) == (0, 2, calls + 1)
    assert three.rebuild() == Rebuilt()
    assert code in [one.body["error"] for one in three.ledger() if one.action == "rebuild"]
    assert "tea" not in repr([one.body for one in three.ledger()])


def test_a_failure_that_passes_costs_nothing_but_time(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2])
    receipt = three.forget("canaryqzxv", rebuild="later")
    three.derivation("digest")(failing)
    three.rebuild()
    three.derivation("digest")(leaking)
    assert three.get(three.rebuild().made[old.id]).text == f"said: {TEA}"
    assert three.receipt(receipt.number).rebuild_calls == 2


def test_a_result_that_fails_within_the_forget_is_erased_for_good(three: Memory) -> None:
    three.derive("digest", sources=[1, 2])
    three.derivation("digest")(failing)
    receipt = three.forget("canaryqzxv")
    assert (receipt.pending, receipt.not_rebuilt, receipt.rebuild_calls) == (0, 1, 1)
    assert three.rebuild() == Rebuilt()


def test_a_memory_that_never_rests_puts_off_what_it_cannot_make(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2])

    def moving(sources: Sequence[Record]) -> str:
        three.remember(SECRET)
        return leaking(sources)

    three.derivation("digest")(moving)
    receipt = three.forget("canaryqzxv")
    assert (receipt.pending, receipt.not_rebuilt) == (1, 0)
    three.derivation("digest")(joined)
    assert three.get(three.rebuild().made[old.id]).text == f"said: {TEA}"


def test_a_source_that_goes_while_the_text_is_made_is_not_in_it(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2, 3])
    three.forget("canaryqzxv", rebuild="later")
    asked: list[int] = []

    def forgetful(sources: Sequence[Record]) -> str:
        asked.append(len(sources))
        if len(asked) == 1:
            three.forget(ids=[3])
        return leaking(sources)

    three.derivation("digest")(forgetful)
    done = three.rebuild()
    assert three.get(done.made[old.id]).text == f"said: {TEA}"
    assert (asked, done.calls) == ([2, 1], 2)
    assert not three.scan("Oslo").places


def test_a_job_that_is_dropped_while_its_text_is_made_brings_nothing_back(three: Memory) -> None:
    three.derive("digest", sources=[1, 2])
    three.forget("canaryqzxv", rebuild="later")
    three.derivation("digest")(lambda sources: (three.forget(ids=[1]), leaking(sources))[1])
    assert three.rebuild().made == {}
    assert [one.text for one in three.export()] == [OSLO]


def test_two_runs_at_once_leave_each_result_once(url: str, opened: Callable[..., Memory]) -> None:
    both = Barrier(2, timeout=20)
    memories = [opened(url).workspace("alex") for _ in range(2)]
    first = memories[0]
    first.derivation("digest")(leaking)
    for text in (TEA, SECRET, OSLO):
        first.remember(text)
    low = first.derive("digest", sources=[1, 2])
    first.derive("digest", sources=[low.id, 3])
    first.forget(ids=[2], rebuild="later")

    def together(sources: Sequence[Record]) -> str:
        if len(sources) == 1:
            both.wait()
        return joined(sources)

    for one in memories:
        one.derivation("digest")(together)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda one: one.rebuild(), memories))
    made = {old: new for one in done for old, new in one.made.items()}
    assert sum(len(one.made) for one in done) == len(made) == 2
    assert [one.id for one in first.export()] == sorted([1, 3, *made.values()])
    assert first.verify().ok


def test_what_a_relaxed_reach_spares_stays_tied_to_the_sources(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2, 3])
    reply = three.record("Very well.", context=[old.id])
    three.forget(ids=[2], reach=depth(1), rebuild="later")
    assert three.context_of(reply.id) == [1, 3]
    new = three.rebuild().made[old.id]
    assert three.dependents([1]) == [1, reply.id, new]


def test_what_was_dropped_from_a_thread_stays_dropped(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2], thread="t", kind="message")
    three.conversations.hide("t", [old.id])
    three.forget("canaryqzxv", rebuild="later")
    new = three.rebuild().made[old.id]
    assert three.search("said", by="keyword") == []
    assert three.get(new).text == f"said: {TEA}"


def test_plain_rebuilders_are_not_put_off(three: Memory) -> None:
    three.rebuilder("sum", lambda _record, sources: leaking(sources))
    old = three.record("said: all", context=[1, 2], metadata={"rebuild": "sum"})
    receipt = three.forget("canaryqzxv", rebuild="later")
    assert three.get(receipt.rebuilt[old.id]).text == f"said: {TEA}"


def test_a_record_stored_by_hand_may_ask_for_a_derivation(three: Memory) -> None:
    asks = {"rebuild": "digest", "derivation": "digest", "version": 1}
    old = three.record("all I know", context=[1, 2], metadata=asks, framework_id="mine")
    receipt = three.forget("canaryqzxv", rebuild="later")
    assert receipt.pending == 1
    assert three.get(three.rebuild().made[old.id]).text == f"said: {TEA}"


# random graphs


def own(number: int) -> str:
    """Return a word that only the record with this number is given."""
    return "w" + "".join("abcdefghij"[int(digit)] for digit in f"{number:04}")


def words(text: str) -> set[str]:
    return {one for one in text.split() if one.startswith("w")}


def grown(memory: Memory, chance: Random) -> Iterator[int]:
    """Fill a memory with messages, replies and derived texts that repeat what they were made from."""
    for number in range(1, 19):
        there = [one.id for one in memory.export()]
        parents = chance.sample(there, min(len(there), chance.choice((0, 1, 2, 3))))
        if parents and chance.random() < 0.6:
            yield memory.derive(chance.choice(("one", "two")), sources=parents).id
            continue
        said = [own(number), *(memory.get(one).text for one in parents)]
        yield memory.record(" ".join(said), context=parents).id


@pytest.mark.parametrize("seed", range(25))
def test_in_any_graph_what_comes_back_is_what_its_living_sources_say(
    seed: int, opened: Callable[..., Memory]
) -> None:
    """Against a model of its own: the words of every record, and whose they are."""
    chance = Random(seed)
    memory = opened(":memory:", embedder=None)
    fails = [0.0]

    def echo(sources: Sequence[Record]) -> str | None:
        return None if chance.random() < fails[0] else " ".join(one.text for one in sources) + " ."

    for name in ("one", "two"):
        memory.derivation(name)(echo)
    list(grown(memory, chance))
    fails[0] = 0.15
    gone: set[str] = set()
    for _ in range(4):
        there = {one.id: one for one in memory.export()}
        seeds = chance.sample(sorted(there), min(len(there), 2))
        if not seeds:
            break
        going = set(memory.dependents(seeds))
        gone |= {one.text.split()[0] for one in map(there.get, going) if one and not derived(one)}
        receipt = memory.forget(ids=seeds, rebuild=chance.choice(("now", "later", "never")))
        assert set(receipt.ids) == going
        if chance.random() < 0.5:
            memory.rebuild()
        check(memory, gone)
    for _ in range(4):
        memory.rebuild()
    assert memory.rebuild() == Rebuilt()
    assert all(one.pending == 0 for one in memory.receipts())
    check(memory, gone)


def derived(record: Record) -> bool:
    return "derivation" in record.metadata


def check(memory: Memory, gone: set[str]) -> None:
    """Nothing erased is there; what is derived says exactly what its sources say, and all of that."""
    records = {one.id: one for one in memory.export()}
    for one in records.values():
        assert not gone & words(one.text)
        if derived(one):
            sources = [records[id_] for id_ in memory.context_of(one.id)]
            assert sources
            assert words(one.text) == {word for source in sources for word in words(source.text)}
    assert memory.verify().ok


def test_a_receipt_of_before_is_read_as_it_was(three: Memory) -> None:
    with pytest.raises(NotFound):
        three.receipt(1)
    receipt = three.forget(ids=[2])
    assert (receipt.pending, receipt.to_json()["pending"]) == (0, 0)


# new versions


def test_records_of_older_versions_are_made_anew_in_bulk(three: Memory) -> None:
    three.derivation("other")(leaking)
    low = [three.derive("digest", sources=[one]) for one in (1, 2, 3)]
    top = three.derive("digest", sources=[low[0].id, low[1].id])
    beside = three.derive("other", sources=[low[2].id, 1])
    alone = three.derive("other", sources=[3])
    reply = three.record("You like tea.", context=[low[0].id])
    assert three.rederive("digest") == Rebuilt()
    three.derivation("digest", version=2)(
        lambda sources: "new: " + " ".join(one.text for one in sources)
    )
    seen: list[tuple[int, int]] = []
    done = three.rederive("digest", progress=lambda at, of: seen.append((at, of)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert (done.failed, done.pending) == (0, 0)
    there = {one.id: one for one in three.export()}
    assert reply.id not in there
    assert alone.id in there
    texts = sorted(one.text for one in there.values() if "derivation" in one.metadata)
    assert texts == sorted(
        [f"new: {one}" for one in (TEA, SECRET, OSLO, f"new: {TEA} new: {SECRET}")]
        + [f"said: new: {OSLO} {TEA}", f"said: {OSLO}"]
    )
    assert three.derive("digest", sources=[1]).text == f"new: {TEA}"
    assert {top.id, beside.id} <= set(done.made)
    assert three.rederive("digest") == Rebuilt()
    assert three.verify().ok
    three.forget("canaryqzxv")
    assert not three.scan("canaryqzxv").places
    assert three.verify().ok


def test_what_cannot_be_made_anew_of_an_older_version_stays_as_it_is(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 3])
    above = three.record("Very well.", context=[old.id])
    three.derivation("digest", version=2)(failing)
    done = three.rederive("digest")
    assert (dict(done.made), done.failed, done.pending) == ({}, 1, 1)
    assert three.get(old.id) == old
    assert three.get(above.id) == above
    assert three.receipts() == []
    three.derivation("digest", version=2)(leaking)
    assert set(three.rederive("digest").made) == {old.id}


def test_what_is_made_anew_of_an_older_version_never_sees_its_text(three: Memory) -> None:
    """The old function said what its sources did not: nothing of that is left."""
    three.derivation("digest")(lambda _: "zanzibar")
    three.derive("digest", sources=[1, 2])
    given: list[str] = []
    three.derivation("digest", version=2)(
        lambda sources: given.extend(one.text for one in sources) or "better"
    )
    three.rederive("digest")
    assert given == [TEA, SECRET]
    assert not three.scan("zanzibar").places


def test_a_source_that_goes_while_a_newer_version_is_made_takes_the_result_along(
    three: Memory,
) -> None:
    three.derive("digest", sources=[1, 2])

    def forgetful(sources: Sequence[Record]) -> str:
        three.derivation("digest", version=2)(leaking)
        three.forget("canaryqzxv")
        return "new " + leaking(sources)

    three.derivation("digest", version=2)(forgetful)
    three.rederive("digest")
    assert not three.scan("canaryqzxv").places
    assert [one.text for one in three.export()] == [TEA, OSLO, f"said: {TEA}"]
    assert three.verify().ok


def test_making_older_versions_anew_can_be_broken_off_and_repeated(three: Memory) -> None:
    for one in (1, 2, 3):
        three.derive("digest", sources=[one])
    three.derivation("digest", version=2)(leaking)

    def stop(done: int, _: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        three.rederive("digest", progress=stop)
    assert len(three.rederive("digest").made) == 1


# what must not come back


@pytest.mark.parametrize(
    ("asked", "repeated"),
    [
        ("canaryqzxv", "The code is CANARYQZXV!"),
        ("+1 (212) 867-5309", "Ring 212 867 5309 at six."),
        ("Rosa Quill", "They met ROSA  QUILL."),
        ("sam@acme.io", "Write to Sam@Acme.IO."),
    ],
)
def test_a_text_that_says_what_was_forgotten_is_not_stored_later_either(
    asked: str, repeated: str, three: Memory, url: str
) -> None:
    told = three.remember(f"It is {asked} now.")
    three.derive("digest", sources=[1, told.id])
    receipt = three.forget(asked, rebuild="later")
    three.derivation("digest")(lambda _: repeated)
    with connected(url) as raw:
        assert asked not in repr(rows_of(raw)["rebuild_job"])
    runs = [three.rebuild() for _ in range(3)]
    assert [one.failed for one in runs] == [1, 1, 1]
    assert three.receipt(receipt.number).not_rebuilt == 1
    assert not three.scan(asked).places
    # Nothing is left of it once the job is gone, not even its digest.
    with connected(url) as raw:
        assert rows_of(raw)["rebuild_job"] == []


def test_a_value_that_a_living_source_says_too_may_be_said(three: Memory) -> None:
    three.remember("Sam's is 212-867-5309.")
    told = three.remember("Mine is (212) 867-5309.")
    old = three.derive("digest", sources=[4, told.id])
    three.forget(ids=[told.id], rebuild="later")
    assert three.get(three.rebuild().made[old.id]).text == "said: Sam's is 212-867-5309."


def test_a_canary_is_nowhere_after_a_forget_that_put_off_and_a_rebuild(three: Memory) -> None:
    low = three.derive("digest", sources=[1, 2, 3], thread="t")
    three.derive("digest", sources=[low.id])
    three.index()
    # The scan finds it where it is.
    assert any({2, low.id} < set(one.ids) for one in three.scan("canaryqzxv").places)
    three.forget("canaryqzxv", rebuild="later")
    assert not three.scan("canaryqzxv").places
    three.rebuild()
    three.index()
    assert not three.scan("canaryqzxv").places
    assert three.scan("Oslo").places


def test_what_is_made_later_stands_in_checkpoints_where_the_old_one_stood(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2], thread="t")
    run(three).put(messages=Many([1, old.id, 3]), summary=Atom(known=old.id))
    three.forget("canaryqzxv", rebuild="later")
    assert values(three) == {"messages": [TEA, OSLO]}
    three.rebuild()
    text = f"said: {TEA}"
    assert values(three) == {"messages": [TEA, text, OSLO], "summary": text}
    assert three.verify().ok


def test_what_is_made_later_stands_in_no_checkpoint_that_was_deleted(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2])
    run(three, "u").put(messages=Many([1, old.id, 3]))
    three.forget("canaryqzxv", rebuild="later")
    three.checkpoints.delete_thread("u")
    assert set(three.rebuild().made) == {old.id}
    assert three.verify().ok


def test_a_newer_version_may_say_what_the_older_one_did_of_itself(three: Memory) -> None:
    three.derivation("digest")(lambda _: "Ring 212-867-5309.")
    old = three.derive("digest", sources=[1])
    three.derivation("digest", version=2)(lambda _: "Ring (212) 867-5309, please.")
    assert set(three.rederive("digest").made) == {old.id}


def test_what_a_run_sent_to_an_outside_model_is_known_whatever_came_of_it(three: Memory) -> None:
    three.derive("digest", sources=[1, 2])
    three.forget("canaryqzxv", rebuild="later")
    three.derivation("digest", model="acme/large")(failing)
    three.rebuild()
    assert [one.record for one in three.exposures()] == [1]


# against a model that knows no database


def predicted(world: dict[int, tuple[str, list[int], bool]]) -> list[str]:
    """Return the texts that derived records must have: of what their living sources say by now."""
    texts: dict[int, str] = {}
    for id_, (word, parents, is_derived) in sorted(world.items()):
        living = [texts[one] for one in parents if one in texts]
        if is_derived and living:
            texts[id_] = "said: " + " ".join(living)
        elif not is_derived:
            texts[id_] = word
    return sorted(texts[id_] for id_ in texts if world[id_][2])


@pytest.mark.parametrize("seed", range(25))
def test_all_that_can_be_made_anew_is_and_says_all_that_its_sources_say(
    seed: int, opened: Callable[..., Memory]
) -> None:
    chance = Random(seed)
    memory = opened(":memory:", embedder=None)
    memory.derivation("digest")(leaking)
    world: dict[int, tuple[str, list[int], bool]] = {}
    for number in range(1, 27):
        parents = chance.sample(sorted(world), min(len(world), chance.choice((0, 0, 2, 3))))
        if parents and chance.random() < 0.6:
            id_ = memory.derive("digest", sources=parents).id
            world.setdefault(id_, ("", parents, True))
            continue
        made = memory.record(own(number), context=parents)
        world[made.id] = (own(number), parents, False)
    now: dict[int, int] = {}  # where a record of the world is by now, once it was made anew
    for _ in range(3):
        here = {now.get(one, one): one for one in world}
        there = [one.id for one in memory.export()]
        seeds = chance.sample(there, min(len(there), 1))
        if not seeds:
            break
        taken, going = {here[one] for one in seeds}, {here[one] for one in seeds}
        for id_, (_, parents, _) in sorted(world.items()):
            if going.intersection(parents):
                going.add(id_)
        lost = taken | {one for one in going if not world[one][2]}
        world = {
            id_: (word, [one for one in parents if one not in lost], is_derived)
            for id_, (word, parents, is_derived) in world.items()
            if id_ not in lost
        }
        receipt = memory.forget(ids=seeds, rebuild=chance.choice(("now", "later")))
        now |= {here[old]: new for old, new in receipt.rebuilt.items()}
        if chance.random() < 0.4:
            pending = {now.get(one, one): one for one in world}
            now |= {pending[old]: new for old, new in memory.rebuild().made.items()}
    memory.rebuild()
    assert memory.rebuild() == Rebuilt()
    assert sorted(one.text for one in memory.export() if derived(one)) == predicted(world)
    assert memory.verify().ok


def test_many_results_are_made_by_several_runs_at_once_each_once(
    url: str, opened: Callable[..., Memory]
) -> None:
    memories = [opened(url).workspace("alex") for _ in range(3)]
    first = memories[0]
    first.derivation("digest")(leaking)
    told = first.remember(SECRET).id
    olds = []
    for number in range(12):
        low = first.derive("digest", sources=[told, first.remember(f"thing {number}").id])
        olds += [low.id, first.derive("digest", sources=[low.id]).id]
    receipt = first.forget("canaryqzxv", rebuild="later")
    for one in memories:
        one.derivation("digest")(joined)
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda one: one.rebuild(), memories))
    first.rebuild()
    made = first.receipt(receipt.number).rebuilt
    assert sorted(made) == sorted(olds)
    assert sum(len(one.made) for one in done) <= len(olds)
    there = {one.id: one.text for one in first.export() if "derivation" in one.metadata}
    assert sorted(there) == sorted(made.values())
    assert sorted(there.values()) == sorted(
        text
        for number in range(12)
        for text in (f"said: thing {number}", f"said: said: thing {number}")
    )
    assert first.verify().ok


def test_a_result_that_waits_is_not_made_once_it_is_forgotten_by_its_id(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2, 3])
    other = three.derive("digest", sources=[2, 3])
    first = three.forget("canaryqzxv", rebuild="later")
    assert three.forget(ids=[old.id]) == three.receipt(first.number)
    assert set(three.rebuild().made) == {other.id}
    assert three.verify().ok


def test_a_result_that_waits_is_not_made_once_its_thread_is_forgotten(three: Memory) -> None:
    three.derive("digest", sources=[1, 2, 3], thread="p")
    other = three.derive("digest", sources=[2, 3], thread="q")
    first = three.forget("canaryqzxv", rebuild="later")
    with pytest.raises(NothingMatched):
        three.forget("tea", thread="p")
    with pytest.raises(NothingMatched):
        three.forget(where={"status": "quarantined"}, thread="p")
    assert three.receipt(first.number).pending == 2
    assert three.forget(thread="p").number == first.number
    assert set(three.rebuild().made) == {other.id}
    assert three.verify().ok


def test_a_result_that_waits_goes_along_with_another_that_is_named(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2, 3])
    three.forget("canaryqzxv", rebuild="later")
    three.forget(ids=[1, old.id])
    assert (three.rebuild(), three.verify().ok) == (Rebuilt(), True)


def test_nothing_is_made_of_which_the_time_is_over(url: str, opened: Callable[..., Memory]) -> None:
    clock = [1_000]
    memory = opened(url, clock=lambda: clock[0]).workspace("alex")
    asked: list[int] = []
    memory.derivation("digest")(lambda sources: asked.append(len(sources)) or "text")
    memory.remember(TEA, retention_until=2_000)
    for text in (SECRET, OSLO):
        memory.remember(text)
    memory.derive("digest", sources=[1, 2, 3])
    memory.forget("canaryqzxv", rebuild="later")
    clock[0] = 3_000
    assert memory.rebuild().given_up == 1
    assert asked == [3]


@pytest.mark.parametrize("rebuild", ["now", "later"])
def test_what_a_redaction_leaves_of_a_source_is_a_source(three: Memory, rebuild: str) -> None:
    long = three.remember("Call 555-010-2030 or mail ann@example.org, canaryqzxv said.")
    old = three.derive("digest", sources=[1, long.id])
    waiting = three.derive("digest", sources=[3, long.id])
    three.forget(ids=[3], rebuild="later")
    receipt = three.forget("canaryqzxv", mode="redact", rebuild=rebuild)
    made = {**receipt.rebuilt, **three.rebuild().made}
    assert set(made) == {old.id, waiting.id}
    left = receipt.redacted[long.id]
    assert three.context_of(made[old.id]) == [1, left]
    assert three.context_of(made[waiting.id]) == [left]
    for id_ in made.values():
        assert "ann@example.org" in three.get(id_).text
    assert not three.scan("canaryqzxv").places
    assert three.verify().ok
