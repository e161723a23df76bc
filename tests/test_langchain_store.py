"""The store does what LangGraph's stores do: the same tests hold for the stock one in memory."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from dellm import ContextForgotten, DellmError, InvalidInput, Memory
from dellm_langchain.store import DeLLMStore
from dellm_langchain.tracked_reads import shown

MINUTE = 60_000_000
WORDS = ("cat", "dog", "boat", "tea", "red", "blue", "sun", "moon")
Make = Callable[..., BaseStore]


class Counted(Embeddings):
    """Embeds a text as how often it has each of the words."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.awaited = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(text.count(word)) for word in WORDS] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.awaited += 1
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return (await self.aembed_documents([text]))[0]


def index(*fields: str, embed: Any = None) -> IndexConfig:
    found: IndexConfig = {"dims": len(WORDS), "embed": embed or Counted()}
    return {**found, "fields": list(fields)} if fields else found


@pytest.fixture(params=["stock", "sqlite", "postgres"])
def make(request: pytest.FixtureRequest, opened: Callable[..., Memory]) -> Make:
    """Return what makes a store: the stock one, and ours on each database."""
    if request.param == "stock":
        return lambda index=None: InMemoryStore(index=index)
    memory = opened(request.getfixturevalue(f"{request.param}_url"), embedder=None)
    return lambda index=None: DeLLMStore(memory.workspace("alex"), index=index)


def keys(items: Sequence[Any]) -> list[str]:
    return [one.key for one in items]


# the same for the stock store


def test_an_item_is_put_replaced_and_deleted(make: Make) -> None:
    store, before = make(), datetime.now(UTC)
    value = {"a": [1, 2.5, None, True], "b": {"ä": 'he said "no"\n'}, "n\x00l": "日本"}
    store.put(("users", "1"), "k", value)
    found = store.get(("users", "1"), "k")
    assert found is not None
    assert (found.value, found.key, found.namespace) == (value, "k", ("users", "1"))
    assert before <= found.created_at <= found.updated_at <= datetime.now(UTC)
    store.put(("users", "1"), "k", {"b": 2})
    found = store.get(("users", "1"), "k")
    assert found is not None
    assert found.value == {"b": 2}
    store.delete(("users", "1"), "k")
    store.delete(("users", "1"), "k")
    assert store.get(("users", "1"), "k") is None
    assert store.search(("users",)) == []


def test_the_asynchronous_methods_do_the_same(make: Make) -> None:
    store = make(index=index("text"))

    async def used() -> None:
        await store.aput(("u", "1"), "a", {"text": "cat dog"})
        await store.aput(("u", "1"), "b", {"text": "boat"}, index=False)
        await asyncio.gather(*(store.aput(("v",), str(n), {"text": "tea"}) for n in range(5)))
        found = await store.aget(("u", "1"), "a")
        assert found is not None
        assert found.value == {"text": "cat dog"}
        assert keys(await store.asearch(("u",), query="dog")) == ["a", "b"]
        assert len(await store.asearch(("v",), filter={"text": "tea"})) == 5
        await store.adelete(("u", "1"), "a")
        assert await store.aget(("u", "1"), "a") is None
        assert await store.alist_namespaces(prefix=("u",)) == [("u", "1")]

    asyncio.run(used())


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"kind": "pet"}, "abc"),
        ({"kind": {"$eq": "pet"}, "age": 3}, "a"),
        ({"kind": {"$ne": "pet"}}, "d"),
        ({"age": {"$gt": 3}}, "bcd"),
        ({"age": {"$gte": 3, "$lt": 10}}, "ab"),
        ({"age": {"$lte": 5.0}}, "ab"),
        ({"of": {"name": "Sam"}}, "ac"),
        ({"of": {"name": "Sam", "at": "Rome"}}, "c"),
        ({"of": {"name": {"$ne": "Sam"}}}, "b"),
        ({"tags": ["x", "y"]}, "a"),
        ({"tags": ["x"]}, ""),
        ({"gone": None}, "abcd"),
        ({"kind": None}, ""),
        ({"ok": True}, "b"),
        ({}, "abcd"),
    ],
)
def test_a_filter_finds_the_items_that_hold_what_it_says(
    make: Make, wanted: dict[str, Any], found: str
) -> None:
    store = make()
    for key, value in {
        "a": {"kind": "pet", "age": 3, "of": {"name": "Sam"}, "tags": ["x", "y"], "ok": False},
        "b": {"kind": "pet", "age": 5, "of": {"name": "Kim"}, "tags": [], "ok": True},
        "c": {"kind": "pet", "age": 10, "of": {"name": "Sam", "at": "Rome"}, "ok": False},
        "d": {"kind": "tool", "age": 11, "of": "Sam", "tags": "xy"},
    }.items():
        store.put(("f",), key, value)
    assert sorted(keys(store.search(("f",), filter=wanted))) == sorted(found)


def test_a_filter_with_an_operator_that_there_is_not_is_refused(make: Make) -> None:
    store = make()
    store.put(("f",), "a", {"n": 1})
    with pytest.raises((ValueError, InvalidInput)):
        store.search(("f",), filter={"n": {"$near": 1}})


def test_a_search_is_cut_into_pages_that_miss_nothing(make: Make) -> None:
    store = make()
    for at in range(25):
        store.put(("p", str(at % 2)), str(at), {"n": at})
    assert len(store.search(("p",))) == 10
    pages = [store.search(("p",), limit=8, offset=at) for at in (0, 8, 16, 24)]
    assert sorted(int(one) for page in pages for one in keys(page)) == list(range(25))
    odd = [store.search(("p",), filter={"n": {"$gt": 9}}, limit=8, offset=at) for at in (0, 8)]
    assert sorted(int(one) for page in odd for one in keys(page)) == list(range(10, 25))


def test_namespaces_are_compared_label_by_label(make: Make) -> None:
    store = make()
    for space in (("a",), ("a", "b"), ("ab",), ("a%",), ("A",), ('a"',), ("a", "bc", "d")):
        store.put(space, "k", {"of": list(space)})
    assert {one.namespace for one in store.search(("a",))} == {("a",), ("a", "b"), ("a", "bc", "d")}
    assert {one.namespace for one in store.search(("a", "b"))} == {("a", "b")}
    assert len(store.search(())) == 7
    assert store.get(("ab",), "k") is not None
    assert store.get(("b",), "k") is None


@pytest.mark.parametrize("wrong", [(), ("a.b",), ("",), ("a", 1), ("langgraph", "x")])
def test_a_namespace_that_a_store_may_not_have_is_refused(make: Make, wrong: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        make().put(wrong, "k", {"n": 1})


SPACES = [
    ("docs", "alice", "v1"),
    ("docs", "alice", "v2"),
    ("docs", "bob", "v1", "draft"),
    ("docs", "bob"),
    ("mail", "alice"),
    ("mail",),
]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, sorted(SPACES)),
        ({"prefix": ("docs",)}, sorted(SPACES[:4])),
        ({"prefix": ("doc",)}, []),
        ({"suffix": ("v1",)}, [SPACES[0]]),
        ({"prefix": ("docs", "*", "v1")}, [SPACES[0], SPACES[2]]),
        ({"suffix": ("*", "alice")}, [SPACES[4]]),
        ({"suffix": ("alice", "*")}, sorted(SPACES[:2])),
        ({"prefix": ("*", "alice")}, [SPACES[0], SPACES[1], SPACES[4]]),
        ({"prefix": ("docs",), "suffix": ("draft",)}, [SPACES[2]]),
        ({"prefix": ("docs", "alice", "v1", "x", "y")}, []),
        ({"max_depth": 2}, [("docs", "alice"), ("docs", "bob"), ("mail",), ("mail", "alice")]),
        ({"prefix": ("docs",), "max_depth": 1}, [("docs",)]),
        ({"limit": 2, "offset": 1}, sorted(SPACES)[1:3]),
        ({"max_depth": 1, "offset": 1}, [("mail",)]),
    ],
)
def test_namespaces_are_listed_by_what_they_begin_and_end_with(
    make: Make, asked: dict[str, Any], found: list[tuple[str, ...]]
) -> None:
    store = make()
    for space in SPACES:
        store.put(space, "k", {"n": 1})
    assert store.list_namespaces(**asked) == found


def test_a_batch_answers_in_order_and_reads_what_stood_before_it(make: Make) -> None:
    store = make()
    store.put(("b",), "old", {"n": 1})
    results = store.batch(
        [
            PutOp(("b",), "old", {"n": 2}),
            GetOp(("b",), "old"),
            PutOp(("b",), "new", {"n": 3}),
            SearchOp(("b",), {"n": {"$gte": 1}}),
            PutOp(("b",), "new", {"n": 4}),
            ListNamespacesOp((MatchCondition("prefix", ("b",)),)),
            GetOp(("b",), "new"),
            PutOp(("b",), "never", {"n": 5}),
            PutOp(("b",), "never", None),
        ]
    )
    assert results[0] is results[2] is results[4] is results[6] is results[7] is None
    got, searched = results[1], results[3]
    assert isinstance(got, object)
    assert getattr(got, "value", None) == {"n": 1}
    assert isinstance(searched, list)
    assert [one.value for one in searched if hasattr(one, "value")] == [{"n": 1}]
    assert results[5] == [("b",)]
    values = {one.key: one.value for one in store.search(("b",))}
    assert values == {"old": {"n": 2}, "new": {"n": 4}}


def test_an_operation_that_there_is_not_is_refused(make: Make) -> None:
    with pytest.raises((ValueError, InvalidInput)):
        make().batch(["put"])  # type: ignore[list-item] # that is what is tested


def test_the_nearest_items_come_first_with_their_cosine(make: Make) -> None:
    store = make(index=index("text"))
    for key, text in {"a": "cat cat", "b": "cat dog", "c": "boat", "d": "no word"}.items():
        store.put(("v", key), key, {"text": text, "n": len(text)})
    store.put(("v",), "e", {"other": "cat"})
    store.put(("v",), "f", {"text": "cat"}, index=False)
    store.put(("w",), "g", {"text": "cat"})
    found = store.search(("v",), query="cat")
    assert keys(found)[:2] == ["a", "b"]
    assert set(keys(found)[2:4]) == {"c", "d"}
    assert set(keys(found)[4:]) == {"e", "f"}
    scores = [one.score for one in found]
    assert scores[:4] == pytest.approx([1, 0.7071, 0, 0], abs=1e-4)
    assert scores[4:] == [None, None]
    assert keys(store.search(("v",), query="cat", limit=1, offset=1)) == ["b"]
    assert keys(store.search(("v",), query="cat", filter={"n": 4})) == ["c"]
    assert keys(store.search(("v",), query="boat", limit=1)) == ["c"]
    assert [one.score for one in store.search(("v",), limit=2)] == [None, None]
    store.put(("v", "a"), "a", {"text": "dog"})
    assert keys(store.search(("v",), query="cat", limit=1)) == ["b"]
    store.delete(("v", "b"), "b")
    assert "b" not in keys(store.search(("v",), query="cat"))


@pytest.mark.parametrize(
    ("fields", "best"),
    [
        (["title"], "a"),
        (["parts[*].text"], "b"),
        (["parts[0].text"], "a"),
        (["parts[-1].text"], "b"),
        (["of.name"], "c"),
        (["of"], "c"),
        (["{title,of.name}"], "c"),
        (["title", "of.name"], "c"),
        (["$"], "b"),
    ],
)
def test_the_fields_that_are_embedded_are_paths(make: Make, fields: list[str], best: str) -> None:
    store = make(index=index(*fields))
    store.put(("v",), "a", {"title": "moon sun", "parts": [{"text": "moon boat"}, {"text": "tea"}]})
    store.put(("v",), "b", {"title": "tea", "parts": [{"text": "dog"}, {"text": "moon moon moon"}]})
    store.put(("v",), "c", {"title": "dog", "parts": [], "of": {"name": "moon"}})
    assert store.search(("v",), query="moon", limit=1)[0].key == best


def test_a_put_may_say_what_of_its_item_is_embedded(make: Make) -> None:
    store = make(index=index("title"))
    store.put(("v",), "a", {"title": "cat", "notes": ["dog", "boat"]}, index=["notes[*]"])
    store.put(("v",), "b", {"title": "tea", "notes": ["cat"]})
    found = store.search(("v",), query="boat")
    assert [(one.key, one.score) for one in found] == [("a", 1.0), ("b", 0.0)]


def test_a_function_may_embed_and_be_asynchronous(make: Make) -> None:
    embed = Counted().embed_documents
    plain = make(index=index(embed=embed))
    plain.put(("v",), "a", {"text": "cat"})
    assert plain.search(("v",), query="cat")[0].score == pytest.approx(1)

    async def embedded(texts: Sequence[str]) -> list[list[float]]:
        return embed(list(texts))

    store = make(index=index(embed=embedded))

    async def used() -> float | None:
        await store.aput(("w",), "a", {"text": "cat cat"})
        return (await store.asearch(("w",), query="cat"))[0].score

    assert asyncio.run(used()) == pytest.approx(1)


def test_a_query_without_an_index_finds_all_that_the_filter_lets(make: Make) -> None:
    store = make()
    store.put(("v",), "a", {"n": 1}, index=["n"])
    store.put(("v",), "b", {"n": 2})
    assert keys(store.search(("v",), query="cat", filter={"n": 2})) == ["b"]


# ours alone


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=None).workspace("alex")


def test_what_is_not_said_is_embedded_by_the_memory(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    store = DeLLMStore(opened(sqlite_url))
    store.put(("v",), "a", {"text": "the cat sleeps"})
    store.put(("v",), "b", {"text": "boats sail"})
    found = store.search(("v",), query="a cat that sleeps")
    near, far = ((one.key, one.score or 0) for one in found)
    assert near[0] == "a"
    assert near[1] > far[1]


def test_texts_are_embedded_once_and_outside_of_any_transaction(memory: Memory) -> None:
    class Writing(Counted):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            memory.remember("from within the embedder")
            return super().embed_documents(texts)

    embed = Writing()
    store = DeLLMStore(memory, index=index("a", "b", embed=embed))
    store.batch([PutOp(("v",), str(at % 3), {"a": "cat", "b": "dog"}) for at in range(5)])
    assert embed.asked == ["cat", "dog"]
    asyncio.run(store.aput(("v",), "z", {"a": "tea"}))
    assert embed.awaited == 1
    assert len(store.search(("v",), query="tea")) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        lambda store: store.put(("a",), "k", {"x": object()}),
        lambda store: store.put(("a",), "k", {1: "x"}),
        lambda store: store.put(("a",), "k", ["x"]),
        lambda store: store.put(("a",), "k", {"x": 1}, ttl="soon"),
        lambda store: store.put(("a",), "k", {"x": 1}, parents=["x"]),
        lambda store: store.batch([GetOp("a", "k")]),
        lambda store: store.batch([GetOp(("a",), 1)]),
        lambda store: store.search(("a",), filter=[1]),
        lambda store: store.search(("a",), limit=-1),
        lambda store: store.list_namespaces(limit=-1),
        lambda store: store.list_namespaces(limit=None),
        lambda store: store.list_namespaces(offset=None),
        lambda store: store.put(("a",), "k", {"x": 1}, ttl=float("inf")),
        lambda store: store.put(("a",), "k", {"x": 1}, ttl=1e300),
        lambda store: DeLLMStore(store.memory, ttl="x"),  # type: ignore[arg-type] # wrong
        lambda store: DeLLMStore(store.memory, ttl=5),  # type: ignore[arg-type] # wrong
        lambda store: DeLLMStore(store.memory, ttl={"default_ttl": "x"}),  # type: ignore[typeddict-item] # wrong
        lambda store: DeLLMStore(store.memory, ttl={"default_ttl": float("nan")}),
        lambda store: DeLLMStore(store.memory, ttl={"refresh_on_read": "x"}),  # type: ignore[typeddict-item] # wrong
        lambda store: DeLLMStore(store.memory, ttl={"sweep_interval_minutes": "x"}),  # type: ignore[typeddict-item] # wrong
        lambda store: DeLLMStore(store.memory, ttl={"sweep_interval_minutes": 0}),
        lambda store: store.start_ttl_sweeper("x"),
        lambda store: DeLLMStore(store.memory, workspace=5),  # type: ignore[arg-type] # wrong
        lambda store: DeLLMStore(store.memory, workspace=""),
        lambda store: DeLLMStore(store.memory, index={"embed": 3}),  # type: ignore[typeddict-item] # wrong
        lambda store: store.batch([ListNamespacesOp((MatchCondition("middle", ("a",)),))]),  # type: ignore[arg-type] # wrong
        DeLLMStore,
        lambda store: DeLLMStore(store.memory, index={"dims": 3}),
        lambda store: DeLLMStore(store.memory, index={"embed": len, "fields": "a"}),
        lambda store: DeLLMStore(store.memory, index=index() | {"dims": 3}).put(("a",), "k", {}),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_kept(
    sqlite_url: str, opened: Callable[..., Memory], wrong: Callable[[Any], object]
) -> None:
    store = DeLLMStore(opened(sqlite_url, embedder=None))
    store.put(("a",), "first", {"x": 1})
    with pytest.raises((InvalidInput, TypeError)) as refused:
        wrong(store)
    assert isinstance(refused.value, DellmError) or "object" in str(refused.value)
    assert keys(store.search(())) == ["first"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(value=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), VALUES))
def test_any_json_value_comes_back_as_a_stock_store_on_a_database_gives_it(
    value: dict[str, Any],
) -> None:
    import orjson

    try:
        expected = orjson.loads(orjson.dumps(value))
    except TypeError:
        expected = None
    with Memory.open(":memory:", embedder=None) as memory:
        store = DeLLMStore(memory)
        if expected is None:
            with pytest.raises(InvalidInput):
                store.put(("v",), "k", value)
            return
        store.put(("v",), "k", value)
        found = store.get(("v",), "k")
    assert found is not None
    assert found.value == expected


# time to live


def test_an_item_lives_as_long_as_it_is_read(url: str, opened: Callable[..., Memory]) -> None:
    clock = count(1_000_000_000_000_000, MINUTE)
    memory = opened(url, embedder=None, clock=lambda: next(clock))
    store = DeLLMStore(memory, ttl={"default_ttl": 30, "refresh_on_read": True})
    for key in ("got", "looked", "found"):
        store.put(("t",), key, {"n": key})
    store.put(("t",), "always", {"n": "always"}, ttl=None)
    for _ in range(20):
        assert store.get(("t",), "got") is not None
        store.get(("t",), "looked", refresh_ttl=False)
        store.search(("t",), filter={"n": "found"})
    assert keys(store.search(("t",), refresh_ttl=False)) == ["always", "found", "got"]
    assert store.get(("t",), "looked") is None
    assert store.sweep_ttl() == 1
    assert asyncio.run(store.asweep_ttl()) == 0
    assert memory.scan("looked", files=False).clean


def test_an_item_is_not_kept_alive_by_reading_where_the_config_says_so(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    clock = count(1_000_000_000_000_000, MINUTE)
    memory = opened(sqlite_url, embedder=None, clock=lambda: next(clock))
    store = DeLLMStore(memory, ttl={"refresh_on_read": False})
    store.put(("t",), "k", {"n": 1}, ttl=20)
    found = [store.get(("t",), "k") is not None for _ in range(30)]
    assert found[0]
    assert not found[-1]
    assert found == sorted(found, reverse=True)


def test_a_sweeper_deletes_what_is_over_until_it_is_stopped(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    ticks = [1_000_000_000_000_000]
    memory = opened(sqlite_url, embedder=None, clock=lambda: ticks[0])
    store = DeLLMStore(memory, ttl={"default_ttl": 1})
    store.put(("t",), "k", {"n": "gone"})
    ticks[0] += 2 * MINUTE
    ended = store.start_ttl_sweeper(0.0001)
    store.start_ttl_sweeper(0.0001)
    for _ in range(1_000):
        if memory.scan("gone", files=False).clean:
            break
        time.sleep(0.01)
    assert memory.scan("gone", files=False).clean
    assert store.stop_ttl_sweeper(10)
    assert ended.done()
    assert store.stop_ttl_sweeper()
    assert DeLLMStore(memory).start_ttl_sweeper().done()
    ended = store.start_ttl_sweeper(0.0001)
    memory.close()
    ended.result(timeout=30)


# tenants, parents, writers


def test_no_tenant_sees_the_items_of_another(memory: Memory) -> None:
    store = DeLLMStore(memory, workspace="user_id", index=index("text"))
    ann, bob = store.for_workspace("ann"), store.for_workspace("bob")
    ann.put(("mem",), "k", {"text": "cat of ann"})
    bob.put(("mem",), "k", {"text": "dog of bob"})
    assert [one.value["text"] for one in ann.search((), query="cat dog")] == ["cat of ann"]
    assert bob.clear(("mem",)) == 1
    assert bob.list_namespaces() == []
    assert ann.get(("mem",), "k") is not None
    for call in (lambda: store.get(("mem",), "k"), lambda: asyncio.run(store.aget(("mem",), "k"))):
        with pytest.raises(InvalidInput, match="workspace"):
            call()
    assert store.sweep_ttl() == 0


def test_an_item_goes_with_the_records_it_was_said_to_be_made_from(memory: Memory) -> None:
    store = DeLLMStore(memory)
    paris, tea = memory.remember("I live in Paris"), memory.remember("I like tea")
    store.put(("u",), "home", {"city": "the capital of France"}, parents=[paris.id])
    asyncio.run(store.aput(("u",), "drink", {"is": "hot"}, parents=[tea.id]))
    receipt = memory.forget("I live in Paris")
    assert len(receipt.ids) == 2
    assert keys(store.search(("u",))) == ["drink"]
    with pytest.raises(ContextForgotten):
        store.put(("u",), "home", {"city": "late"}, parents=[paris.id])
    with pytest.raises(ContextForgotten):
        store.put(("u",), "home", {"city": "of nothing"}, parents=[999_999])
    assert keys(store.search(("u",))) == ["drink"]
    assert memory.verify().ok


def test_an_item_is_forgotten_by_what_it_says_or_is_called(
    memory: Memory, sqlite_url: str, tmp_path: Path
) -> None:
    store = DeLLMStore(memory, index=index("text"))
    said = 'his word is "swordfish"\nand that is all'
    store.put(("notes", "smith"), "one", {"text": said, "n": 1})
    store.put(("notes", "smith"), "two", {"text": "the cat"})
    store.put(("notes", "jones"), "colours", {"text": "red"})
    memory.forget(said)
    assert keys(store.search(("notes",), query="cat")) == ["two", "colours"]
    memory.forget("smith")
    memory.forget("colours")
    assert store.search(()) == []
    assert store.list_namespaces() == []
    for gone in ("swordfish", "smith", "colours"):
        assert memory.scan(gone, files=False).clean
    assert memory.verify().ok


def test_what_was_given_out_is_known_again_until_it_is_forgotten(memory: Memory) -> None:
    store, owner = DeLLMStore(memory, index=None), (memory.identity, memory.id)
    for key, said in (
        ("a", "the spare key lies under the blue pot"),
        ("b", "tea at four on sunday"),
    ):
        store.put(("n",), key, {"said": said})
    first, second = (one.id for one in memory.items.get("store", [(("n",), "a"), (("n",), "b")]))
    assert len(store.search(("n",))) == 2
    memory.forget(ids=[first])  # before anybody asked what repeats it
    assert shown.of(owner, "He said: the spare key lies under the blue pot.") == []
    assert shown.of(owner, "She said: tea at four on sunday.") == [second]
    store.put(("n",), "b", {"said": "nothing"})
    assert shown.of(owner, "She said: tea at four on sunday.") == [second]


def test_a_redacted_item_is_still_a_value(memory: Memory) -> None:
    store = DeLLMStore(memory)
    store.put(("u",), "a", {"card": "4111 1111 1111 1111", "owner": "Sam"})
    store.put(("u",), "b", {"pins": [4111111111111111, 7], "owner": "Kim"})
    memory.forget("4111 1111 1111 1111", mode="redact")
    values = {one.key: one.value for one in store.search(("u",))}
    assert values["a"] == {"card": "[redacted]", "owner": "Sam"}
    assert values["b"] == {"pins": ["[redacted]", 7], "owner": "Kim"}
    assert memory.scan("4111111111111111", files=False).clean


def test_the_store_is_opened_and_closed_by_its_address(url: str) -> None:
    with DeLLMStore.from_conn_string(url, embedder=None, index=index("text")) as store:
        store.setup()
        store.put(("v",), "a", {"text": "cat"})
        assert store.search(("v",), query="cat")[0].score == pytest.approx(1)
    with DeLLMStore.from_conn_string(url, embedder=None) as store:
        assert store.get(("v",), "a") is not None


def test_writers_at_the_same_time_lose_nothing(url: str, opened: Callable[..., Memory]) -> None:
    stores = [DeLLMStore(opened(url, embedder=None), index=index("text")) for _ in range(2)]
    faults: list[BaseException] = []

    def write(store: DeLLMStore, name: str) -> None:
        try:
            for at in range(15):
                store.put(("mine", name), str(at), {"text": "cat", "n": at})
                store.put(("shared",), str(at % 3), {"text": "dog", "by": name})
                store.search(("shared",), query="dog")
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=write, args=(stores[at % 2], f"w{at}")) for at in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert faults == []
    assert len(stores[0].search(("mine",), limit=99)) == 60
    assert len(stores[1].search(("shared",), query="dog")) == 3
    assert stores[0].memory.verify().ok
