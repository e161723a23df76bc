"""The graph G: contexts as sequences, Dep over them, copies, and what is drawn and told of it."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable

import pytest
from brute_force import Model
from raw_tables import connected, is_postgres, statement

from dellm import ContextForgotten, Draft, Memory, NotFound, depth


def count(url: str, table: str, condition: str = "1 = 1") -> int:
    with connected(url) as raw:
        return int(statement(raw, f"select count(*) from {table} where {condition}")[0][0])


def chat(memory: Memory, turns: int) -> list[int]:
    """A chat that sends its whole history every time; return the ids in the order of the prompt."""
    said = memory.remember_many([Draft(f"question {n}", thread="t") for n in range(turns)])
    history: list[int] = []
    for one in said:
        history.append(one.id)
        history.append(memory.record("answer", context=history, thread="t").id)
    return history


# full history


@pytest.mark.long
def test_a_turn_of_a_long_chat_with_full_history_writes_a_handful_of_rows(
    url: str, opened: Callable[..., Memory]
) -> None:
    # What a turn costs there is measured at 10,000 by the benchmarks.
    turns = 2_000
    memory = opened(url, scrub_below=0).workspace("alex")
    history = chat(memory, turns)
    assert count(url, "record") == 2 * turns
    # Short contexts are stored as direct parents; then each turn is a sequence (its base and the
    # two messages since) and the reply's own edge.
    assert count(url, "sequence") == turns - 4
    assert count(url, "edge") == 4 * turns + 6

    replies = history[1::2]
    assert memory.context_of(replies[-1]) == history[:-1]
    assert memory.context_of(replies[turns // 2]) == history[: turns + 1 - turns % 2]
    assert memory.dependents([history[0]]) == sorted([history[0], *replies])
    middle = history[turns]
    assert memory.dependents([middle]) == sorted([middle, *history[turns + 1 :: 2]])
    assert memory.used_in(middle) == history[turns + 1 :: 2]
    assert memory.dependents([replies[-1]]) == [replies[-1]]

    late = history[2 * turns - 10]
    receipt = memory.forget(ids=[late])
    assert receipt.ids == tuple(sorted([late, *history[2 * turns - 9 :: 2]]))
    assert memory.context_of(history[2 * turns - 11]) == history[: 2 * turns - 11]
    assert memory.verify().ok


NEXT_TURN = """
import sys
from dellm import Memory
with Memory.open(sys.argv[1], embedder=None) as memory:
    memory = memory.workspace("alex")
    ids = [int(one) for one in sys.argv[2].split(",")]
    ids.append(memory.remember("next question", thread="t").id)
    print(memory.record("next answer", context=ids, thread="t").id)
"""


def test_another_process_goes_on_with_the_chain_it_finds(memory: Memory, url: str) -> None:
    history = chat(memory, 30)
    edges, sequences = count(url, "edge"), count(url, "sequence")
    given = ",".join(map(str, history))
    done = subprocess.run(
        [sys.executable, "-c", NEXT_TURN, url, given], capture_output=True, text=True, check=True
    )
    new = int(done.stdout)
    assert memory.context_of(new) == [*history, new - 1]
    assert count(url, "sequence") == sequences + 1
    assert count(url, "edge") == edges + 4
    assert new in memory.dependents([history[0]])


def test_a_shorter_prefix_finds_its_own_sequence_again(memory: Memory, url: str) -> None:
    history = chat(memory, 20)
    before = count(url, "sequence")
    for length in (39, 21, 11, 39, 1):
        made = memory.record("late writer", context=history[:length], thread="t")
        assert memory.context_of(made.id) == history[:length]
    assert count(url, "sequence") == before


def test_a_context_may_hold_a_record_more_than_once(memory: Memory) -> None:
    ids = [memory.remember(f"m{n}").id for n in range(12)]
    for context in ([1, 1], [1, 2, 1], ids * 2, [*ids, 1, *ids[::-1]], [3] * 20):
        made = memory.record("r", context=context)
        assert memory.context_of(made.id) == context
        assert made.id in memory.used_in(context[0])


# windows, prefixes and removals


def test_system_prompts_windows_and_picks_expand_to_what_was_sent(memory: Memory) -> None:
    draw = random.Random(7)
    model = Model()
    system = memory.remember("be brief", role="system", thread="t").id
    model.add("be brief", "t", "system", "")
    for _turn in range(60):
        memory.remember("q", thread="t")
        listed = [*model.records, model.add("q", "t", "user", "").id]
        context = {
            0: listed,
            1: [system, *listed[-10:]],
            2: [system, *listed[-3:]],
            3: draw.sample(listed, k=min(len(listed), draw.randint(1, 15))),
            4: listed[: draw.randint(1, len(listed))],
            5: [one for one in listed if one % 7],
        }[draw.randint(0, 5)]
        memory.record("a", context=context, thread=draw.choice(("t", "u")))
        model.add("a", "t", "assistant", "", context)
    for id_ in model.records:
        assert memory.context_of(id_) == model.context[id_]
        assert memory.dependents([id_]) == model.dep([id_])
        assert memory.used_in(id_) == model.used_in(id_)
    for hops in (0, 1, 2, 5):
        assert list(memory.plan(ids=[9], reach=depth(hops), suspects=False).ids) == model.within(
            [9], hops
        )
    for pair in ((3, 40), (17, 18), (100, 101)):
        assert memory.dependents(pair) == model.dep(pair)


def live_upon_dead(url: str) -> int:
    return count(
        url,
        "edge e join sequence s on s.ws = e.ws and s.id = e.child "
        "join sequence b on b.ws = e.ws and b.id = e.parent",
        "e.pos = 0 and s.dead_at is null and b.dead_at is not null",
    )


@pytest.mark.parametrize("mode", ["erase", "suppress"])
def test_a_sequence_reached_by_a_forget_is_never_extended_by_any_process(
    url: str, opened: Callable[..., Memory], mode: str
) -> None:
    memory, stale = (opened(url).workspace("alex") for _ in range(2))
    history = chat(memory, 12)
    stale.record("also here", context=history, thread="t")  # both know the newest sequences
    gone = history[10]
    memory.forget(ids=[gone], mode=mode)
    left = [one for one in history if is_there(stale, one)]
    assert left == [*history[:10], *(one for one in history[12::2])]
    for writer in (stale, memory, opened(url).workspace("alex")):
        with pytest.raises(ContextForgotten):
            writer.record("late", context=history, thread="t")
        with pytest.raises(ContextForgotten):
            writer.record("late", context=history[:11], thread="t")
        for context in (left, history[:10], left[:-1]):
            made = writer.record("on", context=context, thread="t")
            assert writer.context_of(made.id) == context
            assert made.id not in writer.dependents([gone])
    assert live_upon_dead(url) == 0
    assert memory.verify().ok


def is_there(memory: Memory, id_: int) -> bool:
    try:
        memory.get(id_)
    except NotFound:
        return False
    return True


def test_forgetting_the_same_twice_never_takes_a_reply_made_from_what_was_left(
    memory: Memory,
) -> None:
    history = chat(memory, 10)
    memory.forget(ids=[history[4]])
    left = [one.id for one in memory.history("t")]
    clean = memory.record("clean", context=left, thread="t")
    assert memory.forget(ids=[history[4]]).ids[0] == history[4]
    assert memory.forget(ids=[history[6]]).ids == (*sorted([history[6], clean.id]),)


@pytest.mark.parametrize("mode", ["erase", "suppress"])
def test_a_spared_reply_keeps_what_is_left_of_its_context(memory: Memory, mode: str) -> None:
    history = chat(memory, 12)
    gone = history[4]
    receipt = memory.forget(ids=[gone], reach=depth(0), mode=mode)
    assert (receipt.ids, receipt.spared) == ((gone,), 10)
    for place in range(1, 24, 2):
        kept = [one for one in history[:place] if one != gone or mode == "suppress"]
        assert memory.context_of(history[place]) == kept
    assert memory.dependents([history[0]]) == sorted([history[0], *history[1::2]])
    assert memory.verify().ok


def test_a_suppressed_context_is_whole_again_after_it_is_restored(memory: Memory) -> None:
    history = chat(memory, 10)
    receipt = memory.forget(ids=[history[4]], mode="suppress")
    memory.restore(receipt)
    made = memory.record("on", context=history, thread="t")
    assert memory.context_of(made.id) == history
    assert memory.dependents([history[4]]) == sorted([history[4], *history[5::2], made.id])


# dense and deep


@pytest.mark.long
def test_two_thousand_replies_that_each_saw_everything_are_forgotten_together(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, scrub_below=0).workspace("alex")
    ids = [memory.remember("root").id, memory.remember("other root").id]
    for _ in range(2_000):
        ids.append(memory.record("saw it all", context=ids).id)
    clean = memory.remember("untouched").id
    assert memory.dependents([1]) == [1, *ids[2:]]
    plan = memory.plan(ids=[1], suspects=False)
    assert plan.ids == (1, *ids[2:])
    assert {one.trace for one in plan.dependents} == {(1, one) for one in ids[2:]}
    assert memory.plan(ids=[ids[500]], suspects=False).ids == tuple(ids[500:])
    assert memory.forget(plan).ids == plan.ids
    assert [one.id for one in memory.export()] == [2, clean]
    assert count(url, "edge") == 0
    assert memory.verify().ok


def test_contexts_that_extend_nothing_are_stored_whole_and_reached_all_the_same(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, scrub_below=0).workspace("alex")
    ids = [memory.remember("root").id, memory.remember("other").id]
    for _ in range(150):
        ids.append(memory.record("backwards", context=ids[::-1]).id)
    assert memory.context_of(ids[-1]) == ids[-2::-1]
    assert memory.forget(ids=[ids[75]]).ids == tuple(ids[75:])
    assert memory.context_of(ids[74]) == ids[73::-1]
    assert memory.verify().ok


@pytest.mark.long
def test_a_chain_of_thousands_is_followed_to_its_end(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, scrub_below=0).workspace("alex")
    memory.remember("root")
    length = 1_000 if is_postgres(url) else 5_000  # each link is a round trip there
    for n in range(1, length):
        memory.record("next", context=[n])
    assert memory.dependents([1]) == list(range(1, length + 1))
    plan = memory.plan(ids=[length // 2], suspects=False)
    assert plan.ids == tuple(range(length // 2, length + 1))
    assert plan.dependents[-1].trace == plan.ids
    assert memory.plan(ids=[1], reach=depth(3), suspects=False).ids == (1, 2, 3, 4)
    assert memory.explain(length).sources[1] == tuple(range(1, length + 1))
    assert memory.forget(plan).ids == plan.ids
    assert len(list(memory.export())) == length // 2 - 1
    assert memory.verify().ok


# copies


def test_a_copy_goes_with_its_original_whichever_of_them_is_named(memory: Memory) -> None:
    memory.remember("content")  # 1
    memory.remember("content", copy_of=1, thread="elsewhere")  # 2
    memory.record("made from the copy", context=[2])  # 3
    memory.record("made from the original", context=[1])  # 4
    memory.remember("made from the original", copy_of=4)  # 5
    memory.remember("other")  # 6
    for seed in (1, 2):
        assert memory.dependents([seed]) == [1, 2, 3, 4, 5]
    assert memory.dependents([5]) == [4, 5]
    assert memory.context_of(2) == []
    assert memory.used_in(1) == [4]
    assert memory.used_in(2) == [3]
    assert memory.forget(ids=[2]).ids == (1, 2, 3, 4, 5)
    assert memory.verify().ok


def test_a_copy_of_what_is_gone_or_never_was_is_refused(memory: Memory) -> None:
    memory.remember("content")
    with pytest.raises(NotFound):
        memory.remember("content", copy_of=7)
    memory.forget(ids=[1])
    with pytest.raises(ContextForgotten):
        memory.remember("content", copy_of=1)
    assert list(memory.export()) == []


@pytest.mark.parametrize("wrong", [[99], [0], [-1], [1, 99]])
def test_a_context_that_never_was_is_refused_and_nothing_is_stored(
    memory: Memory, wrong: list[int]
) -> None:
    memory.remember("one")
    with pytest.raises(NotFound):
        memory.record("r", context=wrong)
    assert len(list(memory.export())) == 1
    assert memory.remember("two").id == 2


# inverse


def test_used_in_is_the_inverse_of_context_of(memory: Memory) -> None:
    draw = random.Random(3)
    ids = [memory.remember("root").id]
    for _ in range(80):
        context = draw.choice((ids, ids[-12:], draw.sample(ids, k=min(len(ids), 5))))
        ids.append(memory.record("r", context=context).id)
    pairs = {(parent, child) for child in ids for parent in memory.context_of(child)}
    assert {(parent, child) for parent in ids for child in memory.used_in(parent)} == pairs
    assert set(memory.graph().edges) == pairs
    assert memory.used_in(999) == memory.context_of(999) == memory.dependents([999]) == []


# telling and drawing


def test_the_graph_is_drawn_with_ids_and_roles_and_without_content(memory: Memory) -> None:
    memory.remember("Quokka Street")
    memory.record("Quokka Street, noted", context=[1])
    memory.remember("x", role='odd"];\n role')
    memory.record("both", context=[1, 2, 3])
    drawn = memory.graph()
    assert drawn.dot() == "\n".join(
        [
            "digraph memory {",
            "  rankdir=LR;",
            '  1 [label="1 user", shape=box];',
            '  2 [label="2 assistant", shape=ellipse];',
            '  3 [label="3 odd____ role", shape=ellipse];',
            '  4 [label="4 assistant", shape=ellipse];',
            "  1 -> 2;",
            "  1 -> 4;",
            "  2 -> 4;",
            "  3 -> 4;",
            "}",
        ]
    )
    assert drawn.mermaid() == "\n".join(
        [
            "flowchart LR",
            '  m1["1 user"]',
            '  m2("2 assistant")',
            '  m3("3 odd____ role")',
            '  m4("4 assistant")',
            "  m1 --> m2",
            "  m1 --> m4",
            "  m2 --> m4",
            "  m3 --> m4",
        ]
    )
    assert memory.graph([1, 4]).edges == ((1, 4),)
    assert memory.graph([]).edges == ()
    graph = drawn.to_rustworkx()
    assert sorted(graph.nodes()) == [1, 2, 3, 4]
    assert {(graph[a], graph[b]) for a, b in graph.edge_list()} == set(drawn.edges)


def test_why_do_you_know_this_names_every_source_and_the_way_it_came(memory: Memory) -> None:
    memory.remember("I live in Paris")
    memory.record("Paris, noted", context=[1])
    memory.remember("What is near me?")
    memory.record("The Seine", context=[2, 3])
    memory.remember("not involved")
    told = memory.explain(4)
    assert [one.id for one in told.context] == [2, 3]
    assert told.sources == {1: (1, 2, 4), 3: (3, 4)}
    assert str(told).splitlines() == [
        "4 assistant: The Seine",
        "  had in its prompt: 2 assistant: Paris, noted",
        "  had in its prompt: 3 user: What is near me?",
        "  rests on: 1 user: I live in Paris  [1 → 2 → 4]",
    ]
    assert memory.explain(1).sources == {}
    assert "was not made from anything" in str(memory.explain(1))
    for missing in (99, 0, -1):
        with pytest.raises(NotFound):
            memory.explain(missing)
