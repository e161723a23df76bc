"""Replies made from what goes are asked again without it; the rest of the conversation stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from dellm import (
    Assistant,
    InvalidInput,
    Memory,
    ModelError,
    Plan,
    PlanChanged,
    Record,
    depth,
    estimated_tokens,
    provenance,
    reply_with,
)
from dellm.cli import app
from dellm.models import ExtractiveReader

CODE = "My door code is canaryqzxv."
TEA = "I like tea."
WHAT = "What do you know of me?"
Ask = Callable[[Record, Sequence[Record]], "str | None"]


def echoed(_: Record, context: Sequence[Record]) -> str:
    """Return what the worst model would: all that it was sent."""
    return "you said: " + " | ".join(one.text for one in context)


def turn(memory: Memory, said: str, *before: int, **details: object) -> tuple[int, int]:
    """Store a question and its reply, which repeats all it was made from; return their ids."""
    question = memory.remember(said, thread="t")
    context = [*before, question.id]
    text = echoed(question, [memory.get(one) for one in context])
    reply = memory.record(text, context=context, thread="t", model="x/gpt", **details)  # type: ignore[arg-type] # any detail
    return question.id, reply.id


@pytest.fixture
def three(memory: Memory) -> Memory:
    """Return a memory of three turns, 1 to 6: the second tells a secret, the third uses all before."""
    memory.regenerator(echoed)
    turn(memory, TEA)
    turn(memory, CODE)
    turn(memory, WHAT, 1, 2, 3, 4)
    return memory


def again(memory: Memory, what: str | Plan = "canaryqzxv", **options: object) -> dict[int, Record]:
    """Forget and ask again; return the new replies by old id."""
    if isinstance(what, str):
        options.setdefault("on_dependents", "regenerate")
    receipt = memory.forget(what, **options)  # type: ignore[arg-type] # any option
    return {old: memory.get(new) for old, new in receipt.regenerated.items()}


def texts(memory: Memory) -> list[str]:
    return [one.text for one in memory.history("t")]


# one reply


def test_a_reply_is_asked_again_and_its_exchange_stays(three: Memory) -> None:
    old = three.get(6)
    plan = three.plan("canaryqzxv", on_dependents="regenerate")
    assert (plan.ids, [one.id for one in plan.regenerates]) == ((3, 4, 6), [6])
    receipt = three.forget(plan)
    new = three.get(receipt.regenerated[6])
    assert new.text == f"you said: {TEA} | you said: {TEA} | {WHAT}"
    assert [one.id for one in three.history("t")] == [1, 2, 5, new.id]
    assert three.context_of(new.id) == [1, 2, 5]
    assert (new.place, new.version, new.model, new.role) == (old.place, 2, "x/gpt", "assistant")
    assert (receipt.not_regenerated, receipt.regenerate_calls, len(receipt.rebuilt)) == (0, 1, 0)
    assert not three.scan("canaryqzxv").places
    assert three.verify().ok
    assert "canaryqzxv" not in json.dumps(receipt.to_json())
    assert three.receipt(receipt.number) == receipt
    assert "replies asked again: 1, could not be: 0, in 1 call(s)" in str(receipt)


def test_nothing_is_asked_unless_that_is_wanted(three: Memory) -> None:
    assert three.plan("canaryqzxv").regenerates == ()
    assert dict(three.forget("canaryqzxv").regenerated) == {}
    assert texts(three) == [TEA, f"you said: {TEA}", WHAT]


def test_the_scan_does_find_what_a_model_says_of_the_forgotten(three: Memory) -> None:
    assert three.scan("canaryqzxv").places  # the negative control of all tests here
    assert "canaryqzxv" in three.get(6).text


def test_the_model_is_given_the_reply_without_its_content_and_the_context_in_order(
    three: Memory,
) -> None:
    seen: list[tuple[Record, list[Record]]] = []

    def make(reply: Record, context: Sequence[Record]) -> str:
        seen.append((reply, list(context)))
        return "Something new."

    turn(three, "And now?", 6, 2, payload=b"canaryqzxv", metadata={"said": "canaryqzxv"})
    again(three, regenerate=make)
    reply, context = seen[-1]
    assert (reply.id, reply.text, reply.payload, reply.metadata) == (8, "", None, {})
    assert [(one.id, one.text) for one in context] == [
        (6, "Something new."),  # the earlier reply as it is by now
        (2, f"you said: {TEA}"),
        (7, "And now?"),
    ]
    assert all(b"canary" not in (one.payload or b"") for one in context)


def test_of_the_framework_s_object_nothing_is_kept_but_its_id(three: Memory) -> None:
    metadata = {"whole": True, "summary": "a code", "n": 7}
    _, old = turn(three, "?", 3, payload=b"abc", metadata=metadata, framework_id="m1")
    new = again(three)[old]
    assert (new.payload, new.metadata, new.framework_id) == (None, {"whole": True}, "m1")


def test_a_question_that_goes_takes_its_reply_along(three: Memory) -> None:
    three.remember(CODE, thread="elsewhere")  # 7
    _, reply = turn(three, f"Is it so that {CODE}", 1, 2)
    receipt = three.forget("canaryqzxv", on_dependents="regenerate")
    assert reply in receipt.ids
    assert list(receipt.regenerated) == [6]


def test_a_reply_to_nobody_is_not_asked_again(memory: Memory) -> None:
    memory.regenerator(echoed)
    memory.remember(CODE, role="tool", kind="document")
    memory.remember(TEA, role="tool", kind="document")
    memory.record("Noted.", context=[1, 2])
    assert dict(memory.forget(ids=[1], on_dependents="regenerate").regenerated) == {}
    assert [one.id for one in memory.export()] == [2]


def test_the_question_of_a_thread_is_not_what_was_found_elsewhere(memory: Memory) -> None:
    memory.regenerator(echoed)
    elsewhere = memory.remember(CODE, thread="old")
    question = memory.remember("And?", thread="new")
    memory.record("canaryqzxv", context=[question.id, elsewhere.id], thread="new")
    assert [one.text for one in again(memory).values()] == ["you said: And?"]


CALLS = (b'{"tool_calls": [1]}', b"\x81\xaatool_calls\x91\x80", b'[{"type":"tool_use"}]')


@pytest.mark.parametrize("payload", CALLS)
def test_a_call_of_a_tool_is_not_asked_again_but_the_reply_after_it_is(
    three: Memory, payload: bytes
) -> None:
    question, call = turn(three, "Open it.", 3, payload=payload)
    result = three.record("opened canaryqzxv", role="tool", kind="tool", context=[call], thread="t")
    reply = three.record("Done.", context=[question, call, result.id], thread="t")
    new = again(three)
    assert new.keys() == {6, reply.id}
    assert new[reply.id].text == "you said: Open it."


def test_usage_counts_of_tools_are_no_call(three: Memory) -> None:
    _, reply = turn(three, "?", 3, payload=b'{"tool_use_prompt_token_count": 0}')
    assert reply in again(three)


def test_a_message_whose_result_a_tool_gave_is_not_asked_again(three: Memory) -> None:
    _, call = turn(three, "Open it.", 3, payload=b"encrypted")
    three.record("opened", role="tool", kind="tool", context=[call], thread="t")
    assert again(three).keys() == {6}


def test_a_reply_named_by_its_id_goes(three: Memory) -> None:
    plan = three.plan(ids=[3, 6], on_dependents="regenerate")
    assert plan.regenerates == ()
    assert three.forget(plan).ids == (3, 4, 6)


def test_copies_of_a_reply_are_asked_for_once(three: Memory) -> None:
    three.record(three.get(6).text, copy_of=6, thread="t")
    plan = three.plan("canaryqzxv", on_dependents="regenerate")
    assert [(one.id, one.calls) for one in plan.regenerates] == [(6, 1), (7, 0)]
    receipt = three.forget(plan)
    one, other = (three.get(new) for new in receipt.regenerated.values())
    assert (one.text, receipt.regenerate_calls) == (other.text, 1)
    assert set(three.forget(ids=[one.id]).ids) == {one.id, other.id}  # still copies


def test_a_summary_of_a_reply_is_rebuilt_after_it(three: Memory) -> None:
    three.rebuilder("sum", lambda _, some: "sum of " + " & ".join(one.text for one in some))
    old = three.record(
        "sum of canaryqzxv", context=[1, 6], kind="summary", metadata={"rebuild": "sum"}
    )
    _, later = turn(three, "And?", old.id)
    receipt = three.forget("canaryqzxv", on_dependents="regenerate")
    new = three.get(receipt.regenerated[6])
    summed = three.get(receipt.rebuilt[old.id])
    assert summed.text == f"sum of {TEA} & {new.text}"
    assert three.get(receipt.regenerated[later]).text == f"you said: {summed.text} | And?"
    assert (receipt.rebuild_calls, receipt.regenerate_calls) == (1, 2)


@pytest.mark.parametrize("rebuild", ["now", "later", "never"])
def test_a_derivation_of_a_reply_follows_it_now_or_later(three: Memory, rebuild: str) -> None:
    @three.derivation("digest")
    def digest(sources: Sequence[Record]) -> str:
        return "digest of " + " & ".join(one.text for one in sources)

    old = three.derive("digest", sources=[1, 6])
    _, later = turn(three, "And?", old.id)
    receipt = three.forget("canaryqzxv", on_dependents="regenerate", rebuild=rebuild)
    assert receipt.regenerated.keys() == {6, later}
    three.rebuild()
    new = three.get(receipt.regenerated[6]).text
    made = [one.text for one in three.export() if one.text.startswith("digest")]
    assert made == ([] if rebuild == "never" else [f"digest of {TEA} & {new}"])
    said = three.get(receipt.regenerated[later]).text
    assert said == (f"you said: {made[0]} | And?" if rebuild == "now" else "you said: And?")
    assert not three.scan("canaryqzxv").places
    assert three.verify().ok


def test_a_regenerated_reply_is_forgotten_and_asked_again_like_any_other(three: Memory) -> None:
    (new,) = again(three).values()
    (newer,) = again_by_id(three, 2).values()
    assert (newer.text, newer.version) == (f"you said: {TEA} | {WHAT}", 3)
    assert again_by_id(three, 5) == {}
    assert [one.id for one in three.history("t")] == [1]
    assert new.id not in three.receipt(1).ids


def again_by_id(memory: Memory, id_: int) -> dict[int, Record]:
    receipt = memory.forget(ids=[id_], on_dependents="regenerate")
    return {old: memory.get(new) for old, new in receipt.regenerated.items()}


# a thread that is always sent whole


def rows_of_edges(memory: Memory) -> int:
    with memory._engine.reading(memory.id) as (tx, scope):
        row = tx.one("select count(*) from edge where ws = :ws", ws=scope.ws)
    return int(row[0]) if row else 0


def test_replies_that_were_sent_everything_share_their_contexts_afterwards_too(
    memory: Memory,
) -> None:
    history = [memory.remember(CODE, thread="t").id]
    for number in range(30):
        history.append(memory.remember(f"Question {number}?", thread="t").id)
        history.append(memory.record("So.", context=list(history), thread="t").id)
    before = rows_of_edges(memory)
    receipt = memory.forget(
        ids=[1], on_dependents="regenerate", regenerate=lambda *_: "So.", scrub=False
    )
    assert len(receipt.regenerated) == 30
    assert rows_of_edges(memory) <= before
    said = [one.id for one in memory.history("t")]
    for new in receipt.regenerated.values():
        assert memory.context_of(new) == said[: said.index(new)]
    assert memory.dependents([said[0]]) == sorted([said[0], *receipt.regenerated.values()])
    assert memory.verify().ok


@pytest.mark.parametrize("seed", range(6))
def test_many_contexts_are_read_at_once_as_one_by_one(
    seed: int, opened: Callable[..., Memory]
) -> None:
    chance = Random(seed)
    memory = opened(":memory:", embedder=None)
    history: list[int] = []
    for number in range(60):
        thread = chance.choice("ab")
        if chance.random() < 0.5:
            some = chance.sample(history, min(len(history), chance.choice((1, 3, 12))))
            context = chance.choice((list(history), history[-20:], some, some + some))
            history.append(memory.record("r", context=context, thread=thread).id)
        else:
            history.append(memory.remember(f"q {number}", thread=thread).id)
    memory.forget(ids=[chance.choice(history)], scrub=False)
    with memory._engine.reading(memory.id) as (tx, scope):
        one_by_one = {one: provenance.context_of(tx, scope.ws, one) for one in history}
        assert provenance.contexts_of(tx, scope.ws, history) == one_by_one


# what it costs, before


def test_a_plan_says_what_asking_again_costs(three: Memory) -> None:
    _, later = turn(three, "More?", 1, 6)
    plan = three.plan("canaryqzxv", on_dependents="regenerate")
    assert [(one.id, one.calls) for one in plan.regenerates] == [(6, 1), (later, 1)]
    first = sum(estimated_tokens(three.get(one).text) for one in (1, 2, 5))
    second = sum(estimated_tokens(three.get(one).text) for one in (1, 6, 7))
    assert [one.tokens for one in plan.regenerates] == [first, second]
    assert plan.cost == (2, first + second)
    assert f"2 model call(s), about {first + second} tokens sent" in str(plan)
    assert "then asked again" in " ".join(str(plan).replace("│", " ").split())
    assert plan.explain(6).endswith("; to be asked again")
    said = plan.to_json()
    assert (said["on_dependents"], said["calls"], said["tokens"]) == ("regenerate", *plan.cost)
    assert "canaryqzxv" not in json.dumps(said)
    assert again(three, plan).keys() == {6, later}


def test_a_plan_kept_as_json_is_carried_out_as_it_was_shown(three: Memory) -> None:
    plan = three.plan("canaryqzxv", on_dependents="regenerate")
    kept = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    assert (kept.regenerates, kept.on_dependents) == (plan.regenerates, "regenerate")
    assert again(three, kept).keys() == {6}


def test_a_plan_s_json_from_before_there_was_regenerating_is_read(three: Memory) -> None:
    said = three.plan("canaryqzxv").to_json()
    for name in ("regenerated", "on_dependents", "calls", "tokens"):
        del said[name]
    assert three.forget(Plan.from_json(said)).ids == (3, 4, 6)
    said["on_dependents"] = "invent"
    with pytest.raises(InvalidInput):
        Plan.from_json(said)


# what is refused


def test_without_a_model_nothing_is_forgotten(memory: Memory) -> None:
    turn(memory, CODE)
    plan = memory.plan("canaryqzxv", on_dependents="regenerate")  # what it costs can be seen
    for what in (plan, "canaryqzxv"):
        with pytest.raises(InvalidInput, match="no model"):
            again(memory, what)
    assert len(memory.history("t")) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"on_dependents": "rewrite"},
        {"on_dependents": None},
        {"on_dependents": "regenerate", "mode": "suppress"},
        {"regenerate": "a model"},
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(three: Memory, options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        three.forget("canaryqzxv", **options)  # type: ignore[arg-type] # wrong on purpose
    assert len(three.history("t")) == 6


def test_a_plan_already_says_whether_to_ask_again(three: Memory) -> None:
    with pytest.raises(InvalidInput):
        three.forget(three.plan("canaryqzxv"), on_dependents="regenerate")
    with pytest.raises(InvalidInput):
        three.regenerator("a model")  # type: ignore[arg-type] # wrong on purpose


# what fails is erased


def away(_: Record, __: Sequence[Record]) -> str:
    raise ModelError("The model is away.")


FAILURES: list[Callable[[Record, Sequence[Record]], object]] = [
    away,
    lambda _reply, _context: None,
    lambda _reply, _context: " \n",
    lambda _reply, _context: 7,
    lambda _reply, _context: "The code was CANARYQZXV",
]


@pytest.mark.parametrize("make", FAILURES, ids=range(len(FAILURES)))
def test_a_reply_that_cannot_be_asked_again_goes(three: Memory, make: Ask) -> None:
    receipt = three.forget("canaryqzxv", on_dependents="regenerate", regenerate=make)
    assert (dict(receipt.regenerated), receipt.not_regenerated) == ({}, 1)
    assert receipt.regenerate_calls == 1
    assert texts(three) == [TEA, f"you said: {TEA}", WHAT]
    assert not three.scan("canaryqzxv").places


@pytest.mark.parametrize("said", ["Something new.", ""])
def test_what_the_model_is_sent_counts_as_sent_to_it_also_where_no_reply_comes_of_it(
    three: Memory, said: str
) -> None:
    now = Copying("new")
    now.said = said
    receipt = three.forget(ids=[3], on_dependents="regenerate", regenerate=reply_with(now))
    sent = [one.record for one in three.exposures() if one.host == "new"]
    assert sent == [1, 2, 5, *receipt.regenerated.values()]
    assert len(receipt.regenerated) == bool(said)


def test_a_memory_that_only_grows_meanwhile_is_no_reason_to_ask_twice(three: Memory) -> None:
    asked = []

    def make(reply: Record, context: Sequence[Record]) -> str:
        asked.append(reply.id)
        three.remember("Meanwhile.")
        return echoed(reply, context)

    assert again(three, regenerate=make).keys() == {6}
    assert asked == [6]


def test_what_is_made_of_the_forgotten_meanwhile_is_asked_again_too(three: Memory) -> None:
    late: list[int] = []

    def make(reply: Record, context: Sequence[Record]) -> str:
        if not late:
            late.append(turn(three, "Quick, the code?", 3)[1])
        return echoed(reply, context)

    receipt = three.forget("canaryqzxv", on_dependents="regenerate", regenerate=make)
    assert set(receipt.regenerated) == {6, *late}
    assert receipt.regenerate_calls == 3  # what had been made before the memory moved counts
    assert not three.scan("canaryqzxv").places


def test_a_shown_plan_that_no_longer_holds_is_not_carried_out(three: Memory) -> None:
    def make(reply: Record, context: Sequence[Record]) -> str:
        turn(three, "Quick, the code?", 3)
        return echoed(reply, context)

    plan = three.plan("canaryqzxv", on_dependents="regenerate")
    with pytest.raises(PlanChanged):
        three.forget(plan, regenerate=make)
    assert "canaryqzxv" in three.get(6).text


def test_what_was_sent_for_a_plan_that_no_longer_holds_was_sent(three: Memory) -> None:
    plan = three.plan(ids=[3], on_dependents="regenerate")

    class Slow:
        model = "acme/large"

        def __call__(self, reply: Record, context: Sequence[Record]) -> str:
            three.record("Meanwhile.", context=[3], thread="t")
            return "new"

    with pytest.raises(PlanChanged):
        three.forget(plan, regenerate=Slow())
    assert {1, 2, 5} <= {one.record for one in three.exposures() if one.host == "acme"}


def test_a_memory_that_never_stands_still_loses_the_replies(three: Memory) -> None:
    def make(reply: Record, context: Sequence[Record]) -> str:
        turn(three, "Quick, the code?", 3)
        return echoed(reply, context)

    receipt = three.forget("canaryqzxv", on_dependents="regenerate", regenerate=make)
    assert dict(receipt.regenerated) == {}
    assert not three.scan("canaryqzxv").places


def test_a_source_that_goes_while_the_model_answers_is_not_in_the_reply(three: Memory) -> None:
    done = []

    def make(reply: Record, context: Sequence[Record]) -> str:
        if not done:
            done.append(three.forget(ids=[1]))  # takes 2 and 6 as well: made from it
        return echoed(reply, context)

    receipt = three.forget("canaryqzxv", on_dependents="regenerate", regenerate=make)
    assert dict(receipt.regenerated) == {}
    assert texts(three) == [WHAT]


def test_only_the_replies_lose_that_a_source_left_while_the_model_answered(three: Memory) -> None:
    aside = three.remember("An aside.", thread="u").id
    _, lost = turn(three, "And the aside?", 3, aside)
    _, after = turn(three, "And so on?", lost)
    _, kept = turn(three, "And tea?", 1, 3)
    done = []

    def make(reply: Record, context: Sequence[Record]) -> str:
        if not done:
            done.append(three.forget(ids=[aside], mode="suppress", reach=depth(0)))
        return echoed(reply, context)

    receipt = three.forget(ids=[3], on_dependents="regenerate", regenerate=make)
    assert receipt.regenerated.keys() == {6, kept}
    assert (receipt.not_regenerated, receipt.regenerate_calls) == (2, 4)
    assert {lost, after} <= set(receipt.ids)
    assert "An aside." not in " ".join(one.text for one in three.export())
    assert not three.scan("canaryqzxv").places
    assert three.verify().ok


# redaction, reach


def test_with_a_redaction_the_question_is_asked_again_without_the_value(memory: Memory) -> None:
    memory.regenerator(echoed)
    _, reply = turn(memory, "My code is canaryqzxv, what do you think of it?")
    plan = memory.plan("canaryqzxv", mode="redact", on_dependents="regenerate")
    assert [one.id for one in plan.regenerates] == [reply]
    receipt = memory.forget(plan)
    new = memory.get(receipt.regenerated[reply])
    assert new.text == "you said: My code is [redacted], what do you think of it?"
    assert memory.context_of(new.id) == [receipt.redacted[1]]
    assert [one.id for one in memory.history("t")] == [receipt.redacted[1], new.id]
    assert not memory.scan("canaryqzxv").places


def test_a_redaction_of_which_nothing_is_left_leaves_nothing_to_ask(memory: Memory) -> None:
    memory.regenerator(echoed)
    turn(memory, "canaryqzxv")
    again(memory, mode="redact")
    assert list(memory.export()) == []


def test_what_a_redaction_leaves_of_a_message_that_is_past_its_time_is_sent_to_nobody(
    url: str, opened: Callable[..., Memory]
) -> None:
    clock = [1_000]
    memory = opened(url, clock=lambda: clock[0]).workspace("alex")
    memory.remember("My dog is Rex, my code canaryqzxv.", thread="t", retention_until=2_000)
    memory.remember("What do you know?", thread="t")
    own = {"basis": "contract", "retention": "project_decision"}  # it does not end with its sources
    memory.record("It is canaryqzxv.", context=[1, 2], thread="t", **own)
    clock[0] = 3_000
    receipt = memory.forget(
        "canaryqzxv", mode="redact", on_dependents="regenerate", regenerate=echoed
    )
    (new,) = receipt.regenerated.values()
    assert "Rex" not in memory.get(new).text
    assert memory.context_of(new) == [2]


def test_a_redacted_clause_is_not_in_the_question(memory: Memory) -> None:
    memory.regenerator(echoed)
    turn(memory, "My code is canaryqzxv. Shall we go?")
    (new,) = again(memory, mode="redact", unit="clause").values()
    assert new.text == "you said: Shall we go?"


def test_a_redacted_message_in_the_context_is_given_as_it_reads_by_then(three: Memory) -> None:
    new = again(three, mode="redact")
    code = CODE.replace("canaryqzxv", "[redacted]")
    assert new[4].text == f"you said: {code}"
    assert new[6].text == f"you said: {TEA} | you said: {TEA} | {code} | {new[4].text} | {WHAT}"
    assert len(three.history("t")) == 6
    assert not three.scan("canaryqzxv").places


def test_what_a_relaxed_reach_spares_is_neither_asked_again_nor_in_a_context(
    three: Memory,
) -> None:
    _, far = turn(three, "Far?", 6)
    _, near = turn(three, "Near?", far, 3)
    receipt = three.forget(ids=[3], reach=depth(1), on_dependents="regenerate")
    assert receipt.regenerated.keys() == {6, near}  # 4 has lost its question
    assert three.get(receipt.regenerated[near]).text == "you said: Near?"
    assert "canaryqzxv" in three.get(far).text


# the assistant and its prompt


def test_the_assistant_asks_its_model_again(memory: Memory) -> None:
    chat = Assistant(memory, ExtractiveReader(), k=9, last=9, on_dependents="regenerate")
    for said in ("I live in Oslo.", "My dog is called Biscuit.", "What is my dog called?"):
        chat.send(said)
    shown = chat.send('Forget "My dog is called Biscuit"')
    assert shown.pending
    assert "to be asked again" in shown.text
    done = chat.send("yes")
    assert done.receipt is not None
    assert done.receipt.regenerated
    said = [one.text for one in memory.history("main")]
    assert said.count("What is my dog called?") == 1
    assert len(said) == 4
    assert not memory.scan("Biscuit").places


def test_the_assistant_refuses_a_choice_there_is_not(memory: Memory) -> None:
    with pytest.raises(InvalidInput):
        Assistant(memory, ExtractiveReader(), on_dependents="rewrite")


class Copying:
    """A model that copies what it is sent, and keeps it."""

    name = "copying"
    sent: list[list[dict[str, str]]]

    def __init__(self, provider: str = "old") -> None:
        self.provider = provider
        self.sent = []
        self.said: str | None = None

    def complete(self, messages: Sequence[dict[str, str]], /) -> str:
        self.sent.append([dict(one) for one in messages])
        return messages[-1]["content"] if self.said is None else self.said


def test_a_model_is_asked_again_with_what_the_assistant_would_have_sent(memory: Memory) -> None:
    then, now = Copying(), Copying("new")
    chat = Assistant(memory, then, k=0, last=9)
    chat.send(TEA)
    chat.send(CODE)
    chat.send(WHAT)
    memory.regenerator(reply_with(now))
    memory.forget("canaryqzxv", on_dependents="regenerate")
    fresh = Copying()
    plain = Assistant(memory.workspace("plain"), fresh, k=0, last=9)
    plain.send(TEA)
    plain.send(WHAT)
    assert now.sent == fresh.sent[1:]
    assert [one.model for one in memory.history("main")][1::2] == ["old/copying", "new/copying"]
    assert not memory.scan("canaryqzxv").places


# the command line


def ran(url: str, *words: str, code: int = 0) -> dict[str, object]:
    result = CliRunner().invoke(
        app, [*words, "--db", url, "--embedder", "none", "-w", "alex", "--json"]
    )
    assert result.exit_code == code, result.output
    return json.loads(result.stdout) if result.stdout else {}


def test_the_command_line_shows_the_cost_and_asks_the_model_named(
    sqlite_url: str, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    with opened(sqlite_url) as memory:
        turn(memory.workspace("alex"), TEA)
        turn(memory.workspace("alex"), CODE)
        turn(memory.workspace("alex"), "Do I like tea?", 1, 3)
    kept = str(tmp_path / "plan.json")
    shown = ran(sqlite_url, "plan", "canaryqzxv", "--regenerate", "--save", kept)
    assert (shown["calls"], shown["on_dependents"]) == (1, "regenerate")
    forget = ("forget", "--plan", kept, "-y")
    ran(sqlite_url, *forget, "--model", "invented", code=2)
    ran(sqlite_url, *forget, "--regenerate", code=2)  # the plan says so, or does not
    ran(sqlite_url, "forget", "tea", "--mode", "suppress", "--regenerate", "-y", code=2)
    receipt = ran(sqlite_url, *forget, "--model", "extractive")
    assert receipt["regenerated"] == {"6": 7}
    assert ran(sqlite_url, *forget, "--model", "extractive") == receipt


# random conversations, against a brute-force prediction


def own(number: int) -> str:
    """Return a word that only the record with this number is given."""
    return "w" + "".join("abcdefghij"[int(digit)] for digit in f"{number:04}")


def talked(memory: Memory, chance: Random) -> None:
    """Fill a memory with questions, and replies that repeat all they were made from."""
    while True:
        number = 1 + sum(1 for _ in memory.export())
        if number > 20:
            return
        memory.remember(f"q {own(number)}", thread="t")
        earlier = range(1, number)
        context = [
            *sorted(chance.sample(earlier, min(len(earlier), chance.choice((0, 2, 5))))),
            number,
        ]
        words = [own(number + 1), *(memory.get(one).text for one in context)]
        calls = b'{"tool_calls": []}' if chance.random() < 0.15 else None
        memory.record(" ".join(words), context=context, thread="t", payload=calls)


def stored(memory: Memory) -> dict[int, tuple[Record, list[int]]]:
    return {one.id: (one, memory.context_of(one.id)) for one in memory.export()}


def said_of(context: Sequence[str]) -> str:
    return "again: " + " ".join(context)


def predicted(
    before: dict[int, tuple[Record, list[int]]],
    going: Collection[int],
    seeds: Collection[int],
    failing: Collection[int],
) -> dict[int, str]:
    """Return the new text of each reply that survives, by old id."""
    texts = {id_: record.text for id_, (record, _) in before.items() if id_ not in going}
    new: dict[int, str] = {}
    for id_ in sorted(set(going) - set(seeds), key=lambda one: before[one][0].place):
        record, context = before[id_]
        users = [one for one in context if before[one][0].role == "user"]
        if record.role != "assistant" or record.payload or users[-1] not in texts:
            continue
        kept = [texts[one] for one in context if one in texts]
        if id_ not in failing:
            texts[id_] = new[id_] = said_of(kept)
    return new


@pytest.mark.parametrize("by", ["id", "value"])
@pytest.mark.parametrize("seed", range(12))
def test_in_any_conversation_every_reply_says_what_the_model_does_of_what_stays(
    seed: int, by: str, opened: Callable[..., Memory]
) -> None:
    chance = Random(seed)
    memory = opened(":memory:", embedder=None)
    talked(memory, chance)
    for step in range(3):
        before = stored(memory)
        pick = chance.choice([id_ for id_, (one, _) in before.items() if one.role == "user"])
        going = set(memory.dependents([pick]))
        failing = set(chance.sample(sorted(going), len(going) // 4)) if step == 1 else set()

        def make(
            reply: Record, context: Sequence[Record], failing: Collection[int] = failing
        ) -> str | None:
            return None if reply.id in failing else said_of([one.text for one in context])

        word = before[pick][0].text.split()[1]
        options = {"ids": [pick]} if by == "id" else {"quote": word}
        plan = memory.plan(on_dependents="regenerate", **options)  # type: ignore[arg-type] # either
        assert set(plan.ids) == going
        receipt = memory.forget(plan, regenerate=make)
        after = stored(memory)
        expected = predicted(before, going, [pick], failing)
        assert {old: after[new][0].text for old, new in receipt.regenerated.items()} == expected
        left = before.keys() - going
        assert after.keys() == left | set(receipt.regenerated.values())
        assert {id_: after[id_] for id_ in left} == {id_: before[id_] for id_ in left}
        for old, new in receipt.regenerated.items():
            stands = [receipt.regenerated.get(one, one) for one in before[old][1]]
            assert after[new][1] == [one for one in stands if one in after]
        lost = {own(id_) for id_ in going if id_ <= 20}
        assert not any(lost.intersection(one.text.split()) for one, _ in after.values())
        assert plan.cost[0] >= receipt.regenerate_calls
        assert receipt.not_regenerated == len(plan.regenerates) - len(expected)
        assert memory.verify().ok


def test_the_model_may_fail_at_any_call(url: str, opened: Callable[..., Memory]) -> None:
    whole = opened(url)
    for number in range(7):
        memory = whole.workspace(f"fails at {number}")
        turn(memory, TEA)
        turn(memory, CODE)
        for _ in range(5):
            turn(memory, WHAT, *(one.id for one in memory.history("t")))
        before = stored(memory)
        going, failing = set(memory.dependents([3])), set[int]()

        made: list[int] = []

        def ask(
            reply: Record,
            context: Sequence[Record],
            at: int = number,
            made: list[int] = made,
            failing: set[int] = failing,
        ) -> str:
            made.append(reply.id)
            if len(made) == at + 1:
                failing.add(reply.id)
                raise ModelError("The model is away.")
            return said_of([one.text for one in context])

        receipt = memory.forget(
            "canaryqzxv", on_dependents="regenerate", regenerate=ask, scrub=False
        )
        expected = predicted(before, going, [3], failing)
        assert {old: memory.get(new).text for old, new in receipt.regenerated.items()} == expected
        assert (receipt.regenerate_calls, receipt.not_regenerated) == (5, min(1, len(failing)))
        assert len(memory.history("t")) == 14 - 2 - len(failing)
        assert not memory.scan("canaryqzxv", files=False).places


def test_with_a_guard_replies_are_asked_again_all_the_same(three: Memory) -> None:
    receipt = three.forget("canaryqzxv", on_dependents="regenerate", guard=True)
    assert three.get(receipt.regenerated[6]).text == f"you said: {TEA} | you said: {TEA} | {WHAT}"
    assert not three.scan("canaryqzxv").places
