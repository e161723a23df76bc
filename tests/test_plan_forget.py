"""Plans and what becomes of them, on graphs small enough to work out by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from raw_tables import connected, rows_of, statement

import dellm
from dellm import (
    ContextForgotten,
    Draft,
    InvalidInput,
    Memory,
    NotFound,
    NothingMatched,
    Plan,
    PlanChanged,
    SelectorError,
)


def grown(memory: Memory) -> None:
    """A diamond and a second root: 1 → 2, 3 → 4 → 6 ← 5 → 7."""
    memory.remember("root one", thread="t")  # 1
    memory.record("left", context=[1], thread="t")  # 2
    memory.record("right", context=[1], thread="t")  # 3
    memory.record("joined", context=[2, 3], thread="t")  # 4
    memory.remember("root five", thread="t")  # 5
    memory.record("both", context=[4, 5], thread="t")  # 6
    memory.record("clean", context=[5], thread="t")  # 7


def hold(url: str, name: str, *ids: int) -> None:
    """Put records on hold, as an operator would with SQL."""
    with connected(url) as owner:
        for id_ in ids:
            statement(
                owner,
                "update record set status = 3 where id = ? and ws = "
                "(select ws from workspace where name = ?)",
                id_,
                name,
            )
        statement(owner, "update workspace set version = version + 1 where name = ?", name)


# reach


@pytest.mark.parametrize(
    ("reach", "goes", "spared"),
    [
        (dellm.STRICT, (1, 2, 3, 4, 6), ()),
        (dellm.depth(0), (1,), (2, 3, 4, 6)),
        (dellm.depth(1), (1, 2, 3), (4, 6)),
        (dellm.depth(2), (1, 2, 3, 4), (6,)),
        (dellm.depth(3), (1, 2, 3, 4, 6), ()),
    ],
    ids=str,
)
def test_depth_counts_replies_and_spares_what_is_further_away(
    memory: Memory, reach: dellm.Reach, goes: tuple[int, ...], spared: tuple[int, ...]
) -> None:
    grown(memory)
    plan = memory.plan(ids=[1], reach=reach)
    assert plan.ids == goes
    assert tuple(one.id for one in plan.spared) == spared
    receipt = memory.forget(plan)
    assert (receipt.ids, receipt.spared, receipt.relaxed) == (
        goes,
        len(spared),
        reach.kind != "strict",
    )
    assert receipt.reach == str(reach)
    assert tuple(one.id for one in memory.export()) == tuple(sorted({*spared, 5, 7}))
    for id_, context in ((2, [1]), (3, [1]), (4, [2, 3]), (6, [4, 5])):
        left = [one for one in context if one not in goes]
        assert memory.context_of(id_) == (left if id_ in spared else [])
    assert memory.context_of(7) == [5]
    assert memory.verify().ok


def test_each_dependent_has_a_shortest_path_from_a_match(memory: Memory) -> None:
    grown(memory)
    plan = memory.plan(ids=[1])
    assert {one.id: one.trace for one in plan.dependents} == {
        2: (1, 2),
        3: (1, 3),
        4: (1, 2, 4),
        6: (1, 2, 4, 6),
    }
    assert plan.explain(1) == "named by id"
    assert plan.explain(6) == "made from 1 → 2 → 4 → 6"
    with pytest.raises(InvalidInput):
        plan.explain(7)
    assert sorted(plan.graph().nodes()) == [1, 2, 3, 4, 6]
    assert len(plan.graph().edges()) == 5


@pytest.mark.parametrize(
    ("threshold", "goes", "spared"),
    [
        (0.0, (1, 2, 3, 4), ()),
        (0.5, (1, 2, 4), (3,)),
        (0.6, (1, 2), (3, 4)),
        (1.0, (1, 2), (3, 4)),
    ],
)
def test_influence_spares_replies_that_show_too_little_of_what_goes(
    memory: Memory, threshold: float, goes: tuple[int, ...], spared: tuple[int, ...]
) -> None:
    memory.remember("the falcon nests upon tower seven")  # 1
    memory.record("falcon nests", context=[1])  # 2: both its words come from 1
    memory.record("hello there friend", context=[1])  # 3: none does
    memory.record("falcon hello", context=[2, 3])  # 4: one of two, where 3 survives
    plan = memory.plan(ids=[1], reach=dellm.influence(threshold))
    assert (plan.ids, tuple(one.id for one in plan.spared)) == (goes, spared)
    receipt = memory.forget(plan)
    assert receipt.relaxed
    assert receipt.reach == f"influence({threshold:g})"
    assert tuple(one.id for one in memory.export()) == spared
    assert memory.verify().ok


def test_under_any_reach_every_copy_goes_with_what_it_is_a_copy_of(memory: Memory) -> None:
    first = memory.remember("The falcon nests on the tower")
    memory.remember(first.text, copy_of=1)
    memory.remember(first.text, copy_of=2)
    memory.remember(first.text, copy_of=1)
    for seed in (1, 2, 3, 4):
        for reach in (dellm.STRICT, dellm.depth(0), dellm.influence(0.9)):
            assert memory.plan(ids=[seed], reach=reach).ids == (1, 2, 3, 4)


def test_only_a_record_reached_over_a_copy_is_called_one(memory: Memory) -> None:
    memory.remember("my cat is Tom")
    memory.record("Tom it is", context=[1])
    memory.remember("Tom it is", copy_of=2)
    assert memory.plan(ids=[1]).copies == (3,)
    assert memory.plan(ids=[3]).copies == (2,)


@pytest.mark.parametrize("wrong", [-1, -5])
def test_a_reach_that_makes_no_sense_is_refused(wrong: int) -> None:
    with pytest.raises(InvalidInput):
        dellm.depth(wrong)
    with pytest.raises(InvalidInput):
        dellm.influence(wrong)
    with pytest.raises(InvalidInput):
        dellm.influence(1.5)


# held back


def test_what_is_on_hold_stays_and_loses_only_its_erased_context(memory: Memory, url: str) -> None:
    grown(memory)
    memory.holds.place(ids=[3], basis="case 1", by="counsel")
    plan = memory.plan(ids=[1])
    assert (plan.ids, [(one.id, one.why) for one in plan.held]) == (
        (1, 2, 4, 6),
        [(3, "on hold 1")],
    )
    receipt = memory.forget(plan)
    assert (receipt.ids, receipt.held) == ((1, 2, 4, 6), (3,))
    assert [one.id for one in memory.export()] == [5, 7]
    assert memory.context_of(3) == []
    assert memory.verify().ok


def test_a_match_on_hold_is_not_taken_whatever_the_mode(memory: Memory, url: str) -> None:
    memory.remember("I live in Paris")
    memory.record("Nice, Paris", context=[1])
    hold(url, "alex", 1)
    for mode in ("erase", "suppress", "redact"):
        plan = memory.plan("Paris", ids=[1], mode=mode)
        assert [one.id for one in plan.held] == [1]
        assert plan.matches == ()
    receipt = memory.forget(ids=[1], reach=dellm.depth(0))
    assert (receipt.level, receipt.ids, receipt.held) == ("held", (), (1,))
    assert [one.id for one in memory.export()] == [2]


# a plan binds


def test_a_plan_changes_nothing(memory: Memory, url: str) -> None:
    grown(memory)
    memory.index()
    with connected(url) as raw:
        before = rows_of(raw)
        for selection in ({"what": "root"}, {"everything": True}, {"meaning": "root one"}):
            memory.plan(**selection)
        assert rows_of(raw) == before


def test_a_plan_is_refused_when_its_answer_moved_and_not_when_something_else_came(
    memory: Memory,
) -> None:
    grown(memory)
    plan = memory.plan(ids=[1])
    memory.remember("nothing to do with it")
    other = memory.plan(ids=[5])
    memory.record("saw the root", context=[1])
    with pytest.raises(PlanChanged):
        memory.forget(plan)
    assert len(list(memory.export())) == 9
    assert memory.receipts() == []
    memory.forget(memory.plan(ids=[7]))
    with pytest.raises(PlanChanged):
        memory.forget(other)
    unmoved = memory.plan("root one")
    memory.remember("root two")
    assert memory.forget(unmoved).ids == (1, 2, 3, 4, 6, 9)


def test_a_plan_by_value_is_refused_when_the_value_was_said_again(memory: Memory) -> None:
    memory.remember("I live in Paris")
    plan = memory.plan("Paris")
    memory.remember("Paris is nice")
    with pytest.raises(PlanChanged):
        memory.forget(plan)
    assert memory.forget("Paris").ids == (1, 2)


def test_a_hold_that_came_after_the_plan_refuses_it(memory: Memory, url: str) -> None:
    grown(memory)
    plan = memory.plan(ids=[1])
    hold(url, "alex", 4)
    with pytest.raises(PlanChanged):
        memory.forget(plan)


def altered(plan: Plan) -> list[Plan]:
    return [
        replace(plan, dependents=plan.dependents[:-1]),
        replace(plan, dependents=()),
        replace(plan, matches=()),
        replace(plan, mode="suppress"),
        replace(plan, reach=dellm.depth(9)),
        replace(plan, workspace="other"),
        replace(plan, digest="0" * 64),
    ]


def test_an_altered_plan_is_refused(memory: Memory) -> None:
    grown(memory)
    plan = memory.plan(ids=[1])
    kept = plan.to_json()
    changed = [*altered(plan), *(Plan.from_json(one.to_json()) for one in altered(plan))]
    changed.append(Plan.from_json({**kept, "dependents": kept["dependents"][1:]}))
    for one in changed:
        with pytest.raises(PlanChanged):
            memory.forget(one)
    assert len(list(memory.export())) == 7
    assert memory.forget(plan).ids == (1, 2, 3, 4, 6)


def test_a_plan_of_another_workspace_is_refused(memory: Memory) -> None:
    other = memory.workspace("other")
    for one in (memory, other):
        grown(one)
    plan = memory.plan(ids=[1])
    with pytest.raises(PlanChanged):
        other.forget(plan)
    assert len(list(other.export())) == 7


@pytest.mark.parametrize("mode", ["erase", "suppress", "redact"])
def test_a_plan_kept_as_json_says_the_same_and_holds_no_content(memory: Memory, mode: str) -> None:
    memory.remember("Quokka Street is where I live", thread="t")
    memory.record("Quokka Street, noted", context=[1], thread="t", model="model-x")
    memory.remember("unrelated words")
    plan = memory.plan("Quokka Street", mode=mode)
    written = json.dumps(plan.to_json())
    assert "uokka" not in written
    assert "uokka" not in repr(plan)
    kept = Plan.from_json(json.loads(written))
    assert kept.to_json() == plan.to_json() | {"threads": 0, "exposures": {}}
    assert (kept.ids, kept.digest, len(kept), bool(kept)) == (plan.ids, plan.digest, 2, True)
    receipt = memory.forget(kept)
    assert receipt.ids == (1, 2)
    assert receipt.exposures == {"model-x": 1}
    assert memory.forget(kept) == receipt == memory.forget(plan)


def test_what_is_no_plan_is_refused(memory: Memory) -> None:
    memory.remember("x")
    good = memory.plan(ids=[1]).to_json()
    wrong: list[dict[str, Any]] = [{}, {**good, "matches": [{}]}, {**good, "reach": 5}]
    wrong += [{name: value for name, value in good.items() if name != gone} for gone in ("head",)]
    for one in wrong:
        with pytest.raises(InvalidInput):
            Plan.from_json(one)


def test_an_empty_plan_kept_as_json_finds_no_receipt_of_another(memory: Memory) -> None:
    memory.remember("x")
    memory.remember("y")
    memory.forget(Plan.from_json(memory.plan(ids=[1]).to_json()))
    with pytest.raises(NothingMatched):
        memory.forget(Plan.from_json(memory.plan("nowhere").to_json()))


def test_a_plan_takes_no_option_that_says_otherwise(memory: Memory) -> None:
    grown(memory)
    plan = memory.plan(ids=[1])
    for other in ({"mode": "suppress"}, {"reach": dellm.depth(0)}, {"ids": [1]}, {"thread": "t"}):
        with pytest.raises(InvalidInput):
            memory.forget(plan, **other)
    with pytest.raises(NothingMatched):
        memory.forget(memory.plan("nowhere"))
    assert len(list(memory.export())) == 7
    assert memory.forget(plan, mode="erase", reach=dellm.STRICT).ids == plan.ids


def test_the_tree_shows_each_record_once_below_what_it_was_made_from(
    memory: Memory, url: str
) -> None:
    grown(memory)
    memory.remember("root one", thread="u", copy_of=1)
    memory.remember("root one of a kind", thread="u")
    hold(url, "alex", 3)
    shown = str(memory.plan(ids=[1], reach=dellm.depth(2), suspects=False)).splitlines()
    assert shown == [
        "erase: 4 record(s) in 2 thread(s): 1 matched, 3 made from them, relaxed reach depth(2)",
        "├── 1 user: root one  [named by id]",
        "│   ├── 2 assistant: left  [made from it: 1 → 2]",
        "│   │   └── 4 assistant: joined  [made from it: 1 → 2 → 4]",
        "│   └── 8 user: root one  [copy: 1 → 8]",
        "├── spared by the chosen reach (1)",
        "│   └── 6 assistant: both  [3 replies away]",
        "└── held back (1)",
        "    └── 3 assistant  [on hold]",
    ]
    assert str(memory.plan("nowhere")) == "nothing matches: nothing would be changed"


def test_the_tree_of_a_large_plan_is_cut_and_says_so(memory: Memory) -> None:
    memory.remember_many([Draft(f"melon {n}\x1b[2J") for n in range(100)])
    memory.remember("plum")
    shown = str(memory.plan(keyword="melon")).splitlines()
    assert shown[-1].endswith("and 40 more")
    assert len(shown) == 62
    assert "\x1b" not in "".join(shown)


# exposures


def test_a_receipt_counts_the_replies_for_which_a_model_was_sent_what_goes(
    memory: Memory,
) -> None:
    memory.remember("my code is 4711")
    memory.record("a", context=[1], model="model-x")
    memory.record("b", context=[1], model="model-x")
    memory.record("c", context=[3], model="model-y")
    memory.remember("other")
    memory.record("d", context=[5], model="model-z")
    assert memory.plan(ids=[1]).exposures == {"model-x": 2, "model-y": 1}
    assert memory.plan(ids=[1], reach=dellm.depth(0)).exposures == {"model-x": 2}
    assert memory.plan(ids=[1], reach=dellm.depth(1)).exposures == {"model-x": 2, "model-y": 1}
    assert memory.forget(ids=[1], reach=dellm.depth(0)).exposures == {"model-x": 2}


# suspects


def test_suspects_are_shown_and_not_taken(memory: Memory) -> None:
    memory.remember("My phone number is (212) 867-5309")
    memory.remember("Dial 212.867.5309 for Ann")
    memory.remember("Melons are ripe")
    plan = memory.plan(ids=[1])
    assert plan.ids == (1,)
    assert [(one.id, one.why) for one in plan.suspects] == [(2, "carries a phone of record 1")]
    assert "suspects: not taken unless named with include= (1)" in str(plan)
    assert memory.plan(ids=[1], suspects=False).suspects == ()
    assert memory.plan(ids=[1], exclude=[2]).suspects == ()
    memory.forget(plan)
    assert [one.id for one in memory.export()] == [2, 3]
    assert memory.forget(memory.plan(include=[2])).ids == (2,)


# redaction


def test_a_redacted_record_lives_on_as_a_new_version_in_its_old_place(memory: Memory) -> None:
    memory.remember("hello", thread="t")  # 1
    memory.remember(
        "I am Ann and my phone number is (212) 867-5309, call me",
        thread="t",
        framework_id="m2",
        payload=b"(212) 867-5309",
        metadata={"mood": "calm", "seen": "212-867-5309", "list": ["+12128675309"]},
        purpose="support",
    )  # 2
    memory.record("I noted your number", context=[1, 2], thread="t")  # 3
    memory.remember("bye", thread="t")  # 4
    receipt = memory.forget("212 867 5309", mode="redact")
    assert receipt.redacted == {2: 5}
    assert receipt.ids == (2, 3)
    assert [one.id for one in memory.history("t")] == [1, 5, 4]
    new = memory.get(5)
    assert new.text == "I am Ann and my phone number is [redacted], call me"
    assert (new.place, new.version, new.framework_id) == (2, 2, "m2")
    assert (new.payload, new.metadata, new.purpose) == (None, {"mood": "calm"}, "support")
    with pytest.raises(NotFound):
        memory.get(2)
    assert memory.scan("212-867-5309", files=False).places == ()
    assert memory.verify().ok
    assert memory.forget("212 867 5309", mode="redact").number == receipt.number


def test_a_redaction_may_take_the_whole_clause(memory: Memory) -> None:
    memory.remember("I like melons, and my phone number is (212) 867-5309. See you.")
    assert memory.forget("212-867-5309", mode="redact", unit="clause").redacted == {1: 2}
    text = memory.get(2).text
    assert "phone" not in text
    assert "I like melons" in text
    assert text.endswith("See you.")
    with pytest.raises(InvalidInput):
        memory.forget("melons", mode="redact", unit="page")


def test_a_record_of_which_redaction_leaves_nothing_is_erased(memory: Memory) -> None:
    memory.remember("(212) 867-5309")
    memory.remember("call (212) 867-5309 now")
    receipt = memory.forget("212-867-5309", mode="redact")
    assert (receipt.ids, receipt.redacted) == ((1, 2), {2: 3})
    assert [one.text for one in memory.export()] == ["call [redacted] now"]


def test_a_redaction_keeps_a_context_that_survives_and_drops_what_was_derived(
    memory: Memory,
) -> None:
    memory.remember("Paris is large")  # 1
    memory.remember("which city?")  # 2
    memory.record("Paris, I think", context=[2])  # 3 matches, made from something else
    memory.record("Paris, says 1", context=[1, 2])  # 4 matches, derived from a match
    receipt = memory.forget(quote="Paris", mode="redact")
    assert receipt.redacted == {1: 5, 3: 6}
    assert receipt.ids == (1, 3, 4)
    assert memory.context_of(6) == [2]
    assert memory.used_in(2) == [6]
    assert memory.verify().ok


def test_redaction_needs_to_know_where_the_value_stands(memory: Memory) -> None:
    memory.remember("lookup done", metadata={"city": "Paris"})
    memory.remember("else")
    for selection in ({"ids": [1]}, {"what": "Paris"}, {"keyword": "lookup"}):
        with pytest.raises(SelectorError):
            memory.forget(mode="redact", **selection)
    assert memory.get(1).metadata == {"city": "Paris"}


def test_every_version_of_a_framework_object_can_be_redacted(memory: Memory) -> None:
    for version in (1, 2):
        memory.remember(
            f"I live in Paris, take {version}", framework_id="f", version=version, thread="t"
        )
    receipt = memory.forget("Paris", mode="redact")
    assert receipt.redacted == {1: 3, 2: 4}
    assert [(one.id, one.place, one.version) for one in memory.history("t")] == [
        (3, 1, 3),
        (4, 2, 4),
    ]
    with pytest.raises(ContextForgotten):
        memory.remember("I live in Paris, take 1", framework_id="f", version=1, thread="t")


def test_redacted_copies_stay_copies(memory: Memory) -> None:
    for original in (None, 1, 2):
        memory.remember("I live in Paris now", copy_of=original)
    assert memory.forget("Paris", mode="redact").redacted == {1: 4, 2: 5, 3: 6}
    assert memory.dependents([6]) == [4, 5, 6]
    assert memory.verify().ok


def test_a_suppressed_record_stays_suppressed_when_it_is_redacted(memory: Memory) -> None:
    memory.remember("I am Ann and I live in Paris")
    suppressed = memory.forget(ids=[1], mode="suppress")
    memory.forget("Paris", mode="redact")
    assert list(memory.export()) == []
    assert memory.restore(suppressed) == [2]
    assert [one.text for one in memory.export()] == ["I am Ann and I live in [redacted]"]


# suppress, restore, repeat


def test_a_suppression_hides_from_every_read_and_is_undone_by_its_receipt(
    memory: Memory,
) -> None:
    grown(memory)
    receipt = memory.forget(ids=[1], mode="suppress")
    assert (receipt.level, receipt.ids) == ("suppressed", (1, 2, 3, 4, 6))
    assert [one.id for one in memory.export()] == [5, 7]
    assert [one.id for one in memory.history("t")] == [5, 7]
    assert memory.search("root", by="both")[0].record.id == 5
    assert memory.context("root one", by="both", thread="t", last=9).ids == [5, 7]
    for by in ("meaning", "keyword", "both"):  # filtered before ranked: it takes no place
        assert [one.record.id for one in memory.search("root", by=by, limit=1)] == [5]
    for read in (memory.get, memory.explain):
        with pytest.raises(NotFound):
            read(1)
    with pytest.raises(ContextForgotten):
        memory.record("late", context=[5, 4])
    assert memory.restore(receipt) == [1, 2, 3, 4, 6]
    assert memory.restore(receipt) == []
    assert [one.id for one in memory.history("t")] == [1, 2, 3, 4, 5, 6, 7]
    assert memory.context_of(6) == [4, 5]
    again = memory.forget(ids=[1], mode="suppress")
    assert again.number > receipt.number
    assert [one.id for one in memory.export()] == [5, 7]


def test_what_two_suppressions_hold_comes_back_only_when_both_are_undone(memory: Memory) -> None:
    grown(memory)
    wide = memory.forget(ids=[1], mode="suppress")
    narrow = memory.forget(ids=[6], mode="suppress")
    assert memory.restore(wide) == [1, 2, 3, 4]
    wider = memory.forget(ids=[1], mode="suppress")
    assert wider.number > narrow.number
    assert memory.restore(wider) == [1, 2, 3, 4]
    again = memory.forget(ids=[6], mode="suppress")
    assert again == narrow
    assert memory.restore(narrow) == [6]


def test_what_is_suppressed_again_stays_so_when_another_suppression_is_undone(
    memory: Memory,
) -> None:
    grown(memory)
    narrow = memory.forget(ids=[6], mode="suppress")
    wide = memory.forget(ids=[4], mode="suppress")
    assert memory.restore(narrow) == []
    again = memory.forget(ids=[6], mode="suppress")
    assert again.number > wide.number
    assert memory.restore(wide) == [4]
    assert memory.restore(again) == [6]


def test_only_what_was_not_erased_since_comes_back(memory: Memory) -> None:
    grown(memory)
    receipt = memory.forget(ids=[1], mode="suppress")
    memory.forget(ids=[4])
    assert memory.restore(receipt) == [1, 2, 3]
    assert [one.id for one in memory.export()] == [1, 2, 3, 5, 7]
    assert memory.verify().ok


def test_only_a_suppression_of_this_workspace_is_undone(memory: Memory) -> None:
    other = memory.workspace("other")
    for one in (memory, other):
        one.remember("x")
    theirs = other.forget(ids=[1], mode="suppress")
    memory.forget(ids=[1], mode="suppress")
    with pytest.raises(InvalidInput):
        memory.restore(theirs)
    assert list(memory.export()) == []
    erased = memory.forget(ids=[1])
    with pytest.raises(InvalidInput):
        memory.restore(erased)


def test_a_repeated_forget_returns_the_receipt_of_the_first(memory: Memory) -> None:
    grown(memory)
    first = memory.forget("root one")
    assert memory.forget("root one") == first
    assert memory.forget(ids=[4]) == first
    assert memory.forget(include=[4]) == first
    assert memory.receipt(first.number) == first
    assert memory.receipts() == [first]
    memory.remember("root one")
    second = memory.forget("root one")
    assert second.ids == (8,)
    assert memory.forget("root one") == second
    assert memory.forget(ids=[4]) == first


def test_a_request_that_never_matched_has_no_receipt(memory: Memory) -> None:
    grown(memory)
    memory.forget("root one")
    for selection in (
        {"what": "root two"},
        {"quote": "root one"},
        {"what": "root one", "thread": "t"},
        {"what": "root one", "mode": "suppress"},
        {"what": "root one", "reach": dellm.depth(1)},
        {"ids": [99]},
    ):
        with pytest.raises(NothingMatched):
            memory.forget(**selection)
    with pytest.raises(NotFound):
        memory.receipt(2)


def test_a_repeat_is_recognised_by_what_was_asked_whether_planned_or_not(memory: Memory) -> None:
    memory.remember("I live in Paris")
    memory.remember("melons")
    receipt = memory.forget(memory.plan("Paris"))
    assert memory.forget("Paris") == receipt


# writing the same object again


def test_a_framework_object_given_twice_in_one_write_is_stored_once(memory: Memory) -> None:
    twice = [
        Draft("x", framework_id="f", thread="t"),
        Draft("y"),
        Draft("x", framework_id="f", thread="t"),
    ]
    assert [one.id for one in memory.remember_many(twice)] == [1, 2, 1]
    assert [one.id for one in memory.remember_many(twice)] == [1, 3, 1]
    with pytest.raises(InvalidInput):
        memory.remember_many([Draft("a", framework_id="g"), Draft("b", framework_id="g")])
    assert len(list(memory.export())) == 3
    assert memory.verify().ok


def test_an_erased_framework_object_cannot_be_written_again(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url)
    memory.remember("I live in Paris", framework_id="f", thread="t")
    memory.forget(ids=[1])
    for _ in range(2):
        with pytest.raises(ContextForgotten):
            memory.remember("I live in Paris", framework_id="f", thread="t")
        with pytest.raises(ContextForgotten):
            memory.record("other words", framework_id="f", thread="t", context=[])
    assert memory.remember("elsewhere", framework_id="f", thread="u").id == 2
    assert memory.remember("changed", framework_id="f", thread="t", version=2).id == 3
    again = opened(url)
    with pytest.raises(ContextForgotten):
        again.remember("I live in Paris", framework_id="f", thread="t")


def test_history_takes_no_negative_number_on_either_database(memory: Memory) -> None:
    grown(memory)
    assert memory.history("t", last=0) == []
    assert [one.id for one in memory.history("t", last=2)] == [6, 7]
    assert [one.id for one in memory.history("t", last=2, before=4)] == [2, 3]
    with pytest.raises(InvalidInput):
        memory.history("t", last=-1)
