"""Checkpoints hold references only: what was erased is in none of them, and all else is as it was."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from lines import (
    Run,
    known,
    loaded,
    made_at,
    nothing,
    run,
    said,
    state,
    text_of,
    value_of,
    values,
    writes,
)
from raw_tables import connected, rows_of, statement

from dellm import (
    Atom,
    Body,
    Checkpoint,
    Draft,
    Fields,
    InvalidInput,
    Literal,
    Many,
    Memory,
    NotFound,
    Place,
    Receipt,
    Sources,
    TaskWrite,
    Wrapped,
)

SECRET = "zyxcanaryword"


def forget(memory: Memory, what: str | None = None, **selection: Any) -> Receipt:
    """Forget, and make sure that no table holds the canary any more and everything is consistent."""
    receipt = memory.forget(what, scrub=False, **selection)
    assert memory.verify().problems == ()
    if selection.get("mode") != "suppress":
        assert memory.scan(SECRET, files=False).places == ()
    return receipt


def count(url: str, table: str) -> int:
    with connected(url) as raw:
        return int(statement(raw, f"select count(*) from {table}")[0][0])


# what is stored


def test_a_thread_of_n_turns_costs_a_fixed_number_of_rows_a_turn(memory: Memory, url: str) -> None:
    one = run(memory)
    rows: list[tuple[int, ...]] = []
    for turn in range(60):
        one.more("messages", said(f"question {turn}"), said(f"answer {turn}"))
        if turn % 20 == 19:
            rows.append(tuple(count(url, name) for name in ("edge", "sequence", "record")))
    grown = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in itertools.pairwise(rows)]
    assert grown[0] == grown[1] == (60, 20, 40)  # a base and two records in each new sequence
    for turn in (0, 31, 59):
        wanted = [f"{who} {n}" for n in range(turn + 1) for who in ("question", "answer")]
        assert values(memory, f"c{turn + 1:04}") == {"messages": wanted}
    with connected(url) as raw:
        bodies = [len(row[0]) for row in statement(raw, "select body from checkpoint")]
    assert max(bodies) < min(bodies) + 8


def test_a_list_that_is_the_value_of_many_channels_and_checkpoints_is_stored_once(
    memory: Memory, url: str
) -> None:
    one = run(memory)
    one.more("a", *(said(f"m{n}") for n in range(20)))
    ids = one.cells["a"].known
    before = count(url, "sequence"), count(url, "edge"), count(url, "record")
    one.put(b=Many(ids))
    one.put(c=Many(ids, tupled=True))
    one.put()
    assert (count(url, "sequence"), count(url, "edge"), count(url, "record")) == before
    texts = [f"m{n}" for n in range(20)]
    assert values(memory) == {"a": texts, "b": texts, "c": tuple(texts)}


def test_every_kind_of_value_comes_back_as_it_went_in(memory: Memory) -> None:
    one = run(memory)
    literals = [None, True, 0, 1.5, "word", [1, None], {"a": [1, 2]}]
    versions: dict[str, Any] = {"whole": 3, "broken": 0.5, "text": "00000003.0.5", "empty": 1}
    place = Place("t", "", "c0001")
    many = Many(atoms=[said("x"), said("y")], kept=True)
    cells = {
        "whole": Fields({"first": state("inner"), "second": Many(atoms=[said("z")])}),
        "broken": Wrapped("overwrite", many),
        "text": Literal(literals),
        "loose": Many(),
    }
    body = Body(4, "now", versions, {}, {"node": {"whole": 2}}, ["text"],
                {"source": "loop", "step": -1, "writes": None}, others={"extra": [1]})  # fmt: skip
    settings = state("told", payload=b"settings")
    memory.checkpoints.put(
        Checkpoint(
            place, None, body, list(cells), frozenset(), cells.__getitem__, settings=settings
        ),
        0,
    )
    for other in (memory, memory):
        found = loaded(other, "c0001")
        assert found.place == place
        assert found.parent is None
        assert found.body.versions == versions
        assert [type(v) for v in found.body.versions.values()] == [int, float, str, int]
        assert (found.body.v, found.body.ts, found.body.updated) == (4, "now", ["text"])
        assert found.body.seen == {"node": {"whole": 2}}
        assert found.body.metadata == {"source": "loop", "step": -1, "writes": None}
        assert found.body.others == {"extra": [1]}
        assert found.records[found.body.settings].payload == b"settings"
        assert {name: value_of(found, cell) for name, cell in found.body.cells.items()} == {
            "whole": {"first": "inner", "second": ["z"]},
            "broken": ("overwrite", ["x", "y"]),
            "text": literals,
            "loose": [],
        }
    assert memory.verify().ok
    assert one.checkpoints.exists(place)
    assert not one.checkpoints.exists(Place("t", "other", "c0001"))
    assert not one.checkpoints.exists(Place("nobody", "", "c0001"))


@pytest.mark.parametrize(
    "name", ["a", "%", "a\x00b", "\ud800", "ä", "'; drop table line", "\U0001f600"]
)
def test_any_name_of_thread_namespace_channel_and_checkpoint_is_kept_apart(
    memory: Memory, name: str
) -> None:
    run(memory, "t").put(x=state("plain"))
    one = Run(memory.checkpoints, thread=name, ns=name)
    one.put(name, **{name: state("odd")})
    found = loaded(memory, None, name, name)
    assert (found.place.thread, found.place.ns, found.place.cid) == (name, name, name)
    assert values(memory, None, name, name) == {name: "odd"}
    assert values(memory) == {"x": "plain"}
    assert memory.checkpoints.threads() == sorted({"t", name})
    memory.checkpoints.delete_thread(name)
    assert memory.checkpoints.get(name, name, None, nothing).loaded == []
    assert values(memory) == {"x": "plain"}


def test_a_checkpoint_put_again_takes_the_place_of_the_first(memory: Memory) -> None:
    one = run(memory)
    one.put("same", x=state("first"))
    one.parent = None
    one.put("same", x=state("second"), y=Literal(1))
    assert values(memory, "same") == {"x": "second", "y": 1}
    page = memory.checkpoints.page("t", "", nothing)
    assert [found.place.cid for found in page.loaded] == ["same"]


def test_the_writes_of_a_task_stay_as_first_written_but_for_its_special_ones(
    memory: Memory,
) -> None:
    one = run(memory)
    one.put(x=Literal(1))
    one.write((0, "x", state("first")), (1, "list", Many(atoms=[said("a"), said("b")])))
    one.write((-1, "error", state("broken")))
    one.write((0, "x", state("again")), (2, "late", Literal(7)))
    one.write((-1, "error", state("broken anew")))
    one.write((0, "y", Literal(None)), (1, "z", Literal(False)), task="other")
    seen = [(found.task, found.path, found.at, found.channel) for found in loaded(memory).writes]
    assert sorted(seen) == [
        ("other", "path", 0, "y"), ("other", "path", 1, "z"),
        ("task", "path", -1, "error"), ("task", "path", 0, "x"),
        ("task", "path", 1, "list"), ("task", "path", 2, "late"),
    ]  # fmt: skip
    assert sorted(writes(memory), key=repr) == [
        ("error", -1, "broken anew"),
        ("late", 2, 7),
        ("list", 1, ["a", "b"]),
        ("x", 0, "first"),
        ("z", 1, False),
    ]


def test_pages_and_ancestors_go_from_the_newest_to_the_oldest(memory: Memory) -> None:
    one = run(memory)
    for turn in range(7):
        one.put(x=state(f"x{turn}"))
    branch = run(memory, name="d", parent="c0003")
    branch.put(x=state("branched"))
    run(memory, ns="inner", name="e").put(x=state("inner"))
    run(memory, "u", name="f").put(x=state("elsewhere"))
    checkpoints = memory.checkpoints

    def ids(*where: Any, **how: Any) -> list[str]:
        return [found.place.cid for found in checkpoints.page(*where, nothing, **how).loaded]

    seven = [f"c{n:04}" for n in range(7, 0, -1)]
    assert ids("t", "") == ["d0001", *seven]
    assert ids("t", "", limit=3) == ["d0001", *seven[:2]]
    assert ids("t", "", after=("t", "", "c0006"), limit=2) == ["c0005", "c0004"]
    assert ids("t", "", before="c0003") == ["c0002", "c0001"]
    assert ids("t", None) == ["e0001", "d0001", *seven]
    assert ids(None, None) == ["f0001", "e0001", "d0001", *seven]
    assert ids(None, "inner") == ["e0001"]
    assert ids("nobody", None) == ids("t", "nowhere") == ids("t", "", limit=0) == []
    assert loaded(memory).place.cid == "d0001"
    above = [s.loaded[0].place.cid for s in checkpoints.ancestors("t", "", "d0001", nothing)]
    assert above == ["c0003", "c0002", "c0001"]
    assert list(checkpoints.ancestors("t", "", "c0001", nothing)) == []
    assert list(checkpoints.ancestors("t", "", "nothing", nothing)) == []


def test_a_reader_gets_only_the_records_it_has_not(memory: Memory) -> None:
    one = run(memory)
    one.more("messages", said("a"), said("b"))
    first = loaded(memory)
    have = set(first.records)
    one.more("messages", said("c"))
    (found,) = memory.checkpoints.get("t", "", None, lambda generation: have).loaded
    assert [held.text for held in found.records.values()] == ["c"]
    (ids,) = found.lists.values()
    assert len(ids) == 3


# erasing


def talk(memory: Memory) -> Run:
    """Five turns; the third says the canary, which the state of turns 3 and 4 holds as well."""
    one = run(memory)
    facts = ["none", "blue", f"{SECRET} fact", f"{SECRET} fact again", "green"]
    for turn, fact in enumerate(facts):
        text = f"I say {SECRET}" if turn == 2 else f"turn {turn}"
        one.more("messages", said(text, fid=f"m{turn}"), fact=state(fact))
    return one


def test_an_erased_message_is_in_no_checkpoint_and_the_rest_is_as_it_was(
    memory: Memory, url: str
) -> None:
    talk(memory)
    with connected(url) as raw:
        before = rows_of(raw)
    forget(memory, SECRET)
    kept = ["turn 0", "turn 1", "turn 3", "turn 4"]
    for turn, fact in enumerate(["none", "blue", "blue", "blue", "green"]):
        left = kept[: turn + 1 if turn < 2 else turn]
        assert values(memory, f"c{turn + 1:04}") == {"messages": left, "fact": fact}
    assert loaded(memory, "c0003").gone == {"fact"}
    assert loaded(memory, "c0003").lost == set()
    assert loaded(memory, "c0002").gone == set()
    assert loaded(memory, "c0002").affected == set()
    assert len(loaded(memory, "c0003").affected) == 1
    with connected(url) as raw:
        after = rows_of(raw)
    for table in ("checkpoint", "line", "label", "task_write"):
        assert after[table] == before[table]
    assert set(after["record"]) < set(before["record"])
    assert set(after["edge"]) < set(before["edge"])


def test_a_value_with_no_surviving_earlier_one_is_lost(memory: Memory) -> None:
    one = run(memory)
    one.put(fact=state(f"{SECRET} one"), other=Literal(1))
    one.put(fact=state(f"{SECRET} two"))
    one.put(fact=state("clean"))
    forget(memory, SECRET)
    for cid in ("c0001", "c0002"):
        assert values(memory, cid) == {"other": 1}
        assert loaded(memory, cid).lost == {"fact"}
    assert values(memory, "c0003") == {"other": 1, "fact": "clean"}
    assert loaded(memory, "c0003").lost == set()


def test_an_earlier_value_comes_from_the_parents_and_not_from_another_branch(
    memory: Memory,
) -> None:
    one = run(memory)
    one.put(fact=state("root"))
    left, right = run(memory, parent="c0001", name="l"), run(memory, parent="c0001", name="r")
    left.put(fact=state("left"))
    right.put(fact=state(f"{SECRET} right"))
    forget(memory, SECRET)
    assert values(memory, "l0001") == {"fact": "left"}
    assert values(memory, "r0001") == {"fact": "root"}


def test_kept_places_stay_and_tuples_close_up(memory: Memory) -> None:
    one = run(memory)
    atoms = [said("a"), said(SECRET), said("c"), state(f"{SECRET} state")]
    one.put(
        places=Many(atoms=atoms, kept=True),
        tupled=Many(atoms=atoms, tupled=True),
        listed=Many(atoms=atoms),
        inner=Fields({"places": Many(atoms=atoms, kept=True), "one": atoms[1], "two": atoms[2]}),
        wrapped=Wrapped("label", Many(atoms=atoms, tupled=True)),
    )
    one.write((0, "places", Many(atoms=atoms, kept=True)), (1, "gone", atoms[1]))
    forget(memory, SECRET)
    assert values(memory) == {
        "places": ["a", None, "c", None],
        "tupled": ("a", "c"),
        "listed": ["a", "c"],
        "inner": {"places": ["a", None, "c", None], "one": None, "two": "c"},
        "wrapped": ("label", ("a", "c")),
    }
    assert writes(memory) == [("places", 0, ["a", None, "c", None])]
    forget(memory, ids=[atoms[0].id])
    assert values(memory)["places"] == [None, None, "c", None]
    assert values(memory)["tupled"] == ("c",)


def test_what_a_state_refers_to_goes_from_inside_it(memory: Memory) -> None:
    one = run(memory)
    first, second = said("kept"), said(SECRET)
    inner = state("inner", refs=[second], payload=b"inner")
    one.put(x=state("outer", refs=[first, second, inner, first], payload=b"outer"))
    found = loaded(memory)
    outer = found.records[found.body.cells["x"]]
    refs = outer.metadata["refs"]
    assert [text_of(found, one) for one in refs] == ["kept", SECRET, "inner", "kept"]
    forget(memory, ids=[second.id])
    found = loaded(memory)
    assert found.records[found.body.cells["x"]].payload == b"outer"
    assert [text_of(found, one) for one in refs] == ["kept", None, "inner", "kept"]


def test_dependents_of_what_is_erased_go_from_the_checkpoints_too(memory: Memory) -> None:
    one = run(memory)
    question = said(f"I live in {SECRET}")
    reply = said("Noted.", made=Sources(context=[question]), role="assistant")
    note = state("lives somewhere", made=Sources(also=[reply]))
    other = said("Hello.", role="assistant")
    one.put(messages=Many(atoms=[question, reply, other]), note=note)
    report = one.put(report=state("report", made=Sources(place=Place("t", "", "c0001"))))
    receipt = forget(memory, f"I live in {SECRET}")
    assert set(receipt.ids) >= {question.id, reply.id, note.id}
    assert values(memory, "c0001") == {"messages": ["Hello."]}
    assert values(memory, report) == {"messages": ["Hello."]}


def test_a_redacted_version_stands_wherever_the_old_one_stood(memory: Memory) -> None:
    one = run(memory)
    atoms = [said("a"), said(f"My code is {SECRET}. I like tea."), said("c")]
    one.put(listed=Many(atoms=atoms), places=Many(atoms=atoms, kept=True), alone=atoms[1])
    one.more("listed", said("d"))
    one.put(x=state("outer", refs=[atoms[1]], payload=b"outer"))
    one.write((0, "w", Many(atoms=atoms)), (1, "alone", atoms[1]))
    forget(memory, SECRET, mode="redact")
    new = "My code is [redacted]. I like tea."
    assert values(memory, "c0001") == {
        "listed": ["a", new, "c"], "places": ["a", new, "c"], "alone": new
    }  # fmt: skip
    assert values(memory, "c0002")["listed"] == ["a", new, "c", "d"]
    assert writes(memory) == [("w", 0, ["a", new, "c"]), ("alone", 1, new)]
    found = loaded(memory)
    (ref,) = found.records[found.body.cells["x"]].metadata["refs"]
    assert text_of(found, ref) == new
    forget(memory, "I like tea", mode="redact")
    newest = values(memory, "c0001")
    assert newest["listed"][0::2] == ["a", "c"]
    assert "tea" not in str(newest)
    assert "tea" not in str(writes(memory))
    assert newest["listed"][1] == newest["alone"] == newest["places"][1]
    forget(memory, quote=newest["alone"])
    assert values(memory, "c0001") == {"listed": ["a", "c"], "places": ["a", None, "c"]}


def test_a_suppressed_record_is_hidden_everywhere_and_comes_back_everywhere(memory: Memory) -> None:
    talk(memory)
    before = [dict(values(memory, f"c{n:04}")) for n in range(1, 6)]
    receipt = forget(memory, SECRET, mode="suppress")
    hidden = [dict(values(memory, f"c{n:04}")) for n in range(1, 6)]
    assert SECRET not in str(hidden)
    assert hidden[3] == {"messages": ["turn 0", "turn 1", "turn 3"], "fact": "blue"}
    memory.restore(receipt)
    assert [dict(values(memory, f"c{n:04}")) for n in range(1, 6)] == before
    assert memory.verify().ok


def test_another_process_that_read_before_sees_nothing_of_it_after(
    url: str, opened: Callable[..., Memory]
) -> None:
    first = opened(url).workspace("alex")
    second = opened(url).workspace("alex")
    talk(first)
    reader = second.checkpoints  # keeps rows, lists and names
    assert SECRET in str(reader.get("t", "", "c0004", nothing).loaded)
    forget(first, SECRET)
    seen = reader.get("t", "", "c0004", nothing)
    assert SECRET not in repr(seen.loaded)
    (found,) = seen.loaded
    assert value_of(found, found.body.cells["fact"]) == "blue"
    first.checkpoints.delete_thread("t")
    assert reader.get("t", "", "c0004", nothing).loaded == []
    assert reader.get("t", "", None, nothing).loaded == []
    assert not reader.exists(Place("t", "", "c0004"))
    assert reader.threads() == []


# states are no memory of their own


def test_a_state_is_found_only_by_what_it_holds(memory: Memory) -> None:
    one = run(memory)
    one.put(
        messages=Many(atoms=[said("A plain message.")]),
        x=state(f"the phone is 415-555-0134 {SECRET}"),
    )
    memory.index()
    state_id = loaded(memory).body.cells["x"]
    assert [found.kind for found in memory.history("t")] == ["message"]
    assert memory.history("t", last=5) == memory.history("t")
    for by in ("meaning", "keyword", "both"):
        for query in (SECRET, "phone", "A plain message."):
            ids = [hit.record.id for hit in memory.search(query, by=by, threshold=-1, limit=50)]
            assert state_id not in ids
            assert state_id not in memory.context(query, thread="t", last=9, k=50, by=by).ids
    assert memory.get(state_id).kind == "state"
    for selection in (
        {"value": "+1 (415) 555-0134"}, {"keyword": SECRET}, {"quote": "the phone is"},
        {"what": SECRET}, {"ids": [state_id]}, {"where": {"kind": "state"}},
    ):  # fmt: skip
        assert memory.plan(**selection).ids == (state_id,), selection
    assert memory.verify().ok
    forget(memory, value="+1 (415) 555-0134")
    assert values(memory) == {"messages": ["A plain message."]}
    assert memory.scan("415-555-0134", files=False).places == ()


def test_states_change_no_ranking(memory: Memory) -> None:
    memory.remember("common rare")
    memory.remember("common common")
    before = [(hit.record.id, hit.score) for hit in memory.search("common rare", by="keyword")]
    one = run(memory)
    for n in range(30):
        one.put(x=state(f"rare rare rare {n}"))
    assert [
        (hit.record.id, hit.score) for hit in memory.search("common rare", by="keyword")
    ] == before


# late writes


def test_a_run_that_still_holds_what_was_erased_stores_nothing_of_it(memory: Memory) -> None:
    one = talk(memory)
    forget(memory, SECRET)
    derived = said("Derived.", made=Sources(place=Place("t", "", "c0005")), role="assistant")
    one.more("messages", derived, said("A new question."))
    assert one.refused
    assert derived.id is None
    assert values(memory) == {
        "messages": ["turn 0", "turn 1", "turn 3", "turn 4", "A new question."],
        "fact": "green",
    }
    forget(memory, "A new question.")
    assert memory.scan("Derived", files=False).places == ()


def test_known_ids_that_are_gone_are_left_out_whatever_holds_them(memory: Memory) -> None:
    one = run(memory)
    atoms = [said("a"), said(SECRET), said("c")]
    one.put(x=Many(atoms=atoms), alone=atoms[1])
    ids = [atom.id or 0 for atom in atoms]
    forget(memory, SECRET)
    one.put(
        x=Many(ids), places=Many(ids, kept=True), alone=Atom(known=ids[1]),
        inner=Fields({"x": Many(ids), "one": Wrapped("w", Atom(known=ids[1]))}),
    )  # fmt: skip
    assert one.refused
    one.write((0, "x", Many(ids)), (1, "y", Atom(known=ids[1])), (2, "z", Many(ids, kept=True)))
    assert values(memory) == {
        "x": ["a", "c"], "places": ["a", None, "c"],
        "inner": {"x": ["a", "c"], "one": ("w", None)},
    }  # fmt: skip
    assert writes(memory) == [("x", 0, ["a", "c"]), ("z", 2, ["a", None, "c"])]
    assert loaded(memory, "c0001").lost == {"alone"}
    assert memory.verify().ok


def test_an_erased_object_of_the_framework_is_not_stored_again(memory: Memory) -> None:
    one = run(memory)
    one.more("messages", said(SECRET, fid="m1"), said("kept", fid="m2"))
    forget(memory, SECRET)
    fresh = run(memory, parent="c0001", name="d", since=len(memory.ledger()))
    again = [said(SECRET, fid="m1"), said("kept", fid="m2"), said(f"changed {SECRET}", fid="m1")]
    fresh.put(messages=Many(atoms=again), alone=said(SECRET, fid="m1"))
    assert fresh.refused
    assert [atom.id for atom in again] == [None, 2, None]
    assert values(memory) == {"messages": ["kept"]}
    fresh.write(
        (0, "messages", Many(atoms=[said(SECRET, fid="m1")])), (1, "x", said(SECRET, fid="m1"))
    )
    assert writes(memory) == [("messages", 0, [])]
    assert memory.scan(SECRET, files=False).places == ()


def test_an_object_is_found_again_and_a_changed_one_is_a_new_version(memory: Memory) -> None:
    one = run(memory)
    one.put(x=said("first", fid="m"), y=said("first", fid="m"))
    one.put(x=said("first", fid="m"))
    changed = said("second", fid="m")
    one.put(x=changed)
    assert changed.id != 1
    assert memory.get(changed.id or 0).version == 2
    assert memory.get(1).version == 1
    looked = Atom(Draft("second", thread="t", framework_id="m"), lookup=True)
    unknown = Atom(Draft("never", thread="t", framework_id="n"), lookup=True)
    one.put(z=looked, u=unknown)
    assert looked.id == changed.id
    assert unknown.id is None
    assert len(list(memory.export())) == 2
    anew = Atom(Draft("second", thread="t", framework_id="m"), anew=True)
    one.put(x=anew)
    assert memory.get(anew.id or 0).version == 3
    forget(memory, ids=[1])
    assert values(memory, "c0001") == {}
    assert values(memory, "c0003")["x"] == "second"
    later = said("third", fid="m")
    one.put(x=later)
    assert later.id is None  # a version of the object was erased


def test_one_object_handed_in_twice_is_one_record_and_two_contents_are_two_versions(
    memory: Memory,
) -> None:
    one = run(memory)
    first, second = said("one object", fid="m"), said("one object", fid="m")
    changed = said("changed", fid="m")
    looked = Atom(Draft("one object", thread="t", framework_id="m"), lookup=True)
    reply = said("reply", made=Sources(context=[second]))
    outer = state("outer", refs=[second, changed], payload=b"outer")
    one.put(a=first, b=second, c=Many(atoms=[changed, looked]), d=reply, e=outer)
    assert first.id == second.id == looked.id
    assert [memory.get(one.id or 0).version for one in (first, changed)] == [1, 2]
    assert values(memory) == {
        "a": "one object", "b": "one object", "c": ["changed", "one object"], "d": "reply",
        "e": "outer",
    }  # fmt: skip
    found = loaded(memory)
    refs = found.records[outer.id or 0].metadata["refs"]
    assert [text_of(found, ref) for ref in refs] == ["one object", "changed"]
    assert forget(memory, ids=[first.id]).ids == (first.id, reply.id)
    late = [said("one object", fid="m", made=Sources(known=[1])) for _ in range(2)]
    one.put(a=late[0], b=late[1], d=said("of it", made=Sources(context=[late[1]])))
    assert [atom.id for atom in late] == [None, None]
    unseen = [said("unseen", fid="n", made=Sources(context=[late[0]])) for _ in range(2)]
    then = said("then", made=Sources(also=[unseen[1]]))
    one.put(a=unseen[0], b=unseen[1], d=then)
    assert [atom.id for atom in (*unseen, then)] == [None] * 3
    assert memory.verify().ok


def test_what_was_made_from_erased_sources_is_refused_for_good(memory: Memory) -> None:
    one = run(memory)
    one.more("messages", said(SECRET), said("kept"))
    forget(memory, SECRET)
    late = said("late", fid="late", made=Sources(known=[1]), role="assistant")
    second = said("second", made=Sources(context=[late]))
    third = state("third", made=Sources(also=[second]))
    fourth = said("fourth", made=Sources(known=[2]))
    one.put(late=late, second=second, third=third, fourth=fourth)
    assert [atom.id for atom in (late, second, third)] == [None] * 3
    assert fourth.id is not None
    assert values(memory) == {"messages": ["kept"], "fourth": "fourth"}
    again = said("late", fid="late")  # the same object of a run that does not say whence it has it
    clean = run(memory, parent="c0001", name="d", since=len(memory.ledger()))
    clean.put(again=again)
    assert again.id is None
    assert memory.verify().ok


def test_a_run_stays_tainted_until_it_reads_anew(memory: Memory) -> None:
    one = run(memory)
    one.more("messages", said(SECRET), said("kept"))
    forget(memory, SECRET)
    one.more("messages", said("input"))
    assert one.refused
    for _ in range(3):  # nothing it puts says any more that it holds erased content
        here = Place("t", "", one.parent or "")
        late = state("late", made=Sources(place=here))
        one.put(x=late, y=Literal(1))
        assert late.id is None
        assert one.refused
    assert "x" not in values(memory)
    snapshot = memory.checkpoints.get("t", "", None, nothing)
    here = snapshot.loaded[0].place
    again = run(memory, parent=here.cid, name="d", since=snapshot.head)
    clean = state("clean", made=Sources(place=here, since=snapshot.head))
    again.put(x=clean)
    assert clean.id is not None
    assert not again.refused
    assert values(memory)["x"] == "clean"


def test_a_reader_from_before_the_forget_is_refused_and_one_from_after_it_is_not(
    memory: Memory,
) -> None:
    one = run(memory)
    one.more("messages", said(SECRET), said("kept"))
    early = memory.checkpoints.get("t", "", None, nothing).head
    forget(memory, SECRET)
    late = memory.checkpoints.get("t", "", None, nothing).head
    assert late > early
    here = Place("t", "", "c0001")
    for name, since, refused in (("e", early, True), ("l", late, False), ("n", None, True)):
        other = run(memory, parent="c0001", name=name, since=since)
        value = state(f"made by {name}", made=Sources(place=here, since=since))
        other.put(x=value)
        assert (value.id is None) == refused, name
        assert other.refused == refused, name
        task = state(f"written by {name}", made=Sources(place=here, since=since))
        memory.checkpoints.put_writes(here, f"task {name}", "", [TaskWrite(0, "x", task)], -1)
        assert (task.id is None) == refused, name


def test_a_forget_elsewhere_taints_nothing(memory: Memory) -> None:
    one = run(memory)
    one.more("messages", said("kept"))
    memory.remember(SECRET, thread="other")
    forget(memory, SECRET)
    value = state("made of it", made=Sources(place=Place("t", "", "c0001")))
    one.more("messages", said("more"), x=value)
    assert not one.refused
    assert values(memory) == {"messages": ["kept", "more"], "x": "made of it"}


def test_only_the_channels_a_task_read_taint_what_it_wrote(memory: Memory) -> None:
    one = run(memory)
    one.put(bad=state(SECRET), good=state("good"))
    early = memory.checkpoints.get("t", "", None, nothing).head
    forget(memory, SECRET)
    here = Place("t", "", "c0001")
    read = {
        name: state(f"of {name}", made=Sources(place=here, channels=frozenset({name}), since=early))
        for name in ("bad", "good")
    }
    new = [TaskWrite(n, name, atom) for n, (name, atom) in enumerate(read.items())]
    memory.checkpoints.put_writes(here, "task", "", new, -1)
    assert read["bad"].id is None
    assert read["good"].id is not None


def test_a_suppressed_source_refuses_late_writes_as_an_erased_one_does(memory: Memory) -> None:
    one = run(memory)
    one.more("messages", said(SECRET), said("kept"))
    forget(memory, SECRET, mode="suppress")
    late = [
        said("of it", made=Sources(known=[1])),
        state("of the checkpoint", made=Sources(place=Place("t", "", "c0001"))),
    ]
    one.more("messages", *late)
    assert [atom.id for atom in late] == [None, None]
    assert values(memory) == {"messages": ["kept"]}


def test_what_a_redacted_version_stands_for_is_stored_as_that(memory: Memory) -> None:
    one = run(memory)
    secret = said(f"My code is {SECRET}. I like tea.", fid="m")
    one.more("messages", secret, said("kept"))
    forget(memory, SECRET, mode="redact")
    again = said(f"My code is {SECRET}. I like tea.", fid="m")
    made = said("from the old one", made=Sources(context=[again]))
    one.put(messages=Many([secret.id or 0, 2], [again]), alone=Atom(known=secret.id), made=made)
    new = "My code is [redacted]. I like tea."
    assert values(memory) == {"messages": [new, "kept", new], "alone": new}
    assert made.id is None  # its prompt said the code
    assert memory.scan(SECRET, files=False).places == ()


# deleting


def test_a_deleted_thread_is_gone_with_its_records_and_no_other_is(
    memory: Memory, url: str
) -> None:
    one = talk(memory)
    one.write((0, "x", said(f"pending {SECRET}")))
    run(memory, ns="inner").put(x=state(f"inner {SECRET}"))
    other = run(memory, "u")
    other.put(
        x=Many(atoms=[said("other", "u")]), made=said("made of it", "u", made=Sources(known=[1]))
    )
    assert memory.checkpoints.delete_thread("t") is not None
    assert memory.verify().problems == ()
    assert memory.scan(SECRET, files=False).places == ()
    assert memory.checkpoints.threads() == ["u"]
    assert memory.history("t") == []
    for ns in ("", "inner"):
        assert memory.checkpoints.get("t", ns, None, nothing).loaded == []
    assert values(memory, thread="u") == {"x": ["other"], "made": "made of it"}
    assert {record.thread for record in memory.export()} == {"u"}
    with connected(url) as raw:
        rows = rows_of(raw)
    assert {row[2] for row in rows["line"]} == {"u"}
    assert [row for row in rows["sequence"] if "t" in row] == []
    assert memory.checkpoints.delete_thread("t") is None
    assert memory.checkpoints.delete_thread("never there") is None
    assert memory.verify().ok


def test_what_outlives_a_deleted_thread_is_tied_to_what_survives_of_its_sources(
    memory: Memory,
) -> None:
    origin = memory.remember(f"{SECRET} origin", thread="notes")
    middle = said("middle", made=Sources(known=[origin.id]))
    run(memory).put(x=middle)
    end = said("end", "u", made=Sources(known=[middle.id or 0]))
    run(memory, "u").put(x=end)
    memory.checkpoints.delete_thread("t")
    assert end.id in [one.id for one in memory.export()]
    assert forget(memory, ids=[origin.id]).ids == (origin.id, end.id)


def test_late_writes_to_a_deleted_thread_are_refused(
    url: str, opened: Callable[..., Memory]
) -> None:
    now = [1_800_000_000_000_000]
    memory = opened(url, clock=lambda: now[0]).workspace("alex")
    one = run(memory)
    one.put(made_at(now[0]), messages=Many(atoms=[said(SECRET), said("kept")]))
    elsewhere = run(memory, "u")
    elsewhere.put(x=state("elsewhere", "u"))
    now[0] += 1_000_000
    before = made_at(now[0] - 10)
    memory.checkpoints.delete_thread("t")
    late = said(f"late {SECRET}", made=Sources(place=Place("t", "", one.parent or "")))
    one.put(made_at(now[0] + 50), messages=Many(atoms=[late]))
    assert one.refused
    one.put(made_at(now[0] + 60))
    assert one.refused
    assert one.write((0, "x", said(f"written {SECRET}")), cid=made_at(now[0] - 100))
    root = run(memory)
    root.put(before, x=state(f"first input {SECRET}"))
    assert root.refused
    unordered = run(memory)
    unordered.put("c0001", x=state(f"who knows when {SECRET}"))
    assert unordered.refused
    inner = run(memory, ns="inner")
    body = Body(4, "", {}, {}, {}, None, {"parents": {"": made_at(now[0] - 1_000_000)}})
    place = Place("t", "inner", made_at(now[0] + 70))
    assert inner.checkpoints.put(
        Checkpoint(place, None, body, ["x"], frozenset(), lambda name: state(SECRET)), -1
    ).refused
    assert memory.checkpoints.threads() == ["u"]
    assert memory.scan(SECRET, files=False).places == ()
    assert [record.text for record in memory.export()] == ["elsewhere"]
    elsewhere.put(x=state("goes on", "u"))
    assert not elsewhere.refused
    fresh = run(memory)
    first = fresh.put(made_at(now[0] + 100), messages=Many(atoms=[said("anew")]))
    assert not fresh.refused
    fresh.put(made_at(now[0] + 200), x=state("second"))
    assert not fresh.refused
    assert not fresh.write((0, "y", state("third")))
    assert values(memory, first) == {"messages": ["anew"]}
    one.put(made_at(now[0] + 300), messages=Many(atoms=[said(SECRET)]))
    assert one.refused  # the old run, while the thread is in use again
    assert memory.verify().ok


def test_only_the_runs_named_are_deleted_and_only_what_nothing_else_holds(memory: Memory) -> None:
    one = run(memory, run="first")
    one.more("messages", said("shared"), x=state("only in the first"))
    one.put(x=state("in between"))
    two = run(memory, run="second", name="d", parent=one.parent)
    two.cells, two.versions = {"messages": known(one.cells["messages"])}, dict(one.versions)
    two.more("messages", said("second"), x=state("of the second"))
    memory.checkpoints.delete_runs(["second", "no such run"])
    assert memory.verify().problems == ()
    assert [found.place.cid for found in memory.checkpoints.page("t", "", nothing).loaded] == [
        "c0002", "c0001",
    ]  # fmt: skip
    assert sorted(record.text for record in memory.export()) == [
        "in between", "only in the first", "shared",
    ]  # fmt: skip
    assert values(memory) == {"messages": ["shared"], "x": "in between"}
    memory.checkpoints.delete_runs(["first"])
    assert list(memory.export()) == []
    assert memory.verify().problems == ()


def test_thinning_out_keeps_the_newest_of_each_line_and_every_message(memory: Memory) -> None:
    one = run(memory)
    for turn in range(6):
        one.more("messages", said(f"turn {turn}"), x=state(f"state {turn}"), y=Literal(turn))
    inner = run(memory, ns="inner")
    inner.put(x=state("inner 0"))
    inner.put(x=state("inner 1"))
    other = run(memory, "u")
    other.put(x=state("u 0", "u"))
    other.put(x=state("u 1", "u"))
    memory.checkpoints.keep_newest(["t"])
    assert memory.verify().problems == ()
    assert [one.place.cid for one in memory.checkpoints.page("t", "", nothing).loaded] == ["c0006"]
    assert values(memory) == {
        "messages": [f"turn {n}" for n in range(6)], "x": "state 5", "y": 5
    }  # fmt: skip
    assert values(memory, ns="inner") == {"x": "inner 1"}
    left = sorted(record.text for record in memory.export() if record.kind == "state")
    assert left == ["inner 1", "state 5", "u 0", "u 1"]
    assert len(memory.history("t")) == 6
    one.more("messages", said("turn 6"))
    assert not one.refused
    assert values(memory)["messages"] == [f"turn {n}" for n in range(7)]


def test_a_copied_thread_says_the_same_and_goes_together_with_its_original(memory: Memory) -> None:
    one = talk(memory)
    one.put(
        places=Many(atoms=[said("p0"), said(f"p1 {SECRET}")], kept=True),
        inner=Fields({"a": Wrapped("w", state("wrapped"))}),
        outer=state("outer", refs=[Atom(known=1)], payload=b"outer"),
    )
    one.write((0, "x", said(f"pending {SECRET}")), (1, "y", Many(atoms=[said("listed")])))
    memory.checkpoints.copy_thread("t", "copy")
    assert memory.verify().problems == ()
    for n in range(1, 7):
        assert values(memory, f"c{n:04}", "copy") == values(memory, f"c{n:04}")
    assert writes(memory, thread="copy") == writes(memory)
    own = {record.id for record in memory.export() if record.thread == "t"}
    found = loaded(memory, thread="copy")
    assert own.isdisjoint(found.records)
    assert [parent.loaded[0].place.cid for parent in
            memory.checkpoints.ancestors("copy", "", "c0006", nothing)] == [
        f"c{n:04}" for n in range(5, 0, -1)]  # fmt: skip
    forget(memory, SECRET)
    for n in range(1, 7):
        assert SECRET not in str(values(memory, f"c{n:04}", "copy"))
        assert values(memory, f"c{n:04}", "copy") == values(memory, f"c{n:04}")
    assert writes(memory, thread="copy") == writes(memory) == [("y", 1, ["listed"])]
    memory.checkpoints.delete_thread("t")
    assert memory.verify().problems == ()


def test_a_thread_can_be_copied_onto_one_that_has_the_same_objects(memory: Memory) -> None:
    one = talk(memory)
    other = run(memory, "u")
    other.put(x=Many(atoms=[said("another", "u", fid="m0"), said("u's own", "u")]))
    one.put(foreign=Many([1, *other.cells["x"].known]))  # names records of the other thread
    for _ in range(2):
        memory.checkpoints.copy_thread("t", "u")
        assert values(memory, thread="u") == values(memory)
        assert memory.verify().problems == ()
    assert forget(memory, SECRET)
    assert values(memory, "c0003", "u") == values(memory, "c0003")
    memory.checkpoints.delete_thread("u")
    assert values(memory)["messages"] == ["turn 0", "turn 1", "turn 3", "turn 4"]
    memory.checkpoints.copy_thread("t", "u")
    assert values(memory, thread="u") == values(memory)


def test_a_call_whose_result_was_erased_is_told_from_one_that_has_no_result_yet(
    memory: Memory,
) -> None:
    one = run(memory)
    one.more(
        "messages",
        said("result", kind="tool", role="tool", metadata={"tool_call_id": "call 1"}),
        said(SECRET, kind="tool", role="tool", metadata={"tool_call_id": "call 2"}),
        said("no tool", metadata={"tool_call_id": "call 3"}),
    )
    asked = ["call 1", "call 2", "call 3", "call 4", ""]
    assert memory.checkpoints.erased_calls("t", asked) == set()
    forget(memory, SECRET)
    assert memory.checkpoints.erased_calls("t", asked) == {"call 2"}
    assert memory.checkpoints.erased_calls("t", []) == set()


def test_a_cache_is_told_which_of_its_records_are_no_more(memory: Memory) -> None:
    one = run(memory)
    one.more("m", said(f"My code is {SECRET}. Tea."), said("hidden"), said("kept"), said("gone"))
    assert memory.checkpoints.standing([1, 2, 3, 4]).gone == {}
    first = memory.checkpoints.standing([]).generation
    new = forget(memory, SECRET, mode="redact").redacted[1]
    forget(memory, "hidden", mode="suppress")
    forget(memory, "gone")
    standing = memory.checkpoints.standing([1, 2, 3, 4, 99])
    assert standing.gone == {1: new, 2: 0, 4: 0, 99: 0}
    assert standing.generation > first


# workspaces


def test_the_same_names_in_another_workspace_are_other_checkpoints(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url)
    spaces = [memory.workspace(name) for name in ("a", "a%", "b")]
    for space in spaces:
        one = run(space, run="run")
        one.more("messages", said(f"{space.id} says", fid="m1"), x=state(f"{space.id} state"))
        one.write((0, "w", state(f"{space.id} wrote")))
    before = [(dict(values(one)), writes(one)) for one in spaces]
    assert len({str(one) for one in before}) == 3
    first = spaces[0].checkpoints
    first.copy_thread("t", "u")
    first.keep_newest(["t", "u"])
    first.delete_runs(["run"])
    for thread in ("t", "u"):
        first.delete_thread(thread)
    assert list(spaces[0].export()) == []
    assert [(dict(values(one)), writes(one)) for one in spaces[1:]] == before[1:]
    assert first.threads() == []
    assert first.page(None, None, nothing).loaded == []
    other = run(spaces[1], parent="c0001", name="d")
    other.put(x=state("goes on"))  # its thread was not deleted
    assert not other.refused
    foreign = run(spaces[2])
    foreign.put(x=Many([99]), y=Atom(known=99))
    assert values(spaces[2]) == {"x": []}
    for space in spaces:
        assert space.verify().problems == ()


# checking


DAMAGES = {
    "delete from line where thread = 'u'": "2 checkpoint(s) of a line",
    "update task_write set line = -9999": "1 write(s) of a line",
    "delete from label where name = 'only'": "1 name(s)",
    "delete from label where name = 'seen'": "1 name(s)",
    "delete from label where name = 'written'": "1 name(s)",
    "delete from tombstone where id = 1": "1 reference(s) of checkpoints to a record",
    "update tombstone set successor = 999 where id = 1": "1 erased record(s) whose successor",
    "update sequence set listed = 0 where length = 2": "1 reference(s) of checkpoints to a list",
    "update checkpoint set body = '['": "4 checkpoint(s) or write(s)",
    "update task_write set body = '[1]'": "1 checkpoint(s) or write(s)",
    "update record set metadata = '{\"refs\":[998,997,0]}' where text = 'outer'": "2 reference(s)",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_reference_to_what_never_was_is_found_by_the_check(
    memory: Memory, url: str, damage: str
) -> None:
    one = run(memory)
    secret = said(SECRET)
    one.more("messages", secret, alone=secret)
    one.more("messages", said("kept"))
    one.write((0, "written", said("pending")))
    other = run(memory, "u")
    other.put(x=state("outer", "u", refs=[Atom(known=2)], payload=b"outer"), only=Literal(1))
    body = Body(4, "", {}, {}, {"seen": {}}, None, {})
    memory.checkpoints.put(Checkpoint(Place("u", "", "d"), None, body, [], frozenset(), Literal), 0)
    forget(memory, SECRET)
    assert memory.verify().problems == ()
    with connected(url) as raw:
        statement(raw, damage)
    (problem,) = memory.verify().problems
    assert problem.startswith(DAMAGES[damage])
    assert memory.workspace("other").verify().ok


# all or nothing


def test_an_error_while_a_value_is_made_leaves_nothing(memory: Memory, url: str) -> None:
    one = run(memory)
    one.more("messages", said("kept"))
    with connected(url) as raw:
        before = rows_of(raw)

    def broken(name: str) -> Any:
        if name == "b":
            raise ZeroDivisionError
        return Many(atoms=[said(SECRET)])

    body = Body(4, "", {"a": 1, "b": 1, "new channel": 1}, {}, {}, None, {})
    for ns in ("", "a new line"):
        with pytest.raises(ZeroDivisionError):
            one.checkpoints.put(
                Checkpoint(Place("t", ns, "d"), "c0001", body, ["a", "b"], frozenset(), broken), -1
            )
    with connected(url) as raw:
        assert rows_of(raw) == before
    for atom, error in (
        (Atom(Draft("x", role="", thread="t")), InvalidInput),
        (Atom(Draft("x", kind="nonsense", thread="t")), InvalidInput),
        (said("x", copy_of=99), NotFound),
        (said("x", made=Sources(also=[said("y", payload="text")])), InvalidInput),
    ):
        other = run(memory, name="d", parent="c0001")
        with pytest.raises(error):
            other.put(**{"a": Many(atoms=[said(SECRET), atom]), "another new channel": Literal(1)})
        with pytest.raises(error):
            one.write((0, "yet another channel", Many(atoms=[said(SECRET), atom])))
    with connected(url) as raw:
        assert rows_of(raw) == before
    one.more("messages", said("afterwards"))
    assert values(memory) == {"messages": ["kept", "afterwards"]}
    assert memory.verify().ok
