"""Keyword and meaning search: inside one workspace only, filtered before ranking, alike everywhere."""

from __future__ import annotations

import hashlib
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dellm import Memory, matrix
from dellm.database import Filter
from dellm.errors import EmbedderError
from dellm.records import Draft
from dellm.search import by_keyword, by_meaning, fused
from dellm.terms import distinct, terms

WORDS = ["alpha", "beta", "gamma", "delta", "eps", "zeta", "eta", "theta", "iota", "kappa"]


class Axes:
    """An embedder of chosen cosines: a text is its weights on the axes, "a:3 b:4" → (.6, .8, 0…)."""

    provider, threshold, dimensions = "local", 0.2, 8

    def __init__(self, name: str = "axes", *, fails_after: int | None = None) -> None:
        self.name = name
        self.calls: list[int] = []
        self.fails_after = fails_after

    def embed(self, texts: Sequence[str], /) -> np.ndarray:
        if self.fails_after is not None and len(self.calls) >= self.fails_after:
            raise EmbedderError("The endpoint is away.")
        self.calls.append(len(texts))
        rows = np.zeros((len(texts), 8), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for part in text.split():
                axis, _, weight = part.partition(":")
                if weight:
                    row["abcdefgh".index(axis)] += float(weight)
            if not row.any():
                row[7] = 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# bm25


def expected_bm25(texts: dict[int, str], query: str) -> list[tuple[int, float]]:
    """Return the ranking by the textbook formula over exactly these texts."""
    split = {id_: terms(text) for id_, text in texts.items()}
    average = sum(map(len, split.values())) / len(split)
    scores: dict[int, float] = {}
    for term in distinct(query):
        holders = [id_ for id_, held in split.items() if term in held]
        weight = math.log(1 + (len(split) - len(holders) + 0.5) / (len(holders) + 0.5))
        for id_ in holders:
            often, length = split[id_].count(term), len(split[id_])
            norm = 1.2 * (1 - 0.75 + 0.75 * length / average)
            scores[id_] = scores.get(id_, 0) + weight * often * 2.2 / (often + norm)
    return sorted(scores.items(), key=lambda hit: (-round(hit[1], 9), hit[0]))


def ranked(memory: Memory, query: str, limit: int = 100, **options: Any) -> list[tuple[int, float]]:
    hits = memory.search(query, by="keyword", limit=limit, **options)
    return [(one.record.id, one.score) for one in hits]


def random_texts(seed: int, count: int = 60) -> list[str]:
    choose = random.Random(seed)
    return [" ".join(choose.choices(WORDS, k=choose.randint(1, 30))) for _ in range(count)]


def test_bm25_is_the_textbook_s_over_the_workspace_s_own_records(memory: Memory) -> None:
    made = memory.remember_many([Draft(text) for text in random_texts(1)])
    texts = {one.id: one.text for one in made}
    for query in ("alpha", "beta gamma", "kappa KAPPA theta", "alpha nowhere"):
        wanted = expected_bm25(texts, query)
        found = ranked(memory, query)
        assert [id_ for id_, _ in found] == [id_ for id_, _ in wanted]
        assert [score for _, score in found] == pytest.approx([score for _, score in wanted])


def test_bm25_is_right_again_after_forgetting_and_redacting(memory: Memory) -> None:
    made = memory.remember_many([Draft(text) for text in random_texts(2)])
    memory.forget(ids=[one.id for one in made[::3]], scrub=False)
    memory.remember("alpha beta unique")
    memory.forget("unique", mode="redact", scrub=False)
    texts = {one.id: one.text for one in memory.export()}
    found = ranked(memory, "alpha delta")
    wanted = expected_bm25(texts, "alpha delta")
    assert [id_ for id_, _ in found] == [id_ for id_, _ in wanted]
    assert [score for _, score in found] == pytest.approx([score for _, score in wanted])


def test_other_workspaces_change_neither_scores_nor_order(memory: Memory) -> None:
    memory.remember_many([Draft(text) for text in random_texts(3)])
    before = [ranked(memory, word) for word in WORDS]
    near = [(one.record.id, one.score) for one in memory.search("alpha beta", by="both")]
    for name in ("kim", "Alex", "alex "):
        other = memory.workspace(name)
        other.remember_many([Draft("alpha " * 50) for _ in range(40)])
        other.remember_many([Draft(text) for text in random_texts(4)])
        other.index()
    assert [ranked(memory, word) for word in WORDS] == before
    assert [(one.record.id, one.score) for one in memory.search("alpha beta", by="both")] == near


@pytest.fixture
def both(
    sqlite_url: str, postgres_url: str, opened: Callable[..., Memory]
) -> tuple[Memory, Memory]:
    return opened(sqlite_url, scrub_below=0), opened(postgres_url, scrub_below=0)


@given(
    texts=st.lists(
        st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=12
    ),
    query=st.lists(st.sampled_from([*WORDS, "absent"]), min_size=1, max_size=4).map(" ".join),
    gone=st.sets(st.integers(0, 11), max_size=4),
    number=st.integers(0, 2**40),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.long
def test_both_databases_give_the_same_results_in_the_same_order(
    both: tuple[Memory, Memory], texts: list[str], query: str, gone: set[int], number: int
) -> None:
    answers = []
    for memory in both:
        space = memory.workspace(
            f"w{number}-{hashlib.md5(repr((texts, gone)).encode()).hexdigest()}"
        )
        space.remember_many([Draft(text, thread=f"t{at % 2}") for at, text in enumerate(texts)])
        ids = [at + 1 for at in gone if at < len(texts)]
        if ids:
            space.forget(ids=ids, scrub=False)
        seen: list[Any] = []
        for by in ("keyword", "meaning", "both"):
            for thread in (None, "t0"):
                hits = space.search(query, by=by, thread=thread, limit=5)
                seen.append([(one.record.id, round(one.score, 5), one.why) for one in hits])
            context = space.context(query, by=by, k=3, thread="t0", last=1)
            seen.append([(one.record.id, one.why[:20]) for one in context])
        answers.append(seen)
        space.forget(everything=True, scrub=False) if len(ids) < len(texts) else None
    assert answers[0] == answers[1]


def test_ties_go_to_the_smaller_id(memory: Memory) -> None:
    made = memory.remember_many([Draft("the very same words") for _ in range(30)])
    ids = [one.id for one in made]
    for by in ("keyword", "meaning", "both"):
        hits = memory.search("same words", by=by, limit=10)
        assert [one.record.id for one in hits] == ids[:10]
        assert len({one.score for one in hits}) == (1 if by != "both" else 10)


def test_no_term_no_hit_and_no_limit_no_hit(memory: Memory) -> None:
    memory.remember("alpha")
    assert memory.search("!!", by="keyword") == []
    assert memory.search("", by="keyword") == []
    assert memory.search("absent", by="keyword") == []
    assert memory.search("alpha", by="keyword", limit=0) == []
    assert memory.search("alpha", by="meaning", limit=0) == []


def test_keywords_ignore_case_accents_and_width(memory: Memory) -> None:
    said = memory.remember("Zoë's CAFÉ in ＴＯＫＹＯ 東京 naïve")
    for query in ("zoe", "ZOË", "cafe", "tokyo", "東", "京", "NAIVE"):
        assert [one.record.id for one in memory.search(query, by="keyword")] == [said.id], query


# filters come before ranking


def quarantine(memory: Memory, ids: list[int]) -> None:
    with memory._engine.writing(memory.id) as (tx, scope):
        tx.run("update record set status = 2 where ws = :ws and id in :ids", ws=scope.ws, ids=ids)


@pytest.mark.parametrize("by", ["keyword", "meaning", "both"])
def test_what_may_not_be_used_never_takes_a_place_of_the_top(
    url: str, opened: Callable[..., Memory], by: str
) -> None:
    present = 1_000_000_000_000_000
    memory = opened(url, embedder=Axes(), clock=lambda: present).workspace("alex")
    text = "alpha a:1"
    better = "alpha alpha a:1"
    suppressed = [one.id for one in memory.remember_many([Draft(better) for _ in range(40)])]
    expired = [
        one.id
        for one in memory.remember_many([Draft(better, retention_until=present) for _ in range(40)])
    ]
    unsafe = [one.id for one in memory.remember_many([Draft(better) for _ in range(40)])]
    erased = [one.id for one in memory.remember_many([Draft(better) for _ in range(40)])]
    good = [
        one.id
        for one in memory.remember_many([Draft(text), Draft(text, retention_until=present + 1)])
    ]
    memory.index()
    assert memory.search("alpha a:1", by=by, limit=2)[0].record.id in suppressed
    memory.forget(ids=suppressed, mode="suppress")
    memory.forget(ids=erased, scrub=False)
    quarantine(memory, unsafe)
    assert [one.record.id for one in memory.search("alpha a:1", by=by, limit=2)] == good
    assert sorted(memory.context("alpha a:1", by=by, k=2).ids) == good
    assert sorted(one.id for one in memory.export()) == good
    for id_ in (suppressed[0], expired[0], unsafe[0], erased[0]):
        assert id_ not in [one.record.id for one in memory.search("alpha a:1", by=by, limit=200)]


@pytest.mark.parametrize("by", ["keyword", "meaning", "both"])
def test_a_thread_or_a_list_to_leave_out_narrows_before_the_top_is_taken(
    memory: Memory, by: str
) -> None:
    memory.remember_many([Draft("alpha alpha beta", thread="loud") for _ in range(50)])
    quiet = memory.remember("alpha once", thread="quiet")
    none = memory.remember("alpha twice")
    hits = memory.search("alpha", by=by, limit=3, thread="quiet")
    assert [one.record.id for one in hits] == [quiet.id]
    loud = list(range(1, 51))
    context = memory.context("alpha", by=by, k=3, without=loud)
    assert sorted(context.ids) == [quiet.id, none.id]
    assert memory.search("alpha", by=by, thread="no such thread") == []


def test_a_held_record_is_kept_from_erasure_and_from_use(memory: Memory) -> None:
    said = memory.remember("alpha on hold")
    other = memory.remember("alpha in use")
    memory.index()
    memory.holds.place(ids=[said.id], basis="case 1", by="counsel")
    for by in ("keyword", "meaning", "both"):
        assert [one.record.id for one in memory.search("alpha on hold", by=by)] == [other.id]


# meaning


def test_cosines_are_exact_and_the_threshold_is_exclusive(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=Axes()).workspace("alex")
    memory.remember_many(
        [Draft(f"a:{a} b:{b}") for a, b in ((1, 0), (4, 3), (3, 4), (0, 1), (-1, 0))]
    )
    hits = memory.search("a:1", by="meaning", threshold=-1.0)
    assert [one.record.id for one in hits][:4] == [1, 2, 3, 4]
    assert [one.score for one in hits][:4] == pytest.approx([1, 0.8, 0.6, 0], abs=1e-6)
    assert len(memory.search("a:1", by="meaning")) == 3  # above 0.2, the embedder's own
    assert len(memory.search("a:1", by="meaning", threshold=0.7)) == 2
    assert len(memory.search("a:1", by="meaning", threshold=hits[1].score)) == 1


@pytest.mark.parametrize("used", [384, 20], ids=["dense", "sparse"])
@pytest.mark.parametrize("count", [1, 3, 100, 10_003])
def test_equal_vectors_have_equal_cosines_wherever_they_stand(count: int, used: int) -> None:
    choose = np.random.default_rng(count)
    one, query = choose.standard_normal((2, 384)).astype(np.float32)
    query[used:] = 0
    room = np.empty((384, count + 5), np.float32)
    columns = room[:, :count]
    columns[:] = one[:, None]
    found = matrix._product(query, columns)
    assert found.dtype == np.float32
    assert found.shape == (count,)
    assert len(set(found.tolist())) == 1
    assert found[0] == pytest.approx(query @ one, abs=1e-3)


def test_search_by_meaning_is_brute_force_s_answer(url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(url, embedder=Axes()).workspace("alex")
    choose = random.Random(8)
    texts = [" ".join(f"{axis}:{choose.randint(-9, 9)}" for axis in "abcdefg") for _ in range(400)]
    memory.remember_many([Draft(text) for text in texts])
    vectors = Axes().embed(texts)
    for query in texts[:5]:
        scores = vectors @ Axes().embed([query])[0]
        wanted = sorted(range(400), key=lambda at: (-scores[at], at))[:7]
        hits = memory.search(query, by="meaning", limit=7, threshold=-1)
        assert [one.score for one in hits] == pytest.approx([scores[at] for at in wanted], abs=1e-5)
        assert hits[0].record.id == wanted[0] + 1


def test_fusion_ranks_by_reciprocal_ranks() -> None:
    first, second = [(1, 0.9), (2, 0.8), (3, 0.1)], [(3, 9.0), (1, 7.0)]
    merged = fused([first, second], 3)
    assert [id_ for id_, _ in merged] == [1, 3, 2]
    assert merged[0][1] == pytest.approx(1 / 61 + 1 / 62)
    assert merged[1][1] == pytest.approx(1 / 63 + 1 / 61)
    assert fused([[(5, 1.0)], [(4, 1.0)]], 2) == [(4, 1 / 61), (5, 1 / 61)]


def test_records_are_embedded_once_and_only_when_meaning_is_asked_for(
    url: str, opened: Callable[..., Memory]
) -> None:
    embedder = Axes()
    memory = opened(url, embedder=embedder).workspace("alex")
    memory.remember_many([Draft(f"a:{number}") for number in range(1, 11)])
    memory.search("a:1", by="keyword")
    assert embedder.calls == []
    memory.search("a:1", by="meaning")
    memory.search("b:1", by="meaning")
    assert embedder.calls == [10, 1, 1]
    memory.remember("b:1")
    assert [one.record.text for one in memory.search("b:1", by="meaning")] == ["b:1"]
    assert embedder.calls == [10, 1, 1, 1, 1]


# a change of embedder


def vectors_of(memory: Memory) -> list[int]:
    with memory._engine.reading(memory.id) as (tx, scope):
        return [row[0] for row in tx.all("select id from embedding where ws = :ws", ws=scope.ws)]


def test_another_embedder_is_refused_until_index_has_made_all_vectors_anew(
    url: str, opened: Callable[..., Memory]
) -> None:
    first = opened(url, embedder=Axes("one")).workspace("alex")
    first.remember_many([Draft("a:1"), Draft("b:1")])
    first.index()
    second = opened(url, embedder=Axes("two")).workspace("alex")
    for act in (lambda: second.search("a:1"), lambda: second.context("a:1")):
        with pytest.raises(EmbedderError, match="made by one, not by two"):
            act()
    assert second.search("a", by="keyword")
    assert second.index() == 2
    assert second.search("a:1")[0].record.text == "a:1"
    with pytest.raises(EmbedderError, match="made by two, not by one"):
        first.search("a:1")
    assert second.verify().ok


def test_index_goes_on_where_it_was_interrupted(url: str, opened: Callable[..., Memory]) -> None:
    old = opened(url, embedder=Axes("one")).workspace("alex")
    old.remember_many([Draft(f"a:{number + 1}") for number in range(600)])
    assert old.index() == 600
    seen: list[tuple[int, int]] = []
    broken = opened(url, embedder=Axes("two", fails_after=1)).workspace("alex")
    with pytest.raises(EmbedderError):
        broken.index(lambda done, total: seen.append((done, total)))
    assert seen == [(256, 600)]
    assert len(vectors_of(broken)) == 256
    assert broken.verify().ok
    embedder = Axes("two")
    again = opened(url, embedder=embedder).workspace("alex")
    assert again.index(lambda done, total: seen.append((done, total))) == 344
    assert seen[1:] == [(256, 344), (344, 344)]
    assert embedder.calls == [256, 88]
    assert len(vectors_of(again)) == 600
    assert again.verify().ok
    assert again.index() == 0


class ForgetsMeanwhile(Axes):
    """An embedder during whose work a record is erased, as by another process."""

    act: Callable[[], object] | None = None

    def embed(self, texts: Sequence[str], /) -> np.ndarray:
        rows = super().embed(texts)
        if self.act is not None:
            act, self.act = self.act, None
            act()
        return rows


def test_a_vector_of_a_record_erased_meanwhile_is_not_stored(
    url: str, opened: Callable[..., Memory]
) -> None:
    embedder = ForgetsMeanwhile()
    memory = opened(url, embedder=embedder).workspace("alex")
    elsewhere = opened(url, embedder=None, scrub_below=0).workspace("alex")
    memory.remember_many([Draft(f"a:{number}") for number in range(1, 6)])
    embedder.act = lambda: elsewhere.forget(ids=[2, 5])
    memory.index()
    assert sorted(vectors_of(memory)) == [1, 3, 4]
    assert [one.record.id for one in memory.search("a:1", limit=9)] == [1, 3, 4]
    assert memory.verify().ok
    assert memory.index() == 0


def test_a_hit_of_a_record_erased_between_embedding_and_search_is_not_returned(
    url: str, opened: Callable[..., Memory]
) -> None:
    embedder = ForgetsMeanwhile()
    memory = opened(url, embedder=embedder).workspace("alex")
    elsewhere = opened(url, embedder=None, scrub_below=0).workspace("alex")
    memory.remember_many([Draft(f"a:{number}") for number in range(1, 6)])
    memory.index()
    memory.search("a:1")  # the matrix is in memory now
    embedder.act = lambda: elsewhere.forget(ids=[1, 2])
    assert [one.record.id for one in memory.search("a:1", limit=9)] == [3, 4, 5]


FORGETTER = """
import sys
from dellm import Memory, matrix
memory = Memory.open(sys.argv[1], embedder=None, scrub_below=0).workspace("alex")
memory.forget(ids=[1])
memory.remember("a:2 b:1")
memory.close()
"""


def test_a_vector_erased_by_another_process_is_gone_from_this_one_s_cache(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=Axes()).workspace("alex")
    memory.remember_many([Draft("a:1"), Draft("a:1 b:1")])
    assert [one.record.id for one in memory.search("a:1")] == [1, 2]
    subprocess.run([sys.executable, "-c", FORGETTER, url], check=True, timeout=60)
    assert [one.record.id for one in memory.search("a:1")] == [3, 2]
    matrices = getattr(memory._engine.database, "_matrices", None)
    if matrices is not None:
        (held,) = matrices._kept.values()
        assert held.ids[: held.filled].tolist() == [2, 3]
        gone = Axes().embed(["a:1"])[0].tobytes()
        assert gone not in held.columns[:, : held.filled].T.tobytes()


def test_a_closed_memory_keeps_no_vectors(sqlite_url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(sqlite_url, embedder=Axes()).workspace("alex")
    memory.remember("a:1")
    memory.search("a:1")
    matrices = memory._engine.database._matrices
    assert matrices._kept
    memory.close()
    assert not matrices._kept


class Faulty(Axes):
    """An embedder that answers with something else than one finite vector for each text."""

    def __init__(self, answer: Callable[[np.ndarray], Any]) -> None:
        super().__init__("faulty")
        self.answer = answer

    def embed(self, texts: Sequence[str], /) -> Any:
        return self.answer(super().embed(texts))


@pytest.mark.parametrize(
    "answer",
    [
        lambda rows: rows[:-1],
        lambda rows: rows * np.nan,
        lambda rows: rows[0],
        lambda rows: np.full(rows.shape, "word"),
        lambda rows: None,
        lambda rows: rows[:, :0],
    ],
)
def test_a_wrong_answer_of_an_embedder_is_an_error_and_stores_nothing(
    url: str, opened: Callable[..., Memory], answer: Callable[[np.ndarray], Any]
) -> None:
    memory = opened(url, embedder=Faulty(answer)).workspace("alex")
    memory.remember_many([Draft("a:1"), Draft("b:1")])
    with pytest.raises(EmbedderError):
        memory.index()
    assert vectors_of(memory) == []
    assert memory.verify().ok


def test_an_embedder_whose_vectors_change_their_length_is_refused(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=Axes("same name")).workspace("alex")
    memory.remember("a:1")
    memory.index()

    class Shorter(Axes):
        dimensions = 4

        def embed(self, texts: Sequence[str], /) -> np.ndarray:
            return np.ascontiguousarray(super().embed(texts)[:, :4])

    other = opened(url, embedder=Shorter("same name")).workspace("alex")
    other.remember("b:1")
    with pytest.raises(EmbedderError):
        other.search("a:1")
    assert memory.search("a:1")[0].record.text == "a:1"


# the two rankings directly


def test_the_rankings_see_one_workspace_only(memory: Memory) -> None:
    memory.remember("alpha")
    other = memory.workspace("kim")
    other.remember_many([Draft("alpha"), Draft("alpha")])
    memory.index()
    other.index()
    keep = Filter(at=0)
    vector = memory._engine.embedder.embed(["alpha"])[0]
    counts: Counter[str] = Counter()
    for name in ("alex", "kim", "nobody"):
        with memory._engine.reading(name) as (tx, scope):
            counts[name] = len(by_keyword(tx, scope.ws, "alpha", 9, keep))
            assert len(by_meaning(tx, scope.ws, vector, 9, 0.1, keep)) == counts[name]
    assert counts == {"alex": 1, "kim": 2, "nobody": 0}
