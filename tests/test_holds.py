"""Legal holds: out of every read, past no forget, recorded, resumed, and shown in plans."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from raw_tables import connected, rows_of, statement

import dellm
from dellm import HeldRecord, InvalidInput, Memory, NotFound, erasing, planning, recognise
from dellm.plan import STRICT
from dellm.records import Status
from dellm.selectors import Look, Selector
from dellm_llamaindex.asking import Asking


def status(memory: Memory, id_: int) -> int | None:
    with memory._engine.reading(memory.id) as (tx, scope):
        row = tx.one("select status from record where ws = :ws and id = :id", ws=scope.ws, id=id_)
    return None if row is None else int(row[0])


def told(memory: Memory) -> None:
    memory.remember("I live in Paris", thread="t", subject="Ann")  # 1
    memory.record("Paris is fine", context=[1], thread="t")  # 2
    memory.record("Fine indeed", context=[2], thread="t")  # 3
    memory.remember("My cat is Tom", thread="u")  # 4


def test_what_is_held_is_out_of_every_read_and_comes_back(memory: Memory) -> None:
    told(memory)
    memory.index()
    hold = memory.holds.place(ids=[1], basis="case 4711", by="counsel")
    assert (hold.number, hold.kind, hold.ids, hold.records) == (1, "ids", (1,), 1)
    assert memory.holds() == [hold]
    with pytest.raises(NotFound):
        memory.get(1)
    assert [one.id for one in memory.export()] == [2, 3, 4]
    assert [one.id for one in memory.history("t")] == [2, 3]
    for by in ("keyword", "meaning", "both"):
        assert 1 not in [one.record.id for one in memory.search("I live in Paris", by=by)]
    assert 1 not in memory.context("I live in Paris", thread="t").ids
    with pytest.raises(dellm.ContextForgotten):
        memory.record("late", context=[1], thread="t")
    assert memory.verify().ok
    assert memory.holds.release(1) == []
    assert memory.get(1).text == "I live in Paris"
    assert memory.holds() == []
    assert [one.released_at is not None for one in memory.holds(released=True)] == [True]
    assert memory.verify().ok


def test_a_forget_leaves_what_is_held_and_takes_it_at_the_release(memory: Memory) -> None:
    told(memory)
    memory.holds.place(ids=[2], basis="case 4711", by="counsel")
    plan = memory.plan(ids=[1])
    assert (plan.ids, [(one.id, one.why) for one in plan.held]) == ((1, 3), [(2, "on hold 1")])
    receipt = memory.forget(plan)
    assert (receipt.ids, receipt.held) == ((1, 3), (2,))
    assert memory.holds.waiting() == [2]
    assert memory.verify().ok
    (late,) = memory.holds.release(1)
    assert late.ids == (2,)
    assert status(memory, 2) is None
    assert memory.holds.waiting() == []
    assert memory.verify().ok


def test_a_forget_of_nothing_but_held_records_waits_as_a_whole(memory: Memory) -> None:
    told(memory)
    memory.holds.place(ids=[4], basis="case 4711", by="counsel")
    receipt = memory.forget("My cat is Tom")
    assert (receipt.level, receipt.ids, receipt.held) == ("held", (), (4,))
    assert memory.forget("My cat is Tom") == receipt
    (done,) = memory.holds.release(1)
    assert done.ids == (4,)
    assert memory.forget("My cat is Tom").number == done.number


def test_what_comes_in_later_stays_in_use_until_somebody_asks(memory: Memory) -> None:
    told(memory)
    memory.holds.place(thread="t", basis="case 4711", by="counsel")
    new = memory.remember("Another thing", thread="t")
    assert [one.id for one in memory.history("t")] == [new.id]
    receipt = memory.forget(ids=[new.id])
    assert (receipt.ids, receipt.held) == ((), (new.id,))
    assert memory.history("t") == []
    assert status(memory, new.id) == Status.HELD
    assert [one.ids for one in memory.holds.release(1)] == [(new.id,)]
    assert [one.id for one in memory.history("t")] == [1, 2, 3]


def test_under_two_holds_a_record_waits_for_both(memory: Memory) -> None:
    told(memory)
    memory.holds.place(subject=" ann", basis="case 1", by="counsel")
    memory.holds.place(everything=True, basis="case 2", by="counsel")
    assert memory.plan(ids=[1]).held[0].why == "on hold 1, 2"
    memory.forget(ids=[1])
    assert memory.holds.release(1) == []
    assert list(memory.export()) == []
    (done,) = memory.holds.release(2)
    assert done.ids == (1, 2, 3)
    assert [one.id for one in memory.export()] == [4]
    assert memory.verify().ok


def test_a_redaction_and_a_suppression_wait_as_what_they_are(memory: Memory) -> None:
    memory.remember("I live in Paris and my cat is Tom")
    memory.remember("The door is green")
    memory.holds.place(everything=True, basis="case 1", by="counsel")
    memory.forget("Paris", mode="redact")
    memory.forget(ids=[2], mode="suppress")
    done = {one.mode: one for one in memory.holds.release(1)}
    assert done["redact"].redacted == {1: 3}
    assert memory.get(3).text == "I live in [redacted] and my cat is Tom"
    assert done["suppress"].ids == (2,)
    assert memory.restore(done["suppress"]) == [2]
    assert memory.verify().ok


def test_a_restored_suppression_comes_back_held(memory: Memory) -> None:
    memory.remember("The door is green")
    receipt = memory.forget(ids=[1], mode="suppress")
    memory.holds.place(ids=[1], basis="case 1", by="counsel")
    assert memory.restore(receipt) == []
    with pytest.raises(NotFound):
        memory.get(1)
    memory.holds.release(1)
    assert memory.get(1).text == "The door is green"


def test_a_hold_takes_the_copies_with_it(memory: Memory) -> None:
    memory.remember("I live in Paris")
    memory.remember_many([dellm.Draft("I live in Paris", copy_of=1, kind="state", role="item")])
    hold = memory.holds.place(ids=[1], basis="case 1", by="counsel")
    assert (hold.ids, hold.records) == ((1, 2), 2)
    with pytest.raises(NotFound):
        memory.get(2)


def test_a_plan_shows_a_hold_above(memory: Memory) -> None:
    told(memory)
    memory.holds.place(ids=[1], basis="case 1", by="counsel")
    plan = memory.plan(ids=[3])
    assert [(one.id, one.why) for one in plan.above] == [(1, "on hold 1")]
    assert "on hold, and stays" in str(plan)
    assert dellm.Plan.from_json(plan.to_json()).above == plan.above


def test_a_plan_kept_at_rest_still_knows_what_it_wanted_of_the_held(memory: Memory) -> None:
    told(memory)
    memory.holds.place(ids=[2], basis="case 1", by="counsel")
    kept = dellm.Plan.from_json(memory.plan("Paris").to_json())
    memory.remember("something else")
    assert memory.forget(kept).held == (2,)
    assert [one.ids for one in memory.holds.release(1)] == [(2,)]


def test_a_plan_made_before_the_hold_is_not_carried_out(memory: Memory) -> None:
    told(memory)
    plan = memory.plan(ids=[4])
    memory.holds.place(ids=[4], basis="case 1", by="counsel")
    with pytest.raises(dellm.PlanChanged):
        memory.forget(plan)
    assert status(memory, 4) == Status.HELD


def test_the_choke_point_refuses_whatever_the_plan_says(memory: Memory) -> None:
    told(memory)
    with memory._engine.reading(memory.id) as (tx, scope):
        plan = planning.make(tx, scope, Selector(ids=(4,)), Look("US", 1), reach=STRICT)
    memory.holds.place(thread="u", basis="case 1", by="counsel")
    with (
        pytest.raises(HeldRecord),
        memory._engine.writing(memory.id) as (tx, scope),
    ):
        erasing.erase(tx, scope, plan, 1, 1)
    assert status(memory, 4) == Status.HELD


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"ids": [1], "thread": "t"},
        {"ids": []},
        {"ids": [1], "basis": "a" * 81},
        {"ids": [1], "basis": "line\nbreak"},
        {"subject": "Ann", "basis": "the case of ann"},
        {"thread": ""},
    ],
)
def test_a_hold_of_nothing_or_that_would_tell_is_refused(memory: Memory, wrong: dict) -> None:
    told(memory)
    with pytest.raises(InvalidInput):
        memory.holds.place(**{"basis": "case 1", "by": "counsel", **wrong})
    with pytest.raises(NotFound):
        memory.holds.place(ids=[99], basis="case 1", by="counsel")
    assert memory.holds() == []
    assert memory.get(1).id == 1


def test_a_release_of_what_is_not_open_is_refused(memory: Memory) -> None:
    told(memory)
    memory.holds.place(ids=[1], basis="case 1", by="counsel")
    memory.holds.release(1)
    for number in (1, 2, 0):
        with pytest.raises(NotFound):
            memory.holds.release(number)


def test_a_hold_is_of_one_workspace(opened: Callable[..., Memory], url: str) -> None:
    memory = opened(url)
    first, other = memory.workspace("a"), memory.workspace("b")
    told(first)
    told(other)
    first.holds.place(everything=True, basis="case 1", by="counsel")
    assert other.holds() == []
    assert other.forget(ids=[1]).ids == (1, 2, 3)
    assert first.holds()[0].records == 4


def test_place_and_forget_at_once_leave_the_record_held_or_gone(
    memory: Memory, opened: Callable[..., Memory], url: str
) -> None:
    other = opened(url).workspace(memory.id)
    for turn in range(12):
        id_ = memory.remember(f"thing {turn}").id
        both = Barrier(2)

        def place(id_: int = id_, both: Barrier = both) -> bool:
            both.wait()
            try:
                other.holds.place(ids=[id_], basis="case 1", by="counsel")
            except NotFound:
                return False
            return True

        def forget(id_: int = id_, both: Barrier = both) -> dellm.Receipt:
            both.wait()
            return memory.forget(ids=[id_], scrub=False)

        with ThreadPoolExecutor(2) as pool:
            placed, receipt = pool.submit(place), pool.submit(forget)
        assert (receipt.result().ids, receipt.result().held) == (
            ((), (id_,)) if placed.result() else ((id_,), ())
        )
        assert status(memory, id_) == (Status.HELD if placed.result() else None)
    assert memory.verify().ok


def test_a_hold_is_still_there_in_a_backup_that_is_brought_back(
    sqlite_url: str, tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    memory = opened(sqlite_url)
    told(memory)
    memory.holds.place(thread="t", basis="case 1", by="counsel")
    memory.forget(ids=[1])
    memory.root.close() if hasattr(memory.root, "close") else memory.close()
    copy = tmp_path / "backup.db"
    shutil.copy(sqlite_url, copy)
    again = opened(str(copy))
    assert [one.number for one in again.holds()] == [1]
    assert again.holds.waiting() == [1, 2, 3]
    assert again.forget(ids=[2]).held == (1, 2, 3)  # all of it waits already
    assert [one.ids for one in again.holds.release(1)] == [(1, 2, 3)]
    assert [one.id for one in again.export()] == [4]


def test_what_is_refused_is_in_the_audit_chain_without_content(memory: Memory, url: str) -> None:
    canary = "zqxcanary"
    memory.remember(f"I am {canary}", subject=canary, thread=canary)
    memory.items.put("store", [dellm.Keep(("a",), "n", dellm.Atom(_value(canary)))])
    memory.holds.place(subject=canary, basis="case 1", by="counsel")
    memory.holds.place(everything=True, basis="case 2", by="counsel")
    memory.forget(canary)
    memory.items.clear("store")
    done = {one.action: one.body for one in memory.audit()}
    assert done["erase"]["held"] == [1, 2]
    assert done["erase"]["holds"] == [1, 2]
    memory.holds.release(1)
    memory.holds.release(2, by="judge")
    assert [one.body["hold"] for one in memory.audit() if one.action == "release"] == [1, 2]
    with connected(url) as raw:
        left = rows_of(raw)
    assert not [name for name, rows in left.items() if canary in repr(rows)]
    assert memory.verify().ok


def _value(text: str) -> dellm.Draft:
    return dellm.Draft(text, role="item", kind="state")


def test_a_value_that_is_deleted_waits_and_says_so(memory: Memory) -> None:
    memory.items.put("store", [dellm.Keep(("a",), "n", dellm.Atom(_value("one")))])
    memory.holds.place(ids=[1], basis="case 1", by="counsel")
    assert memory.items.clear("store") == 1
    assert [one.body for one in memory.audit() if one.action == "held"] == [
        {"ids": [1], "holds": [1]}
    ]
    assert memory.items.clear("store") == 0
    assert memory.holds.waiting() == [1]
    assert memory.holds.release(1) == []
    assert memory.items.get("store", [(("a",), "n")]) == [None]
    assert memory.verify().ok


@pytest.mark.parametrize(
    "harm",
    [
        "update workspace set holds = 0 where name = 'alex'",
        "update record set status = 0 where id = 1",
        "update record set status = 3 where id = 4",
        "update hold set released_at = 1",
        "delete from hold",
        "update hold set upto = 0",
        "insert into hold_record(ws, id, hold) select ws, 99, 1 from hold",
        "insert into hold_wait(ws, id, mode, alone, spans, receipt)"
        " select ws, 4, 'erase', 0, '[]', 0 from hold",
    ],
)
def test_verify_finds_what_holds_and_records_say_otherwise(
    memory: Memory, url: str, harm: str
) -> None:
    told(memory)
    memory.holds.place(thread="t", basis="case 1", by="counsel")
    assert memory.verify().ok
    with connected(url) as raw:
        statement(raw, harm)
    assert not memory.verify().ok


def test_an_expired_record_on_hold_goes_at_the_release(
    opened: Callable[..., Memory], url: str
) -> None:
    hours = [1]
    memory = opened(url, clock=lambda: hours[0] * 3_600_000_000)
    memory.remember("soon over", retention_until=2 * 3_600_000_000)
    memory.holds.place(ids=[1], basis="case 1", by="counsel")
    hours[0] = 3
    assert memory.expiry.sweep().kept == 1
    entries = len(memory.audit())
    assert memory.expiry.sweep().kept == 1
    assert len(memory.audit()) == entries
    assert [one.ids for one in memory.holds.release(1)] == [(1,)]


def test_a_thread_of_calls_stays_whole_while_a_result_is_held(memory: Memory) -> None:
    memory.remember("My flight is AB123", thread="t")
    memory.record("ok", context=[1], thread="t")
    memory.holds.place(ids=[2], basis="case 1", by="counsel")
    assert memory.forget(ids=[1]).held == (2,)
    assert memory.context_of(2) == []
    assert memory.verify().ok


def test_a_thread_without_a_hold_asks_nothing_more_of_the_database(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the holds were read")

    for name in ("covering", "settle", "wait"):
        monkeypatch.setattr(dellm.holding, name, never)
    told(memory)
    memory.context("Paris", thread="t")
    for text in ("one", "two"):
        memory.items.put("store", [dellm.Keep(("a",), "n", dellm.Atom(_value(text)))])


def test_what_is_held_cannot_be_put_right_and_the_chain_says_that_it_was_tried(
    memory: Memory,
) -> None:
    told(memory)
    memory.holds.place(ids=[4], basis="case 1", by="counsel")
    with pytest.raises(HeldRecord):
        memory.correct(4, "My cat is Tim")
    assert memory.holds.waiting() == []
    assert [one.body for one in memory.audit() if one.action == "held"] == [
        {"ids": [4], "holds": [1]}
    ]
    memory.holds.release(1)
    assert memory.get(4).text == "My cat is Tom"


@pytest.mark.parametrize("by", ["tool", "document", "model", "agent"])
def test_nothing_is_held_or_released_on_the_word_of_a_tool(memory: Memory, by: str) -> None:
    told(memory)
    with pytest.raises(dellm.PolicyRefused):
        memory.holds.place(ids=[4], basis="case 1", by=by)
    memory.holds.place(ids=[4], basis="case 1", by="counsel")
    with pytest.raises(dellm.PolicyRefused):
        memory.holds.release(1, by=by)
    assert [one.number for one in memory.holds()] == [1]
    assert [one.body["action"] for one in memory.audit() if one.action == "refused"] == ["hold"] * 2


def test_a_request_for_what_is_all_held_is_told_nothing_and_waits(memory: Memory) -> None:
    memory.remember("I was born in Zanzibar", thread="t")
    memory.remember("My cat is Tom", thread="t")
    memory.holds.place(ids=[1], basis="case 1", by="counsel")
    request = recognise('Please forget "I was born in Zanzibar".')
    assert request is not None
    said = Asking(memory, "t").ask(request)
    assert (said.question, said.preview) == (None, "")
    assert memory.holds.waiting() == [1]
    assert [one.ids for one in memory.holds.release(1)] == [(1,)]
    assert [one.text for one in memory.export()] == ["My cat is Tom"]


DESTROYING = re.compile(r"delete from record\b|update record set (?:text|payload|metadata) = ''")


def test_nothing_but_the_two_places_that_look_at_holds_takes_content_away() -> None:
    core = Path(dellm.__file__).parent
    found = {
        path.name
        for path in core.rglob("*.py")
        if DESTROYING.search(re.sub(r'"\s*\n\s*f?"', "", path.read_text("utf-8")))
    }
    assert found == {"erasing.py", "item_rows.py"}


def test_what_a_backup_brings_back_under_a_hold_waits_and_the_rest_is_served(
    tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    now, then, journal = (tmp_path / name for name in ("now.db", "then.db", "forgets.journal"))
    memory = opened(str(now), journal=str(journal))
    told(memory)
    memory.holds.place(ids=[4], basis="case 1", by="counsel")
    memory.close()
    shutil.copy(now, then)
    memory = opened(str(now), journal=str(journal))
    memory.forget(ids=[4])
    memory.holds.release(1)
    assert status(memory, 4) is None
    memory.close()
    back = opened(str(then), journal=str(journal))
    with pytest.raises(dellm.RestoreCheckNeeded):
        back.holds()
    assert back.restore_check().held == {"default": (4,)}
    assert [one.id for one in back.export()] == [1, 2, 3]
    assert back.holds.waiting() == [4]
    assert [one.ids for one in back.holds.release(1)] == [(4,)]
    assert back.restore_check().ok
    assert back.verify().ok
