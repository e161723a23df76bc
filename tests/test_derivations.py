"""Texts made from records by a registered function follow these: forgotten and made anew with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier

import pytest

from dellm import (
    ContextForgotten,
    CredentialRefused,
    DellmError,
    DerivationError,
    InvalidInput,
    Made,
    Memory,
    NotFound,
    Record,
    Status,
)

SECRET = "My door code is canaryqzxv."
TEA = "I like tea."
OSLO = "I live in Oslo."


def joined(sources: Sequence[Record]) -> str:
    """Return what the worst summarizer would: all that its sources say."""
    return "said: " + " ".join(one.text for one in sources)


@pytest.fixture
def three(memory: Memory) -> Memory:
    """Return a memory of three messages, 1 to 3, the second a secret, with a derivation."""
    memory.derivation("digest")(joined)
    for text in (TEA, SECRET, OSLO):
        memory.remember(text, thread="t")
    return memory


def test_a_result_is_a_record_with_its_sources_as_parents(three: Memory) -> None:
    @three.derivation("profile", version=3, model="acme/large")
    def profile(sources: Sequence[Record]) -> str:
        return "likes " + sources[0].text

    assert profile([three.get(1)]) == "likes I like tea."
    made = three.derive("profile", sources=[3, 1], thread="p", kind="fact")
    assert made == three.get(made.id)
    assert (made.text, made.thread, made.kind, made.role) == (
        "likes I live in Oslo.", "p", "fact", "assistant",
    )  # fmt: skip
    assert (made.metadata["derivation"], made.metadata["version"]) == ("profile", 3)
    assert made.model == "acme/large"
    assert three.context_of(made.id) == [3, 1]
    assert three.dependents([1]) == [1, made.id]
    assert three.search("likes", by="keyword")[0].record.id == made.id


def test_a_chosen_context_is_a_source_in_its_own_thread(three: Memory) -> None:
    context = three.context("tea", thread="t", k=0, last=2)
    made = three.derive("digest", sources=context)
    assert (three.context_of(made.id), made.thread) == (context.ids, "t")
    assert three.derive("digest", sources=context, thread="u").thread == "u"


def test_deriving_again_gives_the_record_that_is_there(three: Memory) -> None:
    asked: list[int] = []
    three.derivation("digest")(lambda sources: asked.append(1) or joined(sources))
    made = three.derive("digest", sources=[1, 2], thread="t")
    assert three.derive("digest", sources=[1, 2], thread="t") == made
    assert len(asked) == 1
    others = [
        three.derive("digest", sources=[2, 1], thread="t"),
        three.derive("digest", sources=[1, 2], thread="u"),
        three.derive("digest", sources=[1, 2]),
        three.derive("digest", sources=[1, 2], thread="t", kind="fact"),
    ]
    three.derivation("other")(joined)
    others.append(three.derive("other", sources=[1, 2], thread="t"))
    three.derivation("digest", version=2)(joined)
    others.append(three.derive("digest", sources=[1, 2], thread="t"))
    assert len({made.id, *(one.id for one in others)}) == 7


def test_what_was_forgotten_by_itself_can_be_derived_again(three: Memory) -> None:
    made = three.derive("digest", sources=[1, 3], thread="t")
    three.forget(ids=[made.id])
    again = three.derive("digest", sources=[1, 3], thread="t")
    assert again.id > made.id
    assert three.derive("digest", sources=[1, 3], thread="t") == again


def test_two_that_derive_at_once_get_one_record(three: Memory) -> None:
    both = Barrier(2, timeout=20)

    def together(sources: Sequence[Record]) -> str:
        both.wait()
        return joined(sources)

    three.derivation("digest")(together)
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: three.derive("digest", sources=[1, 3]), range(2)))
    assert made[0] == made[1]
    assert len(list(three.export())) == 4


def test_a_result_is_made_anew_when_a_source_goes_and_named_by_what_stays(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2, 3], thread="t")
    receipt = three.forget("canaryqzxv")
    new = three.get(receipt.rebuilt[old.id])
    assert (new.text, new.place) == (f"said: {TEA} {OSLO}", old.place)
    assert three.context_of(new.id) == [1, 3]
    assert three.derive("digest", sources=[1, 3], thread="t") == new
    assert (receipt.rebuild_calls, receipt.pending) == (1, 0)
    assert not three.scan("canaryqzxv").places
    assert three.verify().ok
    last = three.forget(ids=[1, 3])
    assert (dict(last.rebuilt), last.not_rebuilt, last.pending) == ({}, 0, 0)
    assert list(three.export()) == []


def test_the_newest_version_of_the_function_makes_it_anew(three: Memory) -> None:
    old = three.derive("digest", sources=[1, 2])
    three.derivation("digest", version=2)(lambda sources: f"2: {sources[0].text}")
    new = three.get(three.forget(ids=[2]).rebuilt[old.id])
    assert (new.text, new.metadata["version"]) == (f"2: {TEA}", 2)
    assert three.derive("digest", sources=[1]) == new


def failing(sources: Sequence[Record]) -> str:
    raise RuntimeError(sources[0].text)


FAILURES: list[Callable[[Sequence[Record]], object]] = [
    failing,
    lambda _: None,
    lambda _: " \n",
    lambda _: 7,
    lambda _: Made(None, calls=2),
    lambda _: Made(""),
    lambda sources, _other: sources[0].text,
]


@pytest.mark.parametrize("make", FAILURES, ids=range(len(FAILURES)))
def test_a_derivation_that_makes_no_text_is_an_error_without_content(
    make: Callable[[Sequence[Record]], str], three: Memory
) -> None:
    three.derivation("digest")(make)
    with pytest.raises(DerivationError) as raised:
        three.derive("digest", sources=[2, 1])
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert "canaryqzxv" not in str(raised.value)
    assert len(list(three.export())) == 3


def test_a_source_that_goes_meanwhile_stops_the_result(three: Memory) -> None:
    three.derivation("digest")(lambda sources: (three.forget(ids=[2]), joined(sources))[1])
    with pytest.raises(ContextForgotten):
        three.derive("digest", sources=[1, 2])
    assert [one.id for one in three.export()] == [1, 3]
    assert not three.scan("canaryqzxv").places
    with pytest.raises(ContextForgotten):
        three.derive("digest", sources=[1, 2])


def test_what_may_not_be_used_is_no_source(opened: Callable[..., Memory]) -> None:
    clock = [1_000_000]
    memory = opened(":memory:", embedder=None, clock=lambda: clock[0])
    memory.derivation("digest")(joined)
    memory.remember(TEA, retention_until=2_000_000)
    memory.remember(OSLO)
    made = memory.derive("digest", sources=[1, 2])
    assert made.retention_until == datetime.fromtimestamp(2, UTC)
    memory.forget(ids=[2], mode="suppress")
    for ids, error in (([2], ContextForgotten), ([99], NotFound), ([-1], NotFound)):
        with pytest.raises(error):
            memory.derive("digest", sources=ids)
    clock[0] = 3_000_000
    with pytest.raises(ContextForgotten):
        memory.derive("digest", sources=[1])
    with pytest.raises(NotFound):
        memory.get(made.id)


def test_a_result_is_governed_as_its_sources_are(memory: Memory) -> None:
    memory.derivation("digest")(joined)
    memory.remember(TEA, subject="sam", purpose="support", sensitivity="health")
    memory.remember(OSLO, subject="sam", purpose="sales")
    memory.remember("No more.")
    made = memory.derive("digest", sources=[1, 2, 3])
    assert (made.subject, made.purpose, made.sensitivity) == ("sam", None, "health")


def test_a_result_is_out_of_use_while_a_source_is_suppressed(three: Memory) -> None:
    made = three.derive("digest", sources=[1, 2])
    receipt = three.forget(ids=[2], mode="suppress")
    assert set(receipt.ids) == {2, made.id}
    with pytest.raises(NotFound):
        three.get(made.id)
    assert three.search("said", by="keyword") == []
    with pytest.raises(ContextForgotten):
        three.derive("digest", sources=[1, 2])
    assert three.restore(receipt) == [2, made.id]
    assert three.derive("digest", sources=[1, 2]) == made
    assert made.status is Status.ACTIVE


def test_results_of_results_are_made_anew_in_order(three: Memory) -> None:
    """A diamond: two digests of the secret and another record, and one of both."""
    left = three.derive("digest", sources=[1, 2])
    right = three.derive("digest", sources=[2, 3])
    top = three.derive("digest", sources=[left.id, right.id])
    last = three.derive("digest", sources=[top.id])
    receipt = three.forget("canaryqzxv")
    new = {old.id: three.get(receipt.rebuilt[old.id]) for old in (left, right, top, last)}
    assert new[top.id].text == f"said: said: {TEA} said: {OSLO}"
    assert new[last.id].text == f"said: {new[top.id].text}"
    assert three.context_of(new[top.id].id) == [new[left.id].id, new[right.id].id]
    assert receipt.rebuild_calls == 4
    again = three.derive("digest", sources=[new[left.id].id, new[right.id].id])
    assert again == new[top.id]


def test_never_makes_nothing_anew(three: Memory) -> None:
    three.derive("digest", sources=[1, 2])
    plan = three.plan("canaryqzxv")
    assert len(plan.rebuilds) == 1
    receipt = three.forget(plan, rebuild="never")
    assert (dict(receipt.rebuilt), receipt.not_rebuilt, receipt.pending) == ({}, 0, 0)
    assert [one.id for one in three.export()] == [1, 3]
    assert three.rebuild().made == {}
    with pytest.raises(InvalidInput):
        three.forget("tea", rebuild="some day")


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "unheard of"},
        {"name": 7},
        {"sources": []},
        {"sources": "12"},
        {"thread": " "},
        {"kind": "sum"},
    ],
    ids=str,
)
def test_what_cannot_be_derived_is_an_error_of_ours(
    arguments: dict[str, object], three: Memory
) -> None:
    with pytest.raises(DellmError):
        three.derive(**{"name": "digest", "sources": [1], **arguments})  # type: ignore[arg-type] # any argument
    assert len(list(three.export())) == 3


@pytest.mark.parametrize(
    "arguments", [("",), (" ",), (None,), ("digest", "1"), ("digest", True)], ids=str
)
def test_a_derivation_needs_a_name_and_a_version(
    arguments: Sequence[object], opened: Callable[..., Memory]
) -> None:
    memory = opened(":memory:", embedder=None)
    with pytest.raises(InvalidInput):
        memory.derivation(*arguments)(joined)  # type: ignore[arg-type] # any argument
    with pytest.raises(InvalidInput):
        memory.derivation("digest", model=7)  # type: ignore[arg-type] # as above
    with pytest.raises(InvalidInput):
        memory.derivation("digest")("no function")  # type: ignore[type-var] # as above


def test_a_rebuilder_of_the_same_name_takes_the_derivation_s_place(three: Memory) -> None:
    made = three.derive("digest", sources=[1, 2])
    three.rebuilder("digest", lambda _record, sources: f"anew: {sources[0].text}")
    with pytest.raises(InvalidInput):
        three.derive("digest", sources=[1])
    assert three.get(three.forget(ids=[2]).rebuilt[made.id]).text == f"anew: {TEA}"


def test_neither_receipt_nor_audit_nor_plan_holds_content(three: Memory) -> None:
    three.derive("digest", sources=[1, 2])
    plan = three.plan("canaryqzxv")
    receipt = three.forget(plan)
    said = json.dumps([receipt.to_json(), plan.to_json(), [one.body for one in three.ledger()]])
    assert not any(word in said for word in ("canaryqzxv", "Oslo", "said:"))


def sent(memory: Memory) -> dict[int, int]:
    """Return how many models each record was sent to that are not in this process."""
    return {one.record: 1 for one in memory.exposures()}


def test_what_an_outside_model_was_sent_is_known_whatever_came_of_it(three: Memory) -> None:
    three.derivation("digest", model="acme/large")(failing)
    with pytest.raises(DerivationError):
        three.derive("digest", sources=[1])
    assert set(sent(three)) == {1}
    three.derivation("digest", model="acme/large")(
        lambda sources: (three.forget(ids=[2]), joined(sources))[1]
    )
    with pytest.raises(ContextForgotten):
        three.derive("digest", sources=[2, 3])
    assert set(sent(three)) == {1, 3}
    three.derivation("digest", model="local/small")(failing)
    fourth = three.remember("Four.")
    with pytest.raises(DerivationError):
        three.derive("digest", sources=[fourth.id])
    assert set(sent(three)) == {1, 3}


YEAR = 365 * 86_400_000_000


def dated(opened: Callable[..., Memory], url: str) -> tuple[Memory, list[int]]:
    """Return a memory of three messages, and its clock."""
    clock = [1_700_000_000_000_000]
    memory = opened(url, clock=lambda: clock[0]).workspace("alex")
    for text in (TEA, SECRET, OSLO):
        memory.remember(text, thread="t")
    return memory, clock


@pytest.mark.parametrize("verb", ["forget", "rederive"])
def test_what_an_outside_model_is_sent_again_counts_though_no_text_comes_of_it(
    verb: str, url: str, opened: Callable[..., Memory]
) -> None:
    memory, clock = dated(opened, url)
    memory.derivation("digest", model="acme/large")(joined)
    memory.derive("digest", sources=[1, 2, 3])
    memory.derivation("digest", version=2, model="acme/large")(failing)
    clock[0] += YEAR
    if verb == "forget":
        assert memory.forget("canaryqzxv").rebuild_calls == 1
    else:
        assert memory.rederive("digest").calls == 1
    (seen,) = memory.plan(ids=[1]).providers
    assert (seen.host, seen.last) == ("acme", datetime.fromtimestamp(clock[0] / 1e6, UTC))


def test_what_is_made_anew_by_another_model_says_so(three: Memory) -> None:
    three.derivation("digest", model="acme/large")(joined)
    old = three.derive("digest", sources=[1, 2, 3])
    three.derivation("digest", version=2, model="zeta/small")(joined)
    new = three.get(three.forget("canaryqzxv").rebuilt[old.id])
    assert new.model == "zeta/small"
    assert {one.host for one in three.plan(ids=[1]).providers} == {"acme", "zeta"}


def test_a_text_that_is_refused_was_asked_for_all_the_same(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, credentials="refuse").workspace("alex")
    memory.remember(TEA)
    memory.derivation("digest", model="acme/large")(lambda _: "The key is AKIAIOSFODNN7EXAMPLE.")
    with pytest.raises(CredentialRefused):
        memory.derive("digest", sources=[1])
    assert [one.host for one in memory.plan(ids=[1]).providers] == ["acme"]


def test_a_function_may_do_with_its_list_what_it_likes(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory, clock = dated(opened, url)
    until = clock[0] + YEAR
    private = memory.remember("private", retention_until=until, sensitivity="health")

    @memory.derivation("digest")
    def digest(sources: Sequence[Record]) -> str:
        assert isinstance(sources, list)
        sources.sort(key=lambda one: one.text)
        said = joined(sources)
        sources.clear()
        return said

    made = memory.derive("digest", sources=[2, 3, private.id])
    assert (made.retention_until, made.sensitivity) == (private.retention_until, "health")
    memory.forget("canaryqzxv", rebuild="later")
    done = memory.rebuild()
    assert (done.calls, done.pending) == (1, 0)
    assert memory.context_of(done.made[made.id]) == [3, private.id]
