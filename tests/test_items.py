"""Values kept by name: they are found by name and space, and go with what they were made from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dellm import Atom, Draft, InvalidInput, Item, Keep, Memory, Sources

MINUTE = 60_000_000


def value(said: Mapping[str, Any], made: Sources | None = None) -> Atom:
    return Atom(Draft(json.dumps(said), role="item", kind="state"), made=made)


def keep(memory: Memory, space: tuple[str, ...], name: str, **said: Any) -> None:
    memory.items.put("store", [Keep(space, name, value(said))])


def names(items: list[Item]) -> list[str]:
    return [one.name for one in items]


def test_what_is_not_for_use_leaves_no_gap_in_a_search(memory: Memory) -> None:
    for at in range(80):
        keep(memory, ("n",), str(at), number=at, odd=at % 2)
    (last,) = memory.items.search("store", ("n",), limit=1)
    memory.forget(ids=[last.record.id], mode="suppress")
    assert names(memory.items.search("store", ("n",), limit=3)) == ["78", "77", "76"]
    assert names(memory.items.search("store", ("n",), limit=3, offset=1)) == ["77", "76", "75"]
    odd = memory.items.search("store", ("n",), holding=[['"odd": 1']], limit=2)
    assert names(odd) == ["77", "75"]
    assert len(memory.items.search("store", ("n",), limit=99)) == 79


def test_a_search_that_finds_few_or_none_looks_at_every_item(memory: Memory) -> None:
    every = [Keep(("n",), str(at), value({"number": at})) for at in range(500)]
    memory.items.put("store", every)

    def found(holding: str, limit: int = 2, **asked: Any) -> list[str]:
        return names(memory.items.search("store", holding=[[holding]], limit=limit, **asked))

    assert found('"number": 7}') == ["7"]
    assert found('"number": 499') == ["499"]
    assert found('"number": 501') == []
    assert found('"number": 1', limit=111)[-1] == "1"
    assert found('"number": 1', offset=109) == ["10", "1"]
    twelve = found('"number": 1', where=lambda text: "12" in text, limit=9)
    assert twelve == [str(at) for at in range(129, 120, -1)]
    few = memory.items.search("store", where=lambda text: text.endswith(" 3}"), limit=5)
    assert names(few) == ["3"]


def test_a_value_is_kept_under_its_name_and_replaced(memory: Memory) -> None:
    keep(memory, ("users", "1"), "city", at="Paris")
    keep(memory, ("users", "1"), "city", at="Rome")
    (found,) = memory.items.get("store", [(("users", "1"), "city")])
    assert found is not None
    assert json.loads(found.record.text) == {"at": "Rome"}
    assert found.created_at <= found.updated_at
    assert memory.scan("Paris", files=False).clean
    assert memory.items.get("llm", [(("users", "1"), "city")]) == [None]
    assert memory.verify().ok


def test_a_value_that_searches_find_is_found_no_more_once_it_was_replaced_or_deleted(
    memory: Memory,
) -> None:
    def fact(text: str) -> Atom:
        return Atom(Draft(text, kind="fact"))

    memory.items.put("fact", [Keep(("a",), "home", fact("lives in Paris"))])
    assert [one.record.text for one in memory.search("Paris", threshold=0.0)] == ["lives in Paris"]
    memory.items.put("fact", [Keep(("a",), "home", fact("lives in Rome"))])
    memory.remember("an unrelated sentence about Rome")
    for by in ("keyword", "meaning"):
        found = memory.search("lives in Paris", by=by, threshold=-1.0)
        assert "" not in [one.record.text for one in found]
        assert "lives in Rome" in [one.record.text for one in found]
    memory.items.put("fact", [Keep(("a",), "home")])
    assert len(memory.search("lives in Rome", by="meaning", threshold=-1.0)) == 1
    memory.scrub()
    assert memory.scan("Paris").clean
    assert memory.scan("lives", files=False).clean
    assert memory.verify().ok


def test_spaces_are_compared_label_by_label(memory: Memory) -> None:
    for space in (("a",), ("a", "b"), ("ab",), ('a","b',), ("a%",), ("a\x00",)):
        keep(memory, space, "k", of=list(space))
    found = memory.items.search("store", ("a",), limit=9)
    assert {one.space for one in found} == {("a",), ("a", "b")}
    assert len(memory.items.search("store", limit=9)) == 6
    spaces = memory.items.spaces("store")
    assert list(spaces) == sorted(spaces)
    assert memory.get(spaces['a","b',]).text == value({"of": ['a","b']}).draft.text
    assert memory.items.clear("store", ("a",)) == 2
    assert len(memory.items.spaces("store")) == 4


@given(
    spaces=st.lists(st.lists(st.text(max_size=3), max_size=3).map(tuple), max_size=6),
    prefix=st.lists(st.text(max_size=3), max_size=2).map(tuple),
)
def test_a_search_finds_just_what_begins_with_the_labels(
    spaces: list[tuple[str, ...]], prefix: tuple[str, ...]
) -> None:
    with Memory.open(":memory:", embedder=None) as memory:
        for space in spaces:
            keep(memory, space, "k", x=1)
        found = {one.space for one in memory.items.search("store", prefix, limit=99)}
    assert found == {one for one in spaces if one[: len(prefix)] == prefix}


def test_newest_first_by_pages_and_filtered(memory: Memory) -> None:
    every = [Keep(("n",), str(at), value({"number": at})) for at in range(600)]
    memory.items.put("store", every)
    odd = memory.items.search(
        "store", where=lambda text: json.loads(text)["number"] % 2 == 1, limit=3, offset=1
    )
    assert names(odd) == ["597", "595", "593"]
    held = memory.items.search(
        "store", holding=[["{"], ['"number": 30', "x"]], where=lambda text: "0" in text
    )
    assert names(held) == ["309", *map(str, range(308, 299, -1))]
    assert memory.items.search("store", holding=[["number%", "_"]]) == []
    assert names(memory.items.search("store", holding=[['"number": 7}']])) == ["7"]
    assert len(memory.items.search("store", ("n",), limit=1_000)) == 600


def test_a_value_goes_with_what_it_was_made_from_and_takes_along_what_was_made_of_it(
    memory: Memory,
) -> None:
    paris = memory.remember("I live in Paris")
    other = memory.remember("I like tea")
    made = Sources(also=(Atom(known=paris.id),))
    memory.items.put("store", [Keep(("u",), "home", value({"at": "Paris"}, made))])
    memory.items.put(
        "store",
        [Keep(("u",), "drink", value({"is": "tea"}, Sources(also=(Atom(known=other.id),))))],
    )
    (home,) = memory.items.get("store", [(("u",), "home")])
    assert home is not None
    reply = memory.record("You live in that city", context=[home.record.id])
    receipt = memory.forget("I live in Paris")
    assert set(receipt.ids) == {paris.id, home.record.id, reply.id}
    assert names(memory.items.search("store")) == ["drink"]
    assert memory.scan("Paris", files=False).clean
    assert memory.scan("home", files=False).clean
    assert memory.verify().ok


def test_what_was_made_of_a_replaced_value_stays_tied_to_its_sources(memory: Memory) -> None:
    first, second = memory.remember("my cat is Tom"), memory.remember("my dog is Rex")
    for source in (first, second):
        made = Sources(also=(Atom(known=source.id),))
        memory.items.put("store", [Keep(("u",), "pet", value({"of": source.id}, made))])
        if source is first:
            (old,) = memory.items.get("store", [(("u",), "pet")])
            assert old is not None
            reply = memory.record("Tom is a cat", context=[old.record.id])
    assert reply.id in memory.dependents([first.id])
    assert reply.id not in memory.dependents([second.id])
    memory.forget(ids=[first.id])
    assert names(memory.items.search("store")) == ["pet"]  # the new one was not made from it
    memory.forget(ids=[second.id])
    assert memory.items.search("store") == []


def test_a_late_value_made_from_what_was_erased_is_refused(memory: Memory) -> None:
    paris = memory.remember("I live in Paris")
    keep(memory, ("u",), "home", at="unknown")
    late = value({"at": "Paris"}, Sources(also=(Atom(known=paris.id),)))
    memory.forget(ids=[paris.id])
    assert memory.items.put("store", [Keep(("u",), "home", late)]).refused
    (found,) = memory.items.get("store", [(("u",), "home")])
    assert found is not None
    assert json.loads(found.record.text) == {"at": "unknown"}
    assert memory.scan("Paris", files=False).clean


def test_a_value_can_be_forgotten_by_what_it_says_or_by_its_name(memory: Memory) -> None:
    draft = Draft('{"at": "Lyon"}', role="item", kind="state", metadata={"name": "hometown"})
    memory.items.put("store", [Keep(("u",), "hometown", Atom(draft))])
    assert len(memory.plan("Lyon")) == 1
    memory.forget("hometown")
    assert memory.items.search("store") == []


def test_a_redacted_value_keeps_its_name(memory: Memory) -> None:
    keep(memory, ("u",), "card", number="4111 1111 1111 1111", owner="Sam")
    memory.forget("4111 1111 1111 1111", mode="redact")
    (found,) = memory.items.get("store", [(("u",), "card")])
    assert found is not None
    assert "4111" not in found.record.text
    assert "Sam" in found.record.text


def test_a_suppressed_value_is_not_read_until_it_is_restored(memory: Memory) -> None:
    keep(memory, ("u",), "home", at="Paris")
    receipt = memory.forget("Paris", mode="suppress")
    assert memory.items.get("store", [(("u",), "home")]) == [None]
    assert memory.items.search("store") == []
    assert memory.items.spaces("store") == {}
    memory.restore(receipt)
    assert names(memory.items.search("store")) == ["home"]


def test_a_value_lives_as_long_as_it_was_given_unless_it_is_read(
    url: str, opened: Callable[..., Memory]
) -> None:
    clock = count(1_000_000_000_000_000, MINUTE)
    memory = opened(url, embedder=None, clock=lambda: next(clock))
    for name, ttl in (("short", 20.0), ("read", 20.0), ("always", None)):
        memory.items.put("store", [Keep(("t",), name, value({"n": name}), ttl=ttl)])
    for _ in range(30):
        assert memory.items.get("store", [(("t",), "read")], refresh=True) != [None]
    assert names(memory.items.search("store")) == ["always", "read"]
    assert memory.items.sweep("store") == 1
    assert memory.scan("short", files=False).clean


def test_the_nearest_comes_first_and_then_what_has_no_vector(memory: Memory) -> None:
    def vector(*numbers: float) -> np.ndarray[Any, Any]:
        return np.asarray(numbers, np.float32)

    for name, vectors in (
        ("plain", ()),
        ("east", (vector(1, 0),)),
        ("both", (vector(0, 5), vector(2, 2))),
    ):
        memory.items.put("store", [Keep(("v",), name, value({"n": name}), vectors=vectors)])
    items = memory.items
    found = items.search("store", near=vector(3, 0))
    assert names(found) == ["east", "both", "plain"]
    assert [one.score and round(one.score, 3) for one in found] == [1.0, 0.707, None]
    memory.items.put("store", [Keep(("v",), "west", value({}), vectors=(vector(-1, 0),))])
    assert names(items.search("store", near=vector(-1, 0), limit=1)) == ["west"]
    memory.forget(ids=[found[0].record.id])
    assert names(items.search("store", near=vector(3, 0))) == ["both", "west", "plain"]
    assert memory.verify().ok
    with pytest.raises(InvalidInput):
        items.search("store", near=vector(1, 2, 3))


def test_no_workspace_sees_the_values_of_another(memory: Memory) -> None:
    keep(memory.workspace("a"), ("u",), "home", at="Paris")
    other = memory.workspace("b")
    assert other.items.search("store") == []
    assert other.items.spaces("store") == {}
    assert other.items.clear("store") == 0
    assert memory.workspace("a").items.digest(["x"]) != other.items.digest(["x"])
    assert other.items.digest(["x", "y"]) != other.items.digest(["xy", ""])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda items: items.put(1, []),
        lambda items: items.put("store", [1]),
        lambda items: items.put("store", [Keep((1,), "k")]),  # type: ignore[arg-type] # wrong
        lambda items: items.put("store", [Keep((), 1)]),  # type: ignore[arg-type] # wrong
        lambda items: items.put("store", [Keep((), "k", ttl="soon")]),  # type: ignore[arg-type] # wrong
        lambda items: items.get("store", [((), 1)]),
        lambda items: items.search("store", limit=-1),
        lambda items: items.search("store", where=1),
        lambda items: items.search("store", holding=["x"]),
        lambda items: items.search("store", holding=[[]]),
        lambda items: items.search("store", "abc"),
    ],
)
def test_what_makes_no_sense_is_refused(memory: Memory, wrong: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidInput):
        wrong(memory.items)
